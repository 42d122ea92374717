//! Traces of a few hundred events, from programs that really ran: a failing schedule exists, it is
//! found, and a machine that knows nothing of the encoders can run it.

#[path = "support/interpreter.rs"]
mod interpreter;
#[path = "support/random.rs"]
mod random;
#[path = "support/run.rs"]
mod run;

use interpreter::Machine;
use solver::{Goal, Limits, Outcome, Session, Z3Session};
use std::collections::BTreeMap;

#[test]
fn failing_schedules_of_larger_traces_are_found_and_real() {
    for seed in 0..4 {
        let shape =
            run::Shape { threads: 6, accesses: 12, cells: 4, locked: 35, branches: 40, reading: 0 };
        let text = run::generate(&shape, seed);
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
