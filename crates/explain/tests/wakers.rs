//! Threads that go on because another one woke them, which it does not do in the run that passes.

use crate::support::runs::{Run, cause_across, compared};
use encoders::dsl::parse;
use explain::Flipped;
use solver::Order;

/// A thread makes connections when it is told that there is none; a sender that looks too late has it make one too many.
const ONE_TOO_MANY: &str = "
    cell up 32 = 1
    cell made 32 = 1
    t0: fork io
    t0: fork sender
    t0: fork other
    io: lock m
    io: wait c m
    io: [look] R closing -> k
    io: assume k == 0
    io: [make] W made 2
    io: unlock m
    sender: lock m
    sender: [asks] R up -> u
    sender: assume u == 1
    sender: signal c
    sender: unlock m
    other: lock m
    other: [down] W up 0
    other: unlock m
    t0: join sender
    t0: join other
    t0: lock m
    t0: [count] R made -> n
    t0: [close] W closing 1
    t0: broadcast c
    t0: unlock m
    t0: join io
    t0: fail n > 1
";

/// A run in which so many events of each thread come in turn; `None` for all that are left.
fn run(text: &str, turns: &[(usize, Option<usize>)]) -> Run {
    let parsed = parse(text).expect("the text is a trace");
    let mut left: Vec<usize> = parsed.trace.threads.iter().map(|one| one.events.len()).collect();
    let mut order = Vec::new();
    for (thread, events) in turns {
        let events = events.unwrap_or(left[*thread]);
        left[*thread] -= events;
        order.extend(std::iter::repeat_n(*thread, events));
    }
    Run::in_order(parsed, &order)
}

const MAIN: usize = 0;
const IO: usize = 1;
const SENDER: usize = 2;
const OTHER: usize = 3;

/// The run that passes, of such a text: up to the wait, then the writer, the sender that looks behind it, and who ends the run.
fn passing(text: &str) -> Run {
    let text = text
        .replace("k == 0", "k == 1")
        .replace("io: [make] W made 2", "")
        .replace("u == 1", "u == 0")
        .replace("sender: signal c", "");
    let turns = [(MAIN, Some(4)), (IO, Some(3)), (OTHER, None), (SENDER, None), (MAIN, Some(7))];
    run(&text, &[&turns[..], &[(IO, None), (MAIN, None)]].concat())
}

#[test]
fn who_was_woken_in_one_run_alone_went_on_because_of_its_waker() {
    let failing = Run::failing(ONE_TOO_MANY);
    let found = compared(&failing, &passing(ONE_TOO_MANY));
    let flipped = Order { before: failing.event("asks"), after: failing.event("down") };
    assert_eq!(found.flipped, Flipped::Reversed(flipped), "{found:?}");
}

/// What decides where the thread goes may have been read by another one, later in its own events than all that the thread does.
#[test]
fn what_another_thread_has_read_says_nothing_of_who_was_woken() {
    let reads = "io: [look] R closing -> k\n".to_owned()
        + &"    other: W pad 1\n".repeat(12)
        + "    other: R rest -> q\n";
    let text = ONE_TOO_MANY
        .replace("io: [look] R closing -> k\n", &reads)
        .replace("sender: lock m", "sender: W rest 1\n    sender: lock m");
    let failing = text.replace("k == 0", "k + q == 1");
    let turns = [(MAIN, Some(4)), (IO, Some(3)), (SENDER, None), (IO, Some(3)), (OTHER, Some(14))];
    let failing = run(&failing, &[&turns[..], &[(IO, None), (OTHER, None), (MAIN, None)]].concat());
    let found = compared(&failing, &passing(&text));
    let flipped = Order { before: failing.event("asks"), after: failing.event("down") };
    assert_eq!(found.flipped, Flipped::Reversed(flipped), "{found:?}");
}

/// A thread that waits no longer than for a while, and goes by whether its time was up.
const IN_TIME: &str = "
    t0: fork a
    t0: lock m
    t0: [begin] wait c m
    t0: unlock m
    a: [tell] broadcast c
";

/// Along the path on which the time is up the run fails in any order: what counts is that the wait had no signal.
#[test]
fn a_signal_that_comes_before_a_wait_with_a_limit_is_told() {
    let failing = IN_TIME.replace("wait c", "wait-timed-out c") + "t0: fail\n";
    // The one thread's first steps, the whole of the other, and the rest.
    let run = |text: &str, first: usize| {
        let parsed = parse(text).expect("the text is a trace");
        let [main, other] = [0, 1].map(|thread: usize| parsed.trace.threads[thread].events.len());
        let turns = [(0, first), (1, other), (0, main - first)];
        let turns = turns.iter().flat_map(|(thread, steps)| std::iter::repeat_n(*thread, *steps));
        Run::in_order(parsed, &turns.collect::<Vec<usize>>())
    };
    // Up to the creation of the thread, or to the release of the mutex.
    let (tell_first, wait_first) = (run(&failing, 2), run(IN_TIME, 4));
    let found = compared(&tell_first, &wait_first);
    let flipped = Order { before: tell_first.event("tell"), after: begin(&tell_first) };
    assert_eq!(found.flipped, Flipped::Reversed(flipped), "{found:?}");
    let cause = cause_across(&tell_first, &wait_first);
    assert_eq!(
        (cause.pattern, cause.case),
        (explain::Pattern::MissedWakeup, Some("signal-before-wait")),
        "{cause:?}"
    );
    assert!(cause.sentence.contains("and the time of that wait was up"), "{cause:?}");
}

/// The release by which the wait begins.
fn begin(run: &Run) -> model::EventId {
    let timed_out = run.parsed.trace.events.iter().find_map(|event| match event.kind {
        model::EventKind::WaitTimedOut { began, .. } => Some(began),
        _ => None,
    });
    timed_out.expect("a wait with a limit")
}

/// Two workers rest, work, and rest again, and each counts itself. Who ends them says so before both rest: one leaves at work.
#[test]
fn behind_what_was_written_otherwise_there_is_no_use_to_have_looked() {
    let text = "
        cell rest 32 = 2
        t0: fork a
        t0: fork b
        a: RMW rest -> x = x - 1
        b: RMW rest -> y = y - 1
        t0: [end] W ended 1
        t0: [look] R rest -> r
        b: [see] R ended -> e
        b: assume e == 1
        b: RMW rest -> w = w + 1
        a: RMW rest -> z = z + 1
        t0: fail r != 2
    ";
    let both = [(0, Some(3)), (1, Some(2)), (2, Some(2))];
    let turns = [&both[..], &[(0, Some(2)), (2, None), (1, None), (0, None)]].concat();
    let failing = run(&text.replace("b: RMW rest -> w = w + 1", ""), &turns);
    let passing = text.replace("e == 1", "e == 0").replace("t0: fail r != 2", "");
    let turns = [&both[..], &[(2, None), (1, None), (0, None)]].concat();
    let found = compared(&failing, &run(&passing, &turns));
    let flipped = Order { before: failing.event("end"), after: failing.event("see") };
    assert_eq!(found.flipped, Flipped::Reversed(flipped), "{found:?}");
}
