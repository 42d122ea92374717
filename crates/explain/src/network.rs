//! The cheapest way to reverse a pair: a minimum cut.
//!
//! To reverse two events of a schedule its events are parted into early ones and late ones, the
//! pair's first event late and its second early; each part keeps its order. What such a parting
//! changes is what crosses it: a read whose source becomes late, a read that becomes late while a
//! later write is early, critical sections that change places. Each has a price, and program order
//! none can pay, so that the cheapest parting is a minimum cut. Prices are estimates: the evaluator
//! says what a schedule really does.

use crate::conflict::{ConflictOrder, OrderKind};
use crate::context::Context;
use crate::flow::Flow;
use crate::happens_before::HappensBefore;
use model::{EventId, EventKind, EventTrace, ObjectId, ThreadId, WriteSource};
use std::collections::BTreeMap;

/// The price of one data flow.
pub(crate) const FLOW: u32 = 64;
/// The price of an order of condition variables, semaphores or barriers.
const SYNCHRONISATION: u32 = 4 * FLOW;
/// The price of two critical sections that change places.
const SECTION: u32 = 1;
/// What cannot be had.
const FORBIDDEN: u32 = 1 << 24;
/// Partings above this price are of no interest.
const MOST: u32 = 48 * FLOW;

/// So many edges are looked at in the time in which an event is executed.
const EDGES_PER_EVENT: u64 = 4;

/// A schedule, with what its events do.
pub(crate) struct Base<'a> {
    pub(crate) order: &'a [EventId],
    /// As of [`model::evaluate::Evaluator::sources`].
    pub(crate) sources: &'a [WriteSource],
    /// The conflict orders; those of memory are not used.
    pub(crate) conflicts: &'a [ConflictOrder],
    pub(crate) happens_before: &'a HappensBefore,
}

/// What happens to critical sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locks {
    /// They stay whole and may change places.
    Whole,
    /// They keep their places and may be parted.
    InPlace,
}

/// What changes cost.
pub(crate) struct Prices {
    /// By read part, in event order and part order.
    pub(crate) reads: Vec<u32>,
    /// A cell's last write, by cell.
    pub(crate) cells: Vec<u32>,
}

/// The events of a schedule as a flow network; an edge is paid when its tail is late and its head
/// early.
pub(crate) struct Network {
    nodes: usize,
    /// Tail, head and capacity, while edges are added.
    added: Vec<(u32, u32, u32)>,
    flow: Flow,
}

/// A critical section.
struct Section {
    thread: ThreadId,
    lock: EventId,
    unlock: Option<EventId>,
}

impl Network {
    pub(crate) fn new(
        context: &Context<'_, '_>,
        base: &Base<'_>,
        prices: &Prices,
        locks: Locks,
    ) -> Self {
        let trace = context.trace;
        let mut network =
            Self { nodes: trace.events.len(), added: Vec::new(), flow: Flow::default() };
        network.program_order(trace);
        if locks == Locks::Whole {
            network.locks(trace, base.order);
        }
        network.memory(context, base, prices);
        for conflict in base.conflicts {
            let price = match conflict.kind {
                OrderKind::Condition(_) | OrderKind::Semaphore(_) | OrderKind::Barrier(_) => {
                    SYNCHRONISATION
                }
                OrderKind::Lock(_) if locks == Locks::InPlace => FORBIDDEN,
                _ => continue,
            };
            network.price(conflict.order.before, conflict.order.after, price);
        }
        network.flow = Flow::new(network.nodes, &std::mem::take(&mut network.added));
        network
    }

    fn price(&mut self, late: EventId, early: EventId, price: u32) {
        self.edge(late.0, early.0, price);
    }

    fn edge(&mut self, tail: u32, head: u32, capacity: u32) {
        if capacity == 0 || tail == head {
            return;
        }
        self.added.push((tail, head, capacity));
    }

    fn node(&mut self) -> u32 {
        self.nodes += 1;
        u32::try_from(self.nodes - 1).unwrap_or(u32::MAX)
    }

    fn program_order(&mut self, trace: &EventTrace) {
        for thread in &trace.threads {
            for pair in thread.events.windows(2) {
                self.price(pair[0], pair[1], FORBIDDEN);
            }
        }
        for event in &trace.events {
            let child = |child: ThreadId| &trace.threads[child.index()].events;
            match event.kind {
                EventKind::Fork { child: id } => {
                    child(id).first().iter().for_each(|e| self.price(event.id, **e, FORBIDDEN));
                }
                EventKind::Join { child: id } => {
                    child(id).last().iter().for_each(|e| self.price(**e, event.id, FORBIDDEN));
                }
                _ => {}
            }
        }
    }

    fn locks(&mut self, trace: &EventTrace, order: &[EventId]) {
        let mut objects: BTreeMap<ObjectId, Vec<Section>> = BTreeMap::new();
        for &id in order {
            let event = trace.event(id);
            match event.kind {
                EventKind::Lock { object, .. } => objects
                    .entry(object)
                    .or_default()
                    .push(Section { thread: event.thread, lock: id, unlock: None }),
                EventKind::Unlock { object, .. } => {
                    let sections = objects.entry(object).or_default();
                    let open = sections.iter_mut().rev().find(|s| s.thread == event.thread);
                    open.into_iter().for_each(|section| section.unlock = Some(id));
                }
                EventKind::TryLockFailed { object, .. } => {
                    // It stays inside the hold that it met.
                    let holders = objects.entry(object).or_default().iter();
                    for lock in holders.filter(|s| s.unlock.is_none()).map(|s| s.lock) {
                        self.price(lock, id, FORBIDDEN);
                        self.price(id, lock, FORBIDDEN);
                    }
                }
                _ => {}
            }
        }
        for sections in objects.values() {
            self.sections(sections);
        }
    }

    fn sections(&mut self, sections: &[Section]) {
        for (index, section) in sections.iter().enumerate() {
            match section.unlock {
                Some(unlock) => self.price(unlock, section.lock, FORBIDDEN),
                // Nobody comes after a section without end.
                None => sections[..index]
                    .iter()
                    .for_each(|earlier| self.price(earlier.lock, section.lock, FORBIDDEN)),
            }
            if let Some(next) = sections.get(index + 1) {
                self.price(section.lock, next.lock, SECTION);
            }
        }
    }

    fn memory(&mut self, context: &Context<'_, '_>, base: &Base<'_>, prices: &Prices) {
        let trace = context.trace;
        let mut writes: Vec<Vec<EventId>> = vec![Vec::new(); trace.cells.len()];
        // Each read with the number of writes before it.
        let mut reads: Vec<Vec<(EventId, usize, usize)>> = vec![Vec::new(); trace.cells.len()];
        for &id in base.order {
            let kind = &trace.event(id).kind;
            for (part, read) in kind.reads().iter().enumerate() {
                let cell = read.cell.index();
                reads[cell].push((id, context.read_index(id) + part, writes[cell].len()));
            }
            kind.writes().iter().for_each(|write| writes[write.cell.index()].push(id));
        }
        for (cell, writes) in writes.iter().enumerate() {
            let later = self.chain(writes);
            for &(read, index, before) in &reads[cell] {
                let price = prices.reads[index];
                match base.sources[index] {
                    WriteSource::Write(write)
                        if trace.event(write).thread == trace.event(read).thread =>
                    {
                        // Nothing comes in between unless the two are parted.
                        self.price(read, write, price);
                        continue;
                    }
                    WriteSource::Write(write) => self.price(write, read, price),
                    WriteSource::Init => {}
                }
                if let Some(&later) = later.get(before) {
                    self.edge(read.0, later, price);
                }
            }
            if let Some((last, others)) = writes.split_last() {
                let any = self.node();
                others.iter().for_each(|other| self.edge(other.0, any, FORBIDDEN));
                // Reads after all writes see the last one, whichever it is.
                let after_all = |read: EventId| {
                    writes.iter().all(|write| base.happens_before.before(*write, read))
                };
                let at_the_end = reads[cell].iter().rev();
                let at_the_end = at_the_end.take_while(|(_, _, before)| *before == writes.len());
                let at_the_end = at_the_end.filter(|(read, ..)| after_all(*read));
                let seen: u32 = at_the_end.map(|(_, index, _)| prices.reads[*index]).sum();
                self.edge(any, last.0, prices.cells[cell] + seen);
            }
        }
    }

    /// For each write a node that is late only if the write and all after it are.
    fn chain(&mut self, writes: &[EventId]) -> Vec<u32> {
        let nodes: Vec<u32> = writes.iter().map(|_| self.node()).collect();
        for (index, write) in writes.iter().enumerate() {
            self.edge(nodes[index], write.0, FORBIDDEN);
            if let Some(&next) = nodes.get(index + 1) {
                self.edge(nodes[index], next, FORBIDDEN);
            }
        }
        nodes
    }

    /// What the partings since this was asked last cost, in executed events.
    pub(crate) fn take_work(&mut self) -> u64 {
        self.flow.take_work() as u64 / EDGES_PER_EVENT
    }

    /// The late events of the cheapest partings with `late` late and `early` early: the one with
    /// the fewest late events and the one with the most. Empty when there is none, or when all are
    /// too dear.
    pub(crate) fn part(&mut self, late: &[EventId], early: &[EventId]) -> Vec<Vec<bool>> {
        let late: Vec<u32> = late.iter().map(|id| id.0).collect();
        let early: Vec<u32> = early.iter().map(|id| id.0).collect();
        if !self.flow.saturate(&late, &early, MOST) {
            return Vec::new();
        }
        let fewest = self.flow.reached_from(&late);
        let most = self.flow.not_reaching(&early);
        if fewest == most { vec![fewest] } else { vec![fewest, most] }
    }
}

/// The early events, then the late ones, each in the order given.
pub(crate) fn parted(order: &[EventId], late: &[bool]) -> Vec<EventId> {
    let (late, mut result): (Vec<EventId>, Vec<EventId>) =
        order.iter().copied().partition(|id| late[id.index()]);
    result.extend(late);
    result
}
