//! Integer, pointer and floating-point comparisons.

use super::float::format_of;
use crate::report::GapKind;
use crate::value::{self, Scalar};
use ir::types::{FloatPredicate, IntPredicate};
use model::{CmpOp, ExprPool, FloatPred};

/// One lane of `icmp`.
pub(super) fn int(pool: &mut ExprPool, predicate: IntPredicate, a: Scalar, b: Scalar) -> Scalar {
    let (op, swap, negate) = comparison(predicate);
    let (a, b) = if swap { (b, a) } else { (a, b) };
    let result = value::cmp(pool, op, a, b);
    if negate { value::not(pool, result) } else { result }
}

/// The comparison, whether its operands are swapped, and whether it is the opposite.
pub(crate) fn comparison(predicate: IntPredicate) -> (CmpOp, bool, bool) {
    match predicate {
        IntPredicate::Eq => (CmpOp::Eq, false, false),
        IntPredicate::Ne => (CmpOp::Eq, false, true),
        IntPredicate::Ult => (CmpOp::ULt, false, false),
        IntPredicate::Ule => (CmpOp::ULe, false, false),
        IntPredicate::Ugt => (CmpOp::ULt, true, false),
        IntPredicate::Uge => (CmpOp::ULe, true, false),
        IntPredicate::Slt => (CmpOp::SLt, false, false),
        IntPredicate::Sle => (CmpOp::SLe, false, false),
        IntPredicate::Sgt => (CmpOp::SLt, true, false),
        IntPredicate::Sge => (CmpOp::SLe, true, false),
    }
}

/// One lane of `fcmp`.
pub(super) fn float(
    pool: &mut ExprPool,
    predicate: FloatPredicate,
    a: Scalar,
    b: Scalar,
) -> Result<Scalar, GapKind> {
    let format = format_of(a.width).filter(|_| a.width == b.width).ok_or(GapKind::FloatFormat)?;
    use FloatPredicate as P;
    let mut ordered = |pred, x, y| value::float_cmp(pool, pred, format, x, y);
    // The unordered predicates are the negations of the opposite ordered ones.
    let (result, negate) = match predicate {
        P::False => return Ok(Scalar::boolean(false)),
        P::True => return Ok(Scalar::boolean(true)),
        P::Oeq => (ordered(FloatPred::Eq, a, b), false),
        P::Une => (ordered(FloatPred::Eq, a, b), true),
        P::Ogt => (ordered(FloatPred::Lt, b, a), false),
        P::Ule => (ordered(FloatPred::Lt, b, a), true),
        P::Oge => (ordered(FloatPred::Le, b, a), false),
        P::Ult => (ordered(FloatPred::Le, b, a), true),
        P::Olt => (ordered(FloatPred::Lt, a, b), false),
        P::Uge => (ordered(FloatPred::Lt, a, b), true),
        P::Ole => (ordered(FloatPred::Le, a, b), false),
        P::Ugt => (ordered(FloatPred::Le, a, b), true),
        P::One | P::Ueq => {
            let less = ordered(FloatPred::Lt, a, b);
            let more = ordered(FloatPred::Lt, b, a);
            (value::or(pool, less, more), predicate == P::Ueq)
        }
        P::Uno | P::Ord => {
            let x = value::float_is_nan(pool, format, a);
            let y = value::float_is_nan(pool, format, b);
            (value::or(pool, x, y), predicate == P::Ord)
        }
    };
    Ok(if negate { value::not(pool, result) } else { result })
}
