//! `symbiosis.h`, carried inside this executable, and put where clang finds it.

use super::CcError;
use crate::runtime_archive;
use std::ffi::OsString;

/// The header.
const TEXT: &str = include_str!("../../include/symbiosis.h");
/// Its name.
const NAME: &str = "symbiosis.h";

/// The options with which sources find the header and know that it is meant. The directory comes
/// last in the search, so that a project's own header of this name wins.
pub fn options() -> Result<Vec<OsString>, CcError> {
    let file = runtime_archive::materialise_file(NAME, TEXT.as_bytes())
        .map_err(|error| CcError::Runtime(error.into()))?;
    let directory = file.parent().map(Into::into).unwrap_or_default();
    Ok(vec!["-D__SYMBIOSIS__=1".into(), "-idirafter".into(), directory])
}
