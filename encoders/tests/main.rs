//! The tests of encoders, in one executable: each takes seconds to link.

mod encode;
mod locks;
mod recorded;
