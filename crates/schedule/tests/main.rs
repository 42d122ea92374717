//! The tests of schedules, in one executable: each takes seconds to link.

mod scripts;
mod simulation;
