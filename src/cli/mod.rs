//! The command line: one file per command.

pub mod exit_codes;

use std::process::ExitCode;

/// Runs the command that the process's arguments name.
pub fn main() -> ExitCode {
    ExitCode::from(exit_codes::USAGE)
}
