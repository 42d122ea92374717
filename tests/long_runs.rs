//! Runs of very many events are explained by what happened shortly before the failure.

use crate::workspace::Workspace;
use render::solution::Replay;
use serde_json::Value;
use std::fs;
use std::path::Path;

const SUCCESS: i32 = 0;

fn built(name: &str, program: &str) -> Workspace {
    let workspace = Workspace::new(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program);
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    let arguments = ["cc", "-g", "-O0", "-pthread", "program.c", "-o", "program"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    workspace
}

/// There are millions of pairs of critical sections, and two locks matter.
#[test]
fn a_deadlock_after_very_many_critical_sections_is_explained() {
    let workspace = built("long-deadlock", "long_deadlock.c");
    let record =
        ["record", "-q", "--until-failure", "20", "--timeout", "8", "--", "./program", "4000"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let solve = ["solve", "program.trace", "--format", "json"];
    let outcome = workspace.symbiosis(solve).expect_code(SUCCESS);
    assert!(outcome.stderr().contains("this is a long run"), "{}", outcome.describe());
    let solution: Value = serde_json::from_str(&outcome.stdout()).expect("JSON");
    assert_eq!(solution["verdict"], "failing-schedule");
    assert_eq!(solution["failure"]["kind"], "deadlock");
    // Thousands of rounds that are all alike are no endless loop, where the threads all wait at the end.
    assert_eq!(solution["replay"], "confirmed");
    assert!(solution["stats"]["events"].as_u64() > Some(30_000), "{}", solution["stats"]);
    let cause = &solution["root_cause"];
    assert_eq!(cause["minimal"], true);
    let orders = cause["orders"].as_array().expect("orders");
    assert!((1..=2).contains(&orders.len()), "{orders:?}");
    let sentence = solution["cause"]["sentence"].as_str().unwrap_or_default();
    assert!(
        sentence.contains("shelves[0].lock") && sentence.contains("shelves[1].lock"),
        "{sentence}"
    );
    let events = solution["events"].as_array().expect("a list");
    let functions = solution["cause"]["events"].as_array().into_iter().flatten().map(|id| {
        let event = events.iter().find(|event| event["id"] == *id);
        event.map(|event| event["location"]["function"].clone()).unwrap_or_default()
    });
    let functions: Vec<Value> = functions.collect();
    assert!(functions.iter().all(|function| function == "put_right"), "{functions:?}");
    assert!(!solution["alternates"].as_array().expect("a list").is_empty());
    // The schedule is one of all events, and the alternate too.
    let length = solution["schedule"].as_array().map(Vec::len);
    assert_eq!(length.map(|length| length as u64), solution["stats"]["events"].as_u64());

    // Repairs are looked for at its end, and run with the program as it is.
    let outcome = workspace.symbiosis(["fix", "program.trace", "--format", "json", "--runs", "3"]);
    let outcome = outcome.expect_code(SUCCESS);
    let fixes: Value = serde_json::from_str(&outcome.stdout()).expect("JSON");
    let first = &fixes["repairs"][0];
    assert_eq!(first["kind"], "lock-order", "{first}");
    let checks = &first["checks"];
    assert!(checks["events_at_the_end"].as_u64() < Some(20_000), "{checks}");
    assert!(checks["events_at_the_end"].as_u64() > Some(100), "{checks}");
    assert_eq!(checks["replay"]["passed"], 3, "{checks}");
}

/// Which of hundreds of signals woke which wait has more ways than can be looked at, and no short proof; what
/// matters is that the last one came too early.
#[test]
fn a_lost_wakeup_after_very_many_signals_is_explained() {
    let workspace = built("closing-queue", "closing_queue.c");
    let record = ["record", "-q", "--noise", "--until-failure", "3000", "--timeout", "1"];
    workspace.symbiosis(record.iter().chain(&["--", "./program", "300"])).expect_code(SUCCESS);
    let solve = ["solve", "program.trace", "--format", "json", "--timeout", "60"];
    let outcome = workspace.symbiosis(solve).expect_code(SUCCESS);
    let solution: Value = serde_json::from_str(&outcome.stdout()).expect("JSON");
    assert_eq!(solution["failure"]["kind"], "hang");
    assert_eq!(solution["root_cause"]["minimal"], true);
    let cause = &solution["cause"];
    assert_eq!(cause["pattern"], "missed-wakeup", "{cause}");
    assert!(cause["sentence"].as_str().unwrap_or_default().contains("`closed`"), "{cause}");
}

/// What goes wrong in tens of rounds is left wrong in one: no single order decides as long as there are others.
#[test]
fn of_a_barrier_that_is_missing_in_many_rounds_one_round_is_told() {
    let workspace = built("missing-barrier", "missing_barrier.c");
    let record = ["record", "-q", "--noise", "--until-failure", "50", "--timeout", "5"];
    workspace.symbiosis(record.iter().chain(&["--", "./program", "300"])).expect_code(SUCCESS);
    let solve = ["solve", "program.trace", "--no-replay", "--format", "json", "--timeout", "60"];
    // Whether values of other rounds could make up for it is a question that may stay open.
    let outcome = workspace.symbiosis(solve);
    let solution: Value = serde_json::from_str(&outcome.stdout()).expect("JSON");
    let orders = solution["root_cause"]["orders"].as_array();
    assert_eq!(orders.map(Vec::len), Some(1), "{}", outcome.describe());
    let sentence = solution["cause"]["sentence"].as_str().unwrap_or_default();
    assert!(sentence.contains("after") && sentence.contains("had overwritten it"), "{sentence}");
    assert!(!solution["alternates"].as_array().expect("a list").is_empty());
}

/// All schedules along the recorded paths fail, and thousands of sums stand between what went wrong and the check: a run
/// along other paths is found in seconds, and that they all fail is not found in minutes.
#[test]
fn what_only_other_paths_avoid_is_told_before_all_schedules_are_looked_at() {
    let workspace = built("late-sum", "late_sum.c");
    let record = ["record", "-q", "--noise", "--until-failure", "1000", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let solve = ["solve", "program.trace", "--format", "json"];
    let outcome = workspace.symbiosis(solve).expect_code(SUCCESS);
    let solution = outcome.solution();
    assert!(solution.stats.events > 20_000, "{:?}", solution.stats);
    let sentence = &solution.cause.as_ref().expect("a cause").sentence;
    assert!(sentence.contains("`there` (program.c:22)"), "{sentence}");
    assert!(sentence.contains("check (program.c:13)"), "{sentence}");
    assert_eq!(solution.replay, Replay::Confirmed);
    let alternate = solution.alternates.first().expect("an alternate");
    assert_eq!(alternate.replay, Replay::Confirmed);
    let text = outcome.stderr();
    assert!(text.contains("not all schedules along the recorded paths were looked at"), "{text}");
}
