//! What a check at the end finds happened at any time before: of what only the failing run has, runs tell what decided.

use crate::workspace::{Outcome, Workspace};
use render::Solution;
use render::solution::{Replay, Verdict};
use std::fs;
use std::path::{Path, PathBuf};

const SUCCESS: i32 = 0;

fn source(program: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program)
}

/// The answer of `solve`, with both schedules confirmed.
fn explained(program: &str) -> (Solution, Outcome) {
    let workspace = Workspace::new(&format!("interrupted-{program}"));
    fs::copy(source(program), workspace.path("program.c")).expect("a copy of the source");
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
    assert_eq!(solution.alternates.first().map(|it| it.replay), Some(Replay::Confirmed));
    (solution, answer)
}

/// What decided is told by runs, which is no proof: of three recordings one may be told otherwise.
#[test]
fn of_hundreds_of_tasks_the_one_is_told_that_was_begun_between_the_look_and_its_cancellation() {
    let text = fs::read_to_string(source("late_cancel.c")).expect("the source");
    let line_of = |mark: &str| {
        let found = text.lines().position(|line| line.contains(&format!("/* {mark} */")));
        found.expect("a line with this mark") as u32 + 1
    };
    let expected = ["begins", "looks", "cancels"].map(line_of);
    let mut told = Vec::new();
    for _ in 0..3 {
        let (solution, answer) = explained("late_cancel.c");
        let cause = solution.cause.as_ref().expect("a cause");
        let line = |id: &String| solution.event(id).expect("a known event").location.line;
        let lines: Vec<u32> = cause.events.iter().map(line).collect();
        let decides =
            |note: &String| note.contains("how the run ends is decided by what comes between");
        let decides = solution.replay_notes.iter().any(decides);
        let is_far = answer.stderr().contains("is far from the failing one");
        told.push((lines == expected && decides && !is_far, cause.sentence.clone()));
    }
    assert!(told.iter().filter(|(right, _)| *right).count() >= 2, "{told:?}");
}

/// Runs that pass have the same pattern.
#[test]
fn of_hundreds_of_rounds_the_one_is_told_in_which_it_did_harm() {
    let (solution, _) = explained("two_leaders.c");
    let cause = solution.cause.as_ref().expect("a cause");
    // What two leaders in one term do then has more than one pair that comes the other way round.
    assert!(cause.variables.contains(&"leader".to_owned()), "{}", cause.sentence);
}
