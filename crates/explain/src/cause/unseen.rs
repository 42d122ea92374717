//! What the failure's condition would say had some writes not been seen.

use super::story::Story;
use model::{CellId, Event, EventId, FailureCondition, ThreadId, VarId};
use rustc_hash::FxHashMap;

impl Story<'_> {
    /// Does the failure hang on the write that a read sees: would there be none, with what the cell was
    /// before that write, or with what all cells were before that thread wrote them? Of a sum over
    /// accounts that misses one half of a transfer that is so; where each element is looked at for itself,
    /// one that is wrong is wrong whatever the others are. Yes where it is not known.
    pub(super) fn fails_by_what_was_seen(
        &self,
        (read, cell): (EventId, CellId),
        writer: ThreadId,
    ) -> bool {
        let failure = self.trace().failure.as_ref();
        let Some(&FailureCondition::Value(condition)) = failure.map(|failure| &failure.condition)
        else {
            return true;
        };
        let mut alone = FxHashMap::default();
        let mut all = FxHashMap::default();
        for named in self.failure_reads() {
            let Some(part) = self.event(named.event).kind.reads().get(named.part as usize) else {
                return true;
            };
            let source = self.source(named.event, part.cell);
            let Some(seen) = source.filter(|seen| self.event(*seen).thread == writer) else {
                continue;
            };
            let others = |event: &Event| event.thread != writer;
            let Some(value) = self.value_before(seen, part.cell, others) else { return true };
            all.insert(part.var, value);
            if (named.event, part.cell) == (read, cell) {
                let Some(value) = self.value_before(seen, part.cell, |_| true) else { return true };
                alone.insert(part.var, value);
            }
        }
        let fails = |unseen: &FxHashMap<VarId, u128>| {
            let then = |var: VarId| unseen.get(&var).copied().or_else(|| self.value(var));
            self.trace().exprs.evaluate(condition, &then) != Some(0)
        };
        !(fails(&alone) && fails(&all))
    }

    /// What a cell was before a write, if only these events write it. `None` where that is not known.
    fn value_before(
        &self,
        write: EventId,
        cell: CellId,
        counts: impl Fn(&Event) -> bool,
    ) -> Option<u128> {
        let writes = |event: &Event| counts(event) && self.access(event.id, cell).writes;
        if let Some(earlier) = self.last_before(write, writes) {
            return self.left(earlier, cell);
        }
        let init = self.trace().cells[cell.index()].init;
        self.trace().exprs.evaluate(init, &|var| self.value(var))
    }
}
