//! The copy of the executable in a trace directory, so that a trace that was moved to another
//! machine, or outlived a rebuild, can still be replayed.

use crate::error::TraceError;
use crate::files;
use crate::hash::Hasher;
use crate::manifest::SavedProgram;
use std::io::{self, Read, Write};
use std::path::Path;

/// As many bytes are read and hashed at once.
const PIECE: usize = 1 << 16;

/// Copies from one to the other and gives the length and the hash of what was copied.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<(u64, String)> {
    let mut hasher = Hasher::new();
    let mut size = 0;
    let mut piece = vec![0; PIECE];
    loop {
        let n = match from.read(&mut piece) {
            Ok(0) => return Ok((size, hasher.digits())),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = piece.get(..n).unwrap_or(&[]);
        hasher.update(bytes);
        to.write_all(bytes)?;
        size += n as u64;
    }
}

/// The hash of an executable file, as in [`SavedProgram::hash`].
///
/// # Errors
///
/// When the file cannot be read.
pub fn program_hash(file: &Path) -> Result<String, TraceError> {
    let failed = |error| TraceError::io("read", file, 0, error);
    let from = fs_err::File::open(file).map_err(failed)?;
    copy(from, io::sink()).map(|(_, hash)| hash).map_err(failed)
}

/// Saves the executable in the trace directory. What is to be said of it in the manifest is
/// returned; the manifest is not written.
///
/// # Errors
///
/// When the executable cannot be read or the copy cannot be written; then no part of a copy stays.
pub fn save_program(directory: &Path, executable: &Path) -> Result<SavedProgram, TraceError> {
    let from = fs_err::File::open(executable)
        .map_err(|error| TraceError::io("read", executable, 0, error))?;
    let path = directory.join(files::PROGRAM);
    let compressed = || -> io::Result<(u64, String)> {
        let mut to = zstd::stream::Encoder::new(fs_err::File::create(&path)?, 1)?;
        to.include_checksum(true)?;
        let copied = copy(from, &mut to)?;
        to.finish()?.flush()?;
        Ok(copied)
    };
    let (size, hash) = compressed().map_err(|source| {
        let offset = path.metadata().map_or(0, |metadata| metadata.len());
        let _ = fs_err::remove_file(&path);
        TraceError::Io { action: "write", path: path.clone(), offset, source }
    })?;
    let name = executable.file_name().unwrap_or(executable.as_os_str());
    Ok(SavedProgram {
        file: files::PROGRAM.to_owned(),
        name: name.to_string_lossy().into_owned(),
        size,
        hash,
    })
}

/// Unpacks the copy into a new file, which is made executable.
///
/// # Errors
///
/// When the copy is missing or damaged, or the file cannot be written.
pub fn unpack_program(directory: &Path, saved: &SavedProgram, to: &Path) -> Result<(), TraceError> {
    use std::os::unix::fs::PermissionsExt;
    // Always this name: a manifest must not lead the reader elsewhere.
    let path = directory.join(files::PROGRAM);
    let from =
        fs_err::File::open(&path).map_err(|error| TraceError::io("read", &path, 0, error))?;
    let damaged = || TraceError::Checksum { path: path.clone(), offset: 0 };
    let from = zstd::stream::Decoder::new(from).map_err(|_| damaged())?;
    let failed =
        |source| TraceError::Io { action: "write", path: to.to_owned(), offset: 0, source };
    let file = fs_err::File::create(to).map_err(failed)?;
    // One byte more than there should be is enough to tell that it is too long.
    let (size, hash) = copy(from.take(saved.size.saturating_add(1)), file)
        .map_err(|error| if error.raw_os_error().is_some() { failed(error) } else { damaged() })?;
    if size != saved.size || hash != saved.hash {
        return Err(damaged());
    }
    fs_err::set_permissions(to, std::fs::Permissions::from_mode(0o755)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_comes_back_as_it_was_and_damage_is_noticed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (program, back) = (directory.path().join("prog"), directory.path().join("back"));
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        fs_err::write(&program, &bytes).expect("written");
        let saved = save_program(directory.path(), &program).expect("saved");
        assert_eq!((saved.size, saved.name.as_str()), (200_000, "prog"));
        assert_eq!(saved.hash, program_hash(&program).expect("read"));
        unpack_program(directory.path(), &saved, &back).expect("unpacked");
        assert_eq!(fs_err::read(&back).expect("read"), bytes);

        let copy = directory.path().join(files::PROGRAM);
        let mut packed = fs_err::read(&copy).expect("read");
        let middle = packed.len() / 2;
        packed[middle] ^= 1;
        fs_err::write(&copy, packed).expect("written");
        let result = unpack_program(directory.path(), &saved, &back);
        assert!(matches!(result, Err(TraceError::Checksum { .. })), "{result:?}");
        fs_err::remove_file(&copy).expect("removed");
        let result = unpack_program(directory.path(), &saved, &back);
        assert!(matches!(result, Err(TraceError::Missing { .. })), "{result:?}");
    }
}
