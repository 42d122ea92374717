//! Total store order, which x86 has ([S] 3.2, φmo): what a thread writes waits in its store buffer, in order, while
//! the thread reads on.
//!
//! A write that other threads see late is, for them, a write that comes later in its thread. So a schedule with
//! late writes is one under sequential consistency of a trace in which those writes stand behind the
//! reads that overtook them, and everything that knows only program order serves for it: [`delayed`] makes
//! that trace. What a thread reads of its own waiting writes (forwarding) has no place in it: such a read empties the
//! buffer up to the write that it reads. So of the schedules that x86 has, those are not there in which a thread
//! reads what it wrote before others see it; what is there, x86 has.
//!
//! The buffer is empty behind every event that [is no plain access](Event::drains).

use model::{
    CellId, Event, EventId, EventKind, EventTrace, Interval, PathConditionKind, Thread,
    VariableOrigin,
};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// A trace in which some writes come late.
#[derive(Clone, Debug)]
pub struct Delayed {
    /// The trace; threads, cells, objects and variables are those of the recorded one.
    pub trace: EventTrace,
    /// By event, which one it is of the recorded trace.
    pub recorded: Vec<EventId>,
    /// The writes that reads overtook, in the order of events.
    pub late: Vec<Late>,
}

/// A write that is seen late, by the identifiers of the delayed trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// The write.
    pub write: EventId,
    /// The reads of its thread that come behind it in the program and before it here, in order.
    pub overtaken_by: Vec<EventId>,
}

/// The trace in which the writes that `waits` names are seen as late as they may be, and all others at once; names are
/// those of the recorded trace, which this takes.
#[must_use]
pub fn delayed(trace: &EventTrace, waits: &dyn Fn(EventId) -> bool) -> Delayed {
    let mut recorded: Vec<EventId> = Vec::with_capacity(trace.events.len());
    let mut overtaken: Vec<(EventId, Vec<EventId>)> = Vec::new();
    for thread in &trace.threads {
        reorder(trace, thread, waits, &mut recorded, &mut overtaken);
    }
    let mut new = vec![EventId::from_index(0); trace.events.len()];
    for (index, old) in recorded.iter().enumerate() {
        new[old.index()] = EventId::from_index(index);
    }
    let place = |old: EventId| new.get(old.index()).copied().unwrap_or(old);
    let mut late: Vec<Late> = overtaken
        .into_iter()
        .map(|(write, reads)| Late {
            write: place(write),
            overtaken_by: reads.into_iter().map(place).collect(),
        })
        .collect();
    late.sort_by_key(|late| late.write);
    let moved: FxHashSet<EventId> = late.iter().map(|late| recorded[late.write.index()]).collect();
    let trace = renumbered(trace, &recorded, &place, &moved);
    Delayed { trace, recorded, late }
}

/// Appends a thread's events in the order in which others see them.
fn reorder(
    trace: &EventTrace,
    thread: &Thread,
    waits: &dyn Fn(EventId) -> bool,
    order: &mut Vec<EventId>,
    overtaken: &mut Vec<(EventId, Vec<EventId>)>,
) {
    // The store buffer: writes, each with the reads that have overtaken it so far.
    let mut buffer: VecDeque<(EventId, Vec<EventId>)> = VecDeque::new();
    let mut leave =
        |buffer: &mut VecDeque<(EventId, Vec<EventId>)>, count: usize, order: &mut Vec<EventId>| {
            for (write, reads) in buffer.drain(..count) {
                order.push(write);
                if !reads.is_empty() {
                    overtaken.push((write, reads));
                }
            }
        };
    for &id in &thread.events {
        let event = trace.event(id);
        match &event.kind {
            EventKind::Write { .. } if !event.drains && waits(id) => {
                buffer.push_back((id, Vec::new()));
                continue;
            }
            EventKind::Read { .. } if !event.drains => {
                let reads = |(write, _): &(EventId, Vec<EventId>)| meet(trace.event(*write), event);
                let own = buffer.iter().rposition(reads);
                leave(&mut buffer, own.map_or(0, |last| last + 1), order);
                buffer.iter_mut().for_each(|(_, overtaking)| overtaking.push(id));
            }
            _ => {
                let all = buffer.len();
                leave(&mut buffer, all, order);
            }
        }
        order.push(id);
    }
    let all = buffer.len();
    leave(&mut buffer, all, order);
}

/// Does the read read what the write wrote?
fn meet(write: &Event, read: &Event) -> bool {
    let read: Vec<CellId> = read.kind.reads().iter().map(|part| part.cell).collect();
    write.kind.writes().iter().any(|part| read.contains(&part.cell))
}

/// The trace with its events in this order, which keeps threads apart.
fn renumbered(
    trace: &EventTrace,
    order: &[EventId],
    place: &impl Fn(EventId) -> EventId,
    moved: &FxHashSet<EventId>,
) -> EventTrace {
    let mut made = EventTrace {
        exprs: trace.exprs.clone(),
        cells: trace.cells.clone(),
        objects: trace.objects.clone(),
        variables: trace.variables.clone(),
        failure: trace.failure.clone(),
        lifetimes: trace.lifetimes.iter().map(|(a, b)| (place(*a), place(*b))).collect(),
        outcomes: Vec::new(),
        given: trace.given.iter().map(|(a, b)| (place(*a), place(*b))).collect(),
        forked: trace.forked,
        ..EventTrace::default()
    };
    made.lifetimes.sort_unstable();
    let mut first = 0;
    for thread in &trace.threads {
        let events: Vec<EventId> =
            (first..first + thread.events.len()).map(EventId::from_index).collect();
        first += events.len();
        made.threads.push(Thread { events, ..thread.clone() });
    }
    for (number, old) in order.iter().enumerate() {
        let mut event = trace.event(*old).clone();
        let first = made.threads[event.thread.index()].events.first();
        event.id = EventId::from_index(number);
        event.index = first.map_or(0, |first| (number - first.index()) as u32);
        if let EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } =
            &mut event.kind
        {
            *began = place(*began);
        }
        made.events.push(event);
    }
    for variable in &mut made.variables {
        if let VariableOrigin::Read { event, .. } = &mut variable.origin {
            *event = place(*event);
        }
    }
    if let Some(failure) = &mut made.failure {
        failure.event = place(failure.event);
        failure.condition.events_mut().into_iter().for_each(|event| *event = place(*event));
    }
    let old_time = |old: EventId| trace.intervals.get(old.index()).copied();
    for (number, old) in order.iter().enumerate() {
        let Some(own) = old_time(*old) else { continue };
        // A late write happened until whatever it is late for.
        let next = order.get(number + 1).filter(|next| same_thread(trace, *old, **next));
        let latest = match moved.contains(old) {
            true => next.and_then(|next| old_time(*next)).map_or(u64::MAX, |next| next.latest),
            false => own.latest,
        };
        made.intervals.push(Interval { latest: latest.max(own.latest), ..own });
    }
    for condition in &trace.conditions {
        let mut condition = condition.clone();
        let events = &trace.threads[condition.thread.index()].events;
        let pinned = condition.kind == PathConditionKind::Address;
        let behind = events.get(condition.position as usize..).unwrap_or_default();
        // What decides a branch is decided before whatever comes next and is not late; a late
        // write's own address goes with it.
        let next = behind.iter().find(|id| pinned || !moved.contains(id));
        condition.position =
            next.map_or(events.len() as u32, |next| made.events[place(*next).index()].index);
        made.conditions.push(condition);
    }
    made
}

fn same_thread(trace: &EventTrace, one: EventId, other: EventId) -> bool {
    trace.event(one).thread == trace.event(other).thread
}

impl Delayed {
    /// An order of this trace's events as one of `fewer`, in which not all of the writes come late: a write
    /// that does not comes just before the event that follows it there.
    #[must_use]
    pub fn undone(&self, order: &[EventId], fewer: &Self) -> Vec<EventId> {
        let mut new = vec![EventId::from_index(0); self.recorded.len()];
        for (index, old) in fewer.recorded.iter().enumerate() {
            new[old.index()] = EventId::from_index(index);
        }
        let mut next: Vec<usize> = vec![0; fewer.trace.threads.len()];
        let mut found = Vec::with_capacity(order.len());
        for id in order {
            let there = new[self.recorded[id.index()].index()];
            let event = fewer.trace.event(there);
            let (thread, index) = (event.thread.index(), event.index as usize);
            let events = &fewer.trace.threads[thread].events;
            while next[thread] <= index {
                found.push(events[next[thread]]);
                next[thread] += 1;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsl;

    const STORE_BUFFERING: &str = "
        t0: fork t1
        t0: fork t2
        t1: [w1] W x 1
        t1: [r1] R y -> a
        t2: [w2] W y 1
        t2: [r2] R x -> b
        t0: join t1
        t0: join t2
        t0: fail a + b == 0
    ";

    fn labels(parsed: &dsl::Parsed, made: &Delayed, thread: &str) -> Vec<String> {
        let thread = made.trace.threads.iter().find(|of| of.name == thread).expect("a thread");
        let of = |id: &EventId| {
            let old = made.recorded[id.index()];
            let label = parsed.labels.iter().find(|(_, event)| **event == old);
            label.map(|(label, _)| label.clone())
        };
        thread.events.iter().filter_map(of).collect()
    }

    #[test]
    fn reads_overtake_writes_of_other_cells() {
        let parsed = dsl::parse(STORE_BUFFERING).expect("a trace");
        let made = delayed(&parsed.trace, &|_| true);
        model::verify::verify(&made.trace).expect("a valid trace");
        assert_eq!(labels(&parsed, &made, "t0.1"), ["r1", "w1"]);
        assert_eq!(labels(&parsed, &made, "t0.2"), ["r2", "w2"]);
        assert_eq!(made.late.len(), 2);
        let none = delayed(&parsed.trace, &|_| false);
        assert!(none.late.is_empty());
        assert_eq!(none.recorded, parsed.trace.events.iter().map(|e| e.id).collect::<Vec<_>>());
    }

    #[test]
    fn own_writes_fences_and_synchronisation_end_the_wait_and_order_is_kept() {
        let parsed = dsl::parse(
            "
            t0: [w1] W x 1
            t0: [w2] W y 1
            t0: [r1] R z -> a
            t0: [r2] R x -> b
            t0: [r3] R z -> c
            t0: fence
            t0: [r4] R z -> d
            t0: [w3] W x 2
            t0: [r5] R z -> e
            t0: lock m
            t0: [r6] R z -> f
            t0: unlock m
            ",
        )
        .expect("a trace");
        let made = delayed(&parsed.trace, &|_| true);
        model::verify::verify(&made.trace).expect("a valid trace");
        let expected = ["r1", "w1", "r2", "r3", "w2", "r4", "r5", "w3", "r6"];
        assert_eq!(labels(&parsed, &made, "t0"), expected);
        // A write that does not wait keeps those before it from being seen behind it.
        let second = parsed.event("w2");
        let made = delayed(&parsed.trace, &|id| id != second);
        assert_eq!(labels(&parsed, &made, "t0")[..4], ["w1", "w2", "r1", "r2"]);
    }

    #[test]
    fn an_order_is_followed_with_fewer_late_writes() {
        let parsed = dsl::parse(STORE_BUFFERING).expect("a trace");
        let (all, w1) = (delayed(&parsed.trace, &|_| true), parsed.event("w1"));
        let one = delayed(&parsed.trace, &|id| id == w1);
        let order: Vec<EventId> = all.trace.events.iter().map(|event| event.id).collect();
        let found = all.undone(&order, &one);
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted.len(), order.len());
        assert!(sorted.windows(2).all(|pair| pair[0] != pair[1]));
        let place = |label: &str| {
            let old = parsed.event(label);
            found.iter().position(|id| one.recorded[id.index()] == old)
        };
        assert!(place("w2") < place("r2") && place("r1") < place("w1"));
    }
}
