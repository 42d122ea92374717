//! What threads only hand over: memory that one thread has, and then another one, and that never comes back to a thread
//! that had it before. Requests, answers, lines of a log are of that kind, and in a program that makes some for each thing
//! that it does, nearly all shared cells are.
//!
//! Where there are more cells than can be treated, the run is surveyed once more, its threads in turns, in the order of
//! the clock, so that memory holds at each access what it held in the run as far as the clock orders the accesses. Of each cell
//! of a heap object it is noted who wrote it and who read it. A cell is *handed over* when
//!
//! * each write comes, by the clock, behind all that other threads did with the cell before it, and before all that others do
//!   with it afterwards;
//! * no thread finds there what another one wrote after having had the cell itself;
//! * no instruction accesses it atomically, nothing of what is written there is guessed, and it is none of the last that the failing
//!   thread read.
//!
//! So is a cell that is only written.
//!
//! Accesses to such a cell are no events: each thread finds there what it found in the run, as a constant
//! ([`HandedOver::receive`]), and neither conditions nor data-flows come of that. That it is handed over in this order is
//! said by events at the stamps of the clock around it, one pair for many cells: the thread that had it gives a unit of a
//! semaphore, and the one that gets it takes that.
//!
//! That is a guess about all other schedules: in one of them the object may go to another thread, or be used by two of them.
//! So a cause that is about such an object is not found, and whoever asks for this says so ([`crate::Report::handed_over`]).

use crate::access::{Place, STAMP_SLACK, Stamp};
use crate::budget::Limits;
use crate::cells::SharedCells;
use crate::engine::{Engine, Learned, Pass};
use crate::heap::HEAP;
use crate::idle::LeaveOut;
use crate::image::Image;
use crate::mappings::MAPS;
use crate::memory::MemoryByte;
use crate::recording::{RecordedFailureKind, Recording};
use crate::report::SymexError;
use crate::shadow::Shadow;
use crate::thread::Frame;
use ir::types::{InstKind, Ordering};
use model::trace::HAND_OVER;
use model::{EventKind, Interval, LockMode, ObjectId, ObjectKind};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::rc::Rc;

/// So many of the last accesses of the failing thread are to cells that stay.
const LAST: usize = 1 << 10;
/// Runs with more threads are left alone: a set of threads is a word.
const MOST_THREADS: usize = 64;
/// The access is part of a call that is not over: it may be done at any time.
const OPEN: u32 = u32::MAX;

/// What a thread found in a cell when it first got it, as far as that was known.
#[derive(Clone, Copy)]
struct Found {
    thread: u16,
    /// By byte, from the lowest: is it a constant?
    known: u8,
    value: u64,
}

/// One thread was done with a cell before another one got it: the threads, and how many time stamps each had passed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Edge {
    from: (u16, u32),
    to: (u16, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Use {
    thread: u16,
    /// How many time stamps the thread had passed; [`OPEN`] while that is not known.
    at: u32,
    /// The lock that it had taken last of those that it had alone; 0 for none.
    lock: u64,
}

/// When an access was over.
#[derive(Clone, Copy)]
struct Over {
    /// The thread's next time stamp.
    next: u64,
    /// By when it was certainly done.
    done: u64,
}

/// What became of one cell so far.
#[derive(Default)]
struct Cell {
    stays: bool,
    /// Somebody read it, or may have.
    is_read: bool,
    writer: Option<Use>,
    /// Who read what the writer wrote, and when last.
    readers: SmallVec<[Use; 1]>,
    /// The threads that accessed it, and those of them that know what it holds now.
    had: u64,
    has: u64,
    found: SmallVec<[Found; 2]>,
    edges: SmallVec<[Edge; 1]>,
}

/// See the module.
pub(crate) struct Owners {
    shared: SharedCells,
    cells: Vec<Cell>,
    /// By thread, the cells that the call accessed that it is in.
    open: Vec<Vec<usize>>,
    /// What the failing thread accessed last.
    last: VecDeque<usize>,
}

/// The cells of a run that are handed over.
pub(crate) struct HandedOver {
    shared: SharedCells,
    found: Vec<SmallVec<[Found; 2]>>,
    /// By thread and how many time stamps it has passed: semaphores, and whether it gives.
    plan: FxHashMap<(usize, usize), Vec<(usize, bool)>>,
}

/// What a walk knows of them.
#[derive(Default)]
pub(crate) struct Handing {
    /// Where they are looked for.
    pub owners: Option<Box<Owners>>,
    /// In a walk in turns: a thread that has passed a later time stamp lets another one go on.
    pub turn: Option<u64>,
    /// In the symbolic pass.
    pub handed: Option<Rc<HandedOver>>,
    /// By cell, the threads that have got it.
    received: Vec<u64>,
    /// What stands for the semaphores.
    objects: FxHashMap<usize, ObjectId>,
}

impl Handing {
    pub fn of(handed: Option<Rc<HandedOver>>) -> Self {
        let cells = handed.as_ref().map_or(0, |handed| handed.found.len());
        Self { handed, received: vec![0; cells], ..Self::default() }
    }
}

/// The order in which one access of a cell and those before it came.
struct Now<'a> {
    this: Use,
    /// By when it had not been done.
    from: u64,
    write: bool,
    over: &'a dyn Fn(Use) -> Over,
}

impl Cell {
    /// Another access. `found` tells what the cell holds.
    fn access(&mut self, now: &Now<'_>, found: &mut dyn FnMut() -> Found) {
        let Use { thread, .. } = now.this;
        let me = 1u64 << thread;
        let is_behind = |before: &Use| {
            let Over { next, done } = (now.over)(*before);
            // Who has a lock has all of its section before, or behind, that of another one.
            let is_locked = before.lock != 0 && before.lock == now.this.lock && next <= now.from;
            before.at != OPEN && (is_locked || done.saturating_add(STAMP_SLACK) <= now.from)
        };
        let edge =
            |before: &Use| Edge { from: (before.thread, before.at), to: (thread, now.this.at) };
        if self.has & me == 0 {
            if self.had & me != 0 {
                return self.stay();
            }
            self.had |= me;
            self.has |= me;
            self.found.push(found());
            if let Some(writer) = self.writer.filter(|writer| writer.thread != thread) {
                if !is_behind(&writer) {
                    return self.stay();
                }
                self.edges.push(edge(&writer));
            }
        }
        let place = self.readers.iter().position(|reader| reader.thread == thread);
        if !now.write {
            match place {
                Some(place) => self.readers[place] = now.this,
                None => self.readers.push(now.this),
            }
            return;
        }
        for at in 0..self.readers.len() {
            let reader = self.readers[at];
            if reader.thread == thread {
                continue;
            }
            if !is_behind(&reader) {
                return self.stay();
            }
            self.edges.push(edge(&reader));
        }
        if self.has != me {
            self.has = me;
            self.readers.clear();
        }
        self.writer = Some(now.this);
    }

    fn stay(&mut self) {
        *self = Self { stays: true, is_read: self.is_read, ..Self::default() };
    }

    /// A call of the thread is over, which had passed so many time stamps by then.
    fn close(&mut self, this: Use) {
        let uses = self.writer.iter_mut().chain(&mut self.readers);
        uses.filter(|it| it.thread == this.thread && it.at == OPEN).for_each(|it| it.at = this.at);
    }
}

impl Owners {
    fn new(ranges: &[(u64, u32)], threads: usize) -> Self {
        let in_heap = |(address, length): &&(u64, u32)| {
            (HEAP..MAPS).contains(address) && (1..=8).contains(length)
        };
        let ranges: Vec<(u64, u32)> = ranges.iter().filter(in_heap).copied().collect();
        let cells = ranges.iter().map(|_| Cell::default()).collect();
        let open = vec![Vec::new(); threads];
        Self { shared: SharedCells::new(&ranges), cells, open, last: VecDeque::new() }
    }

    fn finish(mut self) -> Option<HandedOver> {
        for &index in self.last.iter().chain(self.open.iter().flatten()) {
            self.cells[index].stay();
        }
        let shared = self.shared.cells.iter().zip(self.cells);
        // What nobody reads is of no moment, whoever has it.
        let mut handed = shared.filter(|(_, cell)| !cell.stays || !cell.is_read);
        let (mut ranges, mut found) = (Vec::new(), Vec::new());
        let mut edges: FxHashSet<Edge> = FxHashSet::default();
        for (shared, cell) in &mut handed {
            ranges.push((shared.address, shared.length));
            found.push(cell.found);
            edges.extend(cell.edges);
        }
        let plan = plan(edges.into_iter().collect());
        (!ranges.is_empty()).then(|| HandedOver { shared: SharedCells::new(&ranges), found, plan })
    }
}

/// Who gives and takes units when, without what follows from the rest: where a thread gave later what another one took
/// earlier.
fn plan(mut edges: Vec<Edge>) -> FxHashMap<(usize, usize), Vec<(usize, bool)>> {
    edges.sort_unstable_by_key(|edge| (edge.from.0, edge.to, std::cmp::Reverse(edge.from.1)));
    let mut plan: FxHashMap<(usize, usize), Vec<(usize, bool)>> = FxHashMap::default();
    let mut semaphore = 0;
    let mut known: Option<Edge> = None;
    for edge in edges {
        let follows = known.is_some_and(|known| {
            (known.from.0, known.to.0) == (edge.from.0, edge.to.0) && known.from.1 >= edge.from.1
        });
        // Before its first time stamp a thread has only just begun.
        if follows || edge.to.1 == 0 {
            continue;
        }
        known = Some(edge);
        let gives = (usize::from(edge.from.0), edge.from.1 as usize + 1);
        let takes = (usize::from(edge.to.0), edge.to.1 as usize);
        plan.entry(gives).or_default().push((semaphore, true));
        plan.entry(takes).or_default().push((semaphore, false));
        semaphore += 1;
    }
    // Who gives and takes at one moment gives first: nobody waits for one that waits.
    plan.values_mut().for_each(|steps| steps.sort_unstable_by_key(|step| (!step.1, step.0)));
    plan
}

impl HandedOver {
    /// How many cells are handed over.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// The cells that are not.
    pub fn others(&self, ranges: &[(u64, u32)]) -> Vec<(u64, u32)> {
        let stays = |(address, _): &&(u64, u32)| self.shared.at(*address).is_none();
        ranges.iter().filter(stays).copied().collect()
    }
}

/// Is the failure none of memory itself, and does the clock tell who came first?
fn may_be_handed(recording: &Recording, limits: &Limits<'_>) -> bool {
    use RecordedFailureKind::{
        DoubleFree, HeapCorruption, Signal, StackOverflow, TimedOut, UseAfterFree,
    };
    let Some(failure) = &limits.failure else { return false };
    let of_memory = matches!(
        failure.kind,
        DoubleFree { .. }
            | HeapCorruption
            | Signal { .. }
            | StackOverflow
            | TimedOut
            | UseAfterFree { .. }
    );
    recording.common_clock && !of_memory && recording.threads.len() <= MOST_THREADS
}

/// Finds what threads only hand over, of these cells.
///
/// # Errors
/// When the budget is spent, or a stream cannot be read.
pub(crate) fn find<'r>(
    recording: &'r Recording,
    limits: &'r Limits<'r>,
    image: &'r Image<'r>,
    (order, learned): (&[usize], &Learned),
    ranges: &[(u64, u32)],
) -> Result<Option<Rc<HandedOver>>, SymexError> {
    if ranges.len() < limits.options.handed_over_from || !may_be_handed(recording, limits) {
        return Ok(None);
    }
    let pass = Pass::Survey(Box::<Shadow>::default());
    let (learned, nothing) = (learned.clone(), LeaveOut::Nothing);
    let mut walk = Engine::new(image, recording, limits, pass, learned, order, nothing);
    walk.handing.owners = Some(Box::new(Owners::new(ranges, order.len())));
    walk.run_in_turns()?;
    let handed = walk.handing.owners.take().and_then(|owners| owners.finish());
    let cells = handed.as_ref().map_or(0, HandedOver::count);
    tracing::debug!(cells, of = ranges.len(), "cells are only handed over");
    Ok(handed.map(Rc::new))
}

impl<'r> Engine<'r> {
    /// Walks all threads in turns, in the order of the clock.
    ///
    /// # Errors
    /// As [`Self::run`].
    fn run_in_turns(&mut self) -> Result<(), SymexError> {
        loop {
            let mut waiting: SmallVec<[(u64, usize); 16]> = (0..self.threads.len())
                .filter(|&t| self.is_runnable(t))
                .map(|t| (self.threads[t].last_stamp, t))
                .collect();
            waiting.sort_unstable();
            self.handing.turn = Some(waiting.get(1).map_or(u64::MAX, |(stamp, _)| *stamp));
            let next = waiting.first().map(|(_, t)| *t).or_else(|| self.force());
            let Some(t) = next else { break };
            self.run_thread(t);
            if let Some(error) = self.threads[t].take_error() {
                return Err(error.into());
            }
            self.limits.check()?;
        }
        Ok(())
    }

    /// In the walk that looks for owners: notes an access, before it is done.
    pub(crate) fn note_owner(&mut self, t: usize, place: Place, write: bool) {
        if !(HEAP..MAPS).contains(&place.address) {
            return;
        }
        let Some(mut owners) = self.handing.owners.take() else { return };
        let calls = matches!(self.threads[t].frames.last(), Some(Frame::External(_)));
        let from = self.happened(t).earliest;
        let stamps = self.threads[t].stamps;
        let at = if calls { OPEN } else { stamps as u32 };
        let stays = (self.guessing && write) || self.is_atomic(t);
        let mut taken = self.threads[t].held.iter().rev();
        let alone = taken.find(|held| held.mode == LockMode::Exclusive);
        let lock = alone.map_or(0, |held| held.address);
        let this = Use { thread: t as u16, at, lock };
        let reached = self.stamps_by(t, from);
        for index in owners.shared.within(place.address, place.length) {
            if Some(t) == self.failing {
                if owners.last.len() >= LAST {
                    owners.last.pop_front();
                }
                owners.last.push_back(index);
            }
            let shared = owners.shared.cells[index];
            let cell = &mut owners.cells[index];
            cell.is_read |= !write || stays;
            if cell.stays {
                continue;
            }
            if stays {
                cell.stay();
                continue;
            }
            let memory = &mut self.memory;
            let mut found = || {
                let bytes = (shared.address..shared.end()).map(|at| memory.peek(at));
                let mut found = Found { thread: t as u16, known: 0, value: 0 };
                for (at, byte) in bytes.enumerate() {
                    if let MemoryByte::Const(byte) = byte {
                        found.known |= 1 << at;
                        found.value |= u64::from(byte) << (8 * at);
                    }
                }
                found
            };
            let before = cell.edges.len();
            let over = |it: Use| {
                let stamps = self.learned.stamps.get(usize::from(it.thread));
                let behind = stamps.and_then(|all| all.get(it.at as usize..)).unwrap_or(&[]);
                Over { next: Stamp::next(behind), done: Stamp::done_by(behind) }
            };
            let now = Now { this, from, write, over: &over };
            cell.access(&now, &mut found);
            if cell.stays {
                continue;
            }
            // A call that takes time stamps itself may have got it before them.
            cell.edges[before..].iter_mut().for_each(|edge| edge.to.1 = reached as u32);
            if calls {
                owners.open[t].push(index);
            }
        }
        self.handing.owners = Some(owners);
    }

    /// How many time stamps had the thread passed when this one was its last?
    fn stamps_by(&self, t: usize, last: u64) -> usize {
        let thread = &self.threads[t];
        let stamps = self.learned.stamps.get(t).and_then(|all| all.get(..thread.stamps));
        let passed = stamps.unwrap_or(&[]);
        match last == thread.last_stamp {
            true => thread.stamps,
            false => {
                passed.iter().rposition(|stamp| Stamp::is_at(stamp, last)).map_or(0, |at| at + 1)
            }
        }
    }

    /// Is the instruction that the thread is at an atomic or a volatile access?
    fn is_atomic(&self, t: usize) -> bool {
        let Some((info, id)) = self.current(t) else { return false };
        match info.function.instructions.get(id.index()).map(|inst| &inst.kind) {
            Some(
                InstKind::Load { ordering, volatile, .. }
                | InstKind::Store { ordering, volatile, .. },
            ) => *volatile || *ordering != Ordering::NotAtomic,
            _ => false,
        }
    }

    /// These bytes are updated atomically.
    pub(crate) fn note_atomic(&mut self, place: Place) {
        let Some(owners) = &mut self.handing.owners else { return };
        for index in owners.shared.within(place.address, place.length) {
            let cell = &mut owners.cells[index];
            cell.is_read = true;
            cell.stay();
        }
    }

    /// A call of the thread begins, or one is over.
    pub(crate) fn close_uses(&mut self, t: usize) {
        let Some(owners) = &mut self.handing.owners else { return };
        let this = Use { thread: t as u16, at: self.threads[t].stamps as u32, lock: 0 };
        for index in std::mem::take(&mut owners.open[t]) {
            owners.cells[index].close(this);
        }
    }

    /// In the symbolic pass: the thread is about to access these bytes. Those that it gets from another one are what they were.
    pub(crate) fn receive(&mut self, t: usize, address: u64, length: u64) {
        self.take_over(t);
        let Some(handed) = &self.handing.handed else { return };
        if !(HEAP..MAPS).contains(&address) || handed.shared.none_within(address, length) {
            return;
        }
        let handed = Rc::clone(handed);
        for index in handed.shared.within(address, length) {
            let me = 1u64 << t;
            let received = &mut self.handing.received[index];
            if *received & me != 0 {
                continue;
            }
            *received |= me;
            let found = handed.found[index].iter().find(|found| usize::from(found.thread) == t);
            let (Some(found), cell) = (found, handed.shared.cells[index]) else { continue };
            for (at, address) in (cell.address..cell.end()).enumerate() {
                let byte = match found.known >> at & 1 {
                    0 => MemoryByte::Fresh,
                    _ => MemoryByte::Const((found.value >> (8 * at)) as u8),
                };
                self.memory.set(address, byte);
            }
        }
    }

    /// The thread has passed a time stamp: gives what it is done with, and is to take what it gets. What the stamp belongs
    /// to, a wait say, is to come before that.
    pub(crate) fn hand_over(&mut self, t: usize) {
        self.take_over(t);
        let Some(handed) = &self.handing.handed else { return };
        let Some(steps) = handed.plan.get(&(t, self.threads[t].stamps)).cloned() else { return };
        for (semaphore, gives) in steps {
            match gives {
                true => self.cross_semaphore(t, semaphore, true),
                false => self.threads[t].to_take.push(semaphore),
            }
        }
    }

    /// The thread goes on behind a time stamp.
    fn take_over(&mut self, t: usize) {
        for semaphore in std::mem::take(&mut self.threads[t].to_take) {
            self.cross_semaphore(t, semaphore, false);
        }
    }

    fn cross_semaphore(&mut self, t: usize, semaphore: usize, gives: bool) {
        let known = self.handing.objects.get(&semaphore).copied();
        let object = known.unwrap_or_else(|| {
            self.out.object(ObjectKind::Semaphore { initial: 0 }, HAND_OVER.to_owned())
        });
        self.handing.objects.insert(semaphore, object);
        let kind = match gives {
            true => EventKind::SemaphorePost { object },
            false => EventKind::SemaphoreWait { object },
        };
        // When that is, its neighbours say.
        let any = Some(Interval { earliest: 0, latest: u64::MAX });
        let call_time = std::mem::replace(&mut self.threads[t].call_time, any);
        self.event(t, kind, Some(HAND_OVER.to_owned()));
        self.threads[t].call_time = call_time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses by threads at times, of which each was over a hundred ticks later; does the cell stay?
    fn stays(accesses: &[(u16, u64, bool)], lock: u64) -> bool {
        let mut cell = Cell::default();
        for &(thread, from, write) in accesses {
            let over = |it: Use| {
                let end = u64::from(it.at) + 100;
                Over { next: end, done: end + 4096 }
            };
            let this = Use { thread, at: from as u32, lock };
            let found = Found { thread, known: 0, value: 0 };
            cell.access(&Now { this, from, write, over: &over }, &mut || found);
        }
        cell.stays
    }

    #[test]
    fn a_cell_that_one_thread_has_after_the_other_is_handed_over() {
        assert!(!stays(&[(0, 0, true), (0, 50, true), (1, 9_000, false), (1, 9_500, true)], 0));
        assert!(!stays(&[(0, 0, true), (1, 9_000, true), (2, 18_000, true)], 0));
        // Several may read it, and the one that wrote it, too.
        assert!(!stays(
            &[(0, 0, true), (1, 9_000, false), (2, 9_000, false), (0, 9_000, false)],
            0
        ));
    }

    #[test]
    fn one_that_comes_back_or_has_no_order_stays() {
        assert!(stays(&[(0, 0, true), (1, 9_000, true), (0, 18_000, false)], 0));
        assert!(stays(&[(0, 0, true), (1, 2_000, false)], 0));
        assert!(!stays(&[(0, 0, true), (1, 2_000, false)], 7), "of two sections one comes first");
        assert!(stays(&[(0, 0, true), (1, 50, false)], 7));
        let read_meanwhile = [(0, 0, true), (1, 9_000, false), (2, 9_050, true)];
        assert!(stays(&read_meanwhile, 0));
    }

    #[test]
    fn an_order_that_follows_from_others_is_not_said() {
        let edge = |from, to| Edge { from: (0, from), to: (1, to) };
        let plan = plan(vec![edge(1, 5), edge(3, 5), edge(2, 7), edge(4, 8), edge(4, 0)]);
        let mut steps: Vec<_> = plan.iter().map(|(at, steps)| (*at, steps.as_slice())).collect();
        steps.sort_unstable();
        assert_eq!(
            steps,
            [
                ((0, 4), [(0, true)].as_slice()),
                ((0, 5), [(1, true)].as_slice()),
                ((1, 5), [(0, false)].as_slice()),
                ((1, 8), [(1, false)].as_slice()),
            ]
        );
    }
}
