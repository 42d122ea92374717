//! Shared libraries that plain gcc built: one makes the threads, holds the locks, and calls back into
//! instrumented code; another changes structures of its caller; a third has the slow half of a mutex.

use crate::workspace::Workspace;
use render::Solution;
use render::solution::{Replay, Verdict};
use std::fs;
use std::path::Path;
use std::process::Command;

const SUCCESS: i32 = 0;
const RUNS: &str = "3000";

/// A library and a program of the same folder, the one built by gcc and the other by `symbiosis cc`.
fn build(workspace: &Workspace, folder: &str, library: &str, program: &str, level: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(folder);
    for file in [format!("{library}.h"), format!("{library}.c"), format!("{program}.c")] {
        fs::copy(folder.join(&file), workspace.path(&file)).expect("the source can be copied");
    }
    let built = Command::new("gcc")
        .current_dir(workspace.path(""))
        .args(["-O2", "-shared", "-fPIC", "-pthread", &format!("{library}.c")])
        .args(["-o", &format!("lib{library}.so")])
        .output()
        .expect("gcc starts");
    assert!(built.status.success(), "gcc: {}", String::from_utf8_lossy(&built.stderr));
    let (source, library) = (format!("{program}.c"), format!("-l{library}"));
    let compile = ["cc", "-g", level, "-pthread", &source, "-o", "program"];
    let link = ["-L.", &library, "-Wl,-rpath,$ORIGIN"];
    workspace.symbiosis(compile.into_iter().chain(link)).expect_code(SUCCESS);
}

fn what_a_library_writes_is_known(level: &str) {
    let workspace = Workspace::new(&format!("library{level}"));
    build(&workspace, "library", "codec", "user", level);
    workspace.symbiosis(["record", "-o", "run.trace", "--", "./program"]).expect_code(SUCCESS);
    let check = workspace.symbiosis(["check", "run.trace"]).expect_code(SUCCESS);
    assert!(check.stdout().contains(" 0 gaps in "), "{}", check.describe());
}

#[test]
fn what_a_library_writes_behind_parameters_is_known_without_optimisation() {
    what_a_library_writes_is_known("-O0");
}

#[test]
fn what_a_library_writes_behind_parameters_is_known_optimised() {
    what_a_library_writes_is_known("-O2");
}

/// Runs the program until it fails; one that takes so many seconds hangs.
fn record_failure(workspace: &Workspace, seconds: &str) {
    let record = ["record", "--until-failure", RUNS, "--noise", "--timeout", seconds];
    let program = ["-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(record.into_iter().chain(program)).expect_code(SUCCESS);
}

/// The answer about a run that fails: nothing is unknown, and both schedules are confirmed.
fn recorded_and_solved(workspace: &Workspace, seconds: &str) -> Solution {
    record_failure(workspace, seconds);
    let solution = workspace
        .symbiosis(["solve", "failing.trace", "--timeout", "60", "--format", "json"])
        .expect_code(SUCCESS)
        .solution();
    assert_eq!(solution.verdict, Verdict::FailingSchedule, "reason: {:?}", solution.reason);
    assert_eq!(solution.stats.model_gaps, 0, "model gaps");
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let first = solution.alternates.first().expect("an alternate");
    assert_eq!(first.replay, Replay::Confirmed, "{:?}", first.replay_note);
    solution
}

fn callbacks_are_recorded_solved_and_replayed(level: &str) {
    let workspace = Workspace::new(&format!("foreign{level}"));
    build(&workspace, "foreign", "pool", "program", level);
    let solution = recorded_and_solved(&workspace, "60");
    let dsp = solution.dsp.as_ref().expect("a projection");
    let shows_total = |kind: &str| {
        let events = dsp.failing.iter().filter_map(|id| solution.event(id));
        events
            .into_iter()
            .any(|event| event.kind == kind && event.object.as_deref() == Some("total"))
    };
    assert!(shows_total("read") && shows_total("write"), "the callback's accesses in {dsp:#?}");
    for (schedule, done) in [(&[][..], "reproduced"), (&["--alternate", "0"][..], "confirmed")] {
        let replay = ["replay", "failing.trace", "--runs", "10"];
        let arguments = replay.iter().chain(schedule).copied();
        let replay = workspace.symbiosis(arguments).expect_code(SUCCESS);
        assert!(
            replay.stdout().starts_with(&format!("{done} 10 of 10: ")),
            "{}",
            replay.describe()
        );
    }
}

#[test]
fn callbacks_of_a_gcc_library_without_optimisation() {
    callbacks_are_recorded_solved_and_replayed("-O0");
}

#[test]
fn callbacks_of_a_gcc_library_optimised() {
    callbacks_are_recorded_solved_and_replayed("-O2");
}

/// Qt 6's mutex is taken and given back by the program's own code, and only waited for in the library.
fn a_mutex_that_is_half_inline_is_a_mutex(level: &str) {
    let workspace = Workspace::new(&format!("qt{level}"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/qt");
    let built = Command::new("g++")
        .current_dir(&folder)
        .args(["-O2", "-shared", "-fPIC", "core.cc", "-o"])
        .arg(workspace.path("libQt6Core.so"))
        .output()
        .expect("g++ starts");
    assert!(built.status.success(), "g++: {}", String::from_utf8_lossy(&built.stderr));
    let source = folder.join("transfers.cc").display().to_string();
    let compile = ["c++", "-g", level, "-pthread", &source, "-o", "program"];
    let link = ["-L.", "-lQt6Core", "-Wl,-rpath,$ORIGIN"];
    workspace.symbiosis(compile.into_iter().chain(link)).expect_code(SUCCESS);
    let solution = recorded_and_solved(&workspace, "2");
    let cause = &solution.cause.as_ref().expect("a cause").sentence;
    for part in ["waits for `checking.mutex`", "waits for `savings.mutex`"] {
        assert!(cause.contains(part), "{cause}");
    }
}

#[test]
fn a_mutex_that_is_half_inline_is_a_mutex_without_optimisation() {
    a_mutex_that_is_half_inline_is_a_mutex("-O0");
}

#[test]
fn a_mutex_that_is_half_inline_is_a_mutex_optimised() {
    a_mutex_that_is_half_inline_is_a_mutex("-O2");
}

/// The library's code is not walked, but a string's length is read and written by what appends to it.
fn a_string_that_two_threads_append_to_loses_an_update(level: &str) {
    let workspace = Workspace::new(&format!("string{level}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/shared_string.cc");
    let source = source.display().to_string();
    workspace
        .symbiosis(["c++", "-std=c++17", "-g", level, "-pthread", &source, "-o", "program"])
        .expect_code(SUCCESS);
    record_failure(&workspace, "60");
    let solution = workspace
        .symbiosis(["solve", "failing.trace", "--no-replay", "--format", "json"])
        .expect_code(SUCCESS)
        .solution();
    assert_eq!(solution.stats.model_gaps, 0, "model gaps");
    assert!(solution.alternates.iter().any(|alternate| alternate.same_path));
    let cause = solution.cause.as_ref().expect("a cause");
    assert_eq!(cause.pattern, "atomicity", "{}", cause.sentence);
    assert!(cause.variables.iter().all(|name| name.ends_with("text")), "{}", cause.sentence);
}

#[test]
fn a_string_that_two_threads_append_to_loses_an_update_without_optimisation() {
    a_string_that_two_threads_append_to_loses_an_update("-O0");
}

#[test]
fn a_string_that_two_threads_append_to_loses_an_update_optimised() {
    a_string_that_two_threads_append_to_loses_an_update("-O1");
}
