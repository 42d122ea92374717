//! Forcing schedules on the real program, as far as that is possible on this machine.

use super::work::Explained;
use crate::replay::{self, Claim, ReplayError, Settings, Target, across, judge};
use model::Schedule;
use render::solution::Replay;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use symex::Execution;
use trace_format::Manifest;

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
}

impl Finding {
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
}

impl Confirmer {
    pub(super) fn new(trace: &Path, options: &ReplayOptions) -> Result<Self, ReplayError> {
        let manifest = Manifest::read(trace)?;
        let mut manifest = manifest;
        if manifest.state == trace_format::State::Recording {
            trace_format::read_raw(trace, &mut manifest)?;
        }
        let target = options.target(trace, &manifest).map_err(|error| in_words(&error));
        let settings = options.settings(&manifest);
        Ok(Self { manifest, target, settings })
    }

    /// How long the recorded run took.
    pub(super) fn recorded(&self) -> Duration {
        Duration::from_millis(self.manifest.duration_ms.unwrap_or(0))
    }

    /// Was the run recorded without watching the heap?
    pub(super) fn ordinary_heap(&self) -> bool {
        self.manifest.detect.is_none()
    }

    /// Forces a schedule on the program. That the program cannot be run is a finding too.
    pub(super) fn confirm(
        &self,
        claim: Claim,
        explained: &Explained,
        execution: &Execution,
        schedule: &Schedule,
    ) -> Result<Finding, ReplayError> {
        let Execution { points, inputs, .. } = execution;
        let script = match replay::script(claim, &explained.trace, points, inputs, schedule) {
            Ok(script) => script,
            Err(why) => return Ok(Finding::not_run(why)),
        };
        let finding = match &self.target {
            Err(why) => Finding::not_run(why.clone()),
            Ok(target) => self.run(claim, target, &script)?,
        };
        Ok(Finding { script: Some(script), ..finding })
    }

    /// Looks for a run that avoids the failure along other paths. Nothing is found where the
    /// program cannot be run.
    pub(super) fn across(
        &self,
        explained: &Explained,
        execution: &Execution,
        deadline: Option<Instant>,
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
        across::search(&failing, target, &self.settings, deadline)
    }

    fn run(&self, claim: Claim, target: &Target, script: &str) -> Result<Finding, ReplayError> {
        let _span = tracing::info_span!("replay", ?claim).entered();
        let attempt = match replay::run(target, script, &self.settings) {
            Ok(attempt) => attempt,
            Err(error @ ReplayError::Interrupted(_)) => return Err(error),
            Err(error) => return Ok(Finding::not_run(in_words(&error))),
        };
        let verdict = judge::judge(claim, &self.manifest, &attempt);
        let confirmed = verdict.confirms(claim);
        let replay = if confirmed { Replay::Confirmed } else { Replay::Diverged };
        let note = judge::note(claim, &verdict, &attempt);
        Ok(Finding { replay, note, script: None, fails: judge::fails(&self.manifest, &attempt) })
    }
}

fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
