//! Builds the runtime as programs get it, links C programs with it, and runs them.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;
use trace_format::layout::{INSTRUMENTATION_VERSION, RuntimeEvent, SyncOp};
use trace_format::{Executable, Failure, Manifest, PathEntry, Trace};

/// Where the programs are: cargo's directory for test files.
fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

fn archive() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        let archive = scratch().join("libsymbiosis_rt.a");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        succeed(
            Command::new(rustc)
                .args(["--edition", "2024", "--crate-name", "symbiosis_rt"])
                .args(["--crate-type", "staticlib", "-C", "panic=abort", "-C", "opt-level=3"])
                .args(["-C", "codegen-units=1", "-C", "lto=fat", "-D", "warnings"])
                .args(["--cfg", "symbiosis_export", "--check-cfg", "cfg(symbiosis_export, test)"])
                .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs"))
                .arg("-o")
                .arg(&archive),
        );
        archive
    })
}

/// Compiles and links one of the programs.
pub fn build(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let program = scratch().join(name);
    let compiler = if source.ends_with("cpp") { "clang++" } else { "clang" };
    let mut command = Command::new(compiler);
    command.arg(format!("-DINSTRUMENTATION={INSTRUMENTATION_VERSION}"));
    command.args(["-O1", "-g", "-pthread", "-o"]).arg(&program);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source));
    command.args(flags);
    if !flags.contains(&"-shared") {
        command.arg(archive());
    }
    succeed(&mut command);
    program
}

/// The program with all the scenarios.
pub fn scenarios() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("scenarios.c", "scenarios", &[]))
}

/// A trace directory for a run to come.
pub fn prepare(directory: &Path) {
    let executable = Executable { path: "program".into(), build_id: None };
    let manifest = Manifest::new("0", vec!["program".into()], "/".into(), executable);
    manifest.write(directory).unwrap();
}

/// A run that is over.
pub struct Traced {
    pub directory: TempDir,
    pub status: ExitStatus,
    pub stdout: String,
    pub trace: Trace,
}

/// Runs a command with recording on. No clock is read in between, so that the streams hold what the
/// programs' hooks say and nothing else; `tests/path.rs` and `tests/clock.rs` of the command line's
/// package record with readings.
pub fn run(command: &mut Command) -> Traced {
    run_in(tempfile::tempdir().unwrap(), command)
}

/// The same, into a directory in which something may be already.
pub fn run_in(directory: TempDir, command: &mut Command) -> Traced {
    prepare(directory.path());
    let output = command
        .env("SYMBIOSIS_TRACE_DIR", directory.path())
        .env("SYMBIOSIS_READINGS", "0")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let trace = Trace::open(directory.path()).unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    Traced { directory, status: output.status, stdout, trace }
}

/// Runs a scenario, recorded and unrecorded: it must end in the same way with the same output.
pub fn scenario(name: &str) -> Traced {
    let traced = run(Command::new(scenarios()).arg(name));
    let plain = Command::new(scenarios()).arg(name).output().unwrap();
    assert_eq!(traced.status, plain.status, "{name}");
    assert_eq!(traced.stdout, String::from_utf8_lossy(&plain.stdout), "{name}");
    traced
}

/// A decoded entry: the payload is in the values where the runtime made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Block(u32),
    Return,
    Enter(u32, u32),
    Runtime(RuntimeEvent, Vec<u64>),
}

impl Entry {
    /// Its payload is when it was.
    pub fn is_thread_exit(&self) -> bool {
        matches!(self, Self::Runtime(RuntimeEvent::ThreadExit, payload) if payload.len() == 1)
    }
}

impl Traced {
    pub fn failure(&self) -> &Failure {
        self.trace.failure().expect("a failure")
    }

    pub fn names(&self) -> Vec<&str> {
        self.trace.threads().iter().map(|thread| thread.name.as_str()).collect()
    }

    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// A thread's entries, in a program whose blocks each log `values_per_block` words. What libraries do with files is left out.
    pub fn entries(&self, thread: &str, values_per_block: usize) -> Vec<Entry> {
        let thread = self.trace.threads().iter().find(|t| t.name == thread).expect(thread);
        let mut path = self.trace.path(thread).unwrap();
        let mut values = self.trace.values(thread).unwrap();
        let mut entries = Vec::new();
        while let Some(entry) = path.next().unwrap() {
            entries.push(match entry {
                PathEntry::Block(index) => {
                    for _ in 0..values_per_block {
                        values.word().unwrap();
                    }
                    Entry::Block(index)
                }
                PathEntry::Return => Entry::Return,
                PathEntry::Called { .. } | PathEntry::CameBack => panic!("the hooks name nobody"),
                PathEntry::Choices(_) | PathEntry::Open => panic!("the hooks make no choices"),
                PathEntry::Enter { module, function } => Entry::Enter(module.0, function),
                PathEntry::Runtime(event @ (RuntimeEvent::SyncBegin | RuntimeEvent::SyncEnd)) => {
                    Entry::Runtime(event, values.sync().unwrap().unwrap().to_vec())
                }
                PathEntry::Runtime(event @ (RuntimeEvent::Locked | RuntimeEvent::Unlocked)) => {
                    let (address, time) = values.short_sync().unwrap().unwrap();
                    Entry::Runtime(event, vec![address, time])
                }
                PathEntry::Runtime(event) => {
                    let fixed = match event {
                        RuntimeEvent::NonLocal => 0,
                        RuntimeEvent::JoinBegin
                        | RuntimeEvent::ThreadExit
                        | RuntimeEvent::Reading
                        | RuntimeEvent::CallReading => 1,
                        RuntimeEvent::JoinEnd
                        | RuntimeEvent::Free
                        | RuntimeEvent::ExternalWrite => 2,
                        RuntimeEvent::Allocate | RuntimeEvent::Unmap => 3,
                        RuntimeEvent::Map => 5,
                        _ => 4,
                    };
                    let mut payload: Vec<u64> =
                        (0..fixed).map(|_| values.word().unwrap().unwrap()).collect();
                    if event == RuntimeEvent::ExternalWrite {
                        let words = payload[1].div_ceil(8);
                        payload.extend((0..words).map(|_| values.word().unwrap().unwrap()));
                    }
                    Entry::Runtime(event, payload)
                }
            });
        }
        entries.retain(|entry| !matches!(entry, Entry::Runtime(RuntimeEvent::CallReading, _)));
        entries
    }

    /// The payloads of a thread's synchronisation calls at their beginnings (`SyncBegin`) or ends
    /// (`SyncEnd`), also of those that took one entry.
    pub fn calls(&self, thread: &str, values_per_block: usize, at: RuntimeEvent) -> Vec<Vec<u64>> {
        self.entries(thread, values_per_block)
            .into_iter()
            .filter_map(|entry| {
                let Entry::Runtime(event, payload) = entry else { return None };
                let operation = match event {
                    RuntimeEvent::Locked => SyncOp::MutexLock,
                    RuntimeEvent::Unlocked => SyncOp::MutexUnlock,
                    event => return (event == at).then_some(payload),
                };
                Some(vec![operation as u64, payload[0], 0, 0, payload[1]])
            })
            .collect()
    }

    /// The events of a thread that are of this kind.
    pub fn events(
        &self,
        thread: &str,
        values_per_block: usize,
        kind: RuntimeEvent,
    ) -> Vec<Vec<u64>> {
        self.entries(thread, values_per_block)
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::Runtime(event, payload) if event == kind => Some(payload),
                _ => None,
            })
            .collect()
    }
}

/// The operation, argument or result of synchronisation payloads.
pub fn operations(payloads: &[Vec<u64>]) -> Vec<(SyncOp, i64)> {
    payloads.iter().map(|p| (SyncOp::from_code(p[0]).unwrap(), p[3] as i64)).collect()
}
