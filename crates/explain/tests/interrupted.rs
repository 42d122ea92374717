//! Steps that another thread parts in the failing run, and in none that passes.

use crate::support::runs::Run;
use encoders::dsl::{Parsed, parse};
use explain::{Across, Flip, Flipped, Interrupted, across_interrupted, interrupted_steps};
use solver::Order;

/// One thread looks whether a task was begun, and cancels it in a second section; the other one begins it. Both add to a sum.
/// The lines of the two texts are the places of their events.
const CANCELLED_LATE: &str = "
    cell state 32 = 0
    cell sum 32 = 0
    t0: fork a
    t0: fork b
    a: [take-a] lock m
    a: [look] R state -> a0
    a: assume a0 < 1
    a: unlock m
    a: lock m
    a: [cancel] W state 3
    a: [give-a] unlock m
    a: lock s
    a: [sum-a] R sum -> a1
    a: [add-a] W sum a1 + 1
    a: unlock s
    b: [take-b] lock m
    b: [ask] R state -> b0
    b: assume b0 < 1
    b: [begin] W state 1
    b: [give-b] unlock m
    b: lock s
    b: [sum-b] R sum -> b1
    b: [add-b] W sum b1 + 1
    b: unlock s
    t0: join a
    t0: join b
    t0: R sum -> all
    t0: fail all > 1
";

/// The task is cancelled before it could begin.
const CANCELLED_FIRST: &str = "
    cell state 32 = 0
    cell sum 32 = 0
    t0: fork a
    t0: fork b
    a: [take-a] lock m
    a: [look] R state -> a0
    a: assume a0 < 1
    a: unlock m
    a: lock m
    a: [cancel] W state 3
    a: [give-a] unlock m
    a: lock s
    a: [sum-a] R sum -> a1
    a: [add-a] W sum a1 + 1
    a: unlock s
    b: [take-b] lock m
    b: [ask] R state -> b0
    b: assume b0 > 2

    b: [give-b] unlock m




    t0: join a
    t0: join b
    t0: R sum -> all
";

fn parsed(text: &str) -> Parsed {
    parse(text).expect("the text is a trace")
}

/// `b` begins the task between the two sections of `a`.
fn failing() -> Run {
    let order = [vec![0; 3], vec![1; 4], vec![2; 9], vec![1; 8], vec![2], vec![0; 4]];
    Run::in_order(parsed(CANCELLED_LATE), &order.concat())
}

fn passing() -> Run {
    Run::passing(CANCELLED_FIRST, [1, 2])
}

fn all_found(moments: &[usize]) -> Vec<Interrupted> {
    let (failing, passing) = (failing(), passing());
    let known = [(&passing.parsed.trace, &passing.schedule)];
    interrupted_steps((&failing.parsed.trace, &failing.schedule), &known, moments)
}

#[test]
fn the_steps_that_only_the_failing_run_has_interrupted_are_found_with_what_undoes_them() {
    let failing = failing();
    let found = all_found(&[]);
    let [steps] = &found[..] else { panic!("one, not {found:?}") };
    let event = |label: &str| failing.event(label);
    assert_eq!((steps.first, steps.second), (event("look"), event("cancel")));
    assert_eq!(steps.parting, [event("begin"); 2]);
    assert_eq!(steps.between, [event("ask"), event("begin")]);
    // Whole sections: what begins the task waits at its lock, and so does the look.
    let flips = steps.flips(&failing.parsed.trace, &failing.schedule);
    let flip = |before: &str, after: &str| Flip { before: event(before), after: event(after) };
    assert_eq!(flips, [flip("take-b", "give-a"), flip("take-a", "give-b")]);
    // Once, wherever it is too late.
    assert_eq!(all_found(&[6]), found);
}

#[test]
fn what_a_run_that_passes_has_interrupted_too_is_left_out() {
    let failing = failing();
    let trace = (&failing.parsed.trace, &failing.schedule);
    assert_eq!(interrupted_steps(trace, &[trace], &[]), []);
    // But for those that come where the failure could be avoided last.
    assert_eq!(interrupted_steps(trace, &[trace], &[9]), all_found(&[]));
    assert_eq!(interrupted_steps(trace, &[trace], &[22]), []);
}

#[test]
fn of_a_run_that_undoes_them_the_steps_are_told() {
    let (failing, passing) = (failing(), passing());
    let [steps] = &all_found(&[])[..] else { panic!("one") };
    let Across { flipped, failing: shown, .. } =
        across_interrupted(failing.side(), passing.side(), steps).expect("a difference");
    // The task does not begin there: what asks for it comes behind.
    let (before, after) = (failing.event("ask"), failing.event("cancel"));
    assert_eq!(flipped, Flipped::Reversed(Order { before, after }));
    assert!(shown.contains(&steps.first));
    let same = across_interrupted(failing.side(), failing.side(), steps);
    assert!(same.is_none(), "nothing is undone");
}
