//! Splitting the normal edge of an `invoke`: the LLVM-C API can neither split an edge nor change a
//! phi, so phis are built anew.

use crate::build::Builder;
use crate::values::has_opcode;
use llvm::Llvm;
use llvm_sys::LLVMOpcode;
use llvm_sys::prelude::{LLVMBasicBlockRef, LLVMContextRef, LLVMValueRef};
use std::collections::HashMap;

/// Whether the block is entered from one place only.
///
/// # Safety
/// The block must be alive.
pub unsafe fn has_one_predecessor(llvm: &Llvm, block: LLVMBasicBlockRef) -> bool {
    // A block's uses are the terminators that lead to it, and addresses of labels, of which an
    // indirect branch may make use.
    // SAFETY: as the caller promises; a use is asked for the next one only when there is one.
    unsafe {
        let first = llvm.LLVMGetFirstUse(llvm.LLVMBasicBlockAsValue(block));
        !first.is_null() && llvm.LLVMGetNextUse(first).is_null()
    }
}

/// Puts a block with nothing but a jump on the normal edge of an invoke, and returns the jump.
/// Phis that are built anew are entered in `renamed`: old, new.
///
/// # Safety
/// The invoke must be alive and in a function of this context.
pub unsafe fn split_normal(
    llvm: &Llvm,
    context: LLVMContextRef,
    builder: &Builder,
    invoke: LLVMValueRef,
    renamed: &mut HashMap<LLVMValueRef, LLVMValueRef>,
) -> LLVMValueRef {
    // SAFETY: as the caller promises; everything asked for is of the same function.
    unsafe {
        let from = llvm.LLVMGetInstructionParent(invoke);
        let to = llvm.LLVMGetNormalDest(invoke);
        let between = llvm.LLVMInsertBasicBlockInContext(context, to, c"".as_ptr());
        builder.at_end(between, invoke);
        builder.jump(to);
        llvm.LLVMSetNormalDest(invoke, between);
        let phis: Vec<LLVMValueRef> = llvm
            .instructions(to)
            .take_while(|&instruction| has_opcode(llvm, instruction, LLVMOpcode::LLVMPHI))
            .collect();
        for phi in phis {
            renamed.insert(phi, rebuild(llvm, builder, phi, from, between));
        }
        llvm.LLVMGetBasicBlockTerminator(between)
    }
}

/// The same phi with `between` as predecessor in the place of `from`.
///
/// # Safety
/// The phi and the blocks must be alive, and of one function.
unsafe fn rebuild(
    llvm: &Llvm,
    builder: &Builder,
    phi: LLVMValueRef,
    from: LLVMBasicBlockRef,
    between: LLVMBasicBlockRef,
) -> LLVMValueRef {
    // SAFETY: as the caller promises; the phi is erased when nothing uses it any more.
    unsafe {
        builder.before(phi);
        let new = builder.phi(llvm.LLVMTypeOf(phi));
        for index in 0..llvm.LLVMCountIncoming(phi) {
            let mut value = llvm.LLVMGetIncomingValue(phi, index);
            let block = llvm.LLVMGetIncomingBlock(phi, index);
            let mut block = if block == from { between } else { block };
            if value == phi {
                value = new;
            }
            llvm.LLVMAddIncoming(new, &raw mut value, &raw mut block, 1);
        }
        llvm.LLVMReplaceAllUsesWith(phi, new);
        llvm.LLVMInstructionEraseFromParent(phi);
        new
    }
}
