//! Pairs that say something about the program, and not only how its threads met in a library.

use super::Passing;
use super::story::{Pair, Story};
use crate::across::event_of;
use crate::late::is_meeting;
use solver::Order;

impl Story<'_> {
    /// The pairs without those of the library's own synchronisation, which say only that threads met there or counted
    /// pointers. Where there are no others: what was read that another thread had written, in the failing run only, and
    /// behind these all.
    pub(super) fn of_the_program(&self, pairs: Vec<Pair>) -> Vec<Pair> {
        let own = |pair: &Pair| match pair {
            Pair::Reversed(order) => !is_meeting(self.trace(), *order),
            Pair::Late { .. } => true,
        };
        if pairs.iter().any(own) {
            return pairs.into_iter().filter(own).collect();
        }
        let mut found: Vec<Pair> =
            self.flows_between_threads().into_iter().map(Pair::Reversed).filter(own).collect();
        found.extend(pairs);
        found
    }

    /// From a write of one thread to a read of another one, the last read first. In a run along other paths the write may not
    /// be there at all.
    fn flows_between_threads(&self) -> Vec<Order> {
        let Passing::OtherPaths { across, .. } = self.passing else { return Vec::new() };
        let flows = across.failing_only.iter().rev();
        let orders = flows.filter_map(|flow| {
            Some(Order { before: event_of(flow.write)?, after: flow.read.event })
        });
        let between = |order: &Order| {
            let [write, read] = [order.before, order.after].map(|id| self.event(id).thread);
            write != read && !self.always_before(order.before, order.after)
        };
        orders.filter(between).collect()
    }
}
