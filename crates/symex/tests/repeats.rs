//! Loops that wait, of which the log counts rounds.

use crate::support::{
    I1, I32, ModuleBuilder, PTR, Stream, VOID, branch, call, execute, inst, jump, load, store,
};
use ir::types::{BinaryOp, BlockId, ConstantKind, InstKind, IntPredicate, Operand};
use model::EventKind;
use symex::{Execution, Options, Recording, ThreadLog};
use trace_format::layout::RuntimeEvent;

const FLAG: u64 = 0x60_0000;
const OUT: u64 = 0x60_0010;
/// The flag was not set, and the limit not reached.
const AGAIN: u32 = 0b101;
/// The flag was not set, and the limit reached.
const LIMIT: u32 = 0b100;
/// The flag was set.
const SET: u32 = 0b11;
const TIME: u64 = 5000;

/// `main` starts a thread that sets `flag` and reads `out`, looks at `flag` at most 1000 times, and stores
/// into `out` how often it was not set. `log` says what `main` logs of that.
fn spinning(log: impl Fn(&mut Stream)) -> Recording {
    let mut b = ModuleBuilder::new();
    let (flag, out) = (b.global("flag", I32, 4, FLAG), b.global("out", I32, 4, OUT));
    let (zero, one, most) = (b.int(I32, 0), b.int(I32, 1), b.int(I32, 1000));
    let null = b.constant(PTR, ConstantKind::Null);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let worker = b.define(
        "worker",
        &[PTR],
        PTR,
        vec![vec![store(flag, one), (load(out), I32), (InstKind::Ret(Some(null)), VOID)]],
    );
    let start = b.constant(PTR, ConstantKind::Function(worker, 0));
    let phi = |incoming: &[(u32, Operand)]| {
        InstKind::Phi(incoming.iter().map(|&(block, value)| (BlockId(block), value)).collect())
    };
    let equal = |a, b| (InstKind::ICmp(IntPredicate::Eq, a, b), I1);
    let main = b.define(
        "main",
        &[],
        I32,
        vec![
            vec![(call(create, &[null, null, start, null]), I32), jump(1)],
            vec![
                (phi(&[(0, zero), (2, inst(6))]), I32),
                (load(flag), I32),
                equal(inst(3), zero),
                branch(inst(4), 2, 3),
            ],
            vec![
                (InstKind::Binary(BinaryOp::Add, inst(2), one), I32),
                equal(inst(6), most),
                branch(inst(7), 3, 1),
            ],
            vec![
                (phi(&[(1, inst(2)), (2, inst(6))]), I32),
                store(out, inst(9)),
                (InstKind::Ret(Some(zero)), VOID),
            ],
        ],
    );
    let mut t0 = Stream::new("t0", 1, 0, None);
    log(t0.enter(main, &[]).create(2));
    let t0: ThreadLog = t0.runtime(RuntimeEvent::ThreadExit, &[TIME + 1]).end();
    let other = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[0]).exit();
    Recording {
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
        modules: vec![b.finish()],
        threads: vec![t0, other],
        failure: None,
        common_clock: true,
    }
}

fn round(stream: &mut Stream, choices: u32, found: u32) -> &mut Stream {
    stream.ints(&[found]).choices(choices)
}

fn walk(log: impl Fn(&mut Stream)) -> Execution {
    let options = Options { keep_path: true, ..Options::default() };
    let execution = execute(&spinning(log), &options).expect("there are threads");
    model::verify::verify(&execution.trace).expect("the event trace is valid");
    execution
}

/// What `main` stored into `out`.
fn stored(execution: &Execution) -> Option<u128> {
    let trace = &execution.trace;
    let main = trace.events.iter().filter(|event| event.thread.index() == 0);
    let mut writes = main.filter(|event| matches!(event.kind, EventKind::Write { .. }));
    trace.exprs.evaluate(writes.next()?.kind.writes()[0].value, &|_| Some(0))
}

fn reads(execution: &Execution) -> usize {
    let main = execution.trace.events.iter().filter(|event| event.thread.index() == 0);
    main.filter(|event| matches!(event.kind, EventKind::Read { .. })).count()
}

#[test]
fn counted_rounds_make_no_events_and_count_on() {
    let execution = walk(|stream| {
        round(stream, AGAIN, 0);
        round(stream, AGAIN, 0).runtime(RuntimeEvent::Repeat, &[10, TIME]);
        round(stream, SET, 1);
    });
    let main = &execution.report.threads[0];
    assert!(main.reached_end, "{}", main.stopped);
    assert_eq!(main.repeated_rounds, 10);
    assert_eq!(execution.gaps, []);
    assert_eq!(reads(&execution), 3, "two rounds and the last one");
    assert_eq!(stored(&execution), Some(12));
    let blocks: Vec<u32> = main.path.iter().map(|&(_, block)| block).collect();
    let mut expected = vec![0];
    expected.extend([1, 2].repeat(12));
    expected.extend([1, 3]);
    assert_eq!(blocks, expected);
    // What the last round did it did after the others.
    let mut own = execution.trace.events.iter().filter(|event| event.thread.index() == 0);
    let last = own.rfind(|event| matches!(event.kind, EventKind::Read { .. }));
    let interval = execution.trace.intervals[last.expect("a read").id.index()];
    assert_eq!(interval.earliest, TIME);
}

#[test]
fn a_limit_is_reached_by_counted_rounds() {
    let execution = walk(|stream| {
        round(stream, AGAIN, 0);
        round(stream, AGAIN, 0).runtime(RuntimeEvent::Repeat, &[997, TIME]);
        round(stream, LIMIT, 0);
    });
    assert_eq!(execution.gaps, []);
    assert_eq!(stored(&execution), Some(1000));
}

#[test]
fn counts_elsewhere_are_refused() {
    let stopped = |log: &dyn Fn(&mut Stream)| walk(log).report.threads[0].stopped.clone();
    let first = stopped(&|stream| {
        stream.runtime(RuntimeEvent::Repeat, &[10, TIME]);
        round(stream, SET, 1);
    });
    assert!(first.contains("no waiting loop"), "{first}");
    let twice = stopped(&|stream| {
        round(stream, AGAIN, 0).runtime(RuntimeEvent::Repeat, &[1, TIME]);
        stream.runtime(RuntimeEvent::Repeat, &[1, TIME]);
        round(stream, SET, 1);
    });
    assert!(twice.contains("counted twice"), "{twice}");
}

/// The call gave 0, so there is another round.
const NOT_YET: u32 = 0b10;
const DONE: u32 = 0b11;

/// `main` starts a thread that writes `flag`, and calls a function until it gives something else than 0, counting
/// in a phi; it stores the count into `out`, which the thread reads. The function `looks` at `flag`, or nothing
/// is known of it.
fn calling(what: &str, log: impl Fn(&mut Stream, ir::types::FuncId)) -> Execution {
    let mut b = ModuleBuilder::new();
    let (flag, out) = (b.global("flag", I32, 4, FLAG), b.global("out", I32, 4, OUT));
    let (zero, one) = (b.int(I32, 0), b.int(I32, 1));
    let null = b.constant(PTR, ConstantKind::Null);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let ret = |value| (InstKind::Ret(Some(value)), VOID);
    let callee = match what {
        "looks" => b.define("looks", &[], I32, vec![vec![(load(flag), I32), ret(inst(0))]]),
        _ => b.declare("nobody_knows", &[], I32),
    };
    let worker =
        b.define("worker", &[PTR], PTR, vec![vec![store(flag, one), (load(out), I32), ret(null)]]);
    let start = b.constant(PTR, ConstantKind::Function(worker, 0));
    let phi = InstKind::Phi(vec![(BlockId(0), zero), (BlockId(1), inst(4))]);
    let main = b.define(
        "main",
        &[],
        I32,
        vec![
            vec![(call(create, &[null, null, start, null]), I32), jump(1)],
            vec![
                (phi, I32),
                (call(callee, &[]), I32),
                (InstKind::Binary(BinaryOp::Add, inst(2), one), I32),
                (InstKind::ICmp(IntPredicate::Eq, inst(3), zero), I1),
                branch(inst(5), 1, 2),
            ],
            vec![store(out, inst(4)), ret(zero)],
        ],
    );
    let mut t0 = Stream::new("t0", 1, 0, None);
    log(t0.enter(main, &[]).create(2), callee);
    let t0: ThreadLog = t0.runtime(RuntimeEvent::ThreadExit, &[TIME + 1]).end();
    let other = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[0]).exit();
    let recording = Recording {
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
        modules: vec![b.finish()],
        threads: vec![t0, other],
        failure: None,
        common_clock: true,
    };
    let options = Options { keep_path: true, ..Options::default() };
    let execution = execute(&recording, &options).expect("there are threads");
    model::verify::verify(&execution.trace).expect("the event trace is valid");
    let main = &execution.report.threads[0];
    assert!(main.reached_end, "{what}: {}", main.stopped);
    execution
}

/// The lengths of the rounds that are there, and the blocks that were walked in `main`.
fn check_calling(execution: &Execution, rounds: usize) {
    assert_eq!(stored(execution), Some(rounds as u128));
    let main = &execution.report.threads[0];
    let own = main.path[0].0;
    let blocks: Vec<u32> = main.path.iter().filter(|it| it.0 == own).map(|it| it.1).collect();
    let mut expected = vec![0];
    expected.extend([1].repeat(rounds));
    expected.push(2);
    assert_eq!(blocks, expected);
}

#[test]
fn rounds_with_calls_are_walked_until_they_change_nothing() {
    for times in [1, 2, 3, 4, 50, 1_000_000] {
        let execution = calling("looks", |stream, looks| {
            stream.enter(looks, &[]).ints(&[0]).choices(NOT_YET);
            stream.enter(looks, &[]).ints(&[0]).choices(NOT_YET);
            stream.runtime(RuntimeEvent::Repeat, &[times, TIME]);
            stream.enter(looks, &[]).ints(&[1]).choices(DONE);
        });
        assert_eq!(execution.gaps, []);
        check_calling(&execution, times as usize + 3);
        let main = &execution.report.threads[0];
        assert!(main.instructions < 100, "{times}: {} instructions", main.instructions);
        assert!(reads(&execution) <= 7, "{times}: {} reads", reads(&execution));
        let all = reads(&execution) as u64 + main.rounds_left_out();
        assert_eq!(all, times + 3, "{main:?}");
        let mut own = execution.trace.events.iter().filter(|event| event.thread.index() == 0);
        let last = own.rfind(|event| matches!(event.kind, EventKind::Read { .. }));
        let interval = execution.trace.intervals[last.expect("a read").id.index()];
        assert_eq!(interval.earliest, TIME);
    }
}

#[test]
fn rounds_with_unknown_calls_are_all_walked() {
    let execution = calling("is anything", |stream, _| {
        stream.ret_int(0).choices(NOT_YET);
        stream.ret_int(0).choices(NOT_YET);
        stream.runtime(RuntimeEvent::Repeat, &[70, TIME]);
        stream.ret_int(1).choices(DONE);
    });
    check_calling(&execution, 73);
    let main = &execution.report.threads[0];
    assert_eq!(main.rounds_left_out(), 0);
    // Phis are none.
    assert_eq!(main.instructions, 2 + 73 * 4 + 2);
}

#[test]
fn handlers_between_counted_rounds_have_their_mark() {
    let execution = calling("looks", |stream, looks| {
        stream.enter(looks, &[]).ints(&[0]).choices(NOT_YET);
        stream.enter(looks, &[]).ints(&[0]).choices(NOT_YET);
        stream.runtime(RuntimeEvent::Repeat, &[5, TIME]);
        stream.runtime(RuntimeEvent::Repeat, &[0, TIME]);
        stream.enter(looks, &[]).ints(&[1]).choices(DONE);
    });
    check_calling(&execution, 8);
}
