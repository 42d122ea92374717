//! Evaluation of expressions over concrete values.

use super::{BinOp, CmpOp, Expr, ExprId, ExprPool, FloatFormat, FloatOp, FloatPred};
use super::{mask, to_signed};
use crate::ids::VarId;
use rustc_hash::FxHashMap;

/// See [`ExprPool::apply`].
pub(super) fn apply(
    pool: &ExprPool,
    expr: Expr,
    value_of: &impl Fn(ExprId) -> Option<u128>,
) -> Option<u128> {
    let value = match expr {
        Expr::Const { value, .. } => value,
        Expr::Var { .. } => return None,
        Expr::Bin(op, a, b) => binary(op, pool.width(a), value_of(a)?, value_of(b)?),
        Expr::Cmp(op, a, b) => u128::from(compare(op, pool.width(a), value_of(a)?, value_of(b)?)),
        Expr::Not(a) => !value_of(a)? & mask(pool.width(a)),
        Expr::Ite(c, a, b) => {
            if value_of(c)? == 0 {
                value_of(b)?
            } else {
                value_of(a)?
            }
        }
        Expr::Extract { of, low, width } => (value_of(of)? >> low) & mask(width),
        Expr::Concat { high, low } => (value_of(high)? << pool.width(low)) | value_of(low)?,
        Expr::ZExt(a, _) => value_of(a)?,
        Expr::SExt(a, width) => (to_signed(value_of(a)?, pool.width(a)) as u128) & mask(width),
        Expr::FloatBin(op, format, a, b) => float_binary(op, format, value_of(a)?, value_of(b)?),
        Expr::FloatCmp(pred, format, a, b) => {
            let (a, b) = (decode(format, value_of(a)?), decode(format, value_of(b)?));
            u128::from(match pred {
                FloatPred::Eq => a == b,
                FloatPred::Lt => a < b,
                FloatPred::Le => a <= b,
            })
        }
        Expr::FloatIsNan(format, a) => u128::from(decode(format, value_of(a)?).is_nan()),
        Expr::FloatToFloat { of, from, to } => encode(to, decode(from, value_of(of)?)),
        Expr::FloatToInt { of, from, signed, width } => {
            float_to_int(decode(from, value_of(of)?), signed, width)
        }
        Expr::IntToFloat { of, signed, to } => {
            int_to_float(value_of(of)?, pool.width(of), signed, to)
        }
    };
    Some(value)
}

/// See [`ExprPool::evaluate`]. Works without recursion, since expressions grow as deep as loops
/// run long.
pub(super) fn evaluate(
    pool: &ExprPool,
    root: ExprId,
    value_of: &impl Fn(VarId) -> Option<u128>,
) -> Option<u128> {
    if let Some(value) = pool.as_const(root) {
        return Some(value);
    }
    let mut values: FxHashMap<ExprId, Option<u128>> = FxHashMap::default();
    let mut stack = vec![(root, false)];
    while let Some((id, ready)) = stack.pop() {
        if values.contains_key(&id) {
            continue;
        }
        let expr = pool.get(id);
        if let Expr::Var { var, width } = expr {
            values.insert(id, value_of(var).map(|value| value & mask(width)));
        } else if ready {
            let value = apply(pool, expr, &|operand| values.get(&operand).copied().flatten());
            values.insert(id, value);
        } else {
            stack.push((id, true));
            expr.for_each_operand(|operand| stack.push((operand, false)));
        }
    }
    values.get(&root).copied().flatten()
}

fn binary(op: BinOp, width: u32, a: u128, b: u128) -> u128 {
    let (sa, sb) = (to_signed(a, width), to_signed(b, width));
    let in_range = b < u128::from(width);
    let value = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::UDiv => a.checked_div(b).unwrap_or(u128::MAX),
        BinOp::URem => a.checked_rem(b).unwrap_or(a),
        BinOp::SDiv if b == 0 => {
            if sa < 0 {
                1
            } else {
                u128::MAX
            }
        }
        BinOp::SDiv => sa.wrapping_div(sb) as u128,
        BinOp::SRem if b == 0 => a,
        BinOp::SRem => sa.wrapping_rem(sb) as u128,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl if in_range => a << b,
        BinOp::LShr if in_range => a >> b,
        BinOp::AShr if in_range => (sa >> b) as u128,
        BinOp::AShr if sa < 0 => u128::MAX,
        BinOp::Shl | BinOp::LShr | BinOp::AShr => 0,
    };
    value & mask(width)
}

fn compare(op: CmpOp, width: u32, a: u128, b: u128) -> bool {
    let (sa, sb) = (to_signed(a, width), to_signed(b, width));
    match op {
        CmpOp::Eq => a == b,
        CmpOp::ULt => a < b,
        CmpOp::ULe => a <= b,
        CmpOp::SLt => sa < sb,
        CmpOp::SLe => sa <= sb,
    }
}

/// Every single is exactly a double, so comparisons and tests can be done on doubles.
fn decode(format: FloatFormat, bits: u128) -> f64 {
    match format {
        FloatFormat::Single => f64::from(f32::from_bits(bits as u32)),
        FloatFormat::Double => f64::from_bits(bits as u64),
    }
}

fn encode(format: FloatFormat, value: f64) -> u128 {
    match format {
        FloatFormat::Single => u128::from((value as f32).to_bits()),
        FloatFormat::Double => u128::from(value.to_bits()),
    }
}

fn float_binary(op: FloatOp, format: FloatFormat, a: u128, b: u128) -> u128 {
    match format {
        FloatFormat::Single => {
            let (a, b) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
            let value = match op {
                FloatOp::Add => a + b,
                FloatOp::Sub => a - b,
                FloatOp::Mul => a * b,
                FloatOp::Div => a / b,
                FloatOp::Rem => a % b,
                FloatOp::Sqrt => a.sqrt(),
                FloatOp::Floor => a.floor(),
                FloatOp::Ceil => a.ceil(),
                FloatOp::Trunc => a.trunc(),
                FloatOp::Round => a.round(),
                FloatOp::RoundEven => a.round_ties_even(),
            };
            u128::from(value.to_bits())
        }
        FloatFormat::Double => {
            let (a, b) = (f64::from_bits(a as u64), f64::from_bits(b as u64));
            let value = match op {
                FloatOp::Add => a + b,
                FloatOp::Sub => a - b,
                FloatOp::Mul => a * b,
                FloatOp::Div => a / b,
                FloatOp::Rem => a % b,
                FloatOp::Sqrt => a.sqrt(),
                FloatOp::Floor => a.floor(),
                FloatOp::Ceil => a.ceil(),
                FloatOp::Trunc => a.trunc(),
                FloatOp::Round => a.round(),
                FloatOp::RoundEven => a.round_ties_even(),
            };
            u128::from(value.to_bits())
        }
    }
}

fn float_to_int(value: f64, signed: bool, width: u32) -> u128 {
    if signed {
        let max = (mask(width) >> 1) as i128;
        let number = (value as i128).clamp(-max - 1, max);
        (number as u128) & mask(width)
    } else {
        (value as u128).min(mask(width))
    }
}

fn int_to_float(bits: u128, width: u32, signed: bool, to: FloatFormat) -> u128 {
    let number = to_signed(bits, width);
    match (to, signed) {
        (FloatFormat::Single, true) => u128::from((number as f32).to_bits()),
        (FloatFormat::Single, false) => u128::from((bits as f32).to_bits()),
        (FloatFormat::Double, true) => u128::from((number as f64).to_bits()),
        (FloatFormat::Double, false) => u128::from((bits as f64).to_bits()),
    }
}
