//! What is found does what the recorded run did; and where the log tells everything, it is found.

#[path = "support/generate.rs"]
mod generate;
#[path = "support/random.rs"]
mod random;

use model::evaluate::Evaluator;
use model::{EventKind, EventTrace, Schedule, VarId};
use solver::{Goal, Limits, OrderingSession, Outcome, Session, follow};

/// The trace with a schedule, one that fails where it can, as the recorded run, of which every so many reads are not in the log.
fn recorded(mut trace: EventTrace, left_out: usize) -> Option<(EventTrace, Schedule)> {
    let system = encoders::encode(&trace).expect("the trace can be encoded");
    let mut session = OrderingSession::new(&trace, &system, Limits::default());
    let goal = if trace.failure.is_some() { Goal::Fail } else { Goal::Any };
    let Outcome::Sat(found) = session.check(goal, &[]).expect("an answer") else {
        return None;
    };
    let inputs = |var: VarId| Some(found.values.get(&var).copied().unwrap_or(0));
    let values =
        Evaluator::new(&trace).run(&found.schedule.order, &inputs).expect("it can happen").values;
    for (index, (variable, value)) in trace.variables.iter_mut().zip(values).enumerate() {
        let is_read = matches!(variable.origin, model::VariableOrigin::Read { .. });
        let is_left_out = is_read && left_out > 0 && index % left_out == 0;
        variable.recorded = value.filter(|_| !is_left_out);
    }
    Some((trace, found.schedule))
}

/// Which wait a signal ends is left to whoever checks the schedule.
fn waits(trace: &EventTrace) -> bool {
    trace.events.iter().any(|event| matches!(event.kind, EventKind::Wake { .. }))
}

fn values(trace: &EventTrace, schedule: &Schedule) -> Vec<Option<u128>> {
    let inputs = |var: VarId| trace.variables[var.index()].recorded;
    let ran = Evaluator::new(trace).run(&schedule.order, &inputs);
    let evaluation = ran.expect("it can happen");
    assert!(evaluation.follows_paths());
    evaluation.values
}

fn traces() -> impl Iterator<Item = EventTrace> {
    let texts = (0..1_500).map(generate::generate);
    let traces = texts.map(|text| encoders::dsl::parse(&text).expect("it is well formed").trace);
    traces.filter(|trace| !waits(trace))
}

#[test]
fn a_run_whose_log_tells_everything_is_always_followed() {
    let mut found = 0;
    for (trace, run) in traces().filter_map(|trace| recorded(trace, 0)) {
        let system = encoders::encode_recorded_orders(&trace).expect("there are orders");
        let followed = follow(&trace, &system, &[], true, || true);
        let Some(followed) = followed else { panic!("{run:?} is one of {trace:?}") };
        assert_eq!(values(&trace, &followed), values(&trace, &run));
        found += 1;
    }
    assert!(found > 300, "{found}");
}

#[test]
fn reads_that_the_log_does_not_tell_of_follow_the_paths() {
    let (mut found, mut missed) = (0, 0);
    for (trace, _) in traces().filter_map(|trace| recorded(trace, 3)) {
        let system = encoders::encode_recorded_orders(&trace).expect("there are orders");
        match follow(&trace, &system, &[], true, || true) {
            Some(followed) => {
                for (variable, value) in trace.variables.iter().zip(values(&trace, &followed)) {
                    assert!(variable.recorded.is_none() || variable.recorded == value);
                }
                found += 1;
            }
            None => missed += 1,
        }
    }
    assert!(found > 300 && missed == 0, "{found} found, {missed} missed");
}

#[test]
fn one_that_cannot_be_followed_may_read_something_else() {
    // Nobody ever writes the 7 that the log tells of, and nothing depends on it.
    let text = "t0: W x 1\nt0: R x -> a\nt0: W x a + 1\n";
    let mut trace = encoders::dsl::parse(text).expect("it is well formed").trace;
    let read =
        trace.variables.iter_mut().find(|v| matches!(v.origin, model::VariableOrigin::Read { .. }));
    read.expect("there is a read").recorded = Some(7);
    let system = encoders::encode_recorded_orders(&trace).expect("there are orders");
    assert_eq!(follow(&trace, &system, &[], true, || true), None);
    let followed = follow(&trace, &system, &[], false, || true).expect("there is a schedule");
    assert_eq!(followed.order.len(), trace.events.len());
}
