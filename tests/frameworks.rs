//! Failed checks of test frameworks: the run ends with an exit status, and the check is the failure.

use crate::workspace::Workspace;
use render::Solution;
use render::solution::{Replay, Verdict};
use std::path::Path;
use std::process::Command;

const SUCCESS: i32 = 0;

/// Records, solves and replays a failing run of a test program in `tests/programs`, compiled with
/// these options, and says which check failed, with this in its message. `header` is what the framework's package installs.
fn check(
    name: &str,
    header: &str,
    package: &str,
    options: &[&str],
    message: &str,
) -> Option<Solution> {
    if !Path::new(header).exists() {
        eprintln!("skipped: {header} is missing; install the package {package}");
        return None;
    }
    let workspace = Workspace::new(name);
    let source = format!("{}/tests/programs/{name}.cc", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&source).expect("the program can be read");
    let line = text.lines().position(|line| line.ends_with("// the check")).expect("a mark") + 1;
    let compile = ["c++", "-g", "-O1", "-pthread", &source, "-o", "program"];
    workspace.symbiosis(compile.iter().chain(options)).expect_code(SUCCESS);
    let record =
        ["record", "--until-failure", "3000", "--noise", "-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let answer =
        workspace.symbiosis(["solve", "failing.trace", "--format", "json"]).expect_code(SUCCESS);
    let solution: Solution = serde_json::from_str(&answer.stdout()).expect("a solution");
    assert_eq!(solution.verdict, Verdict::FailingSchedule, "{}", answer.describe());
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let failure = solution.failure.as_ref().expect("a failure");
    assert_eq!(failure.kind, "assertion", "{failure:?}");
    assert_eq!(failure.location.line as usize, line, "{failure:?}");
    assert!(failure.message.contains(message), "{failure:?}");
    let alternate = solution.alternates.first().expect("an alternate");
    assert_eq!(alternate.replay, Replay::Confirmed, "{:?}", alternate.replay_note);
    let cause = solution.root_cause.as_ref().expect("a root cause");
    assert!(!cause.orders.is_empty(), "{cause:?}");
    Some(solution)
}

#[test]
fn of_google_test_the_check_is_the_failure() {
    let options = ["-lgtest", "-lgtest_main"];
    check("bank_gtest", "/usr/include/gtest/gtest.h", "libgtest-dev", &options, "30");
}

/// In C++20 the framework's own library calls functions of strings that the program has: what it does with them between
/// those calls is not seen, and says nothing of the program's values.
#[test]
fn of_google_test_in_cpp20_the_check_is_the_failure() {
    let options = ["-std=c++20", "-lgtest", "-lgtest_main"];
    check("listener_gtest", "/usr/include/gtest/gtest.h", "libgtest-dev", &options, "Which is: 1");
}

/// A check that held before it is not taken for it: both write their results in functions that they call.
#[test]
fn of_google_test_the_check_that_failed_is_the_failure() {
    let options = ["-std=c++20", "-lgtest", "-lgtest_main"];
    let header = "/usr/include/gtest/gtest.h";
    let solution = check("totals_gtest", header, "libgtest-dev", &options, "totals.pieces");
    if let Some(solution) = solution {
        let cause = solution.cause.expect("a cause").sentence;
        assert!(cause.contains("`totals.pieces`"), "{cause}");
    }
}

/// What later tests do does not count, whatever else is wrong there: their threads were created behind the check.
#[test]
fn of_google_test_what_comes_behind_the_check_is_no_part_of_it() {
    let options = ["-std=c++17", "-lgtest", "-lgtest_main"];
    let header = "/usr/include/gtest/gtest.h";
    let solution = check("period_gtest", header, "libgtest-dev", &options, "flushed()");
    if let Some(solution) = solution {
        let cause = solution.cause.expect("a cause").sentence;
        // Both members are written behind the thread's start. Where it was over by then, what it counted is lost.
        let of_flusher =
            ["`this->period_`", "`this->flushed_`"].iter().any(|it| cause.contains(it));
        assert!(of_flusher, "{cause}");
    }
}

/// The framework's function that tells of a check is inlined there. What lies on the test's stack is not called by what the framework
/// had there before.
#[test]
fn of_catch_in_one_file_the_check_is_the_failure() {
    let header = "/usr/include/catch2/catch.hpp";
    let solution = check("stock_catch", header, "catch2", &["-std=c++17"], "stock.names()");
    if let Some(solution) = solution {
        let cause = solution.cause.expect("a cause");
        let of_stock = |name: &String| name.contains("names_") || name.contains("numbers_");
        assert!(cause.variables.iter().all(of_stock), "{}", cause.sentence);
    }
}

#[test]
fn of_catch_the_check_is_the_failure() {
    let header = "/usr/include/catch2/catch.hpp";
    let workspace = Workspace::new("catch_main");
    let object = workspace.path("catch_main.o");
    if Path::new(header).exists() {
        // The framework's own half, as a library would have it: without instrumentation.
        let main = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/catch_main.cc");
        let mut clang = Command::new("clang++");
        let status = clang.args(["-c", main, "-o"]).arg(&object).status().expect("clang++ runs");
        assert!(status.success(), "{clang:?}");
    }
    let object = object.to_str().expect("a path in UTF-8");
    check("bank_catch", header, "catch2", &[object], "30");
}
