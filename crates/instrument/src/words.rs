//! Values as bytes of the values stream, in the order that [`ir::plan::logged_bytes`] counts them.

use crate::build::Builder;
use crate::hooks::Hooks;
use ir::plan::scalar_bytes;
use ir::types::{Module, Type, TypeId};
use llvm_sys::prelude::LLVMValueRef;
use std::cell::Cell;
use trace_format::layout::VALUE_SLACK;

/// How many bytes fit into the values stream for certain, since the last hook that looked: as long as
/// nothing but hooks of the same function may have written to it.
#[derive(Debug, Default)]
pub struct Room(Cell<usize>);

impl Room {
    /// Something else may have been logged.
    pub fn forget(&self) {
        self.0.set(0);
    }

    /// Takes room, if there is enough.
    fn take(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or(VALUE_SLACK));
        left.is_some()
    }
}

/// Logs a value of the type, and returns how many bytes that took.
pub fn log(
    builder: &Builder,
    hooks: &Hooks,
    room: &Room,
    module: &Module,
    ty: TypeId,
    value: LLVMValueRef,
) -> usize {
    match module.ty(ty) {
        Type::Void | Type::Function { .. } | Type::Other => 0,
        Type::Pointer => log_number(builder, hooks, room, 64, builder.pointer_to_i64(value)),
        Type::Int(bits) => log_integer(builder, hooks, room, *bits, value),
        Type::Float(_) => {
            let bits = module.scalar_bits(ty).unwrap_or(0);
            log_integer(builder, hooks, room, bits, builder.bits(value, bits))
        }
        Type::Struct { fields, .. } => (0..)
            .zip(fields)
            .map(|(index, &field)| {
                log(builder, hooks, room, module, field, builder.field(value, index))
            })
            .sum(),
        Type::Array { element, length } => (0..u32::try_from(*length).unwrap_or(0))
            .map(|index| log(builder, hooks, room, module, *element, builder.field(value, index)))
            .sum(),
        Type::Vector { element, length } => (0..*length)
            .map(|index| log(builder, hooks, room, module, *element, builder.lane(value, index)))
            .sum(),
    }
}

fn log_integer(
    builder: &Builder,
    hooks: &Hooks,
    room: &Room,
    bits: u32,
    value: LLVMValueRef,
) -> usize {
    if bits <= 64 {
        let bits = 8 * scalar_bytes(bits) as u32;
        return log_number(builder, hooks, room, bits, builder.to_int(value, bits));
    }
    let words = (0..bits.div_ceil(64)).map(|word| builder.word(value, bits, word));
    words.map(|word| log_number(builder, hooks, room, 64, word)).sum()
}

/// Logs a number of 8, 16, 32 or 64 bits.
fn log_number(
    builder: &Builder,
    hooks: &Hooks,
    room: &Room,
    bits: u32,
    number: LLVMValueRef,
) -> usize {
    let fits = room.take(bits as usize / 8);
    let [byte, short, half, word] = if fits { hooks.more } else { hooks.values };
    let hook = match bits {
        8 => byte,
        16 => short,
        32 => half,
        _ => word,
    };
    builder.call(hook, &mut [number]);
    bits as usize / 8
}
