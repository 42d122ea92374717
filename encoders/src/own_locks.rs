//! Locks of the program's own: a cell that threads take by an atomic update and give back by a write.
//!
//! Let a cell have a value F, *free*, before any thread takes it, and let every event that may write F be a
//! *release*: it comes behind an *acquisition* by its own thread, an atomic update that goes on only where it
//! read F and that does not write F, with no other release in between. Then no acquisition comes between another
//! one and its release: the first that did would have read F, so some event wrote F since the other one; that
//! is the release of a third section, which began before the other one or after it, and either is an earlier
//! acquisition within a section. So such a cell is a lock, and its sections are excluded from each other like
//! those of a mutex. The solver need not find that out from values each time.
//!
//! What an update reads and writes is known from the values that the cell can have at all (few), and from the
//! path conditions that speak of the read value alone.

use crate::locks::Regions;
use model::expr::mask;
use model::{CellId, EventId, EventKind, EventTrace, ExprId, ObjectId, ThreadId, VarId};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A cell that can have more values is no lock.
const MOST_VALUES: usize = 8;

/// A write of a cell, in an event that may read it as well.
struct Write {
    event: EventId,
    value: ExprId,
    read: Option<VarId>,
}

/// Adds the critical sections of the program's own locks.
pub(crate) fn add(trace: &EventTrace, regions: &mut Regions) {
    let writes = writes(trace);
    // Where a thread comes from nowhere, nobody knows what was before it.
    if writes.is_empty() || !all_are_forked(trace) {
        return;
    }
    let conditions = conditions(trace);
    let mut next = trace.objects.len();
    for (cell, threads) in writes {
        let Some(found) = sections(trace, cell, &threads, &conditions) else { continue };
        regions.insert(trace, ObjectId(next as u32), &found);
        next += 1;
    }
}

/// By thread and in program order, the writes of the cells that some thread updates atomically.
fn writes(trace: &EventTrace) -> BTreeMap<CellId, BTreeMap<usize, Vec<Write>>> {
    let mut updated: BTreeSet<CellId> = BTreeSet::new();
    for event in &trace.events {
        if let EventKind::ReadModifyWrite { writes, .. } = &event.kind {
            updated.extend(writes.iter().map(|write| write.cell));
        }
    }
    let mut found: BTreeMap<CellId, BTreeMap<usize, Vec<Write>>> = BTreeMap::new();
    for thread in &trace.threads {
        for &id in &thread.events {
            let event = trace.event(id);
            for write in event.kind.writes().iter().filter(|write| updated.contains(&write.cell)) {
                let read = event.kind.reads().iter().find(|read| read.cell == write.cell);
                let cell = write.cell;
                let write = Write { event: id, value: write.value, read: read.map(|it| it.var) };
                found.entry(cell).or_default().entry(thread.id.index()).or_default().push(write);
            }
        }
    }
    found
}

/// The variables that an expression has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variables {
    None,
    One(VarId),
    Several,
}

/// The path conditions that speak of one variable, by variables.
fn conditions(trace: &EventTrace) -> FxHashMap<VarId, Vec<ExprId>> {
    let all =
        trace.exprs.joined(Variables::None, Variables::One, |one, other| match (one, other) {
            (one, Variables::None) | (Variables::None, one) => one,
            (Variables::One(one), Variables::One(other)) if one == other => Variables::One(one),
            _ => Variables::Several,
        });
    let mut found: FxHashMap<VarId, Vec<ExprId>> = FxHashMap::default();
    for condition in &trace.conditions {
        if let Some(Variables::One(var)) = all.get(condition.expr.0 as usize) {
            found.entry(*var).or_default().push(condition.expr);
        }
    }
    found
}

/// What one write does, as far as the path conditions tell.
enum Step {
    /// It never makes the cell free, or leaves it so.
    Nothing,
    /// It took the lock.
    Takes,
    Frees,
}

/// The sections of a cell: where they begin and end. None when it is no lock, or nobody could be in another's
/// way.
fn sections(
    trace: &EventTrace,
    cell: CellId,
    threads: &BTreeMap<usize, Vec<Write>>,
    conditions: &FxHashMap<VarId, Vec<ExprId>>,
) -> Option<Vec<(EventId, Option<EventId>)>> {
    let early = |write: &Write| write.read.is_none() && is_before_all_others(trace, write.event);
    let first = threads.get(&0).into_iter().flatten().take_while(|write| early(write)).last();
    let declared = trace.cells.get(cell.index())?;
    let free = trace.exprs.as_const(first.map_or(declared.init, |write| write.value))?;
    let free = free & mask(declared.width);
    let of = |thread: usize| {
        let writes = threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let skipped = writes.iter().take_while(|write| thread == 0 && early(write)).count();
        writes.get(skipped..).unwrap_or_default()
    };
    let values = possible(trace, free, || threads.keys().flat_map(|&thread| of(thread)))?;
    let mut found = Vec::new();
    let mut holders = 0;
    for &thread in threads.keys() {
        let (before, mut open) = (found.len(), None);
        for write in of(thread) {
            match step(trace, write, free, &values, conditions)? {
                Step::Nothing => {}
                // A thread that takes it twice waits for itself.
                Step::Takes if open.is_some() => return None,
                Step::Takes => open = Some(write.event),
                Step::Frees => found.push((open.take()?, Some(write.event))),
            }
        }
        found.extend(open.map(|begin| (begin, None)));
        holders += usize::from(found.len() > before);
    }
    (holders > 1).then_some(found)
}

/// Are all threads but the first one created by others?
fn all_are_forked(trace: &EventTrace) -> bool {
    let forks = trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Fork { child } => Some(child),
        _ => None,
    });
    let forked: BTreeSet<ThreadId> = forks.collect();
    trace.threads.iter().skip(1).all(|it| it.events.is_empty() || forked.contains(&it.id))
}

/// Is the event one of the first thread's, before there were others?
fn is_before_all_others(trace: &EventTrace, event: EventId) -> bool {
    let index = trace.event(event).index as usize;
    let thread = trace.threads.first().filter(|it| it.id == trace.event(event).thread);
    thread.and_then(|thread| thread.events.get(..index)).is_some_and(|before| {
        before.iter().all(|&id| !matches!(trace.event(id).kind, EventKind::Fork { .. }))
    })
}

/// All values that the cell may have; none when these are many, or unknown.
fn possible<'w, I: Iterator<Item = &'w Write>>(
    trace: &EventTrace,
    free: u128,
    writes: impl Fn() -> I,
) -> Option<BTreeSet<u128>> {
    let mut values = BTreeSet::from([free]);
    loop {
        let known = values.len();
        for write in writes() {
            match write.read {
                Some(var) => {
                    for value in values.clone() {
                        values.insert(written(trace, write, Some((var, value)))?);
                    }
                }
                None => {
                    values.insert(written(trace, write, None)?);
                }
            }
            if values.len() > MOST_VALUES {
                return None;
            }
        }
        if values.len() == known {
            return Some(values);
        }
    }
}

/// What is written where this was read.
fn written(trace: &EventTrace, write: &Write, read: Option<(VarId, u128)>) -> Option<u128> {
    let value_of = |var: VarId| read.filter(|&(own, _)| own == var).map(|(_, value)| value);
    trace.exprs.evaluate(write.value, &value_of)
}

fn step(
    trace: &EventTrace,
    write: &Write,
    free: u128,
    values: &BTreeSet<u128>,
    conditions: &FxHashMap<VarId, Vec<ExprId>>,
) -> Option<Step> {
    let Some(var) = write.read else {
        return Some(match written(trace, write, None)? == free {
            true => Step::Frees,
            false => Step::Nothing,
        });
    };
    let holds = |value: u128, id: &ExprId| {
        let value_of = |other: VarId| (other == var).then_some(value);
        trace.exprs.evaluate(*id, &value_of).is_none_or(|holds| holds != 0)
    };
    let conditions = conditions.get(&var).map_or(&[][..], Vec::as_slice);
    let read: Vec<u128> = values
        .iter()
        .copied()
        .filter(|&value| conditions.iter().all(|id| holds(value, id)))
        .collect();
    let mut frees = false;
    for &value in &read {
        frees |= written(trace, write, Some((var, value)))? == free;
    }
    let was_free = matches!(read.as_slice(), [only] if *only == free);
    Some(match (frees, was_free) {
        (false, true) => Step::Takes,
        (false, false) | (true, true) => Step::Nothing,
        (true, false) => Step::Frees,
    })
}
