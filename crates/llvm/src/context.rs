//! Owners of contexts, modules, buffers and messages.

use crate::load::Llvm;
use llvm_sys::analysis::LLVMVerifierFailureAction;
use llvm_sys::prelude::{
    LLVMBasicBlockRef, LLVMContextRef, LLVMDiagnosticInfoRef, LLVMMemoryBufferRef, LLVMModuleRef,
    LLVMValueRef,
};
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};

/// What LLVM reported through its diagnostic handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// LLVM's words.
    pub message: String,
}

/// LLVM's diagnostic severities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Severity {
    Error,
    Warning,
    Remark,
    Note,
}

/// Something that LLVM refused.
#[derive(Debug, thiserror::Error)]
pub enum LlvmError {
    /// The bytes are not bitcode or textual IR that this LLVM reads.
    #[error("cannot read the module: {0}")]
    Parse(String),
    /// The module breaks a rule of the IR.
    #[error("the module is not valid: {0}")]
    Verify(String),
    /// Two modules do not fit together.
    #[error("cannot link the modules: {0}")]
    Link(String),
    /// A pass pipeline is malformed or failed.
    #[error("cannot run the passes: {0}")]
    Passes(String),
    /// The target is unknown to this LLVM.
    #[error("no code generator: {0}")]
    Target(String),
    /// No machine code could be made.
    #[error("cannot emit machine code: {0}")]
    Emit(String),
    /// A text that has to go through C holds a zero byte.
    #[error("zero byte in {0:?}")]
    ZeroByte(String),
}

/// A context with a diagnostic handler.
pub struct Context {
    llvm: &'static Llvm,
    raw: LLVMContextRef,
    /// Boxed, because LLVM keeps a pointer to it.
    sink: Box<Sink>,
}

impl Context {
    /// A new context.
    #[must_use]
    pub fn new(llvm: &'static Llvm) -> Self {
        let sink = Box::new(Sink { llvm, diagnostics: RefCell::default() });
        let target: *const Sink = &raw const *sink;
        // SAFETY: the sink lives as long as the context, see `drop`.
        let raw = unsafe {
            let raw = llvm.LLVMContextCreate();
            llvm.LLVMContextSetDiagnosticHandler(raw, Some(collect), target.cast_mut().cast());
            raw
        };
        Self { llvm, raw, sink }
    }

    /// The library.
    #[must_use]
    pub fn llvm(&self) -> &'static Llvm {
        self.llvm
    }

    /// The raw context.
    #[must_use]
    pub fn raw(&self) -> LLVMContextRef {
        self.raw
    }

    /// Takes what was reported since the last call.
    pub fn take_diagnostics(&self) -> Vec<Diagnostic> {
        self.sink.diagnostics.take()
    }

    /// Reads bitcode (the wrapper format included).
    ///
    /// # Errors
    /// With LLVM's words when it is not bitcode that this LLVM reads.
    pub fn parse_bitcode(&self, bytes: &[u8]) -> Result<Module<'_>, LlvmError> {
        self.take_diagnostics();
        let buffer = Buffer::copy(self.llvm, bytes);
        let mut module = std::ptr::null_mut();
        // SAFETY: the buffer outlives the call, which reads everything.
        let failed =
            unsafe { self.llvm.LLVMParseBitcodeInContext2(self.raw, buffer.raw, &mut module) };
        if failed != 0 || module.is_null() {
            return Err(LlvmError::Parse(self.errors("unknown error")));
        }
        Ok(Module { context: self, raw: module })
    }

    /// Reads textual IR or bitcode.
    ///
    /// # Errors
    /// With LLVM's words when it is neither.
    pub fn parse_ir(&self, bytes: &[u8]) -> Result<Module<'_>, LlvmError> {
        self.take_diagnostics();
        let buffer = Buffer::copy(self.llvm, bytes).release();
        let (mut module, mut message) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the callee takes the buffer over, also when it fails.
        let failed =
            unsafe { self.llvm.LLVMParseIRInContext(self.raw, buffer, &mut module, &mut message) };
        // SAFETY: the message is null or ours now.
        let message = unsafe { self.llvm.owned_message(message) };
        if failed != 0 || module.is_null() {
            return Err(LlvmError::Parse(self.errors(&message)));
        }
        Ok(Module { context: self, raw: module })
    }

    /// A new empty module.
    ///
    /// # Errors
    /// When the name has a zero byte.
    pub fn create_module(&self, name: &str) -> Result<Module<'_>, LlvmError> {
        let name = c_string(name)?;
        // SAFETY: the name is a C string.
        let raw = unsafe { self.llvm.LLVMModuleCreateWithNameInContext(name.as_ptr(), self.raw) };
        Ok(Module { context: self, raw })
    }

    /// The errors reported so far as one line, else `otherwise`.
    pub(crate) fn errors(&self, otherwise: &str) -> String {
        let errors: Vec<String> = self
            .take_diagnostics()
            .into_iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .map(|diagnostic| diagnostic.message)
            .collect();
        if errors.is_empty() { otherwise.to_owned() } else { errors.join("; ") }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: modules borrow the context, so all of them are gone; the sink goes after this.
        unsafe { self.llvm.LLVMContextDispose(self.raw) }
    }
}

/// Where the diagnostic handler puts what it is told.
struct Sink {
    llvm: &'static Llvm,
    diagnostics: RefCell<Vec<Diagnostic>>,
}

/// The diagnostic handler of every context. It must not unwind into LLVM.
extern "C" fn collect(info: LLVMDiagnosticInfoRef, sink: *mut c_void) {
    // SAFETY: LLVM passes what `Context::new` registered, and the message is ours.
    let (message, severity, sink) = unsafe {
        let sink = &*sink.cast::<Sink>();
        let message = sink.llvm.owned_message(sink.llvm.LLVMGetDiagInfoDescription(info));
        (message, sink.llvm.LLVMGetDiagInfoSeverity(info), sink)
    };
    let severity = match severity {
        0 => Severity::Error,
        1 => Severity::Warning,
        2 => Severity::Remark,
        _ => Severity::Note,
    };
    if let Ok(mut list) = sink.diagnostics.try_borrow_mut() {
        list.push(Diagnostic { severity, message });
    }
}

/// A module; its context must outlive it.
pub struct Module<'c> {
    context: &'c Context,
    raw: LLVMModuleRef,
}

impl<'c> Module<'c> {
    /// The context.
    #[must_use]
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// The library.
    #[must_use]
    pub fn llvm(&self) -> &'static Llvm {
        self.context.llvm
    }

    /// The raw module.
    #[must_use]
    pub fn raw(&self) -> LLVMModuleRef {
        self.raw
    }

    /// Its functions, declarations included, in module order.
    pub fn functions(&self) -> impl Iterator<Item = LLVMValueRef> + use<'_, 'c> {
        let llvm = self.llvm();
        // SAFETY: the module is alive, and so is each function while its successor is asked for.
        let first = unsafe { llvm.LLVMGetFirstFunction(self.raw) };
        chain(first, move |function| unsafe { llvm.LLVMGetNextFunction(function) })
    }

    /// Its global variables, declarations included, in module order.
    pub fn globals(&self) -> impl Iterator<Item = LLVMValueRef> + use<'_, 'c> {
        let llvm = self.llvm();
        // SAFETY: as for functions.
        let first = unsafe { llvm.LLVMGetFirstGlobal(self.raw) };
        chain(first, move |global| unsafe { llvm.LLVMGetNextGlobal(global) })
    }

    /// Writes bitcode.
    #[must_use]
    pub fn write_bitcode(&self) -> Vec<u8> {
        // SAFETY: the module is alive; the buffer is ours.
        let raw = unsafe { self.llvm().LLVMWriteBitcodeToMemoryBuffer(self.raw) };
        Buffer { llvm: self.llvm(), raw }.bytes().to_vec()
    }

    /// Prints textual IR.
    #[must_use]
    pub fn print(&self) -> String {
        // SAFETY: the module is alive, and the message ours.
        unsafe { self.llvm().owned_message(self.llvm().LLVMPrintModuleToString(self.raw)) }
    }

    /// Checks the rules of the IR.
    ///
    /// # Errors
    /// With every violation, in LLVM's words.
    pub fn verify(&self) -> Result<(), LlvmError> {
        let mut message = std::ptr::null_mut();
        let action = LLVMVerifierFailureAction::LLVMReturnStatusAction;
        // SAFETY: the module is alive.
        let broken = unsafe { self.llvm().LLVMVerifyModule(self.raw, action, &mut message) };
        // SAFETY: the message is null or ours now.
        let message = unsafe { self.llvm().owned_message(message) };
        if broken != 0 { Err(LlvmError::Verify(message.trim_end().to_owned())) } else { Ok(()) }
    }

    /// Links `other` of the same context into this one.
    ///
    /// # Errors
    /// With LLVM's words, for instance when a symbol is defined twice.
    pub fn link(&self, other: Module<'c>) -> Result<(), LlvmError> {
        self.context.take_diagnostics();
        let raw = other.raw;
        // LLVM takes the source module over, also when it fails.
        std::mem::forget(other);
        // SAFETY: both are alive and of one context.
        if unsafe { self.llvm().LLVMLinkModules2(self.raw, raw) } != 0 {
            return Err(LlvmError::Link(self.context.errors("unknown error")));
        }
        Ok(())
    }

    /// Removes all debug information.
    pub fn strip_debug_info(&self) {
        // SAFETY: the module is alive.
        unsafe { self.llvm().LLVMStripModuleDebugInfo(self.raw) };
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is still there.
        unsafe { self.context.llvm.LLVMDisposeModule(self.raw) }
    }
}

/// A list that LLVM links through a "next" function; a null ends it.
fn chain<T>(first: *mut T, next: impl Fn(*mut T) -> *mut T) -> impl Iterator<Item = *mut T> {
    let live = |value: *mut T| (!value.is_null()).then_some(value);
    std::iter::successors(live(first), move |&value| live(next(value)))
}

impl Llvm {
    /// The blocks of a function, in order.
    ///
    /// # Safety
    /// The function must be one, and alive while the iterator is used; the block last returned
    /// must not be removed before the next one is asked for.
    pub unsafe fn blocks(
        &self,
        function: LLVMValueRef,
    ) -> impl Iterator<Item = LLVMBasicBlockRef> + use<'_> {
        // SAFETY: as the caller promises.
        let first = unsafe { self.LLVMGetFirstBasicBlock(function) };
        chain(first, move |block| unsafe { self.LLVMGetNextBasicBlock(block) })
    }

    /// The instructions of a block, in order; debug records are none.
    ///
    /// # Safety
    /// As for [`Llvm::blocks`].
    pub unsafe fn instructions(
        &self,
        block: LLVMBasicBlockRef,
    ) -> impl Iterator<Item = LLVMValueRef> + use<'_> {
        // SAFETY: as the caller promises.
        let first = unsafe { self.LLVMGetFirstInstruction(block) };
        chain(first, move |instruction| unsafe { self.LLVMGetNextInstruction(instruction) })
    }

    /// The operands of a value.
    ///
    /// # Safety
    /// The value must be a user (instruction, constant) and alive while the iterator is used.
    pub unsafe fn operands(
        &self,
        value: LLVMValueRef,
    ) -> impl ExactSizeIterator<Item = LLVMValueRef> + use<'_> {
        // SAFETY: as the caller promises.
        let count = unsafe { self.LLVMGetNumOperands(value) }.max(0).cast_unsigned();
        (0..count).map(move |index| unsafe { self.LLVMGetOperand(value, index) })
    }

    /// The symbol or value name, empty when it has none.
    ///
    /// # Safety
    /// The value must be alive.
    #[must_use]
    pub unsafe fn value_name(&self, value: LLVMValueRef) -> String {
        let mut length = 0;
        // SAFETY: as the caller promises.
        let start = unsafe { self.LLVMGetValueName2(value, &mut length) };
        // SAFETY: LLVM returned the length with the start.
        unsafe { bytes_to_string(start, length) }
    }

    /// Copies a message that the caller owns and frees it; empty for null.
    ///
    /// # Safety
    /// `message` is null or a message that LLVM handed over, and is not used again.
    #[must_use]
    pub unsafe fn owned_message(&self, message: *mut c_char) -> String {
        if message.is_null() {
            return String::new();
        }
        // SAFETY: LLVM's messages are C strings that `LLVMDisposeMessage` frees.
        unsafe {
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            self.LLVMDisposeMessage(message);
            text
        }
    }
}

/// Copies a string that LLVM owns; empty for null.
///
/// # Safety
/// `start` is null or has `length` readable bytes.
#[must_use]
pub unsafe fn bytes_to_string(start: *const c_char, length: usize) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// As a C string.
///
/// # Errors
/// When it has a zero byte.
pub(crate) fn c_string(text: &str) -> Result<std::ffi::CString, LlvmError> {
    std::ffi::CString::new(text).map_err(|_| LlvmError::ZeroByte(text.to_owned()))
}

/// A memory buffer of LLVM.
pub(crate) struct Buffer {
    pub(crate) llvm: &'static Llvm,
    pub(crate) raw: LLVMMemoryBufferRef,
}

impl Buffer {
    fn copy(llvm: &'static Llvm, bytes: &[u8]) -> Self {
        let start = bytes.as_ptr().cast();
        let name = c"module".as_ptr();
        // SAFETY: the range is readable, and copied.
        let raw =
            unsafe { llvm.LLVMCreateMemoryBufferWithMemoryRangeCopy(start, bytes.len(), name) };
        Self { llvm, raw }
    }

    /// Gives the buffer to a function that takes it over.
    fn release(self) -> LLVMMemoryBufferRef {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: LLVM's buffer is contiguous and lives as long as `self`.
        unsafe {
            let start = self.llvm.LLVMGetBufferStart(self.raw).cast::<u8>();
            std::slice::from_raw_parts(start, self.llvm.LLVMGetBufferSize(self.raw))
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the buffer is ours.
        unsafe { self.llvm.LLVMDisposeMemoryBuffer(self.raw) }
    }
}
