//! What a solver session answers, whichever back end is behind it.

use model::{EventId, ReadRef, Schedule, VarId, WriteSource};
use std::collections::BTreeMap;
use thiserror::Error;

/// What to do with φbug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Assert it: a failing schedule.
    Fail,
    /// Negate it: a schedule along the same paths that does not fail.
    Pass,
    /// Leave it out.
    Any,
}

/// "The first event comes before the second", as an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Order {
    /// The earlier event.
    pub before: EventId,
    /// The later event.
    pub after: EventId,
}

/// A satisfying assignment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// All events of the trace in the order of their order variables.
    pub schedule: Schedule,
    /// Where every read takes its value from.
    pub reads_from: BTreeMap<ReadRef, WriteSource>,
    /// The value of every variable that occurs in the constraints.
    pub values: BTreeMap<VarId, u128>,
}

/// Why a solver gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownReason {
    /// The time limit was hit.
    #[error("the time limit was reached")]
    TimeOut,
    /// The memory limit was hit.
    #[error("the memory limit was reached")]
    Memory,
    /// The solver gave up; its own words.
    #[error("the solver gave up: {0}")]
    GaveUp(String),
}

/// A solver's answer. Unknown is never read as unsatisfiable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Satisfiable.
    Sat(Model),
    /// Unsatisfiable: indices into the assumed orders that together cannot hold; empty when the
    /// formula is unsatisfiable without any. Not necessarily minimal.
    Unsat(Vec<usize>),
    /// No answer.
    Unknown(UnknownReason),
}

/// The back end failed: not an answer about the formula.
#[derive(Debug, Error)]
pub enum SolverError {
    /// The solver process could not be started or talked to.
    #[error("solver `{command}`: {message}")]
    Process {
        /// The command line.
        command: String,
        /// What went wrong.
        message: String,
    },
    /// The solver answered something that is not understood.
    #[error("solver `{command}` gave an answer that is not understood: {answer}")]
    Answer {
        /// The command line, or `z3` for the linked library.
        command: String,
        /// The answer.
        answer: String,
    },
    /// A term that this back end cannot express.
    #[error("cannot be expressed in this solver: {0}")]
    Unsupported(String),
}

/// A session over one constraint system. Incremental: the system is asserted once.
pub trait Session {
    /// Is the system with the goal satisfiable when all of `orders` hold?
    ///
    /// # Errors
    /// When the back end fails; a time-out is [`Outcome::Unknown`], not an error.
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError>;
}
