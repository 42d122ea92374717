//! From orders of events to schedules that a scheduler can follow, and back.
//!
//! A [`model::Schedule`] is an order of all events of a recorded run. A [`Script`] says which
//! thread runs until which place of the program, in words that outlive a rebuild; its text form is
//! described in `docs/schedule-format.md`. [`model::Points`] connects the two: it says at which
//! place a thread has to be stopped so that an event has not happened yet.
//!
//! | file | what |
//! | --- | --- |
//! | `text` | scripts as text |
//! | `units` | which events a scheduler can separate |
//! | `build` | from an order to a script |
//! | `observe` | from the turns of a scheduled run to an order |
//!
//! Absent on purpose: IO, clocks, solvers, and the program itself.

mod build;
mod observe;
mod text;
mod units;

pub use build::{Built, failing, marks_for, passing, prefix};
pub use observe::{ObservedError, observed};
pub use text::{End, Input, Mark, ParseError, Script, Target, Turn, parse};
