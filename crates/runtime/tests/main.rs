//! The tests of the runtime, in one executable: each takes seconds to link.

mod common;
mod failures;
mod forked;
mod gates;
mod recording;
mod repeats;
mod scheduled;
