//! From a schedule of events to the text that a run follows.

use super::across::turns;
use super::{Claim, Original};
use model::{EventTrace, Points, Schedule, Thread};
use schedule::{Script, Target, Turn};
use symex::Input;

/// Lets the program get back what it got in the recorded run and cannot compute anew: process ids,
/// times and random numbers.
#[must_use]
pub fn with_inputs(mut script: Script, inputs: &[Input]) -> Script {
    let input = |input: &Input| schedule::Input {
        thread: input.thread.clone(),
        function: input.function.clone(),
        words: input.words.clone(),
    };
    script.inputs = inputs.iter().map(input).collect();
    script
}

/// The recorded run's own schedule, as text, without any solver: the order in which its threads had
/// their turns is known when a scheduler ran them one at a time (`record --noise=pct`).
///
/// # Errors
///
/// In words, when the run's threads ran freely, or its events cannot be put in order.
pub fn observed(original: &Original) -> Result<String, String> {
    let execution = original.execution().ok_or("its trace cannot be executed")?;
    let (trace, points) = (&execution.trace, &execution.points);
    let records = turns(original.directory(), trace)?;
    let order = schedule::observed(trace, points, &records).map_err(|error| error.to_string())?;
    script(Claim::Fails, trace, points, &execution.inputs, &order)
}

/// The schedule's text, with the inputs of the run that the events are from.
///
/// # Errors
///
/// In words, when the schedule has no turns: the events have no places where a thread can be
/// stopped.
pub fn script(
    claim: Claim,
    trace: &EventTrace,
    points: &Points,
    inputs: &[Input],
    schedule: &Schedule,
) -> Result<String, String> {
    script_and_then(claim, trace, points, inputs, schedule, &[])
}

/// The same, and behind it these threads go on to their ends, one after the other.
///
/// # Errors
///
/// As [`script`].
pub fn script_and_then(
    claim: Claim,
    trace: &EventTrace,
    points: &Points,
    inputs: &[Input],
    schedule: &Schedule,
    then: &[&Thread],
) -> Result<String, String> {
    let mut built = match claim {
        Claim::Fails => schedule::failing(trace, points, &schedule.order),
        Claim::Passes => schedule::passing(trace, points, &schedule.order),
    };
    for (before, after) in &built.coarse {
        tracing::debug!(%before, %after, "no thread can be stopped between these events");
    }
    if built.script.turns.is_empty() {
        return Err("its events have no places where a thread can be stopped".to_owned());
    }
    let to_the_end =
        |thread: &&Thread| Turn { thread: thread.name.clone(), target: Target::End, comment: None };
    built.script.turns.extend(then.iter().map(to_the_end));
    Ok(with_inputs(built.script, inputs).to_string())
}
