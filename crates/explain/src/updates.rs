//! Updates that others do not get into: of a failing schedule in which many are lost, one is enough to look at.
//!
//! The recorded run of a counter that nobody locks loses many updates, and so does a schedule that follows it. As
//! long as several are lost, no single order decides whether the run fails. So each update that another thread's
//! write falls into is made whole wherever the run fails all the same.

use crate::conflict::positions;
use crate::context::Context;
use model::evaluate::Check;
use model::{CellId, Event, EventId, EventTrace, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

/// What a thread writes hangs on what it read from the same cell before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Update {
    cell: CellId,
    read: EventId,
    write: EventId,
}

/// Brings the events of one update after the other together that another thread's write falls into, as long as the
/// evaluator gives the same verdict and `keeps` agrees. Ends early when the effort is spent.
pub(crate) fn whole_updates(
    context: &mut Context<'_, '_>,
    mut order: Vec<EventId>,
    verdict: Check,
    keeps: &dyn Fn(&[EventId]) -> bool,
) -> Vec<EventId> {
    let trace = context.trace;
    let all = updates(trace);
    let mut refused: BTreeSet<Update> = BTreeSet::new();
    loop {
        let mut open = interrupted(trace, &order, &all);
        open.retain(|update| !refused.contains(update));
        let mut better = None;
        for update in open {
            for candidate in gathered(trace, &order, update) {
                match context.check(&candidate) {
                    None => return order,
                    Some(found) if found == verdict && keeps(&candidate) => {
                        better = Some(candidate);
                        break;
                    }
                    Some(_) => {}
                }
            }
            if better.is_some() {
                break;
            }
            refused.insert(update);
        }
        let Some(better) = better else { return order };
        order = better;
    }
}

/// All updates that read in one event and write in another, by thread and place in it.
fn updates(trace: &EventTrace) -> Vec<Update> {
    let of = |write: &Event| -> Vec<Update> {
        let parts = write.kind.writes().iter();
        let update = parts.filter_map(|part| {
            let reads = trace.reads_of(part.value).into_iter();
            let own = reads.filter(|read| {
                let event = trace.event(read.event);
                let from = event.kind.reads().get(read.part as usize).map(|part| part.cell);
                event.id != write.id && event.thread == write.thread && from == Some(part.cell)
            });
            let read = own.map(|read| read.event).max_by_key(|read| trace.event(*read).index)?;
            Some(Update { cell: part.cell, read, write: write.id })
        });
        update.collect()
    };
    let events = trace.threads.iter().flat_map(|thread| &thread.events);
    events.flat_map(|id| of(trace.event(*id))).collect()
}

/// Those in which another thread writes the cell, by the place of their reads.
fn interrupted(trace: &EventTrace, order: &[EventId], all: &[Update]) -> Vec<Update> {
    let cells: BTreeSet<CellId> = all.iter().map(|update| update.cell).collect();
    let mut writes: BTreeMap<CellId, Vec<(u32, ThreadId)>> = BTreeMap::new();
    let places = positions(trace, order);
    for id in order {
        let event = trace.event(*id);
        for part in event.kind.writes().iter().filter(|part| cells.contains(&part.cell)) {
            writes.entry(part.cell).or_default().push((places[id.index()], event.thread));
        }
    }
    let between = |update: &&Update| {
        let thread = trace.event(update.read).thread;
        let (from, to) = (places[update.read.index()], places[update.write.index()]);
        let of_cell = writes.get(&update.cell).map_or(&[][..], Vec::as_slice);
        let first = of_cell.partition_point(|(place, _)| *place < from);
        let mut within = of_cell[first..].iter().take_while(|(place, _)| *place < to);
        within.any(|(_, writer)| *writer != thread)
    };
    let mut open: Vec<Update> = all.iter().filter(between).copied().collect();
    open.sort_by_key(|update| places[update.read.index()]);
    open
}

/// The schedule with the update's thread going on from the read to the write, and with it waiting before the read
/// instead.
fn gathered(trace: &EventTrace, order: &[EventId], update: Update) -> [Vec<EventId>; 2] {
    let thread = trace.event(update.read).thread;
    let place = |id| order.iter().position(|other| *other == id).unwrap_or(order.len());
    let (from, to) = (place(update.read), place(update.write).saturating_add(1).min(order.len()));
    let middle = order.get(from..to).unwrap_or_default();
    let own = |id: &&EventId| trace.event(**id).thread == thread;
    let (own, others): (Vec<&EventId>, Vec<&EventId>) = middle.iter().partition(own);
    let with = |first: &[&EventId], second: &[&EventId]| {
        let middle = first.iter().chain(second).map(|id| **id);
        let (head, tail) = (&order[..from.min(to)], &order[to..]);
        head.iter().copied().chain(middle).chain(tail.iter().copied()).collect()
    };
    [with(&own, &others), with(&others, &own)]
}
