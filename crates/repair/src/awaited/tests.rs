use crate::possible::Possible;
use crate::{Bug, Limits};
use encoders::dsl::{Parsed, parse};
use explain::Pattern;
use model::{EventId, EventKind, Site};
use std::time::Duration;

const LIMITS: Limits<'_> =
    Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };

/// A trace whose threads, the first of which is `t0`, are in these functions.
fn trace(text: &str, functions: &[(&str, &str)]) -> Parsed {
    let mut parsed = parse(text).expect("the text is a trace");
    for event in &mut parsed.trace.events {
        let thread = parsed.trace.threads[event.thread.index()].name.to_string();
        if let Some((_, function)) = functions.iter().find(|(name, _)| *name == thread) {
            let site = Site { function: (*function).to_owned(), ..Site::default() };
            event.stack = [site].into();
        }
    }
    parsed
}

fn all_of(parsed: &Parsed, fits: fn(&EventKind) -> bool) -> Vec<EventId> {
    parsed.trace.events.iter().filter(|event| fits(&event.kind)).map(|event| event.id).collect()
}

/// A run in which `p` and `q` wait, and `r` writes what both look at and tells it like this.
fn told(to_p: &str, to_q: &str, tells: &str) -> String {
    let waits = |name: &str, on: &str| {
        format!(
            "{name}: lock m\n {name}: R x -> {name}1\n {name}: wait {on} m\n {name}: unlock m\n"
        )
    };
    format!("{}{} r: lock m\n r: W x 1\n {tells} r: unlock m\n", waits("p", to_p), waits("q", to_q))
}

/// Asks about a signal of `r` that woke `q`, while `p` went on waiting.
fn ask(run: &str, functions: &[(&str, &str)]) -> Possible {
    let failing = trace(&told("c", "c", "r: signal c\n"), functions);
    let signal = all_of(&failing, |kind| matches!(kind, EventKind::Signal { .. }));
    let wakes = all_of(&failing, |kind| matches!(kind, EventKind::Wake { .. }));
    let events = [signal[0], wakes[1], wakes[0]];
    let bug = Bug::by_hand(&failing.trace, Pattern::MissedWakeup, &events);
    super::awaited(&bug, &trace(run, functions).trace, LIMITS)
}

const APART: [(&str, &str); 3] = [("t0", "push"), ("t0.1", "pop"), ("t0.2", "close")];
const TOGETHER: [(&str, &str); 3] = [("t0", "pop"), ("t0.1", "pop"), ("t0.2", "close")];

/// A signal wakes one of those that wait, whatever they wait for.
#[test]
fn a_signal_that_can_wake_another_one_still_can() {
    let twice = told("c", "c", "r: signal c\n r: signal c\n");
    let two = |answer: &Possible| match answer {
        Possible::Yes { place, .. } => place.contains("wakes one of those that wait"),
        _ => false,
    };
    for functions in [APART, TOGETHER] {
        let answer = ask(&twice, &functions);
        assert!(two(&answer), "{answer:?}");
        let all = ask(&told("c", "c", "r: broadcast c\n"), &functions);
        assert!(matches!(all, Possible::No(_)), "{all:?}");
    }
    // A condition for each of what is waited for.
    let apart = told("c", "d", "r: signal c\n r: signal d\n");
    let answer = ask(&apart, &APART);
    assert!(matches!(answer, Possible::No(_)), "{answer:?}");
    // One of the two did not wait.
    let alone = "p: lock m\n p: R x -> p1\n p: wait c m\n p: unlock m\n q: lock m\n q: unlock m\n r: lock m\n \
                 r: W x 1\n r: signal c\n r: unlock m";
    let answer = ask(alone, &APART);
    assert!(matches!(answer, Possible::Untouched(_)), "{answer:?}");
}

/// Who waits itself at other times has to write under the mutex, too; and who waits for another object counts for nothing.
#[test]
fn others_that_wait_keep_to_the_mutex() {
    let text = |write: &str| {
        format!(
            "p: lock m\n p: R x -> p1\n p: wait c m\n p: unlock m\n q: lock m\n q: R x -> q1\n q: wait c m\n q: unlock m\n \
             {write} r: lock m\n r: W x 1\n r: broadcast c\n r: unlock m\n"
        )
    };
    let failing = trace(&text(""), &APART);
    let tells = all_of(&failing, |kind| matches!(kind, EventKind::Broadcast { .. }));
    let bug = Bug::by_hand(&failing.trace, Pattern::MissedWakeup, &tells);
    let of = |run: &str| super::awaited(&bug, &trace(run, &APART).trace, LIMITS);
    let guarded = of(&text("q: lock m\n q: W x 2\n q: unlock m\n"));
    assert!(matches!(guarded, Possible::No(_)), "{guarded:?}");
    let bare = of(&text("q: W x 2\n"));
    assert!(matches!(bare, Possible::Yes { .. }), "{bare:?}");
    // Who takes the mutex behind the write, and signals then, wakes whoever did not see it.
    let behind = of(&text("q: W x 2\n q: lock m\n q: broadcast c\n q: unlock m\n"));
    assert!(matches!(behind, Possible::No(_)), "{behind:?}");
    let after = of(&text("q: W x 2\n q: lock m\n q: unlock m\n q: broadcast c\n"));
    assert!(matches!(after, Possible::No(_)), "{after:?}");
    let before = of(&text("q: W x 2\n q: broadcast c\n q: lock m\n q: unlock m\n"));
    assert!(matches!(before, Possible::Yes { .. }), "{before:?}");

    // What counts something else in the same word leaves them waiting, and is not signalled.
    let counted = |step: &str| {
        let waits = |name: &str| {
            format!(
                "{name}: lock m\n {name}: R x -> {name}1\n {name}: assume ({name}1 & 1) == 0\n {name}: wait c m\n \
                 {name}: unlock m\n"
            )
        };
        of(&format!(
            "{}{} s: R y -> s0\n s: RMW x -> s1 = s1 + {step}\n r: lock m\n r: RMW x -> r2 = r2 | 1\n r: broadcast c\n r: unlock m\n",
            waits("p"),
            waits("q")
        ))
    };
    let owners = counted("2");
    assert!(matches!(owners, Possible::No(_)), "{owners:?}");
    let bare = counted("1");
    assert!(matches!(bare, Possible::Yes { .. }), "{bare:?}");
    // What hangs on something else may be anything in another schedule.
    let other = counted("(s0 * 2)");
    assert!(matches!(other, Possible::Yes { .. }), "{other:?}");

    let pair = |name: &str| {
        let text = "a: lock m\n a: R x -> a1\n a: wait c m\n a: unlock m\n b: lock m\n b: W x 1\n b: signal c\n b: unlock m\n";
        let text = text.replace("a:", &format!("a{name}:")).replace("b:", &format!("b{name}:"));
        let text = text.replace(" m", &format!(" m{name}")).replace(" x", &format!(" x{name}"));
        text.replace(" c", &format!(" c{name}")).replace("a1", &format!("a1{name}"))
    };
    let mut failing = trace(&pair("0"), &[]);
    let mut run = trace(&(pair("0") + &pair("1")), &[]);
    for object in failing.trace.objects.iter_mut().chain(&mut run.trace.objects) {
        object.name = object.name.trim_end_matches(['0', '1']).to_owned();
    }
    for event in failing.trace.events.iter_mut().chain(&mut run.trace.events) {
        event.name = event.name.take().map(|name| name.trim_end_matches(['0', '1']).into());
    }
    let tells = all_of(&failing, |kind| matches!(kind, EventKind::Signal { .. }));
    let bug = Bug::by_hand(&failing.trace, Pattern::MissedWakeup, &tells);
    let answer = super::awaited(&bug, &run.trace, LIMITS);
    assert!(matches!(answer, Possible::No(_)), "{answer:?}");
}

/// What is written before there are threads, and behind the end of others at the same place, is not waited for.
#[test]
fn what_is_written_between_two_lives_of_an_object_needs_no_mutex() {
    let life = |thread: &str, first: &str| {
        format!(
            "t0: {first}\n t0: fork {thread}\n {thread}: lock m\n {thread}: R x -> {thread}1\n {thread}: wait c m\n \
             {thread}: unlock m\n t0: lock m\n t0: W x 1\n t0: broadcast c\n t0: unlock m\n t0: join {thread}\n"
        )
    };
    let again = "fork s\n s: W x 0\n t0: join s";
    let run = life("p", "W x 0") + &life("q", again);
    let failing = trace(&run, &[]);
    let tells = all_of(&failing, |kind| matches!(kind, EventKind::Broadcast { .. }));
    let bug = Bug::by_hand(&failing.trace, Pattern::MissedWakeup, &tells);
    let answer = super::awaited(&bug, &failing.trace, LIMITS);
    assert!(matches!(answer, Possible::No(_)), "{answer:?}");
    // Threads of the first life that go on may still look at it.
    let unjoined = trace(&run.replace("t0: join p\n", ""), &[]);
    let answer = super::awaited(&bug, &unjoined.trace, LIMITS);
    assert!(matches!(answer, Possible::Yes { .. }), "{answer:?}");
}

/// `std::condition_variable_any` waits with a mutex of its own, and gives the program's lock back under that.
#[test]
fn a_lock_that_is_handed_over_is_the_one_of_the_wait() {
    let text = |signal: &str, write: &str| {
        format!(
            "p: lock m\n p: R x -> p1\n p: lock i\n p: unlock m\n p: wait c i\n p: unlock i\n p: lock m\n p: unlock m\n \
             {write}{signal}"
        )
    };
    let of = |signal: &str, write: &str| {
        let run = trace(&text(signal, write), &[]);
        let tells = all_of(&run, |kind| matches!(kind, EventKind::Broadcast { .. }));
        let bug = Bug::by_hand(&run.trace, Pattern::MissedWakeup, &tells);
        super::awaited(&bug, &run.trace, LIMITS)
    };
    let guarded = "r: lock m\n r: W x 1\n r: unlock m\n ";
    let told = "r: lock i\n r: unlock i\n r: lock i\n r: broadcast c\n r: unlock i\n";
    let answer = of(told, guarded);
    assert!(matches!(answer, Possible::No(_)), "{answer:?}");
    let bare = of(told, "r: W x 1\n ");
    assert!(matches!(bare, Possible::Yes { .. }), "{bare:?}");
    // Who signals without that mutex may come before the wait has begun.
    let outside = of("r: broadcast c\n", guarded);
    assert!(matches!(outside, Possible::Yes { .. }), "{outside:?}");
}

/// Of two workers that look at a flag each, the one that is not ended waits.
#[test]
fn who_waits_for_something_else_says_nothing() {
    let named = |text: &str| {
        let mut parsed = trace(text, &[]);
        for event in parsed.trace.events.iter_mut().filter(|event| event.kind.is_access()) {
            event.name = Some("stop".into());
        }
        parsed
    };
    let text = |other: &str| {
        format!(
            "p: lock m\n p: R x -> p1\n p: wait c m\n p: unlock m\n r: lock m\n r: W {other} 1\n r: broadcast c\n r: unlock m\n"
        )
    };
    let [own, other] = ["x", "y"].map(|cell| named(&text(cell)));
    let mut events = all_of(&own, |kind| matches!(kind, EventKind::Broadcast { .. }));
    events.extend(all_of(&own, |kind| matches!(kind, EventKind::Write { .. })));
    let bug = Bug::by_hand(&own.trace, Pattern::MissedWakeup, &events);
    let answer = super::awaited(&bug, &own.trace, LIMITS);
    assert!(matches!(answer, Possible::No(_)), "{answer:?}");
    let answer = super::awaited(&bug, &other.trace, LIMITS);
    assert!(matches!(answer, Possible::Untouched(_)), "{answer:?}");
    // Nor where it looks at jobs besides, and nobody writes its own flag.
    let mut jobs = named(&format!("r: lock m\n r: [job] W x 1\n r: unlock m\n {}", text("y")));
    let id = jobs.event("job");
    jobs.trace.events[id.index()].name = Some("jobs".into());
    for event in &mut jobs.trace.events {
        if matches!(event.kind, EventKind::Read { .. }) {
            event.name = Some("jobs".into());
        }
    }
    let answer = super::awaited(&bug, &jobs.trace, LIMITS);
    assert!(matches!(answer, Possible::Untouched(_)), "{answer:?}");
}

/// A thread that is woken for what is there no more when it looks is not told too early.
#[test]
fn what_is_undone_before_it_is_looked_at_is_another_matter() {
    let text = "p: lock m\n p: [check] R x -> p1\n p: wait c m\n p: [look] R x -> p2\n p: unlock m\n r: lock m\n \
                r: [tell] W x 1\n r: [signal] broadcast c\n r: unlock m\n r: lock m\n r: [undo] W x 0\n r: unlock m";
    let run = trace(text, &[]);
    let of = |labels: &[&str]| {
        let events: Vec<EventId> = labels.iter().map(|label| run.event(label)).collect();
        let bug = Bug::by_hand(&run.trace, Pattern::MissedWakeup, &events);
        super::awaited(&bug, &run.trace, LIMITS)
    };
    let undone = of(&["signal", "undo", "look"]);
    assert!(matches!(undone, Possible::Unknown(_)), "{undone:?}");
    let early = of(&["check", "tell", "signal"]);
    assert!(!matches!(early, Possible::Unknown(_)), "{early:?}");
}
