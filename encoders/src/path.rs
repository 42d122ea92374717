//! φpath: every thread took the recorded path.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, PathCondition};
use rustc_hash::FxHashSet;

/// One constraint per path condition that is not true already and says something new. Its origins are the
/// reads whose values it constrains.
pub(crate) fn encode(context: &Context<'_>, builder: &mut Builder) {
    let mut said = FxHashSet::default();
    for condition in &context.trace.conditions {
        if !said.insert(condition.expr) {
            continue;
        }
        let term = match context.trace.exprs.as_const(condition.expr) {
            Some(0) => Term::False,
            Some(_) => Term::True,
            None => Term::Value(condition.expr),
        };
        let origins = reads_of(context, condition);
        builder.add(ConstraintKind::Path(condition.id), origins, term);
    }
}

fn reads_of(context: &Context<'_>, condition: &PathCondition) -> Vec<EventId> {
    let variables = context.trace.exprs.variables(condition.expr);
    let mut reads: Vec<EventId> = variables
        .into_iter()
        .filter_map(|var| context.read_of(var))
        .map(|read| read.event)
        .collect();
    reads.sort_unstable();
    reads.dedup();
    reads
}
