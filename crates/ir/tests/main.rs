//! The tests of what is read of IR, in one executable: each takes seconds to link.

mod callers;
mod common;
mod gates;
mod guesses;
mod lines;
mod name;
mod plan;
mod read;
mod repeats;
mod rust_names;
mod wrappers;
