//! Expressions that are evaluated many times.

use super::{Expr, ExprId, ExprPool, fold, mask};
use crate::ids::VarId;

/// An expression with its nodes in a row, operands before what they stand in. Made by
/// [`ExprPool::compile`].
#[derive(Clone, Debug)]
pub struct Compiled {
    steps: Vec<Step>,
    variables: Vec<VarId>,
}

#[derive(Clone, Debug)]
struct Step {
    expr: Expr,
    /// The places of the operands among the steps; of a variable, its place among the variables.
    places: [u32; 3],
}

/// Where the values of steps are kept between evaluations, so that none allocates.
#[derive(Clone, Debug, Default)]
pub struct Scratch(Vec<Option<u128>>);

impl Compiled {
    pub(super) fn new(pool: &ExprPool, root: ExprId) -> Self {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut pending = vec![root];
        while let Some(id) = pending.pop() {
            if seen.insert(id) {
                pool.get(id).for_each_operand(|operand| pending.push(operand));
            }
        }
        // Operands have smaller identifiers than what they stand in.
        let mut ids: Vec<ExprId> = seen.into_iter().collect();
        ids.sort_unstable();
        let mut variables: Vec<VarId> = ids
            .iter()
            .filter_map(|id| match pool.get(*id) {
                Expr::Var { var, .. } => Some(var),
                _ => None,
            })
            .collect();
        variables.sort_unstable();
        variables.dedup();
        let steps = ids.iter().map(|&id| {
            let expr = pool.get(id);
            let mut places = [0; 3];
            if let Expr::Var { var, .. } = expr {
                places[0] = variables.partition_point(|&other| other < var) as u32;
            }
            let mut count = 0;
            expr.for_each_operand(|operand| {
                places[count] = ids.partition_point(|&other| other < operand) as u32;
                count += 1;
            });
            Step { expr, places }
        });
        Self { steps: steps.collect(), variables }
    }

    /// The variables that the expression depends on, in identifier order, each once.
    #[must_use]
    pub fn variables(&self) -> &[VarId] {
        &self.variables
    }

    /// How many nodes an evaluation looks at: one or more.
    #[must_use]
    pub fn size(&self) -> usize {
        self.steps.len()
    }

    /// The value, as [`ExprPool::evaluate`] gives it. `pool` is the one that the expression is of, and
    /// `value_of` gives the variables' values, by their place in [`variables`](Self::variables).
    #[must_use]
    pub fn evaluate(
        &self,
        pool: &ExprPool,
        scratch: &mut Scratch,
        value_of: &impl Fn(usize) -> Option<u128>,
    ) -> Option<u128> {
        let values = &mut scratch.0;
        values.clear();
        for Step { expr, places } in &self.steps {
            let value = match *expr {
                Expr::Const { value, .. } => Some(value),
                Expr::Var { width, .. } => {
                    value_of(places[0] as usize).map(|value| value & mask(width))
                }
                expr => fold::apply(pool, expr, &|operand| {
                    let (mut count, mut found) = (0, None);
                    expr.for_each_operand(|id| {
                        if id == operand {
                            found = Some(places[count] as usize);
                        }
                        count += 1;
                    });
                    values.get(found?).copied().flatten()
                }),
            };
            values.push(value);
        }
        values.last().copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::Scratch;
    use crate::{BinOp, CmpOp, ExprPool, VarId};

    #[test]
    fn a_compiled_expression_has_the_value_of_the_expression() {
        let mut pool = ExprPool::default();
        let (a, b) = (pool.var(VarId(7), 8), pool.var(VarId(3), 8));
        let sum = pool.bin(BinOp::Add, a, b);
        let less = pool.cmp(CmpOp::ULt, sum, a);
        let same = pool.bin(BinOp::Sub, sum, sum);
        let twice = pool.bin(BinOp::Mul, sum, sum);
        let chosen = pool.ite(less, twice, a);
        let mut scratch = Scratch::default();
        for root in [a, sum, less, same, twice, chosen] {
            let compiled = pool.compile(root);
            assert_eq!(compiled.variables(), pool.variables(root));
            for (x, y) in [(200, Some(100)), (3, Some(4)), (0, None)] {
                let by_variable = |var| if var == VarId(7) { Some(x) } else { y };
                let by_place = |place: usize| by_variable(compiled.variables()[place]);
                let found = compiled.evaluate(&pool, &mut scratch, &by_place);
                assert_eq!(found, pool.evaluate(root, &by_variable), "{root:?} {x} {y:?}");
            }
        }
    }
}
