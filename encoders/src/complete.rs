//! Counters that must not have lost anything.
//!
//! Let every write of a cell, but for one of a constant before all of them, be of the form `x := r + c`,
//! where `r` is the value of an earlier read of `x` by the same thread, and `c` the same for all. Then
//! what a read returns is the value at the start plus
//! `c` times the length of a chain of writes, each of which read from the one before it. It returns the
//! largest such value only if all writes are in the chain: then all come before the read, and no other
//! write comes between a write and the read that it adds to. So a condition that holds for this value
//! alone implies that no update is lost, which a solver otherwise finds by trying the orders of all
//! additions. The same goes for a condition on the sum of several such counters, as of a histogram's.

use crate::context::Builder;
use crate::context::Context;
use crate::counters::addition;
use crate::read_write::part_of;
use crate::system::{ConstraintKind, Term};
use model::expr::{Scratch, mask};
use model::{BinOp, CellId, EventId, Expr, ExprId, ExprPool, ReadRef, VarId};

/// Counters with more writes are left to the solver: there is a constraint for each pair.
const MAX_WRITES: usize = 128;
/// Sums of counters with more pairs than that, too.
const MAX_PAIRS: usize = 600_000;

/// A read, and the writes of its cell that can come before it.
struct Counter {
    read: ReadRef,
    width: u32,
    /// What the read returns before the first of the writes.
    base: u128,
    /// What each of them adds.
    constant: u128,
    /// Each write with the read that it adds to.
    steps: Vec<(EventId, EventId)>,
}

/// Constrains the orders of updates for those of `roots` that say that none is lost.
pub(crate) fn encode(context: &Context<'_>, builder: &mut Builder, roots: &[ExprId]) {
    let pool = &context.trace.exprs;
    let mut roots = roots.to_vec();
    roots.sort_unstable();
    roots.dedup();
    for root in roots {
        if pool.width(root) != 1 {
            continue;
        }
        let variables = pool.variables(root);
        let summed = match variables[..] {
            [_] => true,
            _ => is_of_sum(pool, root, &variables),
        };
        let counters = || variables.iter().map(|&var| counter(context, var)).collect();
        let Some(counters): Option<Vec<Counter>> = summed.then(counters).flatten() else {
            continue;
        };
        let Some(whole) = holds_for_all_alone(pool, root, &variables, &counters) else { continue };
        let root = Term::Value(root);
        let unless = if whole { root.negated() } else { root };
        for counter in &counters {
            nothing_is_lost(context, builder, counter, &unless);
        }
    }
}

/// Does a condition depend on the sum of these variables alone, each taken once?
fn is_of_sum(pool: &ExprPool, root: ExprId, variables: &[VarId]) -> bool {
    let mut top = root;
    // Down to the first sum of what is not constant.
    let sum = loop {
        let mut open = Vec::new();
        pool.get(top).for_each_operand(|operand| {
            if pool.as_const(operand).is_none() {
                open.push(operand);
            }
        });
        match (pool.get(top), &open[..]) {
            (Expr::Bin(BinOp::Add, ..), [_, _]) => break top,
            (_, &[only]) => top = only,
            _ => return false,
        }
    };
    let (mut pending, mut found) = (vec![sum], Vec::new());
    while let Some(id) = pending.pop() {
        match pool.get(id) {
            Expr::Bin(BinOp::Add, a, b) => pending.extend([a, b]),
            Expr::Var { var, .. } => found.push(var),
            Expr::Const { .. } => {}
            _ => return false,
        }
        if found.len() > variables.len() {
            return false;
        }
    }
    found.sort_unstable();
    found == variables
}

/// Whether the condition holds when all writes are in the chains, if it is otherwise for every smaller number
/// of them.
fn holds_for_all_alone(
    pool: &ExprPool,
    root: ExprId,
    variables: &[VarId],
    counters: &[Counter],
) -> Option<bool> {
    let first = counters.first()?;
    let (width, constant) = (first.width, first.constant);
    let mut writes: Vec<EventId> =
        counters.iter().flat_map(|c| c.steps.iter().map(|s| s.1)).collect();
    let count = writes.len();
    writes.sort_unstable();
    writes.dedup();
    let pairs: usize = counters.iter().map(|counter| counter.steps.len().pow(2)).sum();
    let is_one = counters.iter().all(|c| (c.width, c.constant) == (width, constant));
    // Reads of one counter do not add up to different numbers of writes.
    if !is_one || writes.len() != count || pairs > MAX_PAIRS || !stays(count, constant, width) {
        return None;
    }
    let base = counters.iter().fold(0u128, |sum, counter| sum.wrapping_add(counter.base));
    let compiled = pool.compile(root);
    let mut scratch = Scratch::default();
    let mut holds = |steps: u128| {
        // Only the sum matters.
        let sum = base.wrapping_add(constant.wrapping_mul(steps)) & mask(width);
        let value_of = |place: usize| Some(if place == 0 { sum } else { 0 });
        compiled.evaluate(pool, &mut scratch, &value_of).map(|value| value != 0)
    };
    debug_assert_eq!(compiled.variables(), variables);
    let whole = holds(count as u128)?;
    (0..count as u128).all(|steps| holds(steps) == Some(!whole)).then_some(whole)
}

/// Either up or down, and never all the way round.
fn stays(count: usize, constant: u128, width: u32) -> bool {
    let down = constant.wrapping_neg() & mask(width);
    let stays = |by: u128| (count as u128).checked_mul(by).is_some_and(|all| all <= mask(width));
    constant != 0 && (stays(constant) || stays(down))
}

fn nothing_is_lost(context: &Context<'_>, builder: &mut Builder, counter: &Counter, unless: &Term) {
    let end = counter.read.event;
    let mut add = |origins: &[EventId], parts: &[Term]| {
        let parts = parts.iter().cloned().chain([unless.clone()]);
        builder.add(ConstraintKind::Counter, origins.iter().copied(), Term::any(parts));
    };
    for &(read, write) in &counter.steps {
        add(&[write, end], &[context.before(write, end)]);
        for &(_, other) in counter.steps.iter().filter(|(_, other)| *other != write) {
            let parts = [context.before(other, read), context.before(write, other)];
            // One event is never split.
            if read != write {
                add(&[read, write, other, end], &parts);
            }
        }
    }
}

fn counter(context: &Context<'_>, var: VarId) -> Option<Counter> {
    let read = context.read_of(var)?;
    let part = part_of(context, read).filter(|part| part.var == var)?;
    let cell = context.trace.cells.get(part.cell.index())?;
    let pool = &context.trace.exprs;
    let mut base = pool.as_const(cell.init);
    let mut start = None;
    let mut steps = Vec::new();
    let mut constants = Vec::new();
    for write in context.writes(cell.id).iter().flat_map(|(_, writes)| writes) {
        if write.event == read.event || context.closure.before(read.event, write.event) {
            continue;
        }
        if let Some(value) = pool.as_const(write.value) {
            if start.replace(write.event).is_some() {
                return None;
            }
            base = Some(value);
            continue;
        }
        let (from, constant) = step(context, cell.id, cell.width, write.event, write.value)?;
        steps.push((from, write.event));
        constants.push(constant);
        if steps.len() > MAX_WRITES {
            return None;
        }
    }
    let &constant = constants.first()?;
    let base = base?;
    let is_first = |start: EventId| {
        let mut reads = steps.iter().map(|&(from, _)| from).chain([read.event]);
        reads.all(|read| context.closure.before(start, read))
    };
    if start.is_some_and(|start| !is_first(start)) {
        return None;
    }
    if !constants.iter().all(|&other| other == constant)
        || !stays(steps.len(), constant, cell.width)
    {
        return None;
    }
    Some(Counter { read, width: cell.width, base, constant, steps })
}

/// The read that a write adds a constant to, and the constant.
fn step(
    context: &Context<'_>,
    cell: CellId,
    width: u32,
    write: EventId,
    value: ExprId,
) -> Option<(EventId, u128)> {
    let trace = context.trace;
    let (var, constant) = addition(&trace.exprs, value, width)?;
    let from = context.read_of(var)?;
    let (read, event) = (trace.event(from.event), trace.event(write));
    let earlier = read.thread == event.thread && read.index <= event.index;
    (earlier && part_of(context, from)?.cell == cell)
        .then_some((from.event, constant & mask(width)))
}
