//! Steps of a thread that another thread's accesses part in the failing run.
//!
//! Where runs that pass go another way from their beginning, no event of the one is to be compared with one of the other. What
//! can be compared are patterns at places of the program: two accesses of a thread to one variable, and another thread's between
//! them, of a kind that no order of whole steps has. One that the failing run alone has may be what went wrong in it, and so may
//! one that comes where the failure could be avoided last. Whether it is only runs tell: some that follow the failing schedule
//! until it is there, and some in which it is undone.

use crate::flips::Flip;
use model::{CellId, Event, EventId, EventTrace, Schedule, Site};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// Two accesses of one thread to a variable, one after the other, with others' between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The thread's first access.
    pub first: EventId,
    /// Its second one.
    pub second: EventId,
    /// The variable.
    pub cell: CellId,
    /// The first and the last access of other threads between the two by which no order of whole steps gives the same.
    pub parting: [EventId; 2],
    /// All accesses of other threads between the two, in the schedule's order; of many the first and the last ones.
    pub between: Vec<EventId>,
}

/// No more accesses between the two are kept: the first and the last ones.
const BETWEEN: usize = 16;

/// What is accessed how, by places of the program: the first access, one between, the second one.
type Pattern<'t> = [(&'t Site, bool, bool); 3];

/// Of the steps that are interrupted at a moment so many are given, those that take least.
const AT_MOMENT: usize = 8;

/// The steps that are interrupted in the failing run and may have decided. First those by a pattern which none of the runs
/// that pass has, of each pattern those that are nearest to one of these moments, or the last ones: places of the schedule
/// up to which a run can follow it and pass. Looks and what was done by them come first, then patterns that come seldom. Then,
/// whatever their patterns, those that reach over a moment, the shortest first: what does no harm in one round may do so in
/// another.
#[must_use]
pub fn interrupted_steps(
    failing: (&EventTrace, &Schedule),
    passing: &[(&EventTrace, &Schedule)],
    moments: &[usize],
) -> Vec<Interrupted> {
    let mut known: FxHashSet<Pattern<'_>> = FxHashSet::default();
    for (trace, schedule) in passing {
        known.extend(interrupted(trace, schedule).into_iter().map(|(pattern, ..)| pattern));
    }
    let all = interrupted(failing.0, failing.1);
    let reaches = |[from, to]: [usize; 2], at: usize| (from..=to).contains(&at);
    let mut alone: FxHashMap<Pattern<'_>, Alone<'_>> = FxHashMap::default();
    for (pattern, places, steps) in all.iter().filter(|(pattern, ..)| !known.contains(pattern)) {
        // Where it went wrong more than once, the first time is nearest.
        let [from, to] = *places;
        let apart = |at: &usize| from.saturating_sub(*at).max(at.saturating_sub(to));
        let apart = moments.iter().map(apart).min().unwrap_or(0);
        let place = (apart, Reverse(to), from);
        let alone = alone.entry(*pattern).or_insert_with(|| Alone {
            kind: kind(pattern),
            count: 0,
            place,
            steps,
        });
        alone.count += 1;
        if place < alone.place {
            (alone.place, alone.steps) = (place, steps);
        }
    }
    let mut alone: Vec<Alone<'_>> = alone.into_values().collect();
    // Of two threads that got into each other's steps, the one that looked first went by what was no longer so.
    alone.sort_by_key(|it| (it.kind, it.count, it.place.2, it.steps.first));
    let mut found: Vec<Interrupted> = alone.into_iter().map(|it| it.steps.clone()).collect();
    for at in moments {
        let mut there: Vec<_> = all.iter().filter(|(_, places, _)| reaches(*places, *at)).collect();
        there.sort_by_key(|(pattern, [from, to], steps)| (kind(pattern), to - from, steps.first));
        let there = there.into_iter().map(|(.., steps)| steps);
        let there: Vec<_> = there.filter(|steps| !found.contains(steps)).take(AT_MOMENT).collect();
        found.extend(there.into_iter().cloned());
    }
    found
}

/// How much a pattern promises; the least comes first: a look and what was done by it, two looks, and what a thread wrote
/// before another one did, as every round of a loop does.
fn kind(pattern: &Pattern<'_>) -> u8 {
    let [(_, _, first_writes), _, (_, _, second_writes)] = pattern;
    match (first_writes, second_writes) {
        (false, true) => 0,
        (false, false) => 1,
        (true, _) => 2,
    }
}

/// What a pattern is that the failing run alone has.
struct Alone<'s> {
    kind: u8,
    /// How often it comes.
    count: usize,
    /// How far those that are kept are from a moment, where they end, and where they begin: the least are kept.
    place: (usize, Reverse<usize>, usize),
    steps: &'s Interrupted,
}

impl Interrupted {
    /// The orders to try the other way round, each with who is held back: what comes between behind the second access, or the
    /// first access behind what comes between.
    #[must_use]
    pub fn flips(&self, trace: &EventTrace, schedule: &Schedule) -> Vec<Flip> {
        let [nearest, last] = self.parting;
        crate::flips::widened_pairs(trace, schedule, &[(nearest, self.second), (self.first, last)])
    }

    /// The pairs of them that conflict: some are the other way round in a run that undoes it. Those that part come first.
    pub(crate) fn pairs(&self, trace: &EventTrace) -> Vec<(EventId, EventId)> {
        let writes =
            |id: EventId| trace.event(id).kind.writes().iter().any(|part| part.cell == self.cell);
        let others = || self.parting.iter().chain(&self.between).copied();
        let behind = others().map(|id| (self.first, id));
        let pairs = behind.chain(others().map(|id| (id, self.second)));
        pairs.filter(|(one, other)| writes(*one) || writes(*other)).collect()
    }
}

/// All interrupted steps, with their patterns, and the places in the schedule of their first and second accesses.
fn interrupted<'t>(
    trace: &'t EventTrace,
    schedule: &Schedule,
) -> Vec<(Pattern<'t>, [usize; 2], Interrupted)> {
    let mut accesses: FxHashMap<CellId, Vec<(usize, &Event, bool, bool)>> = FxHashMap::default();
    for (place, id) in schedule.order.iter().enumerate() {
        let event = trace.event(*id);
        if event.is_affair_of_library() {
            continue;
        }
        let mut add = |cell: CellId, reads: bool, writes: bool| {
            let of_cell = accesses.entry(cell).or_default();
            match of_cell.last_mut().filter(|last| last.0 == place) {
                Some(last) => (last.2, last.3) = (last.2 || reads, last.3 || writes),
                None => of_cell.push((place, event, reads, writes)),
            }
        };
        event.kind.reads().iter().for_each(|part| add(part.cell, true, false));
        event.kind.writes().iter().for_each(|part| add(part.cell, false, true));
    }
    let mut found = Vec::new();
    let mut cells: Vec<CellId> = accesses.keys().copied().collect();
    cells.sort_unstable();
    for cell in cells {
        let accesses = &accesses[&cell];
        let mut last: FxHashMap<_, usize> = FxHashMap::default();
        for (index, &(to, second, reads, writes)) in accesses.iter().enumerate() {
            let Some(begin) = last.insert(second.thread, index) else { continue };
            let (from, first, first_reads, first_writes) = accesses[begin];
            let between = &accesses[begin + 1..index];
            // Between two writes it takes one who reads, else one who writes: all else is as if it came before or behind.
            let only_written = first_writes && writes;
            let breaks = |access: &&(usize, &Event, bool, bool)| {
                if only_written { access.2 } else { access.3 }
            };
            let Some(nearest) = between.iter().position(|it| breaks(&it)) else { continue };
            let until = between.iter().rposition(|it| breaks(&it)).unwrap_or(nearest);
            let (parting, until) = (between[nearest], between[until]);
            let mut ids: Vec<EventId> = between.iter().map(|it| it.1.id).collect();
            if ids.len() > BETWEEN {
                ids.drain(BETWEEN / 2..ids.len() - BETWEEN / 2);
            }
            let pattern = [
                (site(first), first_reads, first_writes),
                (site(parting.1), parting.2, parting.3),
                (site(second), reads, writes),
            ];
            let steps = Interrupted {
                first: first.id,
                second: second.id,
                cell,
                parting: [parting.1.id, until.1.id],
                between: ids,
            };
            found.push((pattern, [from, to], steps));
        }
    }
    found
}

/// The place in the program's own code.
fn site(event: &Event) -> &Site {
    event.stack.iter().find(|site| !site.is_in_library()).unwrap_or_else(|| event.site())
}
