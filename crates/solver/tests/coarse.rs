//! Schedules of coarse traces, and the session that looks at them alone.

use crate::interpreter::Machine;
use encoders::{Coarse, coarsen, coarsen_near, sources};
use model::{EventTrace, Schedule, Site};
use solver::{CoarseSession, Goal, Limits, Order, OrderingSession, Outcome, Session};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The trace with all events of a thread at one place of the source, as in a loop.
fn looped(text: &str) -> EventTrace {
    let mut trace = encoders::dsl::parse(text).expect("the trace is well formed").trace;
    for event in &mut trace.events {
        event.stack = [Site { line: event.thread.0 + 1, ..Site::default() }].into();
    }
    trace
}

/// By event, its place in a schedule.
fn places(trace: &EventTrace, schedule: &Schedule) -> Vec<usize> {
    let mut places = vec![0; trace.events.len()];
    for (at, id) in schedule.order.iter().enumerate() {
        places[id.index()] = at;
    }
    places
}

fn session<'a>(
    trace: &'a EventTrace,
    coarse: &'a Coarse,
    system: &'a encoders::ConstraintSystem,
) -> CoarseSession<'a, OrderingSession<'a>> {
    let inner = OrderingSession::new(&coarse.trace, system, Limits::default());
    CoarseSession::new(trace, coarse, inner)
}

/// Whatever the session finds is a schedule of the whole trace that does what was asked for, by an interpreter
/// that knows nothing of all this.
#[test]
fn coarse_schedules_are_schedules() {
    let (mut found, mut kept, mut merged, mut sections) = (0, 0, 0, 0);
    for seed in 0..60 {
        let shape = crate::run::Shape {
            threads: 3,
            accesses: 24,
            cells: 3,
            locked: 40,
            branches: 8,
            reading: 0,
        };
        let text = crate::run::generate(&shape, seed);
        let trace = looped(&text);
        let Some(coarse) = coarsen(&trace, 2) else { continue };
        model::verify::verify(&coarse.trace).unwrap_or_else(|why| panic!("{seed} {why:?}\n{text}"));
        assert!(sources(&coarse.trace) <= sources(&trace), "{seed}\n{text}");
        merged += trace.events.len() - coarse.trace.events.len();
        let locks = |trace: &EventTrace| {
            let is_lock = |e: &&model::Event| matches!(e.kind, model::EventKind::Lock { .. });
            trace.events.iter().filter(is_lock).count()
        };
        sections += locks(&trace).saturating_sub(locks(&coarse.trace));
        let system = encoders::encode(&coarse.trace).expect("the trace can be encoded");
        // Where a schedule switches threads, a coarse trace can be cut.
        let whole = encoders::encode(&trace).expect("the trace can be encoded");
        let mut all = OrderingSession::new(&trace, &whole, Limits::default());
        if let Outcome::Sat(known) = all.check(Goal::Fail, &[]).expect("an answer") {
            for near in [0, 1].map(|rounds| coarsen_near(&trace, rounds, &known.schedule)) {
                let Some(near) = near else { continue };
                model::verify::verify(&near.trace)
                    .unwrap_or_else(|why| panic!("{seed} {why:?}\n{text}"));
                let narrow = near.project(&known.schedule).map(|narrow| near.schedule(&narrow));
                assert_eq!(narrow.as_ref(), Some(&known.schedule), "{seed}\n{text}");
                kept += 1;
            }
        }
        let machine = Machine::new(&trace);
        for goal in [Goal::Fail, Goal::Pass, Goal::Any] {
            let mut inner = OrderingSession::new(&coarse.trace, &system, Limits::default());
            let Outcome::Sat(narrow) = inner.check(goal, &[]).expect("an answer") else { continue };
            // Locks that a step holds may lie apart from it.
            let widened = coarse.schedule(&narrow.schedule);
            let again = coarse.project(&widened).map(|narrow| coarse.schedule(&narrow));
            assert_eq!(again.as_ref(), Some(&widened), "{seed}\n{text}");
            let wide = session(&trace, &coarse, &system).check(goal, &[]).expect("an answer");
            let Outcome::Sat(wide) = wide else { panic!("{seed} {goal:?} {wide:?}\n{text}") };
            let end = machine.run(&BTreeMap::new(), &wide.schedule.order);
            let end = end.unwrap_or_else(|| panic!("{seed} {goal:?}: impossible\n{text}"));
            assert!(machine.on_path(&end), "{seed} {goal:?}\n{text}");
            let fails = machine.fails(&end, &places(&trace, &wide.schedule));
            assert!(goal == Goal::Any || fails == (goal == Goal::Fail), "{seed} {goal:?}\n{text}");
            found += 1;
        }
    }
    assert!(found > 100 && kept > 40, "{found} {kept}");
    assert!(merged > 500 && sections > 10, "{merged} {sections}");
}

/// Two threads that add to a counter very often: one step in place of very many.
fn counting(times: usize) -> String {
    let mut text = String::from("t0: fork t1\nt0: fork t2\n");
    for thread in ["t1", "t2"] {
        for time in 0..times {
            let _ = write!(
                text,
                "{thread}: R x -> a{thread}{time}\n{thread}: W x a{thread}{time} + 1\n"
            );
        }
    }
    let _ =
        write!(text, "t0: join t1\nt0: join t2\nt0: R x -> sum\nt0: fail sum != {}\n", 2 * times);
    text
}

#[test]
fn a_lost_update_among_very_many_is_explained() {
    let trace = looped(&counting(2_000));
    assert_eq!(sources(&trace), 2 * 2_000 * 2_000 + 4_000);
    let coarse = coarsen(&trace, 3).expect("it gets smaller");
    assert!(coarse.trace.events.len() < 60, "{}", coarse.trace.events.len());
    let system = encoders::encode(&coarse.trace).expect("the trace can be encoded");
    let mut session = session(&trace, &coarse, &system);
    let Ok(Outcome::Sat(failing)) = session.check(Goal::Fail, &[]) else { panic!("none fails") };
    // Some update reads before, and writes after, another thread's update.
    let place = places(&trace, &failing.schedule);
    let updates = |thread: usize| {
        let accesses = trace.threads[thread].events.iter().copied();
        let accesses: Vec<_> =
            accesses.filter(|id| trace.event(*id).kind.is_access()).collect::<Vec<_>>();
        accesses.chunks(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
    };
    let lost = |(mine, other): (usize, usize)| {
        updates(mine).into_iter().find_map(|(read, write)| {
            let between = |id: &model::EventId| {
                place[read.index()] < place[id.index()] && place[id.index()] < place[write.index()]
            };
            let other = updates(other).into_iter().map(|(_, write)| write).find(between)?;
            Some([Order { before: read, after: other }, Order { before: other, after: write }])
        })
    };
    let orders = [(1, 2), (2, 1)].into_iter().find_map(lost).expect("an update is lost");
    let Ok(Outcome::Unsat(core)) = session.check(Goal::Pass, &orders) else {
        panic!("an update is lost in each of these")
    };
    assert_eq!(core, [0, 1]);
    assert!(matches!(session.check(Goal::Pass, &orders[..1]), Ok(Outcome::Sat(_))));
}

/// What one thread uses before another one frees it stays so in a failing schedule.
#[test]
fn what_is_freed_later_is_not_freed_sooner() {
    let mut trace = looped(&counting(50).replacen("t2: R x", "t2: free h\nt2: R x", 1));
    let is_free =
        |id: &model::EventId| matches!(trace.event(*id).kind, model::EventKind::Free { .. });
    let free = trace.threads[2].events.iter().copied().find(is_free).expect("it is freed");
    let of_first = &trace.threads[1].events;
    let lifetimes = [None, Some(of_first[of_first.len() - 2])];
    for (last, fails) in lifetimes.into_iter().zip([true, false]) {
        trace.lifetimes = last.map(|last| (last, free)).into_iter().collect();
        let coarse = coarsen(&trace, 3).expect("it gets smaller");
        let system = encoders::encode(&coarse.trace).expect("the trace can be encoded");
        let answer = session(&trace, &coarse, &system).check(Goal::Fail, &[]).expect("an answer");
        // One thread is done before the other one begins.
        assert_eq!(matches!(answer, Outcome::Sat(_)), fails, "{answer:?}");
    }
}

/// That no schedule of few switches does it says nothing of the others.
#[test]
fn what_few_switches_cannot_show_stays_open() {
    let fails = "t0: fail sum == 2\n";
    let always = counting(50).replace("t0: fail sum != 100\n", fails);
    // One thread has to be interrupted in its first update, and the other one in its last.
    let trace = looped(&always);
    let coarse = coarsen(&trace, 1).expect("it gets smaller");
    let system = encoders::encode(&coarse.trace).expect("the trace can be encoded");
    let answer = session(&trace, &coarse, &system).check(Goal::Fail, &[]).expect("an answer");
    assert!(matches!(answer, Outcome::Unknown(_)), "{answer:?}");
}
