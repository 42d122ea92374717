//! Programs in Rust, live: built by `symbiosis rustc`, recorded until a panic, and explained.

#[path = "fixtures/workspace.rs"]
mod workspace;

use std::fs;
use std::path::Path;
use workspace::Workspace;

const SUCCESS: i32 = 0;

/// Compiles the program of this name and records a run of it that fails.
fn record(name: &str) -> Workspace {
    let workspace = Workspace::new(name);
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = format!("{name}.rs");
    fs::copy(programs.join(&source), workspace.path(&source)).expect("a copy of the source");
    let arguments = ["rustc", "--edition", "2021", &source, "-o", "program"];
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    let until = ["record", "--noise", "--until-failure", "3000", "--timeout", "60"];
    let arguments = until.into_iter().chain(["-o", "run.trace", "--", "./program"]);
    let recorded = workspace.symbiosis(arguments).expect_code(SUCCESS);
    let text = recorded.describe();
    assert!(text.contains(&format!("panicked at {source}:")), "{text}");
    workspace
}

#[test]
fn what_led_to_a_panic_is_told() {
    let workspace = record("account");
    let checked = workspace.symbiosis(["check", "run.trace"]).describe();
    assert!(!checked.contains("STOPPED"), "{checked}");
    // The library's locks are locks: nothing of how they sleep is left.
    assert!(!checked.contains("failure not found"), "{checked}");
    // The replay of Rust programs is not asked for (docs/limits.md).
    let solved = workspace.symbiosis(["solve", "--no-replay", "run.trace"]).describe();
    let cause = solved.lines().find(|line| line.contains("possible cause")).unwrap_or_default();
    for word in ["balance", "account.rs:12", "account.rs:13"] {
        assert!(cause.contains(word), "{solved}");
    }
    assert!(solved.contains("panicked at account.rs:30:5"), "{solved}");
}
