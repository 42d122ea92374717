//! The sealed form of a stream: a header, compressed chunks with checksums, an end marker.
//!
//! All numbers are little-endian. Header: the bytes `SYMBSTR1`, `u32` format major, `u32` format
//! minor, `u32` CRC-32 of these 16 bytes. Chunk: `u32` raw length in bytes (never 0), `u32`
//! compressed length in bytes, `u32` CRC-32 of these two words and the payload, payload (zstd).
//! End marker: `u32` 0, `u32` 0, `u64` total raw length in bytes, `u32` CRC-32 of these 16 bytes.

use crate::error::TraceError;
use crate::version::{FORMAT_VERSION, FormatVersion};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"SYMBSTR1";
/// Bytes of a stream in one chunk.
pub(crate) const CHUNK: usize = 1 << 20;
/// A chunk's payload may be a little longer than its contents, never this much.
const LONGEST_PAYLOAD: usize = CHUNK + CHUNK / 8 + 1024;

fn crc(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Writes `length` bytes of a raw stream in the sealed form.
pub(crate) fn write(mut from: impl Read, length: u64, to: impl Write) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    let mut header = MAGIC.to_vec();
    header.extend(FORMAT_VERSION.major.to_le_bytes());
    header.extend(FORMAT_VERSION.minor.to_le_bytes());
    to.write_all(&header)?;
    to.write_all(&crc(&[&header]).to_le_bytes())?;
    let mut left = length;
    let mut chunk = Vec::new();
    while left > 0 {
        let take = left.min(CHUNK as u64);
        chunk.clear();
        if (&mut from).take(take).read_to_end(&mut chunk)? as u64 != take {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_chunk(&chunk, &mut to)?;
        left -= take;
    }
    let mut end = [0u8; 8].to_vec();
    end.extend(length.to_le_bytes());
    to.write_all(&end)?;
    to.write_all(&crc(&[&end]).to_le_bytes())?;
    to.flush()
}

fn write_chunk(chunk: &[u8], to: &mut impl Write) -> io::Result<()> {
    let payload = zstd::bulk::compress(chunk, 1)?;
    let mut lengths = (chunk.len() as u32).to_le_bytes().to_vec();
    lengths.extend((payload.len() as u32).to_le_bytes());
    to.write_all(&lengths)?;
    to.write_all(&crc(&[&lengths, &payload]).to_le_bytes())?;
    to.write_all(&payload)
}

/// Reads a sealed stream chunk by chunk.
#[derive(Debug)]
pub(crate) struct ChunkReader {
    path: PathBuf,
    file: BufReader<fs_err::File>,
    /// Bytes of the file read so far.
    offset: u64,
    /// Bytes of the stream read so far.
    total: u64,
    ended: bool,
}

impl ChunkReader {
    pub(crate) fn open(path: PathBuf) -> Result<Self, TraceError> {
        let file =
            fs_err::File::open(&path).map_err(|error| TraceError::io("open", &path, 0, error))?;
        let file = BufReader::new(file);
        let mut reader = Self { path, file, offset: 0, total: 0, ended: false };
        reader.header()?;
        Ok(reader)
    }

    fn header(&mut self) -> Result<(), TraceError> {
        let head = self.array::<16>("a header")?;
        let sum = u32::from_le_bytes(self.array("a header")?);
        if sum != crc(&[&head]) {
            return Err(TraceError::Checksum { path: self.path.clone(), offset: 0 });
        }
        let word = |at: usize| word_at(&head, at);
        let found = FormatVersion { major: word(8), minor: word(12) };
        if !head.starts_with(MAGIC) {
            return Err(TraceError::malformed(&self.path, 0, "not a stream of a trace"));
        }
        if !found.is_readable() {
            return Err(TraceError::NewerFormat { path: self.path.clone(), found });
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], TraceError> {
        let mut bytes = [0; N];
        self.exact(&mut bytes, expected)?;
        Ok(bytes)
    }

    fn exact(&mut self, bytes: &mut [u8], expected: &'static str) -> Result<(), TraceError> {
        match self.file.read_exact(bytes) {
            Ok(()) => {
                self.offset += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(TraceError::Truncated {
                    path: self.path.clone(),
                    offset: self.offset,
                    expected,
                })
            }
            Err(error) => Err(TraceError::io("read", &self.path, self.offset, error)),
        }
    }

    /// Appends the next chunk's contents; false at the end of the stream.
    pub(crate) fn next_chunk(&mut self, to: &mut Vec<u8>) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        let start = self.offset;
        let lengths = self.array::<8>("a chunk or the end marker")?;
        let (raw, compressed) = (word_at(&lengths, 0) as usize, word_at(&lengths, 4) as usize);
        if raw == 0 {
            return self.end(start, lengths).map(|()| false);
        }
        if raw > CHUNK || compressed > LONGEST_PAYLOAD {
            return Err(TraceError::Checksum { path: self.path.clone(), offset: start });
        }
        let sum = u32::from_le_bytes(self.array("a chunk")?);
        let mut payload = vec![0; compressed];
        self.exact(&mut payload, "the rest of a chunk")?;
        let damaged = || TraceError::Checksum { path: self.path.clone(), offset: start };
        if sum != crc(&[&lengths, &payload]) {
            return Err(damaged());
        }
        let chunk = zstd::bulk::decompress(&payload, raw).map_err(|_| damaged())?;
        if chunk.len() != raw {
            return Err(damaged());
        }
        self.total += raw as u64;
        to.extend_from_slice(&chunk);
        Ok(true)
    }

    fn end(&mut self, start: u64, lengths: [u8; 8]) -> Result<(), TraceError> {
        let total = self.array::<8>("the end marker")?;
        let sum = u32::from_le_bytes(self.array("the end marker")?);
        let right = sum == crc(&[&lengths, &total])
            && lengths == [0; 8]
            && u64::from_le_bytes(total) == self.total;
        if !right {
            return Err(TraceError::Checksum { path: self.path.clone(), offset: start });
        }
        let mut more = [0];
        match self.file.read(&mut more) {
            Ok(0) => {}
            Ok(_) => {
                return Err(TraceError::malformed(&self.path, self.offset, "bytes after the end"));
            }
            Err(error) => return Err(TraceError::io("read", &self.path, self.offset, error)),
        }
        self.ended = true;
        Ok(())
    }
}

/// The little-endian word at a place in a record; 0 behind its end.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..at + 4).and_then(|part| part.try_into().ok());
    part.map_or(0, u32::from_le_bytes)
}

/// As [`word_at`], for 64 bits.
pub(crate) fn long_at(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..at + 8).and_then(|part| part.try_into().ok());
    part.map_or(0, u64::from_le_bytes)
}

/// Reads a whole sealed stream.
pub(crate) fn read_all(path: &Path) -> Result<Vec<u8>, TraceError> {
    let mut reader = ChunkReader::open(path.to_owned())?;
    let mut bytes = Vec::new();
    while reader.next_chunk(&mut bytes)? {}
    Ok(bytes)
}

impl ChunkReader {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
