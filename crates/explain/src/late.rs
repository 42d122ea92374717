//! What comes the other way round in a passing run, and what of it came too late in the failing
//! run: when the process dies first, the failing run does not have the event at all.

use crate::across::{Flipped, Flow, SHOWN, View, event_of, mark};
use crate::commuting::Commuting;
use crate::conflict::{ConflictOrder, OrderKind, conflict_orders};
use model::{EventId, EventKind, EventTrace, ReadRef, Thread};
use solver::Order;
use std::collections::BTreeSet;

/// Finds what the passing run has the other way round.
pub(crate) struct Lateness<'v, 'a> {
    view: &'v View<'a>,
    /// By the passing run's thread: did the failing run end before its thread got on?
    cut: Vec<bool>,
    /// By the same: how many of its events come up to the last one that the failing run has, too.
    common: Vec<u32>,
}

impl<'v, 'a> Lateness<'v, 'a> {
    pub(crate) fn new(view: &'v View<'a>) -> Self {
        let cut = view.passing.trace.threads.iter().map(|thread| is_cut(view, thread)).collect();
        let matched = |id: &&EventId| view.matching.in_failing(**id).is_some();
        let up_to = |id: &EventId| view.passing.trace.event(*id).index + 1;
        let common = view.passing.trace.threads.iter();
        let common =
            common.map(|thread| thread.events.iter().rfind(matched).map_or(0, up_to)).collect();
        Self { view, cut, common }
    }

    /// What explains most: a pair of the last data flow that explains something, or else what a
    /// data flow lacks in the failing run. Where no data flow of both runs explains the failure,
    /// what the failing thread goes on with in the passing run; then any other pair.
    pub(crate) fn flipped(&self, flows: &[Flow], forced: Option<Order>) -> Option<Flipped> {
        let changed = || flows.iter().take(SHOWN).rev().filter(|flow| !flow.same_source);
        let all = || changed().filter_map(|flow| self.view.reversed_by(flow));
        let commuting = Commuting::new(self.view.failing.trace);
        let telling = || all().filter(|order| !commuting.has(*order));
        // In which order threads came to a barrier of the library tells least.
        let meeting = |order: &Order| is_meeting(self.view.failing.trace, *order);
        let reversed = telling().find(|order| !meeting(order)).or_else(|| telling().next());
        reversed
            .map(Flipped::Reversed)
            .or_else(|| changed().find_map(|flow| self.late_source(flow)))
            .or_else(|| changed().find_map(|flow| self.forestalled_source(flow)))
            .or_else(|| flows.is_empty().then(|| self.late_for_the_failure()).flatten())
            .or_else(|| flows.is_empty().then(|| self.before_a_wait()).flatten())
            .or_else(|| self.view.reversed_anywhere(forced).map(Flipped::Reversed))
            .or_else(|| self.late_for_the_failure())
    }

    /// Is it an event that the failing run would have had, had it not ended before? What its thread did behind it in both
    /// runs, it did in the failing one without: what is there from the start may be an event in the one run only.
    fn is_late(&self, passing: EventId) -> bool {
        let event = self.view.passing.trace.event(passing);
        let thread = event.thread.index();
        self.cut[thread]
            && event.index >= self.common[thread]
            && self.view.matching.in_failing(passing).is_none()
    }

    /// A read of both runs whose source in the passing run came too late in the failing one.
    fn late_source(&self, flow: &Flow) -> Option<Flipped> {
        let after = event_of(flow.passing.write).filter(|write| self.is_late(*write))?;
        let (before, needs) = (flow.failing.read.event, flow.passing.read.event);
        Some(Flipped::Late { before, after, needs })
    }

    /// A read of the failing thread whose source in the passing run is a step that its thread left alone in the failing one,
    /// because it found there what the reader had written meanwhile: whoever comes first does it.
    fn forestalled_source(&self, flow: &Flow) -> Option<Flipped> {
        let after = event_of(flow.passing.write)?;
        let (failing, passing) = (self.view.failing, self.view.passing);
        let (before, needs) = (flow.failing.read.event, flow.passing.read.event);
        let reader = failing.trace.event(before);
        let failed = failing.trace.event(failing.trace.failure.as_ref()?.event).thread;
        let cell = reader.kind.reads().get(flow.failing.read.part as usize)?.cell;
        let name = &passing.trace.thread_of(after).name;
        let rival = failing.trace.threads.iter().find(|thread| thread.name == *name)?;
        let (common, _) = self.view.common_path(rival.id);
        let looks = rival.events.get(..common)?.iter().map(|id| failing.trace.event(*id));
        let mut looks = looks.filter(|look| look.kind.reads().iter().any(|part| part.cell == cell));
        let seen = failing.evaluation.source(looks.next_back()?, cell)?;
        let seen = failing.trace.event(seen);
        let is_own = seen.thread == reader.thread && seen.index > reader.index;
        let left_alone = self.view.matching.in_failing(after).is_none();
        (is_own && left_alone && reader.thread == failed).then_some(Flipped::Late {
            before,
            after,
            needs,
        })
    }

    /// What the failing thread needs in the passing run, beyond the path that both have, and what
    /// came too late in the failing run. Reads come first, since locks are passed on all the time,
    /// and of those the ones in the line of the failure.
    fn late_for_the_failure(&self) -> Option<Flipped> {
        let (failing, passing) = (self.view.failing, self.view.passing);
        let failure = failing.trace.event(failing.trace.failure.as_ref()?.event);
        let thread = failing.trace.thread_of(failure.id);
        let other = passing.trace.threads.iter().find(|other| other.name == thread.name)?;
        let (_, common) = self.view.common_path(thread.id);
        let line = failure.stack.first().map(|site| (&site.function, site.line));
        let orders = conflict_orders(passing.trace, passing.schedule, passing.evaluation);
        // What the failing run read before anybody else had touched it has no event there, although its thread came by on
        // the path of both.
        let passed_by = |conflict: &ConflictOrder| {
            let event = passing.trace.event(conflict.order.after);
            matches!(conflict.kind, OrderKind::ReadFrom(_))
                && (event.index as usize) < common
                && self.view.matching.in_failing(event.id).is_none()
        };
        // Where the paths part at the failure alone, what the passing run does behind that cannot have kept it from
        // failing.
        let at_failure = self.view.parts_at_failure(thread.id, &BTreeSet::new());
        let rank = |conflict: &ConflictOrder| {
            let event = passing.trace.event(conflict.order.after);
            let kind = match conflict.kind {
                OrderKind::ReadFrom(_) => 1,
                _ if self.missed(event.id, thread) => 0,
                OrderKind::Lock(_) => 3,
                _ => 2,
            };
            let there = event.stack.first().map(|site| (&site.function, site.line)) == line;
            // Who came first to its next iteration, say, is the affair of OpenMP's runtime.
            let of_runtime = is_of_openmp(passing.trace, conflict.order);
            // The path was left for what was read last on it.
            let away = (event.index as usize).abs_diff(common);
            let differs = passed_by(conflict) != at_failure;
            (of_runtime, differs, kind, !there, away, conflict.order.before)
        };
        let late = |conflict: &&ConflictOrder| {
            let event = passing.trace.event(conflict.order.after);
            let kind = matches!(
                conflict.kind,
                OrderKind::ReadFrom(_)
                    | OrderKind::Lock(_)
                    | OrderKind::Condition(_)
                    | OrderKind::Semaphore(_)
                    | OrderKind::Barrier(_)
            );
            kind && event.thread == other.id
                && (event.index as usize >= common
                    || passed_by(conflict)
                    || self.missed(event.id, thread))
                && self.is_late(conflict.order.before)
        };
        let late: Vec<&ConflictOrder> = orders.iter().filter(late).collect();
        let best = late.iter().copied().min_by_key(|conflict| rank(conflict))?;
        let best = self.to_the_pointer(best, &late);
        let needs = best.order.after;
        let after = self.beyond_rivals(best).unwrap_or(best.order.before);
        let before = match passed_by(best) {
            true => failure.id,
            false => self.in_place_of(needs, thread)?,
        };
        Some(Flipped::Late { before, after, needs })
    }

    /// Where what was read lies behind a pointer that came too late itself: that pointer, of several the last one that was
    /// read. The failing run did not get to that object at all, so when it was written says nothing.
    fn to_the_pointer<'o>(
        &self,
        read: &'o ConflictOrder,
        late: &[&'o ConflictOrder],
    ) -> &'o ConflictOrder {
        let trace = self.view.passing.trace;
        let index = |conflict: &ConflictOrder| trace.event(conflict.order.after).index;
        let mut found = read;
        while let OrderKind::ReadFrom(_) = found.kind {
            let through = trace.address_reads(trace.event(found.order.after));
            let is_pointer = |other: &&&ConflictOrder| {
                let leads = |read: &ReadRef| read.event == other.order.after;
                matches!(other.kind, OrderKind::ReadFrom(_)) && through.iter().any(leads)
            };
            let before = late.iter().filter(|other| index(other) < index(found));
            match before.filter(is_pointer).max_by_key(|other| index(other)) {
                Some(pointer) => found = pointer,
                None => break,
            }
        }
        found
    }

    /// Where what was read is an update that another thread made in the same place, as one that takes away as well: what that
    /// one read from, and so on, up to what is no such update. Who does the same was not what was missing.
    fn beyond_rivals(&self, read: &ConflictOrder) -> Option<EventId> {
        let OrderKind::ReadFrom(cell) = read.kind else { return None };
        let passing = self.view.passing;
        let stack = &passing.trace.event(read.order.after).stack;
        let is_rival = |id: EventId| {
            let event = passing.trace.event(id);
            event.kind.writes().iter().any(|part| part.cell == cell) && event.stack == *stack
        };
        let mut write = read.order.before;
        while is_rival(write) {
            write = passing.evaluation.source(passing.trace.event(write), cell)?;
        }
        self.is_late(write).then_some(write)
    }

    /// The signal that wakes the failing thread in the passing run, where that came before the thread waited in the failing
    /// one, and the time of the wait was up without another.
    fn before_a_wait(&self) -> Option<Flipped> {
        let (failing, passing) = (self.view.failing, self.view.passing);
        let failure = failing.trace.event(failing.trace.failure.as_ref()?.event);
        let thread = failing.trace.thread_of(failure.id);
        let missed = |id: &EventId| {
            let EventKind::WaitTimedOut { began, .. } = failing.trace.event(*id).kind else {
                return None;
            };
            let waited = self.view.matching.in_passing(began)?;
            let is_wake = |id: &&EventId| {
                let kind = &passing.trace.event(**id).kind;
                matches!(kind, EventKind::Wake { began, .. } if *began == waited)
            };
            let wake = passing.trace.thread_of(waited).events.iter().find(is_wake)?;
            let signal = *passing.evaluation.woken_by.get(wake)?;
            let before = self.view.matching.in_failing(signal)?;
            let came_first = self.view.place(before) < self.view.place(began);
            came_first.then_some(Flipped::Reversed(Order { before, after: began }))
        };
        thread.events.iter().rev().find_map(missed)
    }

    /// Did a thread of the failing run try in vain what the event of the passing run achieved?
    fn missed(&self, needs: EventId, thread: &Thread) -> bool {
        let in_place = self.in_place_of(needs, thread);
        in_place.is_some_and(|id| {
            matches!(
                self.view.failing.trace.event(id).kind,
                EventKind::WaitTimedOut { .. }
                    | EventKind::SemaphoreWaitFailed { .. }
                    | EventKind::TryLockFailed { .. }
            )
        })
    }

    /// What a thread of the failing run did where it did something else in the passing run.
    fn in_place_of(&self, needs: EventId, thread: &Thread) -> Option<EventId> {
        if let Some(partner) = self.view.matching.in_failing(needs) {
            return Some(partner);
        }
        let passing = self.view.passing.trace;
        let index = passing.event(needs).index as usize;
        let earlier = passing.thread_of(needs).events[..index].iter().rev();
        let last = earlier.filter_map(|id| self.view.matching.in_failing(*id)).next();
        let trace = self.view.failing.trace;
        let from = last.map_or(0, |id| trace.event(id).index as usize + 1);
        let own = thread.events.get(from..).unwrap_or_default();
        let alone = own.iter().copied().filter(|id| self.view.matching.in_passing(*id).is_none());
        mark(trace, alone).or(trace.failure.as_ref().map(|failure| failure.event))
    }
}

/// Are both events of the pair what OpenMP's runtime does for itself?
fn is_of_openmp(trace: &EventTrace, order: Order) -> bool {
    [order.before, order.after].iter().all(|id| trace.event(*id).is_of_openmp())
}

/// Are both the library's own affair, as steps of its synchronisation, or counts of the pointers to an object?
#[must_use]
pub fn is_meeting(trace: &EventTrace, order: Order) -> bool {
    [order.before, order.after].iter().all(|id| trace.event(*id).is_affair_of_library())
}

/// Did the failing run end before the thread went another way than in the passing run? A request
/// that was not granted by then, and what ends sections that were open, go no other way.
fn is_cut(view: &View<'_>, passing: &Thread) -> bool {
    let trace = view.failing.trace;
    let Some(thread) = trace.threads.iter().find(|other| other.name == passing.name) else {
        return true;
    };
    let rest = &thread.events[view.common_path(thread.id).0..];
    let made_up = |id: &EventId| {
        let kind = &trace.event(*id).kind;
        matches!(kind, EventKind::Unlock { synthetic: true, .. } | EventKind::Block { .. })
    };
    rest.iter().all(made_up)
}
