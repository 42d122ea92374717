//! Functions on strings that threads share.

mod support;

use ir::types::{InstKind, Operand};
use model::EventTrace;
use support::{I32, I64, ModuleBuilder, PTR, Stream, VOID, call, store};
use symex::{Execution, Options, Recording, execute};

const NAME: u64 = 0x60_0000;
const KEY: u64 = 0x60_1000;

/// A thread writes `written` to `name`, which is empty before, while `main` compares it with `key`.
fn compared(function: &str, written: &[u8; 4], key: &[u8; 4], result: i32) -> Execution {
    let mut b = ModuleBuilder::new();
    let word = |b: &mut ModuleBuilder, text: &[u8; 4]| b.int(I32, u32::from_le_bytes(*text).into());
    let (text, other) = (word(&mut b, written), word(&mut b, key));
    let (name, own) = (b.global("name", I32, 4, NAME), b.global("key", I32, 4, KEY));
    let null = b.constant(PTR, ir::types::ConstantKind::Null);
    let (zero, bound) = (b.int(I64, 0), b.int(I64, 2));
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let join = b.declare("pthread_join", &[I64, PTR], I32);
    let (parameters, arguments): (&[_], &[Operand]) = match function {
        "strncmp" => (&[PTR, PTR, I64], &[name, own, bound]),
        _ => (&[PTR, PTR], &[name, own]),
    };
    let compare = b.declare(function, parameters, I32);
    let worker = b.define(
        "worker",
        &[PTR],
        PTR,
        vec![vec![store(name, text), (InstKind::Ret(Some(null)), VOID)]],
    );
    let start = b.constant(PTR, ir::types::ConstantKind::Function(worker, 0));
    let main = b.define(
        "main",
        &[],
        VOID,
        vec![vec![
            store(own, other),
            (call(create, &[null, null, start, null]), I32),
            (call(compare, arguments), I32),
            (call(join, &[zero, null]), I32),
            (InstKind::Ret(None), VOID),
        ]],
    );
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2).ret_int(result as u32).join(2);
    let worker = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[0]).exit();
    let recording = Recording {
        modules: vec![b.finish()],
        threads: vec![t0.exit(), worker],
        failure: None,
        common_clock: true,
        scheduled: false,
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
