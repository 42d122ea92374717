//! The differential schedule projection ([S] 3.5): what the failing schedule and an alternate
//! differ in.

use crate::alternates::Alternate;
use crate::conflict::positions;
use crate::consequence::{Variation, consequences};
use crate::failing::Failing;
use crate::visible::View;
use model::evaluate::Evaluation;
use model::{CellId, EventId, EventKind, EventTrace, LockMode, ReadRef, ThreadId, WriteSource};
use std::collections::{BTreeMap, BTreeSet};

/// A read and where it takes its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataFlow {
    /// The source.
    pub write: WriteSource,
    /// The read.
    pub read: ReadRef,
}

/// A cell that ends with another event's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalWrite {
    /// The cell.
    pub cell: CellId,
    /// The last write in the failing schedule.
    pub failing: WriteSource,
    /// The last write in the alternate.
    pub alternate: WriteSource,
}

/// A block of one thread that the alternate runs without interruption by other events of the DSP,
/// and the failing schedule does not: a hint at what should be atomic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomicBlock {
    /// The thread.
    pub thread: ThreadId,
    /// Its first event.
    pub first: EventId,
    /// Its last event.
    pub last: EventId,
    /// The events of other threads in between in the failing schedule, in its order.
    pub interrupted_by: Vec<EventId>,
}

/// How much of the failing schedule the DSP leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events of the failing schedule.
    pub schedule_events: usize,
    /// Data flows of the failing schedule: reads, each with its source.
    pub schedule_data_flows: usize,
    /// Events of the DSP.
    pub events: usize,
    /// Data flows of the failing schedule that the DSP shows.
    pub data_flows: usize,
}

/// A differential schedule projection. Both sequences hold the same events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dsp {
    /// The events that matter, as the failing schedule has them.
    pub failing: Vec<EventId>,
    /// The same events as the alternate has them.
    pub alternate: Vec<EventId>,
    /// Data flows of the failing schedule that the alternate does not have, in its order.
    pub failing_only: Vec<DataFlow>,
    /// Data flows of the alternate that the failing schedule does not have, in the failing
    /// schedule's order of the reads.
    pub alternate_only: Vec<DataFlow>,
    /// Reads whose variation follows from that of others: it could not have stayed away once those
    /// were there.
    pub follows: BTreeMap<ReadRef, Vec<ReadRef>>,
    /// Cells whose final value differs because another event writes last.
    pub final_writes: Vec<FinalWrite>,
    /// Conflicting pairs in the failing schedule's order that the alternate reverses.
    pub moved: Vec<(EventId, EventId)>,
    /// Blocks that only the alternate keeps whole.
    pub atomic_blocks: Vec<AtomicBlock>,
    /// Sizes.
    pub counts: Counts,
}

impl Dsp {
    /// What the smallest DSP is chosen by: data flows that do not follow from others, all data
    /// flows, operations in the former, events.
    pub(crate) fn size(&self) -> (usize, usize, usize, usize) {
        let all = self.failing_only.len() + self.final_writes.len();
        let flows = [self.failing_only.as_slice(), self.alternate_only.as_slice()];
        let operations = operations(flows, &self.follows).len();
        (all - self.follows.len(), all, operations, self.failing.len())
    }

    /// Would it show the same differences?
    pub(crate) fn same_data_flow(&self, other: &Self) -> bool {
        (&self.failing_only, &self.alternate_only, &self.final_writes)
            == (&other.failing_only, &other.alternate_only, &other.final_writes)
    }
}

/// The operations of data flows that do not follow from others: the events at their ends.
pub(crate) fn operations(
    flows: [&[DataFlow]; 2],
    follows: &BTreeMap<ReadRef, Vec<ReadRef>>,
) -> BTreeSet<EventId> {
    let flows = flows.into_iter().flatten().filter(|flow| !follows.contains_key(&flow.read));
    flows.flat_map(|flow| [Some(flow.read.event), event_of(flow.write)]).flatten().collect()
}

pub(crate) fn differential(trace: &EventTrace, failing: &Failing, alternate: &Alternate) -> Dsp {
    let order = |id: EventId| failing.position(id);
    let mut reads: Vec<ReadRef> = failing.evaluation.reads_from.keys().copied().collect();
    reads.sort_by_key(|read| (order(read.event), read.part));
    let (mut failing_only, mut alternate_only) = (Vec::new(), Vec::new());
    for read in reads {
        let before = source(&failing.evaluation, read);
        let after = source(&alternate.evaluation, read);
        if before != after {
            failing_only.push(DataFlow { write: before, read });
            alternate_only.push(DataFlow { write: after, read });
        }
    }
    let final_writes = final_writes(trace, &failing.evaluation, &alternate.evaluation);
    let mut events = BTreeSet::from([alternate.flipped.before, alternate.flipped.after]);
    for flow in failing_only.iter().chain(&alternate_only) {
        events.insert(flow.read.event);
        events.extend(event_of(flow.write));
    }
    for last in &final_writes {
        events.extend(event_of(last.failing));
        events.extend(event_of(last.alternate));
    }
    let places = positions(trace, &alternate.schedule.order);
    let view = View { trace, failing, alternate, places: &places, varying: &failing_only };
    events.extend(view.updates(&events));
    events.extend(view.effect(&events));
    let mut in_failing: Vec<EventId> = events.iter().copied().collect();
    let mut in_alternate = in_failing.clone();
    in_failing.sort_by_key(|id| order(*id));
    in_alternate.sort_by_key(|id| places[id.index()]);
    let counts = Counts {
        schedule_events: trace.events.len(),
        schedule_data_flows: failing.evaluation.reads_from.len(),
        events: events.len(),
        data_flows: failing_only.len(),
    };
    Dsp {
        moved: moved(trace, &in_failing, &places),
        follows: follows(trace, failing, &failing_only, &alternate_only, &places),
        atomic_blocks: atomic_blocks(trace, &in_failing, &in_alternate),
        failing: in_failing,
        alternate: in_alternate,
        failing_only,
        alternate_only,
        final_writes,
        counts,
    }
}

/// What follows from what among the variations.
fn follows(
    trace: &EventTrace,
    failing: &Failing,
    failing_only: &[DataFlow],
    alternate_only: &[DataFlow],
    places: &[u32],
) -> BTreeMap<ReadRef, Vec<ReadRef>> {
    let both = failing_only.iter().zip(alternate_only);
    let mut variations: Vec<Variation> = both
        .map(|(before, after)| Variation {
            read: after.read,
            passing: after.write,
            failing: Some(before.write),
        })
        .collect();
    variations.sort_by_key(|one| (places[one.read.event.index()], one.read.part));
    let found = consequences(trace, &failing.happens_before, &variations);
    let reads = |all: Vec<usize>| all.into_iter().map(|index| variations[index].read).collect();
    found.into_iter().map(|(index, from)| (variations[index].read, reads(from))).collect()
}

fn source(evaluation: &Evaluation, read: ReadRef) -> WriteSource {
    evaluation.reads_from.get(&read).copied().unwrap_or(WriteSource::Init)
}

fn event_of(source: WriteSource) -> Option<EventId> {
    match source {
        WriteSource::Init => None,
        WriteSource::Write(event) => Some(event),
    }
}

pub(crate) fn final_writes(
    trace: &EventTrace,
    failing: &Evaluation,
    alternate: &Evaluation,
) -> Vec<FinalWrite> {
    let both = failing.last_writes.iter().zip(&alternate.last_writes).enumerate();
    let differing = both.filter_map(|(index, (&before, &after))| {
        let cell = CellId::from_index(index);
        let same = before == after
            || final_value(trace, failing, cell, before)
                == final_value(trace, alternate, cell, after);
        (!same).then_some(FinalWrite { cell, failing: before, alternate: after })
    });
    differing.collect()
}

fn final_value(
    trace: &EventTrace,
    evaluation: &Evaluation,
    cell: CellId,
    source: WriteSource,
) -> Option<u128> {
    let value = match source {
        WriteSource::Init => trace.cells[cell.index()].init,
        WriteSource::Write(event) => {
            trace.event(event).kind.writes().iter().find(|part| part.cell == cell)?.value
        }
    };
    trace.exprs.evaluate(value, &|var| evaluation.values.get(var.index()).copied().flatten())
}

/// The pairs of conflicting events, in failing order, that the alternate reverses.
fn moved(trace: &EventTrace, in_failing: &[EventId], places: &[u32]) -> Vec<(EventId, EventId)> {
    let mut moved = Vec::new();
    for (index, &a) in in_failing.iter().enumerate() {
        for &b in &in_failing[index + 1..] {
            if places[a.index()] > places[b.index()] && conflict(trace, a, b) {
                moved.push((a, b));
            }
        }
    }
    moved
}

/// Does the order of the two events matter by itself?
fn conflict(trace: &EventTrace, a: EventId, b: EventId) -> bool {
    let (a, b) = (&trace.event(a).kind, &trace.event(b).kind);
    let writes_what = |a: &EventKind, b: &EventKind| {
        a.writes().iter().any(|write| {
            b.reads().iter().any(|r| r.cell == write.cell)
                || b.writes().iter().any(|w| w.cell == write.cell)
        })
    };
    let memory = writes_what(a, b) || writes_what(b, a);
    let lock = |kind: &EventKind| match *kind {
        EventKind::Lock { object, mode }
        | EventKind::Unlock { object, mode, .. }
        | EventKind::TryLockFailed { object, mode } => Some((object, mode)),
        _ => None,
    };
    memory
        || match (lock(a), lock(b)) {
            (Some((a, mode)), Some((b, other))) => {
                a == b && (mode == LockMode::Exclusive || other == LockMode::Exclusive)
            }
            _ => false,
        }
}

/// For each thread, the longest blocks without interruption in the alternate that are interrupted
/// in the failing schedule.
fn atomic_blocks(
    trace: &EventTrace,
    in_failing: &[EventId],
    in_alternate: &[EventId],
) -> Vec<AtomicBlock> {
    let place: BTreeMap<EventId, usize> =
        in_failing.iter().enumerate().map(|(index, id)| (*id, index)).collect();
    let mut blocks = Vec::new();
    for run in crate::switches::runs(trace, in_alternate) {
        let (first, last) = (in_alternate[run.start], in_alternate[run.end - 1]);
        let thread = trace.event(first).thread;
        let between = &in_failing[place[&first]..=place[&last]];
        let others = between.iter().copied().filter(|id| trace.event(*id).thread != thread);
        let interrupted_by: Vec<EventId> = others.collect();
        if !interrupted_by.is_empty() {
            blocks.push(AtomicBlock { thread, first, last, interrupted_by });
        }
    }
    blocks.sort_by_key(|block| place[&block.first]);
    blocks
}
