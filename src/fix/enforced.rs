//! The real program under the failing schedule, held to a repair's order.

use super::answer::{Other, Replays};
use super::others::{Others, under_noise};
use crate::pipeline::ReplayOptions;
use crate::replay::{self, Attempt, Claim, ReplayError, Settings, Target};
use model::Schedule;
use render::Solution;
use std::path::Path;
use std::time::{Duration, Instant};
use symex::Execution;
use trace_format::{Manifest, State};

/// How often the program is run with a repair's order, where nobody says so: so many times, ...
const RUNS: u32 = 20;
/// ... or fewer when they have taken so long ...
const ENOUGH: Duration = Duration::from_secs(5);
/// ... and were so many.
const LEAST: u32 = 3;
/// Under noise as many runs as the recorded program takes to fail so often: that fewer pass says little of a failure that is rare.
const FAILURES: u32 = 10;
/// A run that may hang as the recorded one did is ended after this time.
const LONGEST_HANG: Duration = Duration::from_secs(10);

/// What is to be run.
pub(super) struct Enforced {
    /// The program and the schedule; or why it cannot be run.
    ready: Result<(Target, String), String>,
    settings: Settings,
    others: Others,
    /// Is it to be seen in runs that a repair helps? See [`Self::needs_runs`].
    needed: bool,
    /// Is the program to be run under noise in any case?
    noisy: bool,
    /// How many runs under noise the recorded program took to fail [`FAILURES`] times, or in [`ENOUGH`] time; asked once.
    recorded_runs: Option<u32>,
}

/// What came of running the program with a repair's order.
pub(super) enum Runs {
    /// So much under the failing schedule; and under noise, where another bug made some of these fail, or the cause may be told too
    /// narrowly.
    Done(Replays, Option<Replays>),
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
        (directory, solution): (&Path, &Solution),
        Execution { trace, points, inputs, .. }: &Execution,
        schedule: &Schedule,
        (time, until): (Duration, Option<Instant>),
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
            (Ok(target), Ok(script)) => Ok((target.until(until), script)),
            (Err(error), _) => Err(error.to_string()),
            (_, Err(why)) => Err(why),
        };
        let others = Others::new(solution, manifest, (time, until));
        let needed = super::fails_behind(solution);
        // Of several checks that go wrong in a run one is told, and the next round's may go wrong by another order.
        let noisy = needed || solution.check.is_some();
        Ok(Self { ready, settings, others, needed, noisy, recorded_runs: None })
    }

    /// Is it to be seen in runs under noise that a repair helps, because what the cause says is not all that went wrong?
    pub(super) fn needs_runs(&self) -> bool {
        self.needed
    }

    /// The other bugs for which runs with a repair's order failed.
    pub(super) fn into_others(self) -> Vec<Other> {
        self.others.into_answer()
    }

    /// Runs the program so many times, or as often as does not take long; and again under noise, where another bug made it fail or the
    /// repair has to be seen there.
    /// The runs end with the first one that fails for the recorded bug, as far as is known.
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
        let programs = Programs { target, settings: &self.settings, runs, usual: RUNS };
        let scheduled = |_| replay::run(target, script, &self.settings);
        let replays = match programs.taken(scheduled, &mut self.others)? {
            Runs::Done(replays, _) => replays,
            other => return Ok(other),
        };
        if (replays.failed_otherwise == 0 && !self.noisy) || replays.has_failed() {
            return Ok(Runs::Done(replays, None));
        }
        let usual = match (self.recorded_runs, self.needed && runs.is_none()) {
            (Some(known), _) => known,
            (None, true) => runs_to_fail(target, &self.settings)?,
            (None, false) => RUNS,
        };
        self.recorded_runs = self.needed.then_some(usual);
        let programs = Programs { usual, ..programs };
        let noisy = |run| under_noise(target, &self.settings, run);
        Ok(match programs.taken(noisy, &mut self.others)? {
            Runs::Done(noisy, _) => Runs::Done(replays, Some(noisy)),
            other => other,
        })
    }
}

/// How many runs under noise does the recorded program take to fail [`FAILURES`] times? Never fewer than [`RUNS`]; where it cannot
/// be run, or not long enough, as many as that.
fn runs_to_fail(target: &Target, settings: &Settings) -> Result<u32, ReplayError> {
    let settings = Settings { avoid: None, ..settings.clone() };
    let end = Instant::now() + ENOUGH;
    let (mut runs, mut failed) = (0, 0);
    while failed < FAILURES && Instant::now() < end {
        match under_noise(target, &settings, runs) {
            Ok(attempt) => failed += u32::from(attempt.manifest.failure.is_some()),
            Err(error @ ReplayError::Interrupted(_)) => return Err(error),
            Err(_) => break,
        }
        runs += 1;
    }
    tracing::debug!(runs, failed, "runs of the recorded program under noise");
    Ok(runs.max(RUNS))
}

/// The program with a repair's order, and how often it is to be run.
struct Programs<'a> {
    target: &'a Target,
    settings: &'a Settings,
    /// So often, if somebody said so; ...
    runs: Option<u32>,
    /// ... else so often, where that does not take long.
    usual: u32,
}

impl Programs<'_> {
    fn taken(
        &self,
        run: impl Fn(u32) -> Result<Attempt, ReplayError>,
        others: &mut Others,
    ) -> Result<Runs, ReplayError> {
        let mut replays = Replays::default();
        let end = Instant::now() + ENOUGH;
        for number in 0..self.runs.unwrap_or(self.usual) {
            if self.runs.is_none() && number >= LEAST && Instant::now() >= end {
                break;
            }
            let attempt = match run(number) {
                Ok(attempt) => attempt,
                Err(error @ ReplayError::Interrupted(_)) => return Err(error),
                // As many runs as there may be without a number being asked for say as much as ever.
                Err(ReplayError::OutOfTime) if self.runs.is_none() && number >= LEAST => break,
                Err(ReplayError::OutOfTime) => return Ok(Runs::OutOfTime),
                Err(error) => return Ok(Runs::Impossible(error.to_string())),
            };
            let passed = attempt.manifest.failure.is_none() && !attempt.report.deadlock;
            tracing::debug!(passed, report = ?attempt.report, "run with a rule");
            replays.runs += 1;
            replays.passed += u32::from(passed);
            replays.gave_up += u32::from(attempt.report.gave_up > 0);
            if passed {
                continue;
            }
            // A repair with which the program fails is not shown, however often it does not.
            if !others.made_fail(&attempt, (self.target, self.settings))? {
                break;
            }
            replays.failed_otherwise += 1;
        }
        Ok(Runs::Done(replays, None))
    }
}
