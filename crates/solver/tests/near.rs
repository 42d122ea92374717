//! Looking near a known schedule.

use crate::interpreter::Machine;
use model::{EventId, Schedule};
use solver::{Goal, Limits, Order, OrderingSession, Outcome, Session};
use std::collections::BTreeMap;

/// Nothing is changed where nothing has to be; what has to be is changed, and the result is real.
#[test]
fn a_schedule_is_changed_only_where_it_has_to_be() {
    let (mut answered, mut near_places, mut far_places) = (0, 0, 0);
    for seed in 0..8 {
        let shape = crate::run::Shape {
            threads: 4,
            accesses: 40,
            cells: 8,
            locked: 50,
            branches: 20,
            reading: 0,
        };
        let text = crate::run::generate(&shape, seed);
        let trace = encoders::dsl::parse(&text).expect("the trace is well formed").trace;
        let system = encoders::encode(&trace).expect("the trace can be encoded");
        let mut far = OrderingSession::new(&trace, &system, Limits::default());
        let mut near = OrderingSession::new(&trace, &system, Limits::default());
        let failing = found(far.check(Goal::Fail, &[])).unwrap_or_else(|| panic!("{seed}\n{text}"));
        near.look_near(&failing);
        for goal in [Goal::Any, Goal::Fail] {
            assert_eq!(found(near.check(goal, &[])).as_ref(), Some(&failing), "{seed}\n{text}");
        }
        let machine = Machine::new(&trace);
        for orders in reversed(&machine, &failing) {
            let mut far = OrderingSession::new(&trace, &system, Limits::default());
            let far = found(far.check(Goal::Any, &[orders]));
            let near = found(near.check(Goal::Any, &[orders]));
            let (Some(near), Some(far)) = (&near, &far) else {
                assert!(near.is_none() && far.is_none(), "{seed} {orders:?}\n{text}");
                continue;
            };
            let end = machine.run(&BTreeMap::new(), &near.order);
            assert!(end.is_some_and(|end| machine.on_path(&end)), "{seed} {orders:?}\n{text}");
            answered += 1;
            near_places += moved(&failing, near);
            far_places += moved(&failing, far);
        }
    }
    assert!(answered >= 8, "{answered}");
    assert!(2 * near_places < far_places, "{near_places} {far_places}");
}

fn found(outcome: Result<Outcome, solver::SolverError>) -> Option<Schedule> {
    match outcome.expect("an answer") {
        Outcome::Sat(model) => Some(model.schedule),
        Outcome::Unsat(_) => None,
        Outcome::Unknown(reason) => panic!("{reason}"),
    }
}

/// Orders of neighbours of different threads, a few of them, the other way round.
fn reversed(machine: &Machine<'_>, schedule: &Schedule) -> Vec<Order> {
    let pairs = schedule.order.windows(2).map(|pair| (pair[0], pair[1]));
    let apart = pairs.filter(|(a, b)| {
        let [a, b] = [a, b].map(|id| machine.trace.event(*id));
        let accesses = |event: &model::Event| {
            !event.kind.reads().is_empty() || !event.kind.writes().is_empty()
        };
        a.thread != b.thread && accesses(a) && accesses(b)
    });
    apart.step_by(7).take(4).map(|(a, b)| Order { before: b, after: a }).collect()
}

/// How many pairs of events stand the other way round.
fn moved(one: &Schedule, other: &Schedule) -> usize {
    let mut places = vec![0; one.order.len()];
    one.order.iter().enumerate().for_each(|(place, event)| places[event.index()] = place);
    let at = |event: &EventId| places[event.index()];
    let pairs = other.order.iter().enumerate();
    pairs.map(|(index, a)| other.order[..index].iter().filter(|b| at(b) > at(a)).count()).sum()
}
