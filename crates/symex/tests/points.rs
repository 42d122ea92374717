//! The scheduling points of events, on hand-written modules and streams.

use crate::support::{I32, I64, ModuleBuilder, PTR, Stream, VOID, call, load, run, store};
use ir::types::{ConstantKind, InstKind};
use model::Passage;
use symex::{Execution, Recording};
use trace_format::layout::{RuntimeEvent, SyncOp};

const COUNTER: u64 = 0x60_0000;
const MUTEX: u64 = 0x60_1000;
const CONDITION: u64 = 0x60_2000;

fn sync(stream: &mut Stream, op: SyncOp, address: u64, second: u64) {
    stream.runtime(RuntimeEvent::SyncBegin, &[op as u64, address, second, 0, 0]);
    stream.runtime(RuntimeEvent::SyncEnd, &[op as u64, address, second, 0, 0]).ret_int(0);
}

/// `main` starts a thread, signals it under the mutex, reads `counter` and joins it; the thread
/// waits for the signal and writes `counter`.
fn handshake() -> Recording {
    let mut b = ModuleBuilder::new();
    let counter = b.global("counter", I32, 4, COUNTER);
    let mutex = b.global("mutex", I64, 40, MUTEX);
    let condition = b.global("condition", I64, 48, CONDITION);
    let null = b.constant(PTR, ConstantKind::Null);
    let (zero, nothing, one) = (b.int(I64, 0), b.int(I32, 0), b.int(I32, 1));
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let join = b.declare("pthread_join", &[I64, PTR], I32);
    let lock = b.declare("pthread_mutex_lock", &[PTR], I32);
    let unlock = b.declare("pthread_mutex_unlock", &[PTR], I32);
    let wait = b.declare("pthread_cond_wait", &[PTR, PTR], I32);
    let signal = b.declare("pthread_cond_signal", &[PTR], I32);
    let worker = b.define(
        "worker",
        &[PTR],
        PTR,
        vec![vec![
            (call(lock, &[mutex]), I32),
            (call(wait, &[condition, mutex]), I32),
            store(counter, one),
            (call(unlock, &[mutex]), I32),
            (InstKind::Ret(Some(null)), VOID),
        ]],
    );
    let start = b.constant(PTR, ConstantKind::Function(worker, 0));
    let main = b.define(
        "main",
        &[],
        I32,
        vec![vec![
            (call(create, &[null, null, start, null]), I32),
            (call(lock, &[mutex]), I32),
            (call(signal, &[condition]), I32),
            (call(unlock, &[mutex]), I32),
            (load(counter), I32),
            (call(join, &[zero, null]), I32),
            (InstKind::Ret(Some(nothing)), VOID),
        ]],
    );
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2);
    sync(&mut t0, SyncOp::MutexLock, MUTEX, 0);
    sync(&mut t0, SyncOp::CondSignal, CONDITION, 0);
    sync(&mut t0, SyncOp::MutexUnlock, MUTEX, 0);
    t0.join(2);
    let mut t1 = Stream::new("t0.1", 2, 1, Some(worker));
    t1.enter(worker, &[0]);
    sync(&mut t1, SyncOp::MutexLock, MUTEX, 0);
    sync(&mut t1, SyncOp::CondWait, CONDITION, MUTEX);
    sync(&mut t1, SyncOp::MutexUnlock, MUTEX, 0);
    let threads = vec![t0.exit(), t1.exit()];
    Recording {
        modules: vec![b.finish()],
        threads,
        failure: None,
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
    }
}

/// Per event of a thread: its kind, the sync point that it comes behind, whether it is the first
/// one there, and how many sync points the thread has passed.
fn points(execution: &Execution, thread: usize) -> Vec<(&'static str, String, bool, u64)> {
    let events = execution.trace.events.iter().filter(|event| event.thread.index() == thread);
    let row = |event: &model::Event| {
        let point = execution.points.point(event.id).expect("every event has a point");
        let passage = Passage { site: point.site, occurrence: point.occurrence };
        let passage = point.through.unwrap_or(passage);
        let name = execution.points.name(passage.site);
        let place = format!("{name}@{}", passage.occurrence);
        (event.kind.name(), place, point.first, point.syncs)
    };
    events.map(row).collect()
}

/// The rows without those at gates, which name the places of accesses.
fn behind_sync_points(
    rows: Vec<(&'static str, String, bool, u64)>,
) -> Vec<(&'static str, String, bool, u64)> {
    rows.into_iter().filter(|row| row.1.starts_with('~')).collect()
}

fn row(
    kind: &'static str,
    place: &str,
    first: bool,
    syncs: u64,
) -> (&'static str, String, bool, u64) {
    (kind, place.to_owned(), first, syncs)
}

#[test]
fn every_sync_point_of_the_runtime_counts() {
    let execution = run(&handshake());
    assert_eq!(execution.gaps, []);
    assert_eq!(execution.points.of.len(), execution.trace.events.len());
    let main = behind_sync_points(points(&execution, 0));
    let main: Vec<_> = main.into_iter().filter(|row| row.0 != "read" && row.0 != "exit").collect();
    assert_eq!(
        main,
        [
            row("start", "~start@1", true, 1),
            row("fork", "~create@1", true, 2),
            row("lock", "~mutex_lock@1", true, 3),
            row("signal", "~cond_signal@1", true, 4),
            row("unlock", "~mutex_unlock@1", true, 5),
            row("join", "~join@1", true, 6),
        ]
    );
    let worker = behind_sync_points(points(&execution, 1));
    let worker: Vec<_> = worker.into_iter().filter(|row| row.0 != "write").collect();
    assert_eq!(
        worker,
        [
            row("start", "~start@1", true, 1),
            row("lock", "~mutex_lock@1", true, 2),
            row("unlock", "~cond_wait@1", true, 3),
            row("wake", "~wake@1", true, 4),
            row("lock", "~relock@1", true, 5),
            row("unlock", "~mutex_unlock@1", true, 6),
            row("exit", "~exit@1", true, 7),
        ]
    );
    let ends: Vec<u64> = execution.report.threads.iter().map(|t| t.sync_points).collect();
    assert_eq!(ends, [6, 7]);
}

#[test]
fn counts_of_a_thread_never_go_back() {
    let execution = run(&handshake());
    for thread in &execution.trace.threads {
        let mut before = (0, 0);
        for &event in &thread.events {
            let point = execution.points.point(event).expect("every event has a point");
            assert!(point.gates >= before.0 && point.syncs >= before.1, "{event} {point:?}");
            before = (point.gates, point.syncs);
        }
    }
}
