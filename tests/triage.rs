//! `symbiosis triage`, live: failing traces of two bugs, one of a run that passed and one that is damaged
//! become two groups and a trace without an answer, in every report; and a known cause is told from a new one.

use crate::workspace::Workspace;
use quick_junit::Report;
use serde_json::Value;
use std::fs;
use std::path::Path;

const SUCCESS: i32 = 0;
const USAGE: i32 = 2;
const NEW: i32 = 10;
const BAD_TRACE: i32 = 20;

/// Compiles a variant of a family's program as `NAME-VARIANT`, from a file of that name.
fn compile(workspace: &Workspace, name: &str, variant: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/families");
    let source = fixtures.join(name).join(variant).with_extension("c");
    let (program, file) = (format!("{name}-{variant}"), format!("{name}-{variant}.c"));
    fs::copy(source, workspace.path(&file)).expect("a copy of the source");
    let arguments = ["cc", "-g", "-O1", "-pthread", &file, "-o", &program];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    program
}

fn record(workspace: &Workspace, program: &str, trace: &str) {
    let program = format!("./{program}");
    let arguments = ["record", "--until-failure", "3000", "--noise", "-o", trace, "--", &program];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|of| of["trace"].as_str()).collect()
}

#[test]
fn failures_are_grouped_by_their_causes_and_every_report_has_them() {
    let workspace = Workspace::new("triage");
    let barrier = compile(&workspace, "barrier", "buggy");
    let mutex = compile(&workspace, "mutex", "buggy");
    let fixed = compile(&workspace, "barrier", "fixed");
    let both = ["record", "--noise", "--until-failure", "3000", "--failures", "2", "-o"];
    let program = format!("./{barrier}");
    let both = [&both[..], &["traces/deep/b.trace", "--", &program]].concat();
    workspace.symbiosis(both).expect_code(SUCCESS);
    record(&workspace, &mutex, "traces/m.trace");
    let passed = ["record", "-o", "traces/passed.trace", "--", &format!("./{fixed}")];
    workspace.symbiosis(passed).expect_code(SUCCESS);

    let first =
        workspace.symbiosis(["triage", "traces", "--fix", "--report", "report", "--jobs", "2"]);
    let first = first.expect_code(SUCCESS);
    let headline = "3 failing traces, 2 causes, 1 of runs that passed\n";
    assert!(first.stdout().starts_with(headline), "{}", first.describe());
    let read = |name: &str| {
        fs::read_to_string(workspace.path("report").join(name)).expect("a report of this name")
    };
    let triage = json(&read("triage.json"));
    assert_eq!(triage["format"], "symbiosis-triage");
    let groups = triage["groups"].as_array().expect("a list");
    let mut both = names(&groups[0]["traces"]);
    both.sort_unstable();
    assert_eq!(both, ["traces/deep/b-1.trace", "traces/deep/b-2.trace"]);
    assert_eq!(names(&groups[1]["traces"]), ["traces/m.trace"]);
    assert_eq!(names(&triage["passed"]), ["traces/passed.trace"]);
    assert_eq!(groups[0]["pattern"], "order");
    assert_eq!(groups[0]["variables"], serde_json::json!(["right"]));
    let repair = groups[0]["repair"][0].as_str().unwrap_or_default();
    assert!(repair.contains("write `right`"), "{repair}");
    // The answers stay in the traces, and are about the same cause.
    let solution = fs::read_to_string(workspace.path("traces/m.trace/solution.json"));
    let solution = json(&solution.expect("an answer"));
    assert_eq!(solution["cause"]["fingerprint"], groups[1]["fingerprint"]);

    let sarif = json(&read("triage.sarif"));
    let results = sarif["runs"][0]["results"].as_array().expect("a list");
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["occurrenceCount"], 2);
    let print = &results[1]["partialFingerprints"]["symbiosisCause/v2"];
    assert_eq!(print, &groups[1]["fingerprint"]);
    let report = Report::deserialize_from_str(&read("junit.xml")).expect("JUnit");
    let suites: Vec<_> =
        report.test_suites.iter().map(|suite| (suite.name.as_str(), suite.failures)).collect();
    assert_eq!(suites, [("barrier-buggy", 2), ("barrier-fixed", 0), ("mutex-buggy", 1)]);
    assert!(read("summary.md").contains("| [2](2.html) | "));
    assert!(read("1.html").contains("<html") && read("2.html").contains("<html"));

    // What is known: nothing of it, one of the two, and both.
    fs::write(workspace.path("none"), "# nothing yet\n").expect("it can be written");
    let found = workspace.symbiosis(["triage", "traces", "--known", "none"]).expect_code(NEW);
    assert!(found.stdout().contains(", 2 new,"), "{}", found.describe());
    let one = format!("{} #12\n", groups[0]["fingerprint"].as_str().expect("a fingerprint"));
    fs::write(workspace.path("one"), one).expect("it can be written");
    let arguments = ["triage", "traces/m.trace", "--known", "one", "--format", "json"];
    let found = json(&workspace.symbiosis(arguments).expect_code(NEW).stdout());
    assert_eq!(found["groups"][0]["state"], "new");
    assert_eq!(found["absent"][0]["note"], "#12");
    let arguments = ["triage", "traces", "--known", "report/triage.json", "--format", "json"];
    let found = json(&workspace.symbiosis(arguments).expect_code(SUCCESS).stdout());
    assert_eq!(found["groups"][1]["state"], "known");
}

/// Tests of one project often have the same function names: two that lose an update of a `balance` in the same
/// lines of a `deposit` are two bugs.
#[test]
fn the_same_functions_in_two_files_are_two_bugs() {
    let workspace = Workspace::new("triage-files");
    for name in ["mutex", "exit_status"] {
        let program = compile(&workspace, name, "buggy");
        record(&workspace, &program, &format!("{name}.trace"));
    }
    let arguments = ["triage", ".", "--no-replay", "--format", "json"];
    let found = json(&workspace.symbiosis(arguments).expect_code(SUCCESS).stdout());
    let groups = found["groups"].as_array().expect("a list");
    assert_eq!(groups.len(), 2, "{found}");
    assert_eq!(groups[0]["variables"], groups[1]["variables"]);
}

/// A trace that cannot be read is told of, and takes nothing from the others.
#[test]
fn a_damaged_trace_leaves_the_others_alone() {
    let workspace = Workspace::new("triage-damaged");
    let program = compile(&workspace, "barrier", "buggy");
    record(&workspace, &program, "traces/good.trace");
    fs::create_dir(workspace.path("traces/bad.trace")).expect("a directory");
    fs::write(workspace.path("traces/bad.trace/manifest.json"), "{").expect("it can be written");
    let arguments = ["triage", "traces", "--no-replay", "--format", "json"];
    let found = json(&workspace.symbiosis(arguments).expect_code(BAD_TRACE).stdout());
    assert_eq!(names(&found["groups"][0]["traces"]), ["traces/good.trace"]);
    assert_eq!(names(&found["unsolved"]), ["traces/bad.trace"]);
    assert_eq!(found["unsolved"][0]["code"], BAD_TRACE);
    let reason = found["unsolved"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("manifest.json"), "{reason}");
}

#[test]
fn places_and_lists_that_are_none_are_named() {
    let workspace = Workspace::new("triage-places");
    let found = workspace.symbiosis(["triage", "nowhere"]).expect_code(BAD_TRACE);
    assert!(found.stderr().contains("nowhere is no directory"), "{}", found.describe());
    fs::create_dir(workspace.path("empty")).expect("a directory");
    let found = workspace.symbiosis(["triage", "empty"]).expect_code(SUCCESS);
    assert_eq!(found.stdout(), "0 failing traces, 0 causes\n");
    fs::write(workspace.path("known"), "queue.c is flaky\n").expect("it can be written");
    let found = workspace.symbiosis(["triage", "empty", "--known", "known"]).expect_code(USAGE);
    assert!(found.stderr().contains("known: neither"), "{}", found.describe());
    assert!(found.stderr().contains("line 1 "), "{}", found.describe());
}
