//! Directories for what is needed once. One that was left, since its process was killed, goes away
//! when the next one is made: a replay's log may be large.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use tempfile::TempDir;

/// Held locked for as long as the directory is in use.
const LOCK: &str = "in-use";

/// A directory that goes away with this.
#[derive(Debug)]
pub(crate) struct Scratch {
    directory: TempDir,
    _lock: File,
}

impl Scratch {
    /// A new directory among the temporary ones, whose name begins with `prefix`.
    pub(crate) fn new(prefix: &str) -> io::Result<Self> {
        let root = std::env::temp_dir();
        sweep(&root, prefix);
        Self::within(&root, prefix)
    }

    fn within(root: &Path, prefix: &str) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(prefix).tempdir_in(root)?;
        // It has its name once it is locked, so that nobody takes the directory for left.
        let unnamed = directory.path().join("new");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(&unnamed, directory.path().join(LOCK))?;
        Ok(Self { directory, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes this user's directories that nobody uses any more. What cannot be removed stays.
fn sweep(root: &Path, prefix: &str) {
    // SAFETY: it takes nothing and always succeeds.
    let user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_one = entry.file_name().to_string_lossy().starts_with(prefix);
        if !is_one || !entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user) {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        match lock.try_lock() {
            Ok(()) => drop(fs::remove_dir_all(entry.path())),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_uses_is_removed() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let used = Scratch::within(root.path(), "symbiosis-x").expect("a directory");
        let Scratch { directory, _lock: lock } =
            Scratch::within(root.path(), "symbiosis-x").expect("a directory");
        let left = directory.keep();
        drop(lock);
        let unknown = root.path().join("symbiosis-x-of-another");
        fs::create_dir(&unknown).expect("a directory");
        sweep(root.path(), "symbiosis-y");
        assert!(left.exists());
        sweep(root.path(), "symbiosis-x");
        assert!(!left.exists() && used.path().exists() && unknown.exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
