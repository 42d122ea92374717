//! What can be wrong with a trace.

use crate::version::{FORMAT_VERSION, FormatVersion};
use std::io;
use std::path::{Path, PathBuf};

/// Why a trace, or a part of it, cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The directory holds no trace.
    #[error(
        "{}: not a trace directory (no manifest.json in it); traces are made by `symbiosis record`, and by \
         `symbiosis unpack` from packed ones",
        path.display()
    )]
    NotATrace {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the trace is not there.
    #[error("{}: missing file of a trace; copy the whole directory, or record again", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file ends too early.
    #[error(
        "{}: truncated at byte {offset}: {expected} expected; copy the trace again, or record again",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where in the file the reader was, in bytes.
        offset: u64,
        /// What should have been there.
        expected: &'static str,
    },
    /// A file's contents are not what was written.
    #[error(
        "{}: damaged at byte {offset}: the checksum does not match; copy the trace again, or record again",
        path.display()
    )]
    Checksum {
        /// The file.
        path: PathBuf,
        /// Where in the file the damaged chunk begins, in bytes.
        offset: u64,
    },
    /// A file's contents make no sense.
    #[error("{}: malformed at byte {offset}: {what}; record again", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes; for a stream, in the uncompressed stream.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The trace was written by a newer tool.
    #[error(
        "{}: trace format {found}, but this symbiosis reads up to {FORMAT_VERSION}; use the newer symbiosis, or record again",
        path.display()
    )]
    NewerFormat {
        /// The file that says so.
        path: PathBuf,
        /// Its version.
        found: FormatVersion,
    },
    /// The program was built by another version of the instrumenter.
    #[error(
        "{}: the program was instrumented as version {found}, but this symbiosis reads version {supported}; rebuild it with this `symbiosis cc` and record again",
        path.display()
    )]
    UnknownInstrumentation {
        /// The file that says so.
        path: PathBuf,
        /// The program's version.
        found: u32,
        /// This build's version.
        supported: u32,
    },
    /// The operating system said no.
    #[error("{}: cannot {action} at byte {offset}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl TraceError {
    pub(crate) fn io(action: &'static str, path: &Path, offset: u64, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound {
            return Self::Missing { path: path.to_owned() };
        }
        Self::Io { action, path: path.to_owned(), offset, source }
    }

    pub(crate) fn malformed(path: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_owned(), offset, what: what.into() }
    }
}
