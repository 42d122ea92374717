//! A thread that does not come back from a call about an object of synchronisation that has no reason to keep it: a lock that
//! no thread has, or a call that does not wait. What lies there is no such object, or not any more.
//!
//! In memory that was asked for, the allocator may have written there since ([`Report`](crate::Report) says so). In another
//! thread's stack, the object may have been a local variable that has ended. Then that thread is the failing one, and another walk
//! looks for the end ([`crate::failure`]).

use super::graph::Graph;
use super::{Waiting, Waits};
use crate::engine::Engine;
use crate::locals::owner_of_stack;
use crate::sync::never_waits;

/// In what memory an object lies that a thread waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Memory {
    /// In memory that was asked for, or where nothing is that is known.
    Heap,
    /// In another thread's stack.
    Stack,
    /// Elsewhere.
    #[default]
    Other,
}

impl Engine<'_> {
    /// The memory at a recorded address.
    pub(super) fn memory_at(&mut self, t: usize, address: u64) -> Memory {
        let Some(internal) = self.resolve(t, address) else { return Memory::Heap };
        let heap = &self.learned.heap;
        if heap.at_internal(internal).is_some_and(|object| !heap.is_local(object)) {
            return Memory::Heap;
        }
        match owner_of_stack(internal) {
            Some(owner) if owner != t => Memory::Stack,
            _ => Memory::Other,
        }
    }

    /// A run that hung ended in a call of a thread: notes that it does not come back from one that does not wait.
    pub(super) fn note_kept(&mut self, t: usize) {
        let Some(pending) = self.threads[t].pending_sync.last().filter(|_| self.hangs()) else {
            return;
        };
        if never_waits(pending.operation) {
            let address = pending.address;
            let memory = self.memory_at(t, address);
            self.waiting.kept.push((t, memory));
        }
    }

    /// What a thread is in that does not come back from a call: `t0.1 waits for m`.
    pub(crate) fn lost_message(&self, t: usize) -> String {
        let thread = &self.threads[t];
        let (name, pending) = (&thread.log.name, thread.pending_sync.last());
        let object = pending.and_then(|pending| pending.name.as_deref()).unwrap_or("an object");
        match pending.is_some_and(|pending| never_waits(pending.operation)) {
            true => format!("{name} does not come back from a call about {object}"),
            false => format!("{name} waits for {object}, which nobody has"),
        }
    }

    /// The first thread of a run that hung that does not come back from such a call about something in another one's stack.
    pub(crate) fn lost_in_stack(&self) -> Option<usize> {
        if !self.hangs() || self.failing.is_some() {
            return None;
        }
        let graph = Graph::new(&self.waiting, &self.initialised, &self.out);
        self.waiting.lost_in(Memory::Stack, &graph)
    }
}

impl Waiting {
    /// The first thread that does not come back from such a call about something in memory of this kind.
    pub(super) fn lost_in(&self, memory: Memory, graph: &Graph<'_>) -> Option<usize> {
        let has_no_reason = |at: &usize| {
            matches!(graph.stuck[*at].waits, Waits::Lock { .. })
                && graph.steps(*at).is_empty()
                && graph.holders(*at).next().is_none()
        };
        let waits = (0..graph.stuck.len()).filter(has_no_reason);
        let waits = waits.map(|at| (graph.stuck[at].thread, graph.stuck[at].memory));
        let mut all = waits.chain(self.kept.iter().copied());
        all.find(|(_, found)| *found == memory).map(|(thread, _)| thread)
    }
}
