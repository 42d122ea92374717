//! Values of IR registers: concrete as long as possible, expressions where they depend on a
//! shared read or an input.

use crate::concrete;
use model::expr::mask;
use model::{BinOp, CmpOp, ExprId, ExprPool, FloatFormat, FloatOp, FloatPred};
use std::rc::Rc;

/// A bit-vector of 1 to 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub width: u32,
    pub repr: Repr,
}

/// What a [`Scalar`] is. Constants stay out of the pool: most values of a run are constants, and
/// interning each of them costs more than computing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repr {
    Const(u128),
    Expr(ExprId),
}

/// The value of a register.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) enum Value {
    /// `void`, or not computed yet.
    #[default]
    Absent,
    Scalar(Scalar),
    /// A struct, array or vector.
    Aggregate(Rc<Vec<Value>>),
}

impl Value {
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }

    pub fn elements(&self) -> Option<&Rc<Vec<Value>>> {
        match self {
            Self::Aggregate(elements) => Some(elements),
            _ => None,
        }
    }

    /// Made of constants alone?
    pub fn is_concrete(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Scalar(scalar) => scalar.as_const().is_some(),
            Self::Aggregate(elements) => elements.iter().all(Self::is_concrete),
        }
    }

    pub fn aggregate(elements: Vec<Value>) -> Self {
        Self::Aggregate(Rc::new(elements))
    }

    pub fn constant(width: u32, value: u128) -> Self {
        Self::Scalar(Scalar::constant(width, value))
    }
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        Self::Scalar(scalar)
    }
}

impl Scalar {
    pub fn constant(width: u32, value: u128) -> Self {
        Self { width, repr: Repr::Const(value & mask(width)) }
    }

    pub fn boolean(value: bool) -> Self {
        Self::constant(1, u128::from(value))
    }

    pub fn expr(pool: &ExprPool, id: ExprId) -> Self {
        let width = pool.width(id);
        match pool.as_const(id) {
            Some(value) => Self::constant(width, value),
            None => Self { width, repr: Repr::Expr(id) },
        }
    }

    pub fn as_const(self) -> Option<u128> {
        match self.repr {
            Repr::Const(value) => Some(value),
            Repr::Expr(_) => None,
        }
    }

    pub fn as_expr(self) -> Option<ExprId> {
        match self.repr {
            Repr::Const(_) => None,
            Repr::Expr(id) => Some(id),
        }
    }

    pub fn to_expr(self, pool: &mut ExprPool) -> ExprId {
        match self.repr {
            Repr::Const(value) => pool.constant(self.width, value),
            Repr::Expr(id) => id,
        }
    }
}

/// Two operands of one width; the narrower one is zero-extended, so that contradictory input
/// cannot trip the pool's width checks.
#[inline]
fn same_width(pool: &mut ExprPool, a: Scalar, b: Scalar) -> (Scalar, Scalar) {
    if a.width == b.width {
        return (a, b);
    }
    let width = a.width.max(b.width);
    (zext(pool, a, width), zext(pool, b, width))
}

pub(crate) fn bin(pool: &mut ExprPool, op: BinOp, a: Scalar, b: Scalar) -> Scalar {
    let (a, b) = same_width(pool, a, b);
    if let (Some(x), Some(y)) = (a.as_const(), b.as_const()) {
        return Scalar::constant(a.width, concrete::binary(op, a.width, x, y));
    }
    let (x, y) = (a.to_expr(pool), b.to_expr(pool));
    let id = pool.bin(op, x, y);
    Scalar::expr(pool, id)
}

pub(crate) fn cmp(pool: &mut ExprPool, op: CmpOp, a: Scalar, b: Scalar) -> Scalar {
    let (a, b) = same_width(pool, a, b);
    if let (Some(x), Some(y)) = (a.as_const(), b.as_const()) {
        return Scalar::boolean(concrete::compare(op, a.width, x, y));
    }
    let (x, y) = (a.to_expr(pool), b.to_expr(pool));
    let id = pool.cmp(op, x, y);
    Scalar::expr(pool, id)
}

pub(crate) fn not(pool: &mut ExprPool, a: Scalar) -> Scalar {
    match a.repr {
        Repr::Const(value) => Scalar::constant(a.width, !value),
        Repr::Expr(id) => {
            let id = pool.not(id);
            Scalar::expr(pool, id)
        }
    }
}

pub(crate) fn and(pool: &mut ExprPool, a: Scalar, b: Scalar) -> Scalar {
    bin(pool, BinOp::And, a, b)
}

pub(crate) fn or(pool: &mut ExprPool, a: Scalar, b: Scalar) -> Scalar {
    bin(pool, BinOp::Or, a, b)
}

/// `if c { a } else { b }`; only the lowest bit of `c` counts.
pub(crate) fn ite(pool: &mut ExprPool, c: Scalar, a: Scalar, b: Scalar) -> Scalar {
    let c = extract(pool, c, 0, 1);
    match c.as_const() {
        Some(0) => return b,
        Some(_) => return a,
        None if a == b => return a,
        None => {}
    }
    let (a, b) = same_width(pool, a, b);
    let (c, x, y) = (c.to_expr(pool), a.to_expr(pool), b.to_expr(pool));
    let id = pool.ite(c, x, y);
    Scalar::expr(pool, id)
}

/// `width` bits from bit `low` up; bits beyond the operand are zero.
pub(crate) fn extract(pool: &mut ExprPool, a: Scalar, low: u32, width: u32) -> Scalar {
    let a = if low + width > a.width { zext(pool, a, low + width) } else { a };
    match a.repr {
        Repr::Const(value) => Scalar::constant(width, value.checked_shr(low).unwrap_or(0)),
        Repr::Expr(id) => {
            let id = pool.extract(id, low, width);
            Scalar::expr(pool, id)
        }
    }
}

/// `high` above `low`. Their widths sum up to at most 128.
pub(crate) fn concat(pool: &mut ExprPool, high: Scalar, low: Scalar) -> Scalar {
    let width = high.width + low.width;
    if let (Some(x), Some(y)) = (high.as_const(), low.as_const()) {
        return Scalar::constant(width, (x << low.width) | y);
    }
    let (x, y) = (high.to_expr(pool), low.to_expr(pool));
    let id = pool.concat(x, y);
    Scalar::expr(pool, id)
}

/// Zero extension; a narrower `width` leaves the operand as it is.
pub(crate) fn zext(pool: &mut ExprPool, a: Scalar, width: u32) -> Scalar {
    if width <= a.width {
        return a;
    }
    match a.repr {
        Repr::Const(value) => Scalar::constant(width, value),
        Repr::Expr(id) => {
            let id = pool.zext(id, width);
            Scalar::expr(pool, id)
        }
    }
}

/// Sign extension; a narrower `width` leaves the operand as it is.
pub(crate) fn sext(pool: &mut ExprPool, a: Scalar, width: u32) -> Scalar {
    if width <= a.width {
        return a;
    }
    match a.repr {
        Repr::Const(value) => {
            Scalar::constant(width, model::expr::to_signed(value, a.width) as u128)
        }
        Repr::Expr(id) => {
            let id = pool.sext(id, width);
            Scalar::expr(pool, id)
        }
    }
}

/// Cuts or extends to `width`.
pub(crate) fn resize(pool: &mut ExprPool, a: Scalar, width: u32, signed: bool) -> Scalar {
    if width < a.width {
        extract(pool, a, 0, width)
    } else if signed {
        sext(pool, a, width)
    } else {
        zext(pool, a, width)
    }
}

pub(crate) fn float_bin(
    pool: &mut ExprPool,
    op: FloatOp,
    format: FloatFormat,
    a: Scalar,
    b: Scalar,
) -> Scalar {
    let (x, y) = (a.to_expr(pool), b.to_expr(pool));
    let id = pool.float_bin(op, format, x, y);
    Scalar::expr(pool, id)
}

pub(crate) fn float_cmp(
    pool: &mut ExprPool,
    pred: FloatPred,
    format: FloatFormat,
    a: Scalar,
    b: Scalar,
) -> Scalar {
    let (x, y) = (a.to_expr(pool), b.to_expr(pool));
    let id = pool.float_cmp(pred, format, x, y);
    Scalar::expr(pool, id)
}

pub(crate) fn float_is_nan(pool: &mut ExprPool, format: FloatFormat, a: Scalar) -> Scalar {
    let x = a.to_expr(pool);
    let id = pool.float_is_nan(format, x);
    Scalar::expr(pool, id)
}
