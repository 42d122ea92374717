//! Which of several alternates is shown.

use crate::support::explained;
use encoders::dsl::parse;
use solver::Order;

/// One thread clears the list of another one and notes something itself: then there is one note again, by luck.
const NOTES: &str = "
    cell notes 32 = 0
    t0: fork a
    t0: fork b
    a: W notes 1
    a: [count] R notes -> n
    a: fail n != 1
    b: [clear] W notes 0
    b: [note] W notes 1
";

#[test]
fn nobody_comes_between_in_the_alternate_that_is_shown() {
    let parsed = parse(NOTES).expect("the text is a trace");
    let [clear, count, note] = ["clear", "count", "note"].map(|label| parsed.event(label));
    let two = explained(&parsed.trace, 2).alternates.found;
    let flipped: Vec<Order> = two.iter().map(|alternate| alternate.flipped).collect();
    let undisturbed = Order { before: count, after: clear };
    assert_eq!(flipped, [undisturbed, Order { before: note, after: count }]);
    let one = explained(&parsed.trace, 1).alternates.found;
    assert_eq!(one[0].flipped, undisturbed);
}
