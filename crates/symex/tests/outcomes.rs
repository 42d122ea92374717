//! What functions of libraries work out from what threads share.

use crate::support::{
    I32, I64, ModuleBuilder, PTR, Stream, VOID, call, execute, inst, load, store,
};
use ir::types::{ConstantKind, InstKind};
use model::{EventTrace, ExprId, VarId};
use symex::{Execution, Options, Recording};

const TEXT: u64 = 0x60_0000;
const GOT: u64 = 0x60_1000;

/// A thread writes `17` to `text`, which is empty before, and looks at `got`, to which `main` writes the number that it reads
/// from `text`.
fn read(base: u64, used: bool) -> Execution {
    let mut b = ModuleBuilder::new();
    let written = b.int(I32, u32::from_le_bytes(*b"17\0\0").into());
    let (text, got) = (b.global("text", I64, 8, TEXT), b.global("got", I64, 8, GOT));
    let null = b.constant(PTR, ConstantKind::Null);
    let (zero, of) = (b.int(I64, 0), b.int(I32, base));
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let join = b.declare("pthread_join", &[I64, PTR], I32);
    let number = b.declare("strtol", &[PTR, PTR, I32], I64);
    let body = vec![(load(got), I64), store(text, written), (InstKind::Ret(Some(null)), VOID)];
    let worker = b.define("worker", &[PTR], PTR, vec![body]);
    let start = b.constant(PTR, ConstantKind::Function(worker, 0));
    let main = vec![
        (call(create, &[null, null, start, null]), I32),
        (call(number, &[text, null, of]), I64),
        store(got, if used { inst(1) } else { zero }),
        (call(join, &[zero, null]), I32),
        (InstKind::Ret(None), VOID),
    ];
    let main = b.define("main", &[], VOID, vec![main]);
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2).ret(&[17]).join(2);
    let worker = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[0]).words(&[0]).exit();
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
    execute(&recording, &Options::default()).expect("the run is executed")
}

/// What `main` writes to `got`.
fn written(trace: &EventTrace) -> ExprId {
    let initial = &trace.threads[0];
    let mut writes = initial.events.iter().flat_map(|id| trace.event(*id).kind.writes());
    writes.next_back().expect("a write").value
}

/// The variables of the bytes that `main` reads of the text: all that it reads.
fn text(trace: &EventTrace) -> Vec<VarId> {
    let reads = trace.threads[0].events.iter().flat_map(|id| trace.event(*id).kind.reads());
    reads.map(|part| part.var).collect()
}

#[test]
fn a_number_follows_from_the_text_that_another_thread_writes() {
    let execution = read(10, true);
    let trace = &execution.trace;
    assert_eq!((execution.report.gap_count(), trace.outcomes.len()), (0, 0));
    let [whole] = text(trace)[..] else { panic!("one read") };
    for (text, number) in
        [(*b"17\0\0", 17), (*b"\0\0\0\0", 0), (*b"  -3", -3), (*b"9x1\0", 9), (*b"-+1\0", 0)]
    {
        let value = u128::from(u32::from_le_bytes(text));
        let is = |var: VarId| (var == whole).then_some(value);
        let found = trace.exprs.evaluate(written(trace), &is);
        assert_eq!(found, Some(u128::from(number as i64 as u64)), "{text:?}");
    }
}

/// Of another base nobody computes it: where the same text is read it is the same, and otherwise any number.
#[test]
fn what_is_not_computed_is_known_only_where_the_same_goes_in() {
    let execution = read(16, true);
    let trace = &execution.trace;
    let [outcome] = &trace.outcomes[..] else { panic!("{:?}", trace.outcomes) };
    assert_eq!(trace.exprs.variables(written(trace)), [outcome.var]);
    assert_eq!(trace.variables[outcome.var.index()].recorded, Some(17));
    let goes_in: Vec<VarId> =
        outcome.inputs.iter().flat_map(|input| trace.exprs.variables(*input)).collect();
    assert_eq!(goes_in, text(trace));
    assert!(read(16, false).trace.outcomes.is_empty(), "nobody asks for it");
}
