//! Where the order of the cause can still come up in the new program: the program is made to have it.

use super::runs::{Kind, Runner};
use super::{Judge, Verdict, Verification, others};
use crate::fix::{FixError, Recorded};
use model::EventId;
use repair::Way;
use symex::Execution;

/// So often a schedule is tried that is not followed: on a busy machine a thread may come too late.
const TRIES: u32 = 2;
/// So many runs under one schedule may fail for another bug of the recorded program. Behind the order they go on as they like.
const FAILURES: u32 = 5;

/// What became of the runs.
pub(super) enum Forced {
    /// A run failed, which the verdict says.
    Failed,
    /// Each schedule was followed to where the order is complete, and no run failed.
    Passed,
    /// A schedule could not be followed, or there are none.
    Not(String),
}

/// Makes the new program have the order, by schedules of a run of its own, and lets it go on behind that as it likes. A run that fails
/// for another bug, which the recorded program has as well, says nothing of the order, and is taken again.
///
/// # Errors
/// When a program cannot be run.
pub(super) fn force(
    (recorded, execution): (&Recorded, &Execution),
    ways: &[Way],
    (judge, runner): (Judge<'_>, &Runner),
    found: &mut Verification,
    budget: &dyn Fn() -> bool,
) -> Result<Forced, FixError> {
    for way in ways {
        let (mut followed, mut failures) = (false, 0);
        for script in way.orders.iter().filter_map(|order| script(execution, order)) {
            let (mut tries, mut failed) = (0, 0);
            while !followed && tries < TRIES && failed < FAILURES {
                if !budget() {
                    return Ok(Forced::Not("the time ended".to_owned()));
                }
                tracing::debug!(way.place, script, "the program is made to have the order");
                let taken = runner.run(Kind::Forced, &script)?;
                found.forced_runs += 1;
                if !taken.failed {
                    followed = taken.followed;
                    tries += 1;
                    continue;
                }
                failed += 1;
                let is_known = judge.failed(&taken, found)?
                    || (found.verdict != Verdict::StillFails
                        && others::are_known(recorded, (judge, runner), found, budget)?);
                if !is_known {
                    return Ok(Forced::Failed);
                }
            }
            failures += failed;
        }
        if !followed {
            let why = match failures {
                0 => "the program could not be made to have it",
                _ => "runs that were made to have it failed for another bug",
            };
            return Ok(Forced::Not(format!("{why} ({})", way.place)));
        }
    }
    match ways.is_empty() {
        true => Ok(Forced::Not("no schedule of it is known".to_owned())),
        false => Ok(Forced::Passed),
    }
}

/// The schedule of these events as text; none where no thread can be stopped at their places.
fn script(execution: &Execution, order: &[EventId]) -> Option<String> {
    let last = *order.last()?;
    let built = schedule::prefix(&execution.trace, &execution.points, order, last, Some(last));
    let script = crate::replay::with_inputs(built.script, &execution.inputs);
    (!script.turns.is_empty()).then(|| script.to_string())
}
