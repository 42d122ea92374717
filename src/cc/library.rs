//! The parts of libstdc++ that lie in its shared library and reach into the program's own data: linked
//! programs get them as instrumented code.

use super::CcError;
use super::arguments::Arguments;
use super::compile::{self, Share};
use super::toolchain::Clang;
use crate::runtime_archive;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Nodes of lists and trees.
const TEXT: &str = include_str!("library/containers.cc");
/// Its name.
const NAME: &str = "containers.cc";

/// Does the command link with libstdc++?
pub fn is_wanted(cxx: bool, arguments: &Arguments) -> bool {
    (cxx || arguments.has("-lstdc++")) && !arguments.has("-nostdlib++")
}

/// Compiles them into a directory; gives the object. `None` when the user's clang cannot.
pub fn compile(clang: &Clang, directory: &Path) -> Result<Option<PathBuf>, CcError> {
    let source = runtime_archive::materialise_file(NAME, TEXT.as_bytes())
        .map_err(|error| CcError::Runtime(error.into()))?;
    let object = directory.join("symbiosis-containers.o");
    // Without debug information a place in these functions is the one of their caller.
    let options = [
        "-c",
        "-O1",
        "-g0",
        "-w",
        "-fPIC",
        "-fno-exceptions",
        "-fno-rtti",
        "-std=c++17",
        "-x",
        "c++",
    ];
    let mut words: Vec<OsString> = options.map(OsString::from).to_vec();
    words.push(source.into());
    let arguments = Arguments::parse(&words);
    let Some(input) = arguments.sources().next() else { return Ok(None) };
    let status = compile::compile(clang, &arguments, input, Share::Part, &object)?;
    Ok((status == 0).then_some(object))
}
