//! Function attributes that the hooks make false.

use crate::values::underlying_object;
use llvm::{Llvm, Module};
use llvm_sys::prelude::LLVMValueRef;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMOpcode};
use std::collections::HashSet;
use std::ffi::c_uint;

/// What optimisers infer about functions that do not log. The older spellings of `memory(..)` are
/// kept for parameters, where they still exist.
const FALSE_WITH_HOOKS: [&str; 12] = [
    "memory",
    "nosync",
    "nofree",
    "willreturn",
    "speculatable",
    "readnone",
    "readonly",
    "writeonly",
    "argmemonly",
    "inaccessiblememonly",
    "inaccessiblemem_or_argmemonly",
    "nocallback",
];

/// Takes the attributes from all functions but intrinsics, and from the calls of such functions.
/// LLVM would delete or move the log's code otherwise.
pub fn strip(module: &Module<'_>) {
    let llvm = module.llvm();
    let kinds: Vec<c_uint> =
        FALSE_WITH_HOOKS.iter().map(|name| kind(llvm, name)).filter(|&kind| kind != 0).collect();
    for function in module.functions() {
        // SAFETY: the function and everything in it is alive, and nothing is removed.
        unsafe {
            if llvm.LLVMGetIntrinsicID(function) != 0 {
                continue;
            }
            for &kind in &kinds {
                llvm.LLVMRemoveEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind);
            }
            for block in llvm.blocks(function) {
                llvm.instructions(block).for_each(|i| strip_call(llvm, i, &kinds));
            }
        }
    }
}

/// # Safety
/// The instruction must be alive.
unsafe fn strip_call(llvm: &Llvm, instruction: LLVMValueRef, kinds: &[c_uint]) {
    const CALLS: [LLVMOpcode; 3] =
        [LLVMOpcode::LLVMCall, LLVMOpcode::LLVMInvoke, LLVMOpcode::LLVMCallBr];
    // SAFETY: as the caller promises; only calls are asked for what they call.
    unsafe {
        let opcode = llvm.LLVMGetInstructionOpcode(instruction);
        if !CALLS.iter().any(|&call| call as i32 == opcode) {
            return;
        }
        let callee = llvm.LLVMIsAFunction(llvm.LLVMGetCalledValue(instruction));
        if !callee.is_null() && llvm.LLVMGetIntrinsicID(callee) != 0 {
            return;
        }
        for &kind in kinds {
            llvm.LLVMRemoveCallSiteEnumAttribute(instruction, LLVMAttributeFunctionIndex, kind);
        }
    }
}

/// A naked function has no frame of its own: a hook in it would destroy its caller's registers.
pub fn is_naked(module: &Module<'_>, function: LLVMValueRef) -> bool {
    let llvm = module.llvm();
    let naked = kind(llvm, "naked");
    // SAFETY: the function is alive.
    unsafe {
        !llvm.LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, naked).is_null()
    }
}

/// The functions that the loader calls to choose another one, before thread-local variables can be
/// reached: a hook in them would end the program.
pub fn resolvers(module: &Module<'_>) -> HashSet<LLVMValueRef> {
    let llvm = module.llvm();
    let mut found = HashSet::new();
    // SAFETY: the module is alive; a value is asked for the next one only when it is one.
    unsafe {
        let mut chosen = llvm.LLVMGetFirstGlobalIFunc(module.raw());
        while !chosen.is_null() {
            let resolver = llvm.LLVMGetGlobalIFuncResolver(chosen);
            found.insert(underlying_object(llvm, resolver));
            chosen = llvm.LLVMGetNextGlobalIFunc(chosen);
        }
    }
    found
}

/// The number of an attribute; 0 when this LLVM has none of that name.
fn kind(llvm: &Llvm, name: &str) -> c_uint {
    // SAFETY: the name is passed with its length.
    unsafe { llvm.LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) }
}
