//! Numbers read from texts that other threads write: `strtol` and its kin. What comes out follows from the bytes, so that another
//! text gives another number. Only decimal numbers of some digits are computed; of others the result is
//! what the log says, and not known where the text may be another ([`crate::derived`]).

use crate::engine::Engine;
use crate::memory::{Bytes, MemoryByte, compose};
use crate::sizes::WORD_SIZE;
use crate::thread::ExternalCall;
use crate::value::{self, Scalar, Value};
use model::{BinOp, CmpOp, ExprPool};

/// Texts of more bytes are not looked at: so many digits fit into 64 bits.
const MOST: usize = 18;
/// How wide what is computed is.
const WIDTH: u32 = 64;

/// Does a function read a number from a text? Says so where the next two arguments are where the text goes on, and the base.
fn has_end(name: &str) -> Option<bool> {
    match name.strip_prefix("__isoc23_").unwrap_or(name) {
        "strtol" | "strtoll" | "strtoul" | "strtoull" | "strtoimax" | "strtoumax"
        | "__strtol_internal" | "__strtoul_internal" => Some(true),
        "atoi" | "atol" | "atoll" => Some(false),
        _ => None,
    }
}

/// A number, and how many bytes of the text it took.
struct Parsed {
    number: Scalar,
    taken: Scalar,
}

impl<'r> Engine<'r> {
    /// The result of a call that reads a number from a text which other threads may change; `None` where it is no such call,
    /// or the text is none of those that are computed. To be called when all that the call wrote is known.
    pub fn numeral(&mut self, t: usize, call: &ExternalCall<'r>, logged: &Value) -> Option<Value> {
        let has_end = has_end(call.name)?;
        let result = logged.scalar()?;
        let recorded = result.as_const()?;
        let number = |i: usize| call.arguments.get(i)?.scalar()?.as_const();
        if has_end && number(2) != Some(10) {
            return None;
        }
        let text = call.text_read.as_ref()?;
        let ended = text.iter().position(|byte| *byte == MemoryByte::Const(0));
        let digits: Vec<(MemoryByte, u8)> = match (digits(recorded, result.width), ended) {
            (digits, Some(length)) if digits.len() == length => {
                text.iter().copied().zip(digits.into_bytes()).collect()
            }
            _ => Vec::new(),
        };
        let Parsed { number, taken } = parse(&mut self.pool, text)?;
        let computed = value::resize(&mut self.pool, number, result.width, true);
        if let Some(id) = computed.as_expr() {
            self.learn(id, recorded);
        }
        // A text as long as its number has that number's digits.
        for (byte, digit) in digits {
            let byte = compose(&mut self.pool, &[byte]).as_expr();
            if let Some(byte) = byte.filter(|byte| self.recorded_value(*byte).is_none()) {
                self.learn(byte, digit.into());
            }
        }
        if has_end
            && let (Some(text), Some(end)) =
                (call.arguments.first().and_then(Value::scalar), self.number_in(call, 1))
            && end != 0
            && let Some(place) = self.resolve(t, end)
        {
            let end = value::bin(&mut self.pool, BinOp::Add, text, taken);
            let logged = self.memory.read(place, WORD_SIZE);
            let logged = compose(&mut self.pool, &logged).as_const();
            if let (Some(id), Some(logged)) = (end.as_expr(), logged) {
                self.learn(id, logged);
                let bytes: Bytes = (0..8).map(|byte| MemoryByte::Part(id, byte)).collect();
                self.memory.write(place, &bytes);
            }
        }
        Some(computed.into())
    }
}

/// The text of a number of so many bits, which is signed as most are.
fn digits(number: u128, bits: u32) -> String {
    let sign = 1_u128.checked_shl(bits.wrapping_sub(1)).unwrap_or(0);
    let negative = number & sign != 0;
    match negative {
        true => format!("-{}", (number ^ sign).abs_diff(sign)),
        false => number.to_string(),
    }
}

/// The decimal number that a text begins with. `None` where the text is too long, has bytes that nobody knows, or ends where its
/// number may go on.
fn parse(pool: &mut ExprPool, text: &[MemoryByte]) -> Option<Parsed> {
    let constant = |value: u128| Scalar::constant(WIDTH, value);
    let no = Scalar::boolean(false);
    let (mut leading, mut signed, mut negative, mut digits) = (Scalar::boolean(true), no, no, no);
    let (mut number, mut taken) = (constant(0), constant(0));
    for (at, &byte) in text.iter().enumerate() {
        if matches!(byte, MemoryByte::Unknown | MemoryByte::Fresh) || at > MOST {
            return None;
        }
        let byte = compose(pool, &[byte]);
        let is = |pool: &mut ExprPool, other: u8| {
            value::cmp(pool, CmpOp::Eq, byte, Scalar::constant(8, u128::from(other)))
        };
        let within = |pool: &mut ExprPool, first: u8, count: u8| {
            let distance =
                value::bin(pool, BinOp::Sub, byte, Scalar::constant(8, u128::from(first)));
            value::cmp(pool, CmpOp::ULt, distance, Scalar::constant(8, u128::from(count)))
        };
        let (space, other) = (is(pool, b' '), within(pool, b'\t', 5));
        let space = value::or(pool, space, other);
        let (minus, plus) = (is(pool, b'-'), is(pool, b'+'));
        let sign = value::or(pool, minus, plus);
        let sign = value::and(pool, leading, sign);
        let goes_on = value::or(pool, signed, digits);
        let goes_on = value::or(pool, leading, goes_on);
        let is_digit = within(pool, b'0', 10);
        let digit = value::and(pool, goes_on, is_digit);

        let value_of = value::bin(pool, BinOp::Sub, byte, Scalar::constant(8, u128::from(b'0')));
        let value_of = value::zext(pool, value_of, WIDTH);
        let tenfold = value::bin(pool, BinOp::Mul, number, constant(10));
        let more = value::bin(pool, BinOp::Add, tenfold, value_of);
        number = value::ite(pool, digit, more, number);
        taken = value::ite(pool, digit, constant(at as u128 + 1), taken);
        let minus = value::and(pool, sign, minus);
        negative = value::or(pool, negative, minus);
        leading = value::and(pool, leading, space);
        (signed, digits) = (sign, digit);
    }
    let open = value::or(pool, leading, signed);
    let open = value::or(pool, open, digits);
    if open.as_const() != Some(0) {
        return None;
    }
    let below = value::bin(pool, BinOp::Sub, constant(0), number);
    let number = value::ite(pool, negative, below, number);
    Some(Parsed { number, taken })
}

#[cfg(test)]
mod tests {
    use super::{digits, parse};
    use crate::memory::MemoryByte;
    use model::{ExprPool, VarId};

    /// The number and how many bytes it took, computed of bytes that are known when all is built.
    fn read(text: &[u8]) -> Option<(u64, u64)> {
        let mut pool = ExprPool::default();
        let mut bytes: Vec<MemoryByte> =
            (0..text.len() as u32).map(|at| MemoryByte::Part(pool.var(VarId(at), 8), 0)).collect();
        bytes.push(MemoryByte::Const(0));
        let parsed = parse(&mut pool, &bytes)?;
        let value_of = |var: VarId| text.get(var.index()).map(|byte| u128::from(*byte));
        let [number, taken] = [parsed.number, parsed.taken].map(|scalar| {
            let id = scalar.to_expr(&mut pool);
            pool.evaluate(id, &value_of).expect("all bytes are known") as u64
        });
        Some((number, taken))
    }

    #[test]
    fn a_number_ends_where_its_digits_do() {
        for (text, number, taken) in [
            ("0", 0_i64, 1_u64),
            ("17", 17, 2),
            (" \t\n\r42 7", 42, 6),
            ("-12x", -12, 3),
            ("+5", 5, 2),
            ("x5", 0, 0),
            ("- 5", 0, 0),
            ("+-5", 0, 0),
            ("5-6", 5, 1),
            ("1\x002", 1, 1),
            ("", 0, 0),
            ("99999999999999999", 99_999_999_999_999_999, 17),
        ] {
            assert_eq!(read(text.as_bytes()), Some((number as u64, taken)), "{text:?}");
        }
    }

    #[test]
    fn a_number_is_written_as_it_was_read() {
        for (number, text) in
            [(0_i64, "0"), (4901, "4901"), (-17, "-17"), (i64::MIN, "-9223372036854775808")]
        {
            assert_eq!(digits(u128::from(number as u64), 64), text);
        }
        assert_eq!(digits(u128::from(-5_i32 as u32), 32), "-5");
    }

    #[test]
    fn what_may_go_on_is_not_computed() {
        let mut pool = ExprPool::default();
        let byte = MemoryByte::Part(pool.var(VarId(0), 8), 0);
        assert!(parse(&mut pool, &[byte]).is_none());
        assert!(parse(&mut pool, &[byte, MemoryByte::Unknown]).is_none());
        assert!(parse(&mut pool, &[byte; 19]).is_none());
    }
}
