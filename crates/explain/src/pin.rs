//! Fixing the inputs of a trace.

use model::evaluate::Evaluation;
use model::{
    ConditionId, EventTrace, ExprId, Outcome, PathCondition, PathConditionKind, Site, ThreadId,
    VarId, VariableOrigin,
};
use std::collections::BTreeMap;

/// Does the trace have values that neither it nor a read fixes: unknown initial values, results
/// that could not be modelled?
#[must_use]
pub fn has_inputs(trace: &EventTrace) -> bool {
    trace.variables.iter().any(|v| !matches!(v.origin, VariableOrigin::Read { .. }))
}

/// The trace with an assumption for every input: its value in this evaluation. The root cause and
/// the alternates of the pinned trace are about orders alone. What a function worked out has that value only where
/// the same goes in as in this evaluation.
#[must_use]
pub fn pin_inputs(trace: &EventTrace, evaluation: &Evaluation) -> EventTrace {
    let mut pinned = trace.clone();
    let value_of = |var: VarId| evaluation.values.get(var.index()).copied().flatten();
    let outcomes: BTreeMap<VarId, &Outcome> =
        trace.outcomes.iter().map(|outcome| (outcome.var, outcome)).collect();
    let mut went_in: BTreeMap<ExprId, ExprId> = BTreeMap::new();
    for variable in &trace.variables {
        let value = value_of(variable.id);
        let (VariableOrigin::Init(_) | VariableOrigin::Input, Some(value)) =
            (variable.origin, value)
        else {
            continue;
        };
        let var = pinned.exprs.var(variable.id, variable.width);
        let constant = pinned.exprs.constant(variable.width, value);
        let mut expr = pinned.exprs.eq(var, constant);
        let inputs = outcomes.get(&variable.id).map(|outcome| &*outcome.inputs);
        for &input in inputs.unwrap_or_default() {
            // Where it is not known what went in, the value stays.
            let Some(value) = trace.exprs.evaluate(input, &value_of) else { continue };
            let pool = &mut pinned.exprs;
            let other = *went_in.entry(input).or_insert_with(|| {
                let constant = pool.constant(pool.width(input), value);
                let same = pool.eq(input, constant);
                pool.not(same)
            });
            expr = pool.or(other, expr);
        }
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
