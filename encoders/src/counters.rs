//! Counters: cells to which constants are added, by steps that no other write can split.
//!
//! Let every write of a cell that matters to a read be of the form `x := r + c`, where `r` is the
//! value of a read of `x` by the same thread, and let no other write of `x` come between that
//! read and the write: both are one event, or critical sections or the happens-before closure
//! keep the others away. Then, by induction over the order of events, the cell's value at any
//! point is the value it started from plus the `c` of all writes before that point: which of them
//! came first does not matter.

use crate::context::{Context, Write};
use model::expr::mask;
use model::{BinOp, CellId, EventId, Expr, ExprId, ExprPool, ReadPart, ReadRef, VarId};
use rustc_hash::FxHashMap;

/// Cells with more writes are not looked at: each write is compared with all others.
const MAX_WRITES: usize = 4_096;

/// The value of a read of a counter, modulo two to the power of the cell's width: `base` plus the
/// additions of `open` that come before the read.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    /// The read.
    pub(crate) read: EventId,
    /// The cell's width in bits.
    pub(crate) width: u32,
    /// The value that the read returns when no open addition comes before it.
    pub(crate) base: u128,
    /// The writes that surely come before the read and make up `base`.
    pub(crate) sure: Vec<EventId>,
    /// By thread, in program order: the additions that may come before the read or after it.
    pub(crate) open: Vec<Vec<(EventId, u128)>>,
    /// Is anything added at all? Without additions there is nothing to gain from the sum.
    pub(crate) adds: bool,
}

/// What a write does to its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Adds a constant to the value that the cell has just before.
    Add(u128),
    /// Stores a constant, in an order with all other writes that every schedule keeps.
    Set(u128),
    /// Anything else.
    Other,
}

type Steps = Vec<Vec<(EventId, Effect)>>;

/// The sums of reads, computed when they are first asked for.
#[derive(Default)]
pub(crate) struct Counters {
    cells: FxHashMap<CellId, Steps>,
    sums: FxHashMap<VarId, Option<Sum>>,
}

impl Counters {
    /// The sum that a variable is, when it is the value of a counter's read.
    pub(crate) fn sum(&mut self, context: &Context<'_>, var: VarId) -> Option<&Sum> {
        if !self.sums.contains_key(&var) {
            let sum = self.compute(context, var);
            self.sums.insert(var, sum);
        }
        self.sums.get(&var)?.as_ref()
    }

    fn compute(&mut self, context: &Context<'_>, var: VarId) -> Option<Sum> {
        let read = context.read_of(var)?;
        let part = part(context, read, var)?;
        let cell = context.trace.cells.get(part.cell.index())?;
        if context.writes(cell.id).iter().map(|(_, writes)| writes.len()).sum::<usize>()
            > MAX_WRITES
        {
            return None;
        }
        let steps = self.cells.entry(cell.id).or_insert_with(|| steps(context, cell.id));
        let start = last_set(context, steps, read.event);
        let base =
            start.map_or_else(|| context.trace.exprs.as_const(cell.init), |(_, v)| Some(v))?;
        let start = start.map(|(event, _)| event);
        let sum = Sum {
            read: read.event,
            width: cell.width,
            base,
            sure: start.into_iter().collect(),
            open: Vec::new(),
            adds: false,
        };
        add_up(context, steps, start, sum)
    }
}

/// The part of a read event that gives a variable its value.
fn part(context: &Context<'_>, read: ReadRef, var: VarId) -> Option<ReadPart> {
    let event = context.trace.events.get(read.event.index())?;
    event.kind.reads().get(read.part as usize).copied().filter(|part| part.var == var)
}

/// The last write of a constant that surely comes before the read. All such writes are ordered
/// among themselves.
fn last_set(context: &Context<'_>, steps: &Steps, read: EventId) -> Option<(EventId, u128)> {
    let mut last: Option<(EventId, u128)> = None;
    for &(event, effect) in steps.iter().flatten() {
        let Effect::Set(value) = effect else { continue };
        let later = last.is_none_or(|(other, _)| context.closure.before(other, event));
        if later && context.closure.before(event, read) {
            last = Some((event, value));
        }
    }
    last
}

/// Adds the writes between `start` and the read; `None` when one of them is no addition.
fn add_up(
    context: &Context<'_>,
    steps: &Steps,
    start: Option<EventId>,
    mut sum: Sum,
) -> Option<Sum> {
    let closure = &context.closure;
    for thread in steps {
        let mut open = Vec::new();
        for &(event, effect) in thread {
            let overwritten =
                start.is_some_and(|start| event == start || closure.before(event, start));
            if overwritten || event == sum.read || closure.before(sum.read, event) {
                continue;
            }
            let Effect::Add(constant) = effect else { return None };
            sum.adds = true;
            if closure.before(event, sum.read) {
                sum.base = sum.base.wrapping_add(constant) & mask(sum.width);
                sum.sure.push(event);
            } else {
                open.push((event, constant));
            }
        }
        if !open.is_empty() {
            sum.open.push(open);
        }
    }
    Some(sum)
}

/// What the writes of a cell do, by thread and in program order.
fn steps(context: &Context<'_>, cell: CellId) -> Steps {
    let threads = context.writes(cell).iter();
    threads
        .map(|(_, writes)| {
            writes.iter().map(|&write| (write.event, effect(context, cell, write))).collect()
        })
        .collect()
}

fn effect(context: &Context<'_>, cell: CellId, write: Write) -> Effect {
    let pool = &context.trace.exprs;
    if let Some(value) = pool.as_const(write.value) {
        return if ordered(context, cell, write.event) {
            Effect::Set(value)
        } else {
            Effect::Other
        };
    }
    let added = || {
        let width = pool.width(write.value);
        let (var, constant) = addition(pool, write.value, width)?;
        let read = context.read_of(var)?;
        let read_cell = part(context, read, var)?.cell;
        let together = read_cell == cell && unsplit(context, cell, read.event, write.event);
        together.then_some(constant & mask(width))
    };
    added().map_or(Effect::Other, Effect::Add)
}

/// The low `width` bits of an expression, when they are a variable of that width plus a constant.
pub(crate) fn addition(pool: &ExprPool, expr: ExprId, width: u32) -> Option<(VarId, u128)> {
    let mut expr = expr;
    let mut sum = 0u128;
    loop {
        // All operations here give their low bits from the low bits of their operands.
        expr = match pool.get(expr) {
            Expr::Var { var, width: own } => return (own == width).then_some((var, sum)),
            Expr::Bin(BinOp::Add, a, b) => match (pool.as_const(a), pool.as_const(b)) {
                (Some(constant), _) => {
                    sum = sum.wrapping_add(constant);
                    b
                }
                (_, Some(constant)) => {
                    sum = sum.wrapping_add(constant);
                    a
                }
                _ => return None,
            },
            Expr::Bin(BinOp::Sub, a, b) => {
                sum = sum.wrapping_sub(pool.as_const(b)?);
                a
            }
            Expr::Extract { of, low: 0, width: kept } if kept >= width => of,
            Expr::ZExt(of, _) | Expr::SExt(of, _) if pool.width(of) >= width => of,
            _ => return None,
        };
    }
}

/// Does the closure order the write with every other write of the cell?
fn ordered(context: &Context<'_>, cell: CellId, write: EventId) -> bool {
    context.writes(cell).iter().flat_map(|(_, writes)| writes).all(|other| {
        other.event == write
            || context.closure.before(other.event, write)
            || context.closure.before(write, other.event)
    })
}

/// Can no other write of the cell come between the read and the write, which follows it in the
/// same thread or is the same event?
fn unsplit(context: &Context<'_>, cell: CellId, read: EventId, write: EventId) -> bool {
    let trace = context.trace;
    if read == write {
        return true;
    }
    let (from, to) = (trace.event(read), trace.event(write));
    if from.thread != to.thread || from.index > to.index {
        return false;
    }
    context.writes(cell).iter().all(|(thread, writes)| {
        writes.iter().map(|other| other.event).filter(|&other| other != write).all(|other| {
            if *thread == from.thread.index() {
                // A read that is part of a write of the cell has seen the value before that.
                let index = trace.event(other).index;
                return index < from.index || index > to.index;
            }
            context.closure.before(other, read)
                || context.closure.before(write, other)
                || excluded(context, read, write, other)
        })
    })
}

/// Is there one critical section around both the read and the write that excludes one around the
/// other write?
fn excluded(context: &Context<'_>, read: EventId, write: EventId, other: EventId) -> bool {
    let regions = &context.regions;
    regions
        .around(read)
        .filter(|section| section.contains(context.trace, write))
        .any(|section| regions.around(other).any(|theirs| section.excludes(theirs)))
}
