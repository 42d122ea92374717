//! Threads that are told too early that they can go on, or that do not look whether they can.

use crate::support::causes::{cause_of, events, trace};
use crate::support::runs::{Run, cause_across};
use encoders::dsl::parse;
use explain::{CauseEvent, Pattern};
use model::{Awaited, EventKind, FailureKind};

/// A unit stands for an item that is put there behind it.
const POSTED: &str = "
    sem full 0
    cell item 32 = 0
    a: [post] post full
    a: [put] W item 1
    b: [wait] sem-wait full
    b: [get] R item -> i
    b: fail i == 0
";

#[test]
fn a_semaphore_was_posted_before_what_the_unit_stands_for() {
    let parsed = trace(POSTED);
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Order, Some("announced-too-early")));
    assert_eq!(cause.events, events(&parsed, &["post", "put", "wait", "get"]));
    let sentence = "t0 posted `full` (trace:4) before it wrote `item` (trace:5), and t0.1, which had waited for \
                    that (trace:6), read the other (trace:7) in between";
    assert_eq!(cause.sentence, sentence);
}

#[test]
fn who_had_a_unit_without_the_post_was_not_told_by_it() {
    let cause = cause_of(&trace(&POSTED.replace("sem full 0", "sem full 1")));
    assert_ne!(cause.case, Some("announced-too-early"), "{cause:?}");
    let cause = cause_of(&trace(&POSTED.replace("b: [wait] sem-wait full", "b: [wait] W other 1")));
    assert_ne!(cause.case, Some("announced-too-early"), "{cause:?}");
}

#[test]
fn a_semaphore_was_posted_before_what_only_the_passing_run_has() {
    let failing = "
        sem full 0
        cell item 32 = 0
        t0: fork a
        t0: fork b
        a: [wait] sem-wait full
        a: [get] R item -> i
        a: fail i == 0
        b: [post] post full
    ";
    let passing = "
        sem full 0
        cell item 32 = 0
        t0: fork a
        t0: fork b
        a: [wait] sem-wait full
        a: [get] R item -> i
        a: assume i != 0
        b: [post] post full
        b: [put] W item 1
        t0: join a
        t0: join b
    ";
    let (failing, passing) = (Run::cut(failing), Run::passing(passing, [2, 1]));
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.case, Some("announced-too-early"), "{cause:?}");
    let [post, wait, get] =
        ["post", "wait", "get"].map(|label| CauseEvent::Failing(failing.event(label)));
    assert_eq!(cause.events, [post, CauseEvent::Passing(passing.event("put")), wait, get]);
}

#[test]
fn a_flag_was_written_before_what_only_the_passing_run_has() {
    let failing = "
        cell ready 32 = 0
        cell item 32 = 0
        t0: fork a
        t0: fork b
        a: [look] R ready -> r
        a: assume r == 1
        a: [get] R item -> i
        a: fail i == 0
        b: [say] W ready 1
    ";
    let passing = failing.replace("a: fail i == 0", "a: assume i != 0");
    let passing = passing + "    b: [put] W item 1\n        t0: join a\n        t0: join b\n";
    let (failing, passing) = (Run::cut(failing), Run::passing(&passing, [2, 1]));
    let cause = cause_across(&failing, &passing);
    assert_eq!(cause.case, Some("announced-too-early"), "{cause:?}");
    let [say, look, get] =
        ["say", "look", "get"].map(|label| CauseEvent::Failing(failing.event(label)));
    assert_eq!(cause.events, [say, CauseEvent::Passing(passing.event("put")), look, get]);
    assert!(
        cause.sentence.contains("which saw the one")
            && cause.sentence.contains("before it wrote `item`")
    );
}

/// A request is answered once: who is late says so by the clock, and both look whether that was done.
const ANSWERED: &str = "
    cell clock 32 = 0
    cell done 32 = 0
    t0: fork a
    t0: fork b
    a: [tick] W clock 1
    a: [look] R done -> d
    a: assume d == 0
    a: [act] W done 1
    b: [late] R clock -> c
    b: assume c == 1
    b: [read] R done -> e
    b: assume e == 0
    b: fail
";

/// That the clock said that it is late is as it should be.
#[test]
fn what_both_found_says_more_than_what_brought_one_of_them_there() {
    let passes = ANSWERED.replace("e == 0", "e == 1").replace("b: fail", "b: W late 1");
    let passes = passes + "    t0: join a\n    t0: join b\n";
    let cause = |at_one_place: bool| {
        let [failing, passing] = [ANSWERED, &passes].map(|text| {
            let mut parsed = parse(text).expect("the text is a trace");
            let [look, read] = ["look", "read"].map(|label| parsed.event(label));
            if at_one_place {
                parsed.trace.events[read.index()].stack = parsed.trace.event(look).stack.clone();
            }
            parsed
        });
        let turns: Vec<usize> = [(0, 3), (1, 5), (2, 5), (0, 3)]
            .iter()
            .flat_map(|(thread, count)| vec![*thread; *count])
            .collect();
        cause_across(&Run::explained(failing), &Run::in_order(passing, &turns))
    };
    let found = cause(true);
    assert_eq!((found.pattern, found.case), (Pattern::Atomicity, Some("found-the-same")));
    let sentence = "t0.2 read `done` (trace:7) before t0.1, which had found the same there (trace:7), wrote it (trace:9)";
    assert_eq!(found.sentence, sentence);
    assert_eq!(cause(false).case, Some("announced-too-early"), "they look at two places");
}

const ENDED_TWICE: &str = "
    cell armed 32 = 1
    cell pending 32 = 1
    t0: fork a
    t0: fork b
    b: [count] W pending 2
    a: [look] R armed -> d
    a: assume d == 1
    a: [end] W pending 0
    a: [act] W armed 0
    b: [read] R armed -> e
    b: assume e == 1
    b: [see] R pending -> p
    b: fail p == 0
";

/// What was counted in between is only how it shows: the program fails all the same when that comes the other way round.
#[test]
fn what_both_found_says_more_than_what_one_of_two_owners_came_upon() {
    let passes = ENDED_TWICE.replace("e == 1", "e == 0").replace("b: [see] R pending -> p", "");
    let passes = passes.replace("b: fail p == 0", "b: W late 1");
    let passes = passes + "    t0: join a\n    t0: join b\n";
    let [failing, passing] = [ENDED_TWICE, &passes].map(|text| {
        let mut parsed = parse(text).expect("the text is a trace");
        let [look, read] = ["look", "read"].map(|label| parsed.event(label));
        parsed.trace.events[read.index()].stack = parsed.trace.event(look).stack.clone();
        parsed
    });
    let turns: Vec<usize> = [(0, 3), (2, 2), (1, 5), (2, 3), (0, 3)]
        .iter()
        .flat_map(|(thread, count)| vec![*thread; *count])
        .collect();
    let found = cause_across(&Run::explained(failing), &Run::in_order(passing, &turns));
    assert_eq!(found.case, Some("found-the-same"), "{}", found.sentence);
}

/// Somebody stops when it is told to, and so tells nobody who waits. Who tells it to looks there as well, to change it.
#[test]
fn who_was_stopped_is_why_nobody_was_told() {
    let text = "
        cell stop 32 = 0
        t0: fork a
        t0: fork b
        t0: broadcast told
        t0: [stop] RMW stop -> o = o + 7
        t0: assume o == 0
        a: [waits] W waiting 1
        a: fail
        b: [look] R stop -> s
        b: assume s == 7
        b: R other -> r
    ";
    let passes = text.replace("s == 7", "s == 0").replace("b: R other -> r", "b: broadcast told");
    let passes = passes.replace("        a: fail\n", "\n") + "t0: join a\nt0: join b\n";
    let [mut failing, passing] =
        [text, &passes].map(|text| parse(text).expect("the text is a trace"));
    let objects = &failing.trace.objects;
    let condition = objects.iter().find(|object| object.name == "told").expect("an object").id;
    let on = model::Awaited::Signal { condition };
    let waits = failing.event("waits");
    failing.trace.events[waits.index()].kind = model::EventKind::Block { on };
    failing.trace.events[waits.index()].name = Some("told".into());
    failing.trace.failure.as_mut().expect("a failure").kind = model::FailureKind::Hang;
    let turns = |parts: &[(usize, usize)]| -> Vec<usize> {
        parts.iter().flat_map(|(thread, count)| vec![*thread; *count]).collect()
    };
    let failing = Run::in_order(failing, &turns(&[(0, 6), (2, 4), (1, 3)]));
    let passing = Run::in_order(passing, &turns(&[(0, 4), (2, 4), (0, 1), (1, 3), (0, 3)]));
    let cause = cause_across(&failing, &passing);
    assert_eq!((cause.pattern, cause.case), (Pattern::MissedWakeup, Some("signal-not-sent")));
    let sentence = "t0.2 read `stop` (trace:10) after t0 had updated it (trace:6), and so did not broadcast `told`";
    assert!(cause.sentence.starts_with(sentence), "{}", cause.sentence);
}

/// A worker that found nothing to do waits, and is not told when there is something: so it does not tell who waits for that.
#[test]
fn who_is_not_told_of_what_there_is_to_do_is_why_nobody_was_told() {
    let text = "
        cell running 32 = 0
        cell jobs 32 = 0
        t0: fork a
        t0: broadcast told
        t0: signal work
        t0: [start] W running 1
        t0: lock m
        t0: [add] W jobs 1
        t0: unlock m
        t0: lock n
        t0: unlock n
        t0: [waits] W waiting 1
        t0: fail
        a: lock m
        a: [look] R running -> r
        a: assume r == 1
        a: [empty] R jobs -> j
        a: assume j == 0
        a: unlock m
        a: [idle] W idle 1
    ";
    let passes =
        text.replace("j == 0", "j == 1").replace("a: [idle] W idle 1", "a: broadcast told");
    let passes = passes.replace("        t0: fail\n", "\n") + "t0: join a\n";
    let asleep = |failing: &mut encoders::dsl::Parsed, label: &str, name: &str| {
        let objects = &failing.trace.objects;
        let condition = objects.iter().find(|object| object.name == name).expect("an object").id;
        let on = model::Awaited::Signal { condition };
        let event = failing.event(label);
        failing.trace.events[event.index()].kind = model::EventKind::Block { on };
        failing.trace.events[event.index()].name = Some(name.into());
    };
    let cause = |told_behind: bool| {
        let [mut text, mut passes] = [text.to_owned(), passes.clone()];
        let told =
            if told_behind { "t0: [add] W jobs 1\n t0: signal work" } else { "t0: [add] W jobs 1" };
        for text in [&mut text, &mut passes] {
            *text = text.replace("t0: [add] W jobs 1", told);
        }
        let [mut failing, passing] =
            [&text, &passes].map(|text| parse(text).expect("the text is a trace"));
        asleep(&mut failing, "waits", "told");
        asleep(&mut failing, "idle", "work");
        failing.trace.failure.as_mut().expect("a failure").kind = model::FailureKind::Hang;
        let turns = |parts: &[(usize, usize)]| -> Vec<usize> {
            parts.iter().flat_map(|(thread, count)| vec![*thread; *count]).collect()
        };
        let more = usize::from(told_behind);
        let failing = Run::in_order(failing, &turns(&[(0, 5), (1, 7), (0, 7 + more)]));
        let passing = Run::in_order(passing, &turns(&[(0, 8 + more), (1, 7), (0, 5)]));
        let [add, idle] = ["add", "idle"].map(|label| CauseEvent::Failing(failing.event(label)));
        (cause_across(&failing, &passing), [add, idle])
    };
    let (found, events) = cause(false);
    assert_eq!(
        (found.pattern, found.case),
        (Pattern::MissedWakeup, Some("no-signal")),
        "{found:?}"
    );
    assert_eq!(found.events, events);
    assert_ne!(cause(true).0.case, Some("no-signal"));
}

/// Letters in a stack from which all are taken at once: each says what lies under it before it is there.
const LETTERS: &str = "
    cell head 32 = 0
    cell next 32 = 9
    t0: fork a
    t0: fork b
    a: W next 0
    a: [first] W head 1
    a: [second] W head 2
    b: RMW head -> h = h - h
    b: assume h == 1
    b: R next -> n
    b: assume n == 0
    b: R head -> e
    b: fail e == 0
";

/// What came with the first letter says nothing of the second.
#[test]
fn what_came_with_what_was_left_there_before_announces_nothing() {
    let mut parsed = trace(LETTERS);
    for (line, label) in (20..).zip(["first", "second"]) {
        let id = parsed.event(label);
        let event = &mut parsed.trace.events[id.index()];
        let called = event.stack[0].clone();
        let caller = model::Site { line, ..called.clone() };
        let function = format!("push{line}");
        event.stack = [model::Site { function, ..called }, caller].into();
    }
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("announced-too-early"), "{cause:?}");
}

/// Everybody is woken; who comes second finds nothing, and does not look.
const WOKEN: &str = "
    cell count 32 = 0
    cell first 32 = 0
    t0: fork a
    t0: fork b
    a: lock m
    a: [look] R count -> c
    a: assume c == 0
    a: [woken] wait more m
    a: [get] R first -> f
    a: unlock m
    a: fail f == 0
    b: lock m
    b: W first 7
    b: W count 1
    b: broadcast more
    b: W first 0
    b: [take] W count 0
    b: unlock m
";

#[test]
fn who_is_woken_and_does_not_look_again_goes_on_with_what_is_not_there() {
    let parsed = parse(WOKEN).expect("the text is a trace");
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("woken-without-look")));
    assert_eq!(cause.events, events(&parsed, &["take", "look", "get"]), "{cause:?}");
    let sentence = "t0.1 was woken (trace:9) and read `first` (trace:10) without another look at `count` (trace:7), \
                    which t0.2 had written by then (trace:18)";
    assert_eq!(cause.sentence, sentence);
}

/// Who waits for room goes on without another look when it is woken, and there is one too many.
const REFILLED: &str = "
    cell count 32 = 1
    t0: fork a
    t0: fork b
    a: lock m
    a: [look] R count -> c
    a: assume c == 1
    a: wait room m
    a: R count -> d
    a: [push] W count d + 1
    a: unlock m
    b: lock m
    b: W count 0
    b: broadcast room
    b: unlock m
    b: lock m
    b: [refill] W count 1
    b: unlock m
    t0: join a
    t0: join b
    t0: R count -> n
    t0: fail n == 2
";

#[test]
fn who_is_woken_and_does_not_look_may_make_another_thread_fail() {
    let parsed = parse(REFILLED).expect("the text is a trace");
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("woken-without-look")));
    assert_eq!(cause.events, events(&parsed, &["refill", "look", "push"]), "{cause:?}");
    // What a second look would have found is what it waited for.
    let there = REFILLED.replace("c == 1", "c >= 1").replace("W count d", "W other d");
    let there = there.replace("fail n == 2", "fail n == 1");
    let cause = cause_of(&parse(&there).expect("the text is a trace"));
    assert_ne!(cause.case, Some("woken-without-look"), "{cause:?}");
}

/// A flag is raised before what it stands for is there; who sees it too early goes another way than in a run that passes.
const PUBLISHED: &str = "
    cell ready 32 = 0
    cell item 32 = 0
    t0: fork a
    t0: fork b
    a: [say] W ready 1
    a: [put] W item 5
    b: [look] R ready -> r
    b: assume r == 1
    b: [get] R item -> i
    b: assume i == 0
    b: W missed 1
    t0: join a
    t0: join b
    t0: R missed -> x
    t0: fail x == 1
";

#[test]
fn what_was_published_before_it_was_complete_is_told_by_that() {
    let failing = Run::failing(PUBLISHED);
    let passing = PUBLISHED.replace("assume r == 1", "assume r == 0");
    let passing = passing.replace("b: [get] R item -> i", "").replace("b: assume i == 0", "");
    let passing = passing.replace("b: W missed 1", "").replace("fail x == 1", "assume x == 0");
    let cause = cause_across(&failing, &Run::passing(&passing, [2, 1]));
    assert_eq!(cause.case, Some("announced-too-early"), "{cause:?}");
    let named = ["say", "put", "look", "get"].map(|label| failing.event(label));
    assert_eq!(cause.events, named.map(CauseEvent::Failing), "{cause:?}");
}

#[test]
fn who_looks_again_or_finds_what_it_waited_for_is_told_otherwise() {
    let looks = WOKEN.replace("a: [get]", "a: R count -> d\na: assume d == 0\na: [get]");
    let there = WOKEN.replace("b: [take] W count 0", "b: [take] W other 0");
    for text in [looks, there] {
        let cause = cause_of(&parse(&text).expect("the text is a trace"));
        assert_ne!(cause.case, Some("woken-without-look"), "{cause:?}");
    }
}

/// Who waits for a while goes on when the time is up, and another thread has taken what was free by then.
const GAVE_UP: &str = "
    cell taken 32 = 0
    t0: fork a
    t0: fork b
    a: lock m
    a: [look] R taken -> t
    a: assume t == 0
    a: wait-timed-out free m
    a: [use] R taken -> u
    a: unlock m
    a: fail u == 1
    b: lock m
    b: [take] W taken 1
    b: unlock m
    b: lock m
    b: W taken 0
    b: unlock m
";

#[test]
fn who_gives_up_its_wait_and_does_not_look_again_is_told_by_that() {
    let parsed = parse(GAVE_UP).expect("the text is a trace");
    let cause = cause_of(&parsed);
    assert_eq!((cause.pattern, cause.case), (Pattern::Atomicity, Some("gave-up-without-look")));
    let named = [cause.events[0], cause.events[1], cause.events[3]];
    assert_eq!(named[..], events(&parsed, &["take", "look", "use"]), "{cause:?}");
    let sentence = "t0.1 gave up its wait for `free` (trace:8) and read `taken` (trace:9) without another look at it \
                    (trace:6), which t0.2 had written by then (trace:13)";
    assert_eq!(cause.sentence, sentence);
    // Whoever looks again has other reasons to fail.
    let looks = GAVE_UP.replace("a: [use]", "a: R taken -> d\na: assume d == 1\na: [use]");
    let cause = cause_of(&parse(&looks).expect("the text is a trace"));
    assert_ne!(cause.case, Some("gave-up-without-look"), "{cause:?}");
}

/// One place hands two threads what each is to work on; the second item is there before the first thread looks. What the
/// two count before that, one update is lost of, which the failure's condition names and does not hang on.
const HANDED_OVER: &str = "
    t0: [give] W item 1
    t0: fork a
    t0: [again] W item 2
    t0: fork b
    a: R done -> w
    a: assume w == 0
    a: W done w + 1
    a: [get] R item -> i
    a: assume i == 2
    a: [put] W second 1
    b: R done -> v
    b: assume v == 0
    b: W done v + 1
    b: R item -> j
    b: W second 1
    t0: join a
    t0: join b
    t0: R done -> d
    t0: [look] R first -> f
    t0: fail f == 0 || d > 7
";

#[test]
fn what_was_written_elsewhere_is_told_by_what_led_there() {
    let led = |text: &str| {
        let mut parsed = parse(text).expect("the text is a trace");
        let mut own = parsed.trace.conditions.iter_mut().filter(|c| c.thread.index() == 1);
        own.nth(1).expect("a condition").kind = model::PathConditionKind::Address;
        parsed
    };
    let failing = Run::explained(led(HANDED_OVER));
    let passing = HANDED_OVER.replace("assume i == 2", "assume i == 1");
    let passing = passing.replace("[put] W second", "[put] W first");
    let passing =
        passing.replace("fail f == 0 || d > 7", "assume f == 1").replace("v == 0", "v == 1");
    let order = [vec![0; 3], vec![1; 6], vec![0; 2], vec![2; 6], vec![0; 5]].concat();
    let cause = cause_across(&failing, &Run::in_order(led(&passing), &order));
    let named = ["get", "again"].map(|label| failing.event(label));
    let named: Vec<CauseEvent> = named.into_iter().map(CauseEvent::Failing).collect();
    assert!(named.iter().all(|event| cause.events.contains(event)), "{cause:?}");
    assert_eq!(cause.pattern, Pattern::Order, "{cause:?}");
}

/// A thread merges what two others are to sort, joins the second one only then, and checks the result: nothing can come
/// behind that check, and so nothing came between.
#[test]
fn who_was_joined_too_late_has_not_come_between() {
    let text = "
        cell half 32 = 9
        t0: fork a
        t0: [merge] R half -> h
        a: [sort] W half 1
        t0: join a
        t0: [check] R half -> c
        t0: fail h != c
    ";
    let parsed = trace(text);
    let cause = cause_of(&parsed);
    assert_eq!(cause.pattern, Pattern::Order, "{cause:?}");
    assert_eq!(cause.events, events(&parsed, &["merge", "sort"]));
    // Where the check need not wait for the other thread, that one comes between.
    let free = trace(&text.replace("t0: join a\n", ""));
    assert_eq!(cause_of(&free).pattern, Pattern::Atomicity);
}

/// Messages pass through a slot at one line after the other. The reader of the second one, which is not there yet, has seen
/// what was written into the first one before that was handed over.
#[test]
fn what_came_with_an_earlier_message_announces_no_later_one() {
    let text = "
        cell first 32 = 0
        cell second 32 = 0
        t0: fork a
        t0: fork b
        a: [text] W words 1
        a: [put] W first 1
        a: post filled
        a: [more] W second 1
        b: sem-wait filled
        b: [get] R first -> m
        b: [words] R words -> w
        b: assume w == 1
        b: [early] R second -> n
        b: fail n == 0
    ";
    let parsed = trace(text);
    let announced = cause_of(&parsed);
    assert_eq!(announced.case, Some("announced-too-early"), "{announced:?}");
    let mut rounds = trace(text);
    for (label, like) in [("more", "put"), ("early", "get")] {
        let stack = rounds.trace.event(rounds.event(like)).stack.clone();
        let id = rounds.event(label);
        rounds.trace.events[id.index()].stack = stack;
    }
    let cause = cause_of(&rounds);
    assert_eq!(cause.case, Some("use-before-initialisation"), "{cause:?}");
    assert_eq!(cause.events, events(&rounds, &["early", "more"]));
}

/// A lock of the program's own is taken by an atomic update and given back by a write; who takes it next sees that.
const OWN_LOCK: &str = "
    cell locked 32 = 0
    cell senders 32 = 1
    a: [take] RMW locked -> x = 1
    a: assume x == 0
    a: [give] W locked 0
    a: [drop] W senders 0
    b: [look] RMW locked -> y = 1
    b: assume y == 0
    b: [get] R senders -> n
    b: fail n == 1
";

#[test]
fn a_lock_that_is_given_back_announces_nothing() {
    let cause = cause_of(&trace(OWN_LOCK));
    assert_ne!(cause.case, Some("announced-too-early"), "{cause:?}");
    // Who takes a step further than it was says something by that.
    let step = OWN_LOCK.replace("W locked 0", "W locked 2").replace("y == 0", "y == 2");
    assert_eq!(cause_of(&trace(&step)).case, Some("announced-too-early"));
}

#[test]
fn who_finds_a_lock_taken_has_not_come_between() {
    let text = "
        cell locked 32 = 0
        a: [take] RMW locked -> x = 1
        a: assume x == 0
        a: [give] W locked 0
        b: [ask] RMW locked -> y = 1
        b: fail y == 1
    ";
    let cause = cause_of(&trace(text));
    assert_eq!(cause.pattern, Pattern::Order, "{cause:?}");
    // Another value is one that was meant for nobody else.
    let half = cause_of(&trace(&text.replace("W locked 0", "W locked 2")));
    assert_eq!(half.pattern, Pattern::Atomicity, "{half:?}");
}

/// Who waits for the end looks twice, and clears up when it has seen that it is there.
const WAITED: &str = "
    cell done 32 = 0
    cell item 32 = 1
    a: [look] R done -> d
    a: assume d == 0
    a: [again] R done -> e
    a: assume e == 1
    a: [clear] W item 0
    b: [say] W done 1
    b: [get] R item -> i
    b: fail i == 0
";

#[test]
fn who_has_seen_the_change_decided_by_no_earlier_look() {
    let cause = cause_of(&trace(WAITED));
    assert_ne!(cause.case, Some("decided-too-early"), "{cause:?}");
    let once = WAITED.replace("    a: [again] R done -> e\n    a: assume e == 1\n", "");
    assert_eq!(cause_of(&trace(&once)).case, Some("decided-too-early"));
}

/// One variable and another are written under a lock, each time the whole.
const STEPS: &str = "
    cell count 32 = 0
    cell slot 32 = 0
    a: lock m
    a: [first] W count 1
    a: unlock m
    a: lock m
    a: [second] W slot 1
    a: unlock m
    b: lock m
    b: [look] R count -> n
    b: assume n != 0
    b: [read] R slot -> s
    b: unlock m
    b: fail s == 0
";

/// The section of an insertion is over when that of the next one begins: what the first has written announces nothing of
/// what the second writes.
#[test]
fn a_step_under_a_lock_does_not_announce_the_next_one() {
    let mut parsed = trace(STEPS);
    let cause = cause_of(&parsed);
    assert_eq!(cause.case, Some("announced-too-early"), "{cause:?}");
    let [first, second] = ["first", "second"].map(|label| parsed.labels[label].index());
    parsed.trace.events[second].stack = parsed.trace.events[first].stack.clone();
    let cause = cause_of(&parsed);
    assert_ne!(cause.case, Some("announced-too-early"), "{cause:?}");
}

/// There is no order to tell of where nobody else was there yet.
#[test]
fn that_there_was_one_thread_is_told() {
    let alone = |text| cause_of(&trace(text)).case == Some("one-thread");
    assert!(alone("t0: W x 1\n t0: R x -> p\n t0: fail p < 2"));
    assert!(!alone("t0: fork a\n t0: R x -> p\n t0: fail p < 2"));
    assert!(!alone("a: W x 1\n b: R x -> p\n b: fail p < 2"));
}

/// A worker asks for the next task: with the unit of the one before it it has nothing to give back, also where that was posted
/// before any worker looked.
#[test]
fn who_took_a_task_holds_no_lock() {
    let told = |text: &str| {
        let mut parsed = parse(text).expect("the text is a trace");
        let more = parsed.event("more");
        let task = parsed.trace.event(parsed.event("take")).kind.object().expect("a semaphore");
        parsed.trace.events[more.index()].kind =
            EventKind::Block { on: Awaited::Unit { object: task } };
        if let Some(failure) = &mut parsed.trace.failure {
            failure.kind = FailureKind::Hang;
        }
        cause_of(&parsed).sentence
    };
    let worker = "w: [take] sem-wait task\nw: [more] W y 1\n";
    let handed = told(&format!("sem task 0\nt0: fork w\nt0: post task\n{worker}t0: fail\n"));
    assert!(!handed.contains("took itself"), "{handed}");
    // The first thread is always there.
    let answered = told(
        "sem task 0\nt0: fork w\nw: post task\nt0: [take] sem-wait task\nt0: [more] W y 1\nw: fail\n",
    );
    assert!(!answered.contains("took itself"), "{answered}");
    let opened = told(&format!("sem task 0\nt0: post task\nt0: fork w\n{worker}t0: fail\n"));
    assert!(opened.contains("took itself"), "{opened}");
}
