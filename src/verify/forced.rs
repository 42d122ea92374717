//! Where the order of the cause can still come up in the new program: the program is made to have it.

use super::runs::{Kind, Runner};
use super::{Judge, Verification};
use crate::fix::FixError;
use model::EventId;
use repair::Way;
use symex::Execution;

/// What became of the runs.
pub(super) enum Forced {
    /// A run failed, which the verdict says.
    Failed,
    /// Each schedule was followed to where the order is complete, and no run failed.
    Passed,
    /// A schedule could not be followed, or there are none.
    Not(String),
}

/// Makes the new program have the order, by schedules of a run of its own, and lets it go on behind that as it likes.
///
/// # Errors
/// When the program cannot be run.
pub(super) fn force(
    (runner, execution): (&Runner, &Execution),
    ways: &[Way],
    judge: Judge<'_>,
    found: &mut Verification,
    budget: &dyn Fn() -> bool,
) -> Result<Forced, FixError> {
    for way in ways {
        let scripts = way.orders.iter().filter_map(|order| script(execution, order));
        // On a busy machine a thread may come too late.
        let scripts = scripts.flat_map(|script| [script.clone(), script]);
        let mut followed = false;
        for script in scripts {
            if followed {
                break;
            }
            if !budget() {
                return Ok(Forced::Not("the time ended".to_owned()));
            }
            tracing::debug!(way.place, script, "the program is made to have the order");
            let taken = runner.run(Kind::Forced, &script)?;
            found.forced_runs += 1;
            followed = taken.followed;
            if taken.failed {
                judge.failed(&taken, found)?;
                return Ok(Forced::Failed);
            }
        }
        if !followed {
            return Ok(Forced::Not(format!(
                "the program could not be made to have it ({})",
                way.place
            )));
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
