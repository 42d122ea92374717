//! What instructions and calls do, live: small programs whose failure rests on the meaning of one of them. Each is recorded until it
//! fails, at two levels of optimisation. The program has to do what is said of it: the failing schedule and the run that
//! passes are confirmed, and nothing is a gap.

use crate::workspace::Workspace;
use render::solution::{Replay, Verdict};
use std::path::Path;

const SUCCESS: i32 = 0;

fn check(source: &str, libraries: &[&str]) {
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/semantics").join(source);
    let path = path.to_str().expect("a path in UTF-8");
    for level in ["-O0", "-O2"] {
        let what = format!("{source} {level}");
        let workspace = Workspace::new(&format!("semantics-{source}{level}"));
        let compile = [compiler, "-g", level, "-pthread", path, "-o", "program"];
        workspace.symbiosis([&compile[..], libraries].concat()).expect_code(SUCCESS);
        let record = ["record", "-q", "--noise", "--until-failure", "2000", "-o", "run.trace"];
        workspace.symbiosis([&record[..], &["--", "./program"]].concat()).expect_code(SUCCESS);
        let outcome = workspace.symbiosis(["solve", "run.trace", "--format", "json"]);
        let solution = outcome.expect_code(SUCCESS).solution();
        assert_eq!(solution.verdict, Verdict::FailingSchedule, "{what}");
        assert_eq!(solution.replay, Replay::Confirmed, "{what}");
        let passing = solution.alternates.first().map(|alternate| alternate.replay);
        assert_eq!(passing, Some(Replay::Confirmed), "{what}");
        assert_eq!(solution.stats.model_gaps, 0, "{what}");
    }
}

#[test]
fn a_float_that_is_no_number_becomes_the_smallest_integer() {
    check("bucket.c", &[]);
}

#[test]
fn floats_are_rounded() {
    check("rounded.c", &["-lm"]);
}

#[test]
fn a_once_routine_that_throws_is_run_again() {
    check("thrown_once.cc", &[]);
}

#[test]
fn a_thread_that_has_ended_gives_no_lock_back() {
    check("kept_lock.c", &[]);
}

#[test]
fn atomic_functions_of_every_size() {
    check("packed_counter.c", &["-latomic"]);
}

#[test]
fn a_unit_that_was_not_there_yet() {
    check("second_unit.c", &[]);
}

#[test]
fn what_is_initialised_again_is_another_object() {
    check("two_rounds.c", &[]);
}
