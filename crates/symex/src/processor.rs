//! Intrinsics of one processor that are computed: what programs use for checksums of data that other
//! threads wrote, so that the result has to follow from it.

use crate::eval;
use crate::report::GapKind;
use crate::value::{self, Scalar, Value};
use model::{BinOp, CmpOp, ExprPool};

/// The lanes that a byte shuffle selects from.
const SHUFFLED: usize = 16;

/// The value of an intrinsic, by its name behind `llvm.`; `None` for those that are not computed.
pub(crate) fn compute(pool: &mut ExprPool, short: &str, arguments: &[Value]) -> Option<Value> {
    match short {
        "x86.pclmulqdq" => carryless_product(pool, arguments),
        "x86.ssse3.pshuf.b.128" | "x86.avx2.pshuf.b" => shuffle_bytes(arguments),
        "x86.sse41.pblendvb" | "x86.avx2.pblendvb" => blend_bytes(pool, arguments),
        "x86.sse2.pmovmskb.128"
        | "x86.avx2.pmovmskb"
        | "x86.sse.movmsk.ps"
        | "x86.sse2.movmsk.pd"
        | "x86.avx.movmsk.ps.256"
        | "x86.avx.movmsk.pd.256" => sign_bits(pool, arguments),
        _ if short.starts_with("x86.sse42.crc32.") => add_to_checksum(pool, arguments),
        _ => None,
    }
}

/// `pclmulqdq`: the product of one half of each operand as polynomials over bits. The immediate
/// operand's bits 0 and 4 select the halves.
fn carryless_product(pool: &mut ExprPool, arguments: &[Value]) -> Option<Value> {
    let [a, b, which] = arguments else { return None };
    let which = which.scalar()?.as_const()?;
    let half = |operand: &Value, bit: u32| {
        operand.elements()?.get((which >> bit) as usize & 1)?.scalar().filter(|s| s.width == 64)
    };
    let (mut a, mut b) = (half(a, 0)?, half(b, 4)?);
    // The known one of the two decides which multiples of the other are added.
    if a.as_const().is_none() {
        (a, b) = (b, a);
    }
    let b = value::resize(pool, b, 128, false);
    let mut product = Scalar::constant(128, 0);
    for bit in 0..64u32 {
        let shift = Scalar::constant(128, u128::from(bit));
        let multiple = match a.as_const() {
            Some(a) if a >> bit & 1 == 0 => continue,
            Some(_) => value::bin(pool, BinOp::Shl, b, shift),
            None => {
                let chosen = value::extract(pool, a, bit, 1);
                let chosen = value::cmp(pool, CmpOp::Eq, chosen, Scalar::constant(1, 1));
                let multiple = value::bin(pool, BinOp::Shl, b, shift);
                value::ite(pool, chosen, multiple, Scalar::constant(128, 0))
            }
        };
        product = value::bin(pool, BinOp::Xor, product, multiple);
    }
    let halves = [0, 64].map(|low| value::extract(pool, product, low, 64).into());
    Some(Value::aggregate(halves.to_vec()))
}

/// `pshufb`: each byte of the mask names a byte of its half of the operand, or a zero. Masks that are
/// not constant are not computed.
fn shuffle_bytes(arguments: &[Value]) -> Option<Value> {
    let [bytes, mask] = arguments else { return None };
    let (bytes, mask) = (bytes.elements()?, mask.elements()?);
    let select = |(at, chosen): (usize, &Value)| {
        let chosen = usize::try_from(chosen.scalar()?.as_const()?).ok()?;
        if chosen & 0x80 != 0 {
            return Some(Value::constant(8, 0));
        }
        bytes.get(at / SHUFFLED * SHUFFLED + chosen % SHUFFLED).cloned()
    };
    Some(Value::aggregate(mask.iter().enumerate().map(select).collect::<Option<_>>()?))
}

/// `pblendvb`: each byte is the second operand's where the mask's byte is negative, else the first's.
fn blend_bytes(pool: &mut ExprPool, arguments: &[Value]) -> Option<Value> {
    let lanes: Vec<&Value> = arguments.iter().collect();
    let blended = eval::lanes(&lanes, &mut |lane| match lane {
        &[a, b, mask] => {
            let sign = value::extract(pool, mask, mask.width.saturating_sub(1), 1);
            let negative = value::cmp(pool, CmpOp::Eq, sign, Scalar::constant(1, 1));
            Ok(value::ite(pool, negative, b, a))
        }
        _ => Err(GapKind::Width),
    });
    blended.ok()
}

/// `pmovmskb` and its kin: the lanes' highest bits, the first lane's as the lowest.
fn sign_bits(pool: &mut ExprPool, arguments: &[Value]) -> Option<Value> {
    let [vector] = arguments else { return None };
    let mut mask: Option<Scalar> = None;
    for lane in vector.elements()?.iter() {
        let lane = lane.scalar()?;
        let sign = value::extract(pool, lane, lane.width.checked_sub(1)?, 1);
        mask = Some(match mask {
            None => sign,
            Some(low) => value::concat(pool, sign, low),
        });
    }
    Some(value::zext(pool, mask?, 32).into())
}

/// `crc32`: the Castagnoli polynomial's checksum goes on with 8 to 64 bits, the lowest first.
fn add_to_checksum(pool: &mut ExprPool, arguments: &[Value]) -> Option<Value> {
    const POLYNOMIAL: u128 = 0x82f6_3b78;
    let [checksum, data] = arguments else { return None };
    let (checksum, data) = (checksum.scalar()?, data.scalar()?);
    // 64 bits take two rounds of 32.
    let rounds = data.width.div_ceil(32);
    let bits = data.width / rounds;
    let mut sum = value::resize(pool, checksum, 32, false);
    let (one, zero) = (Scalar::constant(32, 1), Scalar::constant(32, 0));
    let polynomial = Scalar::constant(32, POLYNOMIAL);
    for round in 0..rounds {
        let part = value::extract(pool, data, bits * round, bits);
        let part = value::zext(pool, part, 32);
        sum = value::bin(pool, BinOp::Xor, sum, part);
        for _ in 0..bits {
            let lowest = value::extract(pool, sum, 0, 1);
            let feedback = value::ite(pool, lowest, polynomial, zero);
            let shifted = value::bin(pool, BinOp::LShr, sum, one);
            sum = value::bin(pool, BinOp::Xor, shifted, feedback);
        }
    }
    Some(value::zext(pool, sum, checksum.width).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::VarId;

    #[test]
    fn checksums_go_on_with_each_width() {
        // Of the text "123456789" the checksum is e3069283.
        let mut pool = ExprPool::default();
        let mut add = |width: u32, sum: u128, data: u128, bits: u32| {
            let arguments = [Value::constant(width, sum), Value::constant(bits, data)];
            let sum = add_to_checksum(&mut pool, &arguments).expect("is computed");
            sum.scalar().and_then(Scalar::as_const).expect("a constant")
        };
        let text = u64::from_le_bytes(*b"12345678");
        let wide = add(64, 0xffff_ffff, text.into(), 64);
        let wide = add(32, wide, u128::from(b'9'), 8);
        assert_eq!(wide ^ 0xffff_ffff, 0xe306_9283);
        let narrow = add(32, 0xffff_ffff, u128::from(text as u16), 16);
        let narrow = add(32, narrow, u128::from((text >> 16) as u16), 16);
        let narrow = add(32, narrow, u128::from((text >> 32) as u32), 32);
        assert_eq!(add(32, narrow, u128::from(b'9'), 8), wide);
    }

    #[test]
    fn highest_bits_of_lanes() {
        let vector = Value::aggregate(
            [0x80, 0x7f, 0xff, 0].iter().map(|&byte| Value::constant(8, byte)).collect(),
        );
        let got = sign_bits(&mut ExprPool::default(), &[vector]);
        assert_eq!(got, Some(Value::constant(32, 0b101)));
    }

    fn halves(low: Scalar, high: Scalar) -> Value {
        Value::aggregate(vec![low.into(), high.into()])
    }

    /// The product by the definition, bit by bit.
    fn expected(a: u64, b: u64) -> u128 {
        let bit = |i: u32| if a >> i & 1 == 1 { u128::from(b) << i } else { 0 };
        (0..64).map(bit).fold(0, |sum, term| sum ^ term)
    }

    /// What a value is when its only variable has this value.
    fn number(pool: &ExprPool, value: &Value, variable: u128) -> u128 {
        value.elements().expect("two halves").iter().rev().fold(0, |all, half| {
            let half = half.scalar().expect("a number");
            let half = match half.as_expr() {
                Some(id) => pool.evaluate(id, &|_| Some(variable)).expect("a value"),
                None => half.as_const().expect("a constant"),
            };
            (all << 64) | half
        })
    }

    #[test]
    fn products_without_carry() {
        let zero = Scalar::constant(64, 0);
        for (a, b) in [(0, 7), (3, 3), (u64::MAX, u64::MAX), (0x9a6c_9329_ac4b_c9b5, 1 << 63)] {
            let mut pool = ExprPool::default();
            let variable = pool.var(VarId(0), 64);
            let variable = Scalar::expr(&pool, variable);
            let x = Scalar::constant(64, a.into());
            let y = Scalar::constant(64, b.into());
            for (left, right) in [(x, y), (x, variable), (variable, y)] {
                // The low half of the left operand, the high half of the right one.
                let operands = [halves(left, zero), halves(zero, right), Value::constant(8, 0x10)];
                let got = carryless_product(&mut pool, &operands).expect("is computed");
                let known = if left == variable { a } else { b };
                assert_eq!(number(&pool, &got, known.into()), expected(a, b), "{a:x} {b:x}");
            }
            let operands = [halves(variable, zero), halves(variable, zero), Value::constant(8, 0)];
            let got = carryless_product(&mut pool, &operands).expect("is computed");
            assert_eq!(number(&pool, &got, a.into()), expected(a, a), "{a:x}");
        }
    }

    #[test]
    fn negative_bytes_of_a_mask_choose_the_second_operand() {
        let vector = |bytes: [u128; 2]| {
            Value::aggregate(bytes.iter().map(|&byte| Value::constant(8, byte)).collect())
        };
        let mut pool = ExprPool::default();
        let operands = [vector([1, 2]), vector([3, 4]), vector([0x80, 0x7f])];
        assert_eq!(blend_bytes(&mut pool, &operands), Some(vector([3, 2])));
    }

    #[test]
    fn bytes_are_shuffled_within_halves() {
        let bytes = Value::aggregate((0..32).map(|i| Value::constant(8, 100 + i)).collect());
        let mask = |at: usize| [0x80, 15, 0x13][at % 3];
        let mask = Value::aggregate((0..32).map(|at| Value::constant(8, mask(at))).collect());
        let got = shuffle_bytes(&[bytes, mask]).expect("is computed");
        let got: Vec<u128> = got
            .elements()
            .expect("a vector")
            .iter()
            .map(|byte| byte.scalar().and_then(Scalar::as_const).expect("a constant"))
            .collect();
        assert_eq!(got[..5], [0, 115, 103, 0, 115]);
        assert_eq!(got[16..19], [131, 119, 0]);
    }
}
