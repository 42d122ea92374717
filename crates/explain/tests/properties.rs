//! Random small traces: whatever is explained is right, checked by enumeration.

use crate::support::random::{failing_trace, program};
use crate::support::{
    BruteForce, check_explanation, explain_with, fewest_of_a_single_pair, variations,
};
use model::evaluate::{Check, Evaluator};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use solver::Goal;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_global_rejects: 20_000, rng_seed: RngSeed::Fixed(0), ..ProptestConfig::default() })]

    /// The schedule stays accepted while its switches get fewer, the root cause is minimal, an
    /// alternate is found whenever there is one, and every alternate passes.
    #[test]
    fn explanations_are_right(program in program()) {
        let trace = failing_trace(&program);
        prop_assume!(trace.is_some());
        let Some(trace) = trace else { return Ok(()) };
        let mut session = BruteForce::new(&trace);
        session.from_end = program.from_end;
        prop_assert!(session.failing() > 0);
        let explanation = explain_with(&trace, &mut session, 3);
        check_explanation(&trace, &explanation);
    }

    /// No schedule that passes and reverses a single conflicting pair varies less
    /// than the one chosen.
    #[test]
    fn the_alternate_chosen_is_no_worse_than_a_single_pair(program in program()) {
        let trace = failing_trace(&program);
        prop_assume!(trace.is_some());
        let Some(trace) = trace else { return Ok(()) };
        let mut session = BruteForce::new(&trace);
        prop_assume!(session.schedules() <= 2_000);
        session.from_end = program.from_end;
        let explanation = explain_with(&trace, &mut session, 1);
        let failing = explanation.failing.as_ref().expect("a failing schedule");
        let single = fewest_of_a_single_pair(&trace, failing);
        let chosen = explanation.alternates.found.first();
        let chosen = chosen.map(|a| variations(&trace, &failing.evaluation, &a.evaluation));
        if let Some(single) = single {
            prop_assert!(chosen.is_some_and(|chosen| chosen <= single), "{chosen:?} {single}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_global_rejects: 20_000, rng_seed: RngSeed::Fixed(0), ..ProptestConfig::default() })]

    /// A slice can do what the whole can, and each of its schedules can be widened to one that does
    /// the same.
    #[test]
    fn a_slice_does_what_the_whole_does(program in program()) {
        let whole = failing_trace(&program);
        prop_assume!(whole.is_some());
        let Some(whole) = whole else { return Ok(()) };
        let slice = encoders::slice(&whole).expect("a trace that makes sense");
        prop_assert!(model::verify::verify(&slice.trace).is_ok());
        let mut all = BruteForce::new(&whole);
        let mut part = BruteForce::new(&slice.trace);
        for goal in [Goal::Fail, Goal::Pass] {
            prop_assert_eq!(all.satisfiable(goal, &[]), part.satisfiable(goal, &[]));
        }
    }

    /// What does not matter goes, and comes back in any schedule.
    #[test]
    fn schedules_of_a_slice_are_widened(program in program()) {
        let whole = failing_trace(&program.clone().with_unread());
        prop_assume!(whole.is_some());
        let Some(whole) = whole else { return Ok(()) };
        let slice = encoders::slice(&whole).expect("a trace that makes sense");
        prop_assert!(model::verify::verify(&slice.trace).is_ok());
        let unread = whole.cells.iter().find(|cell| cell.name == "c7").map(|cell| cell.id);
        prop_assert!(slice.trace.cells.iter().all(|cell| Some(slice.cell(cell.id)) != unread));
        prop_assert!(slice.trace.events.len() < whole.events.len());
        let part = BruteForce::new(&slice.trace);
        let mut evaluator = Evaluator::new(&whole);
        for (order, check) in part.known() {
            let wide = slice.widen(&whole, order);
            prop_assert!(wide.is_some(), "{order:?}");
            prop_assert_eq!(evaluator.check(&wide.unwrap_or_default(), &|_| None), check);
        }
        let mut session = part;
        let explanation = explain_with(&slice.trace, &mut session, 2);
        let narrow = explanation.alternates.found.len();
        let wide = explain::widen(&whole, &slice, explanation);
        let wide = wide.expect("its schedules can be widened");
        prop_assert_eq!(wide.alternates.found.len(), narrow);
        for (alternate, dsp) in wide.alternates.found.iter().zip(&wide.dsps) {
            prop_assert_eq!(
                evaluator.check(&alternate.schedule.order, &|_| None),
                Check::Passes
            );
            prop_assert_eq!(dsp.counts.schedule_events, whole.events.len());
            // The data flows are the whole schedules' own.
            let failing = &wide.failing.as_ref().expect("a failing schedule").evaluation;
            for flow in &dsp.failing_only {
                prop_assert_eq!(failing.reads_from.get(&flow.read), Some(&flow.write));
            }
        }
    }
}
