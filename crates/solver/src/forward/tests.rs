//! What the search finds can happen, follows the recorded paths and fails; and it finds what is there.

#[path = "../../tests/support/generate.rs"]
mod generate;
#[path = "../../tests/support/random.rs"]
mod random;
#[path = "../../tests/support/run.rs"]
mod run;

use super::Forward;
use crate::{Goal, Limits, OrderingSession, Outcome, Session};
use encoders::Term;
use model::evaluate::{Check, Evaluator};
use model::{EventKind, EventTrace, FailureCondition};

fn certain(system: &encoders::ConstraintSystem) -> Vec<(u32, u32)> {
    let constraints = system.constraints.iter();
    let orders = constraints.filter_map(|constraint| match constraint.term {
        Term::Before(a, b) => Some((a.0, b.0)),
        _ => None,
    });
    orders.collect()
}

/// What the search leaves to whoever checks the schedule: which wait a signal ends, conditions that
/// several threads' reads decide, and failures that are about orders.
fn is_known(trace: &EventTrace) -> bool {
    let thread_of = |var: model::VarId| match trace.variables[var.index()].origin {
        model::VariableOrigin::Read { event, .. } => Some(trace.event(event).thread),
        _ => None,
    };
    let one_thread = |expr: model::ExprId| {
        let variables = trace.exprs.variables(expr);
        let threads: Vec<_> = variables.into_iter().map(thread_of).collect();
        threads.iter().all(|thread| thread.is_some() && *thread == threads[0])
    };
    let failure = trace.failure.as_ref().map(|failure| &failure.condition);
    let waits = |event: &model::Event| matches!(event.kind, EventKind::Wake { .. });
    trace.conditions.iter().all(|condition| one_thread(condition.expr))
        && matches!(failure, Some(FailureCondition::Value(expr)) if one_thread(*expr))
        && !trace.events.iter().any(waits)
}

#[test]
fn small_traces_of_all_kinds_of_synchronisation() {
    let (mut found, mut missed, mut none, mut unknown) = (0, 0, 0, 0);
    for seed in 0..1_500 {
        let text = generate::generate(seed);
        let trace = encoders::dsl::parse(&text).expect("the trace is well formed").trace;
        if !is_known(&trace) {
            unknown += 1;
            continue;
        }
        let system = encoders::encode(&trace).expect("the trace can be encoded");
        let mut session = OrderingSession::new(&trace, &system, Limits::default());
        let outcome = session.check(Goal::Fail, &[]).expect("an answer");
        let forward = Forward::new(&trace, &certain(&system));
        let order = forward.expect("nothing is unknown").find(|_| true);
        match (outcome, order) {
            (Outcome::Sat(_), Some(order)) => {
                let check = Evaluator::new(&trace).check(&order, &|_| None);
                assert_eq!(check, Check::Fails, "seed {seed}\n{text}{order:?}");
                found += 1;
            }
            (Outcome::Sat(_), None) => missed += 1,
            (Outcome::Unsat(_), None) => none += 1,
            (outcome, order) => {
                let check = order.as_ref().map(|o| Evaluator::new(&trace).check(o, &|_| None));
                panic!("seed {seed}: {outcome:?}, {order:?}, {check:?}\n{text}")
            }
        }
    }
    println!("found {found}, missed {missed}, none {none}, unknown {unknown}");
    assert!(found > 200 && none > 50, "{found} {none}");
    assert_eq!(missed, 0);
}

#[test]
fn a_run_with_hot_variables() {
    for seed in 0..2 {
        let shape =
            run::Shape { threads: 4, accesses: 100, cells: 8, locked: 5, branches: 30, reading: 0 };
        let text = run::generate(&shape, seed);
        let trace = encoders::dsl::parse(&text).expect("the trace is well formed").trace;
        let system = encoders::encode_recorded(&trace).expect("the trace can be encoded");
        let forward = Forward::new(&trace, &certain(&system));
        let order = forward.expect("nothing is unknown").find(|_| true).expect("there is one");
        assert_eq!(Evaluator::new(&trace).check(&order, &|_| None), Check::Fails, "seed {seed}");

        // The session takes it as it is.
        let mut session = OrderingSession::new(&trace, &system, Limits::default()).with_patience(0);
        let outcome = session.check(Goal::Fail, &[]).expect("an answer");
        let Outcome::Sat(model) = outcome else { panic!("seed {seed}: {outcome:?}") };
        assert_eq!(Evaluator::new(&trace).check(&model.schedule.order, &|_| None), Check::Fails);
        println!("seed {seed}: {:?}", session.work());
    }
}
