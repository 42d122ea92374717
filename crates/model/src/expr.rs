//! Bit-precise, hash-consed, constant-folded expressions.
//!
//! Every expression is a bit-vector of 1 to [`MAX_WIDTH`] bits. A truth value is a 1-bit vector.
//! Floating-point operations read and give bit patterns of IEEE 754 formats. Equal expressions of
//! one pool have equal identifiers, and an expression over constants alone is a constant.

mod compiled;
mod fold;
mod pins;
mod store;
mod substitute;
mod variables;

use crate::ids::VarId;
pub use compiled::{Compiled, Scratch};
use std::fmt;
use store::Store;
pub use substitute::Substitute;

/// The widest expression in bits. Wider program values are handled in pieces.
pub const MAX_WIDTH: u32 = 128;

/// An expression of an [`ExprPool`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

impl fmt::Debug for ExprId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// A binary operation on two vectors of one width, which is also the result's width. Semantics
/// are SMT-LIB's, so they are total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// Sum modulo 2^width.
    Add,
    /// Difference modulo 2^width.
    Sub,
    /// Product modulo 2^width.
    Mul,
    /// Unsigned quotient; all ones when the divisor is 0.
    UDiv,
    /// Signed quotient, truncated; SMT-LIB `bvsdiv`.
    SDiv,
    /// Unsigned remainder; the dividend when the divisor is 0.
    URem,
    /// Signed remainder with the dividend's sign; SMT-LIB `bvsrem`.
    SRem,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; 0 when the amount is the width or more.
    Shl,
    /// Logical right shift; 0 when the amount is the width or more.
    LShr,
    /// Arithmetic right shift; sign bits when the amount is the width or more.
    AShr,
}

/// A comparison of two vectors of one width; the result has 1 bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmpOp {
    /// Equal.
    Eq,
    /// Unsigned less than.
    ULt,
    /// Unsigned at most.
    ULe,
    /// Signed less than.
    SLt,
    /// Signed at most.
    SLe,
}

/// An IEEE 754 binary format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatFormat {
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

impl FloatFormat {
    /// Width in bits.
    #[must_use]
    pub fn width(self) -> u32 {
        match self {
            Self::Single => 32,
            Self::Double => 64,
        }
    }
}

/// A floating-point operation, rounding to nearest even. Unary operations have equal operands
/// `a` and `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// C `fmod` (LLVM `frem`).
    Rem,
    /// Square root of `a`.
    Sqrt,
    /// The nearest integral value that is not above `a`.
    Floor,
    /// The nearest integral value that is not below `a`.
    Ceil,
    /// The integral value next to `a` towards 0.
    Trunc,
    /// The nearest integral value, of two the one farther from 0.
    Round,
    /// The nearest integral value, of two the even one.
    RoundEven,
}

/// An ordered floating-point comparison: 0 when an operand is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatPred {
    /// Equal.
    Eq,
    /// Less than.
    Lt,
    /// At most.
    Le,
}

/// An expression. Operands are identifiers of the same pool. `V` is how a constant's value is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Expr<V = u128> {
    /// A constant; bits from `width` up are 0.
    Const {
        /// Bits.
        width: u32,
        /// The value.
        value: V,
    },
    /// A value variable.
    Var {
        /// The variable.
        var: VarId,
        /// Bits.
        width: u32,
    },
    /// A binary operation.
    Bin(BinOp, ExprId, ExprId),
    /// A comparison.
    Cmp(CmpOp, ExprId, ExprId),
    /// Bitwise complement; logical not for 1 bit.
    Not(ExprId),
    /// `if c { a } else { b }`; `c` has 1 bit.
    Ite(ExprId, ExprId, ExprId),
    /// `width` bits of `of` from bit `low` up.
    Extract {
        /// The source.
        of: ExprId,
        /// Lowest bit.
        low: u32,
        /// Number of bits.
        width: u32,
    },
    /// `high` above `low`.
    Concat {
        /// The upper bits.
        high: ExprId,
        /// The lower bits.
        low: ExprId,
    },
    /// Zero extension to `width`.
    ZExt(ExprId, u32),
    /// Sign extension to `width`.
    SExt(ExprId, u32),
    /// A floating-point operation.
    FloatBin(FloatOp, FloatFormat, ExprId, ExprId),
    /// A floating-point comparison.
    FloatCmp(FloatPred, FloatFormat, ExprId, ExprId),
    /// Is the operand not a number?
    FloatIsNan(FloatFormat, ExprId),
    /// From one format to the other, rounding to nearest even.
    FloatToFloat {
        /// The operand.
        of: ExprId,
        /// Its format.
        from: FloatFormat,
        /// The result's format.
        to: FloatFormat,
    },
    /// To an integer of `width` bits, rounding to zero; saturating where the value does not fit.
    FloatToInt {
        /// The operand.
        of: ExprId,
        /// Its format.
        from: FloatFormat,
        /// Signed result.
        signed: bool,
        /// The result's width.
        width: u32,
    },
    /// From an integer, rounding to nearest even.
    IntToFloat {
        /// The operand.
        of: ExprId,
        /// Is the operand signed?
        signed: bool,
        /// The result's format.
        to: FloatFormat,
    },
}

/// An arena of expressions.
#[derive(Clone, Debug, Default)]
pub struct ExprPool {
    store: Store,
}

/// The low `width` bits set.
#[must_use]
pub fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1u128 << width) - 1 }
}

/// `value`, whose sign bit is bit `width - 1`, as a signed number.
#[must_use]
pub fn to_signed(value: u128, width: u32) -> i128 {
    let shift = 128 - width.clamp(1, 128);
    ((value << shift) as i128) >> shift
}

impl ExprPool {
    /// The number of expressions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Is the pool empty?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store.len() == 0
    }

    /// The expression behind an identifier. Operands have smaller identifiers than the
    /// expressions they stand in, so identifier order is a topological order.
    ///
    /// # Panics
    /// When the identifier is not of this pool.
    #[must_use]
    pub fn get(&self, id: ExprId) -> Expr {
        self.store.get(id)
    }

    /// Width in bits.
    ///
    /// # Panics
    /// When the identifier is not of this pool.
    #[must_use]
    pub fn width(&self, id: ExprId) -> u32 {
        self.store.width(id)
    }

    /// The value of a constant expression.
    #[must_use]
    pub fn as_const(&self, id: ExprId) -> Option<u128> {
        match self.get(id) {
            Expr::Const { value, .. } => Some(value),
            _ => None,
        }
    }

    fn intern(&mut self, expr: Expr, width: u32) -> ExprId {
        debug_assert!((1..=MAX_WIDTH).contains(&width), "width {width} of {expr:?}");
        self.store.intern(expr, width)
    }

    /// A constant; `value` is cut to `width`.
    pub fn constant(&mut self, width: u32, value: u128) -> ExprId {
        self.intern(Expr::Const { width, value: value & mask(width) }, width)
    }

    /// A truth value.
    pub fn boolean(&mut self, value: bool) -> ExprId {
        self.constant(1, u128::from(value))
    }

    /// A variable.
    pub fn var(&mut self, var: VarId, width: u32) -> ExprId {
        self.intern(Expr::Var { var, width }, width)
    }

    /// A binary operation. Both operands have one width.
    pub fn bin(&mut self, op: BinOp, a: ExprId, b: ExprId) -> ExprId {
        let width = self.width(a);
        debug_assert_eq!(width, self.width(b), "{op:?}");
        if let Some(id) = self.simplify_bin(op, a, b) {
            return id;
        }
        self.build(Expr::Bin(op, a, b), width)
    }

    /// A comparison. Both operands have one width.
    pub fn cmp(&mut self, op: CmpOp, a: ExprId, b: ExprId) -> ExprId {
        debug_assert_eq!(self.width(a), self.width(b), "{op:?}");
        if a == b {
            return self.boolean(matches!(op, CmpOp::Eq | CmpOp::ULe | CmpOp::SLe));
        }
        // The smaller identifier first, so that `a == b` and `b == a` are one expression.
        let (a, b) = if op == CmpOp::Eq && b < a { (b, a) } else { (a, b) };
        self.build(Expr::Cmp(op, a, b), 1)
    }

    /// Equality.
    pub fn eq(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.cmp(CmpOp::Eq, a, b)
    }

    /// Bitwise complement.
    pub fn not(&mut self, a: ExprId) -> ExprId {
        if let Expr::Not(inner) = self.get(a) {
            return inner;
        }
        let width = self.width(a);
        self.build(Expr::Not(a), width)
    }

    /// `if c { a } else { b }`.
    pub fn ite(&mut self, c: ExprId, a: ExprId, b: ExprId) -> ExprId {
        debug_assert_eq!(self.width(c), 1);
        debug_assert_eq!(self.width(a), self.width(b));
        match self.as_const(c) {
            Some(0) => return b,
            Some(_) => return a,
            None if a == b => return a,
            None => {}
        }
        let width = self.width(a);
        self.build(Expr::Ite(c, a, b), width)
    }

    /// `width` bits from bit `low` up.
    pub fn extract(&mut self, of: ExprId, low: u32, width: u32) -> ExprId {
        let full = self.width(of);
        debug_assert!(low + width <= full, "extract {low}+{width} of {full}");
        if low == 0 && width == full {
            return of;
        }
        match self.get(of) {
            Expr::Extract { of: inner, low: l, .. } => return self.extract(inner, l + low, width),
            Expr::Concat { high, low: lower } => {
                let split = self.width(lower);
                if low + width <= split {
                    return self.extract(lower, low, width);
                }
                if low >= split {
                    return self.extract(high, low - split, width);
                }
                let bottom = self.extract(lower, low, split - low);
                let top = self.extract(high, 0, low + width - split);
                return self.concat(top, bottom);
            }
            Expr::ZExt(inner, _) | Expr::SExt(inner, _) if low + width <= self.width(inner) => {
                return self.extract(inner, low, width);
            }
            Expr::ZExt(inner, _) if low >= self.width(inner) => return self.constant(width, 0),
            _ => {}
        }
        self.build(Expr::Extract { of, low, width }, width)
    }

    /// `high` above `low`.
    pub fn concat(&mut self, high: ExprId, low: ExprId) -> ExprId {
        if let (
            Expr::Extract { of: a, low: la, width: wa },
            Expr::Extract { of: b, low: lb, width: wb },
        ) = (self.get(high), self.get(low))
            && a == b
            && lb + wb == la
        {
            return self.extract(a, lb, wa + wb);
        }
        let width = self.width(high) + self.width(low);
        self.build(Expr::Concat { high, low }, width)
    }

    /// Zero extension, or the operand itself when it has this width already.
    pub fn zext(&mut self, a: ExprId, width: u32) -> ExprId {
        if self.width(a) == width {
            return a;
        }
        self.build(Expr::ZExt(a, width), width)
    }

    /// Sign extension, or the operand itself when it has this width already.
    pub fn sext(&mut self, a: ExprId, width: u32) -> ExprId {
        if self.width(a) == width {
            return a;
        }
        self.build(Expr::SExt(a, width), width)
    }

    /// A floating-point operation.
    pub fn float_bin(&mut self, op: FloatOp, format: FloatFormat, a: ExprId, b: ExprId) -> ExprId {
        self.build(Expr::FloatBin(op, format, a, b), format.width())
    }

    /// A floating-point comparison.
    pub fn float_cmp(
        &mut self,
        pred: FloatPred,
        format: FloatFormat,
        a: ExprId,
        b: ExprId,
    ) -> ExprId {
        self.build(Expr::FloatCmp(pred, format, a, b), 1)
    }

    /// Is the operand not a number?
    pub fn float_is_nan(&mut self, format: FloatFormat, a: ExprId) -> ExprId {
        self.build(Expr::FloatIsNan(format, a), 1)
    }

    /// From one format to the other.
    pub fn float_to_float(&mut self, of: ExprId, from: FloatFormat, to: FloatFormat) -> ExprId {
        if from == to {
            return of;
        }
        self.build(Expr::FloatToFloat { of, from, to }, to.width())
    }

    /// To an integer.
    pub fn float_to_int(
        &mut self,
        of: ExprId,
        from: FloatFormat,
        signed: bool,
        width: u32,
    ) -> ExprId {
        self.build(Expr::FloatToInt { of, from, signed, width }, width)
    }

    /// From an integer.
    pub fn int_to_float(&mut self, of: ExprId, signed: bool, to: FloatFormat) -> ExprId {
        self.build(Expr::IntToFloat { of, signed, to }, to.width())
    }

    /// Conjunction of two truth values.
    pub fn and(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.bin(BinOp::And, a, b)
    }

    /// Disjunction of two truth values.
    pub fn or(&mut self, a: ExprId, b: ExprId) -> ExprId {
        self.bin(BinOp::Or, a, b)
    }

    /// Interns `expr`, folding it to a constant when its operands are constants.
    fn build(&mut self, expr: Expr, width: u32) -> ExprId {
        let mut operands = Operands::default();
        expr.for_each_operand(|id| operands.push(id));
        if operands.iter().all(|id| self.as_const(id).is_some())
            && let Some(value) = self.apply(expr, |id| self.as_const(id))
        {
            return self.constant(width, value);
        }
        self.intern(expr, width)
    }

    fn simplify_bin(&mut self, op: BinOp, a: ExprId, b: ExprId) -> Option<ExprId> {
        let width = self.width(a);
        let (ca, cb) = (self.as_const(a), self.as_const(b));
        let zero = Some(0);
        let ones = Some(mask(width));
        match op {
            BinOp::Add if ca == zero => Some(b),
            BinOp::Add | BinOp::Sub | BinOp::Shl | BinOp::LShr | BinOp::AShr if cb == zero => {
                Some(a)
            }
            BinOp::Sub | BinOp::Xor if a == b => Some(self.constant(width, 0)),
            BinOp::And if ca == zero || cb == zero => Some(self.constant(width, 0)),
            BinOp::And if ca == ones => Some(b),
            BinOp::And if cb == ones => Some(a),
            BinOp::And | BinOp::Or if a == b => Some(a),
            BinOp::Or if ca == zero => Some(b),
            BinOp::Or | BinOp::Xor if cb == zero => Some(a),
            BinOp::Or if ca == ones || cb == ones => Some(self.constant(width, mask(width))),
            BinOp::Xor if ca == zero => Some(b),
            BinOp::Xor if ca == ones => Some(self.not(b)),
            BinOp::Xor if cb == ones => Some(self.not(a)),
            BinOp::Mul if ca == Some(1) => Some(b),
            BinOp::Mul | BinOp::UDiv | BinOp::SDiv if cb == Some(1) && width > 1 => Some(a),
            BinOp::Mul if ca == zero || cb == zero => Some(self.constant(width, 0)),
            // (x + c1) + c2 = x + (c1 + c2), which keeps counters and addresses flat.
            BinOp::Add => {
                let (x, c) = match (ca, cb) {
                    (None, Some(c)) => (a, c),
                    (Some(c), None) => (b, c),
                    _ => return None,
                };
                let Expr::Bin(BinOp::Add, y, inner) = self.get(x) else { return None };
                let d = self.as_const(inner)?;
                let sum = self.constant(width, c.wrapping_add(d));
                Some(self.bin(BinOp::Add, y, sum))
            }
            _ => None,
        }
    }

    /// The value of `expr` where `value_of` gives the values of its operands; `None` when an
    /// operand's value is unknown. A variable's value is not an operand: use
    /// [`evaluate`](Self::evaluate).
    #[must_use]
    pub fn apply(&self, expr: Expr, value_of: impl Fn(ExprId) -> Option<u128>) -> Option<u128> {
        fold::apply(self, expr, &value_of)
    }

    /// The value of an expression where `value_of` gives the variables' values; `None` when it
    /// depends on a variable whose value is unknown.
    #[must_use]
    pub fn evaluate(&self, id: ExprId, value_of: &impl Fn(VarId) -> Option<u128>) -> Option<u128> {
        fold::evaluate(self, id, value_of)
    }

    /// The expression in a form that is evaluated faster, for when it is often.
    #[must_use]
    pub fn compile(&self, id: ExprId) -> Compiled {
        Compiled::new(self, id)
    }

    /// The value of every expression, by identifier, as far as it follows from the values that
    /// `value_of` gives to variables. Linear in the size of the pool.
    #[must_use]
    pub fn evaluate_all(&self, value_of: &impl Fn(VarId) -> Option<u128>) -> Vec<Option<u128>> {
        let mut values: Vec<Option<u128>> = Vec::with_capacity(self.len());
        for expr in (0..self.len()).map(|index| self.get(ExprId(index as u32))) {
            let known = |id: ExprId| values.get(id.0 as usize).copied().flatten();
            let value = match expr {
                Expr::Const { value, .. } => Some(value),
                Expr::Var { var, .. } => value_of(var),
                _ => self.apply(expr, known),
            };
            values.push(value);
        }
        values
    }

    /// A pool of the expressions below `roots` alone, with other variables, and the new identifier
    /// of each expression that is in it, by old identifier.
    #[must_use]
    pub fn restricted(
        &self,
        roots: impl IntoIterator<Item = ExprId>,
        mut rename: impl FnMut(VarId) -> VarId,
    ) -> (Self, Vec<Option<ExprId>>) {
        let mut wanted = vec![false; self.len()];
        let mut pending: Vec<ExprId> = roots.into_iter().collect();
        while let Some(id) = pending.pop() {
            if !std::mem::replace(&mut wanted[id.0 as usize], true) {
                self.get(id).for_each_operand(|operand| pending.push(operand));
            }
        }
        let mut pool = Self::default();
        let mut images: Vec<Option<ExprId>> = vec![None; self.len()];
        for index in (0..self.len()).filter(|index| wanted[*index]) {
            // Identifiers keep their order, so that equations keep theirs.
            let id = ExprId(index as u32);
            let (mut expr, width) = (self.get(id), self.width(id));
            if let Expr::Var { var, .. } = &mut expr {
                *var = rename(*var);
            }
            expr.for_each_operand_mut(|operand| {
                *operand = images[operand.0 as usize].unwrap_or(*operand);
            });
            images[index] = Some(pool.intern(expr, width));
        }
        (pool, images)
    }

    /// The expression with other variables, each as wide as the one that it stands for.
    pub fn renamed(&mut self, root: ExprId, rename: &impl Fn(VarId) -> VarId) -> ExprId {
        let (part, images) = self.restricted([root], rename);
        let mut found: Vec<ExprId> = Vec::with_capacity(part.len());
        for index in 0..part.len() {
            let id = ExprId(index as u32);
            let (mut expr, width) = (part.get(id), part.width(id));
            expr.for_each_operand_mut(|operand| *operand = found[operand.0 as usize]);
            found.push(self.intern(expr, width));
        }
        images[root.0 as usize].map_or(root, |image| found[image.0 as usize])
    }
}

/// Up to three operands.
#[derive(Default)]
struct Operands {
    ids: [Option<ExprId>; 3],
    len: usize,
}

impl Operands {
    fn push(&mut self, id: ExprId) {
        self.ids[self.len] = Some(id);
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = ExprId> + '_ {
        self.ids.iter().flatten().copied()
    }
}

impl<V> Expr<V> {
    /// The expression with its constant's value, if it is a constant, given in another way.
    fn with_value<W>(self, f: impl FnOnce(V) -> W) -> Expr<W> {
        match self {
            Self::Const { width, value } => Expr::Const { width, value: f(value) },
            Self::Var { var, width } => Expr::Var { var, width },
            Self::Bin(op, a, b) => Expr::Bin(op, a, b),
            Self::Cmp(op, a, b) => Expr::Cmp(op, a, b),
            Self::Not(a) => Expr::Not(a),
            Self::Ite(c, a, b) => Expr::Ite(c, a, b),
            Self::Extract { of, low, width } => Expr::Extract { of, low, width },
            Self::Concat { high, low } => Expr::Concat { high, low },
            Self::ZExt(a, width) => Expr::ZExt(a, width),
            Self::SExt(a, width) => Expr::SExt(a, width),
            Self::FloatBin(op, format, a, b) => Expr::FloatBin(op, format, a, b),
            Self::FloatCmp(pred, format, a, b) => Expr::FloatCmp(pred, format, a, b),
            Self::FloatIsNan(format, a) => Expr::FloatIsNan(format, a),
            Self::FloatToFloat { of, from, to } => Expr::FloatToFloat { of, from, to },
            Self::FloatToInt { of, from, signed, width } => {
                Expr::FloatToInt { of, from, signed, width }
            }
            Self::IntToFloat { of, signed, to } => Expr::IntToFloat { of, signed, to },
        }
    }
}

impl Expr {
    /// Lets `f` replace every operand, first to last.
    fn for_each_operand_mut(&mut self, mut f: impl FnMut(&mut ExprId)) {
        match self {
            Self::Const { .. } | Self::Var { .. } => {}
            Self::Not(a) | Self::ZExt(a, _) | Self::SExt(a, _) | Self::FloatIsNan(_, a) => f(a),
            Self::Extract { of, .. }
            | Self::FloatToFloat { of, .. }
            | Self::FloatToInt { of, .. }
            | Self::IntToFloat { of, .. } => f(of),
            Self::Bin(_, a, b)
            | Self::Cmp(_, a, b)
            | Self::FloatBin(_, _, a, b)
            | Self::FloatCmp(_, _, a, b)
            | Self::Concat { high: a, low: b } => {
                f(a);
                f(b);
            }
            Self::Ite(c, a, b) => {
                f(c);
                f(a);
                f(b);
            }
        }
    }

    /// Calls `f` with every operand, first to last.
    pub fn for_each_operand(mut self, mut f: impl FnMut(ExprId)) {
        self.for_each_operand_mut(|operand| f(*operand));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_expressions_are_one() {
        let mut pool = ExprPool::default();
        let x = pool.var(VarId(0), 32);
        let one = pool.constant(32, 1);
        let a = pool.bin(BinOp::Add, x, one);
        let b = pool.bin(BinOp::Add, x, one);
        assert_eq!(a, b);
        assert_eq!(pool.eq(x, one), pool.eq(one, x));
    }

    #[test]
    fn integers_wrap_at_their_width() {
        let mut pool = ExprPool::default();
        let max = pool.constant(8, 255);
        let one = pool.constant(8, 1);
        let sum = pool.bin(BinOp::Add, max, one);
        assert_eq!(pool.as_const(sum), Some(0));
        let product = pool.bin(BinOp::Mul, max, max);
        assert_eq!(pool.as_const(product), Some(1));
    }

    #[test]
    fn division_follows_smt_lib_at_its_corners() {
        let mut pool = ExprPool::default();
        let zero = pool.constant(8, 0);
        let minus_five = pool.constant(8, 251);
        let value = |pool: &mut ExprPool, op| {
            let id = pool.bin(op, minus_five, zero);
            pool.as_const(id)
        };
        assert_eq!(value(&mut pool, BinOp::UDiv), Some(255));
        assert_eq!(value(&mut pool, BinOp::SDiv), Some(1));
        assert_eq!(value(&mut pool, BinOp::URem), Some(251));
        assert_eq!(value(&mut pool, BinOp::SRem), Some(251));
        let (min, minus_one) = (pool.constant(8, 128), pool.constant(8, 255));
        let overflow = pool.bin(BinOp::SDiv, min, minus_one);
        assert_eq!(pool.as_const(overflow), Some(128));
    }

    #[test]
    fn pieces_of_a_value_join_again() {
        let mut pool = ExprPool::default();
        let x = pool.var(VarId(0), 64);
        let low = pool.extract(x, 0, 32);
        let high = pool.extract(x, 32, 32);
        assert_eq!(pool.concat(high, low), x);
        let wide = pool.zext(low, 64);
        assert_eq!(pool.extract(wide, 0, 32), low);
        let top = pool.extract(wide, 32, 32);
        assert_eq!(pool.as_const(top), Some(0));
    }

    #[test]
    fn a_part_of_a_pool_is_one() {
        let mut pool = ExprPool::default();
        let (x, y) = (pool.var(VarId(0), 32), pool.var(VarId(7), 32));
        let _other = pool.bin(BinOp::Mul, x, y);
        let three = pool.constant(32, 3);
        let sum = pool.bin(BinOp::Add, y, three);
        let known = pool.evaluate_all(&|var| (var == VarId(7)).then_some(4));
        assert_eq!((known[sum.0 as usize], known[x.0 as usize]), (Some(7), None));
        let (part, images) = pool.restricted([sum], |_| VarId(0));
        assert_eq!((part.len(), images[x.0 as usize]), (3, None));
        let image = images[sum.0 as usize].expect("it was wanted");
        assert_eq!(part.evaluate(image, &|var| (var == VarId(0)).then_some(4)), Some(7));
    }

    #[test]
    fn deep_expressions_are_evaluated_without_recursion() {
        let mut pool = ExprPool::default();
        let x = pool.var(VarId(0), 32);
        let mut sum = x;
        for _ in 0..200_000 {
            sum = pool.bin(BinOp::Xor, sum, x);
            sum = pool.bin(BinOp::Add, sum, x);
        }
        assert!(pool.evaluate(sum, &|_| Some(3)).is_some());
        assert_eq!(pool.evaluate(sum, &|_| None), None);
    }

    #[test]
    fn floats_round_as_the_machine_does() {
        let mut pool = ExprPool::default();
        let third = pool.constant(32, u128::from((1.0f32 / 3.0).to_bits()));
        let three = pool.constant(32, u128::from(3.0f32.to_bits()));
        let one = pool.float_bin(FloatOp::Mul, FloatFormat::Single, third, three);
        assert_eq!(pool.as_const(one), Some(u128::from(1.0f32.to_bits())));
        let nan = pool.constant(64, u128::from(f64::NAN.to_bits()));
        let same = pool.float_cmp(FloatPred::Eq, FloatFormat::Double, nan, nan);
        assert_eq!(pool.as_const(same), Some(0));
    }
}
