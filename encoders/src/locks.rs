//! φsync: mutual exclusion ([S] 3.2, locking constraints) and failed trylocks.

use crate::EncodeError;
use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventKind, EventTrace, LockMode, ObjectId, ThreadId};
use std::collections::BTreeMap;

/// A critical section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) object: ObjectId,
    pub(crate) thread: ThreadId,
    pub(crate) mode: LockMode,
    pub(crate) lock: EventId,
    /// `None` when the lock is still held where the thread's trace ends.
    pub(crate) unlock: Option<EventId>,
}

impl Region {
    /// May the two not overlap?
    pub(crate) fn excludes(&self, other: &Self) -> bool {
        self.object == other.object
            && self.thread != other.thread
            && (self.mode == LockMode::Exclusive || other.mode == LockMode::Exclusive)
    }

    /// Does the region's own thread hold the lock at `event`?
    pub(crate) fn contains(&self, trace: &EventTrace, event: EventId) -> bool {
        let index = trace.event(event).index;
        self.thread == trace.event(event).thread
            && trace.event(self.lock).index < index
            && self.unlock.is_none_or(|unlock| index < trace.event(unlock).index)
    }

    /// "This region ends before `other` begins"; false when it does not end.
    fn precedes(&self, context: &Context<'_>, other: &Self) -> Term {
        self.unlock.map_or(Term::False, |unlock| context.before(unlock, other.lock))
    }
}

/// All critical sections of a trace.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// By object, then by acquisition.
    pub(crate) of_object: BTreeMap<ObjectId, Vec<Region>>,
    /// For every event the regions of its own thread around it, as (object, index in its list).
    around: Vec<Vec<(ObjectId, usize)>>,
}

impl Regions {
    /// Pairs acquisitions with releases.
    pub(crate) fn of(trace: &EventTrace) -> Result<Self, EncodeError> {
        let mut regions = Self { around: vec![Vec::new(); trace.events.len()], ..Self::default() };
        for thread in &trace.threads {
            let mut held: Vec<(ObjectId, usize)> = Vec::new();
            for &event in &thread.events {
                regions.step(trace, event, &mut held)?;
                regions.around[event.index()].clone_from(&held);
            }
        }
        Ok(regions)
    }

    /// Adds sections of a lock that is no object of the trace's, from acquisition to release.
    pub(crate) fn insert(
        &mut self,
        trace: &EventTrace,
        object: ObjectId,
        sections: &[(EventId, Option<EventId>)],
    ) {
        let list = self.of_object.entry(object).or_default();
        for &(lock, unlock) in sections {
            let event = trace.event(lock);
            let (thread, index) = (event.thread, list.len());
            let region = Region { object, thread, mode: LockMode::Exclusive, lock, unlock };
            let events = trace.threads.get(thread.index()).map_or(&[][..], |it| &it.events);
            let inside = events.iter().skip(event.index as usize + 1);
            for &id in inside.take_while(|&&id| Some(id) != unlock) {
                self.around[id.index()].push((object, index));
            }
            list.push(region);
        }
    }

    fn step(
        &mut self,
        trace: &EventTrace,
        event: EventId,
        held: &mut Vec<(ObjectId, usize)>,
    ) -> Result<(), EncodeError> {
        match trace.event(event).kind {
            EventKind::Lock { object, mode } => {
                if held.iter().any(|&(other, _)| other == object) {
                    return Err(EncodeError::HeldAlready { event, object });
                }
                let thread = trace.event(event).thread;
                let list = self.of_object.entry(object).or_default();
                held.push((object, list.len()));
                list.push(Region { object, thread, mode, lock: event, unlock: None });
            }
            EventKind::Unlock { object, mode, .. } => {
                let position = held.iter().position(|&(other, _)| other == object);
                let Some(position) = position else {
                    return Err(EncodeError::NotHeld { event, object });
                };
                let (_, index) = held.remove(position);
                let region = self.of_object.get_mut(&object).and_then(|list| list.get_mut(index));
                match region {
                    Some(region) if region.mode == mode => region.unlock = Some(event),
                    _ => return Err(EncodeError::NotHeld { event, object }),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The regions of the event's own thread around it.
    pub(crate) fn around(&self, event: EventId) -> impl Iterator<Item = &Region> {
        self.around[event.index()]
            .iter()
            .filter_map(|(object, index)| self.of_object.get(object)?.get(*index))
    }
}

/// How many pairs of critical sections of two threads there are under one lock, at most: those to read are counted,
/// too. What an encoding takes grows with it as with the sources of its reads.
#[must_use]
pub fn section_pairs(trace: &EventTrace) -> u64 {
    let mut counts: Vec<Vec<u64>> = vec![vec![0; trace.threads.len()]; trace.objects.len()];
    for event in &trace.events {
        if let EventKind::Lock { object, .. } = event.kind
            && let Some(of_object) = counts.get_mut(object.index())
            && let Some(count) = of_object.get_mut(event.thread.index())
        {
            *count += 1;
        }
    }
    let pairs = |of_object: &Vec<u64>| {
        let mut before = 0u64;
        of_object.iter().fold(0u64, |pairs, count| {
            let with_former = before.saturating_mul(*count);
            before = before.saturating_add(*count);
            pairs.saturating_add(with_former)
        })
    };
    counts.iter().map(pairs).fold(0, u64::saturating_add)
}

/// One constraint per pair of regions that exclude each other and per failed trylock.
pub(crate) fn encode(context: &Context<'_>, builder: &mut Builder) {
    for regions in context.regions.of_object.values() {
        for (index, first) in regions.iter().enumerate() {
            if context.is_over() {
                return;
            }
            for second in regions[index + 1..].iter().filter(|second| first.excludes(second)) {
                let term =
                    Term::any([first.precedes(context, second), second.precedes(context, first)]);
                let ends = [Some(first.lock), first.unlock, Some(second.lock), second.unlock];
                builder.add(ConstraintKind::Lock, ends.into_iter().flatten(), term);
            }
        }
    }
    for event in &context.trace.events {
        if let EventKind::TryLockFailed { object, mode } = event.kind {
            try_lock(context, builder, event.id, (object, mode));
        }
    }
}

/// Some region of the lock is around the failed attempt: another thread's, or the caller's own, as POSIX
/// has it. Readers let each other in.
fn try_lock(
    context: &Context<'_>,
    builder: &mut Builder,
    event: EventId,
    (object, mode): (ObjectId, LockMode),
) {
    let regions = context.regions.of_object.get(&object).map_or(&[][..], Vec::as_slice);
    let excludes =
        |region: &&Region| LockMode::Exclusive == mode || LockMode::Exclusive == region.mode;
    let holders = regions.iter().filter(excludes).map(|region| {
        if region.contains(context.trace, event) {
            return Term::True;
        }
        let released = region.unlock.map_or(Term::True, |unlock| context.before(event, unlock));
        Term::all([context.before(region.lock, event), released])
    });
    builder.add(ConstraintKind::TryLock, [event], Term::any(holders));
}

/// Orders between regions that follow from the closure: when one cannot be the later one, it is
/// the earlier one.
pub(crate) fn forced(
    context: &Context<'_>,
) -> Vec<(ConstraintKind, Vec<EventId>, (EventId, EventId))> {
    let mut found = Vec::new();
    for regions in context.regions.of_object.values() {
        for (index, first) in regions.iter().enumerate() {
            if context.is_over() {
                return found;
            }
            for second in regions[index + 1..].iter().filter(|second| first.excludes(second)) {
                for (a, b) in [(first, second), (second, first)] {
                    if b.precedes(context, a) == Term::False
                        && let Some(unlock) = a.unlock
                        && matches!(a.precedes(context, b), Term::Before(..))
                    {
                        let origins = [Some(a.lock), a.unlock, Some(b.lock), b.unlock];
                        let origins = origins.into_iter().flatten().collect();
                        found.push((ConstraintKind::Lock, origins, (unlock, b.lock)));
                    }
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsl::parse;

    #[test]
    fn pairs_of_sections_are_counted_by_lock() {
        let trace = parse("t0: lock m\nt0: unlock m\nt1: lock m\nt1: unlock m\nt1: lock m\nt1: unlock m\nt1: lock n\n")
            .expect("an event trace")
            .trace;
        assert_eq!(section_pairs(&trace), 2);
    }
}
