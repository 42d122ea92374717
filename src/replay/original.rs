//! The recorded run, as far as attempts are compared with it. What takes time to load is loaded
//! once, when it is first asked for.

use super::Attempt;
use crate::pipeline::{self, Budget};
use model::{EventTrace, Site};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use symex::{Execution, Recording};
use trace_format::{FailureKind, Manifest, Trace};

/// A log of more bytes than this, ...
const LONG_LOG: u64 = 4 << 20;
/// ... and so many for each instruction of the recorded run that was walked, is not walked, ...
const LONGER: u64 = 4;
/// ... unless the recorded run logged nearly as much: so many times as much is too long.
const TIMES: u64 = 2;

/// A run that goes on for ever is looked at for so many gates behind its schedule, ...
const LEAST_TAIL: u64 = 10_000;
/// ... and so many times as many as those in which a run failed; ...
const TAIL: u64 = 4;
/// ... for so many where that is not known.
const UNKNOWN_TAIL: u64 = 100_000;
/// For a run that is walked they are halved so often, if that is enough.
const SHORT: u32 = 6;

/// What comparisons need to know of the recorded run's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Where it failed; none where that is at no place.
    pub(super) place: Option<Site>,
    /// How many instructions were walked, over all threads.
    pub(super) instructions: u64,
}

impl From<&Execution> for Walked {
    fn from(execution: &Execution) -> Self {
        let threads = execution.report.threads.iter();
        Self {
            place: failure_place(&execution.trace),
            instructions: threads.map(|thread| thread.instructions).fold(0, u64::saturating_add),
        }
    }
}

/// Where a run failed.
pub(super) fn failure_place(trace: &EventTrace) -> Option<Site> {
    let failure = trace.failure.as_ref()?;
    Some(trace.event(failure.event).site().clone())
}

/// The recorded run.
#[derive(Debug)]
pub struct Original {
    directory: PathBuf,
    manifest: Manifest,
    /// Behind this moment no run goes on and nothing is walked; none for no end.
    until: Option<Instant>,
    trace: OnceLock<Option<Trace>>,
    execution: OnceLock<Option<Execution>>,
    walked: OnceLock<Option<Walked>>,
    hung: OnceLock<bool>,
    /// Runs without the failure go on for ever.
    endless: AtomicBool,
    /// The most gates that a run passed until it failed.
    steps: AtomicU64,
}

impl Original {
    pub(super) fn new(directory: &Path, manifest: &Manifest, until: Option<Instant>) -> Arc<Self> {
        Arc::new(Self {
            until,
            directory: directory.to_owned(),
            manifest: manifest.clone(),
            trace: OnceLock::new(),
            execution: OnceLock::new(),
            walked: OnceLock::new(),
            hung: OnceLock::new(),
            endless: AtomicBool::new(manifest.endless),
            steps: AtomicU64::new(0),
        })
    }

    /// The same recorded run, with which nothing is compared behind this moment.
    pub(super) fn until(&self, until: Option<Instant>) -> Arc<Self> {
        Self::new(&self.directory, &self.manifest, until)
    }

    /// The same, of which it is known whether it hung, see [`Self::hung`], and maybe what its walk came to.
    pub(super) fn knowing(&self, hung: bool, walked: Option<Walked>) -> Arc<Self> {
        let known = Self::new(&self.directory, &self.manifest, self.until);
        let _ = known.hung.set(hung);
        if walked.is_some() {
            let _ = known.walked.set(walked);
        }
        known
    }

    /// Can a run be ended that goes on without the failure? Not where what the run comes to in the end is the failure.
    pub(super) fn may_go_on(&self) -> bool {
        let kind = self.manifest.failure.as_ref().map(|failure| failure.kind);
        !matches!(kind, None | Some(FailureKind::Output | FailureKind::Hang))
            && !self.manifest.timed_out
            && self.failing_thread().is_some()
    }

    /// Runs without the failure go on for ever.
    pub(super) fn set_endless(&self) {
        self.endless.store(true, Ordering::Relaxed);
    }

    /// A run failed after so many gates.
    pub(super) fn note_steps(&self, steps: u64) {
        self.steps.fetch_max(steps, Ordering::Relaxed);
    }

    /// After so many gates behind its schedule a run is ended; none where runs come to an end, as far as is known.
    pub(super) fn tail(&self) -> Option<u64> {
        let endless = self.endless.load(Ordering::Relaxed) && self.may_go_on();
        endless.then(|| self.a_while())
    }

    /// Some times as many gates as the failure took.
    pub(super) fn a_while(&self) -> u64 {
        match self.steps.load(Ordering::Relaxed) {
            0 => UNKNOWN_TAIL,
            steps => steps.saturating_mul(TAIL).saturating_add(LEAST_TAIL),
        }
    }

    /// After how many gates behind its schedule a run may have come past the failure's place, if it is to be walked: first what
    /// is enough where the schedule leads there, last what is as good as [`Self::tail`].
    pub(super) fn short_tails(&self) -> impl Iterator<Item = u64> + use<> {
        let most = self.a_while();
        (0..=SHORT).rev().map(move |halvings| most >> halvings)
    }

    /// How much time there is; none for any.
    pub(super) fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Is the time up? Then what is not known yet of a run stays so, and that it was not found says nothing.
    #[must_use]
    pub fn time_is_up(&self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// The trace directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What was recorded.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The trace; none when it cannot be opened.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.get_or_init(|| Trace::open(&self.directory).ok()).as_ref()
    }

    /// The event trace; none when the streams cannot be executed, or the time was up before that.
    #[must_use]
    pub fn execution(&self) -> Option<&Execution> {
        self.execution.get_or_init(|| execute_with(self, &self.directory, |_| {})).as_ref()
    }

    /// What its walk came to; none when it cannot be executed, or the time was up before that.
    pub(super) fn walked(&self) -> Option<&Walked> {
        self.walked.get_or_init(|| self.execution().map(Walked::from)).as_ref()
    }

    /// Did its threads wait for each other for ever? Either it was ended for it, or something of its own noticed: then
    /// the failure of the manifest is a consequence, and no run is compared with that.
    #[must_use]
    pub fn hung(&self) -> bool {
        let Some(failure) = &self.manifest.failure else { return false };
        if failure.kind == FailureKind::Hang {
            return true;
        }
        *self.hung.get_or_init(|| {
            may_have_hung(&self.manifest)
                && self.execution().is_some_and(|it| it.report.ended_by.is_some())
        })
    }

    /// The thread that failed; none where that is not known, or not of one thread.
    #[must_use]
    pub fn failing_thread(&self) -> Option<&str> {
        let thread = self.manifest.failure.as_ref()?.thread.as_deref()?;
        (!self.hung()).then_some(thread)
    }

    /// A log of more bytes is much longer than what was walked of the recorded run: a loop that the
    /// recorded run did not come out of may end at last, after rounds by the billion; a timer that was held
    /// back makes up for all the rounds that it missed.
    #[must_use]
    pub fn long_log(&self) -> Option<u64> {
        Some(longest(self.walked()?.instructions))
    }

    /// How long the recorded run took until nothing but endless loops went on; none when it had none.
    #[must_use]
    pub fn until_endless(&self) -> Option<Duration> {
        let time =
            Duration::from_millis(self.manifest.duration_ms.filter(|_| self.manifest.timed_out)?);
        let threads = self.execution()?.report.threads.iter();
        let share = threads.filter_map(|thread| thread.endless.as_ref()).map(|endless| {
            // Entries come at the same pace in every round.
            endless.walked as f64 / endless.logged.max(1) as f64
        });
        Some(time.mul_f64(share.reduce(f64::max)?.clamp(0.0, 1.0)))
    }
}

/// May a run that failed have hung before? Not where no other thread was left, nor where it used memory that was not there.
fn may_have_hung(manifest: &Manifest) -> bool {
    use FailureKind::{DoubleFree, HeapCorruption, Output, StackOverflow, UseAfterFree};
    let failure = manifest.failure.as_ref();
    let is_other =
        |kind| matches!(kind, DoubleFree | HeapCorruption | Output | StackOverflow | UseAfterFree);
    if failure.is_some_and(|failure| is_other(failure.kind)) {
        return false;
    }
    let failing = failure.and_then(|failure| failure.thread_serial);
    manifest.threads.iter().any(|thread| !thread.ended && Some(thread.serial) != failing)
}

/// Loads and executes an attempt; none when that is not possible, or would take too long.
pub(super) fn executed(attempt: &Attempt) -> Option<Execution> {
    let bytes = attempt.manifest.stream_bytes();
    let original = &attempt.original;
    if bytes > LONG_LOG {
        // Of a run that went round a loop for ever only a part was walked, and no more than that is worth it here.
        let recorded =
            if original.manifest.timed_out { 0 } else { original.manifest.stream_bytes() };
        let most = original.long_log()?.max(recorded.saturating_mul(TIMES));
        if bytes > most {
            tracing::info!(bytes, most, "too long to be executed for comparison");
            return None;
        }
    }
    execute_with(original, &attempt.directory, |_| {})
}

/// How long the log may be where so many instructions of the recorded run were walked.
const fn longest(instructions: u64) -> u64 {
    instructions.saturating_mul(LONGER).saturating_add(LONG_LOG)
}

/// As [`executed`] of any length, for the failure only: nobody looks at how often places were passed, so rounds of
/// waiting are left out of a scheduled run, too.
pub(super) fn executed_for_failure(attempt: &Attempt) -> Option<&Execution> {
    let execute = || {
        let Attempt { original, directory, .. } = attempt;
        execute_with(original, directory, |recording| recording.scheduled = false)
    };
    attempt.for_failure.get_or_init(execute).as_ref()
}

fn execute_with(
    original: &Original,
    directory: &Path,
    change: impl FnOnce(&mut Recording),
) -> Option<Execution> {
    let budget = Budget::of_walk(original.until, None);
    let result = pipeline::load(directory).and_then(|mut loaded| {
        change(&mut loaded.recording);
        // Whose threads all waited went round no loop for ever, and what follows it does as many rounds before.
        loaded.recording.stuck |= original.manifest.still_running == Some(false);
        pipeline::execute_within(&loaded.recording, &budget)
    });
    result.inspect_err(|error| tracing::info!(%error, "not executed for comparison")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_long_beside_what_was_walked() {
        assert!(longest(60_000) < 600 << 20);
        assert!(longest(500_000_000) > 600 << 20, "the recorded run was as long");
        assert!(longest(0) >= LONG_LOG && longest(u64::MAX) == u64::MAX);
    }
}
