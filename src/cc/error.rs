//! What can go wrong in the compiler driver itself. What clang has to say about a program is not
//! among it: clang's diagnostics and exit status go through untouched.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why `symbiosis cc` could not do its work.
#[derive(Debug, Error)]
pub enum CcError {
    /// No clang was found.
    #[error(
        "no {name} on PATH: install clang 14 or newer (for example `apt install clang`), or set \
         {variable} to its path"
    )]
    ClangNotFound {
        /// `clang` or `clang++`.
        name: &'static str,
        /// The environment variable that overrides the search.
        variable: &'static str,
    },
    /// Clang could not be started.
    #[error("cannot run {}", program.display())]
    Spawn {
        /// What was to be run.
        program: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A response file exists but cannot be read.
    #[error("cannot read the response file {}", path.display())]
    ResponseFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Response files include each other without end.
    #[error("the response file {} includes itself", path.display())]
    ResponseCycle {
        /// The file.
        path: PathBuf,
    },
    /// No place for temporary files.
    #[error("cannot make a temporary file or directory")]
    Temporary(#[source] io::Error),
    /// An object cannot be read back.
    #[error("cannot read the object {}", path.display())]
    ReadObject {
        /// The object.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// An object cannot be replaced by its instrumented form.
    #[error("cannot write the object {}", path.display())]
    WriteObject {
        /// The object.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// An OpenMP library that clang compiles nothing for.
    #[error(
        "clang compiles no OpenMP for {library}, it would leave the directives out: use -fopenmp or \
         -fopenmp=libomp"
    )]
    OpenMp {
        /// As given.
        library: String,
    },
    /// The instrumenter refused.
    #[error("cannot instrument {}", path.display())]
    Instrument {
        /// What was compiled.
        path: PathBuf,
        /// Why not.
        #[source]
        source: instrument::InstrumentError,
    },
    /// `-static` or `-static-pie`.
    #[error(
        "{option} cannot be recorded yet: the runtime finds the functions that it wraps with \
         dlsym, which a static executable does not have; link dynamically"
    )]
    StaticLink {
        /// The option as given.
        option: String,
    },
    /// `-nostdlib` and its kin, for an executable.
    #[error(
        "{option} cannot be recorded: the runtime in the executable needs the C library; link \
         with it, or name it with -lc"
    )]
    NoLibrary {
        /// The option as given.
        option: String,
    },
    /// A sanitizer that wraps what the runtime wraps.
    #[error(
        "-fsanitize={name} cannot be recorded: it replaces functions, memory or stacks that \
         recording has to see as they are; build without it (undefined, integer and their kin work)"
    )]
    Sanitizer {
        /// The check.
        name: String,
    },
    /// The runtime library cannot be put on disk.
    #[error("cannot provide the runtime library for linking")]
    Runtime(#[source] Box<dyn std::error::Error + Send + Sync>),
}
