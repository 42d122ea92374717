//! Passes and machine code.

use crate::context::{Buffer, LlvmError, Module, c_string};
use crate::load::Llvm;
use llvm_sys::target_machine::{
    LLVMCodeGenFileType, LLVMCodeGenOptLevel, LLVMCodeModel, LLVMRelocMode, LLVMTargetMachineRef,
};
use llvm_sys::transforms::pass_builder::LLVMPassBuilderOptionsRef;
use std::ffi::CStr;
use std::sync::Once;

/// What machine code to make.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    /// The triple, for instance `x86_64-pc-linux-gnu`.
    pub triple: String,
    /// The processor; empty for the generic one.
    pub cpu: String,
    /// Features, `+avx2,-sse4.1`; empty for the processor's own.
    pub features: String,
    /// Effort of the code generator.
    pub level: LLVMCodeGenOptLevel,
    /// How addresses are formed.
    pub relocation: LLVMRelocMode,
    /// Where code and data may lie.
    pub code_model: LLVMCodeModel,
}

/// Switches of the pass builder; everything else is LLVM's default.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassOptions {
    /// Verify the module after every pass.
    pub verify_each: bool,
    /// Vectorise loops and straight-line code.
    pub vectorize: bool,
}

/// A code generator.
pub struct TargetMachine {
    llvm: &'static Llvm,
    raw: LLVMTargetMachineRef,
}

impl TargetMachine {
    /// A code generator for an x86 triple.
    ///
    /// # Errors
    /// When this LLVM has none for the triple.
    pub fn new(llvm: &'static Llvm, options: &TargetOptions) -> Result<Self, LlvmError> {
        llvm.initialize_x86();
        let triple = c_string(&options.triple)?;
        let (cpu, features) = (c_string(&options.cpu)?, c_string(&options.features)?);
        let (mut target, mut message) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: all strings are C strings that live through the calls.
        let raw = unsafe {
            if llvm.LLVMGetTargetFromTriple(triple.as_ptr(), &mut target, &mut message) != 0 {
                return Err(LlvmError::Target(llvm.owned_message(message)));
            }
            llvm.LLVMCreateTargetMachine(
                target,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                options.level,
                options.relocation,
                options.code_model,
            )
        };
        if raw.is_null() {
            return Err(LlvmError::Target(format!("{} has no target machine", options.triple)));
        }
        Ok(Self { llvm, raw })
    }

    /// The raw target machine.
    #[must_use]
    pub fn raw(&self) -> LLVMTargetMachineRef {
        self.raw
    }

    /// Makes an object file or assembly text.
    ///
    /// # Errors
    /// With LLVM's words, for instance about inline assembly.
    pub fn emit(&self, module: &Module<'_>, ty: LLVMCodeGenFileType) -> Result<Vec<u8>, LlvmError> {
        module.context().take_diagnostics();
        let (mut message, mut buffer) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: machine and module are alive.
        let failed = unsafe {
            self.llvm.LLVMTargetMachineEmitToMemoryBuffer(
                self.raw,
                module.raw(),
                ty,
                &mut message,
                &mut buffer,
            )
        };
        // SAFETY: the message is null or ours now.
        let message = unsafe { self.llvm.owned_message(message) };
        if failed != 0 || buffer.is_null() {
            return Err(LlvmError::Emit(module.context().errors(&message)));
        }
        let bytes = Buffer { llvm: self.llvm, raw: buffer }.bytes().to_vec();
        let errors = module.context().errors("");
        if errors.is_empty() { Ok(bytes) } else { Err(LlvmError::Emit(errors)) }
    }
}

impl Drop for TargetMachine {
    fn drop(&mut self) {
        // SAFETY: the machine is ours.
        unsafe { self.llvm.LLVMDisposeTargetMachine(self.raw) }
    }
}

impl Module<'_> {
    /// Runs a pass pipeline, written as for `opt -passes=`.
    ///
    /// # Errors
    /// When the pipeline is malformed or a pass reports an error.
    pub fn run_passes(
        &self,
        passes: &str,
        machine: Option<&TargetMachine>,
        options: PassOptions,
    ) -> Result<(), LlvmError> {
        let llvm = self.llvm();
        let passes = c_string(passes)?;
        let switches = Switches::new(llvm, options);
        let machine = machine.map_or(std::ptr::null_mut(), TargetMachine::raw);
        self.context().take_diagnostics();
        // SAFETY: everything lives through the call; the error is consumed by its message.
        unsafe {
            let error = llvm.LLVMRunPasses(self.raw(), passes.as_ptr(), machine, switches.raw);
            if !error.is_null() {
                let message = llvm.LLVMGetErrorMessage(error);
                let text = CStr::from_ptr(message).to_string_lossy().into_owned();
                llvm.LLVMDisposeErrorMessage(message);
                return Err(LlvmError::Passes(text));
            }
        }
        let errors = self.context().errors("");
        if errors.is_empty() { Ok(()) } else { Err(LlvmError::Passes(errors)) }
    }
}

/// Pass builder options of LLVM.
struct Switches {
    llvm: &'static Llvm,
    raw: LLVMPassBuilderOptionsRef,
}

impl Switches {
    fn new(llvm: &'static Llvm, options: PassOptions) -> Self {
        let vectorize = i32::from(options.vectorize);
        // SAFETY: the options were just created.
        let raw = unsafe {
            let raw = llvm.LLVMCreatePassBuilderOptions();
            llvm.LLVMPassBuilderOptionsSetVerifyEach(raw, i32::from(options.verify_each));
            llvm.LLVMPassBuilderOptionsSetLoopVectorization(raw, vectorize);
            llvm.LLVMPassBuilderOptionsSetSLPVectorization(raw, vectorize);
            raw
        };
        Self { llvm, raw }
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        // SAFETY: the options are ours.
        unsafe { self.llvm.LLVMDisposePassBuilderOptions(self.raw) }
    }
}

impl Llvm {
    /// Registers the x86 code generator, once per process.
    pub fn initialize_x86(&self) {
        static DONE: Once = Once::new();
        // SAFETY: these only register the target.
        DONE.call_once(|| unsafe {
            self.LLVMInitializeX86TargetInfo();
            self.LLVMInitializeX86Target();
            self.LLVMInitializeX86TargetMC();
            self.LLVMInitializeX86AsmPrinter();
            self.LLVMInitializeX86AsmParser();
        });
    }
}
