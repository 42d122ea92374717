//! The events of a run that could come in the order of a bug. In a loop of some rounds they come in thousands of
//! combinations, and in a long run in millions; most of them are ruled out by the locks that are held there, or by how
//! threads begin and end. That is found out for events that are alike, and not for each combination.

use super::{Combination, cells, place};
use crate::sections::{Section, Sections, sections};
use encoders::ConstraintSystem;
use model::{CellId, Event, EventId, EventKind, EventTrace, LockMode, ObjectId, ThreadId};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// So many combinations are asked about one by one...
const MOST: u64 = 600;
/// ...and of more than that so many on the same lines, those whose events came nearest to each other...
const ON_SAME_LINES: usize = 8;
/// ...and so many in all.
pub(super) const SOME: usize = 60;

/// What one thread does: its first event and its last one, which may be the same.
pub(super) type Part = (EventId, EventId);

/// How the events of two threads follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One of a thread, and then one of another.
    Pair,
    /// What another thread does between two events of one.
    Between,
    /// Each comes between what the other does.
    Crossed,
}

/// Which of the two threads' events are about the same: by number, 0 for the first and 1 for the last.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared(pub(super) Vec<(usize, usize)>);

impl Shared {
    /// Any of the first thread's with any of the other one's.
    pub(super) const ANY: Self = Self(Vec::new());

    fn holds(&self, own: &Alike, other: &Alike) -> bool {
        let meets = |&(one, two): &(usize, usize)| own.about[one].meets(&other.about[two]);
        match self.0.is_empty() {
            true => [(0, 0), (0, 1), (1, 0), (1, 1)].iter().any(meets),
            false => self.0.iter().all(meets),
        }
    }
}

/// The combinations of some events of a run.
#[derive(Default)]
pub(super) struct Crossings {
    /// How many there are of events that are about the same.
    pub(super) all: u64,
    /// How many of these neither locks nor beginnings and ends of threads rule out.
    pub(super) open: u64,
    /// Those, or some of them where they are too many.
    pub(super) some: Vec<Combination>,
    /// What keeps each of them apart: a lock that is held on both sides, or `None`.
    pub(super) locks: BTreeSet<Option<ObjectId>>,
    /// The events that they consist of, and some that are about nothing that others touch.
    pub(super) events: Vec<EventId>,
    /// In some of them the other thread runs beside the event that comes first, and touches what that touched.
    pub(super) meets: bool,
}

impl Crossings {
    /// Are all of them that are not ruled out in [`Self::some`]?
    pub(super) fn is_all(&self) -> bool {
        usize::try_from(self.open).is_ok_and(|open| open == self.some.len())
    }
}

/// What an access is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct About {
    cells: BTreeSet<CellId>,
    object: Option<ObjectId>,
    /// It frees an object.
    is_free: bool,
    /// It frees one of which it is not known what lies in it.
    frees: bool,
}

/// What lies in objects that are freed: by the event that frees one, what other threads did with it before. Known where the
/// clock says what came before.
struct Freed(Option<BTreeMap<EventId, BTreeSet<CellId>>>);

impl Freed {
    fn of(run: &EventTrace) -> Self {
        if run.intervals.is_empty() {
            return Self(None);
        }
        let mut found: BTreeMap<EventId, BTreeSet<CellId>> = BTreeMap::new();
        for (access, free) in &run.lifetimes {
            found.entry(*free).or_default().extend(cells(run.event(*access)));
        }
        Self(Some(found))
    }

    fn about(&self, event: &Event) -> About {
        let object = event.kind.object();
        match (&event.kind, &self.0) {
            // Whatever it frees, it may be about what others use.
            (EventKind::Free { .. }, None) => {
                About { cells: BTreeSet::new(), object, is_free: true, frees: true }
            }
            (EventKind::Free { .. }, Some(known)) => {
                let cells = known.get(&event.id).cloned().unwrap_or_default();
                About { cells, object, is_free: true, frees: false }
            }
            _ => About { cells: cells(event), object, is_free: false, frees: false },
        }
    }
}

impl About {
    fn meets(&self, other: &Self) -> bool {
        let objects = self.object.is_some() && self.object == other.object;
        objects || self.frees || other.frees || !self.cells.is_disjoint(&other.cells)
    }
}

/// Are the events of two threads, and about one place?
pub(super) fn meet(run: &EventTrace, one: EventId, other: EventId) -> bool {
    let (a, b) = (run.event(one), run.event(other));
    let frees = [a, b].iter().any(|event| matches!(event.kind, EventKind::Free { .. }));
    let freed = if frees { Freed::of(run) } else { Freed(None) };
    a.thread != b.thread && freed.about(a).meets(&freed.about(b))
}

/// The locks that are held, and whether for reading.
pub(super) type Locks = BTreeSet<(ObjectId, bool)>;

pub(super) fn locks(sections: impl Iterator<Item = Section>) -> Locks {
    sections.map(|section| (section.object, section.mode == LockMode::Shared)).collect()
}

/// A lock that both hold, one of them alone.
pub(super) fn common(one: &Locks, other: &Locks) -> Option<ObjectId> {
    let apart = |(object, shared): &(ObjectId, bool)| {
        other.contains(&(*object, false)) || (!shared && other.contains(&(*object, true)))
    };
    one.iter().find(|held| apart(held)).map(|(object, _)| *object)
}

/// Parts of one thread that are alike.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    thread: ThreadId,
    /// The locks that are held at both ends.
    at: [Locks; 2],
    /// Those that are held from the one to the other.
    through: Locks,
    about: [About; 2],
}

impl Alike {
    fn of(run: &EventTrace, (sections, freed): (&Sections, &Freed), (first, last): Part) -> Self {
        let [begin, end] = [first, last].map(|id| run.event(id));
        let through = |section: &Section| run.event(section.unlock).index >= end.index;
        Self {
            thread: begin.thread,
            at: [first, last].map(|id| locks(sections.touching(run, (id, id)))),
            through: locks(sections.touching(run, (first, first)).filter(through)),
            about: [freed.about(begin), freed.about(end)],
        }
    }

    /// A lock that keeps the other thread's part from coming in this form.
    fn apart(&self, other: &Self, form: Form) -> Option<ObjectId> {
        let begins = || common(&self.through, &other.at[0]);
        match form {
            Form::Pair => None,
            Form::Between => begins().or_else(|| common(&self.through, &other.at[1])),
            Form::Crossed => begins().or_else(|| common(&other.through, &self.at[1])),
        }
    }

    fn groups(
        run: &EventTrace,
        known: (&Sections, &Freed),
        parts: &[Part],
    ) -> Vec<(Self, Vec<Part>)> {
        let mut groups: BTreeMap<Self, Vec<Part>> = BTreeMap::new();
        for part in parts {
            groups.entry(Self::of(run, known, *part)).or_default().push(*part);
        }
        let index = |part: &Part| (run.event(part.0).index, run.event(part.1).index);
        groups.values_mut().for_each(|parts| parts.sort_by_key(index));
        groups.into_iter().collect()
    }
}

/// What other threads do, and where that is which is about something.
struct Others {
    groups: Vec<(Alike, Vec<Part>)>,
    of_cell: BTreeMap<CellId, BTreeSet<usize>>,
    of_object: BTreeMap<ObjectId, BTreeSet<usize>>,
    frees: BTreeSet<usize>,
}

impl Others {
    fn new(groups: Vec<(Alike, Vec<Part>)>) -> Self {
        let (of_cell, of_object, frees) = Default::default();
        let mut others = Self { groups, of_cell, of_object, frees };
        for (number, (alike, _)) in others.groups.iter().enumerate() {
            for about in &alike.about {
                for cell in &about.cells {
                    others.of_cell.entry(*cell).or_default().insert(number);
                }
                if let Some(object) = about.object {
                    others.of_object.entry(object).or_default().insert(number);
                }
                if about.frees {
                    others.frees.insert(number);
                }
            }
        }
        others
    }

    /// Those of other threads that are about the same.
    fn meeting(&self, own: &Alike, shared: &Shared) -> Vec<&(Alike, Vec<Part>)> {
        let mut found: BTreeSet<usize> = self.frees.clone();
        for about in &own.about {
            if about.frees {
                found.extend(0..self.groups.len());
            }
            found.extend(about.cells.iter().filter_map(|cell| self.of_cell.get(cell)).flatten());
            found.extend(about.object.iter().filter_map(|o| self.of_object.get(o)).flatten());
        }
        let groups = found.into_iter().filter_map(|number| self.groups.get(number));
        groups.filter(|(it, _)| it.thread != own.thread && shared.holds(own, it)).collect()
    }
}

/// Orders that hold in every schedule.
struct Orders(Option<ConstraintSystem>);

impl Orders {
    fn before(&self, one: EventId, other: EventId) -> bool {
        self.0.as_ref().is_some_and(|orders| orders.surely_before(one, other))
    }

    /// Those of the parts, each of which comes behind the ones in front of it, that may come in this form.
    fn open(&self, form: Form, (first, last): Part, others: &[Part]) -> Range<usize> {
        let too_early = |other: &Part| {
            self.before(other.0, first) || (form == Form::Crossed && self.before(other.1, last))
        };
        let too_late = |other: &Part| match form {
            Form::Pair => false,
            Form::Between => self.before(last, other.1),
            Form::Crossed => self.before(last, other.0),
        };
        let from = others.partition_point(too_early);
        from..others.partition_point(|other| !too_late(other)).max(from)
    }
}

/// Parts of another thread that may come there.
struct Left<'o> {
    own: Part,
    others: &'o [Part],
}

/// Finds the combinations of what threads do with what others do. `None` when `goes_on` says no.
pub(super) fn crossings(
    run: &EventTrace,
    (form, shared): (Form, &Shared),
    owns: &[Part],
    others: &[Part],
    goes_on: &dyn Fn() -> bool,
) -> Option<Crossings> {
    let (sections, freed) = (sections(run), Freed::of(run));
    let known = (&sections, &freed);
    let orders = Orders(encoders::encode_orders(run).ok());
    let others = Others::new(Alike::groups(run, known, others));
    let groups = Alike::groups(run, known, owns);
    let mut found = Crossings::default();
    let mut left: Vec<Left<'_>> = Vec::new();
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let events =
        |parts: &[Part]| parts.iter().flat_map(|part| [part.0, part.1]).collect::<Vec<_>>();
    for (alike, owns) in &groups {
        if !goes_on() {
            return None;
        }
        found.events.extend(events(owns));
        for (other, parts) in others.meeting(alike, shared) {
            found.all += count(owns.len()) * count(parts.len());
            found.events.extend(events(parts));
            let apart = alike.apart(other, form);
            found.locks.insert(apart);
            let beside = |own: &Part| orders.open(Form::Between, (own.0, own.0), parts);
            // What is freed is touched by its use, wherever its pointer was got.
            let touches = || {
                let of = |it: &About| if it.is_free { &alike.about[..] } else { &alike.about[..1] };
                other.about.iter().any(|it| of(it).iter().any(|own| it.meets(own)))
            };
            found.meets |=
                form == Form::Pair || (touches() && owns.iter().any(|own| !beside(own).is_empty()));
            if apart.is_some() {
                continue;
            }
            for own in owns {
                let open = orders.open(form, *own, parts);
                found.open += count(open.len());
                if let Some(others) = parts.get(open).filter(|others| !others.is_empty()) {
                    left.push(Left { own: *own, others });
                }
            }
        }
    }
    found.events.sort_unstable();
    found.events.dedup();
    found.some = match found.open {
        0..=MOST => every(run, form, &left),
        _ => nearest(run, form, &left),
    };
    Some(found)
}

fn combination(run: &EventTrace, form: Form, own: Part, other: Part) -> Combination {
    let sequence = match form {
        Form::Pair => vec![own.0, other.0],
        Form::Between => vec![own.0, other.0, other.1, own.1],
        Form::Crossed => vec![own.0, other.0, own.1, other.1],
    };
    Combination::new(run, sequence)
}

fn every(run: &EventTrace, form: Form, left: &[Left<'_>]) -> Vec<Combination> {
    let all = left.iter().flat_map(|left| left.others.iter().map(|other| (left.own, *other)));
    all.map(|(own, other)| combination(run, form, own, other)).collect()
}

/// Some of them.
fn nearest(run: &EventTrace, form: Form, left: &[Left<'_>]) -> Vec<Combination> {
    let beside = left.iter().flat_map(|Left { own, others }| {
        let now = time(run, own.0);
        let behind = others.partition_point(|other| time(run, other.0) < now);
        let near = [behind.checked_sub(1), Some(behind)].into_iter().flatten();
        let near = near.filter_map(|at| others.get(at));
        near.map(|other| combination(run, form, *own, *other)).collect::<Vec<_>>()
    });
    some(run, beside.collect())
}

/// When an event happened, at the earliest; 0 where that is not known.
fn time(run: &EventTrace, id: EventId) -> u64 {
    run.intervals.get(id.index()).map_or(0, |at| at.earliest)
}

/// Some of the combinations, of all lines that they are on, those first whose events came nearest to each other in the
/// recorded run.
pub(super) fn some<C: Borrow<Combination>>(run: &EventTrace, combinations: Vec<C>) -> Vec<C> {
    let mut lines: BTreeMap<Vec<String>, Vec<(u64, C)>> = BTreeMap::new();
    for combination in combinations {
        let sequence = &combination.borrow().sequence;
        let times = || sequence.iter().map(|id| time(run, *id));
        let apart = times().max().unwrap_or(0) - times().min().unwrap_or(0);
        let there = sequence.iter().map(|id| place(run, *id)).collect();
        lines.entry(there).or_default().push((apart, combination));
    }
    let mut found: Vec<(usize, u64, C)> = Vec::new();
    for mut some in lines.into_values() {
        some.sort_by(|(apart, one), (further, other)| {
            (apart, &one.borrow().sequence).cmp(&(further, &other.borrow().sequence))
        });
        let some = some.into_iter().take(ON_SAME_LINES).enumerate();
        found.extend(some.map(|(rank, (apart, combination))| (rank, apart, combination)));
    }
    found.sort_by_key(|(rank, apart, _)| (*rank, *apart));
    found.into_iter().take(SOME).map(|(_, _, combination)| combination).collect()
}
