//! `manifest.json`: what was run, how it ended, and, once sealed, the threads and the failure.
//!
//! The file carries the CRC-32 of itself, taken with the eight digits of the checksum as zeros, so
//! that damage is told from data.

use crate::error::TraceError;
use crate::files;
use crate::layout::INSTRUMENTATION_VERSION;
use crate::origin::ProcessIdentity;
use crate::version::{FORMAT_VERSION, FormatVersion};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::Path;

const FORMAT_NAME: &str = "symbiosis-trace";
const MARK: &[u8] = b"\"checksum\": \"";
const NO_CHECKSUM: &str = "00000000";

/// Is the trace sealed?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The run is going on, or the recorder was killed: the raw files are all there is.
    Recording,
    /// The run is over and the trace is sealed.
    Complete,
}

/// The program's executable file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executable {
    /// Its path as it was run.
    pub path: String,
    /// Its GNU build id in hexadecimal digits, if it has one.
    pub build_id: Option<String>,
}

/// The copy of the executable in the trace directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedProgram {
    /// Its file in the trace directory, zstd-compressed.
    pub file: String,
    /// The executable's own file name.
    pub name: String,
    /// Its length in bytes.
    pub size: u64,
    /// FNV-1a with 128 bits over it, in 32 hexadecimal digits.
    pub hash: String,
}

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// With this exit status, 0 to 255.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// By another process, with a signal that nobody saw: a time limit of the command that started it, say.
    Ended,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// `__assert_fail`.
    Assertion,
    /// `abort`.
    Abort,
    /// A fatal signal.
    Signal,
    /// An exit status other than 0.
    Exit,
    /// The run took too long and was ended.
    Hang,
    /// An access to a freed object.
    UseAfterFree,
    /// An object was freed twice.
    DoubleFree,
    /// libc found the heap damaged.
    HeapCorruption,
    /// An access beyond the end of the stack.
    StackOverflow,
    /// A C++ exception that nobody caught.
    Exception,
    /// A panic of a Rust program that did not end well.
    Panic,
    /// `symbiosis_fail_if`.
    User,
    /// The line of `record --fail-at` was reached.
    Reached,
    /// The command of `record --fail-if` says that the output is wrong.
    Output,
}

/// What `record --fail-if` was asked to look at the output with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputCheck {
    /// The shell command, which gets the program's standard output and says with status 0 that the
    /// run failed.
    pub command: String,
    /// Did it say so? False as well where it was not asked, because the run failed otherwise.
    pub failed: bool,
}

/// The failure of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// The serial of the thread that failed; none when unknown.
    pub thread_serial: Option<u64>,
    /// The name of the thread that failed, `t0.1` for instance; none when unknown.
    pub thread: Option<String>,
    /// The signal's number, or the exit status.
    pub code: i64,
    /// `si_addr` of a fault, or the object that a failure of the heap is about, as an address in the
    /// traced process; 0 for other kinds.
    pub fault_address: u64,
    /// The program counter at a fatal signal, as an address in the traced process; 0 for others.
    pub fault_pc: u64,
    /// What the program said; for an assertion `file:line: function: expression`.
    pub message: String,
    /// The length of the failing thread's path stream at the failure, in bytes.
    pub path_bytes: u64,
    /// The length of the failing thread's values stream at the failure, in bytes.
    pub value_bytes: u64,
}

/// A file of the trace that could not be made or grown while the program ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteFailure {
    /// The file, relative to the trace directory.
    pub file: String,
    /// Where writing stopped, in bytes.
    pub offset: u64,
    /// The `errno`.
    pub errno: i32,
}

/// A thread of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// `t0`, `t0.1`, ...
    pub name: String,
    /// What its files' names begin with; the same as the name unless that is too long.
    pub file: String,
    /// The number in order of creation, from 1.
    pub serial: u64,
    /// The creator's serial; 0 for the initial thread.
    pub parent: u64,
    /// It is the creator's so-manieth child, from 1; 0 for the initial thread.
    pub ordinal: u64,
    /// The start routine's address in the traced process; 0 for the initial thread.
    pub start_routine: u64,
    /// How many threads it created.
    pub children: u64,
    /// Did it come to its end?
    pub ended: bool,
    /// The `errno` for which a stream could not grow; 0 when both are whole.
    pub overflow_errno: i32,
    /// The length of the path stream in bytes.
    pub path_bytes: u64,
    /// The length of the values stream in bytes.
    pub value_bytes: u64,
}

/// The manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// CRC-32 of the file in eight hexadecimal digits; set when writing.
    checksum: String,
    format: String,
    /// The format's version.
    pub version: FormatVersion,
    /// Sealed or not.
    pub state: State,
    /// The version of the symbiosis that recorded.
    pub tool: String,
    /// The instrumentation version of the recorded program; once sealed.
    pub instrumentation: Option<u32>,
    /// The program and its arguments as given; bytes that are no UTF-8 are replaced.
    pub command: Vec<String>,
    /// The working directory of the run.
    pub directory: String,
    /// The executable.
    pub executable: Executable,
    /// The executable's copy in the trace; none before sealing, and where none could be made.
    #[serde(default)]
    pub program: Option<SavedProgram>,
    /// The start of the run in milliseconds since 1970 (UTC).
    pub started_ms: u64,
    /// How long the run took in milliseconds; once it is over.
    pub duration_ms: Option<u64>,
    /// How the process ended; once it has.
    pub outcome: Option<Outcome>,
    /// The recorder ended the run because its time was up.
    pub timed_out: bool,
    /// Of a run that was ended so: did a thread run in the last moments before? `None` where nobody looked.
    #[serde(default)]
    pub still_running: Option<bool>,
    /// The program goes on until it fails, as the user said: runs without the failure come to no end.
    #[serde(default)]
    pub endless: bool,
    /// The failure; none for a passing run, or before sealing.
    pub failure: Option<Failure>,
    /// The first file that could not be written; none when all is there.
    pub write_failure: Option<WriteFailure>,
    /// How many threads ran instrumented code without streams of their own.
    pub unattached_threads: u64,
    /// How many payloads were cut because they were too long.
    pub cut_writes: u64,
    /// What the run was perturbed by, as `record --noise=` takes it; none for a run without.
    #[serde(default)]
    pub noise: Option<String>,
    /// The seed of the noise.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Was the run asked to follow a schedule?
    #[serde(default)]
    pub schedule: bool,
    /// How many turns the order of a scheduled run has, see
    /// [`Trace::order`](crate::Trace::order); none when the threads ran freely, or before sealing.
    #[serde(default)]
    pub turns: Option<u64>,
    /// What the heap was watched for, as `record --detect=` takes it; none for an ordinary heap.
    #[serde(default)]
    pub detect: Option<String>,
    /// The source line whose execution is the failure, as `record --fail-at=` takes it.
    #[serde(default)]
    pub fail_at: Option<String>,
    /// How the output was looked at, as `record --fail-if=` takes it.
    #[serde(default)]
    pub fail_if: Option<OutputCheck>,
    /// Which process it was, where the recording has several.
    #[serde(default)]
    pub process: Option<ProcessIdentity>,
    /// Does the time-stamp counter go at one rate in all states of the processor? Then the threads'
    /// readings can be compared.
    #[serde(default)]
    pub common_clock: bool,
    /// What the environment said to a program of OpenMP: variables and their values.
    #[serde(default)]
    pub openmp: BTreeMap<String, String>,
    /// The threads in serial order; once sealed.
    pub threads: Vec<ThreadRecord>,
}

impl Manifest {
    /// How long the streams of all threads are, in bytes; 0 until the run has ended.
    #[must_use]
    pub fn stream_bytes(&self) -> u64 {
        let bytes =
            self.threads.iter().map(|thread| thread.path_bytes.saturating_add(thread.value_bytes));
        bytes.fold(0, u64::saturating_add)
    }

    /// The manifest of a run that is about to start.
    #[must_use]
    pub fn new(
        tool: &str,
        command: Vec<String>,
        directory: String,
        executable: Executable,
    ) -> Self {
        Self {
            checksum: NO_CHECKSUM.to_owned(),
            format: FORMAT_NAME.to_owned(),
            version: FORMAT_VERSION,
            state: State::Recording,
            tool: tool.to_owned(),
            instrumentation: None,
            command,
            directory,
            executable,
            program: None,
            started_ms: 0,
            duration_ms: None,
            outcome: None,
            timed_out: false,
            still_running: None,
            endless: false,
            failure: None,
            write_failure: None,
            unattached_threads: 0,
            cut_writes: 0,
            noise: None,
            seed: None,
            schedule: false,
            turns: None,
            detect: None,
            fail_at: None,
            fail_if: None,
            process: None,
            common_clock: false,
            openmp: BTreeMap::new(),
            threads: Vec::new(),
        }
    }

    /// Reads the manifest of a trace directory.
    ///
    /// # Errors
    ///
    /// When there is none, or it is damaged or of a newer format.
    pub fn read(directory: &Path) -> Result<Self, TraceError> {
        let path = directory.join(files::MANIFEST);
        let text = match fs_err::read(&path) {
            Ok(text) => text,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(TraceError::NotATrace { path: directory.to_owned() });
            }
            Err(error) => return Err(TraceError::io("read", &path, 0, error)),
        };
        Self::check_version(&text, &path)?;
        let at = checksum_at(&text).ok_or_else(|| not_json(&path, 0, "no checksum"))?;
        let manifest: Self = serde_json::from_slice(&text)
            .map_err(|error| not_json(&path, byte_of(&text, &error), &error.to_string()))?;
        if manifest.checksum != digits(&text, at) {
            return Err(TraceError::Checksum { path, offset: 0 });
        }
        if let Some(found) = manifest.instrumentation.filter(|v| *v != INSTRUMENTATION_VERSION) {
            let supported = INSTRUMENTATION_VERSION;
            return Err(TraceError::UnknownInstrumentation { path, found, supported });
        }
        Ok(manifest)
    }

    /// Only the fields that every format has are looked at, before anything else can fail.
    fn check_version(text: &[u8], path: &Path) -> Result<(), TraceError> {
        #[derive(Deserialize)]
        struct Head {
            checksum: String,
            format: String,
            version: FormatVersion,
        }
        let head: Head = serde_json::from_slice(text)
            .map_err(|error| not_json(path, byte_of(text, &error), &error.to_string()))?;
        let whole = checksum_at(text).is_some_and(|at| head.checksum == digits(text, at));
        if !whole {
            return Err(TraceError::Checksum { path: path.to_owned(), offset: 0 });
        }
        if head.format != FORMAT_NAME {
            return Err(not_json(path, 0, "another kind of file"));
        }
        if !head.version.is_readable() {
            return Err(TraceError::NewerFormat { path: path.to_owned(), found: head.version });
        }
        Ok(())
    }

    /// Writes the manifest, replacing an older one in one step.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), TraceError> {
        let path = directory.join(files::MANIFEST);
        let blank = Self { checksum: NO_CHECKSUM.to_owned(), ..self.clone() };
        let mut text = serde_json::to_vec_pretty(&blank)
            .map_err(|error| TraceError::io("write", &path, 0, error.into()))?;
        text.push(b'\n');
        if let Some(at) = checksum_at(&text) {
            let checksum = digits(&text, at);
            text.splice(at..at + NO_CHECKSUM.len(), checksum.into_bytes());
        }
        let partial = directory.join("manifest.json.partial");
        let written = fs_err::File::create(&partial)
            .and_then(|mut file| file.write_all(&text))
            .and_then(|()| fs_err::rename(&partial, &path));
        written.map_err(|error| TraceError::Io {
            action: "write",
            path: path.clone(),
            offset: 0,
            source: error,
        })
    }
}

fn not_json(path: &Path, offset: u64, what: &str) -> TraceError {
    TraceError::malformed(path, offset, what)
}

/// Where in the text a JSON error is.
fn byte_of(text: &[u8], error: &serde_json::Error) -> u64 {
    let before = error.line().saturating_sub(1);
    let lines: usize = text.split_inclusive(|&b| b == b'\n').take(before).map(<[u8]>::len).sum();
    (lines + error.column().saturating_sub(1)) as u64
}

/// Where the checksum's digits begin.
fn checksum_at(text: &[u8]) -> Option<usize> {
    let at = text.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    (at + NO_CHECKSUM.len() <= text.len()).then_some(at)
}

/// The checksum that belongs into the text.
fn digits(text: &[u8], at: usize) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(text.get(..at).unwrap_or(&[]));
    hasher.update(NO_CHECKSUM.as_bytes());
    hasher.update(text.get(at + NO_CHECKSUM.len()..).unwrap_or(&[]));
    format!("{:08x}", hasher.finalize())
}
