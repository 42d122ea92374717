//! Uninstrumented functions as `ir::effects` describes them: the events of what they read, and what
//! the program sees of the library's own objects. What they wrote is in the log.

use crate::access::Place;
use crate::engine::{Engine, Pass};
use crate::memory::MemoryByte;
use crate::report::FunctionUse;
use crate::thread::ExternalCall;
use crate::value::{Scalar, Value};
use ir::effects::{
    self, Base, Declaration, Extent, Format, Kind, Number, Precision, Printed, effect,
};
use ir::types::Operand;

/// The most bytes that a call is taken to read at one place.
const LONGEST: u64 = 1 << 26;
/// The longest text whose end is looked for.
const LONGEST_TEXT: u64 = 1 << 16;
/// The most entries of an array of `struct iovec`, as the kernel has it.
const MOST_ENTRIES: u64 = 1024;
/// Size of `errno`.
const ERRNO: u64 = 4;
/// Where the words of a `va_list` lie, and how far its register area goes.
const GENERAL: u64 = 0;
const VECTOR: u64 = 4;
const OVERFLOW: u64 = 8;
const REGISTERS: u64 = 16;
const GENERAL_END: u64 = 48;
const VECTOR_END: u64 = 176;

/// A call's arguments in the recorded run.
struct Recorded {
    arguments: Vec<Option<u64>>,
    operands: Vec<Operand>,
    result: Option<u64>,
}

/// Where the arguments of a format come from.
enum Source {
    Arguments(usize),
    List { general: u64, vector: u64, overflow: u64, registers: u64 },
}

impl<'r> Engine<'r> {
    /// Makes the events of what a described call reads; of several times only the first counts. To
    /// be called before what the call wrote is applied, with the result when it is known.
    pub fn read_described(&mut self, t: usize, result: Option<u64>) {
        let Some(call) = self.threads[t].external_call() else { return };
        if call.walked || call.assembly.is_some() {
            return;
        }
        let Some(declaration) = effect(call.name) else { return };
        let nothing = declaration.reads.is_empty() && declaration.format.is_none();
        if nothing || matches!(declaration.kind, Kind::Computed | Kind::Completed) {
            return;
        }
        let (first, last) = (!call.read, result.is_some());
        call.read = true;
        let arguments: Vec<Option<Scalar>> = call.arguments.iter().map(Value::scalar).collect();
        let operands = call.operands.clone();
        let arguments = arguments.into_iter().map(|scalar| self.in_recording(scalar?)).collect();
        let recorded = Recorded { arguments, operands, result };
        for region in &declaration.reads {
            // Lengths that the result decides have to wait for it.
            let late = region.extent.number().is_some_and(Number::needs_result);
            if if late { last } else { first } {
                self.read_region(t, &recorded, region);
            }
        }
        if let Some(format) = declaration.format.filter(|format| first && !format.scans) {
            self.read_printed(t, &recorded, format);
        }
        self.pending_reads.clear();
    }

    /// What a scalar was in the recorded run, without making it a condition.
    pub fn in_recording(&mut self, scalar: Scalar) -> Option<u64> {
        let value = match scalar.as_expr() {
            None => scalar.as_const(),
            Some(id) => self.recorded_value(id),
        }?;
        // Narrower integers have a sign.
        let unused = 64u32.saturating_sub(scalar.width);
        Some((((value as u64) << unused) as i64 >> unused) as u64)
    }

    fn read_region(&mut self, t: usize, call: &Recorded, region: &effects::Region) {
        let Some(address) = self.place(t, call, &region.place) else { return };
        let operand = match region.place {
            effects::Place { base: Base::Argument(index), ref path } if path.is_empty() => {
                call.operands.get(usize::from(index)).copied()
            }
            _ => None,
        };
        let number = |engine: &mut Self, number: &Number| engine.number(t, call, number);
        match &region.extent {
            Extent::Bytes(length) => {
                let from_memory = length.is_of_memory();
                let length = number(self, length).filter(|&length| (length as i64) > 0);
                if let Some(length) = length {
                    let most = if from_memory { self.room(t, address) } else { LONGEST };
                    self.read_bytes(t, address, length.min(most), operand);
                }
            }
            Extent::Text(bound) => {
                let bound = bound.as_ref().and_then(|bound| number(self, bound));
                self.read_text(t, address, bound, 1, operand);
            }
            Extent::Wide(bound) => {
                let bound = bound.as_ref().and_then(|bound| number(self, bound));
                self.read_text(t, address, bound, 4, operand);
            }
            Extent::Vector(count) => {
                let count = number(self, count).unwrap_or(0).min(MOST_ENTRIES);
                self.read_bytes(t, address, 16 * count, operand);
                for entry in (0..count).map(|index| address + 16 * index) {
                    let (start, length) = (self.word(t, entry), self.word(t, entry + 8));
                    if let (Some(start), Some(length)) = (start.filter(|&at| at != 0), length) {
                        self.read_bytes(t, start, length, None);
                    }
                }
            }
            Extent::Texts(_) | Extent::Table { .. } => {}
        }
    }

    /// How much a call can read at an address where memory tells the length. A survey may find there what another thread
    /// writes only later, or had written before: what lies behind the object is no part of it.
    fn room(&self, t: usize, address: u64) -> u64 {
        let Some(internal) = self.lookup(t, address) else { return 0 };
        match self.learned.heap.at_internal(internal) {
            Some(index) => {
                let object = &self.learned.heap.objects[index];
                object.base + object.size.max(1) - internal
            }
            None => LONGEST_TEXT,
        }
    }

    fn read_bytes(&mut self, t: usize, address: u64, length: u64, operand: Option<Operand>) {
        if let Some(internal) = self.resolve(t, address)
            && length > 0
        {
            let bytes = self.touch(t, Place::new(internal, length.min(LONGEST), operand));
            self.note_goes_in(t, bytes);
        }
    }

    /// A text of characters of `size` bytes, at most `bound` of them.
    fn read_text(
        &mut self,
        t: usize,
        address: u64,
        bound: Option<u64>,
        size: u64,
        operand: Option<Operand>,
    ) {
        let Some(internal) = self.resolve(t, address) else { return };
        let most = bound.unwrap_or(LONGEST_TEXT).min(LONGEST_TEXT);
        let mut count = 0;
        while count < most {
            let at = internal + count * size;
            let bytes = (0..size).map(|offset| self.seen_byte(at + offset));
            let bytes: Vec<Option<Option<u8>>> = bytes.collect();
            // What nobody knows and nobody shares is the end of what can be said.
            if bytes.contains(&None) {
                break;
            }
            count += 1;
            if bytes.iter().all(|byte| *byte == Some(Some(0))) && !self.may_go_on(t, at, size) {
                break;
            }
        }
        if count > 0 {
            let bytes = self.touch(t, Place::new(internal, count * size, operand));
            self.note_goes_in(t, bytes);
        }
    }

    /// Another thread may write where a text ends as a survey has it, so that the text goes on there: as far as others write.
    fn may_go_on(&mut self, t: usize, at: u64, size: u64) -> bool {
        if self.symbolic() {
            return false;
        }
        let goes_on = self.learned.open_ends.contains(&at)
            || (at
                .checked_sub(size)
                .is_some_and(|before| self.learned.open_ends.contains(&before))
                && self.learned.writers.other_than(t, at));
        match goes_on {
            true => self.learned.open_ends.insert(at),
            false => self.learned.text_ends.insert(at),
        };
        goes_on
    }

    /// A byte's value, `Some(None)` when it is shared: a text may go on behind it. `None` for a byte
    /// that is not known.
    fn seen_byte(&mut self, address: u64) -> Option<Option<u8>> {
        if let Pass::Symbolic(shared) = &self.pass
            && shared.at(address).is_some()
        {
            return Some(None);
        }
        match self.memory.get(address) {
            MemoryByte::Const(byte) => Some(Some(byte)),
            MemoryByte::Part(id, index) => {
                let value = self.recorded_value(id);
                Some(value.map(|value| (value >> (8 * u32::from(index))) as u8))
            }
            MemoryByte::Unknown | MemoryByte::Fresh => None,
        }
    }

    /// The bytes in memory at an address of the recorded run, as one number; without an event.
    pub fn peek(&mut self, t: usize, address: u64, length: u64) -> Option<u64> {
        let internal = self.lookup(t, address)?;
        (0..length).rev().try_fold(0u64, |value, offset| {
            let byte = self.seen_byte(internal + offset)??;
            Some((value << 8) | u64::from(byte))
        })
    }

    /// As [`Self::peek`], for 8 bytes.
    pub fn word(&mut self, t: usize, address: u64) -> Option<u64> {
        self.peek(t, address, 8)
    }

    /// The address of a place; `None` for null pointers and those that are not known.
    fn place(&mut self, t: usize, call: &Recorded, place: &effects::Place) -> Option<u64> {
        let mut at = match place.base {
            Base::Argument(index) => call.arguments.get(usize::from(index)).copied()?,
            Base::Result => call.result,
        };
        for &offset in &place.path {
            let from = at.filter(|&at| at != 0)?.checked_add(u64::from(offset))?;
            at = self.word(t, from);
        }
        at.filter(|&at| at != 0)
    }

    fn number(&mut self, t: usize, call: &Recorded, number: &Number) -> Option<u64> {
        number.value(&mut |part| match part {
            Number::Argument(index) => call.arguments.get(usize::from(*index)).copied()?,
            Number::Result => call.result.filter(|&result| (result as i64) >= 0),
            Number::Pointed32(index) => {
                let at = call.arguments.get(usize::from(*index)).copied()??;
                self.peek(t, at, 4)
            }
            Number::Word(place, offset) => {
                let at = self.place(t, call, place)?;
                self.word(t, at.checked_add(u64::from(*offset))?)
            }
            _ => None,
        })
    }

    /// The texts that a format prints.
    fn read_printed(&mut self, t: usize, call: &Recorded, format: Format) {
        let text = call.arguments.get(usize::from(format.format)).copied().flatten();
        let Some(conversions) = text.and_then(|at| self.constant_text(t, at)) else { return };
        let Some(conversions) = effects::printed(&conversions) else { return };
        let mut source = match format.list {
            None => Source::Arguments(usize::from(format.first)),
            Some(list) => match self.list(t, call.arguments.get(usize::from(list)).copied()) {
                Some(list) => list,
                None => return,
            },
        };
        let mut before = None;
        for conversion in conversions {
            let (value, operand) = self.next_argument(t, call, &mut source, conversion);
            let bound = |precision: Precision, before: Option<u64>| match precision {
                Precision::Whole => None,
                Precision::Most(most) => Some(most),
                // An `int`; a negative one is none.
                Precision::Before => before.filter(|&n| n as i32 >= 0).map(|n| n & 0xffff_ffff),
            };
            match (conversion, value) {
                (Printed::Text(precision), Some(at)) if at != 0 => {
                    self.read_text(t, at, bound(precision, before), 1, operand);
                }
                (Printed::Wide(precision), Some(at)) if at != 0 => {
                    self.read_text(t, at, bound(precision, before), 4, operand);
                }
                _ => {}
            }
            before = value;
        }
    }

    fn next_argument(
        &mut self,
        t: usize,
        call: &Recorded,
        source: &mut Source,
        conversion: Printed,
    ) -> (Option<u64>, Option<Operand>) {
        match source {
            Source::Arguments(next) => {
                let at = *next;
                *next += 1;
                (call.arguments.get(at).copied().flatten(), call.operands.get(at).copied())
            }
            Source::List { general, vector, overflow, registers } => {
                let at = match conversion {
                    Printed::LongDouble => {
                        *overflow = (*overflow + 15) & !15;
                        *overflow += 16;
                        return (None, None);
                    }
                    Printed::Float if *vector < VECTOR_END => {
                        *vector += 16;
                        return (None, None);
                    }
                    Printed::Float => None,
                    _ if *general < GENERAL_END => {
                        *general += 8;
                        Some(*registers + *general - 8)
                    }
                    _ => None,
                };
                let at = at.unwrap_or_else(|| {
                    *overflow += 8;
                    *overflow - 8
                });
                (self.word(t, at), None)
            }
        }
    }

    /// Where a `va_list` stands.
    fn list(&mut self, t: usize, at: Option<Option<u64>>) -> Option<Source> {
        let at = at.flatten().filter(|&at| at != 0)?;
        Some(Source::List {
            general: self.peek(t, at + GENERAL, 4)?,
            vector: self.peek(t, at + VECTOR, 4)?,
            overflow: self.word(t, at + OVERFLOW)?,
            registers: self.word(t, at + REGISTERS)?,
        })
    }

    /// The bytes of a text before its zero byte, when all of them are known.
    pub fn constant_text(&mut self, t: usize, address: u64) -> Option<Vec<u8>> {
        let internal = self.lookup(t, address)?;
        let mut text = Vec::new();
        for offset in 0..LONGEST_TEXT {
            match self.seen_byte(internal + offset)?? {
                0 => return Some(text),
                byte => text.push(byte),
            }
        }
        None
    }

    /// What a described call did besides writing what the log says: objects of the library and its
    /// variables may have changed. What the program finds there is an input.
    pub fn leave_described(&mut self, t: usize, call: &ExternalCall<'r>, uses: &Declaration) {
        for &(index, size) in &uses.opaque {
            let pointer = call.arguments.get(usize::from(index)).and_then(Value::scalar);
            let address = pointer.and_then(|pointer| self.in_recording(pointer));
            if let Some(internal) = address.and_then(|address| self.lookup(t, address)) {
                let size = self.opaque_size(internal, size, call.name);
                self.renew(t, internal, size);
            }
        }
        for variable in &uses.sets {
            if let Some((address, size)) = self.image.variable(variable) {
                self.renew(t, address, size);
            }
        }
    }

    /// A call may have set `errno`, of which the compiler knows that it stays where it is.
    pub fn change_errno(&mut self, t: usize, call: &ExternalCall<'r>, result: Option<u64>) {
        if call.name == "__errno_location" {
            self.learned.errno[t] = result.or(self.learned.errno[t]);
            self.threads[t].errno = result.and_then(|address| self.resolve(t, address));
        } else if effect(call.name).is_none_or(|described| described.kind == Kind::Library)
            && let Some(errno) = self.threads[t].errno
        {
            self.renew(t, errno, ERRNO);
        }
    }

    /// Counts a call of uninstrumented code for the report.
    pub fn count_call(&mut self, call: &ExternalCall<'r>) {
        if !self.symbolic() || call.assembly.is_some() {
            return;
        }
        let use_ = match effect(call.name) {
            None => FunctionUse::Undescribed,
            Some(declaration) if declaration.objects => FunctionUse::Objects,
            Some(declaration) => match declaration.kind {
                Kind::Library | Kind::Ends => FunctionUse::Described,
                Kind::Computed | Kind::Completed => FunctionUse::Computed,
                Kind::Reported => FunctionUse::Reported,
            },
        };
        let calls = self.functions.entry(call.name).or_insert((use_, 0));
        calls.1 += 1;
    }
}
