//! Questions about LLVM values.

use llvm::Llvm;
use llvm_sys::LLVMOpcode;
use llvm_sys::prelude::LLVMValueRef;

/// How many address computations are followed back to an object.
const LONGEST_CHAIN: usize = 64;

/// The object that a pointer points into, through address arithmetic and casts; the first value
/// that is neither.
///
/// # Safety
/// The value must be alive.
pub unsafe fn underlying_object(llvm: &Llvm, mut value: LLVMValueRef) -> LLVMValueRef {
    for _ in 0..LONGEST_CHAIN {
        // SAFETY: the value is alive, and so are its operands.
        unsafe {
            if !is_address_step(llvm, value) {
                break;
            }
            value = llvm.LLVMGetOperand(value, 0);
        }
    }
    value
}

/// # Safety
/// The value must be alive.
unsafe fn is_address_step(llvm: &Llvm, value: LLVMValueRef) -> bool {
    const STEPS: [LLVMOpcode; 3] =
        [LLVMOpcode::LLVMGetElementPtr, LLVMOpcode::LLVMBitCast, LLVMOpcode::LLVMAddrSpaceCast];
    // SAFETY: only instructions and constant expressions are asked for their opcode.
    let opcode = unsafe {
        if !llvm.LLVMIsAInstruction(value).is_null() {
            llvm.LLVMGetInstructionOpcode(value)
        } else if !llvm.LLVMIsAConstantExpr(value).is_null() {
            llvm.LLVMGetConstOpcode(value)
        } else {
            return false;
        }
    };
    STEPS.iter().any(|&step| step as i32 == opcode)
}

/// Does a call go to an intrinsic?
///
/// # Safety
/// The instruction must be a call, and alive.
pub unsafe fn callee_is_intrinsic(llvm: &Llvm, call: LLVMValueRef) -> bool {
    // SAFETY: as the caller promises; only functions are asked for an intrinsic.
    unsafe {
        let callee = llvm.LLVMIsAFunction(llvm.LLVMGetCalledValue(call));
        !callee.is_null() && llvm.LLVMGetIntrinsicID(callee) != 0
    }
}

/// The opcode of an instruction, for comparison with `LLVMOpcode as i32`.
///
/// # Safety
/// The value must be an instruction, and alive.
pub unsafe fn has_opcode(llvm: &Llvm, instruction: LLVMValueRef, opcode: LLVMOpcode) -> bool {
    // SAFETY: as the caller promises.
    unsafe { llvm.LLVMGetInstructionOpcode(instruction) == opcode as i32 }
}
