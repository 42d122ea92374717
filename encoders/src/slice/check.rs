//! What a run did before a check of its own went wrong, as a trace of its own that fails there.
//!
//! A run that ends with a bad status has mostly found that out long before, and what its threads did behind that is of no
//! use. So the trace ends where the check has read what it needs, and that it goes as it did is the failure.

use super::{Slice, window};
use model::evaluate::Evaluation;
use model::{
    ConditionId, EventId, EventKind, EventTrace, Failure, FailureCondition, LockMode, ObjectId,
    Schedule,
};

/// The part of a schedule before a branch of its own, with so many events at most, and that order of its events;
/// `evaluation` is what the schedule does. The part fails where the branch goes as it did. `None` where nothing comes before it, and as of
/// [`window`].
#[must_use]
pub fn up_to_check(
    trace: &EventTrace,
    schedule: &Schedule,
    evaluation: &Evaluation,
    check: ConditionId,
    most: usize,
) -> Option<(Slice, Schedule)> {
    let condition = trace.conditions.get(check.index())?;
    let own = &trace.threads.get(condition.thread.index())?.events;
    let (before, behind) = own.split_at_checked(condition.position as usize)?;
    let last = before.last()?;
    let until = schedule.order.iter().position(|id| id == last)? + 1;
    let held = held(trace, before);
    // What its thread does next becomes the failure, and what gives back what the thread has.
    let made: &[EventId] = behind.get(..=held.len())?;
    let mut whole = trace.clone();
    let kinds = std::iter::once(EventKind::Failure).chain(
        held.iter().rev().map(|&(object, mode)| EventKind::Unlock {
            object,
            mode,
            synthetic: true,
        }),
    );
    for (id, kind) in made.iter().zip(kinds) {
        whole.events.get_mut(id.index())?.kind = kind;
    }
    let (kind, message) = match &trace.failure {
        Some(failure) => (failure.kind, failure.message.clone()),
        None => return None,
    };
    let value = FailureCondition::Value(condition.expr);
    whole.failure = Some(Failure { kind, event: *made.first()?, condition: value, message });
    whole.conditions.retain(|other| {
        other.thread != condition.thread
            || (other.position, other.id) < (condition.position, condition.id)
    });
    let mut order = schedule.order[..until].to_vec();
    order.extend(made);
    let until = order.len();
    order.extend(schedule.order[until - made.len()..].iter().filter(|id| !made.contains(id)));
    let whole_order = Schedule { order };
    let from = until.saturating_sub(most).max(1);
    let part = window(&whole, &whole_order, evaluation, from..until)?;
    let order = whole_order.order.iter().filter_map(|id| part.find(*id)).collect();
    Some((part, Schedule { order }))
}

/// The locks that a thread has after these of its events, in the order in which it took them.
fn held(trace: &EventTrace, events: &[EventId]) -> Vec<(ObjectId, LockMode)> {
    let mut held: Vec<(ObjectId, LockMode)> = Vec::new();
    for id in events {
        match trace.event(*id).kind {
            EventKind::Lock { object, mode } => held.push((object, mode)),
            EventKind::Unlock { object, .. } => {
                if let Some(place) = held.iter().rposition(|(other, _)| *other == object) {
                    held.remove(place);
                }
            }
            _ => {}
        }
    }
    held
}
