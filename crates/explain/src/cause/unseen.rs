//! What the failure's condition would say had some writes not been seen.

use super::story::Story;
use model::{CellId, EventId, ThreadId, VarId};
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
        let Some(condition) = self.telling_condition() else { return true };
        let named = self.telling_reads().into_iter();
        let named = named.filter_map(|named| {
            let part = self.event(named.event).kind.reads().get(named.part as usize)?;
            Some((named.event, part))
        });
        let named: Vec<_> = named.collect();
        let mut writes: FxHashMap<CellId, Vec<EventId>> =
            named.iter().map(|(_, part)| (part.cell, Vec::new())).collect();
        for event in &self.trace().events {
            for part in event.kind.writes() {
                if let Some(writes) = writes.get_mut(&part.cell) {
                    writes.push(event.id);
                }
            }
        }
        let is_others = |id: EventId| self.event(id).thread != writer;
        let mut alone = FxHashMap::default();
        let mut all = FxHashMap::default();
        for (event, part) in named {
            let source = self.source(event, part.cell);
            let Some(seen) = source.filter(|seen| !is_others(*seen)) else { continue };
            let known = writes.get(&part.cell).map(Vec::as_slice).unwrap_or_default();
            let earlier = known.iter().copied().filter(|id| self.before(*id, seen));
            let others = earlier.clone().filter(|id| is_others(*id));
            let Some(value) = self.left_last(others, part.cell) else { return true };
            all.insert(part.var, value);
            if (event, part.cell) == (read, cell) {
                let Some(value) = self.left_last(earlier, part.cell) else { return true };
                alone.insert(part.var, value);
            }
        }
        let fails = |unseen: &FxHashMap<VarId, u128>| {
            let then = |var: VarId| unseen.get(&var).copied().or_else(|| self.value(var));
            self.trace().exprs.evaluate(condition, &then).is_some_and(|fails| fails != 0)
        };
        !(fails(&alone) && fails(&all))
    }

    /// What the last of these writes leaves in a cell, and where there is none, what it has from the start. `None` where
    /// that is not known.
    fn left_last(&self, writes: impl Iterator<Item = EventId>, cell: CellId) -> Option<u128> {
        match writes.max_by_key(|id| self.place(*id)) {
            Some(last) => self.left(last, cell),
            None => {
                let init = self.trace().cells[cell.index()].init;
                self.trace().exprs.evaluate(init, &|var| self.value(var))
            }
        }
    }
}
