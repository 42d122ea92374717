//! What caller and callee tell each other, so that neither logs what the other's log says
//! ([`ir::calls`]).

use crate::build::Builder;
use crate::hooks::{Callable, Hooks};
use crate::values::{callee_is_intrinsic, has_opcode};
use crate::words::{self, Room};
use ir::calls::is_left_out;
use ir::types::TypeId;
use llvm::{Llvm, Module};
use llvm_sys::prelude::{LLVMBasicBlockRef, LLVMTypeRef, LLVMValueRef};
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMLinkage, LLVMOpcode};
use trace_format::layout::{CAME_BACK, called_as, token};

/// Two of a call's or a function's: address, and what stands for the types.
pub type Mark = [LLVMValueRef; 2];

/// The mark of a function with calls of a shape.
pub fn mark(builder: &Builder, address: LLVMValueRef, shape: u64) -> Mark {
    [builder.pointer_to_i64(address), builder.i32(called_as(shape))]
}

/// The mark that it leaves when it returns.
pub fn back_mark(builder: &Builder, address: LLVMValueRef, shape: u64) -> Mark {
    [builder.pointer_to_i64(address), builder.i32(called_as(shape) | CAME_BACK)]
}

/// The address of the function's own code. Its symbol may lead elsewhere at run time: to another one of
/// the same name, which may call this one with arguments of its own.
pub fn own_address(module: &Module<'_>, function: LLVMValueRef) -> LLVMValueRef {
    const LOCAL: [LLVMLinkage; 2] =
        [LLVMLinkage::LLVMInternalLinkage, LLVMLinkage::LLVMPrivateLinkage];
    let llvm = module.llvm();
    // SAFETY: the function is a live definition of the module, and the name is a C string.
    unsafe {
        let linkage = llvm.LLVMGetLinkage(function);
        if LOCAL.iter().any(|&local| local as i32 == linkage) {
            return function;
        }
        let ty = llvm.LLVMGlobalGetValueType(function);
        let name = c"__symbiosis_self";
        let alias = llvm.LLVMAddAlias2(module.raw(), ty, 0, function, name.as_ptr());
        llvm.LLVMSetLinkage(alias, LLVMLinkage::LLVMInternalLinkage);
        alias
    }
}

/// Does the function end with a call that the code generator may turn into a jump, which nothing may
/// stand behind?
///
/// # Safety
/// The return must be alive, and in a block.
pub unsafe fn ends_with_jump(llvm: &Llvm, ret: LLVMValueRef) -> bool {
    // SAFETY: as the caller promises; only calls are asked what they are.
    unsafe {
        let mut before = llvm.LLVMGetPreviousInstruction(ret);
        while !before.is_null()
            && has_opcode(llvm, before, LLVMOpcode::LLVMCall)
            && callee_is_intrinsic(llvm, before)
        {
            before = llvm.LLVMGetPreviousInstruction(before);
        }
        !before.is_null()
            && has_opcode(llvm, before, LLVMOpcode::LLVMCall)
            && llvm.LLVMIsTailCall(before) != 0
    }
}

/// Values to be logged, with their types.
struct Logged<'a> {
    source: &'a ir::types::Module,
    values: Vec<(TypeId, LLVMValueRef)>,
}

impl Logged<'_> {
    /// Logs the values, in a function whose parameters from 2 on they are; not those that are left out
    /// when the log has them elsewhere (`known`).
    fn log(&self, builder: &Builder, hooks: &Hooks, function: &Function<'_>, known: bool) -> usize {
        let room = Room::default();
        let mut bytes = 0;
        for (index, &(ty, _)) in (2..).zip(&self.values) {
            if !(known && is_left_out(self.source, ty)) {
                let value = function.parameter(index);
                bytes += words::log(builder, hooks, &room, self.source, ty, value);
            }
        }
        bytes
    }
}

/// Writes a function's entry and the arguments, of which `values` are all. Gives how many bytes they
/// take when the function was not called by somebody who had left its mark.
pub fn enter(
    module: &Module<'_>,
    builder: &Builder,
    hooks: &Hooks,
    (mark, number): (Mark, LLVMValueRef),
    source: &ir::types::Module,
    values: Vec<(TypeId, LLVMValueRef)>,
) -> usize {
    let called = builder.call(hooks.is_called, &mut mark.clone());
    let first = (called, number);
    let entry = |builder: &Builder, number, known| {
        if known {
            builder.call(hooks.unmark, &mut []);
        }
        let token = builder.i8(if known { token::CALLED } else { token::ENTER });
        builder.call(hooks.entry, &mut [token, number]);
    };
    either(module, builder, hooks, first, entry, &Logged { source, values })
}

/// Writes the entry of a call that has returned, and the result, in the one way where `back` holds, else in
/// the other. Gives how many bytes the result takes in the other.
pub fn returned(
    module: &Module<'_>,
    builder: &Builder,
    hooks: &Hooks,
    back: LLVMValueRef,
    source: &ir::types::Module,
    values: Vec<(TypeId, LLVMValueRef)>,
) -> usize {
    let entry = |builder: &Builder, _, known| {
        let token = builder.i8(if known { token::CAME_BACK } else { token::RETURN });
        builder.call(hooks.path, &mut [token]);
    };
    let first = (back, builder.i32(0));
    either(module, builder, hooks, first, entry, &Logged { source, values })
}

/// Calls a function, to be inlined, that logs in the one way or in the other: a block cannot be split
/// here. `entry` writes the entry, and gets its parameter for `number`.
fn either(
    module: &Module<'_>,
    builder: &Builder,
    hooks: &Hooks,
    (known, number): (LLVMValueRef, LLVMValueRef),
    entry: impl Fn(&Builder, LLVMValueRef, bool),
    logged: &Logged<'_>,
) -> usize {
    let mut arguments = vec![known, number];
    arguments.extend(logged.values.iter().map(|&(_, value)| value));
    let function = Function::new(module, &arguments);
    let inside = Builder::new(module.llvm(), module.context().raw());
    let [begin, few, all] = [function.block(), function.block(), function.block()];
    inside.to(begin);
    inside.branch(function.parameter(0), few, all);
    let mut bytes = 0;
    for (block, known) in [(few, true), (all, false)] {
        inside.to(block);
        entry(&inside, function.parameter(1), known);
        bytes = logged.log(&inside, hooks, &function, known);
        inside.end();
    }
    builder.call(function.callable, &mut arguments);
    bytes
}

/// A function of the hooks' kind, with values as its arguments.
struct Function<'m> {
    module: &'m Module<'m>,
    callable: Callable,
}

impl<'m> Function<'m> {
    fn new(module: &'m Module<'m>, arguments: &[LLVMValueRef]) -> Self {
        let (llvm, context) = (module.llvm(), module.context().raw());
        // SAFETY: the arguments are alive, and types and names are of this context.
        unsafe {
            let types = arguments.iter().map(|&value| llvm.LLVMTypeOf(value));
            let mut types: Vec<LLVMTypeRef> = types.collect();
            let void = llvm.LLVMVoidTypeInContext(context);
            let count = u32::try_from(types.len()).unwrap_or(0);
            let ty = llvm.LLVMFunctionType(void, types.as_mut_ptr(), count, 0);
            let value = llvm.LLVMAddFunction(module.raw(), c"__symbiosis_log".as_ptr(), ty);
            llvm.LLVMSetLinkage(value, LLVMLinkage::LLVMInternalLinkage);
            for name in ["alwaysinline", "nounwind"] {
                let kind = llvm.LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
                let attribute = llvm.LLVMCreateEnumAttribute(context, kind, 0);
                llvm.LLVMAddAttributeAtIndex(value, LLVMAttributeFunctionIndex, attribute);
            }
            Self { module, callable: Callable { value, ty } }
        }
    }

    fn parameter(&self, index: u32) -> LLVMValueRef {
        // SAFETY: the function is alive, and has as many parameters.
        unsafe { self.module.llvm().LLVMGetParam(self.callable.value, index) }
    }

    fn block(&self) -> LLVMBasicBlockRef {
        let (llvm, context) = (self.module.llvm(), self.module.context().raw());
        // SAFETY: the function is alive.
        unsafe { llvm.LLVMAppendBasicBlockInContext(context, self.callable.value, c"".as_ptr()) }
    }
}
