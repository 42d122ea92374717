//! Which of a thread's reads its branches hang on, for all reads of a cell at once: a thread that looks at a flag in
//! every round has as many reads as branches, and to go through all branches for each of them has no end.

use super::story::Story;
use crate::checked::comes_at_the_end;
use model::{CellId, EventId, ExprId, FailureCondition, PathConditionKind, ReadRef, ThreadId};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

impl Story<'_> {
    /// The thread's reads of the cell that a condition hangs on (as [`Story::decides`] asks of one read), which the thread came to behind the
    /// read and no further than `until`, a place in its program order.
    pub(super) fn deciding(
        &self,
        thread: ThreadId,
        cell: CellId,
        until: u32,
    ) -> FxHashSet<EventId> {
        let trace = self.trace();
        let mut deciding = FxHashSet::default();
        let own = trace.conditions.iter().filter(|condition| {
            condition.thread == thread
                && condition.position <= until
                && condition.kind != PathConditionKind::Address
        });
        for condition in own {
            for read in trace.reads_of(condition.expr) {
                let event = self.event(read.event);
                let part = event.kind.reads().get(read.part as usize);
                if event.thread == thread
                    && event.index < condition.position
                    && part.is_some_and(|part| part.cell == cell)
                {
                    deciding.insert(read.event);
                }
            }
        }
        deciding
    }

    /// The branch whose result is all that the run ended with.
    fn check(&self) -> Option<ExprId> {
        let (_, across) = self.other_run().filter(|_| comes_at_the_end(self.trace()))?;
        let branch = across.branches.first()?.condition;
        Some(self.trace().conditions.get(branch.index())?.expr)
    }

    /// The reads that the failure's condition names, and those of the check whose result is all that the run ended
    /// with.
    pub(super) fn telling_reads(&self) -> BTreeSet<ReadRef> {
        let mut reads = self.failure_reads();
        reads.extend(self.check().into_iter().flat_map(|check| self.trace().reads_of(check)));
        reads
    }

    /// What holds where the run fails: the failure's condition, or that of the check.
    pub(super) fn telling_condition(&self) -> Option<ExprId> {
        let failure = self.trace().failure.as_ref()?;
        match failure.condition {
            FailureCondition::Value(condition) => Some(self.check().unwrap_or(condition)),
            _ => None,
        }
    }
}
