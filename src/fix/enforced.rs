//! The real program under the failing schedule, held to a repair's order.

use super::answer::Replays;
use crate::pipeline::ReplayOptions;
use crate::replay::{self, Claim, ReplayError, Settings, Target};
use model::{EventTrace, Points, Schedule};
use std::path::Path;
use std::time::{Duration, Instant};
use symex::Input;
use trace_format::{Manifest, State};

/// How often the program is run with a repair's order, where nobody says so: so many times, ...
const RUNS: u32 = 20;
/// ... or fewer when they have taken so long ...
const ENOUGH: Duration = Duration::from_secs(5);
/// ... and were so many.
const LEAST: u32 = 3;
/// A run that may hang as the recorded one did is ended after this time.
const LONGEST_HANG: Duration = Duration::from_secs(10);

/// What is to be run.
pub(super) struct Enforced {
    /// The program and the schedule; or why it cannot be run.
    ready: Result<(Target, String), String>,
    settings: Settings,
}

/// What came of running the program with a repair's order.
pub(super) enum Runs {
    /// So much.
    Done(Replays),
    /// It cannot be run so, and why.
    Impossible(String),
    /// The time was up before it had been run often enough to say something.
    OutOfTime,
}

impl Enforced {
    /// Finds the program and makes the schedule's text.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn new(
        directory: &Path,
        trace: &EventTrace,
        points: &Points,
        inputs: &[Input],
        schedule: &Schedule,
    ) -> Result<Self, ReplayError> {
        let mut manifest = Manifest::read(directory)?;
        if manifest.state == State::Recording {
            trace_format::read_raw(directory, &mut manifest)?;
        }
        let options = ReplayOptions::default();
        let mut settings = options.settings(&manifest);
        // How long a run takes that passes is not known where the recorded one hung: a rule with which it hangs as well
        // is not waited for as long as that.
        if manifest.timed_out {
            settings.timeout = settings.timeout.min(LONGEST_HANG);
        }
        let script = replay::script(Claim::Fails, trace, points, inputs, schedule);
        let ready = match (options.target(directory, &manifest), script) {
            (Ok(target), Ok(script)) => Ok((target, script)),
            (Err(error), _) => Err(error.to_string()),
            (_, Err(why)) => Err(why),
        };
        Ok(Self { ready, settings })
    }

    /// The same, of which no run goes on behind this moment.
    pub(super) fn until(self, until: Option<Instant>) -> Self {
        Self { ready: self.ready.map(|(target, script)| (target.until(until), script)), ..self }
    }

    /// Runs the program so many times, or as often as does not take long.
    ///
    /// # Errors
    /// When the user interrupts.
    pub(super) fn runs(&mut self, rule: &str, runs: Option<u32>) -> Result<Runs, ReplayError> {
        let (target, script) = match &self.ready {
            Ok(ready) => ready,
            Err(why) => return Ok(Runs::Impossible(why.clone())),
        };
        tracing::debug!(rule, "runs with a rule");
        self.settings.avoid = Some(rule.to_owned());
        let mut replays = Replays::default();
        let end = Instant::now() + ENOUGH;
        for run in 0..runs.unwrap_or(RUNS) {
            if runs.is_none() && run >= LEAST && Instant::now() >= end {
                break;
            }
            let attempt = match replay::run(target, script, &self.settings) {
                Ok(attempt) => attempt,
                Err(error @ ReplayError::Interrupted(_)) => return Err(error),
                // As many runs as there may be without a number being asked for say as much as ever.
                Err(ReplayError::OutOfTime) if runs.is_none() && run >= LEAST => break,
                Err(ReplayError::OutOfTime) => return Ok(Runs::OutOfTime),
                Err(error) => return Ok(Runs::Impossible(error.to_string())),
            };
            let passed = attempt.manifest.failure.is_none() && !attempt.report.deadlock;
            tracing::debug!(passed, report = ?attempt.report, "run with a rule");
            replays.runs += 1;
            replays.passed += u32::from(passed);
            replays.gave_up += u32::from(attempt.report.gave_up > 0);
            // A repair with which the program fails is not shown, however often it does not.
            if !passed {
                break;
            }
        }
        Ok(Runs::Done(replays))
    }
}
