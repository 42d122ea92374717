//! What critical sections have in common.

use super::story::Story;
use crate::failing::enclosing_locks;
use model::{CellId, EventId, EventKind, ObjectId};
use solver::Order;

/// No more pairs than this stand for two critical sections.
const PAIRS: usize = 24;

/// For a pair of events of two critical sections of one lock: the pairs of accesses inside of them
/// that come in the same order, the second of which sees, overwrites or is overwritten by the
/// first, and that the passing run has the other way round. Those in which a read returns something
/// else when it passes come first, else they are in the order of the sections' events.
pub(super) fn accesses(story: &Story<'_>, order: Order) -> Vec<Order> {
    let Some(lock) = common_lock(story, order) else { return Vec::new() };
    let (first, second) = (section(story, order.before, lock), section(story, order.after, lock));
    let mut pairs: Vec<Order> = Vec::new();
    for &before in &first {
        for &after in &second {
            let reversed = story.before(before, after)
                && story.before_when_passing(after, before) != Some(false)
                && !story.common_cells(before, after).is_empty();
            if reversed {
                pairs.push(Order { before, after });
            }
        }
    }
    let telling = |order: &Order| {
        [order.before, order.after]
            .iter()
            .any(|id| !story.event(*id).kind.reads().is_empty() && story.reads_otherwise(*id))
    };
    pairs.sort_by_key(|order| !telling(order));
    pairs.truncate(PAIRS);
    pairs
}

/// Where the thread took a lock that it holds at an event.
pub(super) fn taken(story: &Story<'_>, id: EventId, lock: ObjectId) -> Option<EventId> {
    held(story, id).into_iter().find(|(other, _)| *other == lock).map(|(_, taken)| taken)
}

/// The lock that both events take or give back, when they do.
fn common_lock(story: &Story<'_>, order: Order) -> Option<ObjectId> {
    let lock = |id: EventId| match story.event(id).kind {
        EventKind::Lock { object, .. } | EventKind::Unlock { object, .. } => Some(object),
        _ => None,
    };
    lock(order.before).filter(|object| lock(order.after) == Some(*object))
}

/// The accesses between the event, which takes or gives back the lock, and the other end of its
/// critical section.
fn section(story: &Story<'_>, end: EventId, lock: ObjectId) -> Vec<EventId> {
    let events = &story.trace().threads[story.event(end).thread.index()].events;
    let Some(place) = events.iter().position(|id| *id == end) else { return Vec::new() };
    let takes = |id: &EventId| matches!(story.event(*id).kind, EventKind::Lock { object, .. } if object == lock);
    let gives = |id: &EventId| matches!(story.event(*id).kind, EventKind::Unlock { object, .. } if object == lock);
    let accesses = |id: &EventId| !story.cells(*id).is_empty();
    if takes(&end) {
        let rest = events[place + 1..].iter().copied();
        rest.take_while(|id| !gives(id)).filter(accesses).collect()
    } else {
        let earlier = events[..place].iter().rev().copied();
        let mut section: Vec<EventId> =
            earlier.take_while(|id| !takes(id)).filter(accesses).collect();
        section.reverse();
        section
    }
}

/// The locks that a thread holds at an event, each with where it took it.
pub(super) fn held(story: &Story<'_>, at: EventId) -> Vec<(ObjectId, EventId)> {
    let taken = enclosing_locks(story.trace(), at).into_iter();
    taken.filter_map(|lock| Some((story.event(lock).kind.object()?, lock))).collect()
}

/// Where the thread of the first event took the lock of a critical section that the first lies in and
/// that has not ended at the second: the innermost.
pub(super) fn open_at(story: &Story<'_>, first: EventId, second: EventId) -> Option<EventId> {
    let own = &story.trace().threads[story.event(first).thread.index()].events;
    let until = own.iter().copied().take_while(|id| story.before(*id, second));
    let mut open: Vec<(ObjectId, EventId)> = Vec::new();
    for id in until {
        match story.event(id).kind {
            EventKind::Lock { object, .. } => open.push((object, id)),
            // What is given back only because the run ended was held until then.
            EventKind::Unlock { object, synthetic: false, .. } => {
                open.retain(|(other, _)| *other != object);
            }
            _ => {}
        }
    }
    let index = |id: EventId| story.event(id).index;
    open.into_iter().map(|(_, lock)| lock).rfind(|lock| index(*lock) < index(first))
}

/// Does a thread take the cell by an atomic update, and leave it by the second event as it had found it? Then that is a
/// lock of the program's own.
pub(super) fn is_own_lock(story: &Story<'_>, took: EventId, gave: EventId, cell: CellId) -> bool {
    let access = story.access(took, cell);
    let found = story.found(took, cell);
    access.reads && access.writes && found.is_some() && found == story.left(gave, cell)
}
