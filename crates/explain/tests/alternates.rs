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

/// Another thread's late write comes between what lies there by then and its read: what is reversed is that the variable had ended.
#[test]
fn the_end_of_a_local_variable_is_what_an_alternate_reverses() {
    let mut parsed = parse(
        "cell x 32 = 0\n\
         heap o 4096 16\n\
         t0: fork a\n\
         t0: [end] free o\n\
         t0: [own] W x 1\n\
         t0: R x -> v\n\
         a: [late] W x 9\n\
         t0: fail before end late\n",
    )
    .expect("the text is a trace");
    parsed.trace.objects[0].kind = model::ObjectKind::Local;
    let explained = explained(&parsed.trace, 2);
    let flipped: Vec<Order> = explained.alternates.found.iter().map(|it| it.flipped).collect();
    let end = Order { before: parsed.event("late"), after: parsed.event("end") };
    assert_eq!(flipped.first(), Some(&end), "{flipped:?}");
}
