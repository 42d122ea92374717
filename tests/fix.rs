//! `symbiosis fix`, live: every fixture that says what an acceptable first repair is
//! (`//~ REPAIR:`, fixtures/README.md) is compiled, recorded and solved, and the first repair offered
//! has to be that one, with its checks passed. The fixtures are found, not listed.

#[path = "fixtures/annotations.rs"]
mod annotations;
#[path = "fixtures/workspace.rs"]
mod workspace;

use annotations::Annotations;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use workspace::Workspace;

const SUCCESS: i32 = 0;
/// No repair passed its checks.
const NO_REPAIR: i32 = 11;

/// Compiles and records a buggy program; the trace is `failing.trace`.
fn record(workspace: &Workspace, source: &Path, annotations: &Annotations) {
    let plus_plus = source.extension().is_some_and(|extension| extension == "cc");
    let (compiler, copy) = if plus_plus { ("c++", "program.cc") } else { ("cc", "program.c") };
    fs::copy(source, workspace.path(copy)).expect("the source can be copied");
    let arguments = [compiler, "-g", "-O1", "-pthread", copy, "-o", "program"];
    let flags = annotations.flags.iter().map(String::as_str);
    workspace.symbiosis(arguments.into_iter().chain(flags)).expect_code(SUCCESS);
    let mut arguments = vec!["record", "--until-failure", "3000"];
    if !annotations.record.iter().any(|option| option == "--timeout") {
        arguments.extend(["--timeout", "60"]);
    }
    if annotations.noise {
        arguments.push("--noise");
    }
    arguments.extend(annotations.record.iter().map(String::as_str));
    arguments.extend(["-o", "failing.trace", "--", "./program"]);
    workspace.symbiosis(arguments).expect_code(SUCCESS);
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Fails the test unless the repair passed every check.
fn check_checks(repair: &Value) {
    let checks = &repair["checks"];
    assert!(checks["unsatisfiable_constraints"].as_u64() > Some(0), "{repair}");
    assert_eq!(checks["no_new_deadlock"], true, "{repair}");
    // With its order enforced the program gets through the failing schedule every time.
    if let Some(replay) = checks.get("replay") {
        assert_eq!(replay["runs"], 5, "{repair}");
        assert_eq!(replay["passed"], 5, "{repair}");
    }
}

fn first_repair(name: &str, source: &Path, annotations: &Annotations) {
    let workspace = Workspace::new(&format!("fix-{name}"));
    record(&workspace, source, annotations);
    let fix = ["fix", "failing.trace", "--timeout", "120", "--runs", "5", "--format", "json"];
    let answer = workspace.symbiosis(fix).expect_code(SUCCESS);
    let fixes: Value = serde_json::from_str(&answer.stdout()).expect("an answer in JSON");
    assert_eq!(fixes["format"], "symbiosis-fixes");
    let repairs = fixes["repairs"].as_array().expect("a list of repairs");
    repairs.iter().for_each(check_checks);
    let first = &repairs[0];
    assert!(
        first["checks"].get("replay").is_some()
            || first["kind"] == "broadcast"
            || first["kind"] == "test-again",
        "not replayed: {first}"
    );
    let mut names = strings(&first["variables"]);
    if first["lock"]["new"] == false {
        names.extend(first["lock"]["name"].as_str());
    }
    let places = first["places"].as_array().into_iter().flatten();
    let lines: Vec<u32> = places
        .flat_map(|place| [&place["first"], &place["last"]])
        .filter_map(|line| u32::try_from(line.as_u64()?).ok())
        .collect();
    annotations.check_repair(first["kind"].as_str().unwrap_or_default(), &names, &lines);
    // The text says the same, with the source.
    let text = workspace
        .symbiosis(["fix", "failing.trace", "--repairs", "1", "--runs", "0"])
        .expect_code(SUCCESS);
    for step in strings(&first["steps"]) {
        assert!(text.stdout().contains(step), "no `{step}` in {}", text.describe());
    }
    assert!(text.stdout().contains("//~ REPAIR"), "no source in {}", text.describe());
}

/// Where every schedule fails, no change of the order helps, and nothing is offered.
fn nothing_for_a_bug_without_schedule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs/always");
    let source = folder.join("buggy.c");
    let text = fs::read_to_string(&source).expect("the source can be read");
    let annotations = annotations::parse(&text).expect("well-formed annotations");
    let workspace = Workspace::new("fix-always");
    record(&workspace, &source, &annotations);
    let answer = workspace.symbiosis(["fix", "failing.trace"]).expect_code(NO_REPAIR);
    assert!(answer.stdout().contains("no repair: "), "{}", answer.describe());
}

/// The sources of buggy programs with a repair in their annotations, by the name of their folder.
fn annotated() -> Vec<(String, PathBuf, Annotations)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found = Vec::new();
    for room in ["programs", "families"] {
        for entry in fs::read_dir(fixtures.join(room)).expect("the fixtures can be listed") {
            let folder = entry.expect("a directory entry").path();
            for source in ["buggy.c", "buggy.cc"].map(|name| folder.join(name)) {
                let Ok(text) = fs::read_to_string(&source) else { continue };
                let annotations = annotations::parse(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}", source.display()));
                if !annotations.repairs.is_empty() {
                    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
                    found.push((name.unwrap_or_default(), source, annotations));
                }
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = annotated()
        .into_iter()
        .map(|(name, source, annotations)| {
            let test = format!("{name}::the_first_repair_is_acceptable");
            Trial::test(test, move || -> Result<(), Failed> {
                first_repair(&name, &source, &annotations);
                Ok(())
            })
        })
        .collect();
    trials.push(Trial::test("always::nothing_is_offered", || {
        nothing_for_a_bug_without_schedule();
        Ok(())
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}
