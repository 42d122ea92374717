//! Random small traces: whatever is explained is right, checked by enumeration.

mod support;

use encoders::dsl::parse;
use model::evaluate::{Check, Evaluator};
use model::{EventId, EventTrace, VariableOrigin};
use proptest::prelude::*;
use std::fmt::Write;
use support::{BruteForce, check_explanation, explain_with};

#[derive(Clone, Debug)]
enum Step {
    Read(u8),
    Write(u8, u8),
    Update(u8, u8),
    Section(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2u8).prop_map(Step::Read),
        2 => (0..2u8, 1..3u8).prop_map(|(cell, value)| Step::Write(cell, value)),
        1 => (0..2u8, 1..3u8).prop_map(|(cell, by)| Step::Update(cell, by)),
        1 => (0..2u8).prop_map(Step::Section),
    ]
}

#[derive(Clone, Debug)]
struct Program {
    threads: Vec<Vec<Step>>,
    /// Chooses the recorded schedule.
    seed: Vec<u8>,
    /// Chooses which reads' values are path conditions.
    decided: u8,
    from_end: bool,
}

fn program() -> impl Strategy<Value = Program> {
    let threads = prop::collection::vec(prop::collection::vec(step(), 1..4), 2..4);
    let small = threads.prop_filter("few enough schedules", |threads| {
        let events = threads.iter().flatten().map(|step| match step {
            Step::Section(_) => 4,
            _ => 1,
        });
        events.sum::<usize>() <= 9
    });
    (small, prop::collection::vec(any::<u8>(), 32), any::<u8>(), any::<bool>())
        .prop_map(|(threads, seed, decided, from_end)| Program { threads, seed, decided, from_end })
}

/// The text of a program; `names` gets a name per read.
fn text(program: &Program, names: &mut Vec<String>, tail: &[String]) -> String {
    let mut text = String::from("t0: R c0 -> unused\n");
    for (thread, steps) in program.threads.iter().enumerate() {
        let _ = writeln!(text, "t0: fork w{thread}");
        let read = |names: &mut Vec<String>| {
            names.push(format!("n{}", names.len()));
            names[names.len() - 1].clone()
        };
        for step in steps {
            let _ = match step {
                Step::Read(cell) => writeln!(text, "w{thread}: R c{cell} -> {}", read(names)),
                Step::Write(cell, value) => writeln!(text, "w{thread}: W c{cell} {value}"),
                Step::Update(cell, by) => {
                    let name = read(names);
                    writeln!(text, "w{thread}: RMW c{cell} -> {name} = {name} + {by}")
                }
                Step::Section(cell) => {
                    let name = read(names);
                    writeln!(
                        text,
                        "w{thread}: lock m\nw{thread}: R c{cell} -> {name}\n\
                         w{thread}: W c{cell} {name} + 5\nw{thread}: unlock m"
                    )
                }
            };
        }
    }
    for thread in 0..program.threads.len() {
        let _ = writeln!(text, "t0: join w{thread}");
    }
    for cell in 0..2 {
        let _ = writeln!(text, "t0: R c{cell} -> end{cell}");
    }
    for line in tail {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// A possible schedule, chosen by the seed: the initial thread creates the workers, they run, and
/// it joins them.
fn recorded(trace: &EventTrace, seed: &[u8]) -> Vec<EventId> {
    let mut evaluator = Evaluator::new(trace);
    for attempt in 0..400usize {
        let (head, tail) = trace.threads[0].events.split_at(1 + trace.threads.len());
        let mut order = head.to_vec();
        let mut workers: Vec<&[EventId]> =
            trace.threads[1..].iter().map(|thread| &thread.events[..]).collect();
        let mut state = attempt;
        while !workers.is_empty() {
            state = state * 31 % 65_521 + usize::from(seed[(order.len() + attempt) % seed.len()]);
            let chosen = state % workers.len();
            match workers[chosen].split_first() {
                Some((first, rest)) => {
                    order.push(*first);
                    workers[chosen] = rest;
                }
                None => drop(workers.remove(chosen)),
            }
        }
        order.extend_from_slice(tail);
        if evaluator.check(&order, &|_| None) != Check::Impossible {
            return order;
        }
    }
    panic!("a schedule is found");
}

/// A trace that can fail: its path conditions and failure are what a schedule does.
fn failing_trace(program: &Program) -> EventTrace {
    let mut names = Vec::new();
    let plain = parse(&text(program, &mut names, &[])).expect("well-formed").trace;
    let order = recorded(&plain, &program.seed);
    let evaluation = Evaluator::new(&plain).run(&order, &|_| None).expect("possible");
    let mut tail = Vec::new();
    // Variables are made in the order of the text: the unused one, the workers', the last two.
    let value = |index: usize| {
        assert!(matches!(plain.variables[index].origin, VariableOrigin::Read { .. }));
        evaluation.values[index].expect("all inputs are known")
    };
    for (index, name) in names.iter().enumerate() {
        let thread = &plain.variables[index + 1];
        let VariableOrigin::Read { event, .. } = thread.origin else { continue };
        let entry = &plain.thread_of(event).entry;
        if program.decided >> (index % 8) & 1 == 1 {
            let relation = if program.decided & 128 == 0 { "==" } else { "<=" };
            tail.push(format!("{entry}: assume {name} {relation} {}", value(index + 1)));
        }
    }
    let (a, b) = (value(names.len() + 1), value(names.len() + 2));
    tail.push(format!("t0: fail end0 == {a} && end1 == {b}"));
    parse(&text(program, &mut Vec::new(), &tail)).expect("well-formed").trace
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// The schedule stays accepted while its switches get fewer, the root cause is minimal, an
    /// alternate is found whenever there is one, and every alternate passes.
    #[test]
    fn explanations_are_right(program in program()) {
        let trace = failing_trace(&program);
        let mut session = BruteForce::new(&trace);
        session.from_end = program.from_end;
        prop_assert!(session.failing() > 0);
        let explanation = explain_with(&trace, &mut session, 3);
        check_explanation(&trace, &explanation);
    }
}
