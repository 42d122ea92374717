//! Pairs of two places of the program that are turned round all at once.
//!
//! A loop whose rounds race goes wrong in many rounds, and then no single order decides whether the run fails: the others
//! are still wrong. So all racing pairs of the same two places are turned round together, as a repair of the program
//! would; where the run passes then, they are turned one after the other until it does, and the failing schedule is the
//! one before: as with delta debugging of schedules (Choi and Zeller, ISSTA 2002), what is left differs in one pair.

use crate::cone::Cone;
use crate::conflict::ConflictOrder;
use crate::context::Context;
use crate::extend::{Preference, extend};
use crate::failing::Failing;
use crate::happens_before::HappensBefore;
use crate::switches::{keeps, kept};
use model::evaluate::Check;
use model::{EventId, EventTrace, Schedule, Site};
use rustc_hash::FxHashSet;
use solver::{Goal, Model, Order};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many pairs of places are tried, those that meet most often.
const PLACES: usize = 24;
/// So many events are executed for that.
const TURNING: u64 = 20_000_000;
/// Where a schedule is neither one that fails nor one that passes, so many of its neighbours are tried.
const NEIGHBOURS: usize = 4;

/// A failing schedule and one that passes, which differ in a pair that is turned round.
pub(crate) struct Apart {
    pub(crate) failing: Vec<EventId>,
    pub(crate) passing: Vec<EventId>,
}

/// Finds one by turning pairs of two places round. `None` where the run passes with none of them, and where the effort is
/// spent.
pub(crate) fn turned(context: &mut Context<'_, '_>, failing: &Failing) -> Option<Apart> {
    let trace = context.trace;
    let keep = kept(trace, &failing.schedule);
    context.effort.allow(TURNING);
    let cone = Cone::new(trace, &failing.evaluation);
    let (memory, others): (Vec<ConflictOrder>, Vec<ConflictOrder>) =
        failing.conflicts.iter().partition(|conflict| conflict.kind.cell().is_some());
    let reaching: Vec<Order> =
        memory.iter().filter(|it| cone.contains(trace, it)).map(|it| it.order).collect();
    let others = others.iter().map(|conflict| conflict.order);
    let synchronised = HappensBefore::with_orders(trace, &failing.schedule.order, others);
    let races = |order: &&Order| !synchronised.before(order.before, order.after);
    let racing = by_places(trace, reaching.iter().filter(races));
    together(context, failing, &racing, &keep)
        .or_else(|| one_by_one(context, failing, &by_places(trace, reaching.iter()), &keep))
}

/// A failing schedule and one that passes, which differ in one pair of events that comes the other way round, with the
/// recorded inputs. `None` where the schedule does not fail with these inputs, and where no such two are found by
/// turning all pairs of two places round, or one after the other. `budget` ends the search by answering false.
#[must_use]
pub fn with_turned_pairs(
    trace: &EventTrace,
    schedule: &Schedule,
    budget: &dyn Fn() -> bool,
) -> Option<(Schedule, Schedule)> {
    let mut context = Context::new(trace, budget);
    let found = Model { schedule: schedule.clone(), ..Model::default() };
    context.accept_model(Goal::Fail, &found).ok()?;
    let failing = Failing::new(&mut context, found.schedule).ok()?;
    let apart = turned(&mut context, &failing)?;
    Some((Schedule { order: apart.failing }, Schedule { order: apart.passing }))
}

/// Turns all pairs of two places at once, and then fewer of them.
fn together(
    context: &mut Context<'_, '_>,
    failing: &Failing,
    groups: &[Vec<Order>],
    keep: &[Order],
) -> Option<Apart> {
    for pairs in groups {
        for others in [Others::All, Others::Synchronisation] {
            let turn = Turn { failing, others };
            let Some(passing) = turn.schedule(context, pairs) else { continue };
            if context.check(&passing)? == Check::Passes {
                return Some(turn.narrow(context, pairs, passing, keep));
            }
        }
    }
    None
}

/// Turns pairs of two places one after the other, as long as the run fails all the same along the recorded paths: a lock
/// that happened to be taken in some order hides which pairs race. Pairs that cannot be turned stay as they are.
fn one_by_one(
    context: &mut Context<'_, '_>,
    failing: &Failing,
    groups: &[Vec<Order>],
    keep: &[Order],
) -> Option<Apart> {
    let turn = Turn { failing, others: Others::None };
    for pairs in groups {
        let mut turned: Vec<Order> = Vec::new();
        let mut best = failing.schedule.order.clone();
        for pair in pairs {
            turned.push(*pair);
            let order = turn.schedule(context, &turned);
            let check = match &order {
                Some(order) => Some(context.check(order)?),
                None => None,
            };
            match (check, order) {
                (Some(Check::Passes), Some(passing)) => {
                    tracing::debug!(
                        pairs = pairs.len(),
                        turned = turned.len(),
                        "turned pairs one by one"
                    );
                    return Some(Apart { failing: best, passing });
                }
                (Some(Check::Fails), Some(order)) if keeps(context.trace, keep, &order) => {
                    best = order;
                }
                _ => {
                    turned.pop();
                }
            }
        }
    }
    None
}

/// Pairs by their two places. Each group is in the order of the pairs.
fn by_places<'o>(trace: &EventTrace, pairs: impl Iterator<Item = &'o Order>) -> Vec<Vec<Order>> {
    let mut groups: BTreeMap<(&Site, &Site), Vec<Order>> = BTreeMap::new();
    for order in pairs {
        let place = (trace.event(order.before).site(), trace.event(order.after).site());
        groups.entry(place).or_default().push(*order);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|pairs| Reverse(pairs.len()));
    groups.truncate(PLACES);
    groups
}

/// Which other orders of the failing schedule are kept. What they leave open follows it.
#[derive(Clone, Copy)]
enum Others {
    All,
    /// Those of synchronisation.
    Synchronisation,
    None,
}

struct Turn<'a> {
    failing: &'a Failing,
    others: Others,
}

impl Turn<'_> {
    /// The schedule in which these pairs come the other way round; `None` where that contradicts the orders that are
    /// kept.
    fn schedule(&self, context: &Context<'_, '_>, turned: &[Order]) -> Option<Vec<EventId>> {
        let given_up: FxHashSet<Order> = turned.iter().copied().collect();
        let keeps = |conflict: &&ConflictOrder| match self.others {
            Others::All => !given_up.contains(&conflict.order),
            Others::Synchronisation => conflict.kind.cell().is_none(),
            Others::None => false,
        };
        let kept = self.failing.conflicts.iter().filter(keeps).map(|conflict| conflict.order);
        let other_way = |order: &Order| Order { before: order.after, after: order.before };
        let orders = kept.chain(turned.iter().map(other_way));
        extend(context.trace, orders, Preference::Reference(&self.failing.positions))
    }

    /// Turns fewer pairs, until one more or less decides whether the run fails. `passing` has them all.
    fn narrow(
        &self,
        context: &mut Context<'_, '_>,
        pairs: &[Order],
        passing: Vec<EventId>,
        keep: &[Order],
    ) -> Apart {
        let mut apart = Apart { failing: self.failing.schedule.order.clone(), passing };
        let (mut fails, mut passes) = (0, pairs.len());
        while passes - fails > 1 {
            let middle = fails + (passes - fails) / 2;
            let mut decided = false;
            for count in (fails + 1..=middle).rev().take(NEIGHBOURS) {
                let Some(order) = self.schedule(context, &pairs[..count]) else { continue };
                match context.check(&order) {
                    None => return apart,
                    Some(Check::Passes) => (passes, apart.passing, decided) = (count, order, true),
                    Some(Check::Fails) if keeps(context.trace, keep, &order) => {
                        (fails, apart.failing, decided) = (count, order, true);
                    }
                    Some(_) => continue,
                }
                break;
            }
            if !decided {
                break;
            }
        }
        tracing::debug!(pairs = pairs.len(), fails, passes, "turned pairs round together");
        apart
    }
}
