//! From a trace directory to what the executor takes.

use super::{PipelineError, frameworks};
use std::path::Path;
use symex::{RecordedFailure, RecordedFailureKind, RecordedModule, Recording, ThreadLog};
use trace_format::{Failure, FailureKind, ModuleId, Trace, bitcode_file_name};

/// A trace, read.
#[derive(Debug)]
pub struct Loaded {
    /// The IR, and where the streams are.
    pub recording: Recording,
    /// The tail of standard output.
    pub output: String,
    /// Was the heap watched for accesses to freed memory?
    pub watches_heap: bool,
    /// How many threads ran without being recorded.
    pub unrecorded_threads: u64,
    /// Oddities that the user should know.
    pub warnings: Vec<String>,
}

/// Reads a trace directory. The streams stay where they are until they are walked.
///
/// # Errors
/// When it is no trace, or damaged, or of another version.
pub fn load(directory: &Path) -> Result<Loaded, PipelineError> {
    let _span = tracing::info_span!("load").entered();
    let trace = Trace::open(directory)?;
    let mut recording = Recording {
        modules: Vec::with_capacity(trace.modules().len()),
        threads: Vec::with_capacity(trace.threads().len()),
        failure: trace.failure().map(failure),
        common_clock: trace.manifest().common_clock,
        scheduled: trace.is_scheduled(),
        forked: trace.manifest().process.is_some_and(|process| process.forked),
        stuck: trace.manifest().still_running == Some(false),
        handled: trace.handled()?,
    };
    let output = trace.stdout_tail();
    let output = String::from_utf8_lossy(&output);
    // Which check of a test framework it was that failed.
    if let Some(failure) = &mut recording.failure
        && matches!(failure.kind, RecordedFailureKind::Exit { .. })
        && let Some(place) = frameworks::reported(&output)
    {
        failure.message = place;
    }
    for index in 0..trace.modules().len() {
        recording.modules.push(module(&trace, index)?);
    }
    for thread in trace.threads() {
        recording.threads.push(ThreadLog {
            name: thread.name.clone(),
            serial: thread.serial,
            parent: thread.parent,
            start_routine: thread.start_routine,
            streams: trace.streams(thread),
        });
    }
    let output = output.into_owned();
    let watches_heap = trace.manifest().detect.is_some();
    let unrecorded_threads = trace.manifest().unattached_threads;
    Ok(Loaded { recording, output, watches_heap, unrecorded_threads, warnings: warnings(&trace) })
}

fn module(trace: &Trace, index: usize) -> Result<RecordedModule, PipelineError> {
    let record = &trace.modules()[index];
    let name = || bitcode_file_name(record.hash);
    let bitcode = trace.module_bitcode(ModuleId(u32::try_from(index).unwrap_or(u32::MAX)))?;
    let ir = ir::read_bitcode(&bitcode).map_err(|source| PipelineError::Module {
        path: trace.directory().to_owned(),
        module: name(),
        source,
    })?;
    let found = ir.functions.len() + ir.globals.len();
    let expected = record.functions.len() + record.globals.len();
    if found != expected || ir.functions.len() != record.functions.len() {
        let path = trace.directory().to_owned();
        return Err(PipelineError::ModuleMismatch { path, module: name(), found, expected });
    }
    Ok(RecordedModule {
        ir,
        base: record.base,
        functions: record.functions.clone(),
        globals: record.globals.clone(),
    })
}

fn failure(failure: &Failure) -> RecordedFailure {
    let code = i32::try_from(failure.code).unwrap_or(i32::MAX);
    let kind = match failure.kind {
        FailureKind::Assertion => RecordedFailureKind::Assertion,
        FailureKind::Abort => RecordedFailureKind::Abort,
        FailureKind::Signal => {
            RecordedFailureKind::Signal { signo: code, fault_address: failure.fault_address }
        }
        FailureKind::Exit => RecordedFailureKind::Exit { status: code },
        FailureKind::Hang => RecordedFailureKind::TimedOut,
        FailureKind::UseAfterFree => {
            RecordedFailureKind::UseAfterFree { address: failure.fault_address }
        }
        FailureKind::DoubleFree => {
            RecordedFailureKind::DoubleFree { address: failure.fault_address }
        }
        FailureKind::HeapCorruption => RecordedFailureKind::HeapCorruption,
        FailureKind::StackOverflow => RecordedFailureKind::StackOverflow,
        FailureKind::Exception => RecordedFailureKind::Exception,
        FailureKind::Panic => RecordedFailureKind::Panic,
        FailureKind::User => RecordedFailureKind::User,
        FailureKind::Reached => RecordedFailureKind::Reached,
        FailureKind::Output => RecordedFailureKind::Output,
    };
    RecordedFailure {
        kind,
        thread_serial: failure.thread_serial.unwrap_or(0),
        message: failure.message.clone(),
    }
}

fn warnings(trace: &Trace) -> Vec<String> {
    let manifest = trace.manifest();
    let mut warnings = Vec::new();
    if !trace.is_sealed() {
        warnings.push(
            "the recording was cut short: the trace holds what was written until then".to_owned(),
        );
    }
    if let Some(failure) = &manifest.write_failure {
        let error = std::io::Error::from_raw_os_error(failure.errno);
        warnings.push(format!(
            "{} could not be written beyond byte {}: {error}",
            failure.file, failure.offset
        ));
    }
    if manifest.unattached_threads > 0 {
        let threads = match manifest.unattached_threads {
            1 => "a thread".to_owned(),
            number => format!("{number} threads"),
        };
        warnings.push(format!(
            "{threads} ran without being recorded: not made by pthread_create, or no file could be made for it"
        ));
    }
    if manifest.cut_writes > 0 {
        warnings.push(format!(
            "{} writes of uninstrumented code were too long to record whole",
            manifest.cut_writes
        ));
    }
    warnings
}
