//! Does a repair do what it is for?

use crate::contended;
use crate::edit::Edited;
use crate::runs::run_through;
use crate::waits::new_circle;
use encoders::{ConstraintSystem, EncodeError};
use model::evaluate::Evaluator;
use model::{EventId, EventTrace, VarId, VariableOrigin};
use solver::{Goal, Model, OrderingSession, Outcome, Session, SolverError};
use std::time::Duration;
use thiserror::Error;

/// The part of a question's time that is spent on whether the recorded paths are still possible with a repair: that
/// decides what is said of it, and not whether it is one.
pub(crate) const PATHS: u32 = 16;

/// How much a check may take.
#[derive(Clone, Copy)]
pub struct Limits<'b> {
    /// For one question to the solver.
    pub time: Duration,
    /// For the solver's memory, in megabytes.
    pub memory_mb: Option<u32>,
    /// The time that is left for everything, asked before each candidate and each question; the search ends when
    /// there is none.
    pub left: &'b dyn Fn() -> Duration,
}

impl Limits<'_> {
    /// Is there time left?
    #[must_use]
    pub fn is_left(&self) -> bool {
        !(self.left)().is_zero()
    }

    /// What the next question to the solver may take.
    pub(crate) fn of_question(&self) -> solver::Limits {
        solver::Limits { time: Some(self.time.min((self.left)())), memory_mb: self.memory_mb }
    }

    /// A trace's constraints, or why there are none: of runs in which threads meet too often they take more memory than
    /// there is.
    pub(crate) fn encode(&self, trace: &EventTrace) -> Result<ConstraintSystem, EncodeError> {
        if contended::is_contended(trace) {
            return Err(EncodeError::BudgetSpent);
        }
        encoders::encode_within(trace, false, &|| self.is_left())
    }
}

/// Why a candidate is no repair.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A schedule with it fails all the same.
    #[error("a schedule with it fails all the same")]
    Fails,
    /// No schedule with it runs at all.
    #[error("with it nothing can run to the end")]
    Vacuous,
    /// Threads could wait for each other.
    #[error("threads could wait for each other: {}", .0.join(" -> "))]
    Deadlock(Vec<String>),
    /// The solver gave no answer.
    #[error("undecided: {0}")]
    Undecided(String),
}

/// The outcome.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It holds.
    Holds(Checked),
    /// It does not, or that is not known.
    Refused(Refusal),
}

/// What was shown of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The constraints of the system with the repair, no schedule of which fails.
    pub constraints: usize,
    /// A schedule with the repair that passes on the recorded paths, as the recorded run's events;
    /// `None` where none keeps to the recorded paths, because only the bug made them possible, or none was found in time.
    pub passing: Option<Vec<EventId>>,
    /// Whether a schedule with it keeps to the recorded paths was not found out in time.
    pub paths_open: bool,
    /// Only schedules were looked at that switch threads at few places, since threads meet too often.
    pub at_few_places: bool,
    /// Only schedules were looked at that begin as the recorded run did, and have so many events in an order of their own
    /// that came shortly before its failure. `None` where all were.
    pub end: Option<usize>,
    /// These come before a check that the failure tells of.
    pub before_check: bool,
}

/// Where the recorded run is the end of a longer one, that is the `whole`.
pub(crate) fn check(
    (recorded, whole): (&EventTrace, Option<&EventTrace>),
    edited: &Edited,
    limits: Limits<'_>,
) -> Result<Verdict, SolverError> {
    if let Some(circle) = new_circle(recorded, whole, &edited.trace) {
        return Ok(Verdict::Refused(Refusal::Deadlock(circle)));
    }
    let trace = &edited.trace;
    if contended::is_contended(trace) {
        return contended::check(edited, limits);
    }
    let system = match limits.encode(trace) {
        Ok(system) => system,
        Err(error) => return Ok(Verdict::Refused(Refusal::Undecided(error.to_string()))),
    };
    let solver_limits = limits.of_question();
    let mut session = OrderingSession::new(trace, &system, solver_limits);
    match session.check(Goal::Fail, &[])? {
        Outcome::Unsat(_) => {}
        Outcome::Sat(_) => return Ok(Verdict::Refused(Refusal::Fails)),
        Outcome::Unknown(reason) => {
            return Ok(Verdict::Refused(Refusal::Undecided(reason.to_string())));
        }
    }
    let constraints = system.constraints.len();
    match session.check_within(Goal::Pass, &[], PATHS)? {
        Outcome::Sat(found) => {
            if !passes(trace, &found) {
                let why = "the evaluator does not accept the schedule that passes".to_owned();
                return Ok(Verdict::Refused(Refusal::Undecided(why)));
            }
            let recorded = found.schedule.order.iter();
            let recorded =
                recorded.filter_map(|id| edited.origin.get(id.index()).copied().flatten());
            Ok(Verdict::Holds(Checked {
                passing: Some(recorded.collect()),
                ..Checked::of(constraints)
            }))
        }
        // That nothing fails is shown already: what is left to see is that the program can run.
        Outcome::Unknown(_) => Ok(off_path(trace, constraints, limits)?.with_open_paths()),
        Outcome::Unsat(_) => off_path(trace, constraints, limits),
    }
}

impl Checked {
    /// Of so many constraints, with nothing known besides.
    pub(crate) fn of(constraints: usize) -> Self {
        Self {
            constraints,
            passing: None,
            paths_open: false,
            at_few_places: false,
            end: None,
            before_check: false,
        }
    }
}

impl Verdict {
    /// The same where nobody knows whether the recorded paths are still possible.
    pub(crate) fn with_open_paths(self) -> Self {
        match self {
            Self::Holds(checked) => Self::Holds(Checked { paths_open: true, ..checked }),
            refused @ Self::Refused(_) => refused,
        }
    }
}

/// No schedule keeps to the recorded paths. Where the synchronisation alone lets the threads run,
/// the bug made the paths possible, and the repaired program takes others.
pub(crate) fn off_path(
    trace: &EventTrace,
    constraints: usize,
    limits: Limits<'_>,
) -> Result<Verdict, SolverError> {
    let mut free = trace.clone();
    free.conditions.clear();
    // With many units of semaphores the solver takes long to find a run, and any will do.
    if run_through(free.clone(), || limits.is_left()) {
        return Ok(Verdict::Holds(Checked::of(constraints)));
    }
    let system = match limits.encode(&free) {
        Ok(system) => system,
        Err(error) => return Ok(Verdict::Refused(Refusal::Undecided(error.to_string()))),
    };
    let mut session = OrderingSession::new(&free, &system, limits.of_question());
    Ok(match session.check(Goal::Any, &[])? {
        Outcome::Sat(_) => Verdict::Holds(Checked::of(constraints)),
        Outcome::Unsat(_) => Verdict::Refused(Refusal::Vacuous),
        Outcome::Unknown(reason) => Verdict::Refused(Refusal::Undecided(reason.to_string())),
    })
}

/// Does the evaluator, which knows nothing of the solver, see the schedule pass on its paths?
fn passes(trace: &EventTrace, found: &Model) -> bool {
    let input = |var: VarId| {
        let variable = trace.variables.get(var.index())?;
        match variable.origin {
            VariableOrigin::Read { .. } => None,
            _ => Some(found.values.get(&var).copied().or(variable.recorded).unwrap_or(0)),
        }
    };
    let evaluation = Evaluator::new(trace).run(&found.schedule.order, &input);
    if let Err(error) = &evaluation {
        tracing::debug!(?error, "the evaluator refuses a schedule");
    }
    evaluation.is_ok_and(|e| e.follows_paths() && e.failure_known && !e.fails)
}
