//! What a solver session answers, whichever back end is behind it.

use model::{EventId, EventTrace, ReadRef, Schedule, VarId, WriteSource};
use std::collections::BTreeMap;
use std::time::Duration;
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
    /// Two back ends disagree about one question.
    #[error("two solvers disagree: one answers {first}, the other {second}")]
    Disagreement {
        /// The first answer.
        first: String,
        /// The second answer.
        second: String,
    },
    /// A term that this back end cannot express.
    #[error("cannot be expressed in this solver: {0}")]
    Unsupported(String),
}

impl UnknownReason {
    /// The reason behind a solver's own words.
    #[must_use]
    pub fn of_solver(words: &str) -> Self {
        let lower = words.to_lowercase();
        if lower.contains("memory") || lower.contains("memout") {
            Self::Memory
        } else if ["timeout", "time-out", "canceled", "interrupted", "resource limit"]
            .iter()
            .any(|word| lower.contains(word))
        {
            Self::TimeOut
        } else {
            Self::GaveUp(words.to_owned())
        }
    }
}

/// Limits of one call of [`Session::check`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time per check.
    pub time: Option<Duration>,
    /// Memory in megabytes. The linked Z3 has one limit for the whole process: the last session
    /// made sets it.
    pub memory_mb: Option<u32>,
}

/// One of several questions gets a part of this, however much time there is...
const SHARED: Duration = Duration::from_secs(120);
/// ...or of this part of the time, where that is more.
const SHARED_PART: u32 = 10;

impl Limits {
    /// The time for one of many questions, each of which gets one part in `parts`. With all of the
    /// time for parts of it hard questions that are not important would take minutes.
    pub(crate) fn share(&self, parts: u32) -> Option<Duration> {
        match parts {
            0 | 1 => self.time,
            _ => Some(self.shared()? / parts),
        }
    }

    /// The time that questions get parts of which are not important one by one: all of it where that is little.
    #[must_use]
    pub fn shared(&self) -> Option<Duration> {
        self.time.map(|time| time.min(SHARED.max(time / SHARED_PART)))
    }
}

/// Refuses what no session can answer.
pub(crate) fn check_question(
    trace: &EventTrace,
    has_failure: bool,
    goal: Goal,
    orders: &[Order],
) -> Result<(), SolverError> {
    if goal == Goal::Fail && !has_failure {
        return Err(SolverError::Unsupported("a failing schedule of a passing run".to_owned()));
    }
    let known = |event: EventId| event.index() < trace.events.len();
    match orders.iter().find(|order| !known(order.before) || !known(order.after)) {
        None => Ok(()),
        Some(order) => Err(SolverError::Unsupported(format!(
            "an order of events that the trace does not have: {} before {}",
            order.before, order.after
        ))),
    }
}

/// A session over one constraint system. Incremental: the system is asserted once.
pub trait Session {
    /// Is the system with the goal satisfiable when all of `orders` hold?
    ///
    /// # Errors
    /// When the back end fails; a time-out is [`Outcome::Unknown`], not an error.
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError>;

    /// Like [`check`](Session::check), with one part in `parts` of the time that a check may take,
    /// and of two minutes or a tenth of that time at most, so that one of many hard questions does not take it all. A session that cannot limit single
    /// questions ignores it.
    ///
    /// # Errors
    /// As [`check`](Session::check).
    fn check_within(
        &mut self,
        goal: Goal,
        orders: &[Order],
        parts: u32,
    ) -> Result<Outcome, SolverError> {
        let _ = parts;
        self.check(goal, orders)
    }

    /// Has later checks look near this schedule of the system first. No answer depends on it but
    /// which schedule is found, and how soon. A session that has no use for it ignores it.
    fn look_near(&mut self, schedule: &Schedule) {
        let _ = schedule;
    }
}

impl<S: Session + ?Sized> Session for Box<S> {
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, SolverError> {
        (**self).check(goal, orders)
    }

    fn check_within(
        &mut self,
        goal: Goal,
        orders: &[Order],
        parts: u32,
    ) -> Result<Outcome, SolverError> {
        (**self).check_within(goal, orders, parts)
    }

    fn look_near(&mut self, schedule: &Schedule) {
        (**self).look_near(schedule);
    }
}
