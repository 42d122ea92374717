//! Known programs as event traces, explained by a session that enumerates.

use crate::support::programs::{AIRLINE, BANK, PFSCAN, TWO_STAGE};
use crate::support::{check_explanation, explained};
use encoders::dsl::{Parsed, parse};
use explain::{CauseKind, DataFlow, ExplainError, Verdict};
use model::{EventId, ReadRef, WriteSource};
use solver::{Goal, Order, Outcome, Session};

fn trace(text: &str) -> Parsed {
    parse(text).expect("the text is a trace")
}

fn flow(parsed: &Parsed, write: &str, read: &str) -> DataFlow {
    DataFlow {
        write: WriteSource::Write(parsed.event(write)),
        read: ReadRef { event: parsed.event(read), part: 0 },
    }
}

#[test]
fn bank_lost_update() {
    let parsed = trace(BANK);
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    let cause = explanation.root_cause.expect("a cause");
    assert_eq!(cause.orders.len(), 2, "each reads before the other writes: {:?}", cause.orders);
    let dsp = &explanation.dsps[0];
    assert_eq!(dsp.failing_only.len(), 1, "{dsp:?}");
    let both = [flow(&parsed, "wa", "rb"), flow(&parsed, "wb", "ra")];
    assert!(both.contains(&dsp.alternate_only[0]), "one of them reads what the other wrote");
    assert_eq!(explanation.statistics.switches, 4);
}

#[test]
fn pfscan_running_example() {
    let parsed = trace(PFSCAN);
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    let cause = explanation.root_cause.expect("a cause");
    let orders: Vec<Order> = cause.orders.iter().map(|o| o.order).collect();
    let culprit = Order { before: parsed.event("dequeue"), after: parsed.event("assertion") };
    assert_eq!(orders, [culprit]);
    let dsp = &explanation.dsps[0];
    assert_eq!(dsp.failing_only, [flow(&parsed, "dequeue", "assertion")]);
    assert_eq!(dsp.alternate_only, [flow(&parsed, "enqueue", "assertion")]);
}

#[test]
fn airline_check_then_act() {
    let parsed = trace(AIRLINE);
    let explanation = explained(&parsed.trace, 3);
    check_explanation(&parsed.trace, &explanation);
    assert_eq!(explanation.alternates.found.len(), 3);
}

#[test]
fn two_stage_needs_both_orders() {
    let parsed = trace(TWO_STAGE);
    let explanation = explained(&parsed.trace, 2);
    check_explanation(&parsed.trace, &explanation);
    let cause = explanation.root_cause.expect("a cause");
    let orders: Vec<Order> = cause.orders.iter().map(|o| o.order).collect();
    assert_eq!(
        orders,
        [
            Order { before: parsed.event("first"), after: parsed.event("rx") },
            Order { before: parsed.event("ry"), after: parsed.event("second") },
        ]
    );
}

#[test]
fn the_last_read_of_a_lost_update_follows_from_the_first() {
    let parsed = trace(
        "
        cell x 32 = 0
        t0: R x -> own
        t0: fork a
        a: [ra] R x -> other
        a: [wa] W x other + 1
        t0: [w0] W x own + 1
        t0: join a
        t0: [total] R x -> sum
        t0: fail sum != 2
    ",
    );
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    let dsp = &explanation.dsps[0];
    assert_eq!(dsp.alternate_only, [flow(&parsed, "w0", "ra"), flow(&parsed, "wa", "total")]);
    let read = |label: &str| ReadRef { event: parsed.event(label), part: 0 };
    assert_eq!(dsp.follows, [(read("total"), vec![read("ra")])].into(), "{dsp:?}");
}

#[test]
fn order_violation_use_before_publication() {
    let parsed = trace(
        "
        t0: fork b
        t0: [publish] W pointer 77
        b: [use] R pointer -> p
        b: fail p == 0
        ",
    );
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    let dsp = &explanation.dsps[0];
    assert_eq!(dsp.failing, [parsed.event("use"), parsed.event("publish")]);
    assert_eq!(dsp.alternate, [parsed.event("publish"), parsed.event("use")]);
    assert_eq!(dsp.moved, [(parsed.event("use"), parsed.event("publish"))]);
    assert_eq!(dsp.failing_only[0].write, WriteSource::Init);
}

#[test]
fn use_after_free_by_order_alone() {
    let parsed = trace(
        "
        t0: fork b
        t0: [free] W state 1
        b: [use] R x -> p
        b: fail before free use
        ",
    );
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    let cause = explanation.root_cause.expect("a cause");
    assert_eq!(cause.orders.len(), 1);
    assert_eq!(cause.orders[0].kind, explain::OrderKind::Failure);
}

/// Everything under one lock, taken in one order: what goes wrong is the order of the sections.
#[test]
fn locked_sections_move_whole() {
    let parsed = trace(
        "
        a: lock m
        a: R x -> p
        a: [wa] W x p + 1
        a: unlock m
        b: lock m
        b: [rb] R x -> q
        b: W x q * 2
        b: unlock m
        b: fail q == 1
        ",
    );
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    let order = &explanation.alternates.found[0].schedule.order;
    let threads: Vec<_> = order.iter().map(|id| parsed.trace.event(*id).thread).collect();
    assert!(threads.windows(2).filter(|pair| pair[0] != pair[1]).count() <= 4);
}

#[test]
fn signal_after_the_wait_began() {
    let parsed = trace(
        "
        t0: fork b
        b: lock m
        b: wait c m
        b: [r] R x -> p
        b: unlock m
        b: fail p == 1
        t0: [early] W x 1
        t0: lock m
        t0: signal c
        t0: unlock m
        t0: [late] W x 2
        ",
    );
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    assert_eq!(explanation.dsps[0].alternate_only, [flow(&parsed, "late", "r")]);
}

#[test]
fn wrong_under_every_schedule() {
    let parsed = trace(
        "
        a: W x 1
        b: W x 2
        t0: R x -> p
        t0: fail p < 3
        ",
    );
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    let cause = explanation.root_cause.expect("a cause");
    assert_eq!(cause.kind, CauseKind::FailsAlways);
    assert!(explanation.alternates.found.is_empty());
    assert_eq!(explanation.statistics.solver_calls, 2, "it is asked once, without orders");
}

#[test]
fn no_schedule_fails() {
    let parsed = trace(
        "
        a: W x 1
        b: R x -> p
        b: fail p == 2
        ",
    );
    let explanation = explained(&parsed.trace, 1);
    assert_eq!(explanation.verdict, Verdict::NoSchedule);
    assert!(explanation.failing.is_none());
}

#[test]
fn a_budget_that_is_spent_keeps_the_failing_schedule() {
    let parsed = trace(BANK);
    let mut session = crate::support::BruteForce::new(&parsed.trace);
    let system = encoders::ConstraintSystem::default();
    let options = crate::support::options(1);
    let explanation = explain::explain(&parsed.trace, &system, &mut session, &options, &|| false)
        .expect("partial results");
    assert!(explanation.failing.is_some());
    assert!(!explanation.cut.is_empty());
    assert!(!explanation.root_cause.expect("orders all the same").minimal);
}

/// Answers nothing.
struct Unasked;

impl solver::Session for Unasked {
    fn check(
        &mut self,
        _: solver::Goal,
        _: &[solver::Order],
    ) -> Result<solver::Outcome, solver::SolverError> {
        Ok(solver::Outcome::Unknown(solver::UnknownReason::TimeOut))
    }
}

/// In a long trace, whatever is looked at besides takes time and memory that there is none of.
#[test]
fn of_a_long_trace_a_spent_budget_keeps_the_failing_schedule_alone() {
    let filling = "a: W other 1\n".repeat(250_000);
    let parsed = trace(&format!("a: W x 1\n{filling}b: R x -> p\nb: fail p == 1\n"));
    let order = parsed.trace.threads.iter().flat_map(|thread| thread.events.clone()).collect();
    let known = solver::Model { schedule: model::Schedule { order }, ..solver::Model::default() };
    let mut session = Unasked;
    let system = encoders::ConstraintSystem::default();
    let options = crate::support::options(1);
    let mut explanation =
        explain::explain_from(&parsed.trace, &system, &mut session, &known, &options, &|| false)
            .expect("partial results");
    assert!(explanation.failing.is_some() && explanation.root_cause.is_none());
    assert_eq!(explanation.verdict, Verdict::FailingSchedule);
    explanation.ended_by(&solver::UnknownReason::Memory);
    let memory = |cut: &explain::Cut| {
        matches!(&cut.reason, explain::CutReason::Limit(solver::UnknownReason::Memory))
    };
    assert!(!explanation.cut.is_empty() && explanation.cut.iter().all(memory));
}

/// Two tellers deposit while a third holds an old total: moving its read after one of them would
/// still lose the other's deposit, so that the pair to reverse is not of neighbours.
#[test]
fn a_pair_that_is_not_of_neighbours() {
    let parsed = trace(
        "
        a: [ra] R total -> x
        a: [wa] W total x + 10
        b: [rb] R total -> y
        b: [wb] W total y + 20
        c: [rc] R total -> z
        c: [wc] W total z + 30
        b: assume y == 0
        c: assume z == 20
        t0: join a
        t0: join b
        t0: join c
        t0: [check] R total -> sum
        t0: fail sum == 10
        ",
    );
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    let dsp = &explanation.dsps[0];
    assert_eq!(dsp.failing_only.len(), 1, "{dsp:?}");
    assert_eq!(dsp.alternate_only, [flow(&parsed, "wc", "ra")]);
    let shown: Vec<EventId> =
        ["ra", "wc", "wa", "check"].iter().map(|label| parsed.event(label)).collect();
    assert_eq!(dsp.failing, shown, "the update that is torn apart, and what fails for it");
    let block = &dsp.atomic_blocks[0];
    assert_eq!((block.first, block.last), (parsed.event("ra"), parsed.event("wa")));
}

/// Whole critical sections change places, and those of another lock stay where they are.
#[test]
fn unrelated_sections_stay() {
    let mut text = String::from("cell log 32 = 0\n");
    let note = |thread: &str, index: usize| {
        format!(
            "{thread}: lock n\n{thread}: R log -> {thread}{index}\n\
             {thread}: W log {thread}{index} + 1\n{thread}: unlock n\n"
        )
    };
    text += &note("a", 0);
    text += "a: lock m\na: R x -> p\na: [wa] W x p + 1\na: unlock m\n";
    text += &note("b", 0);
    text += "b: lock m\nb: [rb] R x -> q\nb: W x q + 1\nb: unlock m\n";
    text += "b: fail q == 1\n";
    let parsed = trace(&text);
    let explanation = explained(&parsed.trace, 1);
    check_explanation(&parsed.trace, &explanation);
    let dsp = &explanation.dsps[0];
    let log = parsed.trace.cells.iter().find(|cell| cell.name == "log").expect("the log").id;
    let of_log = |event: &EventId| {
        parsed.trace.event(*event).kind.reads().iter().any(|part| part.cell == log)
    };
    assert!(!dsp.failing.iter().any(of_log), "{dsp:?}");
}

/// Never says whether a schedule passes.
struct Silent<'t>(crate::support::BruteForce<'t>);
impl Session for Silent<'_> {
    fn check(&mut self, goal: Goal, orders: &[Order]) -> Result<Outcome, solver::SolverError> {
        match goal {
            Goal::Pass => Ok(Outcome::Unknown(solver::UnknownReason::TimeOut)),
            _ => self.0.check(goal, orders),
        }
    }
}

/// A question without answer is no answer: the orders that a schedule gives up which passes are proposed, and are not
/// called shown or minimal.
#[test]
fn without_answers_the_orders_are_a_proposal() {
    let parsed = trace(TWO_STAGE);
    let mut session = Silent(crate::support::BruteForce::new(&parsed.trace));
    let explanation = crate::support::explain_with(&parsed.trace, &mut session, 1);
    let cause = explanation.root_cause.expect("orders all the same");
    assert_eq!((cause.kind, cause.shown, cause.minimal), (CauseKind::Orders, false, false));
    assert!(!explanation.cut.is_empty());
    assert!(!explanation.alternates.found.is_empty(), "local moves need no session");
    let gives_up = |alternate: &explain::Alternate| {
        let order = &alternate.schedule.order;
        let place = |id: EventId| order.iter().position(|other| *other == id);
        cause.orders.iter().all(|it| place(it.order.after) < place(it.order.before))
    };
    assert!(explanation.alternates.found.iter().any(gives_up), "{cause:?}");
    assert!(explanation.statistics.solver_calls < 12, "{:?}", explanation.statistics);
}

/// What came in which order decided which way a thread went, and nothing behind that: without a question it is known that every
/// schedule along these paths fails.
#[test]
fn a_failure_that_no_order_reaches_needs_no_answer() {
    let parsed = trace(
        "
        t0: fork a
        t0: fork b
        b: W done 1
        a: R done -> d
        a: assume d == 1
        a: W torn 1
        t0: join a
        t0: join b
        t0: R torn -> t
        t0: fail t == 1
        ",
    );
    let mut session = Silent(crate::support::BruteForce::new(&parsed.trace));
    let explanation = crate::support::explain_with(&parsed.trace, &mut session, 1);
    let cause = explanation.root_cause.expect("a cause");
    assert_eq!((cause.kind, cause.minimal), (CauseKind::FailsAlways, true));
    assert!(cause.orders.is_empty() && explanation.cut.is_empty());
    assert_eq!(explanation.statistics.solver_calls, 1, "for the failing schedule");
}

/// What the solver says is never shown unchecked: a schedule that passes is no failing schedule,
/// and a source that no schedule gives is no model.
#[test]
fn a_model_that_the_evaluator_rejects_is_an_error() {
    let parsed = trace(BANK);
    let mut session = crate::support::BruteForce::new(&parsed.trace);
    let Ok(Outcome::Sat(passing)) = session.check(Goal::Pass, &[]) else { panic!("it can pass") };
    let Ok(Outcome::Sat(failing)) = session.check(Goal::Fail, &[]) else { panic!("it can fail") };
    let mut explained_from = |found: &solver::Model| {
        let system = encoders::ConstraintSystem::default();
        let options = crate::support::options(1);
        explain::explain_from(&parsed.trace, &system, &mut session, found, &options, &|| true)
    };
    assert!(explained_from(&failing).is_ok());
    let error = explained_from(&passing).expect_err("it passes");
    assert!(matches!(error, ExplainError::WrongOutcome { fails: Some(false), .. }), "{error}");
    let mut cut = failing.clone();
    cut.schedule.order.pop();
    let error = explained_from(&cut).expect_err("an event is missing");
    assert!(matches!(error, ExplainError::ModelRejected { .. }), "{error}");
    let mut other = failing.clone();
    other.reads_from.insert(flow(&parsed, "wb", "ra").read, WriteSource::Write(EventId(0)));
    let error = explained_from(&other).expect_err("no such source");
    assert!(matches!(error, ExplainError::SourceDisagrees { .. }), "{error}");
    let mut other = failing;
    other.values.insert(model::VarId(0), 12_345);
    let error = explained_from(&other).expect_err("no such value");
    assert!(matches!(error, ExplainError::ValueDisagrees { .. }), "{error}");
}
