//! Alternate schedules ([S] 3.4): along the same paths, with a pair of the failing schedule
//! reversed, and no failure.

use crate::ask::{Answer, Asker, Share};
use crate::cone::feeds;
use crate::conflict::{OrderKind, positions};
use crate::context::Context;
use crate::dsp::{DataFlow, Dsp, differential};
use crate::error::ExplainError;
use crate::failing::Failing;
use crate::held::left_orders;
use crate::local::Moves;
use crate::nearest::nearest;
use crate::pairs::{Rank, pairs};
use crate::root_cause::RootCause;
use model::evaluate::Evaluation;
use model::{CellId, Event, EventId, EventTrace, Schedule, ThreadId, WriteSource};
use solver::{Order, UnknownReason};
use std::collections::{BTreeMap, BTreeSet};

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
    /// More to return when there are more.
    pub(crate) spare: usize,
    /// Alternates to choose from.
    pub(crate) examined: usize,
    /// Pairs to try.
    pub(crate) pairs: usize,
}

/// How often the session is asked about one pair while orders that contradict it are given up,
/// before all are.
const ROUNDS: usize = 6;
/// With more data-flow variations than this in the best alternate the session is asked for others.
const FEW: usize = 3;
/// How many pairs the session is asked about then.
const ASKED: usize = 4;
/// So many pairs that are no orders of the root cause, nor between their events, are reversed in
/// vain before no more are.
const PATIENCE: usize = 48;

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
    let core: BTreeSet<Order> = cause.orders.iter().map(|o| o.order).collect();
    let pairs = pairs(context, failing, &core, wanted.pairs);
    // A thread that ended with a robust mutex has it given to another one.
    let place = |id: EventId| failing.positions[id.index()];
    let keeps = |order: &Order| place(order.before) < place(order.after);
    let left = left_orders(context.trace).into_iter().filter(keeps).collect();
    let mut search =
        Search { failing, wanted, core, left, found: Vec::new(), tried: 0, unknown: 0 };
    // The passing schedules that the search for the root cause met.
    for witness in &asker.witnesses {
        search.add(context, witness.schedule.order.clone());
    }
    search.locally(context, &pairs);
    search.examine(context);
    let cut = search.by_session(context, asker, &pairs)?;
    search.choose(context, &pairs, cut)
}

/// A schedule that passes.
struct Candidate {
    /// Data-flow differences to the failing schedule, then differences in place.
    cost: (usize, usize),
    order: Vec<EventId>,
}

struct Search<'f> {
    failing: &'f Failing,
    wanted: Wanted,
    core: BTreeSet<Order>,
    /// Critical sections before others that a thread left open when it ended.
    left: Vec<Order>,
    /// Without two of the same order.
    found: Vec<Candidate>,
    tried: usize,
    unknown: usize,
}

impl Search<'_> {
    /// Takes a schedule that is known to pass.
    fn add(&mut self, context: &mut Context<'_, '_>, order: Vec<EventId>) {
        if self.found.iter().all(|known| known.order != order)
            && self.is_free(context, &order)
            && context.check(&order).is_some()
        {
            let cost = (self.failing.variations(context), self.failing.displaced(&order));
            self.found.push(Candidate { cost, order });
        }
    }

    /// Does nobody in it get a lock that a thread ended with?
    fn is_free(&self, context: &Context<'_, '_>, order: &[EventId]) -> bool {
        if self.left.is_empty() {
            return true;
        }
        let positions = positions(context.trace, order);
        let place = |id: EventId| positions[id.index()];
        self.left.iter().all(|order| place(order.before) < place(order.after))
    }

    /// Reverses pair after pair by local moves: at the least price, and, when that finds nothing
    /// that differs little, by blocks of one thread.
    fn locally(&mut self, context: &mut Context<'_, '_>, pairs: &[(Rank, Order)]) {
        // To lay the moves out takes long in a long trace.
        if context.effort.expired() {
            return;
        }
        let mut moves = Moves::new(context, self.failing);
        let mut in_vain = 0;
        for &(rank, pair) in pairs {
            let further = rank > Rank::BetweenCores;
            let enough = || self.is_enough() || (in_vain >= PATIENCE && !self.found.is_empty());
            if context.effort.expired() || (further && enough()) {
                break;
            }
            self.tried += 1;
            let best = self.least_varying();
            if let Some(flip) = moves.cheapest(context, self.failing, pair) {
                self.add(context, flip.order);
            }
            let better = self.least_varying() < best;
            in_vain = if better { 0 } else { in_vain + usize::from(further) };
        }
        for &(_, pair) in pairs {
            let differs_little = self.found.iter().any(|candidate| candidate.cost.0 <= FEW);
            let enough = differs_little && self.found.len() >= self.wanted.alternates;
            // Without anything left no schedule is executed, but to make them takes as long.
            let spent = !context.effort.affords(self.failing.schedule.order.len() as u64);
            if enough || spent || context.effort.expired() {
                break;
            }
            if let Some(flip) = moves.block(context, self.failing, pair) {
                self.add(context, flip.order);
            }
        }
    }

    /// The data-flow differences of the schedule that has the fewest.
    fn least_varying(&self) -> usize {
        self.found.iter().map(|candidate| candidate.cost.0).min().unwrap_or(usize::MAX)
    }

    /// Cannot the rest of the pairs bring anything better?
    fn is_enough(&self) -> bool {
        let best = self.found.iter().filter(|candidate| candidate.cost.0 <= 1).count();
        best > self.wanted.alternates.max(2) || self.found.len() >= 4 * self.wanted.examined
    }

    /// Brings the best candidates near the failing schedule and drops the others.
    fn examine(&mut self, context: &mut Context<'_, '_>) {
        self.found.sort_by(|a, b| (a.cost, &a.order).cmp(&(b.cost, &b.order)));
        self.found.truncate(self.wanted.examined.max(self.wanted.alternates));
        for candidate in std::mem::take(&mut self.found) {
            // Without time left they stay as they are.
            if context.effort.expired() {
                self.found.push(candidate);
                continue;
            }
            let order = nearest(context, self.failing, candidate.order.clone());
            let before = self.found.len();
            self.add(context, order);
            // Several may lead to one. Whoever wants many gets those that they were, too, and
            // without effort left they stay as they are.
            let many = self.wanted.alternates > 1;
            if many || (self.found.len() == before && context.effort.is_spent()) {
                self.found.push(candidate);
            }
        }
    }

    /// Asks the session while there are too few alternates, or none that differs little. Every
    /// passing schedule reverses a pair of the core, so that none is missed.
    fn by_session(
        &mut self,
        context: &mut Context<'_, '_>,
        asker: &mut Asker<'_>,
        pairs: &[(Rank, Order)],
    ) -> Result<Option<UnknownReason>, ExplainError> {
        for (asked, &(rank, pair)) in pairs.iter().enumerate() {
            let differs_little = self.found.iter().any(|candidate| candidate.cost.0 <= FEW);
            let enough = self.found.len() >= self.wanted.alternates;
            if enough && (differs_little || asked >= ASKED || rank != Rank::Core) {
                return Ok(None);
            }
            if context.effort.expired() {
                return Ok(Some(UnknownReason::TimeOut));
            }
            match solve(context, asker, self.failing, pair)? {
                Answer::Passes(schedule) => {
                    let order = nearest(context, self.failing, schedule.order);
                    self.add(context, order);
                }
                Answer::None(_) | Answer::OtherInputs => {}
                Answer::Unknown(reason) => {
                    self.unknown += 1;
                    if self.found.is_empty() && self.unknown >= ASKED {
                        return Ok(Some(reason));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Keeps the candidates that show least.
    fn choose(
        mut self,
        context: &mut Context<'_, '_>,
        pairs: &[(Rank, Order)],
        cut: Option<UnknownReason>,
    ) -> Result<Found, ExplainError> {
        let mut ranked = Vec::new();
        for candidate in std::mem::take(&mut self.found) {
            // One that shows more than it has to is better than none, and each of them takes its time.
            if context.effort.expired() && ranked.len() >= self.wanted.alternates {
                break;
            }
            if let Some(shown) = self.project(context, candidate.order, pairs)? {
                ranked.push(shown);
            }
        }
        ranked.sort_by_key(|(cost, ..)| *cost);
        let mut alternates =
            Alternates { found: Vec::new(), tried: self.tried, unknown: self.unknown };
        let mut dsps: Vec<Dsp> = Vec::new();
        for (_, alternate, dsp) in ranked {
            let shown = |other: &Dsp| other.same_data_flow(&dsp);
            let most = self.wanted.alternates.saturating_add(self.wanted.spare);
            if dsps.len() < most && !dsps.iter().any(shown) {
                alternates.found.push(alternate);
                dsps.push(dsp);
            }
        }
        // What stayed open matters only when something is missing.
        let cut = cut.filter(|_| dsps.len() < self.wanted.alternates);
        Ok(Found { alternates, dsps, cut })
    }

    /// The DSP of a schedule, with the reversed pair that shows the least beside the data flow.
    fn project(
        &self,
        context: &mut Context<'_, '_>,
        order: Vec<EventId>,
        pairs: &[(Rank, Order)],
    ) -> Result<Option<(Cost, Alternate, Dsp)>, ExplainError> {
        let evaluation = context.passing(&order)?;
        let places = positions(context.trace, &order);
        let shown = self.failing.varying(context.trace, &evaluation);
        let reversed = pairs
            .iter()
            .filter(|(_, pair)| places[pair.before.index()] > places[pair.after.index()]);
        let missing =
            |pair: &Order| [pair.before, pair.after].iter().filter(|e| !shown.contains(e)).count();
        // That a local variable had ended is in no data flow.
        let ends = |pair: &Order| {
            self.core.contains(pair) && context.trace.ends_local(context.trace.event(pair.before))
        };
        let key = |(rank, pair): &&(Rank, Order)| (!ends(pair), missing(pair), *rank);
        let Some(&(rank, pair)) = reversed.min_by_key(key) else { return Ok(None) };
        let flipped = Order { before: pair.after, after: pair.before };
        let in_root_cause = self.core.contains(&pair);
        let schedule = Schedule { order };
        let alternate = Alternate { flipped, in_root_cause, schedule, evaluation };
        let dsp = differential(context.trace, self.failing, &alternate);
        let displaced = self.failing.displaced(&alternate.schedule.order);
        let (direct, all, operations, events) = dsp.size();
        let lost = lost_updates(context.trace, &alternate.schedule.order, |id| shown.contains(&id));
        let cost = Cost {
            flows: (direct, all),
            lost,
            shown: (operations, events),
            indirect: !self.failing.is_decided_by(&dsp),
            interrupted: interrupted(context.trace, &dsp),
            rank,
            distance: self.failing.distance(pair),
            displaced,
            pair,
        };
        Ok(Some((cost, alternate, dsp)))
    }
}

/// What the alternate to show is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    flows: (usize, usize),
    lost: usize,
    shown: (usize, usize),
    indirect: bool,
    interrupted: usize,
    rank: Rank,
    distance: (u32, u32),
    displaced: usize,
    pair: Order,
}

/// How many updates a schedule loses among the events of interest: a thread writes what it computed
/// from a value that another thread has overwritten meanwhile. A schedule that passes only in spite of
/// that is no example to follow.
fn lost_updates(
    trace: &EventTrace,
    order: &[EventId],
    of_interest: impl Fn(EventId) -> bool,
) -> usize {
    struct Begun {
        read: EventId,
        overwritten: bool,
    }
    let mut begun: BTreeMap<CellId, BTreeMap<ThreadId, Begun>> = BTreeMap::new();
    let mut lost = 0;
    for &id in order {
        let Event { thread, kind, .. } = trace.event(id);
        for part in kind.reads() {
            let begun = begun.entry(part.cell).or_default();
            begun.insert(*thread, Begun { read: id, overwritten: false });
        }
        for part in kind.writes() {
            let Some(begun) = begun.get_mut(&part.cell) else { continue };
            let own = begun.remove(thread).filter(|own| own.overwritten);
            let own = own.filter(|own| of_interest(own.read) || of_interest(id));
            lost += usize::from(own.is_some_and(|own| feeds(trace, own.read, id, part.cell)));
            begun.values_mut().for_each(|other| other.overwritten = true);
        }
    }
    lost
}

/// How many reads have a value in the alternate only that another thread wrote, though the thread wrote the cell before
/// itself: that the value does no harm may be luck, and one in which nobody comes in between is the better example.
fn interrupted(trace: &EventTrace, dsp: &Dsp) -> usize {
    let comes_between = |flow: &&DataFlow| {
        let WriteSource::Write(source) = flow.write else { return false };
        let reader = trace.thread_of(flow.read.event);
        let parts = trace.event(flow.read.event).kind.reads();
        let Some(part) = parts.get(flow.read.part as usize) else { return false };
        let writes =
            |id: &EventId| trace.event(*id).kind.writes().iter().any(|w| w.cell == part.cell);
        trace.thread_of(source).id != reader.id
            && reader.events.iter().take_while(|id| **id != flow.read.event).any(writes)
    };
    dsp.alternate_only.iter().filter(comes_between).count()
}

/// Asks the session for a schedule with the pair reversed that keeps as many of the failing
/// schedule's other orders as it can, those of memory before those of synchronisation.
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
    let locks = failing.conflicts.iter().filter(|o| matches!(o.kind, OrderKind::Lock(_)));
    let locks: BTreeSet<Order> = locks.map(|o| o.order).collect();
    for _ in 0..ROUNDS {
        match asker.passes(context, &orders, Share::Small)? {
            Answer::None(core) if core.iter().all(|o| *o == flipped) => {
                return Ok(Answer::None(core));
            }
            Answer::None(core) => {
                let only_locks = core.iter().any(|o| locks.contains(o));
                let given_up = |o: &Order| core.contains(o) && (!only_locks || locks.contains(o));
                orders.retain(|o| *o == flipped || !given_up(o));
            }
            Answer::Unknown(_) => break,
            found => return Ok(found),
        }
    }
    asker.passes(context, &[flipped], Share::Small)
}

/// With the pair reversed, does the order close a cycle with program order?
fn contradicts(failing: &Failing, order: Order, pair: Order) -> bool {
    let reaches = |a: EventId, b: EventId| a == b || failing.happens_before.before(a, b);
    reaches(pair.before, order.before) && reaches(order.after, pair.after)
}
