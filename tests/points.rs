//! The executor counts the gates and sync points of a run exactly as the scheduler did, live: record
//! programs under a scheduler, and compare what it noted at the ends of the turns.

use crate::workspace::Workspace;
use model::evaluate::evaluate;
use model::{EventId, EventTrace};
use std::collections::BTreeMap;
use std::path::Path;
use symbiosis::pipeline;
use trace_format::Trace;

const SUCCESS: i32 = 0;
/// Runs of each program, each with a seed of its own.
const RUNS: u64 = 4;

/// A trace of the program under random priorities.
fn record(workspace: &Workspace, seed: u64) -> String {
    let trace = format!("run{seed}.trace");
    let seed = seed.to_string();
    // The program may fail, and then so does the command.
    let recorded = workspace.symbiosis([
        "record",
        "--noise=pct,3,1000",
        "--seed",
        &seed,
        // Wherever the clock can be read, it is.
        "--readings=1",
        "--timeout",
        "60",
        "-o",
        &trace,
        "--",
        "./program",
    ]);
    assert!(workspace.path(&trace).exists(), "{}", recorded.describe());
    trace
}

/// Checks one run; gives the number of turns.
fn check(directory: &Path) -> usize {
    let what = directory.display();
    let trace = Trace::open(directory).expect("the trace can be opened");
    let order = trace.order().expect("the order can be read");
    let order = order.unwrap_or_else(|| panic!("{what}: no scheduler decided"));
    let loaded = pipeline::load(directory).expect("the trace can be loaded");
    let execution = pipeline::execute(&loaded.recording).expect("the trace can be executed");
    // Threads come in the order of their serials.
    let threads: BTreeMap<u64, usize> =
        trace.threads().iter().enumerate().map(|(index, thread)| (thread.serial, index)).collect();
    let records: Vec<(usize, u64, u64)> =
        order.iter().map(|record| (threads[&record.thread], record.gates, record.points)).collect();
    let gates: u64 = execution.report.threads.iter().map(|thread| thread.gates).sum();
    assert!(gates > 0, "{what}: the program has gates");
    for (index, thread) in execution.report.threads.iter().enumerate() {
        let counts = (thread.gates, thread.sync_points);
        let last = records.iter().rfind(|record| record.0 == index);
        let last = last.map_or((0, 0), |record| (record.1, record.2));
        let name = &thread.name;
        assert!(last.0 <= counts.0 && last.1 <= counts.1, "{what} {name}: {last:?} {counts:?}");
        // The end of every thread but the initial one is the end of a turn.
        if index > 0 && thread.stopped == "end of the thread" {
            assert_eq!(last, counts, "{what} {name}");
        }
    }
    let schedule = schedule::observed(&execution.trace, &execution.points, &records)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let inputs = |var: model::VarId| execution.trace.variables[var.index()].recorded;
    let evaluation = evaluate(&execution.trace, &schedule, &inputs)
        .unwrap_or_else(|error| panic!("{what}: the turns' order cannot be: {error:?}"));
    assert_eq!(evaluation.violated, [], "{what}: the order leaves the recorded paths");
    for (variable, value) in execution.trace.variables.iter().zip(&evaluation.values) {
        if let (Some(recorded), Some(value)) = (variable.recorded, value) {
            assert_eq!(recorded, *value, "{what}: {variable:?}");
        }
    }
    check_clock(&what.to_string(), &execution.trace, &schedule.order);
    if let Some(failure) = &execution.trace.failure
        && evaluation.failure_known
    {
        assert!(evaluation.fails, "{what}: {failure:?} does not follow from the order");
    }
    order.len()
}

/// The clock says nothing against the order in which the events happened.
fn check_clock(what: &str, trace: &EventTrace, order: &[EventId]) {
    if trace.intervals.is_empty() {
        return;
    }
    let mut latest_start = (0, None);
    for &event in order {
        let interval = trace.intervals[event.index()];
        let (start, earlier) = latest_start;
        assert!(start <= interval.latest, "{what}: {earlier:?} is not before {event} by the clock");
        latest_start = latest_start.max((interval.earliest, Some(event)));
    }
}

fn check_program(name: &str, source: &str, level: &str) {
    let workspace = Workspace::new(&format!("points-{name}{level}"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    let path = path.to_str().expect("a path in UTF-8");
    workspace
        .symbiosis([compiler, "-g", level, "-pthread", path, "-o", "program"])
        .expect_code(SUCCESS);
    let turns = (1..=RUNS).map(|seed| check(&workspace.path(&record(&workspace, seed))));
    assert!(turns.sum::<usize>() > RUNS as usize, "{name}: the threads took turns");
}

macro_rules! programs {
    ($($name:ident: $source:literal at $level:literal;)*) => {
        $(
            #[test]
            fn $name() {
                check_program(stringify!($name), $source, $level);
            }
        )*
    };
}

programs! {
    bank_o0: "fixtures/programs/bank/buggy.c" at "-O0";
    bank_o2: "fixtures/programs/bank/buggy.c" at "-O2";
    file_scanner_o0: "fixtures/programs/file_scanner/buggy.c" at "-O0";
    file_scanner_o2: "fixtures/programs/file_scanner/buggy.c" at "-O2";
    string_buffer_o0: "fixtures/programs/string_buffer/buggy.cc" at "-O0";
    string_buffer_o2: "fixtures/programs/string_buffer/buggy.cc" at "-O2";
    synchronisation_o0: "tests/programs/synchronisation.c" at "-O0";
    synchronisation_o2: "tests/programs/synchronisation.c" at "-O2";
}
