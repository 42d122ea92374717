//! What is told of runs whose failure depends on nothing that the passing run has otherwise, but for the ways that
//! threads take.

use crate::support::causes::{cause_of, events, trace};
use crate::support::runs::{Run, cause_across, compared};
use encoders::dsl::{Parsed, parse};
use explain::{CauseEvent, Flipped, Side, across};
use model::{Point, Points, Site};
use solver::Order;

/// `b` looks before `a` says that there is something, and both end when they are told to.
const LOOKED_TOO_EARLY: &str = "
    cell said 32 = 0
    cell stop 32 = 0
    t0: fork a
    t0: fork b
    a: [say] W said 1
    b: [look] R said -> r
    b: assume r == 0
    t0: [halt] W stop 1
    a: [end] R stop -> s
    a: assume s == 1
    t0: join a
    t0: join b
    t0: fail
";

/// The thread that is the first to go another way is why, and not the one with the lowest number.
#[test]
fn what_the_first_thread_to_part_found_is_told() {
    let failing = Run::failing(LOOKED_TOO_EARLY);
    let passing = LOOKED_TOO_EARLY.replace("r == 0", "r == 1").replace("s == 1", "s == 0");
    let parsed = parse(&passing.replace("t0: fail", "")).expect("the text is a trace");
    // The initial thread creates both, then come `a`'s start, its word, `b`, `a`'s look, and the rest.
    let passing = Run::in_order(parsed, &[0, 0, 0, 1, 1, 2, 2, 2, 1, 1, 0, 0, 0, 0]);
    let found = compared(&failing, &passing);
    let flipped = Order { before: failing.event("look"), after: failing.event("say") };
    assert_eq!(found.flipped, Flipped::Reversed(flipped), "{found:?}");
}

/// `a` counts twice on one line; `b` takes what it has read, and leaves nothing.
const TAKEN_LATE: &str = "
    cell count 32 = 0
    t0: fork a
    t0: fork b
    a: R count -> p
    a: [one] W count p + 1
    a: R count -> q
    a: [two] W count q + 1
    b: [look] R count -> r
    b: assume r == 1
    b: [clear] W count 0
    t0: join a
    t0: join b
    t0: fail
";

/// Both counts are on one line, in another round.
fn in_one_line(mut parsed: Parsed) -> Parsed {
    for label in ["one", "two"] {
        let id = parsed.event(label);
        let (file, function) = ("trace".to_owned(), "add".to_owned());
        let site = Site { file, line: 60, column: 1, function };
        parsed.trace.events[id.index()].stack = [site].into();
    }
    parsed
}

#[test]
fn what_came_between_a_look_and_the_write_that_clears_is_lost() {
    let parse = |text: &str| in_one_line(parse(text).expect("the text is a trace"));
    // `b` clears behind the second count, or sees and takes nothing before the first one is there.
    let turns =
        [vec![0; 3], vec![1; 3], vec![2; 2], vec![1; 2], vec![2], vec![1], vec![2], vec![0; 3]];
    let failing = Run::in_order(parse(TAKEN_LATE), &turns.concat());
    let passing = TAKEN_LATE.replace("r == 1", "r == 0").replace("t0: fail", "");
    let turns = [vec![0; 3], vec![1; 2], vec![2; 4], vec![1; 4], vec![0; 3]].concat();
    let passing = Run::in_order(parse(&passing), &turns);
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.case, Some("read-write-write"), "{cause:?}");
    let named = ["two", "look", "clear"].map(|label| failing.event(label));
    assert_eq!(cause.events, named.map(CauseEvent::Failing), "{cause:?}");
}

/// Both wait for an item; who comes second finds none, and has not looked again.
const TAKEN_FIRST: &str = "
    cell items 32 = 0
    t0: fork a
    t0: fork b
    t0: fork c
    a: lock m
    a: [look-a] R items -> p
    a: assume p == 0
    a: wait change m
    a: [use-a] R items -> q
    a: assume q != 0
    a: [take] W items q - 1
    a: unlock m
    b: lock m
    b: [look] R items -> r
    b: assume r == 0
    b: wait change m
    b: [use] R items -> s
    b: unlock m
    b: fail s == 0
    c: lock m
    c: [put] W items 1
    c: broadcast change
    c: unlock m
";

#[test]
fn what_a_thread_was_woken_for_was_taken_before_it_looked() {
    // `b` comes when there is something, and `a` is not there yet.
    let passing = TAKEN_FIRST.replace("r == 0", "r == 1").replace("p == 0", "p == 1");
    let passing = passing.replace("b: wait change m", "").replace("a: wait change m", "");
    let passing = parse(&passing.replace("b: fail s == 0", ""));
    let parsed = passing.expect("the text is a trace");
    let turns = [vec![0; 4], vec![3; 6], vec![2; 6], vec![1; 7], vec![0]].concat();
    let passing = Run::in_order(parsed, &turns);
    let turns = [vec![0; 5], vec![1; 4], vec![2; 4], vec![3; 6], vec![1; 6], vec![2; 5]].concat();
    let failing = Run::in_order(parse(TAKEN_FIRST).expect("the text is a trace"), &turns);
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.case, Some("read-write-read"), "{cause:?}");
    let named = ["take", "look", "use"].map(|label| failing.event(label));
    assert_eq!(cause.events, named.map(CauseEvent::Failing), "{cause:?}");
}

/// A block is taken by two threads, and in a run that passes by one. What it held from the start is an event of the passing
/// run only.
const TAKEN_TWICE: &str = "
    cell users 32 = 0
    t0: fork a
    t0: fork b
    t0: fork c
    a: [first] RMW users -> x = x + 1
    b: [second] RMW users -> y = y + 1
    b: fail y != 0
    c: [made] W users 0
    c: W more 1
";

/// A point for every line of the text.
fn points(run: &Run) -> Points {
    let events = || run.parsed.trace.events.iter();
    let line = |event: &model::Event| event.stack[0].line;
    let last = events().map(line).max().unwrap_or(0);
    let point = |event: &model::Event| Point {
        site: line(event),
        gates: u64::from(line(event)),
        ..Point::default()
    };
    let sites = (0..=last).map(|line| format!("line {line}")).collect();
    Points { sites, of: events().map(point).collect() }
}

/// What a thread did before something that it did in both runs, it did not come too late to do.
#[test]
fn what_was_there_from_the_start_did_not_come_too_late() {
    let passing = TAKEN_TWICE
        .replace("a: [first] RMW users -> x = x + 1", "")
        .replace("b: fail y != 0", "b: assume y == 0");
    let parsed = parse(&passing).expect("the text is a trace");
    let turns = [vec![0; 5], vec![3; 4], vec![2; 3], vec![1; 2]].concat();
    let passing = Run::in_order(parsed, &turns);
    let there = points(&passing);
    let other = Side { points: Some(&there), ..passing.side() };
    let flipped = |text: &str| {
        let failing = Run::cut(text);
        let here = points(&failing);
        let found = across(Side { points: Some(&here), ..failing.side() }, other, None);
        found.map(|found| found.flipped)
    };
    let text = TAKEN_TWICE.replace("c: [made] W users 0", "");
    let found = flipped(&text);
    assert!(!matches!(found, Some(Flipped::Late { .. })), "{found:?}");
    // A thread that was cut off before both may have been about to.
    let found = flipped(&text.replace("c: W more 1", ""));
    assert!(matches!(found, Some(Flipped::Late { .. })), "{found:?}");
}

/// Two threads look whether something is there, and make it; their pointers to what they share are counted.
const MADE_TWICE: &str = "
    cell strong 32 = 2
    t0: fork a
    t0: fork b
    a: [look-a] R there -> a0
    a: assume a0 == 0
    a: [put-a] W there 1
    a: [count-a] RMW made -> a1 = a1 + 1
    a: [leave-a] RMW strong -> a2 = a2 - 1
    b: [look-b] R there -> b0
    b: assume b0 == 0
    b: [put-b] W there 1
    b: [count-b] RMW made -> b1 = b1 + 1
    b: W last 2
    t0: [share] RMW strong -> s = s + 1
    t0: assume s < 2
    t0: join a
    t0: join b
    t0: R last -> l
    t0: [total] R made -> n
    t0: fail n != 1
";

/// How many pointers there were is another number in most runs. In this one, a single thread counted what was made, of
/// which there is no event.
#[test]
fn counts_of_pointers_tell_nothing_while_something_else_differs() {
    let once = MADE_TWICE
        .replace("a: [count-a] RMW made -> a1 = a1 + 1", "")
        .replace("b: assume b0 == 0", "b: assume b0 != 0")
        .replace("b: [put-b] W there 1", "")
        .replace("b: [count-b] RMW made -> b1 = b1 + 1", "")
        .replace("b: W last 2", "")
        .replace("t0: assume s < 2", "t0: assume s == 2")
        .replace("t0: R last -> l", "")
        .replace("t0: [total] R made -> n", "")
        .replace("t0: fail n != 1", "");
    let mut failing = Run::failing(MADE_TWICE);
    let mut passing = Run::passing(&once, [1, 2]);
    for run in [&mut failing, &mut passing] {
        for label in ["share", "leave-a"] {
            let event = run.event(label);
            let stack = &mut run.parsed.trace.events[event.index()].stack;
            let file = "/rustc/1/library/alloc/src/sync.rs".to_owned();
            let inside = Site { file, function: "clone".to_owned(), ..Site::default() };
            let sites: Vec<Site> = std::iter::once(inside).chain(stack.iter().cloned()).collect();
            *stack = sites.into();
        }
    }
    let found = compared(&failing, &passing);
    let flipped = Order { before: failing.event("look-b"), after: failing.event("put-a") };
    assert_eq!(found.flipped, Flipped::Reversed(flipped), "{found:?}");
    assert!(!found.failing.contains(&failing.event("share")), "{found:?}");
}

/// Both ask for a package's lock and look whether there is one left, and then each takes it.
const LAST_ONE: &str = "
    cell number 32 = 1
    cell state 32 = 0
    t0: fork a
    t0: fork b
    a: [ask-a] RMW state -> s = s + 1
    a: [look-a] R number -> a0
    a: assume a0 != 0
    a: [take-a] W number 0
    b: [ask-b] RMW state -> u = u + 1
    b: [look-b] R number -> b0
    b: assume b0 != 0
    b: [use-b] R number -> n
    b: fail n == 0
    t0: join a
    t0: join b
";

/// What both runs have in another order is only who had the lock first.
#[test]
fn who_met_first_in_a_lock_of_a_package_tells_less_than_what_was_read() {
    let alone = LAST_ONE
        .replace("a: assume a0 != 0", "a: assume a0 == 0")
        .replace("a: [take-a] W number 0", "")
        .replace("b: fail n == 0", "b: W number 0");
    let mut parsed = parse(LAST_ONE).expect("the text is a trace");
    let mut passing = Run::passing(&alone, [2, 1]);
    let of_package = |parsed: &mut Parsed| {
        for label in ["ask-a", "ask-b"] {
            let event = parsed.event(label);
            let stack = &mut parsed.trace.events[event.index()].stack;
            let file =
                "/home/me/.cargo/registry/src/index/lock_api-0.4.14/src/rwlock.rs".to_owned();
            let inside = Site { file, function: "read".to_owned(), ..Site::default() };
            *stack =
                std::iter::once(inside).chain(stack.iter().cloned()).collect::<Vec<_>>().into();
        }
    };
    of_package(&mut parsed);
    of_package(&mut passing.parsed);
    // Thread 2 looks before the other one takes what there is, and finds nothing behind that.
    let failing = Run::in_order(parsed, &[0, 0, 0, 1, 1, 1, 2, 2, 2, 1, 2, 2, 1, 0, 0, 0]);
    let cause = cause_across(&failing, &passing);
    let events =
        ["take-a", "look-b", "use-b"].map(|label| CauseEvent::Failing(failing.event(label)));
    assert_eq!(cause.events, events, "{}", cause.sentence);
}

/// Both take a number, and come with it to where the last one stands.
const NUMBERED: &str = "
    cell next 32 = 1
    cell last 32 = 0
    t0: fork a
    t0: fork b
    a: [take-a] RMW next -> i = i + 1
    a: lock m
    a: [put-a] W last i
    a: unlock m
    b: [take-b] RMW next -> j = j + 1
    b: lock m
    b: [put-b] W last j
    b: unlock m
    t0: join a
    t0: join b
    t0: R last -> n
    t0: fail n == 1
";

#[test]
fn who_took_a_number_was_overtaken_before_it_came_with_it() {
    let mut parsed = trace(NUMBERED);
    for [one, other] in [["take-a", "take-b"], ["put-a", "put-b"]] {
        let [one, other] = [one, other].map(|label| parsed.event(label).index());
        parsed.trace.events[other].stack = parsed.trace.events[one].stack.clone();
    }
    let cause = cause_of(&parsed);
    assert_eq!(cause.case, Some("overtaken"), "{cause:?}");
    // Each of them may be the one that is overtaken: their numbers follow from the order.
    let told = |[one, other]: [&str; 2]| {
        let label = |step: &str, thread: &str| format!("{step}-{thread}");
        let labels = [("take", other), ("put", other), ("take", one), ("put", one)];
        let labels = labels.map(|(step, thread)| label(step, thread));
        events(&parsed, &labels.each_ref().map(String::as_str))
    };
    assert!([["a", "b"], ["b", "a"]].map(told).contains(&cause.events), "{cause:?}");
}
