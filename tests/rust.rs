//! Programs in Rust, live: built by `symbiosis rustc`, recorded until a panic, explained, and replayed.

use crate::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const SUCCESS: i32 = 0;

/// A crate of programs in `tests/programs/rust`, compiled once for all tests: its library takes most of the time.
struct Programs {
    source: &'static str,
    options: &'static [&'static str],
    built: OnceLock<PathBuf>,
}

impl Programs {
    const fn new(source: &'static str, options: &'static [&'static str]) -> Self {
        Self { source, options, built: OnceLock::new() }
    }

    fn build(&self) -> PathBuf {
        let workspace = Workspace::new(&format!("crate{}", self.options.concat()));
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/rust");
        for entry in fs::read_dir(sources).expect("the programs") {
            let source = entry.expect("a program").path();
            let name = source.file_name().expect("a name").to_str().expect("a name in UTF-8");
            fs::copy(&source, workspace.path(name)).expect("a copy of the source");
        }
        let arguments = ["rustc", "--edition", "2021", self.source, "-o", "program"];
        workspace.symbiosis(arguments.iter().chain(self.options)).expect_code(SUCCESS);
        let program = workspace.path("program");
        // All tests take it from there: the workspace is left as it is.
        std::mem::forget(workspace);
        program
    }

    /// A directory for a test, with a link to the program.
    fn workspace(&self, name: &str) -> Workspace {
        let workspace = Workspace::new(name);
        let program = self.built.get_or_init(|| self.build());
        std::os::unix::fs::symlink(program, workspace.path("program")).expect("a link");
        workspace
    }

    /// The same with a failing run of the program of this name, `run.trace`.
    fn recorded(&self, name: &str) -> Workspace {
        let workspace = self.workspace(name);
        record_failure(&workspace, "run.trace", "60", &[name]);
        workspace
    }
}

static PLAIN: Programs = Programs::new("main.rs", &[]);
static OPTIMISED: Programs = Programs::new("main.rs", &["-O"]);
static TESTS: Programs = Programs::new("tests.rs", &["--test"]);

/// Records runs of the program with these arguments until one fails; one that takes so many seconds hangs.
fn record_failure(workspace: &Workspace, trace: &str, seconds: &str, arguments: &[&str]) -> String {
    let until = ["record", "--noise", "--until-failure", "3000", "--timeout", seconds];
    let command = until.into_iter().chain(["-o", trace, "--", "./program"]);
    workspace.symbiosis(command.chain(arguments.iter().copied())).expect_code(SUCCESS).describe()
}

#[test]
fn locks_conditions_and_queues_work_and_a_caught_panic_is_no_failure() {
    let workspace = PLAIN.workspace("primitives");
    let arguments = ["record", "--noise", "--timeout", "60", "-o", "run.trace", "--", "./program"];
    let recorded =
        workspace.symbiosis(arguments.into_iter().chain(["primitives"])).expect_code(SUCCESS);
    let text = recorded.describe();
    assert!(text.contains("the run passed"), "{text}");
    assert!(recorded.stdout().contains("Ok(5)\nOk(6)\nErr(Empty)\n4\nOk([1])\n"), "{text}");
}

#[test]
fn a_panic_is_placed_explained_and_replayed() {
    let workspace = PLAIN.workspace("account");
    let text = record_failure(&workspace, "run.trace", "60", &["account"]);
    assert!(text.contains("panicked at account.rs:30:5"), "{text}");
    let checked = workspace.symbiosis(["check", "run.trace"]).describe();
    assert!(!checked.contains("STOPPED"), "{checked}");
    // The library's locks are locks: nothing of how they sleep is left.
    assert!(!checked.contains("failure not found"), "{checked}");
    assert!(checked.contains(" 0 gaps "), "{checked}");
    let solved = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).describe();
    assert!(solved.contains("account.rs:30:5 in main, thread t0"), "{solved}");
    assert!(solved.contains("(replay: confirmed)"), "{solved}");
    assert!(solved.contains("cause: t0."), "{solved}");
    assert!(solved.contains("wrote `self.balance` (account.rs:13)"), "{solved}");
    assert!(solved.contains("holding self.balance"), "{solved}");
    assert!(!solved.contains("/rustc/"), "{solved}");
}

/// Along the recorded paths every schedule fails: what a passing run differs in counts, and not how many pointers the
/// library had to something, nor how threads ended.
#[test]
fn a_look_up_that_is_not_one_step_with_the_insertion_is_the_cause() {
    let workspace = PLAIN.workspace("lookup");
    // One recording of some dozens is told by the count that follows from it (docs/real-programs/rust.md).
    let told = ["one.trace", "two.trace"].into_iter().find(|trace| {
        record_failure(&workspace, trace, "60", &["lookup"]);
        let checked = workspace.symbiosis(["check", trace]).describe();
        assert!(checked.contains(" 0 gaps "), "{checked}");
        let solved = workspace.symbiosis(["solve", trace]).expect_code(SUCCESS).describe();
        let cause = solved.lines().find(|line| line.contains("cause: ")).unwrap_or_default();
        assert!(!cause.contains("strong") && !cause.contains("std::"), "{solved}");
        // Which of the accesses in them it names depends on the run.
        cause.contains("(lookup.rs:18)")
    });
    let trace = told.expect("a recording is told by the look and the insertion");
    let fixed = workspace.symbiosis(["fix", trace]).expect_code(SUCCESS).describe();
    let step =
        "; `entry` and `or_insert_with` look (lookup.rs:13) and insert (lookup.rs:18) in one";
    assert!(fixed.contains(step), "{fixed}");
}

/// What the harness notes for itself, such as whether output is captured, comes in another order, too. One of the tests
/// panics before, as it should.
#[test]
fn a_flaky_test_is_told_by_what_the_tests_do() {
    let workspace = TESTS.workspace("flaky");
    // One recording of ten cannot be walked (docs/limits.md).
    let told = ["one.trace", "two.trace", "three.trace"].into_iter().find_map(|trace| {
        record_failure(&workspace, trace, "60", &["flaky::", "--test-threads=2"]);
        let solved = workspace.symbiosis(["solve", trace]).describe();
        solved.contains("(replay: confirmed)").then_some(solved)
    });
    let solved = told.expect("a recording can be walked");
    let cause = solved.lines().find(|line| line.contains("cause: ")).unwrap_or_default();
    assert!(cause.contains("`NOTES.len` (flaky.rs:"), "{solved}");
    assert!(!cause.contains("std::"), "{solved}");
    // The harness catches the panic, so its thread comes to an end. An alternate may be left all the same.
    let is_left = |line: &&str| line.contains("the schedule was left");
    let left = solved.lines().filter(is_left).find(|line| !line.contains("the alternate along"));
    assert_eq!(left, None, "{solved}");
}

/// What a test was given that began behind the panic of another one was never made, as far as is walked.
#[test]
fn tests_that_begin_behind_a_failing_one_are_not_walked() {
    let workspace = TESTS.workspace("one_of_many");
    let record = ["record", "--timeout", "60", "-o", "run.trace", "--", "./program"];
    workspace.symbiosis(record.into_iter().chain(["one_of_many::", "--test-threads=2"]));
    let checked = workspace.symbiosis(["check", "run.trace"]).describe();
    assert!(checked.contains(": failure") && checked.contains(" 0 gaps "), "{checked}");
}

/// LLVM makes one function of what grows vectors of elements of one size, under any of their names.
#[test]
fn a_vector_that_grows_as_one_of_the_symbolisers_is_seen() {
    let workspace = OPTIMISED.recorded("borrowed");
    let checked = workspace.symbiosis(["check", "run.trace"]).describe();
    assert!(checked.contains(" 0 gaps "), "{checked}");
}

/// A variable of a function of the library that came inline, as what an `Arc` is made of, is no name for what the
/// program has in a variable of its own.
#[test]
fn what_an_arc_holds_is_called_as_in_the_program() {
    let workspace = OPTIMISED.recorded("last");
    let solved = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).describe();
    assert!(solved.contains("wrote `self.items.len` (last.rs:"), "{solved}");
    assert!(!solved.contains("ptr."), "{solved}");
}

/// The circle of a lock and a channel that is full: which of the library's variables say so is of no use.
#[test]
fn a_thread_that_waits_at_a_channel_with_a_lock_is_told() {
    let workspace = OPTIMISED.workspace("bounded");
    record_failure(&workspace, "run.trace", "3", &["bounded"]);
    let solved = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).describe();
    let cause = "t0 waits in `send` (bounded.rs:16) while it holds `stats` (bounded.rs:14), for which t0.1 waits \
                 (bounded.rs:22)";
    assert!(solved.contains(cause), "{solved}");
}

/// A look, a branch and a write of an atomic variable: a lock would do, and a compare-exchange is less.
#[test]
fn a_look_and_a_write_of_an_atomic_variable_become_a_compare_exchange() {
    let workspace = PLAIN.recorded("limiter");
    let fixed = workspace.symbiosis(["fix", "run.trace"]).expect_code(SUCCESS).describe();
    let repair = "repair 1: in try_acquire, write `self.tokens` (limiter.rs:22) only while it is still what was looked \
                  at (limiter.rs:18), and look again otherwise: `fetch_update`, or `compare_exchange` in a loop";
    assert!(fixed.contains(repair), "{fixed}");
    assert!(fixed.contains("passed 20 of 20"), "{fixed}");
}

/// A notification wakes one thread, and each wake-up has one, whatever other threads were about to sleep: with one too
/// many no schedule would lead to the failure.
#[test]
fn each_wake_up_of_a_pool_has_its_notification() {
    let workspace = PLAIN.workspace("shut_down");
    for trace in ["one.trace", "two.trace", "three.trace"] {
        record_failure(&workspace, trace, "2", &["shut_down"]);
        let solved = workspace.symbiosis(["solve", trace]).expect_code(SUCCESS).describe();
        let cause = solved.lines().find(|line| line.contains("cause: ")).unwrap_or_default();
        assert!(
            cause.contains("wrote `self.shared.stop` (shut_down.rs:63) and broadcast"),
            "{solved}"
        );
        assert!(solved.contains("(replay: confirmed)"), "{solved}");
    }
}

/// The standard library opens, reads and writes files by calls of C.
#[test]
fn what_stands_in_a_file_is_a_variable() {
    let workspace = PLAIN.recorded("sequence");
    let solved = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).describe();
    assert!(solved.contains("(replay: confirmed)"), "{solved}");
    let cause = solved.lines().find(|line| line.starts_with("cause: ")).unwrap_or_default();
    assert!(cause.contains("the contents of `sequence.txt` (sequence.rs:"), "{solved}");
    // Who reads between the two writes of one thread finds an empty file: then two of the lines are the same.
    assert!(cause.contains("(sequence.rs:9)") && cause.contains("sequence.rs:11"), "{solved}");
}

/// The cause of a run of the program.
fn told(name: &str) -> String {
    let workspace = PLAIN.recorded(name);
    let solved = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).describe();
    let cause = solved.lines().find(|line| line.contains("cause: "));
    cause.unwrap_or_else(|| panic!("{solved}")).to_owned()
}

/// The program gets at what a mutex keeps by a guard that has no name.
#[test]
fn what_a_mutex_keeps_is_called_as_the_mutex() {
    let workspace = PLAIN.recorded("batcher");
    let solve = ["solve", "run.trace", "--no-replay", "--format", "json"];
    let answer = workspace.symbiosis(solve).expect_code(SUCCESS);
    let solution = answer.solution();
    let there = solution.events.iter().filter(|event| event.location.line == 16);
    let names: Vec<_> = there.filter_map(|event| event.object.as_deref()).collect();
    assert!(names.contains(&"self.items"), "{names:?}");
}

/// It stands right behind a mutex that is held.
#[test]
fn what_a_mutex_does_not_keep_is_not_called_as_the_mutex() {
    let cause = told("counted");
    assert!(cause.contains("count` (counted.rs:") && !cause.contains("paid"), "{cause}");
}

/// To others `OnceLock::set` is one step, whatever the library does in it. Asking first and setting then is one in
/// `get_or_init`.
#[test]
fn what_is_asked_for_and_set_then_is_made_in_one_call() {
    let workspace = PLAIN.recorded("set_once");
    let fixed = workspace.symbiosis(["fix", "run.trace"]).expect_code(SUCCESS).describe();
    let cause = fixed.lines().find(|line| line.contains("cause: ")).unwrap_or_default();
    let line = |line: &str| cause.contains(&format!("(set_once.rs:{line})"));
    // The look, or what came behind it; the call is in line 22.
    assert!(line("22") && (line("18") || line("25")), "{fixed}");
    let step = "repair 1: in connection, call `get_or_init` of `CONNECTION` where it is asked for (set_once.rs:18), \
                and make in its closure what is set now (set_once.rs:22)";
    assert!(fixed.contains(step), "{fixed}");
}

/// Whether an earlier one went to wait decides how the run ends, too: no check of another thread is looked for where the
/// failing thread did not look again.
#[test]
fn who_is_woken_and_does_not_look_is_told_before_any_check() {
    let workspace = PLAIN.recorded("woken");
    let fixed = workspace.symbiosis(["fix", "run.trace"]).expect_code(SUCCESS).describe();
    let cause = fixed.lines().find(|line| line.contains("cause: ")).unwrap_or_default();
    assert!(cause.contains("items.len` (woken.rs:25)"), "{fixed}");
    assert!(cause.contains("(woken.rs:22)"), "{fixed}");
    assert!(fixed.contains("wait in a loop, or with `wait_while`"), "{fixed}");
}

/// What the thread does while it unwinds is not walked, so nobody may be walked into what comes of it.
#[test]
fn nothing_is_walked_that_comes_of_unwinding() {
    let workspace = PLAIN.recorded("unwound");
    let checked = workspace.symbiosis(["check", "run.trace"]).describe();
    assert!(checked.contains(" 0 gaps "), "{checked}");
    let solved = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).describe();
    let cause = "t0.1 read `READY` (unwound.rs:19) before t0 wrote it (unwound.rs:24)";
    assert!(solved.contains(cause) && solved.contains("(replay: confirmed)"), "{solved}");
}

/// Whatever came in whichever order, who receives waits as long as a sender is there.
#[test]
fn a_sender_that_is_never_dropped_is_told() {
    let workspace = PLAIN.workspace("kept_end");
    let text = record_failure(&workspace, "run.trace", "2", &["kept_end"]);
    assert!(text.contains("failed"), "{text}");
    let solved = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).describe();
    let waits = "t0 waits in recv of a channel for a message, or until its last sender is dropped";
    assert!(solved.contains(waits), "{solved}");
    let cause = "t0 waits in `recv` (kept_end.rs:18), where no message comes and a sender of the channel is never dropped";
    assert!(solved.contains(cause), "{solved}");
}

/// What the library keeps in a channel is nothing that the program looks at twice.
#[test]
fn a_receiver_that_is_gone_is_told() {
    let workspace = PLAIN.recorded("deaf");
    let solved = workspace.symbiosis(["solve", "run.trace"]).expect_code(SUCCESS).describe();
    let cause = solved.lines().find(|line| line.contains("cause: ")).unwrap_or_default();
    assert!(
        cause.contains("sent (deaf.rs:19) after t0.1 had dropped the other end (deaf.rs:14)"),
        "{solved}"
    );
    // The variable of the library's `drop` is none of the program's.
    assert!(!solved.contains("_x"), "{solved}");
}

/// Nobody knows how a map finds what it keeps.
#[test]
fn a_map_has_its_own_name() {
    let cause = told("sessions");
    assert!(cause.contains("open` (sessions.rs:14)"), "{cause}");
    assert!(!cause.contains("ctrl") && !cause.contains("new_table"), "{cause}");
}
