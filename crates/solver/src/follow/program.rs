//! What each thread did in the recorded run, with the values that its log tells.

use crate::actions::{Action, Actions, needs, reader};
use model::{EventId, EventTrace, Expr, ExprId, VarId, VariableOrigin};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// One part of a read: the cell, and what it returned in the recorded run, where that is known.
#[derive(Clone, Copy)]
pub(super) struct Read {
    pub(super) cell: u32,
    pub(super) wanted: Option<u128>,
    /// Is that what it returns in every schedule that is looked for?
    pub(super) is_known: bool,
    pub(super) var: VarId,
}

/// One part of a write.
#[derive(Clone, Copy)]
pub(super) struct Write {
    pub(super) cell: u32,
    pub(super) value: Value,
}

/// What is written.
#[derive(Clone, Copy)]
pub(super) enum Value {
    Known(u128),
    /// It depends on something that the log does not tell.
    Open(ExprId),
}

/// One event of a thread. The ranges are of the rows of [`Program`].
pub(super) struct Op {
    pub(super) event: EventId,
    pub(super) action: Action,
    /// The wait that a release begins: its word, and what stands there then.
    pub(super) begins: Option<(usize, u64)>,
    needs: Range<u32>,
    reads: Range<u32>,
    writes: Range<u32>,
    conditions: Range<u32>,
    /// Nothing is lost when it happens as soon as it can and finds what the log tells.
    pub(super) is_eager: bool,
}

/// All threads.
pub(super) struct Program<'a> {
    pub(super) trace: &'a EventTrace,
    pub(super) threads: Vec<Vec<Op>>,
    pub(super) events: usize,
    /// Does every read have to return what the log tells?
    pub(super) is_strict: bool,
    pub(super) actions: Actions,
    /// The words before the first event.
    pub(super) words: Vec<u64>,
    /// The cells before the first event.
    pub(super) cells: Vec<u128>,
    /// By thread and cell, the places in the thread of the accesses.
    accesses: Vec<FxHashMap<u32, Vec<u32>>>,
    needs: Vec<(u32, u32)>,
    reads: Vec<Read>,
    writes: Vec<Write>,
    /// By cell, is anything written to it that depends on more than what is known?
    open: Vec<bool>,
    conditions: Vec<ExprId>,
    /// By variable, its value in every schedule that is looked for, where that is known.
    known: Vec<Option<u128>>,
}

impl<'a> Program<'a> {
    /// The threads of a trace with the orders that hold in the recorded run, pairs of events.
    pub(super) fn new(trace: &'a EventTrace, certain: &[(u32, u32)], is_strict: bool) -> Self {
        let known = trace.variables.iter().map(|variable| match variable.origin {
            VariableOrigin::Read { .. } => variable.recorded.filter(|_| is_strict),
            // What no read returns and nobody knows is 0.
            VariableOrigin::Init(_) | VariableOrigin::Input => Some(variable.recorded.unwrap_or(0)),
        });
        let known: Vec<Option<u128>> = known.collect();
        let values = trace.exprs.evaluate_all(&|var| known.get(var.index()).copied().flatten());
        let value = |expr: ExprId| values.get(expr.0 as usize).copied().flatten();
        let actions = Actions::new(trace, 0);
        let mut words = vec![0; actions.end()];
        actions.begin(trace, &mut words);
        let mut program = Self {
            trace,
            threads: Vec::with_capacity(trace.threads.len()),
            events: trace.events.len(),
            is_strict,
            actions,
            words,
            cells: trace.cells.iter().map(|cell| value(cell.init).unwrap_or(0)).collect(),
            accesses: vec![FxHashMap::default(); trace.threads.len()],
            needs: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            open: vec![false; trace.cells.len()],
            conditions: Vec::new(),
            known,
        };
        let conditions = program.open_conditions(&value);
        let used = program.open_variables(&value, &conditions);
        let needs = needs(trace, certain);
        for thread in 0..trace.threads.len() {
            let mut ops = Vec::with_capacity(trace.threads[thread].events.len());
            for &id in &trace.threads[thread].events {
                let needs = needs.get(&id).map(Vec::as_slice).unwrap_or_default();
                let conditions = conditions.get(&id).map(Vec::as_slice).unwrap_or_default();
                ops.push(program.op(thread, id, (needs, conditions), &value, &used));
            }
            program.threads.push(ops);
        }
        program
    }

    fn op(
        &mut self,
        thread: usize,
        id: EventId,
        (needs, conditions): (&[(u32, u32)], &[ExprId]),
        value: &impl Fn(ExprId) -> Option<u128>,
        used: &FxHashSet<VarId>,
    ) -> Op {
        let event = self.trace.event(id);
        let (trace, known) = (self.trace, &self.known);
        let reads = event.kind.reads().iter().map(|part| Read {
            cell: part.cell.0,
            wanted: trace.variables.get(part.var.index()).and_then(|of| of.recorded),
            is_known: known.get(part.var.index()).is_some_and(Option::is_some),
            var: part.var,
        });
        let writes = event.kind.writes().iter().map(|part| Write {
            cell: part.cell.0,
            value: value(part.value).map_or(Value::Open(part.value), Value::Known),
        });
        let (reads, writes) = (extend(&mut self.reads, reads), extend(&mut self.writes, writes));
        for cell in row(&self.reads, &reads).iter().map(|read| read.cell) {
            let places = self.accesses[thread].entry(cell).or_default();
            places.push(event.index);
        }
        for Write { cell, value } in row(&self.writes, &writes).iter().copied() {
            self.open[cell as usize] |= matches!(value, Value::Open(_));
            let places = self.accesses[thread].entry(cell).or_default();
            if places.last() != Some(&event.index) {
                places.push(event.index);
            }
        }
        let action = self.actions.action(self.trace, id);
        let is_fixed = |read: &Read| read.wanted.is_some() || !used.contains(&read.var);
        let is_eager = writes.is_empty()
            && !self.actions.matters(self.trace, id, action)
            && row(&self.reads, &reads).iter().all(is_fixed);
        Op {
            event: id,
            action,
            begins: self.actions.begins(self.trace, id),
            needs: extend(&mut self.needs, needs.iter().copied()),
            reads,
            writes,
            conditions: extend(&mut self.conditions, conditions.iter().copied()),
            is_eager,
        }
    }

    /// The conditions that what is known does not decide, by the last event that they need. Those on what several
    /// threads read are left to whoever checks the schedule.
    fn open_conditions(
        &self,
        value: &impl Fn(ExprId) -> Option<u128>,
    ) -> FxHashMap<EventId, Vec<ExprId>> {
        let readers = readers(self.trace);
        let mut found: FxHashMap<EventId, Vec<ExprId>> = FxHashMap::default();
        for condition in &self.trace.conditions {
            if value(condition.expr).is_some() {
                continue;
            }
            if let Some(Readers::One(last)) = readers.get(condition.expr.0 as usize) {
                found.entry(*last).or_default().push(condition.expr);
            }
        }
        found
    }

    /// What is not known and decides a condition, or what is written.
    fn open_variables(
        &self,
        value: &impl Fn(ExprId) -> Option<u128>,
        conditions: &FxHashMap<EventId, Vec<ExprId>>,
    ) -> FxHashSet<VarId> {
        let written = self.trace.events.iter().flat_map(|event| event.kind.writes());
        let open = written.map(|part| part.value).filter(|&expr| value(expr).is_none());
        let open = open.chain(conditions.values().flatten().copied());
        // All at once: what a loop computes may hang on all of its rounds.
        let exprs = &self.trace.exprs;
        let mut wanted = vec![false; exprs.len()];
        open.for_each(|expr| wanted[expr.0 as usize] = true);
        let mut found = FxHashSet::default();
        for index in (0..exprs.len()).rev() {
            if !wanted[index] {
                continue;
            }
            let expr = exprs.get(ExprId(index as u32));
            if let Expr::Var { var, .. } = expr
                && !self.is_known(var)
            {
                found.insert(var);
            }
            expr.for_each_operand(|operand| wanted[operand.0 as usize] = true);
        }
        found
    }

    fn is_known(&self, var: VarId) -> bool {
        self.known.get(var.index()).is_some_and(Option::is_some)
    }

    pub(super) fn is_open(&self, cell: u32) -> bool {
        self.open[cell as usize]
    }

    pub(super) fn needs(&self, op: &Op) -> &[(u32, u32)] {
        row(&self.needs, &op.needs)
    }

    pub(super) fn reads(&self, op: &Op) -> &[Read] {
        row(&self.reads, &op.reads)
    }

    pub(super) fn writes(&self, op: &Op) -> &[Write] {
        row(&self.writes, &op.writes)
    }

    pub(super) fn conditions(&self, op: &Op) -> &[ExprId] {
        row(&self.conditions, &op.conditions)
    }

    /// What a thread reads of which the log does not tell and an expression is made: the places of the events in the
    /// thread, and the cells.
    pub(super) fn reads_of(
        &self,
        thread: usize,
        expr: ExprId,
    ) -> impl Iterator<Item = (usize, u32)> {
        let variables = self.trace.exprs.variables(expr).into_iter();
        variables.filter(|var| !self.is_known(*var)).filter_map(move |var| {
            let event = self.trace.event(reader(self.trace, var)?);
            let part = event.kind.reads().iter().find(|part| part.var == var)?;
            let place = event.index as usize;
            (event.thread.index() == thread).then_some((place, part.cell.0))
        })
    }

    /// The place of a thread's next access to a cell, from one of its places on.
    pub(super) fn next_access(&self, thread: usize, cell: u32, from: u32) -> Option<u32> {
        self.accesses_from(thread, cell, from).first().copied()
    }

    /// The places of all of a thread's accesses to a cell, from one of its places on.
    pub(super) fn accesses_from(&self, thread: usize, cell: u32, from: u32) -> &[u32] {
        let places = self.accesses[thread].get(&cell).map(Vec::as_slice).unwrap_or_default();
        places.get(places.partition_point(|&place| place < from)..).unwrap_or_default()
    }

    /// A value, where `read` says what reads returned that the log does not tell of.
    pub(super) fn value(&self, expr: ExprId, read: impl Fn(VarId) -> Option<u128>) -> Option<u128> {
        let known = |var: VarId| self.known.get(var.index()).copied().flatten();
        self.trace.exprs.evaluate(expr, &|var| known(var).or_else(|| read(var)))
    }
}

/// The reads that an expression depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    None,
    /// Those of one thread, by the last of them.
    One(EventId),
    OfSeveralThreads,
}

/// By expression.
fn readers(trace: &EventTrace) -> Vec<Readers> {
    let of = |var| reader(trace, var).map_or(Readers::None, Readers::One);
    trace.exprs.joined(Readers::None, of, |one, other| match (one, other) {
        (one, Readers::None) | (Readers::None, one) => one,
        (Readers::One(one), Readers::One(other)) => {
            let [a, b] = [one, other].map(|id| trace.event(id));
            match a.thread == b.thread {
                true if a.index < b.index => Readers::One(other),
                true => Readers::One(one),
                false => Readers::OfSeveralThreads,
            }
        }
        _ => Readers::OfSeveralThreads,
    })
}

fn row<'r, T>(all: &'r [T], range: &Range<u32>) -> &'r [T] {
    all.get(range.start as usize..range.end as usize).unwrap_or_default()
}

fn extend<T>(all: &mut Vec<T>, more: impl Iterator<Item = T>) -> Range<u32> {
    let start = all.len() as u32;
    all.extend(more);
    start..all.len() as u32
}

#[cfg(test)]
mod tests {
    use super::Program;
    use model::{BinOp, VarId};

    /// A loop that counts what it reads, and looks at the count in each round.
    #[test]
    fn what_hangs_on_all_rounds_of_a_loop_is_gone_through_once() {
        let text = "cell x 32 = 0\na: R x -> v\na: assume v == 0\na: W x v\n";
        let mut trace = encoders::dsl::parse(text).expect("the text is a trace").trace;
        trace.variables.iter_mut().for_each(|variable| variable.recorded = None);
        let var = trace.exprs.var(VarId(0), 32);
        let condition = trace.conditions.first().expect("a condition").clone();
        let mut count = var;
        for _ in 0..30_000 {
            count = trace.exprs.bin(BinOp::Add, count, var);
            let expr = trace.exprs.eq(count, var);
            trace.conditions.push(model::PathCondition { expr, ..condition.clone() });
        }
        // One by one, they would take the better part of a minute.
        let program = Program::new(&trace, &[], false);
        assert_eq!(program.conditions.len(), 30_001);
    }
}
