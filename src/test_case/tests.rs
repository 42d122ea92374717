//! The generated files, compiled and run against programs that only pretend to follow a schedule.

use super::*;
use render::solution::{Event, Location, RootCause, Verdict};
use std::mem::offset_of;
use std::process::{Command, Output};
use trace_format::Executable;
use trace_format::layout::{LeftReason, Report};

const SCHEDULE: &str = "\
symbiosis-schedule 1
end run
t0 > bank.c:main:call:pthread_join   # what\\ever \"is\" *here??/
t0.1 > bank.c:close_desk:write:bank.1 +
t0 !
";

fn solution() -> Solution {
    let location = |line| Location {
        file: "/src/bank.c".to_owned(),
        line,
        column: 5,
        function: "deposit".to_owned(),
    };
    let event = |id: &str, kind: &str, line| Event {
        id: id.to_owned(),
        thread: "t0.1".to_owned(),
        kind: kind.to_owned(),
        object: Some("bank->total".to_owned()),
        location: location(line),
        library: Vec::new(),
        callers: Vec::new(),
        value: Some("1".to_owned()),
        targets: Vec::new(),
    };
    Solution {
        verdict: Verdict::FailingSchedule,
        failure: Some(Failure {
            kind: "assertion".to_owned(),
            thread: "t0".to_owned(),
            event: "e1".to_owned(),
            location: location(30),
            message: "/src/bank.c:30: int main(void): text /* with \"all\" kinds\n of */ things\\"
                .to_owned(),
        }),
        events: vec![event("e0", "read", 10), event("e1", "write", 11)],
        root_cause: Some(RootCause {
            orders: vec![["e0".to_owned(), "e1".to_owned()]],
            minimal: true,
            proposed: false,
            fails_always: false,
        }),
        ..Solution::default()
    }
}

fn manifest(outcome: Outcome, arguments: &[&str]) -> Manifest {
    let command = ["./bank"].iter().chain(arguments).map(|&word| word.to_owned()).collect();
    let executable = Executable { path: "/build/bank.bin".to_owned(), build_id: None };
    let mut manifest = Manifest::new("0", command, "/build".to_owned(), executable);
    manifest.outcome = Some(outcome);
    manifest.failure = Some(trace_format::Failure {
        kind: match outcome {
            Outcome::Signalled(_) => FailureKind::Assertion,
            Outcome::Exited(_) => FailureKind::Exit,
            Outcome::Ended => FailureKind::Hang,
        },
        thread_serial: Some(1),
        thread: Some("t0".to_owned()),
        code: 0,
        fault_address: 0,
        fault_pc: 0,
        message: "bank.c:30: main: total == 2 && \"?\"".to_owned(),
        path_bytes: 0,
        value_bytes: 0,
    });
    manifest
}

/// A directory with a compiled test and a program that pretends.
struct Bench(tempfile::TempDir);

impl Bench {
    fn new(outcome: Outcome, arguments: &[&str]) -> Self {
        Self::of(&manifest(outcome, arguments))
    }

    fn of(manifest: &Manifest) -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        let solution = solution();
        let case = TestCase {
            name: "bank-7",
            solution: &solution,
            cause: None,
            manifest,
            schedule: SCHEDULE,
            program: None,
        };
        write(bench.0.path(), &files(&case).unwrap()).unwrap();
        bench.compile("cc -std=c11 -O1 -Wall -Wextra -Werror -pedantic -DSYMBIOSIS_TEST_TIMEOUT=2");
        bench
    }

    fn compile(&self, compiler: &str) {
        let mut words = compiler.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["bank-7_test.c", "-o", "bank-7_test"]);
        let output = command.current_dir(self.0.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{compiler}: {errors}");
    }

    /// A program that leaves this report, if any, and then does what the script says.
    fn program(&self, report: Option<(u32, LeftReason, u32, &str)>, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.path().join("program");
        let copy = match report {
            None => "",
            Some((line, reason, deadlock, message)) => {
                let bytes = report_bytes(line, reason, deadlock, message);
                fs_err::write(self.0.path().join("report.bin"), bytes).unwrap();
                "cp \"$(dirname \"$0\")/report.bin\" \"$SYMBIOSIS_REPORT\"\n"
            }
        };
        fs_err::write(&path, format!("#!/bin/sh\n{copy}{script}\n")).unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.0.path().join("bank-7_test"));
        // A directory of its own shows what is left behind.
        let temporary = self.0.path().join("temporary");
        fs_err::create_dir_all(&temporary).unwrap();
        let output = command
            .args(arguments)
            .current_dir(self.0.path())
            .env("TMPDIR", &temporary)
            .env("SYMBIOSIS_NOISE", "random,1,2,3")
            .output()
            .unwrap();
        assert_eq!(fs_err::read_dir(&temporary).unwrap().count(), 0, "files are left");
        output
    }

    fn expect(&self, arguments: &[&str], code: i32, texts: &[&str]) {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        for expected in texts {
            assert!(text.contains(expected), "no {expected:?} in:\n{text}");
        }
    }
}

fn report_bytes(line: u32, reason: LeftReason, deadlock: u32, message: &str) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<Report>()];
    let mut put = |at: usize, data: &[u8]| bytes[at..at + data.len()].copy_from_slice(data);
    put(offset_of!(Report, magic), &REPORT_MAGIC.to_le_bytes());
    put(offset_of!(Report, lines), &3u32.to_le_bytes());
    put(offset_of!(Report, left_line), &line.to_le_bytes());
    put(offset_of!(Report, left_reason), &(reason as u32).to_le_bytes());
    put(offset_of!(Report, ended), &deadlock.to_le_bytes());
    put(offset_of!(Report, message_length), &(message.len() as u32).to_le_bytes());
    put(offset_of!(Report, message), message.as_bytes());
    bytes
}

const FOLLOWED: Option<(u32, LeftReason, u32, &str)> = Some((0, LeftReason::None, 0, ""));
const ABORTED: Outcome = Outcome::Signalled(libc::SIGABRT);

#[test]
fn the_test_compiles_without_warnings_as_c_and_as_cxx() {
    let bench = Bench::new(ABORTED, &["a b", "\u{fc}\"", "$x"]);
    for level in ["-O0", "-O2"] {
        bench.compile(&format!("cc {level} -std=c11 -Wall -Wextra -Werror -Wshadow"));
        bench.compile(&format!("cc {level} -std=gnu17 -Wall -Wextra -Werror -pedantic"));
        bench.compile(&format!("clang {level} -Wall -Wextra -Werror -pedantic"));
        bench.compile(&format!("c++ -x c++ {level} -Wall -Wextra -Werror -pedantic"));
        bench.compile(&format!("clang++ -x c++ {level} -std=c++11 -Wall -Wextra -Werror"));
    }
}

#[test]
fn a_wrong_output_fails_the_test() {
    let mut manifest = manifest(Outcome::Exited(0), &[]);
    let command = "grep -qv \"total 2\"".to_owned();
    manifest.fail_if = Some(trace_format::OutputCheck { command, failed: true });
    let bench = Bench::of(&manifest);
    bench.compile("c++ -x c++ -Wall -Wextra -Werror -pedantic -DSYMBIOSIS_TEST_TIMEOUT=2");
    // What goes to standard error is not looked at, and shown.
    bench.program(FOLLOWED, "echo total 2; echo hint >&2");
    bench.expect(&["./program"], 0, &["passed"]);
    bench.program(FOLLOWED, "echo total 1; echo hint >&2");
    bench.expect(&["./program"], 1, &["the bug is still there", "total 1", "hint"]);
    bench.program(FOLLOWED, "exit 3");
    bench.expect(&["./program"], 1, &["FAILED", "not as recorded"]);
    let command = "no-such-command 2> /dev/null".to_owned();
    manifest.fail_if = Some(trace_format::OutputCheck { command, failed: true });
    let bench = Bench::of(&manifest);
    bench.program(FOLLOWED, "echo total 1");
    bench.expect(&["./program"], 99, &["no-such-command"]);
}

#[test]
fn the_heap_is_watched_as_it_was() {
    let mut manifest = manifest(Outcome::Signalled(libc::SIGSEGV), &[]);
    let watched = "test \"$SYMBIOSIS_DETECT\" != use-after-free || kill -SEGV $$";
    let bench = Bench::of(&manifest);
    bench.program(FOLLOWED, watched);
    bench.expect(&["./program"], 0, &["passed"]);
    manifest.detect = Some("use-after-free".to_owned());
    let bench = Bench::of(&manifest);
    bench.program(FOLLOWED, watched);
    bench.expect(&["./program"], 1, &["FAILED", "signal 11"]);
}

#[test]
fn what_no_program_fails_by_is_no_test() {
    let mut manifest = manifest(Outcome::Exited(0), &[]);
    manifest.failure.as_mut().unwrap().kind = FailureKind::Reached;
    let case = TestCase {
        name: "bank",
        solution: &solution(),
        cause: None,
        manifest: &manifest,
        schedule: SCHEDULE,
        program: None,
    };
    let error = files(&case).unwrap_err();
    assert!(matches!(error, TestCaseError::Reached), "{error}");
}

#[test]
fn a_program_that_fails_fails_the_test() {
    let bench = Bench::new(ABORTED, &[]);
    let same =
        "echo \"bank: bank.c:31: main: Assertion \\`total == 2 && \\\"?\\\"' failed.\" >&2\n";
    bench.program(FOLLOWED, &format!("{same}kill -ABRT $$"));
    let texts = ["FAILED: the bug is still there: assertion: text", "bank.c:31: main", "signal 6"];
    bench.expect(&["./program"], 1, &texts);
    bench.program(FOLLOWED, "kill -ABRT $$");
    bench.expect(&["./program"], 1, &["FAILED", "not as recorded", "signal 6"]);
    bench.program(FOLLOWED, &format!("{same}exit 3"));
    bench.expect(&["./program"], 1, &["FAILED", "not as recorded", "exit status 3"]);
    let left = Some((4, LeftReason::Blocked, 0, "t0.1 waits for t0"));
    bench.program(left, &format!("{same}kill -ABRT $$"));
    bench.expect(&["./program"], 1, &["still there", "left the schedule", "t0.1 waits for t0"]);
    let deadlock = Some((0, LeftReason::None, 1, "t0 waits for t0.1"));
    bench.program(deadlock, "exit 0");
    bench.expect(&["./program"], 1, &["FAILED", "t0 waits for t0.1"]);
}

#[test]
fn an_exit_status_is_a_failure_too() {
    let bench = Bench::new(Outcome::Exited(3), &[]);
    bench.program(FOLLOWED, "exit 3");
    bench.expect(&["./program"], 1, &["the bug is still there"]);
    bench.program(FOLLOWED, "exit 4");
    bench.expect(&["./program"], 1, &["not as recorded", "exit status 4"]);
}

#[test]
fn a_program_that_ends_well_passes_the_test() {
    let bench = Bench::new(ABORTED, &[]);
    for report in [FOLLOWED, Some((5, LeftReason::Ended, 0, "t0 ended"))] {
        bench.program(report, "echo unseen");
        bench.expect(&["./program"], 0, &["passed: the schedule was followed to its end"]);
        let output = bench.run(&["./program"]);
        assert!(!String::from_utf8_lossy(&output.stdout).contains("unseen"));
    }
    bench.program(Some((4, LeftReason::Ended, 0, "t0.1 ended")), "exit 0");
    let texts =
        ["passed: the schedule has become impossible", "line 4", "close_desk", "t0.1 ended"];
    bench.expect(&["./program"], 0, &texts);
}

#[test]
fn a_program_that_is_not_instrumented_skips_the_test_and_a_missing_one_does_not() {
    let bench = Bench::new(ABORTED, &[]);
    for script in ["exit 0", "exit 1", "kill -ABRT $$"] {
        bench.program(None, script);
        bench.expect(&["./program"], SKIPPED, &["skipped", "symbiosis cc"]);
    }
    bench.expect(&["./absent"], 99, &["cannot start ./absent", "No such file"]);
    bench.expect(&[], 99, &["usage"]);
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    let bench = Bench::new(ABORTED, &[]);
    bench.program(FOLLOWED, "echo on its way\nexec sleep 600");
    bench.expect(&["./program"], 1, &["did not end within 2 seconds", "on its way"]);
}

#[test]
fn the_program_gets_the_schedule_and_the_arguments() {
    let bench = Bench::new(ABORTED, &["a b", "\u{fc}\"$x\n?"]);
    let script = "echo $#; for a; do echo \"<$a>\"; done; cat \"$SYMBIOSIS_SCHEDULE\"\n\
                  echo \"noise=$SYMBIOSIS_NOISE.\"; exit 1";
    bench.program(FOLLOWED, script);
    let texts = ["2\n<a b>\n<\u{fc}\"$x\n?>\n", SCHEDULE, "noise=.\n"];
    bench.expect(&["./program"], 1, &texts);
    bench.expect(&["./program", "other"], 1, &["1\n<other>\n"]);
}

#[test]
fn the_report_in_c_is_the_report_of_the_runtime() {
    // `struct report` has no padding, and its fields stand in this order.
    let offsets = [
        (offset_of!(Report, magic), 0),
        (offset_of!(Report, lines), 8),
        (offset_of!(Report, followed), 12),
        (offset_of!(Report, left_line), 16),
        (offset_of!(Report, left_reason), 20),
        (offset_of!(Report, left_site), 24),
        (offset_of!(Report, steps), 32),
        (offset_of!(Report, switches), 40),
        (offset_of!(Report, ended), 48),
        (offset_of!(Report, message_length), 52),
        (offset_of!(Report, message), 56),
        (offset_of!(Report, held_back), 2104),
        (offset_of!(Report, gave_up), 2112),
        (size_of::<Report>(), 2120),
    ];
    assert!(offsets.iter().all(|(found, expected)| found == expected), "{offsets:?}");
}

#[test]
fn nothing_is_overwritten_and_names_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let file = File { name: "Makefile".to_owned(), text: "x".to_owned() };
    write(directory.path(), std::slice::from_ref(&file)).unwrap();
    let again = write(directory.path(), &[file]);
    assert!(matches!(again, Err(TestCaseError::Exists { .. })));
    for name in ["", "a b", "../x", "-x", "a/b", "\u{fc}"] {
        assert!(check_name(name).is_err(), "{name:?}");
    }
    assert_eq!(default_name(&manifest(ABORTED, &[])), "bank");
}

#[test]
fn make_check_passes_fails_and_skips() {
    let bench = Bench::new(ABORTED, &[]);
    let make = |arguments: &[&str]| {
        let mut command = Command::new("make");
        command.current_dir(bench.0.path()).arg("-s").args(arguments);
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    bench.program(FOLLOWED, "exit 0");
    let (good, text) = make(&["check", "PROGRAM=program"]);
    assert!(good && text.contains("passed"), "{text}");
    bench.program(None, "exit 0");
    let (good, text) = make(&["check", "PROGRAM=program"]);
    assert!(good && text.contains("skipped"), "{text}");
    bench.program(FOLLOWED, "exit 1");
    assert!(!make(&["check", "PROGRAM=program"]).0);
    // Nor does a space in its path matter.
    bench.program(FOLLOWED, "exit 0");
    let apart = bench.0.path().join("a place apart");
    fs_err::create_dir(&apart).unwrap();
    for file in ["program", "report.bin"] {
        fs_err::copy(bench.0.path().join(file), apart.join(file)).unwrap();
    }
    for path in ["a place apart/program", apart.join("program").to_str().unwrap()] {
        let (good, text) = make(&["check", &format!("PROGRAM={path}")]);
        assert!(good && text.contains("passed"), "{path}: {text}");
    }
    // As a part of another Makefile.
    let outer = "bank_7_PROGRAM = made\ninclude Makefile\nmade:\n\tcp program made\n";
    fs_err::write(bench.0.path().join("outer.mk"), outer).unwrap();
    bench.program(FOLLOWED, "exit 0");
    let (good, text) = make(&["-f", "outer.mk", "check"]);
    assert!(good && text.contains("passed"), "{text}");
}

/// Configures, builds and tests a folder with CMake; says what ctest printed and whether it was
/// content.
fn ctest(source: &Path, arguments: &[&str]) -> (bool, String) {
    let build = source.join("build");
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.arg(arguments[0]).arg(&build).args(&arguments[1..]).current_dir(source);
        let output = command.env_remove("CC").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    };
    let mut configure = vec!["-B", "-S", "."];
    configure.extend(arguments);
    let (good, text) = run("cmake", &configure);
    assert!(good && !text.contains("Warning"), "{text}");
    let (good, text) = run("cmake", &["--build"]);
    assert!(good, "{text}");
    let mut command = Command::new("ctest");
    let output = command.arg("--output-on-failure").current_dir(&build).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn ctest_passes_fails_and_skips() {
    let bench = Bench::new(ABORTED, &[]);
    let program = bench.0.path().join("program");
    let argument = format!("-Dbank_7_PROGRAM={}", program.display());
    bench.program(FOLLOWED, "test \"$PWD\" = \"$(cd \"$(dirname \"$0\")/build\" && pwd)\"");
    let (good, text) = ctest(bench.0.path(), &[&argument]);
    assert!(good && text.contains("Passed"), "{text}");
    bench.program(None, "exit 0");
    let (good, text) = ctest(bench.0.path(), &[&argument]);
    assert!(good && text.contains("Skipped"), "{text}");
    bench.program(FOLLOWED, "exit 1");
    let (good, text) = ctest(bench.0.path(), &[&argument]);
    assert!(!good && text.contains("FAILED: the program fails under this schedule"), "{text}");
}

#[test]
fn the_test_becomes_part_of_a_cmake_project() {
    let bench = Bench::new(Outcome::Exited(1), &[]);
    bench.program(FOLLOWED, "test \"$PWD\" = / && exit 1");
    let project = tempfile::tempdir().unwrap();
    let outer = format!(
        "cmake_minimum_required(VERSION 3.13)\nproject(outer CXX)\nenable_testing()\n\
         add_executable(program IMPORTED)\n\
         set_property(TARGET program PROPERTY IMPORTED_LOCATION {0}/program)\n\
         set(bank_7_TARGET program)\nset(bank_7_DIRECTORY /)\nadd_subdirectory({0} bank)\n",
        bench.0.path().display()
    );
    fs_err::write(project.path().join("CMakeLists.txt"), outer).unwrap();
    let (good, text) = ctest(project.path(), &[]);
    assert!(!good && text.contains("the bug is still there"), "{text}");
}
