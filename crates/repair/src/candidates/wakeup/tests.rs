use super::*;
use encoders::dsl::parse;
use explain::Pattern;
use model::Site;

/// A thread waits a second time, and has looked at `stop` before.
const LOOK: &str = "
        t0: [look] R stop -> s
        t0: assume s == 0
        t0: lock m
";

/// What comes of such a thread, where it waited first at this line.
fn of_second_wait<T>(look: &str, line: u32, asked: impl FnOnce(&Bug<'_>) -> T) -> T {
    let text = format!(
        "t0: fork a
        t0: lock m
        t0: [first] wait told m
        t0: unlock m
        {look}
        t0: [second] unlock m
        t0: [asleep] W pad 1
        t0: fail
        a: signal told
        a: [end] W stop 1
        a: [tell] broadcast told
    "
    );
    let mut parsed = parse(&text).expect("the text is a trace");
    let [first, look, second, asleep, end, tell] =
        ["first", "look", "second", "asleep", "end", "tell"].map(|label| parsed.event(label));
    let condition = parsed.trace.event(tell).kind.object().expect("a condition");
    parsed.trace.events[asleep.index()].kind =
        EventKind::Block { on: Awaited::Signal { condition } };
    let wakes = |event: &Event| match event.kind {
        EventKind::Wake { began, .. } => Some(began),
        _ => None,
    };
    assert_eq!(parsed.trace.events.iter().find_map(wakes), Some(first));
    for (id, line) in [(first, line), (second, 30)] {
        let site = Site { file: "pool.c".into(), line, ..Site::default() };
        parsed.trace.events[id.index()].stack = [site].into();
    }
    let events = [look, end, tell, asleep];
    asked(&Bug::by_hand(&parsed.trace, Pattern::MissedWakeup, &events))
}

fn tested_first(line: u32) -> Repair {
    of_second_wait(LOOK, line, |bug| {
        let missed = Missed::of(bug).expect("a signal was missed");
        missed.test_first().expect("it may ask first").repair
    })
}

/// The function that tells has what the mutex is a member of by another name than who waits, and takes it nowhere.
#[test]
fn the_mutex_of_a_wait_is_called_as_what_lies_beside_it() {
    let text = "
        t0: fork a
        t0: [take] lock m
        t0: [look] R stop -> s
        t0: assume s == 0
        t0: [begin] unlock m
        t0: [asleep] W pad 1
        t0: fail
        a: [end] W stop 1
        a: [tell] broadcast told
    ";
    let mut parsed = parse(text).expect("the text is a trace");
    let [end, tell, asleep] = ["end", "tell", "asleep"].map(|label| parsed.event(label));
    let condition = parsed.trace.event(tell).kind.object().expect("a condition");
    parsed.trace.events[asleep.index()].kind =
        EventKind::Block { on: Awaited::Signal { condition } };
    let site = |line: u32, function: &str| Site {
        file: "jobs.rs".into(),
        line,
        function: function.into(),
        ..Site::default()
    };
    for (label, line, name) in [
        ("take", 54, Some("shared.jobs")),
        ("look", 60, Some("shared.stopping")),
        ("begin", 63, None),
        ("end", 44, Some("self.shared.stopping")),
        ("tell", 45, None),
    ] {
        let id = parsed.event(label);
        let event = &mut parsed.trace.events[id.index()];
        let function = if line < 50 { "shutdown" } else { "work" };
        event.stack = [site(line, function)].into();
        event.name = name.map(Into::into);
    }
    let events = [end, tell, asleep];
    let bug = Bug::by_hand(&parsed.trace, Pattern::MissedWakeup, &events);
    let missed = Missed::of(&bug).expect("a signal was missed");
    let lines = Span { last: 45, ..Span::of(&site(44, "shutdown")) };
    assert_eq!(missed.mutex_in(&lines), "self.shared.jobs");
}

/// Who waits no longer than for a while fails along that path in any order: the repair is about the wait's signal.
#[test]
fn what_is_told_before_a_wait_with_a_limit_is_looked_for_first() {
    let text = "
        t0: fork a
        t0: lock m
        t0: [begin] wait-timed-out told m
        t0: unlock m
        t0: fail
        a: [tell] broadcast told
    ";
    let parsed = parse(text).expect("the text is a trace");
    let is_end = |event: &&Event| matches!(event.kind, EventKind::WaitTimedOut { .. });
    let end = parsed.trace.events.iter().find(is_end).expect("the time was up");
    let events = [parsed.event("tell"), end.id];
    let bug = Bug::by_hand(&parsed.trace, Pattern::MissedWakeup, &events);
    let [first] = &candidates(&bug)[..] else { panic!("one candidate is expected") };
    assert_eq!(first.repair.kind, Kind::TestBeforeWait);
    let failure = first.edited.trace.failure.as_ref().expect("a failure");
    assert!(matches!(failure.condition, FailureCondition::Unwoken { .. }), "{failure:?}");
}

/// A worker without work waits in every order, and would be told by who missed the signal.
#[test]
fn who_waits_beside_does_not_refuse_a_repair() {
    let text = "
        t0: fork a
        t0: lock m
        t0: signal work
        t0: unlock m
        t0: lock m
        t0: [look] R busy -> b
        t0: assume b == 1
        t0: [began] unlock m
        t0: [asleep] W pad 1
        t0: fail
        a: W busy 1
        a: [end] W busy 0
        a: [tell] signal done
        a: lock m
        a: [idle] unlock m
    ";
    let mut parsed = parse(text).expect("the text is a trace");
    let [look, began, asleep, end, tell, idle] =
        ["look", "began", "asleep", "end", "tell", "idle"].map(|label| parsed.event(label));
    let condition = parsed.trace.event(tell).kind.object().expect("a condition");
    parsed.trace.events[asleep.index()].kind =
        EventKind::Block { on: Awaited::Signal { condition } };
    for (id, line) in [(look, 20), (began, 21), (end, 30), (tell, 31)] {
        let site = Site { file: "pool.c".into(), line, ..Site::default() };
        parsed.trace.events[id.index()].stack = [site].into();
    }
    let signals = |event: &&Event| matches!(event.kind, EventKind::Signal { .. });
    let work = parsed.trace.events.iter().find(signals).expect("work is told of").id;
    let ways = [(tell, began), (work, idle)].map(|(a, b)| FailureCondition::Before(a, b));
    let failure = parsed.trace.failure.as_mut().expect("a failure");
    failure.condition = FailureCondition::Any(ways.into());
    let events = [look, end, tell, asleep];
    let bug = Bug::by_hand(&parsed.trace, Pattern::MissedWakeup, &events);
    let [first, ..] = &candidates(&bug)[..] else { panic!("a candidate is expected") };
    assert_eq!(first.repair.kind, Kind::CriticalSection);
    let limits = crate::check::Limits {
        time: std::time::Duration::from_secs(20),
        memory_mb: None,
        left: &|| std::time::Duration::from_secs(20),
    };
    let verdict = crate::check::check((&parsed.trace, None), &first.edited, limits);
    let verdict = verdict.expect("the solver answers");
    assert!(matches!(verdict, crate::check::Verdict::Holds(_)), "{verdict:?}");
}

/// Two workers wait at one place and test nothing: the test that is missing there is missing for both.
#[test]
fn a_test_before_a_wait_is_made_by_all_who_come_there() {
    let text = "
        t0: fork a
        t0: fork b
        t0: [tell] TELL told
        t0: lock m
        t0: [rest] unlock m
        t0: fail
        a: lock m
        a: [one] unlock m
        a: [first] W pad 1
        b: lock m
        b: [two] unlock m
        b: [second] W pad 2
    ";
    let holds = |how: &str| {
        let mut parsed = parse(&text.replace("TELL", how)).expect("the text is a trace");
        let [tell, one, first, two, second] =
            ["tell", "one", "first", "two", "second"].map(|label| parsed.event(label));
        let condition = parsed.trace.event(tell).kind.object().expect("a condition");
        for id in [first, second] {
            parsed.trace.events[id.index()].kind =
                EventKind::Block { on: Awaited::Signal { condition } };
            let site = Site { file: "pool.c".into(), line: 20, ..Site::default() };
            parsed.trace.events[id.index()].stack = [site].into();
        }
        let ways = [one, two].map(|began| FailureCondition::Unwoken { condition, began });
        let failure = parsed.trace.failure.as_mut().expect("a failure");
        failure.condition = FailureCondition::Any(ways.into());
        let events = [tell, first];
        let bug = Bug::by_hand(&parsed.trace, Pattern::MissedWakeup, &events);
        let missed = Missed::of(&bug).expect("a signal was missed");
        let found = missed.test_first().expect("it may ask first");
        let limits = crate::check::Limits {
            time: std::time::Duration::from_secs(20),
            memory_mb: None,
            left: &|| std::time::Duration::from_secs(20),
        };
        let verdict = crate::check::check((&parsed.trace, None), &found.edited, limits);
        matches!(verdict.expect("the solver answers"), crate::check::Verdict::Holds(_))
    };
    assert!(holds("broadcast"));
    // One signal wakes one of them: that it has come says nothing to the other.
    assert!(!holds("signal"));
}

#[test]
fn who_tests_under_the_mutex_is_not_told_to() {
    let kinds = |look: &str| -> Vec<Kind> {
        let found = of_second_wait(look, 20, candidates);
        found.into_iter().map(|found| found.repair.kind).collect()
    };
    assert_eq!(kinds(LOOK), [Kind::TestBeforeWait]);
    let inside = "t0: lock m\n t0: [look] R stop -> s\n t0: assume s == 0";
    assert_eq!(kinds(inside), [Kind::CriticalSection]);
}

/// Whether who signals does so behind its section, in the function that it has it in, changes nothing of that.
#[test]
fn who_tests_what_was_written_under_the_mutex_is_not_told_to() {
    let text = "
        t0: fork a
        t0: lock m
        t0: [look] R full -> f
        t0: assume f == 0
        t0: [began] unlock m
        t0: [asleep] W pad 1
        t0: fail
        a: lock m
        a: W full 1
        a: [given] unlock m
        a: [tell] signal told
    ";
    let mut parsed = parse(text).expect("the text is a trace");
    let [look, asleep, given, tell] =
        ["look", "asleep", "given", "tell"].map(|label| parsed.event(label));
    let condition = parsed.trace.event(tell).kind.object().expect("a condition");
    parsed.trace.events[asleep.index()].kind =
        EventKind::Block { on: Awaited::Signal { condition } };
    let mut asks_first = |told_in: &str| {
        for (id, function) in [(given, "push"), (tell, told_in)] {
            let site = Site { function: function.into(), file: "q.c".into(), line: 9, column: 0 };
            parsed.trace.events[id.index()].stack = [site].into();
        }
        let events = [look, tell, asleep];
        let bug = Bug::by_hand(&parsed.trace, Pattern::MissedWakeup, &events);
        Missed::of(&bug).expect("a signal was missed").test_first().is_some()
    };
    assert!(!asks_first("push"));
    assert!(asks_first("stop"));
}

/// Who made them may have called them otherwise as well.
#[test]
fn a_mutex_and_its_condition_variable_are_called_as_each_function_calls_them() {
    let text = "
        t0: [made] fork a
        t0: [own] lock m
        t0: [began] unlock m
        t0: [asleep] W pad 1
        t0: fail
        a: [held] lock m
        a: [tell] signal told
        a: [given] unlock m
    ";
    let mut parsed = parse(text).expect("the text is a trace");
    let [own, began, asleep, held, tell, given] =
        ["own", "began", "asleep", "held", "tell", "given"].map(|label| parsed.event(label));
    let condition = parsed.trace.event(tell).kind.object().expect("a condition");
    parsed.trace.events[asleep.index()].kind =
        EventKind::Block { on: Awaited::Signal { condition } };
    for (id, function, name) in [
        (own, "fetch", "wheel.guard"),
        (began, "fetch", "wheel.guard"),
        (asleep, "fetch", "wheel.filled"),
        (held, "fill", "self.guard"),
        (tell, "fill", "self.filled"),
        (given, "fill", "self.guard"),
    ] {
        let site = Site { function: function.into(), file: "w.c".into(), line: 9, column: 0 };
        let event = &mut parsed.trace.events[id.index()];
        (event.stack, event.name) = ([site].into(), Some(name.into()));
    }
    let events = [tell, asleep];
    let bug = Bug::by_hand(&parsed.trace, Pattern::MissedWakeup, &events);
    let missed = Missed::of(&bug).expect("a signal was missed");
    let steps = missed.test_first().expect("it may ask first").repair.steps;
    assert!(steps[0].starts_with("in fetch, test under `wheel.guard` whether"), "{steps:?}");
    assert!(steps[0].contains("before waiting for `wheel.filled` ("), "{steps:?}");
    assert!(steps[1].starts_with("in fill, note under `self.guard` that"), "{steps:?}");
    let steps = missed.broadcast().expect("it may wake all").repair.steps;
    assert!(steps[0].contains("broadcast `self.filled` rather"), "{steps:?}");
}

#[test]
fn a_place_that_others_waited_at_orders_no_signal_behind_the_wait() {
    let once = tested_first(20);
    assert!(matches!(once.rule, Rule::After { .. }), "{once:?}");
    assert_eq!(tested_first(30).rule, Rule::None);
    assert!(once.steps[0].contains("whether `stop` says that it has happened"), "{once:?}");
}

/// Who waits looks under another lock than the one of its wait, and holds both then; who tells has left that other lock.
#[test]
fn what_is_tested_under_a_lock_of_its_own_is_signalled_under_the_waits_mutex() {
    let text = "
        t0: fork a
        t0: [take] lock m
        t0: lock stats
        t0: [look] R done -> s
        t0: unlock stats
        t0: assume s == 0
        t0: [begin] unlock m
        t0: [asleep] W pad 1
        t0: fail
        a: [count] lock stats
        a: [end] W done 1
        a: [leave] unlock stats
        a: [tell] broadcast told
    ";
    let mut parsed = parse(text).expect("the text is a trace");
    let [end, tell, asleep, look] = ["end", "tell", "asleep", "look"].map(|l| parsed.event(l));
    let condition = parsed.trace.event(tell).kind.object().expect("a condition");
    parsed.trace.events[asleep.index()].kind =
        EventKind::Block { on: Awaited::Signal { condition } };
    for (label, line) in [("count", 13), ("end", 14), ("leave", 16), ("tell", 17)] {
        let id = parsed.event(label);
        let site = Site { file: "a.cc".into(), line, function: "finish".into(), ..Site::default() };
        parsed.trace.events[id.index()].stack = [site].into();
    }
    let events = [look, end, tell, asleep];
    let bug = Bug::by_hand(&parsed.trace, Pattern::MissedWakeup, &events);
    let found = Missed::of(&bug).expect("a signal was missed").under_mutex();
    let repair = found.expect("it is signalled under the mutex").repair;
    let [place] = &repair.places[..] else { panic!("one place is expected") };
    assert_eq!((place.first, place.last), (17, 17), "{:?}", repair.steps);
}
