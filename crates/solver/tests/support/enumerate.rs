//! All schedules of a small trace.

use crate::interpreter::{Machine, State};
use model::{EventId, EventKind};
use solver::{Goal, Order};
use std::collections::BTreeMap;

/// Does the event at most let others go on? At once is then as good as later, and no question
/// orders it.
pub fn is_silent(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Start
            | EventKind::Exit
            | EventKind::Fork { .. }
            | EventKind::Fence
            | EventKind::Failure
    )
}

/// One complete schedule along the recorded paths.
pub struct Found {
    /// The place of every event.
    pub places: Vec<usize>,
    pub fails: bool,
}

/// All of a trace's schedules, up to the places of silent events.
pub struct Schedules {
    pub found: Vec<Found>,
}

impl Schedules {
    pub fn of(machine: &Machine<'_>) -> Self {
        let mut schedules = Self { found: Vec::new() };
        let start = machine.start(&BTreeMap::new());
        schedules.extend(machine, &start, &mut Vec::new());
        schedules
    }

    fn extend(&mut self, machine: &Machine<'_>, state: &State, order: &mut Vec<EventId>) {
        let trace = machine.trace;
        let next: Vec<EventId> = trace
            .threads
            .iter()
            .zip(&state.done)
            .filter_map(|(thread, &done)| thread.events.get(done).copied())
            .collect();
        if next.is_empty() && machine.on_path(state) {
            let mut places = vec![0; trace.events.len()];
            order.iter().enumerate().for_each(|(place, event)| places[event.index()] = place);
            let fails = machine.fails(state, &places);
            self.found.push(Found { places, fails });
        }
        let eager = next.iter().copied().find(|&event| {
            is_silent(&trace.event(event).kind) && !machine.step(state, event).is_empty()
        });
        let tried = eager.map_or(next, |event| vec![event]);
        for event in tried {
            for after in machine.step(state, event) {
                order.push(event);
                self.extend(machine, &after, order);
                order.pop();
            }
        }
    }

    /// Is there a schedule for the goal in which all orders hold?
    pub fn satisfiable(&self, goal: Goal, orders: &[Order]) -> bool {
        self.found.iter().any(|found| {
            let wanted = match goal {
                Goal::Fail => found.fails,
                Goal::Pass => !found.fails,
                Goal::Any => true,
            };
            let before = |order: &Order| {
                found.places[order.before.index()] < found.places[order.after.index()]
            };
            wanted && orders.iter().all(before)
        })
    }
}
