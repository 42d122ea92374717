//! Values as words of the values stream, in the order that [`ir::plan::words`] counts them.

use crate::build::Builder;
use crate::hooks::Hooks;
use ir::types::{Module, Type, TypeId};
use llvm_sys::prelude::LLVMValueRef;

/// Logs a value of the type, and returns how many words that took.
pub fn log(
    builder: &Builder,
    hooks: &Hooks,
    module: &Module,
    ty: TypeId,
    value: LLVMValueRef,
) -> usize {
    match module.ty(ty) {
        Type::Void | Type::Function { .. } | Type::Other => 0,
        Type::Pointer => log_word(builder, hooks, builder.pointer_to_i64(value)),
        Type::Int(bits) => log_integer(builder, hooks, *bits, value),
        Type::Float(_) => {
            let bits = module.scalar_bits(ty).unwrap_or(0);
            log_integer(builder, hooks, bits, builder.bits(value, bits))
        }
        Type::Struct { fields, .. } => (0..)
            .zip(fields)
            .map(|(index, &field)| log(builder, hooks, module, field, builder.field(value, index)))
            .sum(),
        Type::Array { element, length } => (0..u32::try_from(*length).unwrap_or(0))
            .map(|index| log(builder, hooks, module, *element, builder.field(value, index)))
            .sum(),
        Type::Vector { element, length } => (0..*length)
            .map(|index| log(builder, hooks, module, *element, builder.lane(value, index)))
            .sum(),
    }
}

fn log_integer(builder: &Builder, hooks: &Hooks, bits: u32, value: LLVMValueRef) -> usize {
    if bits <= 64 {
        return log_word(builder, hooks, builder.to_i64(value, false));
    }
    let words = (0..bits.div_ceil(64)).map(|word| builder.word(value, bits, word));
    words.map(|word| log_word(builder, hooks, word)).sum()
}

fn log_word(builder: &Builder, hooks: &Hooks, word: LLVMValueRef) -> usize {
    builder.call(hooks.value, &mut [word]);
    1
}
