//! From an explanation of a slice to one of the whole trace.

use crate::context::InputValues;
use crate::dsp::{AtomicBlock, DataFlow, Dsp, FinalWrite};
use crate::explanation::Explanation;
use crate::switches::context_switches;
use crate::{ConflictOrder, OrderKind};
use encoders::Slice;
use model::evaluate::{Evaluation, Evaluator};
use model::{CellId, EventId, EventTrace, ReadRef, Schedule, VariableOrigin, WriteSource};
use rustc_hash::FxHashMap;
use solver::Order;
use std::collections::{BTreeMap, BTreeSet};

/// An explanation of `slice`'s trace as one of the whole trace. Every schedule was accepted by the
/// evaluator again; `None` when one of them cannot be had in the whole trace. Of a part of a run that goes on behind
/// it, alternates that cannot be had are left out.
#[must_use]
pub fn widen(whole: &EventTrace, slice: &Slice, narrow: Explanation) -> Option<Explanation> {
    let mut wide = narrow;
    let Some(failing) = &mut wide.failing else { return Some(wide) };
    // What no read fixes has the values that the failing schedule has.
    let mut values = BTreeMap::new();
    for variable in &slice.trace.variables {
        let value = failing.evaluation.values.get(variable.id.index()).copied().flatten();
        if let (false, Some(value)) =
            (matches!(variable.origin, VariableOrigin::Read { .. }), value)
        {
            values.insert(slice.variable(variable.id), value);
        }
    }
    let mut run = Run {
        whole,
        slice,
        inputs: InputValues::new(whole, &values),
        evaluator: Evaluator::new(whole),
        left: left_by(whole, slice.before()),
    };
    (failing.schedule, failing.evaluation) = run.schedule(&failing.schedule, true)?;
    wide.statistics.switches = context_switches(whole, &failing.schedule);
    let data_flows = failing.evaluation.reads_from.len();
    let found = std::mem::take(&mut wide.alternates.found);
    for (mut alternate, dsp) in found.into_iter().zip(std::mem::take(&mut wide.dsps)) {
        let Some(passing) = run.schedule(&alternate.schedule, false) else {
            // What other threads do after the failure may be no part of what passes.
            if slice.goes_on() {
                continue;
            }
            return None;
        };
        (alternate.schedule, alternate.evaluation) = passing;
        alternate.flipped = run.order(alternate.flipped);
        wide.alternates.found.push(alternate);
        wide.dsps.push(dsp);
    }
    if let Some(cause) = &mut wide.root_cause {
        cause.orders.iter_mut().for_each(|order| *order = run.conflict(*order));
    }
    for (dsp, alternate) in wide.dsps.iter_mut().zip(&wide.alternates.found) {
        *dsp = run.dsp(dsp);
        // What is behind the part may write a cell again, the same in both.
        let [one, other] = [&failing.evaluation, &alternate.evaluation].map(|it| &it.last_writes);
        dsp.final_writes.retain(|last| one.get(last.cell.index()) != other.get(last.cell.index()));
        dsp.counts.schedule_events = whole.events.len();
        dsp.counts.schedule_data_flows = data_flows;
    }
    Some(wide)
}

struct Run<'t> {
    whole: &'t EventTrace,
    slice: &'t Slice,
    inputs: InputValues,
    evaluator: Evaluator<'t>,
    /// The last writes of cells before a part of a run: what is there from the start in that.
    left: FxHashMap<CellId, (usize, EventId)>,
}

/// By cell, the last event of a beginning that writes it, and its place there.
fn left_by(trace: &EventTrace, beginning: &[EventId]) -> FxHashMap<CellId, (usize, EventId)> {
    let mut left = FxHashMap::default();
    for (place, id) in beginning.iter().enumerate() {
        left.extend(trace.event(*id).kind.writes().iter().map(|part| (part.cell, (place, *id))));
    }
    left
}

impl Run<'_> {
    fn schedule(&mut self, narrow: &Schedule, fails: bool) -> Option<(Schedule, Evaluation)> {
        let order = self.slice.widen(self.whole, &narrow.order)?;
        let inputs = &self.inputs;
        let evaluation = self.evaluator.run(&order, &|var| inputs.get(var)).ok()?;
        let same = evaluation.failure_known && evaluation.fails == fails;
        (same && evaluation.follows_paths()).then_some((Schedule { order }, evaluation))
    }

    fn order(&self, order: Order) -> Order {
        Order { before: self.slice.event(order.before), after: self.slice.event(order.after) }
    }

    fn conflict(&self, conflict: ConflictOrder) -> ConflictOrder {
        let cell = |cell| self.slice.cell(cell);
        let kind = match conflict.kind {
            OrderKind::ReadFrom(of) => OrderKind::ReadFrom(cell(of)),
            OrderKind::FromRead(of) => OrderKind::FromRead(cell(of)),
            OrderKind::WriteSerialisation(of) => OrderKind::WriteSerialisation(cell(of)),
            kind @ (OrderKind::Failure
            | OrderKind::Lock(_)
            | OrderKind::Condition(_)
            | OrderKind::Semaphore(_)
            | OrderKind::Barrier(_)) => kind,
        };
        ConflictOrder { order: self.order(conflict.order), kind }
    }

    /// A source of what is read from the whole trace's cell.
    fn source(&self, source: WriteSource, cell: Option<CellId>) -> WriteSource {
        let left = || cell.and_then(|cell| self.left.get(&cell));
        match source {
            WriteSource::Init => left().map_or(source, |(_, write)| WriteSource::Write(*write)),
            WriteSource::Write(_) => self.slice.source(source),
        }
    }

    fn flow(&self, flow: &DataFlow) -> DataFlow {
        let read = self.slice.read(flow.read);
        let part = self.whole.event(read.event).kind.reads().get(read.part as usize);
        DataFlow { write: self.source(flow.write, part.map(|part| part.cell)), read }
    }

    fn dsp(&self, dsp: &Dsp) -> Dsp {
        let slice = self.slice;
        let events = |ids: &[EventId]| ids.iter().map(|id| slice.event(*id)).collect();
        let flow = |flow: &DataFlow| self.flow(flow);
        let last = |last: &FinalWrite| {
            let cell = slice.cell(last.cell);
            let [failing, alternate] =
                [last.failing, last.alternate].map(|source| self.source(source, Some(cell)));
            FinalWrite { cell, failing, alternate }
        };
        let block = |block: &AtomicBlock| AtomicBlock {
            thread: block.thread,
            first: slice.event(block.first),
            last: slice.event(block.last),
            interrupted_by: events(&block.interrupted_by),
        };
        let read = |read: &ReadRef| slice.read(*read);
        let follows = dsp.follows.iter();
        let follows = follows.map(|(one, all)| (read(one), all.iter().map(read).collect()));
        let mut wide = Dsp {
            follows: follows.collect(),
            failing: events(&dsp.failing),
            alternate: events(&dsp.alternate),
            failing_only: dsp.failing_only.iter().map(flow).collect(),
            alternate_only: dsp.alternate_only.iter().map(flow).collect(),
            final_writes: dsp.final_writes.iter().map(last).collect(),
            moved: dsp.moved.iter().map(|(a, b)| (slice.event(*a), slice.event(*b))).collect(),
            atomic_blocks: dsp.atomic_blocks.iter().map(block).collect(),
            counts: dsp.counts,
        };
        self.add_beginning(&mut wide);
        wide
    }

    /// What the beginning of a run wrote and the projection's flows come from is part of it: first, in both schedules.
    fn add_beginning(&self, dsp: &mut Dsp) {
        let flows = dsp.failing_only.iter().chain(&dsp.alternate_only).map(|flow| flow.write);
        let last = dsp.final_writes.iter().flat_map(|last| [last.failing, last.alternate]);
        let sources: BTreeSet<EventId> = flows
            .chain(last)
            .filter_map(|source| match source {
                WriteSource::Write(write) => Some(write),
                WriteSource::Init => None,
            })
            .collect();
        let left = self.left.values().filter(|(_, write)| sources.contains(write));
        let first: BTreeSet<(usize, EventId)> = left.copied().collect();
        let known: BTreeSet<EventId> = dsp.failing.iter().copied().collect();
        let first: Vec<EventId> =
            first.into_iter().map(|(_, id)| id).filter(|id| !known.contains(id)).collect();
        dsp.failing.splice(0..0, first.iter().copied());
        dsp.alternate.splice(0..0, first.iter().copied());
        dsp.counts.events += first.len();
    }
}
