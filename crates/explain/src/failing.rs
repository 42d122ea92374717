//! The failing schedule with everything that is asked of it again and again.

use crate::cone::failure_reads;
use crate::conflict::{ConflictOrder, conflicts, positions};
use crate::context::Context;
use crate::dsp::{Dsp, final_writes};
use crate::happens_before::HappensBefore;
use model::evaluate::{Evaluation, EvaluationError};
use model::{EventId, EventKind, EventTrace, ReadRef, Schedule, WriteSource};
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

/// The acquisitions of the locks that an event's thread holds at the event, outermost first; an
/// acquisition or release counts as inside its section.
pub(crate) fn enclosing_locks(trace: &EventTrace, id: EventId) -> Vec<EventId> {
    let event = trace.event(id);
    let mut held: Vec<(model::ObjectId, EventId)> = Vec::new();
    for &other in &trace.thread_of(id).events {
        match trace.event(other).kind {
            EventKind::Lock { object, .. } => held.push((object, other)),
            EventKind::Unlock { object, .. } if trace.event(other).index < event.index => {
                if let Some(place) = held.iter().rposition(|(o, _)| *o == object) {
                    held.remove(place);
                }
            }
            _ => {}
        }
        if other == id {
            break;
        }
    }
    held.into_iter().map(|(_, lock)| lock).collect()
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
