//! Tests of the side-effect-free instructions.

use super::*;
use ir::types::{BinaryOp, CastOp, FloatKind, FloatPredicate, GepTerm, IntPredicate};
use model::FloatFormat;
use model::expr::mask;

const I8: TypeId = TypeId(0);
const I32: TypeId = TypeId(1);
const F64: TypeId = TypeId(2);
const V4: TypeId = TypeId(3);
const I64: TypeId = TypeId(4);
const I128: TypeId = TypeId(5);
const X87: TypeId = TypeId(6);

fn module() -> Module {
    let types = vec![
        Type::Int(8),
        Type::Int(32),
        Type::Float(FloatKind::Double),
        Type::Vector { element: I8, length: 4 },
        Type::Int(64),
        Type::Int(128),
        Type::Float(FloatKind::X87),
    ];
    Module { types, ..Module::default() }
}

/// Evaluates with parameters as operands.
fn compute(kind: &InstKind, ty: TypeId, values: &[Value]) -> Result<Value, GapKind> {
    let mut get = |operand| match operand {
        Operand::Param(index) => values.get(index as usize).cloned().unwrap_or_default(),
        _ => Value::Absent,
    };
    evaluate(&mut ExprPool::default(), &module(), kind, ty, &mut get)
}

const A: Operand = Operand::Param(0);
const B: Operand = Operand::Param(1);

fn bytes(values: [u8; 4]) -> Value {
    Value::aggregate(values.map(|v| Value::constant(8, v.into())).to_vec())
}

fn double(value: f64) -> Value {
    Value::constant(64, value.to_bits().into())
}

#[test]
fn integers_wrap_at_their_width() {
    let add = InstKind::Binary(BinaryOp::Add, A, B);
    let got = compute(&add, I8, &[Value::constant(8, 250), Value::constant(8, 10)]);
    assert_eq!(got, Ok(Value::constant(8, 4)));
    let got = compute(&add, I128, &[Value::constant(128, u128::MAX), Value::constant(128, 2)]);
    assert_eq!(got, Ok(Value::constant(128, 1)));
}

#[test]
fn vectors_are_computed_lane_by_lane() {
    let add = InstKind::Binary(BinaryOp::Add, A, B);
    let got = compute(&add, V4, &[bytes([1, 2, 3, 255]), bytes([1, 1, 1, 1])]);
    assert_eq!(got, Ok(bytes([2, 3, 4, 0])));
    let shuffle = InstKind::ShuffleVector(A, B, vec![Some(3), Some(4), Some(0), Some(7)]);
    let got = compute(&shuffle, V4, &[bytes([1, 2, 3, 4]), bytes([5, 6, 7, 8])]);
    assert_eq!(got, Ok(bytes([4, 5, 1, 8])));
}

#[test]
fn bit_casts_keep_the_bytes() {
    let cast = InstKind::Cast(CastOp::BitCast, A);
    let word = Value::constant(32, 0x0403_0201);
    assert_eq!(compute(&cast, V4, std::slice::from_ref(&word)), Ok(bytes([1, 2, 3, 4])));
    assert_eq!(compute(&cast, I32, &[bytes([1, 2, 3, 4])]), Ok(word));
}

#[test]
fn bit_casts_keep_what_is_defined() {
    let cast = InstKind::Cast(CastOp::BitCast, A);
    let lanes = vec![Value::Absent, Value::constant(8, 2), Value::constant(8, 3), Value::Absent];
    let some = Value::aggregate(lanes);
    assert_eq!(compute(&cast, I32, &[some]), Ok(Value::constant(32, 0x0003_0200)));
    let none = Value::aggregate(vec![Value::Absent; 4]);
    assert_eq!(compute(&cast, I32, &[none]), Ok(Value::Absent));
    assert_eq!(compute(&cast, I32, &[Value::Absent]), Ok(Value::Absent));
}

#[test]
fn floats_compare_with_not_a_number_as_ieee_says() {
    let nan = double(f64::NAN);
    let compare = |predicate, a: &Value, b: &Value| {
        let kind = InstKind::FCmp(predicate, A, B);
        let value = compute(&kind, I8, &[a.clone(), b.clone()]).unwrap();
        value.scalar().unwrap().as_const() == Some(1)
    };
    let one = double(1.0);
    for predicate in [
        FloatPredicate::Oeq,
        FloatPredicate::Olt,
        FloatPredicate::Oge,
        FloatPredicate::One,
        FloatPredicate::Ord,
    ] {
        assert!(!compare(predicate, &one, &nan), "{predicate:?}");
    }
    for predicate in [
        FloatPredicate::Ueq,
        FloatPredicate::Ult,
        FloatPredicate::Uge,
        FloatPredicate::Une,
        FloatPredicate::Uno,
    ] {
        assert!(compare(predicate, &one, &nan), "{predicate:?}");
    }
    assert!(compare(FloatPredicate::Ogt, &double(2.0), &one));
}

#[test]
fn conversions_between_integers_and_floats() {
    let to_int = InstKind::Cast(CastOp::FpToSi, A);
    assert_eq!(
        compute(&to_int, I32, &[double(-3.9)]),
        Ok(Value::constant(32, (-3i32) as u32 as u128))
    );
    let to_float = InstKind::Cast(CastOp::UiToFp, A);
    assert_eq!(compute(&to_float, F64, &[Value::constant(8, 255)]), Ok(double(255.0)));
    let negate = InstKind::FNeg(A);
    assert_eq!(compute(&negate, F64, &[double(0.5)]), Ok(double(-0.5)));
}

#[test]
fn undefined_values_stay_undefined_and_do_not_hide_defined_ones() {
    let (condition, seven) = (Value::Absent, Value::constant(8, 7));
    let add = InstKind::Binary(BinaryOp::Add, A, B);
    assert_eq!(compute(&add, I8, &[seven.clone(), Value::Absent]), Ok(Value::Absent));
    let truncate = InstKind::Cast(CastOp::Trunc, A);
    assert_eq!(compute(&truncate, I8, &[Value::Absent]), Ok(Value::Absent));
    let terms = vec![GepTerm { index: B, scale: 8 }];
    let address = InstKind::Gep { base: A, source: I64, offset: 4, terms };
    let values = [Value::constant(64, 0x1000), Value::Absent];
    assert_eq!(compute(&address, I64, &values), Ok(Value::Absent));
    assert_eq!(
        select(&mut ExprPool::default(), &condition, &seven, &seven),
        Err(GapKind::Width),
        "what decides is not known"
    );
    let mut pool = ExprPool::default();
    let input = pool.var(model::VarId(0), 1);
    let condition = Value::Scalar(Scalar::expr(&pool, input));
    for (a, b) in [(&seven, &Value::Absent), (&Value::Absent, &seven)] {
        assert_eq!(select(&mut pool, &condition, a, b), Ok(seven.clone()));
    }
    let [mixed, other] = [0, 1].map(|defined| {
        let lane = |i| if i == defined { seven.clone() } else { Value::Absent };
        Value::aggregate(vec![lane(0), lane(1)])
    });
    let both = Value::aggregate(vec![seven.clone(), seven.clone()]);
    assert_eq!(select(&mut pool, &condition, &mixed, &other), Ok(both));
}

#[test]
fn addresses_sign_extend_their_indices() {
    let terms = vec![GepTerm { index: B, scale: 8 }];
    let kind = InstKind::Gep { base: A, source: I64, offset: 4, terms };
    let got = compute(&kind, I64, &[Value::constant(64, 0x1000), Value::constant(32, mask(32))]);
    assert_eq!(got, Ok(Value::constant(64, 0x1000 + 4 - 8)));
}

#[test]
fn extended_precision_is_a_gap() {
    let add = InstKind::Binary(BinaryOp::FAdd, A, B);
    let one = Value::constant(80, 1);
    assert_eq!(compute(&add, X87, &[one.clone(), one]), Err(GapKind::FloatFormat));
}

#[test]
fn what_is_usual_is_what_the_instruction_gives() {
    use BinaryOp as B2;
    use IntPredicate as P;
    let binary = [B2::Add, B2::Sub, B2::Mul, B2::Shl, B2::LShr, B2::AShr, B2::And, B2::Or, B2::Xor];
    let predicates = [P::Eq, P::Ne, P::Ult, P::Ule, P::Ugt, P::Uge, P::Slt, P::Sle, P::Sgt, P::Sge];
    let casts = [CastOp::Trunc, CastOp::ZExt, CastOp::SExt, CastOp::PtrToInt, CastOp::IntToPtr];
    let mut kinds: Vec<(InstKind, TypeId, u32)> = Vec::new();
    kinds.extend(binary.map(|op| (InstKind::Binary(op, A, B), I32, 32)));
    kinds.extend(predicates.map(|p| (InstKind::ICmp(p, A, B), I8, 1)));
    for (ty, bits) in [(I8, 8), (I32, 32), (I64, 64)] {
        kinds.extend(casts.map(|op| (InstKind::Cast(op, A), ty, bits)));
    }
    kinds.push((InstKind::Select(A, A, B), I32, 32));
    kinds.push((InstKind::Freeze(B), I32, 32));
    let terms = vec![GepTerm { index: B, scale: 12 }];
    kinds.push((InstKind::Gep { base: A, source: I64, offset: -4, terms }, I64, 64));
    let words = [0, 1, 7, 31, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    for (kind, ty, bits) in &kinds {
        for (a, b) in words.iter().flat_map(|a| words.iter().map(move |b| (*a, *b))) {
            let values = [a, b].map(|word| Value::constant(32, word));
            let get = |operand| match operand {
                Operand::Param(index) => values[index as usize].scalar(),
                _ => None,
            };
            let usual = usual(&mut ExprPool::default(), kind, *bits, get);
            let whole = compute(kind, *ty, &values);
            assert_eq!(usual.map(Value::from).ok_or(GapKind::Width), whole, "{kind:?} {a:x} {b:x}");
        }
    }
    // Whether a number is a fraction the width does not tell.
    let get = |_| Some(Scalar::constant(64, 1));
    let unusual = [InstKind::Cast(CastOp::FpToSi, A), InstKind::Cast(CastOp::BitCast, A)];
    for kind in unusual {
        assert_eq!(usual(&mut ExprPool::default(), &kind, 64, get), None, "{kind:?}");
    }
}

#[test]
fn floats_that_do_not_fit_become_the_processors_integers() {
    let to_int = |signed: bool, width: u32, value: f64| {
        let scalar = Scalar::constant(64, u128::from(value.to_bits()));
        let mut pool = ExprPool::default();
        let number = cast::to_int(&mut pool, scalar, FloatFormat::Double, signed, width);
        number.as_const().map(|number| number as u64)
    };
    // As a program built with clang prints them.
    let cases = [
        (f64::NAN, [1 << 63, 1 << 63, 0, 1 << 31, 0, 0]),
        (1e20, [1 << 63, 1 << 63, 0, 1 << 31, 0, 0]),
        (-1e30, [1 << 63, 1 << 63, 0, 1 << 31, 0, 0]),
        (-1.5, [u64::MAX, u64::MAX, 0xffff_ffff, 0xffff_ffff, 0xff, 0xff]),
        (9.3e18, [0x8110_3cb9_fb22_0000, 1 << 63, 0, 1 << 31, 0, 0]),
        (3e10, [0x6_fc23_ac00, 0x6_fc23_ac00, 0xfc23_ac00, 1 << 31, 0, 0]),
        (300.7, [300, 300, 300, 300, 44, 44]),
    ];
    for (value, expected) in cases {
        let kinds = [(false, 64), (true, 64), (false, 32), (true, 32), (false, 8), (true, 8)];
        let got = kinds.map(|(signed, width)| to_int(signed, width, value));
        assert_eq!(got, expected.map(Some), "{value}");
    }
}
