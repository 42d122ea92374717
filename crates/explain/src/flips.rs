//! Which pairs to reverse on the real program, where no schedule along the recorded paths passes:
//! a run in which the pair comes the other way round may take other branches.
//!
//! Unlike the pairs of [`crate::pairs`], these are directions for a scheduler: a thread is held
//! before one place until another thread has passed another place, so that both places must be
//! such that the one thread does not keep what the other needs.

use crate::cone::{Cone, feeds};
use crate::conflict::{OrderKind, conflicts, positions};
use crate::failing::{EnclosingLocks, section_end};
use crate::happens_before::HappensBefore;
use model::evaluate::Evaluation;
use model::{
    CellId, Event, EventId, EventKind, EventTrace, FailureKind, LockMode, ObjectId, Schedule,
    ThreadId,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// No more flips than this are returned.
pub const MOST_FLIPS: usize = 64;
/// Of each cell this many accesses are looked at, those nearest to the failure.
const ACCESSES: usize = 160;
/// An access is paired with this many later conflicting accesses of the cell at most.
const PARTNERS: usize = 4;

/// A pair of events of different threads, to be tried the other way round on the real program:
/// everything goes as in the failing schedule up to `before`, whose thread then stands still until
/// `after` was performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flip {
    /// The event that is held back. It comes first in the failing schedule. Where the pair is of
    /// two sections of one lock, the acquisition of the first.
    pub before: EventId,
    /// The event that is let through first. Where the pair is of two sections of one lock, the
    /// release of the second, so that all of it runs first.
    pub after: EventId,
}

/// How promising a flip is; the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// As [`Rank::Atomic`], where locks protect some of the three accesses, but none protects all
    /// of them: somebody forgot the lock.
    Unprotected,
    /// As [`Rank::Atomic`], where the second access writes what it computed from what the first one
    /// read: the access between them is lost.
    Lost,
    /// It puts together two accesses of one thread that another thread's access parts, and their
    /// variable decides whether the run fails, or whether the failing thread gets there. One of the
    /// accesses may be a check: then the failure hangs on what the thread did because of it.
    Atomic,
    /// The pair accesses such a variable.
    Decides,
    /// The pair accesses a variable that says where such a variable is: an index or a pointer.
    Addresses,
    /// The same for the branches of any thread.
    AnyPath,
    /// Any other order of the schedule.
    Rest,
}

/// The flips that may lead to a run without the failure, most promising first: those that can
/// reach the failure, or a branch of the failing thread, then those that can reach any branch, and
/// of each kind those near the failure first. At most [`MOST_FLIPS`], each once.
///
/// `schedule` is a failing schedule of `trace`, and `evaluation` what it does.
#[must_use]
pub fn flips(trace: &EventTrace, schedule: &Schedule, evaluation: &Evaluation) -> Vec<Flip> {
    let search = Search::new(trace, schedule);
    let failing = failing_threads(trace);
    let decides = Cone::with_paths(trace, evaluation, |c| failing.contains(&c.thread));
    let addressed = Cone::with_addresses(trace, evaluation, |c| failing.contains(&c.thread));
    let any_path = Cone::with_paths(trace, evaluation, |_| true);
    let variables: BTreeSet<CellId> = addressed.cells().collect();
    let mut pairs: Vec<(Key, EventId, EventId)> = Vec::new();
    let mut add = |rank: Rank, before: EventId, after: EventId| {
        let [one, other] = [before, after].map(|id| trace.event(id));
        let internal = (one.is_of_openmp() && other.is_of_openmp())
            || one.asks_who_is_left()
            || other.asks_who_is_left();
        let rank = if internal { Rank::Rest } else { rank };
        pairs.push(((rank, search.distance(before, after)), before, after));
    };
    let cones =
        [(&decides, Rank::Decides), (&addressed, Rank::Addresses), (&any_path, Rank::AnyPath)];
    for (cone, rank) in cones {
        for cell in cone.cells() {
            let accesses = search.accesses(cone, cell);
            for (before, after) in search.conflicting(&accesses, cell) {
                add(rank, before, after);
            }
            for Parted { flip: (before, after), unprotected, lost } in
                search.parted(&accesses, cell)
            {
                let rank = match variables.contains(&cell) {
                    true if unprotected => Rank::Unprotected,
                    true if lost => Rank::Lost,
                    true => Rank::Atomic,
                    false => rank,
                };
                add(rank, before, after);
            }
        }
    }
    for conflict in conflicts(trace, &schedule.order, evaluation, &search.happens_before) {
        let rank = match conflict.kind {
            OrderKind::Failure => Rank::Atomic,
            OrderKind::Barrier(_) => continue,
            _ if decides.contains(trace, &conflict) => Rank::Decides,
            _ if addressed.contains(trace, &conflict) => Rank::Addresses,
            _ if any_path.contains(trace, &conflict) => Rank::AnyPath,
            _ => Rank::Rest,
        };
        add(rank, conflict.order.before, conflict.order.after);
    }
    search.most_promising(pairs)
}

/// The flips that reverse these pairs, as far as that can be; see [`Flip`].
pub(crate) fn widened_pairs(
    trace: &EventTrace,
    schedule: &Schedule,
    pairs: &[(EventId, EventId)],
) -> Vec<Flip> {
    let search = Search::new(trace, schedule);
    pairs.iter().filter_map(|(before, after)| search.widened(*before, *after)).collect()
}

/// How promising a pair is, and how far from the failure.
type Key = (Rank, (u32, u32));

/// The thread that failed; of a hang, all that were waiting at the end: the one that it is said of may have
/// waited long before another one went wrong.
pub(crate) fn failing_threads(trace: &EventTrace) -> BTreeSet<ThreadId> {
    let Some(failure) = &trace.failure else { return BTreeSet::new() };
    let mut threads = BTreeSet::from([trace.event(failure.event).thread]);
    if matches!(failure.kind, FailureKind::Hang | FailureKind::Deadlock | FailureKind::StillRunning)
    {
        let blocked = |event: &&Event| matches!(event.kind, EventKind::Block { .. });
        threads.extend(trace.events.iter().filter(blocked).map(|event| event.thread));
    }
    threads
}

/// The schedule with a flip: up to `before` as it is, then what does not depend on `before` up to
/// and with `after`, then what was held back, and the rest. Only program order and thread creation
/// and end are heeded; whoever needs something else from the thread that is held back has to wait
/// in a run under this order, or takes another path.
#[must_use]
pub fn flipped_order(trace: &EventTrace, schedule: &Schedule, flip: Flip) -> Vec<EventId> {
    let happens_before = HappensBefore::new(trace, &schedule.order);
    let mut order = Vec::with_capacity(schedule.order.len());
    let (mut held, mut open) = (Vec::new(), false);
    for &id in &schedule.order {
        open |= id == flip.before;
        if open && (id == flip.before || happens_before.before(flip.before, id)) {
            held.push(id);
        } else {
            order.push(id);
        }
        if open && id == flip.after {
            order.append(&mut held);
            open = false;
        }
    }
    order.append(&mut held);
    order
}

/// The events with one thread after the other, each as far as creations and joins allow: the
/// initial thread first, then the others in the order of their creation, or, `backwards`, the last
/// one first.
#[must_use]
pub fn serial_order(trace: &EventTrace, backwards: bool) -> Vec<EventId> {
    let mut preference: Vec<usize> = (1..trace.threads.len()).collect();
    if backwards {
        preference.reverse();
    }
    preference.insert(0, 0);
    let mut next = vec![0; trace.threads.len()];
    let mut created = vec![false; trace.threads.len()];
    if let Some(initial) = created.first_mut() {
        *initial = true;
    }
    let mut order = Vec::with_capacity(trace.events.len());
    while order.len() < trace.events.len() {
        let before = order.len();
        for &thread in &preference {
            let events = &trace.threads[thread].events;
            while let Some(&id) = events.get(next[thread]).filter(|_| created[thread]) {
                match trace.event(id).kind {
                    EventKind::Fork { child } => created[child.index()] = true,
                    EventKind::Join { child }
                        if next[child.index()] < trace.threads[child.index()].events.len() =>
                    {
                        break;
                    }
                    _ => {}
                }
                order.push(id);
                next[thread] += 1;
            }
        }
        if order.len() == before {
            // Of a trace that holds what it promises every event can come.
            break;
        }
    }
    order
}

/// A flip that puts together what another thread's access parts.
struct Parted {
    flip: (EventId, EventId),
    /// See [`Rank::Unprotected`].
    unprotected: bool,
    /// See [`Rank::Lost`].
    lost: bool,
}

struct Search<'t> {
    trace: &'t EventTrace,
    /// By cell, the events that access it, in the schedule's order.
    accesses: FxHashMap<CellId, Vec<EventId>>,
    locks: EnclosingLocks,
    positions: Vec<u32>,
    happens_before: HappensBefore,
    /// The position of the failure, or the schedule's end.
    failure: u32,
}

impl<'t> Search<'t> {
    fn new(trace: &'t EventTrace, schedule: &Schedule) -> Self {
        let positions = positions(trace, &schedule.order);
        let end = u32::try_from(schedule.order.len()).unwrap_or(u32::MAX);
        let failure = trace.failure.as_ref().map_or(end, |f| positions[f.event.index()]);
        let happens_before = HappensBefore::new(trace, &schedule.order);
        let mut accesses: FxHashMap<CellId, Vec<EventId>> = FxHashMap::default();
        for &id in &schedule.order {
            let kind = &trace.event(id).kind;
            let (reads, writes) = (kind.reads().iter(), kind.writes().iter());
            for cell in reads.map(|part| part.cell).chain(writes.map(|part| part.cell)) {
                let of_cell = accesses.entry(cell).or_default();
                if of_cell.last() != Some(&id) {
                    of_cell.push(id);
                }
            }
        }
        let locks = EnclosingLocks::new(trace);
        Self { trace, accesses, locks, positions, happens_before, failure }
    }

    fn position(&self, id: EventId) -> u32 {
        self.positions[id.index()]
    }

    /// How far a pair is from the failure, in events: the nearer end counts first.
    fn distance(&self, a: EventId, b: EventId) -> (u32, u32) {
        let to = |id| self.failure.abs_diff(self.position(id));
        (to(a).min(to(b)), to(a).max(to(b)))
    }

    fn writes(&self, id: EventId, cell: CellId) -> bool {
        self.trace.event(id).kind.writes().iter().any(|part| part.cell == cell)
    }

    /// The last accesses of a cell that matter to the cone, in the schedule's order.
    fn accesses(&self, cone: &Cone, cell: CellId) -> Vec<EventId> {
        let all = self.accesses.get(&cell).into_iter().flatten().rev().copied();
        let mut accesses: Vec<EventId> =
            all.filter(|id| cone.accesses(self.trace, *id, cell)).take(ACCESSES).collect();
        accesses.reverse();
        accesses
    }

    /// Each access with the next accesses of other threads that conflict with it.
    fn conflicting(&self, accesses: &[EventId], cell: CellId) -> Vec<(EventId, EventId)> {
        let mut pairs = Vec::new();
        for (index, &before) in accesses.iter().enumerate() {
            let thread = self.trace.event(before).thread;
            let writes = self.writes(before, cell);
            let later = accesses[index + 1..].iter().copied();
            let later = later.filter(|after| self.trace.event(*after).thread != thread);
            let conflicting = later.filter(|after| writes || self.writes(*after, cell));
            pairs.extend(conflicting.take(PARTNERS).map(|after| (before, after)));
        }
        pairs
    }

    /// Two consecutive accesses of a thread and a third of another thread between them that
    /// cannot be there when the two are one step: the third after the second, or before the first.
    fn parted(&self, accesses: &[EventId], cell: CellId) -> Vec<Parted> {
        let mut pairs = Vec::new();
        for (index, &first) in accesses.iter().enumerate() {
            let thread = self.trace.event(first).thread;
            let own = |id: &EventId| self.trace.event(*id).thread == thread;
            let later = &accesses[index + 1..];
            let Some(second) = later.iter().position(own) else { continue };
            let (between, second) = (&later[..second], later[second]);
            let (one, two) = (self.writes(first, cell), self.writes(second, cell));
            // What reads between two writes, and what writes, whatever the two do.
            let breaks = |id: &EventId| self.writes(*id, cell) || (one && two);
            let mut breaking = between.iter().copied().filter(breaks);
            if let Some(nearest) = breaking.next() {
                let lost = feeds(self.trace, first, second, cell);
                let unprotected = self.unprotected([first, second, nearest]);
                pairs.push(Parted { flip: (first, nearest), unprotected, lost });
                pairs.push(Parted { flip: (nearest, second), unprotected, lost });
                let last = breaking.next_back();
                pairs.extend(last.map(|last| Parted {
                    flip: (first, last),
                    unprotected: self.unprotected([first, second, last]),
                    lost,
                }));
            }
        }
        pairs
    }

    /// Do locks protect some of these accesses of one variable, but none protects all of them?
    fn unprotected(&self, accesses: [EventId; 3]) -> bool {
        let object = |lock: EventId| lock_of(&self.trace.event(lock).kind).map(|(o, _)| o);
        let held = accesses.map(|id| -> BTreeSet<Option<ObjectId>> {
            self.locks.at(id).iter().copied().map(object).collect()
        });
        let [first, second, third] = &held;
        let in_all = first.iter().any(|lock| second.contains(lock) && third.contains(lock));
        !in_all && held.iter().any(|locks| !locks.is_empty())
    }

    /// The flips of the pairs with the least keys. What a pair comes to is looked up only as far as
    /// it takes: a thread that went round in a loop has many thousand pairs and a long way through
    /// its locks.
    fn most_promising(&self, mut pairs: Vec<(Key, EventId, EventId)>) -> Vec<Flip> {
        pairs.sort_unstable();
        let mut found: BTreeMap<Flip, Key> = BTreeMap::new();
        let mut last = None;
        for (key, before, after) in pairs {
            // Those with one key are all looked at, and the first of them kept.
            if found.len() >= MOST_FLIPS && last != Some(key) {
                break;
            }
            if let Some(flip) = self.widened(before, after) {
                found.entry(flip).or_insert(key);
                last = Some(key);
            }
        }
        let mut flips: Vec<_> = found.into_iter().map(|(flip, key)| (key, flip)).collect();
        flips.sort_unstable();
        flips.truncate(MOST_FLIPS);
        flips.into_iter().map(|(_, flip)| flip).collect()
    }

    /// The flip that reverses the pair: where the thread of `before` holds a lock that the thread
    /// of `after` needs first, it is held back before it takes the lock, and where `after` is in a
    /// section of a lock that both use, the section is run to its end. `None` when the pair cannot
    /// be reversed.
    fn widened(&self, before: EventId, after: EventId) -> Option<Flip> {
        let (a, b) = (self.trace.event(before), self.trace.event(after));
        if a.thread == b.thread || self.position(before) >= self.position(after) {
            return None;
        }
        let before = self.section_start(before);
        let mut held = self.locks.at(before).iter().copied();
        let in_the_way = held.find(|lock| self.needs(*lock, after));
        let before = in_the_way.unwrap_or(before);
        let mut sections = self.locks.at(after).iter().copied();
        let shared = sections.find(|lock| self.uses(before, *lock));
        let after = shared.and_then(|lock| self.real_end(lock)).unwrap_or(after);
        let kind = &self.trace.event(after).kind;
        let possible = !matches!(kind, EventKind::Failure) && !self.is_start(before);
        let ordered = self.happens_before.before(before, after);
        (possible && !ordered).then_some(Flip { before, after })
    }

    /// The acquisition of the section that a release ends; any other event itself.
    fn section_start(&self, id: EventId) -> EventId {
        let EventKind::Unlock { object, .. } = self.trace.event(id).kind else { return id };
        let own = &self.trace.thread_of(id).events;
        let earlier = own[..self.trace.event(id).index as usize].iter().rev().copied();
        let mut earlier = earlier.filter(|e| lock_of(&self.trace.event(*e).kind).is_some());
        earlier
            .find(|e| lock_of(&self.trace.event(*e).kind).map(|l| l.0) == Some(object))
            .unwrap_or(id)
    }

    /// Does the thread of `after` take the lock of this acquisition later, up to `after`?
    fn needs(&self, lock: EventId, after: EventId) -> bool {
        let Some((object, mode)) = lock_of(&self.trace.event(lock).kind) else { return false };
        let own = &self.trace.thread_of(after).events[..=self.trace.event(after).index as usize];
        own.iter().rev().take_while(|id| self.position(**id) > self.position(lock)).any(|id| {
            lock_of(&self.trace.event(*id).kind)
                .is_some_and(|(o, m)| o == object && excludes(mode, m))
        })
    }

    /// Does the thread of `before` take the lock of this acquisition, from `before` on?
    fn uses(&self, before: EventId, lock: EventId) -> bool {
        let Some((object, _)) = lock_of(&self.trace.event(lock).kind) else { return false };
        let own = &self.trace.thread_of(before).events[self.trace.event(before).index as usize..];
        own.iter().any(|id| lock_of(&self.trace.event(*id).kind).is_some_and(|l| l.0 == object))
    }

    /// The release that ends the section, when the recorded run got there.
    fn real_end(&self, lock: EventId) -> Option<EventId> {
        let end = section_end(self.trace, lock)?;
        let kind = &self.trace.event(end).kind;
        (!matches!(kind, EventKind::Unlock { synthetic: true, .. })).then_some(end)
    }

    fn is_start(&self, id: EventId) -> bool {
        matches!(self.trace.event(id).kind, EventKind::Start)
    }
}

fn lock_of(kind: &EventKind) -> Option<(ObjectId, LockMode)> {
    match *kind {
        EventKind::Lock { object, mode } => Some((object, mode)),
        _ => None,
    }
}

fn excludes(a: LockMode, b: LockMode) -> bool {
    a == LockMode::Exclusive || b == LockMode::Exclusive
}
