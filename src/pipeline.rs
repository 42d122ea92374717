//! The stages in a row: trace directory → recording → event trace → constraints → explanation →
//! answer. The only module that knows all of them.

mod error;
mod load;

pub use error::PipelineError;
pub use load::{Loaded, load};

use crate::answer::{self, Timing};
use encoders::ConstraintSystem;
use explain::{CauseKind, Explanation};
use model::EventTrace;
use render::Solution;
use solver::{Goal, Limits, Session, SmtLibSession, Z3Session};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use symex::{Execution, Recording, ThreadReport};

/// Which solver answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The linked Z3.
    Z3,
    /// This command, which reads SMT-LIB 2 from standard input.
    SmtLib(String),
}

/// What to solve for, and within which limits.
#[derive(Clone, Debug)]
pub struct SolveOptions {
    /// How many alternates to look for.
    pub alternates: usize,
    /// Which solver.
    pub backend: Backend,
    /// Wall-clock time for everything after loading.
    pub time: Duration,
    /// The solver's memory.
    pub memory_mb: Option<u32>,
    /// Write the constraint system here.
    pub dump_smt: Option<PathBuf>,
}

/// What `solve` gives back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer.
    pub solution: Solution,
    /// Oddities of the trace that the user should know.
    pub warnings: Vec<String>,
    /// A limit ended the work before it was done.
    pub cut_short: bool,
    /// A stage after the failing schedule broke; the answer holds what was found before.
    pub broke: bool,
}

/// Executes a recording and verifies the event trace.
///
/// # Errors
/// When the recording cannot be executed at all, or the executor broke an invariant of event
/// traces.
pub fn execute(recording: &Recording) -> Result<Execution, PipelineError> {
    let _span = tracing::info_span!("symex", threads = recording.threads.len()).entered();
    let execution = symex::execute(recording, &symex::Options::default())?;
    model::verify::verify(&execution.trace).map_err(PipelineError::Invalid)?;
    tracing::info!(
        events = execution.trace.events.len(),
        cells = execution.trace.cells.len(),
        gaps = execution.report.gap_count(),
        "executed"
    );
    Ok(execution)
}

/// Solves a trace directory.
///
/// # Errors
/// When the trace cannot be read, records no failure, or a stage breaks. "No schedule" and "out of
/// time" are answers.
pub fn solve(directory: &Path, options: &SolveOptions) -> Result<Answer, PipelineError> {
    let start = Instant::now();
    let deadline = start.checked_add(options.time);
    let loaded = load(directory)?;
    let execution = execute(&loaded.recording)?;
    let symex = start.elapsed();
    if execution.trace.failure.is_none() {
        return Err(no_failure(directory, &loaded, &execution));
    }
    let mut work =
        Work { options, deadline, timing: Timing { symex, ..Timing::default() }, pinned: false };
    let (trace, system, explanation) = work.explain(execution.trace.clone())?;
    let ended = |limit: bool| {
        let mut cuts = explanation.cut.iter();
        cuts.any(|cut| matches!(cut.reason, explain::CutReason::Limit(_)) == limit)
    };
    let (cut_short, broke) = (ended(true), ended(false));
    let mut warnings = loaded.warnings;
    if work.pinned {
        warnings.push(
            "some values come neither from the program's own writes nor from the log (unknown \
             initial values, results that could not be modelled); cause and alternates take them \
             to be those of the failing schedule"
                .to_owned(),
        );
    }
    let solution = answer::solution(&answer::Parts {
        trace: &trace,
        system: &system,
        explanation: &explanation,
        gaps: execution.report.gap_count(),
        timing: work.timing,
    });
    Ok(Answer { solution, warnings, cut_short, broke })
}

fn no_failure(directory: &Path, loaded: &Loaded, execution: &Execution) -> PipelineError {
    let path = directory.to_owned();
    if loaded.recording.failure.is_none() {
        return PipelineError::NoFailure { path };
    }
    let why = if execution.report.timed_out {
        let waits: Vec<String> = execution.report.threads.iter().filter_map(waiting).collect();
        format!(
            "the run was ended because it took too long ({}); hangs and deadlocks cannot be \
             solved yet",
            if waits.is_empty() { "no thread waits".to_owned() } else { waits.join(", ") }
        )
    } else {
        "it was not found on the recorded paths; `symbiosis check` says what could not be modelled"
            .to_owned()
    };
    PipelineError::Unsolvable { path, why }
}

fn waiting(thread: &ThreadReport) -> Option<String> {
    let call = thread.blocked.as_ref()?;
    let place =
        call.stack.first().map(|site| format!(" at line {}", site.line)).unwrap_or_default();
    Some(format!("{} waits in {} of {}{place}", thread.name, call.operation, call.object))
}

/// One solve on its way.
struct Work<'a> {
    options: &'a SolveOptions,
    deadline: Option<Instant>,
    timing: Timing,
    /// The inputs were fixed to what the failing schedule has.
    pinned: bool,
}

impl Work<'_> {
    /// Explains the failure. When values that no read fixes (unknown initial values, results of
    /// uninstrumented code) could avoid it, they are fixed to what the failing schedule has, so
    /// that the cause is about orders alone.
    fn explain(
        &mut self,
        trace: EventTrace,
    ) -> Result<(EventTrace, ConstraintSystem, Explanation), PipelineError> {
        let (system, explanation) = self.explain_once(&trace)?;
        let by_inputs =
            explanation.root_cause.as_ref().is_some_and(|cause| cause.kind == CauseKind::Inputs);
        match &explanation.failing {
            Some(failing) if by_inputs => {
                tracing::info!("fixing the inputs to their values in the failing schedule");
                let pinned = explain::pin_inputs(&trace, &failing.evaluation);
                self.pinned = true;
                let (system, explanation) = self.explain_once(&pinned)?;
                Ok((pinned, system, explanation))
            }
            _ => Ok((trace, system, explanation)),
        }
    }

    fn explain_once(
        &mut self,
        trace: &EventTrace,
    ) -> Result<(ConstraintSystem, Explanation), PipelineError> {
        let started = Instant::now();
        let system = encoders::encode(trace)?;
        tracing::info!(constraints = system.constraints.len(), "encoded");
        if let Some(path) = &self.options.dump_smt {
            let script = solver::dump_smtlib(trace, &system, Goal::Fail)?;
            fs_err::write(path, script).map_err(PipelineError::Write)?;
        }
        let left = self.deadline.map_or(self.options.time, |deadline| {
            deadline.saturating_duration_since(Instant::now())
        });
        let limits = Limits { time: Some(left), memory_mb: self.options.memory_mb };
        let mut session: Box<dyn Session + '_> = match &self.options.backend {
            Backend::Z3 => Box::new(Z3Session::new(trace, &system, limits)?),
            Backend::SmtLib(command) => {
                Box::new(SmtLibSession::new(trace, &system, command, limits)?)
            }
        };
        let deadline = self.deadline;
        let budget = || deadline.is_none_or(|deadline| Instant::now() < deadline);
        let clock = answer::PhaseClock::start(started);
        let options = explain::Options {
            alternates: self.options.alternates,
            examined: explain::Options::default().examined.max(self.options.alternates),
            ..explain::Options::default()
        };
        let explanation =
            explain::explain_with(trace, &system, session.as_mut(), &options, &budget, &|phase| {
                clock.enter(phase);
            })?;
        drop(session);
        clock.finish(&mut self.timing);
        Ok((system, explanation))
    }
}
