//! What reads returned in the recorded run becomes path conditions.

use encoders::dsl::parse;
use encoders::{
    ConstraintKind, ConstraintSystem, Term, encode, encode_recorded, slice, with_recorded_values,
};
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

/// So do the functions of libraries, whose results are inputs.
#[test]
fn what_was_worked_out_is_what_it_was() {
    let text = "input number 32\nt0: R x -> a\nt0: fail number == 5\nt1: W x 1";
    let mut trace = parse(text).expect("the trace is well formed").trace;
    assert!(with_recorded_values(&trace).conditions.is_empty());
    let number = trace.variables.iter_mut().find(|it| it.origin == VariableOrigin::Input);
    let number = number.expect("an input");
    number.recorded = Some(5);
    let var = number.id;
    let recorded = with_recorded_values(&trace);
    verify(&recorded).expect("a trace like any other");
    let [condition] = &recorded.conditions[..] else { panic!("{:?}", recorded.conditions) };
    let holds = |value: u128| {
        recorded.exprs.evaluate(condition.expr, &|other| (other == var).then_some(value))
    };
    assert_eq!((holds(5), holds(6)), (Some(1), Some(0)));
}

/// What a thread did with an object came before another one freed it: in the failing schedule, and in no
/// other one for that.
#[test]
fn an_object_is_there_while_it_is_used() {
    let text =
        "t0: fork a\nt0: fork b\na: [use] R users -> n\nb: [end] free object\na: fail n == 0";
    let parsed = parse(text).expect("the trace is well formed");
    let (used, freed) = (parsed.event("use"), parsed.event("end"));
    let mut trace = parsed.trace.clone();
    trace.lifetimes = vec![(used, freed)];
    let asks = |system: &ConstraintSystem| {
        let clock = |kind: &ConstraintKind| matches!(kind, ConstraintKind::Clock);
        let mut asked = system.constraints.iter().filter(|constraint| clock(&constraint.kind));
        asked.any(|constraint| constraint.term == Term::Before(used, freed))
    };
    assert!(asks(&encode_recorded(&trace).expect("it can be encoded")));
    assert!(!asks(&encode(&trace).expect("it can be encoded")));
    // The part of the trace that matters has both, by its own numbers.
    let part = slice(&trace).expect("it can be sliced");
    let [(access, end)] = part.trace.lifetimes[..] else { panic!("{:?}", part.trace.lifetimes) };
    assert_eq!((part.event(access), part.event(end)), (used, freed));
}

/// The same where what the thread did with it does not matter for the failure, and is done as soon as it can be.
#[test]
fn an_object_is_there_while_it_is_used_in_what_a_slice_leaves_out() {
    let text = "t0: fork a\nt0: fork b\nb: W x 1\nb: [end] free object\n\
                a: [before] R x -> n\na: [use] R object -> o\na: fail n == 1";
    let parsed = parse(text).expect("the trace is well formed");
    let (before, used, freed) = (parsed.event("before"), parsed.event("use"), parsed.event("end"));
    let mut trace = parsed.trace.clone();
    trace.lifetimes = vec![(used, freed)];
    let part = slice(&trace).expect("it can be sliced");
    assert_eq!(part.find(used), None);
    let [(access, end)] = part.trace.lifetimes[..] else { panic!("{:?}", part.trace.lifetimes) };
    assert_eq!((part.event(access), part.event(end)), (before, freed));
}
