//! The failure condition of a wait that no signal is left for: what the solver finds is what the
//! evaluator says, and both are what trying every way of giving signals to waits says.

use encoders::dsl::parse;
use model::evaluate::evaluate;
use model::{EventId, EventKind, EventTrace, FailureCondition, Schedule};
use solver::{Goal, Limits, Outcome, Session, Z3Session};

/// All orders of the events that keep the threads' own orders.
fn orders(trace: &EventTrace) -> Vec<Vec<EventId>> {
    fn grow(
        trace: &EventTrace,
        done: &mut Vec<usize>,
        order: &mut Vec<EventId>,
        found: &mut Vec<Vec<EventId>>,
    ) {
        if order.len() == trace.events.len() {
            found.push(order.clone());
        }
        for thread in &trace.threads {
            let at = thread.id.index();
            let Some(&next) = thread.events.get(done[at]) else { continue };
            let forks =
                |id: &EventId| trace.event(*id).kind == EventKind::Fork { child: thread.id };
            if at != 0 && !order.iter().any(forks) {
                continue;
            }
            // Beginnings and ends of threads do nothing: at once is as good as later.
            done[at] += 1;
            order.push(next);
            grow(trace, done, order, found);
            order.pop();
            done[at] -= 1;
            let kind = &trace.event(next).kind;
            if matches!(
                kind,
                EventKind::Start | EventKind::Fork { .. } | EventKind::Exit | EventKind::Failure
            ) {
                return;
            }
        }
    }
    let mut found = Vec::new();
    grow(trace, &mut vec![0; trace.threads.len()], &mut Vec::new(), &mut found);
    found
}

/// Can each of these waits (from, to) have a signal of its own?
fn all_served(waits: &[(usize, usize)], signals: &[usize], used: &mut Vec<usize>) -> bool {
    let Some(((from, to), rest)) = waits.split_first() else { return true };
    signals.iter().any(|signal| {
        let free = from < signal && signal < to && !used.contains(signal);
        free && {
            used.push(*signal);
            let served = all_served(rest, signals, used);
            used.pop();
            served
        }
    })
}

/// By trying: is nothing left for the wait?
fn unwoken(trace: &EventTrace, order: &[EventId]) -> bool {
    let place = |id: EventId| order.iter().position(|other| *other == id).expect("in the order");
    let failure = trace.failure.as_ref().expect("a failure");
    let FailureCondition::Unwoken { began, .. } = failure.condition else { panic!("{failure:?}") };
    let of = |wanted: fn(&EventKind) -> bool| -> Vec<usize> {
        let events = trace.events.iter().filter(|event| wanted(&event.kind));
        events.map(|event| place(event.id)).collect()
    };
    let broadcasts = of(|kind| matches!(kind, EventKind::Broadcast { .. }));
    let signals = of(|kind| matches!(kind, EventKind::Signal { .. }));
    let ended = trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Wake { began, .. } => Some((place(began), place(event.id))),
        _ => None,
    });
    let waits: Vec<(usize, usize)> = ended
        .chain([(place(began), usize::MAX)])
        .filter(|(from, to)| !broadcasts.iter().any(|b| from < b && b < to))
        .collect();
    !all_served(&waits, &signals, &mut Vec::new())
}

fn check(text: &str) -> (bool, bool) {
    let parsed = parse(text).expect("the trace is well formed");
    let trace = &parsed.trace;
    let (mut fails, mut passes) = (false, false);
    for order in orders(trace) {
        let schedule = Schedule { order };
        let Ok(evaluation) = evaluate(trace, &schedule, &|_| None) else { continue };
        assert_eq!(evaluation.fails, unwoken(trace, &schedule.order), "{text}\n{schedule:?}");
        fails |= evaluation.fails;
        passes |= !evaluation.fails;
    }
    let system = encoders::encode(trace).expect("the trace can be encoded");
    let mut session = Z3Session::new(trace, &system, Limits::default()).expect("expressible");
    for (goal, possible) in [(Goal::Fail, fails), (Goal::Pass, passes)] {
        match session.check(goal, &[]).expect("an answer") {
            Outcome::Sat(model) => {
                let evaluation = evaluate(trace, &model.schedule, &|_| None).expect("possible");
                assert_eq!(evaluation.fails, goal == Goal::Fail, "{text}\n{model:?}");
            }
            Outcome::Unsat(_) => assert!(!possible, "{text}\n{goal:?} was missed"),
            Outcome::Unknown(reason) => panic!("{reason:?}"),
        }
    }
    (fails, passes)
}

const WAITS: &str = "t1: lock m
t1: [began] unlock m
t1: fail unwoken c began
t2: lock n
t2: wait c n
t2: unlock n
";

#[test]
fn a_signal_that_another_wait_needs_is_not_left() {
    assert_eq!(check(&format!("{WAITS}t3: signal c")), (true, false));
}

#[test]
fn a_spare_signal_may_be_lost_or_not() {
    assert_eq!(check(&format!("{WAITS}t3: signal c\nt3: signal c")), (true, true));
    assert_eq!(check(&format!("{WAITS}t2: signal c\nt3: signal c")), (true, true));
}

#[test]
fn a_broadcast_is_for_all_that_wait() {
    assert_eq!(check(&format!("{WAITS}t3: broadcast c")), (true, true));
    assert_eq!(check(&format!("{WAITS}t3: broadcast c\nt3: signal c")), (true, true));
}
