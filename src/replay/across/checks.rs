//! Runs in which a check of the program's own goes the other way, where what the failing run ended with is what such a
//! check had found, whatever its threads did afterwards.
//!
//! A program that counts what is inconsistent and exits with a bad status at the end fails under every schedule of the
//! recorded paths: they count the same. And in a run that passes nearly everything may differ, since its loops go round
//! another number of times. So a check is looked for that went a way which it goes in no run that passes, and the orders
//! that lead to it are tried the other way round.

use super::{CrossAlternate, Failing, Plan, Search, Told};
use crate::replay::ReplayError;
use crate::replay::script::with_inputs;
use explain::{Explanation, Flip, Options, Side};
use model::{ConditionId, EventId, EventKind, EventTrace, Schedule, Thread, ThreadId};
use render::solution::Replay;
use schedule::{Target, Turn};
use solver::{Limits, Model, OrderingSession};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// So many runs that pass tell the ways that checks go then, ...
const PASSING: usize = 3;
/// ... of so many at most.
const RUNS: u64 = 8;
/// So many checks at most are tried, ...
const CHECKS: usize = 3;
/// ... and so many orders of each, ...
const ORDERS: usize = 6;
/// ... of so many that are looked for.
const FOUND: usize = 16;
/// The orders of one part are looked for no longer than this.
const PATIENCE: Duration = Duration::from_secs(3);

impl Search<'_> {
    /// The run that passes and differs least of those in which a check goes the other way, confirmed by another run.
    /// `None` where there is no such check, or none of these runs passes.
    pub(super) fn by_checks(&mut self) -> Result<Option<CrossAlternate>, ReplayError> {
        let failing = self.failing;
        let Failing { trace, schedule, evaluation, .. } = *failing;
        let side = Side { trace, schedule, evaluation, points: None };
        if !explain::may_tell_of_check(trace) || explain::goes_on_without_look(side) {
            return Ok(None);
        }
        // If no check tells, there is time for other ways.
        let until = Instant::now() + self.end.saturating_duration_since(Instant::now()) / 2;
        let ordinary = std::iter::once(Plan::Free).chain((1..RUNS).map(Plan::Shuffled));
        for plan in ordinary {
            let passed = self.passed.len() + self.not_compared;
            if passed >= PASSING || Instant::now() >= until {
                break;
            }
            self.try_out(&plan)?;
            self.made.push(plan);
        }
        let known = (failing.schedule, failing.evaluation);
        let passing: Vec<_> = self.passed.iter().map(|passed| &passed.trace).collect();
        let checks = explain::outcomes(failing.trace, known, &passing);
        for check in checks.into_iter().take(CHECKS) {
            if Instant::now() >= until {
                break;
            }
            let Some(before) = self.orders_before(check) else { continue };
            // Behind the check the same may happen again when all threads go on at will, and less when one does after the
            // other.
            for to_the_end in [false, true] {
                if let Some(found) = self.by_check(check, &before, to_the_end, until)? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// The confirmed run that passes and differs least, of those in which this check goes the other way. `None` where the
    /// run may pass although it went as it did, which is not why it failed then. Behind the check other threads go
    /// `to_the_end`, one after the other, before its own does, or all go on at will.
    fn by_check(
        &mut self,
        check: ConditionId,
        before: &Before,
        to_the_end: bool,
        until: Instant,
    ) -> Result<Option<CrossAlternate>, ReplayError> {
        let failing = self.failing;
        let own = failing.trace.conditions.get(check.index()).map(|condition| condition.thread);
        let goes = self.text_up_to(&before.goes, own, to_the_end);
        let attempt = self.attempt_with(&Plan::Goes(check), goes)?;
        if attempt.is_none_or(|(attempt, _)| !self.fails_alike(&attempt)) {
            return Ok(None);
        }
        let all = self.passed.len();
        for (flip, order) in &before.orders {
            if Instant::now() >= until {
                break;
            }
            let (plan, text) = (Plan::Check(*flip), self.text_up_to(order, own, to_the_end));
            if let Some((attempt, text)) = self.attempt_with(&plan, text)?
                && !super::failed(&attempt)
            {
                self.keep(&plan, &attempt, text, Told::Check(check));
            }
        }
        let mut found = self.passed.split_off(all);
        found.sort_by_cached_key(|passed| passed.key(failing.trace, None));
        for passed in found {
            let alternate = self.confirm(passed)?;
            if alternate.replay == Replay::Confirmed {
                return Ok(Some(alternate));
            }
        }
        Ok(None)
    }

    /// The text of an order of what comes before some event, and on: all threads at will, or each `to_the_end`, this one last.
    pub(super) fn text_up_to(
        &self,
        order: &[EventId],
        own: Option<ThreadId>,
        to_the_end: bool,
    ) -> String {
        let Failing { trace, points, inputs, .. } = *self.failing;
        let mut script = schedule::passing(trace, points, order).script;
        if to_the_end {
            let begun = |thread: &&Thread| {
                thread.parent.is_some()
                    && thread.events.first().is_some_and(|first| order.contains(first))
            };
            let mut threads: Vec<&Thread> = trace.threads.iter().filter(begun).collect();
            threads.sort_by_key(|thread| Some(thread.id) == own);
            let to_its_end = |thread: &Thread| Turn {
                thread: thread.name.clone(),
                target: Target::End,
                comment: None,
            };
            script.turns.extend(threads.into_iter().map(to_its_end));
        }
        with_inputs(script, inputs).to_string()
    }

    /// What leads to a check of the failing run. `None` where no order has it go the other way.
    fn orders_before(&self, check: ConditionId) -> Option<Before> {
        encoders::BEFORE_CHECK.iter().find_map(|most| self.orders_in(check, *most))
    }

    fn orders_in(&self, check: ConditionId, most: usize) -> Option<Before> {
        let Failing { trace: whole, schedule, evaluation, .. } = *self.failing;
        let (part, known) = encoders::up_to_check(whole, schedule, evaluation, check, most)?;
        let events = part.trace.events.len();
        let found = match explained(&part.trace, known.clone(), self.end) {
            Ok(explanation) => explanation.alternates.found,
            Err(error) => {
                tracing::debug!(%check, events, error, "what comes before a check is not explained");
                return None;
            }
        };
        tracing::debug!(%check, events, orders = found.len(), "a check");
        let begun: BTreeSet<EventId> = part.before().iter().copied().collect();
        let up_to = |schedule: &Schedule| {
            let comes_before = |id: &&EventId| part.trace.event(**id).kind != EventKind::Failure;
            let own = schedule.order.iter().take_while(comes_before).map(|id| part.event(*id));
            let mut order: Vec<EventId> = part.before().to_vec();
            order.extend(own.filter(|id| !begun.contains(id)));
            order
        };
        let orders = found.iter().map(|alternate| {
            let [before, after] = [alternate.flipped.after, alternate.flipped.before];
            let flip = Flip { before: part.event(before), after: part.event(after) };
            (flip, up_to(&alternate.schedule))
        });
        let mut orders: Vec<(Flip, Vec<EventId>)> = orders.collect();
        // The more others do first, the more may go wrong that has nothing to do with this check.
        let near = orders.len().min(ORDERS / 2);
        orders[near..].sort_by_key(|(_, order)| order.len());
        orders.truncate(ORDERS);
        (!orders.is_empty()).then(|| Before { goes: up_to(&known), orders })
    }
}

/// What leads to a check, as orders of the failing run's events.
struct Before {
    /// That of the failing schedule.
    goes: Vec<EventId>,
    /// Those in which it goes the other way, each with the pair that it reverses: some that differ least, and the shortest.
    orders: Vec<(Flip, Vec<EventId>)>,
}

/// The explanation of the part of a run up to a check, for its alternates.
fn explained(trace: &EventTrace, known: Schedule, end: Instant) -> Result<Explanation, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let until = end.min(Instant::now() + PATIENCE);
    let budget = || Instant::now() < until;
    let system = encoders::encode_within(trace, false, &budget).map_err(|error| text(&error))?;
    let limits = Limits { time: Some(PATIENCE), memory_mb: None };
    let mut session = OrderingSession::until(trace, &system, limits, Some(until));
    let options =
        Options { alternates: FOUND, switch_work: 0, time: PATIENCE, ..Options::default() };
    let known = Model { schedule: known, ..Model::default() };
    explain::explain_from(trace, &system, &mut session, &known, &options, &budget)
        .map_err(|error| text(&error))
}
