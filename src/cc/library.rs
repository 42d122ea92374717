//! What linked programs get as instrumented code in the place of a shared library's: the parts of C++'s library
//! that lie in its shared library and reach into the program's own data, functions of C's library that share what
//! nobody else sees, and OpenMP's runtime.

mod openmp;

use super::CcError;
use super::arguments::Arguments;
use super::compile::{self, Share};
use super::toolchain::{Clang, file_identity};
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

/// CMake would take a name that ends as those of archives do for one to be linked from then on.
const ARCHIVE: &str = "symbiosis-library";
/// Environment variables that say where clang looks for headers, and which LLVM instruments.
const SEARCHED: [&str; 6] = [
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "SYMBIOSIS_LLVM",
    "RUSTUP_TOOLCHAIN",
];

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

/// Compiles what the command's link wants into a directory, unless an earlier command has; gives an archive, of which
/// a linker takes what the program asks for. (libtool, too, would take an object among a link's arguments for one of
/// the compiler's own.) `None` when it wants nothing, and when the user's clang or archiver cannot: then the functions
/// are the shared libraries'.
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
    if parts.is_empty() {
        return Ok(None);
    }
    let known =
        identity(clang, &parts).map(|of| runtime_archive::named_after("library", of.as_bytes()));
    if let Some(archive) = known.as_ref().and_then(|known| runtime_archive::kept(known, ARCHIVE)) {
        return Ok(Some(archive));
    }
    let mut objects = Vec::new();
    for part in &parts {
        match compiled(clang, part, directory)? {
            Some(object) => objects.push(object),
            None => return Ok(None),
        }
    }
    let archive = directory.join(ARCHIVE);
    let archived = |archiver: &&str| {
        let mut command = Command::new(archiver);
        let output = command.arg("rcs").arg(&archive).args(&objects).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !ARCHIVERS.iter().any(archived) {
        return Ok(None);
    }
    let keep =
        |known: String| runtime_archive::keep(&known, ARCHIVE, &fs_err::read(&archive).ok()?).ok();
    // Without a place to keep it the next command makes it again.
    Ok(Some(known.and_then(keep).unwrap_or(archive)))
}

/// All that the archive depends on; `None` where that is not known.
fn identity(clang: &Clang, parts: &[Part]) -> Option<String> {
    let own = file_identity(&std::env::current_exe().ok()?)?;
    let mut all = format!("{own}\n{}\n{OPTIONS:?}\n", clang.identity()?);
    for variable in SEARCHED {
        let value = std::env::var_os(variable);
        all.push_str(&format!("{variable} {value:?}\n"));
    }
    for Part { name, text, options } in parts {
        all.push_str(&format!("{name} {options:?}\n{text}\n"));
    }
    Some(all)
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
