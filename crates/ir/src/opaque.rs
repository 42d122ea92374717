//! Results that the executor cannot compute, and that the log therefore holds: arithmetic in
//! floating-point formats other than single and double, the intrinsics of one processor, and
//! functions such as sine.

use crate::types::{
    BinaryOp, Call, CastOp, FloatKind, Function, InstKind, Instruction, Module, Operand, Type,
    TypeId,
};

/// Families of intrinsics (what stands between `llvm.` and the next dot) whose results are logged.
const FAMILIES: &[&str] = &[
    "x86",
    "convert",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "sincos",
    "pow",
    "powi",
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "fma",
    "minimum",
    "maximum",
    "minimumnum",
    "maximumnum",
    "canonicalize",
    "ldexp",
    "frexp",
    "lround",
    "llround",
    "lrint",
    "llrint",
    "fptosi",
    "fptoui",
    "masked",
];

/// Whether the result of an instruction is one that the executor does not compute.
#[must_use]
pub fn is_opaque(module: &Module, function: &Function, instruction: &Instruction) -> bool {
    let odd = |operand: Operand| {
        operand_type(module, function, operand).is_some_and(|ty| is_odd_float(module, ty))
    };
    match &instruction.kind {
        InstKind::Binary(op, ..) => is_float(*op) && is_odd_float(module, instruction.ty),
        InstKind::FCmp(_, a, _) => odd(*a),
        InstKind::Cast(CastOp::FpToSi | CastOp::FpToUi, a) => odd(*a),
        InstKind::Cast(CastOp::SiToFp | CastOp::UiToFp, _) => is_odd_float(module, instruction.ty),
        InstKind::Cast(CastOp::FpTrunc | CastOp::FpExt, a) => {
            odd(*a) || is_odd_float(module, instruction.ty)
        }
        InstKind::Call(call) => is_opaque_intrinsic(module, instruction, call),
        _ => false,
    }
}

fn is_opaque_intrinsic(module: &Module, instruction: &Instruction, call: &Call) -> bool {
    let Some(name) = call.target(module).and_then(|callee| callee.name.strip_prefix("llvm."))
    else {
        return false;
    };
    let family = name.split('.').next().unwrap_or(name);
    FAMILIES.contains(&family)
        || is_odd_float(module, instruction.ty) && !matches!(family, "fabs" | "copysign")
}

fn is_float(op: BinaryOp) -> bool {
    use BinaryOp::{FAdd, FDiv, FMul, FRem, FSub};
    matches!(op, FAdd | FSub | FMul | FDiv | FRem)
}

/// Holds the type numbers in a format that the executor does not compute in?
fn is_odd_float(module: &Module, ty: TypeId) -> bool {
    match module.types.get(ty.index()) {
        Some(Type::Float(kind)) => !matches!(kind, FloatKind::Single | FloatKind::Double),
        Some(Type::Vector { element, .. }) => is_odd_float(module, *element),
        _ => false,
    }
}

pub(crate) fn operand_type(
    module: &Module,
    function: &Function,
    operand: Operand,
) -> Option<TypeId> {
    match operand {
        Operand::Inst(id) => function.instructions.get(id.index()).map(|inst| inst.ty),
        Operand::Param(index) => function.params.get(index as usize).map(|param| param.ty),
        Operand::Const(id) => module.constants.get(id.index()).map(|constant| constant.ty),
        Operand::Other => None,
    }
}
