//! Brings an alternate as near to the failing schedule as possible, so that only differences that
//! matter are left to show.

use crate::conflict::{ConflictOrder, OrderKind, conflicts};
use crate::context::Context;
use crate::extend::{Preference, extend};
use crate::failing::Failing;
use crate::network::{Base, FLOW, Locks, Network, Prices, parted};
use model::evaluate::Check;
use model::{EventId, WriteSource};
use solver::Order;
use std::collections::{BTreeMap, BTreeSet};

/// Single orders that are tried apart from groups of them.
const SINGLES: usize = 32;

/// A passing schedule near the failing one, from one that is maybe further away. The result is
/// never worse than what is given.
pub(crate) fn nearest(
    context: &mut Context<'_, '_>,
    failing: &Failing,
    candidate: Vec<EventId>,
) -> Vec<EventId> {
    let mut search = Search { failing, tried: BTreeSet::new() };
    let Some(mut best) = search.passing(context, candidate.clone()) else { return candidate };
    while let Some(better) = search.follow(context, &best) {
        best = better;
    }
    // With one variation left nothing can be gained: some flow has to differ.
    while best.cost.0 > 1 {
        let found = search.restore(context, &best).or_else(|| search.give_up(context, &best));
        let Some(mut better) = found else { break };
        while let Some(nearer) = search.follow(context, &better) {
            better = nearer;
        }
        best = better;
    }
    best.order
}

/// Differences in data flow, then in place.
type Cost = (usize, usize);

/// A schedule that passes.
struct Passing {
    order: Vec<EventId>,
    cost: Cost,
    sources: Vec<WriteSource>,
    last_writes: Vec<WriteSource>,
}

struct Search<'f> {
    failing: &'f Failing,
    /// What was executed, so that it need not be again.
    tried: BTreeSet<Vec<EventId>>,
}

impl Search<'_> {
    /// `None` for a schedule that does not pass, and when the effort is spent.
    fn passing(&mut self, context: &mut Context<'_, '_>, order: Vec<EventId>) -> Option<Passing> {
        if !self.tried.insert(order.clone()) || context.check(&order)? != Check::Passes {
            return None;
        }
        Some(Passing {
            cost: (self.failing.variations(context), self.failing.displaced(&order)),
            sources: context.evaluator.sources().to_vec(),
            last_writes: context.evaluator.last_writes().to_vec(),
            order,
        })
    }

    fn better(
        &mut self,
        context: &mut Context<'_, '_>,
        best: &Passing,
        order: Vec<EventId>,
    ) -> Option<Passing> {
        self.passing(context, order).filter(|found| found.cost < best.cost)
    }

    fn conflicts(
        &self,
        context: &mut Context<'_, '_>,
        order: &[EventId],
    ) -> Option<Vec<ConflictOrder>> {
        let evaluation = context.evaluate(order).ok()?;
        Some(conflicts(context.trace, order, &evaluation, &self.failing.happens_before))
    }

    /// Keeps all conflict orders, and lets what they leave open follow the failing schedule.
    fn follow(&mut self, context: &mut Context<'_, '_>, best: &Passing) -> Option<Passing> {
        let kept = self.conflicts(context, &best.order)?;
        let orders = kept.iter().map(|o| o.order);
        let reference = Preference::Reference(&self.failing.positions);
        let order = extend(context.trace, orders, reference)?;
        self.better(context, best, order)
    }

    /// Gives up some of the orders that differ from the failing schedule, and lets the rest follow
    /// it.
    fn give_up(&mut self, context: &mut Context<'_, '_>, best: &Passing) -> Option<Passing> {
        let kept = self.conflicts(context, &best.order)?;
        for given_up in attempts(self.failing, &kept) {
            let rest = kept.iter().map(|o| o.order).filter(|o| !given_up.contains(o));
            let reference = Preference::Reference(&self.failing.positions);
            let Some(order) = extend(context.trace, rest, reference) else { continue };
            if let Some(found) = self.better(context, best, order) {
                return Some(found);
            }
        }
        None
    }

    /// Restores one data flow of the failing schedule at the least price in others.
    fn restore(&mut self, context: &mut Context<'_, '_>, best: &Passing) -> Option<Passing> {
        let reversed = self.reversed(context, best);
        if reversed.is_empty() {
            return None;
        }
        let kept = self.conflicts(context, &best.order)?;
        let base = Base {
            order: &best.order,
            sources: &best.sources,
            conflicts: &kept,
            happens_before: &self.failing.happens_before,
        };
        // What differs already costs nothing.
        let price = |(a, b): (&WriteSource, &WriteSource)| if a == b { FLOW } else { 0 };
        let prices = Prices {
            reads: self.failing.sources.iter().zip(&best.sources).map(price).collect(),
            cells: self.failing.last_writes.iter().zip(&best.last_writes).map(price).collect(),
        };
        let mut network = Network::new(context, &base, &prices, Locks::Whole);
        for order in reversed.into_iter().take(SINGLES) {
            let partings = network.part(&[order.before], &[order.after]);
            if !context.effort.spend(network.take_work()) {
                return None;
            }
            for late in partings {
                if let Some(found) = self.better(context, best, parted(&best.order, &late)) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Pairs of a read that varies and its sources, or of the sources, that the failing schedule
    /// has the other way round.
    fn reversed(&self, context: &Context<'_, '_>, best: &Passing) -> Vec<Order> {
        let places = crate::conflict::positions(context.trace, &best.order);
        let mut found = BTreeSet::new();
        let mut pair = |a: EventId, b: EventId| {
            let here = places[a.index()] < places[b.index()];
            let there = self.failing.position(a) < self.failing.position(b);
            if here != there {
                let (before, after) = if here { (a, b) } else { (b, a) };
                found.insert(Order { before, after });
            }
        };
        let mut among = |events: &[EventId]| {
            for (index, &a) in events.iter().enumerate() {
                events[index + 1..].iter().for_each(|b| pair(a, *b));
            }
        };
        for event in &context.trace.events {
            let first = context.read_index(event.id);
            for part in first..first + event.kind.reads().len() {
                let (here, there) = (best.sources[part], self.failing.sources[part]);
                if here != there {
                    let sources = [here, there].into_iter().filter_map(written);
                    among(&sources.chain([event.id]).collect::<Vec<_>>());
                }
            }
        }
        for (here, there) in best.last_writes.iter().zip(&self.failing.last_writes) {
            if here != there {
                among(&[*here, *there].into_iter().filter_map(written).collect::<Vec<_>>());
            }
        }
        found.into_iter().collect()
    }
}

fn written(source: WriteSource) -> Option<EventId> {
    match source {
        WriteSource::Init => None,
        WriteSource::Write(event) => Some(event),
    }
}

/// Which orders to give up: all that differ, all of one cell or object, and each alone.
fn attempts(failing: &Failing, kept: &[ConflictOrder]) -> Vec<Vec<Order>> {
    let differing: Vec<&ConflictOrder> = kept
        .iter()
        .filter(|o| failing.position(o.order.before) > failing.position(o.order.after))
        .collect();
    let mut groups: BTreeMap<(u8, u32), Vec<Order>> = BTreeMap::new();
    for conflict in &differing {
        groups.entry(subject(conflict.kind)).or_default().push(conflict.order);
    }
    let mut attempts = vec![differing.iter().map(|o| o.order).collect()];
    attempts.extend(groups.into_values());
    attempts.extend(differing.iter().take(SINGLES).map(|o| vec![o.order]));
    attempts
}

/// What an order is about, as a key.
fn subject(kind: OrderKind) -> (u8, u32) {
    match kind {
        OrderKind::Failure => (0, 0),
        OrderKind::ReadFrom(cell)
        | OrderKind::FromRead(cell)
        | OrderKind::WriteSerialisation(cell) => (1, cell.0),
        OrderKind::Lock(object)
        | OrderKind::Condition(object)
        | OrderKind::Semaphore(object)
        | OrderKind::Barrier(object) => (2, object.0),
    }
}
