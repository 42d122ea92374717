//! The orders that the recorded run's clock shows: an event that happened before some reading comes
//! before one that happened after a later reading. They hold in the recorded run, so that it is still
//! among the schedules; of other schedules they say nothing. So do the orders of accesses to heap
//! objects and the objects' ends, which no reading need show.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventTrace, Interval, Thread};

/// One constraint per pair of threads and reading, as far as the closure does not know the order.
/// The orders enter the closure.
pub(crate) fn encode(context: &mut Context<'_>, builder: &mut Builder) {
    let mut edges = edges(context);
    let lifetimes = context.trace.lifetimes.iter();
    edges.extend(lifetimes.filter(|(access, free)| !context.closure.before(*access, *free)));
    for &(a, b) in &edges {
        builder.add(ConstraintKind::Clock, [a, b], Term::Before(a, b));
    }
    // A cycle makes the system unsatisfiable, which the constraints say on their own.
    context.closure.add(context.trace, &edges);
}

/// A thread's intervals, narrowed by program order: an event happened after whatever the events
/// before it happened after.
pub(crate) fn narrowed(trace: &EventTrace, thread: &Thread) -> Vec<Interval> {
    let interval =
        |event: &EventId| trace.intervals.get(event.index()).copied().unwrap_or_default();
    let mut intervals: Vec<Interval> = thread.events.iter().map(interval).collect();
    let mut earliest = 0;
    for interval in &mut intervals {
        earliest = earliest.max(interval.earliest);
        interval.earliest = earliest;
    }
    let mut latest = u64::MAX;
    for interval in intervals.iter_mut().rev() {
        latest = latest.min(interval.latest);
        interval.latest = latest;
    }
    intervals
}

fn edges(context: &Context<'_>) -> Vec<(EventId, EventId)> {
    let trace = context.trace;
    let intervals: Vec<Vec<Interval>> =
        trace.threads.iter().map(|thread| narrowed(trace, thread)).collect();
    let mut edges = Vec::new();
    for (later, after) in trace.threads.iter().zip(&intervals) {
        for (earlier, before) in trace.threads.iter().zip(&intervals) {
            if earlier.id == later.id {
                continue;
            }
            let mut known = 0;
            for (&event, interval) in later.events.iter().zip(after) {
                let more = before[known..].iter().take_while(|b| b.latest < interval.earliest);
                let count = known + more.count();
                if count > known {
                    known = count;
                    let last = earlier.events[count - 1];
                    if !context.closure.before(last, event) {
                        edges.push((last, event));
                    }
                }
            }
        }
    }
    edges
}

/// By event, about when it happened, for whoever has to try one order first. Nothing when the
/// clock is not known.
pub(crate) fn moments(trace: &EventTrace) -> Vec<u64> {
    if trace.intervals.is_empty() {
        return Vec::new();
    }
    let mut moments = vec![0; trace.events.len()];
    for thread in &trace.threads {
        let intervals = narrowed(trace, thread);
        let mut start = 0;
        while start < intervals.len() {
            let same = |other: &Interval| *other == intervals[start];
            let count = intervals[start..].iter().take_while(|other| same(other)).count();
            let Interval { earliest, latest } = intervals[start];
            // Evenly spread between two readings; behind the last reading, soon.
            let length = latest.saturating_sub(earliest).min(SOON);
            for step in 0..count {
                let part = length as u128 * (step as u128 + 1) / (count as u128 + 1);
                moments[thread.events[start + step].index()] = earliest.saturating_add(part as u64);
            }
            start += count;
        }
    }
    moments
}

/// How many ticks an open end is taken for.
const SOON: u64 = 1 << 32;
