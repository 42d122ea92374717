//! A thread's two streams piece by piece: a long run's are many times larger than what a reader needs
//! of them at any moment.

use crate::error::TraceError;
use crate::manifest::Failure;
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
