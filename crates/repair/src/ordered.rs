//! A run that passes, with an order of its events as what makes it fail.

use crate::edit::Edit;
use model::{EventId, EventKind, EventTrace, FailureCondition};

/// A run that passes, and the order in which two of its events must not come.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// The run; it counts as failing when `then` comes before `first`.
    pub trace: EventTrace,
    /// What has to come first.
    pub first: EventId,
    /// What needs it.
    pub then: EventId,
}

/// Where a failing run ended before the event that came too late, nothing can be shown on it. A run that
/// passes has the event: along its paths the program may not have the order of the cause.
///
/// `None` when the trace has no such events.
#[must_use]
pub fn ordered(passing: &EventTrace, first: EventId, then: EventId) -> Option<Ordered> {
    passing.events.get(first.index()).and(passing.events.get(then.index()))?;
    // The initial thread ends the run; nobody waits for its end.
    let initial = passing.threads.first()?.events.iter();
    let end = *initial.rev().find(|id| passing.event(**id).kind == EventKind::Exit)?;
    let mut edit = Edit::new(passing);
    edit.fails_at(end, FailureCondition::Before(then, first));
    let edited = edit.finish()?;
    let image = |id: EventId| {
        let at = edited.origin.iter().position(|origin| *origin == Some(id));
        at.map(EventId::from_index)
    };
    let (first, then) = (image(first)?, image(then)?);
    Some(Ordered { trace: edited.trace, first, then })
}
