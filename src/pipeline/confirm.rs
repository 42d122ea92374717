//! Forcing schedules on the real program, as far as that is possible on this machine.

use super::work::Explained;
use crate::errors::with_causes;
use crate::record::Noise;
use crate::replay::{
    self, AGAIN_BEHIND, Claim, ReplayError, Settings, Target, Verdict, Walked, across, judge,
};
use model::{EventKind, Schedule, Thread, ThreadId};
use render::solution::Replay;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use symex::Execution;
use trace_format::{Manifest, TraceError};

/// So many orders of the threads behind an alternate's end are tried.
const TAILS: usize = 4;
/// A failing schedule that is found when the time is nearly up is run all the same, if that takes no longer than
/// this.
const GRACE: Duration = Duration::from_secs(5);
/// A run with pauses may take so long, ...
const LEAST_RUN: Duration = Duration::from_secs(2);
/// ... and so many times as long as the recorded one.
const SLOWER: u32 = 5;

/// How to replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The binary; none for the recorded one.
    pub program: Option<PathBuf>,
    /// The working directory; none for the recorded one.
    pub directory: Option<PathBuf>,
    /// When to end a run; none for what suits the recorded one.
    pub timeout: Option<Duration>,
    /// When to give up following a schedule; none for the default.
    pub patience: Option<Duration>,
    /// How many failing schedules to reject before the answer is that none works.
    pub attempts: usize,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self { program: None, directory: None, timeout: None, patience: None, attempts: 3 }
    }
}

impl ReplayOptions {
    /// The program of a trace.
    ///
    /// # Errors
    ///
    /// As [`Target::of_trace`].
    pub fn target(&self, trace: &Path, manifest: &Manifest) -> Result<Target, ReplayError> {
        let program = self.program.as_deref();
        match &self.directory {
            Some(directory) => Target::in_directory(trace, manifest, program, directory),
            None => Target::of_trace(trace, manifest, program),
        }
    }

    /// How to run it.
    #[must_use]
    pub fn settings(&self, manifest: &Manifest) -> Settings {
        let mut settings = Settings::of(manifest);
        settings.timeout = self.timeout.unwrap_or(settings.timeout);
        settings.hurries = self.timeout.is_none();
        settings.patience = self.patience.unwrap_or(settings.patience);
        settings
    }
}

/// What replay says of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// In one word.
    pub replay: Replay,
    /// What there is to say besides.
    pub note: Option<String>,
    /// The schedule's text; none when it has none.
    pub script: Option<String>,
    /// The run failed as the recorded one did, in whichever thread: what the schedule has in another
    /// order does not decide.
    pub fails: bool,
    /// The run of an alternate followed it to a failure of another kind or place, before it was past the recorded one's: what the
    /// schedule has in another order decides about that one.
    pub fails_otherwise: bool,
    /// The time was up before there was something to say.
    pub out_of_time: bool,
}

impl Finding {
    /// Did the run of an alternate bear it out, without failing in the same way further on?
    pub(super) fn avoids(&self) -> bool {
        self.replay == Replay::Confirmed && !self.fails
    }

    fn out_of_time() -> Self {
        Self { out_of_time: true, ..Self::not_run(with_causes(&ReplayError::OutOfTime)) }
    }

    pub(super) fn not_run(note: impl Into<String>) -> Self {
        Self { replay: Replay::NotRun, note: Some(note.into()), ..Self::default() }
    }
}

/// What is found out by running the program.
pub(super) struct Confirmer {
    manifest: Manifest,
    /// The program, or why it cannot be run.
    target: Result<Target, String>,
    settings: Settings,
    /// When no further runs are made for one schedule.
    deadline: Option<Instant>,
}

impl Confirmer {
    pub(super) fn new(
        trace: &Path,
        execution: &Execution,
        options: &ReplayOptions,
        deadline: Option<Instant>,
    ) -> Result<Self, ReplayError> {
        let known = (execution.report.ended_by.is_some(), Some(Walked::from(execution)));
        Self::of(trace, known, options, deadline)
    }

    /// The same before the run has been walked. `hung`: had it hung before it failed in another way?
    pub(super) fn of_run(
        trace: &Path,
        hung: bool,
        options: &ReplayOptions,
        deadline: Option<Instant>,
    ) -> Result<Self, ReplayError> {
        Self::of(trace, (hung, None), options, deadline)
    }

    fn of(
        trace: &Path,
        (hung, walked): (bool, Option<Walked>),
        options: &ReplayOptions,
        deadline: Option<Instant>,
    ) -> Result<Self, ReplayError> {
        let manifest = whole_manifest(trace)?;
        let until = deadline.and_then(|deadline| deadline.checked_add(GRACE));
        let target = options.target(trace, &manifest);
        let target = target.map(|target| target.until(until).knowing(hung, walked));
        let target = target.map_err(|error| with_causes(&error));
        let settings = options.settings(&manifest);
        Ok(Self { manifest, target, settings, deadline })
    }

    /// How long the recorded run took.
    pub(super) fn recorded(&self) -> Duration {
        Duration::from_millis(self.manifest.duration_ms.unwrap_or(0))
    }

    /// Was the run recorded without watching the heap?
    pub(super) fn ordinary_heap(&self) -> bool {
        self.manifest.detect.is_none()
    }

    /// The recorded run's own schedule as text, where a scheduler ran its threads one at a time.
    pub(super) fn observed(&self) -> Option<String> {
        replay::observed(&self.target.as_ref().ok()?.original).ok()
    }

    /// Runs the program under this schedule with a watched heap, and makes a trace of that run in a new directory.
    /// `None` where that is not possible.
    pub(super) fn record_watched(
        &self,
        script: &str,
        directory: &Path,
    ) -> Result<Option<Manifest>, ReplayError> {
        tracing::debug!(script, "the recorded run's own schedule");
        let settings = Settings { watches_heap: true, ..self.settings.clone() };
        self.record_again(script, settings, directory)
    }

    /// The same of a run whose threads go on as they will, with random pauses by this seed in every other one; with a watched
    /// heap or without, and for no longer than `within`. The recorded run may have had no pauses, and what comes of a busy
    /// machine pauses may hide.
    pub(super) fn record_freely(
        &self,
        seed: u64,
        (watches_heap, within): (bool, Duration),
        directory: &Path,
    ) -> Result<Option<Manifest>, ReplayError> {
        let pauses = || Noise::Varied.of_run(seed / 2, None).variable().into_string().ok();
        let noise = if seed.is_multiple_of(2) { pauses() } else { None };
        let enough = LEAST_RUN.saturating_add(self.recorded().saturating_mul(SLOWER));
        let timeout = self.settings.timeout.min(enough).min(within);
        // A run that hangs is over when nothing goes on any more. To know how soon the recorded one did, it would be walked.
        let (ends_when_stuck, hurries) = (self.manifest.timed_out, false);
        let settings = Settings {
            noise,
            timeout,
            watches_heap,
            ends_when_stuck,
            hurries,
            ..self.settings.clone()
        };
        self.record_again("", settings, directory)
    }

    fn record_again(
        &self,
        script: &str,
        settings: Settings,
        directory: &Path,
    ) -> Result<Option<Manifest>, ReplayError> {
        let _span = tracing::info_span!("record_again").entered();
        let Ok(target) = &self.target else { return Ok(None) };
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(settings.timeout, |left| left.min(settings.timeout));
        let settings = Settings { timeout, ..settings };
        match replay::record_again(target, script, &settings, directory) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error @ ReplayError::Interrupted(_)) => Err(error),
            Err(error) => {
                tracing::info!(%error, "the program is not run again");
                Ok(None)
            }
        }
    }

    /// Forces a schedule on the program. That the program cannot be run is a finding too.
    pub(super) fn confirm(
        &self,
        claim: Claim,
        explained: &Explained<'_>,
        execution: &Execution,
        schedule: &Schedule,
    ) -> Result<Finding, ReplayError> {
        let Execution { points, inputs, .. } = execution;
        let script = match replay::script(claim, &explained.trace, points, inputs, schedule) {
            Ok(script) => script,
            Err(why) => return Ok(Finding::not_run(why)),
        };
        let (finding, verdict) = match &self.target {
            Err(why) => (Finding::not_run(why.clone()), None),
            Ok(target) => self.run(claim, target, &script)?,
        };
        let again = match verdict {
            Some(Verdict::Moved { found }) => Some(found),
            Some(Verdict::Passed { later: Some(found) }) if finding.fails => Some(found),
            _ => None,
        };
        if let (Ok(target), Some(found)) = (&self.target, again) {
            let passes =
                self.one_after_the_other(target, explained, execution, schedule, &found)?;
            if let Some(passes) = passes {
                return Ok(passes);
            }
        }
        Ok(Finding { script: Some(script), ..finding })
    }

    /// The alternate led another thread into the same failure, or the same one once more. What a thread
    /// does behind the end of the schedule was never recorded, and it may have met the bug only there, as
    /// it may in any run: this is so if some order of the threads' ends passes. Where another thread has
    /// failed within the schedule, none does.
    fn one_after_the_other(
        &self,
        target: &Target,
        explained: &Explained<'_>,
        execution: &Execution,
        schedule: &Schedule,
        again: &str,
    ) -> Result<Option<Finding>, ReplayError> {
        let Execution { points, inputs, .. } = execution;
        let trace = &explained.trace;
        let Some(failed) = trace.failure.as_ref().map(|failure| trace.event(failure.event).thread)
        else {
            return Ok(None);
        };
        // Who did something last is most likely in the middle of something.
        let mut others: Vec<ThreadId> = Vec::new();
        for &id in schedule.order.iter().rev() {
            let thread = trace.event(id).thread;
            if thread != failed && !others.contains(&thread) {
                others.push(thread);
            }
        }
        let ended = |thread: &Thread| {
            let last = thread.events.last();
            last.is_some_and(|id| trace.event(*id).kind == EventKind::Exit)
        };
        let threads = others.iter().filter_map(|id| trace.threads.get(id.index()));
        let mut others: Vec<&Thread> = threads.filter(|thread| !ended(thread)).collect();
        // It mostly waits for all others.
        others.sort_by_key(|thread| thread.parent.is_none());
        for first in 0..others.len().min(TAILS) {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
            let mut then = others.clone();
            then[..=first].rotate_right(1);
            let Ok(script) =
                replay::script_and_then(Claim::Passes, trace, points, inputs, schedule, &then)
            else {
                continue;
            };
            let (finding, _) = self.run(Claim::Passes, target, &script)?;
            if finding.avoids() {
                let note = format!(
                    "behind the schedule {} goes on to its end first; {AGAIN_BEHIND}: {again}",
                    then[0].name
                );
                return Ok(Some(Finding { note: Some(note), script: Some(script), ..finding }));
            }
        }
        Ok(None)
    }

    /// Looks for a run that avoids the failure along other paths, or only (`came_back`) for one in which no value comes back
    /// that did. Nothing is found where the program cannot be run.
    pub(super) fn across(
        &self,
        explained: &Explained<'_>,
        execution: &Execution,
        (deadline, came_back): (Option<Instant>, bool),
    ) -> Result<across::Found, ReplayError> {
        let (Ok(target), Some(failing)) = (&self.target, &explained.explanation.failing) else {
            return Ok(across::Found::default());
        };
        let failing = across::Failing {
            manifest: &self.manifest,
            trace: &explained.trace,
            points: &execution.points,
            inputs: &execution.inputs,
            schedule: &failing.schedule,
            evaluation: &failing.evaluation,
        };
        let search = if came_back { across::search_came_back } else { across::search };
        search(&failing, target, &self.settings, deadline)
    }

    /// What a run under this schedule came to; no verdict where it could not be made.
    fn run(
        &self,
        claim: Claim,
        target: &Target,
        script: &str,
    ) -> Result<(Finding, Option<Verdict>), ReplayError> {
        let _span = tracing::info_span!("replay", ?claim).entered();
        let attempt = match replay::run(target, script, &self.settings) {
            Ok(attempt) => attempt,
            Err(error @ ReplayError::Interrupted(_)) => return Err(error),
            Err(ReplayError::OutOfTime) => return Ok((Finding::out_of_time(), None)),
            Err(error) => return Ok((Finding::not_run(with_causes(&error)), None)),
        };
        let verdict = judge::judge(claim, &self.manifest, &attempt);
        let confirmed = verdict.confirms(claim);
        // What tells two failures apart may not have been found out.
        if !confirmed && target.original.time_is_up() {
            return Ok((Finding::out_of_time(), None));
        }
        let replay = if confirmed { Replay::Confirmed } else { Replay::Diverged };
        let note = judge::note(claim, &verdict, &attempt);
        let fails = judge::fails(claim, &verdict, &self.manifest, &attempt);
        let hung = attempt.report.deadlock || attempt.manifest.timed_out;
        let fails_otherwise = !fails && !hung && matches!(verdict, Verdict::Different { .. });
        let finding = Finding { replay, note, fails, fails_otherwise, ..Finding::default() };
        Ok((finding, Some(verdict)))
    }
}

/// A trace's manifest, with threads and failure also where the trace is not sealed.
///
/// # Errors
///
/// When it cannot be read, or is malformed.
pub fn whole_manifest(trace: &Path) -> Result<Manifest, TraceError> {
    let mut manifest = Manifest::read(trace)?;
    if manifest.state == trace_format::State::Recording {
        trace_format::read_raw(trace, &mut manifest)?;
    }
    Ok(manifest)
}
