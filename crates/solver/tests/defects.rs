//! What earlier tools of this kind got wrong, each as a test (design section 11), and that every
//! operator means in the solver what it means in the evaluator.

use encoders::dsl::{Parsed, parse};
use model::evaluate::evaluate;
use model::{
    BinOp, CmpOp, ExprId, ExprPool, FloatFormat, FloatOp, FloatPred, PathCondition,
    PathConditionKind, Site, ThreadId, VarId, Variable, VariableOrigin,
};
use solver::{
    CrossCheckSession, Goal, Limits, LoggingSession, Model, Order, OrderingSession, Outcome,
    Session, SmtLibSession, SolverError, UnknownReason, Z3Session,
};
use std::time::Duration;

fn trace(text: &str) -> Parsed {
    parse(text).expect("the trace is well formed")
}

/// The answer of both back ends.
fn check(parsed: &Parsed, goal: Goal, orders: &[Order]) -> Outcome {
    let trace = &parsed.trace;
    let system = encoders::encode(trace).expect("the trace can be encoded");
    let linked = Z3Session::new(trace, &system, Limits::default()).expect("expressible");
    let piped =
        SmtLibSession::new(trace, &system, "z3 -in", Limits::default()).expect("expressible");
    CrossCheckSession::new(linked, piped).check(goal, orders).expect("both answer the same")
}

fn sat(parsed: &Parsed, goal: Goal) -> Model {
    match check(parsed, goal, &[]) {
        Outcome::Sat(model) => model,
        other => panic!("a schedule exists, but the answer is {other:?}"),
    }
}

fn unsat(parsed: &Parsed, goal: Goal) {
    let outcome = check(parsed, goal, &[]);
    assert!(matches!(outcome, Outcome::Unsat(_)), "{outcome:?}");
}

#[test]
fn a_signal_before_the_wait_does_not_satisfy_it() {
    let lost = "t1: lock m
        t1: [wait] wait c m
        t1: unlock m
        t1: fail before sent wait
        t2: [sent] signal c";
    unsat(&trace(lost), Goal::Fail);
    sat(&trace(lost), Goal::Pass);
}

#[test]
fn one_signal_wakes_one_wait() {
    let waits = "t1: lock m
        t1: wait c m
        t1: unlock m
        t2: lock m
        t2: wait c m
        t2: unlock m
        t3: ";
    unsat(&trace(&format!("{waits}signal c")), Goal::Any);
    sat(&trace(&format!("{waits}signal c\nt3: signal c")), Goal::Any);
    sat(&trace(&format!("{waits}broadcast c")), Goal::Any);
}

#[test]
fn all_threads_see_one_initial_value() {
    let parsed = trace(
        "cell x 8 = ?
        t1: R x -> a
        t2: R x -> b
        t1: fail a != b",
    );
    unsat(&parsed, Goal::Fail);
    let model = sat(&parsed, Goal::Pass);
    assert_eq!(model.values[&VarId(1)], model.values[&VarId(2)]);
}

#[test]
fn integers_wrap_at_their_width() {
    let program = |width: u32| {
        trace(&format!(
            "cell x {width} = 127
            t1: R x -> a
            t1: W x a + 1
            t1: R x -> b
            t1: fail b < a"
        ))
    };
    sat(&program(8), Goal::Fail);
    unsat(&program(16), Goal::Fail);
}

#[test]
fn an_unknown_operator_or_statement_is_an_error() {
    let unknown = parse("t1: R x -> a\nt1: W x a ** 2").expect_err("`**` is no operator");
    assert_eq!(unknown.line, 2);
    let unknown = parse("t1: R x -> a\nt1: assume a <=> 2").expect_err("`<=>` is no operator");
    assert_eq!(unknown.line, 2);
    parse("t1: yield").expect_err("`yield` is no statement");
}

#[test]
fn a_lock_held_to_the_end_is_taken_last() {
    let parsed = trace(
        "t1: [held] lock m
        t2: lock m
        t2: [released] unlock m
        t2: fail before held released",
    );
    unsat(&parsed, Goal::Fail);
    sat(&parsed, Goal::Pass);
}

#[test]
fn a_semaphore_attempt_fails_only_without_units() {
    let program = |initial: u32| {
        trace(&format!("sem s {initial}\nt1: sem-wait s\nt2: sem-failed s\nt3: post s"))
    };
    sat(&program(0), Goal::Any);
    sat(&program(1), Goal::Any);
    unsat(&program(2), Goal::Any);
}

#[test]
fn cores_name_the_orders_that_conflict() {
    let parsed = trace(
        "t1: [a] W x 1
        t2: [b] W x 2
        t3: [c] W y 1
        t1: fail",
    );
    let order = |before: &str, after: &str| Order {
        before: parsed.event(before),
        after: parsed.event(after),
    };
    let orders = [order("a", "c"), order("a", "b"), order("c", "b"), order("b", "a")];
    let Outcome::Unsat(core) = check(&parsed, Goal::Any, &orders) else {
        panic!("orders in a circle")
    };
    assert!(core.contains(&3), "{core:?}");
    let Outcome::Sat(model) = check(&parsed, Goal::Any, &orders[..3]) else {
        panic!("orders without a circle")
    };
    assert_eq!(model.schedule.order.len(), parsed.trace.events.len());
}

#[test]
fn a_passing_run_has_no_failing_schedule_to_ask_for() {
    let parsed = trace("t1: W x 1");
    let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
    let mut session =
        Z3Session::new(&parsed.trace, &system, Limits::default()).expect("expressible");
    let answer = session.check(Goal::Fail, &[]);
    assert!(matches!(answer, Err(SolverError::Unsupported(_))), "{answer:?}");
    assert!(matches!(session.check(Goal::Pass, &[]), Ok(Outcome::Sat(_))));
}

/// A product of two unknown factors: more than a solver does in a moment.
fn hard() -> Parsed {
    trace(
        "input a 64
        input b 64
        t1: W x 0
        t1: assume a * b == 1000000016000000063
        t1: assume a > 1
        t1: assume b > 1
        t1: assume a < 2000000000
        t1: assume b < 2000000000
        t1: fail",
    )
}

#[test]
fn a_time_limit_is_unknown_and_not_unsatisfiable() {
    let parsed = hard();
    let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
    let limits = Limits { time: Some(Duration::from_millis(60)), memory_mb: None };
    let mut linked = Z3Session::new(&parsed.trace, &system, limits).expect("expressible");
    let late = Outcome::Unknown(UnknownReason::TimeOut);
    assert_eq!(linked.check(Goal::Fail, &[]).expect("an answer"), late);
    let mut piped =
        SmtLibSession::new(&parsed.trace, &system, "z3 -in", limits).expect("expressible");
    assert_eq!(piped.check(Goal::Fail, &[]).expect("an answer"), late);
    // The process was ended; the next question gets another.
    assert_eq!(piped.check(Goal::Fail, &[]).expect("an answer"), late);
}

#[test]
fn a_memory_limit_is_unknown_and_not_unsatisfiable() {
    let parsed = hard();
    let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
    let limits = Limits { time: Some(Duration::from_secs(20)), memory_mb: Some(48) };
    let mut piped =
        SmtLibSession::new(&parsed.trace, &system, "z3 -in", limits).expect("expressible");
    let answer = piped.check(Goal::Fail, &[]).expect("an answer");
    assert_eq!(answer, Outcome::Unknown(UnknownReason::Memory));
}

#[test]
fn a_command_that_is_no_solver_is_an_error() {
    let parsed = trace("t1: W x 1");
    let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
    for command in ["no-such-solver-anywhere", "cat", ""] {
        let mut session =
            SmtLibSession::new(&parsed.trace, &system, command, Limits::default()).expect("made");
        let answer = session.check(Goal::Any, &[]);
        assert!(answer.is_err(), "{command}: {answer:?}");
    }
}

#[test]
fn questions_and_answers_are_logged() {
    let parsed = trace("t1: [a] W x 1\nt2: [b] W x 2");
    let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
    let session = Z3Session::new(&parsed.trace, &system, Limits::default()).expect("expressible");
    let mut log = Vec::new();
    let order = Order { before: parsed.event("a"), after: parsed.event("a") };
    let answer = LoggingSession::new(session, &mut log).check(Goal::Any, &[order]);
    assert!(matches!(answer, Ok(Outcome::Unsat(_))), "{answer:?}");
    assert_eq!(String::from_utf8_lossy(&log), "Any [e2<e2] -> unsat [0]\n");
}

#[test]
fn sessions_that_disagree_are_an_error() {
    struct Always(Outcome);
    impl Session for Always {
        fn check(&mut self, _: Goal, _: &[Order]) -> Result<Outcome, SolverError> {
            Ok(self.0.clone())
        }
    }
    let sat = || Always(Outcome::Sat(Model::default()));
    let unsat = || Always(Outcome::Unsat(Vec::new()));
    let unknown = || Always(Outcome::Unknown(UnknownReason::TimeOut));
    let disagree = |answer| matches!(answer, Err(SolverError::Disagreement { .. }));
    assert!(disagree(CrossCheckSession::new(sat(), unsat()).check(Goal::Any, &[])));
    assert!(disagree(CrossCheckSession::new(unsat(), sat()).check(Goal::Any, &[])));
    let answer = CrossCheckSession::new(unknown(), unsat()).check(Goal::Any, &[]);
    assert!(matches!(answer, Ok(Outcome::Unsat(_))), "{answer:?}");
}

/// A trace whose inputs are fixed to `operands` by path conditions, and an input for the result.
struct Operation {
    parsed: Parsed,
    inputs: Vec<ExprId>,
}

impl Operation {
    fn on(operands: &[(u32, u128)]) -> Self {
        let mut this = Self { parsed: trace("t0: fence"), inputs: Vec::new() };
        for &(width, value) in operands {
            let input = this.input(width);
            let constant = this.pool().constant(width, value);
            this.equal(input, constant);
            this.inputs.push(input);
        }
        this
    }

    fn pool(&mut self) -> &mut ExprPool {
        &mut self.parsed.trace.exprs
    }

    fn input(&mut self, width: u32) -> ExprId {
        let trace = &mut self.parsed.trace;
        let id = VarId::from_index(trace.variables.len());
        let origin = VariableOrigin::Input;
        trace.variables.push(Variable { id, width, origin, recorded: None });
        trace.exprs.var(id, width)
    }

    fn equal(&mut self, a: ExprId, b: ExprId) {
        let expr = self.pool().eq(a, b);
        let trace = &mut self.parsed.trace;
        trace.conditions.push(PathCondition {
            id: model::ConditionId::from_index(trace.conditions.len()),
            thread: ThreadId(0),
            position: 1,
            expr,
            kind: PathConditionKind::Assumption,
            site: Site::default(),
            is_beside_wait: false,
        });
    }

    /// What the solver says the result is, and what the evaluator says.
    fn results(mut self, result: ExprId) -> (u128, u128) {
        let width = self.pool().width(result);
        let out = self.input(width);
        let last = VarId::from_index(self.parsed.trace.variables.len() - 1);
        self.equal(out, result);
        let model = sat(&self.parsed, Goal::Any);
        let lookup = |var: VarId| model.values.get(&var).copied();
        let evaluated = self.parsed.trace.exprs.evaluate(result, &lookup).expect("known operands");
        (model.values[&last], evaluated)
    }
}

fn agree(what: &str, operands: &[(u32, u128)], build: impl Fn(&mut ExprPool, &[ExprId]) -> ExprId) {
    let mut operation = Operation::on(operands);
    let inputs = operation.inputs.clone();
    let result = build(operation.pool(), &inputs);
    let (solved, evaluated) = operation.results(result);
    assert_eq!(solved, evaluated, "{what} of {operands:?}");
}

#[test]
fn every_integer_operator_means_the_same_in_the_solver() {
    use BinOp::{AShr, Add, And, LShr, Mul, Or, SDiv, SRem, Shl, Sub, UDiv, URem, Xor};
    let pairs = [(8, 200, 7), (8, 128, 255), (8, 5, 0), (1, 1, 1), (1, 1, 0), (32, 1 << 31, 33)];
    for (width, a, b) in pairs {
        let operands = [(width, a), (width, b)];
        for op in [Add, Sub, Mul, UDiv, SDiv, URem, SRem, And, Or, Xor, Shl, LShr, AShr] {
            agree(&format!("{op:?}"), &operands, |pool, x| pool.bin(op, x[0], x[1]));
        }
        for op in [CmpOp::Eq, CmpOp::ULt, CmpOp::ULe, CmpOp::SLt, CmpOp::SLe] {
            agree(&format!("{op:?}"), &operands, |pool, x| pool.cmp(op, x[0], x[1]));
        }
        agree("not", &operands, |pool, x| pool.not(x[0]));
        agree("concat", &operands, |pool, x| pool.concat(x[0], x[1]));
        agree("zext", &operands, |pool, x| pool.zext(x[0], 64));
        agree("sext", &operands, |pool, x| pool.sext(x[0], 64));
        agree("low bit", &operands, |pool, x| pool.extract(x[0], 0, 1));
        agree("ite", &operands, |pool, x| {
            let less = pool.cmp(CmpOp::SLt, x[0], x[1]);
            let then = pool.bin(Add, x[0], x[1]);
            pool.ite(less, then, x[1])
        });
    }
    agree("128 bits", &[(64, u128::from(u64::MAX)), (64, 3)], |pool, x| pool.concat(x[0], x[1]));
    agree("middle", &[(32, 0x1234_5678)], |pool, x| pool.extract(x[0], 7, 9));
}

#[test]
fn every_float_operator_means_the_same_in_the_solver() {
    let single = FloatFormat::Single;
    let bits = |value: f32| (32, u128::from(value.to_bits()));
    for (a, b) in [(1.5, -0.25), (7.5, 2.0), (-7.5, 2.0), (1e30, 1e30), (0.0, -0.0)] {
        let operands = [bits(a), bits(b)];
        for op in [FloatOp::Add, FloatOp::Sub, FloatOp::Mul, FloatOp::Div] {
            if (a, b, op) == (0.0, -0.0, FloatOp::Div) {
                continue; // Not a number: any payload will do.
            }
            agree(&format!("{op:?}"), &operands, |pool, x| pool.float_bin(op, single, x[0], x[1]));
        }
        for pred in [FloatPred::Eq, FloatPred::Lt, FloatPred::Le] {
            agree("compare", &operands, |pool, x| pool.float_cmp(pred, single, x[0], x[1]));
        }
        agree("nan", &operands, |pool, x| pool.float_is_nan(single, x[0]));
        agree("widen", &operands, |pool, x| pool.float_to_float(x[0], single, FloatFormat::Double));
        for (signed, width) in [(true, 8), (true, 32), (false, 8), (false, 32), (true, 128)] {
            agree("to int", &operands, |pool, x| pool.float_to_int(x[0], single, signed, width));
        }
    }
    agree("sqrt", &[bits(2.0)], |pool, x| pool.float_bin(FloatOp::Sqrt, single, x[0], x[0]));
    for value in [2.5, -2.5, 3.5, -0.25, 0.75, 7.0] {
        use FloatOp::{Ceil, Floor, Round, RoundEven, Trunc};
        for op in [Floor, Ceil, Trunc, Round, RoundEven] {
            let name = format!("{op:?}");
            agree(&name, &[bits(value)], |pool, x| pool.float_bin(op, single, x[0], x[0]));
        }
    }
    agree("nan", &[bits(f32::NAN)], |pool, x| pool.float_is_nan(single, x[0]));
    agree("nan to int", &[bits(f32::NAN)], |pool, x| pool.float_to_int(x[0], single, true, 8));
    for signed in [true, false] {
        let operands = [(32, 0xffff_ff01)];
        agree("from int", &operands, |pool, x| pool.int_to_float(x[0], signed, single));
    }
    agree("narrow", &[(64, u128::from(0.1f64.to_bits()))], |pool, x| {
        pool.float_to_float(x[0], FloatFormat::Double, single)
    });
}

#[test]
fn the_float_remainder_is_that_of_c() {
    let single = FloatFormat::Single;
    let bits = |value: f32| (32, u128::from(value.to_bits()));
    for (a, b) in [(7.5, 2.0), (-7.5, 2.0), (7.0, -2.0), (3.0, 2.0), (-4.0, 2.0), (0.5, 3.0)] {
        let operands = [bits(a), bits(b)];
        agree("fmod", &operands, |pool, x| pool.float_bin(FloatOp::Rem, single, x[0], x[1]));
    }
}

#[test]
fn the_dump_is_deterministic_and_names_every_constraint() {
    let parsed =
        trace("t1: lock m\nt1: W x 1\nt1: unlock m\nt2: lock m\nt2: R x -> a\nt2: fail a == 0");
    let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
    let dump = |goal| solver::dump_smtlib(&parsed.trace, &system, goal).expect("expressible");
    assert_eq!(dump(Goal::Fail), dump(Goal::Fail));
    assert_ne!(dump(Goal::Fail), dump(Goal::Pass));
    for constraint in &system.constraints {
        assert!(dump(Goal::Fail).contains(&format!("; {} {} [", constraint.id, constraint.kind)));
    }
}

/// What was recorded tells values that no search finds soon: the factors of a product of two large primes.
#[test]
fn recorded_values_of_inputs_are_tried_before_a_search_for_others() {
    let mut parsed = trace(
        "
        input p 64
        input q 64
        cell x 64 = 0
        t0: assume p * q == 4611685975477714963
        t0: assume p > 1
        t0: assume q > 1
        t0: assume p < 4294967296
        t0: assume q < 4294967296
        t0: fork a
        a: W x 1
        t0: R x -> seen
        t0: fail seen == 1
        ",
    );
    let trace = &mut parsed.trace;
    let inputs = trace.variables.iter_mut().filter(|var| var.origin == VariableOrigin::Input);
    inputs.zip([2_147_483_647, 2_147_483_629]).for_each(|(var, value)| var.recorded = Some(value));
    let system = encoders::encode(trace).expect("the trace can be encoded");
    let limits = Limits { time: Some(Duration::from_secs(2)), memory_mb: None };
    let mut session = OrderingSession::new(trace, &system, limits);
    let outcome = session.check(Goal::Fail, &[]).expect("an answer");
    let Outcome::Sat(model) = outcome else { panic!("{outcome:?}") };
    let inputs = |var: VarId| model.values.get(&var).copied();
    let evaluation = evaluate(trace, &model.schedule, &inputs).expect("the paths are followed");
    assert!(evaluation.fails);
}
