//! The LLVM-C API, loaded at run time.
//!
//! Nothing here links with LLVM: [`Llvm::load`] finds a libLLVM (19 or newer; rustc's own first)
//! and resolves the functions of [`table`]. Types are those of `llvm-sys`. On top of the raw
//! functions there is a thin layer that owns contexts, modules, buffers and messages, and that
//! turns LLVM's diagnostics into typed errors: without a handler LLVM ends the process on a parse
//! error.
//!
//! Only the crates `ir` and `instrument` use this one.

mod context;
mod load;
mod machine;
pub mod table;

pub use context::{Context, Diagnostic, LlvmError, Module, Severity, bytes_to_string};
pub use llvm_sys;
pub use load::{LIBRARY_VARIABLE, Llvm, LoadError, OLDEST_VERSION, Version};
pub use machine::{PassOptions, TargetMachine, TargetOptions};
