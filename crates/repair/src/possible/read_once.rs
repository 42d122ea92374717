//! A variable that was read twice, once for a look and once for its use, and is read once now: then nothing comes between.

use super::together::are_beside;
use super::{Possible, Search, cells};
use crate::source::span;
use explain::last_member;
use model::{CellId, Event, ThreadId};
use std::collections::BTreeSet;

impl Search<'_> {
    /// Where the cause is that another thread came between two reads of a variable: does a thread that comes to the function in
    /// which both were made, or called from, read it once there, and nowhere else while others may write it? None
    /// where that is not so, or not seen in this run.
    pub(super) fn is_read_once(&self) -> Option<Possible> {
        let (trace, run) = (self.bug.trace, self.run);
        let (look, act) = self.look_and_act()?;
        let reads = |event: &Event| !event.kind.reads().is_empty();
        let writes = |event: &Event| !event.kind.writes().is_empty();
        if self.new.incomplete || writes(look) || writes(act) {
            return None;
        }
        let function = span(look, act)?.function;
        let name = last_member(trace.subject(look)?);
        let named = |event: &Event| run.subject(event).is_some_and(|it| last_member(it) == name);
        let inside = |event: &Event| event.stack.iter().any(|site| site.function == function);
        let there: Vec<&Event> = run
            .events
            .iter()
            .filter(|event| inside(event) && reads(event) && named(event))
            .collect();
        let threads: BTreeSet<ThreadId> = there.iter().map(|event| event.thread).collect();
        // Also where it has another name.
        let about: BTreeSet<CellId> = there.iter().flat_map(|event| cells(event)).collect();
        let touches = |event: &&Event| !cells(event).is_disjoint(&about);
        let writes: Vec<&Event> =
            run.events.iter().filter(|event| writes(event)).filter(touches).collect();
        let orders = encoders::encode_orders(run).ok()?;
        let is_met = |event: &Event| {
            let own = cells(event);
            let of_own = |write: &&&Event| !cells(write).is_disjoint(&own);
            writes.iter().filter(of_own).any(|write| are_beside(&orders, event, write))
        };
        let mut meets = false;
        for thread in threads {
            let own = run.threads.get(thread.index())?.events.iter().map(|id| run.event(*id));
            let own = own.filter(|event| reads(event)).filter(touches);
            let (within, without): (Vec<&Event>, Vec<&Event>) =
                own.partition(|event| inside(event));
            if within.len() > 1 || without.into_iter().any(is_met) {
                return None;
            }
            meets |= within.into_iter().any(is_met);
        }
        meets.then(|| Possible::No(format!("`{name}` is read once in `{function}`")))
    }
}
