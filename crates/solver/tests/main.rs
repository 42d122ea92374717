//! The tests of the solvers, in one executable: each takes seconds to link.

mod assumed;
mod coarse;
mod counters;
mod defects;
#[path = "support/enumerate.rs"]
mod enumerate;
mod follow;
#[path = "support/generate.rs"]
mod generate;
#[path = "support/interpreter.rs"]
mod interpreter;
mod litmus;
mod near;
mod oracle;
mod probes;
#[path = "support/random.rs"]
mod random;
#[path = "support/run.rs"]
mod run;
mod scale;
mod unwoken;
mod windows;
