//! One expectation per kind of constraint. Events get their identifiers thread by thread, the
//! start event first; a thread that nobody creates is created by the first one at its start.

use encoders::dsl::parse;
use encoders::{ConstraintKind, EncodeError, encode, encode_within, events_text};
use expect_test::{Expect, expect};
use model::{EventId, EventKind, LockMode, ObjectId};

/// The events, and the constraints of one kind.
pub(crate) fn check(text: &str, kind: fn(ConstraintKind) -> bool, expected: Expect) {
    let parsed = parse(text).expect("the trace is well formed");
    let mut system = encode(&parsed.trace).expect("the trace can be encoded");
    system.constraints.retain(|constraint| kind(constraint.kind));
    let text = events_text(&parsed.trace) + &system.to_text(&parsed.trace);
    expected.assert_eq(&text);
}

#[test]
fn path_conditions() {
    check(
        "t0: R x -> a\nt0: assume a > 3\nt0: assume 1 < 2",
        |kind| matches!(kind, ConstraintKind::Path(_)),
        expect![[r#"
            e0 t0 start
            e1 t0 read
            e2 t0 exit
            c0 path p0 [e1]: (3 s< x0)
        "#]],
    );
}

#[test]
fn failure_conditions_stay_apart() {
    check(
        "t0: [w] W x 1\nt0: R x -> a\nt0: fail a == 2",
        |kind| matches!(kind, ConstraintKind::Path(_)),
        expect![[r#"
            e0 t0 start
            e1 t0 write
            e2 t0 read
            e3 t0 failure
            failure: (x0 == 2)
        "#]],
    );
    check(
        "t0: [w] W x 1\nt1: [v] W x 2\nt0: fail before v w",
        |kind| matches!(kind, ConstraintKind::Path(_)),
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 write
            e3 t0 failure
            e4 t0.1 start
            e5 t0.1 write
            e6 t0.1 exit
            failure: e5 < e2
        "#]],
    );
}

#[test]
fn program_order_is_a_chain() {
    check(
        "t0: W x 1\nt0: fence",
        |kind| kind == ConstraintKind::ProgramOrder,
        expect![[r#"
        e0 t0 start
        e1 t0 write
        e2 t0 fence
        e3 t0 exit
        c0 program-order [e0 e1]: e0 < e1
        c1 program-order [e1 e2]: e1 < e2
        c2 program-order [e2 e3]: e2 < e3
    "#]],
    );
}

#[test]
fn fork_and_join() {
    check(
        "t0: fork t1\nt1: W x 1\nt0: join t1",
        |kind| kind == ConstraintKind::ForkJoin,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 join
            e3 t0 exit
            e4 t0.1 start
            e5 t0.1 write
            e6 t0.1 exit
            c5 fork-join [e1 e4]: e1 < e4
            c6 fork-join [e6 e2]: e6 < e2
        "#]],
    );
}

#[test]
fn condition_waits() {
    check(
        "t0: lock m\nt0: wait c m\nt0: unlock m\nt1: signal c\nt1: broadcast c",
        |kind| kind == ConstraintKind::Condition,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 lock
            e3 t0 unlock
            e4 t0 wake
            e5 t0 lock
            e6 t0 unlock
            e7 t0 exit
            e8 t0.1 start
            e9 t0.1 signal
            e10 t0.1 broadcast
            e11 t0.1 exit
            c11 condition [e3 e9 e4]: b0 => (e3 < e9 and e9 < e4)
            c12 condition [e3 e4]: (b0 or (e3 < e10 and e10 < e4))
        "#]],
    );
}

#[test]
fn one_signal_for_two_waits() {
    check(
        "t0: lock m\nt0: wait c m\nt0: unlock m\nt1: lock n\nt1: wait c n\nt1: unlock n\nt2: signal c",
        |kind| kind == ConstraintKind::Condition,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 fork
            e3 t0 lock
            e4 t0 unlock
            e5 t0 wake
            e6 t0 lock
            e7 t0 unlock
            e8 t0 exit
            e9 t0.1 start
            e10 t0.1 lock
            e11 t0.1 unlock
            e12 t0.1 wake
            e13 t0.1 lock
            e14 t0.1 unlock
            e15 t0.1 exit
            e16 t0.2 start
            e17 t0.2 signal
            e18 t0.2 exit
            c18 condition [e4 e17 e5]: b0 => (e4 < e17 and e17 < e5)
            c19 condition [e4 e5]: b0
            c20 condition [e11 e17 e12]: b1 => (e11 < e17 and e17 < e12)
            c21 condition [e11 e12]: b1
            c22 condition [e4 e5 e11 e12 e17]: (not (b0) or not (b1))
        "#]],
    );
}

#[test]
fn semaphores() {
    check(
        "sem s 1\nt0: sem-wait s\nt1: sem-wait s\nt2: post s",
        |kind| kind == ConstraintKind::Semaphore,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 fork
            e3 t0 semaphore-wait
            e4 t0 exit
            e5 t0.1 start
            e6 t0.1 semaphore-wait
            e7 t0.1 exit
            e8 t0.2 start
            e9 t0.2 semaphore-post
            e10 t0.2 exit
            c10 semaphore [e3 e6]: (not (b0) or not (b1))
            c11 semaphore [e9 e3]: b2 => e9 < e3
            c12 semaphore [e9 e6]: b3 => e9 < e6
            c13 semaphore [e3 e6 e9]: (not (b2) or not (b3))
            c14 semaphore [e3]: (b0 or b2)
            c15 semaphore [e3]: (not (b0) or not (b2))
            c16 semaphore [e6]: (b1 or b3)
            c17 semaphore [e6]: (not (b1) or not (b3))
        "#]],
    );
}

#[test]
fn a_semaphore_between_two_threads() {
    check(
        "sem s 1\nt0: post s\nt0: post s\nt1: sem-wait s\nt1: sem-wait s",
        |kind| kind == ConstraintKind::Semaphore,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 semaphore-post
            e3 t0 semaphore-post
            e4 t0 exit
            e5 t0.1 start
            e6 t0.1 semaphore-wait
            e7 t0.1 semaphore-wait
            e8 t0.1 exit
            c8 semaphore [e2 e7]: e2 < e7
        "#]],
    );
}

#[test]
fn a_failed_attempt_on_a_semaphore() {
    check(
        "sem s 1\nt0: sem-wait s\nt1: sem-failed s\nt2: post s",
        |kind| kind == ConstraintKind::Semaphore,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 fork
            e3 t0 semaphore-wait
            e4 t0 exit
            e5 t0.1 start
            e6 t0.1 semaphore-wait-failed
            e7 t0.1 exit
            e8 t0.2 start
            e9 t0.2 semaphore-post
            e10 t0.2 exit
            c10 semaphore [e6]: (b0 and e3 < e6)
            c11 semaphore [e9 e3]: b1 => e9 < e3
            c12 semaphore [e9 e6]: (e6 < e9 or (b1 and e3 < e6))
            c13 semaphore [e3]: (b0 or b1)
            c14 semaphore [e3]: (not (b0) or not (b1))
        "#]],
    );
}

#[test]
fn barrier_rounds_by_rank() {
    check(
        "barrier b 2\nt0: barrier b\nt0: barrier b\nt1: barrier b\nt1: barrier b",
        |kind| kind == ConstraintKind::Barrier,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 barrier-arrive
            e3 t0 barrier-leave
            e4 t0 barrier-arrive
            e5 t0 barrier-leave
            e6 t0 exit
            e7 t0.1 start
            e8 t0.1 barrier-arrive
            e9 t0.1 barrier-leave
            e10 t0.1 barrier-arrive
            e11 t0.1 barrier-leave
            e12 t0.1 exit
            c12 barrier [e8 e3]: e8 < e3
            c13 barrier [e2 e9]: e2 < e9
            c14 barrier [e10 e5]: e10 < e5
            c15 barrier [e4 e11]: e4 < e11
        "#]],
    );
}

#[test]
fn barrier_rounds_by_choice() {
    check(
        "barrier b 1\nt0: barrier b\nt1: barrier b",
        |kind| kind == ConstraintKind::Barrier,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 barrier-arrive
            e3 t0 barrier-leave
            e4 t0 exit
            e5 t0.1 start
            e6 t0.1 barrier-arrive
            e7 t0.1 barrier-leave
            e8 t0.1 exit
            c8 barrier [e2]: (b0 or b1)
            c9 barrier [e6]: (b2 or b3)
            c10 barrier [e2 e6]: (not (b0) or not (b2))
            c11 barrier [e2 e6]: (not (b1) or not (b3))
            c12 barrier [e6 e2 e3]: (b0 and b2) => e6 < e3
            c13 barrier [e6 e2 e3]: (b1 and b3) => e6 < e3
            c14 barrier [e2 e6 e7]: (b2 and b0) => e2 < e7
            c15 barrier [e2 e6 e7]: (b3 and b1) => e2 < e7
            c16 barrier [e2 e6]: (b0 and b3) => e2 < e6
            c17 barrier [e6 e2]: (b2 and b1) => e6 < e2
        "#]],
    );
}

#[test]
fn reads_choose_among_sources() {
    check(
        "t0: R x -> a\nt0: assume a != 7\nt1: W x 1\nt2: W x 2",
        |kind| kind == ConstraintKind::ReadFrom,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 fork
            e3 t0 read
            e4 t0 exit
            e5 t0.1 start
            e6 t0.1 write
            e7 t0.1 exit
            e8 t0.2 start
            e9 t0.2 write
            e10 t0.2 exit
            c11 read-from [e3]: (e3.0 <- init or e3.0 <- e6 or e3.0 <- e9)
            c12 read-from [e3]: e3.0 <- init => (x0 = 0 and e3 < e6 and e3 < e9)
            c13 read-from [e3 e6]: e3.0 <- e6 => (e6 < e3 and x0 = 1 and (e9 < e6 or e3 < e9))
            c14 read-from [e3 e9]: e3.0 <- e9 => (e9 < e3 and x0 = 2 and (e6 < e9 or e3 < e6))
        "#]],
    );
}

#[test]
fn counters_add_up_in_any_order() {
    // The last read comes after all additions, the other one after the thread's own alone. No
    // constraint says where either takes its value from.
    check(
        "t0: W x 5\nt0: fork t1\n\
         t0: lock m\nt0: R x -> a\nt0: W x a + 1\nt0: unlock m\n\
         t1: lock m\nt1: R x -> b\nt1: W x b - 2\nt1: R x -> c\nt1: assume c < 4\nt1: unlock m\n\
         t0: join t1\nt0: R x -> end\nt0: fail end != 4",
        |kind| matches!(kind, ConstraintKind::Counter | ConstraintKind::ReadFrom),
        expect![[r#"
            e0 t0 start
            e1 t0 write
            e2 t0 fork
            e3 t0 lock
            e4 t0 read
            e5 t0 write
            e6 t0 unlock
            e7 t0 join
            e8 t0 read
            e9 t0 failure
            e10 t0.1 start
            e11 t0.1 lock
            e12 t0.1 read
            e13 t0.1 write
            e14 t0.1 read
            e15 t0.1 unlock
            e16 t0.1 exit
            c19 counter [e1 e5 e13 e14]: (e5 < e14 or (x2 s< 4))
            c20 counter [e1 e5 e13 e14]: (e14 < e5 or not ((x2 s< 4)))
            c21 counter [e1 e5 e8 e13]: not (~(4 == x3))
            failure: ~(4 == x3)
        "#]],
    );
}

#[test]
fn split_additions_are_no_counter() {
    // A stale value, an addition that a write under another lock can split, and one that adds what
    // was read elsewhere.
    let split = [
        "t0: R x -> a\nt0: RMW x -> b = a + 1\nt1: RMW x -> c = c + 1",
        "t0: lock m\nt0: R x -> a\nt0: W x a + 1\nt0: unlock m\nt1: lock n\nt1: RMW x -> c = c + 1\nt1: unlock n",
        "t0: R y -> a\nt0: W x a + 1\nt1: RMW x -> c = c + 1",
        "t0: RMW x -> a = a * 2\nt1: RMW x -> c = c + 1",
        "t0: RMW x -> a = a + 1\nt1: W x 3",
    ];
    for text in split {
        let text = format!("{text}\nt0: join t1\nt0: R x -> end\nt0: fail end == 1");
        let parsed = parse(&text).expect("the trace is well formed");
        let system = encode(&parsed.trace).expect("the trace can be encoded");
        let kinds: Vec<_> = system.constraints.iter().map(|constraint| constraint.kind).collect();
        assert!(!kinds.contains(&ConstraintKind::Counter), "{text}");
        assert!(kinds.contains(&ConstraintKind::ReadFrom), "{text}");
    }
}

#[test]
fn a_counter_that_is_complete_has_lost_no_update() {
    // The other addition comes before the read of the first one or after its write.
    check(
        "t0: R x -> a\nt0: W x a + 1\nt1: RMW x -> c = c + 1\nt0: join t1\nt0: R x -> end\n\
         t0: fail end != 2",
        |kind| kind == ConstraintKind::Counter,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 read
            e3 t0 write
            e4 t0 join
            e5 t0 read
            e6 t0 failure
            e7 t0.1 start
            e8 t0.1 read-modify-write
            e9 t0.1 exit
            c10 counter [e2 e3 e8 e5]: (e8 < e2 or e3 < e8 or ~(x2 == 2))
            failure: ~(x2 == 2)
        "#]],
    );
}

#[test]
fn a_sum_of_counters_that_is_complete_has_lost_no_update() {
    let counting = |check: &str| {
        format!(
            "t0: R x -> a\nt0: W x a + 1\nt1: RMW x -> c = c + 1\nt1: RMW y -> d = d + 1\n\
             t0: join t1\nt0: R x -> end\nt0: R y -> more\nt0: fail {check}"
        )
    };
    check(
        &counting("end + more != 3"),
        |kind| kind == ConstraintKind::Counter,
        expect![[r#"
        e0 t0 start
        e1 t0 fork
        e2 t0 read
        e3 t0 write
        e4 t0 join
        e5 t0 read
        e6 t0 read
        e7 t0 failure
        e8 t0.1 start
        e9 t0.1 read-modify-write
        e10 t0.1 read-modify-write
        e11 t0.1 exit
        c12 counter [e2 e3 e9 e5]: (e9 < e2 or e3 < e9 or ~((x3 + x4) == 3))
        failure: ~((x3 + x4) == 3)
    "#]],
    );
    // One may have lost what does not show in these.
    for weak in ["end + more < 2", "end - more != 1", "end + end + more != 5", "end + more != 2"] {
        let parsed = parse(&counting(weak)).unwrap_or_else(|error| panic!("{error}"));
        let system = encode(&parsed.trace).expect("the trace can be encoded");
        let about = |c: &encoders::Constraint| c.kind == ConstraintKind::Counter;
        assert!(!system.constraints.iter().any(about), "{weak}");
    }
}

#[test]
fn sources_that_cannot_be_are_left_out() {
    // The write before the fork is overwritten, the one after the join comes too late, and 7
    // contradicts the path.
    check(
        "t0: W x 1\nt0: W x 2\nt0: fork t1\nt1: R x -> a\nt1: assume a != 7\nt0: W x 7\nt0: join t1\nt0: W x 3",
        |kind| kind == ConstraintKind::ReadFrom,
        expect![[r#"
            e0 t0 start
            e1 t0 write
            e2 t0 write
            e3 t0 fork
            e4 t0 write
            e5 t0 join
            e6 t0 write
            e7 t0 exit
            e8 t0.1 start
            e9 t0.1 read
            e10 t0.1 exit
            c12 read-from [e9 e4]: e9 < e4
            c13 read-from [e9]: e9.0 <- e2
            c14 read-from [e9 e2]: x0 = 2
        "#]],
    );
}

#[test]
fn a_critical_section_hides_what_it_overwrites() {
    check(
        "t0: lock m\nt0: W x 1\nt0: W x 2\nt0: unlock m\nt1: lock m\nt1: R x -> a\nt1: unlock m\nt1: fail a == 1",
        |kind| kind == ConstraintKind::ReadFrom,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 lock
            e3 t0 write
            e4 t0 write
            e5 t0 unlock
            e6 t0 exit
            e7 t0.1 start
            e8 t0.1 lock
            e9 t0.1 read
            e10 t0.1 unlock
            e11 t0.1 failure
            c12 read-from [e9]: (e9.0 <- init or e9.0 <- e4)
            c13 read-from [e9]: e9.0 <- init => (x0 = 0 and e9 < e3 and e9 < e4)
            c14 read-from [e9 e4]: e9.0 <- e4 => (e4 < e9 and x0 = 2)
            failure: (1 == x0)
        "#]],
    );
}

#[test]
fn read_modify_writes_are_one_point() {
    check(
        "t0: RMW x -> a = a + 1\nt1: RMW x -> b = b + 1\nt1: fail a == b",
        |kind| kind == ConstraintKind::ReadFrom,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 read-modify-write
            e3 t0 exit
            e4 t0.1 start
            e5 t0.1 read-modify-write
            e6 t0.1 failure
            c6 read-from [e2]: (e2.0 <- init or e2.0 <- e5)
            c7 read-from [e2]: e2.0 <- init => (x0 = 0 and e2 < e5)
            c8 read-from [e2 e5]: e2.0 <- e5 => (e5 < e2 and x0 = (x1 + 1))
            c9 read-from [e5]: (e5.0 <- init or e5.0 <- e2)
            c10 read-from [e5]: e5.0 <- init => (x1 = 0 and e5 < e2)
            c11 read-from [e5 e2]: e5.0 <- e2 => (e2 < e5 and x1 = (x0 + 1))
            failure: (x0 == x1)
        "#]],
    );
}

#[test]
fn reads_that_nothing_depends_on_are_free() {
    check(
        "t0: R x -> a\nt1: W x 1",
        |kind| kind == ConstraintKind::ReadFrom,
        expect![[r#"
        e0 t0 start
        e1 t0 fork
        e2 t0 read
        e3 t0 exit
        e4 t0.1 start
        e5 t0.1 write
        e6 t0.1 exit
    "#]],
    );
}

#[test]
fn an_impossible_trace_is_encoded_as_such() {
    check(
        "barrier b 2\nt0: barrier b\nt1: arrive b\nt0: barrier b",
        |kind| kind == ConstraintKind::Barrier,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 barrier-arrive
            e3 t0 barrier-leave
            e4 t0 barrier-arrive
            e5 t0 barrier-leave
            e6 t0 exit
            e7 t0.1 start
            e8 t0.1 barrier-arrive
            e9 t0.1 exit
            c9 barrier [e8 e3]: e8 < e3
            c10 barrier [e5]: false
        "#]],
    );
}

#[test]
fn sizes() {
    let parsed = parse("t0: R x -> a\nt0: assume a != 7\nt1: W x 1").expect("well formed");
    let system = encode(&parsed.trace).expect("encodable");
    let size = system.size(&parsed.trace);
    assert_eq!((size.reads, size.candidates, size.value_variables), (1, 2, 1));
    assert_eq!(size.constraints, system.constraints.len());
    assert_eq!(size.variables, size.order_variables + 1);
}

/// The error for a trace with one event's kind replaced.
fn error(text: &str, event: u32, kind: EventKind) -> EncodeError {
    let mut trace = parse(text).expect("the trace is well formed").trace;
    trace.events[event as usize].kind = kind;
    encode(&trace).expect_err("the trace makes no sense")
}

#[test]
fn traces_that_make_no_sense_are_errors() {
    let locks = "t0: lock m\nt0: unlock m\nt0: signal c";
    let (object, mode) = (ObjectId(0), LockMode::Exclusive);
    let event = EventId(2);
    assert_eq!(
        error(locks, 2, EventKind::Lock { object, mode }),
        EncodeError::HeldAlready { event, object }
    );
    let unlock = EventKind::Unlock { object, mode, synthetic: false };
    assert_eq!(error(locks, 1, unlock), EncodeError::NotHeld { event: EventId(1), object });
    assert_eq!(
        error(locks, 2, EventKind::Signal { condition: object }),
        EncodeError::WrongObject { event, kind: "signal", object }
    );
    let object = ObjectId(9);
    assert_eq!(
        error(locks, 2, EventKind::SemaphorePost { object }),
        EncodeError::WrongObject { event, kind: "semaphore-post", object }
    );
    let wake = EventKind::Wake { condition: ObjectId(1), began: EventId(1) };
    assert_eq!(
        error(locks, 3, wake),
        EncodeError::WaitWithoutRelease { event: EventId(3), began: EventId(1) }
    );
}

#[test]
fn a_width_that_does_not_fit_is_an_error() {
    let mut trace = parse("cell x 8 = 0\nt0: W x 1").expect("the trace is well formed").trace;
    trace.cells[0].width = 16;
    assert_eq!(
        encode(&trace).expect_err("widths differ"),
        EncodeError::InitialWidth(trace.cells[0].id)
    );
    trace.cells[0].init = trace.exprs.constant(16, 0);
    let cell = trace.cells[0].id;
    assert_eq!(
        encode(&trace).expect_err("widths differ"),
        EncodeError::Width { event: EventId(1), cell }
    );
}

#[test]
fn events_out_of_place_are_an_error() {
    let mut trace = parse("t0: W x 1\nt0: W x 2").expect("the trace is well formed").trace;
    trace.threads[0].events.swap(1, 2);
    assert_eq!(encode(&trace).expect_err("swapped"), EncodeError::MisplacedEvent(EventId(2)));
}

#[test]
fn a_budget_ends_the_work_without_a_system() {
    let parsed =
        parse("t0: W x 1\nt0: R x -> a\nt1: W x 2\nt0: assume a == 1").expect("well formed");
    let trace = &parsed.trace;
    let spent = encode_within(trace, false, &|| false);
    assert!(matches!(spent, Err(EncodeError::BudgetSpent)));
    let enough = encode_within(trace, false, &|| true).expect("there is enough");
    let whole = encode(trace).expect("the trace can be encoded");
    assert_eq!(enough.to_text(trace), whole.to_text(trace));
    // In the middle, too, there is no half of a system.
    for most in 1..100 {
        let asked = std::cell::Cell::new(0);
        let budget = || {
            asked.set(asked.get() + 1);
            asked.get() <= most
        };
        match encode_within(trace, false, &budget) {
            Ok(system) => return assert_eq!(system.to_text(trace), whole.to_text(trace)),
            Err(error) => assert_eq!(error, EncodeError::BudgetSpent),
        }
    }
    panic!("a small trace is asked about a hundred times");
}
