//! Programs whose path depends on process ids, times and random numbers, live: a replay gives these
//! results of the recorded run back, so it takes the recorded path, and goes on in the same way.

use crate::workspace::{Outcome, Workspace};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const SUCCESS: i32 = 0;
const RUNS: usize = 20;

/// A workspace with the compiled program and `failing.trace`.
fn failing(source: &str, level: &str) -> Workspace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let name = source.replace(['/', '.'], "-");
    let workspace = Workspace::new(&format!("inputs-{name}{level}"));
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    let path = path.to_str().expect("a path in UTF-8");
    workspace
        .symbiosis([compiler, "-g", level, "-pthread", path, "-o", "program"])
        .expect_code(SUCCESS);
    let recording = ["record", "--until-failure", "400", "--timeout", "60"];
    let program = ["-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(recording.iter().chain(&program)).expect_code(SUCCESS);
    workspace
}

fn replay(workspace: &Workspace, more: &[&str]) -> Outcome {
    let runs = RUNS.to_string();
    let mut arguments = vec!["replay", "failing.trace", "--runs", &runs];
    arguments.extend_from_slice(more);
    workspace.symbiosis(arguments)
}

/// All runs did what the schedule claims, and followed it.
fn all(outcome: &Outcome, word: &str) {
    let text = outcome.stdout();
    assert!(text.contains(&format!("{word} {RUNS} of {RUNS}: ")), "{}", outcome.describe());
    assert!(!text.contains("was left"), "{}", outcome.describe());
}

/// What the program said about itself, in all runs together: its process id, the time, and a random
/// number.
fn said(outcome: &Outcome) -> BTreeSet<String> {
    let text = outcome.stdout();
    text.lines().filter_map(|line| line.strip_prefix("I am ")).map(ToOwned::to_owned).collect()
}

fn replays_take_the_recorded_path(source: &str, level: &str) {
    let workspace = failing(source, level);
    let outcome = replay(&workspace, &["--show-output"]).expect_code(SUCCESS);
    all(&outcome, "reproduced");
    let then = said(&outcome);
    assert_eq!(then.len(), 1, "{}", outcome.describe());
    let outcome = replay(&workspace, &["--alternate", "0", "--show-output"]).expect_code(SUCCESS);
    all(&outcome, "confirmed");
    assert_eq!(said(&outcome), then, "the alternate is of the same process");
}

#[test]
fn in_c_without_optimisation() {
    replays_take_the_recorded_path("tests/programs/inputs.c", "-O0");
}

#[test]
fn in_c_optimised() {
    replays_take_the_recorded_path("tests/programs/inputs.c", "-O2");
}

#[test]
fn in_cpp() {
    replays_take_the_recorded_path("tests/programs/inputs.cc", "-O1");
}

#[test]
fn without_inputs_replays_are_of_other_processes() {
    let workspace = failing("tests/programs/inputs.c", "-O1");
    let shown = workspace
        .symbiosis(["replay", "failing.trace", "--print-schedule", "--quiet"])
        .expect_code(SUCCESS)
        .stdout();
    let end = shown.lines().position(|line| line.starts_with("end "));
    let input = shown.lines().position(|line| line.starts_with("input t0 getpid "));
    assert!(end.is_some() && end < input, "{shown}");
    let schedule = |line: &&str| line.starts_with(['t', 'e', 's']);
    let lines: Vec<&str> = shown.lines().filter(schedule).collect();
    fs::write(workspace.path("without"), lines.join("\n")).expect("the schedule can be written");
    let outcome = replay(&workspace, &["--schedule", "without", "--show-output"]);
    assert!(said(&outcome).len() > 1, "{}", outcome.describe());
}

/// Behind the end of a schedule the program goes on: with the inputs of the recorded run there is
/// one way for it.
fn goes_on_in_one_way(fixture: &str) {
    let folder = format!("fixtures/programs/{fixture}");
    let c = format!("{folder}/buggy.c");
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join(&c);
    let source = if whole.exists() { c } else { format!("{folder}/buggy.cc") };
    let workspace = failing(&source, "-O1");
    let outcome = replay(&workspace, &["--alternate", "0", "--show-output"]).expect_code(SUCCESS);
    all(&outcome, "confirmed");
    let text = outcome.stdout();
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("confirmed ")).collect();
    let different: BTreeSet<&str> = lines.iter().copied().collect();
    for line in different {
        let times = lines.iter().filter(|other| **other == line).count();
        assert!(times == 1 || times % RUNS == 0, "{line}: {}", outcome.describe());
    }
}

#[test]
fn two_stage_goes_on_in_one_way() {
    goes_on_in_one_way("two_stage");
}

#[test]
fn crasher_goes_on_in_one_way() {
    goes_on_in_one_way("crasher");
}

/// The dynamic linker notes an error in an object of the heap, which is freed when something is looked up in vain no
/// more: the runtime looks nothing up meanwhile, so nobody uses that object when it is gone.
#[test]
fn a_watched_heap_does_not_disturb_what_the_dynamic_linker_notes() {
    let workspace = Workspace::new("inputs-missing-library");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/missing_library.c");
    let source = source.to_str().expect("a path in UTF-8");
    workspace.symbiosis(["cc", "-g", "-O1", source, "-o", "program"]).expect_code(SUCCESS);
    let record = ["record", "--detect=use-after-free", "-o", "run.trace", "--", "./program"];
    let said = workspace.symbiosis(record).stderr();
    assert!(said.contains("the run passed"), "{said}");
}

/// Fails for want of input, and, with it, whenever it was run before.
const ASKS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    char line[20];
    if (fgets(line, sizeof line, stdin) == NULL)
        return 7;
    if (access("ran", F_OK) == 0)
        return 3;
    return creat("ran", 0600) < 0;
}
"#;

#[test]
fn each_run_gets_the_same_standard_input() {
    let workspace = Workspace::new("inputs-standard");
    fs::write(workspace.path("asks.c"), ASKS).expect("the source can be written");
    workspace.symbiosis(["cc", "-g", "asks.c", "-o", "asks"]).expect_code(SUCCESS);
    fs::write(workspace.path("lines"), "one\n").expect("the input can be written");
    let input = fs::File::open(workspace.path("lines")).expect("the input");
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiosis"));
    let arguments = ["record", "--until-failure", "5", "--", "./asks"];
    let output = command.current_dir(workspace.path(".")).args(arguments).stdin(input).output();
    let output = output.expect("symbiosis starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("run 2 of 5 failed") && said.contains("exit status 3"), "{said}");
}
