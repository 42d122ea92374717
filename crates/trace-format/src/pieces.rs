//! A thread's two streams piece by piece: a long run's are many times larger than what a reader needs
//! of them at any moment.

use crate::error::TraceError;
use crate::layout::RuntimeEvent;
use crate::manifest::Failure;
use crate::streams::PathEntry;
use crate::trace::{StreamFiles, Thread, Trace};
use std::fmt;
use std::sync::Arc;

/// Appends the next piece of a stream, of any length; false at its end.
pub type Pieces<T> = Box<dyn FnMut(&mut Vec<T>) -> Result<bool, TraceError> + Send>;

/// What one thread wrote. Every walk reads it from its beginning.
pub trait Streams: fmt::Debug + Send + Sync {
    /// The path stream's entries, as [`tag`](crate::layout::tag) describes them.
    ///
    /// # Errors
    /// When there is no such stream, or its beginning is damaged.
    fn path(&self) -> Result<Pieces<u32>, TraceError>;

    /// The values stream's bytes.
    ///
    /// # Errors
    /// As for [`Self::path`].
    fn values(&self) -> Result<Pieces<u8>, TraceError>;
}

/// Streams that are in memory as a whole.
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    /// The path stream.
    pub path: Vec<u32>,
    /// The values stream.
    pub values: Vec<u8>,
    /// The most entries or bytes of a piece; 0 for all at once.
    pub piece: usize,
}

impl Streams for InMemory {
    fn path(&self) -> Result<Pieces<u32>, TraceError> {
        Ok(pieces_of(self.path.clone(), self.piece))
    }

    fn values(&self) -> Result<Pieces<u8>, TraceError> {
        Ok(pieces_of(self.values.clone(), self.piece))
    }
}

fn pieces_of<T: Copy + Send + 'static>(whole: Vec<T>, piece: usize) -> Pieces<T> {
    let mut at = 0;
    Box::new(move |to| {
        let rest = whole.get(at..).unwrap_or_default();
        let length = if piece == 0 { rest.len() } else { piece.min(rest.len()) };
        to.extend(rest.iter().take(length));
        at += length;
        Ok(length > 0)
    })
}

/// The streams of a thread in a trace. The failing thread's end at the failure: what its exit handlers
/// did afterwards explains nothing.
#[derive(Debug)]
struct InFiles {
    files: StreamFiles,
    thread: Thread,
    /// Where the path and the values end, in bytes.
    path_end: u64,
    values_end: u64,
}

impl Trace {
    /// A thread's streams, up to the failure where it is the thread that failed.
    #[must_use]
    pub fn streams(&self, thread: &Thread) -> Arc<dyn Streams> {
        let own = |failure: &&Failure| failure.thread_serial == Some(thread.serial);
        let failure = self.failure().filter(own).filter(|failure| failure.path_bytes > 0);
        Arc::new(InFiles {
            files: self.stream_files(),
            thread: thread.clone(),
            path_end: failure.map_or(u64::MAX, |failure| failure.path_bytes),
            values_end: failure.map_or(u64::MAX, |failure| failure.value_bytes),
        })
    }
}

/// Bytes of the words of a `SignalBegin`, and of the reading of the clock behind it.
const SIGNAL_BYTES: u64 = 48;
const READING_BYTES: usize = 8;

impl Trace {
    /// When the handler was called that the program has for the signal that it failed of, by the processor's clock: where the
    /// failing thread's log goes on behind the failure with that.
    ///
    /// # Errors
    ///
    /// When the thread's files are missing or damaged.
    pub fn handled(&self) -> Result<Option<u64>, TraceError> {
        let Some(failure) = self.failure().filter(|failure| failure.path_bytes > 0) else {
            return Ok(None);
        };
        let own = |thread: &&Thread| Some(thread.serial) == failure.thread_serial;
        let thread = self.threads().iter().find(own);
        let Some(thread) = thread.filter(|thread| thread.path_bytes > failure.path_bytes) else {
            return Ok(None);
        };
        let mut path = self.path(thread)?;
        let mut passed = Vec::new();
        while path.next_piece(failure.path_bytes, &mut passed)? {
            passed.clear();
        }
        let first = loop {
            match path.next()? {
                // A region's choices so far.
                Some(PathEntry::Choices(_) | PathEntry::Open) => {}
                other => break other,
            }
        };
        let wanted = [RuntimeEvent::SignalBegin, RuntimeEvent::CallReading].map(PathEntry::Runtime);
        if [first, path.next()?] != wanted.map(Some) {
            return Ok(None);
        }
        let mut values = self.values(thread)?;
        let mut left = failure.value_bytes.saturating_add(SIGNAL_BYTES);
        let mut bytes = Vec::new();
        loop {
            let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            bytes.drain(..skipped);
            left -= skipped as u64;
            if left == 0 && bytes.len() >= READING_BYTES {
                let word = bytes.first_chunk::<READING_BYTES>();
                return Ok(word.map(|word| u64::from_le_bytes(*word)));
            }
            if !values.next_piece(&mut bytes)? {
                return Ok(None);
            }
        }
    }
}

impl Streams for InFiles {
    fn path(&self) -> Result<Pieces<u32>, TraceError> {
        let mut reader = self.files.path(&self.thread)?;
        let end = self.path_end;
        Ok(Box::new(move |to| reader.next_piece(end, to)))
    }

    fn values(&self) -> Result<Pieces<u8>, TraceError> {
        let mut reader = self.files.values(&self.thread)?;
        let mut left = self.values_end;
        Ok(Box::new(move |to| {
            let before = to.len();
            let more = reader.next_piece(to)?;
            // What comes behind the end is read and thrown away: damage there is damage, too.
            let read = to.len() - before;
            let kept = usize::try_from(left).unwrap_or(usize::MAX).min(read);
            to.truncate(before + kept);
            left -= kept as u64;
            Ok(more)
        }))
    }
}
