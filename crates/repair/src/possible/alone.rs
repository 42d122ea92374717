//! Accesses of the cause that nobody makes any more: a buffer that all threads had is each thread's own now, say.

use super::crossings::{common, locks};
use super::together::are_beside;
use super::{Look, Possible, Search, cells};
use crate::sections::sections;
use model::{CellId, Event, EventId};
use std::collections::{BTreeMap, BTreeSet};

impl Search<'_> {
    /// Where the run has no access like one of the cause's, and has done all that the function does in which that was made: is
    /// what is done there, and what is left of the cause's other accesses, about nothing that another thread uses at the same
    /// time without a lock that both hold? None where that is not so, or not seen in this run.
    pub(super) fn is_done_alone(&self) -> Option<Possible> {
        let (bug, run) = (self.bug, self.run);
        let mut functions: BTreeSet<String> = BTreeSet::new();
        let mut asked: Vec<&Event> = Vec::new();
        // What is freed is about more than it touches, and where something is not known others may touch it.
        let is_access = |id: &EventId| bug.trace.event(*id).kind.is_access();
        if self.new.incomplete || !bug.events.iter().all(is_access) {
            return None;
        }
        for id in bug.events {
            let like = self.like(*id);
            if like.is_empty() {
                functions.insert(Look::of(bug.trace, bug.trace.event(*id)).function);
            }
            asked.extend(like.into_iter().map(|id| run.event(id)));
        }
        for function in &functions {
            let inside = |event: &&Event| event.stack.iter().any(|site| site.function == *function);
            let mut there = run.events.iter().filter(inside).peekable();
            // It ran, and whatever it does it did.
            if self.new.functions.contains(function) || there.peek().is_none() {
                return None;
            }
            asked.extend(there);
        }
        let all = sections(run);
        let orders = encoders::encode_orders(run).ok()?;
        let mut of_cell: BTreeMap<CellId, Vec<&Event>> = BTreeMap::new();
        for event in &run.events {
            for cell in cells(event) {
                of_cell.entry(cell).or_default().push(event);
            }
        }
        let meets = |event: &Event| {
            let cells = cells(event);
            let held = |event: &Event| locks(all.touching(run, (event.id, event.id)));
            let own = held(event);
            let mut others = cells.iter().filter_map(|cell| of_cell.get(cell)).flatten();
            others.any(|other| {
                let writes = !event.kind.writes().is_empty() || !other.kind.writes().is_empty();
                writes && are_beside(&orders, event, other) && common(&own, &held(other)).is_none()
            })
        };
        let names = functions.iter().cloned().collect::<Vec<_>>().join("` and `");
        let alone = !functions.is_empty() && self.limits.is_left() && !asked.into_iter().any(meets);
        alone.then(|| {
            Possible::No(format!("what `{names}` uses is used by no other thread at the same time"))
        })
    }
}
