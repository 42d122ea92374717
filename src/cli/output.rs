//! What a command has to say, on standard output or in a file.

use super::{Failure, exit_codes};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// Prints a text. A reader such as `head` that has seen enough is no error.
pub(super) fn print(text: &[u8]) -> Result<(), Failure> {
    write(None, text)
}

/// Writes a text to a file, or prints it.
pub(super) fn write(output: Option<&Path>, text: &[u8]) -> Result<(), Failure> {
    let result = match output {
        Some(path) => fs_err::write(path, text),
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(text).and_then(|()| out.flush())
        }
    };
    match result {
        Err(error) if output.is_none() && error.kind() != ErrorKind::BrokenPipe => {
            let error = format!("cannot write to standard output: {error}");
            Err(Failure::new(exit_codes::UNEXPECTED, error))
        }
        Err(error) if output.is_some() => Err(Failure::new(exit_codes::UNEXPECTED, error)),
        _ => Ok(()),
    }
}
