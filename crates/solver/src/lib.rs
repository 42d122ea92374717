//! Solver sessions over a constraint system: Z3 through its C API, any SMT-LIB 2 solver through
//! a pipe. Only this crate knows a solver.

pub mod session;

pub use session::{Goal, Model, Order, Outcome, Session, SolverError, UnknownReason};
