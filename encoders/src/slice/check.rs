//! What a run did before a check of its own went wrong, as a trace of its own that fails there.
//!
//! A run that ends with a bad status has mostly found that out long before, and what its threads did behind that is of no
//! use. So the trace ends where the check has read what it needs, and that it goes as it did is the failure.

use super::{Slice, window};
use model::evaluate::Evaluation;
use model::{
    ConditionId, EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId,
    PathCondition, ReadRef, Schedule, ThreadId, WriteSource,
};
use rustc_hash::FxHashSet;

/// So many events before a check are looked at, and where they do not explain it, so many.
pub const BEFORE_CHECK: [usize; 2] = [600, 3_000];
/// So many events of other threads behind the check are part of what comes before it.
const BEHIND: usize = 200;

/// The part of a schedule before a branch of its own, so many events at most and what the other threads do next without its
/// thread, and that order of its events;
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
    let (mut whole, made) = made_to_fail(trace, condition)?;
    whole.conditions.retain(|branch| !is_behind(condition, branch));
    let own = &trace.threads.get(condition.thread.index())?.events;
    let last = own.get(..condition.position as usize)?.last()?;
    let until = schedule.order.iter().position(|id| id == last)? + 1;
    let mut order = schedule.order[..until].to_vec();
    order.extend(&made);
    let behind: Vec<EventId> =
        schedule.order[until..].iter().copied().filter(|id| !made.contains(id)).collect();
    let without = without(trace, evaluation, condition.thread, &behind);
    let from = order.len().saturating_sub(most).max(1);
    order.extend(&without);
    let until = order.len();
    let without: FxHashSet<EventId> = without.into_iter().collect();
    order.extend(behind.iter().filter(|id| !without.contains(id)));
    let whole_order = Schedule { order };
    let part = window(&whole, &whole_order, evaluation, from..until)?;
    let order = whole_order.order.iter().filter_map(|id| part.find(*id)).collect();
    Some((part, Schedule { order }))
}

/// The run as one that fails at a branch of its own where that goes as it did: its thread does nothing behind it, and what
/// it does next in the run is the failure. All else has its identifiers; the thread's later branches are the check once more.
/// `None` where the run has no failure, and no event
/// behind the branch.
#[must_use]
pub fn failing_at_check(trace: &EventTrace, check: ConditionId) -> Option<EventTrace> {
    let check = trace.conditions.get(check.index())?;
    let (mut whole, _) = made_to_fail(trace, check)?;
    for branch in whole.conditions.iter_mut().filter(|branch| is_behind(check, branch)) {
        *branch = PathCondition { id: branch.id, ..check.clone() };
    }
    Some(whole)
}

/// See [`failing_at_check`]. The thread's next events are the failure and what gives back the locks that it has, too.
fn made_to_fail(
    trace: &EventTrace,
    condition: &PathCondition,
) -> Option<(EventTrace, Vec<EventId>)> {
    let own = &trace.threads.get(condition.thread.index())?.events;
    let (before, behind) = own.split_at_checked(condition.position as usize)?;
    let held = held(trace, before);
    let made = behind.get(..=held.len())?.to_vec();
    let mut whole = trace.clone();
    let kinds = std::iter::once(EventKind::Failure).chain(
        held.iter().rev().map(|&(object, mode)| EventKind::Unlock {
            object,
            mode,
            synthetic: true,
        }),
    );
    for (id, kind) in made.iter().zip(kinds) {
        let event = whole.events.get_mut(id.index())?;
        event.kind = kind;
        event.stack = vec![condition.site.clone()].into();
    }
    let thread = whole.threads.get_mut(condition.thread.index())?;
    thread.events.truncate(before.len() + made.len());
    let failure = whole.failure.as_mut()?;
    failure.event = *made.first()?;
    failure.condition = FailureCondition::Value(condition.expr);
    Some((whole, made))
}

/// Does the thread of a check come to the branch behind it, or is it the check itself?
fn is_behind(check: &PathCondition, branch: &PathCondition) -> bool {
    branch.thread == check.thread && (branch.position, branch.id) >= (check.position, check.id)
}

/// Of what comes behind a place of a schedule, what the other threads do there without anything that this one does, in their
/// order: they may have to come first for the check to go the other way. Who waits for somebody goes no further here.
fn without(
    trace: &EventTrace,
    evaluation: &Evaluation,
    thread: ThreadId,
    behind: &[EventId],
) -> Vec<EventId> {
    let mut stopped = FxHashSet::from_iter([thread]);
    let (mut left_out, mut locks) = (FxHashSet::default(), FxHashSet::default());
    let mut found = Vec::new();
    for id in behind {
        let event = trace.event(*id);
        let goes_on = match event.kind {
            EventKind::Read { .. } | EventKind::ReadModifyWrite { .. } => {
                let parts = 0..u32::try_from(event.kind.reads().len()).unwrap_or(0);
                let mut reads = parts.map(|part| ReadRef { event: *id, part });
                reads.all(|read| match evaluation.reads_from.get(&read) {
                    Some(WriteSource::Write(source)) => !left_out.contains(source),
                    Some(WriteSource::Init) | None => true,
                })
            }
            EventKind::Lock { object, .. } => !locks.contains(&object),
            EventKind::Write { .. } | EventKind::Unlock { .. } | EventKind::Fence => true,
            _ => false,
        };
        if goes_on && found.len() < BEHIND && !stopped.contains(&event.thread) {
            found.push(*id);
            continue;
        }
        // Who goes no further keeps the locks that it has. The check's thread gives them back.
        if stopped.insert(event.thread) {
            let own = &trace.threads[event.thread.index()].events;
            let before = own.get(..event.index as usize).unwrap_or_default();
            locks.extend(held(trace, before).into_iter().map(|(object, _)| object));
        }
        left_out.insert(*id);
    }
    found
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
