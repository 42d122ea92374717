//! Commands of `symbiosis`, each in a process of its own.

use super::TriageError;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often it is looked whether a process has ended.
const POLL: Duration = Duration::from_millis(20);
/// A process that is asked to stop after a time gets so much more to print what it has.
const GRACE: Duration = Duration::from_secs(60);

/// How a process ended.
pub(super) struct Ended {
    /// None where it had to be ended.
    pub(super) status: Option<ExitStatus>,
    /// What it said went wrong.
    pub(super) said: String,
    /// After which time it would have been ended.
    pub(super) limit: Duration,
}

/// Has `symbiosis` do this, with JSON as its output, and waits for it. What it says on standard error goes
/// to `place` with an ending.
///
/// # Errors
/// When it cannot be started.
pub(super) fn ask(
    what: &str,
    arguments: &[&OsStr],
    time: Duration,
    place: &Path,
) -> Result<Ended, TriageError> {
    let err = place.with_extension("said");
    let to = std::fs::File::create(&err).map_err(TriageError::Start)?;
    let mut command = Command::new(std::env::current_exe().map_err(TriageError::Start)?);
    command.arg(what).arg("--timeout").arg(time.as_secs().to_string());
    command.args(["--format", "json"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(to);
    let mut child = command.spawn().map_err(TriageError::Start)?;
    let limit = time.saturating_mul(2).saturating_add(GRACE);
    let status = wait(&mut child, limit).map_err(TriageError::Start)?;
    let said = errors(&String::from_utf8_lossy(&fs_err::read(&err).unwrap_or_default()));
    Ok(Ended { status, said, limit })
}

/// Waits so long; `None` when the process had to be ended.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now().checked_add(limit);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

/// What `solve` said went wrong; where it said nothing in its own way, its last line.
fn errors(said: &str) -> String {
    const PREFIX: &str = "symbiosis: error: ";
    let own: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix(PREFIX)).collect();
    match own.as_slice() {
        [] => said.lines().next_back().unwrap_or_default().to_owned(),
        own => own.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_taken_from_what_a_process_said() {
        let said = "symbiosis: warning: old\nsymbiosis: error: no room\n";
        assert_eq!(errors(said), "no room");
        assert_eq!(errors("thread 'main' overflowed\nits stack\n"), "its stack");
        assert_eq!(errors(""), "");
    }

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        let mut child = Command::new("sleep").arg("100").spawn().expect("it starts");
        let status = wait(&mut child, Duration::from_millis(50)).expect("it can be ended");
        assert!(status.is_none());
        let mut child = Command::new("true").spawn().expect("it starts");
        let status = wait(&mut child, Duration::from_secs(100)).expect("it can be waited for");
        assert!(status.is_some_and(|status| status.success()));
    }
}
