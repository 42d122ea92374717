//! Threads that hold a lock where they meet, but not the same one.

use super::CauseEvent;
use super::sections;
use super::story::{Pair, Story};
use super::words::quoted;
use model::{EventId, EventKind, ObjectId};

/// Did the program ask for the lock? Rust's harness of tests has one around each test, and a future of the C++ library's one
/// around the whole function that it runs.
pub(super) fn is_own(story: &Story<'_>, lock: EventId) -> bool {
    let event = story.event(lock);
    !event.is_affair_of_library() && !event.site().is_in_library()
}

/// The locks that two conflicting accesses of different threads hold, of each the one that was taken last; `None` where
/// they conflict nowhere, one of them holds none, or both hold one of them.
fn differ(story: &Story<'_>, one: EventId, other: EventId) -> Option<[EventId; 2]> {
    let held = [one, other].map(|id| {
        let mut held = sections::held(story, id);
        held.retain(|(_, lock)| is_own(story, *lock));
        held
    });
    let [mine, its] = &held;
    let common = mine.iter().any(|(lock, _)| its.iter().any(|(other, _)| lock == other));
    let [(_, mine), (_, its)] = [mine.last()?, its.last()?];
    (!common).then_some([*mine, *its])
}

/// Do both access memory that one of them writes, in different threads and by steps that need a lock?
fn conflict(story: &Story<'_>, one: EventId, other: EventId) -> bool {
    let plain = |id: EventId| {
        let event = story.event(id);
        matches!(event.kind, EventKind::Read { .. } | EventKind::Write { .. })
            && !event.is_affair_of_library()
            && !event.is_atomic_operation()
    };
    story.event(one).thread != story.event(other).thread
        && plain(one)
        && plain(other)
        && story
            .common_cells(one, other)
            .into_iter()
            .any(|cell| story.access(one, cell).writes || story.access(other, cell).writes)
}

/// Do the two events of a pair access the same memory under different locks? Then nothing else has to be looked for.
pub(super) fn are_different(story: &Story<'_>, pair: Pair) -> bool {
    let Pair::Reversed(order) = pair else { return false };
    conflict(story, order.before, order.after) && differ(story, order.before, order.after).is_some()
}

/// `, where t0.1 holds `a` and t0.2 another lock, `b``: what the threads of a cause hold where they meet, as the end of its
/// sentence; `None` where a lock keeps any two of its accesses apart, or a thread holds none. The sentence
/// may have `named` one of them, by its acquisition.
pub(super) fn told(
    story: &Story<'_>,
    named: Option<EventId>,
    events: &[CauseEvent],
) -> Option<String> {
    let ids: Vec<EventId> = events
        .iter()
        .filter_map(|event| match event {
            CauseEvent::Failing(id) => Some(*id),
            CauseEvent::Passing(_) => None,
        })
        .collect();
    let pairs = ids.iter().enumerate().flat_map(|(index, one)| {
        let others = ids[index + 1..].iter();
        others.map(|other| (*one, *other))
    });
    let pairs = pairs.filter(|(one, other)| conflict(story, *one, *other));
    let differ: Option<Vec<[EventId; 2]>> =
        pairs.map(|(one, other)| differ(story, one, other)).collect();
    let [mine, its] = *differ?.first()?;
    let [my_lock, its_lock] = [mine, its].map(|lock| quoted(&story.subject(lock)));
    let object = |lock: EventId| -> Option<ObjectId> { story.event(lock).kind.object() };
    let is_named = |lock: EventId| named.is_some_and(|named| object(named) == object(lock));
    let [me, it] = [mine, its].map(|lock| story.thread(lock));
    Some(if my_lock == its_lock {
        format!(", where both hold a lock called {my_lock}, but not the same one")
    } else if is_named(its) {
        format!(", while {me} holds another lock, {my_lock}")
    } else if is_named(mine) {
        format!(", while {it} holds another lock, {its_lock}")
    } else {
        format!(", where {me} holds {my_lock} and {it} another lock, {its_lock}")
    })
}
