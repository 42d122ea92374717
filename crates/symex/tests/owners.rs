//! What threads only hand over.

use crate::support::{
    I1, I32, I64, ModuleBuilder, PTR, Stream, VOID, branch, call, execute, inst, kinds, load, store,
};
use ir::types::{InstKind, IntPredicate};
use symex::{Execution, Options, RecordedFailure, RecordedFailureKind, Recording};
use trace_format::layout::RuntimeEvent;

const SLOT: u64 = 0x60_0000;
const RESULT: u64 = 0x60_0100;
const LOCK: u64 = 0x60_0200;
const OBJECT: u64 = 0x9000;

/// A thread makes an object, writes to it and puts it into `slot`, under a lock; another one takes it from there, at these
/// times, looks what is in it and says so in `result`, which `main` checks. `back`: the first one looks at it again.
fn handing(taken: (u64, u64), back: bool) -> Recording {
    handing_by(taken, back, [2, 3])
}

/// The same by threads with these serials, which are walked in that order.
fn handing_by(taken: (u64, u64), back: bool, [giver, taker]: [u64; 2]) -> Recording {
    let mut b = ModuleBuilder::new();
    let slot = b.global("slot", PTR, 8, SLOT);
    let result = b.global("result", I64, 8, RESULT);
    let mutex = b.global("mutex", I64, 40, LOCK);
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let (size, five, one) = (b.int(I64, 8), b.int(I64, 5), b.int(I64, 1));
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let malloc = b.declare("malloc", &[I64], PTR);
    let lock = b.declare("pthread_mutex_lock", &[PTR], I32);
    let unlock = b.declare("pthread_mutex_unlock", &[PTR], I32);
    let fail = b.declare("__assert_fail", &[], VOID);
    let mut body = vec![
        (call(malloc, &[size]), PTR),
        store(inst(0), five),
        (call(lock, &[mutex]), I32),
        store(slot, inst(0)),
        (call(unlock, &[mutex]), I32),
    ];
    if back {
        let again = [(call(lock, &[mutex]), I32), (call(unlock, &[mutex]), I32)];
        body.extend(again);
        body.push((load(inst(0)), I64));
        body.push(store(result, inst(7)));
    }
    body.push((InstKind::Ret(Some(null)), VOID));
    let gives = b.define("gives", &[PTR], PTR, vec![body]);
    let is_five = InstKind::ICmp(IntPredicate::Eq, inst(3), five);
    let takes = b.define(
        "takes",
        &[PTR],
        PTR,
        vec![
            vec![
                (call(lock, &[mutex]), I32),
                (load(slot), PTR),
                (call(unlock, &[mutex]), I32),
                (load(inst(1)), I64),
                (is_five, I1),
                branch(inst(4), 1, 2),
            ],
            vec![store(inst(1), one), store(result, one), (InstKind::Ret(Some(null)), VOID)],
            vec![(InstKind::Ret(Some(null)), VOID)],
        ],
    );
    let start =
        |b: &mut ModuleBuilder, of| b.constant(PTR, ir::types::ConstantKind::Function(of, 0));
    let starts = [start(&mut b, gives), start(&mut b, takes)];
    let is_one = InstKind::ICmp(IntPredicate::Eq, inst(2), one);
    let main = b.define(
        "main",
        &[],
        I32,
        vec![
            vec![
                (call(create, &[null, null, starts[0], null]), I32),
                (call(create, &[null, null, starts[1], null]), I32),
                (load(result), I64),
                (is_one, I1),
                branch(inst(3), 1, 2),
            ],
            vec![(call(fail, &[]), VOID), (InstKind::Unreachable, VOID)],
            vec![(InstKind::Ret(Some(one)), VOID)],
        ],
    );
    let section = |stream: &mut Stream, (from, to): (u64, u64), inside: &[u64]| {
        stream.runtime(RuntimeEvent::Locked, &[LOCK, from]).ret_int(0).words(inside);
        stream.runtime(RuntimeEvent::Unlocked, &[LOCK, to]).ret_int(0);
    };
    let mut t0 = Stream::new("t0", 1, 0, None);
    let t0 = t0.enter(main, &[]).create(giver).create(taker).block(1).end();
    let mut t1 = Stream::new("giver", giver, 1, Some(gives));
    t1.enter(gives, &[0]).runtime(RuntimeEvent::Allocate, &[OBJECT, 8, 100]).ret(&[OBJECT]);
    section(&mut t1, (1_000, 2_000), &[]);
    if back {
        section(&mut t1, (50_000, 60_000), &[]);
    }
    let t1 = t1.runtime(RuntimeEvent::ThreadExit, &[90_000]).end();
    let mut t2 = Stream::new("taker", taker, 1, Some(takes));
    t2.enter(takes, &[0]);
    section(&mut t2, taken, &[OBJECT]);
    let t2 = t2.block(1).runtime(RuntimeEvent::ThreadExit, &[95_000]).end();
    Recording {
        modules: vec![b.finish()],
        threads: vec![t0, t1, t2],
        failure: Some(RecordedFailure {
            kind: RecordedFailureKind::Assertion,
            thread_serial: 1,
            message: "result != 1".into(),
        }),
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
    }
}

fn walked(recording: &Recording, handed_over_from: usize) -> Execution {
    let options = Options { handed_over_from, ..Options::default() };
    let execution = execute(recording, &options).expect("there are threads");
    model::verify::verify(&execution.trace).expect("the event trace is valid");
    assert_eq!(execution.gaps, []);
    assert!(execution.report.threads.iter().skip(1).all(|thread| thread.reached_end));
    execution
}

#[test]
fn what_threads_only_hand_over_has_no_events() {
    let recording = handing((5_000, 6_000), false);
    let whole = walked(&recording, usize::MAX);
    assert_eq!(whole.report.handed_over, 0);
    let gives = ["start", "allocate", "write", "lock", "write", "unlock", "exit"];
    assert_eq!(kinds(&whole, 1), gives);
    let execution = walked(&recording, 0);
    assert_eq!(execution.report.handed_over, 1);
    // Between the two threads there is an order, which the lock need not make.
    assert_eq!(
        kinds(&execution, 1),
        ["start", "semaphore-post", "lock", "write", "unlock", "exit"]
    );
    assert_eq!(
        kinds(&execution, 2),
        ["start", "lock", "read", "unlock", "semaphore-wait", "write", "exit"]
    );
    // What the object held follows from nothing that is read.
    assert_eq!(whole.trace.conditions.len(), execution.trace.conditions.len() + 1);
    assert!(execution.trace.failure.is_some());
}

/// Which thread is walked first is no matter.
#[test]
fn who_gets_an_object_finds_what_it_held_in_the_run() {
    let execution = walked(&handing_by((5_000, 6_000), false, [3, 2]), 0);
    assert_eq!(execution.report.handed_over, 1);
    let taker = ["start", "lock", "read", "unlock", "semaphore-wait", "write", "exit"];
    assert_eq!(kinds(&execution, 1), taker);
    let usual = walked(&handing((5_000, 6_000), false), 0);
    assert_eq!(execution.trace.conditions.len(), usual.trace.conditions.len());
}

#[test]
fn what_comes_back_or_may_be_had_by_two_at_a_time_has_events() {
    let back = walked(&handing((5_000, 6_000), true), 0);
    assert_eq!(back.report.handed_over, 0, "the first thread finds what the second one wrote");
    let early = walked(&handing((900, 1_100), false), 0);
    assert_eq!(early.report.handed_over, 0, "the clock does not say who came first");
    let few = walked(&handing((5_000, 6_000), false), 100);
    assert_eq!(few.report.handed_over, 0);
}

#[test]
fn memory_itself_may_be_to_blame_for_a_crash() {
    let mut recording = handing((5_000, 6_000), false);
    let failure = recording.failure.as_mut().expect("there is one");
    failure.kind = RecordedFailureKind::UseAfterFree { address: OBJECT };
    let options = Options { handed_over_from: 0, ..Options::default() };
    let execution = execute(&recording, &options).expect("there are threads");
    assert_eq!(execution.report.handed_over, 0);
}
