//! Members of `std::string` that change a part of the text: the log has the string's own words, and
//! what lies in its buffer is computed. Logging the buffer each time would make the log as long as the
//! square of the text.
//!
//! All of them are one edit: so many bytes at a place are taken out, and others come there. How many
//! come is known from the length afterwards.
//!
//! What a string held that other threads change is not known from the walk. An edit reads the length then and writes it,
//! one after the other, as the library does. Where the arguments say how many bytes go and come, what the string was
//! follows from what it is, and from the buffers that the call took and gave back.

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::externals::is_computed;
use crate::memory::{Bytes, MemoryByte, compose};
use crate::report::GapKind;
use crate::thread::ExternalCall;
use crate::value::{self, Scalar, Value};
use ir::effects::{Kind, effect};
use model::{BinOp, CmpOp};

/// Offset of the length in a string that has a buffer elsewhere.
const LENGTH: u64 = 8;
/// Longer texts are not followed.
const LONGEST: u64 = 1 << 26;
/// No text that lies in the string itself begins so far in.
const OWN_END: u64 = 32;

/// Whose strings they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Library {
    /// A pointer, the length, and the capacity or a short text.
    Gnu,
    /// The capacity, the length and a pointer, or the length and a short text; the lowest bit says
    /// which.
    Llvm,
}

/// Of the libraries: how symbols of the class begin, and what an iterator is called as a parameter.
const LIBRARIES: [(Library, &str, [&str; 2]); 2] = [
    (
        Library::Gnu,
        "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE",
        ["N9__gnu_cxx17__normal_iteratorIPKcS4_EE", "N9__gnu_cxx17__normal_iteratorIPcS4_EE"],
    ),
    (
        Library::Llvm,
        "_ZNSt3__112basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEE",
        ["NS_11__wrap_iterIPKcEE", "NS_11__wrap_iterIPcEE"],
    ),
];

/// A string before it is edited.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// Address of its buffer, and the internal one.
    address: u64,
    buffer: u64,
    length: u64,
    /// What it held, when that lay in the string itself, where other words may come.
    own: Option<Bytes>,
}

/// What is known of a string before it is edited.
#[derive(Clone, Debug)]
pub(crate) enum Before {
    Known(Text),
    /// Other threads change it.
    Grows(Growth),
}

/// By how much a string grows of which it is not known what it held.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    /// The length that was read.
    length: Scalar,
    /// So many bytes come.
    count: u64,
    /// So many go.
    removed: u64,
    /// The buffer that was given back: its address, and the internal one.
    freed: Option<(u64, u64)>,
}

impl Before {
    /// The call gives a buffer back.
    pub fn note_freed(&mut self, address: u64, internal: u64) {
        if let Self::Grows(growth) = self {
            growth.freed = Some((address, internal));
        }
    }
}

/// Where an edit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    End,
    /// The number in an argument; no further than the end.
    Number(usize),
    /// Where the iterator in an argument points.
    Iterator(usize),
}

/// How much is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removed {
    Nothing,
    Last,
    One,
    Rest,
    /// The number in an argument; no more than there is.
    Number(usize),
    /// Up to where the iterator in an argument points.
    Iterator(usize),
}

/// What comes there; the numbers are arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    Nothing,
    Zeros,
    Fill(usize),
    Bytes(usize),
    String(usize),
    /// A part of a string, from the place in the next argument.
    Part(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edit {
    at: At,
    removed: Removed,
    added: Added,
}

/// What a member of `std::string` does, by its symbol, and the parameters that say what comes, as the symbol has them.
fn edit(symbol: &str) -> Option<(Library, Edit, &str)> {
    let (library, name, iterators) = LIBRARIES.iter().find_map(|(library, class, iterators)| {
        Some((*library, symbol.strip_prefix(class)?, iterators))
    })?;
    let (member, parameters) = match name.strip_prefix("pLE") {
        Some(parameters) => ("append", parameters),
        None => {
            let digits = name.find(|c: char| !c.is_ascii_digit())?;
            let end = digits + name[..digits].parse::<usize>().ok()?;
            (name.get(digits..end)?, name.get(end..)?.strip_prefix('E')?)
        }
    };
    let iterator = iterators.iter().find_map(|iterator| parameters.strip_prefix(iterator));
    let removing = ["erase", "replace"].contains(&member);
    let second = |rest: &'static str| {
        iterator.filter(|_| removing).and_then(|parameters| parameters.strip_prefix(rest))
    };
    let (at, removed, next, rest) = match member {
        "append" | "_M_append" | "push_back" => (At::End, Removed::Nothing, 1, parameters),
        "reserve" | "shrink_to_fit" => (At::End, Removed::Nothing, 1, ""),
        "pop_back" => (At::End, Removed::Last, 1, ""),
        "resize" => (At::Number(1), Removed::Rest, 1, parameters),
        "_M_replace" | "_M_replace_aux" | "_M_erase" | "insert" | "erase" | "replace" => {
            if let Some(rest) = second("S9_").or_else(|| second("S8_")) {
                (At::Iterator(1), Removed::Iterator(2), 3, rest)
            } else if let Some(rest) = iterator {
                let removed = if member == "erase" { Removed::One } else { Removed::Nothing };
                (At::Iterator(1), removed, 2, rest)
            } else if member == "insert" {
                (At::Number(1), Removed::Nothing, 2, parameters.strip_prefix('m')?)
            } else {
                (At::Number(1), Removed::Number(2), 3, parameters.strip_prefix("mm")?)
            }
        }
        _ => return None,
    };
    let added = match rest {
        "" | "v" => Added::Nothing,
        "m" if member == "resize" => Added::Zeros,
        "c" => Added::Fill(next),
        "mc" => Added::Fill(next + 1),
        "RKS4_" | "RKS5_" => Added::String(next),
        "RKS4_mm" | "RKS5_mm" => Added::Part(next),
        // Texts, and what begins at a pointer or an iterator.
        _ if rest.starts_with(['P', 'S', 'N']) => Added::Bytes(next),
        _ => return None,
    };
    Some((library, Edit { at, removed, added }, rest))
}

fn is_known(byte: &MemoryByte) -> bool {
    matches!(byte, MemoryByte::Const(_) | MemoryByte::Part(..))
}

/// Does a function of this symbol ask for a string's length, or whether it has one?
pub(crate) fn is_length(symbol: &str) -> bool {
    let (_, class, _) = LIBRARIES[0];
    let member = symbol.strip_prefix("_ZNK").zip(class.strip_prefix("_ZN"));
    let member = member.and_then(|(symbol, class)| symbol.strip_prefix(class));
    matches!(member, Some("4sizeEv" | "6lengthEv" | "5emptyEv"))
}

impl<'r> Engine<'r> {
    /// What a string holds that the call is going to edit.
    pub fn text_before(&mut self, t: usize, name: &str, arguments: &[Value]) -> Option<Before> {
        effect(name).filter(|described| described.kind == Kind::Completed)?;
        let (library, edit, rest) = edit(name)?;
        let string = arguments.first().and_then(Value::scalar).and_then(Scalar::as_const)? as u64;
        self.survey_length(t, string, false);
        let Some(mut text) = self.text_at(t, library, string) else {
            let growth = self.growth(t, (library, string), (edit, rest), arguments)?;
            return Some(Before::Grows(growth));
        };
        if text.address.wrapping_sub(string) < OWN_END && text.length > 0 {
            let place = Place::new(text.buffer, text.length, None);
            text.own = Some(self.read(t, place, Grain::Cell));
        }
        Some(Before::Known(text))
    }

    /// Takes down how long a text is that a computed function has written, or read; says whether the call is one of such a
    /// function, so that what the log says of it is not applied.
    pub fn measures(&mut self, t: usize, address: u64, written: &[u8]) -> bool {
        let Some(call) = self.threads[t].external_call().filter(|call| is_computed(call.name))
        else {
            return false;
        };
        let end = written.iter().position(|byte| *byte == 0);
        call.measured.extend(end.map(|end| (address, end as u64)));
        true
    }

    /// Of the length of a text as the walk has it, and as the log has it, the one that holds: which bytes are another thread's is
    /// what the survey finds out, and until then none of them is known.
    pub fn agreed(&self, walked: Option<u64>, logged: Option<u64>) -> Option<u64> {
        if self.symbolic() { walked.or(logged) } else { walked.max(logged) }
    }

    /// How long the text was, by the log, that an argument of the call led to.
    pub fn measured(&mut self, call: &ExternalCall<'r>, argument: usize) -> Option<u64> {
        let scalar = call.arguments.get(argument).and_then(Value::scalar)?;
        let address = self.in_recording(scalar)?;
        let (_, length) = call.measured.iter().find(|(at, _)| *at == address)?;
        Some(*length)
    }

    /// The length is looked at and written as a whole, whichever of its bytes change.
    fn survey_length(&mut self, t: usize, string: u64, write: bool) {
        if !self.symbolic()
            && let Some(internal) = string.checked_add(LENGTH).and_then(|at| self.resolve(t, at))
        {
            self.survey(t, Place::new(internal, LENGTH, None), write);
        }
    }

    /// How a string grows that other threads change, with the event of the look at its length.
    fn growth(
        &mut self,
        t: usize,
        (library, string): (Library, u64),
        (edit, rest): (Edit, &str),
        arguments: &[Value],
    ) -> Option<Growth> {
        if library != Library::Gnu {
            return None;
        }
        let argument = |engine: &mut Self, i: usize| {
            engine.in_recording(arguments.get(i).and_then(Value::scalar)?)
        };
        let removed = match edit.removed {
            Removed::Nothing => 0,
            Removed::Last => 1,
            // More than there is means the rest, whatever that is.
            Removed::Number(i) => argument(self, i).filter(|&removed| removed < LONGEST)?,
            Removed::One | Removed::Rest | Removed::Iterator(_) => return None,
        };
        let count = match edit.added {
            Added::Nothing => 0,
            Added::Fill(_) if rest == "c" => 1,
            Added::Fill(i) => argument(self, i.checked_sub(1)?)?,
            Added::Bytes(i) if rest == "PKc" => {
                let start = argument(self, i)?;
                let mut count = 0;
                while count < LONGEST && self.peek(t, start.checked_add(count)?, 1)? != 0 {
                    count += 1;
                }
                count
            }
            Added::Bytes(i) if rest.starts_with("PKcm") || rest.starts_with("St16init") => {
                argument(self, i + 1)?
            }
            Added::String(i) => {
                let other = argument(self, i)?;
                self.text_at(t, library, other)?.length
            }
            _ => return None,
        };
        let place = Place::new(self.resolve(t, string.checked_add(LENGTH)?)?, LENGTH, None);
        let bytes = self.read(t, place, Grain::Access);
        self.pending_reads.clear();
        if !bytes.iter().all(is_known) {
            return None;
        }
        let length = compose(&mut self.pool, &bytes);
        Some(Growth { length, count, removed, freed: None })
    }

    /// What a call is logged to have written, with the length of a string that grows as the sum that it is.
    pub fn grown(&mut self, t: usize, address: u64, mut bytes: Bytes) -> Bytes {
        let Some(call) = self.threads[t].external_call() else { return bytes };
        let string = call.arguments.first().and_then(Value::scalar).and_then(Scalar::as_const);
        if string != Some(address.into()) {
            return bytes;
        }
        let (length, more) = match &call.text {
            Some(Before::Grows(growth)) => {
                (growth.length, growth.count.wrapping_sub(growth.removed))
            }
            Some(Before::Known(_)) => {
                self.survey_length(t, address, true);
                return bytes;
            }
            None => return bytes,
        };
        let words = LENGTH as usize..2 * LENGTH as usize;
        let Some(place) = bytes.get_mut(words) else { return bytes };
        let logged = compose(&mut self.pool, place).as_const();
        let more = Scalar::constant(64, more.into());
        let sum = value::bin(&mut self.pool, BinOp::Add, length, more).to_expr(&mut self.pool);
        for (byte, i) in place.iter_mut().zip(0..) {
            *byte = MemoryByte::Part(sum, i);
        }
        if let Some(logged) = logged {
            self.learn(sum, logged);
        }
        bytes
    }

    /// The result of a call that asks for a string's length, which other threads may change: it is what is read, and was what
    /// is logged.
    pub fn text_length(&mut self, t: usize, call: &ExternalCall<'r>, logged: Value) -> Value {
        let string = self.number_in(call, 0);
        let place = string.and_then(|string| self.resolve(t, string.checked_add(LENGTH)?));
        let (Some(place), Some(result)) = (place, logged.scalar()) else { return logged };
        let bytes = self.read(t, Place::new(place, LENGTH, None), Grain::Access);
        self.pending_reads.clear();
        let computed = bytes.iter().any(|byte| matches!(byte, MemoryByte::Part(..)));
        if !computed || !bytes.iter().all(is_known) {
            return logged;
        }
        let length = compose(&mut self.pool, &bytes);
        let value = match result.width {
            64 => length,
            _ => value::cmp(&mut self.pool, CmpOp::Eq, length, Scalar::constant(64, 0)),
        };
        if let (Some(id), Some(recorded)) = (value.as_expr(), result.as_const()) {
            self.learn(id, recorded);
        }
        value::resize(&mut self.pool, value, result.width, false).into()
    }

    /// What a string was and is that grew, by what the log says of it; `None` where what it holds stands in the log.
    fn grew(&mut self, t: usize, call: &ExternalCall<'r>, growth: &Growth) -> Option<[Text; 2]> {
        let (_, written) = call.written.as_ref()?;
        let word = |at: usize| -> Option<u64> {
            Some(u64::from_le_bytes(written.get(at..at + 8)?.try_into().ok()?))
        };
        let (address, length) = (word(0)?, word(LENGTH as usize)?);
        let buffer = self.resolve(t, address)?;
        let after = Text { address, buffer, length, own: None };
        let taken = call.allocated.and_then(|index| self.learned.heap.objects.get(index));
        let moved = taken.is_some_and(|object| object.address == address);
        let before = match growth.freed {
            Some(freed) if moved => freed,
            // It was in the string itself, where other words are now.
            None if moved => return None,
            _ => (after.address, after.buffer),
        };
        let length = after.length.checked_add(growth.removed)?.checked_sub(growth.count)?;
        let (address, buffer) = before;
        Some([Text { address, buffer, length, own: None }, after])
    }

    fn text_at(&mut self, t: usize, library: Library, string: u64) -> Option<Text> {
        let (address, length) = match library {
            Library::Gnu => (self.word(t, string)?, self.word(t, string.checked_add(LENGTH)?)?),
            Library::Llvm => {
                let first = self.peek(t, string, 1)?;
                if first & 1 == 0 {
                    (string + 1, first >> 1)
                } else {
                    let length = self.word(t, string.checked_add(LENGTH)?)?;
                    (self.word(t, string.checked_add(2 * LENGTH)?)?, length)
                }
            }
        };
        let buffer = self.resolve(t, address)?;
        (length <= LONGEST).then_some(Text { address, buffer, length, own: None })
    }

    /// Does what the call changed.
    pub fn edit_text(&mut self, t: usize, call: &ExternalCall<'r>) {
        if self.try_edit(t, call).is_none() {
            self.gap(t, GapKind::External(call.name.to_owned()), "string is not known".to_owned());
        }
    }

    fn try_edit(&mut self, t: usize, call: &ExternalCall<'r>) -> Option<()> {
        let (library, Edit { at, removed, added }, _) = edit(call.name)?;
        let string = self.number_in(call, 0)?;
        let [before, after] = match call.text.as_ref()? {
            Before::Known(before) => [before.clone(), self.text_at(t, library, string)?],
            Before::Grows(growth) => {
                // What a short text holds stands in the log.
                match self.grew(t, call, growth) {
                    Some(texts) if texts[1].address.wrapping_sub(string) >= OWN_END => texts,
                    _ => return Some(()),
                }
            }
        };
        let before = &before;
        let offset =
            |engine: &mut Self, i: usize| engine.number_in(call, i)?.checked_sub(before.address);
        let at = match at {
            At::End => before.length,
            At::Number(i) => self.number_in(call, i)?.min(before.length),
            At::Iterator(i) => offset(self, i).filter(|&at| at <= before.length)?,
        };
        let (at, removed) = match removed {
            Removed::Nothing => (at, 0),
            Removed::Last => (at.checked_sub(1)?, 1),
            Removed::One => (at, 1),
            Removed::Rest => (at, before.length - at),
            Removed::Number(i) => (at, self.number_in(call, i)?.min(before.length - at)),
            Removed::Iterator(i) => (at, offset(self, i)?.checked_sub(at)?),
        };
        let behind = before.length.checked_sub(at + removed)?;
        let count = after.length.checked_sub(at + behind)?;
        let moved = after.address != before.address;
        let mut bytes = self.added(t, call, (library, added), before, count)?;
        if moved || count != removed {
            let rest = self.held(t, before, at + removed, behind);
            bytes.extend_from_slice(&rest);
            bytes.push(MemoryByte::Const(0));
        }
        if moved && at > 0 {
            let kept = self.held(t, before, 0, at);
            self.write(t, Place::new(after.buffer, at, None), &kept, Grain::Cell);
        }
        if after.address.wrapping_sub(string) < OWN_END {
            // What the library had in its own memory stands in the log, where a short text is a part of the string.
            let known = self.memory.read(after.buffer + at, bytes.len() as u64);
            for (byte, known) in bytes.iter_mut().zip(known) {
                if !is_known(byte) {
                    *byte = known;
                }
            }
        }
        if !bytes.is_empty() {
            let place = Place::new(after.buffer + at, bytes.len() as u64, None);
            self.write(t, place, &bytes, Grain::Cell);
        }
        Some(())
    }

    /// The bytes that an edit brings.
    fn added(
        &mut self,
        t: usize,
        call: &ExternalCall<'r>,
        (library, added): (Library, Added),
        before: &Text,
        count: u64,
    ) -> Option<Bytes> {
        let repeated = |byte: MemoryByte| (0..count).map(|_| byte).collect();
        let (source, operand) = match added {
            Added::Nothing => return (count == 0).then(Bytes::new),
            _ if count == 0 => return Some(Bytes::new()),
            Added::Zeros => return Some(repeated(MemoryByte::Const(0))),
            Added::Fill(i) => {
                let byte = call.arguments.get(i).and_then(Value::scalar)?;
                let byte = value::resize(&mut self.pool, byte, 8, false);
                let byte = match byte.as_const() {
                    Some(value) => MemoryByte::Const(value as u8),
                    None => MemoryByte::Part(byte.to_expr(&mut self.pool), 0),
                };
                return Some(repeated(byte));
            }
            Added::Bytes(i) => (self.number_in(call, i)?, call.operands.get(i).copied()),
            Added::String(i) | Added::Part(i) => {
                let from = match added {
                    Added::Part(i) => self.number_in(call, i + 1)?,
                    _ => 0,
                };
                let (string, this) = (self.number_in(call, i)?, self.number_in(call, 0)?);
                let own = string == this;
                let address =
                    if own { before.address } else { self.text_at(t, library, string)?.address };
                (address.checked_add(from)?, call.operands.get(i).copied())
            }
        };
        // A part of the string itself, as it was.
        let inside = source.checked_sub(before.address);
        if let Some(from) = inside.filter(|from| from + count <= before.length) {
            return Some(self.held(t, before, from, count));
        }
        let start = self.resolve(t, source)?;
        Some(self.read(t, Place::new(start, count, operand), Grain::Cell))
    }

    /// A part of what the string held before.
    fn held(&mut self, t: usize, before: &Text, from: u64, count: u64) -> Bytes {
        match &before.own {
            Some(own) => own.iter().copied().skip(from as usize).take(count as usize).collect(),
            None if count == 0 => Bytes::new(),
            None => self.read(t, Place::new(before.buffer + from, count, None), Grain::Cell),
        }
    }

    /// What an argument was in the recorded run.
    pub fn number_in(&mut self, call: &ExternalCall<'r>, index: usize) -> Option<u64> {
        let scalar = call.arguments.get(index).and_then(Value::scalar)?;
        self.in_recording(scalar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gnu(member: &str) -> Option<(At, Removed, Added)> {
        let symbol = format!("{}{member}", LIBRARIES[0].1);
        let (library, edit, _) = edit(&symbol)?;
        assert_eq!(library, Library::Gnu);
        Some((edit.at, edit.removed, edit.added))
    }

    #[test]
    fn members_are_edits() {
        let end = |added| Some((At::End, Removed::Nothing, added));
        assert_eq!(gnu("6appendEmc"), end(Added::Fill(2)));
        assert_eq!(gnu("pLERKS4_"), end(Added::String(1)));
        assert_eq!(gnu("6appendERKS4_mm"), end(Added::Part(1)));
        assert_eq!(gnu("6appendESt16initializer_listIcE"), end(Added::Bytes(1)));
        assert_eq!(gnu("7reserveEm"), end(Added::Nothing));
        let part = (At::Number(1), Removed::Number(2));
        assert_eq!(gnu("14_M_replace_auxEmmmc"), Some((part.0, part.1, Added::Fill(4))));
        assert_eq!(gnu("7replaceEmmPKc"), Some((part.0, part.1, Added::Bytes(3))));
        assert_eq!(gnu("5eraseEmm"), Some((part.0, part.1, Added::Nothing)));
        assert_eq!(gnu("6resizeEm"), Some((At::Number(1), Removed::Rest, Added::Zeros)));
        let iterator = "N9__gnu_cxx17__normal_iteratorIPKcS4_EE";
        let range = (At::Iterator(1), Removed::Iterator(2));
        assert_eq!(
            gnu(&format!("7replaceE{iterator}S9_mc")),
            Some((range.0, range.1, Added::Fill(4)))
        );
        assert_eq!(
            gnu(&format!("5eraseE{iterator}")),
            Some((At::Iterator(1), Removed::One, Added::Nothing))
        );
        assert_eq!(gnu("6assignEmc"), None);
        assert_eq!(gnu("6insertIN9__gnu_cxx17__normal_iteratorIPcS4_EEEEvS9_T_SA_"), None);
    }
}
