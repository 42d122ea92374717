//! The tests of root causes, alternates and what is said of them, in one executable: each takes seconds to link.

mod across;
mod alternates;
mod announced;
mod causes;
mod checks;
mod counters;
mod ends;
mod examples;
mod files;
mod flips;
mod late;
mod looks;
mod opaque;
mod outcomes;
mod parting;
mod pointers;
mod properties;
mod rounds;
mod same_step;
mod steps;
mod support;
mod together;
mod told;
mod updates;
mod wakers;
mod z3;
