//! Uninstrumented functions that the executor models: memory and strings.
//!
//! What they do to memory is computed; the logged result fixes the path, so that over symbolic
//! bytes it becomes path conditions (`strlen` = n: n non-zero bytes and a zero).

use crate::access::{Grain, Place};
use crate::engine::{Engine, Pass};
use crate::libatomic::is_atomic;
use crate::memory::{self, Bytes, MemoryByte};
use crate::report::GapKind;
use crate::strings::is_length;
use crate::thread::{ExternalCall, Stop};
use crate::value::{self, Scalar, Value};
use ir::effects::futex::is_plain_futex;
use ir::effects::{Kind, effect};
use ir::types::Operand;
use model::{CmpOp, PathConditionKind};

/// Size in bytes of a `pthread_t`.
const THREAD_HANDLE: u64 = 8;
/// Size in bytes of the word that `g_once_init_leave` sets.
const ONCE_WORD: u64 = 8;
/// How much of a heap object a function of unknown effect is taken to write.
const DOUBTFUL: u64 = 4096;
/// The longest string or block that is modelled.
const LONGEST: u64 = 1 << 26;
/// So many bytes of two strings that are compared may be unknown before one of them ends.
const MOST_UNKNOWN: usize = 256;

impl<'r> Engine<'r> {
    /// The effect and result of a call of an uninstrumented function that has returned.
    pub fn model_external(
        &mut self,
        t: usize,
        call: &ExternalCall<'r>,
        logged: Value,
    ) -> Result<Value, Stop> {
        if let Some(assembly) = &call.assembly {
            return Ok(self.model_assembly(t, call, assembly, &logged));
        }
        let name = plain_name(call.name);
        let result = logged.scalar().and_then(Scalar::as_const).map(|value| value as u64);
        let operand = |i: usize| call.operands.get(i).copied();
        let argument = |i: usize| call.arguments.get(i).and_then(Value::scalar);
        let first_two = (operand(0), operand(1));
        match name {
            "memcpy" | "memmove" | "mempcpy" => {
                if let Some(length) = self.length(t, argument(2)) {
                    self.copy(t, argument(0), argument(1), length, first_two);
                }
            }
            "bcopy" => {
                if let Some(length) = self.length(t, argument(2)) {
                    self.copy(t, argument(1), argument(0), length, (operand(1), operand(0)));
                }
            }
            "memset" => {
                if let Some(length) = self.length(t, argument(2)) {
                    self.set_bytes(t, argument(0), argument(1), length, operand(0));
                }
            }
            "bzero" | "explicit_bzero" => {
                if let Some(length) = self.length(t, argument(1)) {
                    let zero = Some(Scalar::constant(8, 0));
                    self.set_bytes(t, argument(0), zero, length, operand(0));
                }
            }
            "strlen" => {
                if let Some(length) = result {
                    self.string(t, argument(0), length, true, operand(0));
                }
            }
            "strnlen" => {
                let limit = self.length(t, argument(1));
                if let (Some(length), Some(limit)) = (result, limit) {
                    self.string(t, argument(0), length, length < limit, operand(0));
                }
            }
            "strcpy" | "stpcpy" => self.string_copy(t, call, None, 0),
            "strncpy" => {
                let limit = self.length(t, argument(2));
                self.string_copy(t, call, limit, 0);
            }
            "strcat" | "strncat" => {
                let limit = match name {
                    "strncat" => self.length(t, argument(2)),
                    _ => None,
                };
                let skip = self.scan(t, argument(0), LONGEST, operand(0));
                self.string_append(t, call, limit, skip);
            }
            "memcmp" | "bcmp" => self.compare_blocks(t, name, call, result),
            "strcmp" | "strncmp" => self.compare(t, name, call, result),
            "strchr" | "strrchr" | "memchr" => self.find(t, name, call, result),
            _ if is_realloc(name) => self.reallocate(t, call, result),
            "malloc_usable_size" => {
                if let (Some(size), Some(address)) = (result, self.address(t, argument(0)))
                    && let Some(object) = self.learned.heap.at_internal(address)
                    && self.learned.heap.objects[object].base == address
                {
                    self.learned.heap.extend(object, size);
                }
            }
            // `std::thread`'s own handle, which the library sets and clears.
            "_ZNSt6thread4joinEv"
            | "_ZNSt6thread6detachEv"
            | "_ZNSt3__16thread4joinEv"
            | "_ZNSt3__16thread6detachEv" => {
                let zero = Some(Scalar::constant(8, 0));
                self.set_bytes(t, argument(0), zero, THREAD_HANDLE, operand(0));
            }
            // 1 says that this thread is to initialise, 0 that it has been done.
            "cxa_guard_acquire" => {
                let guard = self.string_bytes(t, argument(0), 1, operand(0));
                if let (Some(&guard), Some(result)) = (guard.first(), result) {
                    self.assume_zero(t, guard, result != 0);
                }
            }
            "cxa_guard_release" => {
                let one = Some(Scalar::constant(8, 1));
                self.set_bytes(t, argument(0), one, 1, operand(0));
            }
            "cxa_guard_abort" => {}
            // As above, with a word of the program's that becomes what the initialisation gives.
            "g_once_init_enter" | "g_once_init_enter_pointer" => {
                let word = self.string_bytes(t, argument(0), ONCE_WORD, operand(0));
                if let Some(result) = result.filter(|_| !word.is_empty()) {
                    self.assume_bytes(t, &word, 0, result as u32 != 0);
                }
            }
            "g_async_queue_sort"
            | "g_async_queue_sort_unlocked"
            | "g_thread_pool_move_to_front"
            | "g_thread_pool_set_sort_function" => {
                let queue = argument(0).and_then(|queue| self.in_recording(queue));
                queue.into_iter().for_each(|queue| self.reordered(t, queue));
            }
            "g_once_init_leave" | "g_once_init_leave_pointer" => {
                if let (Some(place), Some(value)) = (self.address(t, argument(0)), argument(1)) {
                    let value = value::resize(&mut self.pool, value, 64, false);
                    let bytes: Bytes = match value.as_const() {
                        Some(value) => {
                            let bytes = (value as u64).to_le_bytes();
                            bytes.into_iter().map(MemoryByte::Const).collect()
                        }
                        None => {
                            let value = value.to_expr(&mut self.pool);
                            (0..8).map(|byte| MemoryByte::Part(value, byte)).collect()
                        }
                    };
                    let place = Place::new(place, ONCE_WORD, operand(0));
                    self.write(t, place, &bytes, Grain::Access);
                }
            }
            _ if is_length(call.name) => return Ok(self.text_length(t, call, logged)),
            _ if is_atomic(call.name) => return Ok(self.model_atomic(t, call, logged)),
            name if name.starts_with("_ZNSt6thread15_M_start_thread") => {
                if let Some(handle) = call.created {
                    let bytes = handle.to_le_bytes().map(MemoryByte::Const);
                    self.write_string(t, argument(0), 0, &bytes, operand(0));
                }
            }
            _ => match effect(call.name) {
                Some(described) if described.kind == Kind::Completed => self.edit_text(t, call),
                Some(described) if !described.objects => {
                    let number = self.numeral(t, call, &logged);
                    return Ok(number.unwrap_or_else(|| self.derived(t, call, logged)));
                }
                // What the log says of the objects came after that.
                _ if call.doubted => {}
                _ if call.name == "syscall" && self.writes_nothing(call) => {}
                _ => self.unknown_effect(t, call),
            },
        }
        Ok(logged)
    }

    /// Does a system call only wait for a futex, or wake who waits for it?
    fn writes_nothing(&self, call: &ExternalCall<'r>) -> bool {
        let number = |i: usize| {
            let argument = call.arguments.get(i).and_then(Value::scalar);
            argument.and_then(Scalar::as_const).and_then(|value| u64::try_from(value).ok())
        };
        number(0).zip(number(2)).is_some_and(|(call, operation)| is_plain_futex(call, operation))
    }

    /// A function that may have written what its arguments point to. The instrumented code reports
    /// variables and stack objects; heap objects are doubtful from there on.
    pub fn unknown_effect(&mut self, t: usize, call: &ExternalCall<'r>) {
        let constant_object = call.name.starts_with("_ZNK");
        for (i, argument) in call.arguments.iter().enumerate() {
            // An operand in memory is no way to the rest of its object.
            let assembly = call.assembly.as_ref();
            if assembly.is_some_and(|assembly| assembly.memory_argument(i).is_some()) {
                continue;
            }
            let pointer = argument.scalar().filter(|scalar| scalar.width == 64);
            let address = pointer.and_then(Scalar::as_const).map(|value| value as u64);
            let internal = address.and_then(|address| self.lookup(t, address));
            let Some(internal) = internal.filter(|_| i > 0 || !constant_object) else { continue };
            let Some(index) = self.learned.heap.at_internal(internal) else { continue };
            let object = &self.learned.heap.objects[index];
            let rest = object.base + object.size - internal;
            self.forget(internal, rest.min(DOUBTFUL));
        }
    }

    /// A length made concrete.
    pub fn length(&mut self, t: usize, length: Option<Scalar>) -> Option<u64> {
        let length =
            length.and_then(|length| self.concretise(t, length, PathConditionKind::Address));
        match length {
            Some(length) if length <= LONGEST => Some(length),
            _ => {
                self.gap(t, GapKind::UnknownAddress, "length".to_owned());
                None
            }
        }
    }

    /// Copies bytes, which may overlap.
    pub fn copy(
        &mut self,
        t: usize,
        target: Option<Scalar>,
        source: Option<Scalar>,
        length: u64,
        operands: (Option<Operand>, Option<Operand>),
    ) {
        if length == 0 {
            return;
        }
        let source = self.address(t, source);
        let target = self.address(t, target);
        let bytes = match source {
            Some(source) => self.read(t, Place::new(source, length, operands.1), Grain::Cell),
            None => (0..length).map(|_| MemoryByte::Unknown).collect(),
        };
        if let Some(target) = target {
            let stored = source.map(|source| self.stored_by(t, source, length));
            self.write(t, Place::new(target, length, operands.0), &bytes, Grain::Cell);
            self.note_copied(t, target, stored.unwrap_or_default());
        }
    }

    /// Sets bytes to the lowest byte of a value.
    pub fn set_bytes(
        &mut self,
        t: usize,
        target: Option<Scalar>,
        byte: Option<Scalar>,
        length: u64,
        operand: Option<Operand>,
    ) {
        if length == 0 {
            return;
        }
        let (Some(target), Some(byte)) = (self.address(t, target), byte) else { return };
        let byte = value::resize(&mut self.pool, byte, 8, false);
        let byte = match byte.as_const() {
            Some(value) => MemoryByte::Const(value as u8),
            None => MemoryByte::Part(byte.to_expr(&mut self.pool), 0),
        };
        let bytes: Bytes = (0..length).map(|_| byte).collect();
        self.write(t, Place::new(target, length, operand), &bytes, Grain::Cell);
    }

    /// The bytes of a string of a known length, with the conditions that make it that long.
    fn string(
        &mut self,
        t: usize,
        pointer: Option<Scalar>,
        length: u64,
        terminated: bool,
        operand: Option<Operand>,
    ) -> Bytes {
        let total = length.min(LONGEST) + u64::from(terminated);
        let bytes = self.string_bytes(t, pointer, total, operand);
        for (i, &byte) in bytes.iter().enumerate() {
            let end = terminated && i as u64 == length;
            self.assume_zero(t, byte, end);
        }
        bytes
    }

    fn string_bytes(
        &mut self,
        t: usize,
        pointer: Option<Scalar>,
        length: u64,
        operand: Option<Operand>,
    ) -> Bytes {
        match self.address(t, pointer) {
            Some(address) if length > 0 => {
                self.read(t, Place::new(address, length, operand), Grain::Cell)
            }
            _ => Bytes::new(),
        }
    }

    /// The byte was zero, or was not.
    fn assume_zero(&mut self, t: usize, byte: MemoryByte, zero: bool) {
        let Some(byte) = self.byte_value(byte) else { return };
        let is_zero = value::cmp(&mut self.pool, CmpOp::Eq, byte, Scalar::constant(8, 0));
        let holds = if zero { is_zero } else { value::not(&mut self.pool, is_zero) };
        self.assume(t, holds);
    }

    fn byte_value(&mut self, byte: MemoryByte) -> Option<Scalar> {
        match byte {
            MemoryByte::Unknown | MemoryByte::Fresh => None,
            byte => Some(memory::compose(&mut self.pool, &[byte])),
        }
    }

    /// The bytes were this number, the lowest first, or another one.
    pub fn assume_bytes(&mut self, t: usize, bytes: &[MemoryByte], value: u128, equal: bool) {
        if bytes.iter().any(|byte| matches!(byte, MemoryByte::Unknown | MemoryByte::Fresh)) {
            return;
        }
        let known = memory::compose(&mut self.pool, bytes);
        let value = Scalar::constant(known.width, value);
        let same = value::cmp(&mut self.pool, CmpOp::Eq, known, value);
        let holds = if equal { same } else { value::not(&mut self.pool, same) };
        self.assume(t, holds);
    }

    /// Adds what an uninstrumented function's result says about bytes. A contradiction with known
    /// bytes is a gap.
    fn assume(&mut self, t: usize, holds: Scalar) {
        match (holds.as_const(), holds.as_expr()) {
            (Some(0), _) => {
                self.gap(t, GapKind::WrongValue("string".to_owned()), String::new());
            }
            (_, Some(expr)) => {
                let site = self.site(t);
                self.add_condition(t, expr, PathConditionKind::Branch, site);
            }
            _ => {}
        }
    }

    /// How long a string was in the recorded run, from the recorded values of its bytes.
    fn scan(
        &mut self,
        t: usize,
        pointer: Option<Scalar>,
        limit: u64,
        _operand: Option<Operand>,
    ) -> Option<u64> {
        let start = self.address(t, pointer)?;
        for length in 0..limit.min(LONGEST) {
            let byte = self.recorded_byte(start + length)?;
            if byte == 0 {
                return Some(length);
            }
        }
        Some(limit)
    }

    /// A byte's recorded value without an access: shared cells have none here.
    fn recorded_byte(&mut self, address: u64) -> Option<u8> {
        if let Pass::Symbolic(shared) = &self.pass
            && shared.at(address).is_some()
        {
            return None;
        }
        match self.memory.get(address) {
            MemoryByte::Const(byte) => Some(byte),
            MemoryByte::Part(id, index) => {
                let value = self.recorded_value(id)?;
                Some((value >> (8 * u32::from(index))) as u8)
            }
            _ => None,
        }
    }

    /// `strcpy`, `stpcpy` and `strncpy`: the source's length comes from its bytes, which for
    /// `stpcpy` the result confirms.
    fn string_copy(&mut self, t: usize, call: &ExternalCall<'r>, limit: Option<u64>, skip: u64) {
        let argument = |i: usize| call.arguments.get(i).and_then(Value::scalar);
        let operand = |i: usize| call.operands.get(i).copied();
        let bound = limit.unwrap_or(LONGEST);
        let short = limit.filter(|limit| *limit as usize <= MOST_UNKNOWN);
        // Where the end lies in this pass says nothing when another thread writes there.
        if let Some(limit) = short.filter(|_| matches!(self.pass, Pass::Survey(..)))
            && let Some(start) = self.address(t, argument(1))
        {
            for i in 0..limit {
                self.string_byte(t, start, operand(1), i);
            }
        }
        let scanned = self.scan(t, argument(1), bound, operand(1));
        let measured = self.measured(call, 0);
        let length = match (self.agreed(scanned, measured), short) {
            (Some(length), _) => length,
            (None, Some(limit)) => {
                let bytes = self.padded(t, argument(1), limit, operand(1));
                return self.write_string(t, argument(0), skip, &bytes, operand(0));
            }
            (None, None) => {
                self.gap(t, GapKind::External(call.name.to_owned()), "source length".to_owned());
                return;
            }
        };
        let terminated = length < bound;
        let mut bytes = self.string(t, argument(1), length, terminated, operand(1));
        if let Some(limit) = limit {
            // `strncpy` fills up with zeros.
            bytes.resize(limit as usize, MemoryByte::Const(0));
        }
        self.write_string(t, argument(0), skip, &bytes, operand(0));
    }

    /// So many bytes of a string of which nobody knows where it ends, since threads share it, with zeros behind its
    /// end: what `strncpy` writes, whatever the length is.
    fn padded(
        &mut self,
        t: usize,
        pointer: Option<Scalar>,
        limit: u64,
        operand: Option<Operand>,
    ) -> Bytes {
        let zero = Scalar::constant(8, 0);
        let mut bytes = Bytes::new();
        let mut ended = Scalar::boolean(false);
        let Some(start) = self.address(t, pointer) else { return bytes };
        for i in 0..limit {
            let byte = match self.decided(ended) {
                Some(true) => zero,
                _ => match self.string_byte(t, start, operand, i) {
                    Some(byte) => byte,
                    None => break,
                },
            };
            let copied = value::ite(&mut self.pool, ended, zero, byte);
            bytes.extend(memory::decompose(&mut self.pool, copied, 1));
            let end = value::cmp(&mut self.pool, CmpOp::Eq, byte, zero);
            ended = value::or(&mut self.pool, ended, end);
        }
        bytes.resize(limit as usize, MemoryByte::Unknown);
        bytes
    }

    /// `strcat` and `strncat`.
    fn string_append(
        &mut self,
        t: usize,
        call: &ExternalCall<'r>,
        limit: Option<u64>,
        skip: Option<u64>,
    ) {
        let argument = |i: usize| call.arguments.get(i).and_then(Value::scalar);
        let operand = |i: usize| call.operands.get(i).copied();
        let bound = limit.unwrap_or(LONGEST);
        let length = self.scan(t, argument(1), bound, operand(1));
        let measured = self.measured(call, 1);
        let length = self.agreed(length, measured);
        // What is there behind the call is the one and the other.
        let both = self.measured(call, 0).zip(length);
        let skip = self.agreed(skip, both.and_then(|(both, length)| both.checked_sub(length)));
        let (Some(skip), Some(length)) = (skip, length) else {
            self.gap(t, GapKind::External(call.name.to_owned()), "length".to_owned());
            return;
        };
        self.string(t, argument(0), skip, true, operand(0));
        let mut bytes = self.string(t, argument(1), length, length < bound, operand(1));
        bytes.truncate(length as usize);
        bytes.push(MemoryByte::Const(0));
        self.write_string(t, argument(0), skip, &bytes, operand(0));
    }

    fn write_string(
        &mut self,
        t: usize,
        target: Option<Scalar>,
        skip: u64,
        bytes: &[MemoryByte],
        operand: Option<Operand>,
    ) {
        if let Some(target) = self.address(t, target)
            && !bytes.is_empty()
        {
            let place = Place::new(target + skip, bytes.len() as u64, operand);
            self.write(t, place, bytes, Grain::Cell);
        }
    }

    /// `memcmp` and `bcmp`: the order of the first bytes that differ is the result's.
    fn compare_blocks(
        &mut self,
        t: usize,
        name: &str,
        call: &ExternalCall<'r>,
        result: Option<u64>,
    ) {
        let argument = |i: usize| call.arguments.get(i).and_then(Value::scalar);
        let operand = |i: usize| call.operands.get(i).copied();
        let (Some(result), Some(length)) = (result, self.length(t, argument(2))) else { return };
        let a = self.string_bytes(t, argument(0), length, operand(0));
        let b = self.string_bytes(t, argument(1), length, operand(1));
        let (mut below, mut equal) = (Scalar::boolean(false), Scalar::boolean(true));
        for (&x, &y) in a.iter().zip(b.iter()).rev() {
            let (Some(x), Some(y)) = (self.byte_value(x), self.byte_value(y)) else {
                self.gap(t, GapKind::UnknownMemory, name.to_owned());
                return;
            };
            let pool = &mut self.pool;
            let same = value::cmp(pool, CmpOp::Eq, x, y);
            let less = value::cmp(pool, CmpOp::ULt, x, y);
            below = value::ite(pool, same, below, less);
            equal = value::and(pool, same, equal);
        }
        let sign = (result as u32 as i32).signum();
        let holds = match (sign, name) {
            (0, _) => equal,
            (_, "bcmp") => value::not(&mut self.pool, equal),
            (-1, _) => below,
            _ => {
                let at_most = value::or(&mut self.pool, below, equal);
                value::not(&mut self.pool, at_most)
            }
        };
        self.assume(t, holds);
    }

    /// Comparisons of strings: all bytes before the first difference are equal, and there the order is
    /// the result's. Where the difference lies is said by the bytes' recorded values; of those that have
    /// none, because threads share them, the result is one condition over all that may count.
    fn compare(&mut self, t: usize, name: &str, call: &ExternalCall<'r>, result: Option<u64>) {
        let argument = |i: usize| call.arguments.get(i).and_then(Value::scalar);
        let operand = |i: usize| call.operands.get(i).copied();
        let Some(sign) = result.map(|result| (result as u32 as i32).signum()) else { return };
        let bound = match name {
            "strcmp" => Some(LONGEST),
            _ => self.length(t, argument(2)),
        };
        let (Some(bound), Some(a), Some(b)) =
            (bound, self.address(t, argument(0)), self.address(t, argument(1)))
        else {
            return;
        };
        let places = [(a, operand(0)), (b, operand(1))];
        if matches!(self.pass, Pass::Survey(..)) {
            return self.survey_strings(t, places, bound);
        }
        for i in 0..bound {
            let Some([x, y]) = self.byte_pair(t, places, i) else { return };
            let equal = value::cmp(&mut self.pool, CmpOp::Eq, x, y);
            match self.decided(equal) {
                Some(true) => self.assume(t, equal),
                Some(false) => {
                    let below = value::cmp(&mut self.pool, CmpOp::ULt, x, y);
                    let differs = value::not(&mut self.pool, equal);
                    match sign {
                        -1 => self.assume(t, below),
                        1 => {
                            let above = value::cmp(&mut self.pool, CmpOp::ULt, y, x);
                            self.assume(t, above);
                        }
                        _ => self.assume(t, differs),
                    }
                    return;
                }
                None => {
                    let holds = self.compare_rest(t, places, (i, bound), [x, y], sign);
                    match holds {
                        Some(holds) => self.assume(t, holds),
                        None => {
                            let detail = "end of the strings is not known".to_owned();
                            self.gap(t, GapKind::External(name.to_owned()), detail);
                        }
                    }
                    return;
                }
            }
            let zero = value::cmp(&mut self.pool, CmpOp::Eq, x, Scalar::constant(8, 0));
            // The bytes are equal, so that either one tells whether the strings end here.
            let other = value::cmp(&mut self.pool, CmpOp::Eq, y, Scalar::constant(8, 0));
            match self.decided(zero).or(self.decided(other)) {
                Some(true) => {
                    self.assume(t, zero);
                    return;
                }
                Some(false) => {
                    let more = value::not(&mut self.pool, zero);
                    self.assume(t, more);
                }
                None => {
                    let detail = "end of the string is not known".to_owned();
                    self.gap(t, GapKind::External(name.to_owned()), detail);
                    return;
                }
            }
        }
    }

    /// All that a comparison may read when other threads write to the strings: up to where both end, as
    /// far as that is known.
    fn survey_strings(&mut self, t: usize, places: [(u64, Option<Operand>); 2], bound: u64) {
        let mut ended = [false; 2];
        for i in 0..bound {
            for (ended, (start, operand)) in ended.iter_mut().zip(places) {
                let byte = self.string_byte(t, start, operand, i);
                let end = byte.map(|byte| {
                    value::cmp(&mut self.pool, CmpOp::Eq, byte, Scalar::constant(8, 0))
                });
                *ended |= end.is_none_or(|end| self.decided(end) != Some(false));
            }
            if ended == [true; 2] {
                return;
            }
        }
    }

    /// The bytes of two strings at a distance from their beginnings.
    fn byte_pair(
        &mut self,
        t: usize,
        places: [(u64, Option<Operand>); 2],
        i: u64,
    ) -> Option<[Scalar; 2]> {
        let [x, y] = places.map(|(start, operand)| self.string_byte(t, start, operand, i));
        Some([x?, y?])
    }

    /// A byte of a string at a distance from its beginning. What lies behind a heap object's end is
    /// another object.
    fn string_byte(
        &mut self,
        t: usize,
        start: u64,
        operand: Option<Operand>,
        i: u64,
    ) -> Option<Scalar> {
        let heap = &self.learned.heap;
        if heap.at_internal(start + i) != heap.at_internal(start) {
            return None;
        }
        let byte = self.read(t, Place::new(start + i, 1, operand), Grain::Cell);
        self.byte_value(*byte.first()?)
    }

    /// That two strings compare with this sign from a byte on, `pair`, up to where one of them ends
    /// for certain, or to the bound. `None` where no end is known.
    fn compare_rest(
        &mut self,
        t: usize,
        places: [(u64, Option<Operand>); 2],
        (from, bound): (u64, u64),
        mut pair: [Scalar; 2],
        sign: i32,
    ) -> Option<Scalar> {
        let nul = Scalar::constant(8, 0);
        let mut pairs = Vec::new();
        for i in from.. {
            if i > from {
                pair = self.byte_pair(t, places, i)?;
            }
            pairs.push(pair);
            let ends = pair.map(|byte| value::cmp(&mut self.pool, CmpOp::Eq, byte, nul));
            let ends = ends.map(|end| self.decided(end) == Some(true));
            if ends.contains(&true) || i + 1 >= bound {
                break;
            }
            if pairs.len() >= MOST_UNKNOWN {
                return None;
            }
        }
        let (mut below, mut equal) = (Scalar::boolean(false), Scalar::boolean(true));
        for [x, y] in pairs.into_iter().rev() {
            let pool = &mut self.pool;
            let same = value::cmp(pool, CmpOp::Eq, x, y);
            let less = value::cmp(pool, CmpOp::ULt, x, y);
            let end = value::cmp(pool, CmpOp::Eq, x, nul);
            let more = value::not(pool, end);
            let later = value::and(pool, more, below);
            below = value::ite(pool, same, later, less);
            let rest = value::or(pool, end, equal);
            equal = value::and(pool, same, rest);
        }
        Some(match sign {
            0 => equal,
            -1 => below,
            _ => {
                let at_most = value::or(&mut self.pool, below, equal);
                value::not(&mut self.pool, at_most)
            }
        })
    }

    /// A truth value as it was in the recorded run.
    fn decided(&mut self, scalar: Scalar) -> Option<bool> {
        match scalar.as_expr() {
            None => scalar.as_const().map(|value| value != 0),
            Some(id) => self.recorded_value(id).map(|value| value != 0),
        }
    }

    /// Searches: the bytes before the hit differ from the one looked for, the hit equals it.
    fn find(&mut self, t: usize, name: &str, call: &ExternalCall<'r>, result: Option<u64>) {
        let argument = |i: usize| call.arguments.get(i).and_then(Value::scalar);
        let operand = call.operands.first().copied();
        let (Some(result), Some(start)) = (result, self.recorded_address(t, argument(0))) else {
            return;
        };
        let Some(wanted) = argument(1) else { return };
        let wanted = value::resize(&mut self.pool, wanted, 8, false);
        let whole = match name {
            "memchr" => self.length(t, argument(2)),
            _ => self.scan(t, argument(0), LONGEST, operand).map(|length| length + 1),
        };
        let hit = (result != 0).then(|| result.wrapping_sub(start));
        let length = match (name, hit, whole) {
            ("strchr" | "memchr", Some(hit), _) => hit.min(LONGEST) + 1,
            (_, _, Some(whole)) => whole,
            _ => {
                let detail = "length is not known".to_owned();
                self.gap(t, GapKind::External(name.to_owned()), detail);
                return;
            }
        };
        let bytes = self.string_bytes(t, argument(0), length, operand);
        for (i, &byte) in bytes.iter().enumerate() {
            let Some(byte) = self.byte_value(byte) else { continue };
            let at = i as u64;
            let equal = value::cmp(&mut self.pool, CmpOp::Eq, byte, wanted);
            if hit == Some(at) {
                self.assume(t, equal);
            } else if name != "strrchr" || hit.is_none_or(|hit| at > hit) {
                let differs = value::not(&mut self.pool, equal);
                self.assume(t, differs);
            }
            if name != "memchr" && at + 1 < length && hit != Some(at) {
                let zero = value::cmp(&mut self.pool, CmpOp::Eq, byte, Scalar::constant(8, 0));
                let more = value::not(&mut self.pool, zero);
                self.assume(t, more);
            }
        }
    }

    /// Where `realloc`'s old object is, before it is freed: internal address and size.
    pub fn reallocated(&mut self, t: usize, name: &str, arguments: &[Value]) -> Option<(u64, u64)> {
        if !is_realloc(name) {
            return None;
        }
        let pointer = arguments.first().and_then(Value::scalar)?;
        let recorded = self.concretise(t, pointer, PathConditionKind::Address)?;
        let internal = self.resolve(t, recorded).filter(|_| recorded != 0)?;
        let object = self.learned.heap.at_internal(internal)?;
        Some((internal, self.learned.heap.objects[object].size))
    }

    /// `realloc` copies the old contents.
    fn reallocate(&mut self, t: usize, call: &ExternalCall<'r>, result: Option<u64>) {
        let (Some((old, old_size)), Some(index)) = (call.reallocated, call.allocated) else {
            return;
        };
        if result == Some(0) {
            return;
        }
        let object = &self.learned.heap.objects[index];
        let (new, length) = (object.base, old_size.min(object.size));
        if length == 0 || new == old {
            return;
        }
        if length > LONGEST {
            self.gap(t, GapKind::External(call.name.to_owned()), format!("{length} bytes"));
            return;
        }
        let bytes = self.read(t, Place::new(old, length, None), Grain::Cell);
        self.write(t, Place::new(new, length, None), &bytes, Grain::Cell);
    }
}

/// Does the function give an object in place of its first argument, with the same contents?
fn is_realloc(name: &str) -> bool {
    matches!(
        name,
        "realloc"
            | "reallocarray"
            | "g_realloc"
            | "g_realloc_n"
            | "g_try_realloc"
            | "g_try_realloc_n"
    )
}

/// The function behind a fortified one: `__memcpy_chk` is `memcpy`.
pub(crate) fn plain_name(name: &str) -> &str {
    let Some(plain) = name.strip_prefix("__") else { return name };
    plain.strip_suffix("_chk").unwrap_or(plain)
}

/// Does the executor compute what the function does to memory? Then what the log says of it is
/// not applied.
pub(crate) fn is_computed(name: &str) -> bool {
    effect(name).is_some_and(|described| described.kind == Kind::Computed)
}
