//! A race that inline assembly makes: what it does to shared memory is part of the schedule.

use crate::workspace::Workspace;
use render::Solution;
use render::solution::{Replay, Verdict};
use std::path::Path;

const SUCCESS: i32 = 0;

/// A spin lock that looks and takes in two steps: the failing schedule overlaps both, the alternate
/// does not, and the program does as they say.
fn broken_lock(level: &str) {
    let workspace = Workspace::new(&format!("assembly-broken-lock{level}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/broken_lock.c");
    let source = source.to_str().expect("a path in UTF-8");
    workspace
        .symbiosis(["cc", "-g", level, "-pthread", source, "-o", "program"])
        .expect_code(SUCCESS);
    let recording = ["record", "--until-failure", "400", "-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(recording).expect_code(SUCCESS);
    let solve = ["solve", "failing.trace", "--format", "json"];
    let outcome = workspace.symbiosis(solve).expect_code(SUCCESS);
    let solution: Solution =
        serde_json::from_str(&outcome.stdout()).expect("the answer is a solution");
    assert_eq!(solution.verdict, Verdict::FailingSchedule);
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let alternate = solution.alternates.first().expect("an alternate");
    assert_eq!(alternate.replay, Replay::Confirmed, "{:?}", alternate.replay_note);
    // What assembly does to the lock and to the number of visits is in the schedule.
    let text = workspace.symbiosis(["solve", "failing.trace", "--full-schedule", "--no-replay"]);
    for part in ["read lock = 0", "write lock = 1", "read modify write visits = 1 -> 2"] {
        assert!(text.stdout().contains(part), "{part} is missing in\n{}", text.stdout());
    }
}

#[test]
fn broken_lock_unoptimised() {
    broken_lock("-O0");
}

#[test]
fn broken_lock_optimised_lightly() {
    broken_lock("-O1");
}

#[test]
fn broken_lock_optimised() {
    broken_lock("-O2");
}
