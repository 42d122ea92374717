//! What is taken to be the condition of a failure, live.

use crate::workspace::Workspace;
use model::{EventKind, EventTrace, FailureCondition};
use std::path::Path;
use symbiosis::pipeline;

const SUCCESS: i32 = 0;
/// A run ends at the failure, and may not show any more what another thread was about to write: one in six to ten does,
/// fewer on a busy machine.
const RECORDINGS: usize = 200;

fn compile(workspace: &Workspace, source: &str, level: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["c++", "-g", level, "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
}

fn failing_run(workspace: &Workspace, number: usize) -> EventTrace {
    let directory = format!("run{number}.trace");
    let record = ["record", "--noise", "--until-failure", "3000", "-o", &directory, "--"];
    workspace.symbiosis(record.into_iter().chain(["./program"])).expect_code(SUCCESS);
    let loaded = pipeline::load(&workspace.path(&directory)).expect("the trace can be loaded");
    pipeline::execute(&loaded.recording).expect("the trace can be executed").trace
}

/// Does it depend on what another thread wrote that the run failed?
fn depends(trace: &EventTrace) -> bool {
    let failure = trace.failure.as_ref().expect("the failure");
    match failure.condition {
        FailureCondition::Value(condition) => trace.exprs.as_const(condition).is_none(),
        ref other => panic!("{other:?}"),
    }
}

/// Blocks in which calls may throw lie between the branch and the `throw`.
#[test]
fn a_throw_past_destructors_hangs_on_the_branch_that_led_to_it() {
    for level in ["-O0", "-O1", "-O2"] {
        let workspace = Workspace::new(&format!("conditions-throw{level}"));
        compile(&workspace, "fixtures/families/exception_cleanup/buggy.cc", level);
        assert!(depends(&failing_run(&workspace, 0)), "{level}");
    }
}

#[test]
fn a_pure_virtual_call_hangs_on_the_table_of_the_object() {
    for level in ["-O0", "-O2"] {
        let workspace = Workspace::new(&format!("conditions-pure{level}"));
        compile(&workspace, "tests/programs/virtual_call.cc", level);
        let found = (0..RECORDINGS).any(|number| {
            let trace = failing_run(&workspace, number);
            let message = trace.failure.as_ref().map(|failure| failure.message.as_str());
            assert_eq!(message, Some("a pure virtual function was called"), "{level}");
            depends(&trace)
        });
        assert!(found, "{level}: none of {RECORDINGS} runs depends on it");
    }
}

/// Who creates a thread has its handle before the thread begins: glibc writes it first, and a schedule in which somebody saw the
/// variable without it meanwhile could not be followed.
#[test]
fn a_thread_begins_behind_the_write_of_its_handle() {
    let workspace = Workspace::new("conditions-handle");
    compile(&workspace, "tests/programs/kept_handle.c", "-O0");
    let trace = failing_run(&workspace, 0);
    let own = || trace.threads[0].events.iter().map(|id| trace.event(*id));
    let writes = |event: &model::Event| {
        !event.kind.writes().is_empty() && trace.subject(event).is_some_and(|name| name == "worker")
    };
    let written = own().position(writes).expect("the write of the handle");
    let begun = own().rposition(|event| matches!(event.kind, EventKind::Fork { .. }));
    assert_eq!(Some(written + 1), begun);
}
