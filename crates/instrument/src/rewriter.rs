//! What replaces instructions of a module, told by the functions that the debug information says they were inlined
//! from, by calls of the runtime.

use llvm::{Llvm, Module};
use llvm_sys::LLVMOpcode;
use llvm_sys::prelude::{LLVMBuilderRef, LLVMMetadataRef, LLVMTypeRef, LLVMValueRef};
use std::ffi::{CString, c_uint};

/// The name of a value that needs none.
pub(crate) const NO_NAME: *const std::ffi::c_char = c"".as_ptr();
/// Functions are inlined into each other so many levels deep at most; more is malformed.
const DEEPEST: usize = 1024;
/// Positions of operands of a subprogram and a lexical block.
const SCOPE_PARENT: usize = 1;
const SUBPROGRAM_SYMBOL: usize = 3;

/// The text of a metadata string; empty for what is none.
///
/// # Safety
/// The value must be null or alive.
pub(crate) unsafe fn string(llvm: &Llvm, operand: LLVMValueRef) -> String {
    if operand.is_null() {
        return String::new();
    }
    let mut length = 0;
    // SAFETY: LLVM returns the length with the start, and null for what is no string.
    unsafe {
        let start = llvm.LLVMGetMDString(operand, &mut length);
        llvm::bytes_to_string(start, length as usize)
    }
}

/// A module that is being changed, with the types of its calls.
pub(crate) struct Rewriter<'m, 'c> {
    pub(crate) llvm: &'static Llvm,
    pub(crate) module: &'m Module<'c>,
    pub(crate) builder: LLVMBuilderRef,
    pub(crate) i32: LLVMTypeRef,
    pub(crate) i64: LLVMTypeRef,
    pub(crate) pointer: LLVMTypeRef,
    pub(crate) void: LLVMTypeRef,
}

impl Drop for Rewriter<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: the builder is ours.
        unsafe { self.llvm.LLVMDisposeBuilder(self.builder) }
    }
}

/// The values and scopes that the functions get have to be alive.
impl<'m, 'c> Rewriter<'m, 'c> {
    pub(crate) fn new(module: &'m Module<'c>) -> Self {
        let (llvm, context) = (module.llvm(), module.context().raw());
        // SAFETY: the context is alive; the builder is disposed of in `drop`.
        unsafe {
            Self {
                llvm,
                module,
                builder: llvm.LLVMCreateBuilderInContext(context),
                i32: llvm.LLVMInt32TypeInContext(context),
                i64: llvm.LLVMInt64TypeInContext(context),
                pointer: llvm.LLVMPointerTypeInContext(context, 0),
                void: llvm.LLVMVoidTypeInContext(context),
            }
        }
    }

    pub(crate) unsafe fn is(&self, instruction: LLVMValueRef, opcode: LLVMOpcode) -> bool {
        // SAFETY: as the caller promises.
        unsafe { self.llvm.LLVMGetInstructionOpcode(instruction) == opcode as i32 }
    }

    /// The scopes that the instruction stands in, the innermost inlined one first, and which copy each is.
    pub(crate) unsafe fn within(
        &self,
        instruction: LLVMValueRef,
    ) -> impl Iterator<Item = (LLVMMetadataRef, LLVMMetadataRef)> + use<> {
        let llvm = self.llvm;
        // SAFETY: as the caller promises, and the locations of a live instruction are alive.
        let first = unsafe { llvm.LLVMInstructionGetDebugLoc(instruction) };
        let known = |location: LLVMMetadataRef| (!location.is_null()).then_some(location);
        let locations = std::iter::successors(known(first), move |&location| {
            // SAFETY: as above.
            known(unsafe { llvm.LLVMDILocationGetInlinedAt(location) })
        });
        locations.take(DEEPEST).map(move |location| {
            // SAFETY: as above.
            unsafe {
                (llvm.LLVMDILocationGetScope(location), llvm.LLVMDILocationGetInlinedAt(location))
            }
        })
    }

    /// The symbol of the function around a scope.
    pub(crate) unsafe fn symbol(&self, scope: LLVMMetadataRef) -> Option<String> {
        use llvm_sys::debuginfo::LLVMMetadataKind as Kind;
        let (llvm, context) = (self.llvm, self.module.context().raw());
        let mut scope = scope;
        for _ in 0..DEEPEST {
            // SAFETY: as the caller promises; the list has as many places as there are operands.
            unsafe {
                let value = llvm.LLVMMetadataAsValue(context, scope);
                let count = llvm.LLVMGetMDNodeNumOperands(value) as usize;
                let mut operands = vec![std::ptr::null_mut(); count];
                llvm.LLVMGetMDNodeOperands(value, operands.as_mut_ptr());
                let kind = llvm.LLVMGetMetadataKind(scope);
                if kind == Kind::LLVMDISubprogramMetadataKind as i32 {
                    return operands.get(SUBPROGRAM_SYMBOL).map(|&symbol| string(llvm, symbol));
                }
                let parent =
                    operands.get(SCOPE_PARENT).copied().filter(|parent| !parent.is_null())?;
                if llvm.LLVMIsAMDNode(parent).is_null() {
                    return None;
                }
                scope = llvm.LLVMValueAsMetadata(parent);
            }
        }
        None
    }

    /// Calls a function of the runtime before an instruction. The arguments have the types of the parameters.
    pub(crate) unsafe fn build_call(
        &self,
        before: LLVMValueRef,
        name: &str,
        result: LLVMTypeRef,
        mut parameters: Vec<LLVMTypeRef>,
        arguments: &mut [LLVMValueRef],
    ) -> LLVMValueRef {
        let llvm = self.llvm;
        let count = c_uint::try_from(parameters.len()).unwrap_or(0);
        let symbol = CString::new(name).unwrap_or_default();
        // SAFETY: the types are of the module's context, and the arguments as the caller promises.
        unsafe {
            let ty = llvm.LLVMFunctionType(result, parameters.as_mut_ptr(), count, 0);
            let declared = llvm.LLVMGetNamedFunction(self.module.raw(), symbol.as_ptr());
            let callee = match declared.is_null() {
                true => llvm.LLVMAddFunction(self.module.raw(), symbol.as_ptr(), ty),
                false => declared,
            };
            llvm.LLVMPositionBuilderBefore(self.builder, before);
            let location = llvm.LLVMInstructionGetDebugLoc(before);
            llvm.LLVMSetCurrentDebugLocation2(self.builder, location);
            llvm.LLVMBuildCall2(self.builder, ty, callee, arguments.as_mut_ptr(), count, NO_NAME)
        }
    }

    /// The value is used in the instruction's place, which goes away.
    pub(crate) unsafe fn put(&self, instruction: LLVMValueRef, value: LLVMValueRef) {
        // SAFETY: the value has the instruction's type and comes before its users.
        unsafe {
            self.llvm.LLVMReplaceAllUsesWith(instruction, value);
            self.llvm.LLVMInstructionEraseFromParent(instruction);
        }
    }
}
