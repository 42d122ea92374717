//! What can go wrong between a trace directory and an answer.

use crate::cli::{Failure, exit_codes};
use model::verify::Violation;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no answer. "No schedule" and "out of time" are answers.
#[derive(Debug, Error)]
pub enum PipelineError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] trace_format::TraceError),
    /// A module's bitcode cannot be read.
    #[error("{}: module {module} cannot be read", path.display())]
    Module {
        /// The trace.
        path: PathBuf,
        /// Its file in the trace.
        module: String,
        /// Why.
        #[source]
        source: ir::ReadError,
    },
    /// A module's bitcode is not the one that was running.
    #[error(
        "{}: module {module} has {found} functions and global variables, but the running program \
         registered {expected}; record again with a binary built by this symbiosis",
        path.display()
    )]
    ModuleMismatch {
        /// The trace.
        path: PathBuf,
        /// Its file in the trace.
        module: String,
        /// In the bitcode.
        found: usize,
        /// Registered by the program.
        expected: usize,
    },
    /// The trace records a run that passed.
    #[error(
        "{}: the run passed, so there is nothing to explain; record one that fails \
         (`symbiosis record --until-failure N`)",
        path.display()
    )]
    NoFailure {
        /// The trace.
        path: PathBuf,
    },
    /// The run failed in a way that cannot be solved.
    #[error("{}: this failure cannot be explained: {why}", path.display())]
    Unsolvable {
        /// The trace.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The run was ended while it went on.
    #[error(
        "{}: the run was still running when its time was up, and whether it would have come to its end is not \
         known: {}; give `symbiosis record --timeout` more time if it was only slow",
        path.display(),
        what.join(", ")
    )]
    StillRunning {
        /// The trace.
        path: PathBuf,
        /// What each thread did that is known, in words.
        what: Vec<String>,
    },
    /// Nothing can be executed.
    #[error("the recording cannot be executed")]
    Symex(#[source] symex::SymexError),
    /// A limit was hit before the recorded run was walked, so that there is nothing yet that could be solved.
    #[error(
        "{}: the {} was up before the recorded run had been walked along its log, so nothing is known yet of \
         why it failed ({failure}); allow more with {}",
        path.display(),
        if *memory { "memory" } else { "time" },
        if *memory { "--memory" } else { "--timeout" }
    )]
    NotWalked {
        /// The trace.
        path: PathBuf,
        /// How the run ended, in words.
        failure: String,
        /// Was it the memory?
        memory: bool,
    },
    /// The executor broke an invariant.
    #[error("internal: the event trace is not valid: {}", listed(.0))]
    Invalid(Vec<Violation>),
    /// The event trace cannot be encoded.
    #[error("the event trace cannot be encoded")]
    Encode(#[from] encoders::EncodeError),
    /// The solver broke.
    #[error("the solver failed")]
    Solver(#[from] solver::SolverError),
    /// The explanation broke.
    #[error("no explanation")]
    Explain(#[from] explain::ExplainError),
    /// Replay was interrupted, or cannot read the trace. Boxed, because a replay error may be one of
    /// these.
    #[error(transparent)]
    Replay(Box<crate::replay::ReplayError>),
    /// A file cannot be written.
    #[error("cannot write")]
    Write(#[source] io::Error),
}

fn listed(violations: &[Violation]) -> String {
    let texts: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
    let more = violations.len().saturating_sub(texts.len());
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    texts.join("; ") + &rest
}

impl PipelineError {
    /// The exit code that goes with it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Trace(_) | Self::Module { .. } => exit_codes::BAD_TRACE,
            Self::ModuleMismatch { .. } => exit_codes::WRONG_BINARY,
            Self::Replay(error) => error.exit_code(),
            Self::NoFailure { .. } => exit_codes::USAGE,
            Self::StillRunning { .. }
            | Self::NotWalked { .. }
            | Self::Symex(symex::SymexError::BudgetSpent) => exit_codes::LIMIT,
            _ => exit_codes::UNEXPECTED,
        }
    }
}

impl From<symex::SymexError> for PipelineError {
    fn from(error: symex::SymexError) -> Self {
        match error {
            symex::SymexError::Stream(error) => Self::Trace(error),
            error => Self::Symex(error),
        }
    }
}

impl From<crate::replay::ReplayError> for PipelineError {
    fn from(error: crate::replay::ReplayError) -> Self {
        Self::Replay(Box::new(error))
    }
}

impl From<PipelineError> for Failure {
    fn from(error: PipelineError) -> Self {
        Self::new(error.exit_code(), error)
    }
}
