//! Conversions.

use super::float::format_of;
use super::lanes;
use crate::memory::{self, Bytes};
use crate::report::GapKind;
use crate::value::{self, Scalar, Value};
use ir::types::{CastOp, Module, Type, TypeId};
use model::{ExprPool, FloatFormat, FloatPred};

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
        CastOp::FpToUi | CastOp::FpToSi => to_int(pool, a, from()?, op == CastOp::FpToSi, width),
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

/// The number that clang's code for x86-64 gives, where the value does not fit, too: the language leaves that open, and programs
/// go on with what they get. `cvttsd2si` and its kin convert to 32 or 64 bits, signed, and give the smallest number for all that does
/// not fit, and for what is not a number. What is narrower, and what has no sign, is cut out of the next wider one.
pub(crate) fn to_int(
    pool: &mut ExprPool,
    a: Scalar,
    from: FloatFormat,
    signed: bool,
    width: u32,
) -> Scalar {
    let converted = match (width, signed) {
        (..=31, _) | (32, true) => 32,
        (..=63, _) | (64, true) => 64,
        (64, false) => return to_unsigned(pool, a, from),
        // A function of the compiler's library.
        _ => return saturated(pool, a, from, signed, width),
    };
    let number = saturated(pool, a, from, true, converted);
    let fits = is_below(pool, a, from, converted - 1);
    let number = value::ite(pool, fits, number, smallest(converted));
    value::resize(pool, number, width, false)
}

/// 64 bits without a sign: two signed conversions, of the value and of what it has beyond 2^63.
fn to_unsigned(pool: &mut ExprPool, a: Scalar, from: FloatFormat) -> Scalar {
    let (low, high) = (saturated(pool, a, from, true, 64), saturated(pool, a, from, false, 64));
    let (is_low, fits) = (is_below(pool, a, from, 63), is_below(pool, a, from, 64));
    let high = value::ite(pool, fits, high, smallest(64));
    value::ite(pool, is_low, low, high)
}

/// The nearest number that fits, 0 for what is not a number.
pub(crate) fn saturated(
    pool: &mut ExprPool,
    a: Scalar,
    from: FloatFormat,
    signed: bool,
    width: u32,
) -> Scalar {
    let x = a.to_expr(pool);
    let id = pool.float_to_int(x, from, signed, width);
    Scalar::expr(pool, id)
}

/// Is the value below 2^`exponent`?
fn is_below(pool: &mut ExprPool, a: Scalar, format: FloatFormat, exponent: u32) -> Scalar {
    let limit = 2f64.powi(exponent as i32);
    let limit = match format {
        FloatFormat::Single => u128::from((limit as f32).to_bits()),
        FloatFormat::Double => u128::from(limit.to_bits()),
    };
    let limit = Scalar::constant(format.width(), limit);
    value::float_cmp(pool, FloatPred::Lt, format, a, limit)
}

fn smallest(width: u32) -> Scalar {
    Scalar::constant(width, 1u128 << (width - 1))
}

/// Reads the operand's bits as another type of the same size.
fn bit_cast(
    pool: &mut ExprPool,
    module: &Module,
    operand: &Value,
    ty: TypeId,
) -> Result<Value, GapKind> {
    let Some(operand) = defined(operand) else { return Ok(Value::Absent) };
    if let Type::Vector { element, length } = module.ty(ty) {
        let bits = module.scalar_bits(*element).ok_or(GapKind::Width)?;
        return split(pool, &operand, bits, *length);
    }
    match &operand {
        Value::Aggregate(elements) => join(pool, elements).map(Value::Scalar),
        _ => Ok(operand),
    }
}

/// A value with zeros in its undefined lanes, which may have any bits; `None` where nothing is defined.
fn defined(operand: &Value) -> Option<Value> {
    let elements = match operand {
        Value::Absent => return None,
        Value::Aggregate(elements) if elements.contains(&Value::Absent) => elements,
        _ => return Some(operand.clone()),
    };
    let width = elements.iter().find_map(Value::scalar)?.width;
    let lane = |element: &Value| match element {
        Value::Absent => Value::constant(width, 0),
        element => element.clone(),
    };
    Some(Value::aggregate(elements.iter().map(lane).collect()))
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
