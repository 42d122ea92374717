//! The pairs that are tried the other way round on the real program.

use crate::support::explained;
use encoders::dsl::{Parsed, parse};
use explain::{Explanation, Flip, MOST_FLIPS, flipped_order, flips, serial_order};
use model::{EventId, EventKind, EventTrace};
use std::fmt::Write as _;

/// Two clerks check under the lock whether a seat is free, and sell it in a second section. Along
/// these paths both sell, so that every schedule fails.
const CHECK_THEN_ACT: &str = "
    cell sold 32 = 0
    t0: fork a
    t0: fork b
    a: [check-a] lock m
    a: [seen-a] R sold -> a0
    a: assume a0 < 1
    a: unlock m
    a: [act-a] lock m
    a: R sold -> a1
    a: [sell-a] W sold a1 + 1
    a: [done-a] unlock m
    b: [check-b] lock m
    b: [seen-b] R sold -> b0
    b: assume b0 < 1
    b: unlock m
    b: [act-b] lock m
    b: R sold -> b1
    b: [sell-b] W sold b1 + 1
    b: [done-b] unlock m
    t0: join a
    t0: join b
    t0: [total] R sold -> sum
    t0: fail sum > 1
";

fn found(parsed: &Parsed) -> (Explanation, Vec<Flip>) {
    let explanation = explained(&parsed.trace, 1);
    let failing = explanation.failing.as_ref().expect("a failing schedule");
    let flips = flips(&parsed.trace, &failing.schedule, &failing.evaluation);
    (explanation, flips)
}

#[test]
fn a_check_is_held_back_until_the_other_thread_acted() {
    let parsed = parse(CHECK_THEN_ACT).expect("the text is a trace");
    let (explanation, flips) = found(&parsed);
    let cause = explanation.root_cause.expect("a cause");
    assert_eq!(cause.kind, explain::CauseKind::FailsAlways);
    let flip = |before: &str, after: &str| Flip {
        before: parsed.event(before),
        after: parsed.event(after),
    };
    // Whole sections: the check is held back at its lock, and the sale goes on to its unlock.
    let right = [flip("check-a", "done-b"), flip("check-b", "done-a")];
    let place = flips.iter().position(|flip| right.contains(flip));
    assert!(place.is_some_and(|place| place < 6), "{flips:?}");
}

#[test]
fn flips_can_be_forced_and_are_few_and_distinct() {
    for text in [CHECK_THEN_ACT, crate::support::programs::PFSCAN, crate::support::programs::BANK] {
        let parsed = parse(text).expect("the text is a trace");
        let trace = &parsed.trace;
        let (explanation, flips) = found(&parsed);
        let order = explanation.failing.expect("a failing schedule").schedule.order;
        let place = |id| order.iter().position(|other| *other == id).expect("scheduled");
        assert!(!flips.is_empty() && flips.len() <= MOST_FLIPS, "{flips:?}");
        for (index, flip) in flips.iter().enumerate() {
            let (before, after) = (trace.event(flip.before), trace.event(flip.after));
            assert_ne!(before.thread, after.thread, "{flip:?}");
            assert!(place(flip.before) < place(flip.after), "{flip:?}");
            assert!(!matches!(after.kind, EventKind::Failure), "{flip:?}");
            assert!(!flips[..index].contains(flip), "twice: {flip:?}");
        }
    }
}

/// The interrupting access is moved behind the second access too, not only before the first.
#[test]
fn an_interrupted_section_is_put_together_both_ways() {
    let parsed = parse(
        "
        t0: fork a
        t0: fork b
        a: [length] R size -> n
        a: [use] R size -> k
        a: fail n != k
        b: [cut] W size 1
        ",
    )
    .expect("the text is a trace");
    let (_, flips) = found(&parsed);
    let cut = parsed.event("cut");
    assert!(flips.contains(&Flip { before: parsed.event("length"), after: cut }), "{flips:?}");
    assert!(flips.contains(&Flip { before: cut, after: parsed.event("use") }), "{flips:?}");
}

/// A thread that holds a lock which the other one needs on its way is held back before the lock.
#[test]
fn nobody_is_held_back_with_a_lock_that_the_other_needs() {
    let parsed = parse(
        "
        t0: fork a
        t0: fork b
        a: [enter] lock m
        a: [flag] R ready -> f
        a: assume f == 0
        a: unlock m
        b: lock m
        b: W books 1
        b: unlock m
        b: [set] W ready 1
        t0: join a
        t0: join b
        t0: fail
        ",
    )
    .expect("the text is a trace");
    let (_, flips) = found(&parsed);
    let flip = Flip { before: parsed.event("enter"), after: parsed.event("set") };
    assert!(flips.contains(&flip), "{flips:?}");
    let inside = Flip { before: parsed.event("flag"), after: parsed.event("set") };
    assert!(!flips.contains(&inside), "{flips:?}");
}

#[test]
fn long_traces_give_no_more_flips_than_can_be_tried() {
    let mut text = String::from("t0: fork a\nt0: fork b\n");
    for round in 0..300 {
        for thread in ["a", "b"] {
            let _ = writeln!(text, "{thread}: R x -> {thread}{round}");
            let _ = writeln!(text, "{thread}: W x {thread}{round} + 1");
        }
    }
    text.push_str("t0: join a\nt0: join b\nt0: R x -> z\nt0: fail z < 600\n");
    let parsed = parse(&text).expect("the text is a trace");
    let trace = &parsed.trace;
    // Turn by turn.
    let mut order = Vec::new();
    let threads: Vec<_> = trace.threads.iter().map(|thread| thread.events.clone()).collect();
    let last = threads[0].len() - 4;
    order.extend(&threads[0][..last]);
    for (one, other) in threads[1].iter().zip(&threads[2]) {
        order.extend([*one, *other]);
    }
    order.extend(&threads[0][last..]);
    let schedule = model::Schedule { order };
    let mut evaluator = model::evaluate::Evaluator::new(trace);
    let evaluation = evaluator.run(&schedule.order, &|_| None).expect("it can happen");
    assert!(evaluation.fails);
    let once = flips(trace, &schedule, &evaluation);
    assert_eq!(once.len(), MOST_FLIPS);
    assert_eq!(once, flips(trace, &schedule, &evaluation));
    // What is near the failure comes first.
    let end = schedule.order.len();
    let place = |id| schedule.order.iter().position(|other| *other == id).expect("scheduled");
    assert!(once.iter().take(8).all(|flip| place(flip.after) + 40 > end), "{once:?}");
}

/// Each event once, and in the order of its thread.
fn check_order(trace: &EventTrace, order: &[EventId]) {
    assert_eq!(order.len(), trace.events.len());
    for thread in &trace.threads {
        let own = order.iter().copied().filter(|id| trace.event(*id).thread == thread.id);
        assert!(own.eq(thread.events.iter().copied()), "{}: {order:?}", thread.name);
    }
}

#[test]
fn orders_with_a_flip_reverse_the_pair_and_hold_all_events() {
    for text in [CHECK_THEN_ACT, crate::support::programs::PFSCAN, crate::support::programs::BANK] {
        let parsed = parse(text).expect("the text is a trace");
        let (explanation, flips) = found(&parsed);
        let schedule = explanation.failing.expect("a failing schedule").schedule;
        for flip in flips {
            let order = flipped_order(&parsed.trace, &schedule, flip);
            check_order(&parsed.trace, &order);
            let place = |id| order.iter().position(|other| *other == id);
            assert!(place(flip.after) < place(flip.before), "{flip:?}: {order:?}");
            let same = order.iter().zip(&schedule.order).take_while(|(a, b)| a == b).count();
            let cut = schedule.order.iter().position(|id| *id == flip.before);
            assert_eq!(Some(same), cut, "nothing changes before the pair");
        }
    }
}

#[test]
fn serial_orders_run_one_thread_after_the_other() {
    let parsed = parse(CHECK_THEN_ACT).expect("the text is a trace");
    let trace = &parsed.trace;
    for (backwards, first, second) in [(false, "done-a", "check-b"), (true, "done-b", "check-a")] {
        let order = serial_order(trace, backwards);
        check_order(trace, &order);
        let place = |label| order.iter().position(|id| *id == parsed.event(label));
        assert!(place(first) < place(second), "{order:?}");
    }
}

/// Where everybody locks but one thread once, what that thread did is tried first, however far
/// from the failure.
#[test]
fn the_access_that_forgot_the_lock_comes_first() {
    let mut text = String::from(
        "
        cell n 32 = 0
        t0: fork a
        t0: fork b
        a: lock m
        a: [read] R n -> x
        a: assume x == 0
        b: [bare-read] R n -> y
        b: assume y == 0
        b: [bare] W n 1
        a: [write] W n 1
        a: unlock m
        ",
    );
    // Each thread's next read says which of the two added before it.
    for round in 1..9 {
        let thread = if round % 2 == 0 { 'a' } else { 'b' };
        let next = round + 1;
        let _ = writeln!(
            text,
            "{thread}: lock m
             {thread}: R n -> {thread}{round}
             {thread}: assume {thread}{round} == {round}
             {thread}: W n {next}
             {thread}: unlock m",
        );
    }
    text.push_str(
        "
        t0: join a
        t0: join b
        t0: R n -> sum
        t0: fail sum != 10
        ",
    );
    let parsed = parse(&text).expect("the text is a trace");
    let (_, flips) = found(&parsed);
    let (bare, bare_read) = (parsed.event("bare"), parsed.event("bare-read"));
    let about = |id: EventId| id == bare || id == bare_read;
    let first = flips.first().expect("a flip");
    assert!(about(first.before) || about(first.after), "{flips:?}");
}

/// An index that two threads advance at once puts right values into the wrong places.
#[test]
fn what_says_where_a_write_goes_is_tried_too() {
    let mut parsed = parse(
        "
        cell out 32 = 0
        cell seen0 32 = 0
        cell pace 32 = 0
        t0: fork a
        t0: fork b
        a: [look-a] R out -> x
        a: assume x == 0
        a: R seen0 -> p
        a: W seen0 p + 1
        b: R out -> y
        b: assume y == 0
        b: R seen0 -> q
        b: W seen0 q + 1
        a: [next-a] W out 1
        b: [next-b] W out 1
        a: [faster] W pace 0
        b: [pace] R pace -> z
        b: assume z == 0
        t0: join a
        t0: join b
        t0: R seen0 -> n
        t0: fail n == 2
        ",
    )
    .expect("the text is a trace");
    for condition in parsed.trace.conditions.iter_mut().take(2) {
        condition.kind = model::PathConditionKind::Address;
    }
    let (_, flips) = found(&parsed);
    let out = ["look-a", "next-a", "next-b"].map(|label| parsed.event(label));
    let pace = ["faster", "pace"].map(|label| parsed.event(label));
    let first = |of: &[EventId]| {
        flips.iter().position(|flip| of.contains(&flip.before) && of.contains(&flip.after))
    };
    let places = first(&out).zip(first(&pace));
    assert!(places.is_some_and(|(out, pace)| out < pace), "{flips:?}");
}
