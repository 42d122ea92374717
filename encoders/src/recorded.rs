//! What reads and library functions returned in the recorded run, where its log tells.
//!
//! Like the clock's orders these are facts of one run: they hold in the failing schedule that is to
//! be like it, and in no other for certain.

use model::{
    ConditionId, EventTrace, PathCondition, PathConditionKind, Site, ThreadId, VariableOrigin,
};
use rustc_hash::FxHashSet;

/// The trace whose reads return what they returned in the recorded run, as far as that is known, and whose inputs are what
/// they were: path conditions more. Its schedules that follow the paths do so in the trace as it was; for the
/// failing schedule, together with [`encode_recorded`](crate::encode_recorded).
#[must_use]
pub fn with_recorded_values(trace: &EventTrace) -> EventTrace {
    let mut recorded = trace.clone();
    let mut known: FxHashSet<_> = trace.conditions.iter().map(|condition| condition.expr).collect();
    for variable in &trace.variables {
        let Some(value) = variable.recorded else { continue };
        let (thread, position, site) = match variable.origin {
            VariableOrigin::Read { event, .. } => {
                let Some(event) = trace.events.get(event.index()) else { continue };
                let site = event.stack.first().cloned().unwrap_or_default();
                (event.thread, event.index + 1, site)
            }
            VariableOrigin::Input => (ThreadId(0), 0, Site::default()),
            VariableOrigin::Init(_) => continue,
        };
        let pool = &mut recorded.exprs;
        let (var, constant) =
            (pool.var(variable.id, variable.width), pool.constant(variable.width, value));
        let expr = pool.eq(var, constant);
        if known.insert(expr) {
            recorded.conditions.push(PathCondition {
                id: ConditionId::from_index(recorded.conditions.len()),
                thread,
                position,
                expr,
                kind: PathConditionKind::Assumption,
                site,
                is_beside_wait: false,
            });
        }
    }
    recorded
}
