//! The tests of the trace format, in one executable: each takes seconds to link.

mod common;
mod damage;
mod payloads;
mod reading;
