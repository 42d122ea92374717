//! From the instrumented module to an object file.

use crate::{InstrumentError, OptLevel};
use llvm::{Module, TargetMachine, TargetOptions};
use llvm_sys::target_machine::{
    LLVMCodeGenFileType, LLVMCodeGenOptLevel, LLVMCodeModel, LLVMRelocMode,
};
use std::ffi::CStr;

/// Refuses what the runtime does not run on.
pub fn check_target(module: &Module<'_>) -> Result<(), InstrumentError> {
    let triple = triple(module);
    let supported = triple.starts_with("x86_64-") && triple.contains("linux");
    let other_abi = triple.ends_with("x32");
    if supported && !other_abi { Ok(()) } else { Err(InstrumentError::Target { triple }) }
}

fn triple(module: &Module<'_>) -> String {
    // SAFETY: the triple is a C string that the module owns.
    unsafe {
        let text = module.llvm().LLVMGetTarget(module.raw());
        if text.is_null() {
            return String::new();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

/// Emits the object. Processor and features are attributes of the functions.
pub fn object(module: &Module<'_>, level: OptLevel) -> Result<Vec<u8>, InstrumentError> {
    let options = TargetOptions {
        triple: triple(module),
        cpu: "x86-64".to_owned(),
        features: String::new(),
        level: match level {
            OptLevel::None => LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
            OptLevel::Less => LLVMCodeGenOptLevel::LLVMCodeGenLevelLess,
            OptLevel::Default => LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
            OptLevel::Aggressive => LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
        },
        relocation: match flag(module, "PIC Level") {
            Some(1..) => LLVMRelocMode::LLVMRelocPIC,
            _ => LLVMRelocMode::LLVMRelocStatic,
        },
        code_model: match flag(module, "Code Model") {
            Some(0) => LLVMCodeModel::LLVMCodeModelTiny,
            Some(1) => LLVMCodeModel::LLVMCodeModelSmall,
            Some(2) => LLVMCodeModel::LLVMCodeModelKernel,
            Some(3) => LLVMCodeModel::LLVMCodeModelMedium,
            Some(4) => LLVMCodeModel::LLVMCodeModelLarge,
            _ => LLVMCodeModel::LLVMCodeModelDefault,
        },
    };
    let machine = TargetMachine::new(module.llvm(), &options)?;
    Ok(machine.emit(module, LLVMCodeGenFileType::LLVMObjectFile)?)
}

/// A module flag with an integer value.
fn flag(module: &Module<'_>, key: &str) -> Option<u64> {
    let llvm = module.llvm();
    // SAFETY: the module is alive; a flag's value is a constant behind metadata, and is only read
    // as an integer when it is one.
    unsafe {
        let metadata = llvm.LLVMGetModuleFlag(module.raw(), key.as_ptr().cast(), key.len());
        if metadata.is_null() {
            return None;
        }
        let value = llvm.LLVMMetadataAsValue(module.context().raw(), metadata);
        let constant = llvm.LLVMGetOperand(value, 0);
        let integer = !constant.is_null() && !llvm.LLVMIsAConstantInt(constant).is_null();
        integer.then(|| llvm.LLVMConstIntGetZExtValue(constant))
    }
}
