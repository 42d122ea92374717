//! What an expression's only possible value says about its operands.
//!
//! An address that must stay what it was, `base + 8 * (100 * row + 3)`, says the same as each other element's of the
//! row: that `100 * row` is what it was. As such all of them are one expression, and what `row` can be shows.

use super::{BinOp, Expr, ExprId, ExprPool, mask, to_signed};

/// Ranges are looked for so many operands deep.
const DEEPEST: u32 = 8;
/// Products are taken apart up to this width, so that no multiple leaves `i128`.
const MAX_WIDTH: u32 = 64;

impl ExprPool {
    /// The condition that an expression has a value, about the operand that has one value only then, as far
    /// down as there is one. Both conditions hold for the same values of the variables.
    ///
    /// ```
    /// use model::{BinOp, ExprPool, VarId};
    ///
    /// let mut pool = ExprPool::default();
    /// let index = pool.var(VarId(0), 32);
    /// let (wide, size, base) = (pool.zext(index, 64), pool.constant(64, 8), pool.constant(64, 0x7000));
    /// let offset = pool.bin(BinOp::Mul, wide, size);
    /// let address = pool.bin(BinOp::Add, base, offset);
    /// let (pinned, three) = (pool.pinned(address, 0x7018), pool.constant(32, 3));
    /// assert_eq!(pinned, pool.eq(index, three));
    /// ```
    pub fn pinned(&mut self, id: ExprId, value: u128) -> ExprId {
        let (mut id, mut value) = (id, value & mask(self.width(id)));
        while let Some(below) = self.pinned_operand(id, value) {
            (id, value) = below;
        }
        let constant = self.constant(self.width(id), value);
        self.eq(id, constant)
    }

    /// The operand that has one value if and only if the expression has this one, and that value. `None` also
    /// where the expression cannot have it.
    #[must_use]
    pub fn pinned_operand(&self, id: ExprId, value: u128) -> Option<(ExprId, u128)> {
        let width = self.width(id);
        let of = |operand: ExprId, value: u128| Some((operand, value & mask(width)));
        match self.get(id) {
            Expr::Bin(op, a, b) => match (op, self.as_const(a), self.as_const(b)) {
                (BinOp::Add, Some(known), None) => of(b, value.wrapping_sub(known)),
                (BinOp::Add, None, Some(known)) => of(a, value.wrapping_sub(known)),
                (BinOp::Sub, Some(known), None) => of(b, known.wrapping_sub(value)),
                (BinOp::Sub, None, Some(known)) => of(a, value.wrapping_add(known)),
                (BinOp::Xor, Some(known), None) => of(b, value ^ known),
                (BinOp::Xor, None, Some(known)) => of(a, value ^ known),
                (BinOp::Mul, Some(known), None) => self.pinned_factor(b, known, value),
                (BinOp::Mul, None, Some(known)) => self.pinned_factor(a, known, value),
                (BinOp::Shl, None, Some(shift)) => {
                    let times = 1u128.checked_shl(u32::try_from(shift).ok()?)?;
                    self.pinned_factor(a, times & mask(width), value)
                }
                _ => None,
            },
            Expr::Not(a) => of(a, !value),
            Expr::ZExt(a, _) => (value <= mask(self.width(a))).then_some((a, value)),
            Expr::SExt(a, _) => {
                let narrow = value & mask(self.width(a));
                let back = to_signed(narrow, self.width(a)) as u128 & mask(width);
                (back == value).then_some((a, narrow))
            }
            _ => None,
        }
    }

    /// What an expression is when so many times it, without what does not fit, is `product`: where its range is so
    /// small that no two of its values have one product.
    fn pinned_factor(&self, id: ExprId, times: u128, product: u128) -> Option<(ExprId, u128)> {
        let width = self.width(id);
        if width > MAX_WIDTH {
            return None;
        }
        let (mut times, mut product) = (to_signed(times, width), to_signed(product, width));
        if times < 0 {
            (times, product) = (-times, -product);
        }
        if times == 0 {
            return None;
        }
        let (low, high) = self.range(id, DEEPEST);
        let turn = 1i128 << width;
        if (high - low).checked_mul(times)? >= turn {
            return None;
        }
        // Of the numbers that are `product` but for what does not fit, one at most is among the multiples.
        let (low, high) = (low * times, high * times);
        let candidate = low + (product - low).rem_euclid(turn);
        let fits = candidate <= high && candidate % times == 0;
        fits.then(|| (id, (candidate / times) as u128 & mask(width)))
    }

    /// The least and the greatest value that an expression can have as a signed number, or less and more than that.
    /// For widths of up to [`MAX_WIDTH`] bits.
    fn range(&self, id: ExprId, depth: u32) -> (i128, i128) {
        let width = self.width(id);
        let all = (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1);
        let Some(depth) = depth.checked_sub(1) else { return all };
        let found = match self.get(id) {
            Expr::Const { value, .. } => {
                let value = to_signed(value, width);
                (value, value)
            }
            Expr::ZExt(a, _) => (0, mask(self.width(a)) as i128),
            Expr::SExt(a, _) => self.range(a, depth),
            Expr::Bin(BinOp::Add, a, b) => {
                let (a, b) = (self.range(a, depth), self.range(b, depth));
                (a.0 + b.0, a.1 + b.1)
            }
            Expr::Bin(BinOp::Mul, a, b) => {
                let (a, b) = (self.range(a, depth), self.range(b, depth));
                let ends = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
                let low = ends.iter().min().copied().unwrap_or(all.0);
                (low, ends.iter().max().copied().unwrap_or(all.1))
            }
            _ => all,
        };
        // A sum or product that does not fit may be anything.
        if found.0 < all.0 || found.1 > all.1 { all } else { found }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BinOp, ExprId, ExprPool, Scratch, mask};
    use crate::ids::VarId;

    fn var(pool: &mut ExprPool, width: u32) -> ExprId {
        pool.var(VarId(0), width)
    }

    /// The element of a matrix with rows of 100 numbers of 8 bytes, as compilers compute its address.
    fn element(pool: &mut ExprPool, row: ExprId, column: u128) -> ExprId {
        let hundred = pool.constant(32, 100);
        let first = pool.bin(BinOp::Mul, row, hundred);
        let wide = pool.sext(first, 64);
        let column = pool.constant(64, column);
        let index = pool.bin(BinOp::Add, wide, column);
        let eight = pool.constant(64, 8);
        let offset = pool.bin(BinOp::Mul, index, eight);
        let base = pool.constant(64, 0x7f00_0000_0000);
        pool.bin(BinOp::Add, base, offset)
    }

    #[test]
    fn addresses_in_one_row_say_one_thing() {
        let mut pool = ExprPool::default();
        let row = var(&mut pool, 32);
        let said: Vec<ExprId> = (0..3)
            .map(|column| {
                let address = element(&mut pool, row, column);
                pool.pinned(address, 0x7f00_0000_0000 + 8 * (700 + column))
            })
            .collect();
        assert_eq!(said[0], said[1]);
        assert_eq!(said[0], said[2]);
        // Four rows have this product on 32 bits, so that it stays.
        let (hundred, product) = (pool.constant(32, 100), pool.constant(32, 700));
        let first = pool.bin(BinOp::Mul, row, hundred);
        assert_eq!(said[0], pool.eq(first, product));
    }

    /// Compares a pinned condition with the plain one for all values of a variable of 8 bits.
    fn same(pool: &mut ExprPool, expr: ExprId, value: u128) -> bool {
        let width = pool.width(expr);
        let constant = pool.constant(width, value & mask(width));
        let (plain, pinned) = (pool.eq(expr, constant), pool.pinned(expr, value));
        let (plain, pinned) = (pool.compile(plain), pool.compile(pinned));
        let mut scratch = Scratch::default();
        (0..256).all(|x| {
            let value_of = |_: usize| Some(x);
            let plain = plain.evaluate(pool, &mut scratch, &value_of);
            plain == pinned.evaluate(pool, &mut scratch, &value_of)
        })
    }

    #[test]
    fn a_pinned_condition_holds_for_the_same_values() {
        for width in [8, 10, 16] {
            for times in [1u128, 2, 3, 8, 0xfd, 100] {
                let mut pool = ExprPool::default();
                let byte = var(&mut pool, 8);
                for signed in [false, true] {
                    let wide = if signed { pool.sext(byte, width) } else { pool.zext(byte, width) };
                    let factor = pool.constant(width, times & mask(width));
                    let (one, shift) = (pool.constant(width, 1), pool.constant(width, 3));
                    let more = pool.bin(BinOp::Add, wide, one);
                    let product = pool.bin(BinOp::Mul, more, factor);
                    let shifted = pool.bin(BinOp::Shl, more, shift);
                    let less = pool.bin(BinOp::Sub, factor, product);
                    let not = pool.not(less);
                    for value in (0..300).step_by(3) {
                        assert!(
                            same(&mut pool, product, value),
                            "{width} {times} {signed} {value}"
                        );
                        assert!(same(&mut pool, shifted, value), "{width} {signed} {value}");
                        assert!(same(&mut pool, not, value), "{width} {times} {signed} {value}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_stays_as_it_is() {
        let mut pool = ExprPool::default();
        let byte = var(&mut pool, 8);
        let wide = pool.zext(byte, 64);
        assert_eq!(pool.pinned_operand(wide, 256), None);
        let three = pool.constant(64, 3);
        let thrice = pool.bin(BinOp::Mul, wide, three);
        assert_eq!(pool.pinned_operand(thrice, 4), None);
    }
}
