//! From a schedule of the slice to one of the whole trace.

use super::Slice;
use model::{EventId, EventKind, EventTrace, LockMode, ObjectId, ThreadId};
use std::collections::BTreeSet;

impl Slice {
    /// The schedule of the whole trace that does the same as this one of the slice, with as few
    /// more context switches as can be; `None` when a critical section that is not in the slice
    /// has no moment at which its lock is free.
    ///
    /// Of a part of a run ([`window`](super::window)), it is the schedule with what came before and behind that part.
    #[must_use]
    pub fn widen(&self, whole: &EventTrace, order: &[EventId]) -> Option<Vec<EventId>> {
        if !self.before.is_empty() {
            return self.within_run(whole, order);
        }
        let mut stays = vec![false; whole.events.len()];
        self.events.iter().for_each(|id| stays[id.index()] = true);
        let mut run = Run {
            whole,
            stays,
            order: Vec::with_capacity(whole.events.len()),
            threads: vec![Progress::default(); whole.threads.len()],
            locks: vec![Held::default(); whole.objects.len()],
        };
        if let Some(initial) = whole.threads.iter().find(|thread| thread.parent.is_none()) {
            run.go_on(initial.id);
        }
        for &id in order {
            run.step(self.event(id))?;
        }
        (run.order.len() == whole.events.len()).then_some(run.order)
    }

    fn within_run(&self, whole: &EventTrace, order: &[EventId]) -> Option<Vec<EventId>> {
        let mut all = self.behind_beginning(order);
        all.extend_from_slice(&self.after);
        (all.len() == whole.events.len()).then_some(all)
    }

    /// Events of a part of a run ([`window`](super::window)), in this order, behind what came before that part, as events
    /// of the whole run.
    #[must_use]
    pub fn behind_beginning(&self, order: &[EventId]) -> Vec<EventId> {
        let known: BTreeSet<EventId> = self.before.iter().copied().collect();
        let mut all = self.before.clone();
        all.extend(order.iter().map(|id| self.event(*id)).filter(|id| !known.contains(id)));
        all
    }
}

#[derive(Clone, Copy, Default)]
struct Progress {
    /// The thread's next event, as an index.
    next: usize,
    /// It waits for a lock in a section that is not in the slice.
    waits: bool,
}

#[derive(Clone, Copy, Default)]
struct Held {
    exclusive: bool,
    shared: u32,
}

struct Run<'t> {
    whole: &'t EventTrace,
    stays: Vec<bool>,
    order: Vec<EventId>,
    threads: Vec<Progress>,
    locks: Vec<Held>,
}

impl Run<'_> {
    fn next(&self, thread: ThreadId) -> Option<EventId> {
        let events = &self.whole.threads[thread.index()].events;
        events.get(self.threads[thread.index()].next).copied()
    }

    fn take(&mut self, thread: ThreadId, id: EventId) {
        self.order.push(id);
        self.threads[thread.index()].next += 1;
    }

    /// An event of the slice happens.
    fn step(&mut self, id: EventId) -> Option<()> {
        let event = self.whole.event(id);
        let thread = event.thread;
        self.go_on(thread);
        if self.next(thread) != Some(id) {
            return None;
        }
        self.take(thread, id);
        let mut released = false;
        match event.kind {
            EventKind::Lock { object, mode } => self.hold(object, mode, true),
            EventKind::Unlock { object, mode, .. } => {
                self.hold(object, mode, false);
                released = true;
            }
            EventKind::Fork { child } => self.go_on(child),
            _ => {}
        }
        self.go_on(thread);
        if released {
            for index in 0..self.threads.len() {
                if self.threads[index].waits {
                    self.go_on(ThreadId::from_index(index));
                }
            }
        }
        Some(())
    }

    fn hold(&mut self, object: ObjectId, mode: LockMode, holds: bool) {
        let Some(held) = self.locks.get_mut(object.index()) else { return };
        match mode {
            LockMode::Exclusive => held.exclusive = holds,
            LockMode::Shared if holds => held.shared += 1,
            LockMode::Shared => held.shared = held.shared.saturating_sub(1),
        }
    }

    fn is_free(&self, object: ObjectId, mode: LockMode) -> bool {
        self.locks
            .get(object.index())
            .is_none_or(|held| !held.exclusive && (mode == LockMode::Shared || held.shared == 0))
    }

    /// The thread does what it can up to its next event in the slice.
    fn go_on(&mut self, thread: ThreadId) {
        self.threads[thread.index()].waits = false;
        while let Some(id) = self.next(thread).filter(|id| !self.stays[id.index()]) {
            // The rest of a section comes at the same moment as its acquisition.
            if let EventKind::Lock { object, mode } = self.whole.event(id).kind
                && !self.is_free(object, mode)
            {
                self.threads[thread.index()].waits = true;
                return;
            }
            self.take(thread, id);
        }
    }
}
