//! Counters: their value does not depend on the order of the additions, and no solver should have
//! to find that out by trying the orders.

use crate::interpreter::Machine;
use encoders::dsl::parse;
use solver::{Goal, Limits, Order, OrderingSession, Outcome, Session, Z3Session};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Far more than is needed, and far less than trying the orders takes.
const LIMITS: Limits = Limits { time: Some(Duration::from_secs(10)), memory_mb: None };

/// Several threads that each run the lines of `step` so many times, `@` being a name of its own
/// each time, and a failing check of the counter `x` after they were joined.
fn counting(threads: usize, times: usize, step: &[&str], check: &str) -> String {
    let mut text = String::from("t0: W x 5\n");
    (1..=threads).for_each(|thread| {
        let _ = writeln!(text, "t0: fork t{thread}");
    });
    for thread in 1..=threads {
        for time in 0..times {
            let name = format!("a{thread}_{time}");
            step.iter().for_each(|line| {
                let _ = writeln!(text, "t{thread}: {}", line.replace('@', &name));
            });
        }
    }
    (1..=threads).for_each(|thread| {
        let _ = writeln!(text, "t0: join t{thread}");
    });
    let _ = writeln!(text, "t0: R x -> end\nt0: fail {check}");
    text
}

fn solve(text: &str, goal: Goal) -> Outcome {
    let parsed = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
    let mut session = Z3Session::new(&parsed.trace, &system, LIMITS).expect("expressible");
    let outcome = session.check(goal, &[]).expect("an answer");
    if let Outcome::Sat(model) = &outcome {
        let machine = Machine::new(&parsed.trace);
        let end = machine.run(&BTreeMap::new(), &model.schedule.order);
        let end = end.unwrap_or_else(|| panic!("the schedule cannot happen\n{text}"));
        assert!(machine.on_path(&end), "a path condition is false\n{text}");
        let mut places = vec![0; parsed.trace.events.len()];
        let order = model.schedule.order.iter().enumerate();
        order.for_each(|(place, event)| places[event.index()] = place);
        assert_eq!(machine.fails(&end, &places), goal == Goal::Fail, "{text}");
        assert_eq!(end.values, model.values, "{text}");
    }
    outcome
}

const LOCKED: &[&str] = &["lock m", "R x -> @", "W x @ + 1", "unlock m"];
const ATOMIC: &[&str] = &["RMW x -> @ = @ + 1"];

#[test]
fn the_final_value_of_a_counter_is_known() {
    for step in [LOCKED, ATOMIC] {
        let unsatisfiable = Outcome::Unsat(Vec::new());
        assert_eq!(solve(&counting(2, 20, step, "end == 45"), Goal::Pass), unsatisfiable);
        assert_eq!(solve(&counting(2, 20, step, "end != 45"), Goal::Fail), unsatisfiable);
        let outcome = solve(&counting(2, 20, step, "end == 45"), Goal::Fail);
        assert!(matches!(outcome, Outcome::Sat(_)), "{outcome:?}");
    }
}

#[test]
fn conditions_on_the_way_are_no_harder() {
    let step = ["lock m", "R x -> @", "assume @ < 100", "W x @ + 1", "unlock m"];
    assert_eq!(solve(&counting(3, 12, &step, "end == 41"), Goal::Pass), Outcome::Unsat(Vec::new()));
    // The first thread's tenth addition comes after ten of the second's, so that the second's
    // tenth comes after at most nine of the first's.
    for (seen, possible) in [(14, true), (23, true), (24, false)] {
        let mut text = counting(2, 20, LOCKED, "end == 45");
        for (name, value) in [("a1_9", 24), ("a2_9", seen)] {
            let line = format!("-> {name}\n");
            let thread = &name[1..2];
            let condition = format!("{line}t{thread}: assume {name} == {value}\n");
            text = text.replace(&line, &condition);
        }
        let outcome = solve(&text, Goal::Fail);
        assert_eq!(matches!(outcome, Outcome::Sat(_)), possible, "{seen}: {outcome:?}");
    }
}

#[test]
fn a_race_on_a_counter_still_loses_updates() {
    let mut text = counting(2, 4, LOCKED, "end == 12");
    text = text.replace("t2: lock m\nt2: R x -> a2_3", "t2: R x -> a2_3");
    let unlock = text.rfind("t2: unlock m\n").expect("the last section of t2");
    text.replace_range(unlock..unlock + "t2: unlock m\n".len(), "");
    let outcome = solve(&text, Goal::Fail);
    assert!(matches!(outcome, Outcome::Sat(_)), "{outcome:?}\n{text}");
}

#[test]
fn what_is_known_of_a_counter_counts_within_conditions_on_other_values_too() {
    // The other variable is no counter. What the third thread sees of the counter matters in one of
    // two cases only, or as a number.
    for (assumed, last, goal, possible) in [
        ("y == 0 ? n > 6 : n > 900", "y == 1 ? n > 900 : n <= 6", Goal::Fail, false),
        ("y == 0 ? n > 6 : n > 900", "y == 1 ? n > 900 : n > 6", Goal::Fail, true),
        ("(n > 6) == (y == 0)", "n > 6 ? y == 1 : y == 0", Goal::Fail, false),
        ("(n > 6) != (y == 0)", "n > 6 ? y == 1 : y == 0", Goal::Pass, false),
        ("(n > 6 ? n : 0) > y", "n <= 6", Goal::Fail, false),
        ("(n > 6 ? n : 0) > y", "n > 6", Goal::Fail, true),
    ] {
        let mut text = counting(2, 4, LOCKED, &format!("end == 13 && ({last})"));
        text = text.replace("t0: fork t1\n", "t0: W y 0\nt0: fork t3\nt0: fork t1\n");
        let third = "t3: lock m\nt3: R x -> n\nt3: unlock m\nt3: R y -> y\nt3: assume ASSUMED\n\
                     t0: W y 1\nt0: join t3\nt0: R x -> end\n";
        text = text.replace("t0: R x -> end\n", &third.replace("ASSUMED", assumed));
        let parsed = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let system = encoders::encode(&parsed.trace).expect("the trace can be encoded");
        let outcome = OrderingSession::new(&parsed.trace, &system, LIMITS).check(goal, &[]);
        let outcome = outcome.expect("an answer");
        assert_eq!(matches!(outcome, Outcome::Sat(_)), possible, "{outcome:?}\n{text}");
        let same = matches!(solve(&text, goal), Outcome::Sat(_));
        assert_eq!(same, possible, "{text}");
        let Outcome::Sat(model) = outcome else { continue };
        let machine = Machine::new(&parsed.trace);
        let end = machine.run(&BTreeMap::new(), &model.schedule.order);
        let end = end.unwrap_or_else(|| panic!("the schedule cannot happen\n{text}"));
        assert!(machine.on_path(&end), "a path condition is false\n{text}");
    }
}

/// Nothing keeps two of these apart.
const SPLIT: &[&str] = &["R x -> @", "W x @ + 1"];

#[test]
fn a_counter_is_complete_only_when_no_update_is_lost() {
    for (check, goal) in [("end != 47", Goal::Pass), ("end == 47", Goal::Fail)] {
        let text = counting(3, 14, SPLIT, check);
        let parsed = parse(&text).expect("the trace is well formed");
        let trace = &parsed.trace;
        let system = encoders::encode(trace).expect("the trace can be encoded");
        assert!(matches!(solve(&text, goal), Outcome::Sat(_)), "all can be one after the other");
        let mut session = OrderingSession::new(trace, &system, LIMITS);
        assert!(matches!(session.check(goal, &[]), Ok(Outcome::Sat(_))));
        let of = |thread: usize| &trace.threads[thread].events;
        // A write of the second thread comes between the first one's read and write. The first event
        // of a thread is its start.
        let (read, write, other) = (of(1)[9], of(1)[10], of(2)[14]);
        assert!(!trace.event(read).kind.reads().is_empty());
        assert!(!trace.event(write).kind.writes().is_empty());
        assert!(!trace.event(other).kind.writes().is_empty());
        let lost = [(read, other), (other, write)];
        let lost = lost.map(|(before, after)| Order { before, after });
        let answer = session.check(goal, &lost);
        assert!(matches!(answer, Ok(Outcome::Unsat(_))), "{answer:?}");
        // With any other value at the end it may well be.
        let otherwise = if goal == Goal::Pass { Goal::Fail } else { Goal::Pass };
        let answer = session.check(otherwise, &lost);
        assert!(matches!(answer, Ok(Outcome::Sat(_))), "{answer:?}");
    }
}

#[test]
fn a_counter_that_steps_by_different_amounts_or_starts_anew_is_left_alone() {
    let lines = [
        // Two steps of one and one of two: 2 is reached without the lost one.
        "R x -> a",
        "W x a + 1",
        "fork",
        "R x -> b",
        "W x b + 2",
        "fork",
        "R x -> c",
        "W x c + 1",
    ];
    let mut text = String::from("t0: W x 0\n");
    for (index, part) in lines.split(|line| *line == "fork").enumerate() {
        let thread = index + 1;
        let _ = writeln!(text, "t0: fork t{thread}");
        part.iter().for_each(|line| {
            let _ = writeln!(text, "t{thread}: {line}");
        });
    }
    for thread in 1..=3 {
        let _ = writeln!(text, "t0: join t{thread}");
    }
    text.push_str("t0: R x -> end\nt0: fail end == 2\n");
    assert!(matches!(solve(&text, Goal::Fail), Outcome::Sat(_)), "{text}");
}
