//! Why there is no test case.

use crate::cli::{Failure, exit_codes};
use std::io;
use std::path::PathBuf;

/// Why there is no test case.
#[derive(Debug, thiserror::Error)]
pub enum TestCaseError {
    /// The name cannot be used for files and targets.
    #[error(
        "{name:?} cannot be the name of a test; use letters, digits, `_` and `-` (`--name NAME`)"
    )]
    Name {
        /// As it was given.
        name: String,
    },
    /// The solution is of a run that passed.
    #[error("the trace has no failure, so there is nothing to test for")]
    NoFailure,
    /// The failure is that a line was reached, which nobody watches in a test.
    #[error(
        "the failure is that a line was reached (`record --fail-at`), which ends no program by itself, so a test of it could \
         not fail; have the program end there, by `abort()` or an assertion, record that, and make the test of it"
    )]
    Reached,
    /// A file of the test is there already.
    #[error("{} exists; remove it or choose another directory with -o", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write the test")]
    Write(#[source] io::Error),
}

impl TestCaseError {
    /// The exit code that stands for this error.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Name { .. } | Self::NoFailure | Self::Reached | Self::Exists { .. } => {
                exit_codes::USAGE
            }
            Self::Write(_) => exit_codes::UNEXPECTED,
        }
    }
}

impl From<TestCaseError> for Failure {
    fn from(error: TestCaseError) -> Self {
        Self::new(error.exit_code(), error)
    }
}
