//! What a check at the end finds happened at any time before: of what only the failing run has, runs tell what decided.

use crate::workspace::Workspace;
use render::solution::{Replay, Verdict};
use std::fs;
use std::path::Path;

const SUCCESS: i32 = 0;

#[test]
fn of_hundreds_of_tasks_the_one_is_told_that_was_begun_between_the_look_and_its_cancellation() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/late_cancel.c");
    let text = fs::read_to_string(&source).expect("the source");
    let line_of = |mark: &str| {
        let found = text.lines().position(|line| line.contains(mark));
        found.expect("a line with this mark") as u32 + 1
    };
    let [begins, looks, cancels] = ["/* begins */", "/* looks */", "/* cancels */"].map(line_of);
    let workspace = Workspace::new("interrupted");
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    let compile = ["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record =
        ["record", "--noise", "--until-failure", "400", "--timeout", "20", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let answer = workspace.symbiosis(["solve", "program.trace", "--format", "json"]);
    let answer = answer.expect_code(SUCCESS);
    let solution = answer.solution();
    assert_eq!(solution.verdict, Verdict::FailingSchedule, "{:?}", solution.reason);
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let cause = solution.cause.as_ref().expect("a cause");
    let lines: Vec<u32> = cause
        .events
        .iter()
        .map(|id| solution.event(id).expect("a known event").location.line)
        .collect();
    assert_eq!(lines, [begins, looks, cancels], "{}", cause.sentence);
    assert_eq!(solution.alternates.first().map(|it| it.replay), Some(Replay::Confirmed));
    let decides =
        |note: &String| note.contains(&format!("program.c:{looks} and program.c:{cancels}"));
    assert!(solution.replay_notes.iter().any(decides), "{:?}", solution.replay_notes);
    assert!(!answer.stderr().contains("is far from the failing one"), "{}", answer.describe());
}
