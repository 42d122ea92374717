//! The tests of the executor, in one executable: each takes seconds to link.

mod calls;
mod endless;
mod hangs;
mod idle;
mod objects;
mod outcomes;
mod own;
mod owners;
mod points;
mod repeats;
mod strings;
mod support;
mod tight;
mod walks;
