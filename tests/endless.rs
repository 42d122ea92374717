//! Programs that go on until they fail: servers, soak tests.

use crate::workspace::Workspace;
use render::solution::Replay;
use std::fs;
use std::path::Path;
use std::process::Command;

const SUCCESS: i32 = 0;
const LIMIT: i32 = 12;

fn built(name: &str) -> Workspace {
    let workspace = Workspace::new(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/endless.c");
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    let compile = ["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    workspace
}

/// With an argument the program has one worker, and nothing fails.
#[test]
fn a_run_that_is_at_work_when_its_time_is_up_has_passed_where_that_is_said() {
    let workspace = built("endless-at-work");
    let record = ["record", "--until-failure", "2", "--timeout", "0.5"];
    let command = ["--", "./program", "alone"];
    let endless = record.iter().chain(&["--endless"]).chain(&command);
    let outcome = workspace.symbiosis(endless).expect_code(LIMIT);
    assert!(outcome.stderr().contains("no failure in 2 runs"), "{}", outcome.describe());
    assert!(!workspace.path("program.trace").exists(), "no run is kept");

    let outcome = workspace.symbiosis(record.iter().chain(&command)).expect_code(SUCCESS);
    let text = outcome.stderr();
    assert!(text.contains("run 1 of 2 failed") && text.contains("--endless"), "{text}");
}

/// No run that passes comes to an end, so it is looked at up to some way behind the place of the failure.
#[test]
fn schedules_without_the_failure_are_followed_past_its_place() {
    let workspace = built("endless-past");
    let record = ["record", "--noise", "--until-failure", "100", "--timeout", "0.5", "--endless"];
    workspace.symbiosis(record.iter().chain(&["--", "./program"])).expect_code(SUCCESS);
    let solve = ["solve", "program.trace", "--format", "json"];
    let outcome = workspace.symbiosis(solve).expect_code(SUCCESS);
    let solution = outcome.solution();
    assert_eq!(solution.replay, Replay::Confirmed, "{}", outcome.describe());
    let alternate = solution.alternates.first().expect("an alternate");
    assert_eq!(alternate.replay, Replay::Confirmed, "{}", outcome.describe());

    let again = ["replay", "program.trace", "--alternate", "0", "--runs", "3"];
    let outcome = workspace.symbiosis(again).expect_code(SUCCESS);
    assert!(outcome.stdout().starts_with("confirmed 3 of 3"), "{}", outcome.describe());
}

/// What is asked of the mended program has to end, too.
#[test]
fn a_program_that_never_ends_is_verified_and_tested_when_it_is_mended() {
    let workspace = built("endless-test");
    let mended = ["cc", "-g", "-O1", "-pthread", "-DMENDED", "program.c", "-o", "mended"];
    workspace.symbiosis(mended).expect_code(SUCCESS);
    let record = ["record", "--noise", "--until-failure", "100", "--timeout", "0.5", "--endless"];
    workspace.symbiosis(record.iter().chain(&["--", "./program"])).expect_code(SUCCESS);
    // None of its runs comes to an end, either.
    let verify = ["verify", "program.trace", "--program", "./mended"];
    let outcome = workspace.symbiosis(verify);
    assert!([SUCCESS, LIMIT].contains(&outcome.code()), "{}", outcome.describe());
    assert!(outcome.stdout().contains("20 under noise; 0 failed"), "{}", outcome.describe());

    let make = ["test-case", "program.trace", "-o", "case", "--name", "room"];
    workspace.symbiosis(make).expect_code(SUCCESS);
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(workspace.path("")).output().expect("it starts")
    };
    assert!(run("cc", &["case/room_test.c", "-o", "the_test"]).status.success());
    for (program, status) in [("./program", 1), ("./mended", 0)] {
        let output = run("./the_test", &[program]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(status), "{program}: {text}");
    }
}
