//! The compiler driver behind `symbiosis cc` and `symbiosis c++`: clang's command line, clang's
//! diagnostics, clang's exit status; only the objects are instrumented, and executables carry the
//! runtime.
//!
//! What does not end in machine code goes to clang as it is. `-c` runs the user's command with
//! `-emit-llvm` added and converts the output in place. A command that compiles and links is split
//! into one compilation per source and one link.
//!
//! Limits: no `-static`, no sanitizer with a runtime of its own; link-time optimisation, hooks at
//! functions' beginnings (`-pg`) and counters for coverage or profiles are dropped with a warning; on `-shared`, `-z defs` and
//! `--no-undefined` are dropped, since the runtime is found in the executable.

mod arguments;
mod compile;
mod error;
mod header;
mod library;
mod link;
mod options;
mod response;
mod sanitizers;
mod scripts;
mod toolchain;

pub use error::CcError;

use crate::said::warn;
use arguments::{Arguments, Input, Mode};
use compile::Share;
use link::{Product, Runtime};
use options::Dropped;
use options::InputKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toolchain::Clang;

/// Where the runtime's archive comes from; asked only when an executable is linked.
pub type ArchiveSource<'a> = &'a dyn Fn() -> Result<PathBuf, CcError>;

/// Runs the driver and returns the exit status for the process. `archive` provides the static
/// library with the runtime.
pub fn run(cxx: bool, args: &[OsString], archive: ArchiveSource<'_>) -> Result<u8, CcError> {
    let clang = Clang::find(cxx)?;
    let arguments = Arguments::parse(&response::expand(args)?);
    if arguments.mode != Mode::PassThrough {
        sanitizers::check(&arguments)?;
        library::check(&arguments)?;
        for why in Dropped::ALL {
            let of_it = |(reason, _): &&(Dropped, String)| *reason == why;
            let options: Vec<&str> =
                arguments.dropped.iter().filter(of_it).map(|(_, option)| option.as_str()).collect();
            if !options.is_empty() {
                warn(format_args!("{} dropped: {}", options.join(" "), why.reason()));
            }
        }
    }
    match arguments.mode {
        Mode::PassThrough => pass_through(&clang, &arguments, args),
        Mode::Compile => compile_only(&clang, &arguments, args),
        Mode::Link => compile_and_link(&clang, cxx, &arguments, archive),
    }
}

/// The arguments with those of response files in their places.
pub fn expanded(args: &[OsString]) -> Result<Vec<OsString>, CcError> {
    response::expand(args)
}

/// What does not end in machine code. Sources find the header all the same.
fn pass_through(clang: &Clang, arguments: &Arguments, args: &[OsString]) -> Result<u8, CcError> {
    let internal = args.first().is_some_and(|first| first == "-cc1" || first == "-cc1as");
    let sources = arguments.sources().any(|source| source.kind == InputKind::Source);
    if internal || !sources {
        return clang.run(args);
    }
    let mut command = header::options()?;
    command.extend_from_slice(args);
    clang.run(&command)
}

/// `-c`.
fn compile_only(clang: &Clang, arguments: &Arguments, args: &[OsString]) -> Result<u8, CcError> {
    let sources: Vec<&Input> = arguments.sources().collect();
    let plain = match (sources.as_slice(), &arguments.output) {
        ([], _) => true,
        ([source], Some(output)) => source.kind == InputKind::Foreign || is_special(output),
        ([source], None) => source.kind == InputKind::Foreign,
        // Clang says that one output cannot hold several objects.
        (_, output) => output.is_some(),
    };
    if plain {
        return clang.run(args);
    }
    let share = if sources.len() == 1 { Share::Whole } else { Share::Part };
    let mut worst = 0;
    for source in sources {
        let output = arguments.output.clone();
        let output = output.unwrap_or_else(|| source.default_output("o").into());
        let status = compile::compile(clang, arguments, source, share, &output)?;
        worst = if worst == 0 { status } else { worst };
    }
    Ok(worst)
}

/// Standard output and devices (configure scripts compile to `/dev/null`) cannot be converted.
fn is_special(output: &Path) -> bool {
    output == Path::new("-") || fs_err::metadata(output).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// A command that links, sources or not.
fn compile_and_link(
    clang: &Clang,
    cxx: bool,
    arguments: &Arguments,
    archive: ArchiveSource<'_>,
) -> Result<u8, CcError> {
    let product = link::product(arguments)?;
    let directory =
        tempfile::Builder::new().prefix("symbiosis-cc-").tempdir().map_err(CcError::Temporary)?;
    let mut objects = Vec::new();
    let mut worst = 0;
    for (index, source) in arguments.sources().enumerate() {
        let object = link::object_name(directory.path(), index, &source.path);
        let status = compile::compile(clang, arguments, source, Share::Part, &object)?;
        worst = if worst == 0 { status } else { worst };
        objects.push(object);
    }
    if worst != 0 {
        return Ok(worst);
    }
    let runtime = match product {
        Product::Executable => Some(runtime(directory.path(), archive)?),
        Product::SharedLibrary | Product::Relocatable => None,
    };
    let library = match product {
        Product::Executable | Product::SharedLibrary => {
            library::archive(clang, cxx, arguments, directory.path())?
        }
        Product::Relocatable => None,
    };
    clang.run(&link::command(arguments, product, &objects, library.as_deref(), runtime.as_ref()))
}

fn runtime(directory: &Path, archive: ArchiveSource<'_>) -> Result<Runtime, CcError> {
    let exports = directory.join("exports");
    fs_err::write(&exports, link::EXPORTS).map_err(CcError::Temporary)?;
    Ok(Runtime { archive: archive()?, exports })
}
