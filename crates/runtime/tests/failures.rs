//! How a run ends: the failure record, kills at any moment, disks without room.

use crate::common::{Entry, Traced, prepare, run, scenario, scenarios};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use trace_format::{FailureKind, Trace};

fn check(traced: &Traced, kind: FailureKind, code: i64, thread: &str) {
    let failure = traced.failure();
    assert_eq!((failure.kind, failure.code), (kind, code));
    assert_eq!(failure.thread.as_deref(), Some(thread));
}

#[test]
fn an_assertion_is_recorded_with_its_message() {
    let traced = scenario("assert");
    check(&traced, FailureKind::Assertion, 6, "t0.1");
    let message = &traced.failure().message;
    assert!(message.contains("scenarios.c:"), "{message}");
    assert!(message.ends_with(": void *asserts(void *): !argument"), "{message}");
    assert_eq!(traced.failure().path_bytes, 5, "what printing the message added is behind");
    assert_eq!(traced.signal(), Some(6));
}

#[test]
fn abort_is_recorded() {
    let traced = scenario("abort");
    check(&traced, FailureKind::Abort, 6, "t0.1");
    assert_eq!(traced.signal(), Some(6));
}

#[test]
fn a_fault_is_recorded_with_its_address() {
    let traced = scenario("fault");
    check(&traced, FailureKind::Signal, 11, "t0.1");
    assert_eq!(traced.failure().fault_address, 0x18);
    let start = traced.trace.threads()[1].start_routine;
    let distance = traced.failure().fault_pc.wrapping_sub(start);
    assert!(distance < 4096, "the program counter is in the start routine");
    assert_eq!(traced.signal(), Some(11));
}

#[test]
fn a_fault_is_recorded_where_all_signals_are_blocked() {
    let traced = scenario("masked");
    check(&traced, FailureKind::Signal, 11, "t0.1");
    assert_eq!(traced.failure().fault_address, 0x18);
}

#[test]
fn other_fatal_signals_are_recorded() {
    check(&scenario("divide"), FailureKind::Signal, 8, "t0.1");
    check(&scenario("overflow"), FailureKind::StackOverflow, 11, "t0.1");
    check(&scenario("twice"), FailureKind::DoubleFree, 6, "t0");
}

#[test]
fn exit_statuses_are_recorded() {
    for (name, code, thread) in [("exit", 7, "t0.1"), ("_exit", 9, "t0.1"), ("return", 5, "t0")] {
        let traced = scenario(name);
        check(&traced, FailureKind::Exit, code, thread);
        assert_eq!(traced.status.code(), Some(code as i32));
    }
    assert_eq!(scenario("heap").trace.failure(), None);
}

#[test]
fn a_programs_own_handler_is_left_alone() {
    let traced = scenario("own-handler");
    assert_eq!(traced.status.code(), Some(0));
    assert_eq!(traced.trace.failure(), None);
}

/// The entries of a thread of the endless scenario: each block follows its value.
fn check_endless(trace: &Trace) -> usize {
    let mut total = 0;
    for thread in trace.threads() {
        let mut path = trace.path(thread).unwrap();
        let mut blocks = Vec::new();
        while let Some(entry) = path.next().unwrap() {
            if let trace_format::PathEntry::Block(index) = entry {
                blocks.push(index);
            }
        }
        let expected = (0..blocks.len() as u32).map(|index| index % 1000);
        assert!(blocks.iter().copied().eq(expected), "{}", thread.name);
        total += blocks.len();
        if thread.serial != 1 {
            let values = trace.value_words(thread).unwrap();
            assert!(values.iter().copied().eq(0..values.len() as u64), "{}", thread.name);
            let ahead = values.len() - blocks.len();
            assert!(ahead <= 1, "at most the entry being written is lost: {ahead}");
        }
    }
    total
}

#[test]
fn sigkill_at_any_moment_leaves_a_readable_trace() {
    let mut total = 0;
    for round in 0..12u64 {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let mut child = Command::new(scenarios())
            .arg("endless")
            .env("SYMBIOSIS_TRACE_DIR", directory.path())
            .env("SYMBIOSIS_READINGS", "0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        if round > 2 {
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        }
        std::thread::sleep(Duration::from_micros(700 * round * round));
        child.kill().unwrap();
        child.wait().unwrap();
        if !directory.path().join("process.bin").exists() || killed_at_start(directory.path()) {
            assert!(round <= 2, "killed before the program's first instruction");
            continue;
        }
        let trace = Trace::open(directory.path()).unwrap();
        total += check_endless(&trace);
        let manifest = trace_format::seal(directory.path(), trace.manifest()).unwrap();
        assert_eq!(manifest.threads, trace.threads());
        check_endless(&Trace::open(directory.path()).unwrap());
    }
    assert!(total > 1000);
}

/// The kill may come while the runtime makes its first file.
fn killed_at_start(directory: &Path) -> bool {
    let page = fs_err::read(directory.join("process.bin")).unwrap_or_default();
    page.len() < 4096 || page[..8] == [0; 8]
}

fn check_full(trace: &Trace, errno: i32) {
    let thread = trace.threads().iter().find(|thread| thread.name == "t0.1").unwrap();
    assert_eq!(thread.overflow_errno, errno);
    assert!(thread.ended);
    let failure = trace.manifest().write_failure.clone().unwrap();
    assert_eq!(failure.errno, errno);
    let length = match failure.file.as_str() {
        "threads/t0.1.path" => thread.path_bytes,
        "threads/t0.1.values" => thread.value_bytes,
        other => panic!("{other}"),
    };
    assert_eq!(failure.offset, length);
    let path = trace.path_entries(thread).unwrap();
    let values = trace.value_words(thread).unwrap();
    assert!(values.len() > 8000, "{}", values.len());
    assert!(values.len() < 2_000_000, "not all of it fits");
    assert!(values.iter().copied().eq(0..values.len() as u64));
    let blocks = path.iter().filter(|entry| **entry >> 30 == 0);
    assert!(
        blocks
            .copied()
            .eq((0..path.iter().filter(|e| **e >> 30 == 0).count() as u32)
                .map(|i| i % 1_000_000 + 1))
    );
}

#[test]
fn a_file_size_limit_ends_the_recording_but_not_the_program() {
    let traced =
        run(Command::new("bash").args(["-c", "ulimit -f 1024; exec \"$0\" many"]).arg(scenarios()));
    assert!(traced.status.success(), "{:?}", traced.status);
    assert_eq!(traced.stdout, "done many\n");
    check_full(&traced.trace, libc::EFBIG);
    let manifest = trace_format::seal(traced.directory.path(), traced.trace.manifest()).unwrap();
    assert!(manifest.write_failure.is_some());
    check_full(&Trace::open(traced.directory.path()).unwrap(), libc::EFBIG);
}

/// Needs the right to mount; where that is missing the limit above stands for it.
#[test]
fn a_full_disk_ends_the_recording_but_not_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "none"])
        .arg(directory.path())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        return;
    }
    prepare(directory.path());
    let _mount = Mount(directory.path());
    let status = Command::new(scenarios())
        .arg("many")
        .env("SYMBIOSIS_TRACE_DIR", directory.path())
        .env("SYMBIOSIS_READINGS", "0")
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    check_full(&Trace::open(directory.path()).unwrap(), libc::ENOSPC);
}

/// Unmounts also when the test fails.
struct Mount<'a>(&'a Path);

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_directory_that_cannot_be_written_costs_only_the_recording() {
    let output = Command::new(scenarios())
        .arg("heap")
        .env("SYMBIOSIS_TRACE_DIR", "/proc/nowhere")
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("not recorded") && text.contains("/proc/nowhere"), "{text}");
}

#[test]
fn the_end_of_the_initial_thread_is_logged_last() {
    let traced = scenario("names");
    let entries = traced.entries("t0", 0);
    assert!(entries.last().is_some_and(Entry::is_thread_exit), "{:?}", entries.last());
    assert!(traced.trace.threads()[0].ended);
}
