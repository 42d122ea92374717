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
    let mut session = OrderingSession::new(&trace, &system, limits).ending_at(Some(started));
    let answer = session.check(Goal::Fail, &[]).expect("an answer");
    assert_eq!(answer, Outcome::Unknown(UnknownReason::TimeOut));
}
