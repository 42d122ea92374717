//! Sealing: from the raw files of a run to a checksummed trace.

use crate::chunks;
use crate::error::TraceError;
use crate::files;
use crate::manifest::{Failure, FailureKind, Manifest, Outcome, State, ThreadRecord};
use crate::order;
use crate::raw::{self, StreamKind};
use crate::source::open_raw;
use std::io::{self, Read};
use std::path::Path;

/// Fills a manifest in with what the raw files say: threads, failure, what could not be written.
///
/// # Errors
///
/// When a raw file is missing or malformed.
pub fn read_raw(directory: &Path, manifest: &mut Manifest) -> Result<(), TraceError> {
    let path = directory.join(files::PROCESS);
    let process = raw::process(&path)?;
    raw::check_instrumentation(&path, process.version)?;
    manifest.instrumentation = Some(process.version);
    manifest.threads = raw::threads(&directory.join(files::THREADS))?;
    manifest.write_failure = process.write_failure;
    manifest.unattached_threads = process.unattached;
    manifest.cut_writes = process.cut_writes;
    manifest.failure = failure(process.failure, manifest);
    Ok(())
}

/// Signals by which people and programs end others, and those of a timer whose time is up: SIGHUP, SIGINT, SIGQUIT,
/// SIGALRM, SIGTERM, SIGXCPU, SIGVTALRM (numbers of Linux). Not SIGKILL, which may say that the memory was used up.
pub const PATIENCE: [i32; 7] = [1, 2, 3, 14, 15, 24, 26];

/// What the runtime saw, or else what the recorder saw: a time-out, or a signal that no handler
/// gets to see.
fn failure(seen: Option<Failure>, manifest: &Manifest) -> Option<Failure> {
    let name_of = |serial: u64| {
        manifest.threads.iter().find(|thread| thread.serial == serial).map(|t| t.name.clone())
    };
    // A panic that somebody caught is none, nor is an exception that the program's own last handler takes for the end.
    let ended_well = manifest.outcome == Some(Outcome::Exited(0)) && !manifest.timed_out;
    let caught = |failure: &Failure| {
        matches!(failure.kind, FailureKind::Panic | FailureKind::Exception) && ended_well
    };
    if let Some(failure) = seen.filter(|failure| !caught(failure)) {
        let thread = failure.thread_serial.and_then(name_of);
        return Some(Failure { thread, ..failure });
    }
    let (kind, code) = match manifest.outcome {
        _ if manifest.timed_out => (FailureKind::Hang, 0),
        // Somebody lost patience: what the threads waited for is the question, as for a time-out.
        Some(Outcome::Signalled(signal)) if PATIENCE.contains(&signal) => {
            (FailureKind::Hang, i64::from(signal))
        }
        Some(Outcome::Ended) => (FailureKind::Hang, 0),
        Some(Outcome::Signalled(signal)) => (FailureKind::Signal, i64::from(signal)),
        Some(Outcome::Exited(status)) if status != 0 => (FailureKind::Exit, i64::from(status)),
        Some(Outcome::Exited(_)) if manifest.fail_if.as_ref().is_some_and(|check| check.failed) => {
            (FailureKind::Output, 0)
        }
        _ => return None,
    };
    Some(Failure {
        kind,
        thread_serial: None,
        thread: None,
        code,
        fault_address: 0,
        fault_pc: 0,
        message: String::new(),
        path_bytes: 0,
        value_bytes: 0,
    })
}

/// Seals a trace after its run: the streams and the module records get their checksummed form,
/// the manifest gets the threads and the failure, and then the raw files go. Until the manifest
/// is written the raw files are valid, so a sealing that is cut short loses nothing.
///
/// # Errors
///
/// When a raw file is malformed or a sealed one cannot be written; then the trace stays unsealed.
pub fn seal(directory: &Path, manifest: &Manifest) -> Result<Manifest, TraceError> {
    let mut manifest = manifest.clone();
    read_raw(directory, &mut manifest)?;
    seal_modules(directory)?;
    manifest.turns = seal_order(directory)?;
    let threads = directory.join(files::THREADS);
    for thread in &manifest.threads {
        seal_streams(&threads, thread)?;
    }
    manifest.state = State::Complete;
    manifest.write(directory)?;
    remove_raw(directory)?;
    Ok(manifest)
}

fn seal_modules(directory: &Path) -> Result<(), TraceError> {
    let path = directory.join(files::MODULES);
    let bytes = match fs_err::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(TraceError::io("read", &path, 0, error)),
    };
    let modules = raw::modules(&bytes, &path, true)?;
    let whole: usize = modules.iter().map(raw::record_length).sum();
    let bytes = bytes.get(..whole).unwrap_or(&bytes);
    write_sealed(bytes, bytes.len() as u64, &directory.join(files::SEALED_MODULES))
}

/// Gives the number of turns, if the run has an order.
fn seal_order(directory: &Path) -> Result<Option<u64>, TraceError> {
    let Some(records) = order::read_raw(&directory.join(files::ORDER))? else { return Ok(None) };
    let bytes = order::to_bytes(&records);
    let path = directory.join(files::SEALED_ORDER);
    write_sealed(bytes.as_slice(), bytes.len() as u64, &path)?;
    Ok(Some(records.len() as u64))
}

fn seal_streams(threads: &Path, thread: &ThreadRecord) -> Result<(), TraceError> {
    let streams = [(StreamKind::Path, thread.path_bytes), (StreamKind::Values, thread.value_bytes)];
    for (stream, length) in streams {
        let kind = stream.extension();
        let path = threads.join(format!("{}.{kind}", thread.file));
        let extent = raw::extent_of(&threads.join(format!("{}.ctl", thread.file)), stream)?;
        let from = open_raw(&path, extent)?;
        write_sealed(from, length, &threads.join(format!("{}.{kind}.z", thread.file)))?;
    }
    Ok(())
}

fn write_sealed(from: impl Read, length: u64, to: &Path) -> Result<(), TraceError> {
    let failed = |path: &Path, source: io::Error| {
        // Where the disk was full is where the partial file ends.
        let offset = path.metadata().map_or(0, |metadata| metadata.len());
        TraceError::Io { action: "write", path: path.to_owned(), offset, source }
    };
    let file = fs_err::File::create(to).map_err(|error| failed(to, error))?;
    chunks::write(from, length, file).map_err(|error| {
        let error = failed(to, error);
        // A partial file is of no use, and the space may be needed.
        let _ = fs_err::remove_file(to);
        error
    })
}

/// Removes the raw files, those of threads that never started included.
fn remove_raw(directory: &Path) -> Result<(), TraceError> {
    let mut raw: Vec<_> =
        [files::PROCESS, files::MODULES, files::ORDER, files::ORIGIN, files::OPENMP]
            .iter()
            .map(|file| directory.join(file))
            .collect();
    let threads = directory.join(files::THREADS);
    let failed = |error| TraceError::io("list", &threads, 0, error);
    for entry in fs_err::read_dir(&threads).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("ctl" | "path" | "values")) {
            raw.push(path);
        }
    }
    for path in raw {
        match fs_err::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(TraceError::io("remove", &path, 0, error));
            }
            _ => {}
        }
    }
    Ok(())
}
