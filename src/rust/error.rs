//! What can go wrong between rustc and the instrumented program.

use crate::cc::CcError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a Rust program could not be built for recording.
#[derive(Debug, Error)]
pub enum RustError {
    /// rustc or cargo could not be started.
    #[error("cannot run {}: install it with rustup, or set RUSTC or CARGO to its path", program.display())]
    Spawn {
        /// What was to be run.
        program: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The wrapper was called by hand.
    #[error(
        "symbiosis-rustc stands before a compiler (RUSTC_WRAPPER): give rustc as its first argument"
    )]
    NoCompiler,
    /// No place for temporary files.
    #[error("cannot make a temporary file or directory")]
    Temporary(#[source] io::Error),
    /// The linker was called by hand.
    #[error("symbiosis-rust-link is called by `symbiosis rustc` and `symbiosis cargo` only")]
    NoBitcode,
    /// rustc links no object of its own.
    #[error("rustc gave its linker no object of the program (none ends with .rcgu.o)")]
    NoObject,
    /// The bitcode or the object made of it.
    #[error("cannot turn the program's bitcode into its object")]
    Bitcode(#[source] io::Error),
    /// The link as `symbiosis cc` does it.
    #[error("cannot link the program")]
    Link(#[source] CcError),
}
