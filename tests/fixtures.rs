//! Every fixture, live: compile it, record a failing run, solve the trace, and compare the answer
//! with the program's annotations, at each optimisation level. `fixtures/README.md` says what the
//! fixtures are.

#[path = "fixtures/annotations.rs"]
mod annotations;
#[path = "fixtures/chance.rs"]
mod chance;
#[path = "fixtures/expectations.rs"]
mod expectations;
#[path = "fixtures/workspace.rs"]
mod workspace;

use annotations::Annotations;
use chance::also_on_other_runs;
use render::Solution;
use std::fs;
use std::path::{Path, PathBuf};
use workspace::Workspace;

/// Runs until a failure or a passing run has to come up. The rarest comes in one run of ten.
const RUNS: u32 = 400;
/// As `RUNS`, for the programs that are recorded under noise; it finds the rarest in one run of
/// fifty.
const NOISY_RUNS: u32 = 2000;
/// More events than this are long.
const LONG: u64 = 10_000;
/// Runs that a fixed twin must survive, per optimisation level.
const FIXED_RUNS: u32 = 200;
/// Seconds for one run of a program, which ends in hundredths of one, and for a solve in a debug build.
const TIME_OUT: &str = "60";

const SUCCESS: i32 = 0;
/// All runs of `record --until-failure` passed.
const NO_FAILURE: i32 = 12;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// Some schedule along the same paths avoids the failure.
    Avoidable,
    /// Every schedule along the same paths fails; the way out takes other branches.
    OtherPaths,
    /// Avoidable, but of so many events that a debug build cannot solve it in the time of a test.
    Long,
    /// Every schedule fails.
    Unavoidable,
}

struct Fixture {
    name: &'static str,
    level: &'static str,
    nature: Nature,
}

impl Fixture {
    /// The source of the `buggy` or the `fixed` program.
    fn source(&self, variant: &str) -> PathBuf {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs").join(self.name);
        let candidates =
            ["c", "cc"].map(|extension| folder.join(variant).with_extension(extension));
        let found = candidates.iter().find(|path| path.exists());
        found.unwrap_or_else(|| panic!("no {variant} program in {}", folder.display())).clone()
    }

    fn annotations(&self) -> Annotations {
        let path = self.source("buggy");
        let text = fs::read_to_string(&path).expect("the fixture can be read");
        annotations::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn workspace(&self, purpose: &str) -> Workspace {
        Workspace::new(&format!("{}{}-{purpose}", self.name, self.level))
    }

    fn compile(&self, workspace: &Workspace, variant: &str) {
        let source = self.source(variant);
        let compiler = if source.extension().is_some_and(|e| e == "cc") { "c++" } else { "cc" };
        let source = source.to_str().expect("a path in UTF-8");
        let arguments = [compiler, "-g", self.level, "-pthread", source, "-o", variant];
        workspace.symbiosis(arguments).expect_code(SUCCESS);
    }
}

/// Failing runs to record until one has an alternate along its own paths that undoes little.
const RECORDINGS: u32 = 4;

/// Compiles and records the buggy program, and checks the answer about the failing run.
fn explain_failure(fixture: &Fixture, ending: &str) {
    let workspace = fixture.workspace(&format!("failing{ending}"));
    fixture.compile(&workspace, "buggy");
    let annotations = fixture.annotations();
    for recording in 1.. {
        record_failure(&workspace, &annotations);
        if fixture.nature == Nature::Long {
            check_length(&workspace);
            return;
        }
        let solution = solve(&workspace);
        match fixture.nature {
            // A run in which it went wrong twice has twice as much to undo.
            Nature::Avoidable
                if recording < RECORDINGS
                    && (expectations::is_spoilt(&solution)
                        || !annotations.has_few_operations(&solution)) =>
            {
                fs::remove_dir_all(workspace.path("failing.trace")).expect("the trace is there");
                continue;
            }
            Nature::Avoidable | Nature::Long => {
                expectations::check_solution(&solution, &annotations);
            }
            Nature::OtherPaths => expectations::check_other_paths(&solution, &annotations),
            Nature::Unavoidable => {
                let text =
                    workspace.symbiosis(["solve", "failing.trace"]).expect_code(SUCCESS).stdout();
                expectations::check_negative_control(&solution, &text, &annotations);
            }
        }
        return;
    }
}

fn solve(workspace: &Workspace) -> Solution {
    workspace
        .symbiosis(["solve", "failing.trace", "--timeout", TIME_OUT, "--format", "json"])
        .expect_code(SUCCESS)
        .solution()
}

/// The failing run is long, and executed without gaps.
fn check_length(workspace: &Workspace) {
    let report = workspace.symbiosis(["check", "failing.trace"]).expect_code(SUCCESS);
    let text = report.stdout();
    let words: Vec<&str> = text.split_whitespace().collect();
    let place = words.iter().position(|word| word.starts_with("events")).expect("a sum");
    let events: u64 = words[place - 1].parse().expect("a number of events");
    assert!(events > LONG && text.contains(" 0 gaps"), "{}", report.describe());
}

fn record_failure(workspace: &Workspace, annotations: &Annotations) {
    let runs = if annotations.noise { NOISY_RUNS } else { RUNS }.to_string();
    let noise: &[&str] = if annotations.noise { &["--noise"] } else { &[] };
    let recording = ["record", "--until-failure", &runs, "--timeout", TIME_OUT];
    let program = ["-o", "failing.trace", "--", "./buggy"];
    let arguments = recording.iter().chain(noise).chain(&program);
    workspace.symbiosis(arguments).expect_code(SUCCESS);
}

/// Executes a passing run symbolically: every thread to its end, and nothing that is not modelled.
fn check_passing_run(fixture: &Fixture, variant: &str) {
    let workspace = fixture.workspace("passing");
    fixture.compile(&workspace, variant);
    let trace = record_pass(&workspace, variant);
    let report = workspace.symbiosis(["check", &trace]).expect_code(SUCCESS);
    assert!(report.stdout().contains(" 0 gaps"), "{}", report.describe());
}

/// Records run after run until one passes, and returns its trace.
fn record_pass(workspace: &Workspace, variant: &str) -> String {
    let program = format!("./{variant}");
    for run in 0..RUNS {
        let trace = format!("run{run}.trace");
        if workspace.symbiosis(["record", "-o", &trace, "--", &program]).code() == SUCCESS {
            return trace;
        }
        fs::remove_dir_all(workspace.path(&trace)).expect("the failing run's trace is there");
    }
    panic!("{variant} failed {RUNS} times in a row");
}

/// The fixed twin does not fail.
fn survive(fixture: &Fixture) {
    let workspace = fixture.workspace("fixed");
    fixture.compile(&workspace, "fixed");
    let runs = FIXED_RUNS.to_string();
    let recording = ["record", "--until-failure", &runs, "--timeout", TIME_OUT];
    let program = ["-o", "fixed.trace", "--", "./fixed"];
    workspace.symbiosis(recording.iter().chain(&program)).expect_code(NO_FAILURE);
    assert!(!workspace.path("fixed.trace").exists(), "a trace of a run that passed was kept");
}

macro_rules! fixtures {
    ($($name:ident: $nature:ident, passing run of $passing:literal;)*) => { $(
        mod $name {
            use super::*;

            fixtures!(@level o0, $name, $nature, $passing, "-O0");
            fixtures!(@level o1, $name, $nature, $passing, "-O1");
            fixtures!(@level o2, $name, $nature, $passing, "-O2");
        }
    )* };
    (@level $level:ident, $name:ident, $nature:ident, $passing:literal, $flag:literal) => {
        mod $level {
            use super::*;

            const FIXTURE: Fixture = Fixture {
                name: stringify!($name),
                level: $flag,
                nature: Nature::$nature,
            };

            #[test]
            fn failing_run_is_explained() {
                also_on_other_runs(|ending| explain_failure(&FIXTURE, ending));
            }

            #[test]
            fn passing_run_is_executed_without_gaps() {
                check_passing_run(&FIXTURE, $passing);
            }

            #[test]
            fn fixed_twin_does_not_fail() {
                survive(&FIXTURE);
            }
        }
    };
}

fixtures! {
    bank: Avoidable, passing run of "buggy";
    airline: Avoidable, passing run of "buggy";
    two_stage: Avoidable, passing run of "buggy";
    string_buffer: Avoidable, passing run of "buggy";
    file_scanner: Avoidable, passing run of "buggy";
    crasher: Avoidable, passing run of "buggy";
    cache: Avoidable, passing run of "buggy";
    stack: Avoidable, passing run of "buggy";
    publish: Avoidable, passing run of "buggy";
    settings: OtherPaths, passing run of "buggy";
    drain: OtherPaths, passing run of "buggy";
    courier: Avoidable, passing run of "buggy";
    lazy_table: Avoidable, passing run of "buggy";
    lease: Avoidable, passing run of "buggy";
    averages: Avoidable, passing run of "buggy";
    ring: Avoidable, passing run of "buggy";
    limits: Avoidable, passing run of "buggy";
    shards: Long, passing run of "buggy";
    // The buggy program of the negative control never passes.
    always: Unavoidable, passing run of "fixed";
}

/// A folder that nobody lists would be a fixture that nobody tests.
#[test]
fn all_fixtures_are_listed() {
    let this_file = include_str!("fixtures.rs");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs");
    for entry in fs::read_dir(folder).expect("the fixtures are there") {
        let name = entry.expect("a directory entry").file_name();
        let name = name.to_str().expect("a name in UTF-8");
        assert!(this_file.contains(&format!("\n    {name}: ")), "{name} is not tested");
    }
}

/// The test's outcome when its runs go as told; whether it passes.
fn passes(runs: [bool; 3]) -> bool {
    let test = |ending: &str| {
        let run = ["", "-second", "-third"].iter().position(|known| *known == ending);
        assert!(runs[run.expect("a known ending")], "this run shows something else");
    };
    std::panic::catch_unwind(|| also_on_other_runs(test)).is_ok()
}

#[test]
fn one_run_that_is_not_understood_is_forgiven_and_no_more() {
    assert!(passes([true, false, false]), "the others are not made");
    assert!(passes([false, true, true]));
    assert!(!passes([false, true, false]) && !passes([false, false, true]));
    assert!(!passes([false; 3]));
}
