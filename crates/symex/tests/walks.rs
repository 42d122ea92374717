//! The executor on hand-written modules and streams.

use crate::support::{
    I1, I8, I32, I64, ModuleBuilder, PTR, Stream, VOID, branch, call, execute, inst, jump, kinds,
    load, run, store,
};
use ir::types::{BinaryOp, FuncId, InstKind, IntPredicate, Operand};
use model::{EventKind, FailureCondition, FailureKind, PathConditionKind, VariableOrigin};
use std::sync::Arc;
use symex::{
    Execution, GapKind, Options, RecordedFailure, RecordedFailureKind, Recording, SymexError,
    ThreadLog, execute_within,
};
use trace_format::layout::{RuntimeEvent, SyncOp};
use trace_format::{InMemory, Pieces, Streams, TraceError};

const COUNTER: u64 = 0x60_0000;

/// `main` starts two threads that each add 1 to `counter` and asserts that it is 2.
fn counter(failing: bool) -> Recording {
    let mut b = ModuleBuilder::new();
    let counter = b.global("counter", I32, 4, COUNTER);
    let (nothing, one, two) = (b.int(I32, 0), b.int(I32, 1), b.int(I32, 2));
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let zero = b.int(I64, 0);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let joins = b.declare("pthread_join", &[I64, PTR], I32);
    let fail = b.declare("__assert_fail", &[], VOID);
    let add = InstKind::Binary(BinaryOp::Add, inst(0), one);
    let worker = b.define(
        "worker",
        &[PTR],
        PTR,
        vec![vec![
            (load(counter), I32),
            (add, I32),
            store(counter, inst(1)),
            (InstKind::Ret(Some(null)), VOID),
        ]],
    );
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let check = InstKind::ICmp(IntPredicate::Eq, inst(5), two);
    let main = b.define(
        "main",
        &[],
        I32,
        vec![
            vec![
                store(counter, nothing),
                (call(create, &[null, null, start, null]), I32),
                (call(create, &[null, null, start, null]), I32),
                (call(joins, &[zero, null]), I32),
                (call(joins, &[zero, null]), I32),
                (load(counter), I32),
                (check, I1),
                branch(inst(6), 1, 2),
            ],
            vec![(InstKind::Ret(Some(one)), VOID)],
            vec![(call(fail, &[]), VOID), (InstKind::Unreachable, VOID)],
        ],
    );
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2).create(3).join(2).join(3);
    let t0 = if failing { t0.block(2).end() } else { t0.block(1).exit() };
    let thread =
        |name: &str, serial| Stream::new(name, serial, 1, Some(worker)).enter(worker, &[0]).exit();
    let failure = failing.then(|| RecordedFailure {
        kind: RecordedFailureKind::Assertion,
        thread_serial: 1,
        message: "counter == 2".into(),
    });
    let threads = vec![t0, thread("t0.1", 2), thread("t0.2", 3)];
    Recording {
        modules: vec![b.finish()],
        threads,
        failure,
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
    }
}

#[test]
fn shared_accesses_become_events() {
    let execution = run(&counter(false));
    assert_eq!(execution.gaps, []);
    let main = ["start", "write", "fork", "fork", "join", "join", "read", "exit"];
    assert_eq!(kinds(&execution, 0), main);
    assert_eq!(kinds(&execution, 1), ["start", "read", "write", "exit"]);
    assert_eq!(execution.trace.threads[2].entry, "worker");
    assert!(execution.report.threads.iter().all(|thread| thread.reached_end));
    // counter == 2 held.
    assert_eq!(execution.trace.conditions.len(), 1);
    assert_eq!(execution.trace.conditions[0].kind, PathConditionKind::Branch);
}

#[test]
fn a_thread_that_fails_before_its_creation_is_logged_has_a_fork() {
    let mut recording = counter(true);
    let mut main = Stream::new("t0", 1, 0, None);
    let function = recording.modules[0].ir.functions.iter().position(|f| f.name == "main");
    let function = ir::types::FuncId(function.expect("main") as u32);
    recording.threads[0] = main.enter(function, &[]).create(2).end();
    let failure = recording.failure.as_mut().expect("a failure");
    failure.thread_serial = 3;
    let execution = run(&recording);
    assert_eq!(kinds(&execution, 0), ["start", "write", "fork", "fork"]);
    assert_eq!(kinds(&execution, 2)[..2], ["start", "read"]);
}

#[test]
fn a_written_value_is_a_function_of_the_read_one() {
    let execution = run(&counter(false));
    let trace = &execution.trace;
    let write = trace.events.iter().find(|e| e.thread.index() == 1 && !e.kind.writes().is_empty());
    let value = write.expect("the thread writes").kind.writes()[0].value;
    let vars = trace.exprs.variables(value);
    assert_eq!(vars.len(), 1);
    assert!(matches!(trace.variables[vars[0].index()].origin, VariableOrigin::Read { .. }));
    assert_eq!(trace.exprs.evaluate(value, &|_| Some(41)), Some(42));
    assert_eq!(trace.exprs.evaluate(value, &|_| Some(0xffff_ffff)), Some(0));
}

#[test]
fn the_failing_branch_is_the_bug_and_no_path_condition() {
    let execution = run(&counter(true));
    let trace = &execution.trace;
    let failure = trace.failure.as_ref().expect("a failure");
    assert_eq!(failure.kind, FailureKind::Assertion);
    assert_eq!(trace.event(failure.event).kind, EventKind::Failure);
    assert_eq!(trace.threads[0].events.last(), Some(&failure.event));
    assert_eq!(trace.conditions, []);
    let FailureCondition::Value(bug) = failure.condition else { panic!("{failure:?}") };
    assert_eq!(trace.exprs.evaluate(bug, &|_| Some(2)), Some(0));
    assert_eq!(trace.exprs.evaluate(bug, &|_| Some(1)), Some(1));
}

/// `main` starts a thread that sets two flags, and asserts that one of them is set: both are read before the check, or the
/// second one only where the first one is not set.
fn either(read_before: bool) -> Recording {
    let mut b = ModuleBuilder::new();
    let (one, other) = (b.global("one", I32, 4, COUNTER), b.global("other", I32, 4, COUNTER + 4));
    let (nothing, set) = (b.int(I32, 0), b.int(I32, 1));
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let fail = b.declare("__assert_fail", &[], VOID);
    let end = (InstKind::Ret(Some(null)), VOID);
    let sets = vec![vec![store(one, set), store(other, set), end]];
    let worker = b.define("worker", &[PTR], PTR, sets);
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let is_set = |of: u32| (InstKind::ICmp(IntPredicate::Ne, inst(of), nothing), I1);
    let start = (call(create, &[null, null, start, null]), I32);
    let (load_one, load_other) = ((load(one), I32), (load(other), I32));
    let (first, second) = match read_before {
        true => (
            vec![start, load_one, load_other, is_set(1), branch(inst(3), 1, 2)],
            vec![is_set(2), branch(inst(6), 1, 3)],
        ),
        false => (
            vec![start, load_one, is_set(1), branch(inst(2), 1, 2)],
            vec![load_other, is_set(5), branch(inst(6), 1, 3)],
        ),
    };
    let passes = vec![(InstKind::Ret(Some(set)), VOID)];
    let fails = vec![(call(fail, &[]), VOID), (InstKind::Unreachable, VOID)];
    let main = b.define("main", &[], I32, vec![first, passes, second, fails]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    let t0 = t0.enter(main, &[]).create(2).block(2).block(3).end();
    let t1 = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[0]).exit();
    let kind = RecordedFailureKind::Assertion;
    let failure = RecordedFailure { kind, thread_serial: 1, message: "one || other".into() };
    Recording {
        modules: vec![b.finish()],
        threads: vec![t0, t1],
        failure: Some(failure),
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
    }
}

/// Any part of a check of several parts lets it pass, unless the thread did something between them.
#[test]
fn the_parts_of_a_failed_check_are_the_bug_together() {
    let execution = run(&either(true));
    let trace = &execution.trace;
    let failure = trace.failure.as_ref().expect("a failure");
    assert_eq!(trace.conditions, []);
    let FailureCondition::Value(bug) = failure.condition else { panic!("{failure:?}") };
    let [one, other] = trace.exprs.variables(bug)[..] else { panic!("{failure:?}") };
    let fails = |a, b| {
        let values = |var| if var == one { Some(a) } else { (var == other).then_some(b) };
        trace.exprs.evaluate(bug, &values)
    };
    assert_eq!([fails(0, 0), fails(1, 0), fails(0, 1), fails(1, 1)], [1, 0, 0, 0].map(Some));

    let execution = run(&either(false));
    let trace = &execution.trace;
    let failure = trace.failure.as_ref().expect("a failure");
    assert_eq!(trace.conditions.len(), 1);
    let FailureCondition::Value(bug) = failure.condition else { panic!("{failure:?}") };
    assert_eq!(trace.exprs.variables(bug).len(), 1);
}

/// A thread's streams, to be damaged.
fn whole(log: &ThreadLog) -> InMemory {
    let mut streams = InMemory::default();
    let (mut path, mut values) = (log.streams.path().unwrap(), log.streams.values().unwrap());
    while path(&mut streams.path).unwrap() {}
    while values(&mut streams.values).unwrap() {}
    streams
}

/// Damage is found a few instructions later where not each of them is walked by itself.
fn damaged_run(recording: &Recording) -> Execution {
    let execution = symex::execute(recording, &Options::default()).expect("there are threads");
    model::verify::verify(&execution.trace).expect("the event trace is valid");
    execution
}

/// The streams cut short anywhere, or with any word replaced, give a report and no panic.
#[test]
fn damaged_streams_stop_their_thread() {
    let recording = counter(true);
    for thread in 0..recording.threads.len() {
        let streams = whole(&recording.threads[thread]);
        let with = |walk: fn(&Recording) -> Execution, damage: &dyn Fn(&mut InMemory)| {
            let (mut damaged, mut streams) = (recording.clone(), streams.clone());
            damage(&mut streams);
            damaged.threads[thread].streams = Arc::new(streams);
            let execution = walk(&damaged);
            assert!(execution.report.threads.iter().all(|t| !t.stopped.is_empty()));
        };
        for length in 0..streams.path.len() {
            with(run, &|streams| streams.path.truncate(length));
        }
        for length in 0..streams.values.len() {
            with(run, &|streams| streams.values.truncate(length));
        }
        for at in 0..streams.values.len() {
            for word in [0, 1, 8, 99, 0x7f, 0x80, u8::MAX] {
                with(damaged_run, &|streams| streams.values[at] = word);
            }
        }
        for at in 0..streams.path.len() {
            for word in [0, 1, 77, 0x4000_0063, 0x8000_0001, 0xc000_0003, 0xc000_0007, u32::MAX] {
                with(damaged_run, &|streams| streams.path[at] = word);
            }
        }
    }
}

/// Streams of which one cannot be read to its end.
#[derive(Debug)]
struct Unreadable(InMemory);

impl Streams for Unreadable {
    fn path(&self) -> Result<Pieces<u32>, TraceError> {
        self.0.path()
    }

    fn values(&self) -> Result<Pieces<u8>, TraceError> {
        let mut pieces = self.0.values()?;
        let end = || TraceError::Checksum { path: "t0.1.values.z".into(), offset: 4711 };
        Ok(Box::new(move |to| pieces(to)?.then_some(true).ok_or_else(end)))
    }
}

/// Nothing is said of a run whose log is damaged, even where the walk gets along without it.
#[test]
fn a_stream_that_cannot_be_read_is_an_error() {
    let mut recording = counter(true);
    run(&recording);
    let mut streams = whole(&recording.threads[1]);
    for superfluous in [0, 4] {
        streams.values.extend(vec![0; superfluous]);
        recording.threads[1].streams = Arc::new(Unreadable(streams.clone()));
        let error = execute(&recording, &Options::default()).unwrap_err();
        assert!(error.to_string().starts_with("t0.1.values.z: damaged at byte 4711"), "{error}");
    }
}

/// One thread, one function of one block, run to its end.
fn straight(b: ModuleBuilder, main: FuncId, fill: impl FnOnce(&mut Stream)) -> Execution {
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]);
    fill(&mut t0);
    let recording = Recording {
        modules: vec![b.finish()],
        threads: vec![t0.exit()],
        failure: None,
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
    };
    run(&recording)
}

#[test]
fn a_contradiction_is_a_gap_and_the_log_wins() {
    let mut b = ModuleBuilder::new();
    let (one, two) = (b.int(I32, 1), b.int(I32, 2));
    let equal = InstKind::ICmp(IntPredicate::Eq, one, two);
    let main = b.define(
        "main",
        &[],
        VOID,
        vec![
            vec![(equal, I1), branch(inst(0), 1, 2)],
            vec![(InstKind::Ret(None), VOID)],
            vec![(InstKind::Ret(None), VOID)],
        ],
    );
    let execution = straight(b, main, |t0| {
        t0.block(1);
    });
    assert_eq!(execution.report.gaps.get(&GapKind::WrongBranch), Some(&1));
    assert!(execution.report.threads[0].reached_end);
}

#[test]
fn memory_is_read_at_any_width() {
    let mut b = ModuleBuilder::new();
    let word = b.global("word", I64, 8, COUNTER);
    let value = b.int(I64, 0x8877_6655_4433_2211);
    let upper = InstKind::Gep { base: word, source: I8, offset: 3, terms: Vec::new() };
    let expected = b.int(I8, 0x44);
    let equal = InstKind::ICmp(IntPredicate::Eq, inst(2), expected);
    let main = b.define(
        "main",
        &[],
        VOID,
        vec![
            vec![
                store(word, value),
                (upper, PTR),
                (load(inst(1)), I8),
                (equal, I1),
                branch(inst(3), 1, 2),
            ],
            vec![(InstKind::Ret(None), VOID)],
            vec![(InstKind::Ret(None), VOID)],
        ],
    );
    let execution = straight(b, main, |t0| {
        t0.block(1);
    });
    assert_eq!(execution.gaps, []);
}

#[test]
fn loops_follow_the_recorded_blocks() {
    // 0: goto 1;  1: i = phi; c = i < 3; c ? 2 : 3;  2: goto 1;  3: return.
    let mut b = ModuleBuilder::new();
    let (zero, one, three) = (b.int(I32, 0), b.int(I32, 1), b.int(I32, 3));
    let phi = InstKind::Phi(vec![(ir::types::BlockId(0), zero), (ir::types::BlockId(2), inst(4))]);
    let main = b.define(
        "main",
        &[],
        VOID,
        vec![
            vec![jump(1)],
            vec![
                (phi, I32),
                (InstKind::ICmp(IntPredicate::Slt, inst(1), three), I1),
                branch(inst(2), 2, 3),
            ],
            vec![(InstKind::Binary(BinaryOp::Add, inst(1), one), I32), jump(1)],
            vec![(InstKind::Ret(None), VOID)],
        ],
    );
    let execution = straight(b, main, |t0| {
        t0.block(2).block(2).block(2).block(3);
    });
    assert_eq!(execution.gaps, []);
    assert_eq!(execution.report.threads[0].unused_path, 0);
    assert_eq!(execution.report.threads[0].blocks, 9);
}

#[test]
fn recursive_locks_appear_once() {
    let mut b = ModuleBuilder::new();
    let mutex = b.global("mutex", I64, 40, COUNTER);
    let lock = b.declare("pthread_mutex_lock", &[PTR], I32);
    let unlock = b.declare("pthread_mutex_unlock", &[PTR], I32);
    let calls = [lock, lock, unlock, unlock, lock];
    let mut block: Vec<_> = calls.iter().map(|&f| (call(f, &[mutex]), I32)).collect();
    block.push((InstKind::Ret(None), VOID));
    let main = b.define("main", &[], VOID, vec![block]);
    let execution = straight(b, main, |t0| {
        for op in [SyncOp::MutexLock, SyncOp::MutexLock, SyncOp::MutexUnlock, SyncOp::MutexUnlock] {
            t0.runtime(RuntimeEvent::SyncBegin, &[op as u64, COUNTER, 0, 1, 0]);
            t0.runtime(RuntimeEvent::SyncEnd, &[op as u64, COUNTER, 0, 0, 0]).ret_int(0);
        }
        t0.runtime(RuntimeEvent::SyncBegin, &[SyncOp::MutexLock as u64, COUNTER, 0, 1, 0]);
        t0.runtime(RuntimeEvent::SyncEnd, &[SyncOp::MutexLock as u64, COUNTER, 0, 0, 0]).ret_int(0);
    });
    assert_eq!(kinds(&execution, 0), ["start", "lock", "unlock", "lock", "still-held", "exit"]);
    let synthetic =
        |event: &model::Event| matches!(event.kind, EventKind::Unlock { synthetic: true, .. });
    assert_eq!(execution.trace.events.iter().filter(|event| synthetic(event)).count(), 1);
    assert_eq!(execution.trace.objects[0].name, "mutex");
}

/// A thread that is cancelled in its wait, and has no handlers to run, gave its mutex back for the wait, and has it
/// again; that it was cancelled needs the call.
#[test]
fn a_cancelled_wait_needs_the_cancellation() {
    let mut b = ModuleBuilder::new();
    let mutex = b.global("mutex", I64, 40, COUNTER);
    let bell = b.global("bell", I64, 48, COUNTER + 64);
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let cancel = b.declare("pthread_cancel", &[I64], I32);
    let lock = b.declare("pthread_mutex_lock", &[PTR], I32);
    let wait = b.declare("pthread_cond_wait", &[PTR, PTR], I32);
    let worker = vec![
        (call(lock, &[mutex]), I32),
        (call(wait, &[bell, mutex]), I32),
        (InstKind::Ret(Some(null)), VOID),
    ];
    let worker = b.define("worker", &[PTR], PTR, vec![worker]);
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let handle = b.int(I64, 0x77);
    let main = vec![
        (call(create, &[null, null, start, null]), I32),
        (call(cancel, &[handle]), I32),
        (InstKind::Ret(None), VOID),
    ];
    let main = b.define("main", &[], VOID, vec![main]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2).ret_int(0);
    let mut other = Stream::new("t0.1", 2, 1, Some(worker));
    other.enter(worker, &[0]);
    let (take, sleep) = (SyncOp::MutexLock as u64, SyncOp::CondWait as u64);
    other.runtime(RuntimeEvent::SyncBegin, &[take, COUNTER, 0, 0, 0]);
    other.runtime(RuntimeEvent::SyncEnd, &[take, COUNTER, 0, 0, 0]).ret_int(0);
    other.runtime(RuntimeEvent::SyncBegin, &[sleep, COUNTER + 64, COUNTER, 0, 0]);
    // What takes the thread's frames apart has a lock.
    other.runtime(RuntimeEvent::Locked, &[COUNTER + 128, 0]);
    other.runtime(RuntimeEvent::Unlocked, &[COUNTER + 128, 0]);
    let recording = Recording {
        modules: vec![b.finish()],
        threads: vec![t0.exit(), other.exit()],
        failure: None,
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
    };
    let execution = run(&recording);
    assert_eq!(execution.gaps, []);
    assert_eq!(kinds(&execution, 0), ["start", "fork", "semaphore-post", "exit"]);
    let waits = ["lock", "unlock", "semaphore-wait", "wait-timed-out", "lock"];
    let ends = ["lock", "unlock", "still-held", "exit"];
    assert_eq!(kinds(&execution, 1), [&["start"][..], &waits, &ends].concat());
    assert!(execution.trace.objects.iter().any(|it| it.name == "cancellation of t0.1"));
}

/// The program writes to the word of a once routine, which so runs a second time.
#[test]
fn who_runs_a_once_routine_found_that_nobody_had() {
    let mut b = ModuleBuilder::new();
    let control = b.global("control", I32, 4, COUNTER);
    let once = b.declare("pthread_once", &[PTR, PTR], I32);
    let nothing = b.int(I32, 0);
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let worker = vec![store(control, nothing), (InstKind::Ret(Some(null)), VOID)];
    let worker = b.define("worker", &[PTR], PTR, vec![worker]);
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let routine = b.define("routine", &[], VOID, vec![vec![(InstKind::Ret(None), VOID)]]);
    let routine = b.constant(PTR, ir::types::ConstantKind::Function(routine, 0));
    let mut block = vec![(call(create, &[null, null, start, null]), I32)];
    block.extend(vec![(call(once, &[control, routine]), I32); 3]);
    block.push((InstKind::Ret(None), VOID));
    let main = b.define("main", &[], VOID, vec![block]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2);
    for (ran, time) in [(1, 10_000), (0, 30_000), (1, 40_000)] {
        let once = SyncOp::Once as u64;
        t0.runtime(RuntimeEvent::SyncBegin, &[once, COUNTER, 0, 0, time]);
        t0.runtime(RuntimeEvent::SyncEnd, &[once, COUNTER, 0, ran, time + 1_000]).ret_int(0);
    }
    t0.runtime(RuntimeEvent::ThreadExit, &[51_000]);
    let other = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[0]).exit();
    let threads = vec![t0.end(), other];
    let recording = Recording {
        modules: vec![b.finish()],
        threads,
        failure: None,
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
    };
    let execution = run(&recording);
    assert_eq!(execution.gaps, []);
    let ran = ["read", "lock", "read", "write", "unlock"];
    let had_run = ["lock", "read", "unlock"];
    let calls = [&ran[..], &had_run, &ran].concat();
    assert_eq!(kinds(&execution, 0), [&["start", "fork"][..], &calls, &["exit"]].concat());
    let looks = execution.trace.conditions.iter().filter(|it| it.thread.index() == 0);
    assert_eq!(looks.count(), 5, "one call found 2 there, and the others did not");
}

#[test]
fn a_critical_section_of_two_entries_has_its_events_and_times() {
    let mut b = ModuleBuilder::new();
    let mutex = b.global("mutex", I64, 40, COUNTER);
    let word = b.global("word", I64, 8, COUNTER + 64);
    let (lock, unlock) = ("pthread_mutex_lock", "pthread_mutex_unlock");
    let (lock, unlock) = (b.declare(lock, &[PTR], I32), b.declare(unlock, &[PTR], I32));
    let one = b.int(I64, 1);
    let section = [(call(lock, &[mutex]), I32), store(word, one), (call(unlock, &[mutex]), I32)];
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    // Another thread writes without the lock, so that all writes are events.
    let worker = vec![store(word, one), (InstKind::Ret(Some(null)), VOID)];
    let worker = b.define("worker", &[PTR], PTR, vec![worker]);
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let mut block = vec![(call(create, &[null, null, start, null]), I32)];
    block.extend([section.clone(), section].concat());
    block.push((InstKind::Ret(None), VOID));
    let main = b.define("main", &[], VOID, vec![block]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2);
    t0.runtime(RuntimeEvent::Locked, &[COUNTER, 10_000]).ret_int(0);
    t0.runtime(RuntimeEvent::Unlocked, &[COUNTER, 20_000]).ret_int(0);
    // The second time somebody else had it.
    let lock = SyncOp::MutexLock as u64;
    t0.runtime(RuntimeEvent::SyncBegin, &[lock, COUNTER, 0, 0, 30_000]);
    t0.runtime(RuntimeEvent::SyncEnd, &[lock, COUNTER, 0, 0, 40_000]).ret_int(0);
    t0.runtime(RuntimeEvent::Unlocked, &[COUNTER, 50_000]).ret_int(0);
    t0.runtime(RuntimeEvent::ThreadExit, &[51_000]);
    let other = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[0]).exit();
    let threads = vec![t0.end(), other];
    let recording = Recording {
        modules: vec![b.finish()],
        threads,
        failure: None,
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
    };
    let execution = run(&recording);
    assert_eq!(execution.gaps, []);
    assert_eq!(
        kinds(&execution, 0),
        ["start", "fork", "lock", "write", "unlock", "lock", "write", "unlock", "exit"]
    );
    // Every interval ends some ticks after the reading that bounds it. What stands before an unlock may
    // be done up to 4,096 ticks after its reading, but not after the next one.
    let times: Vec<(u64, u64)> = execution.trace.intervals[2..8]
        .iter()
        .map(|interval| (interval.earliest, interval.latest - interval.latest % 500))
        .collect();
    assert_eq!(
        times,
        [
            (0, 10_000),
            (10_000, 24_000),
            (20_000, 30_000),
            (30_000, 40_000),
            (40_000, 51_000),
            (50_000, 51_000)
        ]
    );
}

#[test]
fn a_callback_is_walked_with_its_logged_arguments() {
    let mut b = ModuleBuilder::new();
    let seven = b.int(I32, 7);
    let outside = b.declare("library_function", &[PTR], I32);
    let equal = InstKind::ICmp(IntPredicate::Eq, Operand::Param(0), seven);
    let callback = b.define(
        "callback",
        &[I32],
        VOID,
        vec![
            vec![(equal, I1), branch(inst(0), 1, 2)],
            vec![(InstKind::Ret(None), VOID)],
            vec![(InstKind::Ret(None), VOID)],
        ],
    );
    let pointer = b.constant(PTR, ir::types::ConstantKind::Function(callback, 0));
    let main = b.define(
        "main",
        &[],
        VOID,
        vec![vec![(call(outside, &[pointer]), I32), (InstKind::Ret(None), VOID)]],
    );
    let execution = straight(b, main, |t0| {
        t0.enter_with_ints(callback, &[7])
            .block(1)
            .enter_with_ints(callback, &[8])
            .block(2)
            .ret_int(0);
    });
    assert_eq!(execution.gaps, []);
    assert!(execution.report.threads[0].reached_end);
}

#[test]
fn sizes_that_cannot_be_do_no_harm() {
    let mut b = ModuleBuilder::new();
    let malloc = b.declare("calloc", &[I64, I64], PTR);
    let copy = b.declare("memcpy", &[PTR, PTR, I64], PTR);
    let huge = b.int(I64, u64::MAX);
    let main = b.define(
        "main",
        &[],
        VOID,
        vec![vec![
            (call(malloc, &[huge, huge]), PTR),
            (call(copy, &[inst(0), inst(0), huge]), PTR),
            (InstKind::Ret(None), VOID),
        ]],
    );
    let execution = straight(b, main, |t0| {
        t0.runtime(RuntimeEvent::Allocate, &[0x9000, 1 << 60, 10]).ret(&[0x9000]).ret(&[0x9000]);
    });
    assert_eq!(execution.report.gaps.get(&GapKind::UnknownAddress), Some(&1));
    assert!(execution.report.threads[0].reached_end);
}

#[test]
fn an_indirect_call_goes_where_the_pointer_says() {
    let mut b = ModuleBuilder::new();
    let three = b.int(I32, 3);
    let target =
        b.define("target", &[I32], I32, vec![vec![(InstKind::Ret(Some(Operand::Param(0))), VOID)]]);
    let pointer = b.constant(PTR, ir::types::ConstantKind::Function(target, 0));
    let InstKind::Call(mut indirect) = call(target, &[three]) else { unreachable!() };
    indirect.callee = ir::types::Callee::Indirect(pointer);
    let equal = InstKind::ICmp(IntPredicate::Eq, inst(0), three);
    let main = b.define(
        "main",
        &[],
        VOID,
        vec![
            vec![(InstKind::Call(indirect), I32), (equal, I1), branch(inst(1), 1, 2)],
            vec![(InstKind::Ret(None), VOID)],
            vec![(InstKind::Ret(None), VOID)],
        ],
    );
    let execution = straight(b, main, |t0| {
        t0.enter_with_ints(target, &[3]).ret_int(3).block(1);
    });
    assert_eq!(execution.gaps, []);
}

/// What decided about a status that no branch on shared data led to is searched through what it was made of: here a number
/// that comes from another one twice, forty times over.
#[test]
fn a_value_that_comes_from_others_in_many_ways_is_followed_back() {
    let mut b = ModuleBuilder::new();
    let own = b.declare("getpid", &[], I32);
    let both = |id| (InstKind::Binary(BinaryOp::And, inst(id), inst(id)), I32);
    let mut code = vec![(call(own, &[]), I32)];
    code.extend((0..40).map(both));
    code.push((InstKind::Ret(Some(inst(40))), VOID));
    let main = b.define("main", &[], I32, vec![code]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    let failure = RecordedFailure {
        kind: RecordedFailureKind::Exit { status: 7 },
        thread_serial: 1,
        message: "exit status 7".into(),
    };
    let recording = Recording {
        modules: vec![b.finish()],
        threads: vec![t0.enter(main, &[]).ret_int(7).end()],
        failure: Some(failure),
        ..counter(true)
    };
    let trace = run(&recording).trace;
    let failure = trace.failure.expect("a failure");
    assert_eq!(failure.kind, FailureKind::Exit);
    // Nothing that others may change decided about it.
    let FailureCondition::Value(bug) = failure.condition else { panic!("{failure:?}") };
    assert_eq!(trace.exprs.evaluate(bug, &|_| None), Some(1));
}

#[test]
fn a_walk_ends_when_the_budget_does() {
    let recording = counter(true);
    let within = |is_left: &dyn Fn() -> bool| {
        execute_within(&recording, &Options::default(), &is_left).map(|execution| execution.trace)
    };
    assert!(matches!(within(&|| false), Err(SymexError::BudgetSpent)));
    let whole = execute(&recording, &Options::default()).expect("walks").trace;
    assert_eq!(within(&|| true).expect("there is enough").events.len(), whole.events.len());
}

/// A thread that goes round a loop without anything in its log is asked in the middle of a walk.
#[test]
fn a_walk_without_an_end_is_ended_by_the_budget() {
    let mut b = ModuleBuilder::new();
    let main = b.define("main", &[], VOID, vec![vec![jump(1)], vec![jump(1)]]);
    let mut thread = Stream::new("t0", 1, 0, None);
    let recording = Recording {
        threads: vec![thread.enter(main, &[]).end()],
        modules: vec![b.finish()],
        ..counter(true)
    };
    let options = Options { tail_limit: u64::MAX, ..Options::default() };
    let asked = std::cell::Cell::new(0);
    let is_left = || {
        asked.set(asked.get() + 1);
        asked.get() < 5
    };
    let ended = execute_within(&recording, &options, &is_left);
    assert!(matches!(ended, Err(SymexError::BudgetSpent)), "{asked:?}");
}
