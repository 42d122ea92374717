//! A shorter run with the same failure, where the recorded one is too long for the time that there is.
//!
//! What a walk along a run and the search for its schedule take grows with the run, and a bug that a program meets by
//! chance it mostly meets early, too. Where the recorded run is not walked after a part of the time, or has no failing
//! schedule after half of what is left then, the program is run again with random pauses. A run that fails in the same way
//! after much less is recorded in the trace's directory and explained; the answer says that it is another one. It is an
//! answer only when the program follows its failing schedule; otherwise the recorded run is gone on with. Where nothing comes of
//! that, a failing schedule that there was no time to follow is better than none.

use super::budget::Budget;
use super::confirm::{Confirmer, whole_manifest};
use super::{Answer, Loaded, PipelineError, SolveOptions, solve_this};
use crate::record::ending;
use render::solution::{Replay, Verdict};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use symex::{Execution, RecordedFailureKind, Spending};
use trace_format::{Failure, FailureKind, Manifest};

/// Where, in the directory of a trace, the trace of the shorter run is.
const DIRECTORY: &str = "shorter";
/// Where it is until its failing schedule was followed: no answer is about it before that.
const PENDING_DIRECTORY: &str = "shorter.partial";
/// Where one is whose failing schedule was not followed in the time.
const SPARE_DIRECTORY: &str = "shorter-spare.partial";
/// Where a run is that is looked at.
const NEXT_DIRECTORY: &str = "shorter-next.partial";
/// The walk along the recorded run has this part of the time to itself, ...
const PART: u32 = 6;
/// ... or so long.
const ALONE: Duration = Duration::from_secs(30);
/// No more runs than this are made at a time, ...
const RUNS: usize = 60;
/// ... and for no longer than that.
const SEARCH: Duration = Duration::from_secs(12);
/// Where one was found, others are made for no longer than that.
const MOMENT: Duration = Duration::from_secs(3);
/// A run counts as shorter when it logged less than such a part of what the recorded one did.
const SHORTER: u64 = 4;
/// So many shorter runs are explained until the program follows one's schedule.
const EXPLAINED: usize = 3;
/// A walked run of fewer events is not a long one.
const LONG: usize = 50_000;
/// The recorded run's explanation is given no more than this before a shorter one is looked for.
const FIRST: Duration = Duration::from_secs(120);

/// The search for shorter runs of one trace.
pub(super) struct Shorter<'a> {
    directory: &'a Path,
    manifest: Manifest,
    confirmer: Confirmer,
    options: &'a SolveOptions,
    deadline: Option<Instant>,
    /// Whoever uses freed memory may fail much later: such runs are watched.
    watches_heap: bool,
    seed: Cell<u64>,
    /// A failing schedule of a shorter run that the program was not seen to follow, nor to leave.
    spare: RefCell<Option<Answer>>,
}

impl<'a> Shorter<'a> {
    /// `None` where the program is not to be run, or where a run that fails says nothing of the recorded one.
    ///
    /// # Errors
    /// When the trace cannot be read any more.
    pub(super) fn new(
        directory: &'a Path,
        loaded: &Loaded,
        options: &'a SolveOptions,
        deadline: Option<Instant>,
    ) -> Result<Option<Self>, PipelineError> {
        let Some(replay) = options.replay.as_ref().filter(|_| options.seeks_order()) else {
            return Ok(None);
        };
        let Some(failure) = &loaded.recording.failure else { return Ok(None) };
        let watches_heap = loaded.watches_heap || is_of_heap(failure.kind);
        let confirmer = Confirmer::of_run(directory, false, replay, deadline)?;
        let manifest = whole_manifest(directory)?;
        Ok(Some(Self {
            directory,
            manifest,
            confirmer,
            options,
            deadline,
            watches_heap,
            seed: Cell::new(1),
            spare: RefCell::new(None),
        }))
    }

    /// Looks for shorter runs and explains them, the first time that the time `budget` has gone on for its part. The
    /// answer, where there is one; then the budget is spent.
    pub(super) fn beside<'s>(&'s self, budget: &'s Budget) -> Beside<'s> {
        let alone = ALONE.min(self.options.time / PART);
        Beside {
            budget,
            shorter: self,
            due: Cell::new(Instant::now().checked_add(alone)),
            found: RefCell::new(Ok(None)),
        }
    }

    /// When the recorded run's own explanation is to be over, so that there is time for a shorter one; `None` where it is
    /// not long.
    pub(super) fn first_until(&self, execution: &Execution) -> Option<Instant> {
        let is_long = execution.trace.events.len() >= LONG;
        let left = self.left();
        let first = FIRST.min(left / 2);
        is_long.then(|| Instant::now() + first)
    }

    fn left(&self) -> Duration {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        self.deadline.map_or(self.options.time, left)
    }

    /// The answer about a shorter run, where one has a failing schedule that the program follows, within half of the time
    /// that is left.
    ///
    /// # Errors
    /// When the user interrupts, or a trace of the search cannot be removed.
    pub(super) fn answer(&self) -> Result<Option<Answer>, PipelineError> {
        let place = self.directory.join(PENDING_DIRECTORY);
        let until = Instant::now() + self.left() / 2;
        for _ in 0..EXPLAINED {
            if !self.find(&place, until)? {
                break;
            }
            let time = until.saturating_duration_since(Instant::now());
            let Some(answer) = self.explained(&place, time)? else { continue };
            if answer.failing.replay == Replay::Confirmed {
                return self.keep(answer, &place).map(Some);
            }
            let spare = self.directory.join(SPARE_DIRECTORY);
            forget(&spare)?;
            fs_err::rename(&place, &spare).map_err(PipelineError::Write)?;
            *self.spare.borrow_mut() = Some(moved(answer, &place, &spare));
        }
        forget(&place)?;
        Ok(None)
    }

    /// The answer about a shorter run whose failing schedule was not followed in the time, for when there is none about the
    /// recorded one.
    ///
    /// # Errors
    /// When its trace cannot be moved.
    pub(super) fn spare(&self) -> Result<Option<Answer>, PipelineError> {
        let Some(answer) = self.spare.borrow_mut().take() else { return Ok(None) };
        self.keep(answer, &self.directory.join(SPARE_DIRECTORY)).map(Some)
    }

    /// Keeps the trace that an answer is about.
    fn keep(&self, answer: Answer, place: &Path) -> Result<Answer, PipelineError> {
        let kept = self.directory.join(DIRECTORY);
        forget(&kept)?;
        fs_err::rename(place, &kept).map_err(PipelineError::Write)?;
        Ok(moved(answer, place, &kept))
    }

    /// Makes runs until one fails in the same way after much less, and for a moment more, since a run that is shorter still
    /// takes less in proportion. Says whether there is one at `place`: the shortest.
    fn find(&self, place: &Path, until: Instant) -> Result<bool, PipelineError> {
        let begun = Instant::now();
        let until = until.min(begun + SEARCH.min(self.left() / PART));
        let next = self.directory.join(NEXT_DIRECTORY);
        let mut least = self.manifest.stream_bytes() / SHORTER;
        let mut is_found = false;
        for _ in 0..RUNS {
            let now = Instant::now();
            if now >= until || (is_found && now >= begun + MOMENT) {
                break;
            }
            let seed = self.seed.replace(self.seed.get() + 1);
            forget(&next)?;
            let how = (self.watches_heap, until.saturating_duration_since(now));
            let Some(found) = self.confirmer.record_freely(seed, how, &next)? else { break };
            let bytes = found.stream_bytes();
            tracing::info!(seed, failure = ending(&found), bytes, least, "ran again");
            if is_same(&self.manifest, &found) && bytes < least {
                forget(place)?;
                fs_err::rename(&next, place).map_err(PipelineError::Write)?;
                (least, is_found) = (bytes, true);
            }
        }
        forget(&next)?;
        Ok(is_found)
    }

    fn explained(&self, place: &Path, time: Duration) -> Result<Option<Answer>, PipelineError> {
        let options = SolveOptions { time, ..self.options.clone() };
        match solve_this(place, &options, false) {
            Ok(mut answer)
                if answer.solution.verdict == Verdict::FailingSchedule
                    && answer.failing.replay != Replay::Diverged =>
            {
                let note = note(self.directory, place)?;
                answer.solution.replay_notes.insert(0, note);
                Ok(Some(answer))
            }
            Ok(answer) => {
                tracing::info!(verdict = ?answer.solution.verdict, "no shorter run is explained");
                Ok(None)
            }
            Err(error @ PipelineError::Replay(_)) => Err(error),
            Err(error) => {
                tracing::info!(%error, "no shorter run is explained");
                Ok(None)
            }
        }
    }
}

/// An answer about a trace that was moved. What it is about may be a run of that run, with a watched heap.
fn moved(answer: Answer, from: &Path, to: &Path) -> Answer {
    let trace = match answer.trace.strip_prefix(from) {
        Ok(within) if within.as_os_str().is_empty() => to.to_owned(),
        Ok(within) => to.join(within),
        Err(_) => answer.trace,
    };
    Answer { trace, ..answer }
}

/// What to say of an answer that is about the trace of a shorter run.
pub(super) fn note(directory: &Path, shorter: &Path) -> Result<String, PipelineError> {
    let (recorded, found) = (whole_manifest(directory)?, whole_manifest(shorter)?);
    let percent = found.stream_bytes().saturating_mul(100) / recorded.stream_bytes().max(1);
    let part = match percent {
        0 => "less than 1".to_owned(),
        percent => percent.to_string(),
    };
    let how = match is_as_recorded(&recorded, &found) {
        true => "failed in the same way".to_owned(),
        false => {
            format!("with every access to freed memory watched, failed so: {},", ending(&found))
        }
    };
    let kept = directory.join(DIRECTORY);
    Ok(format!(
        "the recorded run was too long to be explained in this time: the program, run again, {how} after \
         {part} % of its log; that is another run, which is explained here (to have the recorded one explained, \
         remove {} and give more --timeout)",
        kept.display()
    ))
}

/// The trace of a shorter run, where an answer is about one.
pub(super) fn kept(directory: &Path) -> Option<PathBuf> {
    let place = directory.join(DIRECTORY);
    Manifest::read(&place).is_ok_and(|manifest| manifest.failure.is_some()).then_some(place)
}

/// May a failure of this kind come of freed memory? Then the first access to it comes earlier, and says more.
fn is_of_heap(kind: RecordedFailureKind) -> bool {
    use RecordedFailureKind::{Abort, DoubleFree, Exception, HeapCorruption, Signal, UseAfterFree};
    matches!(
        kind,
        Abort
            | DoubleFree { .. }
            | Exception
            | HeapCorruption
            | Signal { .. }
            | UseAfterFree { .. }
    )
}

/// Did both runs fail in the same way, as far as the recorder knows? Freed memory that is used leads to any crash.
fn is_same(recorded: &Manifest, found: &Manifest) -> bool {
    let misused = |failure: &Failure| {
        matches!(failure.kind, FailureKind::UseAfterFree | FailureKind::DoubleFree)
    };
    is_as_recorded(recorded, found) || found.failure.as_ref().is_some_and(misused)
}

fn is_as_recorded(recorded: &Manifest, found: &Manifest) -> bool {
    let still_running = found.still_running;
    let Some((recorded, found)) = recorded.failure.as_ref().zip(found.failure.as_ref()) else {
        return false;
    };
    // One that was ended when its time was up may only have been slow.
    let is_over = found.kind != FailureKind::Hang || still_running != Some(true);
    is_over
        && recorded.kind == found.kind
        && recorded.code == found.code
        && recorded.message == found.message
}

fn forget(place: &Path) -> Result<(), PipelineError> {
    super::watched::forget(place)
}

/// A budget that is interrupted once to look for shorter runs, see [`Shorter::beside`].
pub(super) struct Beside<'s> {
    budget: &'s Budget,
    shorter: &'s Shorter<'s>,
    due: Cell<Option<Instant>>,
    found: RefCell<Result<Option<Answer>, PipelineError>>,
}

impl Drop for Shorter<'_> {
    fn drop(&mut self) {
        // What no answer is about; that it stays does no harm.
        if self.spare.get_mut().is_some() {
            let _ = forget(&self.directory.join(SPARE_DIRECTORY));
        }
    }
}

impl Beside<'_> {
    /// What was found.
    pub(super) fn into_found(self) -> Result<Option<Answer>, PipelineError> {
        self.found.into_inner()
    }
}

impl Spending for Beside<'_> {
    fn is_left(&self) -> bool {
        if self.due.get().is_some_and(|due| Instant::now() >= due) {
            self.due.set(None);
            tracing::info!("the walk takes long: is there a shorter run?");
            *self.found.borrow_mut() = self.shorter.answer();
        }
        matches!(*self.found.borrow(), Ok(None)) && self.budget.is_left()
    }

    fn is_ample(&self) -> bool {
        self.budget.is_ample()
    }
}
