//! What linked programs get as instrumented code in the place of a shared library's: the parts of C++'s library
//! that lie in its shared library and reach into the program's own data, functions of C's library that share what
//! nobody else sees, and OpenMP's runtime.

mod openmp;

use super::CcError;
use super::arguments::Arguments;
use super::compile::{self, Share};
use super::toolchain::Clang;
use crate::runtime_archive;
pub use openmp::{check, is_library as is_openmp};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Functions of the C library that share something between threads.
const HIDDEN: &str = include_str!("library/hidden.c");
/// Nodes of lists and trees.
const CONTAINERS: &str = include_str!("library/containers.cc");
/// Weak pointers of libc++.
const LIBCXX: &str = include_str!("library/libcxx.cc");
/// Without debug information a place in these functions is the one of their caller.
const OPTIONS: [&str; 6] = ["-c", "-O1", "-g0", "-w", "-fPIC", "-fno-exceptions"];
/// Programs that make archives.
const ARCHIVERS: [&str; 2] = ["ar", "llvm-ar"];

/// A file that is compiled.
struct Part {
    name: &'static str,
    text: String,
    options: &'static [&'static str],
}

/// The parts that a command's link wants.
fn parts(cxx: bool, arguments: &Arguments) -> Vec<Part> {
    let c = &["-std=gnu11", "-x", "c"];
    let mut parts = Vec::new();
    if !arguments.has("-nolibc") {
        parts.push(Part { name: "hidden.c", text: HIDDEN.to_owned(), options: c });
    }
    if (cxx || arguments.has("-lstdc++")) && !arguments.has("-nostdlib++") {
        let options = &["-fno-rtti", "-std=c++17", "-x", "c++"];
        let (name, text) = match arguments.has("-stdlib=libc++") {
            true => ("libcxx.cc", LIBCXX),
            false => ("containers.cc", CONTAINERS),
        };
        parts.push(Part { name, text: text.to_owned(), options });
    }
    if openmp::is_wanted(arguments) {
        let texts = openmp::texts();
        parts.extend(texts.into_iter().map(|(name, text)| Part { name, text, options: c }));
    }
    parts
}

/// Compiles what the command's link wants into a directory; gives an archive, of which a linker takes what
/// the program asks for. (libtool, too, would take an object among a link's arguments for one of the
/// compiler's own.) `None` when it wants nothing, and when the user's clang or archiver cannot: then the
/// functions are the shared libraries'.
///
/// # Errors
/// See [`CcError`].
pub fn archive(
    clang: &Clang,
    cxx: bool,
    arguments: &Arguments,
    directory: &Path,
) -> Result<Option<PathBuf>, CcError> {
    let parts = parts(cxx, arguments);
    let mut objects = Vec::new();
    for part in &parts {
        match compiled(clang, part, directory)? {
            Some(object) => objects.push(object),
            None => return Ok(None),
        }
    }
    if objects.is_empty() {
        return Ok(None);
    }
    // CMake would take a name that ends as those of archives do for one to be linked from then on.
    let archive = directory.join("symbiosis-library");
    let archived = |archiver: &&str| {
        let mut command = Command::new(archiver);
        let output = command.arg("rcs").arg(&archive).args(&objects).output();
        output.is_ok_and(|output| output.status.success())
    };
    Ok(ARCHIVERS.iter().any(archived).then_some(archive))
}

/// The object of a part.
fn compiled(clang: &Clang, part: &Part, directory: &Path) -> Result<Option<PathBuf>, CcError> {
    let source = runtime_archive::materialise_file(part.name, part.text.as_bytes())
        .map_err(|error| CcError::Runtime(error.into()))?;
    let object = directory.join(format!("symbiosis-{}.o", part.name));
    let mut words: Vec<OsString> = OPTIONS.iter().chain(part.options).map(OsString::from).collect();
    words.push(source.into());
    let arguments = Arguments::parse(&words);
    let Some(input) = arguments.sources().next() else { return Ok(None) };
    let status = compile::compile(clang, &arguments, input, Share::Part, &object)?;
    Ok((status == 0).then_some(object))
}
