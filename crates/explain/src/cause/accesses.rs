//! What each thread does with each cell.

use super::story::{Story, cells_of};
use model::{CellId, EventId, EventTrace, ThreadId};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// The accesses of each thread to each cell, in program order. They are looked for once: a thread that polls makes many
/// thousands of them, and each may be asked for its neighbours.
#[derive(Default)]
pub(super) struct Accesses(OnceCell<FxHashMap<(ThreadId, CellId), Vec<EventId>>>);

impl Accesses {
    fn of(&self, trace: &EventTrace, thread: ThreadId, cell: CellId) -> &[EventId] {
        let known = self.0.get_or_init(|| {
            let mut accesses: FxHashMap<_, Vec<EventId>> = FxHashMap::default();
            let events = trace.threads.iter().flat_map(|thread| &thread.events);
            for event in events.map(|id| trace.event(*id)) {
                for cell in cells_of(event) {
                    accesses.entry((event.thread, cell)).or_default().push(event.id);
                }
            }
            accesses
        });
        known.get(&(thread, cell)).map_or(&[], Vec::as_slice)
    }
}

impl Story<'_> {
    /// A thread's accesses to a cell, in program order.
    pub(super) fn accesses(&self, thread: ThreadId, cell: CellId) -> &[EventId] {
        self.known_accesses.of(self.trace(), thread, cell)
    }

    /// Those of an event's thread behind that event.
    pub(super) fn accesses_behind(&self, id: EventId, cell: CellId) -> &[EventId] {
        let event = self.event(id);
        let own = self.accesses(event.thread, cell);
        &own[own.partition_point(|other| self.event(*other).index <= event.index)..]
    }
}
