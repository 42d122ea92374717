//! One run of the program.

use crate::record::fail_if::{self, Spool};
use crate::record::noise::{REPORT_FILE, take_steps};
use crate::record::tee::Tee;
use crate::record::{FailAt, Instrumented, Interrupts, Noise, Perturbation, Program, RecordError};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trace_format::layout::{
    DETECT_VARIABLE, FAIL_AT_VARIABLE, NOISE_VARIABLE, PROCESS_FILE_SIZE, REPORT_VARIABLE,
    TRACE_DIR_VARIABLE,
};
use trace_format::{Manifest, Outcome, OutputCheck, TraceError, files};

/// How often the recorder looks for interrupts while the program runs.
const LOOK: Duration = Duration::from_millis(50);
/// The only thing to detect so far.
const USE_AFTER_FREE: &str = "use-after-free";

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// After this time the run is ended.
    pub timeout: Option<Duration>,
    /// Pass the program's output on?
    pub show_output: bool,
    /// What is added to the program's environment.
    pub environment: Vec<(&'static str, OsString)>,
    /// How to run it again elsewhere than from where the user stands; none for a first run.
    pub confined: Option<Confined>,
    /// Watch the heap for accesses to freed objects?
    pub detect: bool,
    /// The line whose execution is the failure.
    pub fail_at: Option<FailAt>,
    /// A shell command that looks at the output of a run that ended well.
    pub fail_if: Option<String>,
    /// What perturbs the schedule; none to let the threads run as they would.
    pub perturbation: Option<Perturbation>,
}

/// How a program is run again.
///
/// It gets a process group of its own, which ends with it: nothing of a run that was ended must
/// disturb the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confined {
    /// The working directory.
    pub directory: PathBuf,
    /// What it reads as standard input; none for an empty one.
    pub input: Option<PathBuf>,
}

/// A run that is over; its directory holds what it left.
#[derive(Debug)]
pub struct Run {
    /// The trace directory.
    pub directory: PathBuf,
    /// The manifest with the outcome; for threads and failure see [`Run::seal`].
    pub manifest: Manifest,
    /// The tail of standard output.
    pub stdout: Vec<u8>,
    /// The tail of standard error.
    pub stderr: Vec<u8>,
    /// The executable that ran.
    executable: PathBuf,
    /// How many gates and sync points the threads passed; only known of runs under PCT.
    pub steps: Option<u64>,
}

/// Runs the program once, recording into a new directory.
///
/// # Errors
///
/// When the directory cannot be made, or the program cannot be run or does not record.
pub fn run(
    program: &Program,
    directory: &Path,
    options: &Options,
    interrupts: &Interrupts,
) -> Result<Run, RecordError> {
    let absolute = std::path::absolute(directory)
        .map_err(|source| RecordError::Create { path: directory.to_owned(), source })?;
    fs_err::create_dir(&absolute)
        .map_err(|source| RecordError::Create { path: directory.to_owned(), source })?;
    let result = run_in(program, &absolute, options, interrupts);
    if result.is_err() {
        // Nothing of value is in there: the program did not record.
        let _ = fs_err::remove_dir_all(&absolute);
    }
    result.map(|run| Run { directory: directory.to_owned(), ..run })
}

fn run_in(
    program: &Program,
    directory: &Path,
    options: &Options,
    interrupts: &Interrupts,
) -> Result<Run, RecordError> {
    let mut manifest = new_manifest(program, options);
    manifest.write(directory)?;
    let started = Instant::now();
    let mut child = spawn(program, directory, options)?;
    let output = match options.fail_if {
        Some(_) => Some(Spool::new()?),
        None => None,
    };
    let stdout = child.stdout.take().map(|pipe| {
        let shown = options.show_output.then(io::stdout);
        Tee::start(pipe, Spool::beside(shown, output.as_ref()))
    });
    let stderr =
        child.stderr.take().map(|pipe| Tee::start(pipe, options.show_output.then(io::stderr)));
    let (status, timed_out) = wait(&mut child, options, interrupts)
        .map_err(|source| RecordError::Io { action: "wait for the program", source })?;
    manifest.duration_ms = Some(started.elapsed().as_millis() as u64);
    manifest.timed_out = timed_out;
    manifest.outcome = outcome(status);
    let tail = |tee: Option<io::Result<Tee>>| match tee {
        Some(Ok(tee)) => tee.finish(),
        _ => Vec::new(),
    };
    let (stdout, stderr) = (tail(stdout), tail(stderr));
    check_recorded(program, directory)?;
    if let Some(command) = &options.fail_if {
        let ended_well = manifest.outcome == Some(Outcome::Exited(0));
        let failed = match output.filter(|_| ended_well) {
            Some(output) => fail_if::is_wrong(command, output, directory, &manifest, options)?,
            None => false,
        };
        manifest.fail_if = Some(OutputCheck { command: command.clone(), failed });
    }
    let executable = program.file.clone();
    let steps = options.perturbation.and_then(|_| take_steps(directory));
    Ok(Run { directory: directory.to_owned(), manifest, stdout, stderr, executable, steps })
}

fn new_manifest(program: &Program, options: &Options) -> Manifest {
    let command = program.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let here = match &options.confined {
        Some(confined) => confined.directory.clone(),
        None => std::env::current_dir().unwrap_or_default(),
    };
    let here = here.to_string_lossy().into_owned();
    let mut manifest =
        Manifest::new(env!("CARGO_PKG_VERSION"), command, here, program.executable());
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    manifest.started_ms = since.as_millis() as u64;
    manifest.noise = options.perturbation.map(|perturbation| perturbation.noise.to_string());
    manifest.detect = options.detect.then(|| USE_AFTER_FREE.to_owned());
    manifest.fail_at = options.fail_at.as_ref().map(ToString::to_string);
    manifest.seed = options.perturbation.map(|perturbation| perturbation.seed);
    manifest
}

fn spawn(program: &Program, directory: &Path, options: &Options) -> Result<Child, RecordError> {
    let name = program.command.first().cloned().unwrap_or_default();
    let failed = |source| RecordError::Start { program: name.clone(), source };
    let mut command = match &options.confined {
        None => Command::new(&name),
        Some(confined) => {
            // The program sees the name that it had, wherever its file is now.
            let mut command = Command::new(&program.file);
            command.arg0(&name).current_dir(&confined.directory).process_group(0);
            command.stdin(match &confined.input {
                Some(input) => fs_err::File::open(input).map_err(failed)?.into_file().into(),
                None => Stdio::null(),
            });
            command
        }
    };
    // What the manifest does not know of must not happen.
    command.env_remove(NOISE_VARIABLE);
    if let Some(perturbation) = options.perturbation {
        command.env(NOISE_VARIABLE, perturbation.variable());
        if matches!(perturbation.noise, Noise::Pct { .. }) {
            command.env(REPORT_VARIABLE, directory.join(REPORT_FILE));
        }
    }
    for name in [DETECT_VARIABLE, FAIL_AT_VARIABLE] {
        command.env_remove(name);
    }
    if options.detect {
        command.env(DETECT_VARIABLE, USE_AFTER_FREE);
    }
    if let Some(place) = &options.fail_at {
        command.env(FAIL_AT_VARIABLE, place.variable());
    }
    command
        .args(program.command.iter().skip(1))
        .envs(options.environment.iter().map(|(name, value)| (name, value)))
        .env(TRACE_DIR_VARIABLE, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)
}

/// Waits for the program's end, its time-out, or an interrupt to pass on.
fn wait(
    child: &mut Child,
    options: &Options,
    interrupts: &Interrupts,
) -> io::Result<(ExitStatus, bool)> {
    let confined = options.confined.is_some();
    let deadline = options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let pid = child.id() as libc::pid_t;
    let (send, ended) = channel();
    let watch = std::thread::Builder::new().name("wait".into()).spawn(move || {
        wait_without_reaping(pid);
        let _ = send.send(());
    })?;
    let mut timed_out = false;
    loop {
        let left = deadline
            .filter(|_| !timed_out)
            .map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()).min(LOOK));
        match ended.recv_timeout(left) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        // The process is not reaped before `child.wait` below, so its id cannot be another's.
        if confined && interrupts.received().is_some() {
            // The terminal's signal did not reach the program's own group.
            send_signal(pid, libc::SIGKILL);
        } else if let Some(signal) = interrupts.to_forward() {
            send_signal(pid, signal);
        }
        if !timed_out && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            timed_out = true;
            send_signal(pid, libc::SIGKILL);
        }
    }
    let _ = watch.join();
    if confined {
        // Not reaped yet, so the group's id cannot be another's.
        send_signal(-pid, libc::SIGKILL);
    }
    let status = child.wait()?;
    // A program that ended by itself at the last moment was not ended by the recorder.
    Ok((status, timed_out && status.signal() == Some(libc::SIGKILL)))
}

fn wait_without_reaping(pid: libc::pid_t) {
    loop {
        // SAFETY: zeros are a valid `siginfo_t`, and the pointer is to a live one.
        let result = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if result == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

fn send_signal(pid: libc::pid_t, signal: i32) {
    // SAFETY: no pointers.
    unsafe { libc::kill(pid, signal) };
}

fn outcome(status: ExitStatus) -> Option<Outcome> {
    let exited = status.code().map(Outcome::Exited);
    exited.or_else(|| status.signal().map(Outcome::Signalled))
}

/// Fails when the program left no trace.
fn check_recorded(program: &Program, directory: &Path) -> Result<(), RecordError> {
    let length = directory.join(files::PROCESS).metadata().map(|metadata| metadata.len());
    match length {
        Ok(length) if length >= PROCESS_FILE_SIZE as u64 => Ok(()),
        Err(_) if program.instrumented != Instrumented::Yes => {
            Err(RecordError::Uninstrumented { program: program.file.clone() })
        }
        other => Err(RecordError::NotStarted {
            directory: directory.to_owned(),
            offset: other.unwrap_or(0),
        }),
    }
}

impl Run {
    /// What this run's process ended with, as a shell would say it; 1 when only its output was wrong.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self.manifest.outcome {
            Some(Outcome::Exited(0)) => {
                u8::from(self.manifest.fail_if.as_ref().is_some_and(|check| check.failed))
            }
            Some(Outcome::Exited(status)) => status as u8,
            Some(Outcome::Signalled(signal)) => 128u8.wrapping_add(signal as u8),
            None => 0,
        }
    }

    /// Did the run fail? Read from the raw files, for a run that may not be worth sealing.
    ///
    /// # Errors
    ///
    /// When the raw files are malformed.
    pub fn failed(&self) -> Result<bool, TraceError> {
        let mut manifest = self.manifest.clone();
        trace_format::read_raw(&self.directory, &mut manifest)?;
        Ok(manifest.failure.is_some())
    }

    /// Seals the trace and keeps the tails of the output with it.
    ///
    /// # Errors
    ///
    /// When the sealed files cannot be written. The trace then stays as the program left it, and
    /// can be read so.
    pub fn seal(&mut self) -> Result<(), TraceError> {
        for (name, tail) in [(files::STDOUT_TAIL, &self.stdout), (files::STDERR_TAIL, &self.stderr)]
        {
            let path = self.directory.join(name);
            fs_err::write(&path, tail).map_err(|source| {
                let offset = path.metadata().map_or(0, |metadata| metadata.len());
                TraceError::Io { action: "write", path: path.clone(), offset, source }
            })?;
        }
        // A trace without the copy is whole, only not to be replayed elsewhere.
        match trace_format::save_program(&self.directory, &self.executable) {
            Ok(saved) => self.manifest.program = Some(saved),
            Err(error) => tracing::warn!(%error, "the executable is not copied into the trace"),
        }
        // First the outcome: should sealing fail, the unsealed trace has it.
        self.manifest.write(&self.directory)?;
        self.manifest = trace_format::seal(&self.directory, &self.manifest)?;
        Ok(())
    }

    /// Removes what the run left.
    ///
    /// # Errors
    ///
    /// When that is not possible.
    pub fn discard(self) -> Result<(), RecordError> {
        fs_err::remove_dir_all(&self.directory)
            .map_err(|source| RecordError::Io { action: "remove a passing run", source })
    }
}
