//! Solver sessions over a constraint system: Z3 through its C API, any SMT-LIB 2 solver through
//! a pipe. Only this crate knows a solver.

mod actions;
mod coarse;
mod decorators;
mod extract;
mod follow;
mod formula;
mod forward;
mod ordering;
pub mod session;
mod smtlib;
mod z3_session;

pub use coarse::CoarseSession;
pub use decorators::{CrossCheckSession, LoggingSession};
pub use follow::{follow, follow_loosely};
pub use formula::dump_smtlib;
pub use ordering::{OrderingSession, Work};
pub use session::{Goal, Limits, Model, Order, Outcome, Session, SolverError, UnknownReason};
pub use smtlib::{SmtLibProcess, SmtLibSession};
pub use z3_session::Z3Session;

/// The version of the linked Z3 as it names itself.
#[must_use]
pub fn z3_version() -> String {
    z3::full_version().to_owned()
}
