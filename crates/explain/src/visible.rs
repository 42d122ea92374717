//! What makes a data-flow variation visible: the update that is torn apart, and how the other
//! value reaches the failure.

use crate::alternates::Alternate;
use crate::dsp::DataFlow;
use crate::failing::Failing;
use model::{CellId, EventId, EventTrace, ReadRef, WriteSource};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A way to the failure with more new events than this is cut down to its end.
const WAY: usize = 3;

/// The two schedules and what varies.
pub(crate) struct View<'a> {
    pub(crate) trace: &'a EventTrace,
    pub(crate) failing: &'a Failing,
    pub(crate) alternate: &'a Alternate,
    /// By event, its position in the alternate.
    pub(crate) places: &'a [u32],
    /// The failing schedule's data flows that vary.
    pub(crate) varying: &'a [DataFlow],
}

impl View<'_> {
    /// The other halves of updates (a read, and the thread's next write of the cell, which depends
    /// on the value read) that a shown event of another thread tears apart in the failing schedule
    /// and nothing does in the alternate.
    pub(crate) fn updates(&self, shown: &BTreeSet<EventId>) -> Vec<EventId> {
        let mut found = Vec::new();
        for &event in shown {
            let kind = &self.trace.event(event).kind;
            for (part, read) in (0..).zip(kind.reads()) {
                let read_ref = ReadRef { event, part };
                let write = self.next_write(event, read.cell);
                if let Some(write) = write.filter(|w| self.feeds(read_ref, *w, read.cell))
                    && self.torn(event, write, read.cell, shown)
                {
                    found.push(write);
                }
            }
            for write in kind.writes() {
                let read = self.last_read(event, write.cell);
                if let Some(read) = read.filter(|r| self.feeds(*r, event, write.cell))
                    && self.torn(read.event, event, write.cell, shown)
                {
                    found.push(read.event);
                }
            }
        }
        found
    }

    fn next_write(&self, event: EventId, cell: CellId) -> Option<EventId> {
        let later = &self.trace.thread_of(event).events;
        let mut later = later[self.trace.event(event).index as usize + 1..].iter().copied();
        later.find(|id| self.writes(*id, cell))
    }

    /// The thread's last read of the cell before the event, with no write of it in between.
    fn last_read(&self, event: EventId, cell: CellId) -> Option<ReadRef> {
        let earlier = &self.trace.thread_of(event).events;
        let earlier = earlier[..self.trace.event(event).index as usize].iter().rev().copied();
        for id in earlier {
            let reads = (0..).zip(self.trace.event(id).kind.reads());
            if let Some((part, _)) = reads.into_iter().find(|(_, read)| read.cell == cell) {
                return Some(ReadRef { event: id, part });
            }
            if self.writes(id, cell) {
                return None;
            }
        }
        None
    }

    fn writes(&self, event: EventId, cell: CellId) -> bool {
        self.trace.event(event).kind.writes().iter().any(|part| part.cell == cell)
    }

    fn feeds(&self, read: ReadRef, write: EventId, cell: CellId) -> bool {
        let mut parts = self.trace.event(write).kind.writes().iter();
        let part = parts.find(|part| part.cell == cell);
        part.is_some_and(|part| self.trace.reads_of(part.value).contains(&read))
    }

    fn torn(&self, read: EventId, write: EventId, cell: CellId, shown: &BTreeSet<EventId>) -> bool {
        let thread = self.trace.event(read).thread;
        let mut remote = self.trace.events.iter().filter(|e| e.thread != thread);
        let between = |id: EventId, places: &[u32]| {
            let place = places[id.index()];
            places[read.index()] < place && place < places[write.index()]
        };
        let positions = &self.failing.positions;
        shown.iter().any(|id| {
            self.trace.event(*id).thread != thread
                && self.writes(*id, cell)
                && between(*id, positions)
        }) && !remote.any(|e| self.writes(e.id, cell) && between(e.id, self.places))
    }

    /// When no data flow that varies ends at a read of the failure condition: the way by which
    /// another value reaches such a read.
    pub(crate) fn effect(&self, shown: &BTreeSet<EventId>) -> Vec<EventId> {
        let ends: BTreeSet<ReadRef> = self.varying.iter().map(|flow| flow.read).collect();
        let decisive = &self.failing.decisive;
        if ends.iter().any(|read| decisive.contains(read)) {
            return Vec::new();
        }
        let mut targets: Vec<ReadRef> =
            decisive.iter().copied().filter(|read| self.differs(*read)).collect();
        targets.sort_by_key(|read| (self.failing.position(read.event), *read));
        let Some(&target) = targets.last() else { return Vec::new() };
        let way = self.way(target, &ends);
        let new = |way: &[EventId]| way.iter().filter(|event| !shown.contains(event)).count();
        if new(&way) <= WAY { way } else { way.into_iter().take(2).collect() }
    }

    /// From the read back to one that varies: reads, each with its source, that have other values
    /// in the alternate.
    fn way(&self, target: ReadRef, ends: &BTreeSet<ReadRef>) -> Vec<EventId> {
        let mut came_from: BTreeMap<ReadRef, Option<ReadRef>> = BTreeMap::from([(target, None)]);
        let mut queue = VecDeque::from([target]);
        let mut last = target;
        while let Some(read) = queue.pop_front() {
            if ends.contains(&read) {
                last = read;
                break;
            }
            for earlier in self.feeding(read) {
                if self.differs(earlier) && !came_from.contains_key(&earlier) {
                    came_from.insert(earlier, Some(read));
                    queue.push_back(earlier);
                }
            }
        }
        let mut way = Vec::new();
        let mut at = Some(last);
        while let Some(read) = at {
            // Collected from the far end; the sources of varying reads are shown anyway.
            if !ends.contains(&read) {
                way.extend(self.source(read));
            }
            way.push(read.event);
            at = came_from.get(&read).copied().flatten();
        }
        way.reverse();
        way
    }

    fn source(&self, read: ReadRef) -> Option<EventId> {
        match self.failing.evaluation.reads_from.get(&read) {
            Some(WriteSource::Write(event)) => Some(*event),
            _ => None,
        }
    }

    /// The reads that the value written by a read's source depends on.
    fn feeding(&self, read: ReadRef) -> BTreeSet<ReadRef> {
        let parts = self.trace.event(read.event).kind.reads();
        let Some(part) = parts.get(read.part as usize) else { return BTreeSet::new() };
        let Some(source) = self.source(read) else { return BTreeSet::new() };
        let mut written = self.trace.event(source).kind.writes().iter();
        let value = written.find(|write| write.cell == part.cell).map(|write| write.value);
        value.map(|value| self.trace.reads_of(value)).unwrap_or_default()
    }

    /// Does the read return another value in the alternate?
    fn differs(&self, read: ReadRef) -> bool {
        let parts = self.trace.event(read.event).kind.reads();
        let Some(part) = parts.get(read.part as usize) else { return false };
        let value = |values: &[Option<u128>]| values.get(part.var.index()).copied().flatten();
        value(&self.failing.evaluation.values) != value(&self.alternate.evaluation.values)
    }
}
