//! Conversions.

use super::float::format_of;
use super::lanes;
use crate::memory::{self, Bytes};
use crate::report::GapKind;
use crate::value::{self, Scalar, Value};
use ir::types::{CastOp, Module, Type, TypeId};
use model::ExprPool;

/// A conversion to `ty`.
pub(super) fn cast(
    pool: &mut ExprPool,
    module: &Module,
    op: CastOp,
    operand: &Value,
    _from: Option<TypeId>,
    ty: TypeId,
) -> Result<Value, GapKind> {
    if op == CastOp::BitCast {
        return bit_cast(pool, module, operand, ty);
    }
    let element = match module.ty(ty) {
        Type::Vector { element, .. } => *element,
        _ => ty,
    };
    let width = module.scalar_bits(element).filter(|&bits| bits <= 128).ok_or(GapKind::Width)?;
    lanes(&[operand], &mut |v| scalar(pool, op, v[0], width))
}

fn scalar(pool: &mut ExprPool, op: CastOp, a: Scalar, width: u32) -> Result<Scalar, GapKind> {
    let to = || format_of(width).ok_or(GapKind::FloatFormat);
    let from = || format_of(a.width).ok_or(GapKind::FloatFormat);
    Ok(match op {
        CastOp::Trunc
        | CastOp::ZExt
        | CastOp::PtrToInt
        | CastOp::IntToPtr
        | CastOp::AddrSpaceCast
        | CastOp::BitCast => value::resize(pool, a, width, false),
        CastOp::SExt => value::resize(pool, a, width, true),
        CastOp::FpToUi | CastOp::FpToSi => {
            let (from, x) = (from()?, a.to_expr(pool));
            let id = pool.float_to_int(x, from, op == CastOp::FpToSi, width);
            Scalar::expr(pool, id)
        }
        CastOp::UiToFp | CastOp::SiToFp => {
            let (to, x) = (to()?, a.to_expr(pool));
            let id = pool.int_to_float(x, op == CastOp::SiToFp, to);
            Scalar::expr(pool, id)
        }
        CastOp::FpTrunc | CastOp::FpExt => {
            let (from, to, x) = (from()?, to()?, a.to_expr(pool));
            let id = pool.float_to_float(x, from, to);
            Scalar::expr(pool, id)
        }
    })
}

/// Reads the operand's bits as another type of the same size.
fn bit_cast(
    pool: &mut ExprPool,
    module: &Module,
    operand: &Value,
    ty: TypeId,
) -> Result<Value, GapKind> {
    if let Type::Vector { element, length } = module.ty(ty) {
        let bits = module.scalar_bits(*element).ok_or(GapKind::Width)?;
        return split(pool, operand, bits, *length);
    }
    match operand {
        Value::Scalar(_) => Ok(operand.clone()),
        Value::Aggregate(elements) => join(pool, elements).map(Value::Scalar),
        Value::Absent => Err(GapKind::Width),
    }
}

/// A vector's lanes as one scalar of at most 128 bits.
fn join(pool: &mut ExprPool, elements: &[Value]) -> Result<Scalar, GapKind> {
    let mut result: Option<Scalar> = None;
    for element in elements {
        let element = element.scalar().ok_or(GapKind::Width)?;
        result = Some(match result {
            None => element,
            Some(low) if low.width + element.width <= 128 => value::concat(pool, element, low),
            Some(_) => return Err(GapKind::Width),
        });
    }
    result.ok_or(GapKind::Width)
}

/// The operand's bits as `length` lanes of `bits` bits.
fn split(pool: &mut ExprPool, operand: &Value, bits: u32, length: u32) -> Result<Value, GapKind> {
    if let Value::Scalar(scalar) = operand {
        let lanes = (0..length).map(|i| value::extract(pool, *scalar, i * bits, bits).into());
        return Ok(Value::aggregate(lanes.collect()));
    }
    let elements = operand.elements().ok_or(GapKind::Width)?;
    if elements.len() == length as usize {
        return Ok(operand.clone());
    }
    let mut bytes = Bytes::new();
    for element in elements.iter() {
        let element = element.scalar().filter(|s| s.width % 8 == 0).ok_or(GapKind::Width)?;
        bytes.extend(memory::decompose(pool, element, u64::from(element.width / 8)));
    }
    let size = (bits / 8) as usize;
    if size == 0 || !bits.is_multiple_of(8) || bytes.len() != size * length as usize {
        return Err(GapKind::Width);
    }
    let lanes = bytes.chunks(size).map(|chunk| memory::compose(pool, chunk).into()).collect();
    Ok(Value::aggregate(lanes))
}
