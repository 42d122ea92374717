//! The orders that the recorded run's clock shows: an event that happened before some reading comes
//! before one that happened after a later reading. They hold in the recorded run, so that it is still
//! among the schedules; of other schedules they say nothing. So do the orders of accesses to heap
//! objects and the objects' ends, which no reading need show.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventKind, EventTrace, Interval, Thread};
use std::collections::BTreeSet;

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
    let began = trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } => Some(began),
        _ => None,
    });
    let began: BTreeSet<EventId> = began.collect();
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
            // A wait takes all of its time between what begins and what ends it.
            let events = &thread.events[start..start + count];
            let waits = events.iter().rposition(|event| began.contains(event));
            for (step, event) in events.iter().enumerate() {
                let part = match waits {
                    Some(begin) if step <= begin => (step as u64 + 1).min(length),
                    Some(_) => length.saturating_sub((count - step) as u64),
                    None => (length as u128 * (step as u128 + 1) / (count as u128 + 1)) as u64,
                };
                moments[event.index()] = earliest.saturating_add(part);
            }
            start += count;
        }
    }
    moments
}

/// How many ticks an open end is taken for.
const SOON: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::moments;
    use crate::dsl::parse;
    use model::Interval;

    #[test]
    fn a_wait_begins_at_once_and_ends_at_last() {
        let parsed = parse("t0: lock m\nt0: wait c m\nt0: unlock m\nt0: signal c\n");
        let mut trace = parsed.expect("the trace is well formed").trace;
        // Behind the thread's start it locks, gives the lock back, wakes up and takes it again.
        let thread: Vec<_> = trace.threads[0].events[1..].to_vec();
        trace.intervals = vec![Interval { earliest: 0, latest: 400 }; trace.events.len()];
        trace.intervals[thread[0].index()] = Interval { earliest: 500, latest: 1_000 };
        for id in &thread[1..4] {
            trace.intervals[id.index()] = Interval { earliest: 1_000, latest: 2_000 };
        }
        for id in &thread[4..] {
            trace.intervals[id.index()] = Interval { earliest: 2_000, latest: 3_000 };
        }
        let moments = moments(&trace);
        let at: Vec<u64> = thread.iter().map(|id| moments[id.index()]).collect();
        assert_eq!(at[1..4], [1_001, 1_998, 1_999]);
        assert_eq!(at[4..6], [2_250, 2_500], "others are spread evenly");
    }
}
