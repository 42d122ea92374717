//! Where a stream's bytes come from: a sealed file, or a raw one with a length from outside.

use crate::chunks::{CHUNK, ChunkReader};
use crate::error::TraceError;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A stream's bytes, a chunk at a time.
#[derive(Debug)]
pub(crate) enum Source {
    Sealed(ChunkReader),
    Raw { path: PathBuf, file: fs_err::File, offset: u64, left: u64 },
}

impl Source {
    pub(crate) fn sealed(path: PathBuf) -> Result<Self, TraceError> {
        ChunkReader::open(path).map(Self::Sealed)
    }

    pub(crate) fn raw(path: PathBuf, length: u64) -> Result<Self, TraceError> {
        let file =
            fs_err::File::open(&path).map_err(|error| TraceError::io("open", &path, 0, error))?;
        Ok(Self::Raw { path, file, offset: 0, left: length })
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Sealed(reader) => reader.path(),
            Self::Raw { path, .. } => path,
        }
    }

    /// Appends more bytes; false at the end of the stream.
    pub(crate) fn more(&mut self, to: &mut Vec<u8>) -> Result<bool, TraceError> {
        let (path, file, offset, left) = match self {
            Self::Sealed(reader) => return reader.next_chunk(to),
            Self::Raw { path, file, offset, left } => (path, file, offset, left),
        };
        if *left == 0 {
            return Ok(false);
        }
        let take = (*left).min(CHUNK as u64);
        let got =
            file.by_ref()
                .take(take)
                .read_to_end(to)
                .map_err(|error| TraceError::io("read", path, *offset, error))? as u64;
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
