//! Threads that count what they have done, and lose some of it.

use crate::support::runs::{Run, compared};
use encoders::dsl::parse;
use explain::Flipped;

/// Two threads put an item each into a list without a lock, and count it.
const LOSES: &str = "
    cell list 32 = 0
    cell count 32 = 0
    t0: fork a
    t0: fork b
    a: [look-a] R list -> p
    a: [put-a] W list p + 1
    a: [count-a] RMW count -> x = x + 1
    b: [look-b] R list -> q
    b: [put-b] W list q + 1
    b: [count-b] RMW count -> y = y + 1
    t0: join a
    t0: join b
    t0: [length] R list -> all
    t0: [number] R count -> n
    t0: fail all != n
";

#[test]
fn in_which_order_two_have_counted_is_not_why_the_count_is_wrong() {
    let run = |turns: &[usize]| {
        let rest = [0, 0, 0, 0, 0];
        let all: Vec<usize> = [0, 0, 0].iter().chain(turns).chain(&rest).copied().collect();
        Run::in_order(parse(LOSES).expect("the text is a trace"), &all)
    };
    let failing = run(&[1, 1, 2, 2, 2, 2, 2, 1, 1, 1]);
    assert!(failing.evaluation.fails);
    let passing = run(&[1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
    assert!(!passing.evaluation.fails);
    let Flipped::Reversed(order) = compared(&failing, &passing).flipped else {
        panic!("a pair comes the other way round");
    };
    let counts = ["count-a", "count-b"].map(|label| failing.event(label));
    assert!(!counts.contains(&order.before) && !counts.contains(&order.after), "{order:?}");
}
