//! Which pairs to reverse.

use crate::cone::Cone;
use crate::context::Context;
use crate::failing::Failing;
use model::{CellId, EventId};
use solver::Order;
use std::collections::{BTreeMap, BTreeSet};

/// Of each cell this many accesses are looked at, those nearest to the failure.
const ACCESSES: usize = 160;

/// How promising a pair is; the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// An order of the root cause.
    Core,
    /// Of two events that orders of the root cause name.
    BetweenCores,
    /// It can reach the failure.
    Cone,
    /// Any other order of the schedule.
    Rest,
}

/// The pairs to reverse, as they are ordered in the failing schedule: all conflicting pairs, not
/// only neighbours, of different threads that can reach the failure and that no thread's creation
/// or end orders, and all other conflict orders. The root cause's come first, then what is near
/// the failure.
pub(crate) fn pairs(
    context: &Context<'_, '_>,
    failing: &Failing,
    core: &BTreeSet<Order>,
    most: usize,
) -> Vec<(Rank, Order)> {
    let cone = Cone::new(context.trace, &failing.evaluation);
    let named: BTreeSet<EventId> = core.iter().flat_map(|o| [o.before, o.after]).collect();
    let rank = |order: Order| {
        if core.contains(&order) {
            Rank::Core
        } else if named.contains(&order.before) && named.contains(&order.after) {
            Rank::BetweenCores
        } else {
            Rank::Cone
        }
    };
    let mut pairs: BTreeMap<Order, Rank> = BTreeMap::new();
    for conflict in &failing.conflicts {
        let order = conflict.order;
        let reaches = core.contains(&order) || cone.contains(context.trace, conflict);
        pairs.insert(order, if reaches { rank(order) } else { Rank::Rest });
    }
    for cell in cone.cells() {
        for order in conflicting(context, failing, &cone, cell) {
            pairs.insert(order, rank(order));
        }
    }
    let mut pairs: Vec<(Rank, Order)> =
        pairs.into_iter().map(|(order, rank)| (rank, order)).collect();
    pairs.sort_by_cached_key(|(rank, order)| (*rank, failing.distance(*order), *order));
    pairs.truncate(most);
    pairs
}

/// The conflicting pairs of accesses to a cell.
fn conflicting(
    context: &Context<'_, '_>,
    failing: &Failing,
    cone: &Cone,
    cell: CellId,
) -> Vec<Order> {
    let trace = context.trace;
    let schedule = failing.schedule.order.iter().copied();
    let mut accesses: Vec<EventId> =
        schedule.filter(|id| cone.accesses(trace, *id, cell)).collect();
    accesses.drain(..accesses.len().saturating_sub(ACCESSES));
    let writes = |id: EventId| trace.event(id).kind.writes().iter().any(|part| part.cell == cell);
    let mut orders = Vec::new();
    for (index, &before) in accesses.iter().enumerate() {
        for &after in &accesses[index + 1..] {
            let conflict = writes(before) || writes(after);
            if conflict && !failing.happens_before.before(before, after) {
                orders.push(Order { before, after });
            }
        }
    }
    orders
}
