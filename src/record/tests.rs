//! The recorder on small programs with hooks written by hand, linked with the carried runtime.

use super::{Instrumented, Interrupts, Names, Options, Program, RecordError, Run, run};
use crate::cli::record::{Args, run as record};
use crate::runtime_archive;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use trace_format::{FailureKind, Outcome, State, Trace};

const SOURCE: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>
struct Control { uint64_t next, limit; };
extern __thread struct Control *__symbiosis_control;
void __symbiosis_grow_path(void);
void __symbiosis_register(const void *);
static struct { uint32_t w[4]; uint64_t q[6]; uint32_t *base; void *none[4]; } module = {{VERSION}, {1}};
static uint32_t base;
__attribute__((constructor)) static void construct(void) {
  module.base = &base;
  __symbiosis_register(&module);
}
static void block(uint32_t index) {
  struct Control *c = __symbiosis_control;
  if (c->next >= c->limit) { __symbiosis_grow_path(); c = __symbiosis_control; }
  *(uint8_t *)c->next = 0x82;
  *(uint32_t *)(c->next + 1) = index;
  c->next += 5;
}
int main(int n, char **v) {
  const char *what = n > 1 ? v[1] : "";
  block(1);
  printf("out %s\n", what);
  fprintf(stderr, "err %s\n", what);
  if (!strcmp(what, "abort")) abort();
  if (!strcmp(what, "kill")) raise(SIGKILL);
  if (!strcmp(what, "status")) return 42;
  if (!strcmp(what, "hang")) for (;;) pause();
  if (!strcmp(what, "long")) for (int i = 0; i < 20000; i++) printf("line %d\n", i);
  if (!strcmp(what, "third")) {
    FILE *f = fopen(v[2], "a+"); fputc('x', f); long runs = ftell(f); fclose(f);
    return runs == 3;
  }
  return 0;
}
"#;

/// The recorder's signal handlers are the process's, so its tests take turns.
static TURN: Mutex<()> = Mutex::new(());

struct Bench {
    directory: tempfile::TempDir,
    program: PathBuf,
}

fn compile(source: &str, directory: &Path, extra: &[&OsStr]) -> PathBuf {
    let (file, program) = (directory.join("program.c"), directory.join("program"));
    fs_err::write(&file, source).unwrap();
    let mut clang = Command::new("clang");
    let version = format!("-DVERSION={}", trace_format::layout::INSTRUMENTATION_VERSION);
    clang.args(["-w", "-Wl,--build-id", &version]).arg(&file).args(extra);
    let status = clang.arg("-o").arg(&program);
    assert!(status.status().unwrap().success());
    program
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let archive = runtime_archive::materialise().unwrap();
        let program = compile(SOURCE, directory.path(), &[archive.as_os_str()]);
        Self { directory, program }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Vec<OsString> {
        let program = self.program.clone().into_os_string();
        std::iter::once(program).chain(arguments.iter().map(OsString::from)).collect()
    }

    /// One run without a terminal's noise.
    fn run(&self, argument: &str, timeout: Option<Duration>) -> (Run, Trace) {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let program = Program::find(&self.command(&[argument])).unwrap();
        let options = Options { timeout, ..Options::default() };
        let directory = self.at(&format!("{argument}.trace"));
        let mut run = run(&program, &directory, &options, &Interrupts::catch()).unwrap();
        run.seal().unwrap();
        let trace = Trace::open(&directory).unwrap();
        (run, trace)
    }

    fn args(&self, output: &str, arguments: &[&str]) -> Args {
        Args {
            output: Some(self.at(output)),
            runs: None,
            until_failure: None,
            failures: 1,
            timeout: None,
            endless: false,
            detect: None,
            readings: None,
            fail_at: None,
            fail_if: None,
            noise: None,
            seed: None,
            keep_all: false,
            quiet: true,
            command: self.command(arguments),
        }
    }

    fn record(&self, args: Args) -> Result<u8, RecordError> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        record(args)
    }
}

/// The program's only block is in the log, whatever the runtime noted before it.
fn entered_main(trace: &Trace) -> bool {
    trace.path_entries(&trace.threads()[0]).unwrap().contains(&2)
}

#[test]
fn a_run_is_sealed_with_its_outcome_and_output() {
    let bench = Bench::new();
    let (run, trace) = bench.run("status", None);
    assert_eq!(run.status(), 42);
    let manifest = trace.manifest();
    assert_eq!(manifest.state, State::Complete);
    assert_eq!(manifest.outcome, Some(Outcome::Exited(42)));
    assert_eq!(manifest.command[1], "status");
    assert_eq!(manifest.executable.build_id.as_ref().map(String::len), Some(40));
    assert_eq!(trace.failure().map(|failure| failure.kind), Some(FailureKind::Exit));
    assert_eq!(trace.stdout_tail(), b"out status\n");
    assert_eq!(trace.stderr_tail(), b"err status\n");
    assert_eq!(trace.threads().len(), 1);
    assert!(manifest.started_ms > 1_600_000_000_000);
}

#[test]
fn signals_give_the_status_of_a_shell() {
    let bench = Bench::new();
    let (run, trace) = bench.run("abort", None);
    assert_eq!(run.status(), 134);
    assert_eq!(trace.failure().map(|failure| failure.kind), Some(FailureKind::Abort));
    let (run, trace) = bench.run("kill", None);
    assert_eq!(run.status(), 137);
    let failure = trace.failure().unwrap();
    assert_eq!((failure.kind, failure.code), (FailureKind::Signal, 9));
    assert!(entered_main(&trace));
}

#[test]
fn a_run_without_end_is_ended_and_kept() {
    let bench = Bench::new();
    let (run, trace) = bench.run("hang", Some(Duration::from_millis(300)));
    assert_eq!(run.status(), 137);
    assert!(trace.manifest().timed_out);
    assert_eq!(trace.failure().map(|failure| failure.kind), Some(FailureKind::Hang));
    assert!(entered_main(&trace));
}

#[test]
fn of_long_output_the_tail_is_kept() {
    let bench = Bench::new();
    let (_, trace) = bench.run("long", None);
    let tail = trace.stdout_tail();
    assert_eq!(tail.len(), 64 << 10);
    assert!(tail.ends_with(b"line 19999\n"));
}

#[test]
fn only_the_first_failing_run_is_kept() {
    let bench = Bench::new();
    let counter = bench.at("counter");
    let args = bench.args("third.trace", &["third", counter.to_str().unwrap()]);
    assert_eq!(bench.record(Args { until_failure: Some(10), ..args }).unwrap(), 0);
    assert_eq!(fs_err::read(&counter).unwrap(), b"xxx");
    let trace = Trace::open(bench.at("third.trace")).unwrap();
    assert_eq!(trace.failure().map(|failure| failure.code), Some(1));
    assert!(trace.is_sealed());
}

#[test]
fn runs_that_pass_leave_nothing_and_say_so_by_the_exit_code() {
    let bench = Bench::new();
    let args = bench.args("none.trace", &["fine"]);
    assert_eq!(bench.record(Args { until_failure: Some(3), ..args }).unwrap(), 12);
    assert!(!bench.at("none.trace").exists());
}

#[test]
fn a_series_keeps_every_run() {
    let bench = Bench::new();
    let args = bench.args("s.trace", &["status"]);
    assert_eq!(bench.record(Args { runs: Some(2), ..args }).unwrap(), 42);
    for name in ["s-1.trace", "s-2.trace"] {
        assert!(Trace::open(bench.at(name)).unwrap().is_sealed());
    }
}

#[test]
fn an_existing_trace_is_not_overwritten() {
    let bench = Bench::new();
    fs_err::create_dir(bench.at("there.trace")).unwrap();
    let error = bench.record(bench.args("there.trace", &[])).unwrap_err();
    assert!(matches!(error, RecordError::Exists { .. }));
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn an_uninstrumented_program_is_refused_with_or_without_symbols() {
    let directory = tempfile::tempdir().unwrap();
    for flags in [&[][..], &[OsStr::new("-s")][..]] {
        let program = compile("int main(void) { return 0; }", directory.path(), flags);
        let output = directory.path().join("o.trace");
        let args = Args {
            output: Some(output.clone()),
            runs: None,
            until_failure: None,
            failures: 1,
            timeout: None,
            endless: false,
            detect: None,
            readings: None,
            fail_at: None,
            fail_if: None,
            noise: None,
            seed: None,
            keep_all: false,
            quiet: true,
            command: vec![program.into()],
        };
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let error = record(args).unwrap_err();
        assert!(matches!(error, RecordError::Uninstrumented { .. }), "{error}");
        assert!(error.to_string().contains("symbiosis cc"));
        assert_eq!(error.exit_code(), 2);
        assert!(!output.exists());
    }
}

#[test]
fn a_stripped_instrumented_program_is_recorded() {
    let bench = Bench::new();
    assert!(Command::new("strip").arg(&bench.program).status().unwrap().success());
    let program = Program::find(&bench.command(&[])).unwrap();
    assert_eq!(program.instrumented, Instrumented::Unknown);
    assert_eq!(bench.run("status", None).0.status(), 42);
}

#[test]
fn an_unwritable_place_is_named() {
    let bench = Bench::new();
    let mut args = bench.args("x", &[]);
    args.output = Some("/proc/nowhere.trace".into());
    let error = bench.record(args).unwrap_err();
    assert!(matches!(&error, RecordError::Create { path, .. } if path.ends_with("nowhere.trace")));
    assert_eq!(error.exit_code(), 1);
}

#[test]
fn a_program_that_is_not_there_is_an_error_of_usage() {
    let missing = [OsString::from("no-such-program-anywhere")];
    let error = Program::find(&missing).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert_eq!(
        Names::new(None, &missing[0]).single().unwrap(),
        Path::new("no-such-program-anywhere.trace")
    );
}

#[test]
fn what_is_sent_to_the_recorder_reaches_the_program() {
    let bench = Bench::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let program = Program::find(&bench.command(&["hang"])).unwrap();
    let interrupts = Interrupts::catch();
    let sender = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(300));
        // SAFETY: no pointers; the handler for this signal is in place.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
    });
    let options = Options { timeout: Some(Duration::from_secs(60)), ..Options::default() };
    let mut run = run(&program, &bench.at("i.trace"), &options, &interrupts).unwrap();
    sender.join().unwrap();
    assert_eq!(interrupts.received(), Some(libc::SIGTERM));
    drop(turn);
    assert_eq!(run.status(), 143);
    run.seal().unwrap();
    let trace = Trace::open(bench.at("i.trace")).unwrap();
    assert!(!trace.manifest().timed_out);
    assert!(entered_main(&trace));
}
