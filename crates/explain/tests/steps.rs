//! The cause in one sentence, where a thread does in two steps what another one does in one.

use crate::support::causes::{cause_of, events, trace};
use encoders::dsl::Parsed;
use explain::Pattern;
use model::{EventKind, Site};

/// The initial thread reads a host and a port, each under the lock; what fails names the port alone.
const RELOADED: &str = "
    t0: fork a
    t0: [first] lock m
    t0: [host] R host -> h
    t0: unlock m
    t0: lock m
    t0: [port] R port -> p
    t0: unlock m
    t0: fail p == 1
    a: lock m
    a: [one] W host 1
    a: [two] W port 1
    a: unlock m
";

#[test]
fn what_was_written_in_one_section_was_read_in_two() {
    let parsed = trace(RELOADED);
    let cause = cause_of(&parsed);
    let case = Some("writes-between-reads");
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, case));
    assert_eq!(cause.events, events(&parsed, &["one", "two", "host", "port"]));
    let sentence = "t0.1 wrote `host` (trace:11) and `port` (trace:12) between t0's reads of `host` \
                    (trace:4) and `port` (trace:7)";
    assert_eq!(cause.sentence, sentence);
}

/// A line that copies a whole object writes several variables under one name.
#[test]
fn what_one_line_wrote_is_told_once() {
    for text in [RELOADED.to_owned(), RELOADED.replace("p == 1", "p == 1 && h == 0")] {
        let mut parsed = trace(&text);
        let [one, two] = ["one", "two"].map(|label| parsed.event(label));
        let stack = parsed.trace.event(one).stack.clone();
        parsed.trace.events[two.index()].stack = stack;
        for id in [one, two] {
            parsed.trace.events[id.index()].name = Some("s".into());
        }
        let sentence =
            "t0.1 wrote `s` (trace:11) between t0's reads of `host` (trace:4) and `port` (trace:7)";
        assert_eq!(cause_of(&parsed).sentence, sentence);
    }
}

/// What a library's function reads may not be known; that there were two sections is.
#[test]
fn a_write_came_between_two_sections_of_its_lock() {
    let parsed = trace(&RELOADED.replace("R host -> h", "fence"));
    let cause = cause_of(&parsed);
    let case = Some("between-sections");
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, case));
    assert_eq!(cause.events, events(&parsed, &["two", "first", "port"]));
}

/// Each of the two is written in a section of its own: what was read of the first says nothing of the second.
#[test]
fn sections_of_other_locks_do_not_belong_together() {
    let parsed = trace(&RELOADED.replace("t0: [first] lock m", "t0: [first] lock n").replacen(
        "t0: unlock m",
        "t0: unlock n",
        1,
    ));
    let other = trace(&RELOADED.replace("R host -> h", "fence").replacen("m", "n", 2));
    for parsed in [parsed, other] {
        let cause = cause_of(&parsed);
        assert_ne!(cause.case, Some("between-sections"), "{}", cause.sentence);
    }
}

fn place(parsed: &mut Parsed, label: &str, stack: &[(&str, u32)]) {
    let site = |(function, line): &(&str, u32)| {
        let (file, function) = match function.split_once(':') {
            Some((file, function)) => (file, function),
            None => ("stock.c", *function),
        };
        let (file, function) = (file.to_owned(), function.to_owned());
        Site { file, line: *line, column: 1, function }
    };
    let stack: Vec<Site> = stack.iter().map(site).collect();
    let event = parsed.event(label);
    parsed.trace.events[event.index()].stack = stack.into();
}

/// `reserve` calls `take`, `count` and `hold`; the run ends when its second call comes from `count`.
fn reserved(text: &str) -> Parsed {
    let mut parsed = trace(text);
    let exit = parsed.trace.events.pop().expect("an event");
    assert_eq!(exit.kind.name(), "exit");
    let own = &mut parsed.trace.threads[exit.thread.index()].events;
    assert_eq!(own.pop(), Some(exit.id));
    place(&mut parsed, "take", &[("take", 35), ("reserve", 65), ("shop", 95)]);
    place(&mut parsed, "hold", &[("hold", 40), ("reserve", 70), ("shop", 95)]);
    place(&mut parsed, "half", &[("take", 35), ("reserve", 65), ("shop", 95)]);
    place(&mut parsed, "count", &[("count", 14), ("reserve", 69), ("shop", 95)]);
    parsed
}

const RESERVED: &str = "
    cell free 32 = 3
    t0: fork a
    a: [take] W free 2
    a: [hold] W held 1
    a: [half] W free 1
    a: [count] R total -> c
    t0: [look] R free -> f
    t0: [other] R held -> h
    t0: fail f == 1 && h == 1
";

#[test]
fn half_of_an_update_is_seen_where_each_half_has_a_function_of_its_own() {
    let parsed = reserved(RESERVED);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, Some("half-written")));
    assert_eq!(cause.events, events(&parsed, &["look", "other", "half"]));
}

/// Members that only a library knows have the name of the object that they are in.
#[test]
fn half_of_an_object_is_called_a_part_of_it() {
    let mut parsed = reserved(RESERVED);
    for label in ["look", "other", "half"] {
        let id = parsed.event(label);
        parsed.trace.events[id.index()].name = Some("shop.entries".into());
    }
    let cause = cause_of(&parsed);
    assert_eq!(cause.case, Some("half-written"));
    assert!(cause.sentence.contains("had written only a part of it"), "{}", cause.sentence);
}

/// What is written before, by another call, is no second half.
#[test]
fn what_another_call_did_before_is_no_second_half() {
    let mut parsed = reserved(RESERVED);
    place(&mut parsed, "hold", &[("hold", 40), ("refill", 80), ("shop", 94)]);
    assert_ne!(cause_of(&parsed).case, Some("half-written"));
}

/// What the library's barrier counts is no variable of the program.
#[test]
fn what_a_barrier_keeps_is_no_check_and_its_write() {
    let text = "
        t0: fork a
        t0: fork b
        a: [ra] R phase -> p
        a: [wa] W phase p + 1
        b: [rb] R phase -> q
        b: [wb] W phase q + 1
        t0: join a
        t0: join b
        t0: R phase -> all
        t0: fail all != 2
    ";
    assert_eq!(cause_of(&trace(text)).pattern, Pattern::Atomicity);
    let mut parsed = trace(text);
    for label in ["ra", "wa", "rb", "wb"] {
        place(&mut parsed, label, &[("/usr/include/c++/12/barrier:arrive", 127), ("part", 27)]);
    }
    let cause = cause_of(&parsed);
    assert_ne!(cause.pattern, Pattern::Atomicity, "{}", cause.sentence);
}

/// How a library's variable is written, by an exchange and then by a store, does not say that these are two steps.
#[test]
fn what_is_put_back_at_once_was_seen_in_between() {
    let mut parsed = trace(
        "
        cell state 32 = 3
        t0: fork a
        a: [take] W state 1
        a: [back] W state 3
        t0: [look] R state -> s
        t0: fail s == 1
        ",
    );
    let atomic = |function| format!("/usr/include/c++/12/atomic:{function}");
    place(&mut parsed, "take", &[(&atomic("exchange"), 127), ("work", 27)]);
    place(&mut parsed, "back", &[(&atomic("store"), 99), ("work", 33)]);
    let cause = cause_of(&parsed);
    assert_eq!(cause.case, Some("write-read-write"), "{}", cause.sentence);
    assert_eq!(cause.events, events(&parsed, &["look", "take", "back"]));
    place(&mut parsed, "back", &[(&atomic("store"), 99), ("give_back", 33)]);
    assert_ne!(cause_of(&parsed).case, Some("write-read-write"), "another function's step");
}

/// The object is there for others to see while its maker, who holds the lock, is still at work; the run ended before
/// it was done.
#[test]
fn an_object_was_seen_before_its_section_was_over() {
    let text = "
        t0: fork a
        a: lock m
        a: [said] W instance 1
        a: [part] W size 2
        a: [end] unlock m
        t0: [look] R instance -> i
        t0: assume i == 1
        t0: [early] R size -> s
        t0: fail s == 2
    ";
    let mut parsed = trace(text);
    let exit = parsed.trace.events.pop().expect("an event");
    let own = &mut parsed.trace.threads[exit.thread.index()].events;
    assert_eq!(own.pop(), Some(exit.id));
    let end = parsed.event("end");
    let EventKind::Unlock { synthetic, .. } = &mut parsed.trace.events[end.index()].kind else {
        panic!("the thread gives the lock back");
    };
    *synthetic = true;
    let cause = cause_of(&parsed);
    let case = Some("announced-too-early");
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, case), "{}", cause.sentence);
    assert_eq!(cause.events, events(&parsed, &["said", "part", "look", "early"]));
    // Who looks under the lock as well sees nothing half done.
    let held = text.replace("t0: [look]", "t0: lock m\nt0: [look]").replace("i == 1", "i == 0");
    let held = held.replace("t0: [early]", "t0: unlock m\nt0: [early]");
    assert_ne!(cause_of(&trace(&held)).case, case);
}

/// A task is given to a pool that was still running when that was asked; its worker has seen since that it is not.
const STOPPED: &str = "
    t0: fork a
    t0: fork b
    t0: [asked] R stopping -> s
    t0: assume s == 0
    t0: lock m
    t0: [push] W tasks 1
    t0: unlock m
    a: lock m
    a: [stop] W stopping 1
    a: unlock m
    b: lock m
    b: R stopping -> o
    b: assume o == 1
    b: [empty] R tasks -> t
    b: unlock m
    b: fail t == 0
";

#[test]
fn what_was_asked_is_no_longer_so_for_another_thread() {
    let parsed = trace(STOPPED);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::SeveralVariables, Some("crossed")));
    assert_eq!(cause.events, events(&parsed, &["stop", "empty", "asked", "push"]));
    let sentence = "t0.1 wrote `stopping` (trace:10), and t0.2, which saw that, read `tasks` (trace:15) between \
                    t0's read of `stopping` (trace:4) and its write of `tasks` (trace:7)";
    assert_eq!(cause.sentence, sentence);
    // What was seen in a section before may be another task's.
    let apart = STOPPED.replace("o == 1", "o == 1\nb: unlock m\nb: lock m");
    assert_ne!(cause_of(&trace(&apart)).case, Some("crossed"));
}

/// `main` posts twice, and each time raises the flag before the job is there. What a job that was done told the
/// worker later than the flag did is not why it looked for the next one.
#[test]
fn what_was_said_in_the_call_of_the_late_write_is_named() {
    let mut parsed = trace(
        "
        a: [made] W status 1
        a: [flag] W ready 1
        a: [put] W job 7
        b: [look] R ready -> seen
        b: assume seen == 1
        b: [done] R status -> old
        b: assume old == 1
        b: [take] R job -> got
        b: fail got == 0
        ",
    );
    place(&mut parsed, "made", &[("main", 30)]);
    place(&mut parsed, "flag", &[("post", 4), ("main", 31)]);
    place(&mut parsed, "put", &[("push", 9), ("post", 5), ("main", 31)]);
    place(&mut parsed, "look", &[("wait", 11), ("work", 22)]);
    place(&mut parsed, "done", &[("run", 15), ("work", 20)]);
    place(&mut parsed, "take", &[("pop", 17), ("work", 19)]);
    let cause = cause_of(&parsed);
    assert_eq!(cause.case, Some("announced-too-early"), "{}", cause.sentence);
    assert_eq!(cause.events, events(&parsed, &["flag", "put", "look", "take"]));
}

/// Two cars look whether a junction is free and enter it, each step in a call of its own. What came between the one's
/// look and its check later on is that the other one entered, because it had looked before; and as all of it is about
/// one variable, between that look and what it led to.
#[test]
fn who_looked_before_and_acted_behind_is_told_by_its_own_look() {
    let mut parsed = trace(
        "
        b: [look] R occupant -> l
        b: assume l == 0
        a: [first] R occupant -> f
        a: assume f == 0
        a: [enter] W occupant 1
        b: [late] W occupant 2
        b: [leave] W occupant 0
        a: [check] R occupant -> c
        a: fail c != 1
        ",
    );
    let places = [
        ("look", "is_free", 10, 40),
        ("first", "is_free", 10, 40),
        ("enter", "enter", 20, 41),
        ("late", "enter", 20, 41),
        ("leave", "leave", 31, 42),
        ("check", "leave", 30, 42),
    ];
    for (label, function, line, caller) in places {
        place(&mut parsed, label, &[(function, line), ("travel", caller)]);
    }
    let cause = cause_of(&parsed);
    assert_eq!(cause.pattern, Pattern::Atomicity, "{}", cause.sentence);
    assert_eq!(cause.events, events(&parsed, &["enter", "look", "late"]), "{}", cause.sentence);
}

/// A member that its constructor set before there was another thread is not torn from its use by that one's write.
#[test]
fn what_was_made_ready_before_there_were_threads_is_no_first_step() {
    let made = |caller: &[(&str, u32)]| {
        let mut parsed = trace(
            "
            t0: [made] W level 0
            t0: fork a
            t0: [use] R level -> l
            t0: fail l == 1
            a: [raise] W level 1
            ",
        );
        place(&mut parsed, "made", caller);
        place(&mut parsed, "use", &[("main", 22)]);
        place(&mut parsed, "raise", &[("work", 40)]);
        cause_of(&parsed)
    };
    let constructed = made(&[("Gauge", 5), ("main", 20)]);
    assert_eq!(constructed.pattern, Pattern::Order, "{}", constructed.sentence);
    let own = made(&[("main", 20)]);
    assert_eq!(own.case, Some("write-write-read"), "{}", own.sentence);
    // Nor is what was put into an object of Rust's library when that was made.
    let boxed = made(&[("/rustc/0a1b/library/alloc/src/sync.rs:new<Gauge>", 422), ("main", 20)]);
    assert_eq!(boxed.pattern, Pattern::Order, "{}", boxed.sentence);
    let stored = made(&[("/rustc/0a1b/library/core/src/sync/atomic.rs:store", 5), ("main", 20)]);
    assert_eq!(stored.case, Some("write-write-read"), "{}", stored.sentence);
}

/// An object is made in each round at the same place, and its thread says that it has started before the constructor
/// says that it has not.
const REMADE: &str = "
    t0: fork a
    t0: lock m
    t0: [look] R started -> s
    t0: assume s == 1
    t0: unlock m
    t0: join a
    t0: fork b
    t0: [clear] W started 0
    t0: join b
    t0: lock m
    t0: [again] R started -> r
    t0: unlock m
    t0: fail r == 0
    a: [first] W started 1
    b: [second] W started 1
";

#[test]
fn the_next_object_at_the_same_place_is_no_step_with_a_look_at_the_former_one() {
    let mut parsed = trace(REMADE);
    let places = [("look", &[("waits", 45), ("make", 46), ("main", 7)][..])];
    let places = places.into_iter().chain([
        ("clear", &[("make", 21), ("main", 7)][..]),
        ("again", &[("waits", 45), ("make", 46), ("main", 7)][..]),
    ]);
    for (label, stack) in places {
        place(&mut parsed, label, stack);
    }
    let cause = cause_of(&parsed);
    assert_eq!(cause.pattern, Pattern::Order, "{}", cause.sentence);
    assert_eq!(cause.events, events(&parsed, &["second", "clear"]), "{}", cause.sentence);
}
