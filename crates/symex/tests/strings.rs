//! Functions on strings that threads share.

use crate::support::{
    I32, I64, ModuleBuilder, PTR, Stream, VOID, call, execute, inst, kinds, run, store,
};
use ir::types::{InstKind, Operand};
use model::EventTrace;
use symex::{Execution, Options, Recording};
use trace_format::layout::RuntimeEvent;

const NAME: u64 = 0x60_0000;
const KEY: u64 = 0x60_1000;
const COPY: u64 = 0x60_2000;

/// A thread writes `written` to `name`, which is empty before, while `main` compares it with `key`; with `strncpy`,
/// its own copy of at most three bytes.
fn compared(function: &str, written: &[u8; 4], key: &[u8; 4], result: i32) -> Execution {
    let mut b = ModuleBuilder::new();
    let word = |b: &mut ModuleBuilder, text: &[u8; 4]| b.int(I32, u32::from_le_bytes(*text).into());
    let (text, other) = (word(&mut b, written), word(&mut b, key));
    let (name, own) = (b.global("name", I32, 4, NAME), b.global("key", I32, 4, KEY));
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let (zero, bound, most) = (b.int(I64, 0), b.int(I64, 2), b.int(I64, 3));
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let join = b.declare("pthread_join", &[I64, PTR], I32);
    let (parameters, arguments): (&[_], &[Operand]) = match function {
        "strncmp" => (&[PTR, PTR, I64], &[name, own, bound]),
        _ => (&[PTR, PTR], &[name, own]),
    };
    let copied = function == "strncpy";
    let compare = b.declare(if copied { "strcmp" } else { function }, parameters, I32);
    let copy = b.global("copy", I32, 4, COPY);
    let copies = b.declare("strncpy", &[PTR, PTR, I64], PTR);
    let worker = b.define(
        "worker",
        &[PTR],
        PTR,
        vec![vec![store(name, text), (InstKind::Ret(Some(null)), VOID)]],
    );
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let mut body = vec![store(own, other), (call(create, &[null, null, start, null]), I32)];
    match copied {
        true => body
            .extend([(call(copies, &[copy, name, most]), PTR), (call(compare, &[copy, own]), I32)]),
        false => body.push((call(compare, arguments), I32)),
    }
    body.extend([(call(join, &[zero, null]), I32), (InstKind::Ret(None), VOID)]);
    let main = b.define("main", &[], VOID, vec![body]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2);
    if copied {
        t0.ret(&[COPY]);
    }
    t0.ret_int(result as u32).join(2);
    let worker = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[0]).exit();
    let recording = Recording {
        modules: vec![b.finish()],
        threads: vec![t0.exit(), worker],
        failure: None,
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

/// Do all conditions hold when all that is read of `name` has this text?
fn holds(trace: &EventTrace, text: [u8; 4]) -> bool {
    let value = |var| {
        let parts = trace.events.iter().flat_map(|event| event.kind.reads());
        let read = parts.clone().find(|part| part.var == var)?;
        let before = trace.cells[..read.cell.index()].iter().map(|cell| cell.width).sum::<u32>();
        let width = trace.cells[read.cell.index()].width;
        let whole = u128::from(u32::from_le_bytes(text)) >> before;
        Some(whole & ((1 << width) - 1))
    };
    trace.conditions.iter().all(|condition| {
        trace.exprs.evaluate(condition.expr, &value).expect("all of it is known") != 0
    })
}

#[test]
fn the_result_of_a_comparison_hangs_on_what_another_thread_wrote() {
    // "abd" and "abc" differ behind bytes of which the log says nothing.
    let after = compared("strcmp", b"abd\0", b"abc\0", 1);
    assert_eq!(after.gaps, []);
    assert!(holds(&after.trace, *b"abd\0") && holds(&after.trace, *b"b\0\0\0"));
    assert!(holds(&after.trace, *b"abcd"), "longer");
    assert!(!holds(&after.trace, *b"\0\0\0\0"), "nothing was written yet");
    assert!(!holds(&after.trace, *b"abc\0") && !holds(&after.trace, *b"ab\0z"));

    let before = compared("strcmp", b"abd\0", b"abc\0", -1);
    assert_eq!(before.gaps, []);
    assert!(holds(&before.trace, *b"\0\0\0\0") && !holds(&before.trace, *b"abd\0"));

    let equal = compared("strcmp", b"abc\0", b"abc\0", 0);
    assert_eq!(equal.gaps, []);
    assert!(holds(&equal.trace, *b"abc\0") && !holds(&equal.trace, *b"\0\0\0\0"));

    let bounded = compared("strncmp", b"abd\0", b"abc\0", 0);
    assert_eq!(bounded.gaps, []);
    assert!(holds(&bounded.trace, *b"abd\0") && !holds(&bounded.trace, *b"a\0\0\0"));
}

#[test]
fn a_copy_ends_where_the_text_of_another_thread_does() {
    let after = compared("strncpy", b"abd\0", b"abd\0", 0);
    assert_eq!(after.gaps, []);
    assert!(holds(&after.trace, *b"abd\0") && holds(&after.trace, *b"abdx"), "three bytes");
    assert!(!holds(&after.trace, *b"abc\0") && !holds(&after.trace, *b"\0\0\0\0"));

    let short = compared("strncpy", b"a\0\0\0", b"a\0\0\0", 0);
    assert_eq!(short.gaps, []);
    assert!(holds(&short.trace, *b"a\0b\0"), "zeros behind the end, whatever lies there");
    assert!(!holds(&short.trace, *b"ab\0\0"));
}

/// `main` had made the text long, and the thread makes it short before `main` compares it; a survey walks `main` first.
#[test]
fn a_text_that_another_thread_made_shorter_does_not_go_on_behind_its_object() {
    let mut b = ModuleBuilder::new();
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let (zero, two, long, size) =
        (b.int(I64, 0), b.int(I64, 2), b.int(I64, 1 << 20), b.int(I64, 16));
    let (name, length) = (b.global("name", PTR, 8, NAME), b.global("length", I64, 8, NAME + 8));
    let key = b.global("key", PTR, 32, KEY);
    let malloc = b.declare("malloc", &[I64], PTR);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let join = b.declare("pthread_join", &[I64, PTR], I32);
    let compare = b.declare(
        "_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareERKS4_",
        &[PTR, PTR],
        I32,
    );
    let worker = b.define(
        "worker",
        &[PTR],
        PTR,
        vec![vec![
            (call(malloc, &[size]), PTR),
            store(inst(0), two),
            store(length, two),
            (InstKind::Ret(Some(null)), VOID),
        ]],
    );
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let body = vec![
        (call(malloc, &[size]), PTR),
        store(name, inst(0)),
        store(length, long),
        (call(create, &[null, null, start, null]), I32),
        (call(compare, &[name, key]), I32),
        (call(join, &[zero, null]), I32),
        (InstKind::Ret(None), VOID),
    ];
    let main = b.define("main", &[], VOID, vec![body]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).runtime(RuntimeEvent::Allocate, &[0x9000, 16, 10]).ret(&[0x9000]);
    t0.create(2).ret_int(0).join(2);
    let mut t1 = Stream::new("t0.1", 2, 1, Some(worker));
    t1.enter(worker, &[0]).runtime(RuntimeEvent::Allocate, &[0x9100, 16, 20]).ret(&[0x9100]);
    let recording = Recording {
        modules: vec![b.finish()],
        threads: vec![t0.exit(), t1.exit()],
        failure: None,
        common_clock: true,
        scheduled: false,
        forked: false,
        stuck: false,
        handled: None,
    };
    let execution = run(&recording);
    assert_eq!(kinds(&execution, 1), ["start", "write", "exit"], "nobody else has the object");
}
