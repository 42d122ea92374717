//! Threads that are cancelled in calls, and whose cleanup handlers then take their time. Nothing in the log says that they were;
//! what their handlers log has to make sense of it.

use crate::workspace::Workspace;
use render::solution::{Replay, Verdict};
use std::fs;
use std::path::Path;

const SUCCESS: i32 = 0;

/// The run is walked without gaps and agrees with its clock, and the schedules run the handlers to their ends.
fn explain(compiler: &str, file: &str, level: &str) {
    let workspace = Workspace::new(&format!("cancelled-{file}{level}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(file);
    fs::copy(source, workspace.path(file)).expect("a copy of the source");
    let arguments = [compiler, "-g", level, "-pthread", file, "-o", "program"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    let record = ["record", "--until-failure", "20", "-o", "run.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let answer = workspace.symbiosis(["solve", "run.trace", "--format", "json"]);
    let answer = answer.expect_code(SUCCESS);
    let contradicted = answer.stderr().contains("agrees with the times");
    assert!(!contradicted, "{}", answer.describe());
    let solution = answer.solution();
    assert_eq!(solution.verdict, Verdict::FailingSchedule, "{:?}", solution.reason);
    assert_eq!(solution.stats.model_gaps, 0, "model gaps");
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let cause = solution.cause.as_ref().expect("a cause");
    let sentence = &cause.sentence;
    assert_eq!(
        (cause.pattern.as_str(), &cause.variables[..]),
        ("atomicity", &["open_jobs".to_owned()][..]),
        "{sentence}"
    );
    assert!(sentence.starts_with("t0 wrote `open_jobs`"), "{sentence}");
    let alternate = solution.alternates.first().expect("an alternate");
    assert_eq!(alternate.replay, Replay::Confirmed, "{:?}", alternate.replay_note);
}

#[test]
fn a_handler_sleeps_where_its_thread_was_cancelled_in_a_call_of_the_system() {
    for level in ["-O0", "-O1"] {
        explain("cc", "cancelled_late.c", level);
    }
}

#[test]
fn a_handler_gives_back_the_lock_of_the_wait_that_its_thread_was_cancelled_in() {
    for level in ["-O0", "-O1"] {
        explain("c++", "cancelled_late.cc", level);
    }
}
