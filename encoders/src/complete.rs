//! Counters that must not have lost anything.
//!
//! Let every write of a cell, but for one of a constant before all of them, be of the form `x := r + c`,
//! where `r` is the value of an earlier read of `x` by the same thread, and every constant `c` leads the same way.
//! Then what a read returns is the value at the start plus
//! the constants of a chain of writes, each of which read from the one before it. It returns the
//! farthest such value only if all writes are in the chain: then all come before the read, and no other
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
/// And those that may have more values on their way, whether some writes can lead there or not.
const MAX_VALUES: u128 = 2_000_000;

/// A read, and the writes of its cell that can come before it.
struct Counter {
    read: ReadRef,
    width: u32,
    /// What the read returns before the first of the writes.
    base: u128,
    /// Each write with the read that it adds to.
    steps: Vec<(EventId, EventId)>,
    /// What each of them adds.
    constants: Vec<u128>,
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

/// Whether the condition holds when all writes are in the chains, if it is otherwise for every value on the way
/// there.
fn holds_for_all_alone(
    pool: &ExprPool,
    root: ExprId,
    variables: &[VarId],
    counters: &[Counter],
) -> Option<bool> {
    let width = counters.first()?.width;
    let pairs: usize = counters.iter().map(|counter| counter.steps.len().pow(2)).sum();
    if counters.iter().any(|counter| counter.width != width) || pairs > MAX_PAIRS {
        return None;
    }
    let constants = counters.iter().flat_map(|c| c.constants.iter().copied());
    let Way { unit, steps } = Way::of(constants, width)?;
    let base = counters.iter().fold(0u128, |sum, counter| sum.wrapping_add(counter.base));
    let compiled = pool.compile(root);
    let mut scratch = Scratch::default();
    let mut holds = |steps: u128| {
        // Only the sum matters.
        let sum = base.wrapping_add(unit.wrapping_mul(steps)) & mask(width);
        let value_of = |place: usize| Some(if place == 0 { sum } else { 0 });
        compiled.evaluate(pool, &mut scratch, &value_of).map(|value| value != 0)
    };
    debug_assert_eq!(compiled.variables(), variables);
    let whole = holds(steps)?;
    (0..steps).all(|steps| holds(steps) == Some(!whole)).then_some(whole)
}

/// From what a counter begins with to what it comes to when nothing is lost, in steps that all values on the way
/// are multiples of.
struct Way {
    unit: u128,
    steps: u128,
}

impl Way {
    /// `None` where constants lead up and down, or all the way round, and where it is too long.
    fn of(constants: impl Iterator<Item = u128> + Clone, width: u32) -> Option<Self> {
        let mask = mask(width);
        let way = |down: bool| {
            let by = |constant: u128| if down { constant.wrapping_neg() & mask } else { constant };
            let mut sum = 0u128;
            let mut unit = 0;
            for constant in constants.clone().map(by) {
                sum = sum.checked_add(constant).filter(|sum| constant != 0 && *sum <= mask)?;
                unit = divisor(unit, constant);
            }
            let steps = sum.checked_div(unit).filter(|steps| *steps <= MAX_VALUES)?;
            Some(Self { unit: if down { unit.wrapping_neg() } else { unit }, steps })
        };
        way(false).or_else(|| way(true))
    }
}

/// The greatest common divisor.
fn divisor(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
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
    constants.first()?;
    let base = base?;
    let is_first = |start: EventId| {
        let mut reads = steps.iter().map(|&(from, _)| from).chain([read.event]);
        reads.all(|read| context.closure.before(start, read))
    };
    if start.is_some_and(|start| !is_first(start)) {
        return None;
    }
    Way::of(constants.iter().copied(), cell.width)?;
    Some(Counter { read, width: cell.width, base, steps, constants })
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
