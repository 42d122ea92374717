//! Traces of a few hundred events, from programs that really ran: a failing schedule exists, it is
//! found, and a machine that knows nothing of the encoders can run it.

use crate::interpreter::Machine;
use solver::{Goal, Limits, OrderingSession, Outcome, Session, UnknownReason, Z3Session};
use std::collections::BTreeMap;

#[test]
fn failing_schedules_of_larger_traces_are_found_and_real() {
    for seed in 0..4 {
        let shape = crate::run::Shape {
            threads: 6,
            accesses: 12,
            cells: 4,
            locked: 35,
            branches: 40,
            reading: 0,
        };
        let text = crate::run::generate(&shape, seed);
        let parsed = encoders::dsl::parse(&text).expect("the trace is well formed");
        let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
        let mut session =
            Z3Session::new(&parsed.trace, &system, Limits::default()).expect("expressible");
        let outcome = session.check(Goal::Fail, &[]).expect("an answer");
        let Outcome::Sat(model) = outcome else { panic!("seed {seed}: {outcome:?}\n{text}") };
        let machine = Machine::new(&parsed.trace);
        let end = machine.run(&BTreeMap::new(), &model.schedule.order);
        let end = end.unwrap_or_else(|| panic!("seed {seed} cannot happen\n{text}"));
        let places: Vec<usize> = (0..parsed.trace.events.len()).collect();
        assert!(machine.on_path(&end) && machine.fails(&end, &places), "seed {seed}\n{text}");
        assert_eq!(end.values, model.values, "seed {seed}\n{text}");
    }
}

/// Each question has a time of its own, but none is worked on behind the end of all.
#[test]
fn a_session_ends_when_it_has_to() {
    let shape = crate::run::Shape {
        threads: 4,
        accesses: 200,
        cells: 8,
        locked: 5,
        branches: 30,
        reading: 0,
    };
    let trace =
        encoders::dsl::parse(&crate::run::generate(&shape, 1)).expect("it is well formed").trace;
    let system = encoders::encode(&trace).expect("the trace can be encoded");
    let limits = Limits { time: Some(std::time::Duration::from_secs(600)), memory_mb: None };
    let started = std::time::Instant::now();
    let mut session = OrderingSession::until(&trace, &system, limits, Some(started));
    let answer = session.check(Goal::Fail, &[]).expect("an answer");
    assert_eq!(answer, Outcome::Unknown(UnknownReason::TimeOut));
    let linked = solver::Z3Session::new(&trace, &system, limits).expect("expressible");
    let answer = linked.ending_at(Some(started)).check(Goal::Fail, &[]).expect("an answer");
    assert_eq!(answer, Outcome::Unknown(UnknownReason::TimeOut));
}

/// Before its first question a session takes the system in, which takes long where there is much of it.
#[test]
fn a_session_that_did_not_take_its_system_in_knows_nothing() {
    let trace = encoders::dsl::parse("t1: [w] W x 1\nt2: [r] R x -> a\nt2: fail a == 2")
        .expect("it is well formed")
        .trace;
    let system = encoders::encode(&trace).expect("the trace can be encoded");
    let session = |ends| OrderingSession::until(&trace, &system, Default::default(), ends);
    let open = session(None).check(Goal::Fail, &[]).expect("an answer");
    assert_eq!(open, Outcome::Unsat(Vec::new()));
    let over = session(Some(std::time::Instant::now()));
    let answer = { over }.check(Goal::Fail, &[]).expect("an answer");
    assert_eq!(answer, Outcome::Unknown(UnknownReason::TimeOut));
}
