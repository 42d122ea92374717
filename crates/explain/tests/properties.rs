//! Random small traces: whatever is explained is right, checked by enumeration.

mod support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use support::random::{failing_trace, program};
use support::{BruteForce, check_explanation, explain_with, fewest_of_a_single_pair, variations};

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
