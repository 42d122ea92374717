//! What each thread does with each cell.

use super::story::{Story, cells_of};
use model::{
    CellId, EventId, EventTrace, ExprId, PathConditionKind, ReadRef, ThreadId, VariableOrigin,
};
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

/// By thread: the reads that its branches depend on, each with the position, in events of the thread, of the first branch
/// that does, in that order. They are looked for once: what a loop computes may hang on all of its rounds.
#[derive(Default)]
pub(super) struct Branching(OnceCell<Vec<Vec<(u32, ReadRef)>>>);

impl Branching {
    fn of(&self, trace: &EventTrace, thread: ThreadId) -> &[(u32, ReadRef)] {
        let known = self.0.get_or_init(|| {
            let mut branches: Vec<Vec<(u32, ExprId)>> = vec![Vec::new(); trace.threads.len()];
            let conditions = trace.conditions.iter();
            for condition in conditions.filter(|it| it.kind == PathConditionKind::Branch) {
                branches[condition.thread.index()].push((condition.position, condition.expr));
            }
            let reads = |mut branches: Vec<(u32, ExprId)>| {
                branches.sort_by_key(|(position, _)| *position);
                let mut seen = vec![false; trace.exprs.len()];
                let mut reads = Vec::new();
                for (position, expr) in branches {
                    trace.exprs.each_variable([expr].into_iter(), &mut seen, |var| {
                        if let VariableOrigin::Read { event, part } =
                            trace.variables[var.index()].origin
                        {
                            reads.push((position, ReadRef { event, part }));
                        }
                    });
                }
                reads
            };
            branches.into_iter().map(reads).collect()
        });
        known.get(thread.index()).map_or(&[], Vec::as_slice)
    }
}

impl Story<'_> {
    /// The reads that a thread's branches depend on, up to this position in its events.
    pub(super) fn branched_on(
        &self,
        thread: ThreadId,
        position: u32,
    ) -> impl Iterator<Item = ReadRef> + '_ {
        let all = self.branching.of(self.trace(), thread).iter();
        all.take_while(move |(at, _)| *at <= position).map(|(_, read)| *read)
    }

    /// The last write of a cell before an event of the schedule.
    pub(super) fn last_write_before(&self, end: EventId, cell: CellId) -> Option<EventId> {
        let threads = self.trace().threads.iter();
        let accesses = threads.flat_map(|thread| self.accesses(thread.id, cell)).copied();
        let writes = accesses.filter(|id| self.access(*id, cell).writes && self.before(*id, end));
        writes.max_by_key(|id| self.place(*id))
    }

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
