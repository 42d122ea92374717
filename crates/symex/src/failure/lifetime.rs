//! Failures of objects' lifetimes: an access to an object that another thread has freed.
//!
//! The free counts as a write of the whole object when shared bytes are looked for, so that the
//! accesses to it are events; φbug is that the free comes before the access. The thread that freed
//! the object may be walked after the one that failed, so the pair is only put together at the end.

use super::freed::Freed;
use super::gone_lock::GoneLock;
use super::{Found, SIGBUS, SIGSEGV};
use crate::access::{Place, stack_address};
use crate::builder::Numbering;
use crate::engine::{Engine, Pass};
use crate::locals::Used;
use crate::outlived::Outlived;
use crate::pointed::Pointed;
use crate::recording::RecordedFailureKind;
use crate::thread::Stop;
use crate::value::{self, Scalar, Value};
use ir::types::{InstKind, Operand};
use model::{
    CellId, CmpOp, EventId, EventKind, EventTrace, FailureCondition, FailureKind,
    PathConditionKind, ReadPart, WritePart,
};
use rustc_hash::FxHashMap;

/// So many bytes from a fault on count as written when their pages are given back.
const LONGEST_ACCESS: u64 = 16;

/// An event as thread and index in it.
pub(crate) type At = (usize, u32);

/// What is known of objects' ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lifetime {
    /// The free of each heap object with shared bytes, the last one where there are several.
    pub frees: FxHashMap<usize, At>,
    /// All of them.
    ends: Vec<(usize, At)>,
    /// Where an object was freed twice: the other thread's free, and the failing thread's.
    first_free: Option<At>,
    second_free: Option<At>,
    /// The failing access, and the object that it was to.
    pub(super) access: Option<(usize, At)>,
    /// Of a run that was not recorded to fail at such an access.
    pub freed: Freed,
    /// A lock that it asked for, of a function that had returned.
    pub(super) gone_lock: GoneLock,
    /// What the failing thread used of other threads' stacks.
    pub locals: Used,
    /// How it came there.
    pub pointed: Pointed,
    /// What other threads did in the failing one's stack.
    pub outlived: Outlived,
}

impl Lifetime {
    /// φbug is that the object's end comes before this access.
    pub fn blame(&mut self, object: usize, access: At) {
        self.access = Some((object, access));
        self.freed.null = None;
    }

    /// Makes the order of free and access the failure's condition. Without both of them as events
    /// (a thread that uses what it freed itself), every schedule fails.
    pub fn apply(&self, trace: &mut EventTrace, numbering: &Numbering) {
        let Some((object, access)) = self.access else { return };
        let Some(&free) = self.frees.get(&object) else { return };
        let id = |(thread, number): At| {
            let events = trace.threads.get(thread).map(|thread| &thread.events);
            let index = numbering.index(thread, number) as usize;
            events.and_then(|events| events.get(index)).copied()
        };
        let (Some(free), Some(access)) = (id(free), id(access)) else { return };
        if let Some(failure) = &mut trace.failure {
            let freed = FailureCondition::Before(free, access);
            failure.condition = match self.freed.null {
                Some(null) => FailureCondition::Any(vec![freed, FailureCondition::Value(null)]),
                None => freed,
            };
            // The thread that a write comes too late for fails behind it.
            if trace.events[access.index()].thread != trace.events[failure.event.index()].thread {
                trace.given.push((access, failure.event));
            }
        }
    }

    /// What other threads did with an object came before its free, as far as the clock allows that:
    /// the run went on behind it. `owners` has the objects of cells. Of an object that was used after
    /// its free, the failure's condition tells. An object that was freed twice was freed by the other thread before.
    pub fn keep_alive(
        &self,
        trace: &mut EventTrace,
        numbering: &Numbering,
        owners: &FxHashMap<CellId, usize>,
    ) {
        let used = self.access.map(|(object, _)| object);
        let mut ends: FxHashMap<usize, Vec<EventId>> = FxHashMap::default();
        for &(object, (thread, number)) in &self.ends {
            let events = trace.threads.get(thread).map(|thread| &thread.events);
            let free =
                events.and_then(|events| events.get(numbering.index(thread, number) as usize));
            ends.entry(object).or_default().extend(free.filter(|_| used != Some(object)));
        }
        let id = |(thread, number): At| {
            let events = &trace.threads.get(thread)?.events;
            events.get(numbering.index(thread, number) as usize).copied()
        };
        let twice = self.first_free.and_then(id).zip(self.second_free.and_then(id));
        let mut lifetimes: Vec<(EventId, EventId)> = twice.into_iter().collect();
        let shown = self.outlived.orders.iter();
        lifetimes.extend(shown.filter_map(|(before, after)| id(*before).zip(id(*after))));
        for event in trace.events.iter().take(trace.intervals.len()) {
            let reads = event.kind.reads().iter().map(|part| part.cell);
            let mut cells = reads.chain(event.kind.writes().iter().map(|part| part.cell));
            let object = cells.find_map(|cell| owners.get(&cell));
            for free in object.and_then(|object| ends.get(object)).into_iter().flatten() {
                let by_another = trace.event(*free).thread != event.thread;
                let (access, end) =
                    (trace.intervals[event.id.index()], trace.intervals[free.index()]);
                if by_another && access.earliest <= end.latest {
                    lifetimes.push((event.id, *free));
                }
            }
        }
        trace.lifetimes = lifetimes;
    }
}

impl<'r> Engine<'r> {
    /// The address that a failure of an object's lifetime is about.
    fn lifetime_address(&self) -> Option<u64> {
        match self.limits.failure.as_ref()?.kind {
            RecordedFailureKind::UseAfterFree { address }
            | RecordedFailureKind::DoubleFree { address } => Some(address).filter(|a| *a != 0),
            _ => None,
        }
    }

    /// An object was freed of which nothing is known yet: where it is the failure's, the walks are done again once the thread
    /// that made it was walked.
    pub fn note_unknown_free(&mut self, address: u64) {
        if !self.symbolic() && self.lifetime_address() == Some(address) {
            self.learned.unresolved.insert(address);
        }
    }

    /// A free of a heap object was walked, and is the thread's last event if it is one at all.
    pub fn note_free(&mut self, t: usize, index: usize, event: Option<u32>) {
        let object = &self.learned.heap.objects[index];
        let (base, begin, size) = (object.base, object.address, object.size.max(1));
        let failed =
            self.lifetime_address().is_some_and(|address| address.wrapping_sub(begin) < size);
        let kind = self.limits.failure.as_ref().map(|failure| failure.kind);
        let is_double = failed && matches!(kind, Some(RecordedFailureKind::DoubleFree { .. }));
        let is_first = is_double && self.failing != Some(t);
        if let Some(event) = event {
            self.lifetime.frees.insert(index, (t, event));
            self.lifetime.ends.push((index, (t, event)));
            match (is_double, is_first) {
                (false, _) => {}
                (true, true) => self.lifetime.first_free = Some((t, event)),
                (true, false) => self.lifetime.second_free = Some((t, event)),
            }
        }
        if let Some(pointer) = is_first.then(|| self.faulting_argument(t, begin)).flatten() {
            self.through(t, pointer);
        }
        // A variable that lies where it did in the run ends there.
        let ends_there = self.learned.locals.are_only_ends() && self.learned.heap.is_local(index);
        let base = if ends_there { stack_address(t, begin) } else { base };
        let counts = failed || ends_there || self.limits.options.ordered_accesses;
        if counts || self.lifetime.freed.suspects.contains(&index) {
            self.survey(t, Place::new(base, size, None), true);
        }
    }

    /// φbug of a second free, at `address` or, where that is 0, at whatever object the call was passed: the branch that led
    /// there was taken, and the pointer is the one that was freed before. With another one nothing was wrong.
    pub(super) fn freed_again(&mut self, t: usize, address: u64) -> Option<Found> {
        let found = self.search(t);
        let Some(pointer) = self.freed_argument(t, address) else { return found };
        let Some(object) = self.recorded_scalar(pointer) else { return found };
        let same = value::cmp(&mut self.pool, CmpOp::Eq, pointer, Scalar::constant(64, object));
        let Some(same) = same.as_expr() else { return found };
        Some(match found {
            Some(Found { condition, path_condition }) => {
                Found { condition: self.pool.and(condition, same), path_condition }
            }
            None => Found { condition: same, path_condition: None },
        })
    }

    /// The pointer to a freed object that the current call of uninstrumented code was passed.
    fn freed_argument(&mut self, t: usize, address: u64) -> Option<Scalar> {
        if address != 0 {
            return self.faulting_argument(t, address);
        }
        let call = self.threads[t].external_call()?;
        let scalars: Vec<Scalar> = call.arguments.iter().filter_map(Value::scalar).collect();
        scalars.into_iter().filter(|scalar| scalar.width == 64).find(|scalar| {
            let value = self.recorded_scalar(*scalar).map(|value| value as u64);
            let heap = &self.learned.heap;
            let object = value.and_then(|value| Some((value, heap.find(value, 0, u64::MAX)?)));
            object.is_some_and(|(value, index)| heap.objects[index].address == value)
        })
    }

    /// An access in the rest of a walk that ends with an access to a freed object: is it the one?
    pub(super) fn check_freed(
        &mut self,
        t: usize,
        pointer: Option<Scalar>,
        size: u64,
        fault: u64,
    ) -> Result<(), Stop> {
        let Some(pointer) = pointer.filter(|_| self.threads[t].exhausted()) else { return Ok(()) };
        let hit = self.recorded_scalar(pointer).is_none_or(|address| {
            let address = address as u64;
            fault.wrapping_sub(address) < size.max(1)
        });
        if !hit {
            return Ok(());
        }
        let accessed = self.accessed(t);
        self.through(t, pointer);
        self.touch_freed(t, fault, size, accessed);
        Err(self.fail(t, FailureKind::UseAfterFree, None))
    }

    /// The failing access goes through this pointer, as every other access does through its own: with another one
    /// it would not be to the object that was freed.
    pub(super) fn through(&mut self, t: usize, pointer: Scalar) {
        self.concretise(t, pointer, PathConditionKind::Address);
    }

    /// Through what pointer the current instruction accesses memory, and whether it writes.
    pub(super) fn accessed(&self, t: usize) -> (Option<Operand>, bool) {
        let instruction = self.current(t).and_then(|(info, id)| {
            info.function.instructions.get(id.index()).map(|instruction| &instruction.kind)
        });
        match instruction {
            Some(InstKind::Store { address, .. }) => (Some(*address), true),
            Some(InstKind::Load { address, .. }) => (Some(*address), false),
            _ => (None, false),
        }
    }

    /// The address of a fault that ended the run.
    fn fault(&self) -> Option<u64> {
        match self.limits.failure.as_ref()?.kind {
            RecordedFailureKind::Signal { signo: SIGSEGV | SIGBUS, fault_address } => {
                Some(fault_address).filter(|address| *address != 0)
            }
            _ => None,
        }
    }

    /// Was the address in pages that were given back?
    pub(super) fn is_unmapped(&self, address: u64) -> bool {
        let found = self.learned.heap.find(address, 0, u64::MAX);
        found.is_some_and(|index| {
            let object = &self.learned.heap.objects[index];
            object.mapped.is_some() && object.death_at(address) != u64::MAX
        })
    }

    /// The mapping in whose pages, which are being given back, the run's fault was. That counts as a
    /// write of the place.
    pub fn faulting_mapping(
        &mut self,
        t: usize,
        (address, size): (u64, u64),
        tsc: u64,
    ) -> Option<usize> {
        let fault = self.fault().filter(|fault| fault.wrapping_sub(address) < size)?;
        let index = self.learned.heap.find(fault, tsc, tsc)?;
        let object = &self.learned.heap.objects[index];
        if object.mapped.is_none() || object.death_at(fault) != tsc {
            return None;
        }
        let offset = fault - object.address;
        let place =
            Place::new(object.base + offset, LONGEST_ACCESS.min(object.size - offset), None);
        self.survey(t, place, true);
        Some(index)
    }

    /// The access that failed, as an event: no value came of it.
    pub(super) fn touch_freed(
        &mut self,
        t: usize,
        address: u64,
        size: u64,
        (pointer, write): (Option<Operand>, bool),
    ) {
        let Some(object) = self.learned.heap.find(address, 0, u64::MAX) else { return };
        let begin = self.learned.heap.objects[object].base
            + (address - self.learned.heap.objects[object].address);
        let place = Place::new(begin, size.max(1), pointer);
        let cells = match &self.pass {
            Pass::Symbolic(shared) => shared.within(place.address, place.length),
            Pass::Survey(_) => return,
        };
        let mut reads = Vec::new();
        let mut writes = Vec::new();
        let event = self.out.event_count(t);
        for index in cells {
            let Some((cell, _, length)) = self.model_cell(t, index, place) else { continue };
            if write {
                let value = self.input(8 * length);
                writes.push(WritePart { cell, value });
            } else {
                let part = reads.len() as u32;
                let origin = crate::builder::Origin::Read { thread: t, event, part };
                let var = self.out.variable(8 * length, origin, None);
                reads.push(ReadPart { cell, var });
            }
        }
        let name = match pointer {
            Some(_) => self.access_name(t, place),
            None => self.argument_name(t, address).or_else(|| self.access_name(t, place)),
        };
        let kind = match (reads.is_empty(), writes.is_empty()) {
            (false, _) => EventKind::Read { parts: reads },
            (_, false) => EventKind::Write { parts: writes },
            _ => return,
        };
        let event = self.event(t, kind, name);
        self.lifetime.access = Some((object, (t, event)));
    }

    /// The survey's half of [`Self::touch_freed`], for accesses of uninstrumented code.
    pub fn survey_freed(&mut self, t: usize) {
        let failure = self.limits.failure.as_ref().map(|failure| failure.kind);
        let (address, in_mapping) = match (failure, self.fault()) {
            (Some(RecordedFailureKind::UseAfterFree { address }), _) => (address, false),
            (_, Some(fault)) => (fault, true),
            _ => return,
        };
        if self.failing != Some(t) || self.symbolic() {
            return;
        }
        let Some(object) = self.learned.heap.find(address, 0, u64::MAX) else {
            // The thread that made it is walked later.
            self.learned.unresolved.insert(address);
            return;
        };
        let object = &self.learned.heap.objects[object];
        if in_mapping && object.mapped.is_none() {
            return;
        }
        let place = Place::new(object.base + (address - object.address), 1, None);
        self.survey(t, place, false);
    }
}
