//! Readers of a thread's two streams.

use crate::error::TraceError;
use crate::layout::{RuntimeEvent, SHORT_PAYLOAD, SYNC_PAYLOAD, SyncCoder, tag, token};
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

/// How many entries of a path stream are decoded at once.
const PIECE: usize = 1 << 14;

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
    /// The same, where instrumented code had named the function ([`token::CALLED`]).
    Called {
        /// Its module.
        module: ModuleId,
        /// Its index among the module's functions in IR order.
        function: u32,
    },
    /// A call out of the module returned.
    Return,
    /// The same, of an instrumented function ([`token::CAME_BACK`]).
    CameBack,
    /// Branches went these ways: bits behind a leading one ([`token`]).
    Choices(u32),
    /// The choices before are not complete, and come once more ([`token::OPEN`]).
    Open,
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
    /// Entries passed.
    entries: u64,
    /// Empty tokens passed since the last entry.
    empty: u32,
}

impl PathReader {
    pub(crate) fn new(source: Source, functions: Arc<[(u32, u32, ModuleId)]>) -> Self {
        Self { buffer: Buffer::new(source), functions, entries: 0, empty: 0 }
    }

    /// The next entry, or none at the end of the stream.
    ///
    /// # Errors
    ///
    /// When the stream is damaged or an entry makes no sense.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<PathEntry>, TraceError> {
        self.take(|reader, word| reader.decode(word))
    }

    /// The next entry without passing it.
    ///
    /// # Errors
    ///
    /// As for [`Self::next`].
    pub fn peek(&mut self) -> Result<Option<PathEntry>, TraceError> {
        match self.ahead()? {
            None => Ok(None),
            Some((word, _)) => self.decode(word).map(Some),
        }
    }

    /// The next entry as [`tag`] describes it, or none at the end of the stream.
    ///
    /// # Errors
    ///
    /// When the stream is damaged.
    pub fn next_raw(&mut self) -> Result<Option<u32>, TraceError> {
        self.take(|_, word| Ok(word))
    }

    fn take<T>(
        &mut self,
        decode: impl FnOnce(&Self, u32) -> Result<T, TraceError>,
    ) -> Result<Option<T>, TraceError> {
        let Some((word, length)) = self.ahead()? else { return Ok(None) };
        let entry = decode(self, word)?;
        self.buffer.at += length;
        self.entries += 1;
        self.empty = 0;
        Ok(Some(entry))
    }

    /// Appends the next entries as [`tag`] describes them, some thousands, those within the stream's
    /// first `bytes` bytes; false when there are none.
    ///
    /// # Errors
    ///
    /// When the stream is damaged.
    pub fn next_piece(&mut self, bytes: u64, to: &mut Vec<u32>) -> Result<bool, TraceError> {
        let before = to.len();
        while to.len() - before < PIECE && self.offset() < bytes {
            let Some(entry) = self.next_raw()? else { break };
            // Behind empty tokens there may be one that begins beyond the end.
            if self.offset() <= bytes {
                to.push(entry);
            }
        }
        Ok(to.len() > before)
    }

    /// How many entries were passed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.entries
    }

    /// How many bytes of the stream were passed.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.buffer.position()
    }

    /// The next entry and how many bytes it takes. Empty tokens are passed. A token whose number is
    /// not whole was being written when the process was killed.
    fn ahead(&mut self) -> Result<Option<(u32, usize)>, TraceError> {
        loop {
            let Some([first]) = self.buffer.array()? else { return Ok(None) };
            let short = match first {
                token::EMPTY => {
                    self.buffer.at += 1;
                    self.empty = self.empty.saturating_add(1);
                    continue;
                }
                token::ENTER | token::CALLED | token::BLOCK => {
                    let Some([_, a, b, c, d]) = self.buffer.array()? else { return Ok(None) };
                    let number = u32::from_le_bytes([a, b, c, d]);
                    let (kind, number, end) = match first {
                        token::ENTER => (tag::ENTER, number, tag::CALLED),
                        token::CALLED => (tag::ENTER, number ^ tag::CALLED, 2 * tag::CALLED),
                        _ => (tag::BLOCK, number.wrapping_add(tag::BLOCK_BIAS), 1 << tag::SHIFT),
                    };
                    let begin = if first == token::CALLED { tag::CALLED } else { 0 };
                    if !(begin..end).contains(&number) {
                        return Err(self.meaningless(first));
                    }
                    return Ok(Some((kind << tag::SHIFT | number, 5)));
                }
                token::RETURN => tag::RETURN << tag::SHIFT | 1,
                token::OPEN => tag::RETURN << tag::SHIFT | tag::OPEN,
                token::CAME_BACK => tag::RETURN << tag::SHIFT | tag::CAME_BACK,
                short if short > token::EMPTY && short < token::FIRST => {
                    tag::RETURN << tag::SHIFT | tag::CHOICES | u32::from(first)
                }
                token::LONG.. => {
                    let Some(bytes) = self.buffer.array()? else { return Ok(None) };
                    let Some((choices, length)) = token::choices(bytes) else {
                        return Err(self.meaningless(first));
                    };
                    return Ok(Some((tag::RETURN << tag::SHIFT | tag::CHOICES | choices, length)));
                }
                event if event > token::RUNTIME => {
                    let event = u32::from(event - token::RUNTIME);
                    let empty = match event == RuntimeEvent::SignalBegin as u32 {
                        true => self.empty.min(tag::MOST_EMPTY) << tag::EMPTY_SHIFT,
                        false => 0,
                    };
                    tag::RUNTIME << tag::SHIFT | empty | event
                }
                _ => return Err(self.meaningless(first)),
            };
            return Ok(Some((short, 1)));
        }
    }

    fn meaningless(&self, token: u8) -> TraceError {
        let what = format!("no meaning for the path token {token:#04x}");
        TraceError::malformed(self.buffer.source.path(), self.buffer.position(), what)
    }

    fn decode(&self, word: u32) -> Result<PathEntry, TraceError> {
        let payload = word & tag::PAYLOAD;
        let entry = match word >> tag::SHIFT {
            tag::BLOCK => payload.checked_sub(tag::BLOCK_BIAS).map(PathEntry::Block),
            tag::ENTER => self.enter(payload & !tag::CALLED).map(|(module, function)| {
                if payload & tag::CALLED == 0 {
                    PathEntry::Enter { module, function }
                } else {
                    PathEntry::Called { module, function }
                }
            }),
            tag::RETURN if payload & tag::CHOICES != 0 => {
                Some(PathEntry::Choices(payload & (tag::CHOICES - 1)))
            }
            tag::RETURN if payload == tag::OPEN => Some(PathEntry::Open),
            tag::RETURN if payload == tag::CAME_BACK => Some(PathEntry::CameBack),
            tag::RETURN => (payload == 1).then_some(PathEntry::Return),
            _ => RuntimeEvent::from_code(payload & ((1 << tag::EMPTY_SHIFT) - 1))
                .map(PathEntry::Runtime),
        };
        entry.ok_or_else(|| {
            let what = format!("no meaning for the path entry {word:#010x}");
            TraceError::malformed(self.buffer.source.path(), self.buffer.position(), what)
        })
    }

    fn enter(&self, number: u32) -> Option<(ModuleId, u32)> {
        let after = self.functions.partition_point(|(base, ..)| *base <= number);
        let &(base, count, module) = self.functions.get(after.checked_sub(1)?)?;
        let function = number - base;
        (function < count).then_some((module, function))
    }
}

/// The same path in a form that does not depend on how the choices were spread over tokens: every
/// choice becomes an entry of its own ([`tag::CHOICES`] with 2 or 3), once. Left out is what tells of time
/// alone: readings of the clock, and how often rounds were repeated. For comparing paths.
#[must_use]
pub fn outcomes(entries: &[u32]) -> Vec<u32> {
    const CHOICES: u32 = tag::RETURN << tag::SHIFT | tag::CHOICES;
    const OPEN: u32 = tag::RETURN << tag::SHIFT | tag::OPEN;
    const READING: u32 = tag::RUNTIME << tag::SHIFT | RuntimeEvent::Reading as u32;
    const CALL_READING: u32 = tag::RUNTIME << tag::SHIFT | RuntimeEvent::CallReading as u32;
    const REPEAT: u32 = tag::RUNTIME << tag::SHIFT | RuntimeEvent::Repeat as u32;
    let mut outcomes = Vec::new();
    for &entry in entries {
        let choices = entry ^ CHOICES;
        if matches!(entry, OPEN | READING | CALL_READING | REPEAT) {
            continue;
        }
        if choices >= tag::CHOICES || choices == 0 {
            outcomes.push(entry);
            continue;
        }
        let bits = choices.ilog2();
        outcomes.extend((0..bits).rev().map(|bit| CHOICES | 2 | choices >> bit & 1));
    }
    outcomes
}

/// Reads a values stream.
#[derive(Debug)]
pub struct ValueReader {
    buffer: Buffer,
    sync: SyncCoder,
}

impl ValueReader {
    pub(crate) fn new(source: Source) -> Self {
        Self { buffer: Buffer::new(source), sync: SyncCoder::default() }
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

    /// Address and time stamp of a synchronisation event in the shortest form; none when the stream ends
    /// before its end.
    ///
    /// # Errors
    ///
    /// When the stream is damaged.
    pub fn short_sync(&mut self) -> Result<Option<(u64, u64)>, TraceError> {
        self.buffer.ready(SHORT_PAYLOAD)?;
        let bytes = self.buffer.bytes.get(self.buffer.at..).unwrap_or(&[]);
        let Some((address, time, length)) = self.sync.read_short(bytes) else { return Ok(None) };
        self.buffer.at += length;
        Ok(Some((address, time)))
    }

    /// The payload of a synchronisation event; none when the stream ends before its end.
    ///
    /// # Errors
    ///
    /// When the stream is damaged.
    pub fn sync(&mut self) -> Result<Option<[u64; 5]>, TraceError> {
        self.buffer.ready(SYNC_PAYLOAD)?;
        let bytes = self.buffer.bytes.get(self.buffer.at..).unwrap_or(&[]);
        let Some((payload, length)) = self.sync.read(bytes) else { return Ok(None) };
        self.buffer.at += length;
        Ok(Some(payload))
    }

    /// How many bytes were passed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.buffer.position()
    }

    /// Appends the next bytes, about a megabyte; false at the end of the stream.
    ///
    /// # Errors
    ///
    /// When the stream is damaged.
    pub fn next_piece(&mut self, to: &mut Vec<u8>) -> Result<bool, TraceError> {
        if !self.buffer.ready(1)? {
            return Ok(false);
        }
        let rest = self.buffer.bytes.get(self.buffer.at..).unwrap_or(&[]);
        to.extend_from_slice(rest);
        self.buffer.at = self.buffer.bytes.len();
        Ok(true)
    }
}
