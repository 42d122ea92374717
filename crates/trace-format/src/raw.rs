//! The raw files that the runtime leaves: control pages, `process.bin`, `modules.bin`.

use crate::chunks::{long_at, word_at};
use crate::error::TraceError;
use crate::layout::{
    CONTROL_MAGIC, CONTROL_PAGE_SIZE, Control, Extent, INSTRUMENTATION_VERSION, MODULE_MAGIC,
    ModuleRecordHeader, PROCESS_FILE_SIZE, PROCESS_MAGIC, Process, RawFailure, STREAM_WINDOW,
    token,
};
use crate::manifest::{Failure, FailureKind, ThreadRecord, WriteFailure};
use crate::source::RawExtent;
use crate::trace::Module;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::mem::{offset_of, size_of};
use std::path::Path;

/// What `process.bin` says.
#[derive(Debug)]
pub(crate) struct ProcessRecord {
    pub(crate) version: u32,
    pub(crate) failure: Option<Failure>,
    pub(crate) write_failure: Option<WriteFailure>,
    pub(crate) unattached: u64,
    pub(crate) cut_writes: u64,
}

fn text_at(bytes: &[u8], at: usize, length: u32, most: usize) -> String {
    let end = at + (length as usize).min(most);
    String::from_utf8_lossy(bytes.get(at..end).unwrap_or(&[])).into_owned()
}

/// Decodes `process.bin`.
pub(crate) fn process(path: &Path) -> Result<ProcessRecord, TraceError> {
    let bytes = fs_err::read(path).map_err(|error| TraceError::io("read", path, 0, error))?;
    if bytes.len() < PROCESS_FILE_SIZE {
        return Err(TraceError::Truncated {
            path: path.to_owned(),
            offset: bytes.len() as u64,
            expected: "a whole process page",
        });
    }
    let long = |at| long_at(&bytes, at);
    let word = |at| word_at(&bytes, at);
    if long(offset_of!(Process, magic)) != PROCESS_MAGIC {
        return Err(TraceError::malformed(path, 0, "not a process page"));
    }
    let code = word(offset_of!(Process, failure));
    let kind = RawFailure::from_code(code).ok_or_else(|| {
        let at = offset_of!(Process, failure) as u64;
        TraceError::malformed(path, at, format!("unknown kind of failure {code}"))
    })?;
    let kind = match kind {
        RawFailure::None => None,
        RawFailure::Assertion => Some(FailureKind::Assertion),
        RawFailure::Abort => Some(FailureKind::Abort),
        RawFailure::Signal => Some(FailureKind::Signal),
        RawFailure::Exit => Some(FailureKind::Exit),
        RawFailure::Deadlock => Some(FailureKind::Hang),
        RawFailure::UseAfterFree => Some(FailureKind::UseAfterFree),
        RawFailure::DoubleFree => Some(FailureKind::DoubleFree),
        RawFailure::HeapCorruption => Some(FailureKind::HeapCorruption),
        RawFailure::StackOverflow => Some(FailureKind::StackOverflow),
        RawFailure::Exception => Some(FailureKind::Exception),
        RawFailure::User => Some(FailureKind::User),
        RawFailure::Reached => Some(FailureKind::Reached),
        RawFailure::Panic => Some(FailureKind::Panic),
    };
    let failure = kind.map(|kind| Failure {
        kind,
        thread_serial: Some(long(offset_of!(Process, failure_thread))).filter(|s| *s != 0),
        thread: None,
        code: long(offset_of!(Process, code)) as i64,
        fault_address: long(offset_of!(Process, fault_address)),
        fault_pc: long(offset_of!(Process, fault_pc)),
        message: {
            let length = word(offset_of!(Process, message_length));
            text_at(&bytes, offset_of!(Process, message), length, 2048)
        },
        path_bytes: long(offset_of!(Process, failure_path_bytes)),
        value_bytes: long(offset_of!(Process, failure_value_bytes)),
    });
    let errno = long(offset_of!(Process, write_errno)) as i32;
    let write_failure = (errno != 0).then(|| WriteFailure {
        file: {
            let length = word(offset_of!(Process, write_file_length));
            text_at(&bytes, offset_of!(Process, write_file), length, 256)
        },
        offset: long(offset_of!(Process, write_offset)),
        errno,
    });
    Ok(ProcessRecord {
        version: word(offset_of!(Process, version)),
        failure,
        write_failure,
        unattached: long(offset_of!(Process, unattached)),
        cut_writes: long(offset_of!(Process, cut_writes)),
    })
}

/// Fails unless this build reads the instrumentation version.
pub(crate) fn check_instrumentation(path: &Path, found: u32) -> Result<(), TraceError> {
    if found == INSTRUMENTATION_VERSION {
        return Ok(());
    }
    let supported = INSTRUMENTATION_VERSION;
    Err(TraceError::UnknownInstrumentation { path: path.to_owned(), found, supported })
}

/// Decodes the control pages, in serial order. A page that is not yet complete belongs to a thread
/// that had not started, and is left out.
pub(crate) fn threads(directory: &Path) -> Result<Vec<ThreadRecord>, TraceError> {
    let mut threads = BTreeMap::new();
    let listing =
        fs_err::read_dir(directory).map_err(|error| TraceError::io("list", directory, 0, error))?;
    for entry in listing {
        let path = entry.map_err(|error| TraceError::io("list", directory, 0, error))?.path();
        if path.extension().is_some_and(|extension| extension == "ctl")
            && let Some(thread) = control(&path)?
            && let Some(other) = threads.insert(thread.serial, thread)
        {
            let what = format!("a second thread with serial {}", other.serial);
            return Err(TraceError::malformed(&path, 0, what));
        }
    }
    let mut threads: Vec<ThreadRecord> = threads.into_values().collect();
    name_threads(&mut threads);
    Ok(threads)
}

fn control(path: &Path) -> Result<Option<ThreadRecord>, TraceError> {
    let bytes = fs_err::read(path).map_err(|error| TraceError::io("read", path, 0, error))?;
    let magic = long_at(&bytes, offset_of!(Control, magic));
    if magic == 0 {
        return Ok(None);
    }
    if magic != CONTROL_MAGIC || bytes.len() < CONTROL_PAGE_SIZE {
        let at = offset_of!(Control, magic) as u64;
        return Err(TraceError::malformed(path, at, "not a control page"));
    }
    let long = |at| long_at(&bytes, at);
    let in_path = extent(&bytes, path, StreamKind::Path)?;
    let path_bytes = in_path.length() + rest(&bytes, path, in_path)?.len() as u64;
    Ok(Some(ThreadRecord {
        name: String::new(),
        file: path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default(),
        serial: long(offset_of!(Control, serial)),
        parent: long(offset_of!(Control, parent)),
        ordinal: long(offset_of!(Control, ordinal)),
        start_routine: long(offset_of!(Control, start_routine)),
        children: long(offset_of!(Control, children)),
        ended: long(offset_of!(Control, ended)) != 0,
        overflow_errno: long(offset_of!(Control, overflow_errno)) as i32,
        path_bytes,
        value_bytes: extent(&bytes, path, StreamKind::Values)?.length(),
    }))
}

/// One of a thread's two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    Path,
    Values,
}

impl StreamKind {
    /// What the name of its raw file ends with, behind a dot.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Values => "values",
        }
    }
}

/// What the control page in `bytes` says of a stream.
fn extent(bytes: &[u8], path: &Path, kind: StreamKind) -> Result<Extent, TraceError> {
    let at = match kind {
        StreamKind::Path => [
            offset_of!(Control, path_final),
            offset_of!(Control, path_next),
            offset_of!(Control, path_base),
            offset_of!(Control, path_moved),
            offset_of!(Control, path_moving),
        ],
        StreamKind::Values => [
            offset_of!(Control, value_final),
            offset_of!(Control, value_next),
            offset_of!(Control, value_base),
            offset_of!(Control, value_moved),
            offset_of!(Control, value_moving),
        ],
    };
    let [last, next, base, moved, moving] = at.map(|at| long_at(bytes, at));
    let extent = Extent::new(last, next, base, moved, moving);
    let extent = extent.filter(|it| it.start.saturating_add(it.window) <= STREAM_WINDOW as u64);
    extent.ok_or_else(|| {
        TraceError::malformed(path, at[1] as u64, "the cursor is outside of the stream's window")
    })
}

/// Where a stream's bytes are, as the thread's control page says.
pub(crate) fn extent_of(control: &Path, kind: StreamKind) -> Result<RawExtent, TraceError> {
    let bytes = fs_err::read(control).map_err(|error| TraceError::io("read", control, 0, error))?;
    let file = extent(&bytes, control, kind)?;
    let rest = match kind {
        StreamKind::Path => rest(&bytes, control, file)?,
        StreamKind::Values => Vec::new(),
    };
    Ok(RawExtent { file, rest })
}

/// The token of the choices behind the last one that a thread's path stream counts, see [`token`].
fn rest(bytes: &[u8], control: &Path, extent: Extent) -> Result<Vec<u8>, TraceError> {
    let long = |at| long_at(bytes, at);
    // While the window is emptied, what stands at its beginning is an old token.
    let moving = long(offset_of!(Control, path_moving)) > long(offset_of!(Control, path_moved));
    if long(offset_of!(Control, path_final)) != 0 {
        return Ok(Vec::new());
    }
    let open = long(offset_of!(Control, choices)) as u32;
    let token = match open {
        0 | 1 if moving => return Ok(Vec::new()),
        0 | 1 => next_token(control, extent.window)?,
        open => token::of_choices(open).0,
    };
    let length = token::choices(token).map_or(0, |(_, length)| length);
    Ok(token.get(..length).unwrap_or_default().to_vec())
}

/// What stands in the window of a thread's path stream behind so many bytes, zeros where the file ends.
fn next_token(control: &Path, window: u64) -> Result<[u8; 4], TraceError> {
    let mut token = [0; 4];
    let path = control.with_extension("path");
    let mut file = match fs_err::File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(token),
        Err(error) => return Err(TraceError::io("open", &path, 0, error)),
    };
    let failed = |error| TraceError::io("read", &path, window, error);
    file.seek(SeekFrom::Start(window)).map_err(failed)?;
    let mut got = Vec::new();
    file.take(token.len() as u64).read_to_end(&mut got).map_err(failed)?;
    if let Some(start) = token.get_mut(..got.len()) {
        start.copy_from_slice(&got);
    }
    Ok(token)
}

/// Names the threads by who created them ([S] 4.2). A creator always has the lower serial.
fn name_threads(threads: &mut [ThreadRecord]) {
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    for thread in threads {
        thread.name = match names.get(&thread.parent) {
            _ if thread.parent == 0 => "t0".to_owned(),
            Some(parent) => format!("{parent}.{}", thread.ordinal),
            None => thread.file.clone(),
        };
        names.insert(thread.serial, thread.name.clone());
    }
}

/// How long a module's record is in bytes.
pub(crate) fn record_length(module: &Module) -> usize {
    size_of::<ModuleRecordHeader>() + (module.functions.len() + module.globals.len()) * 8
}

/// Decodes module records. An incomplete last record is left out when the recording was cut short
/// (`tolerant`): its module ran nothing yet.
pub(crate) fn modules(
    bytes: &[u8],
    path: &Path,
    tolerant: bool,
) -> Result<Vec<Module>, TraceError> {
    const HEADER: usize = size_of::<ModuleRecordHeader>();
    let mut modules = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let record = bytes.get(at..).unwrap_or(&[]);
        let long = |at| long_at(record, at);
        let word = |at| word_at(record, at);
        let functions = word(offset_of!(ModuleRecordHeader, function_count)) as usize;
        let globals = word(offset_of!(ModuleRecordHeader, global_count)) as usize;
        let length = HEADER + (functions + globals) * 8;
        if record.len() < HEADER.max(length) {
            if tolerant {
                break;
            }
            return Err(TraceError::Truncated {
                path: path.to_owned(),
                offset: bytes.len() as u64,
                expected: "the rest of a module record",
            });
        }
        if long(offset_of!(ModuleRecordHeader, magic)) != MODULE_MAGIC {
            return Err(TraceError::malformed(path, at as u64, "not a module record"));
        }
        check_instrumentation(path, word(offset_of!(ModuleRecordHeader, version)))?;
        let hash = offset_of!(ModuleRecordHeader, hash);
        let words = |from: usize, count: usize| {
            (0..count).map(|index| long(from + index * 8)).collect::<Vec<u64>>()
        };
        modules.push(Module {
            hash: [long(hash), long(hash + 8)],
            base: word(offset_of!(ModuleRecordHeader, base)),
            functions: words(HEADER, functions),
            globals: words(HEADER + functions * 8, globals),
        });
        at += length;
    }
    Ok(modules)
}
