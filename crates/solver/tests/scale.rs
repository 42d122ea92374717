//! Traces of a few hundred events.

#[path = "support/random.rs"]
mod random;
#[path = "support/run.rs"]
mod run;

use solver::{Goal, Limits, Outcome, Session, Z3Session};
use std::time::Instant;

#[test]
fn a_trace_of_hundreds_of_events_is_solved() {
    for seed in 0..4 {
    let shape = run::Shape { threads: 6, accesses: 40, cells: 4, locked: 35, branches: 40 };
    let parsed = encoders::dsl::parse(&run::generate(&shape, seed)).expect("well formed");
    let start = Instant::now();
    let system = encoders::encode(&parsed.trace).expect("encodable");
    println!("encode {:?} {:?} events {}", start.elapsed(), system.size(&parsed.trace), parsed.trace.events.len());
    let start = Instant::now();
    let text = solver::dump_smtlib(&parsed.trace, &system, Goal::Fail).expect("ok");
    println!("print {:?} {}", start.elapsed(), text.len());
    std::fs::write(format!("/tmp/enc_{seed}.smt2"), &text).unwrap();
    let start = Instant::now();
    let mut session =
        Z3Session::new(&parsed.trace, &system, Limits{time: Some(std::time::Duration::from_secs(60)), memory_mb: None}).expect("expressible");
    let outcome = session.check(Goal::Fail, &[]).expect("an answer");
    println!("solve {:?} sat={} {:?}", start.elapsed(), matches!(outcome, Outcome::Sat(_)), matches!(outcome, Outcome::Unknown(_)));
    let start = Instant::now();
    let outcome = session.check(Goal::Fail, &[]).expect("an answer");
    println!("again {:?} sat={}", start.elapsed(), matches!(outcome, Outcome::Sat(_)));
    }
}
