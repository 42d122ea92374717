//! Of a failing schedule that loses several updates, the one that is enough is left.

use crate::support::causes::trace;
use encoders::dsl::Parsed;
use explain::{
    CauseKind, OrderKind, context_switches, explain_by_update, explain_from, with_fewer_switches,
    with_whole_updates,
};
use model::evaluate::{Check, Evaluator};
use model::{EventId, Schedule, Site};
use solver::{Goal, Model, Order, Outcome, Session, SolverError, UnknownReason};

/// Two threads add to `n` in each of two phases. What a thread does before its update in a phase has to come before
/// all of the other one's, and what it does behind it after: no context switch can be spared.
const PHASES: &str = "
    cell n 32 = 0
    t0: [fa] fork a
    t0: [fb] fork b
    a: [p] W p 1
    a: [r1] R n -> x
    a: [w1] W n x + 1
    a: [q] R q -> v
    a: assume v == 1
    a: [s] W s 1
    a: [r2] R n -> y
    a: [w2] W n y + 1
    a: [u] R u -> w
    a: assume w == 1
    b: [lp] R p -> c
    b: assume c == 1
    b: [o1] R n -> g
    b: [k1] W n g + 1
    b: [lq] W q 1
    b: [ls] R s -> d
    b: assume d == 1
    b: [o2] R n -> h
    b: [k2] W n h + 1
    b: [lu] W u 1
    t0: [ja] join a
    t0: [jb] join b
    t0: [sum] R n -> z
    t0: fail z != 4
";

/// A thread writes what another one should have read first, three times: their rounds follow each other.
const ROUNDS: &str = "
    cell x 32 = 0
    sem g 0
    sem s 0
    sem t 0
    a: [g0] post g
    a: [w0] W x 1
    a: [p0] post s
    a: [q0] sem-wait t
    a: [g1] post g
    a: [w1] W x 2
    a: [p1] post s
    a: [q1] sem-wait t
    a: [g2] post g
    a: [w2] W x 3
    a: [p2] post s
    a: [q2] sem-wait t
    b: [h0] sem-wait g
    b: [r0] R x -> u
    b: [d0] sem-wait s
    b: [e0] post t
    b: [h1] sem-wait g
    b: [r1] R x -> v
    b: [d1] sem-wait s
    b: [e1] post t
    b: [h2] sem-wait g
    b: [r2] R x -> w
    b: [d2] sem-wait s
    b: [e2] post t
    b: fail u + v + w != 3
";

/// Leaves everything open.
struct Silent;

impl Session for Silent {
    fn check(&mut self, _: Goal, _: &[Order]) -> Result<Outcome, SolverError> {
        Ok(Outcome::Unknown(UnknownReason::TimeOut))
    }
}

#[test]
fn of_pairs_that_are_wrong_in_several_rounds_one_is_left() {
    let mut parsed = trace(ROUNDS);
    for (label, line) in [("w0", 1), ("w1", 1), ("w2", 1), ("r0", 2), ("r1", 2), ("r2", 2)] {
        let id = parsed.event(label);
        let site = Site { file: "rounds.c".to_owned(), line, ..Site::default() };
        parsed.trace.events[id.index()].stack = vec![site].into();
    }
    let labels = [
        "g0", "w0", "p0", "h0", "r0", "d0", "e0", "q0", "g1", "w1", "p1", "h1", "r1", "d1", "e1",
        "q1", "g2", "w2", "p2", "h2", "r2", "d2", "e2", "q2",
    ];
    let found = Model { schedule: in_order(&parsed, &labels), ..Model::default() };
    let system = encoders::ConstraintSystem::default();
    let options = crate::support::options(1);
    let told = explain_from(&parsed.trace, &system, &mut Silent, &found, &options, &|| true)
        .expect("it fails");
    let wrong = |order: &[EventId]| {
        let place = |label: &str| order.iter().position(|id| *id == parsed.event(label));
        [("w0", "r0"), ("w1", "r1"), ("w2", "r2")].map(|(write, read)| place(write) < place(read))
    };
    let failing = told.failing.expect("a failing schedule");
    assert_eq!(wrong(&failing.schedule.order), [false, false, true]);
    let passing = &told.alternates.found.first().expect("one that passes").schedule;
    assert_eq!(wrong(&passing.order), [false, false, false]);
    let cause = told.root_cause.expect("a root cause");
    let orders: Vec<Order> = cause.orders.iter().map(|it| it.order).collect();
    assert_eq!(orders, [Order { before: parsed.event("w2"), after: parsed.event("r2") }]);
    assert!(!cause.shown);
}

/// The schedule in which the events named happen in this order, and a thread's others as soon as they can.
fn in_order(parsed: &Parsed, labels: &[&str]) -> Schedule {
    let named: Vec<EventId> = labels.iter().map(|label| parsed.event(label)).collect();
    // A thread's start and exit come as early and as late as they can.
    let at = |id: EventId| named.iter().position(|other| *other == id);
    let mut order: Vec<EventId> = parsed.trace.events.iter().map(|event| event.id).collect();
    let own = |id: EventId| &parsed.trace.thread_of(id).events;
    let key = |id: EventId| {
        let events = own(id);
        let index = parsed.trace.event(id).index as usize;
        let earlier = events[..=index].iter().rev().find_map(|id| at(*id));
        let later = events[index..].iter().find_map(|id| at(*id));
        at(id).or(earlier).map(|place| 2 * place + 1).or(later.map(|place| 2 * place))
    };
    order.sort_by_key(|id| (key(*id), parsed.trace.event(*id).index));
    Schedule { order }
}

#[test]
fn one_lost_update_is_left() {
    let parsed = trace(PHASES);
    let labels = [
        "fa", "fb", "p", "r1", "lp", "o1", "k1", "lq", "w1", "q", "s", "r2", "ls", "o2", "k2",
        "lu", "w2", "u", "ja", "jb", "sum",
    ];
    let schedule = in_order(&parsed, &labels);
    let better = with_fewer_switches(&parsed.trace, &schedule, 1_000_000, &|| true);
    let better = better.expect("the schedule fails");
    let place = |label: &str| better.order.iter().position(|id| *id == parsed.event(label));
    let lost =
        |[read, other, write]: [&str; 3]| place(read) < place(other) && place(other) < place(write);
    let phases = [["r1", "k1", "w1"], ["o1", "w1", "k1"], ["r2", "k2", "w2"], ["o2", "w2", "k2"]];
    let lost: Vec<[&str; 3]> = phases.into_iter().filter(|phase| lost(*phase)).collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(context_switches(&parsed.trace, &better) <= 6);
}

/// Two threads take from `n` what they read of it under the lock, and give the lock back in between, twice each.
const SECTIONS: &str = "
    cell n 32 = 100
    t0: [fa] fork a
    t0: [fb] fork b
    a: [l1] lock m
    a: [r1] R n -> x
    a: [u1] unlock m
    a: [l2] lock m
    a: [w1] W n x - 1
    a: [u2] unlock m
    a: [l3] lock m
    a: [r2] R n -> y
    a: [u3] unlock m
    a: [l4] lock m
    a: [w2] W n y - 1
    a: [u4] unlock m
    b: [k1] lock m
    b: [s1] R n -> g
    b: [v1] unlock m
    b: [k2] lock m
    b: [t1] W n g - 1
    b: [v2] unlock m
    b: [k3] lock m
    b: [s2] R n -> h
    b: [v3] unlock m
    b: [k4] lock m
    b: [t2] W n h - 1
    b: [v4] unlock m
    t0: [ja] join a
    t0: [jb] join b
    t0: [sum] R n -> z
    t0: fail z != 96
";

/// Of each of the two rounds the first thread's update is lost.
const LOST: [&str; 29] = [
    "fa", "fb", "k1", "s1", "v1", "l1", "r1", "u1", "l2", "w1", "u2", "k2", "t1", "v2", "l3", "r2",
    "u3", "k3", "s2", "v3", "k4", "t2", "v4", "l4", "w2", "u4", "ja", "jb", "sum",
];

#[test]
fn updates_over_several_critical_sections_are_made_whole_with_these() {
    let parsed = trace(SECTIONS);
    let trace = &parsed.trace;
    let schedule = in_order(&parsed, &LOST);
    let check = |order: &[EventId]| Evaluator::new(trace).check(order, &|_| None);
    assert_eq!(check(&schedule.order), Check::Fails);
    let whole = with_whole_updates(trace, &schedule, 1_000_000, &|| true);
    let (failing, passing) = whole.expect("the schedule fails");
    let passing = passing.expect("with both updates whole it passes");
    assert_eq!((check(&failing.order), check(&passing.order)), (Check::Fails, Check::Passes));
    let lost = |schedule: &Schedule| {
        let place = |label: &str| schedule.order.iter().position(|id| *id == parsed.event(label));
        let within = |[read, other, write]: [&str; 3]| {
            place(read) < place(other) && place(other) < place(write)
        };
        [["s1", "w1", "t1"], ["r2", "t2", "w2"]].map(within)
    };
    assert_eq!(lost(&schedule), [true, true]);
    assert_eq!(lost(&failing), [true, false], "the last ones first");
    assert_eq!(lost(&passing), [false, false]);
    // Nothing is done where there is nothing to spend.
    assert_eq!(with_whole_updates(trace, &schedule, 10, &|| true), None);
}

#[test]
fn an_update_explains_what_no_other_schedule_does() {
    let parsed = trace(SECTIONS);
    let failing = in_order(&parsed, &LOST);
    let reason = UnknownReason::TimeOut;
    let told = explain_by_update(&parsed.trace, &failing, None, reason.clone(), &|| true);
    let told = told.expect("the schedule fails");
    let cause = told.root_cause.expect("an update is interrupted");
    assert!(cause.kind == CauseKind::Orders && !cause.minimal && told.alternates.found.is_empty());
    let order = |before, after| Order { before: parsed.event(before), after: parsed.event(after) };
    let orders: Vec<Order> = cause.orders.iter().map(|conflict| conflict.order).collect();
    assert_eq!(orders, [order("r2", "t2")], "the last one");
    assert_eq!(told.cut.len(), 1, "nothing shows that these lead to the failure");

    let (failing, passing) =
        with_whole_updates(&parsed.trace, &failing, 1_000_000, &|| true).expect("it fails");
    let told = explain_by_update(&parsed.trace, &failing, passing.as_ref(), reason, &|| true);
    let told = told.expect("the one fails and the other one passes");
    let [alternate] = told.alternates.found.as_slice() else { panic!("one schedule passes") };
    assert_eq!(Some(&alternate.schedule), passing.as_ref());
    assert_eq!(told.dsps.len(), 1);
    let cause = told.root_cause.expect("some orders are not kept");
    let given_up = |conflict: &explain::ConflictOrder| {
        let place = |id| alternate.schedule.order.iter().position(|other| *other == id);
        place(conflict.order.before) > place(conflict.order.after)
    };
    assert!(cause.orders.iter().all(given_up) && !cause.minimal);
    let of_memory =
        |kind| matches!(kind, OrderKind::FromRead(_) | OrderKind::WriteSerialisation(_));
    assert!(cause.orders.iter().any(|conflict| of_memory(conflict.kind)), "{:?}", cause.orders);
}

#[test]
fn what_is_put_back_as_it_was_taken_is_no_update() {
    let text = SECTIONS.replace(" - 1", "").replace("z != 96", "z == 100");
    let parsed = trace(&text);
    let schedule = in_order(&parsed, &LOST);
    let whole = with_whole_updates(&parsed.trace, &schedule, 1_000_000, &|| true);
    assert_eq!(whole, Some((schedule.clone(), None)));
    let told = explain_by_update(&parsed.trace, &schedule, None, UnknownReason::TimeOut, &|| true);
    assert_eq!(told.expect("the schedule fails").root_cause, None);
}

/// One thread finds an entry under a lock and uses it without, and the other one takes it out of its list.
const TAKEN_OUT: &str = "
    cell next 64 = 4096
    cell size 32 = 3
    t0: [fa] fork a
    t0: [fb] fork b
    a: [l1] lock m
    a: [r1] R next -> x
    a: [u1] unlock m
    a: [r2] R next -> y
    b: [k1] lock m
    b: [s1] R size -> g
    b: [w1] W next 0
    b: [t1] W size g - 1
    b: [v1] unlock m
    a: fail y == 0
";

#[test]
fn a_pair_the_other_way_round_explains_what_no_update_does() {
    let parsed = trace(TAKEN_OUT);
    let labels = ["fa", "fb", "l1", "r1", "u1", "k1", "s1", "w1", "t1", "v1", "r2"];
    let failing = in_order(&parsed, &labels);
    let told = explain_by_update(&parsed.trace, &failing, None, UnknownReason::TimeOut, &|| true);
    let told = told.expect("the schedule fails");
    let [alternate] = told.alternates.found.as_slice() else { panic!("one schedule passes") };
    let place =
        |label: &str| alternate.schedule.order.iter().position(|id| *id == parsed.event(label));
    assert!(place("r2") < place("w1"), "{:?}", alternate.schedule.order);
    let cause = told.root_cause.expect("the pair is the cause");
    assert!(cause.kind == CauseKind::Orders && !cause.minimal);
    assert_eq!(told.cut.len(), 1, "nothing shows that it always leads to the failure");
}

#[test]
fn without_time_no_pair_is_turned_round() {
    let parsed = trace(TAKEN_OUT);
    let labels = ["fa", "fb", "l1", "r1", "u1", "k1", "s1", "w1", "t1", "v1", "r2"];
    let failing = in_order(&parsed, &labels);
    let told = explain_by_update(&parsed.trace, &failing, None, UnknownReason::TimeOut, &|| false);
    let told = told.expect("the schedule fails");
    assert!(told.alternates.found.is_empty(), "looking for one takes time");
    assert!(told.failing.is_some() && told.root_cause.is_some(), "what needs no search is kept");
}

#[test]
fn what_another_thread_wrote_last_explains_what_no_schedule_does() {
    // Every way to read before the write contradicts a check that the thread made earlier.
    let text = TAKEN_OUT.replace(
        "    a: [r2] R next -> y",
        "    a: [o] R size -> o\n    a: assume o == 2\n    a: [r2] R next -> y",
    );
    let parsed = trace(&text);
    let labels = ["fa", "fb", "l1", "r1", "u1", "k1", "s1", "w1", "t1", "v1", "o", "r2"];
    let failing = in_order(&parsed, &labels);
    let told = explain_by_update(&parsed.trace, &failing, None, UnknownReason::TimeOut, &|| true);
    let told = told.expect("the schedule fails");
    assert!(told.alternates.found.is_empty());
    let cause = told.root_cause.expect("the write is the cause");
    let orders: Vec<Order> = cause.orders.iter().map(|conflict| conflict.order).collect();
    assert_eq!(orders, [Order { before: parsed.event("w1"), after: parsed.event("r2") }]);
    assert!(!cause.minimal && told.cut.len() == 1);
}
