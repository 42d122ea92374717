//! What reads returned in the recorded run becomes path conditions.

use encoders::dsl::parse;
use encoders::{encode_recorded, with_recorded_values};
use model::verify::verify;
use model::{EventKind, VariableOrigin};

#[test]
fn reads_return_what_they_returned() {
    let parsed = parse("t0: [read] R x -> a\nt0: R x -> b\nt0: fail a > b\nt1: W x 1\nt2: W x 2");
    let parsed = parsed.expect("the trace is well formed");
    let mut trace = parsed.trace.clone();
    let read = parsed.event("read");
    let variable = trace.variables.iter_mut().find(
        |variable| matches!(variable.origin, VariableOrigin::Read { event, .. } if event == read),
    );
    let variable = variable.expect("a read has a variable");
    variable.recorded = Some(2);
    let var = variable.id;

    let recorded = with_recorded_values(&trace);
    verify(&recorded).expect("a trace like any other");
    let [condition] = &recorded.conditions[..] else { panic!("{:?}", recorded.conditions) };
    let event = trace.event(read);
    assert!(matches!(event.kind, EventKind::Read { .. }));
    assert_eq!((condition.thread, condition.position), (event.thread, event.index + 1));
    let holds = |value: u128| {
        recorded.exprs.evaluate(condition.expr, &|other| (other == var).then_some(value))
    };
    assert_eq!((holds(2), holds(1)), (Some(1), Some(0)));
    encode_recorded(&recorded).expect("it can be encoded");
    // What is a condition already is not added once more.
    assert_eq!(with_recorded_values(&recorded).conditions.len(), 1);
}
