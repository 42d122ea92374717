//! Random small traces: whatever is explained is right, checked by enumeration.

mod support;

use proptest::prelude::*;
use support::random::{failing_trace, program};
use support::{BruteForce, check_explanation, explain_with};

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, max_global_rejects: 20_000, ..ProptestConfig::default() })]

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
}
