//! Where a stream's bytes come from: a sealed file, or a raw one with a length from outside.

use crate::chunks::{CHUNK, ChunkReader};
use crate::error::TraceError;
use crate::layout::{Extent, STREAM_BEHIND};
use std::io::{Chain, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

/// A stream's bytes, a chunk at a time.
#[derive(Debug)]
pub(crate) enum Source {
    Sealed(ChunkReader),
    Raw { path: PathBuf, stream: RawStream, offset: u64, left: u64 },
}

/// The bytes of a raw stream: those behind the window, those in it, those in neither.
pub(crate) type RawStream =
    Chain<Chain<Take<fs_err::File>, Take<fs_err::File>>, std::io::Cursor<Vec<u8>>>;

/// Where the bytes of a raw stream are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawExtent {
    /// In the file, those behind the window and those in it.
    pub file: Extent,
    /// Those behind them: choices that no token has yet.
    pub rest: Vec<u8>,
}

/// Opens a raw stream.
pub(crate) fn open_raw(path: &Path, extent: RawExtent) -> Result<RawStream, TraceError> {
    let Extent { moved, start, window: length } = extent.file;
    let failed = |error| TraceError::io("open", path, 0, error);
    let mut behind = fs_err::File::open(path).map_err(failed)?;
    let there = behind.metadata().map_err(failed)?.len();
    let needed = match moved {
        0 => start.saturating_add(length),
        moved => moved.saturating_add(STREAM_BEHIND as u64),
    };
    if there < needed {
        let expected = "as much as the control page says";
        return Err(TraceError::Truncated { path: path.to_owned(), offset: there, expected });
    }
    behind.seek(SeekFrom::Start(STREAM_BEHIND as u64)).map_err(failed)?;
    let mut window = fs_err::File::open(path).map_err(failed)?;
    window.seek(SeekFrom::Start(start)).map_err(failed)?;
    Ok(behind.take(moved).chain(window.take(length)).chain(std::io::Cursor::new(extent.rest)))
}

impl Source {
    pub(crate) fn sealed(path: PathBuf) -> Result<Self, TraceError> {
        ChunkReader::open(path).map(Self::Sealed)
    }

    /// The first `length` bytes of a raw stream.
    pub(crate) fn raw(path: PathBuf, extent: RawExtent, length: u64) -> Result<Self, TraceError> {
        let stream = open_raw(&path, extent)?;
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
