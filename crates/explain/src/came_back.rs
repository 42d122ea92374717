//! A compare-exchange that found the value which its thread had read before, although others had changed the variable and
//! changed it back in between (ABA), and that wrote what had been read for the old value and was different by then: in a
//! lock-free list, the next node of one that was taken away and put back.

use crate::cone::Cone;
use crate::conflict::positions;
use crate::flips::{Flip, failing_threads};
use model::evaluate::Evaluation;
use model::{CellId, Event, EventId, EventKind, EventTrace, ReadRef, Schedule};
use rustc_hash::FxHashMap;

/// No more of them are looked for.
const MOST: usize = 8;

/// A value that came back, in the order in which its events come in the failing schedule but for `changed`, which comes
/// between `look` and `exchange`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CameBack {
    /// The variable.
    pub cell: CellId,
    /// The read of the value that is compared later.
    pub seen: EventId,
    /// The read of another variable, by the same thread behind that, of which the new value is made.
    pub look: EventId,
    /// The first change of the variable by another thread.
    pub away: EventId,
    /// The last one, which wrote the same value again.
    pub back: EventId,
    /// The write of another thread by which `look` would have had another value.
    pub changed: EventId,
    /// The compare-exchange, which succeeded.
    pub exchange: EventId,
}

impl CameBack {
    /// The orders that undo it, to be tried with the real program: the other thread comes to change the variable back, or to
    /// change it at all, only behind the compare-exchange.
    #[must_use]
    pub fn flips(&self) -> [Flip; 2] {
        [self.back, self.away].map(|before| Flip { before, after: self.exchange })
    }
}

/// The values that came back in a failing schedule, those next to the failure first, in variables that the failure or the
/// failing threads' ways to it hang on.
#[must_use]
pub fn came_back(
    trace: &EventTrace,
    schedule: &Schedule,
    evaluation: &Evaluation,
) -> Vec<CameBack> {
    let is_update = |event: &Event| matches!(event.kind, EventKind::ReadModifyWrite { .. });
    if !trace.events.iter().any(is_update) {
        return Vec::new();
    }
    let search = Search::new(trace, schedule, evaluation);
    let updates = schedule.order.iter().rev().filter(|id| is_update(trace.event(**id)));
    let mut found: Vec<CameBack> =
        updates.filter_map(|id| search.exchange(*id)).take(MOST).collect();
    if !found.is_empty() {
        let failing = failing_threads(trace);
        let cone = Cone::with_addresses(trace, evaluation, |c| failing.contains(&c.thread));
        let cells: Vec<CellId> = cone.cells().collect();
        found.retain(|found| cells.contains(&found.cell));
    }
    found
}

struct Search<'t> {
    trace: &'t EventTrace,
    evaluation: &'t Evaluation,
    /// By cell, the events that access it, in the schedule's order.
    accesses: FxHashMap<CellId, Vec<EventId>>,
    positions: Vec<u32>,
}

impl<'t> Search<'t> {
    fn new(trace: &'t EventTrace, schedule: &Schedule, evaluation: &'t Evaluation) -> Self {
        let positions = positions(trace, &schedule.order);
        let mut accesses: FxHashMap<CellId, Vec<EventId>> = FxHashMap::default();
        for &id in &schedule.order {
            let kind = &trace.event(id).kind;
            let read = kind.reads().iter().map(|part| part.cell);
            for cell in read.chain(kind.writes().iter().map(|part| part.cell)) {
                let of_cell = accesses.entry(cell).or_default();
                if of_cell.last() != Some(&id) {
                    of_cell.push(id);
                }
            }
        }
        Self { trace, evaluation, accesses, positions }
    }

    /// What an event read from the cell.
    fn found(&self, id: EventId, cell: CellId) -> Option<u128> {
        let part = self.trace.event(id).kind.reads().iter().find(|part| part.cell == cell)?;
        self.evaluation.values.get(part.var.index()).copied().flatten()
    }

    /// What an event wrote to the cell.
    fn left(&self, id: EventId, cell: CellId) -> Option<u128> {
        let part = self.trace.event(id).kind.writes().iter().find(|part| part.cell == cell)?;
        let values = &self.evaluation.values;
        self.trace.exprs.evaluate(part.value, &|var| values.get(var.index()).copied().flatten())
    }

    fn place(&self, id: EventId) -> u32 {
        self.positions[id.index()]
    }

    /// The accesses of a cell between two events, in the schedule's order.
    fn between(&self, cell: CellId, from: EventId, to: EventId) -> &[EventId] {
        let all = self.accesses.get(&cell).map(Vec::as_slice).unwrap_or_default();
        let begin = all.partition_point(|id| self.place(*id) <= self.place(from));
        let end = all.partition_point(|id| self.place(*id) < self.place(to));
        all.get(begin..end).unwrap_or_default()
    }

    /// Does the event change what is in the cell?
    fn changes(&self, id: EventId, cell: CellId) -> bool {
        let left = self.left(id, cell);
        left.is_some() && left != self.found(id, cell)
    }

    /// The value that came back before this update, if one did.
    fn exchange(&self, exchange: EventId) -> Option<CameBack> {
        let event = self.trace.event(exchange);
        let ([read], [write]) = (event.kind.reads(), event.kind.writes()) else { return None };
        let cell = read.cell;
        let found = self.found(exchange, cell)?;
        if write.cell != cell || !self.changes(exchange, cell) {
            return None;
        }
        let own = |id: &&EventId| self.trace.event(**id).thread == event.thread;
        let all = self.accesses.get(&cell)?;
        let until = all.partition_point(|id| self.place(*id) < self.place(exchange));
        let seen = *all.get(..until)?.iter().rev().find(own)?;
        let others = self.between(cell, seen, exchange).iter().copied();
        let mut others = others.filter(|id| self.changes(*id, cell));
        let away = others.next()?;
        let back = others.next_back()?;
        let fits = self.found(seen, cell) == Some(found)
            && !self.changes(seen, cell)
            && self.left(away, cell) != Some(found)
            && self.left(back, cell) == Some(found);
        if !fits {
            return None;
        }
        let (look, changed) = self.stale(exchange, seen, write.value)?;
        Some(CameBack { cell, seen, look, away, back, changed, exchange })
    }

    /// The read of another variable between the two events that the new value is made of, and the write by which another
    /// thread has changed that since.
    fn stale(
        &self,
        exchange: EventId,
        seen: EventId,
        value: model::ExprId,
    ) -> Option<(EventId, EventId)> {
        let event = self.trace.event(exchange);
        let range = self.trace.event(seen).index + 1..event.index;
        let reads = self.trace.reads_of(value).into_iter();
        let mut reads = reads.filter(|read| {
            let it = self.trace.event(read.event);
            it.thread == event.thread && range.contains(&it.index)
        });
        reads.find_map(|ReadRef { event: look, part }| {
            let cell = self.trace.event(look).kind.reads().get(part as usize)?.cell;
            let found = self.found(look, cell)?;
            let writes = self.between(cell, look, exchange).iter().rev().copied();
            let mut writes = writes.filter(|id| self.left(*id, cell).is_some());
            let changed = writes.next()?;
            let other = self.trace.event(changed).thread != event.thread;
            (other && self.left(changed, cell) != Some(found)).then_some((look, changed))
        })
    }
}
