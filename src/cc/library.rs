//! The parts of libstdc++ that lie in its shared library and reach into the program's own data: linked
//! programs get them as instrumented code.

use super::CcError;
use super::arguments::Arguments;
use super::compile::{self, Share};
use super::toolchain::Clang;
use crate::runtime_archive;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Nodes of lists and trees.
const TEXT: &str = include_str!("library/containers.cc");
/// Its name.
const NAME: &str = "containers.cc";
/// Programs that make archives.
const ARCHIVERS: [&str; 2] = ["ar", "llvm-ar"];

/// Does the command link with libstdc++?
pub fn is_wanted(cxx: bool, arguments: &Arguments) -> bool {
    (cxx || arguments.has("-lstdc++")) && !arguments.has("-nostdlib++")
}

/// Compiles them into a directory; gives an archive, of which a linker takes what the program asks
/// for. (libtool, too, would take an object among a link's arguments for one of the compiler's own.)
/// `None` when the user's clang or archiver cannot: then they are libstdc++'s.
pub fn archive(clang: &Clang, directory: &Path) -> Result<Option<PathBuf>, CcError> {
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
    let archive = directory.join("libsymbiosis_containers.a");
    let archived = |archiver: &&str| {
        let mut command = Command::new(archiver);
        let output = command.arg("rcs").arg(&archive).arg(&object).output();
        output.is_ok_and(|output| output.status.success())
    };
    Ok((status == 0 && ARCHIVERS.iter().any(archived)).then_some(archive))
}
