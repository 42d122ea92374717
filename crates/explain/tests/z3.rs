//! The same with Z3 and the encoders in the place of enumeration.

use crate::support::programs::{AIRLINE, BANK, PFSCAN, TWO_STAGE};
use crate::support::random::{failing_trace, program};
use crate::support::{check_explanation, options};
use encoders::dsl::parse;
use encoders::encode;
use explain::{CauseKind, Explanation, explain, has_inputs, pin_inputs};
use model::EventTrace;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use solver::{Limits, Z3Session};
use std::fmt::Write;

fn explained(trace: &EventTrace, alternates: usize) -> Explanation {
    let system = encode(trace).expect("the trace makes sense");
    let mut session = Z3Session::new(trace, &system, Limits::default()).expect("expressible");
    explain(trace, &system, &mut session, &options(alternates), &|| true).expect("explained")
}

#[test]
fn known_programs() {
    for text in [BANK, PFSCAN, AIRLINE, TWO_STAGE] {
        let trace = parse(text).expect("the text is a trace").trace;
        check_explanation(&trace, &explained(&trace, 2));
    }
}

/// Tellers that each take the balance under the lock, and write it back under the lock again, in a
/// section too many.
fn tellers(threads: usize, deposits: usize) -> String {
    let mut text = String::new();
    for t in 0..threads {
        let _ = writeln!(text, "t0: fork w{t}");
    }
    for t in 0..threads {
        for d in 0..deposits {
            let _ = writeln!(
                text,
                "w{t}: lock m\nw{t}: R balance -> r{t}_{d}\nw{t}: unlock m\nw{t}: W own{t} {d}\n\
                 w{t}: lock m\nw{t}: W balance r{t}_{d} + 1\nw{t}: unlock m"
            );
        }
    }
    for t in 0..threads {
        let _ = writeln!(text, "t0: join w{t}\nt0: R own{t} -> o{t}");
    }
    let _ = writeln!(text, "t0: R balance -> sum\nt0: fail sum == {}", threads * deposits - 1);
    text
}

#[test]
fn a_long_schedule_leaves_little_to_look_at() {
    let trace = parse(&tellers(3, 6)).expect("the text is a trace").trace;
    let explanation = explained(&trace, 1);
    assert!(explanation.cut.is_empty(), "{:?}", explanation.cut);
    assert!(explanation.root_cause.expect("a cause").minimal);
    let counts = explanation.dsps[0].counts;
    assert!(counts.schedule_events > 100);
    assert!(counts.events * 10 <= counts.schedule_events, "{counts:?}");
    assert!(explanation.statistics.switches <= 8, "{:?}", explanation.statistics);
}

/// The failure depends on an unknown initial value and on an order: the orders are found once the
/// value is fixed.
#[test]
fn inputs_are_pinned_to_find_the_orders() {
    let text = "
        cell x 32 = ?
        a: R x -> p
        a: assume p != 7
        a: W y p
        b: R y -> q
        b: fail q == 5
    ";
    let trace = parse(text).expect("the text is a trace").trace;
    assert!(has_inputs(&trace));
    let explanation = explained(&trace, 1);
    let cause = explanation.root_cause.expect("a cause");
    assert_eq!((cause.kind, cause.minimal), (CauseKind::Inputs, false));
    let failing = explanation.failing.expect("a failing schedule");
    let pinned = pin_inputs(&trace, &failing.evaluation);
    assert_eq!(model::verify::verify(&pinned), Ok(()));
    let explanation = explained(&pinned, 1);
    let cause = explanation.root_cause.expect("a cause");
    assert_eq!((cause.kind, cause.orders.len()), (CauseKind::Orders, 1));
    assert_eq!(explanation.alternates.found.len(), 1);
}

/// What a function worked out is only known to be what it was where the same went in: with another text it may be anything,
/// so that an order decides, and not every schedule fails.
#[test]
fn what_was_worked_out_is_pinned_to_what_went_in() {
    let text = "
        input number 32
        a: W text 1
        b: R text -> t
        b: fail number == 5
    ";
    let mut trace = parse(text).expect("the text is a trace").trace;
    let [number, read] = [0, 1].map(model::VarId);
    assert_eq!(trace.variables[number.index()].origin, model::VariableOrigin::Input);
    let inputs = [trace.exprs.var(read, 32)].into();
    trace.outcomes.push(model::Outcome { var: number, inputs });
    let failing = explained(&trace, 1).failing.expect("a failing schedule");
    let pinned = pin_inputs(&trace, &failing.evaluation);
    assert_eq!(model::verify::verify(&pinned), Ok(()));
    let explanation = explained(&pinned, 1);
    let cause = explanation.root_cause.expect("a cause");
    assert_eq!((cause.kind, cause.orders.len(), cause.minimal), (CauseKind::Orders, 1, true));
    assert!(explanation.alternates.found.is_empty(), "nobody knows what comes out otherwise");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, max_global_rejects: 20_000, rng_seed: RngSeed::Fixed(0), ..ProptestConfig::default()
    })]

    #[test]
    fn explanations_are_right(program in program()) {
        let trace = failing_trace(&program);
        prop_assume!(trace.is_some());
        let Some(trace) = trace else { return Ok(()) };
        check_explanation(&trace, &explained(&trace, 3));
    }
}
