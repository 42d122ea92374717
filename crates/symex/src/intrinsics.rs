//! LLVM intrinsics.

use crate::engine::Engine;
use crate::eval::{self, cast, float::format_of};
use crate::processor;
use crate::report::GapKind;
use crate::thread::{Entry, Stop};
use crate::value::{self, Scalar, Value};
use ir::types::{Call, Instruction};
use model::{BinOp, CmpOp, ExprPool, FloatFormat, FloatOp, FloatPred};
use trace_format::layout::RuntimeEvent;

/// What `va_start` reports: the list, the arguments on the stack, and the saved registers.
const VA_START_WRITES: usize = 3;

impl<'r> Engine<'r> {
    /// A call of the intrinsic `name` (`llvm.` included).
    pub fn intrinsic(
        &mut self,
        t: usize,
        inst: &'r Instruction,
        call: &'r Call,
        name: &'r str,
    ) -> Result<(), Stop> {
        let short = name.strip_prefix("llvm.").unwrap_or(name);
        let arguments = self.arguments(t, &call.args);
        let family = short.split('.').next().unwrap_or(short);
        match family {
            "memcpy" | "memmove" => self.intrinsic_copy(t, call, &arguments),
            "memset" => self.intrinsic_fill(t, call, &arguments),
            "va_start" => self.va_start(t),
            "va_copy" => self.va_copy(t, call, &arguments),
            "lifetime" => {
                self.note_scope(t, short, (call, &arguments));
                let nothing = eval::zero(self.module(t), inst.ty);
                self.finish(t, nothing)
            }
            "trap" | "debugtrap" | "ubsantrap" => self.trap(t),
            _ => {
                let value = self.intrinsic_value(t, inst, short, &arguments);
                self.finish(t, value)
            }
        }
    }

    fn intrinsic_value(
        &mut self,
        t: usize,
        inst: &'r Instruction,
        short: &str,
        arguments: &[Value],
    ) -> Value {
        let family = short.split('.').next().unwrap_or(short);
        let first = || arguments.first().cloned().unwrap_or_default();
        match family {
            "dbg" | "assume" | "donothing" | "sideeffect" | "prefetch" | "pseudoprobe"
            | "va_end" | "stackrestore" | "invariant" | "fake" => {
                // `invariant.start` gives a token that only `invariant.end` takes.
                return eval::zero(self.module(t), inst.ty);
            }
            "x86" if is_pause_or_fence(short) => return Value::Absent,
            "expect" | "launder" | "strip" | "ssa" | "annotation" | "ptr" => return first(),
            "threadlocal" => return first(),
            "stacksave" | "frameaddress" | "returnaddress" | "readcyclecounter" => {
                return self.fresh(t, inst.ty, None);
            }
            // `llvm.eh.typeid.for` numbers types as the unwinder does, which nobody recorded.
            "eh" => return self.fresh(t, inst.ty, None),
            "is" if short.starts_with("is.constant") => return Value::constant(1, 0),
            "load" if short.starts_with("load.relative") => {
                let scalar = |i: usize| arguments.get(i).and_then(Value::scalar);
                if let Some(value) = self.load_relative(t, scalar(0), scalar(1)) {
                    return value.into();
                }
            }
            "objectsize" => return self.object_size(t, inst, arguments),
            "experimental" if short.starts_with("experimental.noalias") => return Value::Absent,
            _ => {}
        }
        let computed = match family {
            "vector" => reduce(&mut self.pool, short, arguments),
            "x86" => processor::compute(&mut self.pool, short, arguments),
            "sadd" | "uadd" | "ssub" | "usub" | "smul" | "umul" => {
                overflow(&mut self.pool, short, arguments)
            }
            _ => {
                let refs: Vec<&Value> = vector_arguments(family, arguments);
                let pool = &mut self.pool;
                let bits = result_bits(short);
                eval::lanes(&refs, &mut |lane| {
                    let value = match family {
                        "scmp" | "ucmp" => three_ways(pool, family, bits, lane),
                        "fptosi" | "fptoui" | "lround" | "llround" | "lrint" | "llrint" => {
                            float_to_int(pool, short, lane)
                        }
                        "is" if short.starts_with("is.fpclass") => is_of_class(pool, lane),
                        _ => scalar_intrinsic(pool, family, lane),
                    };
                    value.ok_or_else(|| GapKind::Intrinsic(family.to_owned()))
                })
                .ok()
            }
        };
        match computed {
            Some(value) => value,
            None => {
                let gap = GapKind::Intrinsic(family.to_owned());
                self.not_computed(t, inst.ty, arguments, gap)
            }
        }
    }

    fn object_size(&mut self, t: usize, inst: &'r Instruction, arguments: &[Value]) -> Value {
        // Unknown: all ones, or zero when the minimum is asked for.
        let minimum = arguments.get(1).and_then(Value::scalar).and_then(Scalar::as_const);
        let bits = self.module(t).scalar_bits(inst.ty).unwrap_or(64);
        Value::constant(bits, if minimum == Some(0) { u128::MAX } else { 0 })
    }

    /// The areas that `va_start` made are reported in the log.
    fn va_start(&mut self, t: usize) -> Result<(), Stop> {
        for _ in 0..VA_START_WRITES {
            if self.threads[t].peek()? != Some(Entry::Runtime(RuntimeEvent::ExternalWrite)) {
                break;
            }
            if let (Some(address), Some(size)) =
                (self.threads[t].peek_word(0), self.threads[t].peek_word(1))
            {
                self.extend_stack(t, address, size);
            }
            self.runtime(t, RuntimeEvent::ExternalWrite)?;
        }
        self.finish(t, Value::Absent)
    }

    fn va_copy(&mut self, t: usize, call: &'r Call, arguments: &[Value]) -> Result<(), Stop> {
        let size = Value::constant(64, 24);
        let both = [
            arguments.first().cloned().unwrap_or_default(),
            arguments.get(1).cloned().unwrap_or_default(),
            size,
        ];
        self.intrinsic_copy(t, call, &both)
    }

    fn intrinsic_copy(
        &mut self,
        t: usize,
        call: &'r Call,
        arguments: &[Value],
    ) -> Result<(), Stop> {
        let scalar = |i: usize| arguments.get(i).and_then(Value::scalar);
        if let Some(length) = self.length(t, scalar(2)) {
            if length > 0 {
                self.check_fault(t, scalar(1), length)?;
                self.check_fault(t, scalar(0), length)?;
            }
            let operands = (call.args.first().copied(), call.args.get(1).copied());
            self.copy(t, scalar(0), scalar(1), length, operands);
        }
        self.finish(t, Value::Absent)
    }

    fn intrinsic_fill(
        &mut self,
        t: usize,
        call: &'r Call,
        arguments: &[Value],
    ) -> Result<(), Stop> {
        let scalar = |i: usize| arguments.get(i).and_then(Value::scalar);
        if let Some(length) = self.length(t, scalar(2)) {
            if length > 0 {
                self.check_fault(t, scalar(0), length)?;
            }
            self.set_bytes(t, scalar(0), scalar(1), length, call.args.first().copied());
        }
        self.finish(t, Value::Absent)
    }
}

/// The arguments that are lanes: flags such as `is_zero_poison` are not.
fn vector_arguments<'v>(family: &str, arguments: &'v [Value]) -> Vec<&'v Value> {
    let count = match family {
        "abs" | "ctlz" | "cttz" => 1,
        _ => arguments.len(),
    };
    arguments.iter().take(count).collect()
}

/// `llvm.*.with.overflow` and the saturating operations.
fn overflow(pool: &mut ExprPool, short: &str, arguments: &[Value]) -> Option<Value> {
    let (a, b) = (arguments.first()?, arguments.get(1)?);
    let family = short.split('.').next()?;
    if short.contains(".with.overflow") {
        if let (Some(x), Some(y)) = (a.scalar(), b.scalar()) {
            let (result, overflowed) = checked(pool, family, x, y)?;
            return Some(Value::aggregate(vec![result.into(), overflowed.into()]));
        }
        return None;
    }
    if !short.contains(".sat") {
        return None;
    }
    eval::lanes(&[a, b], &mut |v| {
        let (result, overflowed) =
            checked(pool, family, v[0], v[1]).ok_or_else(|| GapKind::Intrinsic(short.into()))?;
        let limit = saturation(pool, family, v[0], v[1]);
        Ok(value::ite(pool, overflowed, limit, result))
    })
    .ok()
}

/// What a saturating operation gives when it overflows.
fn saturation(pool: &mut ExprPool, family: &str, a: Scalar, _b: Scalar) -> Scalar {
    let width = a.width;
    match family {
        "uadd" => Scalar::constant(width, u128::MAX),
        "usub" => Scalar::constant(width, 0),
        _ => {
            // Signed overflow goes towards the sign of the first operand.
            let max = Scalar::constant(width, model::expr::mask(width) >> 1);
            let min = value::not(pool, max);
            let negative = value::cmp(pool, CmpOp::SLt, a, Scalar::constant(width, 0));
            value::ite(pool, negative, min, max)
        }
    }
}

/// The wrapped result, and whether it overflowed.
fn checked(pool: &mut ExprPool, family: &str, a: Scalar, b: Scalar) -> Option<(Scalar, Scalar)> {
    let width = a.width;
    let zero = Scalar::constant(width, 0);
    Some(match family {
        "uadd" => {
            let sum = value::bin(pool, BinOp::Add, a, b);
            let over = value::cmp(pool, CmpOp::ULt, sum, a);
            (sum, over)
        }
        "usub" => {
            let difference = value::bin(pool, BinOp::Sub, a, b);
            let over = value::cmp(pool, CmpOp::ULt, a, b);
            (difference, over)
        }
        "sadd" | "ssub" => {
            let op = if family == "sadd" { BinOp::Add } else { BinOp::Sub };
            let result = value::bin(pool, op, a, b);
            let below = value::cmp(pool, CmpOp::SLt, result, a);
            let sign = match family {
                "sadd" => value::cmp(pool, CmpOp::SLt, b, zero),
                _ => value::cmp(pool, CmpOp::SLt, zero, b),
            };
            let over = value::bin(pool, BinOp::Xor, below, sign);
            (result, over)
        }
        "umul" | "smul" if width <= 64 => {
            let signed = family == "smul";
            let wide_a = value::resize(pool, a, 2 * width, signed);
            let wide_b = value::resize(pool, b, 2 * width, signed);
            let product = value::bin(pool, BinOp::Mul, wide_a, wide_b);
            let result = value::extract(pool, product, 0, width);
            let back = value::resize(pool, result, 2 * width, signed);
            let same = value::cmp(pool, CmpOp::Eq, back, product);
            let over = value::not(pool, same);
            (result, over)
        }
        "umul" | "smul" => {
            let (x, y) = (a.as_const()?, b.as_const()?);
            let (result, over) = if family == "umul" {
                let (result, over) = x.overflowing_mul(y);
                (result, over || result > model::expr::mask(width))
            } else {
                let (x, y) = (model::expr::to_signed(x, width), model::expr::to_signed(y, width));
                let (result, over) = x.overflowing_mul(y);
                let fits = model::expr::to_signed(result as u128, width) == result;
                (result as u128, over || !fits)
            };
            (Scalar::constant(width, result), Scalar::boolean(over))
        }
        _ => return None,
    })
}

fn reduce(pool: &mut ExprPool, short: &str, arguments: &[Value]) -> Option<Value> {
    let kind = short.strip_prefix("vector.reduce.")?.split('.').next()?;
    let (start, vector) = match arguments {
        [vector] => (None, vector),
        [start, vector] => (start.scalar(), vector),
        _ => return None,
    };
    let mut lanes = vector.elements()?.iter().map(Value::scalar);
    let mut result = match start {
        Some(start) => start,
        None => lanes.next()??,
    };
    for lane in lanes {
        let lane = lane?;
        result = match kind {
            "add" => value::bin(pool, BinOp::Add, result, lane),
            "mul" => value::bin(pool, BinOp::Mul, result, lane),
            "and" => value::bin(pool, BinOp::And, result, lane),
            "or" => value::bin(pool, BinOp::Or, result, lane),
            "xor" => value::bin(pool, BinOp::Xor, result, lane),
            "fadd" => value::float_bin(pool, FloatOp::Add, format_of(lane.width)?, result, lane),
            "fmul" => value::float_bin(pool, FloatOp::Mul, format_of(lane.width)?, result, lane),
            "smax" | "smin" | "umax" | "umin" | "fmax" | "fmin" => {
                let name = match kind {
                    "fmax" => "maxnum",
                    "fmin" => "minnum",
                    kind => kind,
                };
                scalar_intrinsic(pool, name, &[result, lane])?
            }
            _ => return None,
        };
    }
    Some(result.into())
}

/// The width of an intrinsic's result, or of its lanes, by the first type in its name (`ucmp.i8.i32`).
fn result_bits(short: &str) -> Option<u32> {
    short.split('.').nth(1)?.rsplit('i').next()?.parse().ok()
}

/// -1, 0 or 1: one lane of `scmp` and `ucmp`.
fn three_ways(
    pool: &mut ExprPool,
    family: &str,
    bits: Option<u32>,
    v: &[Scalar],
) -> Option<Scalar> {
    let (a, b, bits) = (*v.first()?, *v.get(1)?, bits?);
    let op = if family == "scmp" { CmpOp::SLt } else { CmpOp::ULt };
    let below = value::cmp(pool, op, a, b);
    let above = value::cmp(pool, op, b, a);
    let less = Scalar::constant(bits, u128::MAX >> (128 - bits.clamp(1, 128)));
    let more = value::ite(pool, above, Scalar::constant(bits, 1), Scalar::constant(bits, 0));
    Some(value::ite(pool, below, less, more))
}

/// One lane of an intrinsic; `None` for one that is not known, or not for these operands.
fn scalar_intrinsic(pool: &mut ExprPool, family: &str, v: &[Scalar]) -> Option<Scalar> {
    let a = *v.first()?;
    let width = a.width;
    let zero = Scalar::constant(width, 0);
    Some(match family {
        "abs" => {
            let negative = value::cmp(pool, CmpOp::SLt, a, zero);
            let negated = value::bin(pool, BinOp::Sub, zero, a);
            value::ite(pool, negative, negated, a)
        }
        "smax" | "smin" | "umax" | "umin" => {
            let b = *v.get(1)?;
            let op = if family.starts_with('s') { CmpOp::SLt } else { CmpOp::ULt };
            let below = value::cmp(pool, op, a, b);
            match family.ends_with("max") {
                true => value::ite(pool, below, b, a),
                false => value::ite(pool, below, a, b),
            }
        }
        "ctpop" => {
            let mut sum = zero;
            for bit in 0..width {
                let one = value::extract(pool, a, bit, 1);
                let one = value::zext(pool, one, width);
                sum = value::bin(pool, BinOp::Add, sum, one);
            }
            sum
        }
        "ctlz" | "cttz" => count_zeros(pool, a, family == "ctlz"),
        "bswap" => {
            let mut result = value::extract(pool, a, 0, 8);
            for byte in 1..width / 8 {
                let next = value::extract(pool, a, 8 * byte, 8);
                result = value::concat(pool, result, next);
            }
            result
        }
        "bitreverse" => {
            let mut result = value::extract(pool, a, 0, 1);
            for bit in 1..width {
                let next = value::extract(pool, a, bit, 1);
                result = value::concat(pool, result, next);
            }
            result
        }
        "fshl" | "fshr" => funnel(pool, family == "fshl", a, *v.get(1)?, *v.get(2)?),
        "ptrmask" => {
            let mask = value::resize(pool, *v.get(1)?, width, false);
            value::bin(pool, BinOp::And, a, mask)
        }
        _ => return float_intrinsic(pool, family, v),
    })
}

/// The number of zeros before the first one, from the top or from the bottom.
fn count_zeros(pool: &mut ExprPool, a: Scalar, leading: bool) -> Scalar {
    let width = a.width;
    let mut result = Scalar::constant(width, u128::from(width));
    for i in 0..width {
        // From the far end, so that the nearest one decides last.
        let bit = if leading { i } else { width - 1 - i };
        let count = if leading { width - 1 - bit } else { bit };
        let set = value::extract(pool, a, bit, 1);
        result = value::ite(pool, set, Scalar::constant(width, u128::from(count)), result);
    }
    result
}

fn funnel(pool: &mut ExprPool, left: bool, a: Scalar, b: Scalar, amount: Scalar) -> Scalar {
    let width = a.width;
    let bits = Scalar::constant(width, u128::from(width));
    let amount = value::bin(pool, BinOp::URem, amount, bits);
    let rest = value::bin(pool, BinOp::Sub, bits, amount);
    // A shift by the whole width gives 0, which is right for an amount of 0.
    let (high, low) = if left { (amount, rest) } else { (rest, amount) };
    let high = value::bin(pool, BinOp::Shl, a, high);
    let low = value::bin(pool, BinOp::LShr, b, low);
    value::bin(pool, BinOp::Or, high, low)
}

fn float_intrinsic(pool: &mut ExprPool, family: &str, v: &[Scalar]) -> Option<Scalar> {
    let a = *v.first()?;
    let width = a.width;
    let sign = Scalar::constant(width, 1u128 << (width - 1));
    match family {
        "fabs" => {
            let rest = value::not(pool, sign);
            return Some(value::bin(pool, BinOp::And, a, rest));
        }
        "copysign" => {
            let rest = value::not(pool, sign);
            let magnitude = value::bin(pool, BinOp::And, a, rest);
            let from = value::bin(pool, BinOp::And, *v.get(1)?, sign);
            return Some(value::bin(pool, BinOp::Or, magnitude, from));
        }
        _ => {}
    }
    let format = format_of(width)?;
    Some(match family {
        "sqrt" => value::float_bin(pool, FloatOp::Sqrt, format, a, a),
        // Without fused multiply-add in the target, which x86-64 does not promise, the two
        // operations are done one after the other.
        "fmuladd" => {
            let product = value::float_bin(pool, FloatOp::Mul, format, a, *v.get(1)?);
            value::float_bin(pool, FloatOp::Add, format, product, *v.get(2)?)
        }
        "minnum" | "maxnum" => {
            let b = *v.get(1)?;
            let (x, y) = if family == "minnum" { (a, b) } else { (b, a) };
            let less = value::float_cmp(pool, FloatPred::Lt, format, x, y);
            let picked = value::ite(pool, less, a, b);
            let b_nan = value::float_is_nan(pool, format, b);
            value::ite(pool, b_nan, a, picked)
        }
        _ if let Some(op) = rounding(family) => value::float_bin(pool, op, format, a, a),
        _ => return concrete_float(family, v),
    })
}

/// How the functions that give an integral value round.
fn rounding(family: &str) -> Option<FloatOp> {
    Some(match family {
        "floor" => FloatOp::Floor,
        "ceil" => FloatOp::Ceil,
        "trunc" => FloatOp::Trunc,
        "round" | "lround" | "llround" => FloatOp::Round,
        "rint" | "nearbyint" | "roundeven" | "lrint" | "llrint" => FloatOp::RoundEven,
        _ => return None,
    })
}

/// A conversion to an integer of so many bits: one that rounds, or one that gives the nearest number that fits.
fn float_to_int(pool: &mut ExprPool, short: &str, v: &[Scalar]) -> Option<Scalar> {
    let a = *v.first()?;
    let format = format_of(a.width)?;
    let family = short.split('.').next()?;
    if matches!(family, "fptosi" | "fptoui") {
        let bits = result_bits(short.strip_prefix(family)?.strip_prefix('.')?)?;
        return Some(cast::saturated(pool, a, format, family == "fptosi", bits));
    }
    let rounded = value::float_bin(pool, rounding(family)?, format, a, a);
    Some(cast::to_int(pool, rounded, format, true, result_bits(short)?))
}

/// `llvm.is.fpclass`: is the float one of the classes that the mask names?
fn is_of_class(pool: &mut ExprPool, v: &[Scalar]) -> Option<Scalar> {
    let a = *v.first()?;
    let fraction = match format_of(a.width)? {
        FloatFormat::Single => 23,
        FloatFormat::Double => 52,
    };
    let exponent = a.width - 1 - fraction;
    let mask = v.get(1)?.as_const()?;
    let negative = value::extract(pool, a, a.width - 1, 1);
    let positive = value::not(pool, negative);
    let (low, high) =
        (value::extract(pool, a, 0, fraction), value::extract(pool, a, fraction, exponent));
    let mut is = |part: Scalar, number: u128| {
        value::cmp(pool, CmpOp::Eq, part, Scalar::constant(part.width, number))
    };
    let (no_fraction, least, most) = (is(low, 0), is(high, 0), is(high, u128::MAX));
    let quiet = value::extract(pool, a, fraction - 1, 1);
    let (some_fraction, signalling) = (value::not(pool, no_fraction), value::not(pool, quiet));
    let edge = value::or(pool, least, most);
    let normal = value::not(pool, edge);
    let signalling = value::and(pool, some_fraction, signalling);
    let classes = [
        [most, signalling, signalling],
        [most, some_fraction, quiet],
        [most, no_fraction, negative],
        [normal, normal, negative],
        [least, some_fraction, negative],
        [least, no_fraction, negative],
        [least, no_fraction, positive],
        [least, some_fraction, positive],
        [normal, normal, positive],
        [most, no_fraction, positive],
    ];
    let asked = classes.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
    Some(asked.fold(Scalar::boolean(false), |any, (_, parts)| {
        let all =
            parts.iter().fold(Scalar::boolean(true), |all, &part| value::and(pool, all, part));
        value::or(pool, any, all)
    }))
}

/// Functions that are only computed over known values.
fn concrete_float(family: &str, v: &[Scalar]) -> Option<Scalar> {
    let bits: Option<Vec<u128>> = v.iter().map(|scalar| scalar.as_const()).collect();
    let (bits, width) = (bits?, v.first()?.width);
    if family != "fma" {
        return None;
    }
    let fused = match width {
        32 => {
            let x: Vec<f32> = bits.iter().map(|&b| f32::from_bits(b as u32)).collect();
            u128::from(x.first()?.mul_add(*x.get(1)?, *x.get(2)?).to_bits())
        }
        _ => {
            let x: Vec<f64> = bits.iter().map(|&b| f64::from_bits(b as u64)).collect();
            u128::from(x.first()?.mul_add(*x.get(1)?, *x.get(2)?).to_bits())
        }
    };
    Some(Scalar::constant(width, fused))
}

/// Instructions that only say how to wait, or order accesses, which all are in order anyway.
fn is_pause_or_fence(short: &str) -> bool {
    matches!(short, "x86.sse2.pause" | "x86.sse2.mfence" | "x86.sse2.lfence" | "x86.sse.sfence")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(family: &str, width: u32, values: &[u128]) -> u128 {
        let scalars: Vec<Scalar> = values.iter().map(|&v| Scalar::constant(width, v)).collect();
        let mut pool = ExprPool::default();
        scalar_intrinsic(&mut pool, family, &scalars).unwrap().as_const().unwrap()
    }

    #[test]
    fn bit_counting_and_reversal() {
        assert_eq!(one("ctpop", 32, &[0xf0f1]), 9);
        assert_eq!(one("ctlz", 32, &[1]), 31);
        assert_eq!(one("cttz", 32, &[8]), 3);
        assert_eq!(one("cttz", 16, &[0]), 16);
        assert_eq!(one("bswap", 32, &[0x1122_3344]), 0x4433_2211);
        assert_eq!(one("bitreverse", 8, &[0b0000_0110]), 0b0110_0000);
        assert_eq!(one("fshl", 8, &[0x81, 0x81, 1]), 0x03);
        assert_eq!(one("fshr", 8, &[0x81, 0x81, 0]), 0x81);
    }

    #[test]
    fn overflow_of_every_kind() {
        let mut pool = ExprPool::default();
        let mut check = |family, a, b| {
            let (a, b) = (Scalar::constant(8, a), Scalar::constant(8, b));
            let (result, over) = checked(&mut pool, family, a, b).unwrap();
            (result.as_const().unwrap(), over.as_const() == Some(1))
        };
        assert_eq!(check("uadd", 200, 100), (44, true));
        assert_eq!(check("sadd", 100, 100), (200, true));
        assert_eq!(check("sadd", 0xff, 1), (0, false));
        assert_eq!(check("usub", 1, 2), (255, true));
        assert_eq!(check("ssub", 0x80, 1), (0x7f, true));
        assert_eq!(check("ssub", 3, 0xff), (4, false));
        assert_eq!(check("umul", 16, 16), (0, true));
        assert_eq!(check("smul", 0xff, 0x7f), (0x81, false));
    }

    #[test]
    fn rounding_to_integral_values() {
        assert_eq!(
            one("floor", 64, &[u128::from((-1.5f64).to_bits())]) as u64,
            (-2.0f64).to_bits()
        );
        assert_eq!(one("rint", 64, &[u128::from(2.5f64.to_bits())]) as u64, 2.0f64.to_bits());
        assert_eq!(one("ceil", 32, &[u128::from(1.25f32.to_bits())]) as u32, 2.0f32.to_bits());
        // Of what another thread may change, too.
        let mut pool = ExprPool::default();
        let unknown = pool.var(model::VarId(0), 64);
        let unknown = Scalar::expr(&pool, unknown);
        assert!(scalar_intrinsic(&mut pool, "floor", &[unknown]).is_some());
    }

    #[test]
    fn conversions_that_round_or_saturate() {
        let mut pool = ExprPool::default();
        let mut convert = |short: &str, value: f64| {
            let value = Scalar::constant(64, u128::from(value.to_bits()));
            float_to_int(&mut pool, short, &[value]).and_then(Scalar::as_const)
        };
        assert_eq!(convert("lround.i64.f64", 2.5), Some(3));
        assert_eq!(convert("lrint.i64.f64", 2.5), Some(2));
        assert_eq!(convert("llround.i64.f64", 1e300), Some(1 << 63));
        assert_eq!(convert("fptosi.sat.i32.f64", 1e300), Some(0x7fff_ffff));
        assert_eq!(convert("fptosi.sat.i32.f64", f64::NAN), Some(0));
        assert_eq!(convert("fptoui.sat.i8.f64", -3.0), Some(0));
    }

    #[test]
    fn classes_of_floats() {
        let is = |mask: u128, value: f64| {
            let value = Scalar::constant(64, u128::from(value.to_bits()));
            let mut pool = ExprPool::default();
            is_of_class(&mut pool, &[value, Scalar::constant(32, mask)]).unwrap().as_const()
        };
        let values = [
            f64::from_bits(0x7ff0_0000_0000_0001),
            f64::NAN,
            f64::NEG_INFINITY,
            -1.5,
            -f64::MIN_POSITIVE / 2.0,
            -0.0,
            0.0,
            f64::MIN_POSITIVE / 2.0,
            1.5,
            f64::INFINITY,
        ];
        for (class, value) in values.into_iter().enumerate() {
            for bit in 0..values.len() {
                assert_eq!(is(1 << bit, value), Some(u128::from(bit == class)), "{bit} {value}");
            }
        }
    }
}
