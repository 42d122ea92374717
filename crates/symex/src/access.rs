//! Memory accesses: from recorded addresses to internal ones, and from shared cells to events.

use crate::builder::{Origin, name_quality};
use crate::contents;
use crate::engine::{Engine, Pass, PendingRead, is_private};
use crate::eval;
use crate::files;
use crate::heap::{HEAP, HeapObject, PRIVATE, USER_END};
use crate::image::element_offsets;
use crate::memory::{self, Bytes, MemoryByte};
use crate::naming::value_display;
use crate::report::GapKind;
use crate::thread::{ExternalCall, Frame};
use crate::value::{Scalar, Value};
use ir::types::{Module, Operand, Type, TypeId};
use model::trace::ValueDisplay;
use model::{CellId, EventKind, ExprId, Interval, Piece, ReadPart, WritePart};

/// A place to access, and what names it.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Internal address.
    pub address: u64,
    pub length: u64,
    /// The pointer operand of the current instruction, for names.
    pub pointer: Option<Operand>,
}

impl Place {
    pub fn new(address: u64, length: u64, pointer: Option<Operand>) -> Self {
        Self { address, length, pointer }
    }
}

/// One event over all cells, or one event per cell as for `memcpy`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grain {
    Access,
    Cell,
}

/// How many ticks two threads' time stamps may be wrong together, see docs/clock.md.
pub(crate) const STAMP_SLACK: u64 = 256;
/// How many ticks after a reading that waits for nothing all is done that stands before it, see
/// docs/clock.md.
const LOOSE_SLACK: u64 = 4096;

/// A time stamp of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    time: u64,
    /// Not all that stands before it was done by then.
    loose: bool,
}

impl Stamp {
    /// When the first one of these was taken.
    pub(crate) fn next(behind: &[Self]) -> u64 {
        behind.first().map_or(u64::MAX, |next| next.time)
    }

    /// By when was done what stands before these?
    pub(crate) fn done_by(behind: &[Self]) -> u64 {
        match behind {
            [] => u64::MAX,
            [Self { time, loose: false }, ..] => *time,
            [Self { time, .. }, rest @ ..] => {
                let done = time.saturating_add(LOOSE_SLACK);
                let behind = rest.first().filter(|behind| !behind.loose);
                behind.map_or(done, |behind| done.min(behind.time))
            }
        }
    }

    /// Was it taken then?
    pub(crate) fn is_at(stamp: &Self, time: u64) -> bool {
        stamp.time == time
    }

    /// Do time stamps go forward? The processor may swap a loose one with its neighbour.
    pub fn are_sorted(stamps: &[Self]) -> bool {
        stamps.iter().filter(|stamp| !stamp.loose).is_sorted_by_key(|stamp| stamp.time)
    }
}

/// Of so many bytes of its own thread's that a library's function reads it is looked at what they are.
const MOST_LOOKED_AT: u64 = 4_096;

impl Engine<'_> {
    /// The internal address behind a recorded one; `None` when no user-space address is like it.
    pub fn resolve(&mut self, t: usize, address: u64) -> Option<u64> {
        let internal = self.lookup(t, address)?;
        let end_is_known = self.learned.stamps[t].len() > self.threads[t].stamps;
        if !self.symbolic() && !end_is_known && self.learned.heap.is_reused(address) {
            // Which object it is tells the thread's next time stamp, which the next survey knows.
            self.learned.guesses = true;
        }
        if internal == address
            && !self.symbolic()
            && !is_private(address)
            && !self.image.in_globals(address)
        {
            self.learned.unresolved.insert(address);
        }
        Some(internal)
    }

    /// As [`Self::resolve`], without a trace of having been asked.
    pub fn lookup(&self, t: usize, address: u64) -> Option<u64> {
        if (PRIVATE..HEAP).contains(&address) {
            return Some(address);
        }
        if address >= USER_END {
            return None;
        }
        if let Some(internal) = self.thread_local_at(t, address) {
            return Some(internal);
        }
        if self.in_stack(t, address) {
            let local = self.in_local(t, address, true);
            return Some(local.unwrap_or_else(|| stack_address(t, address)));
        }
        if let Some(given) = self.in_local(t, address, false) {
            return Some(given);
        }
        if self.image.global_at(address).is_some() {
            return Some(address);
        }
        let (from, to) = self.interval(t);
        if let Some(index) = self.learned.heap.find(address, from, to) {
            let object = &self.learned.heap.objects[index];
            // Mapped by the program, to be a thread's stack, or by the C library in place of what was freed.
            let is_of_stack = self.is_below_stack(object, from);
            if (is_of_stack || object.mapped.is_some())
                && let Some(owner) = self.stack_owner(address)
            {
                return Some(stack_address(owner, address));
            }
            if !is_of_stack {
                if object.death < from && !self.symbolic() {
                    let mut used = self.learned.used_dead.borrow_mut();
                    let latest = used.entry(index).or_insert(from);
                    *latest = from.max(*latest);
                }
                return Some(object.base + (address - object.address));
            }
        }
        if let Some(owner) = self.stack_owner(address) {
            return Some(stack_address(owner, address));
        }
        Some(address)
    }

    fn in_stack(&self, t: usize, address: u64) -> bool {
        let range = self.learned.stacks.get(t).copied().flatten();
        range.is_some_and(|(low, high)| (low..high).contains(&address))
    }

    /// Had the object been freed by then, and did a thread begin later whose stack lies there? Large
    /// objects are mappings of their own, whose place a thread that is created gets for its stack and,
    /// at the end of that, its thread-local variables, `errno` among them.
    pub(crate) fn is_below_stack(&self, object: &HeapObject, from: u64) -> bool {
        if object.mapped.is_some() || object.death >= from {
            return false;
        }
        let lies_there = |low: u64, high: u64| low < object.end() && high > object.address;
        (0..self.threads.len()).any(|t| {
            let stack = self.learned.stacks[t].is_some_and(|(low, high)| lies_there(low, high));
            let errno = self.learned.errno[t].is_some_and(|at| lies_there(at, at + 1));
            (stack || errno) && self.learned.began[t].is_some_and(|began| began >= object.death)
        })
    }

    /// Another thread whose stack holds the address, preferably one that still runs.
    fn stack_owner(&self, address: u64) -> Option<usize> {
        let mut owners = (0..self.threads.len()).filter(|&t| self.in_stack(t, address));
        let first = owners.next()?;
        Some(owners.fold(first, |best, t| if self.has_ended(best) { t } else { best }))
    }

    /// Time stamps around the thread's present.
    pub fn interval(&self, t: usize) -> (u64, u64) {
        (self.threads[t].last_stamp, self.next_stamps(t).first().map_or(u64::MAX, |next| next.time))
    }

    /// By when what the thread does at present was done.
    pub fn latest(&self, t: usize) -> u64 {
        self.done_by(t, self.threads[t].stamps)
    }

    /// By when was done what the thread did before it passed more than so many time stamps?
    pub(crate) fn done_by(&self, t: usize, stamps: usize) -> u64 {
        Stamp::done_by(self.stamps_from(t, stamps))
    }

    /// The thread's time stamps that are still to come, as far as they are known.
    fn next_stamps(&self, t: usize) -> &[Stamp] {
        self.stamps_from(t, self.threads[t].stamps)
    }

    fn stamps_from(&self, t: usize, first: usize) -> &[Stamp] {
        let stamps = self.learned.stamps.get(t);
        stamps.and_then(|stamps| stamps.get(first..)).unwrap_or(&[])
    }

    /// When what the thread does at present happened.
    pub fn happened(&self, t: usize) -> Interval {
        let thread = &self.threads[t];
        let call = match thread.frames.last() {
            Some(Frame::External(frame)) => frame.call.as_ref(),
            _ => None,
        };
        let around = match (thread.call_time, call) {
            (Some(around), _) => around,
            // What a call does it may do before stamps that it takes itself, and behind them.
            (None, Some(call)) => Interval { earliest: call.stamp, latest: u64::MAX },
            (None, None) => {
                Interval { earliest: self.threads[t].last_stamp, latest: self.latest(t) }
            }
        };
        Interval { latest: around.latest.saturating_add(STAMP_SLACK), ..around }
    }

    /// Notes a time stamp of the thread.
    pub fn stamp(&mut self, t: usize, tsc: u64) {
        self.note_stamp(t, Stamp { time: tsc, loose: false });
    }

    /// When a call that comes back did what it does. Where the runtime reads the clock before and behind that, it was in
    /// between.
    pub fn time_of(&self, t: usize, call: &ExternalCall<'_>) -> Interval {
        let is_timed = || files::is_timed(call.name) || contents::is_timed(call.name);
        match call.reading.filter(|_| is_timed()) {
            Some(earliest) => Interval { earliest, latest: self.threads[t].last_stamp },
            None => Interval { earliest: call.stamp, ..self.happened(t) },
        }
    }

    /// A reading of the clock inside of a call.
    pub fn read_clock(&mut self, t: usize, tsc: u64) {
        self.stamp(t, tsc);
        self.threads[t].note_reading(tsc);
    }

    /// Notes a time stamp that waited for nothing.
    pub fn loose_stamp(&mut self, t: usize, tsc: u64) {
        self.note_stamp(t, Stamp { time: tsc, loose: true });
    }

    fn note_stamp(&mut self, t: usize, stamp: Stamp) {
        let thread = &mut self.threads[t];
        if thread.repeating {
            return;
        }
        let at = thread.stamps;
        thread.stamps += 1;
        thread.last_stamp = stamp.time;
        let stamps = &mut self.learned.stamps[t];
        if stamps.len() == at {
            stamps.push(stamp);
        }
        if self.handing.handed.is_some() {
            self.hand_over(t);
        }
    }

    /// Notes that a stack object of the thread lies there.
    pub fn extend_stack(&mut self, t: usize, address: u64, size: u64) {
        let end = address.saturating_add(size.max(1)).min(USER_END);
        if address >= USER_END {
            return;
        }
        let range = self.learned.stacks[t].get_or_insert((address, end));
        range.0 = range.0.min(address);
        range.1 = range.1.max(end);
    }

    /// The address behind a pointer, made concrete and translated. Counts a gap when that cannot
    /// be done.
    pub fn address(&mut self, t: usize, pointer: Option<Scalar>) -> Option<u64> {
        let recorded = self.recorded_address(t, pointer)?;
        let internal = self.resolve(t, recorded);
        if internal.is_none() {
            self.gap(t, GapKind::UnknownAddress, format!("address {recorded:#x}"));
        }
        self.note_use_of_local(t, pointer, (recorded, internal));
        let meant = self.meant(t, pointer, recorded);
        self.note_freed(t, meant.or(internal), meant.is_some());
        // A walk that looks for the use of freed objects takes the pointer at its word.
        if meant.is_some() && !self.lifetime.freed.suspects.is_empty() {
            return meant;
        }
        let there = internal.and_then(|now| self.there_when_got(t, pointer, (recorded, now)));
        there.or(internal)
    }

    /// Notes the first access to memory that had certainly been freed before; `taken` says that another
    /// object lies there by now.
    fn note_freed(&mut self, t: usize, internal: Option<u64>, taken: bool) {
        if !self.symbolic() || !self.recording.common_clock {
            return;
        }
        let object = internal.and_then(|internal| self.learned.heap.at_internal(internal));
        let Some((internal, object)) = internal.zip(object) else { return };
        self.note_use_of_freed(t, object, taken);
        if self.used_after_free.is_some() {
            return;
        }
        let object = &self.learned.heap.objects[object];
        let death = object.death_at(object.address + (internal - object.base));
        if death.saturating_add(STAMP_SLACK) < self.threads[t].last_stamp {
            let stack = self.stack(t);
            let site = stack.iter().find(|site| !site.is_in_library()).or(stack.first());
            self.used_after_free = site.map(|site| (t, site.clone()));
        }
    }

    /// The recorded address behind a pointer.
    pub fn recorded_address(&mut self, t: usize, pointer: Option<Scalar>) -> Option<u64> {
        let pointer = pointer?;
        let address = self.concretise(t, pointer, model::PathConditionKind::Address);
        if address.is_none() {
            self.gap(t, GapKind::UnknownAddress, "symbolic and not recorded".to_owned());
        }
        address
    }

    fn shared_within(&self, place: Place) -> Vec<usize> {
        match &self.pass {
            Pass::Symbolic(shared) => shared.within(place.address, place.length),
            Pass::Survey(_) => Vec::new(),
        }
    }

    pub fn survey(&mut self, t: usize, place: Place, write: bool) {
        if self.handing.handed.is_some() {
            self.receive(t, place.address, place.length);
        }
        if self.handing.owners.is_some() {
            self.note_owner(t, place, write);
        }
        if self.is_unpublished(place.address) || place.length == 0 {
            self.note_reached(t, place.address);
            return;
        }
        if let Pass::Survey(shadow) = &mut self.pass {
            let clock = &self.threads[t].clock;
            shadow.access(t, clock, place.address, place.length, write);
            if write && !self.guessing {
                shadow.writers.note(t, place.address, place.length);
            }
        }
    }

    /// What memory holds. What another thread gets full of zeros in what is still to be walked of it holds zeros.
    fn bytes_at(&mut self, address: u64, length: u64) -> Bytes {
        let mut bytes = self.memory.read(address, length);
        if bytes.contains(&MemoryByte::Fresh) && address >= HEAP {
            for (at, byte) in (address..).zip(bytes.iter_mut()) {
                if *byte == MemoryByte::Fresh && self.learned.heap.began_with_zero(at) {
                    *byte = MemoryByte::Const(0);
                }
            }
        }
        bytes
    }

    /// Reads bytes; shared cells become read events.
    pub fn read(&mut self, t: usize, place: Place, grain: Grain) -> Bytes {
        self.survey(t, place, false);
        let mut bytes = self.bytes_at(place.address, place.length);
        let cells = self.shared_within(place);
        if cells.is_empty() {
            self.note_own(t, place, false);
            return bytes;
        }
        if self.is_of_library(t, place) {
            bytes.fill(MemoryByte::Fresh);
            return bytes;
        }
        let name = self.access_name(t, place);
        match grain {
            Grain::Access => {
                let parts = self.read_parts(t, &cells, 0, place, &mut bytes);
                let event = self.event(t, EventKind::Read { parts }, name);
                self.note_contained(t, event, place);
                self.note_pieces(t, event, place, &cells);
            }
            Grain::Cell => {
                for cell in cells {
                    let parts = self.read_parts(t, &[cell], 0, place, &mut bytes);
                    let event = self.event(t, EventKind::Read { parts }, name.clone());
                    self.note_contained(t, event, place);
                }
            }
        }
        bytes
    }

    /// As [`Self::read`], for code that is not walked: the bytes are of no interest where all that they are is known.
    pub fn touch(&mut self, t: usize, place: Place) -> Option<Bytes> {
        if !self.shared_within(place).is_empty() {
            return Some(self.read(t, place, Grain::Cell));
        }
        self.survey(t, place, false);
        self.note_own(t, place, false);
        let is_looked_at = self.symbolic() && place.length <= MOST_LOOKED_AT;
        let mut bytes = (0..place.length).map(|at| self.memory.get(place.address + at));
        let bytes: Bytes = is_looked_at.then(|| bytes.by_ref().collect())?;
        bytes.iter().any(|byte| matches!(byte, MemoryByte::Part(..))).then_some(bytes)
    }

    /// Makes the variables of the event about to be added, and puts them into `bytes`.
    fn read_parts(
        &mut self,
        t: usize,
        cells: &[usize],
        first_part: u32,
        place: Place,
        bytes: &mut Bytes,
    ) -> Vec<ReadPart> {
        let event = self.out.event_count(t);
        let mut parts = Vec::with_capacity(cells.len());
        for (i, &index) in cells.iter().enumerate() {
            let Some((cell, address, length)) = self.model_cell(t, index, place) else { continue };
            let part = first_part + i as u32;
            let origin = Origin::Read { thread: t, event, part };
            let var = self.out.variable(8 * length, origin, None);
            let expr = self.pool.var(var, 8 * length);
            let offset = address as i64 - place.address as i64;
            self.pending_reads.push(PendingRead { var, offset, width: 8 * length });
            for i in 0..length {
                let at = usize::try_from(offset + i64::from(i)).ok();
                if let Some(slot) = at.and_then(|at| bytes.get_mut(at)) {
                    *slot = MemoryByte::Part(expr, i as u8);
                }
            }
            parts.push(ReadPart { cell, var });
        }
        parts
    }

    /// Writes bytes; shared cells become write events.
    pub fn write(&mut self, t: usize, place: Place, bytes: &[MemoryByte], grain: Grain) {
        self.survey(t, place, true);
        self.find_stored(t);
        self.note_held(t, place.address, bytes);
        self.note_left(place.address, bytes);
        let cells = self.shared_within(place);
        if cells.is_empty() {
            self.note_own(t, place, true);
            self.note_overwritten(t, place, grain);
            self.memory.write(place.address, bytes);
            return;
        }
        self.write_private_bytes(place, bytes);
        let name = self.access_name(t, place);
        let parts = self.write_parts(t, &cells, place, bytes);
        self.note_stored(t, &parts);
        match grain {
            Grain::Access => {
                let event = self.event(t, EventKind::Write { parts }, name);
                self.note_contained(t, event, place);
                self.note_pieces(t, event, place, &cells);
            }
            Grain::Cell => {
                for part in parts {
                    let kind = EventKind::Write { parts: vec![part] };
                    let event = self.event(t, kind, name.clone());
                    self.note_contained(t, event, place);
                }
            }
        }
    }

    /// Forgets what bytes hold that no shared cell holds.
    pub fn forget(&mut self, address: u64, length: u64) {
        for at in address..address.saturating_add(length) {
            let shared = match &self.pass {
                Pass::Symbolic(shared) => shared.at(at).is_some(),
                Pass::Survey(_) => false,
            };
            if !shared {
                self.memory.set(at, MemoryByte::Unknown);
            }
        }
    }

    /// The bytes of a write that no shared cell holds.
    pub fn write_private_bytes(&mut self, place: Place, bytes: &[MemoryByte]) {
        self.is_the_programs(place.address, place.length);
        for (i, &byte) in bytes.iter().enumerate() {
            let address = place.address + i as u64;
            let shared = match &self.pass {
                Pass::Symbolic(shared) => shared.at(address).is_some(),
                Pass::Survey(_) => false,
            };
            if !shared {
                self.memory.set(address, byte);
            }
        }
    }

    fn write_parts(
        &mut self,
        t: usize,
        cells: &[usize],
        place: Place,
        bytes: &[MemoryByte],
    ) -> Vec<WritePart> {
        let mut parts = Vec::with_capacity(cells.len());
        for &index in cells {
            let Some((cell, address, length)) = self.model_cell(t, index, place) else { continue };
            let offset = address as i64 - place.address as i64;
            let mut cell_bytes = Bytes::new();
            for i in 0..i64::from(length) {
                let at = usize::try_from(offset + i).ok();
                let byte = at.and_then(|at| bytes.get(at)).copied();
                cell_bytes.push(byte.unwrap_or(MemoryByte::Unknown));
            }
            self.settle(t, &mut cell_bytes, false);
            let value = memory::compose(&mut self.pool, &cell_bytes).to_expr(&mut self.pool);
            parts.push(WritePart { cell, value });
        }
        parts
    }

    /// An atomic read-modify-write of a scalar; gives the old value.
    pub fn read_modify_write(
        &mut self,
        t: usize,
        place: Place,
        width: u32,
        change: &mut dyn FnMut(&mut Self, Scalar) -> Scalar,
    ) -> Scalar {
        self.survey(t, place, true);
        self.note_atomic(place);
        let mut bytes = self.memory.read(place.address, place.length);
        let cells = self.shared_within(place);
        let reads = match cells.is_empty() {
            true => Vec::new(),
            false => self.read_parts(t, &cells, 0, place, &mut bytes),
        };
        self.settle_in_memory(t, place.address, &mut bytes);
        let old = memory::compose(&mut self.pool, &bytes);
        let old = crate::value::resize(&mut self.pool, old, width, false);
        let new = change(self, old);
        let new_bytes = memory::decompose(&mut self.pool, new, place.length);
        self.note_left(place.address, &new_bytes);
        if cells.is_empty() {
            self.note_own(t, place, false);
            self.note_own(t, place, true);
            self.note_overwritten(t, place, Grain::Access);
            self.memory.write(place.address, &new_bytes);
            return old;
        }
        self.write_private_bytes(place, &new_bytes);
        let name = self.access_name(t, place);
        let writes = self.write_parts(t, &cells, place, &new_bytes);
        let event = self.event(t, EventKind::ReadModifyWrite { reads, writes }, name);
        self.note_contained(t, event, place);
        self.note_pieces(t, event, place, &cells);
        old
    }

    /// Says of which of the source's scalars the value of an access to these cells consists.
    fn note_pieces(&mut self, t: usize, event: u32, place: Place, cells: &[usize]) {
        let Some(parts) = self.access_parts(t).filter(|parts| !parts.is_empty()) else { return };
        let Pass::Symbolic(shared) = &self.pass else { return };
        let bytes = |index: &usize| {
            let cell = shared.cells.get(*index)?;
            let first = cell.address.checked_sub(place.address)?;
            Some(first..first + u64::from(cell.length))
        };
        let Some(held) = cells.iter().map(bytes).collect::<Option<Vec<_>>>() else { return };
        let is_held = |at: u64| held.iter().any(|bytes| bytes.contains(&at));
        let place_of = |at: u64| (0..at).filter(|&before| is_held(before)).count() as u32;
        let pieces = parts.iter().map(|part| Piece {
            first: 8 * place_of(part.offset),
            width: match (part.offset..part.offset + part.size).all(is_held) {
                true => 8 * part.size as u32,
                false => 0,
            },
            display: value_display(part.display),
        });
        let pieces = pieces.collect();
        self.out.set_pieces(t, event, pieces);
    }

    /// The model's cell for a shared cell, with its internal address and length. Made when the
    /// first event touches it: what memory holds then is its initial value.
    pub fn model_cell(
        &mut self,
        t: usize,
        index: usize,
        place: Place,
    ) -> Option<(CellId, u64, u32)> {
        let Pass::Symbolic(shared) = &self.pass else { return None };
        let cell = *shared.cells.get(index)?;
        if let Some(id) = cell.id {
            self.improve_name(t, id, cell.address, cell.length, place);
            return Some((id, cell.address, cell.length));
        }
        let bytes = self.bytes_at(cell.address, u64::from(cell.length));
        let init = self.initial_value(&bytes);
        let (name, display) = self.cell_name(t, cell.address, cell.length, place);
        let id = self.out.cell(&mut self.pool, 8 * cell.length, init, name, display);
        self.note_contained_cell(id, cell.address);
        if let Pass::Symbolic(shared) = &mut self.pass
            && let Some(cell) = shared.cells.get_mut(index)
        {
            cell.id = Some(id);
        }
        Some((id, cell.address, cell.length))
    }

    /// A cell whose first accesses had no name takes that of a later one, and one that was made by
    /// an access without a type (`memset`, two pointers at once) is seen to hold a pointer.
    fn improve_name(&mut self, t: usize, id: CellId, address: u64, length: u32, place: Place) {
        if self.holds_pointer(t, address, length, place)
            && let Some(cell) = self.out.cells.get_mut(id.index())
            && cell.display == ValueDisplay::Signed
        {
            cell.display = ValueDisplay::Pointer;
        }
        let quality = self.out.cells.get(id.index()).map_or(u8::MAX, |c| name_quality(&c.name));
        if quality >= name_quality("q->filled") {
            return;
        }
        let (name, display) = self.cell_name(t, address, length, place);
        if name_quality(&name) > quality
            && let Some(cell) = self.out.cells.get_mut(id.index())
        {
            cell.name = name;
            cell.display = display;
        }
    }

    /// Does the current instruction load or store the cell, and nothing else, as a pointer?
    fn holds_pointer(&self, t: usize, address: u64, length: u32, place: Place) -> bool {
        let exact = place.address == address && place.length == u64::from(length);
        let frame = self.threads[t].innermost_code().filter(|_| exact && length == 8);
        frame.is_some_and(|frame| {
            ir::name::moves_pointer(frame.module, frame.info.function, frame.next)
        })
    }

    fn initial_value(&mut self, bytes: &[MemoryByte]) -> Option<ExprId> {
        let known =
            bytes.iter().all(|byte| !matches!(byte, MemoryByte::Fresh | MemoryByte::Unknown));
        known.then(|| memory::compose(&mut self.pool, bytes).to_expr(&mut self.pool))
    }

    /// Replaces unknown bytes by input variables. Fresh memory is no gap.
    fn settle(&mut self, t: usize, bytes: &mut [MemoryByte], count_gap: bool) -> bool {
        let mut changed = false;
        let mut at = 0;
        while at < bytes.len() {
            let unknown = |b: &MemoryByte| matches!(b, MemoryByte::Unknown | MemoryByte::Fresh);
            let run = bytes[at..].iter().take(8).take_while(|byte| unknown(byte)).count();
            if run == 0 {
                at += 1;
                continue;
            }
            if count_gap && bytes[at..at + run].contains(&MemoryByte::Unknown) {
                self.gap(t, GapKind::UnknownMemory, String::new());
            }
            let expr = self.input(8 * run as u32);
            for i in 0..run {
                bytes[at + i] = MemoryByte::Part(expr, i as u8);
            }
            at += run;
            changed = true;
        }
        changed
    }

    /// As [`Self::settle`], and keeps the variables in memory, so that a second read gives the
    /// same value.
    ///
    /// A variable of an uninstrumented library (`stdout`, `environ`) is an input of the program
    /// and no gap.
    pub fn settle_in_memory(&mut self, t: usize, address: u64, bytes: &mut Bytes) {
        let before = bytes.clone();
        let count_gap = !self.image.is_foreign_global(address);
        if !self.settle(t, bytes, count_gap) {
            return;
        }
        for (i, (old, new)) in before.iter().zip(bytes.iter()).enumerate() {
            if old != new {
                self.memory.set(address + i as u64, *new);
            }
        }
    }

    /// The bytes that a value of a type has in memory.
    pub fn value_bytes(&mut self, module: &Module, ty: TypeId, value: &Value) -> Bytes {
        let size = module.store_size(ty);
        match value {
            Value::Scalar(scalar) => memory::decompose(&mut self.pool, *scalar, size),
            Value::Absent => {
                let mut bytes: Bytes = (0..size).map(|_| MemoryByte::Fresh).collect();
                self.settle(0, &mut bytes, false);
                bytes
            }
            Value::Aggregate(elements) => {
                let mut bytes: Bytes = (0..size).map(|_| MemoryByte::Const(0)).collect();
                let offsets = element_offsets(module, ty, elements.len());
                for (i, (element, offset)) in elements.iter().zip(offsets).enumerate() {
                    let Some(element_type) = element_type(module, ty, i) else { continue };
                    let part = self.value_bytes(module, element_type, element);
                    for (j, byte) in part.into_iter().enumerate() {
                        if let Some(slot) = bytes.get_mut(offset as usize + j) {
                            *slot = byte;
                        }
                    }
                }
                bytes
            }
        }
    }

    /// The value of a type that known bytes make.
    pub fn bytes_value(&mut self, module: &Module, ty: TypeId, bytes: &[MemoryByte]) -> Value {
        let count = match module.ty(ty) {
            Type::Struct { fields, .. } => fields.len(),
            Type::Array { length, .. } => *length as usize,
            Type::Vector { length, .. } => *length as usize,
            _ => {
                return match module.scalar_bits(ty) {
                    Some(bits @ 1..=128) if !bytes.is_empty() => {
                        let whole = memory::compose(&mut self.pool, bytes);
                        crate::value::resize(&mut self.pool, whole, bits, false).into()
                    }
                    _ => Value::Absent,
                };
            }
        };
        let offsets = element_offsets(module, ty, count);
        let mut elements = Vec::with_capacity(count);
        for (i, offset) in offsets.into_iter().enumerate().take(count) {
            let Some(element) = element_type(module, ty, i) else { continue };
            let end = (offset + module.store_size(element)) as usize;
            let part = bytes.get(offset as usize..end).unwrap_or_default();
            elements.push(match part.is_empty() {
                true => eval::zero(module, element),
                false => self.bytes_value(module, element, part),
            });
        }
        Value::aggregate(elements)
    }
}

fn element_type(module: &Module, ty: TypeId, index: usize) -> Option<TypeId> {
    match module.ty(ty) {
        Type::Struct { fields, .. } => fields.get(index).copied(),
        Type::Array { element, .. } | Type::Vector { element, .. } => Some(*element),
        _ => None,
    }
}

/// See [`crate::heap`].
pub(crate) fn stack_address(thread: usize, address: u64) -> u64 {
    address + ((thread as u64 + 1) << 48)
}

/// The recorded address behind an internal one of a stack or of a global.
pub(crate) fn unstack(internal: u64) -> u64 {
    internal & ((1 << 48) - 1)
}
