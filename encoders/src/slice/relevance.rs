//! Which reads, writes, conditions and critical sections matter.

use crate::context::{Context, Write};
use crate::locks::Region;
use crate::read_write::{Open, candidates, failure_values, part_of};
use model::{
    Awaited, CellId, EventId, EventKind, EventTrace, Expr, ExprId, FailureCondition, LockMode,
    ObjectId, ReadRef, VarId,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Whether reads have one value is asked in so many rounds at most: each sees one read further
/// along chains of reads and writes.
const ROUNDS: usize = 4;
/// A read that may see more writes than this is taken to have several values.
const SOURCES: usize = 16;

/// See the module.
pub(super) struct Relevant {
    /// By path condition.
    pub(super) conditions: Vec<bool>,
    /// The read parts.
    pub(super) reads: BTreeSet<ReadRef>,
    /// Of each cell and thread that matter, the range of its writes there that some read can see.
    pub(super) writes: BTreeMap<(CellId, usize), Range<usize>>,
    /// By event: does it stay?
    pub(super) events: Vec<bool>,
}

/// A critical section in which nothing is left.
struct Going {
    region: Region,
    unlock: EventId,
    /// So are all sections of its lock.
    alone: bool,
}

impl Relevant {
    pub(super) fn of(context: &Context<'_>) -> Self {
        let trace = context.trace;
        let mut this = Self {
            conditions: undecided(context),
            reads: BTreeSet::new(),
            writes: BTreeMap::new(),
            events: vec![false; trace.events.len()],
        };
        this.close(context);
        for event in &trace.events {
            let access = matches!(
                event.kind,
                EventKind::Read { .. }
                    | EventKind::Write { .. }
                    | EventKind::ReadModifyWrite { .. }
                    | EventKind::Fence
            );
            this.events[event.id.index()] = !access;
        }
        this.reads.iter().for_each(|read| this.events[read.event.index()] = true);
        for (&(cell, thread), range) in &this.writes {
            let writes = writes_of(context, cell, thread);
            writes[range.clone()].iter().for_each(|w| this.events[w.event.index()] = true);
        }
        let named = named(trace);
        named.iter().for_each(|id| this.events[id.index()] = true);
        this.drop_sections(context, &named);
        this
    }

    /// Collects reads and writes, from the conditions on.
    fn close(&mut self, context: &Context<'_>) {
        let trace = context.trace;
        let conditions = trace.conditions.iter().zip(&self.conditions);
        let mut pending: Vec<ExprId> =
            conditions.filter(|(_, matters)| **matters).map(|(c, _)| c.expr).collect();
        pending.extend(failure_values(trace));
        let mut seen: FxHashSet<ExprId> = FxHashSet::default();
        while let Some(expr) = pending.pop() {
            if !seen.insert(expr) {
                continue;
            }
            let node = trace.exprs.get(expr);
            node.for_each_operand(|operand| pending.push(operand));
            let Expr::Var { var, .. } = node else { continue };
            let Some(read) = context.read_of(var) else { continue };
            let Some(part) = part_of(context, read) else { continue };
            self.reads.insert(read);
            let open = Open::of(context, read, part);
            if let Some(cell) = trace.cells.get(part.cell.index()) {
                pending.push(cell.init);
            }
            for (thread, range) in open.ranges(context, part.cell) {
                self.see(context, part.cell, thread, range, &mut pending);
            }
        }
    }

    /// Some read can see these writes of a thread to a cell. Ranges of several reads are joined
    /// with what lies between them.
    fn see(
        &mut self,
        context: &Context<'_>,
        cell: CellId,
        thread: usize,
        range: Range<usize>,
        pending: &mut Vec<ExprId>,
    ) {
        if range.is_empty() {
            return;
        }
        let writes = writes_of(context, cell, thread);
        let known = self.writes.entry((cell, thread)).or_insert(range.start..range.start);
        let joined = known.start.min(range.start)..known.end.max(range.end);
        let new = (joined.start..known.start).chain(known.end.max(joined.start)..joined.end);
        pending.extend(new.filter_map(|index| Some(writes.get(index)?.value)));
        *known = joined;
    }

    /// Drops the critical sections in which nothing is left, where nothing but their being free
    /// depends on them.
    fn drop_sections(&mut self, context: &Context<'_>, named: &BTreeSet<EventId>) {
        let trace = context.trace;
        let mut fixed: BTreeSet<ObjectId> = BTreeSet::new();
        let mut began: BTreeSet<EventId> = named.clone();
        for event in &trace.events {
            match event.kind {
                EventKind::TryLockFailed { object, .. }
                | EventKind::Block { on: Awaited::Lock { object, .. } } => {
                    fixed.insert(object);
                }
                EventKind::Wake { began: release, .. }
                | EventKind::WaitTimedOut { began: release, .. } => {
                    began.insert(release);
                }
                EventKind::Block { on: Awaited::Signal { .. } } => {
                    // The wait began at the release before it.
                    let thread = &trace.threads[event.thread.index()].events;
                    began.extend(thread[..event.index as usize].iter().rev().take(2));
                }
                _ => {}
            }
        }
        let mut going: FxHashMap<EventId, Going> = FxHashMap::default();
        for (object, regions) in &context.regions.of_object {
            let ends = regions.iter().map(|region| match fixed.contains(object) {
                true => None,
                false => self.droppable(trace, region, &began),
            });
            let ends: Vec<Option<EventId>> = ends.collect();
            let alone = ends.iter().all(Option::is_some);
            for (region, unlock) in regions.iter().zip(ends) {
                let Some(unlock) = unlock else { continue };
                going.insert(region.lock, Going { region: *region, unlock, alone });
            }
        }
        self.drop_between(trace, &going);
    }

    /// Drops sections. Where other sections of the lock stay, the first of several sections in a row
    /// stays too: at the moment of its end the lock is free for the others.
    fn drop_between(&mut self, trace: &EventTrace, going: &FxHashMap<EventId, Going>) {
        for thread in &trace.threads {
            let mut first: Option<(ObjectId, LockMode)> = None;
            for &id in &thread.events {
                let Some(Going { region, unlock, alone }) = going.get(&id) else {
                    let ends_one = matches!(trace.event(id).kind, EventKind::Unlock { .. })
                        && first.is_some_and(|(object, _)| {
                            trace.event(id).kind.object() == Some(object)
                        });
                    if self.events[id.index()] && !ends_one {
                        first = None;
                    }
                    continue;
                };
                let lock = Some((region.object, region.mode));
                if *alone || first == lock {
                    self.events[region.lock.index()] = false;
                    self.events[unlock.index()] = false;
                } else {
                    first = lock;
                }
            }
        }
    }

    /// The release of a section that can go.
    fn droppable(
        &self,
        trace: &EventTrace,
        region: &Region,
        began: &BTreeSet<EventId>,
    ) -> Option<EventId> {
        let unlock = region.unlock?;
        let release = trace.event(unlock);
        let synthetic = matches!(release.kind, EventKind::Unlock { synthetic: true, .. });
        if synthetic || began.contains(&unlock) || began.contains(&region.lock) {
            return None;
        }
        let first = trace.event(region.lock).index as usize + 1;
        let inside = &trace.threads[region.thread.index()].events[first..release.index as usize];
        inside.iter().all(|id| !self.events[id.index()]).then_some(unlock)
    }
}

/// The writes of a thread to a cell, in program order.
pub(super) fn writes_of<'c>(context: &'c Context<'_>, cell: CellId, thread: usize) -> &'c [Write] {
    let all = context.writes(cell).iter();
    all.filter(|(of, _)| *of == thread).map(|(_, writes)| writes.as_slice()).next().unwrap_or(&[])
}

/// By path condition: can it be anything but true?
fn undecided(context: &Context<'_>) -> Vec<bool> {
    let trace = context.trace;
    let mut known: FxHashMap<VarId, u128> = FxHashMap::default();
    let mut values = trace.exprs.evaluate_all(&|_| None);
    for _ in 0..ROUNDS {
        let before = known.len();
        for variable in &trace.variables {
            let Some(read) = context.read_of(variable.id) else { continue };
            if known.contains_key(&variable.id) || context.variable(variable.id).is_none() {
                continue;
            }
            if let Some(value) = only_value(context, read, &values) {
                known.insert(variable.id, value);
            }
        }
        if known.len() == before {
            break;
        }
        values = trace.exprs.evaluate_all(&|var| known.get(&var).copied());
    }
    trace.conditions.iter().map(|c| values[c.expr.0 as usize] != Some(1)).collect()
}

/// The value that all sources of a read have.
fn only_value(context: &Context<'_>, read: ReadRef, values: &[Option<u128>]) -> Option<u128> {
    let part = part_of(context, read)?;
    let open = Open::of(context, read, part);
    if open.events().nth(SOURCES).is_some() {
        return None;
    }
    let sources = candidates(context, read, part);
    let mut found = sources.iter().map(|s| values.get(s.value.0 as usize).copied().flatten());
    let first = found.next()??;
    found.all(|value| value == Some(first)).then_some(first)
}

/// The events that the failure names, and what the run shows of writes to a variable that had ended: what reads gave of
/// these follows from no order.
fn named(trace: &EventTrace) -> BTreeSet<EventId> {
    let is_free = |id: EventId| matches!(trace.event(id).kind, EventKind::Free { .. });
    let shown = trace.lifetimes.iter().filter(|(_, after)| !is_free(*after));
    let mut found: BTreeSet<EventId> = shown.flat_map(|(a, b)| [*a, *b]).collect();
    if let Some(failure) = &trace.failure {
        found.insert(failure.event);
        collect(&failure.condition, &mut found);
    }
    found
}

fn collect(condition: &FailureCondition, found: &mut BTreeSet<EventId>) {
    match condition {
        FailureCondition::Value(_) => {}
        FailureCondition::Before(a, b) => found.extend([*a, *b]),
        FailureCondition::Unwoken { began, .. } => {
            found.insert(*began);
        }
        FailureCondition::All(parts) | FailureCondition::Any(parts) => {
            parts.iter().for_each(|part| collect(part, found));
        }
    }
}
