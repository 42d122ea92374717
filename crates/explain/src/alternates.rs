//! Alternate schedules ([S] 3.4): along the same paths, with a pair of the failing schedule
//! reversed, and no failure.

use crate::ask::{Answer, Asker};
use crate::cone::Cone;
use crate::conflict::ConflictOrder;
use crate::context::Context;
use crate::dsp::{Dsp, differential};
use crate::error::ExplainError;
use crate::failing::Failing;
use crate::local;
use crate::nearest::nearest;
use crate::root_cause::RootCause;
use model::evaluate::Evaluation;
use model::{EventId, Schedule};
use solver::{Order, UnknownReason};
use std::collections::BTreeSet;

/// A schedule that does not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternate {
    /// The reversed pair as it is ordered here; the failing schedule has it the other way round.
    pub flipped: Order,
    /// Is the pair part of the root cause?
    pub in_root_cause: bool,
    /// The schedule: all events of the trace.
    pub schedule: Schedule,
    /// What it does.
    pub evaluation: Evaluation,
}

/// Alternates, the one that differs least from the failing schedule first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alternates {
    /// The alternates.
    pub found: Vec<Alternate>,
    /// How many pairs were tried.
    pub tried: usize,
    /// For how many pairs the session gave no answer.
    pub unknown: usize,
}

/// How many alternates are asked for, and how hard to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Alternates to return.
    pub(crate) alternates: usize,
    /// Alternates to choose from.
    pub(crate) examined: usize,
    /// Pairs to try.
    pub(crate) pairs: usize,
}

/// How often the session is asked about one pair while orders that contradict it are given up,
/// before all are.
const ROUNDS: usize = 5;

pub(crate) struct Found {
    pub(crate) alternates: Alternates,
    pub(crate) dsps: Vec<Dsp>,
    pub(crate) cut: Option<UnknownReason>,
}

pub(crate) fn alternates(
    context: &mut Context<'_, '_>,
    asker: &mut Asker<'_>,
    failing: &Failing,
    cause: &RootCause,
    wanted: Wanted,
) -> Result<Found, ExplainError> {
    let mut search = Search {
        core: cause.orders.iter().map(|o| o.order).collect(),
        candidates: Vec::new(),
        alternates: Alternates::default(),
        cut: None,
    };
    search.known(asker, failing);
    for conflict in pairs(context, failing, &search.core).into_iter().take(wanted.pairs) {
        let enough = search.candidates.len() >= wanted.examined.max(wanted.alternates);
        if enough || context.effort.expired() {
            break;
        }
        search.pair(context, asker, failing, conflict.order, wanted)?;
    }
    if context.effort.expired() {
        search.cut = search.cut.or(Some(UnknownReason::TimeOut));
    }
    search.choose(context, failing, wanted)
}

/// The pairs to reverse: those of the root cause, then those that can reach the failure, then the
/// rest, each nearest to the failure first.
fn pairs(
    context: &Context<'_, '_>,
    failing: &Failing,
    core: &BTreeSet<Order>,
) -> Vec<ConflictOrder> {
    let cone = Cone::new(context.trace, &failing.evaluation);
    let rank = |conflict: &ConflictOrder| {
        if core.contains(&conflict.order) {
            0
        } else if cone.contains(context.trace, conflict) {
            1
        } else {
            2
        }
    };
    let mut pairs = failing.conflicts.clone();
    pairs.sort_by_cached_key(|o| (rank(o), failing.distance(o.order), o.order));
    pairs
}

struct Candidate {
    /// The pair as it is ordered in the failing schedule.
    pair: Order,
    order: Vec<EventId>,
}

struct Search {
    core: BTreeSet<Order>,
    candidates: Vec<Candidate>,
    alternates: Alternates,
    cut: Option<UnknownReason>,
}

impl Search {
    /// The passing schedules that the search for the root cause met: each reverses a pair of it.
    fn known(&mut self, asker: &Asker<'_>, failing: &Failing) {
        let mut core: Vec<Order> = self.core.iter().copied().collect();
        core.sort_by_key(|o| (failing.distance(*o), *o));
        for witness in &asker.witnesses {
            if let Some(&pair) = core.iter().find(|o| !witness.keeps(**o)) {
                self.candidates.push(Candidate { pair, order: witness.schedule.order.clone() });
            }
        }
    }

    fn pair(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
        failing: &Failing,
        pair: Order,
        wanted: Wanted,
    ) -> Result<(), ExplainError> {
        self.alternates.tried += 1;
        if let Some(flip) = local::flip(context, failing, pair) {
            self.candidates.push(Candidate { pair, order: flip.order });
            return Ok(());
        }
        // The session is slow beside local moves: it is asked only while too few are found. Every
        // passing schedule reverses a pair of the core, so that none is missed.
        if self.candidates.len() >= wanted.alternates {
            return Ok(());
        }
        match solve(context, asker, failing, pair)? {
            Answer::Passes(schedule) => {
                self.candidates.push(Candidate { pair, order: schedule.order });
            }
            Answer::None(_) | Answer::OtherInputs => {}
            Answer::Unknown(reason) => {
                self.alternates.unknown += 1;
                self.cut = Some(reason);
            }
        }
        Ok(())
    }

    /// Brings the candidates near the failing schedule and keeps those that show least.
    fn choose(
        mut self,
        context: &mut Context<'_, '_>,
        failing: &Failing,
        wanted: Wanted,
    ) -> Result<Found, ExplainError> {
        let mut ranked = Vec::new();
        for candidate in std::mem::take(&mut self.candidates) {
            let pair = candidate.pair;
            let flipped = Order { before: pair.after, after: pair.before };
            let order = nearest(context, failing, candidate.order, flipped);
            let evaluation = context.passing(&order)?;
            let in_root_cause = self.core.contains(&pair);
            let schedule = Schedule { order };
            let alternate = Alternate { flipped, in_root_cause, schedule, evaluation };
            let dsp = differential(context.trace, failing, &alternate);
            let cost = (dsp.size(), !in_root_cause, failing.distance(pair), pair);
            ranked.push((cost, alternate, dsp));
        }
        ranked.sort_by_key(|(cost, ..)| *cost);
        let mut dsps: Vec<Dsp> = Vec::new();
        for (_, alternate, dsp) in ranked {
            let shown = |other: &Dsp| other.same_data_flow(&dsp);
            if dsps.len() < wanted.alternates && !dsps.iter().any(shown) {
                self.alternates.found.push(alternate);
                dsps.push(dsp);
            }
        }
        Ok(Found { alternates: self.alternates, dsps, cut: self.cut })
    }
}

/// Asks the session for a schedule with the pair reversed that keeps as many of the failing
/// schedule's other orders as it can.
fn solve(
    context: &mut Context<'_, '_>,
    asker: &mut Asker<'_>,
    failing: &Failing,
    pair: Order,
) -> Result<Answer, ExplainError> {
    let flipped = Order { before: pair.after, after: pair.before };
    let mut orders = vec![flipped];
    let others = failing.conflicts.iter().map(|o| o.order).filter(|o| *o != pair);
    orders.extend(others.filter(|o| !contradicts(failing, *o, pair)));
    for _ in 0..ROUNDS {
        match asker.passes(context, &orders)? {
            Answer::None(core) if core.iter().all(|o| *o == flipped) => {
                return Ok(Answer::None(core));
            }
            Answer::None(core) => orders.retain(|o| *o == flipped || !core.contains(o)),
            Answer::Unknown(_) => break,
            found => return Ok(found),
        }
    }
    asker.passes(context, &[flipped])
}

/// With the pair reversed, does the order close a cycle with program order?
fn contradicts(failing: &Failing, order: Order, pair: Order) -> bool {
    let reaches = |a: EventId, b: EventId| a == b || failing.happens_before.before(a, b);
    reaches(pair.before, order.before) && reaches(order.after, pair.after)
}
