//! Floating point. The expressions are bit patterns; each operation turns its operands into
//! floats of the theory.

use super::expr::{Expressions, constant};
use crate::session::SolverError;
use model::{Expr, ExprId, FloatFormat, FloatOp, FloatPred};

/// The float with these bits.
pub(super) fn of_bits(format: FloatFormat, bits: &str) -> String {
    format!("((_ to_fp {}) {bits})", parameters(format))
}

fn parameters(format: FloatFormat) -> &'static str {
    match format {
        FloatFormat::Single => "8 24",
        FloatFormat::Double => "11 53",
    }
}

/// The float that an expression with a floating-point result stands for.
pub(super) fn value(
    expressions: &Expressions<'_>,
    expr: Expr,
) -> Result<(FloatFormat, String), SolverError> {
    match expr {
        Expr::FloatBin(op, format, a, b) => {
            let a = of_bits(format, &expressions.as_bits(a));
            let b = of_bits(format, &expressions.as_bits(b));
            Ok((format, operation(op, format, &a, &b)))
        }
        Expr::FloatToFloat { of, from, to } => {
            let of = of_bits(from, &expressions.as_bits(of));
            Ok((to, format!("((_ to_fp {}) RNE {of})", parameters(to))))
        }
        Expr::IntToFloat { of, signed, to } => {
            let name = if signed { "to_fp" } else { "to_fp_unsigned" };
            let of = expressions.as_bits(of);
            Ok((to, format!("((_ {name} {}) RNE {of})", parameters(to))))
        }
        other => Err(SolverError::Unsupported(format!("{other:?} as a floating-point value"))),
    }
}

fn operation(op: FloatOp, format: FloatFormat, a: &str, b: &str) -> String {
    match op {
        FloatOp::Add => format!("(fp.add RNE {a} {b})"),
        FloatOp::Sub => format!("(fp.sub RNE {a} {b})"),
        FloatOp::Mul => format!("(fp.mul RNE {a} {b})"),
        FloatOp::Div => format!("(fp.div RNE {a} {b})"),
        FloatOp::Sqrt => format!("(fp.sqrt RNE {a})"),
        FloatOp::Floor => integral("RTN", a),
        FloatOp::Ceil => integral("RTP", a),
        FloatOp::Trunc => integral("RTZ", a),
        FloatOp::Round => integral("RNA", a),
        FloatOp::RoundEven => integral("RNE", a),
        FloatOp::Rem => remainder(format, a, b),
    }
}

fn integral(mode: &str, a: &str) -> String {
    format!("(fp.roundToIntegral {mode} {a})")
}

/// C's `fmod` rounds the quotient to zero and SMT-LIB's remainder to the nearest integer: where
/// the latter went past the dividend, its sign differs and one divisor brings it back. The sum is
/// exact, since its value is that of `fmod`.
fn remainder(format: FloatFormat, a: &str, b: &str) -> String {
    let zero = format!("(_ +zero {})", parameters(format));
    let nearest = format!("(fp.rem {a} {b})");
    format!(
        "(let ((n {nearest})) (let ((past (and (not (fp.isZero n)) (not (fp.isNaN n)) \
         (not (= (fp.lt n {zero}) (fp.lt {a} {zero})))))) \
         (ite past (ite (fp.lt {a} {zero}) (fp.sub RNE n (fp.abs {b})) \
         (fp.add RNE n (fp.abs {b}))) n)))"
    )
}

/// An ordered comparison.
pub(super) fn comparison(
    expressions: &Expressions<'_>,
    pred: FloatPred,
    format: FloatFormat,
    a: ExprId,
    b: ExprId,
) -> String {
    let name = match pred {
        FloatPred::Eq => "fp.eq",
        FloatPred::Lt => "fp.lt",
        FloatPred::Le => "fp.leq",
    };
    let a = of_bits(format, &expressions.as_bits(a));
    let b = of_bits(format, &expressions.as_bits(b));
    format!("({name} {a} {b})")
}

/// To an integer, rounding to zero; out-of-range values, which SMT-LIB leaves open, saturate, and
/// NaN gives 0.
pub(super) fn to_int(
    expressions: &Expressions<'_>,
    of: ExprId,
    from: FloatFormat,
    signed: bool,
    width: u32,
) -> String {
    let value = of_bits(from, &expressions.as_bits(of));
    let zero = constant(width, 0);
    let (bits, largest, smallest) = if signed {
        let largest = model::expr::mask(width) >> 1;
        (width - 1, largest, !largest & model::expr::mask(width))
    } else {
        (width, model::expr::mask(width), 0)
    };
    let above = of_bits(from, &power_of_two(from, bits, false));
    let low = if signed {
        let below = of_bits(from, &power_of_two(from, bits, true));
        format!("(fp.leq {value} {below})")
    } else {
        format!("(fp.leq {value} (_ +zero {}))", parameters(from))
    };
    let name = if signed { "fp.to_sbv" } else { "fp.to_ubv" };
    format!(
        "(ite (fp.isNaN {value}) {zero} (ite (fp.geq {value} {above}) {} (ite {low} {} \
         ((_ {name} {width}) RTZ {value}))))",
        constant(width, largest),
        constant(width, smallest),
    )
}

/// The bits of ±2^exponent, or of infinity where that is not in the format.
fn power_of_two(format: FloatFormat, exponent: u32, negative: bool) -> String {
    let (bias, most, fraction) = match format {
        FloatFormat::Single => (127, 255, 23),
        FloatFormat::Double => (1023, 2047, 52),
    };
    let biased = u128::from((exponent + bias).min(most));
    let sign = u128::from(negative) << (format.width() - 1);
    constant(format.width(), sign | (biased << fraction))
}
