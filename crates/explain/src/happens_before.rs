//! Order by program order, thread creation and join: what holds in every schedule; and with orders of one schedule besides.

use model::{EventId, EventKind, EventTrace, ThreadId};
use solver::Order;

/// One vector of event counts per event.
pub(crate) struct HappensBefore {
    threads: usize,
    /// For each event, how many events of each thread come before it or are it.
    clocks: Vec<u32>,
    /// Each event's thread and index.
    places: Vec<(ThreadId, u32)>,
}

impl HappensBefore {
    /// Computes the order along any possible schedule of the trace.
    pub(crate) fn new(trace: &EventTrace, schedule: &[EventId]) -> Self {
        Self::with_orders(trace, schedule, [])
    }

    /// The same with some orders of the schedule besides.
    pub(crate) fn with_orders(
        trace: &EventTrace,
        schedule: &[EventId],
        orders: impl IntoIterator<Item = Order>,
    ) -> Self {
        let mut orders: Vec<(EventId, EventId)> =
            orders.into_iter().map(|order| (order.after, order.before)).collect();
        orders.sort_unstable();
        let threads = trace.threads.len();
        let places = trace.events.iter().map(|e| (e.thread, e.index)).collect();
        let mut result = Self { threads, clocks: vec![0; trace.events.len() * threads], places };
        let mut current = vec![vec![0u32; threads]; threads];
        for &id in schedule {
            let event = trace.event(id);
            let thread = event.thread.index();
            if let EventKind::Join { child } = event.kind {
                let ended = current[child.index()].clone();
                for (own, joined) in current[thread].iter_mut().zip(ended) {
                    *own = (*own).max(joined);
                }
            }
            let first = orders.partition_point(|(after, _)| *after < id);
            let earlier = orders[first..].iter().take_while(|(after, _)| *after == id);
            for row in earlier.map(|(_, before)| before.index() * threads) {
                let known = &result.clocks[row..row + threads];
                for (own, earlier) in current[thread].iter_mut().zip(known) {
                    *own = (*own).max(*earlier);
                }
            }
            current[thread][thread] = event.index + 1;
            if let EventKind::Fork { child } = event.kind {
                let creator = current[thread].clone();
                current[child.index()] = creator;
            }
            let row = id.index() * threads;
            result.clocks[row..row + threads].copy_from_slice(&current[thread]);
        }
        result
    }

    /// Does `a` come before `b` by these? False for one and the same event.
    pub(crate) fn before(&self, a: EventId, b: EventId) -> bool {
        let (thread, index) = self.places[a.index()];
        a != b && self.clocks[b.index() * self.threads + thread.index()] > index
    }
}
