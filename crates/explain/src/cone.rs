//! The cone of the failure: the reads whose values decide whether the run fails.

use crate::conflict::{ConflictOrder, OrderKind};
use model::evaluate::Evaluation;
use model::{
    CellId, EventId, EventTrace, Expr, ExprId, FailureCondition, PathCondition, PathConditionKind,
    ReadRef, ThreadId, VarId, VariableOrigin, WriteSource,
};
use std::collections::{BTreeMap, BTreeSet};

/// Backwards closure over the schedule's data flow, from the failure condition.
pub(crate) struct Cone {
    reads: BTreeSet<ReadRef>,
    cells: BTreeSet<CellId>,
    inputs: bool,
}

impl Cone {
    pub(crate) fn new(trace: &EventTrace, evaluation: &Evaluation) -> Self {
        Self::with_paths(trace, evaluation, |_| false)
    }

    /// The cone of the failure and of the path conditions that `decides` names: with those that
    /// lead to the failure, the reads by which the run gets there at all.
    pub(crate) fn with_paths(
        trace: &EventTrace,
        evaluation: &Evaluation,
        decides: impl Fn(&PathCondition) -> bool,
    ) -> Self {
        Self::closed(trace, evaluation, decides, false)
    }

    /// As [`Self::with_paths`], and with the reads that say where the reads and writes of the cone
    /// take place: an index that is wrong puts the right value into the wrong place.
    pub(crate) fn with_addresses(
        trace: &EventTrace,
        evaluation: &Evaluation,
        decides: impl Fn(&PathCondition) -> bool,
    ) -> Self {
        Self::closed(trace, evaluation, decides, true)
    }

    fn closed(
        trace: &EventTrace,
        evaluation: &Evaluation,
        decides: impl Fn(&PathCondition) -> bool,
        addresses: bool,
    ) -> Self {
        let mut pinned: BTreeMap<(ThreadId, u32), Vec<ExprId>> = BTreeMap::new();
        let pins = trace.conditions.iter().filter(|c| c.kind == PathConditionKind::Address);
        for condition in pins.filter(|_| addresses) {
            let place = (condition.thread, condition.position);
            pinned.entry(place).or_default().push(condition.expr);
        }
        let pins_of = |id: EventId| {
            let event = trace.event(id);
            pinned.get(&(event.thread, event.index)).into_iter().flatten().copied()
        };
        let mut search = Search::new(trace);
        if let Some(failure) = &trace.failure {
            search.condition(&failure.condition);
        }
        let conditions = trace.conditions.iter().filter(|condition| decides(condition));
        conditions.for_each(|condition| search.expression(condition.expr));
        // What is known of an input may be up to what is read, as the outcome of a library's function is.
        let mut assumed: BTreeMap<VarId, Vec<ExprId>> = BTreeMap::new();
        for condition in trace.conditions.iter().filter(|c| c.kind == PathConditionKind::Assumption)
        {
            for var in trace.exprs.variables(condition.expr) {
                assumed.entry(var).or_default().push(condition.expr);
            }
        }
        let mut cone = Self { reads: BTreeSet::new(), cells: BTreeSet::new(), inputs: false };
        while let Some(var) = search.variables.pop() {
            let VariableOrigin::Read { event, part } = trace.variables[var.index()].origin else {
                cone.inputs = true;
                let assumed = assumed.get(&var).into_iter().flatten();
                assumed.for_each(|expr| search.expression(*expr));
                continue;
            };
            let read = ReadRef { event, part };
            if !cone.reads.insert(read) {
                continue;
            }
            let cell = trace.event(event).kind.reads()[part as usize].cell;
            cone.cells.insert(cell);
            pins_of(event).for_each(|pin| search.expression(pin));
            match evaluation.reads_from.get(&read) {
                Some(WriteSource::Write(write)) => {
                    pins_of(*write).for_each(|pin| search.expression(pin));
                    let parts = trace.event(*write).kind.writes().iter();
                    parts.filter(|p| p.cell == cell).for_each(|p| search.expression(p.value));
                }
                _ => search.expression(trace.cells[cell.index()].init),
            }
        }
        cone
    }

    /// Does the order take part in fixing a read of the cone? Program order and all orders for
    /// which this holds fix the values of these reads, and so the failure.
    pub(crate) fn contains(&self, trace: &EventTrace, conflict: &ConflictOrder) -> bool {
        let (before, after) = (conflict.order.before, conflict.order.after);
        conflict.kind == OrderKind::Failure
            || cells_of(trace, before).filter(|cell| self.cells.contains(cell)).any(|cell| {
                let (a, b) = (self.touches(trace, before, cell), self.touches(trace, after, cell));
                a.max(b) == Touch::Writes && a.min(b) != Touch::No
            })
    }

    /// Does the failure depend on an input, or on an initial value that is not known?
    pub(crate) fn has_inputs(&self) -> bool {
        self.inputs
    }

    /// The cells whose values can reach the failure.
    pub(crate) fn cells(&self) -> impl Iterator<Item = CellId> + '_ {
        self.cells.iter().copied()
    }

    /// Does the event write the cell, or read it with effect on the failure?
    pub(crate) fn accesses(&self, trace: &EventTrace, event: EventId, cell: CellId) -> bool {
        self.touches(trace, event, cell) != Touch::No
    }

    fn touches(&self, trace: &EventTrace, event: EventId, cell: CellId) -> Touch {
        let kind = &trace.event(event).kind;
        if kind.writes().iter().any(|part| part.cell == cell) {
            return Touch::Writes;
        }
        let mut reads = (0u32..).zip(kind.reads()).filter(|(_, read)| read.cell == cell);
        if reads.any(|(part, _)| self.reads.contains(&ReadRef { event, part })) {
            return Touch::Reads;
        }
        Touch::No
    }
}

/// What the event reads and writes: few cells beside those that the failure may depend on.
fn cells_of(trace: &EventTrace, event: EventId) -> impl Iterator<Item = CellId> {
    let kind = &trace.event(event).kind;
    let written = kind.writes().iter().map(|part| part.cell);
    kind.reads().iter().map(|part| part.cell).chain(written)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Touch {
    No,
    Reads,
    Writes,
}

/// Collects variables; every expression is visited once over the whole search.
struct Search<'t> {
    trace: &'t EventTrace,
    seen: Vec<bool>,
    variables: Vec<VarId>,
}

/// The reads that the failure condition mentions.
pub(crate) fn failure_reads(trace: &EventTrace) -> BTreeSet<ReadRef> {
    let mut search = Search::new(trace);
    if let Some(failure) = &trace.failure {
        search.condition(&failure.condition);
    }
    search.reads()
}

/// The reads that a path condition mentions.
pub(crate) fn path_reads(trace: &EventTrace) -> BTreeSet<ReadRef> {
    let mut search = Search::new(trace);
    trace.conditions.iter().for_each(|condition| search.expression(condition.expr));
    search.reads()
}

/// Does what the second event writes to the cell hang on what the first one reads from it?
pub(crate) fn feeds(trace: &EventTrace, first: EventId, second: EventId, cell: CellId) -> bool {
    let reads_cell = |read: &ReadRef| {
        let part = trace.event(first).kind.reads().get(read.part as usize);
        read.event == first && part.is_some_and(|part| part.cell == cell)
    };
    let mut written = trace.event(second).kind.writes().iter().filter(|part| part.cell == cell);
    written.any(|part| trace.reads_of(part.value).iter().any(reads_cell))
}

impl<'t> Search<'t> {
    fn new(trace: &'t EventTrace) -> Self {
        Self { trace, seen: vec![false; trace.exprs.len()], variables: Vec::new() }
    }

    fn reads(&self) -> BTreeSet<ReadRef> {
        let origins = self.variables.iter().map(|var| self.trace.variables[var.index()].origin);
        let reads = origins.filter_map(|origin| match origin {
            VariableOrigin::Read { event, part } => Some(ReadRef { event, part }),
            _ => None,
        });
        reads.collect()
    }

    fn condition(&mut self, condition: &FailureCondition) {
        match condition {
            FailureCondition::Value(expr) => self.expression(*expr),
            FailureCondition::Before(..) | FailureCondition::Unwoken { .. } => {}
            FailureCondition::All(parts) | FailureCondition::Any(parts) => {
                parts.iter().for_each(|part| self.condition(part));
            }
        }
    }

    fn expression(&mut self, root: ExprId) {
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut self.seen[id.0 as usize], true) {
                continue;
            }
            let expr = self.trace.exprs.get(id);
            if let Expr::Var { var, .. } = expr {
                self.variables.push(var);
            }
            expr.for_each_operand(|operand| stack.push(operand));
        }
    }
}
