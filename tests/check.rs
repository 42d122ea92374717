//! `symbiosis check` on passing runs of programs that use much of the language, the library and the
//! synchronisation: every thread is walked to its end, and nothing is left unmodelled.

use crate::workspace::Workspace;
use std::path::Path;

const SUCCESS: i32 = 0;
const NO_SCHEDULE: i32 = 11;

fn check(program: &str, level: &str) {
    let workspace = Workspace::new(&format!("check-{program}{level}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program);
    let source = source.to_str().expect("a path in UTF-8");
    let cxx = program.ends_with(".cc");
    let (compiler, standard) = if cxx { ("c++", "-std=c++17") } else { ("cc", "-std=gnu11") };
    workspace
        .symbiosis([compiler, standard, "-g", level, "-pthread", source, "-lm", "-o", "program"])
        .expect_code(SUCCESS);
    workspace.symbiosis(["record", "-o", "run.trace", "--", "./program"]).expect_code(SUCCESS);
    let outcome = workspace.symbiosis(["check", "run.trace"]).expect_code(SUCCESS);
    assert!(outcome.stdout().contains(" 0 gaps in "), "{}", outcome.describe());
}

macro_rules! programs {
    ($($name:ident: $program:literal,)*) => {
        $(
            mod $name {
                #[test]
                fn unoptimised() {
                    super::check($program, "-O0");
                }

                #[test]
                fn optimised_lightly() {
                    super::check($program, "-O1");
                }

                #[test]
                fn optimised() {
                    super::check($program, "-O2");
                }
            }
        )*
    };
}

programs! {
    assembly: "assembly.c",
    drained_pipe: "drained_pipe.c",
    futex_function: "futex_function.c",
    language: "language.c",
    library_memory: "library_memory.c",
    mappings: "mappings.c",
    reused_heap: "reused_heap.c",
    shared_texts: "shared_texts.c",
    stack_in_freed: "stack_in_freed.c",
    synchronisation: "synchronisation.c",
    standard_library: "standard_library.cc",
}

/// As `head` does when it has seen enough.
#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let workspace = Workspace::new("check-unread");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let doctor = std::process::Command::new(env!("CARGO_BIN_EXE_symbiosis"))
        .arg("doctor")
        .current_dir(workspace.path("."))
        .stdout(writer)
        .output()
        .expect("it runs");
    assert_eq!(String::from_utf8_lossy(&doctor.stderr), "");
    assert!(doctor.status.success(), "{}", doctor.status);
}

/// What a thread does on a stack that the program made is not known: the walk stops, and the answer says so.
#[test]
fn another_stack_is_not_followed_and_that_is_said() {
    let workspace = Workspace::new("check-switched-stack");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/switched_stack.c");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    workspace
        .symbiosis(["record", "--until-failure", "1", "-o", "run.trace", "--", "./program"])
        .expect_code(SUCCESS);
    let outcome = workspace.symbiosis(["check", "run.trace"]).expect_code(NO_SCHEDULE);
    let stopped = "STOPPED: swapcontext goes on on another stack";
    assert_eq!(outcome.stdout().matches(stopped).count(), 2, "{}", outcome.describe());
    let answer = workspace.symbiosis(["solve", "run.trace", "--timeout", "20"]);
    let said = "was followed to switched_stack.c:23 only: swapcontext goes on on another stack";
    assert!(answer.stderr().contains(said), "{}", answer.describe());
}
