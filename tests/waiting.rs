//! Rounds of waiting are left out of the event trace, live: threads that poll make few events, however
//! they poll, and at whatever level they were compiled.

use crate::workspace::Workspace;
use std::path::Path;
use symbiosis::pipeline;

const SUCCESS: i32 = 0;

/// Compiles and records a program whose threads wait for 30 ms, and checks its event trace.
fn check(source: &str, level: &str, waiting: usize) {
    let workspace = Workspace::new(&format!("{source}{level}"));
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let path = path.to_str().expect("a path in UTF-8");
    workspace
        .symbiosis([compiler, "-g", level, "-pthread", path, "-o", "program"])
        .expect_code(SUCCESS);
    workspace.symbiosis(["record", "-o", "run.trace", "--", "./program"]).expect_code(SUCCESS);
    let loaded = pipeline::load(&workspace.path("run.trace")).expect("the trace can be loaded");
    let mut recording = loaded.recording;
    let execution = pipeline::execute(&recording).expect("the trace can be executed");
    let what = format!("{source} {level}");
    assert_eq!(execution.gaps, [], "{what}");
    let threads = &execution.report.threads;
    assert_eq!(threads.len(), waiting + 1, "{what}");
    for (index, thread) in threads.iter().enumerate() {
        assert!(thread.reached_end, "{what}: {thread:?}");
        let events = execution.trace.threads[index].events.len();
        // Three rounds of at most five events, and what comes before and behind.
        assert!(events <= 30, "{what}: {} has {events} events", thread.name);
    }
    // Of a scheduled run all is there.
    recording.scheduled = true;
    let whole = pipeline::execute(&recording).expect("the trace can be executed");
    let left_out: u64 = threads.iter().map(|thread| thread.idle_rounds).sum();
    assert!(left_out > 20, "{what}: {left_out} rounds");
    let more = whole.trace.events.len() - execution.trace.events.len();
    assert!(more as u64 >= left_out, "{what}: {more} more events, {left_out} rounds");
}

#[test]
fn rounds_of_waiting_are_left_out_of_c() {
    for level in ["-O0", "-O1", "-O2"] {
        check("polling.c", level, 6);
    }
}

#[test]
fn rounds_of_waiting_are_left_out_of_cpp() {
    for level in ["-O0", "-O1", "-O2"] {
        check("polling.cc", level, 3);
    }
}

/// A thread that had not come back from a barrier when the run failed counts for those who left it.
#[test]
fn who_is_still_in_a_barrier_has_arrived() {
    let workspace = Workspace::new("left_first");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/left_first.c");
    let path = path.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O0", "-pthread", path, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    // In some runs the other one comes back before the end, and on a busy machine some pass.
    for run in ["1.trace", "2.trace", "3.trace"] {
        workspace.symbiosis([
            "record",
            "-q",
            "--until-failure",
            "20",
            "-o",
            run,
            "--",
            "./program",
        ]);
        let outcome = workspace.symbiosis(["solve", run]).expect_code(SUCCESS);
        let said = outcome.stdout();
        assert!(said.contains("`value`") && said.contains("(replay: confirmed)"), "{said}");
    }
}

/// A run whose output was wrong went on, and a barrier needed the thread that had printed.
#[test]
fn what_came_behind_a_wrong_output_is_no_part_of_the_run() {
    let workspace = Workspace::new("printed_first");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/printed_first.c");
    let path = path.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O1", "-pthread", path, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let check = "grep -q 'total: 0'";
    let record = ["record", "-q", "--until-failure", "20", "--fail-if", check, "-o", "run.trace"];
    workspace.symbiosis([&record[..], &["--", "./program"]].concat()).expect_code(SUCCESS);
    let outcome = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS);
    let said = outcome.stdout();
    let cause =
        "cause: t0.2 read `total` (printed_first.c:17) before t0.1 wrote it (printed_first.c:11)";
    assert!(said.starts_with(cause) && said.contains("(replay: confirmed)"), "{said}");
}
