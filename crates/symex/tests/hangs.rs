//! Runs that did not come to an end, on hand-written modules and streams.

// Shared with the other tests of the executor, which use more of it.
mod support;

use ir::types::{ConstantKind, InstKind};
use model::{EventKind, FailureCondition, FailureKind};
use support::{I32, I64, ModuleBuilder, PTR, Stream, VOID, call};
use symex::{Options, RecordedFailure, RecordedFailureKind, Recording, execute};
use trace_format::layout::{RuntimeEvent, SyncOp};

const MUTEX: u64 = 0x60_1000;
const CONDITION: u64 = 0x60_2000;

/// `main` starts a thread and waits for its signal without having taken the mutex, and the signal came before that.
fn unheld() -> Recording {
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
    let body = vec![
        (call(create, &[null, null, start, null]), I32),
        (call(wait, &[condition, mutex]), I32),
        (InstKind::Ret(None), VOID),
    ];
    let main = b.define("main", &[], VOID, vec![body]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2);
    let arguments = [SyncOp::CondWait as u64, CONDITION, MUTEX, 0, 0];
    t0.runtime(RuntimeEvent::SyncBegin, &arguments);
    let mut t1 = Stream::new("t0.1", 2, 1, Some(worker));
    t1.enter(worker, &[0]);
    let arguments = [SyncOp::CondSignal as u64, CONDITION, 0, 0, 0];
    t1.runtime(RuntimeEvent::SyncBegin, &arguments);
    t1.runtime(RuntimeEvent::SyncEnd, &arguments).ret_int(0);
    Recording {
        modules: vec![b.finish()],
        threads: vec![t0.end(), t1.exit()],
        failure: Some(RecordedFailure {
            kind: RecordedFailureKind::TimedOut,
            thread_serial: 0,
            message: String::new(),
        }),
        common_clock: true,
        scheduled: false,
    }
}

#[test]
fn a_wait_without_the_mutex_begins_at_its_request() {
    let execution = execute(&unheld(), &Options::default()).expect("there are threads");
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
