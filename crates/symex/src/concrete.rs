//! Integer operations on concrete values, with the semantics of [`model::BinOp`] and
//! [`model::CmpOp`].

use model::expr::{mask, to_signed};
use model::{BinOp, CmpOp};

/// `a op b` on `width` bits.
#[inline]
pub(crate) fn binary(op: BinOp, width: u32, a: u128, b: u128) -> u128 {
    let signed = |value| to_signed(value, width);
    let shift = u32::try_from(b).ok().filter(|&b| b < width);
    let value = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => shift.map_or(0, |s| a << s),
        BinOp::LShr => shift.map_or(0, |s| a >> s),
        BinOp::AShr => (signed(a) >> shift.unwrap_or(127)) as u128,
        BinOp::UDiv => a.checked_div(b).unwrap_or(u128::MAX),
        BinOp::URem => a.checked_rem(b).unwrap_or(a),
        BinOp::SDiv if b == 0 => {
            if signed(a) < 0 {
                1
            } else {
                u128::MAX
            }
        }
        BinOp::SDiv => signed(a).wrapping_div(signed(b)) as u128,
        BinOp::SRem if b == 0 => a,
        BinOp::SRem => signed(a).wrapping_rem(signed(b)) as u128,
    };
    value & mask(width)
}

/// `a op b` on `width` bits.
pub(crate) fn compare(op: CmpOp, width: u32, a: u128, b: u128) -> bool {
    match op {
        CmpOp::Eq => a == b,
        CmpOp::ULt => a < b,
        CmpOp::ULe => a <= b,
        CmpOp::SLt => to_signed(a, width) < to_signed(b, width),
        CmpOp::SLe => to_signed(a, width) <= to_signed(b, width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ExprPool;

    #[test]
    fn agrees_with_the_expression_pool() {
        let ops = [
            BinOp::Add,
            BinOp::Sub,
            BinOp::Mul,
            BinOp::UDiv,
            BinOp::SDiv,
            BinOp::URem,
            BinOp::SRem,
            BinOp::And,
            BinOp::Or,
            BinOp::Xor,
            BinOp::Shl,
            BinOp::LShr,
            BinOp::AShr,
        ];
        for width in [1, 8, 33, 64, 128] {
            let values = [0, 1, 2, 7, mask(width), mask(width) >> 1, (mask(width) >> 1) + 1];
            for op in ops {
                for a in values.map(|v| v & mask(width)) {
                    for b in values.map(|v| v & mask(width)) {
                        let mut pool = ExprPool::default();
                        let (x, y) = (pool.constant(width, a), pool.constant(width, b));
                        let id = pool.bin(op, x, y);
                        let got = binary(op, width, a, b);
                        assert_eq!(pool.as_const(id), Some(got), "{op:?} {width} {a:x} {b:x}");
                    }
                }
            }
        }
    }
}
