//! `symbiosis cc` and `symbiosis c++`, and the linker of `symbiosis rustc`.

use crate::cc::{self, CcError};
use crate::rust::{self, RustError};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs the compiler driver; the result is the exit status for the process.
pub fn run(cxx: bool, args: &[OsString]) -> Result<u8, CcError> {
    cc::run(cxx, args, &archive)
}

/// Links a Rust program as rustc asks for.
pub fn link_rust(args: &[OsString]) -> Result<u8, RustError> {
    rust::link(args, &archive)
}

fn archive() -> Result<PathBuf, CcError> {
    crate::runtime_archive::materialise().map_err(|error| CcError::Runtime(error.into()))
}
