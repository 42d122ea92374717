//! Appending to `std::string`: the log has the string's own words, and what lies in its buffer is
//! computed. Logging the buffer each time would make the log as long as the square of the text.

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::memory::{Bytes, MemoryByte};
use crate::report::GapKind;
use crate::thread::ExternalCall;
use crate::value::{self, Scalar, Value};
use ir::effects::{Kind, effect};

/// Offset of the length in a string.
const LENGTH: u64 = 8;
/// Longer texts are not followed.
const LONGEST: u64 = 1 << 26;

/// A string before something is appended to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    /// Internal address of its buffer.
    buffer: u64,
    length: u64,
}

impl<'r> Engine<'r> {
    /// What a string holds that the call is going to append to.
    pub fn text_before(&mut self, t: usize, name: &str, arguments: &[Value]) -> Option<Text> {
        effect(name).filter(|described| described.kind == Kind::Completed)?;
        let string = arguments.first().and_then(Value::scalar).and_then(Scalar::as_const)?;
        self.text_at(t, string as u64)
    }

    fn text_at(&mut self, t: usize, string: u64) -> Option<Text> {
        let buffer = self.word(t, string)?;
        let length = self.word(t, string.checked_add(LENGTH)?)?;
        let buffer = self.resolve(t, buffer)?;
        (length <= LONGEST).then_some(Text { buffer, length })
    }

    /// Does what the call appended.
    pub fn append_text(&mut self, t: usize, call: &ExternalCall<'r>) {
        if self.try_append(t, call).is_none() {
            self.gap(t, GapKind::External(call.name.to_owned()), "string is not known".to_owned());
        }
    }

    fn try_append(&mut self, t: usize, call: &ExternalCall<'r>) -> Option<()> {
        let argument = |i: usize| call.arguments.get(i).and_then(Value::scalar);
        let before = call.text?;
        let after = self.text_at(t, argument(0)?.as_const()? as u64)?;
        let added = after.length.checked_sub(before.length)?;
        if after.buffer != before.buffer && before.length > 0 {
            let place = Place::new(before.buffer, before.length, None);
            let bytes = self.read(t, place, Grain::Cell);
            self.write(t, Place::new(after.buffer, before.length, None), &bytes, Grain::Cell);
        }
        let operand = call.operands.get(1).copied();
        let mut bytes: Bytes = if call.name.ends_with("Ec") {
            let byte = value::resize(&mut self.pool, argument(1)?, 8, false);
            let byte = match byte.as_const() {
                Some(value) => MemoryByte::Const(value as u8),
                None => MemoryByte::Part(byte.to_expr(&mut self.pool), 0),
            };
            (0..added).map(|_| byte).collect()
        } else if added == 0 {
            Bytes::new()
        } else {
            let source = argument(1)?.as_const()? as u64;
            let start = match call.name.ends_with("RKS4_") {
                true => self.text_at(t, source)?.buffer,
                false => self.resolve(t, source)?,
            };
            self.read(t, Place::new(start, added, operand), Grain::Cell)
        };
        bytes.push(MemoryByte::Const(0));
        let place = Place::new(after.buffer + before.length, bytes.len() as u64, None);
        self.write(t, place, &bytes, Grain::Cell);
        Some(())
    }
}
