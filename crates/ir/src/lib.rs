//! LLVM bitcode to owned IR, and the logging plan over it.

pub mod assembly;
pub mod callers;
pub mod calls;
pub mod dependence;
pub mod dump;
pub mod effects;
pub mod feeding;
mod flow;
pub mod foreign;
pub mod gates;
mod guards;
pub mod guesses;
pub mod intrinsics;
pub mod lines;
pub mod loops;
pub mod name;
pub mod opaque;
pub mod plan;
mod read;
pub mod regions;
pub mod repeats;
pub mod stack;
#[cfg(test)]
mod testing;
pub mod types;
mod visit;
pub mod ways;
pub mod wrappers;

/// The attribute of a function that is neither instrumented nor walked: to its callers it is one of a library. Its
/// body is not read.
pub const UNTRACED: &std::ffi::CStr = c"symbiosis-untraced";

pub use guards::deciding;
pub use read::{ReadError, read_bitcode, read_module};
