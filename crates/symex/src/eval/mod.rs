//! Instructions without side effects, one family per file. They work on constants (for
//! initialisers) and on registers alike.

mod aggregate;
pub(crate) mod arith;
pub(crate) mod cast;
pub(crate) mod compare;
pub(crate) mod float;

use crate::report::GapKind;
use crate::value::{self, Scalar, Value};
use ir::types::{CastOp, GepTerm, InstKind, Module, Operand, Type, TypeId};
use model::{BinOp, ExprPool};
use smallvec::SmallVec;

/// The result of a side-effect-free instruction, or what it is that cannot be modelled.
pub(crate) fn evaluate(
    pool: &mut ExprPool,
    module: &Module,
    kind: &InstKind,
    ty: TypeId,
    get: &mut dyn FnMut(Operand) -> Value,
) -> Result<Value, GapKind> {
    match kind {
        InstKind::Binary(op, a, b) => {
            let (a, b) = (get(*a), get(*b));
            let float = float_format(module, ty);
            lanes(&[&a, &b], &mut |v| arith::binary(pool, *op, float, v[0], v[1]))
        }
        InstKind::FNeg(a) => {
            let a = get(*a);
            lanes(&[&a], &mut |v| Ok(arith::float_negate(pool, v[0])))
        }
        InstKind::Cast(op, a) => {
            let value = get(*a);
            cast::cast(pool, module, *op, &value, operand_type(module, *a), ty)
        }
        InstKind::ICmp(predicate, a, b) => {
            let (a, b) = (get(*a), get(*b));
            lanes(&[&a, &b], &mut |v| Ok(compare::int(pool, *predicate, v[0], v[1])))
        }
        InstKind::FCmp(predicate, a, b) => {
            let (a, b) = (get(*a), get(*b));
            lanes(&[&a, &b], &mut |v| compare::float(pool, *predicate, v[0], v[1]))
        }
        InstKind::Select(c, a, b) => {
            let (c, a, b) = (get(*c), get(*a), get(*b));
            select(pool, &c, &a, &b)
        }
        InstKind::Gep { base, offset, terms, .. } => {
            let get_scalar = |operand| match get(operand) {
                // As in `lanes`.
                Value::Absent => Ok(None),
                value => value.scalar().map(Some).ok_or(GapKind::Width),
            };
            address(pool, get_scalar, *base, *offset, terms)
        }
        InstKind::ExtractValue(a, path) => aggregate::extract_value(&get(*a), path),
        InstKind::InsertValue(a, b, path) => {
            let (a, b) = (get(*a), get(*b));
            aggregate::insert_value(&a, b, path)
        }
        InstKind::ExtractElement(a, index) => {
            let (a, index) = (get(*a), get(*index));
            aggregate::extract_element(pool, &a, &index)
        }
        InstKind::InsertElement(a, b, index) => {
            let (a, b, index) = (get(*a), get(*b), get(*index));
            aggregate::insert_element(pool, &a, b, &index)
        }
        InstKind::ShuffleVector(a, b, mask) => {
            let (a, b) = (get(*a), get(*b));
            aggregate::shuffle(&a, &b, mask)
        }
        InstKind::Freeze(a) => Ok(get(*a)),
        _ => Err(GapKind::Instruction("expression".to_owned())),
    }
}

/// The same of scalars that are an integer or a pointer of `bits` bits in the end: most instructions of a run. None for what
/// is not usual.
pub(crate) fn usual(
    pool: &mut ExprPool,
    kind: &InstKind,
    bits: u32,
    mut get: impl FnMut(Operand) -> Option<Scalar>,
) -> Option<Scalar> {
    match kind {
        InstKind::Binary(op, a, b) => {
            let (a, b) = (get(*a)?, get(*b)?);
            arith::binary(pool, *op, false, a, b).ok()
        }
        InstKind::ICmp(predicate, a, b) => {
            let (a, b) = (get(*a)?, get(*b)?);
            Some(compare::int(pool, *predicate, a, b))
        }
        InstKind::Cast(
            op @ (CastOp::Trunc
            | CastOp::ZExt
            | CastOp::SExt
            | CastOp::PtrToInt
            | CastOp::IntToPtr
            | CastOp::AddrSpaceCast),
            a,
        ) => {
            let a = get(*a)?;
            Some(value::resize(pool, a, bits, *op == CastOp::SExt))
        }
        InstKind::Select(c, a, b) => match get(*c)?.as_const()? {
            0 => get(*b),
            _ => get(*a),
        },
        InstKind::Gep { base, offset, terms, .. } => {
            let known = |operand| get(operand).map(Some).ok_or(GapKind::Width);
            address(pool, known, *base, *offset, terms).ok()?.scalar()
        }
        InstKind::Freeze(a) => get(*a),
        _ => None,
    }
}

/// `getelementptr`: undefined where the base or an index is.
fn address(
    pool: &mut ExprPool,
    mut get: impl FnMut(Operand) -> Result<Option<Scalar>, GapKind>,
    base: Operand,
    offset: i64,
    terms: &[GepTerm],
) -> Result<Value, GapKind> {
    let Some(mut address) = get(base)? else { return Ok(Value::Absent) };
    for term in terms {
        let Some(index) = get(term.index)? else { return Ok(Value::Absent) };
        let index = value::resize(pool, index, 64, true);
        let scale = Scalar::constant(64, u128::from(term.scale));
        let step = value::bin(pool, BinOp::Mul, index, scale);
        address = value::bin(pool, BinOp::Add, address, step);
    }
    let offset = Scalar::constant(64, offset as u64 as u128);
    Ok(value::bin(pool, BinOp::Add, address, offset).into())
}

/// Casts need to know whether the operand is a float and how a vector is cut; both follow from the
/// values except for floats, which are recognised by the operation.
fn operand_type(module: &Module, operand: Operand) -> Option<TypeId> {
    match operand {
        Operand::Const(id) => module.constants.get(id.index()).map(|constant| constant.ty),
        _ => None,
    }
}

/// Applies `f` to scalars, or lane by lane to vectors.
pub(crate) fn lanes(
    operands: &[&Value],
    f: &mut dyn FnMut(&[Scalar]) -> Result<Scalar, GapKind>,
) -> Result<Value, GapKind> {
    // Nearly all operands.
    match operands {
        [Value::Scalar(a)] => return f(&[*a]).map(Value::Scalar),
        [Value::Scalar(a), Value::Scalar(b)] => return f(&[*a, *b]).map(Value::Scalar),
        _ => {}
    }
    let scalars: Option<SmallVec<[Scalar; 2]>> = operands.iter().map(|v| v.scalar()).collect();
    if let Some(scalars) = scalars {
        return f(&scalars).map(Value::Scalar);
    }
    // Whatever is computed from what is undefined is undefined.
    if operands.iter().any(|value| **value == Value::Absent) {
        return Ok(Value::Absent);
    }
    let vectors: Option<Vec<_>> = operands.iter().map(|value| value.elements()).collect();
    let vectors = vectors.ok_or(GapKind::Width)?;
    let count = vectors.iter().map(|elements| elements.len()).min().unwrap_or(0);
    let lane = |i: usize| -> Vec<&Value> { vectors.iter().map(|elements| &elements[i]).collect() };
    let results: Result<Vec<Value>, GapKind> = (0..count).map(|i| lanes(&lane(i), f)).collect();
    Ok(Value::aggregate(results?))
}

/// `select`; a symbolic condition over aggregates is pushed into them.
pub(crate) fn select(
    pool: &mut ExprPool,
    c: &Value,
    a: &Value,
    b: &Value,
) -> Result<Value, GapKind> {
    if let Value::Aggregate(conditions) = c {
        let (a, b) = (a.elements().ok_or(GapKind::Width)?, b.elements().ok_or(GapKind::Width)?);
        let lanes: Result<Vec<Value>, GapKind> = conditions
            .iter()
            .zip(a.iter().zip(b.iter()))
            .map(|(c, (a, b))| select(pool, c, a, b))
            .collect();
        return Ok(Value::aggregate(lanes?));
    }
    let c = c.scalar().ok_or(GapKind::Width)?;
    match c.as_const() {
        Some(0) => return Ok(b.clone()),
        Some(_) => return Ok(a.clone()),
        None => {}
    }
    defined_or_chosen(pool, c, a, b)
}

/// Both values under a symbolic condition. What is undefined on one side is taken to be what the other side has,
/// which is one of the values that it may have, and the one that needs no instruction.
fn defined_or_chosen(
    pool: &mut ExprPool,
    c: Scalar,
    a: &Value,
    b: &Value,
) -> Result<Value, GapKind> {
    match (a, b) {
        (Value::Absent, other) | (other, Value::Absent) => Ok(other.clone()),
        (Value::Aggregate(a), Value::Aggregate(b)) => {
            let lanes = a.iter().zip(b.iter()).map(|(a, b)| defined_or_chosen(pool, c, a, b));
            Ok(Value::aggregate(lanes.collect::<Result<_, _>>()?))
        }
        _ => lanes(&[a, b], &mut |v| Ok(value::ite(pool, c, v[0], v[1]))),
    }
}

/// The IEEE format of a type's scalars, where it is a float.
pub(crate) fn float_format(module: &Module, ty: TypeId) -> bool {
    match module.ty(ty) {
        Type::Float(_) => true,
        Type::Vector { element, .. } => float_format(module, *element),
        _ => false,
    }
}

/// The all-zero value of a type.
pub(crate) fn zero(module: &Module, ty: TypeId) -> Value {
    build(module, ty, &mut |bits| Scalar::constant(bits, 0))
}

/// A value of a type none of whose scalars is known.
pub(crate) fn undefined(module: &Module, ty: TypeId) -> Value {
    build_values(module, ty, &mut |_| Value::Absent)
}

/// A value of a type, with `scalar` called for every scalar in order.
pub(crate) fn build(module: &Module, ty: TypeId, scalar: &mut dyn FnMut(u32) -> Scalar) -> Value {
    build_values(module, ty, &mut |bits| scalar(bits).into())
}

fn build_values(module: &Module, ty: TypeId, scalar: &mut dyn FnMut(u32) -> Value) -> Value {
    match module.ty(ty) {
        Type::Struct { fields, .. } => Value::aggregate(
            fields.iter().map(|&field| build_values(module, field, scalar)).collect(),
        ),
        Type::Array { element, length } => {
            Value::aggregate((0..*length).map(|_| build_values(module, *element, scalar)).collect())
        }
        Type::Vector { element, length } => {
            Value::aggregate((0..*length).map(|_| build_values(module, *element, scalar)).collect())
        }
        _ => match module.scalar_bits(ty) {
            Some(bits @ 1..=128) => scalar(bits),
            _ => Value::Absent,
        },
    }
}

#[cfg(test)]
mod tests;
