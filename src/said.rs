//! What the command says on standard error, beside its answer.
//!
//! A line goes out in one write: builds run several compilers at a time, and their lines on one
//! terminal or pipe must not be torn. `eprintln!` writes each piece of its format by itself.

use std::fmt::Display;
use std::io::Write as _;

/// Says a line under the command's name. That nobody can read it is no error.
pub fn say(text: impl Display) {
    let line = format!("symbiosis: {text}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Says a line about what is missing or was left out, though the command goes on.
pub fn warn(text: impl Display) {
    say(format_args!("warning: {text}"));
}
