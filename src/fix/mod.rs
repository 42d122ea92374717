//! Repairs of a solved trace: from the answer to what a person could change.
//!
//! | file | what |
//! | --- | --- |
//! | `answer` | what is printed, as JSON and as text |
//! | `rule` | a repair's order as a rule that the runtime follows |
//! | `handlers` | functions in which nothing may block |
//! | `other_run` | a run that passes, where the failing one ended too early |
//! | `fences` | fences behind writes that are seen late |
//! | `enforced` | the program under the failing schedule with a rule |
//! | `others` | runs with a rule that fail for another bug |

pub mod answer;
mod enforced;
mod fences;
mod handlers;
mod other_run;
mod others;
mod rule;

use crate::pipeline::{self, Budget, PipelineError};
use crate::replay::{AGAIN_BEHIND, FAILED_BEHIND};
use answer::{Fixes, Replays};
use enforced::{Enforced, Runs};
use explain::Pattern;
use model::{EventId, Schedule};
pub(crate) use others::{RECORDED_LEAST, RECORDED_RUNS};
use render::Solution;
use render::solution::STILL_RUNNING;
use repair::{Bug, How, Kind, Limits, LineCall, LineUse, Lines, Ordered, Refusal, Rule, Uses};
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
    /// Wall-clock time for all of it, from which the shares of its parts are reckoned.
    pub time: Duration,
    /// Until when all of it has to be done, replays too; none for no end.
    pub until: Option<Instant>,
    /// The solver's memory.
    pub memory_mb: Option<u32>,
    /// How often to run the program with each repair's order enforced; 0 to leave it at the proof,
    /// none for as often as does not take long.
    pub runs: Option<u32>,
}

/// More repairs than asked for are looked for, for when the program fails with some of them.
const SPARE: usize = 2;

/// So often repairs are looked for: where the program failed with all that were found, those that go further are tried.
const ROUNDS: usize = 3;

/// Why nothing was seen of a repair where the other bug struck each time.
const OTHERWISE: &str = "every run with the repair's order failed for another bug";
/// Why a run with a repair that gives a lock back first says nothing where it fails.
const NO_ORDER: &str = "who gives a lock back first is held to no order that runs could be given";

/// What speaks against a repair that was not run, where the cause is not all that went wrong.
const REORDERED: &str =
    "and where the order of the cause was another one, the program failed all the same";

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
        Self::open_with(directory, &symex::Options::default(), &Budget::of_walk(None, None))
    }

    /// The same for [`fix`], within a budget: with what lines leave for each other where no other thread sees it.
    ///
    /// # Errors
    /// As [`Self::open`], and [`PipelineError::NotWalked`] when the budget was spent first.
    pub fn open_within(directory: &Path, budget: &Budget) -> Result<Self, PipelineError> {
        let options = symex::Options { own_uses: true, ..symex::Options::default() };
        Self::open_with(directory, &options, budget)
    }

    /// As [`Self::open`], as long as `is_left` says so. `ordered`: with events also of accesses that creating and joining
    /// threads keeps in order.
    ///
    /// # Errors
    /// As [`Self::open`] and [`pipeline::execute_while`].
    pub fn open_while(
        directory: &Path,
        ordered: bool,
        is_left: &dyn Fn() -> bool,
    ) -> Result<Self, PipelineError> {
        let options = symex::Options { ordered_accesses: ordered, ..symex::Options::default() };
        let loaded = pipeline::load(directory)?;
        let execution = pipeline::execute_while(&loaded.recording, &options, is_left)?;
        Ok(Self { directory: directory.to_owned(), recording: loaded.recording, execution })
    }

    fn open_with(
        directory: &Path,
        options: &symex::Options,
        budget: &Budget,
    ) -> Result<Self, PipelineError> {
        let loaded = pipeline::load(directory)?;
        let execution = pipeline::execute_trace(directory, &loaded.recording, (options, budget))?;
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
    let Execution { trace, points, .. } = &recorded.execution;
    let mut fixes = Fixes::of(solution);
    if solution.cause.is_none() {
        return Ok(fixes);
    }
    if !solution.late_writes.is_empty() {
        return fences::find(recorded, solution, options);
    }
    let time = options.time / 8;
    let left = || match options.until {
        Some(until) => until.saturating_duration_since(Instant::now()),
        None => Duration::MAX,
    };
    let subject = match bug(recorded, solution)? {
        Ok((events, schedule, pattern)) => Subject {
            ordered: None,
            events,
            schedule: schedule.clone(),
            pattern,
            failing: schedule,
        },
        Err(Unshown::EndedEarly(failing)) => {
            let found = other_run::find(recorded, &failing, time, options.until)?;
            let limits = Limits { time, memory_mb: options.memory_mb, left: &left };
            let can_fail = match &found {
                Some(ordered) => ordered.can_fail(limits)?,
                None => false,
            };
            match found.filter(|_| can_fail) {
                Some(ordered) => Subject::of(ordered, failing),
                None => {
                    fixes.reason = Some(Unshown::EndedEarly(failing).to_string());
                    fixes.out_of_time = left().is_zero();
                    return Ok(fixes);
                }
            }
        }
        Err(why) => {
            fixes.reason = Some(why.to_string());
            return Ok(fixes);
        }
    };
    fixes.other_run = subject.ordered.is_some();
    let limits = Limits { time, memory_mb: options.memory_mb, left: &left };
    let handlers = handlers::handlers(&recorded.recording);
    let looked_at = subject.ordered.as_ref().map_or(trace, |ordered| &ordered.trace);
    let bug = Bug {
        trace: looked_at,
        pattern: subject.pattern,
        events: &subject.events,
        schedule: &subject.schedule,
        handlers: &handlers,
        uses: Uses(recorded),
    };
    let told_of = solution.check.as_ref().filter(|_| !fixes.other_run);
    let told_of = told_of.map(|check| model::ConditionId(check.condition));
    let gates = Gates::of(&recorded.recording);
    // Only the recorded run's events have points of the program.
    let own_points = Some(points).filter(|_| subject.ordered.is_none());
    let places = rule::Places { trace: looked_at, points: own_points, gates: &gates };
    let order = Schedule { order: subject.failing };
    let mut enforced = match options.runs {
        Some(0) => None,
        _ => {
            let of = (&*recorded.directory, solution);
            let times = (time, options.until);
            Some(Enforced::new(of, &recorded.execution, &order, times)?)
        }
    };
    // Orders that no run could be held to come behind those that runs have shown.
    let mut untried = Vec::new();
    let mut fail: Vec<repair::Repair> = Vec::new();
    for _ in 0..ROUNDS {
        let wanted = options.wanted.saturating_add(SPARE);
        let mut found = repair::repairs(&bug, told_of, &fail, wanted, limits)?;
        if fixes.other_run {
            refuse_impossible(&mut found);
        }
        let failed_before = fail.len();
        fixes.undecided = count(&found, |why| matches!(why, Refusal::Undecided(_)));
        fixes.refused = found.refused.len() as u64 - fixes.undecided;
        for repair in found.found {
            if fixes.repairs.len() >= options.wanted {
                break;
            }
            let mut shown = answer::Repair::of(&repair);
            // Instructions of one line are one place to whoever changes it.
            if fixes.repairs.iter().chain(&untried).any(|other| other.is_same_change(&shown)) {
                continue;
            }
            if repair.kind == repair::Kind::JoinFirst
                && repair.rule == Rule::None
                && repair.places.iter().any(|place| gates.joins_again(looked_at, place))
            {
                fixes.refused += 1;
                continue;
            }
            let rule = rule::text(&repair, &places);
            match (&mut enforced, &rule) {
                (Some(enforced), Ok(rule)) => match enforced.runs(rule, options.runs)? {
                    // To give a lock back first is no order: that one thread takes it before another does stands for that
                    // as long as neither comes there again.
                    Runs::Done(replays, noisy)
                        if has_failed(&replays, noisy.as_ref())
                            && repair.kind == Kind::ReleaseFirst =>
                    {
                        shown.checks.not_replayed = Some(NO_ORDER.to_owned());
                        untried.push(shown);
                        continue;
                    }
                    Runs::Done(replays, noisy) if has_failed(&replays, noisy.as_ref()) => {
                        let kind = &shown.kind;
                        tracing::info!(kind, ?replays, ?noisy, "the program fails with it");
                        fail.push(repair);
                        continue;
                    }
                    Runs::Done(replays, noisy) => {
                        let passed = noisy.as_ref().map_or(replays.passed, |noisy| {
                            replays.passed.saturating_add(noisy.passed)
                        });
                        shown.checks.replay = Some(replays);
                        shown.checks.noisy_replay = noisy;
                        if passed == 0 {
                            shown.checks.not_replayed = Some(OTHERWISE.to_owned());
                            shown.rule = Some(rule.clone());
                            untried.push(shown);
                            continue;
                        }
                    }
                    Runs::Impossible(why) if enforced.needs_runs() => {
                        shown.checks.not_replayed = Some(format!("{why}; {REORDERED}"));
                        untried.push(shown);
                        continue;
                    }
                    Runs::Impossible(why) => shown.checks.not_replayed = Some(why),
                    // Whether the program passes with it is not known: that it holds for the trace is not enough.
                    Runs::OutOfTime => {
                        fixes.undecided += 1;
                        continue;
                    }
                },
                (Some(enforced), Err(why)) if enforced.needs_runs() => {
                    shown.checks.not_replayed = Some(format!("{why}; {REORDERED}"));
                    untried.push(shown);
                    continue;
                }
                (Some(_), Err(why)) => {
                    shown.checks.not_replayed = Some((*why).to_owned());
                    let waits =
                        matches!(repair.kind, repair::Kind::JoinFirst | repair::Kind::WaitFor);
                    if waits || matches!(repair.rule, Rule::After { .. }) {
                        untried.push(shown);
                        continue;
                    }
                }
                (None, _) => {}
            }
            shown.rule = rule.ok();
            fixes.repairs.push(shown);
        }
        fixes.refused += fail.len() as u64;
        let none = fixes.repairs.is_empty() && untried.is_empty();
        if !none || fail.len() == failed_before || left().is_zero() {
            break;
        }
    }
    let room = options.wanted.saturating_sub(fixes.repairs.len());
    fixes.repairs.extend(untried.into_iter().take(room));
    fixes.others = enforced.map(Enforced::into_others).unwrap_or_default();
    fixes.out_of_time = left().is_zero();
    Ok(fixes)
}

/// Did the program fail all the same where the pair of events came the other way round, at another place, in a later round or in
/// another thread? Then the
/// order that is told of is not all that went wrong, and that a repair rules it out in the recorded run does not say that it helps.
fn fails_behind(solution: &Solution) -> bool {
    all_fail_behind(solution.alternates.iter().map(|other| other.replay_note.as_deref()))
}

fn all_fail_behind<'n>(notes: impl Iterator<Item = Option<&'n str>>) -> bool {
    let mut notes = notes.peekable();
    let fails = |note: &str| note.starts_with(FAILED_BEHIND) || note.contains(AGAIN_BEHIND);
    notes.peek().is_some() && notes.all(|note| note.is_some_and(fails))
}

/// Did a run fail that no other bug is known to have made fail?
fn has_failed(replays: &Replays, noisy: Option<&Replays>) -> bool {
    replays.has_failed() || noisy.is_some_and(Replays::has_failed)
}

/// What repairs are looked for.
struct Subject {
    /// The run that passes, where the failing one ended too early to show something.
    ordered: Option<Ordered>,
    events: Vec<EventId>,
    schedule: Vec<EventId>,
    pattern: Pattern,
    /// The recorded run's failing schedule.
    failing: Vec<EventId>,
}

impl Subject {
    /// The order of two events of a run that passes.
    fn of(ordered: Ordered, failing: Vec<EventId>) -> Self {
        let schedule = vec![ordered.then, ordered.first];
        let events = schedule.clone();
        Self { ordered: Some(ordered), events, schedule, pattern: Pattern::Order, failing }
    }
}

/// Why nothing can be shown about the events of the cause.
#[derive(Debug, Error)]
pub(crate) enum Unshown {
    /// There is no cause.
    #[error("no cause is known")]
    NoCause,
    /// The run ended before what came too late. With its failing schedule.
    #[error(
        "an event of the cause is none of the recorded run's, which ended before it: nothing can be \
         shown about it on this trace"
    )]
    EndedEarly(Vec<EventId>),
}

/// The events of the cause, the failing schedule, and the pattern.
pub(crate) type BugParts = (Vec<EventId>, Vec<EventId>, Pattern);

/// A run of the recorded program along other paths, which passes, with the order of the cause as what makes it fail: for a
/// failing run that ended before an event of its cause. `None` where none was found in that time.
///
/// # Errors
/// When the trace cannot be read, or the user interrupts.
pub(crate) fn ordered(
    recorded: &Recorded,
    schedule: &[EventId],
    time: Duration,
) -> Result<Option<Ordered>, FixError> {
    other_run::find(recorded, schedule, time, None)
}

/// What the answer says of the recorded run's events. The inner error says why nothing can be shown
/// about them.
///
/// # Errors
/// When the answer is another trace's.
pub(crate) fn bug(
    recorded: &Recorded,
    solution: &Solution,
) -> Result<Result<BugParts, Unshown>, FixError> {
    let stale = |what: &str| FixError::Stale(what.to_owned());
    let trace = &recorded.execution.trace;
    let cause = solution.cause.as_ref().filter(|cause| cause.pattern != STILL_RUNNING);
    let Some(cause) = cause else { return Ok(Err(Unshown::NoCause)) };
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
        return Ok(Err(Unshown::EndedEarly(schedule)));
    }
    Ok(Ok((events, schedule, pattern)))
}

/// As the program's code tells, and the recorded run.
impl Lines for Recorded {
    fn uses(&self, file: &str, first: u32, last: u32) -> Vec<LineUse> {
        let lines = ir::lines::Lines { file, first, last };
        let modules = self.recording.modules.iter().map(|module| &module.ir);
        let uses = modules.flat_map(|module| ir::lines::uses(module, lines));
        let known = uses.map(|ir::lines::Use { from, to, how }| {
            let how = match how {
                ir::lines::How::Value => How::Value,
                ir::lines::How::Made => How::Made,
                ir::lines::How::Decided => How::Decided,
            };
            LineUse { from, to, how }
        });
        let within = |line: u32| (first..=last).contains(&line);
        let own = self.execution.own_uses.iter();
        let own = own.filter(|own| own.file == file && within(own.from) && within(own.to));
        let own = own.map(|own| LineUse { from: own.from, to: own.to, how: How::Value });
        known.chain(own).collect()
    }

    fn acts(&self, file: &str, first: u32, last: u32) -> Vec<u32> {
        let lines = ir::lines::Lines { file, first, last };
        let modules = self.recording.modules.iter().map(|module| &module.ir);
        modules.flat_map(|module| ir::lines::acts(module, lines)).collect()
    }

    fn reads_again(&self, file: &str, first: u32, last: u32) -> Vec<(u32, String)> {
        let lines = ir::lines::Lines { file, first, last };
        let modules = self.recording.modules.iter().map(|module| &module.ir);
        let again = modules.flat_map(|module| ir::lines::read_again(module, lines));
        again.map(|again| (again.line, again.name)).collect()
    }

    fn calls(&self) -> Vec<LineCall> {
        let modules = self.recording.modules.iter().map(|module| &module.ir);
        let own = |file: &str| !file.is_empty() && !model::names::is_installed(file);
        let calls = ir::callers::line_calls(modules, &own).into_iter();
        calls
            .map(|call| LineCall { caller: call.caller, line: call.line, callee: call.callee })
            .collect()
    }
}

/// A run that passes is to be possible with the repair, too.
fn refuse_impossible(repairs: &mut repair::Repairs) {
    let possible =
        |repair: &repair::Repair| repair.checked.as_ref().is_some_and(|c| c.passing.is_some());
    let (found, refused): (Vec<_>, Vec<_>) =
        std::mem::take(&mut repairs.found).into_iter().partition(possible);
    repairs.found = found;
    repairs.refused.extend(refused.into_iter().map(|repair| (repair, Refusal::Vacuous)));
}

fn count(found: &repair::Repairs, fits: impl Fn(&Refusal) -> bool) -> u64 {
    found.refused.iter().filter(|(_, why)| fits(why)).count() as u64
}

/// `e12`; none for identifiers of another run's events.
pub(crate) fn event(text: &str) -> Option<EventId> {
    text.strip_prefix('e')?.parse().ok().map(EventId)
}

#[cfg(test)]
mod tests {
    use super::{AGAIN_BEHIND, FAILED_BEHIND, all_fail_behind};

    #[test]
    fn a_program_that_fails_in_the_other_order_has_more_to_be_seen() {
        let behind = format!("{FAILED_BEHIND}: assertion failed");
        let behind = Some(behind.as_str());
        let again =
            format!("behind the schedule t0.1 goes on to its end first; {AGAIN_BEHIND}: aborted");
        assert!(all_fail_behind([behind, behind, Some(again.as_str())].into_iter()));
        for passes in [&[][..], &[None], &[behind, None], &[Some("the run passed")]] {
            assert!(!all_fail_behind(passes.iter().copied()), "{passes:?}");
        }
    }
}
