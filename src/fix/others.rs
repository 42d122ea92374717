//! Other bugs of the program: a run with a repair's order that fails for another cause says nothing against the repair where
//! the recorded program fails for that one as well.

use super::answer::Other;
use crate::compare::{Traits, place};
use crate::pipeline::{self, ReplayOptions, SolveOptions};
use crate::record::{Noise, draw_seed};
use crate::replay::{self, Attempt, ReplayError, Settings, Target};
use render::Solution;
use render::solution::Cause;
use std::cmp::Reverse;
use std::time::{Duration, Instant};
use trace_format::Manifest;

/// So many runs of the recorded program are taken to see whether it fails for another cause, and more where they are over
/// before that time.
pub(crate) const RECORDED_RUNS: u32 = 40;
pub(crate) const RECORDED_LEAST: Duration = Duration::from_secs(20);

/// Tells runs that fail for another bug from those that fail for the recorded one.
pub(super) struct Others {
    /// What the recorded failure is told as.
    recorded: Traits,
    manifest: Manifest,
    /// How long a failing run may be asked for its cause, and until when.
    time: Duration,
    until: Option<Instant>,
    /// How many runs of the recorded program were taken, how long that took, and what those that failed are told as.
    runs: u32,
    took: Duration,
    seen: Vec<Traits>,
    /// What runs of both failed for.
    known: Vec<(Traits, Other)>,
    /// As what failing runs were told, by their logs alone and with runs of the program.
    told: Vec<(Traits, Told)>,
}

/// What a run failed for.
#[derive(Clone)]
struct Told {
    traits: Traits,
    cause: Cause,
}

/// The program under this many runs of noise, one after the other.
pub(super) fn under_noise(
    target: &Target,
    settings: &Settings,
    run: u32,
) -> Result<Attempt, ReplayError> {
    // Both kinds have their turns.
    let seed = draw_seed() & !1 | u64::from(run & 1);
    let noise = Noise::Varied.of_run(seed, None).variable().into_string().ok();
    let settings = Settings { noise, ends_when_stuck: true, ..settings.clone() };
    replay::run(target, "", &settings)
}

impl Others {
    pub(super) fn new(
        solution: &Solution,
        manifest: Manifest,
        (time, until): (Duration, Option<Instant>),
    ) -> Self {
        Self {
            recorded: Traits::of(solution),
            manifest,
            time,
            until,
            runs: 0,
            took: Duration::ZERO,
            seen: Vec::new(),
            known: Vec::new(),
            told: Vec::new(),
        }
    }

    /// What runs with repairs failed for, first what most of them did.
    pub(super) fn into_answer(self) -> Vec<Other> {
        let mut others: Vec<Other> = self.known.into_iter().map(|(_, other)| other).collect();
        others.sort_by_key(|other| Reverse(other.runs));
        others
    }

    /// Did a run with a repair's order fail for another bug? So it is where it failed at another place, its cause is known and apart
    /// from the recorded one, and the recorded program fails for that one with no repair's order: else it may be the repair's doing.
    ///
    /// # Errors
    /// When the user interrupts.
    pub(super) fn made_fail(
        &mut self,
        attempt: &Attempt,
        (target, settings): (&Target, &Settings),
    ) -> Result<bool, ReplayError> {
        let Some(Told { traits, cause }) = self.told(attempt) else { return Ok(false) };
        tracing::debug!(?traits, recorded = ?self.recorded, "a run with a repair's order failed");
        if !is_another(&traits, &self.recorded) {
            return Ok(false);
        }
        let known = self.known.iter_mut().find(|(known, _)| known.may_be_one_with(&traits));
        if let Some((_, other)) = known {
            other.runs += 1;
            return Ok(true);
        }
        let recorded_runs = self.look_for(&traits, (target, settings))?;
        if recorded_runs == 0 {
            return Ok(false);
        }
        let other = Other {
            cause: cause.sentence,
            fingerprint: cause.fingerprint,
            failure: traits.failure.clone(),
            runs: 1,
            recorded_runs,
        };
        self.known.push((traits, other));
        Ok(true)
    }

    /// The cause of a run that failed; none where it is not known, or the failure is the recorded one by its message. The log alone may
    /// tell that of the other bug, where both led the run to its paths: so the program is run for it, for runs of which the log tells
    /// the same once.
    fn told(&mut self, attempt: &Attempt) -> Option<Told> {
        let message = |manifest: &Manifest| {
            let failure = manifest.failure.as_ref().filter(|failure| !failure.message.is_empty());
            failure.map(|failure| (failure.kind, failure.message.clone()))
        };
        let known = message(&self.manifest);
        if known.is_some() && message(&attempt.manifest) == known {
            return None;
        }
        let by_log = self.solved(attempt, None)?;
        if let Some((_, told)) = self.told.iter().find(|(traits, _)| *traits == by_log.traits) {
            return Some(told.clone());
        }
        let by_runs = self.solved(attempt, Some(ReplayOptions::default()));
        let told = by_runs.unwrap_or_else(|| by_log.clone());
        self.told.push((by_log.traits, told.clone()));
        Some(told)
    }

    fn solved(&self, attempt: &Attempt, replay: Option<ReplayOptions>) -> Option<Told> {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let time = left.map_or(self.time, |left| left.min(self.time));
        let options = SolveOptions::for_cause(time, replay);
        let answer = pipeline::solve(&attempt.directory, &options);
        let answer =
            answer.inspect_err(|error| tracing::info!(%error, "a failing run is not solved"));
        let solution = answer.ok()?.solution;
        Some(Told { traits: Traits::of(&solution), cause: solution.cause? })
    }

    /// How many runs of the recorded program failed for this cause? It is run until one does.
    fn look_for(
        &mut self,
        traits: &Traits,
        (target, settings): (&Target, &Settings),
    ) -> Result<u32, ReplayError> {
        let recorded = self.recorded.clone();
        let is_it = |seen: &Traits| seen.are_apart(&recorded) && seen.may_be_one_with(traits);
        let mut count = self.seen.iter().filter(|seen| is_it(seen)).count();
        let settings = Settings { avoid: None, ..settings.clone() };
        while count == 0 && (self.runs < RECORDED_RUNS || self.took < RECORDED_LEAST) {
            let began = Instant::now();
            let attempt = match under_noise(target, &settings, self.runs) {
                Ok(attempt) => attempt,
                Err(error @ ReplayError::Interrupted(_)) => return Err(error),
                Err(error) => {
                    tracing::info!(%error, "the recorded program is not run");
                    break;
                }
            };
            self.runs += 1;
            if attempt.manifest.failure.is_some()
                && let Some(seen) = self.told(&attempt)
            {
                count += usize::from(is_it(&seen.traits));
                self.seen.push(seen.traits);
            }
            self.took += began.elapsed();
        }
        tracing::debug!(count, runs = self.runs, "runs of the recorded program");
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

/// Is it known that a run failed elsewhere, and for another bug, than the recorded one?
fn is_another(traits: &Traits, recorded: &Traits) -> bool {
    place(&traits.failure) != place(&recorded.failure) && traits.are_apart(recorded)
}

#[cfg(test)]
mod tests {
    use super::{Traits, is_another};

    fn traits(print: &str, variable: &str, failure: &str) -> Traits {
        Traits {
            fingerprint: (!print.is_empty()).then(|| print.to_owned()),
            variables: vec![variable.to_owned()],
            failure: failure.to_owned(),
            ..Traits::default()
        }
    }

    #[test]
    fn a_failure_at_the_recorded_place_is_no_other_bugs() {
        let recorded = traits("a", "pages", "use-after-free at a.c:7");
        assert!(is_another(&traits("b", "tray", "assertion at a.c:9"), &recorded));
        assert!(!is_another(&traits("b", "tray", "segfault at a.c:7"), &recorded));
        assert!(!is_another(&traits("b", "pages", "assertion at a.c:9"), &recorded));
        assert!(!is_another(&traits("", "", "assertion at a.c:9"), &recorded));
        let hang = |print: &str, variable: &str| traits(print, variable, "hang");
        assert!(!is_another(&hang("b", "tray"), &hang("a", "pages")));
    }
}
