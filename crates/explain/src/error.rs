//! What can go wrong, apart from the verdicts.

use model::evaluate::EvaluationError;
use model::{ReadRef, VarId, WriteSource};
use solver::{Goal, SolverError};
use std::fmt;
use thiserror::Error;

/// Why a trace could not be explained. "No schedule", "no alternate" and "out of time" are
/// results, not errors.
#[derive(Debug, Error)]
pub enum ExplainError {
    /// The trace records no failure.
    #[error("the trace records no failure")]
    NoFailure,
    /// The back end failed.
    #[error("the solver failed")]
    Solver(#[from] SolverError),
    /// The solver's schedule cannot happen or leaves the recorded paths: the encoding and the
    /// evaluator disagree, and nothing is shown.
    #[error("internal: the solver's schedule for {goal:?} is rejected: {}", Listed(errors))]
    ModelRejected {
        /// What was asked for.
        goal: Goal,
        /// The evaluator's reasons.
        errors: Vec<EvaluationError>,
    },
    /// The solver's schedule can happen, but fails where it should not or the reverse.
    #[error(
        "internal: the solver's schedule for {goal:?} has the wrong outcome: {}",
        outcome(fails)
    )]
    WrongOutcome {
        /// What was asked for.
        goal: Goal,
        /// Whether it fails; `None` when the evaluator does not know.
        fails: Option<bool>,
    },
    /// The solver and the evaluator disagree about the source of a read.
    #[error(
        "internal: part {} of {} reads {solver:?} for the solver, {evaluator:?} for the evaluator",
        read.part, read.event
    )]
    SourceDisagrees {
        /// The read.
        read: ReadRef,
        /// The solver's source.
        solver: WriteSource,
        /// The evaluator's source.
        evaluator: WriteSource,
    },
    /// The solver and the evaluator disagree about a value.
    #[error("internal: {variable} is {solver:#x} for the solver, {evaluator:#x} for the evaluator")]
    ValueDisagrees {
        /// The variable.
        variable: VarId,
        /// The solver's value.
        solver: u128,
        /// The evaluator's value.
        evaluator: u128,
    },
    /// Another schedule with the same conflict orders passes although every input is fixed.
    #[error("internal: the conflict orders do not determine the failure")]
    OrdersInsufficient,
}

struct Listed<'a>(&'a [EvaluationError]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

fn outcome(fails: &Option<bool>) -> &'static str {
    match fails {
        Some(true) => "it fails",
        Some(false) => "it does not fail",
        None => "whether it fails is unknown",
    }
}
