//! `symbiosis show`, live: what `solve` found is shown again in every format, without solving.

mod trace_processor;

use crate::workspace::Workspace;
use render::Solution;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SUCCESS: i32 = 0;
const UNEXPECTED: i32 = 1;
const BAD_TRACE: i32 = 20;
const TRACE: &str = "failing.trace";

fn recorded(name: &str, fixture: &str) -> Workspace {
    let workspace = Workspace::new(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs").join(fixture);
    let source = source.join("buggy.c");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O1", "-pthread", source, "-o", "buggy"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "--until-failure", "400", "-o", TRACE, "--", "./buggy"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    workspace
}

fn shown(workspace: &Workspace, format: &str) -> String {
    workspace.symbiosis(["show", TRACE, "--format", format]).expect_code(SUCCESS).stdout()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn an_answer_is_shown_again_in_every_format() {
    let workspace = recorded("show-formats", "file_scanner");
    let early = workspace.symbiosis(["show", TRACE]).expect_code(UNEXPECTED);
    assert!(early.stderr().contains("not solved yet"), "{}", early.describe());

    let solve = workspace.symbiosis(["solve", TRACE]).expect_code(SUCCESS);
    assert_eq!(solve.stdout(), shown(&workspace, "text"), "the same text again");
    let solution: Solution = serde_json::from_str(&shown(&workspace, "json")).expect("an answer");
    check_text(&solve.stdout(), &solution);
    check_sarif(&json(&shown(&workspace, "sarif")), &solution);
    check_perfetto(&json(&shown(&workspace, "perfetto")), &solution);
    check_in_trace_processor(&workspace, &shown(&workspace, "perfetto"));
    let mermaid = shown(&workspace, "mermaid");
    assert!(mermaid.starts_with("sequenceDiagram\n"), "{mermaid}");
    assert!(shown(&workspace, "dot").starts_with("digraph"));
    assert!(shown(&workspace, "html").starts_with("<!"));
    workspace
        .symbiosis(["show", TRACE, "--format", "mermaid", "-o", "picture.mmd"])
        .expect_code(SUCCESS);
    let written = fs::read_to_string(workspace.path("picture.mmd")).expect("it is there");
    assert_eq!(written, mermaid);

    let kept = workspace.path(TRACE).join("solution.json");
    let text = fs::read_to_string(&kept).expect("the answer is kept");
    fs::write(&kept, text.replacen(&solution.version, "0.7", 1)).expect("it can be written");
    let other = workspace.symbiosis(["show", TRACE]).expect_code(BAD_TRACE);
    assert!(other.stderr().contains("symbiosis-solution 0.7"), "{}", other.describe());
}

/// The cause comes first, and its lines stand there as the program has them. No terminal, no colour.
fn check_text(text: &str, solution: &Solution) {
    let cause = solution.cause.as_ref().expect("a cause");
    assert!(text.starts_with(&format!("cause: {}\n", cause.sentence)), "{text}");
    assert!(text.contains("assert(queue->filled > 0);"), "{text}");
    assert!(text.contains("holding queue->lock"), "{text}");
    assert!(text.contains("called at buggy.c:"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

fn check_sarif(log: &Value, solution: &Solution) {
    check_schema(log);
    let result = &log["runs"][0]["results"][0];
    let cause = solution.cause.as_ref().expect("a cause");
    assert_eq!(result["ruleId"], cause.pattern.as_str());
    assert_eq!(result["partialFingerprints"]["symbiosisCause/v2"], cause.fingerprint.as_str());
    let flows = result["codeFlows"].as_array().expect("code flows");
    assert_eq!(flows.len(), 2, "failing and alternate");
    for (flow, schedule) in flows.iter().zip([&solution.schedule, &solution.alternates[0].schedule])
    {
        let threads = flow["threadFlows"].as_array().expect("thread flows");
        for thread in threads {
            let name = thread["id"].as_str().expect("a name");
            for step in thread["locations"].as_array().expect("steps") {
                let order = step["executionOrder"].as_u64().expect("a number") as usize;
                let event = solution.event(&schedule[order - 1]).expect("an event");
                assert_eq!(event.thread, name, "step {order}");
                let line = &step["location"]["physicalLocation"]["region"]["startLine"];
                assert_eq!(*line, event.location.line);
            }
        }
    }
}

/// Validates with Python's jsonschema (Debian package python3-jsonschema), where that is installed.
/// The first log is to be right, the second wrong.
const VALIDATE: &str = "\
import json, sys
try:
    import jsonschema
except ImportError:
    sys.exit('skipped')
schema, log = (json.load(open(name)) for name in sys.argv[1:])
validator = jsonschema.Draft7Validator(schema)
errors = [f'{list(error.path)}: {error.message}' for error in validator.iter_errors(log)]
log['runs'][0]['results'][0]['levels'] = 'error'
if not list(validator.iter_errors(log)):
    errors.append('the schema takes what SARIF does not know')
sys.exit('\\n'.join(errors) or None)
";

fn check_schema(log: &Value) {
    let workspace = Workspace::new("show-sarif");
    let file = workspace.path("log.sarif");
    fs::write(&file, log.to_string()).expect("it can be written");
    let output = Command::new("/usr/bin/python3")
        .args(["-c", VALIDATE])
        .args([sarif_schema(), file])
        .output()
        .expect("python3 starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.trim() == "skipped" {
        eprintln!("the schema is not checked: Python's jsonschema is not installed");
        return;
    }
    assert!(output.status.success(), "{said}");
}

/// The schema of SARIF 2.1.0 by OASIS comes with a crate that this workspace names for nothing
/// else, and never builds.
fn sarif_schema() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata = json(&String::from_utf8_lossy(&output.stdout));
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == "serde-sarif");
    let manifest = package.expect("a package")["manifest_path"].as_str().expect("a path");
    Path::new(manifest).with_file_name("src").join("schema.json")
}

/// All events of both schedules are slices of their threads, and data-flows are arrows between
/// slices: what Perfetto's importer of this format asks for.
fn check_perfetto(document: &Value, solution: &Solution) {
    let events = document["traceEvents"].as_array().expect("events");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let slices = of("X");
    let alternate = &solution.alternates[0];
    assert_eq!(slices.len(), solution.schedule.len() + alternate.schedule.len());
    let (starts, ends) = (of("s"), of("f"));
    assert_eq!(starts.len(), ends.len());
    let inside = |end: &Value| {
        let time = end["ts"].as_u64().expect("a time");
        slices.iter().any(|slice| {
            let from = slice["ts"].as_u64().expect("a time");
            let to = from + slice["dur"].as_u64().expect("a duration");
            slice["pid"] == end["pid"] && slice["tid"] == end["tid"] && (from..to).contains(&time)
        })
    };
    assert!(starts.iter().chain(&ends).all(|end| inside(end)), "an arrow between no slices");
    let changed = |process: u64| {
        starts.iter().any(|start| start["cat"] == "data-flow,changed" && start["pid"] == process)
    };
    // What comes from an initial value has no slice to start at, and a thread's own values need no
    // arrow.
    let thread = |id: &str| solution.event(id).map(|event| event.thread.clone());
    let flows = &solution.dsp.as_ref().expect("a projection").data_flows;
    for (process, flows) in [(1, &flows.failing_only), (2, &flows.alternate_only)] {
        let written = flows.iter().any(|flow| {
            thread(&flow.write).is_some_and(|writer| Some(writer) != thread(&flow.read))
        });
        assert_eq!(changed(process), written, "arrows of process {process} for {flows:?}");
    }
}

/// Perfetto's own importer finds all slices and flows, and nothing to complain about.
fn check_in_trace_processor(workspace: &Workspace, document: &str) {
    let trace = workspace.path("perfetto.json");
    fs::write(&trace, document).expect("the trace can be written");
    let query = "select (select count(*) from slice) as slices, (select count(*) from flow) as flows, \
         (select count(*) from thread_track where id in (select track_id from slice)) as tracks, \
         (select coalesce(sum(value), 0) from stats where severity in ('error', 'data_loss')) \
         as errors;";
    let Some(row) = trace_processor::query(&trace, query) else { return };
    let events = json(document);
    let events = events["traceEvents"].as_array().expect("events");
    let of = |phase: &'static str| events.iter().filter(move |event| event["ph"] == phase);
    let place = |event: &Value| (event["pid"].as_u64(), event["tid"].as_u64());
    let tracks: BTreeSet<_> = of("X").map(place).collect();
    let expected = [of("X").count(), of("s").count(), tracks.len(), 0];
    let found = ["slices", "flows", "tracks", "errors"].map(|column| row[column].as_u64());
    assert_eq!(found, expected.map(|count| Some(count as u64)), "{row}");
}

#[test]
fn shells_and_man_know_the_command_line() {
    let workspace = Workspace::new("show-completions");
    for shell in ["bash", "zsh", "fish"] {
        let script = workspace.symbiosis(["completions", shell]).expect_code(SUCCESS).stdout();
        assert!(script.contains("until-failure") && script.contains("perfetto"), "{shell}");
        fs::write(workspace.path(shell), script).expect("it can be written");
    }
    let check = Command::new("bash").args(["-n", "bash"]).current_dir(workspace.path("")).status();
    assert!(check.expect("bash starts").success(), "the script is bash");
    workspace.symbiosis(["man", "-o", "man"]).expect_code(SUCCESS);
    for (page, said) in [("symbiosis.1", "symbiosis"), ("symbiosis-show.1", "sarif")] {
        let path = workspace.path("man").join(page);
        let text = fs::read_to_string(&path).expect("a page");
        assert!(text.contains(".TH") && text.contains(said), "{}", path.display());
    }
    let page = workspace.symbiosis(["man"]).expect_code(SUCCESS).stdout();
    assert!(page.contains(".SH NAME"), "{page}");
}
