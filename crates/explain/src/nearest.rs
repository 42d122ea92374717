//! Brings an alternate as near to the failing schedule as possible, so that only differences that
//! matter are left to show.

use crate::conflict::{ConflictOrder, OrderKind, conflicts};
use crate::context::Context;
use crate::extend::{Preference, extend};
use crate::failing::Failing;
use model::evaluate::Check;
use model::{EventId, Schedule};
use solver::Order;
use std::collections::BTreeMap;

/// Single orders that are tried apart from groups of them.
const SINGLES: usize = 48;

/// A passing schedule near the failing one in which `flipped` holds, from one that is maybe
/// further away. The result is never worse than what is given.
pub(crate) fn nearest(
    context: &mut Context<'_, '_>,
    failing: &Failing,
    candidate: Vec<EventId>,
    flipped: Order,
) -> Vec<EventId> {
    let mut best = candidate;
    let Some(mut cost) = cost(context, failing, &best, flipped) else { return best };
    while let Some((better, lower)) = improve(context, failing, &best, cost, flipped) {
        (best, cost) = (better, lower);
    }
    best
}

/// Differences in data flow, then in place.
type Cost = (usize, usize);

/// The cost of a schedule that passes and keeps the pair reversed; `None` for any other, and when
/// the effort is spent.
fn cost(
    context: &mut Context<'_, '_>,
    failing: &Failing,
    order: &[EventId],
    flipped: Order,
) -> Option<Cost> {
    let reversed = Order { before: flipped.after, after: flipped.before };
    if !crate::local::reversed(order, reversed) || context.check(order)? != Check::Passes {
        return None;
    }
    Some((failing.variations(context), failing.displaced(order)))
}

/// One step: gives up some of the orders that differ from the failing schedule, and lets the rest
/// follow it.
fn improve(
    context: &mut Context<'_, '_>,
    failing: &Failing,
    best: &[EventId],
    lowest: Cost,
    flipped: Order,
) -> Option<(Vec<EventId>, Cost)> {
    let schedule = Schedule { order: best.to_vec() };
    let evaluation = context.evaluate(best).ok()?;
    let kept = conflicts(context.trace, &schedule.order, &evaluation, &failing.happens_before);
    for given_up in attempts(failing, &kept, flipped) {
        let rest = kept.iter().map(|o| o.order).filter(|o| !given_up.contains(o));
        let orders = rest.chain([flipped]);
        let reference = Preference::Reference(&failing.positions);
        let Some(order) = extend(context.trace, orders, reference) else { continue };
        if let Some(cost) = cost(context, failing, &order, flipped)
            && cost < lowest
        {
            return Some((order, cost));
        }
    }
    None
}

/// Which orders to give up: none, all that differ, all of one cell or object, and each alone.
fn attempts(failing: &Failing, kept: &[ConflictOrder], flipped: Order) -> Vec<Vec<Order>> {
    let differing: Vec<&ConflictOrder> = kept
        .iter()
        .filter(|o| o.order != flipped)
        .filter(|o| failing.position(o.order.before) > failing.position(o.order.after))
        .collect();
    let mut groups: BTreeMap<(u8, u32), Vec<Order>> = BTreeMap::new();
    for conflict in &differing {
        groups.entry(subject(conflict.kind)).or_default().push(conflict.order);
    }
    let mut attempts = vec![Vec::new(), differing.iter().map(|o| o.order).collect()];
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
