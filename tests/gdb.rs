//! `symbiosis replay --gdb-batch`, live: gdb stops before every event of the projection, in the
//! order of the schedule, shows the values, and ends at the failure.

use crate::workspace::Workspace;
use render::Solution;

fn debug(fixture: &str, failing: &str) {
    let workspace = Workspace::new(&format!("gdb-{fixture}"));
    let folder = format!("{}/fixtures/programs/{fixture}", env!("CARGO_MANIFEST_DIR"));
    let source = format!("{folder}/buggy.c");
    workspace.symbiosis(["cc", "-g", "-O1", "-pthread", &source, "-o", "buggy"]).expect_code(0);
    let recording = ["record", "-q", "--until-failure", "400", "--timeout", "60"];
    let program = ["-o", "failing.trace", "--", "./buggy"];
    workspace.symbiosis(recording.iter().chain(&program)).expect_code(0);
    let answer = workspace.symbiosis(["solve", "failing.trace", "--format", "json"]).expect_code(0);
    let solution: Solution = serde_json::from_str(&answer.stdout()).expect("an answer in JSON");
    let dsp = solution.dsp.as_ref().expect("a projection");

    let session = workspace.symbiosis(["replay", "failing.trace", "--gdb-batch"]).expect_code(0);
    let text = session.stdout();
    let mut rest = text.as_str();
    for (index, id) in dsp.failing.iter().enumerate() {
        let event = solution.event(id).expect("an event of the projection");
        let header = format!("\n{id} {} ", event.thread);
        let Some((_, behind)) = rest.split_once(&header) else {
            panic!("no stop for {id} in its place in {}", session.describe());
        };
        rest = behind;
        let number = format!("[{} of {}]", index + 1, dsp.failing.len());
        let line = rest.lines().next().unwrap_or("");
        assert!(line.ends_with(&number), "{id}: {line:?} in {}", session.describe());
        if let Some(value) = solution.values_of(id).and_then(|pair| pair.failing.as_ref()) {
            let shown = format!("failing schedule: {value}");
            assert!(rest.lines().nth(1).is_some_and(|line| line.contains(&shown)), "{id}: {text}");
        }
    }
    assert!(rest.contains(failing), "{failing:?} at the end of {}", session.describe());
    let line = format!(":{}", solution.failure.as_ref().expect("a failure").location.line);
    let (_, backtrace) = rest.split_once("\n#0 ").expect("a backtrace");
    assert!(backtrace.contains(&line), "{line} in the backtrace of {}", session.describe());
}

#[test]
fn a_lost_update_is_seen_happening() {
    debug("bank", "the failure: SIGABRT");
}

#[test]
fn a_pointer_is_seen_before_it_is_published() {
    debug("publish", "the failure: SIGSEGV");
}
