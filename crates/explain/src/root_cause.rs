//! The root cause ([S] 3.3): the orders of the failing schedule without which it need not fail.

use crate::ask::{Answer, Asker, Share, Witness};
use crate::cone::Cone;
use crate::conflict::{ConflictOrder, OrderKind};
use crate::context::Context;
use crate::error::ExplainError;
use crate::failing::Failing;
use crate::local::Moves;
use crate::nearest::nearest;
use crate::pin::has_inputs;
use solver::{Order, UnknownReason};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What kind of cause it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseKind {
    /// These orders of events.
    Orders,
    /// None: every schedule along the recorded paths fails.
    FailsAlways,
    /// With the same orders the run passes when inputs, or unknown initial values, are others.
    /// Fix them ([`pin_inputs`](crate::pin_inputs)) to ask for the orders.
    Inputs,
}

/// The root cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootCause {
    /// What kind of cause it is.
    pub kind: CauseKind,
    /// Orders of the failing schedule that together rule out that it passes, in schedule order
    /// (see `shown`).
    /// Empty unless `kind` is [`CauseKind::Orders`].
    pub orders: Vec<ConflictOrder>,
    /// Was it shown that they rule it out? Otherwise they are what a schedule that passes gives up, and differs in
    /// little else.
    pub shown: bool,
    /// Can no order be dropped? True only when for each of them a schedule was found that passes
    /// and keeps all others.
    pub minimal: bool,
    /// How many conflict orders the schedule has.
    pub of: usize,
    /// How many of them can reach the failure.
    pub in_cone: usize,
}

/// A root cause, and why it is not minimal where it is not.
pub(crate) struct Found {
    pub(crate) cause: RootCause,
    pub(crate) cut: Option<UnknownReason>,
}

/// More orders than this are halved before they are tried one by one.
const ONE_BY_ONE: usize = 8;

/// A schedule that passes is near the failing one when it gives up so many orders of it at most.
const NEAR: usize = 8;

/// Where no schedule is known that passes, perhaps none does; the orders that are left after this part of the time mean
/// little.
const WITHOUT: u32 = 8;

/// How many root causes are proposed before the orders are dropped one by one.
const PROPOSALS: usize = 48;

pub(crate) fn root_cause(
    context: &mut Context<'_, '_>,
    asker: &mut Asker<'_>,
    failing: &Failing,
) -> Result<Found, ExplainError> {
    let cone = Cone::new(context.trace, &failing.evaluation);
    let orders = reaching(context, failing, &cone);
    let (in_cone, of) = (orders.len(), failing.conflicts.len());
    // Nothing that the failure depends on can be otherwise, so that there is nothing to ask.
    if orders.is_empty() && !cone.has_inputs() {
        let kind = CauseKind::FailsAlways;
        let cause = RootCause { kind, orders, shown: true, minimal: true, of, in_cone };
        return Ok(Found { cause, cut: None });
    }
    let (confirmed, open) = (Vec::new(), Vec::new());
    let mut search = Search { orders, cut: None, confirmed, open };
    // With inputs, another outcome may have nothing to do with orders.
    let by_hitting = !has_inputs(context.trace) && search.hit(context, asker, failing)?;
    let mut shown = true;
    let kind = match by_hitting {
        true => search.kind(),
        false => {
            let near = search.given_up(asker);
            if near.is_some() {
                asker.be_brief();
            } else if asker.witnesses.is_empty() {
                asker.stop_after(WITHOUT);
            }
            let kind = search.delete(context, asker)?;
            let is_better = |orders: &Vec<ConflictOrder>| {
                search.cut.is_some() && orders.len() < search.orders.len()
            };
            if let Some(orders) = near.filter(is_better) {
                (search.orders, shown) = (orders, false);
            }
            kind
        }
    };
    let minimal = search.cut.is_none() && kind != CauseKind::Inputs;
    let mut orders = search.orders;
    orders.sort_by_key(|o| (failing.position(o.order.after), failing.position(o.order.before)));
    Ok(Found { cause: RootCause { kind, orders, shown, minimal, of, in_cone }, cut: search.cut })
}

/// The orders that can reach the failure, first to drop first.
fn reaching(context: &Context<'_, '_>, failing: &Failing, cone: &Cone) -> Vec<ConflictOrder> {
    let reaching = failing.conflicts.iter().filter(|o| cone.contains(context.trace, o));
    let mut orders: Vec<ConflictOrder> = reaching.copied().collect();
    orders.sort_by_key(|o| drop_first(failing, o));
    orders
}

/// Finds passing schedules by local moves: each answers questions in the solver's place.
pub(crate) fn witnesses(context: &mut Context<'_, '_>, asker: &mut Asker<'_>, failing: &Failing) {
    let cone = Cone::new(context.trace, &failing.evaluation);
    let orders = reaching(context, failing, &cone);
    if orders.is_empty() {
        return;
    }
    let mut moves = Moves::new(context, failing);
    for conflict in orders.iter().rev() {
        if let Some(flip) = moves.cheapest(context, failing, conflict.order) {
            asker.witnesses.push(Witness::new(context, flip.order));
        }
    }
}

/// What means least to a person is dropped first: synchronisation before memory, what is far from
/// the failure before what is near, and last what the failure condition itself asks for.
fn drop_first(failing: &Failing, conflict: &ConflictOrder) -> (u8, Reverse<(u32, u32)>) {
    let rank = match conflict.kind {
        OrderKind::Failure => 2,
        kind if kind.cell().is_some() => 1,
        _ => 0,
    };
    (rank, Reverse(failing.distance(conflict.order)))
}

struct Search {
    /// Orders that together rule out that the run passes, first to drop first.
    orders: Vec<ConflictOrder>,
    /// Orders without which the rest can pass; that stays so when the rest shrinks.
    confirmed: Vec<Order>,
    /// Orders of which it is not known whether the rest can pass without them.
    open: Vec<Order>,
    cut: Option<UnknownReason>,
}

impl Search {
    fn kind(&self) -> CauseKind {
        if self.orders.is_empty() { CauseKind::FailsAlways } else { CauseKind::Orders }
    }

    /// Every schedule that passes gives up an order of the root cause. So a smallest choice of
    /// orders from all passing schedules that are known is proposed, until the session finds none
    /// that keeps it: then it is a root cause, and minimal, since for each of its orders there is
    /// a schedule that gives up this one alone. False when the session has no answer soon, since orders can
    /// still be dropped one by one; they stay as they were.
    fn hit(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
        failing: &Failing,
    ) -> Result<bool, ExplainError> {
        for _ in 0..PROPOSALS {
            let mut given_up = Vec::new();
            for witness in &asker.witnesses {
                let orders = self.orders.iter().enumerate();
                let orders = orders.filter(|(_, o)| !witness.keeps(o.order));
                let indices: Vec<usize> = orders.map(|(index, _)| index).collect();
                if indices.is_empty() {
                    // The orders of the cone fix all values that the failure depends on.
                    return Err(ExplainError::OrdersInsufficient);
                }
                given_up.push(indices);
            }
            let chosen = hitting_set(self.orders.len(), &given_up);
            let proposal: Vec<Order> = chosen.iter().map(|i| self.orders[*i].order).collect();
            match asker.passes(context, &proposal, Share::Small)? {
                Answer::None(_) => {
                    self.orders = chosen.iter().map(|index| self.orders[*index]).collect();
                    return Ok(true);
                }
                Answer::Passes(schedule) => {
                    // One that is nearer gives up less, so that it says more.
                    let order = nearest(context, failing, schedule.order);
                    asker.witnesses.push(Witness::new(context, order));
                }
                Answer::OtherInputs | Answer::Unknown(_) => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Starts from all orders and drops what can be dropped.
    fn delete(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
    ) -> Result<CauseKind, ExplainError> {
        let all: Vec<Order> = self.orders.iter().map(|o| o.order).collect();
        match asker.passes(context, &all, Share::Large)? {
            Answer::None(core) => {
                self.keep(&core);
                self.none(context, asker)?;
                self.halve(context, asker)?;
                self.drop_each(context, asker)?;
                self.ask_again(context, asker)?;
                Ok(self.kind())
            }
            Answer::Passes(_) => Err(ExplainError::OrdersInsufficient),
            Answer::OtherInputs => {
                self.orders.clear();
                Ok(CauseKind::Inputs)
            }
            Answer::Unknown(reason) => {
                self.cut = Some(reason);
                Ok(CauseKind::Orders)
            }
        }
    }

    fn keep(&mut self, core: &[Order]) {
        self.orders.retain(|o| core.contains(&o.order));
    }

    /// The orders that a passing schedule near the failing one gives up; `None` where it is not near.
    fn given_up(&self, asker: &Asker<'_>) -> Option<Vec<ConflictOrder>> {
        let of = |witness: &Witness| -> Vec<ConflictOrder> {
            self.orders.iter().filter(|o| !witness.keeps(o.order)).copied().collect()
        };
        let fewest = asker.witnesses.iter().map(of).min_by_key(Vec::len)?;
        (!fewest.is_empty() && fewest.len() <= NEAR).then_some(fewest)
    }

    /// Drops all orders at once when every schedule fails.
    fn none(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
    ) -> Result<(), ExplainError> {
        if let Answer::None(_) = asker.passes(context, &[], Share::Small)? {
            self.orders.clear();
        }
        Ok(())
    }

    /// Drops many orders at a time while there are many.
    fn halve(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
    ) -> Result<(), ExplainError> {
        let mut size = self.orders.len() / 2;
        while size >= ONE_BY_ONE / 2 && self.orders.len() > ONE_BY_ONE {
            let mut start = 0;
            while start < self.orders.len() {
                let end = (start + size).min(self.orders.len());
                let rest = self.without(start..end);
                match asker.passes(context, &rest, Share::Small)? {
                    Answer::None(core) => self.keep(&core),
                    Answer::Passes(_) | Answer::OtherInputs => start = end,
                    // What is left is tried one by one, which may be easier.
                    Answer::Unknown(_) => return Ok(()),
                }
            }
            size /= 2;
        }
        Ok(())
    }

    /// Deletion: afterwards no order can be dropped, unless a question stayed open.
    fn drop_each(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
    ) -> Result<(), ExplainError> {
        let mut index = 0;
        while let Some(conflict) = self.orders.get(index) {
            if self.confirmed.contains(&conflict.order) {
                index += 1;
                continue;
            }
            match asker.passes(context, &self.without(index..index + 1), Share::Small)? {
                // Whoever was skipped before stays confirmed, but may have moved forward.
                Answer::None(core) => {
                    self.keep(&core);
                    index = 0;
                }
                Answer::Passes(_) | Answer::OtherInputs => {
                    self.confirmed.push(self.orders[index].order);
                    index += 1;
                }
                Answer::Unknown(reason) => {
                    self.cut = Some(reason);
                    self.open.push(self.orders[index].order);
                    self.confirmed.push(self.orders[index].order);
                    index += 1;
                }
            }
        }
        Ok(())
    }

    /// The questions that stayed open get more time, now that fewer orders are left: one of many had little.
    fn ask_again(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
    ) -> Result<(), ExplainError> {
        if asker.is_limited() {
            return Ok(());
        }
        asker.begin();
        for order in std::mem::take(&mut self.open) {
            let Some(index) = self.orders.iter().position(|o| o.order == order) else { continue };
            match asker.passes(context, &self.without(index..index + 1), Share::Large)? {
                Answer::None(core) => self.keep(&core),
                Answer::Passes(_) | Answer::OtherInputs => {}
                Answer::Unknown(_) => return Ok(()),
            }
        }
        self.cut = None;
        Ok(())
    }

    fn without(&self, range: std::ops::Range<usize>) -> Vec<Order> {
        let kept = self.orders.iter().enumerate().filter(|(index, _)| !range.contains(index));
        kept.map(|(_, conflict)| conflict.order).collect()
    }
}

/// A set with a member of each of the given ones that needs all of its members: greedily the index
/// that is in most of them, of equals the last; then what became needless is dropped, the first
/// index first.
fn hitting_set(size: usize, sets: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut open: Vec<&Vec<usize>> = sets.iter().collect();
    let mut chosen = BTreeSet::new();
    while !open.is_empty() {
        let mut counts = vec![0usize; size];
        open.iter().flat_map(|set| set.iter()).for_each(|index| counts[*index] += 1);
        let Some(best) = (0..size).max_by_key(|index| counts[*index]) else { break };
        chosen.insert(best);
        open.retain(|set| !set.contains(&best));
    }
    for index in chosen.clone() {
        let covered = |set: &Vec<usize>| set.iter().any(|i| *i != index && chosen.contains(i));
        if sets.iter().all(covered) {
            chosen.remove(&index);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::hitting_set;

    #[test]
    fn hitting_sets_need_all_of_their_members() {
        assert!(hitting_set(3, &[]).is_empty());
        let sets = vec![vec![0, 1], vec![1, 2], vec![2, 3]];
        let chosen = hitting_set(4, &sets);
        assert!(sets.iter().all(|set| set.iter().any(|i| chosen.contains(i))));
        assert_eq!(chosen.len(), 2);
        assert_eq!(Vec::from_iter(hitting_set(3, &[vec![0], vec![0, 2]])), [0]);
    }
}
