//! Repairs of a solved trace: from the answer to what a person could change.
//!
//! | file | what |
//! | --- | --- |
//! | `answer` | what is printed, as JSON and as text |
//! | `rule` | a repair's order as a rule that the runtime follows |
//! | `enforced` | the program under the failing schedule with a rule |

pub mod answer;
mod enforced;
mod rule;

use crate::pipeline::{self, PipelineError};
use answer::Fixes;
use enforced::Enforced;
use explain::Pattern;
use model::{EventId, Schedule};
use render::Solution;
use repair::{Bug, Limits, Refusal};
use rule::Gates;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use symex::{Execution, Recording};
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
    /// How often to run the program with each repair's order enforced; 0 to leave it at the proof.
    pub runs: u32,
}

/// More repairs than asked for are looked for, for when the program fails with some of them.
const SPARE: usize = 2;

/// A trace, ready for questions about it.
#[derive(Debug)]
pub struct Recorded {
    /// Its directory.
    pub directory: PathBuf,
    /// Its streams and modules.
    pub recording: Recording,
    /// Its events: the same for the same trace every time.
    pub execution: Execution,
}

impl Recorded {
    /// Loads and executes a trace.
    ///
    /// # Errors
    /// As [`pipeline::load`] and [`pipeline::execute`].
    pub fn open(directory: &Path) -> Result<Self, PipelineError> {
        let loaded = pipeline::load(directory)?;
        let execution = pipeline::execute(&loaded.recording)?;
        Ok(Self { directory: directory.to_owned(), recording: loaded.recording, execution })
    }
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
    /// The program could not be run, or was interrupted.
    #[error(transparent)]
    Replay(#[from] crate::replay::ReplayError),
    /// The answer is not one of this trace.
    #[error("the kept answer does not belong to this trace ({0}); run `symbiosis solve` again")]
    Stale(String),
}

/// Looks for repairs of what the solution says, and checks them.
///
/// # Errors
/// When the solution is another trace's, or the solver breaks.
pub fn fix(recorded: &Recorded, solution: &Solution, options: Options) -> Result<Fixes, FixError> {
    let started = Instant::now();
    let Execution { trace, points, inputs, .. } = &recorded.execution;
    let mut fixes = Fixes::of(solution);
    if solution.cause.is_none() {
        return Ok(fixes);
    }
    let (events, schedule, pattern) = match bug(recorded, solution)? {
        Ok(bug) => bug,
        Err(why) => {
            fixes.reason = Some(why);
            return Ok(fixes);
        }
    };
    let budget = || started.elapsed() < options.time;
    let limits = Limits { time: options.time / 8, memory_mb: options.memory_mb, budget: &budget };
    let bug = Bug { trace, pattern, events: &events, schedule: &schedule };
    let found = repair::repairs(&bug, options.wanted.saturating_add(SPARE), limits)?;
    fixes.undecided = count(&found, |why| matches!(why, Refusal::Undecided(_)));
    fixes.refused = found.refused.len() as u64 - fixes.undecided;
    let gates = Gates::of(&recorded.recording);
    let order = Schedule { order: schedule.clone() };
    let mut enforced = match options.runs {
        0 => None,
        _ => Some(Enforced::new(&recorded.directory, trace, points, inputs, &order)?),
    };
    for repair in &found.found {
        if fixes.repairs.len() >= options.wanted {
            break;
        }
        let mut shown = answer::Repair::of(repair);
        shown.rule = rule::text(&repair.rule, trace, points, &gates);
        if let (Some(enforced), Some(rule)) = (&mut enforced, &shown.rule) {
            match enforced.runs(rule, options.runs)? {
                Ok(replays) if replays.passed < replays.runs => {
                    tracing::info!(kind = shown.kind, ?replays, "the program fails with it");
                    fixes.refused += 1;
                    continue;
                }
                Ok(replays) => shown.checks.replay = Some(replays),
                Err(why) => shown.checks.not_replayed = Some(why),
            }
        } else if enforced.is_some() {
            let why = "it is no order of events that a running program could be held to";
            shown.checks.not_replayed = Some(why.to_owned());
        }
        fixes.repairs.push(shown);
    }
    fixes.out_of_time = !budget();
    Ok(fixes)
}

/// The events of the cause, the failing schedule, and the pattern.
pub(crate) type BugParts = (Vec<EventId>, Vec<EventId>, Pattern);

/// What the answer says of the recorded run's events. The inner error says why nothing can be shown
/// about them.
///
/// # Errors
/// When the answer is another trace's.
pub(crate) fn bug(
    recorded: &Recorded,
    solution: &Solution,
) -> Result<Result<BugParts, String>, FixError> {
    let stale = |what: &str| FixError::Stale(what.to_owned());
    let trace = &recorded.execution.trace;
    let Some(cause) = &solution.cause else { return Ok(Err("no cause is known".to_owned())) };
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
        // The run ended before what came too late.
        return Ok(Err(
            "an event of the cause is none of the recorded run's, which ended before it: nothing can \
             be shown about it on this trace"
                .to_owned(),
        ));
    }
    Ok(Ok((events, schedule, pattern)))
}

fn count(found: &repair::Repairs, fits: impl Fn(&Refusal) -> bool) -> u64 {
    found.refused.iter().filter(|(_, why)| fits(why)).count() as u64
}

/// `e12`; none for identifiers of another run's events.
pub(crate) fn event(text: &str) -> Option<EventId> {
    text.strip_prefix('e')?.parse().ok().map(EventId)
}
