//! Local moves: reverse one order of the failing schedule, and change little else.

use crate::cone::path_reads;
use crate::context::Context;
use crate::failing::{Failing, enclosing_locks, section_end};
use crate::network::{Base, FLOW, Locks, Network, Prices, parted};
use crate::switches::runs;
use model::evaluate::Check;
use model::{EventId, EventKind, EventTrace};
use rustc_hash::{FxBuildHasher, FxHashSet};
use solver::Order;
use std::hash::BuildHasher;

/// Blocks begin at no more than this many acquisitions before the pair, and end at no more than
/// this many releases after it.
const SECTIONS: usize = 4;

/// What a cut costs at least beside the execution of its schedule, in schedules.
const CUT_WORK: u64 = 8;

/// A schedule that passes, in which a pair is reversed.
pub(crate) struct Flip {
    pub(crate) order: Vec<EventId>,
    /// Data-flow differences to the failing schedule.
    pub(crate) variations: usize,
}

/// Local moves from the failing schedule.
pub(crate) struct Moves {
    /// All flows are worth the same, with sections whole and in place; then, those that branches
    /// depend on are worth more.
    networks: [Network; 3],
    /// The schedules that were executed, so that they need not be again: their hashes, since schedules are as long as the
    /// trace and there are thousands of them. One that is taken for another one is not tried, and nothing else.
    seen: FxHashSet<u64>,
}

impl Moves {
    pub(crate) fn new(context: &Context<'_, '_>, failing: &Failing) -> Self {
        let base = Base {
            order: &failing.schedule.order,
            sources: &failing.sources,
            conflicts: &failing.conflicts,
            happens_before: &failing.happens_before,
        };
        let cells = vec![FLOW; context.trace.cells.len()];
        let mut prices = Prices { reads: vec![FLOW; failing.sources.len()], cells };
        let whole = Network::new(context, &base, &prices, Locks::Whole);
        let in_place = Network::new(context, &base, &prices, Locks::InPlace);
        for read in path_reads(context.trace) {
            prices.reads[context.read_index(read.event) + read.part as usize] = 4 * FLOW;
        }
        let guarded = Network::new(context, &base, &prices, Locks::Whole);
        Self { networks: [whole, in_place, guarded], seen: FxHashSet::default() }
    }

    /// The schedule with `order` reversed at the least price that passes along the recorded paths;
    /// `None` when there is none, or when it was found before.
    pub(crate) fn cheapest(
        &mut self,
        context: &mut Context<'_, '_>,
        failing: &Failing,
        order: Order,
    ) -> Option<Flip> {
        if failing.happens_before.before(order.before, order.after) {
            return None;
        }
        let Order { before, after } = order;
        let thread = |id: EventId| &context.trace.thread_of(id).events;
        let index = |id: EventId| context.trace.event(id).index as usize;
        let next = thread(after).get(index(after) + 1);
        let previous = index(before).checked_sub(1).and_then(|i| thread(before).get(i));
        // The cheapest way may change the order and nothing else; then the threads are parted
        // next to the pair.
        let mut ways = vec![(vec![before], vec![after])];
        ways.extend(next.map(|next| (vec![before, *next], vec![after])));
        ways.extend(previous.map(|previous| (vec![before], vec![after, *previous])));
        let mut best = None;
        for (late, early) in ways {
            for network in &mut self.networks {
                let partings = network.part(&late, &early);
                let least = CUT_WORK * failing.schedule.order.len() as u64;
                if !context.effort.spend(network.take_work().max(least)) {
                    return best;
                }
                for late in partings {
                    let candidate = parted(&failing.schedule.order, &late);
                    if self.seen.insert(hash(&candidate)) {
                        consider(context, failing, candidate, &mut best);
                    }
                }
            }
            if best.is_some() {
                break;
            }
        }
        best
    }

    /// The schedule with `order` reversed by moving a block of one thread that differs least in
    /// data flow, of those that pass along the recorded paths and were not found before.
    pub(crate) fn block(
        &mut self,
        context: &mut Context<'_, '_>,
        failing: &Failing,
        order: Order,
    ) -> Option<Flip> {
        let mut best = None;
        let events = failing.schedule.order.len() as u64;
        for candidate in blocks(context.trace, failing, order) {
            // To make one costs as much as to execute it.
            if !context.effort.affords(events) {
                break;
            }
            if self.seen.insert(hash(&candidate)) {
                consider(context, failing, candidate, &mut best);
            }
        }
        best
    }
}

/// The schedules with `order` reversed in which a block of one thread is moved; they need not follow the recorded
/// paths. Each is made when it is asked for, since they are as long as the trace.
pub(crate) fn blocks<'f>(
    trace: &'f EventTrace,
    failing: &'f Failing,
    order: Order,
) -> impl Iterator<Item = Vec<EventId>> + 'f {
    let is_free = !failing.happens_before.before(order.before, order.after);
    let starts = if is_free { starts(trace, failing, order.before) } else { Vec::new() };
    let ends = if is_free { ends(trace, failing, order.after) } else { Vec::new() };
    let blocks = starts.into_iter().flat_map(move |start| {
        let pairs: Vec<_> = ends.iter().map(|end| (start, *end)).collect();
        pairs
    });
    blocks
        .flat_map(|block| [(block, true), (block, false)])
        .map(move |((start, end), is_early)| match is_early {
            true => advance(failing, start, end),
            false => delay(failing, start, end),
        })
        .filter(move |candidate| reversed(candidate, order))
}

fn hash(schedule: &[EventId]) -> u64 {
    FxBuildHasher.hash_one(schedule)
}

/// Keeps the candidate when it passes and varies less than the best so far.
fn consider(
    context: &mut Context<'_, '_>,
    failing: &Failing,
    candidate: Vec<EventId>,
    best: &mut Option<Flip>,
) {
    if context.check(&candidate) != Some(Check::Passes) {
        return;
    }
    let variations = failing.variations(context);
    if best.as_ref().is_none_or(|b| variations < b.variations) {
        *best = Some(Flip { order: candidate, variations });
    }
}

/// Does the second event of `order` come first in the schedule?
fn reversed(schedule: &[EventId], order: Order) -> bool {
    let first = schedule.iter().find(|id| **id == order.before || **id == order.after);
    first == Some(&order.after)
}

/// Where the block that is delayed may begin: at the event, at the acquisitions around and before
/// it, at the first event of its run or of its thread.
fn starts(trace: &EventTrace, failing: &Failing, event: EventId) -> Vec<EventId> {
    let mut starts = vec![event];
    starts.extend(enclosing_locks(trace, event).into_iter().rev());
    let earlier = &trace.thread_of(event).events[..trace.event(event).index as usize];
    let locks = earlier.iter().rev().copied();
    let locks = locks.filter(|id| matches!(trace.event(*id).kind, EventKind::Lock { .. }));
    starts.extend(locks.take(SECTIONS));
    starts.extend(run_of(trace, failing, event).first());
    starts.extend(earlier.first());
    distinct(starts)
}

/// Where the block that is advanced may end: at the event, at the releases around and after it,
/// at the last event of its run or of its thread.
fn ends(trace: &EventTrace, failing: &Failing, event: EventId) -> Vec<EventId> {
    let mut ends = vec![event];
    let around = enclosing_locks(trace, event).into_iter().rev();
    ends.extend(around.filter_map(|lock| section_end(trace, lock)));
    let later = &trace.thread_of(event).events[trace.event(event).index as usize + 1..];
    let unlocks = later.iter().copied();
    let unlocks = unlocks.filter(|id| matches!(trace.event(*id).kind, EventKind::Unlock { .. }));
    ends.extend(unlocks.take(SECTIONS));
    ends.extend(run_of(trace, failing, event).last());
    ends.extend(later.last());
    distinct(ends)
}

/// The run of one thread in the failing schedule that an event is part of.
fn run_of<'f>(trace: &EventTrace, failing: &'f Failing, event: EventId) -> &'f [EventId] {
    let order = &failing.schedule.order;
    let position = failing.position(event) as usize;
    let run = runs(trace, order).into_iter().find(|run| run.contains(&position));
    run.map_or(&[], |run| &order[run])
}

fn distinct(mut events: Vec<EventId>) -> Vec<EventId> {
    let mut seen = std::collections::BTreeSet::new();
    events.retain(|id| seen.insert(*id));
    events
}

/// Moves what must come before `end` in front of `start`.
fn advance(failing: &Failing, start: EventId, end: EventId) -> Vec<EventId> {
    let needed = |id: EventId| id == end || failing.happens_before.before(id, end);
    part(failing, start, end, needed)
}

/// Moves what must come after `start` behind `end`.
fn delay(failing: &Failing, start: EventId, end: EventId) -> Vec<EventId> {
    let free = |id: EventId| id != start && !failing.happens_before.before(start, id);
    part(failing, start, end, free)
}

/// Within the failing schedule from `start` to `end`, brings the events that `early` names before
/// the others.
fn part(
    failing: &Failing,
    start: EventId,
    end: EventId,
    early: impl Fn(EventId) -> bool,
) -> Vec<EventId> {
    let order = &failing.schedule.order;
    let (from, to) = (failing.position(start) as usize, failing.position(end) as usize + 1);
    if from >= to {
        return order.clone();
    }
    let mut result = Vec::with_capacity(order.len());
    result.extend_from_slice(&order[..from]);
    let (first, second): (Vec<EventId>, Vec<EventId>) =
        order[from..to].iter().copied().partition(|id| early(*id));
    result.extend(first);
    result.extend(second);
    result.extend_from_slice(&order[to..]);
    result
}
