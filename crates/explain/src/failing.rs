//! The failing schedule with everything that is asked of it again and again.

use crate::cone::failure_reads;
use crate::conflict::{ConflictOrder, conflicts, positions};
use crate::context::Context;
use crate::dsp::{Dsp, final_writes};
use crate::happens_before::HappensBefore;
use model::evaluate::{Evaluation, EvaluationError};
use model::{Event, EventId, EventKind, EventTrace, ObjectId, ReadRef, Schedule, WriteSource};
use solver::Order;
use std::collections::BTreeSet;

pub(crate) struct Failing {
    pub(crate) schedule: Schedule,
    pub(crate) evaluation: Evaluation,
    pub(crate) happens_before: HappensBefore,
    /// The position of every event.
    pub(crate) positions: Vec<u32>,
    /// All conflict orders.
    pub(crate) conflicts: Vec<ConflictOrder>,
    /// As of [`model::evaluate::Evaluator::sources`].
    pub(crate) sources: Vec<WriteSource>,
    pub(crate) last_writes: Vec<WriteSource>,
    /// The reads that the failure condition mentions.
    pub(crate) decisive: BTreeSet<ReadRef>,
    /// Where the failure happens.
    failure: u32,
}

impl Failing {
    pub(crate) fn new(
        context: &mut Context<'_, '_>,
        schedule: Schedule,
    ) -> Result<Self, Vec<EvaluationError>> {
        let evaluation = context.evaluate(&schedule.order)?;
        let happens_before = context.happens_before(&schedule);
        let positions = positions(context.trace, &schedule.order);
        let failure = context.trace.failure.as_ref().map_or(0, |f| positions[f.event.index()]);
        Ok(Self {
            conflicts: conflicts(context.trace, &schedule.order, &evaluation, &happens_before),
            sources: context.evaluator.sources().to_vec(),
            last_writes: context.evaluator.last_writes().to_vec(),
            decisive: failure_reads(context.trace),
            schedule,
            evaluation,
            happens_before,
            positions,
            failure,
        })
    }

    pub(crate) fn position(&self, id: EventId) -> u32 {
        self.positions[id.index()]
    }

    /// How far an order is from the failure, in events: the nearer end counts first.
    pub(crate) fn distance(&self, order: Order) -> (u32, u32) {
        let to = |id| self.failure.abs_diff(self.position(id));
        let (a, b) = (to(order.before), to(order.after));
        (a.min(b), a.max(b))
    }

    /// How many reads have another source, and cells another last write, than in the schedule
    /// that the evaluator ran last.
    pub(crate) fn variations(&self, context: &Context<'_, '_>) -> usize {
        let differing =
            |a: &[WriteSource], b: &[WriteSource]| a.iter().zip(b).filter(|(a, b)| a != b).count();
        differing(&self.sources, context.evaluator.sources())
            + differing(&self.last_writes, context.evaluator.last_writes())
    }

    /// The ends of the data flows that vary: reads with another source than in `other`, and the
    /// sources.
    pub(crate) fn varying(&self, trace: &EventTrace, other: &Evaluation) -> BTreeSet<EventId> {
        let written = |source: &WriteSource| match source {
            WriteSource::Init => None,
            WriteSource::Write(event) => Some(*event),
        };
        let mut events = BTreeSet::new();
        for (read, here) in &self.evaluation.reads_from {
            if let Some(there) = other.reads_from.get(read).filter(|there| *there != here) {
                events.insert(read.event);
                events.extend([here, there].into_iter().filter_map(written));
            }
        }
        let last = final_writes(trace, &self.evaluation, other);
        let writes = last.iter().flat_map(|w| [w.failing, w.alternate]);
        events.extend(writes.filter_map(|source| written(&source)));
        events
    }

    /// Does a data flow of the DSP end at a read that the failure condition mentions?
    pub(crate) fn is_decided_by(&self, dsp: &Dsp) -> bool {
        dsp.failing_only.iter().any(|flow| self.decisive.contains(&flow.read))
    }

    /// How many events have another position.
    pub(crate) fn displaced(&self, order: &[EventId]) -> usize {
        order.iter().zip(&self.schedule.order).filter(|(a, b)| a != b).count()
    }
}

/// The acquisitions of the locks that a thread holds, outermost first.
#[derive(Default)]
struct Held(Vec<(ObjectId, EventId)>);

impl Held {
    /// The thread comes to an event. An acquisition counts as inside its section.
    fn enter(&mut self, event: &Event) {
        if let EventKind::Lock { object, .. } = event.kind {
            self.0.push((object, event.id));
        }
    }

    /// The thread has done an event. A release counts as inside its section.
    fn leave(&mut self, event: &Event) {
        if let EventKind::Unlock { object, .. } = event.kind
            && let Some(place) = self.0.iter().rposition(|(o, _)| *o == object)
        {
            self.0.remove(place);
        }
    }

    fn acquisitions(&self) -> Vec<EventId> {
        self.0.iter().map(|(_, lock)| *lock).collect()
    }
}

/// The acquisitions of the locks that an event's thread holds at the event, outermost first; an
/// acquisition or release counts as inside its section.
pub(crate) fn enclosing_locks(trace: &EventTrace, id: EventId) -> Vec<EventId> {
    let mut held = Held::default();
    for &other in &trace.thread_of(id).events {
        held.enter(trace.event(other));
        if other == id {
            break;
        }
        held.leave(trace.event(other));
    }
    held.acquisitions()
}

/// [`enclosing_locks`] of all events of a trace, for whoever asks for those of many.
pub(crate) struct EnclosingLocks {
    sets: Vec<Vec<EventId>>,
    /// By event, its set.
    of: Vec<usize>,
}

impl EnclosingLocks {
    pub(crate) fn new(trace: &EventTrace) -> Self {
        let (mut sets, mut of) = (Vec::new(), vec![0; trace.events.len()]);
        for thread in &trace.threads {
            let mut held = Held::default();
            sets.push(Vec::new());
            for &id in &thread.events {
                let event = trace.event(id);
                held.enter(event);
                if matches!(event.kind, EventKind::Lock { .. }) {
                    sets.push(held.acquisitions());
                }
                of[id.index()] = sets.len() - 1;
                held.leave(event);
                if matches!(event.kind, EventKind::Unlock { .. }) {
                    sets.push(held.acquisitions());
                }
            }
        }
        Self { sets, of }
    }

    pub(crate) fn at(&self, id: EventId) -> &[EventId] {
        let set = self.of.get(id.index()).and_then(|&set| self.sets.get(set));
        set.map_or(&[], Vec::as_slice)
    }
}

/// The release that ends the section an acquisition begins.
pub(crate) fn section_end(trace: &EventTrace, lock: EventId) -> Option<EventId> {
    let EventKind::Lock { object, mode } = trace.event(lock).kind else { return None };
    let after = &trace.thread_of(lock).events[trace.event(lock).index as usize..];
    after.iter().copied().find(|id| {
        matches!(trace.event(*id).kind, EventKind::Unlock { object: o, mode: m, .. }
            if o == object && m == mode)
    })
}

#[cfg(test)]
mod tests {
    use super::{EnclosingLocks, enclosing_locks};
    use encoders::dsl::parse;

    #[test]
    fn the_locks_of_all_events_are_those_of_each() {
        let text = "t0: fork t1\nt0: lock m\nt0: rdlock n\nt0: W x 1\nt0: unlock m\nt0: W x 2\n\
                    t0: rdunlock n\nt0: W x 3\nt1: W x 4\nt1: lock n\nt1: W x 5\nt1: unlock n\n";
        let trace = parse(text).expect("the trace is well formed").trace;
        let all = EnclosingLocks::new(&trace);
        let mut most = 0;
        for event in &trace.events {
            assert_eq!(all.at(event.id), enclosing_locks(&trace, event.id), "{}", event.id);
            most = most.max(all.at(event.id).len());
        }
        assert_eq!(most, 2);
    }
}
