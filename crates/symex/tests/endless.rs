//! Loops that a thread was in when the run was ended, on hand-written modules and streams.

use crate::support::{
    I1, I32, ModuleBuilder, PTR, Stream, VOID, branch, call, execute, inst, jump, load, store,
};
use ir::types::{BinaryOp, InstKind, IntPredicate};
use model::FailureKind;
use symex::{Execution, Options, RecordedFailure, RecordedFailureKind, Recording};
use trace_format::layout::RuntimeEvent;

const SUM: u64 = 0x60_0000;
const LOCK: u64 = 0x60_0100;

/// What a thread does in the loop of [`run`].
#[derive(Clone, Copy)]
struct Rounds {
    /// So many rounds, ...
    count: u64,
    /// ... behind which it comes out of the loop, and goes into it once more for so many.
    again: Option<u64>,
}

/// `worker` is `do { do { lock; sum++; unlock; } while (sched_getcpu()); } while (sched_getcpu());`.
/// Two threads run it at a time, of which the second one ends after `second` rounds; the run was ended.
fn run(first: Rounds, second: u64, options: &Options) -> Execution {
    run_until(first, second, options, false)
}

/// The same; `stuck`: all threads waited when the run was ended.
fn run_until(first: Rounds, second: u64, options: &Options, stuck: bool) -> Execution {
    let mut b = ModuleBuilder::new();
    let sum = b.global("sum", I32, 4, SUM);
    let mutex = b.global("mutex", I32, 40, LOCK);
    let (zero, one) = (b.int(I32, 0), b.int(I32, 1));
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let lock = b.declare("pthread_mutex_lock", &[PTR], I32);
    let unlock = b.declare("pthread_mutex_unlock", &[PTR], I32);
    let look = b.declare("sched_getcpu", &[], I32);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let join = b.declare("pthread_join", &[PTR, PTR], I32);
    let again = |call: u32| (InstKind::ICmp(IntPredicate::Ne, inst(call), zero), I1);
    let worker = b.define(
        "worker",
        &[PTR],
        PTR,
        vec![
            vec![jump(1)],
            vec![jump(2)],
            vec![
                (call(lock, &[mutex]), I32),
                (load(sum), I32),
                (InstKind::Binary(BinaryOp::Add, inst(3), one), I32),
                store(sum, inst(4)),
                (call(unlock, &[mutex]), I32),
                (call(look, &[]), I32),
                again(7),
                branch(inst(8), 2, 3),
            ],
            vec![(call(look, &[]), I32), again(10), branch(inst(11), 1, 4)],
            vec![(InstKind::Ret(Some(null)), VOID)],
        ],
    );
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let main = b.define(
        "main",
        &[],
        VOID,
        vec![vec![
            (call(create, &[null, null, start, null]), I32),
            (call(create, &[null, null, start, null]), I32),
            (call(join, &[null, null]), I32),
            (InstKind::Ret(None), VOID),
        ]],
    );
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2).create(3);
    t0.runtime(RuntimeEvent::JoinBegin, &[2]);
    let mut time = 0;
    let mut round = |stream: &mut Stream, again: bool| {
        time += 100_000;
        stream.runtime(RuntimeEvent::Locked, &[LOCK, time]).ret_int(0);
        stream.runtime(RuntimeEvent::Unlocked, &[LOCK, time + 50_000]).ret_int(0);
        stream.ret_int(u32::from(again)).choices(2 | u32::from(!again));
    };
    let mut t1 = Stream::new("t0.1", 2, 1, Some(worker));
    let mut t2 = Stream::new("t0.2", 3, 1, Some(worker));
    t1.enter(worker, &[0]);
    t2.enter(worker, &[0]);
    for number in 0..second {
        round(&mut t2, number + 1 < second);
    }
    t2.ret_int(0).choices(3);
    for number in 0..first.count {
        round(&mut t1, first.again.is_none() || number + 1 < first.count);
    }
    if let Some(more) = first.again {
        t1.ret_int(1).choices(2);
        (0..more).for_each(|_| round(&mut t1, true));
    }
    let recording = Recording {
        modules: vec![b.finish()],
        threads: vec![t0.end(), t1.end(), t2.exit()],
        failure: Some(RecordedFailure {
            kind: RecordedFailureKind::TimedOut,
            thread_serial: 0,
            message: String::new(),
        }),
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck,
        handled: None,
    };
    let execution = execute(&recording, options).expect("there are threads");
    model::verify::verify(&execution.trace).expect("the event trace is valid");
    for thread in &execution.report.threads {
        assert!(thread.reached_end, "{thread:?}");
    }
    execution
}

fn locks(execution: &Execution, thread: usize) -> usize {
    let own = execution.trace.events.iter().filter(|event| event.thread.index() == thread);
    own.filter(|event| event.kind.name() == "lock").count()
}

#[test]
fn of_an_endless_loop_the_first_rounds_are_walked() {
    let rounds = Rounds { count: 20_000, again: None };
    let execution = run(rounds, 5, &Options::default());
    let endless = execution.report.threads[1].endless.as_ref().expect("an endless loop");
    let walked = locks(&execution, 1);
    assert!(walked >= endless.rounds as usize && walked < 200, "{walked} rounds of {endless:?}");
    assert_eq!(locks(&execution, 2), 5, "the other thread is walked to its end");
    assert_eq!(execution.report.threads[2].endless, None);
    let failure = execution.trace.failure.as_ref().expect("a failure");
    assert_eq!(failure.kind, FailureKind::StillRunning, "that the loop has no end is not known");
    let message = &failure.message;
    assert!(message.starts_with("t0.1 was still in the loop in worker"), "{message}");
    let running: Vec<(&str, bool)> = execution
        .report
        .still_running
        .iter()
        .map(|thread| (thread.name.as_str(), thread.in_loop))
        .collect();
    assert_eq!(running, [("t0.1", true)]);
    assert_eq!(execution.trace.event(failure.event).thread.index(), 1);
}

#[test]
fn the_whole_log_is_walked_where_that_is_asked_for() {
    let rounds = Rounds { count: 2_000, again: None };
    let options = Options { cut_endless: false, ..Options::default() };
    let execution = run(rounds, 5, &options);
    assert_eq!(locks(&execution, 1), 2_000);
    assert_eq!(execution.report.threads[1].endless, None);
}

#[test]
fn a_loop_that_was_left_is_not_endless() {
    let rounds = Rounds { count: 5_000, again: Some(9) };
    let execution = run(rounds, 5, &Options::default());
    assert_eq!(locks(&execution, 1), 5_009);
    assert_eq!(execution.report.threads[1].endless, None);
}

#[test]
fn rounds_count_behind_what_the_other_threads_did() {
    // The last of these rounds of the second thread comes before the first one of the first thread.
    let rounds = Rounds { count: 20_000, again: None };
    let few = locks(&run(rounds, 5, &Options::default()), 1);
    // Here the second thread never ends, and goes round as long.
    let both = run(rounds, 20_000, &Options::default());
    assert_eq!(locks(&both, 2), 20_000, "it comes out of the loop at last");
    assert!(few <= locks(&both, 1));
}

#[test]
fn a_thread_that_waits_at_last_is_walked_to_where_it_does() {
    let rounds = Rounds { count: 2_000, again: None };
    let execution = run_until(rounds, 5, &Options::default(), true);
    assert_eq!(execution.report.threads[1].endless, None);
    assert_eq!(locks(&execution, 1), 2_000);
}
