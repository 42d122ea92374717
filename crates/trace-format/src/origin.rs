//! Where a process that was recorded beside another one came from.

use crate::chunks::{long_at, word_at};
use crate::error::TraceError;
use crate::files;
use crate::layout::{PROCESS_FILE_SIZE, PROCESS_MAGIC, Process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::path::Path;

/// A process among others of one recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Its id.
    pub pid: u32,
    /// The id of the process that started it.
    pub parent: u32,
    /// Did it begin with a `fork`? Then its threads' streams begin with what the parent's threads
    /// had logged until then.
    pub forked: bool,
}

/// What the raw files say of how a process began and ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Who it was.
    pub identity: ProcessIdentity,
    /// When its recording began, in nanoseconds since 1970 (UTC).
    pub started: u64,
    /// Its exit status, if it ended by itself.
    pub exit_status: Option<i32>,
    /// Its executable's path.
    pub executable: String,
    /// Its working directory at the beginning.
    pub directory: String,
    /// Its variables of OpenMP.
    pub openmp: BTreeMap<String, String>,
    /// Its arguments, the program's name first.
    pub command: Vec<String>,
}

/// Reads the raw files of a process; none when it did not get as far as writing them.
///
/// # Errors
///
/// When they cannot be read.
pub fn read_origin(directory: &Path) -> Result<Option<Origin>, TraceError> {
    let path = directory.join(files::PROCESS);
    let Some(bytes) = read(&path)? else { return Ok(None) };
    if bytes.len() < PROCESS_FILE_SIZE
        || long_at(&bytes, offset_of!(Process, magic)) != PROCESS_MAGIC
    {
        return Ok(None);
    }
    let status = long_at(&bytes, offset_of!(Process, exit_status));
    let text = read(&directory.join(files::ORIGIN))?.unwrap_or_default();
    let settings = read(&directory.join(files::OPENMP))?.unwrap_or_default();
    let text = text.strip_suffix(&[0]).unwrap_or(&text);
    let mut texts =
        text.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    Ok(Some(Origin {
        identity: ProcessIdentity {
            pid: word_at(&bytes, offset_of!(Process, pid)),
            parent: word_at(&bytes, offset_of!(Process, parent)),
            forked: word_at(&bytes, offset_of!(Process, forked)) != 0,
        },
        started: long_at(&bytes, offset_of!(Process, started)),
        exit_status: status.checked_sub(1).and_then(|status| i32::try_from(status).ok()),
        executable: texts.next().unwrap_or_default(),
        directory: texts.next().unwrap_or_default(),
        openmp: settings.split(|byte| *byte == 0).filter_map(variable).collect(),
        command: texts.collect(),
    }))
}

/// A variable's name and value.
fn variable(text: &[u8]) -> Option<(String, String)> {
    let (name, value) = str::from_utf8(text).ok()?.split_once('=')?;
    Some((name.to_owned(), value.to_owned()))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, TraceError> {
    match fs_err::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TraceError::io("read", path, 0, error)),
    }
}
