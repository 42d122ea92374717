//! φbug: the failure's condition, kept apart so that it can be asserted or negated.

use crate::conditions::{Woken, unwoken};
use crate::context::Context;
use crate::system::Term;
use model::FailureCondition;

/// φbug, or `None` for a run that did not fail.
pub(crate) fn encode(context: &Context<'_>, woken: &Woken) -> Option<Term> {
    let failure = context.trace.failure.as_ref()?;
    Some(term(context, woken, &failure.condition))
}

fn term(context: &Context<'_>, woken: &Woken, condition: &FailureCondition) -> Term {
    let each = |part| term(context, woken, part);
    match condition {
        FailureCondition::Value(expr) => match context.trace.exprs.as_const(*expr) {
            Some(0) => Term::False,
            Some(_) => Term::True,
            None => Term::Value(*expr),
        },
        FailureCondition::Before(a, b) if a == b => Term::False,
        FailureCondition::Before(a, b) => Term::Before(*a, *b),
        FailureCondition::Unwoken { condition, began } => {
            unwoken(context, woken, *condition, *began)
        }
        FailureCondition::All(parts) => Term::all(parts.iter().map(each)),
        FailureCondition::Any(parts) => Term::any(parts.iter().map(each)),
    }
}
