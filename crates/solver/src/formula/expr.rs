//! Expressions as shared definitions.
//!
//! Every expression that is neither a constant nor a variable is defined once, under its
//! identifier. One-bit expressions are of sort `Bool`, all others bit-vectors.

use super::{Formula, float};
use crate::session::SolverError;
use model::{BinOp, CmpOp, EventTrace, Expr, ExprId, ExprPool};
use std::collections::BTreeSet;

/// How the defined expressions are written.
pub(super) struct Expressions<'a> {
    pub(super) pool: &'a ExprPool,
}

impl<'a> Expressions<'a> {
    /// Declares the variables and defines the expressions that `roots` need.
    pub(super) fn define(
        trace: &'a EventTrace,
        roots: &[ExprId],
        formula: &mut Formula,
    ) -> Result<Self, SolverError> {
        let expressions = Self { pool: &trace.exprs };
        let needed = needed(&trace.exprs, roots);
        let mut variables = BTreeSet::new();
        for &id in &needed {
            if let Expr::Var { var, width } = trace.exprs.get(id) {
                variables.insert((var, width));
            }
        }
        for &(var, width) in &variables {
            formula.line(&format!("(declare-fun {var} () (_ BitVec {width}))"));
        }
        formula.variables = variables.into_iter().collect();
        // Operands have smaller identifiers than what they stand in.
        for id in needed {
            expressions.definition(id, formula)?;
        }
        Ok(expressions)
    }

    fn definition(&self, id: ExprId, formula: &mut Formula) -> Result<(), SolverError> {
        let expr = self.pool.get(id);
        match expr {
            Expr::Const { .. } | Expr::Var { .. } => {}
            Expr::FloatBin(..) | Expr::FloatToFloat { .. } | Expr::IntToFloat { .. } => {
                // SMT-LIB has no function from a float to its bits, so the bits are unknowns
                // whose float is the result. A NaN may have any payload.
                let (format, value) = float::value(self, expr)?;
                let width = format.width();
                formula.line(&format!("(declare-fun {id:?} () (_ BitVec {width}))"));
                let bits = float::of_bits(format, &format!("{id:?}"));
                formula.line(&format!("(assert (= {bits} {value}))"));
                formula.assertions += 1;
            }
            _ => {
                let width = self.pool.width(id);
                let sort =
                    if width == 1 { "Bool".to_owned() } else { format!("(_ BitVec {width})") };
                let body = self.body(expr, width);
                formula.line(&format!("(define-fun {id:?} () {sort} {body})"));
            }
        }
        Ok(())
    }

    /// The definition of an expression that is not a float.
    fn body(&self, expr: Expr, width: u32) -> String {
        let one_bit = |bits: String| if width == 1 { format!("(= {bits} #b1)") } else { bits };
        match expr {
            Expr::Bin(op, a, b) => self.binary(op, a, b, width),
            Expr::Cmp(op, a, b) => self.comparison(op, a, b),
            Expr::Not(a) if width == 1 => format!("(not {})", self.as_bool(a)),
            Expr::Not(a) => format!("(bvnot {})", self.as_bits(a)),
            Expr::Ite(c, a, b) => {
                format!("(ite {} {} {})", self.as_bool(c), self.as_is(a), self.as_is(b))
            }
            Expr::Extract { of, low, width } => {
                one_bit(format!("((_ extract {} {low}) {})", low + width - 1, self.as_bits(of)))
            }
            Expr::Concat { high, low } => {
                format!("(concat {} {})", self.as_bits(high), self.as_bits(low))
            }
            Expr::ZExt(a, _) => self.extension("zero_extend", a, width),
            Expr::SExt(a, _) => self.extension("sign_extend", a, width),
            Expr::FloatCmp(pred, format, a, b) => float::comparison(self, pred, format, a, b),
            Expr::FloatIsNan(format, a) => {
                format!("(fp.isNaN {})", float::of_bits(format, &self.as_bits(a)))
            }
            Expr::FloatToInt { of, from, signed, width } => {
                one_bit(float::to_int(self, of, from, signed, width))
            }
            Expr::Const { .. }
            | Expr::Var { .. }
            | Expr::FloatBin(..)
            | Expr::FloatToFloat { .. }
            | Expr::IntToFloat { .. } => unreachable!("defined elsewhere"),
        }
    }

    fn binary(&self, op: BinOp, a: ExprId, b: ExprId, width: u32) -> String {
        let name = match (op, width) {
            (BinOp::And | BinOp::Mul, 1) => Some("and"),
            (BinOp::Or, 1) => Some("or"),
            (BinOp::Xor | BinOp::Add | BinOp::Sub, 1) => Some("xor"),
            _ => None,
        };
        if let Some(name) = name {
            return format!("({name} {} {})", self.as_bool(a), self.as_bool(b));
        }
        let name = match op {
            BinOp::Add => "bvadd",
            BinOp::Sub => "bvsub",
            BinOp::Mul => "bvmul",
            BinOp::UDiv => "bvudiv",
            BinOp::SDiv => "bvsdiv",
            BinOp::URem => "bvurem",
            BinOp::SRem => "bvsrem",
            BinOp::And => "bvand",
            BinOp::Or => "bvor",
            BinOp::Xor => "bvxor",
            BinOp::Shl => "bvshl",
            BinOp::LShr => "bvlshr",
            BinOp::AShr => "bvashr",
        };
        let bits = format!("({name} {} {})", self.as_bits(a), self.as_bits(b));
        if width == 1 { format!("(= {bits} #b1)") } else { bits }
    }

    fn comparison(&self, op: CmpOp, a: ExprId, b: ExprId) -> String {
        let name = match op {
            CmpOp::Eq => return self.equal(a, b),
            CmpOp::ULt => "bvult",
            CmpOp::ULe => "bvule",
            CmpOp::SLt => "bvslt",
            CmpOp::SLe => "bvsle",
        };
        format!("({name} {} {})", self.as_bits(a), self.as_bits(b))
    }

    fn extension(&self, name: &str, a: ExprId, width: u32) -> String {
        let by = width - self.pool.width(a);
        format!("((_ {name} {by}) {})", self.as_bits(a))
    }

    /// Two expressions of one width are equal.
    pub(super) fn equal(&self, a: ExprId, b: ExprId) -> String {
        format!("(= {} {})", self.as_is(a), self.as_is(b))
    }

    /// In its own sort.
    fn as_is(&self, id: ExprId) -> String {
        if self.pool.width(id) == 1 { self.as_bool(id) } else { self.as_bits(id) }
    }

    /// A one-bit expression as a `Bool`.
    pub(super) fn as_bool(&self, id: ExprId) -> String {
        match self.pool.get(id) {
            Expr::Const { value, .. } => (value != 0).to_string(),
            Expr::Var { var, .. } => format!("(= {var} #b1)"),
            _ => format!("{id:?}"),
        }
    }

    /// As a bit-vector.
    pub(super) fn as_bits(&self, id: ExprId) -> String {
        match self.pool.get(id) {
            Expr::Const { width, value } => constant(width, value),
            Expr::Var { var, .. } => var.to_string(),
            _ if self.pool.width(id) == 1 => format!("(ite {id:?} #b1 #b0)"),
            _ => format!("{id:?}"),
        }
    }
}

/// A constant of `width` bits.
pub(super) fn constant(width: u32, value: u128) -> String {
    if width.is_multiple_of(4) {
        format!("#x{value:0digits$x}", digits = width as usize / 4)
    } else {
        format!("#b{value:0digits$b}", digits = width as usize)
    }
}

/// The expressions that `roots` are made of, operands first.
fn needed(pool: &ExprPool, roots: &[ExprId]) -> BTreeSet<ExprId> {
    let mut found = BTreeSet::new();
    let mut pending = roots.to_vec();
    while let Some(id) = pending.pop() {
        if found.insert(id) {
            pool.get(id).for_each_operand(|operand| pending.push(operand));
        }
    }
    found
}
