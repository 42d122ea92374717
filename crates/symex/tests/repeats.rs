//! Loops that wait, of which the log counts rounds.

mod support;

use ir::types::{BinaryOp, BlockId, ConstantKind, InstKind, IntPredicate, Operand};
use model::EventKind;
use support::{I1, I32, ModuleBuilder, PTR, Stream, VOID, branch, call, inst, jump, load, store};
use symex::{Execution, Options, Recording, ThreadLog, execute};
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
