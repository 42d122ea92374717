//! Schedules that are tried out: a write of another thread between two accesses of one thread.
//!
//! A sum of counters that four threads add to goes wrong as soon as one addition is lost, whichever it is. A search
//! that decides where every read takes its value from sees that only when all is decided, and learns that it was not
//! these sources all together. So where it does not get on, the order that it begins from is changed in one place after
//! the other, each as near to what it is as can be, and run, which takes no longer than to look at each event. What
//! brings it nearer to a failing schedule is kept.

use super::OrderingSession;
use encoders::{ConstraintKind, Term};
use model::evaluate::Evaluator;
use model::{CellId, EventId, EventTrace, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// So many schedules in a row are run that bring nothing.
const IN_VAIN: usize = 2_048;

/// A write of another thread that is to come between two accesses of one thread.
struct Probe {
    first: EventId,
    between: EventId,
    second: EventId,
    /// How far it has to move.
    distance: u32,
    /// Is what the second one writes computed before the write?
    loses: bool,
}

impl OrderingSession<'_> {
    /// Looks for a schedule that fails near the one that the search begins from. What it finds was run, and is not
    /// ruled out. `goes_on` is asked before each run.
    pub(super) fn probe(&mut self, mut goes_on: impl FnMut() -> bool) -> Option<Vec<EventId>> {
        let (trace, system) = (self.trace, self.system);
        let search = self.search.as_mut()?;
        let mut evaluator = Evaluator::new(trace);
        let recorded = |var: VarId| trace.variables.get(var.index())?.recorded;
        let shortfall = |evaluator: &mut Evaluator<'_>, order: &[EventId]| {
            let left = evaluator.shortfall(order, &recorded)?;
            Some(left + u64::from(left == 0 && is_ruled_out(system, order)))
        };
        let mut best = search.arranged_with(&[])?;
        // Where even that cannot happen, everything that can is better.
        let mut missing = shortfall(&mut evaluator, &best).unwrap_or(u64::MAX);
        let (mut orders, mut runs, mut in_vain) = (Vec::new(), 0, 0);
        let mut tried = FxHashSet::default();
        loop {
            if missing == 0 {
                tracing::debug!(
                    runs,
                    changes = orders.len() / 2,
                    "changed a schedule until it failed"
                );
                return Some(best);
            }
            // The best one is the one that was run last.
            let mut unmet = FxHashSet::default();
            if missing < u64::MAX {
                unmet.extend(cells_of(trace, &evaluator.unmet()));
            }
            let before = missing;
            for probe in probes(trace, &best, &unmet) {
                if !tried.insert((probe.first, probe.between, probe.second)) {
                    continue;
                }
                if in_vain == IN_VAIN || !goes_on() {
                    tracing::debug!(runs, missing, "changing a schedule did not make it fail");
                    return None;
                }
                let known = orders.len();
                orders
                    .extend([(probe.first.0, probe.between.0), (probe.between.0, probe.second.0)]);
                let order = search.arranged_with(&orders);
                in_vain += usize::from(order.is_some());
                let left = order.as_ref().and_then(|order| {
                    runs += 1;
                    shortfall(&mut evaluator, order)
                });
                if let (Some(order), Some(left)) = (order, left)
                    && left < missing
                {
                    (best, missing, in_vain) = (order, left, 0);
                    break;
                }
                orders.truncate(known);
            }
            if missing == before {
                tracing::debug!(runs, missing, "no change of a schedule brings anything");
                return None;
            }
        }
    }
}

/// The cells that the reads see on which the expressions depend.
fn cells_of(trace: &EventTrace, exprs: &[model::ExprId]) -> Vec<CellId> {
    let reads = exprs.iter().flat_map(|&expr| trace.reads_of(expr));
    let parts = reads.filter_map(|read| {
        Some(trace.event(read.event).kind.reads().get(read.part as usize)?.cell)
    });
    parts.collect()
}

/// Does a schedule have all orders of one of those that must not hold at once?
fn is_ruled_out(system: &encoders::ConstraintSystem, order: &[EventId]) -> bool {
    let rejected: Vec<&Term> = system
        .constraints
        .iter()
        .filter(|constraint| constraint.kind == ConstraintKind::Rejected)
        .map(|constraint| &constraint.term)
        .collect();
    if rejected.is_empty() {
        return false;
    }
    let places = places(order);
    let holds = |term: &Term| match term {
        Term::Before(a, b) => places[a.index()] < places[b.index()],
        _ => false,
    };
    // One of the orders has to be the other way round.
    rejected.into_iter().any(|term| match term {
        Term::Or(parts) => !parts.iter().any(holds),
        term => !holds(term),
    })
}

fn places(order: &[EventId]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, event) in (0..).zip(order) {
        places[event.index()] = place;
    }
    places
}

/// An access of a cell, with its place in the order.
#[derive(Clone, Copy)]
struct Access {
    event: EventId,
    place: u32,
    reads: bool,
    writes: bool,
}

/// What there is to try: in these cells before others, lost updates before others, and of these what is nearest first.
fn probes(trace: &EventTrace, order: &[EventId], first: &FxHashSet<CellId>) -> Vec<Probe> {
    let mut cells: FxHashMap<CellId, Vec<Access>> = FxHashMap::default();
    for (&event, place) in order.iter().zip(0u32..) {
        let kind = &trace.event(event).kind;
        let mut add = |cell: CellId, reads: bool| {
            let accesses = cells.entry(cell).or_default();
            match accesses.last_mut().filter(|last| last.event == event) {
                Some(last) => last.writes |= !reads,
                None => accesses.push(Access { event, place, reads, writes: !reads }),
            }
        };
        kind.reads().iter().for_each(|part| add(part.cell, true));
        kind.writes().iter().for_each(|part| add(part.cell, false));
    }
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for (cell, accesses) in &cells {
        of_a_cell(trace, accesses, if first.contains(cell) { &mut found } else { &mut others });
    }
    for probes in [&mut found, &mut others] {
        probes.sort_unstable_by_key(|p| (!p.loses, p.distance, p.first, p.between));
    }
    found.append(&mut others);
    found
}

/// The nearest write of each other thread before and behind each two accesses that follow each other in a thread.
fn of_a_cell(trace: &EventTrace, accesses: &[Access], found: &mut Vec<Probe>) {
    let threads = trace.threads.len();
    let thread = |access: &Access| trace.event(access.event).thread.index();
    let mut last: Vec<Option<Access>> = vec![None; threads];
    let mut last_write: Vec<Option<Access>> = vec![None; threads];
    // Pairs for which the next write of each thread is still to come: the pair, and for which threads it came.
    let mut open: Vec<(Access, Access, Vec<bool>)> = Vec::new();
    for access in accesses {
        let own = thread(access);
        if access.writes {
            for (first, second, came) in &mut open {
                if thread(first) != own && !std::mem::replace(&mut came[own], true) {
                    let distance = access.place - second.place;
                    found.push(probe(*first, *access, *second, distance));
                }
            }
            open.retain(|(.., came)| !came.iter().all(|&came| came));
            last_write[own] = Some(*access);
        }
        let Some(first) = last[own].replace(*access) else { continue };
        for (other, write) in last_write.iter().enumerate() {
            let Some(write) = write.filter(|write| other != own && write.place < first.place)
            else {
                continue;
            };
            found.push(probe(first, write, *access, first.place - write.place));
        }
        let mut came = vec![false; threads];
        came[own] = true;
        open.push((first, *access, came));
    }
}

fn probe(first: Access, between: Access, second: Access, distance: u32) -> Probe {
    let loses = first.reads && second.writes;
    Probe { first: first.event, between: between.event, second: second.event, distance, loses }
}
