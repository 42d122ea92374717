//! What reads returned in the recorded run, where its log tells.
//!
//! Like the clock's orders these are facts of one run: they hold in the failing schedule that is to
//! be like it, and in no other for certain.

use model::{
    ConditionId, EventTrace, PathCondition, PathConditionKind, ReadRef, Variable, VariableOrigin,
};
use rustc_hash::FxHashSet;

/// The trace whose reads return what they returned in the recorded run, as far as that is known:
/// path conditions more. Its schedules that follow the paths do so in the trace as it was; for the
/// failing schedule, together with [`encode_recorded`](crate::encode_recorded).
#[must_use]
pub fn with_recorded_values(trace: &EventTrace) -> EventTrace {
    let mut recorded = trace.clone();
    let mut known: FxHashSet<_> = trace.conditions.iter().map(|condition| condition.expr).collect();
    for variable in &trace.variables {
        let Some((read, value)) = recorded_read(variable) else { continue };
        let Some(event) = trace.events.get(read.event.index()) else { continue };
        let pool = &mut recorded.exprs;
        let (var, constant) =
            (pool.var(variable.id, variable.width), pool.constant(variable.width, value));
        let expr = pool.eq(var, constant);
        if known.insert(expr) {
            recorded.conditions.push(PathCondition {
                id: ConditionId::from_index(recorded.conditions.len()),
                thread: event.thread,
                position: event.index + 1,
                expr,
                kind: PathConditionKind::Assumption,
                site: event.stack.first().cloned().unwrap_or_default(),
                is_beside_wait: false,
            });
        }
    }
    recorded
}

/// The read that a variable is the value of, and the value.
fn recorded_read(variable: &Variable) -> Option<(ReadRef, u128)> {
    match variable.origin {
        VariableOrigin::Read { event, part } => Some((ReadRef { event, part }, variable.recorded?)),
        VariableOrigin::Init(_) | VariableOrigin::Input => None,
    }
}
