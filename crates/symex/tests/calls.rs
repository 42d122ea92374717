//! Calls between two modules: what a caller and a callee that know each other leave out of the log.

use crate::support::{
    CODE, I1, I32, I64, ModuleBuilder, PTR, Stream, VOID, branch, call, execute, inst, kinds, load,
    store,
};
use ir::types::{BinaryOp, ConstantKind, FuncId, InstKind, IntPredicate, Operand, Type, TypeId};
use model::{PathConditionKind, VariableOrigin};
use symex::{Execution, Options, RecordedModule, Recording};
use trace_format::layout::RuntimeEvent;

const COUNTER: u64 = 0x60_0000;
/// The process-wide number of the second module's first function, `next`.
const NEXT: u32 = 100;

/// `next` adds 1 to its argument; `double` is never called.
fn second() -> RecordedModule {
    let mut b = ModuleBuilder::new();
    let one = b.int(I32, 1);
    let add = InstKind::Binary(BinaryOp::Add, Operand::Param(0), one);
    let body = || vec![vec![(add.clone(), I32), (InstKind::Ret(Some(inst(0))), VOID)]];
    let next = b.define("next", &[I32], I32, body());
    let double = b.define("double", &[I32], I32, body());
    assert_eq!((next, double), (FuncId(0), FuncId(1)));
    let mut module = b.finish();
    module.base = NEXT;
    module.functions = vec![CODE + 0x8000, CODE + 0x8010];
    module
}

/// `main` starts a thread that writes `counter`, reads it, has `next` of the second module add 1, and
/// branches on whether that is 1. `fill` writes what comes behind the read, which found 0, up to the
/// branch.
fn run(second: RecordedModule, fill: impl FnOnce(&mut Stream)) -> Execution {
    run_with("next", second, fill)
}

/// The same with a function of that name.
fn run_with(name: &str, mut second: RecordedModule, fill: impl FnOnce(&mut Stream)) -> Execution {
    name.clone_into(&mut second.ir.functions[0].name);
    let mut b = ModuleBuilder::new();
    let counter = b.global("counter", I32, 4, COUNTER);
    let (one, five, zero) = (b.int(I32, 1), b.int(I32, 5), b.int(I64, 0));
    let null = b.constant(PTR, ConstantKind::Null);
    let create = b.declare("pthread_create", &[PTR, PTR, PTR, PTR], I32);
    let joins = b.declare("pthread_join", &[I64, PTR], I32);
    let next = b.declare(name, &[I32], I32);
    let done = (InstKind::Ret(Some(null)), VOID);
    let worker = b.define("worker", &[PTR], PTR, vec![vec![store(counter, five), done.clone()]]);
    let start = b.constant(PTR, ConstantKind::Function(worker, 0));
    let is_one = InstKind::ICmp(IntPredicate::Eq, inst(2), one);
    let main = b.define(
        "main",
        &[],
        PTR,
        vec![
            vec![
                (call(create, &[null, null, start, null]), I32),
                (load(counter), I32),
                (call(next, &[inst(1)]), I32),
                (is_one, I1),
                branch(inst(3), 1, 2),
            ],
            vec![(call(joins, &[zero, null]), I32), done.clone()],
            vec![(call(joins, &[zero, null]), I32), done],
        ],
    );
    let mut first = b.finish();
    first.functions[next.index()] = CODE + 0x8000;
    let mut t0 = Stream::new("t0", 1, 0, None);
    t0.enter(main, &[]).create(2).ints(&[0]);
    fill(&mut t0);
    t0.block(1).join(2);
    let other = Stream::new("t0.1", 2, 1, Some(worker)).enter(worker, &[0]).exit();
    let threads = vec![t0.exit(), other];
    let modules = vec![first, second];
    let recording = Recording {
        modules,
        threads,
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

/// The branch depends on what was read, by way of `next`.
fn check_symbolic(execution: &Execution) {
    let thread = &execution.report.threads[0];
    assert!(thread.reached_end, "{}", thread.stopped);
    assert_eq!(execution.gaps, []);
    let trace = &execution.trace;
    let [condition] = trace.conditions.as_slice() else { panic!("{:?}", trace.conditions) };
    assert_eq!(condition.kind, PathConditionKind::Branch);
    let variables = trace.exprs.variables(condition.expr);
    assert_eq!(variables.len(), 1);
    let origin = &trace.variables[variables[0].index()].origin;
    assert!(matches!(origin, VariableOrigin::Read { .. }), "{origin:?}");
    assert_eq!(trace.exprs.evaluate(condition.expr, &|_| Some(0)), Some(1));
    assert_eq!(trace.exprs.evaluate(condition.expr, &|_| Some(5)), Some(0));
}

#[test]
fn a_value_stays_symbolic_through_a_function_of_another_module() {
    let named = run(second(), |t0| {
        t0.called(NEXT).came_back();
    });
    check_symbolic(&named);
}

/// Each side may log although the other does not: the word between them was lost on the way.
#[test]
fn one_side_may_log_what_the_other_leaves_out() {
    let entered = run(second(), |t0| {
        t0.called(NEXT).ret_int(1);
    });
    check_symbolic(&entered);
    let returned = run(second(), |t0| {
        t0.enter_number(NEXT, &[0]).came_back();
    });
    check_symbolic(&returned);
}

/// A function of the program has the name of a library's, whose callers report what it says that it writes. What the program's
/// wrote is known, so that this is what another thread has written there since.
#[test]
fn what_a_walked_function_wrote_is_not_what_lies_there_later() {
    let reported = run_with("rand_r", second(), |t0| {
        t0.enter_number(NEXT, &[0]);
        t0.runtime(RuntimeEvent::ExternalWrite, &[COUNTER, 4]).words(&[5]).ret_int(1);
    });
    check_symbolic(&reported);
    assert!(!kinds(&reported, 0).contains(&"write"), "{:?}", kinds(&reported, 0));
}

fn stops(execution: &Execution, why: &str) {
    let thread = &execution.report.threads[0];
    assert!(!thread.reached_end && thread.stopped.contains(why), "{}", thread.stopped);
}

#[test]
fn entries_that_cannot_be_are_told() {
    let another = run(second(), |t0| {
        t0.called(NEXT + 1).came_back();
    });
    stops(&another, "double says that it was called where next is");
    let nobody = run(second(), |t0| {
        t0.called(NEXT).called(NEXT);
    });
    stops(&nobody, "next says that it was called where nothing is");
    let none = run(second(), |t0| {
        t0.came_back();
    });
    stops(&none, "a function came back that did not return");
    let unknown = run(second(), |t0| {
        t0.called(NEXT + 7);
    });
    stops(&unknown, "entry of 107, which has no body");
}

#[test]
fn a_callee_with_other_types_cannot_have_been_named() {
    let mut module = second();
    let types = &mut module.ir.types;
    types.push(Type::Function { result: I32, params: vec![I64], varargs: false });
    module.ir.functions[0].ty = TypeId(types.len() as u32 - 1);
    module.ir.functions[0].params[0].ty = I64;
    let execution = run(module, |t0| {
        t0.called(NEXT).came_back();
    });
    stops(&execution, "next says that main called it, with other types");
}
