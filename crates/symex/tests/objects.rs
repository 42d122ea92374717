//! Objects on the heap, and mappings: one place at several times, and what is in them at first.

use crate::support::{
    I32, I64, ModuleBuilder, PTR, Stream, VOID, call, inst, kinds, load, run, store,
};
use ir::types::{BinaryOp, InstKind, Operand};
use model::EventKind;
use symex::{RecordedModule, Recording, ThreadLog};
use trace_format::layout::{MAPPING_OTHER, MAPPING_ZERO, RuntimeEvent};

/// A run that did not fail.
fn passed(module: RecordedModule, threads: Vec<ThreadLog>) -> Recording {
    Recording {
        modules: vec![module],
        threads,
        failure: None,
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
    }
}

#[test]
fn a_reused_heap_address_is_another_place() {
    let mut b = ModuleBuilder::new();
    let malloc = b.declare("malloc", &[I64], PTR);
    let free = b.declare("free", &[PTR], VOID);
    let (size, five) = (b.int(I64, 8), b.int(I64, 5));
    let worker = b.define(
        "worker",
        &[PTR],
        PTR,
        vec![vec![
            (call(malloc, &[size]), PTR),
            store(inst(0), five),
            (call(free, &[inst(0)]), VOID),
            (InstKind::Ret(Some(inst(0))), VOID),
        ]],
    );
    let main_block = vec![(InstKind::Ret(None), VOID)];
    let main = b.define("main", &[], VOID, vec![main_block]);
    let thread = |name: &str, serial, tsc: u64| -> ThreadLog {
        let mut stream = Stream::new(name, serial, 1, Some(worker));
        stream.enter(worker, &[0]).runtime(RuntimeEvent::Allocate, &[0x9000, 8, tsc]);
        stream.ret(&[0x9000]).runtime(RuntimeEvent::Free, &[0x9000, tsc + 5]).ret(&[]).exit()
    };
    let t0 = Stream::new("t0", 1, 0, None).enter(main, &[]).exit();
    let threads = vec![t0, thread("t0.1", 2, 100), thread("t0.2", 3, 200)];
    let recording = passed(b.finish(), threads);
    let execution = run(&recording);
    assert_eq!(execution.trace.cells, [], "the threads never touch the same object");
    assert!(execution.report.threads.iter().all(|thread| thread.reached_end));
}

/// The worker frees what `main` gives it, and gets the place again, in the time in which `main` writes to it.
#[test]
fn of_two_objects_at_one_address_the_pointer_means_the_one_that_was_there_when_it_was_got() {
    let mut b = ModuleBuilder::new();
    let malloc = b.declare("malloc", &[I64], PTR);
    let free = b.declare("free", &[PTR], VOID);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let (size, five, seven) = (b.int(I64, 8), b.int(I64, 5), b.int(I64, 7));
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let worker = b.define(
        "worker",
        &[PTR],
        PTR,
        vec![vec![
            (load(Operand::Param(0)), I64),
            (call(free, &[Operand::Param(0)]), VOID),
            (call(malloc, &[size]), PTR),
            store(inst(2), seven),
            (call(malloc, &[size]), PTR),
            (InstKind::Ret(Some(null)), VOID),
        ]],
    );
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let main = b.define(
        "main",
        &[],
        VOID,
        vec![vec![
            (call(malloc, &[size]), PTR),
            (call(create, &[null, null, start, inst(0)]), I32),
            (call(malloc, &[size]), PTR),
            store(inst(0), five),
            (call(malloc, &[size]), PTR),
            (InstKind::Ret(None), VOID),
        ]],
    );
    let allocate = |stream: &mut Stream, address: u64, tsc: u64| {
        stream.runtime(RuntimeEvent::Allocate, &[address, 8, tsc]).ret(&[address]);
    };
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]);
    allocate(&mut t0, 0x9000, 100);
    t0.create(2);
    allocate(&mut t0, 0xa000, 1000);
    allocate(&mut t0, 0xa100, 9000);
    let mut t1 = Stream::new("t0.1", 2, 1, Some(worker));
    t1.enter(worker, &[0x9000]);
    t1.runtime(RuntimeEvent::Free, &[0x9000, 5000]).ret(&[]);
    allocate(&mut t1, 0x9000, 6000);
    allocate(&mut t1, 0xa200, 9500);
    let threads = vec![t0.exit(), t1.exit()];
    let recording = passed(b.finish(), threads);
    let execution = run(&recording);
    assert_eq!(execution.gaps, []);
    assert_eq!(execution.trace.cells.len(), 1, "what the worker got is its own");
    let accesses =
        |kind: &EventKind| matches!(kind, EventKind::Write { .. } | EventKind::Read { .. });
    let events = execution.trace.events.iter().filter(|event| accesses(&event.kind));
    let found: Vec<(usize, &str)> =
        events.map(|event| (event.thread.index(), event.kind.name())).collect();
    assert_eq!(found, [(0, "write"), (1, "read")]);
}

#[test]
fn pages_are_zeros_where_they_were_mapped_and_unknown_where_a_file_is() {
    // A worker adds one to a word of a mapping, and so does `main`, which made it.
    const PLACE: u64 = 0x7f00_0000_0000;
    let run = |contents: u64, found: u64| {
        let mut b = ModuleBuilder::new();
        let map = b.declare("mmap", &[PTR, I64], PTR);
        let unmap = b.declare("munmap", &[PTR, I64], I32);
        let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
        let join = b.declare("pthread_join", &[I64, PTR], I32);
        let null = b.constant(PTR, ir::types::ConstantKind::Null);
        let (zero, one, size) = (b.int(I64, 0), b.int(I64, 1), b.int(I64, 0x3000));
        let add = |at: u32, pointer: Operand| {
            let sum = InstKind::Binary(BinaryOp::Add, inst(at), one);
            [(load(pointer), I64), (sum, I64), store(pointer, inst(at + 1))]
        };
        let mut body = add(0, Operand::Param(0)).to_vec();
        body.push((InstKind::Ret(Some(null)), VOID));
        let worker = b.define("worker", &[PTR], PTR, vec![body]);
        let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
        let mut body = vec![
            (call(map, &[null, size]), PTR),
            (call(create, &[null, null, start, inst(0)]), I32),
        ];
        body.extend(add(2, inst(0)));
        body.extend([
            (call(join, &[zero, null]), I32),
            (call(unmap, &[inst(0), size]), I32),
            (InstKind::Ret(None), VOID),
        ]);
        let main = b.define("main", &[], VOID, vec![body]);
        let mut t0 = Stream::new("t0", 1, 0, None);
        t0.enter(main, &[]).runtime(RuntimeEvent::Map, &[PLACE, 0x3000, contents, 5, 10]);
        // What an uninstrumented function handed out is logged where it is read.
        t0.ret(&[PLACE]).create(2).words(&[found]).join(2);
        // A part first, of which the program's code says nothing.
        t0.runtime(RuntimeEvent::Unmap, &[PLACE + 0x1000, 0x1000, 20]);
        t0.runtime(RuntimeEvent::Unmap, &[PLACE, 0x3000, 30]).ret_int(0);
        let worker = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[PLACE]).exit();
        let recording = passed(b.finish(), vec![t0.exit(), worker]);
        let execution = self::run(&recording);
        assert_eq!(execution.gaps, []);
        assert_eq!(execution.trace.cells.len(), 1, "{:?}", execution.trace.cells);
        let init = execution.trace.cells[0].init;
        let value = execution.trace.exprs.evaluate(init, &|_| Some(u128::from(found)));
        assert_eq!(value, Some(u128::from(found)));
        let known = execution.trace.exprs.as_const(init);
        let mine = kinds(&execution, 0);
        assert_eq!(mine, ["start", "allocate", "fork", "read", "write", "join", "free", "exit"]);
        known
    };
    assert_eq!(run(MAPPING_ZERO, 0), Some(0));
    assert_eq!(run(MAPPING_OTHER, 0x1234), None);
}

/// A thread that is walked before the one that got the object finds in it what that did: zeros.
#[test]
fn what_another_thread_gets_full_of_zeros_holds_zeros() {
    let mut b = ModuleBuilder::new();
    let head = b.global("head", PTR, 8, 0x60_0000);
    let calloc = b.declare("calloc", &[I64, I64], PTR);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let join = b.declare("pthread_join", &[I64, PTR], I32);
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let (zero, one, size) = (b.int(I64, 0), b.int(I64, 1), b.int(I64, 8));
    let looks = vec![(load(head), PTR), (load(inst(0)), I64), (InstKind::Ret(Some(null)), VOID)];
    let makes = vec![
        (call(calloc, &[one, size]), PTR),
        store(head, inst(0)),
        store(inst(0), one),
        (InstKind::Ret(Some(null)), VOID),
    ];
    let reader = b.define("reader", &[PTR], PTR, vec![looks]);
    let writer = b.define("writer", &[PTR], PTR, vec![makes]);
    let [starts, makes] =
        [reader, writer].map(|it| b.constant(PTR, ir::types::ConstantKind::Function(it, 0)));
    let body = vec![
        (call(create, &[null, null, starts, null]), I32),
        (call(create, &[null, null, makes, null]), I32),
        (call(join, &[zero, null]), I32),
        (call(join, &[zero, null]), I32),
        (InstKind::Ret(None), VOID),
    ];
    let main = b.define("main", &[], VOID, vec![body]);
    let t0 =
        Stream::new("t0", 1, 0, None).enter(main, &[]).create(2).create(3).join(2).join(3).exit();
    let reads = Stream::new("t0.1", 2, 1, Some(reader)).enter(reader, &[0]).words(&[0x9000]).exit();
    let mut t2 = Stream::new("t0.2", 3, 1, Some(writer));
    t2.enter(writer, &[0]).runtime(RuntimeEvent::Allocate, &[0x9000, 8, 10]).ret(&[0x9000]);
    let recording = passed(b.finish(), vec![t0, reads, t2.exit()]);
    let execution = run(&recording);
    assert_eq!(execution.gaps, []);
    let cells = execution.trace.cells.iter();
    let began: Vec<Option<u128>> =
        cells.map(|cell| execution.trace.exprs.as_const(cell.init)).collect();
    assert_eq!(began, [Some(0), Some(0)], "{:?}", execution.trace.cells);
}
