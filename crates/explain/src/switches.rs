//! Few context switches: people read these schedules.

use crate::conflict::conflicts;
use crate::conflict::positions;
use crate::context::Context;
use crate::extend::{Preference, extend};
use crate::held::held_orders;
use crate::updates::{Whole, whole_updates};
use model::evaluate::{Check, Evaluation};
use model::{Event, EventId, EventKind, EventTrace, ObjectId, Schedule, ThreadId};
use solver::{Goal, Model, Order};
use std::ops::Range;

/// The number of places where consecutive events are of different threads.
#[must_use]
pub fn context_switches(trace: &EventTrace, schedule: &Schedule) -> usize {
    let pairs = schedule.order.windows(2);
    pairs.filter(|pair| trace.event(pair[0]).thread != trace.event(pair[1]).thread).count()
}

/// The failing schedule with fewer context switches, for the recorded inputs; `None` where it does not fail with
/// these. `work` is how many events may be executed for it, and `budget` ends it by answering false.
#[must_use]
pub fn with_fewer_switches(
    trace: &EventTrace,
    schedule: &Schedule,
    work: u64,
    budget: &dyn Fn() -> bool,
) -> Option<Schedule> {
    let mut context = Context::new(trace, budget);
    let found = Model { schedule: schedule.clone(), ..Model::default() };
    let evaluation = context.accept_model(Goal::Fail, &found).ok()?;
    context.effort.allow(work);
    Some(minimise(&mut context, schedule, &evaluation, Check::Fails).0)
}

/// Reduces the context switches of a schedule that the evaluator accepts, keeping its verdict:
/// first by a greedy linear extension of its conflict orders, then by merging runs of one thread
/// wherever the evaluator gives the same verdict. With it, one that passes and has an update more whole, where there is
/// one.
pub(crate) fn minimise(
    context: &mut Context<'_, '_>,
    schedule: &Schedule,
    evaluation: &Evaluation,
    verdict: Check,
) -> (Schedule, Option<Vec<EventId>>) {
    let trace = context.trace;
    let keep = kept(trace, schedule);
    let greedy = greedy(context, schedule, evaluation, verdict);
    let greedy = if keeps(trace, &keep, &greedy) { greedy } else { schedule.order.clone() };
    let keeps = |order: &[EventId]| keeps(trace, &keep, order);
    let merged = merge_runs(context, greedy, verdict, &keeps);
    if verdict != Check::Fails {
        return (Schedule { order: merged }, None);
    }
    let Whole { order, passing } = whole_updates(context, merged.clone(), verdict, &keeps);
    let order = if order == merged { merged } else { merge_runs(context, order, verdict, &keeps) };
    (Schedule { order }, passing)
}

/// The orders of a failing schedule that have to stay as they are: of waits that never ended, where it has these, of signals
/// that came too early for a wait, and of what leaves objects alive.
pub(crate) fn kept(trace: &EventTrace, schedule: &Schedule) -> Vec<Order> {
    let mut kept = held_orders(trace);
    if !keeps(trace, &kept, &schedule.order) {
        kept.clear();
    }
    kept.extend(missed(trace, schedule));
    kept.extend(alive(trace, schedule));
    kept
}

/// The orders of a schedule by which signals came before a wait whose time was up later: behind its beginning they would have
/// ended it. Of each thread's the last one says it all.
fn missed(trace: &EventTrace, schedule: &Schedule) -> Vec<Order> {
    let timed_out = |event: &Event| match event.kind {
        EventKind::WaitTimedOut { condition, began } => Some((event.thread, condition, began)),
        _ => None,
    };
    let waits: Vec<(ThreadId, ObjectId, EventId)> =
        trace.events.iter().filter_map(timed_out).collect();
    if waits.is_empty() {
        return Vec::new();
    }
    let place = positions(trace, &schedule.order);
    let signals = trace.signals();
    let mut orders = Vec::new();
    for (waiter, condition, began) in waits {
        let others = signals.get(&condition).into_iter().flatten();
        for (_, signals) in others.filter(|(thread, _)| **thread != waiter) {
            let early = signals.partition_point(|id| place[id.index()] < place[began.index()]);
            let last = signals[..early].last();
            orders.extend(last.map(|last| Order { before: *last, after: began }));
        }
    }
    orders
}

/// Does a schedule keep some orders?
pub(crate) fn keeps(trace: &EventTrace, keep: &[Order], order: &[EventId]) -> bool {
    if keep.is_empty() {
        return true;
    }
    let place = positions(trace, order);
    keep.iter().all(|o| place[o.before.index()] < place[o.after.index()])
}

/// The orders of a schedule that leave objects alive for whoever uses them: nothing tells what a thread would read from
/// one that was freed by then.
pub(crate) fn alive(trace: &EventTrace, schedule: &Schedule) -> Vec<Order> {
    let place = positions(trace, &schedule.order);
    let alive = trace.lifetimes.iter().filter(|(a, b)| place[a.index()] < place[b.index()]);
    alive.map(|&(before, after)| Order { before, after }).collect()
}

fn greedy(
    context: &mut Context<'_, '_>,
    schedule: &Schedule,
    evaluation: &Evaluation,
    verdict: Check,
) -> Vec<EventId> {
    let trace = context.trace;
    let before = context.happens_before(schedule);
    let orders = conflicts(trace, &schedule.order, evaluation, &before);
    let reference = positions(trace, &schedule.order);
    let mut best = schedule.clone();
    for preference in [Preference::StayThenReference(&reference), Preference::LongestRun] {
        let Some(order) = extend(trace, orders.iter().map(|o| o.order), preference) else {
            continue;
        };
        let candidate = Schedule { order };
        if context_switches(trace, &candidate) < context_switches(trace, &best)
            && context.check(&candidate.order) == Some(verdict)
        {
            best = candidate;
        }
    }
    best.order
}

/// The runs of consecutive events of one thread.
pub(crate) fn runs(trace: &EventTrace, order: &[EventId]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (position, id) in order.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if trace.event(order[run.start]).thread == trace.event(*id).thread => {
                run.end = position + 1;
            }
            _ => runs.push(position..position + 1),
        }
    }
    runs
}

/// Merges runs until nothing more can be merged or the effort is spent.
fn merge_runs(
    context: &mut Context<'_, '_>,
    mut order: Vec<EventId>,
    verdict: Check,
    keeps: &dyn Fn(&[EventId]) -> bool,
) -> Vec<EventId> {
    // The run to go on with after a success: earlier ones have been tried in vain, and a merge
    // seldom helps them; a last sweep from the start finds those that it did help.
    let mut from = 0;
    let mut swept = true;
    loop {
        match merge_one(context, &order, from, verdict, keeps) {
            Step::Merged(better, run) => {
                (order, from, swept) = (better, run, false);
            }
            Step::None if swept => return order,
            Step::None => (from, swept) = (0, true),
            Step::Spent => return order,
        }
    }
}

enum Step {
    /// A better schedule, and the run that grew.
    Merged(Vec<EventId>, usize),
    None,
    Spent,
}

/// Tries to bring a run and the next run of its thread together.
fn merge_one(
    context: &mut Context<'_, '_>,
    order: &[EventId],
    from: usize,
    verdict: Check,
    keeps: &dyn Fn(&[EventId]) -> bool,
) -> Step {
    let trace = context.trace;
    let runs = runs(trace, order);
    for first in from..runs.len() {
        let thread = trace.event(order[runs[first].start]).thread;
        let same = |run: &Range<usize>| trace.event(order[run.start]).thread == thread;
        let Some(second) = (first + 1..runs.len()).find(|i| same(&runs[*i])) else { continue };
        for split in splits(first + 1, second) {
            let candidate = joined(order, &runs, first, second, split);
            match context.check(&candidate) {
                None => return Step::Spent,
                Some(found) if found == verdict && keeps(&candidate) => {
                    return Step::Merged(candidate, first);
                }
                Some(_) => {}
            }
        }
    }
    Step::None
}

/// Where the runs between the two can be parted: those before the split go before the merged
/// run, the others after it. The ends come first, since they succeed most often.
fn splits(first: usize, end: usize) -> impl Iterator<Item = usize> {
    /// Inner splits that are tried at most.
    const INNER: usize = 6;
    let inner = (first + 1..end).take(INNER);
    [end, first].into_iter().chain(inner)
}

fn joined(
    order: &[EventId],
    runs: &[Range<usize>],
    first: usize,
    second: usize,
    split: usize,
) -> Vec<EventId> {
    let middle = runs.get(split).map_or(order.len(), |run| run.start);
    let (head, tail) = (&runs[first], &runs[second]);
    let mut result = Vec::with_capacity(order.len());
    result.extend_from_slice(&order[..head.start]);
    result.extend_from_slice(&order[head.end..middle]);
    result.extend_from_slice(&order[head.clone()]);
    result.extend_from_slice(&order[tail.clone()]);
    result.extend_from_slice(&order[middle..tail.start]);
    result.extend_from_slice(&order[tail.end..]);
    result
}
