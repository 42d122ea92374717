//! What is no announcement of what a thread does later.

use crate::support::causes::{cause_of, trace};
use crate::support::runs::{Run, cause_across};
use model::Site;

/// What a thread wrote and then said is not what it writes when it comes there the next time.
#[test]
fn what_was_said_of_one_round_is_no_announcement_of_the_next() {
    let mut parsed = trace(
        "
        sem more 0
        t0: fork a
        a: [first] W sum 1
        a: R sum -> r1
        a: R sum -> r2
        a: R sum -> r3
        a: R sum -> r4
        a: [said] W phase 1
        a: sem-wait more
        a: [again] W sum 3
        t0: R phase -> p
        t0: assume p == 1
        t0: W sum 2
        t0: post more
        t0: fork c
        c: [seen] R phase -> q
        c: assume q == 1
        c: [early] R sum -> s
        c: fail s == 2
        ",
    );
    assert_eq!(cause_of(&parsed).case, Some("announced-too-early"));
    let [first, again] = ["first", "again"].map(|label| parsed.event(label).index());
    parsed.trace.events[again].stack = parsed.trace.events[first].stack.clone();
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("announced-too-early"), "{}", cause.sentence);
}

/// A shared pointer's count says nothing of what the thread does later.
#[test]
fn what_a_shared_pointer_counts_is_no_announcement() {
    let mut parsed = trace(
        "
        cell count 64 = 1
        a: [take] W count 2
        a: [data] W value 7
        b: [look] R count -> n
        b: assume n == 2
        b: [early] R value -> got
        b: fail got == 0
        ",
    );
    assert_eq!(cause_of(&parsed).case, Some("announced-too-early"));
    for (label, function) in [("take", "clone<App>"), ("look", "drop<App>")] {
        let id = parsed.event(label).index();
        let own = parsed.trace.events[id].stack[0].clone();
        let file = "/rustc/0a1b/library/alloc/src/sync.rs".to_owned();
        let count = Site { file, function: function.to_owned(), ..own.clone() };
        parsed.trace.events[id].stack = [count, own].into();
    }
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("announced-too-early"), "{}", cause.sentence);
}

/// A thread takes a unit of a semaphore of the C++ library before it writes, and the one who reads too early gives another
/// one then. What is left of the units decides only whether anybody has to be woken.
#[test]
fn how_many_units_a_semaphore_has_left_is_no_announcement() {
    let passing = "
        cell units 32 = 1
        cell sum 32 = 0
        t0: fork a
        t0: fork b
        a: [give] RMW units -> v = v + 1
        a: assume v == 0
        a: [early] R sum -> s
        a: assume s == 1
        b: [take] RMW units -> u = u - 1
        b: assume u == 1
        b: W sum 1
        t0: join a
        t0: join b
    ";
    let failing = passing.replace("s == 1", "s == 0").replace("a: assume s", "a: fail s");
    let failing = failing.replace("b: W sum 1", "").replace("t0: join a\n        t0: join b", "");
    let mut runs = [Run::cut(&failing), Run::passing(passing, [2, 1])];
    let [failing, passing] = &runs;
    assert_eq!(cause_across(failing, passing).case, Some("announced-too-early"));
    for run in &mut runs {
        for label in ["take", "give"] {
            let id = run.parsed.event(label).index();
            let event = &mut run.parsed.trace.events[id];
            let own = event.stack[0].clone();
            let file = "/usr/include/c++/12/bits/semaphore_base.h".to_owned();
            let unit = Site { file, function: "_M_release".to_owned(), ..own.clone() };
            event.stack = [unit, own].into();
        }
    }
    let [failing, passing] = &runs;
    assert_ne!(cause_across(failing, passing).case, Some("announced-too-early"));
}
