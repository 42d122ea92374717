//! Runs that did not come to an end, on hand-written modules and streams.

use crate::support::{I32, I64, ModuleBuilder, PTR, Stream, VOID, call, execute};
use ir::types::{ConstantKind, InstKind};
use model::{EventKind, FailureCondition, FailureKind};
use symex::{Options, RecordedFailure, RecordedFailureKind, Recording};
use trace_format::layout::{RuntimeEvent, SyncOp};

const MUTEX: u64 = 0x60_1000;
const CONDITION: u64 = 0x60_2000;

/// What a second thread of [`unheld`] did before the run was ended, while it ran.
#[derive(Clone, Copy, PartialEq)]
enum Second {
    /// There is none.
    Absent,
    /// Nothing that others wait for.
    Ticks,
    /// It has signalled the condition as well.
    Signals,
}

/// `main` starts a thread and waits for its signal without having taken the mutex, and the signal came before that.
fn unheld(second: Second) -> Recording {
    let mut b = ModuleBuilder::new();
    let mutex = b.global("mutex", I64, 40, MUTEX);
    let condition = b.global("condition", I64, 48, CONDITION);
    let null = b.constant(PTR, ConstantKind::Null);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let wait = b.declare("pthread_cond_wait", &[PTR, PTR], I32);
    let signal = b.declare("pthread_cond_signal", &[PTR], I32);
    let body = vec![(call(signal, &[condition]), I32), (InstKind::Ret(Some(null)), VOID)];
    let worker = b.define("worker", &[PTR], PTR, vec![body]);
    let start = b.constant(PTR, ConstantKind::Function(worker, 0));
    let sleep = b.declare("usleep", &[I32], I32);
    let lock = b.declare("pthread_mutex_lock", &[PTR], I32);
    let millisecond = b.int(I32, 1000);
    let mut body = vec![
        (call(sleep, &[millisecond]), I32),
        (call(lock, &[mutex]), I32),
        (InstKind::Ret(Some(null)), VOID),
    ];
    if second == Second::Signals {
        body.insert(0, (call(signal, &[condition]), I32));
    }
    let other = b.define("other", &[PTR], PTR, vec![body]);
    let other_start = b.constant(PTR, ConstantKind::Function(other, 0));
    let mut body = vec![(call(create, &[null, null, start, null]), I32)];
    if second != Second::Absent {
        body.push((call(create, &[null, null, other_start, null]), I32));
    }
    body.extend([(call(wait, &[condition, mutex]), I32), (InstKind::Ret(None), VOID)]);
    let main = b.define("main", &[], VOID, vec![body]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2);
    if second != Second::Absent {
        t0.create(3);
    }
    let arguments = [SyncOp::CondWait as u64, CONDITION, MUTEX, 0, 0];
    t0.runtime(RuntimeEvent::SyncBegin, &arguments);
    let mut t1 = Stream::new("t0.1", 2, 1, Some(worker));
    t1.enter(worker, &[0]);
    let arguments = [SyncOp::CondSignal as u64, CONDITION, 0, 0, 0];
    t1.runtime(RuntimeEvent::SyncBegin, &arguments);
    t1.runtime(RuntimeEvent::SyncEnd, &arguments).ret_int(0);
    let mut threads = vec![t0.end(), t1.exit()];
    if second != Second::Absent {
        let mut t2 = Stream::new("t0.2", 3, 1, Some(other));
        t2.enter(other, &[0]);
        if second == Second::Signals {
            t2.runtime(RuntimeEvent::SyncBegin, &arguments);
            t2.runtime(RuntimeEvent::SyncEnd, &arguments).ret_int(0);
        }
        threads.push(t2.end());
    }
    Recording {
        modules: vec![b.finish()],
        threads,
        failure: Some(RecordedFailure {
            kind: RecordedFailureKind::TimedOut,
            thread_serial: 0,
            message: String::new(),
        }),
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
    }
}

#[test]
fn a_wait_without_the_mutex_begins_at_its_request() {
    let execution =
        execute(&unheld(Second::Absent), &Options::default()).expect("there are threads");
    let trace = &execution.trace;
    model::verify::verify(trace).expect("the event trace is valid");
    let failure = trace.failure.as_ref().expect("a failure");
    assert_eq!(failure.kind, FailureKind::Hang);
    assert_eq!(
        failure.message,
        "t0 waits on the condition condition, which was signalled before that only"
    );
    let find = |wanted: fn(&EventKind) -> bool| {
        trace.events.iter().find(|event| wanted(&event.kind)).expect("the event is there").id
    };
    let signal = find(|kind| matches!(kind, EventKind::Signal { .. }));
    let request = find(|kind| matches!(kind, EventKind::Block { .. }));
    let before = FailureCondition::Before(signal, request);
    assert_eq!(failure.condition, FailureCondition::All(vec![before]));
}

#[test]
fn a_thread_that_runs_and_ends_no_waits_leaves_a_hang_one() {
    let execution =
        execute(&unheld(Second::Ticks), &Options::default()).expect("there are threads");
    let failure = execution.trace.failure.as_ref().expect("a failure");
    assert_eq!(failure.kind, FailureKind::Hang);
    assert!(execution.report.still_running.is_empty());
}

#[test]
fn a_wait_that_a_running_thread_may_end_is_no_hang() {
    let execution =
        execute(&unheld(Second::Signals), &Options::default()).expect("there are threads");
    let running: Vec<&str> =
        execution.report.still_running.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(running, ["t0.2"]);
    assert_eq!(execution.trace.failure, None, "nothing is claimed of a run that was only ended");
}
