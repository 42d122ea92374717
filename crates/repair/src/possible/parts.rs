//! What threads do between two events like those of the bug that belong together.

use super::crossings::Part;
use super::{Search, cells};
use crate::decisions::Decisions;
use model::{CellId, EventId, EventKind, EventTrace, ThreadId};
use std::collections::{BTreeMap, BTreeSet};

impl Search<'_> {
    /// What threads do from an event like the one of the bug to the next one like the other. Where those were at two
    /// places, one place that a thread comes to again behind a wait is not both: it looks again there. And where the thread
    /// did not change what it had looked at before it came to the other one, it does not here.
    pub(super) fn parts(&self, of_bug: Part) -> Vec<Part> {
        self.parts_of(of_bug, &self.like(of_bug.0), &self.like(of_bug.1))
    }

    pub(super) fn parts_of(
        &self,
        of_bug: Part,
        firsts: &[EventId],
        lasts: &[EventId],
    ) -> Vec<Part> {
        let both: BTreeSet<EventId> = firsts.iter().copied().collect();
        let decisions = Decisions::of(self.run);
        let [changed_then, changed] = [self.bug.trace, self.run].map(Changes::of);
        let is_stale = |part: Part| {
            changed.between(self.run, part) && !changed_then.between(self.bug.trace, of_bug)
        };
        let mut parts = self.nearest(of_bug, firsts, lasts);
        parts.retain(|&(first, last)| {
            !self.is_again(of_bug, (first, last))
                && !is_stale((first, last))
                && (!self.is_one_step(last, &both) || self.follows_from(last, first, &decisions))
        });
        parts
    }

    /// Each of the last events with the first one that its thread made before it: to the same place, where those of the bug
    /// are to one.
    fn nearest(&self, of_bug: Part, firsts: &[EventId], lasts: &[EventId]) -> Vec<Part> {
        let [first, last] = [of_bug.0, of_bug.1].map(|id| cells(self.bug.trace.event(id)));
        let is_one = !first.is_disjoint(&last);
        // By thread, and by cell where that has to be the same.
        let keys = |id: EventId| {
            let event = self.run.event(id);
            let cells: Vec<Option<CellId>> = match is_one {
                true => cells(event).into_iter().map(Some).collect(),
                false => vec![None],
            };
            cells.into_iter().map(move |cell| (event.thread, cell, event.index))
        };
        let begins: BTreeMap<(ThreadId, Option<CellId>, u32), EventId> =
            firsts.iter().flat_map(|id| keys(*id).map(move |key| (key, *id))).collect();
        let with_first = |last: &EventId| {
            let of_key = |(thread, cell, index)| {
                let (&(.., at), first) =
                    begins.range((thread, cell, 0)..(thread, cell, index)).next_back()?;
                Some((at, *first))
            };
            let (_, first) = keys(*last).filter_map(of_key).max()?;
            Some((first, *last))
        };
        lasts.iter().filter_map(with_first).collect()
    }

    /// Is it one place that the thread comes to again behind a wait, where the bug's events were at two?
    fn is_again(&self, of_bug: Part, part: Part) -> bool {
        let in_one_place =
            |trace: &EventTrace, (a, b): Part| trace.event(a).stack == trace.event(b).stack;
        let [begin, end] = [part.0, part.1].map(|id| self.run.event(id).index as usize);
        let own = &self.run.thread_of(part.0).events;
        let between = own.get(begin + 1..end).into_iter().flatten();
        !in_one_place(self.bug.trace, of_bug)
            && in_one_place(self.run, part)
            && between.map(|id| &self.run.event(*id).kind).any(is_end_of_wait)
    }

    /// The looks behind a wait that are uses as well: something that is written follows from what they saw. Of others the use
    /// may be where the run did not come to.
    pub(super) fn behind_wait(
        &self,
        of_bug: Part,
        firsts: &[EventId],
        lasts: &[EventId],
    ) -> BTreeSet<EventId> {
        let pairs = self.nearest(of_bug, firsts, lasts).into_iter();
        let again = pairs.filter(|part| self.is_again(of_bug, *part)).map(|(_, last)| last);
        let again: BTreeSet<EventId> = again.collect();
        if again.is_empty() {
            return again;
        }
        let writes = self.run.events.iter().flat_map(|event| event.kind.writes());
        let reads = writes.flat_map(|part| self.run.reads_of(part.value));
        let used: BTreeSet<EventId> = reads.map(|read| read.event).collect();
        again.intersection(&used).copied().collect()
    }

    /// Does the event do both, as an atomic update in the place of a read and a write?
    pub(super) fn is_one_step(&self, last: EventId, firsts: &BTreeSet<EventId>) -> bool {
        matches!(self.run.event(last).kind, EventKind::ReadModifyWrite { .. })
            && firsts.contains(&last)
    }

    /// Does what a thread wrote, or that it came there, follow from what it had read at an earlier event?
    pub(super) fn follows_from(
        &self,
        last: EventId,
        first: EventId,
        decisions: &Decisions<'_>,
    ) -> bool {
        let run = self.run;
        let (first, last) = (run.event(first), run.event(last));
        let written = last.kind.writes().iter().map(|part| part.value);
        let passed = decisions.within(last.thread, first.index + 1..=last.index).iter();
        let mut exprs = written.chain(passed.map(|condition| condition.expr));
        exprs.any(|expr| run.reads_of(expr).iter().any(|read| read.event == first.id))
    }
}

/// What a thread wrote, by thread, variable and number in the thread.
struct Changes(BTreeSet<(ThreadId, CellId, u32)>);

impl Changes {
    fn of(trace: &EventTrace) -> Self {
        let all = trace.events.iter().flat_map(|event| {
            let parts = event.kind.writes().iter();
            parts.map(|part| (event.thread, part.cell, event.index))
        });
        Self(all.collect())
    }

    /// Did the thread itself change what the first event is about before it came to the last one?
    fn between(&self, trace: &EventTrace, (first, last): Part) -> bool {
        let (first, last) = (trace.event(first), trace.event(last));
        let (begin, end) = (first.index.saturating_add(1), last.index.max(first.index + 1));
        let of = |cell| (first.thread, cell, begin)..(first.thread, cell, end);
        cells(first).into_iter().any(|cell| self.0.range(of(cell)).next().is_some())
    }
}

/// Was the thread woken, or had it waited for long enough?
fn is_end_of_wait(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Wake { .. } | EventKind::WaitTimedOut { .. })
}
