//! Which of a thread's reads its branches hang on, for all reads of a cell at once: a thread that looks at a flag in
//! every round has as many reads as branches, and to go through all branches for each of them has no end.

use super::story::Story;
use model::{CellId, EventId, PathConditionKind, ThreadId};
use rustc_hash::FxHashSet;

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
}
