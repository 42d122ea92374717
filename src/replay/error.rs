//! Why the program could not be run again.

use crate::cli::{Failure, exit_codes};
use crate::pipeline::PipelineError;
use crate::record::RecordError;
use std::io;
use std::path::PathBuf;
use trace_format::TraceError;

/// Why the program could not be run again. That it did something else than the schedule says is no
/// error.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// What was recorded cannot be executed symbolically.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The process began in the middle of another one.
    #[error(
        "{}: the trace of a child of fork: its schedules cannot be forced, because no run of the \
         program begins as it did",
        path.display()
    )]
    Forked {
        /// The trace.
        path: PathBuf,
    },
    /// There is no binary.
    #[error(
        "{}: {why}, and the trace holds no copy of the program; name the binary with --program",
        path.display()
    )]
    NoProgram {
        /// Where it was recorded.
        path: PathBuf,
        /// What is wrong there.
        why: String,
    },
    /// The binary is another one.
    #[error(
        "{}: not the program of this trace ({why}); name the recorded binary with --program, or \
         record again",
        path.display()
    )]
    WrongBinary {
        /// The binary.
        path: PathBuf,
        /// What differs.
        why: String,
    },
    /// The working directory of the recorded run is gone.
    #[error(
        "{}: the program was recorded in this directory, which cannot be entered; make it, or run \
         `symbiosis replay` with --directory DIR",
        path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The program cannot be run.
    #[error(transparent)]
    Run(#[from] RecordError),
    /// The program paid no attention to the schedule.
    #[error(
        "{}: the program did not follow a schedule; it was built by a symbiosis that could not \
         replay, or started another program",
        path.display()
    )]
    NoScheduler {
        /// The binary.
        path: PathBuf,
    },
    /// The runtime cannot read the schedule.
    #[error("line {line} of the schedule is not understood: {message}")]
    BadSchedule {
        /// From 1.
        line: u32,
        /// What is wrong.
        message: String,
    },
    /// The time for all of it was up before the run came to an end of its own.
    #[error("the time was up (--timeout)")]
    OutOfTime,
    /// The user ended it.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
    /// Something about files failed.
    #[error("cannot {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl ReplayError {
    /// The exit code that stands for this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Trace(TraceError::Io { .. }) | Self::Io { .. } => exit_codes::UNEXPECTED,
            Self::Trace(_) => exit_codes::BAD_TRACE,
            Self::Pipeline(error) => error.exit_code(),
            Self::WrongBinary { .. } | Self::NoScheduler { .. } => exit_codes::WRONG_BINARY,
            Self::Forked { .. }
            | Self::NoProgram { .. }
            | Self::Directory { .. }
            | Self::BadSchedule { .. } => exit_codes::USAGE,
            Self::OutOfTime => exit_codes::LIMIT,
            Self::Run(error) => error.exit_code(),
            Self::Interrupted(signal) => 128u8.wrapping_add(*signal as u8),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        Self::new(error.exit_code(), error)
    }
}
