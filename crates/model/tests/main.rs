//! The tests of traces as a model, in one executable: each takes seconds to link.

mod evaluate;
mod verify;
