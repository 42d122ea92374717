//! Orders the program's own accesses against the log.

use crate::values::{has_opcode, underlying_object};
use llvm::{Llvm, Module};
use llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};
use llvm_sys::target::LLVMTargetDataRef;
use llvm_sys::{LLVMAtomicOrdering, LLVMOpcode, LLVMTypeKind};

/// Marks the naturally aligned scalar accesses to memory that others can see `monotonic`: the code
/// generator may then neither merge, split nor reorder them, and the instructions stay the same.
pub fn order(module: &Module<'_>, function: LLVMValueRef) {
    let llvm = module.llvm();
    // SAFETY: module and function are alive, and nothing is removed.
    unsafe {
        let layout = llvm.LLVMGetModuleDataLayout(module.raw());
        for block in llvm.blocks(function) {
            for instruction in llvm.instructions(block) {
                order_one(llvm, layout, instruction);
            }
        }
    }
}

/// # Safety
/// The instruction and the layout must be alive.
unsafe fn order_one(llvm: &Llvm, layout: LLVMTargetDataRef, instruction: LLVMValueRef) {
    // SAFETY: as the caller promises; only loads and stores are asked what they access.
    unsafe {
        let (address, ty) = if has_opcode(llvm, instruction, LLVMOpcode::LLVMLoad) {
            (llvm.LLVMGetOperand(instruction, 0), llvm.LLVMTypeOf(instruction))
        } else if has_opcode(llvm, instruction, LLVMOpcode::LLVMStore) {
            let stored = llvm.LLVMTypeOf(llvm.LLVMGetOperand(instruction, 0));
            (llvm.LLVMGetOperand(instruction, 1), stored)
        } else {
            return;
        };
        let plain = llvm.LLVMGetOrdering(instruction)
            == LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic as i32;
        if plain && is_visible(llvm, address) {
            let alignment = u64::from(llvm.LLVMGetAlignment(instruction));
            if atomic_size(llvm, layout, ty).is_some_and(|size| alignment >= size) {
                llvm.LLVMSetOrdering(instruction, LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic);
            }
        }
    }
}

/// Whether another thread could see the memory change: not a stack object of this function, not a
/// constant.
///
/// # Safety
/// The address must be alive.
unsafe fn is_visible(llvm: &Llvm, address: LLVMValueRef) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        if llvm.LLVMGetPointerAddressSpace(llvm.LLVMTypeOf(address)) != 0 {
            return false;
        }
        let object = underlying_object(llvm, address);
        let global = llvm.LLVMIsAGlobalVariable(object);
        let constant = !global.is_null() && llvm.LLVMIsGlobalConstant(global) != 0;
        !constant && llvm.LLVMIsAAllocaInst(object).is_null()
    }
}

/// The size in bytes of a type that one instruction accesses.
///
/// # Safety
/// The type and the layout must be alive.
unsafe fn atomic_size(llvm: &Llvm, layout: LLVMTargetDataRef, ty: LLVMTypeRef) -> Option<u64> {
    const SCALARS: [LLVMTypeKind; 4] = [
        LLVMTypeKind::LLVMIntegerTypeKind,
        LLVMTypeKind::LLVMPointerTypeKind,
        LLVMTypeKind::LLVMFloatTypeKind,
        LLVMTypeKind::LLVMDoubleTypeKind,
    ];
    // SAFETY: as the caller promises; scalars have sizes.
    unsafe {
        let kind = llvm.LLVMGetTypeKind(ty);
        if !SCALARS.iter().any(|&scalar| scalar as i32 == kind) {
            return None;
        }
        let bits = llvm.LLVMSizeOfTypeInBits(layout, ty);
        matches!(bits, 8 | 16 | 32 | 64).then_some(bits / 8)
    }
}
