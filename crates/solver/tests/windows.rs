//! The end of a run as a trace of its own: its schedules are those of the whole trace that begin as the run did.

use crate::enumerate::{Schedules, is_silent};
use crate::interpreter::Machine;
use encoders::Slice;
use encoders::dsl::parse;
use model::evaluate::{Check, Evaluator};
use model::{EventId, EventKind, EventTrace, Schedule, Thread, VariableOrigin};
use solver::{Goal, Limits, Order, OrderingSession, Outcome, Session, Z3Session};
use std::collections::BTreeMap;

/// By event, its place in a schedule.
fn places(trace: &EventTrace, order: &[EventId]) -> Vec<usize> {
    let mut places = vec![0; trace.events.len()];
    order.iter().enumerate().for_each(|(at, id)| places[id.index()] = at);
    places
}

/// That a schedule begins with these events, in this order.
fn begins_with(trace: &EventTrace, beginning: &[EventId]) -> Vec<Order> {
    let heard = |id: &&EventId| !is_silent(&trace.event(**id).kind);
    let beginning: Vec<EventId> = beginning.iter().filter(heard).copied().collect();
    let pairs = beginning.windows(2).map(|pair| Order { before: pair[0], after: pair[1] });
    let mut orders: Vec<Order> = pairs.collect();
    if let Some(&last) = beginning.last() {
        let rest = trace.events.iter().map(|event| event.id);
        let rest = rest.filter(|id| heard(&id) && !beginning.contains(id));
        orders.extend(rest.map(|after| Order { before: last, after }));
    }
    orders
}

/// An event of the window goes on with the calls that all events since the one before it in the window go on with.
fn keeps_calls_apart(trace: &EventTrace, window: &Slice) -> bool {
    let goes_on = |from: usize, thread: &Thread, id: EventId| {
        let last = trace.event(window.event(id));
        let own = &trace.threads[thread.id.index()].events[from..=last.index as usize];
        let least = own.iter().map(|id| trace.event(*id).continued).min();
        (last.index as usize + 1, least == Some(window.trace.event(id).continued))
    };
    window.trace.threads.iter().all(|thread| {
        let mut from = 0;
        thread.events.iter().all(|id| {
            let (next, right) = goes_on(from, thread, *id);
            from = next;
            right
        })
    })
}

/// Against all schedules of small traces, some with locks of their own, waits, semaphores and barriers.
#[test]
fn a_window_has_the_schedules_that_begin_like_the_run() {
    let (mut asked, mut found, mut none, mut given, mut open) = (0, 0, 0, 0, 0);
    for seed in 0..1_500 {
        let text = match seed % 8 {
            3 => crate::generate::generate_locked(seed),
            _ => crate::generate::generate(seed),
        };
        let mut trace = parse(&text).unwrap_or_else(|error| panic!("{seed} {error}\n{text}")).trace;
        trace.events.iter_mut().for_each(|event| event.continued = event.id.0 as u16 % 5);
        let is_free = |it: &model::Variable| !matches!(it.origin, VariableOrigin::Read { .. });
        // The window keeps what the run had for these.
        if trace.variables.iter().any(is_free) {
            continue;
        }
        let schedules = Schedules::of(&Machine::new(&trace));
        let Some(one) = schedules.found.iter().min_by_key(|found| !found.fails) else { continue };
        let mut order: Vec<EventId> = trace.events.iter().map(|event| event.id).collect();
        order.sort_by_key(|event| one.places[event.index()]);
        let mut evaluator = Evaluator::new(&trace);
        // Whom a signal wakes is not part of an order.
        let Ok(evaluation) = evaluator.run(&order, &|_| None) else { continue };
        let schedule = Schedule { order };
        for from in (1..schedule.order.len()).step_by(2) {
            let context = format!("{seed} {from} {:?}\n{text}", schedule.order);
            let Some(window) =
                encoders::window(&trace, &schedule, &evaluation, from..schedule.order.len())
            else {
                none += 1;
                continue;
            };
            // A lock that is held at the end of the whole trace is in the window, too.
            if model::verify::verify(&trace).is_ok() {
                let verified = model::verify::verify(&window.trace);
                verified.unwrap_or_else(|why| panic!("{context}{why:?}"));
            }
            assert!(keeps_calls_apart(&trace, &window), "{context}");
            given += window.trace.given.len();
            let skeleton = |kind: &EventKind| is_silent(kind);
            let kept = window.trace.events.iter().filter(|event| !skeleton(&event.kind)).count();
            let behind = schedule.order[from..].iter();
            let behind = behind.filter(|id| !skeleton(&trace.event(**id).kind)).count();
            open += usize::from(kept > behind);
            let known: Vec<EventId> =
                schedule.order.iter().filter_map(|id| window.find(*id)).collect();
            let check = Evaluator::new(&window.trace).check(&known, &|_| None);
            let expected = if one.fails { Check::Fails } else { Check::Passes };
            assert_eq!(check, expected, "{context}{}", encoders::events_text(&window.trace));
            let orders = begins_with(&trace, &schedule.order[..from]);
            let system = encoders::encode(&window.trace).expect("the window can be encoded");
            let mut ordering = OrderingSession::new(&window.trace, &system, Limits::default());
            let mut z3 = Z3Session::new(&window.trace, &system, Limits::default()).expect("Z3");
            let goals: &[Goal] = match trace.failure {
                Some(_) => &[Goal::Fail, Goal::Pass],
                None => &[Goal::Any],
            };
            for &goal in goals {
                let expected = schedules.satisfiable(goal, &orders);
                let mut sessions: Vec<&mut dyn Session> = vec![&mut ordering];
                if seed.is_multiple_of(16) {
                    sessions.push(&mut z3);
                }
                for session in sessions {
                    asked += 1;
                    match session.check(goal, &[]).expect("an answer") {
                        Outcome::Sat(found_one) => {
                            found += 1;
                            let order = window.widen(&trace, &found_one.schedule.order);
                            let order = order.unwrap_or_else(|| panic!("{context}not widened"));
                            assert!(order.starts_with(&schedule.order[..from]), "{context}");
                            let check = evaluator.check(&order, &|_| None);
                            let fails = goal == Goal::Fail;
                            let does = if fails { Check::Fails } else { Check::Passes };
                            assert_eq!(check, does, "{context}{order:?}");
                            assert!(expected, "{context}{goal:?}");
                        }
                        Outcome::Unsat(_) => assert!(
                            !expected,
                            "{context}{goal:?}\n{}",
                            encoders::events_text(&window.trace)
                        ),
                        Outcome::Unknown(why) => panic!("{context}{why:?}"),
                    }
                }
            }
        }
    }
    assert!(asked > 3_000 && found > 1_000, "{asked} {found}");
    assert!(given > 300 && open > 300 && none < 100, "{given} {open} {none}");
}

/// Longer ones, with branches, by an interpreter that knows nothing of all this.
#[test]
fn schedules_of_long_runs_are_looked_at_from_the_end() {
    let (mut found, mut passes) = (0, 0);
    for seed in 0..60 {
        let shape = crate::run::Shape {
            threads: 3,
            accesses: 40,
            cells: 3,
            locked: 40,
            branches: 8,
            reading: 0,
        };
        let text = crate::run::generate(&shape, seed);
        let trace = parse(&text).unwrap_or_else(|error| panic!("{seed} {error}\n{text}")).trace;
        let system = encoders::encode(&trace).expect("the trace can be encoded");
        let mut all = OrderingSession::new(&trace, &system, Limits::default());
        let Outcome::Sat(known) = all.check(Goal::Fail, &[]).expect("an answer") else { continue };
        let input = |var| known.values.iter().find(|(of, _)| **of == var).map(|(_, value)| *value);
        let evaluation = Evaluator::new(&trace).run(&known.schedule.order, &input);
        let evaluation = evaluation.unwrap_or_else(|why| panic!("{seed} {why:?}\n{text}"));
        let machine = Machine::new(&trace);
        for part in 1..4 {
            let from = trace.events.len() * part / 4;
            let all = trace.events.len();
            let window = encoders::window(&trace, &known.schedule, &evaluation, from..all);
            let window = window.unwrap_or_else(|| panic!("{seed} {from}\n{text}"));
            model::verify::verify(&window.trace).unwrap_or_else(|why| panic!("{seed} {why:?}"));
            let system = encoders::encode(&window.trace).expect("the window can be encoded");
            let mut session = OrderingSession::new(&window.trace, &system, Limits::default());
            for goal in [Goal::Fail, Goal::Pass] {
                let Outcome::Sat(narrow) = session.check(goal, &[]).expect("an answer") else {
                    assert_eq!(goal, Goal::Pass, "{seed} {from}\n{text}");
                    continue;
                };
                let order = window.widen(&trace, &narrow.schedule.order).expect("one of the whole");
                let end = machine.run(&BTreeMap::new(), &order);
                let end = end.unwrap_or_else(|| panic!("{seed} {from}: impossible\n{text}"));
                assert!(machine.on_path(&end), "{seed} {from}\n{text}");
                let fails = machine.fails(&end, &places(&trace, &order));
                assert_eq!(fails, goal == Goal::Fail, "{seed} {from}\n{text}");
                found += 1;
                passes += usize::from(goal == Goal::Pass);
            }
        }
    }
    assert!(found > 150 && passes > 40, "{found} {passes}");
}

/// What comes behind the failure stays as it was: that no schedule of the window does something says so of all schedules
/// that begin and end like the run.
#[test]
fn a_window_need_not_go_on_to_the_end() {
    let (mut nothing, mut found, mut other, mut none) = (0, 0, 0, 0);
    for seed in 0..3_000 {
        let text = crate::generate::generate(seed);
        let trace = parse(&text).unwrap_or_else(|error| panic!("{seed} {error}\n{text}")).trace;
        let is_free = |it: &model::Variable| !matches!(it.origin, VariableOrigin::Read { .. });
        if trace.failure.is_none() || trace.variables.iter().any(is_free) {
            continue;
        }
        let schedules = Schedules::of(&Machine::new(&trace));
        let Some(one) = schedules.found.iter().find(|found| found.fails) else { continue };
        let mut order: Vec<EventId> = trace.events.iter().map(|event| event.id).collect();
        order.sort_by_key(|event| one.places[event.index()]);
        let mut evaluator = Evaluator::new(&trace);
        let Ok(evaluation) = evaluator.run(&order, &|_| None) else { continue };
        let schedule = Schedule { order };
        for (from, until) in [(3, schedule.order.len() - 2), (2, schedule.order.len() - 4)] {
            let context = format!("{seed} {from}..{until} {:?}\n{text}", schedule.order);
            let window = encoders::window(&trace, &schedule, &evaluation, from..until);
            let Some(window) = window.filter(|_| from < until) else {
                none += 1;
                continue;
            };
            let known: Vec<EventId> =
                schedule.order.iter().filter_map(|id| window.find(*id)).collect();
            let beginning = &schedule.order[..from];
            let is_behind = |id: &&EventId| window.find(**id).is_none() && !beginning.contains(id);
            let behind: Vec<EventId> = schedule.order.iter().filter(is_behind).copied().collect();
            let as_known = window.widen(&trace, &known).expect("one of the whole");
            assert!(as_known.ends_with(&behind), "{context}");
            if evaluator.check(&as_known, &|_| None) != Check::Fails {
                // A section that was finished first met what was left behind.
                other += 1;
                continue;
            }
            let mut orders = begins_with(&trace, beginning);
            let heard = |id: &EventId| !is_silent(&trace.event(*id).kind);
            let last: Vec<EventId> = behind.iter().copied().filter(heard).collect();
            orders.extend(last.windows(2).map(|it| Order { before: it[0], after: it[1] }));
            let rest = trace.events.iter().map(|event| event.id);
            for before in rest.filter(|id| heard(id) && !behind.contains(id)) {
                orders.extend(last.first().map(|&after| Order { before, after }));
            }
            let system = encoders::encode(&window.trace).expect("the window can be encoded");
            let mut session = OrderingSession::new(&window.trace, &system, Limits::default());
            for goal in [Goal::Fail, Goal::Pass] {
                match session.check(goal, &[]).expect("an answer") {
                    Outcome::Sat(_) => found += 1,
                    Outcome::Unsat(_) => {
                        let events = encoders::events_text(&window.trace);
                        assert_eq!(goal, Goal::Pass, "{context}{events}{:?}", window.trace.failure);
                        assert!(!schedules.satisfiable(goal, &orders), "{context}");
                        nothing += 1;
                    }
                    Outcome::Unknown(why) => panic!("{context}{why:?}"),
                }
            }
        }
    }
    assert!(nothing > 100 && found > 300, "{nothing} {found}");
    assert!(other < found / 10 && none < 4 * found, "{other} {none} {found}");
}
