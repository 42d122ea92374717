//! Runs that pass because a thread waited a round longer, or one less. The lines of the two texts are the places of the events, so
//! that what both runs have stands on the same lines.

use crate::support::runs::{Run, compared};
use encoders::dsl::parse;
use explain::Flipped;
use model::EventTrace;
use solver::Order;

/// A worker has ended, who ends it has waited for that and finds nothing queued; somebody queues all the same.
const WAITS_ONCE: &str = "
    cell stopped 32 = 0
    cell queued 32 = 0
    t0: fork a
    t0: fork b
    a: [stop] W stopped 1
    b: [look] R stopped -> b0
    b: assume b0 > 0

    b: [left] R queued -> b1
    b: assume b1 < 1
    t0: [queue] W queued 1
    t0: join a
    t0: join b
    t0: [rest] R queued -> sum
    t0: fail sum > 0
";

/// Who ends it looks once more before the worker has ended, and by then there is something queued.
const WAITS_TWICE: &str = "
    cell stopped 32 = 0
    cell queued 32 = 0
    t0: fork a
    t0: fork b
    a: [stop] W stopped 1
    b: [look] R stopped -> b0
    STEP
    b: [again] R stopped -> b1
    b: [left] R queued -> b2
    b: assume b2 >= 1
    t0: [queue] W queued 1
    t0: join a
    t0: join b
    t0: [rest] W queued 0

";

#[test]
fn a_thread_that_only_waits_a_round_longer_is_told_from_one_that_does_something_else() {
    let failing = Run::failing(WAITS_ONCE);
    let waits = |step: &str| {
        let mut parsed = parse(&WAITS_TWICE.replace("STEP", step)).expect("the text is a trace");
        // Both looks are at one place, in a loop.
        let looks = ["look", "again"].map(|label| parsed.event(label));
        parsed.trace.events[looks[1].index()].stack =
            parsed.trace.events[looks[0].index()].stack.clone();
        let trace = &parsed.trace;
        let of = |thread: usize| trace.threads[thread].events.clone();
        let at = |label: &str| of(2).iter().position(|id| *id == parsed.event(label));
        let (own, look) = (of(2), at("again").expect("the look"));
        let joins = of(0).iter().position(|id| trace.event(*id).kind.name() == "join");
        let joins = joins.expect("a join");
        let mut order = of(0)[..joins].to_vec();
        order.extend(&own[..look]);
        order.extend(of(1));
        order.extend(&own[look..]);
        order.extend(&of(0)[joins..]);
        let turns: Vec<usize> = order.iter().map(|id| trace.event(*id).thread.index()).collect();
        compared(&failing, &Run::in_order(parsed, &turns)).only_waits
    };
    assert!(waits(""));
    assert!(!waits("b: W looked 1"));
}

/// Who ends it looks in vain first in the run that fails.
const FAILS_LATER: &str = "
    cell stopped 32 = 0
    cell queued 32 = 0
    t0: fork a
    t0: fork b
    a: [stop] W stopped 1
    b: [look] R stopped -> b0
    b: assume b0 < 1
    b: [again] R stopped -> b1
    b: [left] R queued -> b2
    b: assume b2 < 1
    t0: [queue] W queued 1
    t0: join a
    t0: join b
    t0: [rest] R queued -> sum
    t0: fail sum > 0
";

/// In the run that passes it looks once, and finds something queued.
const LOOKS_ONCE: &str = "
    cell stopped 32 = 0
    cell queued 32 = 0
    t0: fork a
    t0: fork b
    a: [stop] W stopped 1
    b: [look] R stopped -> b0
    b: assume b0 > 0

    b: [left] R queued -> b1
    b: assume b1 >= 1
    t0: [queue] W queued 1
    t0: join a
    t0: join b
    t0: [rest] W queued 0

";

#[test]
fn a_thread_that_only_waits_a_round_less_is_told_too() {
    let mut parsed = parse(FAILS_LATER).expect("the text is a trace");
    let looks = ["look", "again"].map(|label| parsed.event(label));
    parsed.trace.events[looks[1].index()].stack =
        parsed.trace.events[looks[0].index()].stack.clone();
    let turns = |stretches: &[(usize, usize)], trace: &EventTrace| -> Vec<usize> {
        let some = stretches.iter().flat_map(|(thread, events)| vec![*thread; *events]);
        let some: Vec<usize> = some.collect();
        let rest = trace.events.len() - some.len();
        some.into_iter().chain(vec![0; rest]).collect()
    };
    // The look in vain comes before the worker has ended, and all of b before something is queued.
    let order = turns(&[(0, 3), (2, 2), (1, 3), (2, 3)], &parsed.trace);
    let failing = Run::in_order(parsed, &order);
    let parsed = parse(LOOKS_ONCE).expect("the text is a trace");
    let order = turns(&[(0, 3), (1, 3), (0, 1), (2, 4)], &parsed.trace);
    let passing = Run::in_order(parsed, &order);
    assert!(compared(&failing, &passing).only_waits);
}

/// Who counts is told to stop when it has counted once.
const COUNTED_ONCE: &str = "
    cell stopped 32 = 0
    cell count 32 = 0
    t0: fork a
    t0: fork b
    a: W count 1
    a: [look] R stopped -> s0
    a: assume s0 == 1


    t0: [stop] W stopped 1
    t0: join a
    t0: join b
    t0: [sum] R count -> sum
    t0: fail sum < 3
";

/// It counts twice more before it is told.
const COUNTED_ON: &str = "
    cell stopped 32 = 0
    cell count 32 = 0
    t0: fork a
    t0: fork b
    a: W count 1
    a: [look] R stopped -> s0
    a: assume s0 == 0
    a: W count 2
    a: [last] W count 3
    t0: [stop] W stopped 1
    t0: join a
    t0: join b
    t0: [sum] R count -> sum

";

#[test]
fn what_a_thread_does_while_the_other_one_of_the_pair_is_held_back_is_counted() {
    let failing = Run::failing(COUNTED_ONCE);
    let parsed = parse(COUNTED_ON).expect("the text is a trace");
    let turns = [vec![0; 3], vec![1; 6], vec![2; 2], vec![0; 5]].concat();
    let found = compared(&failing, &Run::in_order(parsed, &turns));
    let pair = Order { before: failing.event("stop"), after: failing.event("look") };
    assert_eq!(found.flipped, Flipped::Reversed(pair));
    assert_eq!(found.in_between, 2);
}
