//! `symbiosis record` of commands that start instrumented programs, and of programs that fork.

use crate::workspace::{Outcome as Ended, Workspace};
use std::fs;
use std::path::Path;
use std::process::Command;
use trace_format::{FailureKind, Manifest, Outcome};

const SUCCESS: i32 = 0;
const LIMIT: i32 = 12;
/// Of a process that SIGABRT ended, as a shell gives it.
const ABORTED: i32 = 134;

struct Bench(Workspace);

impl Bench {
    /// A directory with the program `family`.
    fn new(name: &str) -> Self {
        let workspace = Workspace::new(&format!("children-{name}"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/family.c");
        let source = source.to_str().expect("a path in UTF-8");
        let command = ["cc", "-w", "-O1", "-g", "-pthread", source, "-o", "family"];
        workspace.symbiosis(command).expect_code(SUCCESS);
        Self(workspace)
    }

    fn record(&self, arguments: &[&str]) -> Ended {
        self.0.symbiosis([&["record"], arguments].concat())
    }

    fn script(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        fs::write(self.0.path(name), text).expect("written");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.0.path(name), mode).expect("executable");
    }

    /// The traces in a directory, by name; nothing else of a recording may be left there.
    fn traces(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.path(directory)).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> =
            names.map(|name| name.to_string_lossy().into_owned()).collect();
        assert!(!names.iter().any(|name| name.starts_with(".symbiosis")), "{names:?}");
        names.retain(|name| name.ends_with(".trace"));
        names.sort();
        names
    }

    fn manifest(&self, trace: &str) -> Manifest {
        Manifest::read(&self.0.path(trace)).unwrap_or_else(|error| panic!("{trace}: {error}"))
    }

    /// Walks every thread; gives how many there are.
    fn check(&self, trace: &str) -> String {
        let outcome = self.0.symbiosis(["check", trace]).expect_code(SUCCESS);
        assert!(outcome.stdout().contains(" 0 gaps in "), "{}", outcome.describe());
        outcome.stdout()
    }
}

fn failure(manifest: &Manifest) -> Option<FailureKind> {
    manifest.failure.as_ref().map(|failure| failure.kind)
}

#[test]
fn a_shell_starts_programs_and_the_failing_ones_are_kept() {
    let bench = Bench::new("shell");
    let script = "./family ok; ./family bad & ./family status; wait; ./family ok; exit 7";
    let ended = bench.record(&["--", "sh", "-c", script]).expect_code(7);
    assert_eq!(bench.traces(""), ["family-2.trace", "family.trace"], "{}", ended.describe());
    assert!(ended.stderr().contains("2 traces of processes that did not fail dropped"));
    let mut kinds = Vec::new();
    for name in bench.traces("") {
        assert!(ended.stderr().contains(&format!("{name}: ")), "{}", ended.describe());
        let manifest = bench.manifest(&name);
        assert_eq!(manifest.executable.path, bench.0.path("family").to_string_lossy());
        assert!(manifest.process.is_some_and(|process| !process.forked));
        bench.check(&name);
        kinds.extend(failure(&manifest));
    }
    kinds.sort_by_key(|kind| *kind as u32);
    assert_eq!(kinds, [FailureKind::Assertion, FailureKind::Exit]);
    // All of them, in a directory of the user's choice.
    let ended = bench.record(&["--keep-all", "-o", "all", "--", "sh", "-c", script]);
    assert_eq!(ended.code(), 7);
    let names = ["family-2.trace", "family-3.trace", "family-4.trace", "family.trace"];
    assert_eq!(bench.traces("all"), names);
    assert_eq!(bench.manifest("all/family.trace").outcome, Some(Outcome::Exited(0)));
    assert_eq!(bench.manifest("all/family.trace").command, ["./family", "ok"]);
}

#[test]
fn a_script_that_becomes_the_program_is_the_program() {
    let bench = Bench::new("script");
    bench.script("wrapper", "#!/bin/sh\nexec ./family status\n");
    bench.record(&["-q", "-o", "w.trace", "--", "./wrapper"]).expect_code(3);
    assert_eq!(bench.traces(""), ["w.trace"]);
    assert_eq!(failure(&bench.manifest("w.trace")), Some(FailureKind::Exit));
    bench.check("w.trace");
    // A program that becomes another one: both are there.
    bench.record(&["-q", "-o", "e.trace", "--", "./family", "exec"]).expect_code(3);
    assert_eq!(bench.traces(""), ["e-family.trace", "e.trace", "w.trace"]);
    assert_eq!(failure(&bench.manifest("e-family.trace")), Some(FailureKind::Exit));
    bench.check("e-family.trace");
}

#[test]
fn what_a_script_says_to_openmp_is_what_its_program_had() {
    let bench = Bench::new("openmp");
    bench.script("wrapper", "#!/bin/sh\nOMP_NUM_THREADS=3 exec ./family status\n");
    bench.record(&["-q", "-o", "w.trace", "--", "./wrapper"]).expect_code(3);
    let script = "OMP_NUM_THREADS=4 OMP_SCHEDULE=dynamic ./family status; exit 7";
    bench.record(&["-q", "--", "sh", "-c", script]).expect_code(7);
    for (trace, had) in [
        ("w.trace", vec![("OMP_NUM_THREADS", "3")]),
        ("family.trace", vec![("OMP_NUM_THREADS", "4"), ("OMP_SCHEDULE", "dynamic")]),
    ] {
        let manifest = bench.manifest(trace);
        let settings = manifest.openmp.iter().filter(|(name, _)| name.starts_with("OMP_"));
        let settings: Vec<_> = settings.map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(settings, had, "{trace}");
        assert!(manifest.openmp.contains_key("SYMBIOSIS_OMP_PROCESSORS"), "{trace}");
    }
}

#[test]
fn a_forked_child_has_a_trace_that_begins_with_its_parent() {
    let bench = Bench::new("fork");
    for how in ["fork", "fork-thread"] {
        let trace = format!("{how}.trace");
        bench.record(&["-q", "--keep-all", "-o", &trace, "--", "./family", how]).expect_code(0);
        bench.check(&trace);
        let child = format!("{how}-family.trace");
        let report = bench.check(&child);
        let manifest = bench.manifest(&child);
        assert!(manifest.process.is_some_and(|process| process.forked));
        assert_eq!((failure(&manifest), manifest.outcome), (None, Some(Outcome::Exited(0))));
        // The parent's initial thread and two others, with what they did; and the child's own two.
        let own = if how == "fork" { "t0.4" } else { "t0.3.2" };
        assert!(report.contains(own), "{report}");
    }
    for how in ["fork-bad", "fork-thread-bad"] {
        let trace = format!("{how}.trace");
        bench.record(&["-q", "-o", &trace, "--", "./family", how]).expect_code(ABORTED);
        let child = format!("{how}-family.trace");
        assert_eq!(failure(&bench.manifest(&child)), Some(FailureKind::Assertion));
        bench.check(&child);
        let ended = bench.0.symbiosis(["solve", "--no-replay", &child]);
        assert!(ended.stdout().contains("total == expected"), "{}", ended.describe());
        // Which only the parent's program could be run under.
        let ended = bench.0.symbiosis(["replay", &child]);
        assert!(ended.code() != SUCCESS && ended.stderr().contains("fork"), "{}", ended.describe());
    }
}

/// Sleeps take no time under a scheduler, but what another process does takes some.
#[test]
fn a_child_gets_the_time_that_its_parent_gives_it() {
    let bench = Bench::new("polled");
    let scheduled = ["--noise=pct", "--seed", "1", "-o", "p.trace", "--", "./family"];
    bench.record(&[&scheduled[..], &["fork-polled"]].concat()).expect_code(SUCCESS);
    // Whether a process that was killed would have come to its end, nobody knows.
    let ended = bench.record(&["--keep-all", "-o", "k.trace", "--", "./family", "fork-killed"]);
    assert_eq!(ended.code(), SUCCESS, "{}", ended.describe());
    assert_eq!(ended.stderr().matches("the run passed").count(), 1, "{}", ended.describe());
    assert!(ended.stderr().contains("how the process ended was not seen"), "{}", ended.describe());
}

#[test]
fn a_command_that_fails_alone_leaves_no_trace() {
    let bench = Bench::new("alone");
    let script = "./family ok; exit 7";
    let ended = bench.record(&["--until-failure", "2", "--", "sh", "-c", script]);
    assert_eq!(ended.code(), LIMIT, "{}", ended.describe());
    assert!(ended.stderr().contains("--fail-if"), "{}", ended.describe());
    assert!(bench.traces("").is_empty(), "{}", ended.describe());
}

/// The child has the lock, and not the thread, which the fork left behind in a call.
#[test]
fn a_lock_is_left_behind_in_a_call() {
    let bench = Bench::new("reading");
    let ended =
        bench.record(&["--timeout", "3", "-o", "p.trace", "--", "./family", "fork-held-reading"]);
    assert_eq!(ended.code(), 137, "{}", ended.describe());
    let ended = bench.0.symbiosis(["solve", "p-family.trace"]).expect_code(SUCCESS);
    let cause = ended.stdout().lines().next().unwrap_or_default().to_owned();
    assert!(cause.contains(" when the process forked, and t0.4 waits for it"), "{cause}");
}

#[test]
fn a_parent_that_waits_for_a_stuck_child_points_to_it() {
    let bench = Bench::new("held");
    let ended = bench.record(&["--timeout", "3", "-o", "p.trace", "--", "./family", "fork-held"]);
    assert_eq!(ended.code(), 137, "{}", ended.describe());
    assert_eq!(bench.traces(""), ["p-family.trace", "p.trace"], "{}", ended.describe());
    let ended = bench.0.symbiosis(["solve", "p.trace"]).expect_code(SUCCESS);
    let cause = ended.stdout().lines().next().unwrap_or_default().to_owned();
    assert!(cause.starts_with("cause: t0 waits in waitpid for process "), "{}", ended.describe());
    assert!(cause.ends_with(": p-family.trace tells why"), "{}", ended.describe());
    assert!(ended.stdout().contains("not run: what the awaited process does"));
    let ended = bench.0.symbiosis(["solve", "p-family.trace"]).expect_code(SUCCESS);
    assert!(ended.stdout().contains(" waits for the lock lock"), "{}", ended.describe());
    assert!(ended.stdout().contains(" when the process forked, "), "{}", ended.describe());
    // Without the child's trace there is nothing to point to.
    fs::remove_dir_all(bench.0.path("p-family.trace")).expect("removed");
    let ended = bench.0.symbiosis(["solve", "p.trace"]).expect_code(SUCCESS);
    assert!(ended.stdout().contains("there is no trace of one"), "{}", ended.describe());
}

#[test]
fn all_ways_to_start_a_process_work() {
    let bench = Bench::new("ways");
    let ended = bench.record(&["--keep-all", "-o", "w.trace", "--", "./family", "ways"]);
    let ended = ended.expect_code(SUCCESS);
    assert_eq!(ended.stdout().matches("fine").count(), 3, "{}", ended.describe());
    // system, popen, posix_spawn, vfork, and what vfork's child was before it became the program.
    let names = bench.traces("");
    assert_eq!(names.len(), 6, "{names:?}");
    let passed = names.iter().filter(|name| {
        bench.manifest(name).outcome == Some(Outcome::Exited(0))
            && bench.check(name).contains("t0.2")
    });
    assert_eq!(passed.count(), 5);
}

#[test]
fn a_process_in_the_background_is_waited_for() {
    let bench = Bench::new("daemon");
    bench.record(&["-q", "-o", "d.trace", "--", "./family", "daemon"]).expect_code(SUCCESS);
    assert_eq!(failure(&bench.manifest("d-family.trace")), Some(FailureKind::Assertion));
    bench.check("d-family.trace");
}

#[test]
fn a_time_out_ends_the_whole_tree() {
    let bench = Bench::new("timeout");
    let script = "./family sleep & env -i ./family sleep & ./family sleep";
    let ended = bench.record(&["--timeout", "2", "--", "sh", "-c", script]);
    assert_eq!(ended.code(), 137, "{}", ended.describe());
    let names = bench.traces("");
    assert_eq!(names.len(), 2, "{}", ended.describe());
    for name in names {
        let manifest = bench.manifest(&name);
        assert!(manifest.timed_out && failure(&manifest) == Some(FailureKind::Hang));
    }
    let program = fs::canonicalize(bench.0.path("family")).expect("the program is there");
    let processes = fs::read_dir("/proc").expect("there is /proc");
    let mut executables =
        processes.filter_map(|entry| fs::read_link(entry.ok()?.path().join("exe")).ok());
    assert!(!executables.any(|executable| executable == program), "nothing runs on");
}

#[test]
fn test_runners_are_recorded_until_a_test_fails() {
    let bench = Bench::new("runners");
    let lists = "enable_testing()\nproject(x NONE)\n\
        add_test(NAME passes COMMAND ./family ok WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})\n\
        add_test(NAME fails COMMAND ./family status WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})\n\
        set_tests_properties(fails PROPERTIES WILL_FAIL TRUE)\n";
    let lists = format!("cmake_minimum_required(VERSION 3.16)\n{lists}");
    fs::write(bench.0.path("CMakeLists.txt"), lists).expect("written");
    let cmake = Command::new("cmake")
        .args(["-B", "build"])
        .current_dir(bench.0.path(""))
        .output()
        .expect("cmake runs");
    assert!(cmake.status.success(), "{cmake:?}");
    let ctest = ["--", "ctest", "--test-dir", "build", "-j2"];
    // A test that is meant to fail is no failure of the suite; its trace is there all the same.
    let ended = bench.record(&[&["-o", "ctest"][..], &ctest].concat()).expect_code(SUCCESS);
    assert_eq!(bench.traces("ctest"), ["family.trace"], "{}", ended.describe());
    let ended = bench.record(&[&["--until-failure", "2", "-q"][..], &ctest].concat());
    assert_eq!((ended.code(), bench.traces("").len()), (12, 0), "{}", ended.describe());

    fs::write(bench.0.path("Makefile"), "check:\n\t./family ok\n\t./family bad\n")
        .expect("written");
    let ended = bench.record(&["--until-failure", "3", "--", "make", "check"]).expect_code(0);
    assert!(ended.stderr().contains("run 1 of 3 failed"), "{}", ended.describe());
    assert_eq!(failure(&bench.manifest("family.trace")), Some(FailureKind::Assertion));

    let test = "import subprocess\ndef test_family():\n    subprocess.run(['./family', 'bad'], check=True)\n";
    fs::write(bench.0.path("test_family.py"), test).expect("written");
    let runs = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success())
    };
    let pytest = ["pytest-3", "pytest"].into_iter().find(runs).expect("pytest is installed");
    let ended = bench.record(&["-o", "pytest", "--", pytest, "-q"]);
    let ended = ended.expect_code(1);
    assert_eq!(bench.traces("pytest"), ["family.trace"], "{}", ended.describe());
}

#[test]
fn noise_reaches_the_children_and_a_variable_of_the_users_does_not() {
    let bench = Bench::new("noise");
    let arguments = ["--noise=0.1,10", "--seed", "5", "--", "sh", "-c", "./family status"];
    bench.record(&arguments).expect_code(3);
    let manifest = bench.manifest("family.trace");
    assert_eq!((manifest.noise.as_deref(), manifest.seed), (Some("random,0.1,10"), Some(5)));
    let output = Command::new(env!("CARGO_BIN_EXE_symbiosis"))
        .args(["record", "--", "./family", "ok"])
        .env("SYMBIOSIS_NOISE", "nonsense")
        .current_dir(bench.0.path(""))
        .output()
        .expect("symbiosis runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.contains("SYMBIOSIS_NOISE is not passed on"));
    assert_eq!(bench.manifest("family-2.trace").noise, None);
}

#[test]
fn a_command_without_instrumented_programs_is_refused() {
    let bench = Bench::new("nothing");
    let ended = bench.record(&["--", "sh", "-c", "exit 5"]).expect_code(2);
    assert!(ended.stderr().contains("started no instrumented program"), "{}", ended.describe());
    assert!(bench.traces("").is_empty());
}
