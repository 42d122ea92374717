//! Programs with a handler of their own for crashes, live: the failure is what the handler was called for, however it ends
//! the process, and the replay finds that again.

use crate::workspace::Workspace;
use render::solution::{Replay, Solution};
use std::path::Path;

const SUCCESS: i32 = 0;

fn solve(source: &str, compiler: &str, options: &[&str], how: &[&str]) -> Solution {
    let workspace = Workspace::new(&format!("crash-handlers-{source}{}", how.join("")));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let path = path.to_str().expect("a path in UTF-8");
    let compile = [compiler, "-g", "-O1", "-pthread", path, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "-q", "--noise", "--until-failure", "2000", "-o", "run.trace"];
    let record = [&record[..], options, &["--", "./program"], how].concat();
    workspace.symbiosis(record).expect_code(SUCCESS);
    let outcome = workspace.symbiosis(["solve", "run.trace", "--format", "json"]);
    let solution = outcome.expect_code(SUCCESS).solution();
    assert_eq!(solution.replay, Replay::Confirmed, "{source} {how:?}");
    let passing = solution.alternates.first().map(|alternate| alternate.replay);
    assert_eq!(passing, Some(Replay::Confirmed), "{source} {how:?}");
    solution
}

fn failure(solution: &Solution) -> (String, String) {
    let failure = solution.failure.as_ref().expect("a failure");
    let kind = serde_json::to_value(failure).expect("JSON")["kind"].clone();
    (kind.as_str().expect("a kind").to_owned(), failure.message.clone())
}

fn of_crash(how: &str) -> String {
    failure(&solve("crash_handler.c", "cc", &[], &[how])).0
}

#[test]
fn a_handler_that_ends_the_process_is_not_the_failure() {
    for how in ["abort", "exit", "raise", "kill"] {
        assert_eq!(of_crash(how), "segfault", "{how}");
    }
}

#[test]
fn a_handler_that_is_called_once_hides_no_second_fault() {
    assert_eq!(of_crash("once"), "segfault");
}

#[test]
fn another_thread_may_end_the_process_for_the_handler() {
    assert_eq!(of_crash("thread"), "segfault");
}

#[test]
fn a_handler_that_jumps_out_has_dealt_with_the_fault() {
    assert_eq!(of_crash("jump"), "exit");
}

#[test]
fn a_terminate_handler_of_the_programs_own_is_not_the_failure() {
    let found = failure(&solve("terminate_handler.cc", "c++", &[], &[]));
    assert_eq!(found, ("exception".to_owned(), "std::runtime_error: overdrawn".to_owned()));
}
