//! Updates that others do not get into: of a failing schedule in which many are lost, one is enough to look at.
//!
//! The recorded run of a counter that nobody locks loses many updates, and so does a schedule that follows it. As
//! long as several are lost, no single order decides whether the run fails. So each update that another thread's
//! write falls into is made whole wherever the run fails all the same.

mod blocks;
mod told;

pub use told::explain_by_update;

use crate::conflict::positions;
use crate::context::Context;
use crate::switches::{alive, keeps};
use blocks::{Block, Hulls};
use model::evaluate::Check;
use model::{CellId, Event, EventId, EventTrace, Expr, Schedule, ThreadId};
use solver::Model;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What a thread writes hangs on what it read from the same cell before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Update {
    cell: CellId,
    read: EventId,
    write: EventId,
}

/// What making updates whole comes to.
pub(crate) struct Whole {
    /// A schedule with the verdict that was asked for. No update more can be made whole in it, unless the effort is spent.
    pub(crate) order: Vec<EventId>,
    /// One that passes and differs from it in one update that is whole.
    pub(crate) passing: Option<Vec<EventId>>,
}

/// Has the updates happen without a break that another thread's write falls into, as long as the evaluator gives the same
/// verdict and `keeps` agrees: as many at once as possible, the last ones of the schedule first. Ends early when the
/// effort is spent.
pub(crate) fn whole_updates(
    context: &mut Context<'_, '_>,
    order: Vec<EventId>,
    verdict: Check,
    keeps: &dyn Fn(&[EventId]) -> bool,
) -> Whole {
    let trace = context.trace;
    let all = updates(trace);
    let hulls = Hulls::new(trace);
    let mut whole = Whole { order, passing: None };
    let mut known = usize::MAX;
    loop {
        let mut open = interrupted(trace, &whole.order, &all);
        open.sort_by_key(|update| update.cell);
        if open.len() >= known {
            return whole;
        }
        known = open.len();
        let mut search = Search {
            verdict,
            keeps,
            hulls: &hulls,
            open: &open,
            from: whole.order.clone(),
            blocks: vec![Vec::new(); trace.threads.len()],
            order: whole.order,
            decisive: None,
            is_spent: false,
        };
        search.run(context);
        whole = Whole { passing: search.passing(context), order: search.order };
        tracing::debug!(
            interrupted = known,
            passes = whole.passing.is_some(),
            "made updates whole"
        );
        if search.is_spent {
            return whole;
        }
    }
}

/// Has updates of a failing schedule happen without a break, with the recorded inputs, as long as it fails all the same:
/// the schedule that is left, and one that passes and differs in one update more that is whole, where there is one. `None`
/// where the schedule does not fail with these inputs, or nothing may be spent. `work` is how many events may be executed
/// for it, and `budget` ends it by answering false; what was found until then is returned.
#[must_use]
pub fn with_whole_updates(
    trace: &EventTrace,
    schedule: &Schedule,
    work: u64,
    budget: &dyn Fn() -> bool,
) -> Option<(Schedule, Option<Schedule>)> {
    let mut context = Context::new(trace, budget);
    let found = Model { schedule: schedule.clone(), ..Model::default() };
    context.take_inputs(&found);
    context.effort.allow(work);
    if context.check(&schedule.order) != Some(Check::Fails) {
        return None;
    }
    let alive = alive(trace, schedule);
    let keeps = |order: &[EventId]| keeps(trace, &alive, order);
    let whole = whole_updates(&mut context, schedule.order.clone(), Check::Fails, &keeps);
    Some((Schedule { order: whole.order }, whole.passing.map(|order| Schedule { order })))
}

struct Search<'a> {
    verdict: Check,
    keeps: &'a dyn Fn(&[EventId]) -> bool,
    hulls: &'a Hulls,
    open: &'a [Update],
    /// The schedule in which all of these are interrupted.
    from: Vec<EventId>,
    /// By thread, what is without a break in the best one.
    blocks: Vec<Vec<Block>>,
    /// The best one.
    order: Vec<EventId>,
    /// The last of the updates that decided whether the run failed when it was tried, and how it was made whole.
    decisive: Option<(Update, bool)>,
    is_spent: bool,
}

impl Search<'_> {
    /// What happens with some updates more without a break.
    fn with(
        &self,
        trace: &EventTrace,
        more: &[Update],
        is_late: bool,
    ) -> (Vec<Vec<Block>>, Vec<EventId>) {
        let mut blocks = self.blocks.clone();
        for update in more {
            let block = self.hulls.block((update.read, update.write), is_late);
            blocks[trace.event(update.read).thread.index()].push(block);
        }
        let order = blocks::without_breaks(trace, &self.from, blocks.clone());
        (blocks, order)
    }

    /// What passes with one update more than in the best one.
    fn passing(&self, context: &mut Context<'_, '_>) -> Option<Vec<EventId>> {
        let (update, is_late) = self.decisive?;
        let (_, order) = self.with(context.trace, &[update], is_late);
        (context.check(&order) == Some(Check::Passes)).then_some(order)
    }

    /// Makes as many of the interrupted updates whole as can be: all at once, or all of a cell, or what can be of it. The
    /// cells that decide whether the run fails come first, since what is whole in others may lead along other paths.
    fn run(&mut self, context: &mut Context<'_, '_>) {
        let all = 0..self.open.len();
        if all.is_empty() || self.try_all(context, all, false) == Tried::Taken {
            return;
        }
        let (mut deciding, mut others) = (Vec::new(), Vec::new());
        let mut from = 0;
        for of_cell in self.open.chunk_by(|a, b| a.cell == b.cell) {
            let range = from..from + of_cell.len();
            from = range.end;
            match self.try_all(context, range.clone(), false) {
                Tried::Taken => {}
                Tried::Passes => deciding.push(range),
                Tried::Refused => others.push(range),
            }
        }
        for range in deciding.into_iter().chain(others) {
            self.add_parts(context, range);
        }
    }

    /// Makes as many of a range of the interrupted updates whole as can be, but not all.
    fn add_parts(&mut self, context: &mut Context<'_, '_>, range: Range<usize>) {
        if range.len() == 1 {
            self.try_all(context, range, true);
            return;
        }
        let middle = range.start + range.len() / 2;
        for part in [middle..range.end, range.start..middle] {
            if !self.is_spent && self.try_all(context, part.clone(), false) != Tried::Taken {
                self.add_parts(context, part);
            }
        }
    }

    /// Makes all of a range whole, if the verdict stays the same.
    fn try_all(
        &mut self,
        context: &mut Context<'_, '_>,
        range: Range<usize>,
        is_late: bool,
    ) -> Tried {
        let open = self.open;
        let Some(more) = open.get(range).filter(|_| !self.is_spent) else { return Tried::Refused };
        let (blocks, order) = self.with(context.trace, more, is_late);
        match context.check(&order) {
            None => {
                self.is_spent = true;
                Tried::Refused
            }
            Some(found) if found == self.verdict && (self.keeps)(&order) => {
                (self.blocks, self.order) = (blocks, order);
                Tried::Taken
            }
            Some(Check::Passes) => {
                if let [one] = more {
                    self.decisive = Some((*one, is_late));
                }
                Tried::Passes
            }
            Some(_) => Tried::Refused,
        }
    }
}

/// What came of making updates whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    Taken,
    /// The run passes then.
    Passes,
    Refused,
}

/// All updates that read in one event and write in another, by thread and place in it.
fn updates(trace: &EventTrace) -> Vec<Update> {
    let of = |write: &Event| -> Vec<Update> {
        let parts = write.kind.writes().iter();
        let update = parts.filter_map(|part| {
            // Who puts back what it took writes nothing that others' writes are missing from.
            if matches!(trace.exprs.get(part.value), Expr::Var { .. }) {
                return None;
            }
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
