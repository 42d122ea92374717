//! Fixing the inputs of a trace.

use model::evaluate::Evaluation;
use model::{
    ConditionId, EventTrace, PathCondition, PathConditionKind, Site, ThreadId, VariableOrigin,
};

/// Does the trace have values that neither it nor a read fixes: unknown initial values, results
/// that could not be modelled?
#[must_use]
pub fn has_inputs(trace: &EventTrace) -> bool {
    trace.variables.iter().any(|v| !matches!(v.origin, VariableOrigin::Read { .. }))
}

/// The trace with an assumption for every input: its value in this evaluation. The root cause and
/// the alternates of the pinned trace are about orders alone.
#[must_use]
pub fn pin_inputs(trace: &EventTrace, evaluation: &Evaluation) -> EventTrace {
    let mut pinned = trace.clone();
    for variable in &trace.variables {
        let value = evaluation.values.get(variable.id.index()).copied().flatten();
        let (VariableOrigin::Init(_) | VariableOrigin::Input, Some(value)) =
            (variable.origin, value)
        else {
            continue;
        };
        let var = pinned.exprs.var(variable.id, variable.width);
        let constant = pinned.exprs.constant(variable.width, value);
        let expr = pinned.exprs.eq(var, constant);
        pinned.conditions.push(PathCondition {
            id: ConditionId::from_index(pinned.conditions.len()),
            thread: ThreadId(0),
            position: 0,
            expr,
            kind: PathConditionKind::Assumption,
            site: Site::default(),
            is_beside_wait: false,
        });
    }
    pinned
}
