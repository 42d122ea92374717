//! The trace directory: its on-disk layout, its reader, and the sealing that turns the raw files
//! of a run into checksummed ones. `docs/trace-format.md` describes the format for outsiders.
//!
//! A trace is read with [`Trace::open`], also when its recording was cut short: then the raw files
//! are read, and [`Manifest::state`] says so.

pub mod layout;

mod chunks;
mod error;
mod hash;
mod manifest;
mod order;
mod origin;
mod pieces;
mod program;
mod raw;
mod seal;
mod source;
mod streams;
mod trace;
mod version;

pub use error::TraceError;
pub use hash::{bitcode_file_name, bitcode_hash};
pub use layout::OrderRecord;
pub use manifest::{
    Executable, Failure, FailureKind, Manifest, Outcome, OutputCheck, SavedProgram, State,
    ThreadRecord, WriteFailure,
};
pub use origin::{Origin, ProcessIdentity, read_origin};
pub use pieces::{InMemory, Pieces, Streams};
pub use program::{program_hash, save_program, unpack_program};
pub use seal::{PATIENCE, read_raw, seal};
pub use streams::{ModuleId, PathEntry, PathReader, ValueReader, outcomes};
pub use trace::{Module, Thread, Trace};
pub use version::{FORMAT_VERSION, FormatVersion};

/// The names of the files in a trace directory.
pub mod files {
    /// What was run, how it ended, the threads and the failure.
    pub const MANIFEST: &str = "manifest.json";
    /// The runtime's process page, until sealing.
    pub const PROCESS: &str = "process.bin";
    /// What a child's process ran, until sealing.
    pub const ORIGIN: &str = super::layout::ORIGIN_FILE;
    /// The variables of OpenMP in the environment of a child's process, until sealing.
    pub const OPENMP: &str = super::layout::OPENMP_FILE;
    /// The module records, until sealing.
    pub const MODULES: &str = "modules.bin";
    /// The module records after sealing.
    pub const SEALED_MODULES: &str = "modules.z";
    /// The order of a scheduled run's turns, until sealing.
    pub const ORDER: &str = super::layout::ORDER_FILE;
    /// The order of the turns after sealing.
    pub const SEALED_ORDER: &str = "order.z";
    /// The directory of the threads' files.
    pub const THREADS: &str = "threads";
    /// The directory of the modules' bitcode.
    pub const IR: &str = "ir";
    /// The copy of the executable.
    pub const PROGRAM: &str = "program.zst";
    /// The last 64 KiB of standard output.
    pub const STDOUT_TAIL: &str = "stdout.tail";
    /// The last 64 KiB of standard error.
    pub const STDERR_TAIL: &str = "stderr.tail";
}
