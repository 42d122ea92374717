//! LLVM bitcode to owned IR, and the logging plan over it.

pub mod effects;
pub mod plan;
pub mod types;
