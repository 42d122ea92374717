//! One expectation per kind of constraint. Events get their identifiers thread by thread, the
//! start event first.

use encoders::dsl::parse;
use encoders::{ConstraintKind, encode};
use expect_test::{Expect, expect};

/// The constraints of one kind, in the readable form.
fn check(text: &str, kind: fn(ConstraintKind) -> bool, expected: Expect) {
    let parsed = parse(text).expect("the trace is well formed");
    let mut system = encode(&parsed.trace).expect("the trace can be encoded");
    system.constraints.retain(|constraint| kind(constraint.kind));
    expected.assert_eq(&system.to_text(&parsed.trace));
}

#[test]
fn program_order_is_a_chain() {
    check(
        "t0: W x 1\nt0: fork t1\nt1: W x 2",
        |kind| kind == ConstraintKind::ProgramOrder,
        expect![[]],
    );
}
#[test]
fn dump() {
    let t = "t0: fork t1\nt0: R x -> a\nt0: W x a + 1\nt1: R x -> b\nt1: W x b + 1\nt0: join t1\nt0: R x -> c\nt0: fail c != 2";
    let parsed = parse(t).unwrap();
    let s = encode(&parsed.trace).unwrap();
    println!(
        "{}{}{:?}",
        encoders::events_text(&parsed.trace),
        s.to_text(&parsed.trace),
        s.size(&parsed.trace)
    );
}
