//! Loops that are walked in one piece, on hand-written modules and streams. `support::execute` compares each walk with one of
//! single instructions.

use crate::support::{
    I1, I64, ModuleBuilder, PTR, Stream, VOID, branch, call, execute, inst, jump, load, store,
};
use ir::types::{
    BinaryOp, BlockId, CastOp, ConstantKind, GepTerm, InstKind, IntPredicate, Operand, TypeId,
};
use model::EventKind;
use symex::{Execution, GapKind, Options, RecordedFailure, RecordedFailureKind, Recording};
use trace_format::layout::RuntimeEvent;

const SHARED: u64 = 0x60_0000;
const OWN: u64 = 0x60_0100;
const TABLE: u64 = 0x60_0200;

type Line = (InstKind, TypeId);

fn binary(op: BinaryOp, a: Operand, b: Operand) -> Line {
    (InstKind::Binary(op, a, b), I64)
}

/// How the log of the rounds ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Log {
    Whole,
    /// The loop goes on where its condition says that it does not.
    Contradicts,
    /// The run was ended in the loop.
    Cut,
    /// A clock was read behind a region.
    Reads,
}

/// A thread adds up numbers in `rounds` rounds, by way of a table and a variable of its own, and writes the sum to `shared`,
/// which `main` writes to as well. In every round it takes one of two ways.
fn run(rounds: u64, log: Log) -> Execution {
    let mut b = ModuleBuilder::new();
    let shared = b.global("shared", I64, 8, SHARED);
    let own = b.global("own", I64, 8, OWN);
    let table = b.global("table", I64, 64, TABLE);
    let numbers: Vec<Operand> = [0, 1, 3, 5, 7].map(|number| b.int(I64, number)).to_vec();
    let [zero, one, three, five, seven] = numbers[..] else { unreachable!() };
    let last = b.int(I64, rounds);
    let null = b.constant(PTR, ConstantKind::Null);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I64);
    let phi = |first: Operand, next: Operand| {
        (InstKind::Phi(vec![(BlockId(0), first), (BlockId(4), next)]), I64)
    };
    let header = vec![
        phi(zero, inst(21)),                          // 1: i
        phi(seven, inst(20)),                         // 2: h
        phi(one, inst(1)),                            // 3: the last i
        binary(BinaryOp::Mul, inst(2), three),        // 4
        binary(BinaryOp::LShr, inst(4), five),        // 5
        binary(BinaryOp::Xor, inst(4), inst(5)),      // 6
        binary(BinaryOp::URem, inst(1), five),        // 7
        (InstKind::Cast(CastOp::Trunc, inst(6)), I1), // 8
        branch(inst(8), 2, 3),                        // 9
    ];
    let gep = InstKind::Gep {
        base: table,
        source: I64,
        offset: 0,
        terms: vec![GepTerm { index: inst(7), scale: 8 }],
    };
    let odd = vec![
        (gep, PTR),                               // 10
        (load(inst(10)), I64),                    // 11
        binary(BinaryOp::Add, inst(11), inst(1)), // 12
        store(inst(10), inst(12)),                // 13
        jump(4),                                  // 14
    ];
    let even = vec![store(own, inst(6)), jump(4)]; // 15, 16
    let latch = vec![
        (InstKind::Phi(vec![(BlockId(2), inst(11)), (BlockId(3), inst(3))]), I64), // 17
        (load(own), I64),                                                          // 18
        (InstKind::Select(inst(8), inst(18), inst(17)), I64),                      // 19
        binary(BinaryOp::Add, inst(19), inst(6)),                                  // 20
        binary(BinaryOp::Add, inst(1), one),                                       // 21
        (InstKind::ICmp(IntPredicate::Ult, inst(21), last), I1),                   // 22
        branch(inst(22), 1, 5),                                                    // 23
    ];
    let end = vec![store(shared, inst(20)), (InstKind::Ret(Some(null)), VOID)];
    let blocks = vec![vec![jump(1)], header, odd, even, latch, end];
    let worker = b.define("worker", &[PTR], PTR, blocks);
    let start = b.constant(PTR, ConstantKind::Function(worker, 0));
    let main = vec![
        (call(create, &[null, null, start, null]), I64),
        store(shared, one),
        (InstKind::Ret(None), VOID),
    ];
    let main = b.define("main", &[], VOID, vec![main]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).runtime(RuntimeEvent::ThreadCreate, &[2, 0x77, 0, 0]).ret(&[0]);
    let mut t1 = Stream::new("t0.1", 2, 1, Some(worker));
    t1.enter(worker, &[0]);
    let ways = ways(rounds).into_iter().chain((log == Log::Contradicts).then_some(true));
    let mut token = 1;
    for way in ways {
        token = token << 1 | u32::from(!way);
        if token >> 28 == 1 {
            t1.choices(token & ((1 << 29) - 1));
            token = 1;
            if log == Log::Reads {
                t1.runtime(RuntimeEvent::Reading, &[1 << 30]);
            }
        }
    }
    if token > 1 {
        t1.choices(token);
    }
    let ended = log == Log::Whole || log == Log::Reads;
    let threads = [(t0, true), (t1, ended)].map(|(mut thread, ended)| {
        if ended {
            thread.runtime(RuntimeEvent::ThreadExit, &[1 << 40]);
        }
        thread.end()
    });
    let aborted = RecordedFailureKind::Signal { signo: 6, fault_address: 0 };
    let failure = RecordedFailure { kind: aborted, thread_serial: 2, message: String::new() };
    let recording = Recording {
        modules: vec![b.finish()],
        threads: threads.into(),
        failure: (!ended).then_some(failure),
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
    };
    let execution = execute(&recording, &Options::default()).expect("there are threads");
    model::verify::verify(&execution.trace).expect("the event trace is valid");
    execution
}

/// What the program does: the way of each branch, and the sum.
fn computed(rounds: u64) -> (Vec<bool>, u64) {
    let (mut i, mut h, mut before, mut own, mut table) = (0u64, 7u64, 1u64, 0u64, [0u64; 8]);
    let mut ways = Vec::new();
    loop {
        let product = h.wrapping_mul(3);
        let mixed = product ^ (product >> 5);
        let rest = (i % 5) as usize;
        let odd = mixed % 2 == 1;
        ways.push(odd);
        let seen = match odd {
            true => {
                let seen = table[rest];
                table[rest] = seen.wrapping_add(i);
                seen
            }
            false => {
                own = mixed;
                before
            }
        };
        let chosen = if odd { own } else { seen };
        h = chosen.wrapping_add(mixed);
        (before, i) = (i, i + 1);
        ways.push(i < rounds);
        if i >= rounds {
            return (ways, h);
        }
    }
}

fn ways(rounds: u64) -> Vec<bool> {
    computed(rounds).0
}

/// What the worker wrote.
fn written(execution: &Execution) -> Option<u128> {
    let mut events = execution.trace.events.iter().filter(|event| event.thread.index() == 1);
    let value = events.find_map(|event| match &event.kind {
        EventKind::Write { parts } => Some(parts[0].value),
        _ => None,
    })?;
    execution.trace.exprs.as_const(value)
}

#[test]
fn a_loop_computes_what_the_program_computes() {
    for rounds in [1, 2, 13, 14, 15, 28, 100, 10_000] {
        let execution = run(rounds, Log::Whole);
        let worker = &execution.report.threads[1];
        assert!(worker.reached_end, "{worker:?}");
        assert_eq!(execution.report.gap_count(), 0, "{:?}", execution.gaps);
        assert_eq!(written(&execution), Some(computed(rounds).1.into()), "{rounds} rounds");
    }
}

#[test]
fn the_clock_is_read_between_rounds() {
    let execution = run(1000, Log::Reads);
    assert!(execution.report.threads[1].reached_end);
    assert_eq!(written(&execution), Some(computed(1000).1.into()));
}

#[test]
fn a_branch_that_contradicts_its_condition_is_a_gap() {
    let execution = run(100, Log::Contradicts);
    assert!(
        execution.report.gaps.contains_key(&GapKind::WrongBranch)
            || !execution.report.threads[1].reached_end
    );
}

#[test]
fn a_run_that_ends_in_a_loop_is_walked_as_far_as_its_log() {
    let execution = run(100, Log::Cut);
    assert!(execution.trace.failure.is_some());
}
