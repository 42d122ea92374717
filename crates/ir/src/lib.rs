//! LLVM bitcode to owned IR, and the logging plan over it.

pub mod dump;
pub mod effects;
pub mod plan;
mod read;
pub mod types;

pub use read::{ReadError, read_bitcode, read_module};
