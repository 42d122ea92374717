//! What the recorded run says about locks that were held, and waits that went on, when it ended.
//!
//! A thread that holds a lock at the end of its log releases it by a synthetic event ([S] 4.2), so
//! that other schedules can go on. In the recorded run nobody got the lock after it: every other
//! critical section came before. A failing schedule with another one behind the synthetic release
//! would ask the real thread to come to its release first, by code that no log tells about, so
//! failing schedules without any are looked for first. There is one: the recorded run.

use model::{EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId, ThreadId};
use solver::Order;
use std::collections::BTreeMap;

struct Section {
    thread: ThreadId,
    mode: LockMode,
    lock: EventId,
    unlock: EventId,
    synthetic: bool,
}

/// Orders that the recorded run had, besides what its clock shows: for a failing schedule that is to be like it.
#[must_use]
pub fn orders_of_run(trace: &EventTrace) -> Vec<Order> {
    let unwoken = unwoken_orders(trace);
    held_orders(trace).into_iter().chain(named_orders(trace)).chain(unwoken).collect()
}

/// "The signal comes before the wait that never ended", for those that woke nobody else: they would have woken this
/// one. Where the clock does not tell whether another thread that woke was woken by it, nothing is said.
fn unwoken_orders(trace: &EventTrace) -> Vec<Order> {
    let mut waits = Vec::new();
    let mut open: Vec<&FailureCondition> =
        trace.failure.iter().map(|failure| &failure.condition).collect();
    while let Some(condition) = open.pop() {
        match condition {
            FailureCondition::Unwoken { condition, began } => waits.push((*condition, *began)),
            FailureCondition::All(parts) => open.extend(parts),
            // One of several need not be what the run had.
            FailureCondition::Value(_)
            | FailureCondition::Before(..)
            | FailureCondition::Any(_) => {}
        }
    }
    let interval = |id: EventId| trace.intervals.get(id.index());
    let mut orders = Vec::new();
    for (of, began) in waits {
        let thread = trace.event(began).thread;
        let wakes = trace.events.iter().filter(|event| {
            event.thread != thread
                && matches!(event.kind, EventKind::Wake { condition, .. } if condition == of)
        });
        // Until when another thread may have been woken.
        let until = wakes.map(|wake| interval(wake.id).map_or(u64::MAX, |it| it.latest)).max();
        let others = trace.events.iter().filter(|event| event.thread != thread);
        let before = others.filter(|event| match event.kind {
            EventKind::Broadcast { condition } => condition == of,
            EventKind::Signal { condition } if condition == of => until.is_none_or(|until| {
                interval(event.id).is_some_and(|interval| interval.earliest > until)
            }),
            _ => false,
        });
        orders.extend(before.map(|event| Order { before: event.id, after: began }));
    }
    orders
}

/// The orders that the failure condition names: where one of several is enough, the recorded run
/// had all of them.
pub(crate) fn named_orders(trace: &EventTrace) -> Vec<Order> {
    let mut orders = Vec::new();
    let mut open: Vec<&FailureCondition> =
        trace.failure.iter().map(|failure| &failure.condition).collect();
    while let Some(condition) = open.pop() {
        match condition {
            FailureCondition::Value(_) | FailureCondition::Unwoken { .. } => {}
            FailureCondition::Before(a, b) => orders.push(Order { before: *a, after: *b }),
            FailureCondition::All(parts) | FailureCondition::Any(parts) => open.extend(parts),
        }
    }
    orders
}

/// "The other critical section comes before the one that never really ended", for every pair that
/// excludes each other.
pub(crate) fn held_orders(trace: &EventTrace) -> Vec<Order> {
    let mut orders = Vec::new();
    for sections in sections(trace).values() {
        for held in sections.iter().filter(|section| section.synthetic) {
            let excludes = |other: &&Section| {
                other.thread != held.thread
                    && !other.synthetic
                    && (held.mode == LockMode::Exclusive || other.mode == LockMode::Exclusive)
            };
            let before = sections.iter().filter(excludes);
            orders.extend(before.map(|other| Order { before: other.unlock, after: held.lock }));
        }
    }
    orders
}

/// Those of [`held_orders`] that are about a thread that came to its own end: it will never give the lock back, which no schedule
/// can have otherwise.
pub(crate) fn left_orders(trace: &EventTrace) -> Vec<Order> {
    let has_ended = |id: EventId| {
        let last = trace.thread_of(id).events.last();
        last.is_some_and(|last| matches!(trace.event(*last).kind, EventKind::Exit))
    };
    held_orders(trace).into_iter().filter(|order| has_ended(order.after)).collect()
}

fn sections(trace: &EventTrace) -> BTreeMap<ObjectId, Vec<Section>> {
    let mut sections: BTreeMap<ObjectId, Vec<Section>> = BTreeMap::new();
    for thread in &trace.threads {
        let mut open: BTreeMap<ObjectId, (EventId, LockMode)> = BTreeMap::new();
        for &id in &thread.events {
            match trace.event(id).kind {
                EventKind::Lock { object, mode } => {
                    open.insert(object, (id, mode));
                }
                EventKind::Unlock { object, synthetic, .. } => {
                    if let Some((lock, mode)) = open.remove(&object) {
                        let section =
                            Section { thread: thread.id, mode, lock, unlock: id, synthetic };
                        sections.entry(object).or_default().push(section);
                    }
                }
                _ => {}
            }
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    #[test]
    fn who_ended_with_a_lock_gives_it_to_nobody() {
        let text = "a: lock m\na: [given] unlock m\nb: [kept] lock m\nb: [end] unlock m\n";
        let mut parsed = parse(text).expect("an event trace");
        let (end, before, after) =
            (parsed.event("end"), parsed.event("given"), parsed.event("kept"));
        assert_eq!(left_orders(&parsed.trace), []);
        if let EventKind::Unlock { synthetic, .. } = &mut parsed.trace.events[end.index()].kind {
            *synthetic = true;
        }
        assert_eq!(left_orders(&parsed.trace), [Order { before, after }]);
        // The end of a log is not the thread's own.
        let exit = parsed.trace.thread_of(end).events.last().copied().expect("an exit");
        parsed.trace.events[exit.index()].kind = EventKind::Fence;
        assert_eq!(left_orders(&parsed.trace), []);
    }
}
