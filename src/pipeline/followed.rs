//! Failing schedules made by what the recorded run's log and clock tell, for traces in which threads meet often.

use super::PipelineError;
use super::budget::Budget;
use super::contended::{FEWER, FewPlaces, NEAR, is_complete};
use super::work::{Explained, Work};
use encoders::ConstraintSystem;
use explain::{Clock, context_switches};
use model::evaluate::{Check, Evaluator};
use model::{EventId, EventKind, EventTrace, ObjectId, Schedule, VarId};
use solver::{Model, Order, UnknownReason};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

/// Making a schedule, and taking context switches from it, may take so much of the time that is left each...
const PART: u32 = 5;
/// ...and no longer than that.
const LONGEST: Duration = Duration::from_secs(60);
/// So long a look near the recorded run may take where one is known that passes.
const WITH_PASSING: Duration = Duration::from_secs(5);
/// So many events are executed in search of alternates without the solver, which has few steps to order here.
const ALTERNATES: u64 = 10_000_000;
/// So many events are executed to have updates happen without a break.
const WHOLE: u64 = 4_000_000_000;
/// With more sources the constraints on all schedules take more time and memory than there is: where a look near the
/// recorded run led to nothing, and where there was none.
pub(super) const HOPELESS: (u64, u64) = (2_000_000, 20_000_000);
/// Where the schedules near the recorded run have more sources than that, one that passes is enough to explain it.
const MANY: u64 = 1_000_000;
/// And than that where they have hardly fewer than all schedules.
const MANY_OF_ALL: u64 = 250_000;
/// Taking context switches goes on while one of so many is gone.
const WORTH: usize = 50;

/// A failing schedule that follows the recorded run, but for updates that were made whole.
pub(super) struct Followed {
    failing: Schedule,
    /// One that passes and differs in one update more that is whole, or in one pair.
    passing: Option<Schedule>,
    /// Its root cause was looked for near the recorded run, and not found, or there are too many schedules there, too.
    is_near_no_help: bool,
}

impl Followed {
    /// Is it hopeless to look at all schedules, whose reads have so many sources?
    pub(super) fn is_all_there_is(&self, sources: u64) -> bool {
        sources > HOPELESS.1 || (self.is_near_no_help && sources > HOPELESS.0)
    }
}

/// Says by what a failing schedule was explained where other schedules could not be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByUpdate {
    /// By one that passes because one update is whole, or one pair comes the other way round.
    Passing,
    /// By one that passes because one pair comes the other way round.
    Turned,
    /// By the last update that another thread gets into, or what another thread wrote last.
    Last,
}

/// What no read fixes, as the recorded run had it; 0 where that is not known.
pub(super) fn recorded(trace: &EventTrace) -> impl Fn(VarId) -> Option<u128> + '_ {
    |var| Some(trace.recorded_value(var))
}

/// Why not all schedules were looked at.
pub(super) fn too_many() -> UnknownReason {
    UnknownReason::GaveUp("there are too many schedules to look at".to_owned())
}

impl fmt::Display for ByUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passing => {
                "threads meet so often here that one update alone was made whole, or one pair of events turned \
                 round, and the run passes then; that the orderings shown always lead to the failure was not shown"
            }
            Self::Turned => {
                "threads meet so often here that one pair of events alone was turned round, and the run passes then; \
                 that the orderings shown always lead to the failure was not shown"
            }
            Self::Last => {
                "threads meet so often here that no schedule along these paths was found that passes: the cause is \
                 the last update of what the failure depends on that another thread gets into, or where there is \
                 none the last write of another thread that the failure reads, and that it leads to the failure was \
                 not shown"
            }
        })
    }
}

impl Work<'_> {
    /// Explains the schedule that follows the recorded run by an update, where nothing else led to an answer. `None`
    /// where there is no such schedule.
    pub(super) fn explain_by_update<'t>(
        &mut self,
        trace: &'t EventTrace,
        reason: UnknownReason,
        budget: &Budget,
    ) -> Option<Explained<'t>> {
        let Followed { failing, passing, .. } = self.followed.take()?;
        let started = Instant::now();
        let explained =
            explain::explain_by_update(trace, &failing, passing.as_ref(), reason, &|| {
                budget.is_left()
            });
        let mut explanation = match explained {
            Ok(explanation) => explanation,
            // Without it there is no answer either, which says so itself.
            Err(error) => {
                tracing::info!(%error, "not explained by an update");
                return None;
            }
        };
        explanation.clock = Clock::Followed;
        tracing::info!(passes = passing.is_some(), "explained by an update");
        self.by_update = match (&explanation.root_cause, passing) {
            (None, _) => None,
            (Some(_), Some(_)) => Some(ByUpdate::Passing),
            (Some(_), None) if !explanation.alternates.found.is_empty() => Some(ByUpdate::Turned),
            (Some(_), None) => Some(ByUpdate::Last),
        };
        self.timing.root_cause += started.elapsed();
        let size = ConstraintSystem::default().size(trace);
        let explained = Explained { trace: Cow::Borrowed(trace), size, explanation };
        self.note_clock(&explained);
        Some(explained)
    }

    /// Explains a failing schedule that is like the recorded run by schedules that switch threads near where it
    /// does. `None` where none is found, and where it does so too often.
    pub(super) fn explain_followed<'t>(
        &mut self,
        trace: &'t EventTrace,
        is_strict: bool,
        (sources, switch_work): (u64, u64),
        budget: &Budget,
    ) -> Result<Option<Explained<'t>>, PipelineError> {
        let started = Instant::now();
        let Some(found) = self.follow(trace, is_strict, budget)? else { return Ok(None) };
        let (whole, passing) = match switch_work {
            0 => (found, None),
            _ => self.wrong_in_one_place(trace, found, budget),
        };
        if self.is_rejected(&whole) {
            return Ok(None);
        }
        if let Some(explained) = self.explain_end(trace, &whole, passing.as_ref(), budget)? {
            return Ok(Some(explained));
        }
        let followed = Followed { failing: whole.clone(), passing, is_near_no_help: false };
        self.followed = Some(followed);
        if self.looks_across_first(trace)
            && self.followed.as_ref().is_some_and(|it| it.passing.is_none())
            && let Some(explained) = self.explain_by_update(trace, too_many(), budget)
        {
            self.only_end = true;
            return Ok(Some(explained));
        }
        let schedule = match switch_work {
            0 => whole,
            _ => self.with_fewer_switches(trace, whole, switch_work, budget),
        };
        if self.is_rejected(&schedule) {
            return Ok(None);
        }
        let Some(coarse) = encoders::coarsen_near(trace, NEAR, &schedule) else { return Ok(None) };
        let (steps, of_steps) = (coarse.trace.events.len(), encoders::sources(&coarse.trace));
        tracing::info!(steps, of_steps, "looks near the recorded run");
        let hardly_fewer = of_steps > sources / FEWER;
        if of_steps > (if hardly_fewer { MANY_OF_ALL } else { MANY })
            && self.followed.as_ref().is_some_and(|it| it.passing.is_some())
        {
            self.timing.solve += started.elapsed();
            return Ok(self.explain_by_update(trace, too_many(), budget));
        }
        if let Some(followed) = &mut self.followed {
            followed.is_near_no_help = !hardly_fewer || of_steps > MANY;
        }
        if hardly_fewer || of_steps > HOPELESS.1 {
            return Ok(None);
        }
        let before = self.timing;
        self.timing.solve += started.elapsed();
        let options = explain::Options { alternate_work: ALTERNATES, ..self.explain_options(0) };
        let known = Model { schedule, ..Model::default() };
        // One that passes, and has one update more that is whole, is worth more than long questions.
        let has_passing = self.followed.as_ref().is_some_and(|it| it.passing.is_some());
        let part = budget.part(if has_passing { WITH_PASSING } else { self.left() });
        let mut explained = match self.explain_steps(trace, (&coarse, Some(known)), &options, &part)
        {
            Ok(explained) => explained,
            // There are other ways, which say so themselves where it is not for this one alone.
            Err(error) => {
                tracing::info!(%error, "no root cause near the recorded run");
                self.timing = before;
                return Ok(None);
            }
        };
        explained.explanation.clock = Clock::Followed;
        let complete = is_complete(&explained.explanation);
        tracing::info!(complete, "explained near the recorded run");
        if !complete && has_passing {
            self.timing = before;
            return Ok(self.explain_by_update(trace, too_many(), budget));
        }
        self.few_places = complete.then(|| FewPlaces::of(trace, &coarse));
        Ok(Some(explained))
    }

    /// A failing schedule by what the log and the clock tell of the recorded run.
    pub(super) fn follow(
        &self,
        trace: &EventTrace,
        is_strict: bool,
        budget: &Budget,
    ) -> Result<Option<Schedule>, PipelineError> {
        if trace.intervals.is_empty() || !self.has_coarse_sessions() || !budget.is_left() {
            return Ok(None);
        }
        let system = encoders::encode_recorded_orders(trace)?;
        let orders = explain::orders_of_run(trace);
        let found = solver::follow(trace, &system, &orders, is_strict, self.for_a_share(budget));
        let mut evaluator = Evaluator::new(trace);
        let check = found.as_ref().map(|found| evaluator.check(&found.order, &recorded(trace)));
        tracing::info!(?check, "followed the recorded run");
        if check == Some(Check::OffPath) {
            let unmet = evaluator.unmet();
            for condition in trace.conditions.iter().filter(|it| unmet.contains(&it.expr)).take(3) {
                let vars = trace.exprs.variables(condition.expr);
                let vars = vars.iter().take(4).map(|var| &trace.variables[var.index()]);
                tracing::debug!(
                    unmet = unmet.len(),
                    kind = ?condition.kind,
                    site = ?condition.site,
                    vars = ?vars.collect::<Vec<_>>(),
                    "does not hold along the recorded run"
                );
            }
        }
        let found = found.filter(|_| check == Some(Check::Fails));
        Ok(found.filter(|found| !self.is_rejected(found)))
    }

    /// A schedule by what the log and the clock tell of the recorded run, whatever it leads to, or its beginning;
    /// see [`solver::follow_loosely`]. With the failing thread's last accesses `last`, as far as that may be: the clock does
    /// not tell whether they came right behind the step before them or when the run ended.
    pub(super) fn follow_loosely(
        &self,
        trace: &EventTrace,
        last: bool,
        budget: &Budget,
    ) -> Result<Option<Schedule>, PipelineError> {
        if trace.intervals.is_empty() {
            return Ok(None);
        }
        let mut orders = explain::orders_of_run(trace);
        let mut trace = Cow::Borrowed(trace);
        if last {
            let own = ending(&trace);
            // Whether they came before the object's end is what is asked.
            trace.to_mut().lifetimes.retain(|(access, _)| !own.contains(access));
            orders.extend(behind_others(&trace, &own));
        }
        let system = encoders::encode_recorded_orders(&trace)?;
        let goes_on = self.for_a_share(budget);
        let (schedule, spared) = solver::follow_loosely(&trace, &system, &orders, goes_on);
        tracing::info!(events = schedule.order.len(), spared, "followed the recorded run loosely");
        Ok(Some(schedule))
    }

    /// Makes updates whole that others get into, or turns pairs round that are wrong in many rounds, but for one, and one
    /// that passes and differs in that, where there is one.
    fn wrong_in_one_place(
        &self,
        trace: &EventTrace,
        schedule: Schedule,
        budget: &Budget,
    ) -> (Schedule, Option<Schedule>) {
        let goes_on = self.for_a_share(budget);
        let whole = explain::with_whole_updates(trace, &schedule, WHOLE, &goes_on);
        let (whole, passing) = whole.unwrap_or((schedule, None));
        if passing.is_some() {
            return (whole, passing);
        }
        let goes_on = self.for_a_share(budget);
        match explain::with_turned_pairs(trace, &whole, &goes_on) {
            Some((failing, passing)) => (failing, Some(passing)),
            None => (whole, None),
        }
    }

    /// Takes context switches from a failing schedule: what it does between two of them is moved as a whole.
    fn with_fewer_switches(
        &self,
        trace: &EventTrace,
        mut schedule: Schedule,
        switch_work: u64,
        budget: &Budget,
    ) -> Schedule {
        let goes_on = self.for_a_share(budget);
        let mut known = context_switches(trace, &schedule);
        loop {
            let fewer = encoders::coarsen_near(trace, 0, &schedule).and_then(|coarse| {
                let steps = coarse.project(&schedule)?;
                let (trace, work) = (&coarse.trace, switch_work);
                let fewer = explain::with_fewer_switches(trace, &steps, work, &goes_on)?;
                Some(coarse.schedule(&fewer))
            });
            let Some(fewer) = fewer else { return schedule };
            let switches = context_switches(trace, &fewer);
            tracing::debug!(known, switches, "fewer context switches");
            if switches >= known {
                return schedule;
            }
            let gone = known - switches;
            schedule = fewer;
            if gone <= known / WORTH || !goes_on() {
                return schedule;
            }
            known = switches;
        }
    }

    /// Says whether a part of the work may go on.
    fn for_a_share<'b>(&self, budget: &'b Budget) -> impl Fn() -> bool + use<'b> {
        let until = self.share();
        move || budget.is_left() && Instant::now() < until
    }

    /// Until when a part of the work may take.
    fn share(&self) -> Instant {
        Instant::now() + (self.left() / PART).min(LONGEST)
    }
}
/// What the failing thread accessed last, behind all that another thread could have waited for; the last first.
fn ending(trace: &EventTrace) -> Vec<EventId> {
    let Some(failure) = &trace.failure else { return Vec::new() };
    let failing = trace.event(failure.event);
    let own = &trace.threads[failing.thread.index()].events[..failing.index as usize];
    let is_access = |id: &EventId| {
        matches!(trace.event(*id).kind, EventKind::Read { .. } | EventKind::Write { .. })
    };
    // Nobody waits for a lock that no other thread takes, such as that of who throws an exception.
    let others = trace.events.iter().filter(|event| event.thread != failing.thread);
    let shared: BTreeSet<ObjectId> = others.filter_map(|event| event.kind.object()).collect();
    let is_own = |id: &EventId| match &trace.event(*id).kind {
        kind @ (EventKind::Lock { .. } | EventKind::Unlock { .. }) => {
            kind.object().is_some_and(|lock| !shared.contains(&lock))
        }
        _ => false,
    };
    let accesses = own.iter().rev().copied().skip_while(|id| is_given_up(trace, *id));
    let accesses = accesses.filter(|id| !is_own(id));
    accesses.take_while(is_access).collect()
}

/// "What the others did comes before that."
fn behind_others(trace: &EventTrace, own: &[EventId]) -> Vec<Order> {
    let Some(&after) = own.last() else { return Vec::new() };
    let others = trace.threads.iter().filter(|thread| thread.id != trace.event(after).thread);
    let last =
        others.filter_map(|thread| thread.events.iter().rfind(|id| !is_given_up(trace, **id)));
    last.map(|before| Order { before: *before, after }).collect()
}

/// Is it a lock that a thread still held when the run ended?
fn is_given_up(trace: &EventTrace, id: EventId) -> bool {
    matches!(trace.event(id).kind, EventKind::Unlock { synthetic: true, .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    #[test]
    fn a_lock_that_nobody_else_takes_ends_no_accesses() {
        let text = |second: &str| {
            format!(
                "
                a: lock names
                a: [found] R name -> p
                a: unlock names
                a: [read] R letters -> c
                a: lock own
                a: [count] W count 1
                a: unlock own
                a: fail c == 0
                b: lock {second}
                b: W letters 0
                b: unlock {second}
                "
            )
        };
        let last = |second: &str| {
            let parsed = parse(&text(second)).expect("the text is a trace");
            let named = ["found", "read", "count"];
            let label = |id: &EventId| named.into_iter().find(|name| parsed.event(name) == *id);
            ending(&parsed.trace).iter().filter_map(label).collect::<Vec<_>>()
        };
        assert_eq!(last("names"), ["count", "read"]);
        assert_eq!(last("own"), Vec::<&str>::new(), "the other thread may have waited for it");
    }
}
