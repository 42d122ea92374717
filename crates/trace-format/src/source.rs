//! Where a stream's bytes come from: a sealed file, or a raw one with a length from outside.

use crate::chunks::{CHUNK, ChunkReader};
use crate::error::TraceError;
use crate::layout::STREAM_WINDOW;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A stream's bytes, a chunk at a time.
#[derive(Debug)]
pub(crate) enum Source {
    Sealed(ChunkReader),
    Raw { path: PathBuf, stream: RawStream, offset: u64, left: u64 },
}

/// The bytes of a raw stream: those behind the window, then those in it.
pub(crate) type RawStream = std::io::Chain<std::io::Take<fs_err::File>, fs_err::File>;

/// Opens a raw stream of `length` bytes, of which `moved` are behind the window.
pub(crate) fn open_raw(path: &Path, moved: u64, length: u64) -> Result<RawStream, TraceError> {
    let failed = |error| TraceError::io("open", path, 0, error);
    let mut behind = fs_err::File::open(path).map_err(failed)?;
    let there = behind.metadata().map_err(failed)?.len();
    let needed = match moved {
        0 => length,
        moved => moved.saturating_add(STREAM_WINDOW as u64),
    };
    if there < needed {
        let expected = "as much as the control page says";
        return Err(TraceError::Truncated { path: path.to_owned(), offset: there, expected });
    }
    behind.seek(SeekFrom::Start(STREAM_WINDOW as u64)).map_err(failed)?;
    let window = fs_err::File::open(path).map_err(failed)?;
    Ok(behind.take(moved).chain(window))
}

impl Source {
    pub(crate) fn sealed(path: PathBuf) -> Result<Self, TraceError> {
        ChunkReader::open(path).map(Self::Sealed)
    }

    /// `moved` as for [`open_raw`].
    pub(crate) fn raw(path: PathBuf, moved: u64, length: u64) -> Result<Self, TraceError> {
        let stream = open_raw(&path, moved, length)?;
        Ok(Self::Raw { path, stream, offset: 0, left: length })
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Sealed(reader) => reader.path(),
            Self::Raw { path, .. } => path,
        }
    }

    /// Appends more bytes; false at the end of the stream.
    pub(crate) fn more(&mut self, to: &mut Vec<u8>) -> Result<bool, TraceError> {
        let (path, stream, offset, left) = match self {
            Self::Sealed(reader) => return reader.next_chunk(to),
            Self::Raw { path, stream, offset, left } => (path, stream, offset, left),
        };
        if *left == 0 {
            return Ok(false);
        }
        let take = (*left).min(CHUNK as u64);
        let got = stream
            .by_ref()
            .take(take)
            .read_to_end(to)
            .map_err(|error| TraceError::io("read", path, *offset, error))?
            as u64;
        *offset += got;
        *left -= got;
        if got < take {
            return Err(TraceError::Truncated {
                path: path.clone(),
                offset: *offset,
                expected: "as much as the control page says",
            });
        }
        Ok(true)
    }
}
