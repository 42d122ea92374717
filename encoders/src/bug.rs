//! φbug: the failure's condition, kept apart so that it can be asserted or negated.

use crate::system::Term;
use model::{EventTrace, FailureCondition};

/// φbug, or `None` for a run that did not fail.
pub(crate) fn encode(trace: &EventTrace) -> Option<Term> {
    trace.failure.as_ref().map(|failure| term(trace, &failure.condition))
}

fn term(trace: &EventTrace, condition: &FailureCondition) -> Term {
    match condition {
        FailureCondition::Value(expr) => match trace.exprs.as_const(*expr) {
            Some(0) => Term::False,
            Some(_) => Term::True,
            None => Term::Value(*expr),
        },
        FailureCondition::Before(a, b) if a == b => Term::False,
        FailureCondition::Before(a, b) => Term::Before(*a, *b),
        FailureCondition::All(parts) => Term::all(parts.iter().map(|part| term(trace, part))),
        FailureCondition::Any(parts) => Term::any(parts.iter().map(|part| term(trace, part))),
    }
}
