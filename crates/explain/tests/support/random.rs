//! Random small traces that can fail.

use encoders::dsl::parse;
use model::evaluate::{Check, Evaluator};
use model::{EventId, EventTrace, VariableOrigin};
use proptest::prelude::*;
use std::fmt::Write;

#[derive(Clone, Debug)]
enum Step {
    Read(u8),
    Write(u8, u8),
    Update(u8, u8),
    Section(u8),
    TryFailed,
    Wait,
    Signal,
    Broadcast,
    Take,
    Give,
    Barrier,
    /// A write that nobody reads, in a critical section or not.
    Unread(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2u8).prop_map(Step::Read),
        2 => (0..2u8, 1..3u8).prop_map(|(cell, value)| Step::Write(cell, value)),
        1 => (0..2u8, 1..3u8).prop_map(|(cell, by)| Step::Update(cell, by)),
        1 => (0..2u8).prop_map(Step::Section),
        1 => prop_oneof![
            Just(Step::TryFailed),
            Just(Step::Wait),
            Just(Step::Signal),
            Just(Step::Broadcast),
            Just(Step::Take),
            Just(Step::Give),
            Just(Step::Barrier),
        ],
    ]
}

#[derive(Clone, Debug)]
pub struct Program {
    threads: Vec<Vec<Step>>,
    /// Chooses the recorded schedule.
    seed: Vec<u8>,
    /// Chooses which reads' values are path conditions.
    decided: u8,
    pub from_end: bool,
}

/// Steps that only make sense together, one for each of two threads.
fn pair() -> impl Strategy<Value = Option<(Step, Step)>> {
    prop_oneof![
        4 => Just(None),
        1 => Just(Some((Step::Wait, Step::Signal))),
        1 => Just(Some((Step::Wait, Step::Broadcast))),
        1 => Just(Some((Step::Take, Step::Give))),
        1 => Just(Some((Step::Barrier, Step::Barrier))),
        1 => Just(Some((Step::TryFailed, Step::Section(0)))),
    ]
}

/// More events than this, beside those that are silent, are too many to enumerate schedules.
const MOST_EVENTS: usize = 9;

fn events(steps: &[Vec<Step>]) -> usize {
    let events = steps.iter().flatten().map(|step| match step {
        Step::Section(_) => 4,
        Step::Wait => 5,
        Step::Barrier => 2,
        _ => 1,
    });
    events.sum()
}

pub fn program() -> impl Strategy<Value = Program> {
    let threads = prop::collection::vec(prop::collection::vec(step(), 1..4), 2..4);
    let steps = (threads, pair(), 0..4usize, 0..4usize).prop_map(|(mut threads, pair, i, j)| {
        if let Some((one, other)) = pair {
            let place = i.min(threads[0].len());
            threads[0].insert(place, one);
            let place = j.min(threads[1].len());
            threads[1].insert(place, other);
        }
        threads
    });
    let small = steps.prop_filter("few enough schedules", |steps| events(steps) <= MOST_EVENTS);
    (small, prop::collection::vec(any::<u8>(), 32), any::<u8>(), any::<bool>())
        .prop_map(|(threads, seed, decided, from_end)| Program { threads, seed, decided, from_end })
}

impl Program {
    /// The program with something that does not matter before each of its steps.
    pub fn with_unread(mut self) -> Self {
        for (thread, steps) in self.threads.iter_mut().enumerate() {
            let unread = (thread..).map(|number| Step::Unread(number % 3 != 0));
            *steps = unread.zip(std::mem::take(steps)).flat_map(|(a, b)| [a, b]).collect();
        }
        self
    }
}

/// The text of a program; `names` gets a name per read.
fn text(program: &Program, names: &mut Vec<String>, tail: &[String]) -> String {
    let mut text = String::from("barrier b 2\nt0: R c0 -> unused\n");
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
                Step::TryFailed => writeln!(text, "w{thread}: trylock-failed m"),
                Step::Wait => {
                    writeln!(text, "w{thread}: lock m\nw{thread}: wait v m\nw{thread}: unlock m")
                }
                Step::Signal => writeln!(text, "w{thread}: signal v"),
                Step::Broadcast => writeln!(text, "w{thread}: broadcast v"),
                Step::Barrier => writeln!(text, "w{thread}: barrier b"),
                Step::Take => writeln!(text, "w{thread}: sem-wait s"),
                Step::Give => writeln!(text, "w{thread}: post s"),
                Step::Unread(false) => writeln!(text, "w{thread}: W c7 1"),
                Step::Unread(true) => {
                    writeln!(text, "w{thread}: lock m\nw{thread}: W c7 2\nw{thread}: unlock m")
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
fn recorded(trace: &EventTrace, seed: &[u8]) -> Option<Vec<EventId>> {
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
            return Some(order);
        }
    }
    None
}

/// A trace that can fail: its path conditions and failure are what a schedule does. `None` when no
/// schedule is found.
pub fn failing_trace(program: &Program) -> Option<EventTrace> {
    let mut names = Vec::new();
    let plain = parse(&text(program, &mut names, &[])).expect("well-formed").trace;
    let order = recorded(&plain, &program.seed)?;
    let evaluation = Evaluator::new(&plain).run(&order, &|_| None).expect("possible");
    let (mut tail, mut failure) = (Vec::new(), Vec::new());
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
        } else if index < 3 {
            failure.push(format!("{name} == {}", value(index + 1)));
        }
    }
    let (a, b) = (value(names.len() + 1), value(names.len() + 2));
    failure.push(format!("end0 == {a}"));
    failure.push(format!("end1 == {b}"));
    tail.push(format!("t0: fail {}", failure.join(" && ")));
    Some(parse(&text(program, &mut Vec::new(), &tail)).expect("well-formed").trace)
}
