//! Crashes that come of memory that was used after it was freed, or freed twice, long before.
//!
//! Who uses freed memory finds what the allocator, or the memory's next owner, has put there, and by when the program
//! crashes the place may have nothing to do with it any more. Along the recorded run's own schedule, and with a
//! heap that is watched (`record --detect=use-after-free`), the program fails at the first such access. That run is
//! recorded in the trace's directory, and is the one to explain.
//!
//! Where neither the recorded events nor that run lead to an answer, the program is run a few times more with a watched
//! heap and random pauses. What fails then is another run, and the answer says so.

use super::budget::Budget;
use super::confirm::{Confirmer, whole_manifest};
use super::followed::recorded;
use super::shorter;
use super::work::Work;
use super::{Loaded, PipelineError};
use crate::record::ending;
use crate::replay::{self, Claim};
use model::evaluate::evaluate;
use model::{Event, EventKind, EventTrace, FailureCondition, ReadRef, WriteSource};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use symex::{Execution, RecordedFailureKind};
use trace_format::{FailureKind, Manifest};

/// Where, in the directory of a trace, the trace of that run is.
const DIRECTORY: &str = "watched";
/// Where the trace of another run is, with random pauses.
const OTHER_DIRECTORY: &str = "watched-other";
/// Where it is until the program has followed a failing schedule of it: no answer is about it before that.
const PENDING_DIRECTORY: &str = "watched-other.partial";
/// No more runs than this are made in search of such a one, ...
const RUNS: u64 = 40;
/// ... and for no longer than that.
const TIME: Duration = Duration::from_secs(10);
/// A run of so many events is a long one.
const LONG: usize = 20_000;
/// So long a look may take at whether the recorded run's own order leads to the failure.
const LOOK: Duration = Duration::from_secs(2);

/// The trace of the same run with a watched heap, or of a shorter one, where [`solve`](super::solve) has made one, and
/// otherwise the trace itself: what an answer about the trace is about.
#[must_use]
pub fn explained_trace(directory: &Path) -> PathBuf {
    let watched = |directory: &Path| trace(directory).unwrap_or_else(|| directory.to_owned());
    match (trace(directory), shorter::kept(directory)) {
        (None, Some(shorter)) => watched(&shorter),
        _ => watched(directory),
    }
}

/// The trace of a run with a watched heap, where there is one.
pub(super) fn trace(directory: &Path) -> Option<PathBuf> {
    let mut places = [DIRECTORY, OTHER_DIRECTORY].map(|name| directory.join(name)).into_iter();
    places.find(|place| Manifest::read(place).is_ok_and(|manifest| names_misuse(&manifest)))
}

/// What to say of an answer that is about the trace of a run with a watched heap.
pub(super) fn note(directory: &Path, watched: &Path) -> Option<String> {
    let then = whole_manifest(directory).ok()?;
    let now = whole_manifest(watched).ok()?;
    if !watched.ends_with(DIRECTORY) {
        return Some(format!(
            "by no order of what was recorded was the recorded failure ({}) reproduced: the program, run again with random pauses \
             and every access to freed memory watched, fails so: {}; that is another run, which is explained here",
            ending(&then),
            ending(&now)
        ));
    }
    Some(format!(
        "the recorded run failed later ({}): the program, run again in the recorded order, as far as log and clock tell it, with every access \
         to freed memory watched, fails so: {}; that run is explained here",
        ending(&then),
        ending(&now)
    ))
}

/// Is what was freed looked at first? Where the heap was found damaged, or a thread waits for ever for a lock that nobody
/// has, nothing else can be to blame; and in a long run, to
/// look at the crash itself takes long, while in a short one that tells more, if what log and clock tell of the recorded
/// run leads to it: what the allocator put into freed memory is no thread's write.
///
/// # Errors
/// When the trace is none that can be executed.
pub(super) fn is_likely(
    loaded: &Loaded,
    execution: &Execution,
    work: &Work<'_>,
) -> Result<bool, PipelineError> {
    let Some(failure) = &loaded.recording.failure else { return Ok(false) };
    if !is_possible(loaded, execution, false) {
        return Ok(false);
    }
    let is_long = execution.trace.events.len() >= LONG;
    let used = execution.report.used_after_free.is_some();
    Ok(match failure.kind {
        _ if execution.report.awaits_lost || is_damage(failure.kind, &execution.trace) => true,
        // The allocator may have found what others did to it.
        RecordedFailureKind::DoubleFree { .. } => used,
        RecordedFailureKind::Signal { .. } => is_long || !is_led_to(&execution.trace, work)?,
        RecordedFailureKind::Abort if is_long => used,
        // It may take as long again.
        RecordedFailureKind::TimedOut => false,
        _ => used && !is_long && !is_led_to(&execution.trace, work)?,
    })
}

/// Did the allocator find damage at some time later, as it does when a thread ends?
fn is_damage(kind: RecordedFailureKind, trace: &EventTrace) -> bool {
    match kind {
        RecordedFailureKind::HeapCorruption => true,
        RecordedFailureKind::DoubleFree { .. } => says_nothing(trace),
        _ => false,
    }
}

/// Does the failure follow from nothing that a thread read?
fn says_nothing(trace: &EventTrace) -> bool {
    let condition = trace.failure.as_ref().map(|failure| &failure.condition);
    matches!(condition, Some(FailureCondition::Value(expr)) if trace.reads_of(*expr).is_empty())
}

/// Does what log and clock tell of the recorded run lead to the failure, by what threads or the beginning wrote and not by
/// what nobody knows of? Where log and clock tell nothing, that is not known.
fn is_led_to(trace: &EventTrace, work: &Work<'_>) -> Result<bool, PipelineError> {
    let condition = trace.failure.as_ref().map(|failure| &failure.condition);
    let reads = match condition {
        Some(FailureCondition::Value(expr)) => trace.reads_of(*expr),
        _ => BTreeSet::new(),
    };
    if says_nothing(trace) {
        return Ok(false);
    }
    if trace.intervals.is_empty() || !work.has_coarse_sessions() {
        return Ok(true);
    }
    let budget = Budget::new(work.deadline, work.options.memory_mb).part(LOOK);
    let Some(schedule) = work.follow(trace, true, &budget)? else {
        // With the time up, that is not known either.
        return Ok(!budget.is_left());
    };
    let Ok(evaluation) = evaluate(trace, &schedule, &recorded(trace)) else {
        return Ok(false);
    };
    let is_unknown = |read: &ReadRef| {
        let part = trace.event(read.event).kind.reads().get(read.part as usize);
        let init = part.map(|part| trace.cells[part.cell.index()].init);
        evaluation.reads_from.get(read) == Some(&WriteSource::Init)
            && init.is_some_and(|init| trace.exprs.as_const(init).is_none())
    };
    Ok(!reads.iter().any(is_unknown))
}

/// May it have come of what was freed? In a run that crashed, or where `no_order` that the program follows leads to what
/// threads read.
pub(super) fn is_possible(loaded: &Loaded, execution: &Execution, no_order: bool) -> bool {
    use RecordedFailureKind::{Abort, DoubleFree, Exception, HeapCorruption, Signal};
    if execution.report.awaits_lost {
        return !loaded.watches_heap;
    }
    if execution.report.ended_by.is_some() {
        return false;
    }
    let kind = loaded.recording.failure.as_ref().map(|failure| failure.kind);
    let crashed = matches!(
        kind,
        Some(Abort | DoubleFree { .. } | Exception | HeapCorruption | Signal { .. })
    );
    let used = execution.report.used_after_free.is_some();
    // Of what is freed, the trace has what threads were seen to share alone.
    let shared = (used || no_order) && frees(&execution.trace);
    !loaded.watches_heap && (crashed || shared)
}

fn frees(trace: &EventTrace) -> bool {
    trace.events.iter().any(|event: &Event| matches!(event.kind, EventKind::Free { .. }))
}

fn names_misuse(manifest: &Manifest) -> bool {
    let kind = manifest.failure.as_ref().map(|failure| failure.kind);
    matches!(kind, Some(FailureKind::UseAfterFree | FailureKind::DoubleFree))
}

/// Runs the program again along the recorded run's schedule with a watched heap. Gives the trace of that run, when it
/// fails where freed memory is used. What the failing thread accessed last may have come before a free, or behind it: that
/// is tried only where nothing else can be to blame, since `no_order` leads to the failure or the heap was found damaged.
///
/// # Errors
/// When the trace cannot be read any more, or the user interrupts.
pub(super) fn run_again(
    directory: &Path,
    loaded: &Loaded,
    execution: &Execution,
    work: &Work<'_>,
    no_order: bool,
) -> Result<Option<PathBuf>, PipelineError> {
    let Some(options) = &work.options.replay else { return Ok(None) };
    if execution.report.awaited_child.is_some() {
        return Ok(None);
    }
    let confirmer = Confirmer::new(directory, execution, options, work.deadline)?;
    let budget = Budget::new(work.deadline, work.options.memory_mb);
    let place = directory.join(DIRECTORY);
    let failure = loaded.recording.failure.as_ref();
    let is_sure = no_order
        || execution.report.awaits_lost
        || failure.is_some_and(|failure| is_damage(failure.kind, &execution.trace));
    let mut before = None;
    for last in [false, true] {
        if last && !is_sure {
            break;
        }
        let Some(script) = recorded_schedule(&confirmer, loaded, execution, work, (last, &budget))?
        else {
            break;
        };
        if before.as_ref() == Some(&script) {
            break;
        }
        // Of a run of solve that was ended.
        forget(&place)?;
        let found = confirmer.record_watched(&script, &place)?;
        tracing::info!(last, failure = ?found.as_ref().map(ending), "ran again with a watched heap");
        if found.as_ref().is_some_and(names_misuse) {
            return Ok(Some(place));
        }
        before = Some(script);
    }
    forget(&place)?;
    Ok(None)
}

/// Runs of the program with a watched heap and random pauses.
pub(super) struct Runs {
    /// None where the program cannot be run, or where nothing would come of it.
    confirmer: Option<Confirmer>,
    place: PathBuf,
    budget: Budget,
    seeds: std::ops::RangeInclusive<u64>,
}

impl Runs {
    /// # Errors
    /// When the trace cannot be read any more.
    pub(super) fn new(
        directory: &Path,
        execution: &Execution,
        work: &Work<'_>,
    ) -> Result<Self, PipelineError> {
        let report = &execution.report;
        // A run that hung is not told by another one that failed, unless what it hung at can only be damage.
        let fits = report.awaited_child.is_none() && (!report.timed_out || report.awaits_lost);
        let options = work.options.replay.as_ref().filter(|_| fits);
        let confirmer = options
            .map(|options| Confirmer::new(directory, execution, options, work.deadline))
            .transpose()?;
        let budget = Budget::new(work.deadline, work.options.memory_mb).part(TIME.min(work.left()));
        Ok(Self { confirmer, place: directory.join(PENDING_DIRECTORY), budget, seeds: 1..=RUNS })
    }

    /// Makes runs until one fails where freed memory is used, and gives its trace; none when there were enough.
    ///
    /// # Errors
    /// When the trace of the run before cannot be removed, or the user interrupts.
    pub(super) fn next_misuse(&mut self) -> Result<Option<PathBuf>, PipelineError> {
        let Some(confirmer) = &self.confirmer else { return Ok(None) };
        while self.budget.is_left()
            && let Some(seed) = self.seeds.next()
        {
            forget(&self.place)?;
            let Some(found) = confirmer.record_freely(seed, (true, Duration::MAX), &self.place)?
            else {
                break;
            };
            tracing::info!(seed, failure = ending(&found), "ran with a watched heap");
            if names_misuse(&found) {
                return Ok(Some(self.place.clone()));
            }
        }
        Ok(None)
    }

    /// Keeps the trace of the last run as what the answer is about, and says where it is.
    ///
    /// # Errors
    /// When it cannot be put there.
    pub(super) fn keep(&self) -> Result<PathBuf, PipelineError> {
        let kept = self.place.with_file_name(OTHER_DIRECTORY);
        forget(&kept)?;
        fs_err::rename(&self.place, &kept).map_err(PipelineError::Write)?;
        Ok(kept)
    }

    /// Removes the trace of the last run.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(super) fn forget(&self) -> Result<(), PipelineError> {
        forget(&self.place)
    }
}

/// Removes the trace of a run with a watched heap, if there is one.
///
/// # Errors
/// When it cannot be removed.
pub(super) fn forget(watched: &Path) -> Result<(), PipelineError> {
    match fs_err::remove_dir_all(watched) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(PipelineError::Write(error))
        }
        _ => Ok(()),
    }
}

/// The recorded run's own schedule as text, as far as its scheduler, or its log and clock, tell; where those leave it open,
/// with the failing thread's last accesses `last`.
fn recorded_schedule(
    confirmer: &Confirmer,
    loaded: &Loaded,
    execution: &Execution,
    work: &Work<'_>,
    (last, budget): (bool, &Budget),
) -> Result<Option<String>, PipelineError> {
    if loaded.recording.scheduled
        && let Some(script) = confirmer.observed()
    {
        return Ok(Some(script));
    }
    let trace = &execution.trace;
    let Some(schedule) = work.follow_loosely(trace, last, budget)? else { return Ok(None) };
    // Behind a beginning, the threads go on as they will.
    let is_whole = schedule.order.len() == trace.events.len();
    let claim = if is_whole { Claim::Fails } else { Claim::Passes };
    let Execution { points, inputs, .. } = execution;
    let script = replay::script(claim, trace, points, inputs, &schedule);
    Ok(script.inspect_err(|why| tracing::info!(why, "the recorded run has no schedule")).ok())
}
