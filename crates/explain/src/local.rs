//! Local moves: reverse one order of the failing schedule by moving a block of one thread.

use crate::context::Context;
use crate::failing::{Failing, enclosing_locks, section_end};
use crate::switches::runs;
use model::evaluate::Check;
use model::{EventId, EventKind, EventTrace};
use solver::Order;

/// Blocks begin at no more than this many acquisitions before the pair, and end at no more than
/// this many releases after it.
const SECTIONS: usize = 4;

/// A schedule that passes, in which a pair is reversed.
pub(crate) struct Flip {
    pub(crate) order: Vec<EventId>,
    /// Data-flow differences to the failing schedule.
    pub(crate) variations: usize,
}

/// Reverses `order`, which holds in the failing schedule, by local moves; the result that differs
/// least from it in data flow, if any passes along the recorded paths.
pub(crate) fn flip(context: &mut Context<'_, '_>, failing: &Failing, order: Order) -> Option<Flip> {
    if failing.happens_before.before(order.before, order.after) {
        return None;
    }
    let mut best: Option<Flip> = None;
    for start in starts(context.trace, failing, order.before) {
        for end in ends(context.trace, failing, order.after) {
            for candidate in [advance(failing, start, end), delay(failing, start, end)] {
                if !reversed(&candidate, order) {
                    continue;
                }
                let Some(check) = context.check(&candidate) else { return best };
                if check != Check::Passes {
                    continue;
                }
                let variations = failing.variations(context);
                if best.as_ref().is_none_or(|b| variations < b.variations) {
                    best = Some(Flip { order: candidate, variations });
                }
            }
        }
    }
    best
}

/// Does the second event of `order` come first in the schedule?
pub(crate) fn reversed(schedule: &[EventId], order: Order) -> bool {
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
