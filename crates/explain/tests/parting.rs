//! What is told of runs whose failure depends on nothing that the passing run has otherwise, but for the ways that
//! threads take.

mod support;

use encoders::dsl::parse;
use explain::Flipped;
use solver::Order;
use support::runs::{Run, compared};

/// `b` looks before `a` says that there is something, and both end when they are told to.
const LOOKED_TOO_EARLY: &str = "
    cell said 32 = 0
    cell stop 32 = 0
    t0: fork a
    t0: fork b
    a: [say] W said 1
    b: [look] R said -> r
    b: assume r == 0
    t0: [halt] W stop 1
    a: [end] R stop -> s
    a: assume s == 1
    t0: join a
    t0: join b
    t0: fail
";

/// The thread that is the first to go another way is why, and not the one with the lowest number.
#[test]
fn what_the_first_thread_to_part_found_is_told() {
    let failing = Run::failing(LOOKED_TOO_EARLY);
    let passing = LOOKED_TOO_EARLY.replace("r == 0", "r == 1").replace("s == 1", "s == 0");
    let parsed = parse(&passing.replace("t0: fail", "")).expect("the text is a trace");
    // The initial thread creates both, then come `a`'s start, its word, `b`, `a`'s look, and the rest.
    let passing = Run::in_order(parsed, &[0, 0, 0, 1, 1, 2, 2, 2, 1, 1, 0, 0, 0, 0]);
    let found = compared(&failing, &passing);
    let flipped = Order { before: failing.event("look"), after: failing.event("say") };
    assert_eq!(found.flipped, Flipped::Reversed(flipped), "{found:?}");
}
