//! The stages in a row: trace directory → recording → event trace → constraints → explanation →
//! answer. The only module that knows all of them.

mod budget;
mod children;
mod confirm;
mod contended;
mod error;
mod followed;
mod frameworks;
mod handed_over;
mod late_writes;
mod load;
mod not_walked;
mod noticed;
mod replayed;
mod semaphores;
mod shorter;
mod still_running;
mod watched;
mod window;
mod work;

pub use budget::Budget;
pub use confirm::{Finding, ReplayOptions, whole_manifest};
pub use error::PipelineError;
pub use late_writes::fewest;
pub use load::{Loaded, load};
pub use watched::explained_trace;

use crate::answer::{self, Timing};
use crate::record::ending;
use encoders::models::tso::Late;
use late_writes::Sought;
use render::Solution;
use replayed::Replayed;
use shorter::Shorter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use symex::{Execution, GapKind, Recording, ThreadReport};
use work::Work;

/// So many other runs that fail where freed memory is used are explained until the program follows one's schedule.
const OTHER_RUNS: usize = 3;

/// Which solver answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Our own solver for orders of events; Z3 where values that no read fixes matter.
    Ordering,
    /// The linked Z3.
    Z3,
    /// The linked Z3 over the paper's encoding.
    Paper,
    /// This command, which reads SMT-LIB 2 from standard input.
    SmtLib(String),
}

/// What to solve for, and within which limits.
#[derive(Clone, Debug)]
pub struct SolveOptions {
    /// How many alternates to look for.
    pub alternates: usize,
    /// Which solver.
    pub backend: Backend,
    /// Wall-clock time for everything.
    pub time: Duration,
    /// The memory of the process, in megabytes.
    pub memory_mb: Option<u32>,
    /// Write the constraint system here.
    pub dump_smt: Option<PathBuf>,
    /// Force the schedules on the program; none to leave it at the solver's claim.
    pub replay: Option<ReplayOptions>,
}

impl SolveOptions {
    /// For the cause of a run that another command asks about: one alternate, by the ordering solver.
    #[must_use]
    pub fn for_cause(time: Duration, replay: Option<ReplayOptions>) -> Self {
        Self {
            alternates: 1,
            backend: Backend::Ordering,
            time,
            memory_mb: None,
            dump_smt: None,
            replay,
        }
    }

    /// Does the solver heed what the clock tells?
    fn seeks_order(&self) -> bool {
        matches!(self.backend, Backend::Ordering | Backend::Z3)
    }
}

/// What `solve` gives back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer.
    pub solution: Solution,
    /// Oddities of the trace that the user should know.
    pub warnings: Vec<String>,
    /// A limit ended the work before it was done.
    pub cut_short: bool,
    /// A stage after the failing schedule broke; the answer holds what was found before.
    pub broke: bool,
    /// The failing schedule as text, and what replay says of it.
    pub failing: Finding,
    /// The same of the alternates, in the solution's order.
    pub alternates: Vec<Finding>,
    /// The trace that the answer is about, see [`explained_trace`].
    pub trace: PathBuf,
    /// The recorded run was walked along its log. Where it was not, the answer says nothing that an earlier one
    /// may not have said.
    pub walked: bool,
}

/// Executes a recording and verifies the event trace.
///
/// # Errors
/// When the recording cannot be executed at all, its streams cannot be read, or the executor broke an
/// invariant of event traces.
pub fn execute(recording: &Recording) -> Result<Execution, PipelineError> {
    executed(recording, &symex::Options::default(), &|| true)
}

/// The same, as long as there is something left of the budget.
///
/// # Errors
/// As [`execute`], and [`symex::SymexError::BudgetSpent`] when the budget was spent first.
pub fn execute_within(recording: &Recording, budget: &Budget) -> Result<Execution, PipelineError> {
    executed(recording, &symex::Options::default(), budget)
}

/// The same with these options, as long as `is_left` says so.
///
/// # Errors
/// As [`execute_within`].
pub fn execute_while(
    recording: &Recording,
    options: &symex::Options,
    is_left: &dyn Fn() -> bool,
) -> Result<Execution, PipelineError> {
    executed(recording, options, &is_left)
}

/// Executes the recording in this directory, and says for people what there is to do where the budget was spent first.
///
/// # Errors
/// As [`execute`], and [`PipelineError::NotWalked`].
pub fn execute_trace(
    directory: &Path,
    recording: &Recording,
    (options, budget): (&symex::Options, &Budget),
) -> Result<Execution, PipelineError> {
    executed(recording, options, budget).map_err(|error| match error {
        PipelineError::Symex(symex::SymexError::BudgetSpent) => PipelineError::NotWalked {
            path: directory.to_owned(),
            failure: whole_manifest(directory)
                .map_or_else(|_| "it failed".to_owned(), |of| ending(&of)),
            memory: budget.reason() == solver::UnknownReason::Memory,
        },
        error => error,
    })
}

fn executed(
    recording: &Recording,
    options: &symex::Options,
    spending: &dyn symex::Spending,
) -> Result<Execution, PipelineError> {
    let _span = tracing::info_span!("symex", threads = recording.threads.len()).entered();
    let mut execution = symex::execute_within(recording, options, spending)?;
    encoders::fit_passed_on(&mut execution.trace);
    model::verify::verify(&execution.trace).map_err(PipelineError::Invalid)?;
    tracing::info!(
        events = execution.trace.events.len(),
        cells = execution.trace.cells.len(),
        gaps = execution.report.gap_count(),
        rounds_left_out = execution.report.rounds_left_out(),
        "executed"
    );
    Ok(execution)
}

/// Solves a trace directory.
///
/// # Errors
/// When the trace cannot be read, records no failure, or a stage breaks. "No schedule" and "out of
/// time" are answers.
pub fn solve(directory: &Path, options: &SolveOptions) -> Result<Answer, PipelineError> {
    if let Some(watched) = watched::trace(directory) {
        return solve_watched(directory, &watched, options);
    }
    if let Some(shorter) = shorter::kept(directory) {
        let mut answer = solve(&shorter, options)?;
        answer.solution.replay_notes.insert(0, shorter::note(directory, &shorter)?);
        return Ok(answer);
    }
    solve_this(directory, options, true)
}

/// Solves the trace of this run. `may_shorten`: where it is too long, a shorter one with the same failure is explained.
fn solve_this(
    directory: &Path,
    options: &SolveOptions,
    may_shorten: bool,
) -> Result<Answer, PipelineError> {
    handed_over::solve(options, |options, walk| {
        solve_walked(directory, (options, walk), may_shorten)
    })
}

/// The same by one kind of walk; says, too, how many cells that left out which threads only hand over.
fn solve_walked(
    directory: &Path,
    (options, walk): (&SolveOptions, &symex::Options),
    may_shorten: bool,
) -> Result<(Answer, usize), PipelineError> {
    let start = Instant::now();
    let deadline = start.checked_add(options.time);
    let loaded = load(directory)?;
    let budget = Budget::of_walk(deadline, options.memory_mb);
    let shorter = match may_shorten {
        true => Shorter::new(directory, &loaded, options, deadline)?,
        false => None,
    };
    let walked = match &shorter {
        Some(shorter) => {
            let beside = shorter.beside(&budget);
            let walked = executed(&loaded.recording, walk, &beside);
            if let Some(answer) = beside.into_found()? {
                return Ok((answer, 0));
            }
            walked
        }
        None => executed(&loaded.recording, walk, &budget),
    };
    let mut execution = match walked {
        Ok(execution) => execution,
        Err(PipelineError::Symex(symex::SymexError::BudgetSpent)) => {
            if let Some(spare) = shorter.as_ref().map(Shorter::spare).transpose()?.flatten() {
                return Ok((spare, 0));
            }
            return Ok((not_walked::answer(directory, &loaded, &budget, start.elapsed()), 0));
        }
        Err(error) => return Err(error),
    };
    if execution.report.ended_by.is_none() {
        frameworks::describe(&loaded.output, &mut execution.trace);
    }
    let symex = start.elapsed();
    if execution.trace.failure.is_none() {
        return Err(unsolvable(directory, &loaded.recording, &execution));
    }
    let handed_over = execution.report.handed_over;
    // The whole treatment comes behind that.
    let deadline = match handed_over {
        0 => still_running::deadline(&execution, deadline, options.time),
        _ => deadline.map(handed_over::until),
    };
    let explained =
        |deadline| explain_walked(directory, &loaded, &execution, (options, deadline), symex);
    let long =
        shorter.as_ref().and_then(|shorter| Some((shorter, shorter.first_until(&execution)?)));
    let Some((shorter, first)) = long.filter(|_| handed_over == 0) else {
        return Ok((explained(deadline)?, handed_over));
    };
    let begun = Instant::now();
    let answer = explained(Some(first))?;
    let unknown = answer.solution.verdict == render::solution::Verdict::Unknown;
    if !(unknown && answer.cut_short || is_diverged(answer.failing.replay)) {
        return Ok((answer, 0));
    }
    if let Some(shorter) = shorter.answer()? {
        return Ok((shorter, 0));
    }
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    // What was not cut short would come out again.
    let goes_on = answer.cut_short && left.is_none_or(|left| left > begun.elapsed());
    let answer = match goes_on {
        true => explained(deadline)?,
        false => answer,
    };
    match answer.solution.verdict == render::solution::Verdict::Unknown {
        true => Ok((shorter.spare()?.unwrap_or(answer), 0)),
        false => Ok((answer, 0)),
    }
}

/// Explains the failure of a run that was walked.
fn explain_walked(
    directory: &Path,
    loaded: &Loaded,
    execution: &Execution,
    (options, deadline): (&SolveOptions, Option<Instant>),
    symex: Duration,
) -> Result<Answer, PipelineError> {
    let timing = Timing { symex, ..Timing::default() };
    let clock = explain::Clock::default();
    let mut work = Work {
        options,
        deadline,
        timing,
        pinned: false,
        rejected: Vec::new(),
        as_found: false,
        clock,
        few_places: None,
        end: None,
        by_update: None,
        followed: None,
        may_be_freed: false,
        across_first: false,
        only_end: false,
    };
    let likely = watched::is_likely(loaded, execution, &work)?;
    if likely && let Some(answer) = by_freed_memory(directory, loaded, execution, &work, false)? {
        return Ok(answer);
    }
    work.may_be_freed = watched::is_possible(loaded, execution, true);
    let mut replayed = with_late_writes(directory, execution, &mut work)?;
    let diverged = is_diverged(replayed.0.failing.replay);
    let at_once = std::mem::take(&mut work.may_be_freed) && diverged;
    if at_once {
        // The recorded order was tried before where that was likely.
        let answer = match likely {
            true => by_other_run(directory, execution, &work)?,
            false => by_freed_memory(directory, loaded, execution, &work, true)?,
        };
        if let Some(answer) = answer {
            return Ok(answer);
        }
        replayed = with_late_writes(directory, execution, &mut work)?;
    }
    let (replayed, late, sought_late) = replayed;
    let Replayed { mut explained, failing, notes, mut alternates, across } = replayed;
    let diverged = is_diverged(failing.replay);
    let settled = contended::is_complete(&explained.explanation) && !diverged;
    let no_order = matches!(explained.explanation.verdict, explain::Verdict::NoSchedule);
    // Where something else might have been to blame, the first look was not to the end.
    let is_open = !(likely || at_once) || no_order || (likely && diverged);
    if !settled && watched::is_possible(loaded, execution, no_order || diverged) {
        let no_order = no_order || diverged;
        let again = match is_open {
            true => by_freed_memory(directory, loaded, execution, &work, no_order)?,
            false => None,
        };
        let other = match again {
            None if no_order && !(likely && at_once) => by_other_run(directory, execution, &work)?,
            again => again,
        };
        if let Some(answer) = other {
            return Ok(answer);
        }
    }
    // A spare alternate is none that was asked for.
    let enough = explained.explanation.alternates.found.len() >= options.alternates;
    // What other paths tell is the answer where they were looked at first.
    let by_other_paths = work.only_end && across.alternate.is_some();
    explained.explanation.cut.retain(|cut| {
        let limit = matches!(cut.reason, explain::CutReason::Limit(_));
        let alternates = cut.phase == explain::Phase::Alternates;
        let answered = (enough && options.alternates > 0 && alternates) || by_other_paths;
        !(limit && answered)
    });
    let ended = |limit: bool| {
        let mut cuts = explained.explanation.cut.iter();
        cuts.any(|cut| matches!(cut.reason, explain::CutReason::Limit(_)) == limit)
    };
    let (cut_short, broke) = (ended(true) || failing.out_of_time, ended(false));
    let mut warnings = loaded.warnings.clone();
    warnings.extend(match &execution.report.ended_by {
        Some(ended) => Some(noticed::note(ended)),
        None => loaded.recording.failure.as_ref().and_then(noticed::of_unknown),
    });
    if work.pinned {
        warnings.push(
            "some values come neither from the program's own writes nor from the log (unknown \
             initial values, results that could not be modelled); cause and alternates take them \
             to be those of the failing schedule"
                .to_owned(),
        );
    }
    let found = matches!(explained.explanation.verdict, explain::Verdict::FailingSchedule);
    warnings.extend(work.few_places.filter(|_| found).map(|few| few.to_string()));
    warnings.extend(work.end.filter(|_| found).map(|end| end.to_string()));
    if by_other_paths && work.end.is_none() {
        warnings.push(
            "this is a long run, whose end does not explain it: not all schedules along the recorded paths were \
             looked at, since a run along other paths was found that passes"
                .to_owned(),
        );
    }
    warnings.extend(work.by_update.filter(|_| found).map(|by| by.to_string()));
    let proposed = explained.explanation.root_cause.as_ref().is_some_and(|cause| !cause.shown);
    if proposed && work.by_update.is_none() {
        warnings.push(
            "the orderings shown are those that the nearest schedule that passes gives up; that they always lead \
             to the failure was not shown in the time that there was"
                .to_owned(),
        );
    }
    if found && work.clock == explain::Clock::Contradicted {
        warnings.push(
            "no failing schedule agrees with the times and the values that the recorded run logged of its \
             synchronisation; the schedule was found without them"
                .to_owned(),
        );
    }
    if matches!(explained.explanation.verdict, explain::Verdict::Unknown(_))
        && options.seeks_order()
    {
        warnings.push(
            "where threads meet often and without calls, their order is hard to find; a run recorded \
             with `symbiosis record --readings=1` tells more of it"
                .to_owned(),
        );
    }
    if execution.report.not_looked_again && execution.report.handed_over == 0 {
        warnings.push(
            "the walk along the recorded run took so long that it was not looked whether memory that was freed, or a \
             local variable that had ended, is to blame; more --timeout allows it"
                .to_owned(),
        );
    }
    warnings.extend(handed_over::note(execution.report.handed_over));
    if !loaded.watches_heap {
        warnings.extend(used_after_free(execution));
    }
    warnings.extend(stopped(execution));
    warnings.extend(not_held(execution));
    warnings.extend(semaphores::posted_too_often(&execution.trace));
    let mut solution = answer::solution(&answer::Parts {
        trace: &explained.trace,
        size: explained.size,
        explanation: &explained.explanation,
        gaps: execution.report.gap_count(),
        rounds_left_out: execution.report.rounds_left_out(),
        timing: work.timing,
        sought_late,
    });
    solution.replay = failing.replay;
    solution.replay_notes = notes;
    for (alternate, finding) in solution.alternates.iter_mut().zip(&alternates) {
        alternate.replay = finding.replay;
        alternate.replay_note = finding.note.clone();
    }
    solution.stats.alternates_tried += across.attempts as u64;
    solution.stats.not_compared = across.not_compared as u64;
    if !late.is_empty() {
        answer::add_late_writes(&mut solution, &explained.trace, &explained.explanation, &late);
    } else if let Some((found, failing)) =
        across.alternate.zip(explained.explanation.failing.as_ref())
    {
        answer::add_across(&mut solution, (&explained.trace, &failing.evaluation), &found);
        warnings.extend(found.far());
        // What leads to another failure only decides about that one: the program may have several bugs.
        let fails = |alternate: &Finding| alternate.fails || alternate.fails_otherwise;
        let in_vain = alternates.iter().any(fails);
        let passing = Some((&found, in_vain));
        answer::add_cause(&mut solution, &explained.trace, &explained.explanation, passing);
        let (replay, note, script) = (found.replay, found.note, Some(found.script));
        alternates = vec![Finding { replay, note, script, ..Finding::default() }];
    } else {
        answer::add_cause(&mut solution, &explained.trace, &explained.explanation, None);
        // Where it passed on paths that could not be compared, an order decides.
        let only_failed = across.attempts > 0 && across.not_compared == 0;
        let other_orders = alternates.iter().all(|alternate| alternate.fails);
        answer::tried_in_vain(&mut solution, only_failed && other_orders);
        let known =
            across.not_compared > 0 && solution.replay != render::solution::Replay::Diverged;
        if let Some(cause) = solution.cause.as_mut().filter(|_| known) {
            answer::passed_elsewhere(cause, across.not_compared);
        }
    }
    let still_running = !execution.report.still_running.is_empty();
    let cut_short = cut_short || (still_running && solution.alternates.is_empty());
    if still_running && solution.alternates.is_empty() {
        solution.cause = Some(still_running::cause(&execution.report.still_running, &solution));
        solution.root_cause = None;
    }
    if let Some(cause) = &mut solution.cause {
        answer::came_from_outside(cause, &execution.gaps, loaded.unrecorded_threads);
    }
    if let (Some(cause), Some(awaited)) = (&mut solution.cause, &execution.report.awaited_child) {
        cause.sentence = children::awaited(directory, awaited);
    }
    answer::add_sources(&mut solution, &loaded.recording);
    let trace = directory.to_owned();
    Ok(Answer { solution, warnings, cut_short, broke, failing, alternates, trace, walked: true })
}

/// May late writes be to blame? Not where something else may be that is not modelled.
fn seeks_late(execution: &Execution, options: &SolveOptions) -> bool {
    let report = &execution.report;
    options.seeks_order() && report.gap_count() == 0 && report.used_after_free.is_none()
}

/// Explains the failure, by writes that are seen late where nothing else leads to it. Says, too, whether there are none
/// by which it could be explained.
fn with_late_writes<'t>(
    directory: &Path,
    execution: &'t Execution,
    work: &mut Work<'_>,
) -> Result<(Replayed<'t>, Vec<Late>, bool), PipelineError> {
    let seeks_late = seeks_late(execution, work.options);
    let deadline = work.deadline;
    let soon = match seeks_late {
        true => late_writes::look_for_others_until(&execution.trace, work)?,
        false => None,
    };
    work.deadline = soon.or(deadline);
    let mut replayed = replayed::explain(directory, execution, work)?;
    work.deadline = deadline;
    let note = match replayed.explained.explanation.verdict {
        explain::Verdict::NoSchedule if replayed.explained.explanation.cut.is_empty() => {
            late_writes::NOTE
        }
        explain::Verdict::Unknown(_) if soon.is_some() => late_writes::LIKELY,
        _ => return Ok((replayed, Vec::new(), false)),
    };
    let sought = match seeks_late {
        true => late_writes::explain(&execution.trace, work)?,
        false => Sought::Unknown,
    };
    if let Sought::Found(found) = sought {
        replayed.explained = found.explained;
        let finding = Finding { note: Some(note.to_owned()), ..Finding::default() };
        let alternates =
            replayed::keep(&mut replayed.explained, Vec::new(), work.options.alternates);
        replayed.alternates = vec![finding.clone(); alternates.len()];
        replayed.failing = finding;
        replayed.notes = vec![note.to_owned()];
        return Ok((replayed, found.late, false));
    }
    if soon.is_some() && note == late_writes::LIKELY {
        // It was not looked at for as long as it may take.
        replayed = replayed::explain(directory, execution, work)?;
    }
    Ok((replayed, Vec::new(), matches!(sought, Sought::None)))
}

/// The answer about the same run with a watched heap, where there is a failing schedule of one.
fn by_freed_memory(
    directory: &Path,
    loaded: &Loaded,
    execution: &Execution,
    work: &Work<'_>,
    no_order: bool,
) -> Result<Option<Answer>, PipelineError> {
    let Some(watched) = watched::run_again(directory, loaded, execution, work, no_order)? else {
        return Ok(None);
    };
    let answer = explain_watched(directory, &watched, work)?;
    if !answer.as_ref().is_some_and(|answer| is_diverged(answer.failing.replay)) {
        return Ok(answer);
    }
    // What the program does not follow is no answer to be sure of.
    let other = by_other_run(directory, execution, work)?;
    if other.is_some() {
        watched::forget(&watched)?;
    }
    Ok(other.or(answer))
}

fn is_diverged(replay: render::solution::Replay) -> bool {
    replay == render::solution::Replay::Diverged
}

/// The answer about another run with a watched heap, where there is one with a failing schedule that the program follows.
fn by_other_run(
    directory: &Path,
    execution: &Execution,
    work: &Work<'_>,
) -> Result<Option<Answer>, PipelineError> {
    let mut runs = watched::Runs::new(directory, execution, work)?;
    for _ in 0..OTHER_RUNS {
        let Some(watched) = runs.next_misuse()? else { break };
        let answer = explain_watched(directory, &watched, work)?;
        let confirmed = render::solution::Replay::Confirmed;
        if let Some(answer) = answer.filter(|answer| answer.failing.replay == confirmed) {
            return Ok(Some(Answer { trace: runs.keep()?, ..answer }));
        }
    }
    runs.forget()?;
    Ok(None)
}

fn explain_watched(
    directory: &Path,
    watched: &Path,
    work: &Work<'_>,
) -> Result<Option<Answer>, PipelineError> {
    let options = SolveOptions { time: work.left(), ..work.options.clone() };
    match solve_watched(directory, watched, &options) {
        Ok(answer) if answer.solution.verdict == render::solution::Verdict::FailingSchedule => {
            return Ok(Some(answer));
        }
        Ok(answer) => {
            tracing::info!(reason = ?answer.solution.reason, "no use of freed memory is explained")
        }
        Err(error @ PipelineError::Replay(_)) => return Err(error),
        Err(error) => tracing::info!(%error, "no use of freed memory is explained"),
    }
    watched::forget(watched)?;
    Ok(None)
}

/// Solves the trace of the same run with a watched heap.
fn solve_watched(
    directory: &Path,
    watched: &Path,
    options: &SolveOptions,
) -> Result<Answer, PipelineError> {
    let mut answer = solve_this(watched, options, false)?;
    if let Some(note) = watched::note(directory, watched) {
        answer.solution.replay_notes.insert(0, note);
    }
    Ok(answer)
}

/// What was freed belongs to the allocator, and no order of events tells what is there.
fn used_after_free(execution: &Execution) -> Option<String> {
    let (thread, site) = execution.report.used_after_free.as_ref()?;
    let file = site.file.rsplit('/').next().unwrap_or_default();
    Some(format!(
        "{thread} used memory at {file}:{} that had been freed before, and what it found there \
         follows from no order of events: record with --detect=use-after-free, and the run fails at \
         such an access",
        site.line
    ))
}

/// Of a thread whose walk stopped nothing is known behind that.
fn stopped(execution: &Execution) -> Option<String> {
    let mut gaps = execution.gaps.iter().filter(|gap| gap.what == GapKind::Stopped);
    let gap = gaps.next()?;
    let others = match gaps.count() {
        0 => String::new(),
        1 => " (and another thread likewise)".to_owned(),
        others => format!(" (and {others} other threads likewise)"),
    };
    let file = gap.site.file.rsplit('/').next().unwrap_or_default();
    Some(format!(
        "{} was followed to {file}:{} only: {}{others}; the answer takes it to have done nothing further",
        gap.thread, gap.site.line, gap.detail
    ))
}

/// Who gives a lock back that another thread has lets a third one in.
fn not_held(execution: &Execution) -> Option<String> {
    let gap = execution.gaps.iter().find(|gap| gap.what == GapKind::NotHeld)?;
    let file = gap.site.file.rsplit('/').next().unwrap_or_default();
    Some(format!(
        "{} gives back a lock at {file}:{} that it does not hold: an error of its own, and that others \
         may then be in its sections together is not modelled",
        gap.thread, gap.site.line
    ))
}

/// Why an execution has no failure.
fn unsolvable(directory: &Path, recording: &Recording, execution: &Execution) -> PipelineError {
    let path = directory.to_owned();
    let report = &execution.report;
    if report.timed_out {
        let running = report.still_running.iter().map(still_running::in_words);
        let what: Vec<String> = running.chain(report.threads.iter().filter_map(waiting)).collect();
        return PipelineError::StillRunning { path, what };
    }
    if recording.failure.is_none() {
        return PipelineError::NoFailure { path };
    }
    let why =
        "it was not found on the recorded paths; `symbiosis check` says what could not be modelled";
    PipelineError::Unsolvable { path, why: why.to_owned() }
}

fn waiting(thread: &ThreadReport) -> Option<String> {
    let call = thread.blocked.as_ref()?;
    let place =
        call.stack.first().map(|site| format!(" at line {}", site.line)).unwrap_or_default();
    Some(format!("{} waits in {} of {}{place}", thread.name, call.operation, call.object))
}
