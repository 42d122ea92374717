//! One run of the program.

use crate::record::children::{Family, Found};
use crate::record::fail_if::{self, Spool};
use crate::record::logged::{bytes_behind_windows, stream_bytes};
use crate::record::noise::{REPORT_FILE, take_steps};
use crate::record::openmp;
use crate::record::stuck::Stuck;
use crate::record::tee::Tee;
use crate::record::time_limit::{Ended, TimeLimit, states};
use crate::record::words::is_interrupt;
use crate::record::{FailAt, Instrumented, Interrupts, Noise, Perturbation, Program, RecordError};
use crate::said::say;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trace_format::layout::{
    CHILDREN_VARIABLE, DETECT_VARIABLE, FAIL_AT_VARIABLE, NOISE_TIME_VARIABLE, NOISE_VARIABLE,
    PROCESS_FILE_SIZE, READINGS_VARIABLE, REPORT_VARIABLE, TRACE_DIR_VARIABLE,
};
use trace_format::{Manifest, Outcome, OutputCheck, TraceError, files};

/// How often the recorder looks for interrupts while the program runs.
const LOOK: Duration = Duration::from_millis(50);
/// The only thing to detect so far.
const USE_AFTER_FREE: &str = "use-after-free";

/// A process of the recording that is recorded, too, has its trace directory after this time.
const BEGINS_WITHIN: Duration = Duration::from_millis(300);
/// A log of more bytes is said to be large.
const LARGE: u64 = 1 << 30;
/// A program that has not computed for so long may be in a deadlock: the user is told what to do.
const SAY_IDLE_AFTER: Duration = Duration::from_secs(10);
/// After this time it is said that the recorder waits for children.
const SAY_AFTER: Duration = Duration::from_secs(1);

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// After this time the run is ended.
    pub timeout: Option<Duration>,
    /// A run that is at work when its time is up did not fail: there is no need to give it the time once more.
    pub endless: bool,
    /// Pass the program's output on?
    pub show_output: bool,
    /// Record the instrumented programs that the program starts, too? Then it need not be
    /// instrumented itself.
    pub follow: bool,
    /// What is added to the program's environment.
    pub environment: Vec<(&'static str, OsString)>,
    /// OpenMP's settings, as a manifest has them; those of this process where there are none.
    pub openmp: BTreeMap<String, String>,
    /// How to run it again elsewhere than from where the user stands; none for a first run.
    pub confined: Option<Confined>,
    /// Watch the heap for accesses to freed objects?
    pub detect: bool,
    /// After how many bytes of its path a thread reads the clock; the runtime's default unless given.
    pub readings: Option<u32>,
    /// The line whose execution is the failure.
    pub fail_at: Option<FailAt>,
    /// A shell command that looks at the output of a run that ended well.
    pub fail_if: Option<String>,
    /// What perturbs the schedule; none to let the threads run as they would.
    pub perturbation: Option<Perturbation>,
    /// The run is ended, as when its time is up, when its streams have so many bytes.
    pub most_bytes: Option<u64>,
    /// Is the run ended, as when its time is up, when all its threads wait for ever?
    pub ends_when_stuck: bool,
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
    /// Did the program itself record? If not, there is no trace directory, only the children's.
    pub recorded: bool,
    /// Of a child: the name of its program.
    pub program: String,
    /// The processes that were recorded beside the program, in the order in which they began.
    pub children: Vec<Run>,
    /// Where the children's traces are, until they are moved.
    _family: Option<Family>,
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
    let failed = |source| RecordError::Create { path: directory.to_owned(), source };
    let absolute = std::path::absolute(directory).map_err(failed)?;
    // A job that collects traces need not make the place for them first.
    if let Some(parent) = absolute.parent() {
        fs_err::create_dir_all(parent).map_err(failed)?;
    }
    fs_err::create_dir(&absolute).map_err(failed)?;
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
    let family = if options.follow { Some(Family::beside(directory)?) } else { None };
    let started = Instant::now();
    let mut child = spawn(program, directory, options, family.as_ref())?;
    let pid = child.id();
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
    let (status, ended) = wait(&mut child, directory, options, interrupts, family.as_ref())
        .map_err(|source| RecordError::Io { action: "wait for the program", source })?;
    manifest.duration_ms = Some(started.elapsed().as_millis() as u64);
    ended.note(pid, &mut manifest);
    manifest.outcome = outcome(status);
    let tail = |tee: Option<io::Result<Tee>>| match tee {
        Some(Ok(tee)) => tee.finish(),
        _ => Vec::new(),
    };
    let (stdout, stderr) = (tail(stdout), tail(stderr));
    let mut found = match &family {
        Some(family) => family.found()?,
        None => Vec::new(),
    };
    let recorded = take_own(&mut found, pid, directory, &mut manifest, program, &family)?;
    if recorded {
        check_recorded(program, directory)?;
    } else if found.is_empty() {
        return Err(RecordError::Uninstrumented { program: program.file.clone() });
    }
    if let Some(command) = &options.fail_if {
        let ended_well = manifest.outcome == Some(Outcome::Exited(0));
        let failed = match output.filter(|_| ended_well) {
            Some(output) => fail_if::is_wrong(command, output, directory, &manifest, options)?,
            None => false,
        };
        manifest.fail_if = Some(OutputCheck { command: command.clone(), failed });
    }
    let mut children: Vec<Run> =
        found.iter().map(|found| child_run(found, &manifest, &ended)).collect();
    if !recorded && manifest.outcome != Some(Outcome::Exited(0)) && !manifest.timed_out {
        note_ended(&mut children)?;
    }
    let executable = match &manifest.process {
        Some(_) => PathBuf::from(&manifest.executable.path),
        None => program.file.clone(),
    };
    let steps = options.perturbation.and_then(|_| take_steps(directory));
    if !recorded {
        fs_err::remove_dir_all(directory)
            .map_err(|source| RecordError::Io { action: "remove an empty trace", source })?;
    }
    let program = String::new();
    let directory = directory.to_owned();
    Ok(Run {
        directory,
        manifest,
        stdout,
        stderr,
        executable,
        steps,
        recorded,
        program,
        children,
        _family: family,
    })
}

/// Takes the trace of the program itself from among the children's, where it was not known
/// beforehand that it would record: of a shell script that becomes an instrumented program, say.
/// False when the program did not record.
fn take_own(
    found: &mut Vec<Found>,
    pid: u32,
    directory: &Path,
    manifest: &mut Manifest,
    program: &Program,
    family: &Option<Family>,
) -> Result<bool, RecordError> {
    if family.is_none() || program.instrumented == Instrumented::Yes {
        return Ok(true);
    }
    let Some(at) = found.iter().position(|found| found.origin.identity.pid == pid) else {
        return Ok(false);
    };
    let own = found.remove(at);
    manifest.command.clone_from(&own.origin.command);
    manifest.directory.clone_from(&own.origin.directory);
    manifest.openmp = openmp::settings_of(&own.origin.openmp);
    manifest.executable = Program::at(Path::new(&own.origin.executable), Vec::new()).executable();
    manifest.process = Some(own.origin.identity);
    fs_err::remove_dir_all(directory)
        .and_then(|()| fs_err::rename(&own.directory, directory))
        .map_err(|source| RecordError::Io { action: "move the program's trace", source })?;
    manifest.write(directory)?;
    Ok(true)
}

fn child_run(found: &Found, run: &Manifest, ended: &Ended) -> Run {
    let executable = PathBuf::from(&found.origin.executable);
    let mut manifest = found.manifest(run, ended);
    manifest.executable = Program::at(&executable, Vec::new()).executable();
    Run {
        directory: found.directory.clone(),
        manifest,
        stdout: Vec::new(),
        stderr: Vec::new(),
        executable,
        steps: None,
        recorded: true,
        program: found.program(),
        children: Vec::new(),
        _family: None,
    }
}

/// A command failed that did not record itself. Where no process that did has failed by itself, those whose end left no
/// trace of its own were ended from outside, by the command's own time limit, say: nobody but their parents saw how.
fn note_ended(children: &mut [Run]) -> Result<(), RecordError> {
    for child in children.iter() {
        if child.failed()? {
            return Ok(());
        }
    }
    let pids: Vec<_> =
        children.iter().map(|child| child.manifest.process.map(|it| it.pid)).collect();
    for (at, child) in children.iter_mut().enumerate() {
        // A fork may have become another program, and so has a process that recorded again.
        let forked = child.manifest.process.is_some_and(|process| process.forked);
        let again = pids.iter().skip(at + 1).any(|pid| *pid == pids[at]);
        if child.manifest.outcome.is_none() && !forked && !again {
            child.manifest.outcome = Some(Outcome::Ended);
        }
    }
    Ok(())
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
    manifest.endless = options.endless;
    manifest.detect = options.detect.then(|| USE_AFTER_FREE.to_owned());
    manifest.fail_at = options.fail_at.as_ref().map(ToString::to_string);
    manifest.seed = options.perturbation.map(|perturbation| perturbation.seed);
    manifest.openmp = openmp_settings(options);
    manifest.common_clock = has_invariant_clock();
    manifest
}

fn openmp_settings(options: &Options) -> BTreeMap<String, String> {
    match options.openmp.is_empty() {
        true => openmp::settings(),
        false => options.openmp.clone(),
    }
}

/// Does the processor say that its time-stamp counter goes at one rate whatever its state?
fn has_invariant_clock() -> bool {
    const LARGEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    let largest = std::arch::x86_64::__cpuid(LARGEST).eax;
    largest >= POWER && std::arch::x86_64::__cpuid(POWER).edx & INVARIANT != 0
}

fn spawn(
    program: &Program,
    directory: &Path,
    options: &Options,
    family: Option<&Family>,
) -> Result<Child, RecordError> {
    let name = program.command.first().cloned().unwrap_or_default();
    let failed = |source| RecordError::Start { program: name.clone(), source };
    let mut command = match &options.confined {
        None => {
            super::input::rewind();
            Command::new(&name)
        }
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
    for name in [NOISE_VARIABLE, NOISE_TIME_VARIABLE, CHILDREN_VARIABLE, TRACE_DIR_VARIABLE] {
        command.env_remove(name);
    }
    set_for_libraries(&mut command, |name| std::env::var_os(name));
    let known = family.is_none() || program.instrumented == Instrumented::Yes;
    if known {
        command.env(TRACE_DIR_VARIABLE, directory);
    }
    if let Some(family) = family {
        command.env(CHILDREN_VARIABLE, family.root());
    }
    if let Some(perturbation) = options.perturbation {
        command.env(NOISE_VARIABLE, perturbation.variable());
        if let Some(time) = options.timeout.filter(|_| perturbation.noise.ends()) {
            command.env(NOISE_TIME_VARIABLE, time.as_millis().to_string());
        }
        if known && matches!(perturbation.noise, Noise::Pct { .. }) {
            command.env(REPORT_VARIABLE, directory.join(REPORT_FILE));
        }
    }
    for name in [DETECT_VARIABLE, FAIL_AT_VARIABLE, READINGS_VARIABLE] {
        command.env_remove(name);
    }
    if options.detect {
        command.env(DETECT_VARIABLE, USE_AFTER_FREE);
    }
    if let Some(bytes) = options.readings {
        command.env(READINGS_VARIABLE, bytes.to_string());
    }
    if let Some(place) = &options.fail_at {
        command.env(FAIL_AT_VARIABLE, place.variable());
    }
    openmp::apply(&openmp_settings(options), &mut command);
    command
        .args(program.command.iter().skip(1))
        .envs(options.environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)
}

/// Variables of libraries, by what they are for the caller.
fn set_for_libraries(command: &mut Command, variable: impl Fn(&str) -> Option<OsString>) {
    // GLib up to 2.75 keeps small objects in blocks of its own otherwise: they would be neither objects of the
    // program nor ever freed.
    if variable("G_SLICE").is_none() {
        command.env("G_SLICE", "always-malloc");
    }
    // What finds and prints a panic's call stack is not followed, and takes its time in each failing run; the trace tells
    // the stack. Stacks that the program itself asks for stay.
    if let Some(value) = variable("RUST_BACKTRACE").filter(|value| value != "0") {
        command.env("RUST_BACKTRACE", "0");
        if variable("RUST_LIB_BACKTRACE").is_none() {
            command.env("RUST_LIB_BACKTRACE", value);
        }
    }
}

/// Waits for the end of the program and of all recorded processes that it started, for its time-out,
/// for too long a log, or for an interrupt to pass on. Gives the processes that were ended because their time was up.
fn wait(
    child: &mut Child,
    directory: &Path,
    options: &Options,
    interrupts: &Interrupts,
    family: Option<&Family>,
) -> io::Result<(ExitStatus, Ended)> {
    let confined = options.confined.is_some();
    let mut limit = options.timeout.and_then(|time| {
        // What disturbs a run at random slows it down: it gets its time once more without that.
        let slowed = !options.endless && options.perturbation.is_some_and(|it| it.noise.ends());
        TimeLimit::new(Instant::now(), time, slowed)
    });
    let pid = child.id() as libc::pid_t;
    let (send, ended) = channel();
    let watch = std::thread::Builder::new().name("wait".into()).spawn(move || {
        wait_without_reaping(pid);
        let _ = send.send(());
    })?;
    let mut timed_out = false;
    let mut grew = false;
    let mut ended_here = Ended::default();
    let mut say_large = options.show_output;
    // Who gave a time-out need not be told of it.
    let mut idle = Some(Idle::new(Instant::now()));
    idle = idle.filter(|_| options.show_output && limit.is_none());
    let mut stuck = options.ends_when_stuck.then(|| Stuck::new(Instant::now()));
    loop {
        let logged = if idle.is_some() || say_large { stream_bytes(directory) } else { 0 };
        let signs =
            || Signs { used: processor_time(pid), logged, waits_for_disk: waits_for_disk(pid) };
        if idle.as_mut().is_some_and(|idle| idle.seen(&signs(), Instant::now())) {
            idle = None;
            say(format_args!(
                "the program has not computed for {} s; if its threads wait for each other, \
                 end it with Ctrl-C, which keeps the run (--timeout does so by itself)",
                SAY_IDLE_AFTER.as_secs()
            ));
        }
        if say_large && logged > LARGE {
            say_large = false;
            say(format_args!(
                "the log has more than {} GiB, which takes long to solve; Ctrl-C ends the run and \
                 keeps it. Where a thread waits in a loop that counts its rounds, each of them is logged: have it \
                 sleep there",
                LARGE >> 30
            ));
        }
        let left = limit.as_ref().filter(|_| !timed_out);
        let left = left.map_or(LOOK, |limit| limit.left(Instant::now()).min(LOOK));
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
        let processes = || {
            let recorded = family.map_or_else(Vec::new, Family::running);
            recorded.into_iter().chain([child.id()]).collect()
        };
        let late = limit.as_mut().is_some_and(|limit| limit.is_up(Instant::now(), &processes));
        let long = || options.most_bytes.is_some_and(|most| bytes_behind_windows(directory) > most);
        let mut is_stuck =
            || stuck.as_mut().is_some_and(|stuck| stuck.seen(child.id(), Instant::now()));
        if timed_out {
            continue;
        }
        grew = !late && long();
        if late || grew || is_stuck() {
            timed_out = true;
            // As long as the program lives, its descendants can be told by it.
            ended_here.processes.extend(family.into_iter().flat_map(Family::end));
            send_signal(pid, libc::SIGKILL);
        }
    }
    let _ = watch.join();
    if confined {
        // Not reaped yet, so the group's id cannot be another's.
        send_signal(-pid, libc::SIGKILL);
    }
    let status = child.wait()?;
    if let Some(family) = family {
        let deadline = limit.as_ref().map(TimeLimit::deadline);
        ended_here.processes.extend(wait_for_children(family, deadline, options, interrupts));
    }
    // A program that ended by itself at the last moment was not ended by the recorder.
    ended_here.processes.retain(|ended| *ended != child.id());
    if timed_out && status.signal() == Some(libc::SIGKILL) {
        ended_here.processes.push(child.id());
    }
    ended_here.note_running(limit, grew.then(|| child.id()));
    Ok((status, ended_here))
}

/// What tells whether a program gets on.
struct Signs {
    /// Processor time.
    used: Option<u64>,
    /// Bytes of log: who writes much of it waits for the disk rather than computes.
    logged: u64,
    waits_for_disk: bool,
}

/// Watches whether a program computes.
struct Idle {
    /// Its processor time and log when one of them last had changed, and when that was.
    last: (Option<u64>, u64),
    since: Instant,
}

impl Idle {
    fn new(now: Instant) -> Self {
        Self { last: (None, 0), since: now }
    }

    /// Takes how far it has come by now; says whether it has not computed for long.
    fn seen(&mut self, signs: &Signs, now: Instant) -> bool {
        let last = (signs.used, signs.logged);
        if last != self.last || signs.waits_for_disk {
            (self.last, self.since) = (last, now);
        }
        signs.used.is_some() && now.duration_since(self.since) >= SAY_IDLE_AFTER
    }
}

/// The processor time that a process has used, in clock ticks.
fn processor_time(pid: libc::pid_t) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may have anything in it, parentheses and spaces too.
    let mut rest = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || rest.next()?.parse::<u64>().ok();
    next()?.checked_add(next()?)
}

/// Does a thread of the process wait for a disk? Then it is not for another thread that it waits.
fn waits_for_disk(pid: libc::pid_t) -> bool {
    states(pid.cast_unsigned()).any(|state| state == "D")
}

/// Waits for recorded processes that go on without the program. An interrupt ends the wait.
fn wait_for_children(
    family: &Family,
    deadline: Option<Instant>,
    options: &Options,
    interrupts: &Interrupts,
) -> Vec<u32> {
    let since = Instant::now();
    let mut said = !options.show_output;
    loop {
        let running = family.running();
        // A child that was just forked has yet to say that it is recorded.
        let may_begin = since.elapsed() < BEGINS_WITHIN && family.is_alive();
        if (running.is_empty() && !may_begin) || interrupts.received().is_some() {
            return Vec::new();
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return family.end();
        }
        if !said && since.elapsed() >= SAY_AFTER {
            said = true;
            let pids: Vec<String> = running.iter().map(ToString::to_string).collect();
            say(format_args!(
                "waiting for recorded processes that go on: {}; Ctrl-C ends the wait",
                pids.join(", ")
            ));
        }
        std::thread::sleep(LOOK);
    }
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
            Some(Outcome::Ended) => 128u8.wrapping_add(libc::SIGKILL as u8),
            None => 0,
        }
    }

    /// After an interrupt: may the process have ended because of it? By the signal, or because the
    /// program caught that and exited.
    #[must_use]
    pub fn was_interrupted(&self) -> bool {
        match self.manifest.outcome {
            Some(Outcome::Signalled(signal)) => is_interrupt(i64::from(signal)),
            Some(Outcome::Exited(_)) => true,
            Some(Outcome::Ended) | None => false,
        }
    }

    /// Moves the trace to another place on the same file system.
    ///
    /// # Errors
    ///
    /// When that is not possible.
    pub fn move_to(&mut self, place: &Path) -> Result<(), RecordError> {
        fs_err::rename(&self.directory, place)
            .map_err(|source| RecordError::Io { action: "move the trace of a child", source })?;
        self.directory = place.to_owned();
        Ok(())
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
        if !self.recorded {
            return Ok(());
        }
        fs_err::remove_dir_all(&self.directory)
            .map_err(|source| RecordError::Io { action: "remove a passing run", source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(given: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut command = Command::new("true");
        let of = |name: &str| given.iter().find(|(given, _)| *given == name);
        set_for_libraries(&mut command, |name| of(name).map(|(_, value)| (*value).into()));
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect()
    }

    #[test]
    fn a_panic_prints_no_call_stack_and_the_program_still_can() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(set(&[]), [pair("G_SLICE", "always-malloc")]);
        let slices = ("G_SLICE", "all");
        assert_eq!(set(&[slices, ("RUST_BACKTRACE", "0")]), []);
        let (none, full) = (pair("RUST_BACKTRACE", "0"), pair("RUST_LIB_BACKTRACE", "full"));
        assert_eq!(set(&[slices, ("RUST_BACKTRACE", "full")]), [none.clone(), full]);
        let both = [slices, ("RUST_BACKTRACE", "1"), ("RUST_LIB_BACKTRACE", "0")];
        assert_eq!(set(&both), [none]);
    }

    #[test]
    fn a_program_that_does_not_compute_is_noticed() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut idle = Idle::new(start);
        let signs = |used, logged| Signs { used: Some(used), logged, waits_for_disk: false };
        assert!(!idle.seen(&signs(3, 0), after(1)));
        assert!(!idle.seen(&signs(3, 0), after(10)), "9 s");
        assert!(!idle.seen(&signs(4, 0), after(11)));
        assert!(!idle.seen(&signs(4, 8), after(20)), "its log grew");
        let disk = Signs { waits_for_disk: true, ..signs(4, 8) };
        assert!(!idle.seen(&disk, after(30)), "it waits for the disk");
        assert!(!idle.seen(&signs(4, 8), after(39)));
        assert!(idle.seen(&signs(4, 8), after(40)));
        let ended = Signs { used: None, ..signs(4, 8) };
        assert!(!idle.seen(&ended, after(60)), "it has ended");
        let own = libc::pid_t::try_from(std::process::id()).unwrap();
        assert!(processor_time(own).is_some());
    }
}
