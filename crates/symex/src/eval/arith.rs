//! Integer and floating-point arithmetic.

use super::float::format_of;
use crate::report::GapKind;
use crate::value::{self, Scalar};
use ir::types::BinaryOp;
use model::{BinOp, ExprPool, FloatOp};

/// One lane of a binary operation; `float` says that the result is a floating-point number.
pub(super) fn binary(
    pool: &mut ExprPool,
    op: BinaryOp,
    float: bool,
    a: Scalar,
    b: Scalar,
) -> Result<Scalar, GapKind> {
    if float {
        return float_binary(pool, op, a, b);
    }
    let op = integer(op).ok_or(GapKind::FloatFormat)?;
    Ok(value::bin(pool, op, a, b))
}

/// The operation on integers; none where it is one on floating-point numbers.
pub(crate) fn integer(op: BinaryOp) -> Option<BinOp> {
    Some(match op {
        BinaryOp::Add => BinOp::Add,
        BinaryOp::Sub => BinOp::Sub,
        BinaryOp::Mul => BinOp::Mul,
        BinaryOp::UDiv => BinOp::UDiv,
        BinaryOp::SDiv => BinOp::SDiv,
        BinaryOp::URem => BinOp::URem,
        BinaryOp::SRem => BinOp::SRem,
        BinaryOp::Shl => BinOp::Shl,
        BinaryOp::LShr => BinOp::LShr,
        BinaryOp::AShr => BinOp::AShr,
        BinaryOp::And => BinOp::And,
        BinaryOp::Or => BinOp::Or,
        BinaryOp::Xor => BinOp::Xor,
        BinaryOp::FAdd | BinaryOp::FSub | BinaryOp::FMul | BinaryOp::FDiv | BinaryOp::FRem => {
            return None;
        }
    })
}

fn float_binary(
    pool: &mut ExprPool,
    op: BinaryOp,
    a: Scalar,
    b: Scalar,
) -> Result<Scalar, GapKind> {
    let format = format_of(a.width).filter(|_| a.width == b.width).ok_or(GapKind::FloatFormat)?;
    let op = match op {
        BinaryOp::FAdd => FloatOp::Add,
        BinaryOp::FSub => FloatOp::Sub,
        BinaryOp::FMul => FloatOp::Mul,
        BinaryOp::FDiv => FloatOp::Div,
        BinaryOp::FRem => FloatOp::Rem,
        _ => return Err(GapKind::FloatFormat),
    };
    Ok(value::float_bin(pool, op, format, a, b))
}

/// `fneg` flips the sign bit, of not-a-numbers too.
pub(super) fn float_negate(pool: &mut ExprPool, a: Scalar) -> Scalar {
    let sign = Scalar::constant(a.width, 1u128 << (a.width - 1));
    value::bin(pool, BinOp::Xor, a, sign)
}
