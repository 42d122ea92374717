//! Why a recording could not be made.

use crate::cli::exit_codes;
use crate::record::FailAtError;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use trace_format::TraceError;

/// Why a recording could not be made. That the program failed is no error.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The program cannot be started.
    #[error("cannot run {}", program.display())]
    Start {
        /// As it was given.
        program: OsString,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The program has no hooks, and nothing that it started has.
    #[error(
        "{} is not instrumented and started no instrumented program, so there is nothing to record; build with `symbiosis cc` or `symbiosis c++`",
        program.display()
    )]
    Uninstrumented {
        /// Its executable.
        program: PathBuf,
    },
    /// The program is instrumented, but it could not write its trace.
    #[error(
        "{}: the program could not write its trace at byte {offset} of process.bin; is the disk full, or the directory not writable for the program?",
        directory.display()
    )]
    NotStarted {
        /// The trace directory.
        directory: PathBuf,
        /// How long the first file became, in bytes.
        offset: u64,
    },
    /// The output is there already.
    #[error("{} exists; remove it or choose another name with -o", path.display())]
    Exists {
        /// The output.
        path: PathBuf,
    },
    /// The trace directory cannot be made.
    #[error("{}: cannot make the trace directory", path.display())]
    Create {
        /// The trace directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The line that must not be reached cannot be watched.
    #[error(transparent)]
    FailAt(#[from] FailAtError),
    /// The command that looks at the output could not do so.
    #[error(
        "--fail-if: `{command}` {how}; status 0 says that the run failed, 1 to 125 that it did not"
    )]
    Check {
        /// The command.
        command: String,
        /// What it did instead.
        how: String,
    },
    /// Something else about files or processes failed.
    #[error("cannot {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The trace directory cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl RecordError {
    /// The exit code that stands for this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Start { .. }
            | Self::Uninstrumented { .. }
            | Self::Exists { .. }
            | Self::FailAt(_)
            | Self::Check { .. } => exit_codes::USAGE,
            Self::NotStarted { .. } | Self::Create { .. } | Self::Io { .. } => {
                exit_codes::UNEXPECTED
            }
            Self::Trace(TraceError::Io { .. }) => exit_codes::UNEXPECTED,
            Self::Trace(_) => exit_codes::BAD_TRACE,
        }
    }
}
