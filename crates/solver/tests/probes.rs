//! Sums of many counters: a failing schedule is a run with one change.

use encoders::dsl::parse;
use model::EventTrace;
use model::evaluate::{Check, Evaluator};
use solver::{Goal, Limits, Order, OrderingSession, Outcome, Session};
use std::fmt::Write as _;
use std::time::Duration;

/// Threads that count into several cells without a lock, and a check of what these add up to in the end.
fn histogram(threads: usize, times: usize, cells: usize, check: &str) -> EventTrace {
    let mut text = String::new();
    (0..cells).for_each(|cell| {
        let _ = writeln!(text, "t0: W x{cell} 0");
    });
    (1..=threads).for_each(|thread| {
        let _ = writeln!(text, "t0: fork t{thread}");
    });
    for thread in 1..=threads {
        for time in 0..times {
            let (cell, name) = ((time * 7 + thread) % cells, format!("a{thread}_{time}"));
            let _ =
                writeln!(text, "t{thread}: R x{cell} -> {name}\nt{thread}: W x{cell} {name} + 1");
        }
    }
    (1..=threads).for_each(|thread| {
        let _ = writeln!(text, "t0: join t{thread}");
    });
    let mut sum = String::from("0");
    (0..cells).for_each(|cell| {
        let _ = writeln!(text, "t0: R x{cell} -> end{cell}");
        let _ = write!(sum, " + end{cell}");
    });
    let _ = writeln!(text, "t0: fail {}", check.replace('@', &format!("({sum})")));
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")).trace
}

fn found(trace: &EventTrace, session: &mut OrderingSession<'_>, goal: Goal) -> Check {
    let outcome = session.check(goal, &[]).expect("an answer");
    let Outcome::Sat(model) = outcome else { panic!("{outcome:?}") };
    Evaluator::new(trace).check(&model.schedule.order, &|_| None)
}

#[test]
fn a_sum_of_counters_that_lost_something() {
    // So many are lost that no single change is enough.
    let trace = histogram(4, 40, 6, "@ == 131");
    let system = encoders::encode(&trace).expect("the trace can be encoded");
    let mut session = OrderingSession::new(&trace, &system, Limits::default());
    assert_eq!(found(&trace, &mut session, Goal::Fail), Check::Fails);
    assert!(session.work().conflicts < 1_000, "{:?}", session.work());
}

#[test]
fn a_sum_of_counters_that_lost_nothing() {
    let trace = histogram(4, 100, 6, "@ != 400");
    let system = encoders::encode(&trace).expect("the trace can be encoded");
    let limits = Limits { time: Some(Duration::from_secs(10)), memory_mb: None };
    let mut session = OrderingSession::new(&trace, &system, limits);
    assert_eq!(found(&trace, &mut session, Goal::Fail), Check::Fails);
    assert_eq!(found(&trace, &mut session, Goal::Pass), Check::Passes);
    // With one addition lost for certain nothing makes up for it, which no search has to find out.
    let [one, two] = [1, 2].map(|thread: usize| &trace.threads[thread].events);
    let (read, write, between) = (one[1], one[2], two[12]);
    let part = |id: model::EventId| trace.event(id).kind.writes()[0].cell;
    assert_eq!(part(write), part(between));
    let lost = [Order { before: read, after: between }, Order { before: between, after: write }];
    let outcome = session.check(Goal::Pass, &lost).expect("an answer");
    assert!(matches!(outcome, Outcome::Unsat(_)), "{outcome:?}");
    assert!(session.work().conflicts < 50, "{:?}", session.work());
}
