//! The root cause ([S] 3.3): the orders of the failing schedule without which it need not fail.

use crate::ask::{Answer, Asker, Witness};
use crate::cone::Cone;
use crate::conflict::{ConflictOrder, OrderKind};
use crate::context::Context;
use crate::error::ExplainError;
use crate::failing::Failing;
use crate::local;
use solver::{Order, UnknownReason};
use std::cmp::Reverse;

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
    /// Orders of the failing schedule that together rule out that it passes, in schedule order.
    /// Empty unless `kind` is [`CauseKind::Orders`].
    pub orders: Vec<ConflictOrder>,
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

pub(crate) fn root_cause(
    context: &mut Context<'_, '_>,
    asker: &mut Asker<'_>,
    failing: &Failing,
) -> Result<Found, ExplainError> {
    let cone = Cone::new(context.trace, &failing.evaluation);
    let reaching = failing.conflicts.iter().filter(|o| cone.contains(context.trace, o));
    let mut orders: Vec<ConflictOrder> = reaching.copied().collect();
    orders.sort_by_key(|o| drop_first(failing, o));
    let mut search = Search { orders, cut: None, confirmed: Vec::new() };
    let in_cone = search.orders.len();
    let all: Vec<Order> = search.orders.iter().map(|o| o.order).collect();
    let kind = match asker.passes(context, &all)? {
        Answer::None(core) => {
            search.keep(&core);
            search.witnesses(context, asker, failing);
            search.none(context, asker)?;
            search.halve(context, asker)?;
            search.drop_each(context, asker)?;
            if search.orders.is_empty() { CauseKind::FailsAlways } else { CauseKind::Orders }
        }
        // The orders of the cone fix all values that the failure depends on, but for inputs.
        Answer::Passes(_) => return Err(ExplainError::OrdersInsufficient),
        Answer::OtherInputs => {
            search.orders.clear();
            CauseKind::Inputs
        }
        Answer::Unknown(reason) => {
            search.cut = Some(reason);
            CauseKind::Orders
        }
    };
    let minimal = search.cut.is_none() && kind != CauseKind::Inputs;
    let mut orders = search.orders;
    orders.sort_by_key(|o| (failing.position(o.order.after), failing.position(o.order.before)));
    let of = failing.conflicts.len();
    Ok(Found { cause: RootCause { kind, orders, minimal, of, in_cone }, cut: search.cut })
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
    cut: Option<UnknownReason>,
}

impl Search {
    fn keep(&mut self, core: &[Order]) {
        self.orders.retain(|o| core.contains(&o.order));
    }

    /// Finds passing schedules by local moves: each answers questions in the solver's place.
    fn witnesses(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
        failing: &Failing,
    ) {
        for conflict in self.orders.iter().rev() {
            if let Some(flip) = local::flip(context, failing, conflict.order) {
                asker.witnesses.push(Witness::new(context, flip.order));
            }
        }
    }

    /// Drops all orders at once when every schedule fails.
    fn none(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
    ) -> Result<(), ExplainError> {
        if let Answer::None(_) = asker.passes(context, &[])? {
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
                match asker.passes(context, &rest)? {
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
            match asker.passes(context, &self.without(index..index + 1))? {
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
                    self.confirmed.push(self.orders[index].order);
                    index += 1;
                }
            }
        }
        Ok(())
    }

    fn without(&self, range: std::ops::Range<usize>) -> Vec<Order> {
        let kept = self.orders.iter().enumerate().filter(|(index, _)| !range.contains(index));
        kept.map(|(_, conflict)| conflict.order).collect()
    }
}
