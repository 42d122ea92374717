//! Replay, live: every fixture's failing schedule and first alternate, forced on the program again
//! and again; other binaries, missing ones, and schedules that nothing can follow.
//!
//! `SYMBIOSIS_REPLAY_RUNS` raises the number of runs (20).

use crate::workspace::{Outcome, Workspace};
use render::Solution;
use render::solution::Replay;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SUCCESS: i32 = 0;
const USAGE: i32 = 2;
const REPLAY_DIFFERS: i32 = 10;
const BAD_TRACE: i32 = 20;
const WRONG_BINARY: i32 = 21;

/// Runs until a failing run has to come up.
const RECORDED: &str = "2000";
/// No replay of these programs takes longer, on the slowest machine.
const LONG: Duration = Duration::from_secs(120);

fn runs() -> String {
    std::env::var("SYMBIOSIS_REPLAY_RUNS").unwrap_or_else(|_| "20".to_owned())
}

/// A workspace with the fixture's `program` and `failing.trace`.
fn failing(name: &str, level: &str, purpose: &str) -> Workspace {
    let workspace = Workspace::new(&format!("replay-{name}{level}-{purpose}"));
    compile(&workspace, name, level, "program");
    let recording = ["record", "--until-failure", RECORDED, "--timeout", "60"];
    // As the fixture's own annotation asks for.
    let text = fs::read_to_string(source(name).1).expect("the source is there");
    let noise: &[&str] = if text.contains("//~ RARE: noise") { &["--noise"] } else { &[] };
    let program = ["-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(recording.iter().chain(noise).chain(&program)).expect_code(SUCCESS);
    workspace
}

/// The compiler for a fixture, and its buggy source.
fn source(name: &str) -> (&'static str, PathBuf) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs").join(name);
    let c = folder.join("buggy.c");
    if c.exists() { ("cc", c) } else { ("c++", folder.join("buggy.cc")) }
}

fn compile(workspace: &Workspace, name: &str, level: &str, program: &str) {
    let (compiler, source) = source(name);
    let source = source.to_str().expect("a path in UTF-8");
    workspace
        .symbiosis([compiler, "-g", level, "-pthread", source, "-o", program])
        .expect_code(SUCCESS);
}

/// The failing schedule always fails.
fn reproduce(outcome: Outcome) {
    let outcome = outcome.expect_code(SUCCESS);
    let wanted = format!("reproduced {0} of {0}: ", runs());
    assert!(outcome.stdout().starts_with(&wanted), "{}", outcome.describe());
    followed(&outcome);
}

/// The alternate never fails.
fn confirm(outcome: Outcome) {
    let outcome = outcome.expect_code(SUCCESS);
    let wanted = format!("confirmed {0} of {0}: passes ", runs());
    assert!(outcome.stdout().starts_with(&wanted), "{}", outcome.describe());
    followed(&outcome);
}

fn followed(outcome: &Outcome) {
    assert!(!outcome.stdout().contains("was left"), "{}", outcome.describe());
}

/// Are there alternates?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alternates {
    /// Along the recorded paths.
    SamePaths,
    /// Only along others, which tests/fixtures.rs is about.
    OtherPaths,
    /// The program always fails.
    No,
}

/// Both kinds of schedule, and what `solve` says of them.
fn replay_fixture(name: &str, level: &str, alternates: Alternates) {
    let workspace = failing(name, level, "fixture");
    reproduce(workspace.symbiosis(["replay", "failing.trace", "--runs", &runs()]));
    if alternates == Alternates::SamePaths {
        let more = ["replay", "failing.trace", "--alternate", "0", "--runs", &runs()];
        confirm(workspace.symbiosis(more));
    }
    let solution = solve(&workspace, &[]);
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let first = solution.alternates.first();
    match (alternates, first) {
        (Alternates::SamePaths, None) => panic!("no alternate"),
        (Alternates::No, Some(first)) => panic!("an alternate that cannot be: {first:?}"),
        _ => {}
    }
    if let Some(first) = first {
        assert_eq!(first.replay, Replay::Confirmed, "{:?}", first.replay_note);
    }
}

fn solve(workspace: &Workspace, more: &[&str]) -> Solution {
    let mut arguments = vec!["solve", "failing.trace", "--format", "json"];
    arguments.extend_from_slice(more);
    let outcome = workspace.symbiosis(arguments).expect_code(SUCCESS);
    serde_json::from_str(&outcome.stdout()).expect("the answer is a solution")
}

macro_rules! fixtures {
    ($($name:ident: $alternates:ident;)*) => { $(
        mod $name {
            #[test]
            fn o0() {
                super::replay_fixture(stringify!($name), "-O0", super::Alternates::$alternates);
            }

            #[test]
            fn o1() {
                super::replay_fixture(stringify!($name), "-O1", super::Alternates::$alternates);
            }

            #[test]
            fn o2() {
                super::replay_fixture(stringify!($name), "-O2", super::Alternates::$alternates);
            }
        }
    )* };
}

fixtures! {
    bank: SamePaths;
    airline: SamePaths;
    two_stage: SamePaths;
    string_buffer: SamePaths;
    file_scanner: SamePaths;
    crasher: SamePaths;
    cache: SamePaths;
    stack: SamePaths;
    publish: SamePaths;
    courier: SamePaths;
    lazy_table: SamePaths;
    lease: SamePaths;
    averages: SamePaths;
    ring: SamePaths;
    limits: SamePaths;
    settings: OtherPaths;
    drain: OtherPaths;
    always: No;
}

/// Runs `symbiosis` on the first core alone.
fn on_one_core(workspace: &Workspace, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_symbiosis")]).args(arguments);
    command.current_dir(workspace.path(".")).output().expect("taskset is there")
}

#[test]
fn one_core_is_enough() {
    for name in ["bank", "file_scanner"] {
        let workspace = failing(name, "-O1", "one-core");
        for (arguments, word) in [
            (vec!["replay", "failing.trace", "--runs", "20"], "reproduced 20 of 20"),
            (
                vec!["replay", "failing.trace", "--runs", "20", "--alternate", "0"],
                "confirmed 20 of 20",
            ),
        ] {
            let output = on_one_core(&workspace, &arguments);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(text.starts_with(word), "{name}: {text}{errors}");
        }
    }
}

/// A process that does nothing with all its might, until dropped.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> Self {
        let mut command = Command::new("sh");
        let command = command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Self(command.spawn().expect("a shell"))
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_busy_machine_changes_nothing() {
    let _busy = [BusyLoop::start(), BusyLoop::start()];
    for name in ["two_stage", "publish"] {
        let workspace = failing(name, "-O1", "busy");
        reproduce(workspace.symbiosis(["replay", "failing.trace", "--runs", &runs()]));
        let more = ["replay", "failing.trace", "--alternate", "0", "--runs", &runs()];
        confirm(workspace.symbiosis(more));
    }
}

#[test]
fn another_binary_is_refused() {
    let workspace = failing("bank", "-O1", "wrong-binary");
    compile(&workspace, "two_stage", "-O1", "other");
    let outcome = workspace
        .symbiosis(["replay", "failing.trace", "--program", "other"])
        .expect_code(WRONG_BINARY);
    assert!(outcome.stderr().contains("other"), "{}", outcome.describe());
    let outcome = workspace
        .symbiosis(["replay", "failing.trace", "--program", "/bin/true"])
        .expect_code(WRONG_BINARY);
    assert!(outcome.stderr().contains("not instrumented"), "{}", outcome.describe());
    // The same program at another level is another program; linked anew it is the same.
    compile(&workspace, "bank", "-O0", "other");
    workspace
        .symbiosis(["replay", "failing.trace", "--program", "other"])
        .expect_code(WRONG_BINARY);
}

#[test]
fn without_the_program_its_copy_is_run() {
    let workspace = failing("bank", "-O1", "copy");
    fs::remove_file(workspace.path("program")).expect("the program can be removed");
    reproduce(workspace.symbiosis(["replay", "failing.trace", "--runs", &runs()]));
    // Something else at its place is not taken for it.
    fs::write(workspace.path("program"), "#!/bin/sh\nexit 0\n").expect("a file can be written");
    reproduce(workspace.symbiosis(["replay", "failing.trace", "--runs", &runs()]));
    assert_eq!(solve(&workspace, &[]).replay, Replay::Confirmed);

    let copy = workspace.path("failing.trace/program.zst");
    let mut bytes = fs::read(&copy).expect("the copy is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&copy, &bytes).expect("the copy can be damaged");
    let outcome = workspace.symbiosis(["replay", "failing.trace"]).expect_code(BAD_TRACE);
    assert!(outcome.stderr().contains("program.zst"), "{}", outcome.describe());
    // For `solve` that is a pity and nothing more.
    let solution = solve(&workspace, &[]);
    assert_eq!(solution.replay, Replay::NotRun);
    assert!(solution.replay_notes[0].contains("program.zst"), "{:?}", solution.replay_notes);
}

#[test]
fn a_working_directory_that_is_gone_is_named() {
    let workspace = Workspace::new("replay-directory");
    compile(&workspace, "always", "-O1", "program");
    fs::create_dir(workspace.path("there")).expect("a directory can be made");
    let status = Command::new(env!("CARGO_BIN_EXE_symbiosis"))
        .args(["record", "-o", "../failing.trace", "--", "../program"])
        .current_dir(workspace.path("there"))
        .output()
        .expect("the symbiosis binary starts");
    assert!(!status.status.success(), "the negative control fails always");
    reproduce(workspace.symbiosis(["replay", "failing.trace", "--runs", &runs()]));
    fs::remove_dir(workspace.path("there")).expect("the directory can be removed");
    let outcome = workspace.symbiosis(["replay", "failing.trace"]).expect_code(USAGE);
    assert!(outcome.stderr().contains("there"), "{}", outcome.describe());
    assert!(outcome.stderr().contains("--directory"), "{}", outcome.describe());
    let elsewhere = ["replay", "failing.trace", "--directory", ".", "--runs", &runs()];
    reproduce(workspace.symbiosis(elsewhere));
}

#[test]
fn nobody_asked_for_means_not_run() {
    let workspace = failing("two_stage", "-O1", "not-asked");
    let solution = solve(&workspace, &["--no-replay"]);
    assert_eq!(solution.replay, Replay::NotRun);
    assert!(solution.replay_notes.is_empty());
    assert_eq!(solution.alternates[0].replay, Replay::NotRun);
    let text = workspace.symbiosis(["solve", "failing.trace"]).expect_code(SUCCESS).stdout();
    assert_eq!(text.matches("replay: confirmed").count(), 2, "{text}");
}

#[test]
fn a_printed_schedule_can_be_followed() {
    let workspace = failing("stack", "-O1", "printed");
    let printed = workspace.symbiosis(["replay", "failing.trace", "--print-schedule", "--quiet"]);
    let schedule = printed.expect_code(SUCCESS).stdout();
    fs::write(workspace.path("schedule"), schedule).expect("the schedule can be written");
    let arguments = ["replay", "failing.trace", "--schedule", "schedule", "--runs", &runs()];
    reproduce(workspace.symbiosis(arguments));
    fs::write(workspace.path("schedule"), "symbiosis-schedule 1\nt0 >\n").expect("written");
    let outcome = workspace.symbiosis(arguments).expect_code(USAGE);
    assert!(outcome.stderr().contains("line 2"), "{}", outcome.describe());
}

/// Follows a schedule that leads nowhere, and gives what was said of it.
fn follow(workspace: &Workspace, schedule: &str) -> Outcome {
    fs::write(workspace.path("schedule"), schedule).expect("the schedule can be written");
    let began = Instant::now();
    let arguments =
        ["replay", "failing.trace", "--schedule", "schedule", "--patience", "1", "--timeout", "60"];
    let outcome = workspace.symbiosis(arguments);
    assert!(began.elapsed() < LONG, "{}", outcome.describe());
    outcome
}

#[test]
fn where_a_schedule_was_left_is_said() {
    let workspace = failing("bank", "-O1", "left");
    // A thread is to come by the same place far more often than it does.
    let printed = workspace
        .symbiosis(["replay", "failing.trace", "--print-schedule", "--quiet"])
        .expect_code(SUCCESS)
        .stdout();
    let turns: Vec<&str> = printed.lines().collect();
    let at = turns
        .iter()
        .position(|line| line.starts_with("t0.") && !line.contains("> $"))
        .expect("the lost update needs a turn that ends before the thread does");
    let mut words = turns[at].split_whitespace();
    let thread = words.next().expect("a turn has a thread");
    let site = words.nth(1).expect("a turn has a site");
    let mut changed: Vec<String> = turns.iter().map(ToString::to_string).collect();
    changed[at] = format!("{thread} > {site} @100000");
    let outcome = follow(&workspace, &format!("{}\n", changed.join("\n")));
    let line = format!("line {}", at + 1);
    assert!(outcome.stderr().contains(&line), "no {line} in {}", outcome.describe());
    assert!(outcome.stderr().contains(thread), "{}", outcome.describe());
    assert!(
        outcome.stdout().contains("the schedule was left in 1 of the runs"),
        "{}",
        outcome.describe()
    );
}

#[test]
fn impossible_schedules_come_to_an_end() {
    let workspace = failing("file_scanner", "-O1", "impossible");
    for turns in [
        // The creator cannot end before the threads that it joins.
        "t0 > $\nt0.1 > $\n",
        // No such thread.
        "t0.77 > ~start\nt0 > $\n",
        // No such place.
        "t0.1 > nowhere.c:nobody:read:nothing\nt0 > $\n",
        // Held back for ever.
        "t0.1 > ~mutex_unlock\nt0.2 !\n",
    ] {
        for end in ["", "end hold\n"] {
            let outcome = follow(&workspace, &format!("symbiosis-schedule 1\n{end}{turns}"));
            let code = outcome.code();
            assert!([SUCCESS, REPLAY_DIFFERS].contains(&code), "{turns}{}", outcome.describe());
        }
    }
}

#[test]
fn the_order_of_a_run_under_pct_needs_no_solver() {
    let workspace = Workspace::new("replay-observed");
    compile(&workspace, "bank", "-O1", "program");
    let recording = ["record", "-q", "--noise=pct", "--until-failure", RECORDED];
    let program = ["-o", "failing.trace", "--", "./program"];
    workspace.symbiosis(recording.iter().chain(&program)).expect_code(SUCCESS);
    let outcome = workspace.symbiosis(["replay", "failing.trace", "--observed", "--runs", "20"]);
    assert!(outcome.stdout().starts_with("reproduced 20 of 20"), "{}", outcome.describe());
    // Threads that ran freely have no order that anybody knows.
    let free = ["record", "-q", "--until-failure", RECORDED];
    let program = ["-o", "free.trace", "--", "./program"];
    workspace.symbiosis(free.iter().chain(&program)).expect_code(SUCCESS);
    let outcome = workspace.symbiosis(["replay", "free.trace", "--observed"]).expect_code(2);
    assert!(outcome.stderr().contains("--noise=pct"), "{}", outcome.describe());
}

/// Threads that the C library makes for a timer are recorded, and made to follow a schedule, although nobody knows when
/// they will come.
#[test]
fn the_threads_of_a_timer_are_followed() {
    let workspace = Workspace::new("third_ring");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/third_ring.c");
    let source = source.to_str().expect("a path in UTF-8");
    let compile = ["cc", "-g", "-O1", "-pthread", source, "-o", "program"];
    workspace.symbiosis(compile).expect_code(SUCCESS);
    let record = ["record", "--until-failure", "20", "-o", "x.trace", "--", "./program"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let outcome =
        workspace.symbiosis(["solve", "x.trace", "--format", "json"]).expect_code(SUCCESS);
    let solution: Solution = serde_json::from_str(&outcome.stdout()).expect("a solution");
    let cause = solution.cause.as_ref().expect("a sentence about the cause");
    let of_timer = cause.sentence.starts_with("t0.1");
    assert!(
        of_timer && cause.sentence.contains(" wrote `connection->open` "),
        "{}",
        cause.sentence
    );
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    assert!(solution.replay_notes.is_empty(), "{:?}", solution.replay_notes);
}
