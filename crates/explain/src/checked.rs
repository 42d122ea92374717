//! A run that ended with a bad status or a wrong output: that may only tell what a check found, whose result the program
//! kept in a place that no event is about.
//!
//! What no thread touches while another one may has no events, such as a flag that is set by one thread and read by
//! another that has waited for its end. So nothing leads from the failure back to the check. But the failing run took a
//! turn there that the passing run never takes.

use crate::across::{Divergence, View};
use model::{
    EventId, EventKind, EventTrace, Expr, ExprId, FailureKind, PathCondition, PathConditionKind,
    ReadRef, ThreadId,
};
use std::collections::BTreeSet;

/// Does the failure come when the run is over, whatever ways its threads went?
pub(crate) fn comes_at_the_end(trace: &EventTrace) -> bool {
    let kind = trace.failure.as_ref().map(|failure| failure.kind);
    matches!(kind, Some(FailureKind::Exit | FailureKind::Output))
}

impl View<'_> {
    /// Has the failing thread nothing behind the path that both runs take but the failure and what that reads
    /// (`decisive`), for which the passing run need not have events?
    pub(crate) fn parts_at_failure(&self, thread: ThreadId, decisive: &BTreeSet<ReadRef>) -> bool {
        let trace = self.failing.trace;
        let own = &trace.threads[thread.index()].events;
        let read = |id: EventId| decisive.iter().any(|read| read.event == id);
        let at_failure =
            |id: &EventId| read(*id) || matches!(trace.event(*id).kind, EventKind::Failure);
        own.iter().skip(self.common_path(thread).0).all(at_failure)
    }

    /// The last branch of the program's own that hangs on what is read otherwise in the passing run, and that went, in
    /// the failing run only, the way it went there.
    pub(crate) fn turn(&self) -> Option<Divergence> {
        let (failing, passing) = (self.failing.trace, self.passing.trace);
        if !comes_at_the_end(failing) {
            return None;
        }
        let branch = |condition: &&PathCondition| {
            condition.kind == PathConditionKind::Branch && !condition.site.is_in_library()
        };
        let taken: BTreeSet<_> = passing
            .conditions
            .iter()
            .filter(branch)
            .map(|condition| (&condition.site, way(passing, condition.expr)))
            .collect();
        let turns = failing.conditions.iter().filter(branch).filter(|condition| {
            !taken.contains(&(&condition.site, way(failing, condition.expr)))
                && self.evaluated(condition.expr) == Some(0)
        });
        let changed = |condition: &PathCondition| -> Vec<ReadRef> {
            let reads = failing.reads_of(condition.expr).into_iter();
            let changed = |read: &ReadRef| self.flow(*read).is_some_and(|flow| self.changed(&flow));
            reads.filter(changed).collect()
        };
        let turns = turns.filter_map(|condition| {
            let reads = changed(condition);
            let place = reads.iter().map(|read| self.place(read.event)).max()?;
            Some((place, condition, reads))
        });
        let (_, condition, reads) =
            turns.max_by_key(|(place, condition, _)| (*place, condition.id))?;
        Some(Divergence {
            thread: condition.thread,
            condition: condition.id,
            reads,
            failing_mark: None,
            passing_mark: None,
        })
    }
}

/// Which way a branch went, as its condition tells: that two values are equal, say, or that they are not.
fn way(trace: &EventTrace, expr: ExprId) -> String {
    match trace.exprs.get(expr) {
        Expr::Not(inner) => format!("not {}", way(trace, inner)),
        Expr::Cmp(op, ..) => format!("{op:?}"),
        Expr::FloatCmp(op, ..) => format!("{op:?}"),
        _ => String::new(),
    }
}
