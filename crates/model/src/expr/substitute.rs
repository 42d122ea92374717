//! Pools in which expressions stand in place of variables.

use super::{BinOp, Expr, ExprId, ExprPool, mask};
use crate::ids::VarId;

/// What takes a variable's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Substitute {
    /// This variable of the new pool, as wide.
    Variable(VarId),
    /// This expression of the old pool, as wide, with its own variables replaced.
    Expression(ExprId),
    /// This value.
    Value(u128),
}

impl ExprPool {
    /// A pool of the expressions below `roots` alone, with something else in place of each variable, and
    /// the new identifier of each of the old expressions that was needed for it. Expressions are
    /// simplified again, so that `(x + 1) + 1` with `x + 1` in place of another variable is `x + 2`.
    ///
    /// What takes a variable's place must not depend on the variable.
    #[must_use]
    pub fn substituted(
        &self,
        roots: impl IntoIterator<Item = ExprId>,
        mut substitute: impl FnMut(VarId) -> Substitute,
    ) -> (Self, Vec<Option<ExprId>>) {
        let mut pool = Self::default();
        let mut images: Vec<Option<ExprId>> = vec![None; self.len()];
        // Whether its operands were asked for already. No recursion: loops make expressions deep.
        let mut pending: Vec<(ExprId, bool)> =
            roots.into_iter().map(|root| (root, false)).collect();
        while let Some((id, ready)) = pending.pop() {
            if images[id.0 as usize].is_some() {
                continue;
            }
            let mut expr = self.get(id);
            let image = |id: ExprId| images[id.0 as usize];
            if let Expr::Var { var, width } = expr {
                match substitute(var) {
                    Substitute::Variable(var) => {
                        images[id.0 as usize] = Some(pool.var(var, width));
                    }
                    Substitute::Value(value) => {
                        images[id.0 as usize] = Some(pool.constant(width, value));
                    }
                    Substitute::Expression(other) => match (image(other), ready) {
                        (Some(found), _) => images[id.0 as usize] = Some(found),
                        // One that depends on itself stands for nothing else.
                        (None, true) => images[id.0 as usize] = Some(pool.var(var, width)),
                        (None, false) => pending.extend([(id, true), (other, false)]),
                    },
                }
                continue;
            }
            if !ready {
                pending.push((id, true));
                expr.for_each_operand(|operand| pending.push((operand, false)));
                continue;
            }
            let mut known = true;
            expr.for_each_operand_mut(|operand| match image(*operand) {
                Some(found) => *operand = found,
                None => known = false,
            });
            if known {
                images[id.0 as usize] = Some(pool.simplified(expr));
            }
        }
        (pool, images)
    }

    /// The expression over operands of this pool, as its own constructor makes it.
    fn simplified(&mut self, expr: Expr) -> ExprId {
        match expr {
            Expr::Const { width, value } => self.constant(width, value),
            Expr::Var { var, width } => self.var(var, width),
            Expr::Bin(op @ (BinOp::Add | BinOp::Sub), a, b) => self.sum(op, a, b),
            Expr::Bin(op, a, b) => self.bin(op, a, b),
            Expr::Cmp(op, a, b) => self.cmp(op, a, b),
            Expr::Not(a) => self.not(a),
            Expr::Ite(c, a, b) => self.ite(c, a, b),
            Expr::Extract { of, low, width } => self.extract(of, low, width),
            Expr::Concat { high, low } => self.concat(high, low),
            Expr::ZExt(a, width) => self.zext(a, width),
            Expr::SExt(a, width) => self.sext(a, width),
            Expr::FloatBin(op, format, a, b) => self.float_bin(op, format, a, b),
            Expr::FloatCmp(pred, format, a, b) => self.float_cmp(pred, format, a, b),
            Expr::FloatIsNan(format, a) => self.float_is_nan(format, a),
            Expr::FloatToFloat { of, from, to } => self.float_to_float(of, from, to),
            Expr::FloatToInt { of, from, signed, width } => {
                self.float_to_int(of, from, signed, width)
            }
            Expr::IntToFloat { of, signed, to } => self.int_to_float(of, signed, to),
        }
    }

    /// A sum or difference. A constant goes into the one that an operand has already: of a counter that a thread changes
    /// thousands of times in a row, each value is what it was at first and one constant.
    fn sum(&mut self, op: BinOp, a: ExprId, b: ExprId) -> ExprId {
        let (of, constant) = match (op, self.as_const(a), self.as_const(b)) {
            (_, None, Some(constant)) => (a, constant),
            (BinOp::Add, Some(constant), None) => (b, constant),
            _ => return self.bin(op, a, b),
        };
        let signed = |op: BinOp, value: u128| match op {
            BinOp::Sub => value.wrapping_neg(),
            _ => value,
        };
        let known = match self.get(of) {
            Expr::Bin(inner @ (BinOp::Add | BinOp::Sub), x, y) => match self.as_const(y) {
                Some(y) => Some((x, signed(inner, y))),
                None if inner == BinOp::Add => self.as_const(x).map(|x| (y, x)),
                None => None,
            },
            _ => None,
        };
        let Some((inner, known)) = known else { return self.bin(op, a, b) };
        let width = self.width(of);
        let all = self.constant(width, known.wrapping_add(signed(op, constant)) & mask(width));
        self.bin(BinOp::Add, inner, all)
    }
}

#[cfg(test)]
mod tests {
    use super::Substitute;
    use crate::expr::{BinOp, CmpOp, Expr, ExprId, ExprPool};
    use crate::ids::VarId;

    /// A counter that one thread increments 100,000 times: what each read returns is what was written before.
    #[test]
    fn a_chain_of_additions_is_one() {
        let mut pool = ExprPool::default();
        let one = pool.constant(32, 1);
        let count = 100_000u32;
        let sums: Vec<_> = (0..count)
            .map(|index| {
                let read = pool.var(VarId(index), 32);
                pool.bin(BinOp::Add, read, one)
            })
            .collect();
        let last = *sums.last().expect("there are some");
        let (new, images) = pool.substituted([last], |var| match var.0 {
            0 => Substitute::Variable(VarId(7)),
            index => Substitute::Expression(sums[index as usize - 1]),
        });
        let image = images[last.0 as usize].expect("it was a root");
        assert_eq!(new.variables(image), [VarId(7)]);
        assert_eq!(new.evaluate(image, &|_| Some(5)), Some(5 + u128::from(count)));
        let Expr::Bin(BinOp::Add, of, by) = new.get(image) else { panic!("{:?}", new.get(image)) };
        assert_eq!(
            (new.get(of), new.as_const(by)),
            (Expr::Var { var: VarId(7), width: 32 }, Some(u128::from(count)))
        );
    }

    #[test]
    fn constants_of_sums_and_differences_are_one() {
        let mut pool = ExprPool::default();
        let (x, y, three) = (pool.var(VarId(0), 8), pool.var(VarId(1), 8), pool.constant(8, 3));
        let less = pool.bin(BinOp::Sub, x, three);
        let (more, other) = (pool.bin(BinOp::Add, three, x), pool.bin(BinOp::Sub, three, x));
        let two = pool.constant(8, 2);
        let roots = [
            pool.bin(BinOp::Sub, y, two),
            pool.bin(BinOp::Add, two, y),
            pool.bin(BinOp::Sub, two, y),
        ];
        for (y, values) in [(less, [251, 255, 5]), (more, [1, 5, 255]), (other, [1, 5, 255])] {
            let (new, images) = pool.substituted(roots, |var| match var.0 {
                0 => Substitute::Variable(VarId(0)),
                _ => Substitute::Expression(y),
            });
            let value = |root: &ExprId| {
                let image = images[root.0 as usize].expect("it was a root");
                new.evaluate(image, &|_| Some(0))
            };
            assert_eq!(roots.iter().map(value).collect::<Vec<_>>(), values.map(Some));
        }
    }

    #[test]
    fn what_became_constant_is_folded() {
        let mut pool = ExprPool::default();
        let (x, y) = (pool.var(VarId(0), 8), pool.var(VarId(1), 8));
        let three = pool.constant(8, 3);
        let less = pool.cmp(CmpOp::ULt, x, y);
        let (new, images) = pool.substituted([less], |var| match var.0 {
            0 => Substitute::Expression(three),
            _ => Substitute::Expression(x),
        });
        let image = images[less.0 as usize].expect("it was a root");
        assert_eq!(new.as_const(image), Some(0));
    }
}
