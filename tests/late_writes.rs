//! A failure that needs x86's store buffer, live: no schedule leads to it in which every write is seen at once. The
//! answer names the late write, `fix` both fences, and nothing claims that a run was forced.

use crate::workspace::Workspace;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const SUCCESS: i32 = 0;
const NO_SCHEDULE: i32 = 11;
const LIMIT: i32 = 12;
const FAILS: i32 = 10;
const PATIENCE: Duration = Duration::from_secs(300);

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_write_that_is_seen_late_is_the_cause_and_fences_are_the_repair() {
    let workspace = Workspace::new("late-writes");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/store_buffer.c");
    fs::copy(source, workspace.path("program.c")).expect("a copy of the source");
    let arguments = ["cc", "-g", "-O1", "-pthread", "program.c", "-o", "program"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    // A run that fails late has long traces; one that fails early comes soon. None fails while something else has one of
    // two processors.
    let began = Instant::now();
    let found = (1..).take_while(|_| began.elapsed() < PATIENCE).find_map(|number| {
        let trace = format!("{number}.trace");
        let record = ["record", "--until-failure", "20", "-o", &trace, "--", "./program"];
        let recorded = workspace.symbiosis(record);
        if recorded.code() == LIMIT {
            return None;
        }
        assert_eq!(recorded.code(), SUCCESS, "{}", recorded.describe());
        let values = fs::metadata(workspace.path(&trace).join("threads/t0.1.values.z"));
        (values.expect("a stream").len() < 4_000).then_some(trace)
    });
    let trace = found.expect("a run that fails soon");

    let solved = workspace.symbiosis(["solve", &trace, "--format", "json"]).expect_code(SUCCESS);
    let solution = json(&solved.stdout());
    assert_eq!(solution["verdict"], "failing-schedule");
    assert_eq!(solution["cause"]["pattern"], "late-write");
    assert_eq!(solution["replay"], "not-run");
    let sentence = solution["cause"]["sentence"].as_str().unwrap_or_default();
    assert!(sentence.contains("was still in its processor's store buffer"), "{sentence}");
    let late = solution["late_writes"].as_array().expect("a list");
    assert_eq!(late.len(), 1, "one late write is enough: {late:?}");
    let event = |id: &Value| {
        let events = solution["events"].as_array().expect("a list");
        events.iter().find(|event| event["id"] == *id).expect("an event of this name").clone()
    };
    let write = event(&late[0]["write"]);
    let wrote = write["object"].as_str().unwrap_or_default();
    assert!(["shared.work", "shared.sleeping"].contains(&wrote), "{write}");
    let read = event(&late[0]["overtaken_by"][0]);
    assert_eq!(read["thread"], write["thread"]);
    assert_eq!(read["location"]["function"], write["location"]["function"]);
    // In the schedule the write comes behind the read, in the program before it.
    let place = |event: &Value| {
        solution["schedule"].as_array().and_then(|all| all.iter().position(|id| *id == event["id"]))
    };
    assert!(place(&read) < place(&write));
    assert!(read["location"]["line"].as_u64() > write["location"]["line"].as_u64());

    let text = workspace.symbiosis(["show", &trace]).expect_code(SUCCESS);
    assert!(text.stdout().contains("no run can be made to have"), "{}", text.describe());
    let fixed = workspace.symbiosis(["fix", &trace, "--format", "json"]).expect_code(SUCCESS);
    let fixes = json(&fixed.stdout());
    let repair = &fixes["repairs"][0];
    assert_eq!(repair["kind"], "fence");
    // With one of the two fences alone the other thread's write may still be late.
    assert_eq!(repair["variables"], serde_json::json!(["sleeping", "work"]));
    assert_eq!(repair["checks"]["passes_on_recorded_paths"], true);
    // The program as it is still fails, in runs that nothing perturbs.
    let verify = ["verify", &trace, "--program", "program", "--noisy", "200", "--format", "json"];
    let verified = json(&workspace.symbiosis(verify).expect_code(FAILS).stdout());
    assert!(verified["plain_runs"].as_u64() > Some(0), "{verified}");
    assert_eq!(verified["scheduled_runs"], 0);
    for arguments in [&["replay", &trace][..], &["test-case", &trace, "-o", "case"]] {
        let refused = workspace.symbiosis(arguments).expect_code(NO_SCHEDULE);
        assert!(
            refused.stderr().contains("which no run can be made to have"),
            "{}",
            refused.describe()
        );
    }
}
