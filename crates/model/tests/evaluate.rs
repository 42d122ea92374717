//! The evaluator on hand-written schedules: what is possible, and what is not.

use encoders::dsl::{Parsed, parse};
use model::evaluate::{Check, Evaluation, EvaluationError, Evaluator, evaluate};
use model::{EventId, EventKind, ReadRef, Schedule, ScheduleError, ThreadId, WriteSource};

fn trace(text: &str) -> Parsed {
    let parsed = parse(text).expect("the text is a trace");
    assert_eq!(model::verify::verify(&parsed.trace), Ok(()));
    parsed
}

/// A schedule by threads: starts, exits, creations and failures go along with the event before
/// them, or with the thread's first.
fn schedule(parsed: &Parsed, threads: &str) -> Vec<EventId> {
    let trace = &parsed.trace;
    let silent = |id: EventId| {
        use EventKind::{Exit, Failure, Fork, Start};
        matches!(trace.event(id).kind, Start | Exit | Fork { .. } | Failure)
    };
    let mut rest: Vec<&[EventId]> = trace.threads.iter().map(|t| &t.events[..]).collect();
    let mut order = Vec::new();
    let mut go_on = |thread: usize, visible: usize| {
        let mut left = visible;
        while let Some((&id, later)) = rest[thread].split_first()
            && (left > 0 || silent(id))
        {
            left -= usize::from(!silent(id));
            order.push(id);
            rest[thread] = later;
        }
    };
    go_on(0, 0);
    for name in threads.split_whitespace() {
        let thread = trace.threads.iter().position(|t| t.entry == name).expect("a thread");
        go_on(thread, 1);
    }
    (0..trace.threads.len()).for_each(|thread| go_on(thread, usize::MAX));
    order
}

fn run(parsed: &Parsed, threads: &str) -> Result<Evaluation, Vec<EvaluationError>> {
    Evaluator::new(&parsed.trace).run(&schedule(parsed, threads), &|_| None)
}

fn read(event: EventId) -> ReadRef {
    ReadRef { event, part: 0 }
}

#[test]
fn reads_get_the_most_recent_write() {
    let parsed = trace(
        "
        cell x 8 = 255
        a: [w] W x 7
        b: [first] R x -> p
        b: [rmw] RMW x -> q = q + p
        b: [last] R x -> r
        b: fail r == 6
        ",
    );
    let evaluation = run(&parsed, "b a b b").expect("possible");
    assert_eq!(evaluation.reads_from[&read(parsed.event("first"))], WriteSource::Init);
    let w = WriteSource::Write(parsed.event("w"));
    assert_eq!(evaluation.reads_from[&read(parsed.event("rmw"))], w);
    let rmw = WriteSource::Write(parsed.event("rmw"));
    assert_eq!(evaluation.reads_from[&read(parsed.event("last"))], rmw);
    assert_eq!(evaluation.last_writes, [rmw]);
    assert_eq!(evaluation.values, [Some(255), Some(7), Some(6)], "7 + 255 wraps at 8 bits");
    assert!(evaluation.fails && evaluation.failure_known);
    assert!(!run(&parsed, "a b b b").expect("possible").fails);
}

#[test]
fn what_is_no_schedule_is_said_in_full() {
    let parsed = trace("a: [w] W x 1\nb: R x -> p");
    let (w, order) = (parsed.event("w"), schedule(&parsed, "a b"));
    let mut wrong = order.clone();
    wrong.retain(|id| *id != w);
    wrong.push(order[0]);
    wrong.push(EventId(99));
    let errors = evaluate(&parsed.trace, &Schedule { order: wrong }, &|_| None).unwrap_err();
    let expected: Vec<EvaluationError> = vec![
        ScheduleError::Duplicate(order[0]).into(),
        ScheduleError::UnknownEvent(EventId(99)).into(),
        ScheduleError::Missing(w).into(),
    ];
    assert_eq!(errors, expected);
}

#[test]
fn program_order_creation_and_join_hold() {
    let parsed = trace("t0: fork a\nt0: [j] join a\na: [w] W x 1\na: [v] W x 2");
    let good = schedule(&parsed, "a a t0");
    assert!(Evaluator::new(&parsed.trace).run(&good, &|_| None).is_ok());
    let mut reversed = good.clone();
    reversed.reverse();
    let errors = Evaluator::new(&parsed.trace).run(&reversed, &|_| None).unwrap_err();
    assert!(errors.iter().any(|e| matches!(e, EvaluationError::ProgramOrder { .. })), "{errors:?}");
    let (j, child) = (parsed.event("j"), ThreadId(1));
    let errors = run(&parsed, "a t0 a").unwrap_err();
    assert_eq!(errors, [EvaluationError::NotEnded { event: j, child }]);
    let start = parsed.trace.threads[1].events[0];
    let mut early = good.clone();
    early.retain(|id| *id != start);
    early.insert(0, start);
    let errors = Evaluator::new(&parsed.trace).run(&early, &|_| None).unwrap_err();
    assert!(matches!(errors[..], [EvaluationError::NotForked { .. }]), "{errors:?}");
}

#[test]
fn locks_exclude_by_mode() {
    let parsed = trace(
        "
        a: rdlock m
        a: rdunlock m
        b: rdlock m
        b: rdunlock m
        c: [x] lock m
        c: unlock m
        ",
    );
    assert!(run(&parsed, "a b a b c c").is_ok(), "readers share");
    let errors = run(&parsed, "a c b a c b").unwrap_err();
    let held = errors.iter().filter(|e| matches!(e, EvaluationError::LockHeld { .. }));
    assert_eq!(held.count(), 2, "the writer waits for the reader, the reader for the writer");
    let errors = run(&parsed, "a b c a b c").unwrap_err();
    let (event, object) = (parsed.event("x"), model::ObjectId(0));
    assert_eq!(errors, [EvaluationError::LockHeld { event, object, holder: ThreadId(0) }]);
}

#[test]
fn trylock_fails_only_while_a_thread_holds() {
    let parsed = trace("a: lock m\na: unlock m\nb: [t] trylock-failed m");
    assert!(run(&parsed, "a b a").is_ok());
    for free in ["b a a", "a a b"] {
        let errors = run(&parsed, free).unwrap_err();
        let (event, object) = (parsed.event("t"), model::ObjectId(0));
        assert_eq!(errors, [EvaluationError::LockFree { event, object }]);
    }
    for own in ["lock m|unlock m", "rdlock m|rdunlock m"] {
        let (lock, unlock) = own.split_once('|').unwrap();
        let inside = trace(&format!("a: {lock}\na: trylock-failed m\na: {unlock}"));
        assert!(run(&inside, "a a a").is_ok(), "{own}: the caller itself holds it");
        let behind = trace(&format!("a: {lock}\na: {unlock}\na: [t] trylock-failed m"));
        let errors = run(&behind, "a a a").unwrap_err();
        let (event, object) = (behind.event("t"), model::ObjectId(0));
        assert_eq!(errors, [EvaluationError::LockFree { event, object }]);
    }
}

#[test]
fn a_try_to_share_fails_only_while_a_writer_holds() {
    let written = trace("a: lock m\na: unlock m\nb: tryrdlock-failed m");
    assert!(run(&written, "a b a").is_ok());
    let read = trace("a: rdlock m\na: rdunlock m\nb: [t] tryrdlock-failed m");
    let errors = run(&read, "a b a").unwrap_err();
    let (event, object) = (read.event("t"), model::ObjectId(0));
    assert_eq!(errors, [EvaluationError::LockFree { event, object }]);
    let alone = trace("a: rdlock m\na: rdunlock m\nb: trylock-failed m");
    assert!(run(&alone, "a b a").is_ok(), "a reader turns a writer away");
}

const WAIT: &str = "
    a: lock m
    a: wait c m
    a: unlock m
    b: lock m
    b: wait c m
    b: unlock m
    s: [s1] signal c
    s: [s2] signal c
";

#[test]
fn a_signal_wakes_one_thread_that_waits_already() {
    let parsed = trace(WAIT);
    // lock, release, wake-up, acquisition, unlock.
    assert!(run(&parsed, "a a b b s s a a a b b b").is_ok());
    let errors = run(&parsed, "s a a b b s a a a b b b").unwrap_err();
    assert!(matches!(errors[..], [EvaluationError::NotSignalled { .. }]), "{errors:?}");
    let errors = run(&parsed, "s s a a a a a b b b b b").unwrap_err();
    assert_eq!(errors.len(), 2, "no wait had begun");
}

#[test]
fn signals_are_matched_by_the_earliest_deadline() {
    let parsed = trace(WAIT);
    // Both wait when the first signal comes; `b` wakes up before the second one.
    let evaluation = run(&parsed, "a a b b s b b b s a a a").expect("b takes the first signal");
    let wake = |thread: usize| {
        let mut events = parsed.trace.threads[thread].events.iter().copied();
        events.find(|id| parsed.trace.event(*id).kind.name() == "wake").expect("a wake-up")
    };
    assert_eq!(evaluation.woken_by[&wake(1)], parsed.event("s1"));
    assert_eq!(evaluation.woken_by[&wake(0)], parsed.event("s2"));
}

#[test]
fn a_broadcast_wakes_all_and_spares_signals() {
    let parsed = trace(
        "
        a: lock m
        a: wait c m
        a: unlock m
        b: lock m
        b: wait c m
        b: unlock m
        s: signal c
        s: broadcast c
        ",
    );
    assert!(run(&parsed, "a a b b s s a a a b b b").is_ok());
    // `b` wakes up after the signal alone; `a`, though earlier to wake up, has the broadcast.
    assert!(run(&parsed, "a a b b s b b b s a a a").is_ok());
    assert!(run(&parsed, "a a s s a a a b b b b b").is_err(), "b began too late");
}

#[test]
fn semaphores_count() {
    let parsed = trace("sem s 1\na: sem-wait s\na: post s\nb: sem-wait s\nc: sem-failed s");
    assert!(run(&parsed, "a c a b").is_ok());
    assert!(run(&parsed, "b c").is_err(), "a waits for a unit that only it gives");
    let errors = run(&parsed, "c a a b").unwrap_err();
    assert!(matches!(errors[..], [EvaluationError::UnitsLeft { units: 1, .. }]), "{errors:?}");
    let errors = run(&parsed, "a b a c").unwrap_err();
    assert!(
        matches!(errors[..], [EvaluationError::NoUnit { .. }, EvaluationError::UnitsLeft { .. }]),
        "{errors:?}"
    );
}

#[test]
fn barriers_open_when_a_round_is_complete() {
    let text = "barrier b 2\na: barrier b\na: barrier b\nc: barrier b\nc: barrier b";
    let parsed = trace(text);
    assert!(run(&parsed, "a c a a c c a c").is_ok(), "a arrives again before c has left");
    let errors = run(&parsed, "a a c c a a c c").unwrap_err();
    assert!(errors.iter().all(|e| matches!(e, EvaluationError::BarrierClosed { .. })));
    assert!(!errors.is_empty());
}

#[test]
fn memory_is_freed_after_it_is_obtained() {
    let parsed = trace("a: alloc h\nb: [f] free h");
    assert!(run(&parsed, "a b").is_ok());
    let errors = run(&parsed, "b a").unwrap_err();
    assert!(matches!(errors[..], [EvaluationError::NotAllocated { .. }]), "{errors:?}");
}

#[test]
fn violated_and_unknown_conditions_are_told_apart() {
    let parsed = trace(
        "
        input i 32
        a: R x -> p
        a: assume p == 1
        a: assume i == 3
        b: W x 1
        a: fail i > p
        ",
    );
    let evaluation = run(&parsed, "a b").expect("possible");
    assert_eq!(evaluation.violated, [model::ConditionId(0)]);
    assert_eq!(evaluation.undetermined, [model::ConditionId(1)]);
    assert!(!evaluation.failure_known && !evaluation.fails);
    let order = schedule(&parsed, "b a");
    let mut evaluator = Evaluator::new(&parsed.trace);
    assert_eq!(evaluator.check(&order, &|_| None), Check::OffPath);
    assert_eq!(evaluator.check(&order, &|_| Some(3)), Check::Fails);
    assert_eq!(evaluator.check(&order, &|_| Some(2)), Check::OffPath);
    let result = evaluate(&parsed.trace, &Schedule { order }, &|_| Some(2));
    assert_eq!(result.unwrap_err(), [EvaluationError::ConditionViolated(model::ConditionId(1))]);
}

#[test]
fn all_reads_of_an_unknown_initial_value_agree() {
    let parsed = trace("cell x 32 = ?\na: R x -> p\nb: R x -> q\nb: fail p != q");
    let order = schedule(&parsed, "a b");
    let mut evaluator = Evaluator::new(&parsed.trace);
    assert_eq!(evaluator.check(&order, &|_| Some(9)), Check::Passes);
    assert_eq!(evaluator.check(&order, &|_| None), Check::Undetermined);
}
