//! The recorded program beside the new one, where no run failed and more is not known: how often does it fail in such runs?

use super::runs::{Kind, Runner};
use super::{Judge, Verification};
use crate::fix::{FixError, Recorded};
use crate::replay::ReplayError;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// No more runs are taken where a patch that changes nothing would pass in fewer than one of so many.
pub(super) const ENOUGH: f64 = 1000.0;
/// Fewer than one of so many is told as more than chance.
const CHANCE: f64 = 20.0;
/// So long may it take where the new program's runs took less.
const LEAST: Duration = Duration::from_secs(20);

/// Runs of the recorded program, taken as those of the new one that were under no schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// How many there were.
    pub runs: u32,
    /// How many of them failed, in whatever way.
    pub failed: u32,
}

/// Runs the recorded program in the ways in which the new one was, whose runs took so long. Where it fails rarely, more runs of
/// both are taken while there is time. What is found goes into `found`; nothing where the recorded program is gone or
/// cannot be run.
///
/// # Errors
/// When the new program cannot be run.
pub(super) fn beside(
    recorded: &Recorded,
    (judge, runner): (Judge<'_>, &Runner),
    found: &mut Verification,
    took: Duration,
    budget: &dyn Fn() -> bool,
) -> Result<(), FixError> {
    let Some(old) = Runner::of_recorded(recorded, runner)
        .inspect_err(|error| tracing::info!(%error, "the recorded program is not run"))
        .ok()
    else {
        return Ok(());
    };
    let until = Instant::now() + took.max(LEAST);
    let mut before = found.recorded_program.unwrap_or_default();
    while budget() && Instant::now() < until {
        let taken = match old.run(runner.free_kind(before.runs), "") {
            Ok(taken) => taken,
            Err(error @ FixError::Replay(ReplayError::Interrupted(_))) => return Err(error),
            Err(error) => {
                tracing::info!(%error, "the recorded program is not run");
                return Ok(());
            }
        };
        before.runs += 1;
        before.failed += u32::from(taken.failed);
        found.recorded_program = Some(before);
        let passed = found.unscheduled();
        if before.odds(passed) > ENOUGH {
            break;
        }
        if before.runs < passed {
            continue;
        }
        let taken = runner.run(runner.free_kind(passed), "")?;
        match taken.kind {
            Kind::Plain => found.plain_runs += 1,
            _ => found.noisy_runs += 1,
        }
        if taken.failed {
            found.recorded_program = None;
            return judge.failed(&taken, found).map(drop);
        }
    }
    Ok(())
}

impl Before {
    /// If the patch changed nothing, and all runs failed equally often: once in how many times would none of these of the new
    /// program be among those that failed? (Fisher's exact test, one-sided.)
    pub(super) fn odds(self, passed: u32) -> f64 {
        let factor = |one: u32| {
            let left = f64::from(self.runs.saturating_sub(one));
            (left + f64::from(passed)) / left.max(1.0)
        };
        (0..self.failed).map(factor).product()
    }

    /// A line about it, where so many runs of the new program passed.
    pub(super) fn to_text(self, passed: u32) -> String {
        let Self { runs, failed } = self;
        let odds = self.odds(passed);
        let more = passed.saturating_mul(5).max(50);
        let says = match failed {
            0 => format!(
                "so {passed} of the new one without a failure say little (`--noisy {more}` takes more)"
            ),
            _ if odds < CHANCE => format!(
                "{passed} of the new one without a failure may be chance, as it would be with a patch that changes nothing \
                 once in {odds:.0} times (`--noisy {more}` takes more)"
            ),
            _ => format!(
                "a patch that changes nothing would have {passed} without a failure once in {odds:.0} times"
            ),
        };
        format!("  the recorded program in such runs: {failed} of {runs} failed; {says}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Before;

    /// Of `n` runs that all fail and `m` that pass, the one order of `n + m` over `n`.
    #[test]
    fn runs_without_failure_say_as_much_as_the_others_fail() {
        assert!((Before { runs: 3, failed: 3 }.odds(20) - 1771.0).abs() < 1e-6);
        assert!((Before { runs: 20, failed: 0 }.odds(20) - 1.0).abs() < 1e-9);
        // One failure of 20 is among the other 20 as often as not.
        assert!((Before { runs: 20, failed: 1 }.odds(20) - 2.0).abs() < 1e-9);
        assert!(Before { runs: 20, failed: 1 }.to_text(20).contains("once in 2 times"));
        assert!(Before { runs: 20, failed: 0 }.to_text(20).contains("say little"));
        assert!(Before { runs: 3, failed: 3 }.to_text(20).ends_with("once in 1771 times\n"));
    }
}
