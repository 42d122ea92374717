//! Which events a scheduler can separate: a thread can only be stopped at scheduling points, so
//! what lies between two of them happens as a whole.

use model::{Event, EventId, EventKind, EventTrace, Point, Points, ThreadId};
use rustc_hash::FxHashMap;

/// Events of one thread that a scheduler cannot separate, in program order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub thread: ThreadId,
    pub events: Vec<EventId>,
}

impl Unit {
    /// The first event: the thread stands before the whole unit when it stands at its point.
    pub fn lead(&self) -> EventId {
        self.events.first().copied().unwrap_or(EventId(u32::MAX))
    }

    /// The last event.
    pub fn last(&self) -> EventId {
        self.events.last().copied().unwrap_or(EventId(u32::MAX))
    }
}

/// An order of events as units.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    /// In the order of their first events.
    pub units: Vec<Unit>,
    /// Events, each with the one before it in its thread, that the order separates and a
    /// scheduler cannot.
    pub coarse: Vec<(EventId, EventId)>,
}

/// The event, if the trace has it.
pub(crate) fn event(trace: &EventTrace, id: EventId) -> Option<&Event> {
    trace.events.get(id.index())
}

/// Does code of the program perform the event, so that it matters who comes first? A thread's
/// start does nothing that its creation did not do, and no code performs the releases that are
/// added for locks that a thread holds at its end.
pub(crate) fn is_performed(event: &Event) -> bool {
    !matches!(event.kind, EventKind::Start | EventKind::Unlock { synthetic: true, .. })
}

/// Is it a request that the thread waited for when the recorded run was ended?
pub(crate) fn is_blocked(event: &Event) -> bool {
    matches!(event.kind, EventKind::Block { .. })
}

/// Do both points lie behind the same passage of the same site?
pub(crate) fn same_passage(a: &Point, b: &Point) -> bool {
    (a.site, a.occurrence) == (b.site, b.occurrence)
}

/// Puts the events of an order together that a scheduler cannot separate: each comes with the one
/// before it in its thread. Events without a point, or that the trace does not have, are left out.
pub(crate) fn units(trace: &EventTrace, points: &Points, order: &[EventId]) -> Units {
    let mut result = Units::default();
    // Per thread: its latest unit.
    let mut latest: FxHashMap<ThreadId, usize> = FxHashMap::default();
    // The thread of the event before.
    let mut running = None;
    for &id in order {
        let (Some(event), Some(point)) = (event(trace, id), points.point(id)) else { continue };
        if !is_performed(event) {
            continue;
        }
        let unit = latest.get(&event.thread).and_then(|&at| result.units.get_mut(at));
        let joined = unit.filter(|unit| {
            let last = points.point(unit.last());
            !point.first && last.is_some_and(|last| same_passage(last, point))
        });
        match joined {
            Some(unit) => {
                if running != Some(event.thread) {
                    result.coarse.push((unit.last(), id));
                }
                unit.events.push(id);
            }
            None => {
                latest.insert(event.thread, result.units.len());
                result.units.push(Unit { thread: event.thread, events: vec![id] });
            }
        }
        running = Some(event.thread);
    }
    result
}
