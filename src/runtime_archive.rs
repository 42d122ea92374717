//! The runtime library that traced programs link: carried inside this executable, and written to
//! the user's cache when a link needs it as a file.

use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libsymbiosis_rt.a"));
const HASH: &str = env!("SYMBIOSIS_RUNTIME_HASH");

/// Makes sure that the library is there as a file, and gives its name. The name holds the hash of
/// the contents, so that versions do not meet; the file appears in one step, so that links at the
/// same time do not either.
///
/// # Errors
///
/// When neither the cache directory nor the directory for temporary files can be written.
pub fn materialise() -> io::Result<PathBuf> {
    in_some_cache(&materialise_in)
}

/// The same for another file that this executable carries, by its name.
///
/// # Errors
///
/// As for [`materialise`].
pub fn materialise_file(name: &str, contents: &[u8]) -> io::Result<PathBuf> {
    keep(&named_after("files", contents), name, contents)
}

/// A directory's name that stands for these bytes.
#[must_use]
pub fn named_after(kind: &str, bytes: &[u8]) -> String {
    let hash = trace_format::bitcode_hash(bytes);
    format!("{kind}-{:016x}{:016x}", hash[1], hash[0])
}

/// A file that was made before for what this directory's name stands for.
#[must_use]
pub fn kept(directory: &str, name: &str) -> Option<PathBuf> {
    let in_cache = |cache: PathBuf| cache.join("symbiosis").join(directory).join(name);
    directories().into_iter().map(in_cache).find(|file| own(file).is_some())
}

/// What is known of a file, if it is the user's own: in the directory for temporary files another one may have put it there to
/// be linked.
fn own(file: &Path) -> Option<Metadata> {
    let metadata = file.symlink_metadata().ok()?;
    (metadata.is_file() && metadata.uid() == user()).then_some(metadata)
}

fn user() -> libc::uid_t {
    // SAFETY: no pointers.
    unsafe { libc::geteuid() }
}

/// Keeps a file for [`kept`], and gives its name.
///
/// # Errors
///
/// As for [`materialise`].
pub fn keep(directory: &str, name: &str, contents: &[u8]) -> io::Result<PathBuf> {
    in_some_cache(&|cache| write_once(&cache.join("symbiosis").join(directory), name, contents))
}

fn in_some_cache(write: &dyn Fn(&Path) -> io::Result<PathBuf>) -> io::Result<PathBuf> {
    let mut result = Err(io::Error::new(io::ErrorKind::NotFound, "no cache directory"));
    for directory in directories() {
        result = write(&directory);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn materialise_in(cache: &Path) -> io::Result<PathBuf> {
    let directory = cache.join("symbiosis").join(format!("runtime-{HASH}"));
    write_once(&directory, "libsymbiosis_rt.a", ARCHIVE)
}

fn write_once(directory: &Path, name: &str, contents: &[u8]) -> io::Result<PathBuf> {
    let file = directory.join(name);
    if own(&file).is_some_and(|metadata| metadata.len() == contents.len() as u64) {
        return Ok(file);
    }
    fs_err::create_dir_all(directory)?;
    // It appears whole.
    let mut partial = tempfile::NamedTempFile::new_in(directory)?;
    partial.write_all(contents)?;
    partial.persist(&file).map_err(|error| error.error)?;
    Ok(file)
}

/// Where the library may go, best place first.
fn directories() -> Vec<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    // Another user's file of this name must not be linked, so the last resort has the user's id.
    let temporary = std::env::temp_dir().join(format!("symbiosis-{}", user()));
    cache.or(home).into_iter().chain([temporary]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_written_once_and_whole() {
        let cache = tempfile::tempdir().expect("a temporary directory");
        let first = materialise_in(cache.path()).expect("written");
        assert_eq!(fs_err::read(&first).expect("readable"), ARCHIVE);
        let before = first.metadata().and_then(|m| m.modified()).expect("a time");
        let second = materialise_in(cache.path()).expect("there");
        assert_eq!(first, second);
        assert_eq!(second.metadata().and_then(|m| m.modified()).expect("a time"), before);
    }
}
