//! The difference between a failing run and one that passes along other paths. The lines of the
//! two texts are the places of the events, so that what both runs have stands on the same lines.

use crate::support::runs::{Run, cause_across, compared};
use encoders::dsl::{Parsed, parse};
use explain::{CauseEvent, Flipped, Side, across};
use model::evaluate::Evaluator;
use model::{EventId, Point, Points, ReadRef, Schedule, Site};
use solver::Order;

/// Two clerks check under the lock whether a seat is free, and sell it in a second section.
const BOTH_SELL: &str = "
    cell sold 32 = 0
    t0: fork a
    t0: fork b
    a: lock m
    a: [seen-a] R sold -> a0
    a: assume a0 < 1
    a: unlock m
    a: lock m
    a: [again-a] R sold -> a1
    a: [sell-a] W sold a1 + 1
    a: unlock m
    b: lock m
    b: [seen-b] R sold -> b0
    b: assume b0 < 1
    b: unlock m
    b: lock m
    b: [again-b] R sold -> b1
    b: [sell-b] W sold b1 + 1
    b: unlock m

    t0: join a
    t0: join b
    t0: [total] R sold -> sum
    t0: fail sum > 1
";

const ONE_SELLS: &str = "
    cell sold 32 = 0
    t0: fork a
    t0: fork b
    a: lock m
    a: [seen-a] R sold -> a0
    a: assume a0 < 1
    a: unlock m
    a: lock m
    a: [again-a] R sold -> a1
    a: [sell-a] W sold a1 + 1
    a: unlock m
    b: lock m
    b: [seen-b] R sold -> b0
    b: assume b0 >= 1
    b: unlock m




    b: [refuse] W refused 1
    t0: join a
    t0: join b
    t0: [total] R sold -> sum
    t0: assume sum <= 1
";

#[test]
fn a_check_that_comes_after_the_act_takes_the_other_branch() {
    let failing = Run::failing(BOTH_SELL);
    let passing = Run::passing(ONE_SELLS, [1, 2]);
    let found = compared(&failing, &passing);
    let flipped = Order { before: failing.event("seen-b"), after: failing.event("sell-a") };
    assert_eq!(found.flipped, Flipped::Reversed(flipped));
    assert!(found.failing_only.contains(&failing.flow("init", "seen-b")), "{found:?}");
    assert!(found.passing_only.contains(&passing.flow("sell-a", "seen-b")), "{found:?}");
    assert!(found.failing.contains(&failing.event("sell-b")), "{found:?}");
    // The new path has a mark, and is explained by one branch.
    assert!(found.passing.contains(&passing.event("refuse")), "{found:?}");
    assert_eq!(found.matching.in_failing(passing.event("refuse")), None);
    assert_eq!(found.branches.len(), 1, "{found:?}");
    assert_eq!(found.branches[0].reads, [failing.flow("init", "seen-b").read]);
    assert!(found.failing.len() <= 7 && found.passing.len() <= 6, "{found:?}");
}

/// Two workers drain a queue of two jobs: each looks before it takes.
const ONE_ROUND_TOO_MANY: &str = "
    cell pending 32 = 2
    t0: fork a
    t0: fork b
    a: [look-a1] R pending -> a0
    a: assume a0 > 0
    a: [take-a1] RMW pending -> a1 = a1 - 1
    a: [look-a2] R pending -> a2
    a: assume a2 > 0
    a: [take-a2] RMW pending -> a3 = a3 - 1
    a: [look-a3] R pending -> a4
    a: assume a4 <= 0
    b: [look-b1] R pending -> b0
    b: assume b0 > 0
    b: [take-b1] RMW pending -> b1 = b1 - 1
    b: [look-b2] R pending -> b2
    b: assume b2 <= 0
    t0: join a
    t0: join b
    t0: [rest] R pending -> rest
    t0: fail rest < 0
";

const AS_MANY_AS_JOBS: &str = "
    cell pending 32 = 2
    t0: fork a
    t0: fork b
    a: [look-a1] R pending -> a0
    a: assume a0 > 0
    a: [take-a1] RMW pending -> a1 = a1 - 1
    a: [look-a2] R pending -> a2
    a: assume a2 > 0
    a: [take-a2] RMW pending -> a3 = a3 - 1
    a: [look-a3] R pending -> a4
    a: assume a4 <= 0
    b: [look-b1] R pending -> b0
    b: assume b0 <= 0




    t0: join a
    t0: join b
    t0: [rest] R pending -> rest
    t0: assume rest == 0
";

#[test]
fn a_round_too_many_is_explained_by_the_look_before_it() {
    let failing = Run::failing(ONE_ROUND_TOO_MANY);
    let passing = Run::passing(AS_MANY_AS_JOBS, [1, 2]);
    let found = compared(&failing, &passing);
    assert!(found.passing_only.contains(&passing.flow("take-a2", "look-b1")), "{found:?}");
    assert!(found.failing.contains(&failing.event("take-b1")), "{found:?}");
    assert_eq!(found.matching.in_passing(failing.event("take-b1")), None);
    let trace = &failing.parsed.trace;
    let Flipped::Reversed(flipped) = found.flipped else { panic!("{found:?}") };
    assert_ne!(trace.event(flipped.before).thread, trace.event(flipped.after).thread);
    assert!(found.failing.len() <= 8, "{found:?}");
    assert!(found.distance > 0);
}

/// The orders shown are those that the runs have: sorted by each run's own schedule.
#[test]
fn each_side_is_in_its_own_order() {
    let failing = Run::failing(BOTH_SELL);
    let passing = Run::passing(ONE_SELLS, [1, 2]);
    let found = compared(&failing, &passing);
    let sorted = |events: &[EventId], run: &Run| {
        let place = |id: &EventId| run.schedule.order.iter().position(|other| other == id);
        events.windows(2).all(|pair| place(&pair[0]) < place(&pair[1]))
    };
    assert!(sorted(&found.failing, &failing) && sorted(&found.passing, &passing), "{found:?}");
}

#[test]
fn what_is_there_because_of_another_data_flow_follows_from_it() {
    let failing = Run::failing(BOTH_SELL);
    let passing = Run::passing(ONE_SELLS, [1, 2]);
    let found = compared(&failing, &passing);
    let read = |label: &str| ReadRef { event: failing.event(label), part: 0 };
    // `b` sells in the failing run alone, because of what it has seen.
    assert_eq!(found.failing_only.len(), 2, "{found:?}");
    assert_eq!(found.follows, [(read("total"), vec![read("seen-b")])].into());
    assert_eq!(found.operations, 2, "what `a` wrote and `b` has seen");
}

const LAST_OF_TWO: &str = "
    cell x 32 = 0
    cell log 32 = 0
    t0: fork a
    t0: fork b
    a: [wa] W x 1
    a: [log-a] W log 1
    b: [wb] W x 2
    b: [log-b] W log 2
    t0: join a
    t0: join b
    t0: [total] R x -> last
    t0: fail last == 2
";

const LAST_ELSEWHERE: &str = "
    cell x 32 = 0
    cell log 32 = 0
    t0: fork a
    t0: fork b
    a: [wa] W x 1
    a: [log-a] W log 1
    b: [wb] W x 2
    b: [log-b] W log 2
    t0: join a
    t0: join b


    t0: [elsewhere] R x -> last
    t0: assume last != 2
";

/// The pair that the passing run was made with need not be what keeps it from failing.
#[test]
fn a_pair_that_the_failure_does_not_depend_on_is_not_shown() {
    let (failing, passing) = (Run::failing(LAST_OF_TWO), Run::passing(LAST_ELSEWHERE, [2, 1]));
    let order = |before: &str, after: &str| {
        let (before, after) = (failing.event(before), failing.event(after));
        let place = |id: EventId| failing.schedule.order.iter().position(|other| *other == id);
        if place(before) < place(after) {
            Order { before, after }
        } else {
            Order { before: after, after: before }
        }
    };
    let forced = Some(order("log-a", "log-b"));
    let found = across(failing.side(), passing.side(), forced).expect("another order");
    assert_eq!(found.flipped, Flipped::Reversed(order("wa", "wb")), "{found:?}");
}

#[test]
fn runs_without_another_order_are_not_compared() {
    let failing = Run::failing(BOTH_SELL);
    assert_eq!(across(failing.side(), failing.side(), None), None);
}

const TOO_EARLY: &str = "
    cell conf 32 = 0
    t0: fork a
    t0: fork b
    a: W seen 1
    a: [use] R conf -> c
    a: [failure] fail c == 0
";

const IN_TIME: &str = "
    cell conf 32 = 0
    t0: fork a
    t0: fork b
    a: W seen 1
    a: [use] R conf -> c
    a: assume c != 0
    b: W loading 1
    b: [load] W conf 1
    t0: join a
    t0: join b
";

#[test]
fn what_the_process_did_not_live_to_write_came_too_late() {
    let failing = Run::cut(&(TOO_EARLY.to_owned() + "b: W loading 1"));
    let passing = Run::passing(IN_TIME, [2, 1]);
    let found = compared(&failing, &passing);
    let late = Flipped::Late {
        before: failing.event("use"),
        after: passing.event("load"),
        needs: passing.event("use"),
    };
    assert_eq!(found.flipped, late, "{found:?}");
    assert_eq!(found.failing, [failing.event("use"), failing.event("failure")]);
    assert_eq!(found.passing, [passing.event("load"), passing.event("use")]);
    assert_eq!(found.failing_only, [failing.flow("init", "use")]);
    assert_eq!(found.passing_only, [passing.flow("load", "use")]);
}

/// Two take something each after they looked whether there is any, and there was one.
const TAKERS: &str = "
    cell filled 32 = 1
    t0: fork a
    t0: fork b
    t0: fork c
    a: [look-a] R filled -> a0
    a: assume a0 > 0
    a: [again-a] R filled -> a1
    a: [take-a] W filled a1 - 1
    b: [look-b] R filled -> b0
    b: assume b0 > 0
    b: [again-b] R filled -> b1
    c: W loading 1
";

/// That a third one put something there in time in the passing run is not why the other run failed.
#[test]
fn a_write_that_makes_good_for_another_is_not_the_cause() {
    let one_place = |mut parsed: Parsed| {
        let stack = parsed.trace.event(parsed.event("look-a")).stack.clone();
        let look = parsed.event("look-b");
        parsed.trace.events[look.index()].stack = stack;
        parsed
    };
    let failing = TAKERS.replace("c: W loading 1", "b: fail b1 == 0\n    c: W loading 1");
    let mut parsed = one_place(parse(&failing).expect("the text is a trace"));
    let exit = parsed.trace.events.pop().expect("an event");
    parsed.trace.threads[exit.thread.index()].events.pop();
    let failing = Run::explained(parsed);

    let more = "b: assume b1 != 0\n    c: W loading 1\n    c: [put] W filled 1";
    let passing = TAKERS.replace("c: W loading 1", more);
    let parsed = one_place(parse(&passing).expect("the text is a trace"));
    let threads: Vec<Vec<EventId>> =
        parsed.trace.threads.iter().map(|thread| thread.events.clone()).collect();
    let [main, a, b, c] = &threads[..] else { panic!("{threads:?}") };
    let until_look = |own: &[EventId], look: &str| {
        own.iter().position(|id| *id == parsed.event(look)).expect("a look") + 1
    };
    let (split_a, split_b) = (until_look(a, "look-a"), until_look(b, "look-b"));
    let parts = [&main[..], &a[..split_a], &b[..split_b], &a[split_a..], &c[..], &b[split_b..]];
    let schedule = Schedule { order: parts.concat() };
    let evaluation = model::evaluate::evaluate(&parsed.trace, &schedule, &|_| None);
    let evaluation = evaluation.expect("the run can happen");
    let passing = Run { parsed, schedule, evaluation };

    let found = compared(&failing, &passing);
    assert!(matches!(found.flipped, Flipped::Late { .. }), "{found:?}");
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.case, Some("read-write-read"), "{cause:?}");
    let named = ["take-a", "look-b", "again-b"].map(|label| failing.event(label));
    assert_eq!(cause.events, named.map(CauseEvent::Failing), "{cause:?}");
}

const EVICTED_TWICE: &str = "
    cell used 32 = 2
    cell first 32 = 1
    t0: fork a
    t0: fork b
    a: [look] R used -> u
    a: assume u > 1
    a: [use] R first -> f
    a: fail f == 0
    b: R used -> v
    b: assume v > 1
    b: [pop] W first 0
    b: [less] W used v - 1
";

/// Whatever the runs differ in: the thread that failed went by what another one's operation had changed.
#[test]
fn a_check_that_was_overtaken_is_why_the_thread_came_its_way() {
    let failing = Run::failing(EVICTED_TWICE);
    let passing = EVICTED_TWICE.replace("a: assume u > 1", "a: assume u <= 1");
    let passing = passing.replace("a: [use] R first -> f", "").replace("a: fail f == 0", "");
    let passing = Run::passing(&(passing + "t0: join a\nt0: join b\n"), [2, 1]);
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.case, Some("read-write-use"), "{cause:?}");
    let named = ["less", "look", "use"].map(|label| failing.event(label));
    assert_eq!(cause.events, named.map(CauseEvent::Failing), "{cause:?}");
}

const JOINED: &str = "
    cell used 32 = 2
    cell first 32 = 1
    t0: R used -> u
    t0: assume u > 1
    t0: fork a
    t0: fork b
    a: W mode 1
    b: R mode -> m
    b: assume m == 0
    b: W first 0
    b: W used 1
    t0: join a
    t0: join b
    t0: R first -> f
    t0: fail f == 0
";

/// What a thread found out before it created and joined others is no check of what they did.
#[test]
fn who_joined_the_others_was_not_overtaken() {
    let failing = Run::failing(JOINED);
    let passing = JOINED.replace("assume m == 0", "assume m != 0").replace("b: W first 0", "");
    let passing =
        passing.replace("b: W used 1", "").replace("t0: fail f == 0", "t0: assume f != 0");
    let cause = cause_across(&failing, &Run::passing(&passing, [1, 2]));
    assert!(!cause.variables.contains(&"used".to_owned()), "{cause:?}");
}

fn stack(calls: &[(&str, u32)]) -> model::Stack {
    let site = |(function, line): &(&str, u32)| model::Site {
        file: "sessions.cc".to_owned(),
        line: *line,
        column: 1,
        function: (*function).to_owned(),
    };
    calls.iter().map(site).collect::<Vec<_>>().into()
}

/// Moves an event, where the run has it.
fn move_to(run: &mut Run, label: &str, calls: &[(&str, u32)]) {
    if let Some(event) = run.parsed.labels.get(label) {
        run.parsed.trace.events[event.index()].stack = stack(calls);
    }
}

/// What was checked in a call that came to its end did not lead to the failure in a later one.
#[test]
fn what_was_overtaken_in_an_earlier_call_is_not_why() {
    let text = "
        cell used 32 = 2
        cell first 32 = 1
        t0: fork a
        t0: fork b
        a: [look] R used -> u
        a: assume u > 1
        a: [use] R first -> f
        a: assume f == 0
        a: [again] R other -> o
        a: fail o == 0
        b: R used -> v
        b: assume v > 1
        b: [less] W used v - 1
        b: [pop] W first 0
        b: [done] W other 1
    ";
    let mut failing = Run::failing(text);
    let passing = text.replace("a: fail o == 0", "a: assume o != 0");
    // All but the last read of the one thread comes as in the run that fails.
    let parsed = parse(&(passing + "t0: join a\nt0: join b\n")).expect("the text is a trace");
    let threads = &parsed.trace.threads;
    let [main, one, two] = [0, 1, 2].map(|thread| threads[thread].events.as_slice());
    let again = one.iter().position(|id| *id == parsed.event("again")).expect("an event");
    let parts = [&main[..3], &one[..2], two, &one[2..again], &one[again..], &main[3..]];
    let schedule = Schedule { order: parts.concat() };
    let evaluation = model::evaluate::evaluate(&parsed.trace, &schedule, &|_| None);
    let evaluation = evaluation.expect("the run can happen");
    let mut passing = Run { parsed, schedule, evaluation };
    // The thread has left `count`, and its check, when it fails there.
    let check = [("has", 40), ("count", 44), ("client", 61)];
    for run in [&mut failing, &mut passing] {
        move_to(run, "look", &check);
        move_to(run, "use", &[("at", 551), ("count", 47), ("client", 61)]);
        move_to(run, "again", &check);
    }
    let end = failing.parsed.trace.failure.as_ref().expect("a failure").event;
    failing.parsed.trace.events[end.index()].stack =
        stack(&[("at", 553), ("count", 47), ("client", 61)]);
    let cause = cause_across(&failing, &passing);
    assert!(!cause.variables.contains(&"used".to_owned()), "{cause:?}");
}

const LEVELS: &str = "
    cell single 32 = 1
    cell level 32 = 5
    t0: fork a
    t0: fork b
    a: [own] W level 3
    a: [look] R single -> s
    a: assume s == 1
    a: [check] R level -> l
    a: fail l != 3
    b: [two] W single 0
    b: [other] W level 5
";

/// The passing run came to the same last look and saw something else there: on what else the thread had looked at on its
/// way nothing hangs.
#[test]
fn the_way_to_a_look_that_is_there_when_passing_does_not_decide() {
    let mut failing = Run::failing(LEVELS);
    let passing = LEVELS.replace("fail l != 3", "assume l == 3");
    let mut passing = Run::passing(&(passing + "t0: join a\nt0: join b\n"), [1, 2]);
    for run in [&mut failing, &mut passing] {
        move_to(run, "own", &[("create", 480), ("client", 70)]);
        move_to(run, "look", &[("rebuild", 546), ("event", 12), ("client", 76)]);
        move_to(run, "check", &[("client", 81)]);
    }
    let end = failing.parsed.trace.failure.as_ref().expect("a failure").event;
    failing.parsed.trace.events[end.index()].stack = stack(&[("client", 81)]);
    let cause = cause_across(&failing, &passing);
    assert_ne!(cause.case, Some("read-write-use"), "{cause:?}");
    for label in ["other", "check"] {
        assert!(cause.events.contains(&CauseEvent::Failing(failing.event(label))), "{cause:?}");
    }
}

/// What a thread went by before it waited is no longer what it goes by.
#[test]
fn who_has_waited_since_its_look_was_not_overtaken() {
    let wait = "a: [use]";
    let text =
        EVICTED_TWICE.replace(wait, "a: lock m\na: wait-timed-out c m\na: unlock m\na: [use]");
    let failing = Run::failing(&text);
    let passing = text.replace("a: assume u > 1", "a: assume u <= 1");
    let passing = passing.replace("a: [use] R first -> f", "").replace("a: fail f == 0", "");
    let passing = Run::passing(&(passing + "t0: join a\nt0: join b\n"), [2, 1]);
    let cause = cause_across(&failing, &passing);
    assert_ne!(cause.case, Some("read-write-use"), "{cause:?}");
}

/// A thread that went another way did not come too late.
#[test]
fn what_another_path_does_is_not_late() {
    let other = TOO_EARLY.to_owned() + "\n\nb: W skipped 1";
    let (failing, passing) = (Run::cut(&other), Run::passing(IN_TIME, [2, 1]));
    assert_eq!(across(failing.side(), passing.side(), None), None);
}

/// Memory that nobody else touched is no event of the failing run.
#[test]
fn without_the_read_the_failure_came_too_early() {
    let text = TOO_EARLY.replace("a: [use] R conf -> c", "").replace("fail c == 0", "fail");
    let failing = Run::cut(&(text + "b: W loading 1"));
    let passing = Run::passing(IN_TIME, [2, 1]);
    let found = compared(&failing, &passing);
    let late = Flipped::Late {
        before: failing.event("failure"),
        after: passing.event("load"),
        needs: passing.event("use"),
    };
    assert_eq!(found.flipped, late, "{found:?}");
    assert_eq!(found.failing, [failing.event("failure")]);
    assert_eq!(found.passing_only, [passing.flow("load", "use")]);
    assert_eq!(found.failing_only, []);
}

/// Who of a team of OpenMP's threads came first to its next iteration is the runtime's affair, not what was missed.
#[test]
fn what_openmps_runtime_passes_on_is_not_what_came_too_late() {
    let text = TOO_EARLY.replace("a: [use] R conf -> c", "\n").replace("fail c == 0", "fail");
    let failing = Run::cut(&(text + "b: W loading 1"));
    let next = IN_TIME.replace("a: [use]", "a: [next] R chunk -> i\n    a: [use]");
    let next = next.replace("b: [load] W conf 1", "b: [load] W conf 1\n    b: [claim] W chunk 1");
    let mut passing = Run::passing(&next, [2, 1]);
    for label in ["next", "claim"] {
        let event = passing.event(label);
        let stack = &mut passing.parsed.trace.events[event.index()].stack;
        let inside = Site { function: "__kmpc_dispatch_next_4".to_owned(), ..Site::default() };
        let sites: Vec<Site> = std::iter::once(inside).chain(stack.iter().cloned()).collect();
        *stack = sites.into();
    }
    let found = compared(&failing, &passing);
    let late = Flipped::Late {
        before: failing.event("failure"),
        after: passing.event("load"),
        needs: passing.event("use"),
    };
    assert_eq!(found.flipped, late, "{found:?}");
}

#[test]
fn a_post_that_the_wait_missed_came_too_late() {
    let failing = "
        sem ready 0
        t0: fork a
        t0: fork b
        a: [missed] sem-failed ready
        a: [failure] fail
        b: W computing 1
    ";
    let passing = "
        sem ready 0
        t0: fork a
        t0: fork b
        a: [got] sem-wait ready
        a: R value -> v
        b: W computing 1
        b: W value 1
        b: [post] post ready
        t0: join a
        t0: join b
    ";
    let (failing, passing) = (Run::cut(failing), Run::passing(passing, [2, 1]));
    let found = compared(&failing, &passing);
    let late = Flipped::Late {
        before: failing.event("missed"),
        after: passing.event("post"),
        needs: passing.event("got"),
    };
    assert_eq!(found.flipped, late, "{found:?}");
    assert_eq!(found.failing, [failing.event("missed"), failing.event("failure")]);
    assert_eq!(found.passing, [passing.event("post"), passing.event("got")]);
}

/// A reader checks, and uses what it has checked after it was dropped.
const USED_AFTER_DROP: &str = "
    cell held 32 = 0
    t0: fork a
    t0: fork b
    a: [check] R held -> c
    a: assume c == 0

    a: [use] R held -> u
    a: assume u == 1
    a: fail 1 == 1
    b: [drop] W held 1

    t0: join b
";

/// Here the other thread lives on to write what the reader has looked at in between.
const USED_BEFORE_DROP: &str = "
    cell held 32 = 0
    t0: fork a
    t0: fork b
    a: [check] R held -> c
    a: assume c == 0
    a: [look] R node -> n
    a: [use] R held -> u
    a: assume u == 0

    b: [drop] W held 1
    b: W node 1
    t0: join b
";

/// A point for every line of the text.
fn points(run: &Run) -> Points {
    let line = |event: &model::Event| event.stack[0].line;
    let last = run.parsed.trace.events.iter().map(line).max().unwrap_or(0);
    let point = |event: &model::Event| Point {
        site: line(event),
        gates: u64::from(line(event)),
        ..Point::default()
    };
    Points {
        sites: (0..=last).map(|line| format!("line {line}")).collect(),
        of: run.parsed.trace.events.iter().map(point).collect(),
    }
}

/// Memory that only one of the runs shares has no events in the other one.
#[test]
fn an_event_that_only_one_run_has_is_no_other_path() {
    let failing = Run::failing(USED_AFTER_DROP);
    let passing = Run::passing(USED_BEFORE_DROP, [1, 2]);
    let (here, there) = (points(&failing), points(&passing));
    let one = Side { points: Some(&here), ..failing.side() };
    let other = Side { points: Some(&there), ..passing.side() };
    let found = across(one, other, None).expect("the runs differ in an order");
    let dropped = Order { before: failing.event("drop"), after: failing.event("use") };
    assert_eq!(found.flipped, Flipped::Reversed(dropped), "{found:?}");
    assert_eq!(found.failing_only, [failing.flow("drop", "use")]);
    assert_eq!(found.branches[0].reads, [failing.flow("drop", "use").read]);
    assert_eq!(found.matching.in_failing(passing.event("look")), None);
    // Behind the use there is only the failure.
    assert_eq!(found.behind, 1);
}

/// A thread looks at what only the passing run shares, in a section that both runs have, and fails behind that.
const FETCHED: &str = "
    cell up 32 = 0
    t0: fork a
    t0: fork b
    a: [tick] W ticks 1
    a: lock m
    a: [look] R up -> u
    a: unlock m
    a: assume u != 0
    b: W ticks 2
    b: [start] W up 1
    t0: join a
    t0: join b
";

#[test]
fn what_was_read_on_the_way_before_anybody_wrote_it_came_too_early() {
    let text =
        FETCHED.replace("a: [look] R up -> u", "").replace("a: assume u != 0", "a: [failure] fail");
    let text: Vec<&str> = text.lines().filter(|line| !line.contains("join")).collect();
    let text = text.join("\n").replace("b: [start] W up 1", "");
    let (failing, passing) = (Run::cut(&text), Run::passing(FETCHED, [2, 1]));
    let (here, there) = (points(&failing), points(&passing));
    let one = Side { points: Some(&here), ..failing.side() };
    let other = Side { points: Some(&there), ..passing.side() };
    let found = across(one, other, None).expect("something came too late");
    let late = Flipped::Late {
        before: failing.event("failure"),
        after: passing.event("start"),
        needs: passing.event("look"),
    };
    assert_eq!(found.flipped, late, "{found:?}");
}

/// Ten thousand events per thread, in which another round is taken early.
#[test]
fn long_runs_are_compared_fast() {
    let text = |rounds: usize, ends: &str| {
        let mut text = String::from("t0: fork a\nt0: fork b\na: R go -> g\n");
        text += if ends.starts_with("fail") { "a: assume g == 0\n" } else { "a: assume g == 1\n" };
        text += "b: W go 1\n";
        for _ in 0..rounds {
            text += "a: W x 1\n";
        }
        text + "t0: join a\nt0: join b\nt0: R go -> z\nt0: " + ends
    };
    let mut failing = parse(&text(10_000, "fail")).expect("the text is a trace");
    let mut passing = parse(&text(10_300, "fence")).expect("the text is a trace");
    // All on one line, as in a loop.
    for trace in [&mut failing.trace, &mut passing.trace] {
        let mut site = trace.events[0].site().clone();
        site.line = 1;
        trace.events.iter_mut().for_each(|event| event.stack = [site.clone()].into());
    }
    let order = |parsed: &Parsed, first: usize| {
        let threads = &parsed.trace.threads;
        let mut order = threads[0].events[..3].to_vec();
        order.extend(&threads[first].events);
        order.extend(&threads[3 - first].events);
        order.extend(&threads[0].events[3..]);
        let schedule = Schedule { order };
        let evaluation = Evaluator::new(&parsed.trace).run(&schedule.order, &|_| None);
        (schedule, evaluation.expect("it can happen"))
    };
    let (one, other) = (order(&failing, 1), order(&passing, 2));
    let failing =
        Side { trace: &failing.trace, schedule: &one.0, evaluation: &one.1, points: None };
    let passing =
        Side { trace: &passing.trace, schedule: &other.0, evaluation: &other.1, points: None };
    let started = std::time::Instant::now();
    let found = across(failing, passing, None).expect("the runs differ in an order");
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    assert!(found.failing.len() <= 4, "{found:?}");
}

/// A reader takes a pointer, and its object is made unusable; in the other run the reader takes the next one.
const OLD_OBJECT: &str = "
    cell current 64 = 1
    t0: fork a
    t0: fork b
    a: [fetch] R current -> p
    a: assume p == 1
    a: [use] R one -> v
    b: [make] W two 5
    b: [swap] W current 2
    b: [spoil] W one 9
    t0: join a
    t0: join b
    a: fail v == 9
";

const NEXT_OBJECT: &str = "
    cell current 64 = 1
    t0: fork a
    t0: fork b
    a: [fetch] R current -> p
    a: assume p == 2
    a: [use] R two -> v
    b: [make] W two 5
    b: [swap] W current 2
    b: [spoil] W one 9
    t0: join a
    t0: join b
";

#[test]
fn another_object_is_told_by_the_pointer_to_it() {
    let mut failing = Run::failing(OLD_OBJECT);
    let position = failing.parsed.trace.event(failing.event("use")).index;
    let condition = &mut failing.parsed.trace.conditions[0];
    (condition.kind, condition.position) = (model::PathConditionKind::Address, position);
    let passing = Run::passing(NEXT_OBJECT, [2, 1]);
    let found = compared(&failing, &passing);
    let flipped = Order { before: failing.event("fetch"), after: failing.event("swap") };
    assert_eq!(found.flipped, Flipped::Reversed(flipped), "{found:?}");
}

/// A table is copied, and the copy put in its place; meanwhile another thread has put its own there.
const COPIED: &str = "
    cell table 64 = 1
    cell old 32 = 0
    t0: fork a
    t0: fork b
    a: [get] R table -> p
    a: assume p == 1
    a: [copy] R old -> d
    a: W keys d + 1
    a: [put] W table 7
    b: W new 5
    b: [other] W table 9
    t0: join a
    t0: join b
    t0: R keys -> k
    t0: fail k < 6
";

#[test]
fn what_was_copied_by_way_of_a_pointer_is_overwritten_with_it() {
    let run = |text: &str, start: usize| {
        let mut parsed = parse(text).expect("the text is a trace");
        let table = parsed.trace.event(parsed.event("get")).kind.reads()[0].cell;
        parsed.trace.cells[table.index()].display = model::trace::ValueDisplay::Pointer;
        parsed.trace.conditions[0].kind = model::PathConditionKind::Address;
        let [main, one, two] = [0, 1, 2].map(|thread| &parsed.trace.threads[thread].events[..]);
        let parts = [&main[..3], &one[..start], two, &one[start..], &main[3..]];
        let schedule = Schedule { order: parts.concat() };
        let evaluation = model::evaluate::evaluate(&parsed.trace, &schedule, &|_| None);
        Run { evaluation: evaluation.expect("the run can happen"), schedule, parsed }
    };
    let passing = COPIED.replace("p == 1", "p == 9").replace("R old", "R new");
    let passing = passing.replace("fail k < 6", "assume k >= 6");
    let (failing, passing) = (run(COPIED, 4), run(&passing, 1));
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.case, Some("read-write-write"), "{cause:?}");
    let named = ["other", "get", "put"].map(|label| failing.event(label));
    assert_eq!(cause.events, named.map(CauseEvent::Failing), "{cause:?}");
}
