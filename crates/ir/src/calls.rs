//! Calls between instrumented functions: who names its callee, and what neither side has to log then.
//!
//! A caller leaves a mark of the function that it is about to call in the control page (the runtime's
//! `Control::called`). A function that finds its own mark there was called by that instrumented code with
//! these arguments, so the arguments are known from the caller. When it returns it leaves another mark,
//! and the caller knows that the log has what the call did.
//!
//! The mark holds the function's address and a number for the [shape](shape_of) of the call, the types of
//! parameters and result, so that a call through another type is none that the callee knows.

use crate::effects::effect;
use crate::intrinsics;
use crate::plan::is_entered;
use crate::types::{Call, Callee, ConstantKind, Function, InstKind, Module, Operand, Type, TypeId};

/// Is a value of this type left out of the log of a call between instrumented functions? Integers and
/// pointers are: what they are made of is logged where it is loaded ([`crate::feeding`]).
#[must_use]
pub fn is_left_out(module: &Module, ty: TypeId) -> bool {
    matches!(module.types.get(ty.index()), Some(Type::Int(1..=64) | Type::Pointer))
}

/// The number that stands for the types of a function's parameters and result; `None` for a function
/// that is not told who calls it: one without an entry record, or with arguments that are copies.
#[must_use]
pub fn shape_of(module: &Module, function: &Function) -> Option<u64> {
    let copies = function.params.iter().any(|param| param.byval.is_some());
    let told = !function.is_declaration() && is_entered(function) && !copies;
    told.then(|| shape(module, function.ty))
}

/// The same of a call that leaves a mark; `None` for other calls. Those leave none whose callee is known
/// not to be instrumented, and those with an argument of which the log does not say what it was.
#[must_use]
pub fn shape_of_call(module: &Module, function: &Function, call: &Call) -> Option<u64> {
    let marks = match &call.callee {
        Callee::Direct(target) => {
            let target = module.functions.get(target.index())?;
            let here = !target.is_declaration() && shape_of(module, target).is_some();
            let elsewhere = target.is_declaration() && effect(&target.name).is_none();
            !target.intrinsic && (here || elsewhere)
        }
        Callee::Indirect(_) => true,
        Callee::Asm(..) => false,
    };
    let plain = !call.must_tail && call.byval.iter().all(Option::is_none);
    let known = || call.args.iter().all(|&argument| is_known(module, function, argument));
    let marks = marks && plain && intrinsics::called(module, call).is_none() && known();
    marks.then(|| shape(module, call.ty))
}

/// Have a call and a function of another module the same shape, type by type?
#[must_use]
pub fn fits(caller: (&Module, &Call), callee: (&Module, &Function)) -> bool {
    let mut types = [Vec::new(), Vec::new()];
    describe(caller.0, caller.1.ty, &mut types[0]);
    describe(callee.0, callee.1.ty, &mut types[1]);
    types[0] == types[1]
}

/// Does the executor know the value without a look at the callee's log?
fn is_known(module: &Module, function: &Function, operand: Operand) -> bool {
    match operand {
        Operand::Inst(id) => {
            let kind = function.instructions.get(id.index()).map(|inst| &inst.kind);
            match kind {
                Some(InstKind::ExtractValue(from, _)) => is_known(module, function, *from),
                Some(InstKind::LandingPad | InstKind::Other(..)) | None => false,
                Some(_) => true,
            }
        }
        Operand::Param(_) => true,
        Operand::Const(id) => {
            let kind = module.constants.get(id.index()).map(|constant| &constant.kind);
            !matches!(kind, None | Some(ConstantKind::Undef | ConstantKind::Unknown(_)))
        }
        Operand::Other => false,
    }
}

/// A hash of a type (FNV-1a, 64 bits).
fn shape(module: &Module, ty: TypeId) -> u64 {
    let mut bytes = Vec::new();
    describe(module, ty, &mut bytes);
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Spells a type without the names of structs, which differ from module to module.
fn describe(module: &Module, ty: TypeId, to: &mut Vec<u8>) {
    let number = |to: &mut Vec<u8>, number: u64| to.extend(number.to_le_bytes());
    match module.types.get(ty.index()) {
        Some(Type::Void) => to.push(b'v'),
        Some(Type::Int(bits)) => {
            to.push(b'i');
            number(to, u64::from(*bits));
        }
        Some(Type::Float(kind)) => {
            to.push(b'f');
            to.push(*kind as u8);
        }
        Some(Type::Pointer) => to.push(b'p'),
        Some(Type::Struct { fields, .. }) => {
            to.push(b's');
            number(to, fields.len() as u64);
            fields.iter().for_each(|&field| describe(module, field, to));
        }
        Some(Type::Array { element, length }) => {
            to.push(b'a');
            number(to, *length);
            describe(module, *element, to);
        }
        Some(Type::Vector { element, length }) => {
            to.push(b'x');
            number(to, u64::from(*length));
            describe(module, *element, to);
        }
        Some(Type::Function { result, params, varargs }) => {
            to.push(if *varargs { b'V' } else { b'F' });
            number(to, params.len() as u64);
            params.iter().for_each(|&param| describe(module, param, to));
            describe(module, *result, to);
        }
        Some(Type::Other) | None => to.push(b'?'),
    }
}
