//! `symbiosis cc` and `symbiosis c++`.

use crate::cc::{self, CcError};
use std::ffi::OsString;

/// Runs the compiler driver; the result is the exit status for the process.
pub fn run(cxx: bool, args: &[OsString]) -> Result<u8, CcError> {
    cc::run(cxx, args, &|| {
        crate::runtime_archive::materialise().map_err(|error| CcError::Runtime(error.into()))
    })
}
