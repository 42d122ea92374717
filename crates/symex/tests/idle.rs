//! Rounds of waiting, on hand-written modules and streams.

use crate::support::{
    I1, I32, ModuleBuilder, PTR, Stream, VOID, branch, call, execute, inst, jump, load, store,
};
use ir::types::{BinaryOp, BlockId, InstKind, IntPredicate, Operand, Ordering, RmwOp, TypeId};
use model::{EventKind, FailureCondition, FailureKind};
use symex::{Execution, Options, RecordedFailure, RecordedFailureKind, Recording};
use trace_format::layout::RuntimeEvent;

const FLAG: u64 = 0x60_0000;
const OTHER: u64 = 0x60_0100;
const OWN: u64 = 0x60_0200;

type Line = (InstKind, TypeId);

/// What a round is made of.
struct Program {
    b: ModuleBuilder,
    flag: Operand,
    other: Operand,
    /// A variable that only the worker uses.
    own: Operand,
    /// A constant.
    one: Operand,
}

fn program() -> Program {
    let mut b = ModuleBuilder::new();
    let flag = b.global("flag", I32, 4, FLAG);
    let other = b.global("other", I32, 4, OTHER);
    let own = b.global("own", I32, 4, OWN);
    let one = b.int(I32, 1);
    Program { b, flag, other, own, one }
}

/// Where a round ends: a call, without which the log would count the rounds (`ir::repeats`).
fn latch(b: &mut ModuleBuilder) -> Vec<Line> {
    let look = b.declare("sched_getcpu", &[], I32);
    vec![(call(look, &[]), I32), jump(1)]
}

/// `do { ROUND } while (v == 0); AFTER; return;` in a thread, while `main` writes `flag` and
/// `other`; v is the value of instruction `tested`. ROUND has the instructions from 1 on, AFTER those
/// from ROUND's length + 3 on. The rounds are logged by `log`, which is told the round's number.
fn run(
    mut p: Program,
    (round, tested): (Vec<Line>, u32),
    after: Vec<Line>,
    rounds: u64,
    scheduled: bool,
    log: impl Fn(&mut Stream, u64),
) -> Execution {
    let zero = p.b.int(I32, 0);
    let null = p.b.constant(PTR, ir::types::ConstantKind::Null);
    let create = p.b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let mut body = round;
    let compared = body.len() as u32 + 1;
    body.push((InstKind::ICmp(IntPredicate::Eq, inst(tested), zero), I1));
    body.push(branch(inst(compared), 3, 2));
    let mut last = after;
    last.push((InstKind::Ret(Some(null)), VOID));
    let latch = latch(&mut p.b);
    let worker = p.b.define("worker", &[PTR], PTR, vec![vec![jump(1)], body, last, latch]);
    let start = p.b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let main = p.b.define(
        "main",
        &[],
        VOID,
        vec![vec![
            (call(create, &[null, null, start, null]), I32),
            store(p.flag, p.one),
            store(p.other, p.one),
            (InstKind::Ret(None), VOID),
        ]],
    );
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2);
    let mut t1 = Stream::new("t0.1", 2, 1, Some(worker));
    t1.enter(worker, &[0]);
    for number in 0..rounds {
        log(&mut t1, number);
        match number + 1 < rounds {
            true => t1.block(3).ret_int(0),
            false => t1.block(2),
        };
    }
    let end = |mut thread: Stream| {
        thread.runtime(RuntimeEvent::ThreadExit, &[1 << 40]);
        thread.end()
    };
    let recording = Recording {
        modules: vec![p.b.finish()],
        threads: vec![end(t0), end(t1)],
        failure: None,
        common_clock: true,
        scheduled,
        forked: false,
        stuck: false,
        handled: None,
    };
    let execution = execute(&recording, &Options::default()).expect("there are threads");
    model::verify::verify(&execution.trace).expect("the event trace is valid");
    assert!(execution.report.threads[1].reached_end, "{:?}", execution.report.threads[1]);
    assert_eq!(execution.points.of.len(), execution.trace.events.len());
    execution
}

fn kinds(execution: &Execution) -> Vec<&'static str> {
    let events = execution.trace.events.iter().filter(|event| event.thread.index() == 1);
    events.map(|event| event.kind.name()).collect()
}

fn left_out(execution: &Execution) -> u64 {
    execution.report.threads[1].idle_rounds
}

fn nothing(_: &mut Stream, _: u64) {}

#[test]
fn only_the_first_and_last_rounds_of_polling_stay() {
    let p = program();
    let (flag, other) = (p.flag, p.other);
    let round = vec![(load(flag), I32)];
    let execution = run(p, (round, 1), vec![(load(other), I32)], 100_000, false, nothing);
    // The first round is not watched; of the others but the last, all before the last full one go.
    assert_eq!(kinds(&execution), ["start", "read", "read", "read", "read", "exit"]);
    assert_eq!(left_out(&execution), 100_000 - 3);
    let trace = &execution.trace;
    assert!(trace.variables.len() < 20, "{} variables", trace.variables.len());
    assert!(trace.exprs.len() < 100, "{} expressions", trace.exprs.len());
    // The flag was 0 in each round but the last.
    let of_worker = trace.conditions.iter().filter(|condition| condition.thread.index() == 1);
    let holds_for_zero: Vec<bool> = of_worker
        .map(|condition| trace.exprs.evaluate(condition.expr, &|_| Some(0)) == Some(1))
        .collect();
    assert_eq!(holds_for_zero, [true, true, false]);
    // The so-manieth passages are those of a thread that went round three times.
    let reads: Vec<u64> = trace
        .events
        .iter()
        .filter(|event| event.thread.index() == 1 && !event.kind.reads().is_empty())
        .map(|event| execution.points.point(event.id).expect("a point").occurrence)
        .collect();
    assert_eq!(reads, [1, 2, 3, 1]);
}

#[test]
fn nothing_is_left_out_of_scheduled_runs() {
    let p = program();
    let round = vec![(load(p.flag), I32)];
    let execution = run(p, (round, 1), Vec::new(), 10, true, nothing);
    assert_eq!((kinds(&execution).len(), left_out(&execution)), (12, 0));
}

#[test]
fn a_round_that_sleeps_and_looks_at_the_clock_goes() {
    let mut p = program();
    let sleep = p.b.declare("usleep", &[I32], I32);
    let time = p.b.declare("time", &[PTR], I32);
    let null = p.b.constant(PTR, ir::types::ConstantKind::Null);
    let round = vec![(call(sleep, &[p.one]), I32), (call(time, &[null]), I32), (load(p.flag), I32)];
    let execution = run(p, (round, 3), Vec::new(), 20, false, |t1, number| {
        t1.ret_int(0).ret_int(1000 + number as u32);
    });
    assert_eq!(kinds(&execution), ["start", "read", "read", "read", "exit"]);
    // What is given back in a replay has lost as much.
    let times = execution.inputs.iter().find(|input| input.function == "time").expect("times");
    assert_eq!(times.words, [1000, 1018, 1019]);
}

#[test]
fn polling_under_a_mutex_goes() {
    let mut p = program();
    let mutex = p.b.global("mutex", I32, 40, 0x60_0300);
    let lock = p.b.declare("pthread_mutex_lock", &[PTR], I32);
    let unlock = p.b.declare("pthread_mutex_unlock", &[PTR], I32);
    let round =
        vec![(call(lock, &[mutex]), I32), (load(p.flag), I32), (call(unlock, &[mutex]), I32)];
    let execution = run(p, (round, 2), Vec::new(), 50, false, |t1, number| {
        let time = 100_000 * (number + 1);
        t1.runtime(RuntimeEvent::Locked, &[0x60_0300, time]).ret_int(0);
        t1.runtime(RuntimeEvent::Unlocked, &[0x60_0300, time + 50_000]).ret_int(0);
    });
    let section = ["lock", "read", "unlock"];
    let expected = [&["start"][..], &section, &section, &section, &["exit"]].concat();
    assert_eq!(kinds(&execution), expected);
    // The last rounds are those of the run, by their times.
    let trace = &execution.trace;
    let earliest: Vec<u64> = trace
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Lock { .. }))
        .map(|event| trace.intervals[event.id.index()].earliest)
        .collect();
    assert!(earliest[1] >= 4_800_000 && earliest[2] >= 4_900_000, "{earliest:?}");
}

/// `op` on `flag` in each round, which finds `found`.
fn updating(op: RmwOp, found: u32) -> Execution {
    let p = program();
    let update = InstKind::AtomicRmw {
        op,
        address: p.flag,
        value: p.one,
        ordering: Ordering::SequentiallyConsistent,
    };
    // Round by round `other` tells whether to go on.
    let round = vec![(update, I32), (load(p.other), I32)];
    run(p, (round, 2), Vec::new(), 30, false, |t1, _| {
        t1.words(&[7]).ints(&[found]);
    })
}

#[test]
fn an_exchange_that_stores_what_it_found_goes_and_others_stay() {
    assert_eq!(left_out(&updating(RmwOp::Xchg, 1)), 27);
    assert_eq!(left_out(&updating(RmwOp::Or, 1)), 27);
    assert_eq!(left_out(&updating(RmwOp::Xchg, 0)), 0);
    assert_eq!(left_out(&updating(RmwOp::Add, 1)), 0);
}

#[test]
fn a_round_that_writes_stays() {
    // Even what is there already: others may have written in between.
    let p = program();
    let round = vec![store(p.other, p.one), (load(p.flag), I32)];
    let execution = run(p, (round, 2), Vec::new(), 10, false, nothing);
    assert_eq!(left_out(&execution), 0);
    assert_eq!(kinds(&execution).len(), 22);
}

#[test]
fn a_counter_in_the_loop_keeps_its_rounds() {
    let p = program();
    let (flag, own, one) = (p.flag, p.own, p.one);
    let round = vec![
        (load(own), I32),
        (InstKind::Binary(BinaryOp::Add, inst(1), one), I32),
        store(own, inst(2)),
        (load(flag), I32),
    ];
    let execution = run(p, (round, 4), Vec::new(), 40, false, nothing);
    assert_eq!(left_out(&execution), 0);
}

#[test]
fn what_the_next_round_overwrites_may_differ_and_what_it_reads_may_not() {
    // own = flag, in each round.
    let p = program();
    let (flag, own, other) = (p.flag, p.own, p.other);
    let round = vec![(load(flag), I32), store(own, inst(1)), (load(own), I32)];
    let execution = run(p, (round, 3), vec![(load(own), I32)], 40, false, nothing);
    assert_eq!(left_out(&execution), 37);
    // What comes behind the loop is made of the last round's read.
    let trace = &execution.trace;
    for condition in trace.conditions.iter().filter(|c| c.thread.index() == 1) {
        for var in trace.exprs.variables(condition.expr) {
            let origin = trace.variables[var.index()].origin;
            assert!(matches!(origin, model::VariableOrigin::Read { .. }), "{origin:?}");
        }
    }
    // other = what own was; own = flag: each round uses what the one before read.
    let p = program();
    let round = vec![
        (load(own), I32),
        (InstKind::ICmp(IntPredicate::Eq, inst(1), p.one), I1),
        (load(flag), I32),
        store(own, inst(3)),
    ];
    let execution = run(p, (round, 3), vec![(load(other), I32)], 40, false, nothing);
    assert_eq!(left_out(&execution), 0);
}

#[test]
fn a_phi_with_the_last_value_keeps_its_rounds() {
    // for (seen = 1; ...; seen = v) v = flag + 0 * seen ...
    let mut p = program();
    let zero = p.b.int(I32, 0);
    let phi = InstKind::Phi(vec![(BlockId(0), zero), (BlockId(3), inst(2))]);
    let round = vec![(phi, I32), (load(p.flag), I32)];
    let execution = run(p, (round, 2), Vec::new(), 40, false, nothing);
    assert_eq!(left_out(&execution), 0);
}

#[test]
fn unknown_calls_keep_their_rounds() {
    let mut p = program();
    let print = p.b.declare("puts", &[PTR], I32);
    let round = vec![(call(print, &[p.own]), I32), (load(p.flag), I32)];
    let execution = run(p, (round, 2), Vec::new(), 20, false, |t1, _| {
        t1.ret_int(1);
    });
    assert_eq!(left_out(&execution), 0);
}

/// `main` stores these values in `flag`, another thread 0 if `reset`, and the worker sees 0 for ever.
fn hang(stores: &[u32], reset: bool) -> Execution {
    hang_behind(stores, reset, |_| Vec::new())
}

/// The same, where the worker does something before it looks, and `main` writes `other`.
fn hang_behind(stores: &[u32], reset: bool, before: impl Fn(&Program) -> Vec<Line>) -> Execution {
    let mut p = program();
    let mut first = before(&p);
    let number = u32::try_from(first.len()).expect("a few lines");
    first.push(jump(1));
    let zero = p.b.int(I32, 0);
    let null = p.b.constant(PTR, ir::types::ConstantKind::Null);
    let create = p.b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let joins = p.b.declare("pthread_join", &[I32, PTR], I32);
    let body = vec![
        (load(p.flag), I32),
        (InstKind::ICmp(IntPredicate::Eq, inst(number + 1), zero), I1),
        branch(inst(number + 2), 3, 2),
    ];
    let end = vec![(InstKind::Ret(Some(null)), VOID)];
    let latch = latch(&mut p.b);
    let blocks = vec![first, body, end.clone(), latch];
    let worker = p.b.define("worker", &[PTR], PTR, blocks);
    let resets = [vec![store(p.flag, zero)], end].concat();
    let resets = p.b.define("reset", &[PTR], PTR, vec![resets]);
    let of = |b: &mut ModuleBuilder, function| {
        b.constant(PTR, ir::types::ConstantKind::Function(function, 0))
    };
    let (worker_address, reset_address) = (of(&mut p.b, worker), of(&mut p.b, resets));
    let mut main = vec![
        (call(create, &[null, null, worker_address, null]), I32),
        (call(create, &[null, null, reset_address, null]), I32),
    ];
    for &value in stores {
        main.push(store(p.flag, p.b.int(I32, u64::from(value))));
    }
    if number > 0 {
        main.push(store(p.other, zero));
    }
    main.push((call(joins, &[zero, null]), I32));
    main.push((InstKind::Ret(None), VOID));
    let main = p.b.define("main", &[], VOID, vec![main]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2).create(3).runtime(RuntimeEvent::JoinBegin, &[2]);
    let mut t1 = Stream::new("t0.1", 2, 1, Some(worker));
    t1.enter(worker, &[0]);
    (0..1000).for_each(|_| {
        t1.block(3).ret_int(0);
    });
    let mut t2 = Stream::new("t0.2", 3, 1, Some(resets));
    let t2 = if reset { t2.enter(resets, &[0]).exit() } else { t2.exit() };
    let recording = Recording {
        modules: vec![p.b.finish()],
        threads: vec![t0.end(), t1.end(), t2],
        failure: Some(RecordedFailure {
            kind: RecordedFailureKind::TimedOut,
            thread_serial: 0,
            message: String::new(),
        }),
        common_clock: false,
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
    };
    let execution = execute(&recording, &Options::default()).expect("there are threads");
    model::verify::verify(&execution.trace).expect("the event trace is valid");
    execution
}

#[test]
fn a_thread_that_polls_for_ever_waits_for_a_change() {
    let execution = hang(&[1], true);
    assert_eq!(kinds(&execution), ["start", "read", "read", "wait-for-change", "failure"]);
    let trace = &execution.trace;
    let failure = trace.failure.as_ref().expect("a failure");
    assert_eq!(failure.kind, FailureKind::Hang);
    assert!(failure.message.contains("t0.1 waits until flag changes; "), "{}", failure.message);
    // The release comes before the write that takes it back.
    let write = |thread: usize| {
        let mut events = trace.threads[thread].events.iter().copied();
        events.find(|id| !trace.event(*id).kind.writes().is_empty()).expect("a write")
    };
    let before = FailureCondition::Before(write(0), write(2));
    let all = FailureCondition::All(vec![before]);
    assert_eq!(failure.condition, all);
}

/// `flag = other;` does not say what is written, but what is read behind it does.
#[test]
fn a_thread_may_take_the_change_that_it_waits_for_back_itself() {
    let copies = |p: &Program| vec![(load(p.other), I32), store(p.flag, inst(0))];
    let execution = hang_behind(&[1], false, copies);
    let trace = &execution.trace;
    let failure = trace.failure.as_ref().expect("a failure");
    assert_eq!(failure.kind, FailureKind::Hang);
    let write = |thread: usize| {
        let mut events = trace.threads[thread].events.iter().copied();
        events.find(|id| !trace.event(*id).kind.writes().is_empty()).expect("a write")
    };
    let before = FailureCondition::Before(write(0), write(1));
    assert_eq!(failure.condition, FailureCondition::All(vec![before]));
}

#[test]
fn who_waits_for_a_change_that_nobody_makes_always_does() {
    let always = |execution: &Execution| {
        let failure = execution.trace.failure.as_ref().expect("a failure");
        assert!(matches!(failure.condition, FailureCondition::Value(_)), "{failure:?}");
        failure.message.clone()
    };
    let message = always(&hang(&[0], true));
    assert!(message.contains("t0.1 waits until flag changes, and nobody changes it"), "{message}");
    // One thread makes it and takes it back: no order of events changes that.
    let message = always(&hang(&[1, 0], false));
    assert!(message.contains("came before its last look, or was overwritten"), "{message}");
}
