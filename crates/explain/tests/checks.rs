//! Causes in which a check and what it was for lie in two critical sections, or in two threads.

use crate::support::causes::{cause_of, events, trace};
use crate::support::runs::{Run, cause_across};
use encoders::dsl::parse;
use explain::Pattern;
use model::FailureKind;

/// A thread finds that two variables do not fit, and notes that where no event is about it; the initial thread ends with
/// a bad status. That others made entries in another order has nothing to do with it.
const NOTED: &str = "
    cell sum 32 = 0
    cell count 32 = 0
    t0: fork a
    t0: fork b
    a: R table -> x
    a: assume x == 0
    a: W table 1
    b: R table -> y
    b: assume y == 1
    b: W table 2
    b: [seen] R sum -> s
    b: [missed] R count -> n
    b: assume s != n
    a: [sum] W sum 1
    a: [count] W count 1
    t0: join a
    t0: join b
    t0: R table -> z
    t0: assume z == 2
    t0: fail
";

#[test]
fn what_a_run_ended_with_is_told_by_the_check_that_did_not_hold() {
    let mut failing = trace(NOTED);
    failing.trace.failure.as_mut().expect("a failure").kind = FailureKind::Exit;
    let failing = Run::explained(failing);
    let passing = [
        ("assume x == 0", "assume x == 3"),
        ("W table 1", "W table 4"),
        ("assume y == 1", "assume y == 0"),
        ("W table 2", "W table 3"),
        ("assume s != n", "assume s == n"),
        ("assume z == 2", "assume z == 4"),
        ("t0: fail", ""),
    ];
    let passing = passing.iter().fold(NOTED.to_owned(), |text, (old, new)| text.replace(old, new));
    let passing = Run::passing(&passing, [2, 1]);
    let cause = cause_across(&failing, &passing);
    assert_eq!(
        (cause.pattern, cause.case),
        (Pattern::SeveralVariables, Some("reads-between-writes"))
    );
    assert_eq!(cause.events, events(&failing.parsed, &["seen", "missed", "sum", "count"]));
}

/// What is looked at is the first of a list, and what is used then is the entry: nothing but the pointer leads from the
/// one to the other.
#[test]
fn what_was_looked_at_and_what_is_used_may_be_two_variables_of_one_lock() {
    let failing = "
        cell entry 32 = 1
        t0: W first 1
        t0: fork a
        t0: fork b
        a: lock m
        a: [look] R first -> f
        a: unlock m
        a: lock m
        a: [use] R entry -> e
        a: assume e == 0
        a: unlock m
        a: fail
        b: lock m
        b: [taken] W first 2
        b: W entry 0
        b: unlock m
    ";
    let passing = failing.replace("R entry -> e", "R next -> e").replace("a: fail", "");
    let passing = passing + "t0: join a\n t0: join b\n";
    // `a` begins, `b` has its section and ends, and `a` goes on.
    let turns = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1];
    let failing = Run::in_order(parse(failing).expect("the text is a trace"), &turns);
    let passing = Run::passing(&passing, [2, 1]);
    let cause = cause_across(&failing, &passing);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-use")));
    assert_eq!(cause.events, events(&failing.parsed, &["taken", "look", "use"]));
}

/// Somebody takes a token that has gone since the look at it; on the way he writes to a log.
#[test]
fn who_uses_what_was_looked_at_is_told_by_that_use() {
    let failing = "
        cell tokens 32 = 1
        t0: fork a
        t0: fork b
        a: [look] R tokens -> t
        a: assume t > 0
        b: [take] RMW tokens -> u = u - 1
        b: R lines -> k
        b: W lines k + 1
        a: R lines -> l
        a: W lines l + 1
        a: [use] RMW tokens -> v = v - 1
        a: assume v <= 0
        a: fail
    ";
    let passing = failing.replace("v <= 0", "v > 0").replace("a: fail", "");
    let passing = passing + "t0: join a\n t0: join b\n";
    // `a` looks, `b` does all that it does, and `a` goes on.
    let turns = [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 1, 1, 1, 1];
    let failing = Run::in_order(parse(failing).expect("the text is a trace"), &turns);
    let passing = Run::passing(&passing, [1, 2]);
    let cause = cause_across(&failing, &passing);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-read")));
    assert_eq!(cause.events, events(&failing.parsed, &["take", "look", "use"]));
}

/// A handle's generation is checked in one section, and the object looked at in the next: that the list from which the
/// handle came was not changed yet by then is no half of that.
#[test]
fn a_check_that_another_section_overtook_says_more_than_what_is_not_written_yet() {
    let parsed = trace(
        "
        cell owner 32 = 1
        cell listed 32 = 1
        t0: fork a
        t0: fork b
        a: lock m
        a: W owner 0
        a: [gone] W generation 1
        a: unlock m
        b: lock l
        b: R listed -> i
        b: unlock l
        b: lock m
        b: [check] R generation -> g
        b: assume g == 0
        b: unlock m
        b: lock m
        b: [use] R owner -> o
        b: unlock m
        b: fail o != i
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-use")));
    assert_eq!(cause.events, events(&parsed, &["gone", "check", "use"]));
}

/// Who draws a number does not look whether somebody else has drawn one.
#[test]
fn to_count_is_no_look() {
    let text = "
        cell drawn 32 = 0
        cell served 32 = 5
        t0: fork a
        t0: fork b
        a: [draw] R drawn -> x
        a: W drawn x + 1
        a: [told] R served -> s
        a: assume x < 1
        a: [early] R written -> w
        a: fail w == 0
        b: R drawn -> y
        b: W drawn y + 1
        b: W written 1
    ";
    let looks = |text: &str| cause_of(&parse(text).expect("the text is a trace")).case;
    assert_ne!(looks(text), Some("looked-too-early"));
    let looked = text.replace("a: W drawn x + 1", "");
    assert_eq!(looks(&looked), Some("looked-too-early"));
}
