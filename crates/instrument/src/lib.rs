//! The instrumenter: bitcode in, a native object out that records what it does.
//!
//! The bitcode is saved inside the object as it came (compressed, in the section `.symbiosis.ir`),
//! since the executor has to walk exactly the IR that was lowered to machine code. Then the hooks
//! go in where [`ir::plan`] says, and the module goes straight to the code generator: no pass runs
//! in between but the inlining of the hooks themselves, because an optimiser may move or merge what
//! the log says happened.
//!
//! Bitcode of Rust is changed before it is saved: its standard library's locks become calls of the runtime.
//!
//! Before what other threads may observe stand gates ([`ir::gates`]), where a scheduler can stop the
//! program. They log nothing.
//!
//! Besides the plan's entries, the object reports what uninstrumented callees wrote
//! ([`ir::effects`]), right before the `RETURN` entry of the call.
//!
//! This crate and `ir` are the only ones that know LLVM.

mod accesses;
mod attributes;
mod build;
mod calls;
mod choices;
mod descriptor;
mod edges;
mod emit;
mod gates;
mod hooks;
mod kept;
mod place;
mod pointees;
mod qt;
mod repeats;
mod rewriter;
mod rust;
mod scan;
mod structors;
mod symbolisers;
mod values;
mod words;
mod writes;

use llvm::{Context, Llvm, LlvmError, LoadError};
use thiserror::Error;

/// How hard the code generator works: the user's `-O`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptLevel {
    /// `-O0`.
    None,
    /// `-O1`.
    Less,
    /// `-O2`, `-Os`.
    #[default]
    Default,
    /// `-O3`.
    Aggressive,
}

/// How to instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The effort of the code generator.
    pub level: OptLevel,
    /// Check the instrumented module against LLVM's rules before machine code is made.
    pub verify: bool,
    /// Beside everything else, call `__symbiosis_witness(function, block)` at the start of every
    /// block, with the function's process-wide number: for tests that compare the recorded path
    /// with the path itself. The program has to define it.
    pub witness: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: OptLevel::Default, verify: cfg!(debug_assertions), witness: false }
    }
}

/// Why a module cannot be instrumented.
#[derive(Debug, Error)]
pub enum InstrumentError {
    /// No LLVM library.
    #[error("cannot load LLVM")]
    Load(#[from] LoadError),
    /// LLVM refuses something; its words say what.
    #[error(transparent)]
    Llvm(#[from] LlvmError),
    /// The bitcode cannot be turned into the executor's IR.
    #[error("cannot read the bitcode")]
    Read(#[source] ir::ReadError),
    /// The target is not one that the runtime supports.
    #[error("cannot record programs for {triple}: only x86-64 Linux is supported")]
    Target {
        /// The module's target triple.
        triple: String,
    },
    /// The executor's view of a function and LLVM's differ. This is a defect of Symbiosis.
    #[error("in {function}: {what} differ between the saved and the instrumented IR")]
    Mismatch {
        /// The function.
        function: String,
        /// What differs.
        what: &'static str,
    },
    /// The module carries hooks already.
    #[error("the module is instrumented already")]
    Twice,
    /// A hook is missing from the hook module. This is a defect of Symbiosis.
    #[error("the hook module has no {name}")]
    Hook {
        /// The missing symbol.
        name: &'static str,
    },
    /// The bitcode cannot be compressed.
    #[error("cannot compress the bitcode")]
    Compress(#[source] std::io::Error),
}

/// Whether the bytes are LLVM bitcode, bare or wrapped.
#[must_use]
pub fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(&0x0B17_C0DE_u32.to_le_bytes())
}

/// Turns bitcode into an instrumented x86-64 ELF object.
pub fn instrument(bitcode: &[u8], options: &Options) -> Result<Vec<u8>, InstrumentError> {
    let llvm = Llvm::load()?;
    let context = Context::new(llvm);
    let module = instrumented(&context, bitcode, options)?;
    emit::object(&module, options.level)
}

/// The text of the instrumented module, for people who want to see what was done.
pub fn instrumented_ir(bitcode: &[u8], options: &Options) -> Result<String, InstrumentError> {
    let llvm = Llvm::load()?;
    let context = Context::new(llvm);
    Ok(instrumented(&context, bitcode, options)?.print())
}

fn instrumented<'c>(
    context: &'c Context,
    bitcode: &[u8],
    options: &Options,
) -> Result<llvm::Module<'c>, InstrumentError> {
    let mut module = context.parse_bitcode(bitcode)?;
    emit::check_target(&module)?;
    let prepared = rust::prepared(&module).or_else(|| qt::prepared(&module));
    let bitcode = prepared.as_deref().unwrap_or(bitcode);
    if prepared.is_some() {
        module = context.parse_bitcode(bitcode)?;
    }
    let source = ir::read_bitcode(bitcode).map_err(InstrumentError::Read)?;
    let handles = descriptor::Handles::collect(&module, &source)?;
    let hooks = hooks::link(&module, options.witness)?;
    attributes::strip(&module);
    let resolvers = attributes::resolvers(&module);
    for (id, (function, &value)) in source.functions.iter().zip(&handles.functions).enumerate() {
        let untouched = attributes::is_naked(&module, value) || resolvers.contains(&value);
        if function.is_declaration() || untouched {
            continue;
        }
        let function = place::Target { module: &source, function, index: id, value };
        place::function(&module, &hooks, &function)?;
        accesses::order(&module, value);
    }
    writes::report_tables(&module, &hooks, &handles.functions);
    descriptor::fill(&module, &hooks, &source, &handles, bitcode)?;
    structors::lower(&module);
    if options.verify {
        module.verify()?;
    }
    module.run_passes("always-inline", None, llvm::PassOptions::default())?;
    Ok(module)
}
