//! 1-bit expressions that only join others, and how far down they do.
//!
//! A back end may take such an expression to pieces, and then asks for the truth of the pieces and
//! never for a value. What is determined without values ([`crate::ConstraintSystem::is_determined`])
//! counts as long as it is such a piece; where something is computed from it, values are needed.

use model::{BinOp, CmpOp, Expr, ExprId, ExprPool};
use rustc_hash::FxHashMap;

/// Expressions that join others that join others, and so on, further down than this are not taken
/// to pieces.
const DEEPEST: u32 = 64;

/// How a 1-bit expression joins others, all of 1 bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connective {
    /// It joins nothing.
    Constant(bool),
    /// The operand does not hold.
    Not(ExprId),
    /// Both operands hold.
    Both(ExprId, ExprId),
    /// One of the operands holds.
    Either(ExprId, ExprId),
    /// The operands are equal.
    Same(ExprId, ExprId),
    /// The operands differ.
    Differ(ExprId, ExprId),
    /// The second operand holds if the first does, and the third otherwise.
    Choice(ExprId, ExprId, ExprId),
}

impl Connective {
    fn of(pool: &ExprPool, id: ExprId) -> Option<Self> {
        if pool.width(id) != 1 {
            return None;
        }
        if let Some(value) = pool.as_const(id) {
            return Some(Self::Constant(value != 0));
        }
        match pool.get(id) {
            Expr::Not(a) => Some(Self::Not(a)),
            Expr::Bin(BinOp::And, a, b) => Some(Self::Both(a, b)),
            Expr::Bin(BinOp::Or, a, b) => Some(Self::Either(a, b)),
            Expr::Bin(BinOp::Xor, a, b) => Some(Self::Differ(a, b)),
            Expr::Cmp(CmpOp::Eq, a, b) if pool.width(a) == 1 => Some(Self::Same(a, b)),
            Expr::Ite(a, b, c) => Some(Self::Choice(a, b, c)),
            _ => None,
        }
    }

    /// The operands.
    pub fn operands(self) -> impl Iterator<Item = ExprId> {
        let operands = match self {
            Self::Constant(_) => [None; 3],
            Self::Not(a) => [Some(a), None, None],
            Self::Both(a, b) | Self::Either(a, b) | Self::Same(a, b) | Self::Differ(a, b) => {
                [Some(a), Some(b), None]
            }
            Self::Choice(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        operands.into_iter().flatten()
    }
}

/// The connectives of a pool.
#[derive(Debug)]
pub struct Connectives<'t> {
    pool: &'t ExprPool,
    /// How many connectives are on the longest way down.
    heights: FxHashMap<ExprId, u32>,
}

impl<'t> Connectives<'t> {
    /// Of this pool.
    #[must_use]
    pub fn new(pool: &'t ExprPool) -> Self {
        Self { pool, heights: FxHashMap::default() }
    }

    /// How the expression joins others; `None` when it does not, or when too much is below it.
    pub fn get(&mut self, id: ExprId) -> Option<Connective> {
        let connective = Connective::of(self.pool, id)?;
        (self.height(id) <= DEEPEST).then_some(connective)
    }

    fn height(&mut self, root: ExprId) -> u32 {
        let mut pending = vec![root];
        while let Some(&id) = pending.last() {
            let Some(connective) = Connective::of(self.pool, id) else {
                self.heights.insert(id, 0);
                pending.pop();
                continue;
            };
            let before = pending.len();
            pending.extend(connective.operands().filter(|below| !self.heights.contains_key(below)));
            if pending.len() == before {
                let below = connective.operands().filter_map(|below| self.heights.get(&below));
                let height = 1 + below.copied().max().unwrap_or(0);
                self.heights.insert(id, height);
                pending.pop();
            }
        }
        self.heights.get(&root).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Connective, Connectives, DEEPEST};
    use model::{BinOp, CmpOp, ExprPool, VarId};

    #[test]
    fn comparisons_of_numbers_join_nothing() {
        let mut pool = ExprPool::default();
        let (a, b) = (pool.var(VarId(0), 32), pool.var(VarId(1), 32));
        let equal = pool.cmp(CmpOp::Eq, a, b);
        let less = pool.cmp(CmpOp::ULt, a, b);
        let same = pool.cmp(CmpOp::Eq, equal, less);
        let mut connectives = Connectives::new(&pool);
        assert_eq!(connectives.get(equal), None);
        assert_eq!(connectives.get(a), None);
        let operands: Option<Vec<_>> = connectives.get(same).map(|c| c.operands().collect());
        assert_eq!(operands.map(|o| o.len()), Some(2));
    }

    #[test]
    fn only_so_much_is_taken_to_pieces() {
        let mut pool = ExprPool::default();
        let mut top = pool.var(VarId(0), 1);
        for index in 0..DEEPEST {
            let next = pool.var(VarId(index + 1), 1);
            top = pool.bin(BinOp::And, top, next);
        }
        let last = pool.var(VarId(DEEPEST + 1), 1);
        let above = pool.bin(BinOp::And, top, last);
        let mut connectives = Connectives::new(&pool);
        assert_eq!(connectives.get(above), None);
        assert!(matches!(connectives.get(top), Some(Connective::Both(..))));
    }
}
