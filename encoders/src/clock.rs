//! The orders that the recorded run's clock shows: an event that happened before some reading comes
//! before one that happened after a later reading. They hold in the recorded run, so that it is still
//! among the schedules; of other schedules they say nothing. So do the orders of accesses to heap
//! objects and the objects' ends, which no reading need show.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{Awaited, Event, EventId, EventKind, EventTrace, Interval, ObjectId, Thread, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

/// One constraint per pair of threads and reading, as far as the closure does not know the order.
/// The orders enter the closure.
pub(crate) fn encode(context: &mut Context<'_>, builder: &mut Builder) {
    let trace = context.trace;
    let intervals: Vec<Vec<Interval>> =
        trace.threads.iter().map(|thread| narrowed(trace, thread)).collect();
    let mut edges = edges(context, &intervals);
    edges.extend(missed_signals(context, &intervals));
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

fn edges(context: &Context<'_>, intervals: &[Vec<Interval>]) -> Vec<(EventId, EventId)> {
    let trace = context.trace;
    let mut edges = Vec::new();
    for (later, after) in trace.threads.iter().zip(intervals) {
        for (earlier, before) in trace.threads.iter().zip(intervals) {
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

/// The signals that came long before the time of a wait was up, with the release by which it began: none of them found the
/// thread waiting. One that wakes a single thread may have gone to another one that waits there. Of each thread's the last
/// one says it all.
fn missed_signals(context: &Context<'_>, intervals: &[Vec<Interval>]) -> Vec<(EventId, EventId)> {
    let trace = context.trace;
    let timed_out = |event: &Event| match event.kind {
        EventKind::WaitTimedOut { condition, began } => Some((event.id, condition, began)),
        _ => None,
    };
    let waits: Vec<(EventId, ObjectId, EventId)> =
        trace.events.iter().filter_map(timed_out).collect();
    if waits.is_empty() || trace.intervals.is_empty() {
        return Vec::new();
    }
    let interval = |id: EventId| {
        let event = trace.event(id);
        let own = intervals.get(event.thread.index());
        own.and_then(|own| own.get(event.index as usize)).copied().unwrap_or_default()
    };
    let mut waiting: BTreeMap<ObjectId, BTreeSet<ThreadId>> = BTreeMap::new();
    for event in &trace.events {
        if let Some(condition) = awaited(&event.kind) {
            waiting.entry(condition).or_default().insert(event.thread);
        }
    }
    let signals = trace.signals();
    let mut edges = Vec::new();
    for (wait, condition, began) in waits {
        let Interval { earliest, latest } = interval(wait);
        // Where it is not known when the wait ended, nothing is long before that.
        if latest == u64::MAX {
            continue;
        }
        let half = earliest.saturating_add(latest.saturating_sub(earliest) / 2);
        let is_alone = waiting.get(&condition).is_none_or(|threads| threads.len() == 1);
        let wakes = |signal: EventId| {
            is_alone || matches!(trace.event(signal).kind, EventKind::Broadcast { .. })
        };
        let waiter = trace.event(wait).thread;
        let others = signals.get(&condition).into_iter().flatten();
        for (_, signals) in others.filter(|(thread, _)| **thread != waiter) {
            let early = signals.partition_point(|signal| interval(*signal).latest < half);
            let mut missed = signals[..early].iter().copied().rev();
            let last = missed.find(|it| wakes(*it) && !context.closure.before(began, *it));
            let last = last.filter(|last| !context.closure.before(*last, began));
            edges.extend(last.map(|last| (last, began)));
        }
    }
    edges
}

/// The condition variable that a thread waits at, whatever ends that.
fn awaited(kind: &EventKind) -> Option<ObjectId> {
    match kind {
        EventKind::Wake { condition, .. }
        | EventKind::WaitTimedOut { condition, .. }
        | EventKind::Block { on: Awaited::Signal { condition } } => Some(*condition),
        _ => None,
    }
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
    use crate::encode_recorded;
    use model::{EventKind, Interval};

    /// A second is a long time for the signal, or a moment for the wait, by the clock.
    #[test]
    fn a_signal_long_before_the_end_of_a_wait_did_not_find_it() {
        let text = "
            t0: fork a
            t0: fork b
            t0: lock m
            t0: wait-timed-out c m
            t0: unlock m
            a: [tell] signal c
        ";
        let is_before = |text: &str, told: u64| {
            let parsed = parse(text).expect("the trace is well formed");
            let mut trace = parsed.trace.clone();
            let (tell, main) = (parsed.event("tell"), trace.threads[0].id);
            trace.intervals = vec![Interval { earliest: 0, latest: u64::MAX }; trace.events.len()];
            for event in &trace.events {
                if event.thread == main && event.index > 2 {
                    trace.intervals[event.id.index()] = Interval { earliest: 1_000, latest: 9_000 };
                }
            }
            trace.intervals[tell.index()] = Interval { earliest: 900, latest: told };
            let began = trace.events.iter().find_map(|event| match event.kind {
                EventKind::WaitTimedOut { began, .. } if event.thread == main => Some(began),
                _ => None,
            });
            let system = encode_recorded(&trace).expect("the trace is encoded");
            system.surely_before(tell, began.expect("a wait with a limit"))
        };
        assert!(is_before(text, 2_000));
        assert!(!is_before(text, 6_000), "it may have come when the time was up");
        let other = format!("{text}b: lock m\nb: wait c m\nb: unlock m\n");
        assert!(!is_before(&other, 2_000), "it may have woken the other one");
        let all = other.replace("signal c", "broadcast c");
        assert!(is_before(&all, 2_000));
    }

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
