//! Linear extensions: schedules that keep program order and given orders.

use model::{EventId, EventKind, EventTrace, ThreadId};
use solver::Order;
use std::collections::BTreeSet;

/// How to choose among the threads that can go on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Preference<'a> {
    /// Stay in a thread as long as possible; then take the one that can go on longest.
    LongestRun,
    /// Stay in a thread as long as possible; then take the one whose next event comes first in
    /// the reference, given as positions by event.
    StayThenReference(&'a [u32]),
    /// Always take the event that comes first in the reference.
    Reference(&'a [u32]),
}

/// A schedule that keeps program order, thread creation and join, what every schedule of the trace has, and `orders`; `None` when they
/// contradict each other.
pub(crate) fn extend(
    trace: &EventTrace,
    orders: impl IntoIterator<Item = Order>,
    preference: Preference<'_>,
) -> Option<Vec<EventId>> {
    let mut machine = Machine::new(trace, orders);
    let mut schedule = Vec::with_capacity(trace.events.len());
    let mut current = None;
    while let Some(thread) = machine.choose(current, preference) {
        current = Some(thread);
        schedule.extend(machine.step(thread));
    }
    (schedule.len() == trace.events.len()).then_some(schedule)
}

struct Machine<'t> {
    trace: &'t EventTrace,
    /// How many events each event still waits for, program order apart.
    waits_for: Vec<u32>,
    /// Whom each event lets go on.
    releases: Vec<Vec<EventId>>,
    /// Each thread's next index.
    next: Vec<usize>,
    /// The threads whose next event can happen now: few of the thousands that a run may have had.
    ready: BTreeSet<ThreadId>,
}

impl<'t> Machine<'t> {
    fn new(trace: &'t EventTrace, orders: impl IntoIterator<Item = Order>) -> Self {
        let mut machine = Self {
            trace,
            waits_for: vec![0; trace.events.len()],
            releases: vec![Vec::new(); trace.events.len()],
            next: vec![0; trace.threads.len()],
            ready: BTreeSet::new(),
        };
        for order in orders {
            machine.edge(order.before, order.after);
        }
        for &(before, after) in &trace.given {
            machine.edge(before, after);
        }
        for event in &trace.events {
            match event.kind {
                EventKind::Fork { child } => {
                    if let Some(&first) = trace.threads[child.index()].events.first() {
                        machine.edge(event.id, first);
                    }
                }
                EventKind::Join { child } => {
                    if let Some(&last) = trace.threads[child.index()].events.last() {
                        machine.edge(last, event.id);
                    }
                }
                _ => {}
            }
        }
        trace.threads.iter().for_each(|thread| machine.look(thread.id));
        machine
    }

    fn edge(&mut self, before: EventId, after: EventId) {
        self.waits_for[after.index()] += 1;
        self.releases[before.index()].push(after);
    }

    /// The thread's next event, if it can happen now.
    fn ready(&self, thread: ThreadId) -> Option<EventId> {
        let id = *self.trace.threads[thread.index()].events.get(self.next[thread.index()])?;
        (self.waits_for[id.index()] == 0).then_some(id)
    }

    /// Notes whether the thread can go on.
    fn look(&mut self, thread: ThreadId) {
        match self.ready(thread) {
            Some(_) => self.ready.insert(thread),
            None => self.ready.remove(&thread),
        };
    }

    fn step(&mut self, thread: ThreadId) -> Option<EventId> {
        let id = self.ready(thread)?;
        self.next[thread.index()] += 1;
        for after in std::mem::take(&mut self.releases[id.index()]) {
            self.waits_for[after.index()] -= 1;
            if self.waits_for[after.index()] == 0 {
                self.look(self.trace.event(after).thread);
            }
        }
        self.look(thread);
        Some(id)
    }

    fn choose(&self, current: Option<ThreadId>, preference: Preference<'_>) -> Option<ThreadId> {
        let stays = !matches!(preference, Preference::Reference(_));
        if let Some(thread) = current.filter(|t| stays && self.ready(*t).is_some()) {
            return Some(thread);
        }
        let ready = self.ready.iter().filter_map(|&thread| Some((thread, self.ready(thread)?)));
        let best = match preference {
            Preference::LongestRun => ready
                .min_by_key(|(thread, _)| (std::cmp::Reverse(self.run_length(*thread)), *thread)),
            Preference::Reference(positions) | Preference::StayThenReference(positions) => {
                ready.min_by_key(|(_, id)| positions[id.index()])
            }
        };
        best.map(|(thread, _)| thread)
    }

    /// How many events the thread can perform in a row.
    fn run_length(&self, thread: ThreadId) -> usize {
        let events = &self.trace.threads[thread.index()].events[self.next[thread.index()]..];
        events.iter().take_while(|id| self.waits_for[id.index()] == 0).count()
    }
}
