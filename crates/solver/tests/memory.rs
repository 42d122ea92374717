//! The linked solver's memory limit, which is one for the whole process.

use solver::{Goal, Limits, Outcome, Session, UnknownReason, Z3Session};
use std::time::Duration;

#[test]
fn a_memory_limit_of_the_linked_solver_is_unknown_and_not_unsatisfiable() {
    let parsed = encoders::dsl::parse(
        "input a 64
        input b 64
        t1: W x 0
        t1: assume a * b == 1000000016000000063
        t1: assume a > 1
        t1: assume b > 1
        t1: assume a < 2000000000
        t1: assume b < 2000000000
        t1: fail",
    )
    .expect("the trace is well formed");
    let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
    let limits = Limits { time: Some(Duration::from_secs(60)), memory_mb: Some(24) };
    let mut session = Z3Session::new(&parsed.trace, &system, limits).expect("expressible");
    let answer = session.check(Goal::Fail, &[]).expect("an answer");
    assert_eq!(answer, Outcome::Unknown(UnknownReason::Memory));
}
