//! Bitcode to owned IR.
//!
//! The reader walks a module of LLVM once and copies it into [`crate::types`]. Identifiers are
//! given in the orders that `types` promises; types, constants, locations and scopes are numbered
//! as they are met, which depends on the module alone.

// `call!` may stand in an argument of another `call!`.
#![allow(unused_unsafe)]

mod body;
mod constants;
mod debug;
mod debug_types;
mod instructions;
mod types;
mod variables;

use crate::types::{
    BlockId, ConstId, DebugTypeId, FuncId, Function, Global, GlobalId, LocId, Module, Operand,
    Param, ScopeId, TypeId,
};
use llvm::llvm_sys::prelude::{
    LLVMBasicBlockRef, LLVMContextRef, LLVMMetadataRef, LLVMTypeRef, LLVMValueRef,
};
use llvm::llvm_sys::target::LLVMTargetDataRef;
use llvm::{Llvm, LlvmError, LoadError};
use rustc_hash::FxHashMap;

/// Calls a function of LLVM from a method of [`Reader`].
macro_rules! call {
    ($reader:expr, $name:ident($($arg:expr),* $(,)?)) => {{
        let llvm = $reader.llvm;
        // SAFETY: every reference that the reader holds belongs to the module or the context that
        // it borrows, and the reader has looked at its kind before.
        unsafe { llvm.$name($($arg),*) }
    }};
}
use call;

/// Why bitcode could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no usable LLVM.
    #[error("no LLVM to read bitcode with")]
    Library(#[from] LoadError),
    /// LLVM refuses the bitcode.
    #[error("the bitcode cannot be read")]
    Bitcode(#[from] LlvmError),
    /// It was compiled for another machine.
    #[error("the module is for `{triple}` with data layout `{layout}`, not for x86-64")]
    Target {
        /// The module's target triple.
        triple: String,
        /// The module's data layout.
        layout: String,
    },
    /// It has more of something than fits into an identifier.
    #[error("the module has more than 2^32 {0}")]
    TooLarge(&'static str),
}

/// Reads bitcode into owned IR.
///
/// # Errors
/// When there is no LLVM, when the bytes are not valid bitcode, or when the module is not for
/// x86-64.
pub fn read_bitcode(bytes: &[u8]) -> Result<Module, ReadError> {
    let context = llvm::Context::new(Llvm::load()?);
    let module = context.parse_bitcode(bytes)?;
    read_module(&module)
}

/// Reads a module that LLVM holds already. It is only looked at, except that LLVM 19 to 21 may be
/// told to turn its debug records into intrinsics, because they offer no other way to read them.
///
/// # Errors
/// When the module is not valid or not for x86-64.
pub fn read_module(module: &llvm::Module<'_>) -> Result<Module, ReadError> {
    // The conversion relies on the rules of the IR, such as a terminator in every block.
    module.verify()?;
    let mut reader = Reader::new(module);
    reader.check_target()?;
    reader.declare()?;
    reader.fill_globals();
    reader.fill_functions();
    crate::name::openmp::name_constructs(&mut reader.module.debug.scopes);
    Ok(reader.module)
}

/// The state of one conversion.
struct Reader<'m> {
    llvm: &'static Llvm,
    source: &'m llvm::Module<'m>,
    context: LLVMContextRef,
    layout: LLVMTargetDataRef,
    module: Module,
    types: FxHashMap<LLVMTypeRef, TypeId>,
    constants: FxHashMap<LLVMValueRef, ConstId>,
    globals: FxHashMap<LLVMValueRef, GlobalId>,
    functions: FxHashMap<LLVMValueRef, FuncId>,
    /// Blocks of all functions.
    blocks: FxHashMap<LLVMBasicBlockRef, (FuncId, BlockId)>,
    /// Instructions and parameters of all functions, each as its own function calls it.
    values: FxHashMap<LLVMValueRef, Operand>,
    locations: FxHashMap<LLVMMetadataRef, LocId>,
    scopes: FxHashMap<LLVMMetadataRef, ScopeId>,
    debug_types: FxHashMap<LLVMMetadataRef, DebugTypeId>,
    /// Debug expressions by what matters of them.
    shapes: FxHashMap<LLVMMetadataRef, variables::Shape>,
    /// Attribute kinds looked up by name once.
    byval: u32,
    noreturn: u32,
}

impl<'m> Reader<'m> {
    fn new(source: &'m llvm::Module<'m>) -> Self {
        let llvm = source.llvm();
        let kind = |name: &str| {
            // SAFETY: the name has the length given.
            unsafe { llvm.LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) }
        };
        Self {
            llvm,
            source,
            context: source.context().raw(),
            // SAFETY: the module is alive, and so is its layout.
            layout: unsafe { llvm.LLVMGetModuleDataLayout(source.raw()) },
            module: Module::default(),
            types: FxHashMap::default(),
            constants: FxHashMap::default(),
            globals: FxHashMap::default(),
            functions: FxHashMap::default(),
            blocks: FxHashMap::default(),
            values: FxHashMap::default(),
            locations: FxHashMap::default(),
            scopes: FxHashMap::default(),
            debug_types: FxHashMap::default(),
            shapes: FxHashMap::default(),
            byval: kind("byval"),
            noreturn: kind("noreturn"),
        }
    }

    /// Only x86-64 is understood: sizes, offsets and calling conventions depend on it.
    fn check_target(&self) -> Result<(), ReadError> {
        let raw = self.source.raw();
        let text = |start: *const std::ffi::c_char| {
            // SAFETY: LLVM returns a C string, or null.
            if start.is_null() {
                return String::new();
            }
            unsafe { std::ffi::CStr::from_ptr(start) }.to_string_lossy().into_owned()
        };
        let triple = text(call!(self, LLVMGetTarget(raw)));
        let layout = text(call!(self, LLVMGetDataLayoutStr(raw)));
        let little = call!(self, LLVMByteOrder(self.layout)) == 1;
        let wide = call!(self, LLVMPointerSize(self.layout)) == 8;
        let named = ["x86_64", "amd64"].iter().any(|arch| triple.starts_with(arch));
        if layout.is_empty() || !little || !wide || !named {
            return Err(ReadError::Target { triple, layout });
        }
        Ok(())
    }

    /// Numbers globals, functions, blocks and instructions, so that constants can refer to any of them.
    fn declare(&mut self) -> Result<(), ReadError> {
        let mut length = 0;
        let start = call!(self, LLVMGetSourceFileName(self.source.raw(), &mut length));
        // SAFETY: LLVM returned the length with the start.
        self.module.source_file = unsafe { llvm::bytes_to_string(start, length) };
        for (global, index) in self.source.globals().zip(0..) {
            self.globals.insert(global, GlobalId(index));
        }
        for (function, index) in self.source.functions().zip(0..) {
            self.functions.insert(function, FuncId(index));
            // SAFETY: the function is alive.
            for (block, number) in unsafe { self.llvm.blocks(function) }.zip(0..) {
                self.blocks.insert(block, (FuncId(index), BlockId(number)));
            }
            self.number(function)?;
        }
        Ok(())
    }

    fn fill_globals(&mut self) {
        for global in self.source.globals() {
            let content = call!(self, LLVMGlobalGetValueType(global));
            let initial = call!(self, LLVMGetInitializer(global));
            // An initialiser that may be replaced by the linker is still this module's idea of it,
            // but `available_externally` contents are somebody else's.
            let initial = (!initial.is_null() && !self.available_externally(global))
                .then(|| self.constant(initial));
            let converted = Global {
                name: self.symbol(global),
                ty: self.ty(content),
                size: self.size(content),
                init: initial,
                thread_local: call!(self, LLVMIsThreadLocal(global)) != 0,
                constant: call!(self, LLVMIsGlobalConstant(global)) != 0,
                internal: self.internal(global),
                debug: self.global_debug(global),
            };
            self.module.globals.push(converted);
        }
    }

    fn fill_functions(&mut self) {
        let functions: Vec<LLVMValueRef> = self.source.functions().collect();
        for &function in &functions {
            let converted = self.function(function);
            self.module.functions.push(converted);
        }
        self.fill_variables(&functions);
    }

    /// One function with its body.
    fn function(&mut self, function: LLVMValueRef) -> Function {
        let ty = call!(self, LLVMGlobalGetValueType(function));
        let name = self.symbol(function);
        let mut converted = Function {
            ty: self.ty(ty),
            result: self.ty(call!(self, LLVMGetReturnType(ty))),
            params: self.params(function),
            varargs: call!(self, LLVMIsFunctionVarArg(ty)) != 0,
            internal: self.internal(function),
            mergeable: self.mergeable(function),
            address_taken: self.address_taken(function),
            intrinsic: name.starts_with("llvm."),
            noreturn: self.has_attribute(function, u32::MAX, self.noreturn),
            blocks: Vec::new(),
            instructions: Vec::new(),
            scope: self.function_scope(function),
            returns: None,
            variables: Vec::new(),
            pieces: Vec::new(),
            name,
        };
        if !self.available_externally(function) && !self.is_untraced(function) {
            converted.returns = self.returned_type(function, converted.result);
            self.body(function, &mut converted);
        }
        converted
    }

    /// Has the function the attribute [`crate::UNTRACED`]?
    fn is_untraced(&self, function: LLVMValueRef) -> bool {
        let (name, length) = (crate::UNTRACED.as_ptr(), crate::UNTRACED.count_bytes() as u32);
        !call!(self, LLVMGetStringAttributeAtIndex(function, u32::MAX, name, length)).is_null()
    }

    fn params(&mut self, function: LLVMValueRef) -> Vec<Param> {
        let count = call!(self, LLVMCountParams(function));
        (0..count)
            .map(|index| {
                let value = call!(self, LLVMGetParam(function, index));
                let ty = self.ty(call!(self, LLVMTypeOf(value)));
                let attribute =
                    call!(self, LLVMGetEnumAttributeAtIndex(function, index + 1, self.byval));
                Param { ty, byval: self.byval_size(attribute) }
            })
            .collect()
    }

    /// The size behind a `byval(T)` attribute, `None` for no attribute.
    fn byval_size(&self, attribute: llvm::llvm_sys::prelude::LLVMAttributeRef) -> Option<u64> {
        if attribute.is_null() {
            return None;
        }
        let ty = call!(self, LLVMGetTypeAttributeValue(attribute));
        Some(if ty.is_null() { 0 } else { self.size(ty) })
    }

    fn has_attribute(&self, function: LLVMValueRef, index: u32, kind: u32) -> bool {
        !call!(self, LLVMGetEnumAttributeAtIndex(function, index, kind)).is_null()
    }

    /// The symbol name, without the mark that keeps LLVM from mangling it.
    fn symbol(&self, value: LLVMValueRef) -> String {
        // SAFETY: the value is alive.
        let name = unsafe { self.llvm.value_name(value) };
        name.strip_prefix('\u{1}').map_or(name.clone(), str::to_owned)
    }

    fn available_externally(&self, global: LLVMValueRef) -> bool {
        const AVAILABLE_EXTERNALLY: i32 =
            llvm::llvm_sys::LLVMLinkage::LLVMAvailableExternallyLinkage as i32;
        call!(self, LLVMGetLinkage(global)) == AVAILABLE_EXTERNALLY
    }

    fn internal(&self, global: LLVMValueRef) -> bool {
        const INTERNAL: i32 = llvm::llvm_sys::LLVMLinkage::LLVMInternalLinkage as i32;
        const PRIVATE: i32 = llvm::llvm_sys::LLVMLinkage::LLVMPrivateLinkage as i32;
        matches!(call!(self, LLVMGetLinkage(global)), INTERNAL | PRIVATE)
    }

    /// May the linker take another module's definition in the place of this one?
    fn mergeable(&self, function: LLVMValueRef) -> bool {
        use llvm::llvm_sys::LLVMLinkage as Linkage;
        const MERGED: [i32; 4] = [
            Linkage::LLVMLinkOnceAnyLinkage as i32,
            Linkage::LLVMLinkOnceODRLinkage as i32,
            Linkage::LLVMWeakAnyLinkage as i32,
            Linkage::LLVMWeakODRLinkage as i32,
        ];
        MERGED.contains(&call!(self, LLVMGetLinkage(function)))
            || !call!(self, LLVMGetComdat(function)).is_null()
    }

    /// Is the function used other than as the callee of a call in traced code? The address of a block is not the
    /// function's address. A function with the attribute [`crate::UNTRACED`] calls it as a library would: nobody
    /// tells of the call but the function itself.
    fn address_taken(&self, function: LLVMValueRef) -> bool {
        let mut entry = call!(self, LLVMGetFirstUse(function));
        while !entry.is_null() {
            let user = call!(self, LLVMGetUser(entry));
            let block_address = !call!(self, LLVMIsABlockAddress(user)).is_null();
            if !block_address && !self.only_calls(user, function) {
                return true;
            }
            entry = call!(self, LLVMGetNextUse(entry));
        }
        false
    }

    /// Does `user` call the function without also passing it on?
    fn only_calls(&self, user: LLVMValueRef, function: LLVMValueRef) -> bool {
        let call = !call!(self, LLVMIsACallInst(user)).is_null()
            || !call!(self, LLVMIsAInvokeInst(user)).is_null();
        // SAFETY: the user is alive.
        call && call!(self, LLVMGetCalledValue(user)) == function
            && !self.is_untraced(call!(
                self,
                LLVMGetBasicBlockParent(call!(self, LLVMGetInstructionParent(user)))
            ))
            && unsafe { self.llvm.operands(user) }.filter(|value| *value == function).count() == 1
    }
}
