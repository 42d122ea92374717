//! Failures that hang on what was read by way of code that was not walked, such as a formatted text.

use crate::support::runs::{Run, compared};
use encoders::dsl::parse;
use explain::Flipped;
use solver::Order;

/// Two threads fill one object; one of them hands on a part of what it holds, and the other part is read by nobody.
const FILLS: &str = "
    cell hour 32 = 0
    cell week 32 = 0
    t0: fork a
    t0: fork b
    a: [hour-a] W hour 3
    a: [shown] R hour -> h
    a: [week-a] W week 1
    b: [hour-b] W hour 10
    b: [week-b] W week 2
    t0: join a
    t0: join b
";

#[test]
fn what_was_read_otherwise_tells_more_than_what_nobody_reads() {
    let run = |text: &str, turns: &[usize], end: &[usize]| {
        let all: Vec<usize> = [0, 0, 0].iter().chain(turns).chain(end).copied().collect();
        Run::in_order(parse(text).expect("the text is a trace"), &all)
    };
    let fails = format!("{FILLS}    t0: fail 1 == 1\n");
    // Each thread has a start and an end besides.
    let failing = run(&fails, &[1, 2, 1, 2, 1, 2, 1, 2, 1], &[0, 0, 0]);
    let passing = run(FILLS, &[1, 1, 1, 1, 1, 2, 2, 2, 2], &[0, 0, 0]);
    let [hour, shown] = ["hour-b", "shown"].map(|label| failing.event(label));
    let expected = Flipped::Reversed(Order { before: hour, after: shown });
    assert_eq!(compared(&failing, &passing).flipped, expected);
}
