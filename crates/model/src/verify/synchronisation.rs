//! Invariants of synchronisation, thread and heap events.

use super::{Checker, Violation};
use crate::event::{Awaited, Event, EventKind, LockMode};
use crate::ids::{EventId, ObjectId, ThreadId};
use crate::trace::ObjectKind;
use std::collections::{BTreeMap, BTreeSet};

/// What the checks remember across events. Program order is the order of the events.
#[derive(Default)]
struct Seen {
    /// How often each thread holds each lock in each mode (exclusive: false).
    held: BTreeMap<(ThreadId, ObjectId, bool), u32>,
    /// Releases that a wait has begun at.
    waits: BTreeSet<EventId>,
    /// Threads between arrival and departure.
    arrived: BTreeSet<(ThreadId, ObjectId)>,
    created: BTreeSet<ThreadId>,
    allocated: BTreeSet<ObjectId>,
}

impl Checker<'_> {
    pub(super) fn synchronisation(&mut self) {
        let mut seen = Seen::default();
        for event in &self.trace.events {
            self.object_kind(event);
            self.event(event, &mut seen);
        }
        for ((thread, object, _), count) in seen.held {
            if count > 0 && !self.has_ended(thread) {
                self.report(Violation::HeldAtEnd { thread, object });
            }
        }
    }

    /// Did the thread come to its own end? What it had then nobody gets.
    fn has_ended(&self, thread: ThreadId) -> bool {
        let thread = self.trace.threads.get(thread.index());
        let last = thread.and_then(|thread| self.trace.events.get(thread.events.last()?.index()));
        last.is_some_and(|last| last.kind == EventKind::Exit)
    }

    fn object_kind(&mut self, event: &Event) {
        let Some(object) = object_of(&event.kind) else { return };
        if !self.exists(event.id, object, object.index(), self.trace.objects.len()) {
            return;
        }
        let kind = self.trace.objects[object.index()].kind;
        if !works_on(&event.kind, kind) {
            self.report(Violation::ObjectKind { event: event.id, object, kind });
        }
    }

    fn event(&mut self, event: &Event, seen: &mut Seen) {
        let (id, thread) = (event.id, event.thread);
        let violation = match event.kind {
            EventKind::Lock { object, mode } => self.lock(event, object, mode, seen),
            EventKind::Unlock { object, mode, .. } => {
                let shared = mode == LockMode::Shared;
                match seen.held.get_mut(&(thread, object, shared)) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        None
                    }
                    _ => Some(Violation::NotHeld { event: id, object, mode }),
                }
            }
            EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } => {
                let right = self.begins_wait(event, began) && seen.waits.insert(began);
                (!right).then_some(Violation::Began { event: id, began })
            }
            EventKind::BarrierArrive { object } => {
                let right = seen.arrived.insert((thread, object));
                (!right).then_some(Violation::BarrierTurn { event: id, object })
            }
            EventKind::BarrierLeave { object } => {
                let right = seen.arrived.remove(&(thread, object));
                (!right).then_some(Violation::BarrierTurn { event: id, object })
            }
            EventKind::Fork { child } => {
                let right = self.trace.threads.get(child.index()).is_none_or(|created| {
                    created.parent == Some(thread) && seen.created.insert(child)
                });
                self.exists(id, child, child.index(), self.trace.threads.len());
                (!right).then_some(Violation::Fork { event: id, child })
            }
            EventKind::Join { child } => {
                self.exists(id, child, child.index(), self.trace.threads.len());
                (child == thread).then_some(Violation::SelfJoin(id))
            }
            EventKind::Allocate { object } => {
                let right = seen.allocated.insert(object);
                (!right).then_some(Violation::Reallocated { event: id, object })
            }
            _ => None,
        };
        self.violations.extend(violation);
    }

    fn lock(
        &self,
        event: &Event,
        object: ObjectId,
        mode: LockMode,
        seen: &mut Seen,
    ) -> Option<Violation> {
        let thread = event.thread;
        let holds = |shared| seen.held.get(&(thread, object, shared)).is_some_and(|n| *n > 0);
        // A thread may hold a lock shared several times, but nothing beside an exclusive hold.
        let blocked = holds(false) || (mode == LockMode::Exclusive && holds(true));
        *seen.held.entry((thread, object, mode == LockMode::Shared)).or_default() += 1;
        blocked.then_some(Violation::SelfLock { event: event.id, object })
    }

    fn begins_wait(&self, event: &Event, began: EventId) -> bool {
        self.trace.events.get(began.index()).is_some_and(|release| {
            matches!(release.kind, EventKind::Unlock { .. })
                && release.thread == event.thread
                && release.index < event.index
        })
    }
}

/// The synchronisation or heap object that an event works on.
fn object_of(kind: &EventKind) -> Option<ObjectId> {
    match *kind {
        EventKind::Lock { object, .. }
        | EventKind::Unlock { object, .. }
        | EventKind::TryLockFailed { object, .. }
        | EventKind::SemaphoreWait { object }
        | EventKind::SemaphoreWaitFailed { object }
        | EventKind::SemaphorePost { object }
        | EventKind::BarrierArrive { object }
        | EventKind::BarrierLeave { object }
        | EventKind::Allocate { object }
        | EventKind::Free { object } => Some(object),
        EventKind::Wake { condition, .. }
        | EventKind::WaitTimedOut { condition, .. }
        | EventKind::Signal { condition }
        | EventKind::Broadcast { condition } => Some(condition),
        EventKind::Block { on } => on.object(),
        _ => None,
    }
}

fn works_on(event: &EventKind, object: ObjectKind) -> bool {
    match event {
        EventKind::Lock { .. } | EventKind::Unlock { .. } | EventKind::TryLockFailed { .. } => {
            object == ObjectKind::Lock
        }
        EventKind::Wake { .. }
        | EventKind::WaitTimedOut { .. }
        | EventKind::Signal { .. }
        | EventKind::Broadcast { .. } => object == ObjectKind::Condition,
        EventKind::SemaphoreWait { .. }
        | EventKind::SemaphoreWaitFailed { .. }
        | EventKind::SemaphorePost { .. } => matches!(object, ObjectKind::Semaphore { .. }),
        EventKind::BarrierArrive { .. } | EventKind::BarrierLeave { .. } => {
            matches!(object, ObjectKind::Barrier { .. })
        }
        EventKind::Allocate { .. } => object == ObjectKind::Heap,
        EventKind::Free { .. } => matches!(object, ObjectKind::Heap | ObjectKind::Local),
        EventKind::Block { on } => match on {
            Awaited::Lock { .. } => object == ObjectKind::Lock,
            Awaited::Signal { .. } => object == ObjectKind::Condition,
            Awaited::Unit { .. } => matches!(object, ObjectKind::Semaphore { .. }),
            Awaited::Arrivals { .. } => matches!(object, ObjectKind::Barrier { .. }),
            Awaited::End { .. } | Awaited::Change | Awaited::Call | Awaited::Other => true,
        },
        _ => true,
    }
}
