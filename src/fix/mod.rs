//! Repairs of a solved trace: from the answer to what a person could change.
//!
//! | file | what |
//! | --- | --- |
//! | `answer` | what is printed, as JSON and as text |

pub mod answer;

use crate::pipeline::{self, PipelineError};
use answer::Fixes;
use explain::Pattern;
use model::EventId;
use render::Solution;
use repair::{Bug, Limits, Refusal};
use std::path::Path;
use std::time::{Duration, Instant};
use symex::Execution;
use thiserror::Error;

/// How hard to look.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many repairs to find.
    pub wanted: usize,
    /// Wall-clock time for all of it.
    pub time: Duration,
    /// The solver's memory.
    pub memory_mb: Option<u32>,
}

/// Why there are no repairs to look for.
#[derive(Debug, Error)]
pub enum FixError {
    /// A stage before it broke.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The solver broke.
    #[error("the solver failed")]
    Solver(#[from] solver::SolverError),
    /// The answer is not one of this trace.
    #[error("the kept answer does not belong to this trace ({0}); run `symbiosis solve` again")]
    Stale(String),
}

/// The recorded run's events, and the same for the same trace every time.
///
/// # Errors
/// As [`pipeline::load`] and [`pipeline::execute`].
pub fn execution(trace: &Path) -> Result<Execution, PipelineError> {
    let loaded = pipeline::load(trace)?;
    pipeline::execute(&loaded.recording)
}

/// Looks for repairs of what the solution says, and checks them.
///
/// # Errors
/// When the solution is another trace's, or the solver breaks.
pub fn fix(
    execution: &Execution,
    solution: &Solution,
    options: Options,
) -> Result<Fixes, FixError> {
    let started = Instant::now();
    let stale = |what: &str| FixError::Stale(what.to_owned());
    let trace = &execution.trace;
    let mut fixes = Fixes::of(solution);
    let Some(cause) = &solution.cause else { return Ok(fixes) };
    if solution.events.len() != trace.events.len() {
        return Err(stale("it has another number of events"));
    }
    let pattern = Pattern::ALL.into_iter().find(|pattern| pattern.name() == cause.pattern);
    let pattern = pattern.ok_or_else(|| stale("its pattern is unknown"))?;
    let known = |text: &String| event(text).filter(|id| id.index() < trace.events.len());
    let schedule: Option<Vec<EventId>> = solution.schedule.iter().map(known).collect();
    let schedule = schedule.ok_or_else(|| stale("its schedule has other events"))?;
    let events: Vec<EventId> = cause.events.iter().filter_map(known).collect();
    if events.len() < cause.events.len() {
        // The run ended before what came too late: nothing can be shown about it on this trace.
        fixes.reason = Some(
            "an event of the cause is none of the recorded run's, which ended before: what a repair \
             does to it cannot be shown on this trace"
                .to_owned(),
        );
        return Ok(fixes);
    }
    let budget = || started.elapsed() < options.time;
    let limits = Limits { time: options.time / 8, memory_mb: options.memory_mb, budget: &budget };
    let bug = Bug { trace, pattern, events: &events, schedule: &schedule };
    let found = repair::repairs(&bug, options.wanted, limits)?;
    fixes.undecided = count(&found, |why| matches!(why, Refusal::Undecided(_)));
    fixes.refused = found.refused.len() as u64 - fixes.undecided;
    fixes.repairs = found.found.iter().map(answer::Repair::of).collect();
    fixes.out_of_time = !budget();
    Ok(fixes)
}

fn count(found: &repair::Repairs, fits: impl Fn(&Refusal) -> bool) -> u64 {
    found.refused.iter().filter(|(_, why)| fits(why)).count() as u64
}

/// `e12`; none for identifiers of another run's events.
fn event(text: &str) -> Option<EventId> {
    text.strip_prefix('e')?.parse().ok().map(EventId)
}
