//! Which variables expressions depend on.

use super::{Expr, ExprId, ExprPool};
use crate::ids::VarId;

impl ExprPool {
    /// The variables that an expression depends on, in identifier order, each once.
    #[must_use]
    pub fn variables(&self, id: ExprId) -> Vec<VarId> {
        let mut seen = std::collections::HashSet::new();
        let mut stack = vec![id];
        let mut found = std::collections::BTreeSet::new();
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            let expr = self.get(id);
            if let Expr::Var { var, .. } = expr {
                found.insert(var);
            }
            expr.for_each_operand(|operand| stack.push(operand));
        }
        found.into_iter().collect()
    }

    /// Calls `found` with the variables that expressions depend on, but for those below expressions that are `seen`, by index,
    /// already; what is looked at is seen from then on.
    pub fn each_variable(
        &self,
        of: impl Iterator<Item = ExprId>,
        seen: &mut [bool],
        mut found: impl FnMut(VarId),
    ) {
        let mut stack = Vec::new();
        for id in of {
            stack.push(id);
            while let Some(id) = stack.pop() {
                let Some(seen) = seen.get_mut(id.0 as usize) else { continue };
                if std::mem::replace(seen, true) {
                    continue;
                }
                let expr = self.get(id);
                if let Expr::Var { var, .. } = expr {
                    found(var);
                }
                expr.for_each_operand(|operand| stack.push(operand));
            }
        }
    }

    /// By index of expression, `of` a variable, and `join` of what its operands have, which come before it; `nothing` for
    /// one without variables. For all at once, since what a loop computes may hang on all of its rounds.
    #[must_use]
    pub fn joined<T: Copy>(
        &self,
        nothing: T,
        of: impl Fn(VarId) -> T,
        join: impl Fn(T, T) -> T,
    ) -> Vec<T> {
        let mut found = Vec::with_capacity(self.len());
        for index in 0..self.len() {
            let expr = self.get(ExprId(index as u32));
            let mut all = match expr {
                Expr::Var { var, .. } => of(var),
                _ => nothing,
            };
            expr.for_each_operand(|operand| {
                all = join(all, found.get(operand.0 as usize).copied().unwrap_or(nothing));
            });
            found.push(all);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BinOp;

    #[test]
    fn no_expression_is_looked_at_twice() {
        let mut pool = ExprPool::default();
        let [one, other] = [VarId(3), VarId(5)].map(|var| pool.var(var, 32));
        let sum = pool.bin(BinOp::Add, one, other);
        let product = pool.bin(BinOp::Mul, sum, one);
        let mut seen = vec![false; pool.len()];
        let mut found = Vec::new();
        pool.each_variable([one, sum].into_iter(), &mut seen, |var| found.push(var.0));
        assert_eq!(found, [3, 5]);
        pool.each_variable([sum, product].into_iter(), &mut seen, |var| found.push(var.0));
        assert_eq!(found, [3, 5]);
    }

    #[test]
    fn what_is_joined_is_what_the_variables_have() {
        let mut pool = ExprPool::default();
        let [one, other] = [VarId(3), VarId(5)].map(|var| pool.var(var, 32));
        let constant = pool.constant(32, 7);
        let sum = pool.bin(BinOp::Add, one, constant);
        let both = pool.bin(BinOp::Mul, sum, other);
        let greatest = pool.joined(0, |var| var.0, u32::max);
        for (expr, expected) in [(one, 3), (constant, 0), (sum, 3), (both, 5)] {
            assert_eq!(greatest[expr.0 as usize], expected);
            assert_eq!(pool.variables(expr).last().map_or(0, |var| var.0), expected);
        }
    }
}
