//! A recorded run that ends while threads wait for each other, as it would go on if they did not: units
//! of semaphores that threads have at the end are given back, as locks are by the trace's own synthetic
//! releases.

use crate::edit::{Edit, Edited};
use crate::{Bug, Repair};
use model::{EventId, EventKind, EventTrace, ObjectId};

/// The run with its last posts, and the cause in its events.
pub(crate) struct Closed {
    edited: Edited,
    events: Vec<EventId>,
    schedule: Vec<EventId>,
}

impl Closed {
    /// `None` when no thread that waits has a unit of a semaphore.
    pub(crate) fn of(bug: &Bug<'_>) -> Option<Self> {
        let trace = bug.trace;
        let mut edit = Edit::new(trace);
        let mut changed = false;
        for thread in &trace.threads {
            let waits = thread.events.iter().any(|id| {
                matches!(trace.event(*id).kind, EventKind::Block { .. }) && bug.events.contains(id)
            });
            // The unit that was taken last is given back first.
            for (object, wait) in open(trace, &thread.events).into_iter().rev().filter(|_| waits) {
                let name = trace.event(wait).name.as_deref().map(str::to_owned);
                edit.at_end(thread.id, EventKind::SemaphorePost { object }, name);
                changed = true;
            }
        }
        let edited = edit.finish().filter(|_| changed)?;
        let mut images: Vec<Option<EventId>> = vec![None; trace.events.len()];
        for (event, origin) in edited.trace.events.iter().zip(&edited.origin) {
            if let Some(image) = origin.and_then(|origin| images.get_mut(origin.index())) {
                *image = Some(event.id);
            }
        }
        let image = |id: &EventId| images.get(id.index()).copied().flatten();
        let events: Option<Vec<EventId>> = bug.events.iter().map(image).collect();
        let mut schedule: Vec<EventId> = bug.schedule.iter().filter_map(image).collect();
        let added = edited.trace.events.iter().zip(&edited.origin);
        schedule.extend(added.filter(|(_, origin)| origin.is_none()).map(|(event, _)| event.id));
        Some(Self { events: events?, schedule, edited })
    }

    /// The cause in the run's events.
    pub(crate) fn bug<'a>(&'a self, recorded: &Bug<'a>) -> Bug<'a> {
        Bug {
            trace: &self.edited.trace,
            events: &self.events,
            schedule: &self.schedule,
            ..*recorded
        }
    }

    /// Lets a repair speak of the recorded run's events.
    pub(crate) fn recorded(&self, repair: &mut Repair) {
        repair.speak_of(|id| self.edited.origin.get(id.index()).copied().flatten());
    }
}

/// The units that a thread has at its end, in the order in which it got them.
fn open(trace: &EventTrace, events: &[EventId]) -> Vec<(ObjectId, EventId)> {
    let mut taken: Vec<(ObjectId, EventId)> = Vec::new();
    for &id in events {
        match trace.event(id).kind {
            EventKind::SemaphoreWait { object } => taken.push((object, id)),
            EventKind::SemaphorePost { object } => {
                if let Some(at) = taken.iter().rposition(|(other, _)| *other == object) {
                    taken.remove(at);
                }
            }
            _ => {}
        }
    }
    taken
}
