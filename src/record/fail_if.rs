//! `record --fail-if`: a command that looks at what the program wrote.

use crate::record::RecordError;
use crate::record::run::Options;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Stdout, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use trace_format::Manifest;

/// From this status on a shell speaks of itself: 126 and 127 for what it cannot run.
const SHELLS_OWN: i32 = 126;

/// The whole output of a run, in a file without a name.
pub(super) struct Spool(File);

impl Spool {
    pub(super) fn new() -> Result<Self, RecordError> {
        let keep = |source| RecordError::Io { action: "keep the program's output", source };
        tempfile::tempfile().map(Self).map_err(keep)
    }

    /// Where the output goes: to the user, into the file, or both; none for neither.
    pub(super) fn beside(shown: Option<Stdout>, spool: Option<&Self>) -> Option<Both> {
        let kept = spool.and_then(|spool| spool.0.try_clone().ok());
        (shown.is_some() || kept.is_some()).then_some(Both { shown, kept })
    }
}

/// Two places to write to.
pub(super) struct Both {
    shown: Option<Stdout>,
    kept: Option<File>,
}

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.kept {
            file.write_all(bytes)?;
        }
        if let Some(shown) = &mut self.shown {
            shown.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.shown.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Asks the command whether the output is wrong. It runs where the program ran, and finds the trace
/// directory in `SYMBIOSIS_TRACE` and the exit status in `SYMBIOSIS_STATUS`.
pub(super) fn is_wrong(
    command: &str,
    output: Spool,
    directory: &Path,
    manifest: &Manifest,
    options: &Options,
) -> Result<bool, RecordError> {
    let failed = |source| RecordError::Io { action: "run the command of --fail-if", source };
    let mut input = output.0;
    input.seek(SeekFrom::Start(0)).map_err(failed)?;
    let quiet = |stream: Stdio| if options.show_output { stream } else { Stdio::null() };
    let status = Command::new("sh")
        .args(["-c", command])
        .current_dir(&manifest.directory)
        .env("SYMBIOSIS_TRACE", directory)
        .env("SYMBIOSIS_STATUS", "0")
        .stdin(input)
        .stdout(quiet(io::stderr().into()))
        .stderr(quiet(Stdio::inherit()))
        .status()
        .map_err(failed)?;
    let how = match (status.code(), status.signal()) {
        (Some(code), _) if code < SHELLS_OWN => return Ok(code == 0),
        (Some(code), _) => format!("ended with status {code}"),
        (None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
    };
    Err(RecordError::Check { command: command.to_owned(), how })
}
