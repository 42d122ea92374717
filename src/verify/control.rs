//! The control of an answer: would the same questions have found the order in the recorded program?
//!
//! What a run's threads saw on their way can rule an order out that comes up on other ways only: a thread found something
//! done by another one, say. Runs of the recorded program that pass tell how far such answers go, since that program can have the
//! order.

use super::asked::{Question, asked_of};
use super::before::{Before, ENOUGH};
use super::runs::Runner;
use crate::fix::{FixError, Recorded};
use crate::replay::ReplayError;
use repair::Possible;
use std::time::Duration;

/// So many runs that pass are asked, and as many that rule the order out are enough where none failed.
const ASKED: u32 = 6;
/// No more runs are taken, with those that fail or have nothing to say.
const RUNS: u32 = 20;

/// What the recorded program's runs say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    /// The runs.
    pub(super) taken: Before,
    /// In how many of those that passed the order could not come up, by the answer.
    pub(super) ruled_out: u32,
    /// In how many it could.
    pub(super) came_up: u32,
}

/// What the answer rests on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// So many runs of the new program passed under no schedule.
    pub(super) passed: u32,
    /// So many rule the order out.
    pub(super) ruled_out: u32,
}

impl Control {
    /// Is the answer worth little, since runs of the recorded program give it as well? Not where that program fails so often, or
    /// gives it so rarely, that the new one's runs tell them apart.
    pub(super) fn is_against(self, answer: Answer) -> bool {
        self.ruled_out > 0 && !self.tells_apart(answer)
    }

    /// Does it leave open what the answer is worth?
    pub(super) fn is_silent(self, answer: Answer) -> bool {
        self.ruled_out + self.came_up == 0 && self.taken.odds(answer.passed) <= ENOUGH
    }

    /// Would the new program's runs hardly ever be as they are if the patch changed nothing?
    fn tells_apart(self, answer: Answer) -> bool {
        let share = f64::from(self.ruled_out) / f64::from((self.ruled_out + self.came_up).max(1));
        let as_many = i32::try_from(answer.ruled_out).unwrap_or(i32::MAX);
        self.taken.odds(answer.passed) > ENOUGH * share.powi(as_many)
    }

    fn is_over(self, answer: Answer) -> bool {
        let Self { taken, ruled_out, came_up } = self;
        match ruled_out {
            0 => came_up > 0 || taken.runs >= RUNS,
            _ if taken.failed == 0 && ruled_out + came_up >= ASKED => true,
            _ => taken.runs >= RUNS || self.tells_apart(answer),
        }
    }
}

/// Runs the recorded program under noise and asks the runs that pass, each for `time` at most, until one says that the order can
/// come up, or enough is known. Nothing where it cannot be run.
///
/// # Errors
/// When a run is interrupted.
pub(super) fn control(
    recorded: &Recorded,
    bug: &repair::Bug<'_>,
    (runner, answer): (&Runner, Answer),
    time: Duration,
    budget: &dyn Fn() -> bool,
) -> Result<Control, FixError> {
    let mut control = Control::default();
    let old = match Runner::of_recorded(recorded, runner) {
        Ok(old) => old,
        Err(error) => {
            tracing::info!(%error, "the recorded program is not run");
            return Ok(control);
        }
    };
    let mut asked = 0;
    while !control.is_over(answer) && budget() {
        let taken = match old.run(runner.free_kind(control.taken.runs), "") {
            Ok(taken) => taken,
            Err(error @ FixError::Replay(ReplayError::Interrupted(_))) => return Err(error),
            Err(error) => {
                tracing::info!(%error, "the recorded program is not run");
                break;
            }
        };
        control.taken.runs += 1;
        if taken.failed {
            control.taken.failed += 1;
            continue;
        }
        if asked == ASKED {
            continue;
        }
        asked += 1;
        match asked_of(bug, (&taken, Question::Whether), time, budget)? {
            Ok((Possible::No(how), _)) => {
                tracing::debug!(%how, "a run of the recorded program rules the order out");
                control.ruled_out += 1;
            }
            Ok((Possible::Yes { .. } | Possible::Between(_), _)) => control.came_up += 1,
            Ok((Possible::Untouched(_) | Possible::Unknown(_), _)) | Err(_) => {}
        }
    }
    tracing::debug!(?control, "the recorded program, asked the same");
    Ok(control)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Before, Control};

    /// Runs of the recorded program that rule the order out count, unless that program fails where the new one does not.
    #[test]
    fn an_answer_that_the_recorded_program_gives_as_well_is_worth_little() {
        let is_against = |(runs, failed), (ruled_out, came_up), passed| {
            let control = Control { taken: Before { runs, failed }, ruled_out, came_up };
            control.is_against(Answer { passed, ruled_out: 3 })
        };
        assert!(is_against((6, 0), (6, 0), 20));
        assert!(!is_against((1, 0), (0, 1), 20));
        assert!(!is_against((20, 20), (0, 0), 20));
        // Nor one that most of its runs give, unless it fails often.
        assert!(is_against((7, 3), (3, 1), 2));
        assert!(is_against((7, 0), (5, 1), 20));
        assert!(is_against((12, 9), (3, 0), 2));
        assert!(!is_against((12, 9), (3, 0), 20));
        // It has nothing to say of it at all, as where there was no time for it.
        assert!(!is_against((20, 0), (0, 0), 20));
        let answer = Answer { passed: 20, ruled_out: 3 };
        assert!(Control::default().is_silent(answer));
        assert!(!Control { came_up: 1, ..Control::default() }.is_silent(answer));
    }
}
