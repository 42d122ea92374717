//! From a schedule of events to the text that a run follows.

use super::Claim;
use model::{EventTrace, Points, Schedule};

/// The schedule's text.
///
/// # Errors
///
/// In words, when the schedule has no turns: the events have no places where a thread can be
/// stopped.
pub fn script(
    claim: Claim,
    trace: &EventTrace,
    points: &Points,
    schedule: &Schedule,
) -> Result<String, String> {
    let built = match claim {
        Claim::Fails => schedule::failing(trace, points, &schedule.order),
        Claim::Passes => schedule::passing(trace, points, &schedule.order),
    };
    for (before, after) in &built.coarse {
        tracing::info!(%before, %after, "no thread can be stopped between these events");
    }
    if built.script.turns.is_empty() {
        return Err("its events have no places where a thread can be stopped".to_owned());
    }
    Ok(built.script.to_string())
}
