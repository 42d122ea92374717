//! `symbiosis replay --gdb`: the program under a schedule and in the hands of gdb, which stops
//! before the events of the differential schedule projection.
//!
//! The schedule's text gets `mark` directives for the events. When a thread passes such a place, the
//! runtime calls `symbiosis_mark(number, thread name)`, which does nothing; gdb has a breakpoint
//! there, and shows from there what it is about. With Python in it (as Debian's gdb has) it selects
//! the frame of the user's code and evaluates the variable there; without, a plain script does what
//! it can.

mod plain;
mod stops;
#[cfg(test)]
mod tests;

pub use stops::{Marked, Stop, events, marked};

use crate::cli::{self, exit_codes};
use crate::record::Interrupts;
use crate::scratch::Scratch;
use render::solution::Failure;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use trace_format::layout::{
    NOISE_VARIABLE, PATIENCE_VARIABLE, REPORT_VARIABLE, SCHEDULE_VARIABLE, TRACE_DIR_VARIABLE,
};

/// A user thinks for as long as it takes: a week, in milliseconds.
const PATIENCE: u64 = 7 * 24 * 3600 * 1000;
/// How often a batch session looks whether its time is up.
const LOOK: Duration = Duration::from_millis(20);

const SESSION: &str = include_str!("gdb/session.py");

/// What gdb is started with.
#[derive(Clone, Debug)]
pub struct Session<'a> {
    /// The program's file.
    pub program: &'a Path,
    /// Its arguments, without its name.
    pub arguments: &'a [OsString],
    /// The working directory.
    pub directory: &'a Path,
    /// What a batch session's program reads as standard input; none for an empty one.
    pub input: Option<&'a Path>,
    /// The schedule's text with its marks, and where to stop.
    pub marked: &'a Marked,
    /// The failure that is expected at the end; none under a schedule that avoids it.
    pub failure: Option<&'a Failure>,
    /// Show every stop and go on to the failure, instead of asking the user.
    pub batch: bool,
    /// After this time a batch session is ended.
    pub timeout: Duration,
}

/// Why there was no session.
#[derive(Debug, thiserror::Error)]
pub enum GdbError {
    /// gdb cannot be started.
    #[error("cannot run gdb; install the package gdb")]
    Start(#[source] io::Error),
    /// A file of the session cannot be written, or gdb cannot be waited for.
    #[error("cannot {action}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A batch session took too long.
    #[error("gdb was ended after {seconds} seconds; `--timeout` allows for more")]
    TimedOut {
        /// The time that it had.
        seconds: u64,
    },
}

impl From<GdbError> for cli::Failure {
    fn from(error: GdbError) -> Self {
        let code = match error {
            GdbError::TimedOut { .. } => exit_codes::LIMIT,
            GdbError::Start(_) | GdbError::Io { .. } => exit_codes::UNEXPECTED,
        };
        Self::new(code, error)
    }
}

/// Runs gdb to its end.
///
/// # Errors
/// When gdb cannot be started, or a batch session did not end in time. What the program does is no
/// error.
pub fn run(session: &Session<'_>) -> Result<ExitStatus, GdbError> {
    let failed = |action| move |source| GdbError::Io { action, source };
    let scratch = Scratch::new("symbiosis-gdb");
    let scratch = scratch.map_err(failed("make a temporary directory"))?;
    let mut command = command(session, scratch.path(), has_python()?)?;
    // A user's Ctrl-C is for the program in gdb's hands, and must not end this process.
    let interrupts = Interrupts::catch();
    let mut child = command.spawn().map_err(GdbError::Start)?;
    let status = match session.batch {
        true => wait(&mut child, session.timeout, &interrupts)?,
        false => child.wait().map_err(failed("wait for gdb"))?,
    };
    Ok(status)
}

/// gdb's command line, its environment, and the files that both name, which go into `scratch`.
fn command(session: &Session<'_>, scratch: &Path, python: bool) -> Result<Command, GdbError> {
    let write = |name: &str, text: &str| {
        let path = scratch.join(name);
        let failed = |source| GdbError::Io { action: "write a file of the session", source };
        fs_err::write(&path, text).map(|()| path).map_err(failed)
    };
    let schedule = write("schedule", &session.marked.script)?;
    let mut command = Command::new("gdb");
    command.arg("-q");
    if session.batch {
        command.args(["-nx", "-batch"]).stdin(input(session)?);
    }
    command.args(settings(session));
    if python {
        command.arg("-x").arg(write("session.py", &python_script(session))?);
    } else {
        command.arg("-x").arg(write("session.gdb", &plain::script(session))?);
        command.args(plain::commands(session));
    }
    command
        .arg("--args")
        .arg(session.program)
        .args(session.arguments)
        .current_dir(session.directory)
        .env(SCHEDULE_VARIABLE, &schedule)
        .env(REPORT_VARIABLE, scratch.join("report"))
        .env(PATIENCE_VARIABLE, PATIENCE.to_string())
        .env_remove(NOISE_VARIABLE)
        .env_remove(TRACE_DIR_VARIABLE)
        // gdb starts the program through it.
        .env("SHELL", "/bin/sh");
    Ok(command)
}

fn input(session: &Session<'_>) -> Result<Stdio, GdbError> {
    let Some(path) = session.input else { return Ok(Stdio::null()) };
    let file = fs_err::File::open(path)
        .map_err(|source| GdbError::Io { action: "open the program's input", source })?;
    Ok(file.into_file().into())
}

fn wait(
    child: &mut Child,
    timeout: Duration,
    interrupts: &Interrupts,
) -> Result<ExitStatus, GdbError> {
    let failed = |source| GdbError::Io { action: "wait for gdb", source };
    let deadline = Instant::now().checked_add(timeout);
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late || interrupts.received().is_some() {
            // The program dies with gdb, which has it traced that way.
            child.kill().map_err(failed)?;
            let status = child.wait().map_err(failed)?;
            return match late {
                true => Err(GdbError::TimedOut { seconds: timeout.as_secs() }),
                false => Ok(status),
            };
        }
        std::thread::sleep(LOOK);
    }
}

/// Can this gdb run Python? Debian has one that cannot, gdb-minimal.
fn has_python() -> Result<bool, GdbError> {
    let mut command = Command::new("gdb");
    command.args(["-nx", "-q", "-batch", "-ex", "python print(6 * 7)"]).stdin(Stdio::null());
    let output = command.output().map_err(GdbError::Start)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim() == "42")
}

/// Settings that hold before anything else happens.
fn settings(session: &Session<'_>) -> Vec<&'static str> {
    let mut lines = vec!["set print thread-events off", "set print inferior-events off"];
    if session.batch {
        lines.extend(["set pagination off", "set confirm off", "set debuginfod enabled off"]);
        lines.extend(["set width 0", "set style enabled off"]);
    }
    lines.into_iter().flat_map(|line| ["-iex", line]).collect()
}

/// Does the program fail by ending, so that nothing but its exit can be stopped at?
fn fails_by_exit(session: &Session<'_>) -> bool {
    session.failure.is_some_and(|failure| failure.kind == "exit")
}

/// The script for a gdb with Python: the session's data is a JSON text, and a JSON string is a
/// Python string.
fn python_script(session: &Session<'_>) -> String {
    let stops: Vec<serde_json::Value> = session
        .marked
        .stops
        .iter()
        .map(|stop| {
            serde_json::json!({
                "mark": stop.mark,
                "header": stop.header(),
                "values": stop.values(),
                "object": stop.object,
                "file": stop.location.file,
                "line": stop.location.line,
            })
        })
        .collect();
    let failure = session.failure.map(|failure| {
        serde_json::json!({
            "words": failure_in_words(failure),
            "file": failure.location.file,
            "line": failure.location.line,
        })
    });
    let data = serde_json::json!({
        "stops": stops,
        "failure": failure,
        "exits": fails_by_exit(session),
        "batch": session.batch,
    });
    SESSION.replace("@SESSION@", &serde_json::Value::from(data.to_string()).to_string())
}

fn failure_in_words(failure: &Failure) -> String {
    let place = render::lanes::place(&failure.location);
    let message = match failure.message.is_empty() {
        true => String::new(),
        false => format!(": {}", failure.message),
    };
    format!("{}{message} at {place}, thread {}", failure.kind, failure.thread)
}
