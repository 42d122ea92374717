//! The cause in one sentence, where threads took one step together, or read what belongs together in rounds of a loop.

use crate::support::causes::{cause_of, events, trace};
use crate::support::runs::{Run, cause_across};
use explain::{CauseEvent, Pattern};
use model::{EventId, Site};

fn site(function: &str, line: u32) -> Site {
    Site { file: "queue.c".to_owned(), line, column: 1, function: function.to_owned() }
}

/// Each thread looks at the first item in one section, and takes it away in the next.
const TOP_AND_POP: &str = "
    cell first 32 = 4
    cell left 32 = 2
    a: lock m
    a: [atop] R first -> p
    a: unlock m
    a: lock m
    a: [apop] W first 3
    a: unlock m
    b: lock m
    b: [btop] R first -> q
    b: unlock m
    b: lock m
    b: [bpop] W first 2
    b: unlock m
    b: fail p == q
";

#[test]
fn what_two_threads_look_at_and_take_is_one_step_of_each() {
    let mut parsed = trace(TOP_AND_POP);
    for (label, line) in [("atop", 26), ("btop", 26), ("apop", 30), ("bpop", 30)] {
        let id = parsed.event(label);
        parsed.trace.events[id.index()].stack = vec![site("worker", line)].into();
    }
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-write")));
    let either = [["apop", "btop", "bpop"], ["bpop", "atop", "apop"]];
    assert!(either.iter().any(|labels| cause.events == events(&parsed, labels)), "{cause:?}");
}

/// A thread takes all that it was told of, and finds then what it has left itself: the next item is not late because the
/// one before was there.
#[test]
fn what_a_thread_has_left_empty_itself_was_not_announced_too_early() {
    let parsed = trace(
        "
        a: [item] W next 1
        a: [add] W first 7
        b: [see] R next -> n
        b: assume n == 1
        b: [empty] W first 0
        b: [look] R first -> f
        b: fail f == 0
        ",
    );
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("announced-too-early"), "{}", cause.sentence);
}

/// A count is added to a sum that only one thread touches, and cleared behind that.
#[test]
fn a_count_that_is_taken_and_cleared_loses_what_came_in_between() {
    let parsed = trace(
        "
        cell n 32 = 1
        t0: fork a
        t0: fork b
        a: [take] R n -> x
        a: [clear] W n 0
        b: [old] R n -> y
        b: [count] W n y + 1
        t0: join a
        t0: join b
        t0: [rest] R n -> z
        t0: fail x + z != 2
        ",
    );
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-write")));
    let either = [["count", "take", "clear"], ["clear", "old", "count"]];
    assert!(either.iter().any(|labels| cause.events == events(&parsed, labels)), "{cause:?}");
}

/// An auditor adds up two balances in a loop, while something goes from the one to the other.
#[test]
fn elements_that_a_loop_adds_up_belong_together() {
    let mut parsed = trace(
        "
        cell one 32 = 5
        cell two 32 = 5
        a: lock m
        a: lock n
        a: [less] W one 4
        a: [more] W two 6
        a: unlock n
        a: unlock m
        b: lock m
        b: [first] R one -> x
        b: unlock m
        b: lock n
        b: [second] R two -> y
        b: unlock n
        b: fail x + y != 10
        ",
    );
    for label in ["first", "second"] {
        let id: EventId = parsed.event(label);
        let event = &mut parsed.trace.events[id.index()];
        event.stack = vec![site("sum", 29)].into();
        event.name = Some("accounts[i].balance".into());
    }
    for (label, line) in [("less", 18), ("more", 19)] {
        let id: EventId = parsed.event(label);
        let event = &mut parsed.trace.events[id.index()];
        event.stack = vec![site("transfer", line)].into();
        event.name = Some("accounts[..].balance".into());
    }
    let cause = cause_of(&parsed);
    let case = Some("writes-between-reads");
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, case));
    assert_eq!(cause.events, events(&parsed, &["less", "more", "first", "second"]));
}

/// A pool makes a connection where there are fewer than the most, and counts it behind that; one that was given back is taken first.
fn pool(looks: [&str; 4], order: &[usize]) -> Run {
    let [found, look, few, end] = looks;
    let mut parsed = trace(&format!(
        "
        cell count 32 = 0
        cell idle 32 = 0
        t0: fork a
        t0: fork b
        a: [alook] R count -> c
        a: assume c == 0
        a: [old] R count -> o
        a: [raise] W count o + 1
        a: [fill] W idle 1
        b: [empty] R idle -> i
        b: assume i == {found}
        {look}
        {few}
        {end}
        "
    ));
    for (label, line) in [("alook", 35), ("blook", 35), ("old", 44), ("raise", 44), ("failed", 42)]
    {
        if let Some(id) = parsed.labels.get(label) {
            parsed.trace.events[id.index()].stack = vec![site("take", line)].into();
        }
    }
    Run::in_order(parsed, order)
}

/// That nothing had been given back is true of the run that fails, and why it counts is that two made one.
#[test]
fn a_count_that_two_found_low_is_the_cause_where_one_fails_before_it_counts() {
    let failing = pool(
        ["0", "b: [blook] R count -> d", "b: assume d == 0", "b: [failed] fail"],
        &[0, 0, 0, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 0],
    );
    let passing = pool(["1", "", "", ""], &[0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 1, 0]);
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.case, Some("found-the-same"), "{}", cause.sentence);
    let events = ["blook", "alook", "raise"].map(|l| CauseEvent::Failing(failing.event(l)));
    assert_eq!(cause.events, events);
}

/// A function that goes by what it sees is called twice, and sees another value the second time: nobody came into a step of it.
#[test]
fn a_function_that_is_called_twice_looks_anew() {
    let mut parsed = trace(
        "
        t0: fork a
        t0: [one] R state -> x
        t0: assume x == 0
        t0: [two] R state -> y
        t0: fail y == 1
        a: [set] W state 1
        ",
    );
    for (label, line) in [("one", 20), ("two", 30)] {
        let id = parsed.event(label);
        parsed.trace.events[id.index()].stack = vec![site("tell", 7), site("main", line)].into();
    }
    parsed.trace.conditions[0].site = site("tell", 7);
    let cause = cause_of(&parsed);
    assert_eq!(cause.pattern, Pattern::Order, "{}", cause.sentence);
    assert_eq!(cause.events, events(&parsed, &["two", "set"]));
    // What a function only gives back is looked at by its caller.
    parsed.trace.conditions[0].site = site("main", 20);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("read-write-read")));
}
