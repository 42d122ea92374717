//! What a recording's clock says of the order of events, live, against what their values say.

use crate::workspace::Workspace;
use model::{Event, EventKind, EventTrace, Interval};
use std::path::Path;
use symbiosis::pipeline;

const SUCCESS: i32 = 0;
/// What the program counts to in each of its two counters.
const COUNT: usize = 3_000;

/// The event trace of a program that fails however its threads are scheduled.
fn record(name: &str, source: &str, level: &str, options: &[&str]) -> EventTrace {
    let workspace = Workspace::new(name);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let path = path.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", level, "-pthread", path, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let head = ["record", "--timeout", "60", "-o", "run.trace"];
    let command = head.iter().chain(options).chain(&["--", "./program"]);
    workspace.symbiosis(command);
    let loaded = pipeline::load(&workspace.path("run.trace")).expect("the trace can be loaded");
    let execution = pipeline::execute(&loaded.recording).expect("the trace can be executed");
    execution.trace
}

/// The read-modify-writes of a counter that only grows, in the order of what they found there: one
/// that found less came first.
fn changes<'t>(trace: &'t EventTrace, name: &str) -> Vec<(u128, &'t Event)> {
    let mut found: Vec<(u128, &Event)> = Vec::new();
    for event in &trace.events {
        let EventKind::ReadModifyWrite { reads, .. } = &event.kind else { continue };
        let [read] = &reads[..] else { continue };
        if trace.cells[read.cell.index()].name == name {
            let value = trace.variables[read.var.index()].recorded;
            found.push((value.expect("what it found is in the log"), event));
        }
    }
    found.sort_by_key(|(value, _)| *value);
    found
}

/// No interval says anything against the order of the values. Gives how many pairs of neighbours of
/// two threads there are, and of how many the clock knows the order.
fn check_counter(trace: &EventTrace, name: &str) -> (usize, usize) {
    let changes = changes(trace, name);
    let mut values: Vec<u128> = changes.iter().map(|(value, _)| *value).collect();
    values.dedup();
    assert_eq!(values, (0..COUNT as u128).collect::<Vec<_>>(), "{name} counts");
    let interval = |event: &Event| -> Interval { trace.intervals[event.id.index()] };
    let (mut earlier, mut same) = (0, 0);
    for (index, (value, event)) in changes.iter().enumerate() {
        let Interval { earliest, latest } = interval(event);
        assert!(earliest > 0 && latest < u64::MAX, "{name} {value}: between two readings");
        if index > 0 && changes[index - 1].0 < *value {
            earlier = same;
        }
        assert!(earlier <= latest, "{name} {value}: the clock puts it before an earlier one");
        same = same.max(earliest);
    }
    let neighbours = changes.windows(2).filter(|pair| {
        let [(before, first), (after, second)] = pair else { return false };
        before < after && first.thread != second.thread
    });
    let known =
        |pair: &&[(u128, &Event)]| interval(pair[0].1).latest < interval(pair[1].1).earliest;
    (neighbours.clone().count(), neighbours.filter(known).count())
}

#[test]
fn atomics_happen_between_readings() {
    for level in ["-O0", "-O2"] {
        let name = format!("clock-atomics{level}");
        let trace = record(&name, "tests/programs/atomics.c", level, &[]);
        if trace.intervals.is_empty() {
            eprintln!("the clock of this machine says nothing");
            return;
        }
        for counter in ["added", "exchanged"] {
            let (pairs, known) = check_counter(&trace, counter);
            eprintln!("{counter}: the order of {known} of {pairs} pairs is known");
        }
        // Any two events of two threads: most are far apart.
        let changes = changes(&trace, "added");
        let (mut known, mut all) = (0, 0);
        for (index, (_, first)) in changes.iter().enumerate() {
            for (_, second) in changes[index + 1..].iter().filter(|(_, e)| e.thread != first.thread)
            {
                let (a, b) = (first.id.index(), second.id.index());
                all += 1;
                known += usize::from(trace.intervals[a].latest < trace.intervals[b].earliest);
            }
        }
        assert!(known * 10 > all * 9, "{level}: the order of {known} of {all} pairs is known");
    }
}
