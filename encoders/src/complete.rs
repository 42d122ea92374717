//! Counters that must not have lost anything.
//!
//! Let every write of a cell, but for one of a constant before all of them, be of the form `x := r + c`,
//! where `r` is the value of an earlier read of `x` by the same thread, and `c` the same for all. Then
//! what a read returns is the value at the start plus
//! `c` times the length of a chain of writes, each of which read from the one before it. It returns the
//! largest such value only if all writes are in the chain: then all come before the read, and no other
//! write comes between a write and the read that it adds to. So a condition that holds for this value
//! alone implies that no update is lost, which a solver otherwise finds by trying the orders of all
//! additions.

use crate::context::Builder;
use crate::context::Context;
use crate::counters::addition;
use crate::read_write::part_of;
use crate::system::{ConstraintKind, Term};
use model::expr::mask;
use model::{CellId, EventId, ExprId, ReadRef, VarId};

/// Counters with more writes are left to the solver: there is a constraint for each pair.
const MAX_WRITES: usize = 128;

/// A read, and the writes of its cell that can come before it.
struct Counter {
    read: ReadRef,
    /// What the read returns when so many of the writes are in the chain.
    values: Vec<u128>,
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
        let [var] = pool.variables(root)[..] else { continue };
        let Some(counter) = counter(context, var) else { continue };
        let holds = |value: u128| pool.evaluate(root, &|_| Some(value)).map(|value| value != 0);
        let Some((&most, others)) = counter.values.split_last() else { continue };
        let Some(whole) = holds(most) else { continue };
        if others.iter().all(|&value| holds(value) == Some(!whole)) {
            let root = Term::Value(root);
            let unless = if whole { root.negated() } else { root };
            nothing_is_lost(context, builder, &counter, &unless);
        }
    }
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
    // Either up or down, and never all the way round.
    let count = steps.len() as u128;
    let down = constant.wrapping_neg() & mask(cell.width);
    let stays = |by: u128| count.checked_mul(by).is_some_and(|all| all <= mask(cell.width));
    let is_one = constants.iter().all(|&other| other == constant);
    if constant == 0 || !is_one || !(stays(constant) || stays(down)) {
        return None;
    }
    let value = |steps| base.wrapping_add(constant.wrapping_mul(steps)) & mask(cell.width);
    Some(Counter { read, values: (0..=count).map(value).collect(), steps })
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
