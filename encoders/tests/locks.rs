//! Constraints of locks: critical sections, tries, and cells that are locks.

use crate::encode::check;
use encoders::dsl::parse;
use encoders::{ConstraintKind, encode};
use expect_test::expect;
use model::{EventKind, EventTrace};

#[test]
fn exclusive_and_shared_regions() {
    check(
        "t0: lock m\nt0: unlock m\nt1: rdlock m\nt1: rdunlock m\nt2: rdlock m\nt2: rdunlock m",
        |kind| kind == ConstraintKind::Lock,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 fork
            e3 t0 lock
            e4 t0 unlock
            e5 t0 exit
            e6 t0.1 start
            e7 t0.1 lock-shared
            e8 t0.1 unlock-shared
            e9 t0.1 exit
            e10 t0.2 start
            e11 t0.2 lock-shared
            e12 t0.2 unlock-shared
            e13 t0.2 exit
            c13 lock [e3 e4 e7 e8]: (e4 < e7 or e8 < e3)
            c14 lock [e3 e4 e11 e12]: (e4 < e11 or e12 < e3)
        "#]],
    );
}

#[test]
fn a_lock_held_to_the_end() {
    check(
        "t0: lock m\nt1: lock m\nt1: unlock m",
        |kind| kind == ConstraintKind::Lock,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 lock
            e3 t0 exit
            e4 t0.1 start
            e5 t0.1 lock
            e6 t0.1 unlock
            e7 t0.1 exit
            c7 lock [e5 e6 e2]: e6 < e2
        "#]],
    );
}

#[test]
fn readers_turn_no_reader_away() {
    check(
        "t0: tryrdlock-failed m\nt1: rdlock m\nt1: rdunlock m\nt1: lock m\nt1: unlock m",
        |kind| kind == ConstraintKind::TryLock,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 trylock-failed
            e3 t0 exit
            e4 t0.1 start
            e5 t0.1 lock-shared
            e6 t0.1 unlock-shared
            e7 t0.1 lock
            e8 t0.1 unlock
            e9 t0.1 exit
            c9 try-lock [e2]: (e7 < e2 and e2 < e8)
        "#]],
    );
}

#[test]
fn failed_trylock() {
    check(
        "t0: trylock-failed m\nt1: lock m\nt1: unlock m",
        |kind| kind == ConstraintKind::TryLock,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 trylock-failed
            e3 t0 exit
            e4 t0.1 start
            e5 t0.1 lock
            e6 t0.1 unlock
            e7 t0.1 exit
            c7 try-lock [e2]: (e5 < e2 and e2 < e6)
        "#]],
    );
}

/// How many pairs of sections of cells that are locks there are.
fn own_locks(text: &str) -> usize {
    let parsed = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let system = encode(&parsed.trace).expect("the trace can be encoded");
    system.constraints.iter().filter(|constraint| constraint.kind == ConstraintKind::Lock).count()
}

#[test]
fn a_cell_that_is_taken_and_given_back_is_a_lock() {
    check(
        "t0: RMW l -> a = 1\nt0: assume a == 0\nt0: W l 0\n\
         t1: RMW l -> b = 1\nt1: assume b == 0\nt1: W l 0",
        |kind| kind == ConstraintKind::Lock,
        expect![[r#"
            e0 t0 start
            e1 t0 fork
            e2 t0 read-modify-write
            e3 t0 write
            e4 t0 exit
            e5 t0.1 start
            e6 t0.1 read-modify-write
            e7 t0.1 write
            e8 t0.1 exit
            c10 lock [e2 e3 e6 e7]: (e3 < e6 or e7 < e2)
        "#]],
    );
    let section = |thread: &str, take: &str, says: &str, give: &str| {
        let lines =
            [take, says, "R x -> v", "W x v + 1", give].map(|line| line.replace('@', thread));
        let lines = lines.iter().filter(|line| !line.is_empty());
        lines
            .map(|line| format!("{thread}: {}\n", line.replace(" v", &format!(" v{thread}"))))
            .collect::<String>()
    };
    let both = |take: &str, says: &str, give: &str| {
        own_locks(&(section("t0", take, says, give) + &section("t1", take, says, give)))
    };
    let exchange = "RMW l -> a@ = a@ == 0 ? 7 : a@";
    assert_eq!(both("RMW l -> a@ = 1", "assume a@ == 0", "W l 0"), 1);
    assert_eq!(both(exchange, "assume a@ == 0", "W l 0"), 1);
    assert_eq!(both(exchange, "assume (a@ == 0) != 0", "RMW l -> b@ = 0"), 1);
    assert_eq!(both("RMW l -> a@ = 1", "assume a@ == 0", ""), 1, "never given back");
    // Nobody knows that it was free.
    assert_eq!(both("RMW l -> a@ = 1", "", "W l 0"), 0);
    assert_eq!(both("RMW l -> a@ = 1", "assume a@ != 0", "W l 0"), 0);
    // It is free at once, or is a counter.
    assert_eq!(both("RMW l -> a@ = 0", "assume a@ == 0", "W l 0"), 0);
    assert_eq!(both("RMW l -> a@ = a@ + 1", "assume a@ == 0", "W l 0"), 0);
    assert_eq!(both("W l 1", "", "W l 0"), 0, "no update");
    // Another thread gives it back.
    let one = section("t0", "RMW l -> a@ = 1", "assume a@ == 0", "W l 0");
    let other = section("t1", "RMW l -> a@ = 1", "assume a@ == 0", "W l 0");
    assert_eq!(own_locks(&format!("{one}{other}t2: W l 0\n")), 0);
    assert_eq!(own_locks(&format!("{one}{other}t2: W l 1\n")), 1, "it stays taken");
    assert_eq!(own_locks(&format!("{one}t0: W l 0\n{other}")), 0, "given back twice");
    // Before there are other threads, it may be made free; taken from the start it is never free.
    let begun = format!("t0: W l 0\nt0: fork t1\n{one}{other}");
    assert_eq!(own_locks(&format!("cell l 32 = 9\n{begun}")), 1);
    assert_eq!(own_locks(&format!("cell l 32 = ?\n{begun}")), 1);
    assert_eq!(own_locks(&format!("cell l 32 = ?\n{one}{other}")), 0);
}

#[test]
fn a_cell_is_no_lock_where_threads_come_from_nowhere() {
    let text = "cell l 32 = 9\nt0: W l 0\nt0: fork t1\n\
                t0: RMW l -> a = 1\nt0: assume a == 0\nt0: W l 0\n\
                t1: RMW l -> b = 1\nt1: assume b == 0\nt1: W l 0";
    let mut trace = parse(text).expect("it is well-formed").trace;
    let locks = |trace: &EventTrace| {
        let system = encode(trace).expect("the trace can be encoded");
        let mut kinds = system.constraints.iter().map(|constraint| constraint.kind);
        kinds.any(|kind| kind == ConstraintKind::Lock)
    };
    assert!(locks(&trace));
    for event in &mut trace.events {
        if matches!(event.kind, EventKind::Fork { .. }) {
            event.kind = EventKind::Fence;
        }
    }
    assert!(!locks(&trace));
}

#[test]
fn a_counter_with_many_values_is_soon_no_lock() {
    let add = |i: u32| format!("t{}: RMW l -> a{i} = a{i} + {}\n", i % 2, 1u64 << i);
    let text: String = (0..31).map(add).collect();
    assert_eq!(own_locks(&text), 0);
}
