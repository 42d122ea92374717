//! Values that a condition has settled.
//!
//! An index that goes on by a choice without a branch, `i = c ? i + 1 : i`, grows with every round of
//! its loop, and so does each condition that it is used in. But what it is used for as an address is a
//! condition that it has one value: from then on that value takes the place of what it was computed
//! from. A schedule in which it is another one breaks the condition and leaves the recorded paths.
//!
//! Short expressions stay, so that what flows where can be told.

use model::{ExprId, ExprPool};
use rustc_hash::FxHashMap;

/// Expressions of more nodes are long.
const LONG: usize = 32;

/// By expression, the value that it has on the recorded path.
pub(crate) type Settled = FxHashMap<ExprId, u128>;

/// An expression has the value, and with it those below that can have one value only then, as far as
/// they are long.
pub(crate) fn settle(pool: &ExprPool, id: ExprId, value: u128, settled: &mut Settled) {
    let mut next = Some((id, value));
    while let Some((id, value)) = next {
        if !is_long(pool, id) || settled.insert(id, value).is_some() {
            return;
        }
        next = pool.pinned_operand(id, value);
    }
}

/// Has it more than [`LONG`] different nodes?
fn is_long(pool: &ExprPool, id: ExprId) -> bool {
    let mut seen = vec![id];
    let mut looked = 0;
    while let Some(&id) = seen.get(looked) {
        looked += 1;
        pool.get(id).for_each_operand(|operand| {
            if !seen.contains(&operand) {
                seen.push(operand);
            }
        });
        if seen.len() > LONG {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{LONG, Settled, settle};
    use model::expr::mask;
    use model::{BinOp, CmpOp, ExprId, ExprPool, VarId};

    /// An index that went on by choices, so that it is long.
    fn index(pool: &mut ExprPool) -> ExprId {
        let mut index = pool.var(VarId(0), 32);
        let one = pool.constant(32, 1);
        for round in 0..LONG as u32 {
            let (seen, limit) = (pool.var(VarId(round + 1), 32), pool.constant(32, 100));
            let less = pool.cmp(CmpOp::SLt, seen, limit);
            let more = pool.bin(BinOp::Add, index, one);
            index = pool.ite(less, more, index);
        }
        index
    }

    #[test]
    fn an_index_follows_from_the_address_that_it_leads_to() {
        for (signed, value) in [(false, 17u128), (true, 17), (true, mask(32) - 2)] {
            let mut pool = ExprPool::default();
            let index = index(&mut pool);
            let wide = if signed { pool.sext(index, 64) } else { pool.zext(index, 64) };
            let (size, base) = (pool.constant(64, 12), pool.constant(64, 0x7000));
            let offset = pool.bin(BinOp::Mul, wide, size);
            let address = pool.bin(BinOp::Add, base, offset);
            let signed_value = i128::from(value as u32 as i32);
            let recorded = (0x7000 + 12 * signed_value) as u128 & mask(64);
            let mut settled = Settled::default();
            settle(&pool, address, recorded, &mut settled);
            assert_eq!(settled.get(&index), Some(&value));
            assert_eq!(settled.get(&address), Some(&recorded));
        }
    }

    #[test]
    fn nothing_is_settled_that_could_have_been_another_value() {
        let mut pool = ExprPool::default();
        let index = index(&mut pool);
        // Two numbers of 32 bits have this product on 32 bits.
        let two = pool.constant(32, 2);
        let twice = pool.bin(BinOp::Mul, index, two);
        let mut settled = Settled::default();
        settle(&pool, twice, 8, &mut settled);
        assert_eq!(settled.len(), 1);
        // No number has this one.
        let (wide, three) = (pool.zext(index, 64), pool.constant(64, 3));
        let thrice = pool.bin(BinOp::Mul, wide, three);
        settle(&pool, thrice, 8, &mut settled);
        assert_eq!(settled.get(&index), None);
    }

    #[test]
    fn what_is_short_stays() {
        let mut pool = ExprPool::default();
        let (pointer, eight) = (pool.var(VarId(0), 64), pool.constant(64, 8));
        let field = pool.bin(BinOp::Add, pointer, eight);
        let mut settled = Settled::default();
        settle(&pool, field, 0x7008, &mut settled);
        assert!(settled.is_empty());
    }
}
