//! Larger traces from really interleaved random programs, so that at least one schedule exists.

#![allow(dead_code, reason = "the benches use a part of it")]

use super::random::Random;
use model::evaluate::Evaluator;
use model::{EventId, EventTrace, VariableOrigin};
use std::fmt::Write as _;

/// What a generated run is like.
pub struct Shape {
    pub threads: usize,
    pub accesses: usize,
    pub cells: usize,
    /// Of all accesses, in percent.
    pub locked: usize,
    /// Of all reads, in percent.
    pub branches: usize,
    /// A thread reads the clock after so many accesses, besides where it locks and unlocks; never
    /// when 0.
    pub reading: usize,
}

#[derive(Clone, Copy)]
enum Step {
    Read(usize),
    Write(usize),
    Lock(usize),
    Unlock(usize),
}

/// The text of the trace of one run. It fails when the last read, after all threads are joined,
/// returns what it returned in the run.
pub fn generate(shape: &Shape, seed: u64) -> String {
    let mut random = Random::new(seed);
    let programs: Vec<Vec<Step>> =
        (0..shape.threads).map(|_| program(shape, &mut random)).collect();
    let mut text = String::new();
    // What happens between two readings of a thread's clock may have happened at any time between.
    let mut now = 1;
    for thread in 1..=shape.threads {
        let _ = writeln!(text, "t0: time {now}\nt0: fork t{thread}\nt{thread}: time {now}");
    }
    let mut memory = vec![0i64; shape.cells];
    let mut holders: Vec<Option<usize>> = vec![None; shape.cells];
    let mut next = vec![0; shape.threads];
    let mut last: Vec<Option<(String, i64)>> = vec![None; shape.threads];
    let mut since = vec![0usize; shape.threads];
    let mut names = 0;
    let mut thread = 0;
    while (0..shape.threads).any(|thread| next[thread] < programs[thread].len()) {
        if random.chance(60) {
            thread = random.below(shape.threads);
        }
        let Some(&step) = programs[thread].get(next[thread]) else {
            thread = random.below(shape.threads);
            continue;
        };
        let name = thread + 1;
        now += 2;
        let synchronises = matches!(step, Step::Lock(_) | Step::Unlock(_));
        if synchronises && !matches!(step, Step::Lock(lock) if holders[lock].is_some()) {
            let _ = writeln!(text, "t{name}: time {now}");
        }
        match step {
            Step::Lock(lock) if holders[lock].is_some() => {
                thread = random.below(shape.threads);
                continue;
            }
            Step::Lock(lock) => {
                holders[lock] = Some(thread);
                let _ = writeln!(text, "t{name}: lock m{lock}");
            }
            Step::Unlock(lock) => {
                holders[lock] = None;
                let _ = writeln!(text, "t{name}: unlock m{lock}");
            }
            Step::Read(cell) => {
                names += 1;
                let value = memory[cell];
                let _ = writeln!(text, "t{name}: R x{cell} -> a{names}");
                if random.chance(shape.branches) {
                    let condition = match random.below(3) {
                        0 => format!("a{names} == {value}"),
                        1 => format!("a{names} <= {value}"),
                        _ => format!("a{names} != {}", value + 1 + random.below(3) as i64),
                    };
                    let _ = writeln!(text, "t{name}: assume {condition}");
                }
                last[thread] = Some((format!("a{names}"), value));
            }
            Step::Write(cell) => {
                let constant = random.below(8) as i64;
                let (value, shown) = match &last[thread] {
                    Some((read, value)) if random.chance(60) => {
                        (value + constant, format!("{read} + {constant}"))
                    }
                    _ => (constant, constant.to_string()),
                };
                memory[cell] = value;
                let _ = writeln!(text, "t{name}: W x{cell} {shown}");
            }
        }
        let reads_clock = !synchronises && shape.reading > 0 && {
            since[thread] += 1;
            since[thread].is_multiple_of(shape.reading)
        };
        if synchronises || reads_clock {
            let _ = writeln!(text, "t{name}: time {}", now + 1);
        }
        next[thread] += 1;
        if next[thread] == programs[thread].len() {
            now += 2;
            let _ = writeln!(text, "t{name}: time {now}");
        }
    }
    now += 2;
    for thread in 1..=shape.threads {
        let _ = writeln!(text, "t0: join t{thread}\nt0: time {now}");
    }
    let _ = writeln!(text, "t0: R x0 -> end\nt0: fail end == {}", memory[0]);
    text
}

fn program(shape: &Shape, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut accesses = 0;
    while accesses < shape.accesses {
        let cell = random.below(shape.cells);
        let locked = random.chance(shape.locked);
        let length = if locked { 1 + random.below(3) } else { 1 };
        if locked {
            steps.push(Step::Lock(cell));
        }
        for _ in 0..length {
            let read = random.chance(60);
            steps.push(if read { Step::Read(cell) } else { Step::Write(cell) });
        }
        accesses += length;
        if locked {
            steps.push(Step::Unlock(cell));
        }
    }
    steps
}

/// The schedule of the run whose text a trace is of, by the order of its lines.
pub fn order(text: &str, trace: &EventTrace) -> Vec<EventId> {
    let thread = |name: &str| trace.threads.iter().position(|thread| thread.entry == name);
    let mut next = vec![0; trace.threads.len()];
    let mut order = Vec::new();
    let mut happen = |thread: usize, until: usize| {
        let events = &trace.threads[thread].events[next[thread]..];
        let events = &events[..events.len().min(until.saturating_sub(next[thread]))];
        order.extend_from_slice(events);
        next[thread] += events.len();
        next[thread]
    };
    for line in text.lines() {
        let Some((name, statement)) = line.split_once(": ") else { continue };
        let Some(name) = thread(name) else { continue };
        if statement.starts_with("time") || statement.starts_with("assume") {
            continue;
        }
        // Whoever is joined has ended.
        if let Some(child) = statement.strip_prefix("join ").and_then(thread) {
            happen(child, usize::MAX);
        }
        // A thread starts before its first event.
        let done = happen(name, 1);
        happen(name, done + 1);
    }
    order
}

/// Notes what the log of the run would tell of the reads that `logged` says are in it, by their variables.
pub fn record(text: &str, trace: &mut EventTrace, logged: impl Fn(model::VarId) -> bool) {
    let order = order(text, trace);
    let Ok(ran) = Evaluator::new(trace).run(&order, &|_| Some(0)) else { panic!("it happened") };
    assert!(ran.follows_paths());
    for (variable, value) in trace.variables.iter_mut().zip(ran.values) {
        let is_read = matches!(variable.origin, VariableOrigin::Read { .. });
        variable.recorded = value.filter(|_| !is_read || logged(variable.id));
    }
}
