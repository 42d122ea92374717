//! Gates: a `nop` before what other threads may observe, and its entry in `symbiosis_sites`.

use crate::hooks::Callable;
use ir::types::InstId;
use llvm::Module;
use llvm_sys::prelude::LLVMValueRef;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMInlineAsmDialect};
use std::collections::HashMap;
use std::fmt::Write;
use trace_format::layout::{GATE_NOP, site_hash};

/// What the assembler makes of a gate: the `nop`, and a `SiteEntry` that belongs to the function's
/// COMDAT group (`?`), so that the linker drops both or none. The label is a number because the
/// code generator may copy the gate.
const ENTRY: &str = ".pushsection symbiosis_sites,\"a?\",@progbits\n\
                     .balign 4\n.long 771b-.\n.quad ${0:c}\n.popsection";

/// The call of a gate keeps all registers and the flags, so it clobbers memory alone: what stands
/// on either side stays there.
const CONSTRAINTS: &str = "i,~{memory}";

/// The gate as inline assembly: `(i64 site)`, where the site is a constant.
pub fn assembly(module: &Module<'_>) -> Callable {
    let (llvm, context) = (module.llvm(), module.context().raw());
    let mut text = String::from("771: .byte ");
    for (index, byte) in GATE_NOP.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{byte:#04x}");
    }
    text = text + "\n" + ENTRY;
    // SAFETY: the context is alive, and both texts are passed with their lengths, and copied.
    unsafe {
        let mut site = llvm.LLVMInt64TypeInContext(context);
        let ty = llvm.LLVMFunctionType(llvm.LLVMVoidTypeInContext(context), &raw mut site, 1, 0);
        let value = llvm.LLVMGetInlineAsm(
            ty,
            text.as_ptr().cast(),
            text.len(),
            CONSTRAINTS.as_ptr().cast(),
            CONSTRAINTS.len(),
            1,
            0,
            LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
            0,
        );
        Callable { value, ty }
    }
}

/// The hashes of a function's sites by instruction.
pub fn sites(module: &ir::types::Module, function: &ir::types::Function) -> HashMap<InstId, u64> {
    let gates = ir::gates::gates(module, function);
    gates.into_iter().map(|gate| (gate.instruction, site_hash(gate.site.as_bytes()))).collect()
}

/// An open gate pushes its return address where a leaf function may keep its variables.
pub fn forbid_red_zone(module: &Module<'_>, function: LLVMValueRef) {
    const NAME: &str = "noredzone";
    let llvm = module.llvm();
    // SAFETY: the function is alive, and the name is passed with its length.
    unsafe {
        let kind = llvm.LLVMGetEnumAttributeKindForName(NAME.as_ptr().cast(), NAME.len());
        let attribute = llvm.LLVMCreateEnumAttribute(module.context().raw(), kind, 0);
        llvm.LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute);
    }
}
