//! Schedules in which some stretches of threads are done without a break.

use model::{EventId, EventKind, EventTrace, LockMode, ObjectId};
use rustc_hash::FxHashMap;

/// A stretch of a thread, by places in the thread, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Block {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Does it happen where its last event was, and not where its first one was?
    pub(super) is_late: bool,
}

/// By event, where in its thread the critical sections around it begin and end: a block that begins or ends
/// within one would keep others out all the same.
pub(super) struct Hulls(Vec<(u32, u32)>);

impl Hulls {
    pub(super) fn new(trace: &EventTrace) -> Self {
        let mut hulls = vec![(0, 0); trace.events.len()];
        for thread in &trace.threads {
            let kind = |id: EventId| &trace.event(id).kind;
            let mut held: Vec<(ObjectId, u32)> = Vec::new();
            for (index, &id) in (0..).zip(&thread.events) {
                if let EventKind::Lock { object, .. } = *kind(id) {
                    held.push((object, index));
                }
                hulls[id.index()].0 = held.first().map_or(index, |(_, from)| *from);
                if let EventKind::Unlock { object, .. } = *kind(id) {
                    held.retain(|(other, _)| *other != object);
                }
            }
            held.clear();
            for &id in thread.events.iter().rev() {
                let index = trace.event(id).index;
                if let EventKind::Unlock { object, .. } = *kind(id) {
                    held.push((object, index));
                }
                hulls[id.index()].1 = held.first().map_or(index, |(_, to)| *to);
                if let EventKind::Lock { object, .. } = *kind(id) {
                    held.retain(|(other, _)| *other != object);
                }
            }
        }
        Self(hulls)
    }

    /// The block from one event of a thread to a later one with all of the sections that they are in.
    pub(super) fn block(&self, (first, last): (EventId, EventId), is_late: bool) -> Block {
        Block { from: self.0[first.index()].0, to: self.0[last.index()].1, is_late }
    }
}

/// A schedule in which each block happens without a break: where its first event was, or as soon after that as the
/// locks are free that it takes. `blocks` are by thread, in any order. The schedule need not be possible.
pub(super) fn without_breaks(
    trace: &EventTrace,
    order: &[EventId],
    blocks: Vec<Vec<Block>>,
) -> Vec<EventId> {
    let blocks = blocks.into_iter().map(apart).collect();
    let mut made = Making {
        trace,
        order: Vec::with_capacity(order.len()),
        done: vec![0; trace.threads.len()],
        blocks,
        next: vec![0; trace.threads.len()],
        waiting: Vec::new(),
        held: FxHashMap::default(),
    };
    for &id in order {
        made.take(id);
    }
    for thread in std::mem::take(&mut made.waiting) {
        made.perform_block(thread);
    }
    made.order
}

/// Blocks in program order of which no two have an event in common.
fn apart(mut blocks: Vec<Block>) -> Vec<Block> {
    blocks.sort_unstable();
    let mut result: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match result.last_mut() {
            Some(last) if block.from <= last.to => {
                last.to = last.to.max(block.to);
                last.is_late |= block.is_late;
            }
            _ => result.push(block),
        }
    }
    result
}

struct Making<'t> {
    trace: &'t EventTrace,
    order: Vec<EventId>,
    /// By thread, how many of its events are in the schedule.
    done: Vec<u32>,
    blocks: Vec<Vec<Block>>,
    /// By thread, its next block.
    next: Vec<usize>,
    /// Threads whose next block has begun in the old schedule, and has not happened yet.
    waiting: Vec<usize>,
    /// How often each lock is held: alone, and with others.
    held: FxHashMap<ObjectId, (u32, u32)>,
}

impl Making<'_> {
    /// The next event of the old schedule.
    fn take(&mut self, id: EventId) {
        let event = self.trace.event(id);
        let thread = event.thread.index();
        if event.index < self.done[thread] {
            return;
        }
        let begun = self.waiting.contains(&thread);
        match self.blocks[thread].get(self.next[thread]).copied() {
            Some(block) if (block.from..=block.to).contains(&event.index) => {
                if !begun {
                    self.waiting.push(thread);
                }
                let is_time = if block.is_late { event.index == block.to } else { !begun };
                if is_time && self.is_free(thread, block) {
                    self.perform_block(thread);
                }
            }
            _ => {
                if begun {
                    self.perform_block(thread);
                }
                self.perform(id);
                if matches!(event.kind, EventKind::Unlock { .. }) {
                    self.perform_waiting();
                }
            }
        }
    }

    /// The blocks that waited for a lock and need not any more.
    fn perform_waiting(&mut self) {
        while let Some(thread) = self.waiting.iter().copied().find(|&thread| {
            let block = self.blocks[thread].get(self.next[thread]);
            block.is_some_and(|block| !block.is_late && self.is_free(thread, *block))
        }) {
            self.perform_block(thread);
        }
    }

    fn perform_block(&mut self, thread: usize) {
        self.waiting.retain(|&other| other != thread);
        let Some(block) = self.blocks[thread].get(self.next[thread]).copied() else { return };
        self.next[thread] += 1;
        for index in block.from..=block.to {
            if let Some(&id) = self.trace.threads[thread].events.get(index as usize) {
                self.perform(id);
            }
        }
    }

    fn perform(&mut self, id: EventId) {
        let event = self.trace.event(id);
        match event.kind {
            EventKind::Lock { object, mode } => {
                let held = self.held.entry(object).or_default();
                *(if mode == LockMode::Shared { &mut held.1 } else { &mut held.0 }) += 1;
            }
            EventKind::Unlock { object, mode, .. } => {
                let held = self.held.entry(object).or_default();
                let held = if mode == LockMode::Shared { &mut held.1 } else { &mut held.0 };
                *held = held.saturating_sub(1);
            }
            _ => {}
        }
        self.done[event.thread.index()] = event.index + 1;
        self.order.push(id);
    }

    /// Are the locks free that a block takes and does not hold yet?
    fn is_free(&self, thread: usize, block: Block) -> bool {
        let mut own: Vec<ObjectId> = Vec::new();
        let events = &self.trace.threads[thread].events;
        let within = events.get(block.from as usize..=block.to as usize).unwrap_or_default();
        within.iter().all(|&id| {
            let EventKind::Lock { object, mode } = self.trace.event(id).kind else { return true };
            if own.contains(&object) {
                return true;
            }
            own.push(object);
            let (alone, shared) = self.held.get(&object).copied().unwrap_or_default();
            alone == 0 && (mode == LockMode::Shared || shared == 0)
        })
    }
}
