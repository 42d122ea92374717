//! Every family of synchronisation and every kind of failure, live: each folder of
//! `fixtures/families` is compiled, recorded, solved and replayed, and the answer and the first repair
//! compared with the program's annotations (`fixtures/README.md`). The folders are found, not listed.
//!
//! `SYMBIOSIS_FAMILY_LEVELS` gives the optimisation levels (several with spaces between; otherwise
//! `-O1`, and `-O0` for the standard library of C++), `SYMBIOSIS_REPLAY_RUNS` the number of replays (3),
//! and `SYMBIOSIS_FAMILY_TABLE` the name of a Markdown file to write the results to (docs/families.md was
//! written that way).

#[path = "fixtures/annotations.rs"]
mod annotations;
#[path = "fixtures/chance.rs"]
mod chance;
#[path = "fixtures/repairs.rs"]
mod repairs;
#[path = "families/report.rs"]
mod report;
#[path = "fixtures/workspace.rs"]
mod workspace;

use annotations::{Access, Annotations};
use chance::also_on_other_runs;
use libtest_mimic::{Arguments, Failed, Trial};
use render::Solution;
use render::solution::{Replay, Verdict};
use report::{Report, Row};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{env, fs};
use workspace::Workspace;

/// Runs until a failure has to come up.
const RUNS: &str = "3000";
/// Runs that a fixed twin must survive; the failing schedule is tried on it besides.
const FIXED_RUNS: &str = "20";
/// So many failing runs are recorded until one shows a repair: `inbox` does in four of five, `omp_taskwait` in
/// two of three.
const RECORDINGS: usize = 4;
/// Seconds for a run of a program that does not say otherwise, and for a solve in a debug build.
const TIME_OUT: &str = "60";

const SUCCESS: i32 = 0;
/// All runs of `record --until-failure` passed.
const NO_FAILURE: i32 = 12;

/// A folder of `fixtures/families`.
struct Family {
    name: String,
    level: String,
    folder: PathBuf,
    /// Where its programs were compiled, which the tests share.
    buggy: OnceLock<Workspace>,
    fixed: OnceLock<Workspace>,
}

impl Family {
    fn new(folder: &Path, level: &str) -> Self {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        Self {
            name: name.unwrap_or_default(),
            level: level.to_owned(),
            folder: folder.to_owned(),
            buggy: OnceLock::new(),
            fixed: OnceLock::new(),
        }
    }

    fn source(&self, variant: &str) -> PathBuf {
        let candidates =
            ["c", "cc"].map(|extension| self.folder.join(variant).with_extension(extension));
        let found = candidates.iter().find(|path| path.exists());
        found.unwrap_or_else(|| panic!("no {variant} in {}", self.folder.display())).clone()
    }

    fn annotations(&self) -> Annotations {
        let path = self.source("buggy");
        let text = fs::read_to_string(&path).expect("the source can be read");
        annotations::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Puts the program into the workspace.
    fn compile(&self, workspace: &Workspace, variant: &str) {
        let built = if variant == "fixed" { &self.fixed } else { &self.buggy };
        let built = built.get_or_init(|| self.build(variant));
        fs::copy(built.path(variant), workspace.path(variant)).expect("a program can be copied");
    }

    fn build(&self, variant: &str) -> Workspace {
        let workspace = Workspace::new(&format!("family-{}{}-{variant}", self.name, self.level));
        let source = self.source(variant);
        let plus_plus = source.extension().is_some_and(|extension| extension == "cc");
        let (compiler, copy) = if plus_plus { ("c++", "program.cc") } else { ("cc", "program.c") };
        // Schedules name places by their files: the twins have to be of one name.
        fs::copy(&source, workspace.path(copy)).expect("the source can be copied");
        let flags = self.annotations().flags;
        let arguments = [compiler, "-g", &self.level, "-pthread", copy, "-o", variant];
        let flags: Vec<String> = flags.into_iter().flat_map(expanded).collect();
        let flags = flags.iter().map(String::as_str);
        workspace.symbiosis(arguments.into_iter().chain(flags)).expect_code(SUCCESS);
        workspace
    }
}

/// What an option stands for: `pkg-config:NAME` for those that the package needs.
fn expanded(flag: String) -> Vec<String> {
    let Some(package) = flag.strip_prefix("pkg-config:") else { return vec![flag] };
    let output = Command::new("pkg-config").args(["--cflags", "--libs", package]).output();
    let output = output.expect("pkg-config starts");
    assert!(output.status.success(), "{package}: {output:?}");
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

/// What `record` is to be called with, before the program.
fn recording(annotations: &Annotations, runs: &str) -> Vec<String> {
    let mut arguments = vec!["record", "--until-failure", runs];
    if !annotations.record.iter().any(|option| option == "--timeout") {
        arguments.extend(["--timeout", TIME_OUT]);
    }
    if annotations.noise {
        arguments.push("--noise");
    }
    let arguments = arguments.into_iter().map(str::to_owned);
    arguments.chain(annotations.record.iter().cloned()).collect()
}

/// Records, solves and replays the buggy program; under the failing schedule the fixed one does not
/// fail. `None` where no repair is offered for this run and one is right.
fn explain(family: &Family, ending: &str) -> Option<Row> {
    let annotations = family.annotations();
    let (name, level) = (&family.name, &family.level);
    let workspace = Workspace::new(&format!("family-{name}{level}-failing{ending}"));
    family.compile(&workspace, "buggy");
    let mut arguments = recording(&annotations, RUNS);
    arguments.extend(["-o", "failing.trace", "--", "./buggy"].map(str::to_owned));
    workspace.symbiosis(arguments).expect_code(SUCCESS);
    let answer = workspace
        .symbiosis(["solve", "failing.trace", "--timeout", TIME_OUT, "--format", "json"])
        .expect_code(SUCCESS);
    let solution = answer.solution();
    // The recorded run is a failing schedule itself, and agrees with its own clock and log.
    let contradicted = answer.stderr().contains("agrees with the times");
    assert!(!contradicted, "{}", answer.describe());
    check(&solution, &annotations);
    let runs = env::var("SYMBIOSIS_REPLAY_RUNS").unwrap_or_else(|_| "3".to_owned());
    let failing = ["replay", "failing.trace", "--runs", &runs];
    let failing = workspace.symbiosis(failing).expect_code(SUCCESS);
    assert!(
        failing.stdout().starts_with(&format!("reproduced {runs} of {runs}: ")),
        "{}",
        failing.describe()
    );
    let alternate = ["replay", "failing.trace", "--alternate", "0", "--runs", &runs];
    let alternate = workspace.symbiosis(alternate).expect_code(SUCCESS);
    assert!(
        alternate.stdout().starts_with(&format!("confirmed {runs} of {runs}: ")),
        "{}",
        alternate.describe()
    );
    survive_schedule(family, &workspace);
    repairs::check(&workspace, &annotations, "1", &runs)?;
    Some(Row::new(&family.name, &family.level, &annotations, &solution, &runs))
}

/// The fixed program gets through the schedule under which the buggy one fails.
fn survive_schedule(family: &Family, workspace: &Workspace) {
    family.compile(workspace, "fixed");
    let schedule = ["replay", "failing.trace", "--print-schedule", "--quiet"];
    let schedule = workspace.symbiosis(schedule).expect_code(SUCCESS).stdout();
    let file = workspace.path("failing.schedule");
    fs::write(&file, schedule).expect("the schedule can be written");
    let output = Command::new(workspace.path("fixed"))
        .current_dir(workspace.path(""))
        .env("SYMBIOSIS_SCHEDULE", &file)
        .output()
        .expect("the fixed program starts");
    assert!(
        output.status.success(),
        "under the failing schedule the fixed twin ends with {output:?}"
    );
}

/// Fails the test unless the answer is right.
fn check(solution: &Solution, annotations: &Annotations) {
    assert_eq!(solution.verdict, Verdict::FailingSchedule, "reason: {:?}", solution.reason);
    assert_eq!(solution.stats.model_gaps, 0, "model gaps");
    assert_eq!(solution.replay, Replay::Confirmed, "{:?}", solution.replay_notes);
    let failure = solution.failure.as_ref().expect("a failure");
    annotations.check_failure(&failure.kind, failure.location.line);
    let sentence = solution.cause.as_ref().expect("a sentence about the cause");
    assert!(!annotations.causes.is_empty(), "no CAUSE annotation");
    // What came too late may be an event that only the alternate has.
    let named = sentence.events.iter().map(|id| solution.event(id).expect("a known event"));
    let names = sentence.names.iter().map(String::as_str);
    let named: Vec<(u32, &str)> = named.map(|e| e.location.line).zip(names).collect();
    annotations.check_cause(&sentence.pattern, &named);
    annotations.check_operations(solution);
    let first = solution.alternates.first().expect("an alternate");
    assert_eq!(first.replay, Replay::Confirmed, "{:?}", first.replay_note);
    if let Some(same_path) = annotations.same_path {
        assert_eq!(first.same_path, same_path, "the alternate keeps to the recorded paths");
    }
    let cause = solution.root_cause.as_ref().expect("a root cause");
    assert!(!cause.orders.is_empty(), "the root cause has no ordering");
    let dsp = solution.dsp.as_ref().expect("a projection");
    let events: Vec<_> = dsp.failing.iter().filter_map(|id| solution.event(id)).collect();
    let is_shown = |access: &Access| {
        let shows = |event: &&render::solution::Event| {
            let object = event.object.as_deref().unwrap_or_default();
            access.is_shown_by(&event.kind, object, event.location.line)
        };
        events.iter().any(shows)
    };
    // Which of two threads comes between the steps of the other is up to the run, and with it which
    // of the accesses matter.
    let required = &annotations.required;
    assert!(
        required.is_empty() || required.iter().any(is_shown),
        "none of {required:?} in {events:#?}"
    );
    let groups = &annotations.groups;
    assert!(
        groups.is_empty() || groups.values().any(|group| group.iter().all(is_shown)),
        "none of the groups {:?} in {events:#?}",
        groups.keys().collect::<Vec<_>>()
    );
}

/// The fixed twin does not fail, and its run is executed without gaps.
fn survive(family: &Family) {
    let workspace = Workspace::new(&format!("family-{}{}-passing", family.name, family.level));
    family.compile(&workspace, "fixed");
    let annotations = family.annotations();
    let mut arguments = recording(&annotations, FIXED_RUNS);
    arguments.extend(["-o", "fixed.trace", "--", "./fixed"].map(str::to_owned));
    workspace.symbiosis(arguments).expect_code(NO_FAILURE);
    let record = ["record", "-o", "passing.trace", "--", "./fixed"];
    workspace.symbiosis(record).expect_code(SUCCESS);
    let report = workspace.symbiosis(["check", "passing.trace"]).expect_code(SUCCESS);
    assert!(report.stdout().contains(" 0 gaps"), "{}", report.describe());
}

/// Families whose failures tell their cause by the same fingerprint, whichever thread is the victim.
const FINGERPRINTED: [&str; 4] = ["bit_fields", "deadlock_mutex", "exit_status", "std_map"];

/// The cause has the same fingerprint in every failing run, and no other program's.
fn keep_fingerprints(families: &[Family], ending: &str) {
    let mut all: Vec<String> = Vec::new();
    for family in families {
        let name = &family.name;
        let directory = format!("family-{name}{}-fingerprint{ending}", family.level);
        let workspace = Workspace::new(&directory);
        family.compile(&workspace, "buggy");
        let own: Vec<String> = (0..3)
            .map(|round| {
                let trace = format!("{round}.trace");
                let mut arguments = recording(&family.annotations(), RUNS);
                arguments.extend(["-o", &trace, "--", "./buggy"].map(str::to_owned));
                workspace.symbiosis(arguments).expect_code(SUCCESS);
                let solve = ["solve", &trace, "--timeout", TIME_OUT, "--format", "json"];
                let answer = workspace.symbiosis(solve).expect_code(SUCCESS).stdout();
                let solution: Solution = serde_json::from_str(&answer).expect("an answer");
                solution.cause.expect("a cause").fingerprint
            })
            .collect();
        assert!(own.iter().all(|print| *print == own[0]), "{name}: {own:?}");
        assert!(!all.contains(&own[0]), "{name} has another program's fingerprint {}", own[0]);
        all.extend(own);
    }
}

fn trials(family: Family, report: &Arc<Mutex<Report>>) -> [Trial; 2] {
    let name = format!("{}::{}", family.name, family.level.trim_start_matches('-'));
    let (family, report) = (Arc::new(family), Arc::clone(report));
    let fixed = Arc::clone(&family);
    let explained = move || -> Result<(), Failed> {
        let row = also_on_other_runs(|ending| {
            (0..RECORDINGS).find_map(|_| explain(&family, ending)).expect("a repair is offered")
        });
        report.lock().unwrap_or_else(PoisonError::into_inner).add(row);
        Ok(())
    };
    let survived = move || -> Result<(), Failed> {
        survive(&fixed);
        Ok(())
    };
    [
        Trial::test(format!("{name}::failing_run_is_explained"), explained),
        Trial::test(format!("{name}::fixed_twin_does_not_fail"), survived),
    ]
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // As with the standard library's harness.
    let threads = env::var("RUST_TEST_THREADS").ok().and_then(|threads| threads.parse().ok());
    arguments.test_threads = arguments.test_threads.or(threads);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/families");
    let mut folders: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    let levels = env::var("SYMBIOSIS_FAMILY_LEVELS").ok();
    let report = Arc::new(Mutex::new(Report::default()));
    // It takes long, so it begins first.
    let fingerprinted = FINGERPRINTED.map(|name| Family::new(&folder.join(name), "-O1"));
    let mut all = vec![Trial::test("fingerprints::stay", move || {
        also_on_other_runs(|ending| keep_fingerprints(&fingerprinted, ending));
        Ok(())
    })];
    for folder in &folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        // Without optimisation the standard library's functions are functions.
        let usual = if name.starts_with("std_") { "-O0 -O1" } else { "-O1" };
        for level in levels.as_deref().unwrap_or(usual).split_whitespace() {
            all.extend(trials(Family::new(folder, level), &report));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, all);
    if let Ok(path) = env::var("SYMBIOSIS_FAMILY_TABLE") {
        let table = report.lock().unwrap_or_else(PoisonError::into_inner).table();
        fs::write(&path, table).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    conclusion.exit_code()
}
