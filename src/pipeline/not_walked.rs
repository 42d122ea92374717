//! The answer where the time or the memory was up before the recorded run had been walked: how the run ended is in
//! its manifest, and nothing else is known yet.

use super::budget::Budget;
use super::confirm::{Finding, whole_manifest};
use super::{Answer, Loaded};
use crate::answer::{self, Parts, Timing};
use crate::record::ending;
use encoders::ConstraintSystem;
use explain::Explanation;
use model::{EventTrace, FailureKind};
use render::solution::Failure;
use solver::UnknownReason;
use std::path::Path;
use std::time::Duration;
use symex::RecordedFailureKind;

/// What is known without any event. `took` is the time for all of it.
pub(super) fn answer(directory: &Path, loaded: &Loaded, budget: &Budget, took: Duration) -> Answer {
    let trace = EventTrace::default();
    let reason = budget.reason();
    let option = match reason {
        UnknownReason::Memory => "--memory",
        _ => "--timeout",
    };
    let why = format!(
        "the walk along the recorded run (symbolic execution) ended early: {reason}; nothing is known yet of \
         its schedule, more {option} is needed"
    );
    let mut solution = answer::solution(&Parts {
        trace: &trace,
        size: ConstraintSystem::default().size(&trace),
        explanation: &Explanation::unanswered(reason),
        gaps: 0,
        rounds_left_out: 0,
        timing: Timing { symex: took, ..Timing::default() },
        sought_late: false,
    });
    solution.failure = failure(directory, loaded);
    solution.reason = Some(why);
    Answer {
        solution,
        warnings: loaded.warnings.clone(),
        cut_short: true,
        broke: false,
        failing: Finding::default(),
        alternates: Vec::new(),
        trace: directory.to_owned(),
        walked: false,
    }
}

/// How the run ended, as the recorder knows it.
fn failure(directory: &Path, loaded: &Loaded) -> Option<Failure> {
    let recorded = loaded.recording.failure.as_ref()?;
    let thread =
        loaded.recording.threads.iter().find(|thread| thread.serial == recorded.thread_serial);
    let message = match recorded.message.is_empty() {
        true => whole_manifest(directory).map(|manifest| ending(&manifest)).unwrap_or_default(),
        false => recorded.message.clone(),
    };
    Some(Failure {
        kind: kind(recorded.kind).name().to_owned(),
        thread: thread.map(|thread| thread.name.clone()).unwrap_or_default(),
        message,
        ..Failure::default()
    })
}

/// The kind of failure that this is most likely going to be; a hang may turn out to be another one.
fn kind(recorded: RecordedFailureKind) -> FailureKind {
    match recorded {
        RecordedFailureKind::Assertion => FailureKind::Assertion,
        RecordedFailureKind::Abort => FailureKind::Abort,
        RecordedFailureKind::Signal { signo: libc::SIGFPE, .. } => FailureKind::DivisionByZero,
        RecordedFailureKind::Signal { .. } => FailureKind::Segfault,
        RecordedFailureKind::Exit { .. } => FailureKind::Exit,
        RecordedFailureKind::TimedOut => FailureKind::Hang,
        RecordedFailureKind::UseAfterFree { .. } => FailureKind::UseAfterFree,
        RecordedFailureKind::DoubleFree { .. } => FailureKind::DoubleFree,
        RecordedFailureKind::HeapCorruption => FailureKind::HeapCorruption,
        RecordedFailureKind::StackOverflow => FailureKind::StackOverflow,
        RecordedFailureKind::Exception => FailureKind::Exception,
        RecordedFailureKind::Panic => FailureKind::Panic,
        RecordedFailureKind::User | RecordedFailureKind::Reached => FailureKind::User,
        RecordedFailureKind::Output => FailureKind::Output,
    }
}
