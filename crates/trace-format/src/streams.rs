//! Readers of a thread's two streams.

use crate::error::TraceError;
use crate::layout::{RuntimeEvent, tag};
use crate::source::Source;
use std::fmt;
use std::sync::Arc;

/// A module of the trace, by its place in [`crate::Trace::modules`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

impl fmt::Display for ModuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

/// An entry of the path stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEntry {
    /// A recorded block of the current function was entered; its index in the function.
    Block(u32),
    /// A function with an entry record was entered.
    Enter {
        /// Its module.
        module: ModuleId,
        /// Its index among the module's functions in IR order.
        function: u32,
    },
    /// A call out of the module returned.
    Return,
    /// The runtime saw something; the payload is in the values stream.
    Runtime(RuntimeEvent),
}

/// A stream's bytes with a cursor.
#[derive(Debug)]
struct Buffer {
    source: Source,
    bytes: Vec<u8>,
    at: usize,
    /// Bytes of the stream before `bytes`.
    before: u64,
}

impl Buffer {
    fn new(source: Source) -> Self {
        Self { source, bytes: Vec::new(), at: 0, before: 0 }
    }

    /// Bytes of the stream before the cursor.
    fn position(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Has `n` bytes at the cursor ready; false when the stream ends before.
    fn ready(&mut self, n: usize) -> Result<bool, TraceError> {
        while self.bytes.len() - self.at < n {
            self.before += self.at as u64;
            self.bytes.drain(..self.at);
            self.at = 0;
            if !self.source.more(&mut self.bytes)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn array<const N: usize>(&mut self) -> Result<Option<[u8; N]>, TraceError> {
        if !self.ready(N)? {
            return Ok(None);
        }
        Ok(self.bytes.get(self.at..self.at + N).and_then(|part| part.try_into().ok()))
    }
}

/// Reads a path stream entry by entry.
#[derive(Debug)]
pub struct PathReader {
    buffer: Buffer,
    /// The modules' function ranges: base, count, module; sorted by base.
    functions: Arc<[(u32, u32, ModuleId)]>,
}

impl PathReader {
    pub(crate) fn new(source: Source, functions: Arc<[(u32, u32, ModuleId)]>) -> Self {
        Self { buffer: Buffer::new(source), functions }
    }

    /// The next entry, or none at the end of the stream.
    ///
    /// # Errors
    ///
    /// When the stream is damaged or an entry makes no sense.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<PathEntry>, TraceError> {
        let entry = self.peek()?;
        if entry.is_some() {
            self.buffer.at += 4;
        }
        Ok(entry)
    }

    /// The next entry without passing it.
    ///
    /// # Errors
    ///
    /// As for [`Self::next`].
    pub fn peek(&mut self) -> Result<Option<PathEntry>, TraceError> {
        match self.buffer.array()? {
            None => Ok(None),
            Some(word) => self.decode(u32::from_le_bytes(word)).map(Some),
        }
    }

    /// The next entry as it is written, or none at the end of the stream.
    ///
    /// # Errors
    ///
    /// When the stream is damaged.
    pub fn next_raw(&mut self) -> Result<Option<u32>, TraceError> {
        let word = self.buffer.array()?.map(u32::from_le_bytes);
        if word.is_some() {
            self.buffer.at += 4;
        }
        Ok(word)
    }

    /// How many entries were passed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.buffer.position() / 4
    }

    fn decode(&self, word: u32) -> Result<PathEntry, TraceError> {
        let payload = word & tag::PAYLOAD;
        let entry = match word >> tag::SHIFT {
            tag::BLOCK => payload.checked_sub(tag::BLOCK_BIAS).map(PathEntry::Block),
            tag::ENTER => self.enter(payload),
            tag::RETURN => (payload == 1).then_some(PathEntry::Return),
            _ => RuntimeEvent::from_code(payload).map(PathEntry::Runtime),
        };
        entry.ok_or_else(|| {
            let what = format!("no meaning for the path entry {word:#010x}");
            TraceError::malformed(self.buffer.source.path(), self.buffer.position(), what)
        })
    }

    fn enter(&self, number: u32) -> Option<PathEntry> {
        let after = self.functions.partition_point(|(base, ..)| *base <= number);
        let &(base, count, module) = self.functions.get(after.checked_sub(1)?)?;
        let function = number - base;
        (function < count).then_some(PathEntry::Enter { module, function })
    }
}

/// Reads a values stream word by word.
#[derive(Debug)]
pub struct ValueReader {
    buffer: Buffer,
}

impl ValueReader {
    pub(crate) fn new(source: Source) -> Self {
        Self { buffer: Buffer::new(source) }
    }

    /// The next word, or none at the end of the stream.
    ///
    /// # Errors
    ///
    /// When the stream is damaged.
    pub fn word(&mut self) -> Result<Option<u64>, TraceError> {
        let word = self.buffer.array()?.map(u64::from_le_bytes);
        if word.is_some() {
            self.buffer.at += 8;
        }
        Ok(word)
    }

    /// The next `n` bytes, which take whole words; none when the stream ends before.
    ///
    /// # Errors
    ///
    /// When the stream is damaged.
    pub fn bytes(&mut self, n: usize) -> Result<Option<Vec<u8>>, TraceError> {
        let Some(padded) = n.checked_next_multiple_of(8) else { return Ok(None) };
        if !self.buffer.ready(padded)? {
            return Ok(None);
        }
        let at = self.buffer.at;
        let bytes = self.buffer.bytes.get(at..at + n).map(<[u8]>::to_vec);
        self.buffer.at += padded;
        Ok(bytes)
    }

    /// How many words were passed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.buffer.position() / 8
    }
}
