//! Failing schedules made by what the recorded run's log and clock tell, for traces in which threads meet often.

use super::PipelineError;
use super::budget::Budget;
use super::contended::{FEWER, FewPlaces, NEAR, is_complete};
use super::work::{Explained, Work};
use explain::{Clock, context_switches};
use model::evaluate::{Check, Evaluator};
use model::{EventTrace, Schedule, VarId};
use solver::Model;
use std::time::{Duration, Instant};

/// Making a schedule, and taking context switches from it, may take so much of the time that is left each...
const PART: u32 = 5;
/// ...and no longer than that.
const LONGEST: Duration = Duration::from_secs(60);
/// So many events are executed in search of alternates without the solver, which has few steps to order here.
const ALTERNATES: u64 = 10_000_000;
/// Taking context switches goes on while one of so many is gone.
const WORTH: usize = 50;

impl Work<'_> {
    /// Explains a failing schedule that is like the recorded run by schedules that switch threads near where it
    /// does. `None` where none is found, and where it does so too often.
    pub(super) fn explain_followed(
        &mut self,
        trace: &EventTrace,
        is_strict: bool,
        (sources, switch_work): (u64, u64),
        budget: &Budget,
    ) -> Result<Option<Explained>, PipelineError> {
        let started = Instant::now();
        let Some(found) = self.follow(trace, is_strict, budget)? else { return Ok(None) };
        let schedule = match switch_work {
            0 => found,
            _ => self.with_fewer_switches(trace, found, switch_work, budget),
        };
        if self.is_rejected(&schedule) {
            return Ok(None);
        }
        let Some(coarse) = encoders::coarsen_near(trace, NEAR, &schedule) else { return Ok(None) };
        let (steps, of_steps) = (coarse.trace.events.len(), encoders::sources(&coarse.trace));
        tracing::info!(steps, of_steps, "looks near the recorded run");
        if of_steps > sources / FEWER {
            return Ok(None);
        }
        let before = self.timing;
        self.timing.solve += started.elapsed();
        let options = explain::Options { alternate_work: ALTERNATES, ..self.explain_options(0) };
        let known = Model { schedule, ..Model::default() };
        let mut explained =
            match self.explain_steps(trace, (&coarse, Some(known)), &options, budget) {
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
        if trace.intervals.is_empty() || !self.has_coarse_sessions() {
            return Ok(None);
        }
        let system = encoders::encode_recorded_orders(trace)?;
        let until = self.share();
        let goes_on = || budget.is_left() && Instant::now() < until;
        let orders = explain::orders_of_run(trace);
        let found = solver::follow(trace, &system, &orders, is_strict, goes_on);
        let recorded = |var: VarId| {
            let of = trace.variables.get(var.index());
            Some(of.and_then(|of| of.recorded).unwrap_or(0))
        };
        let mut evaluator = Evaluator::new(trace);
        let check = found.as_ref().map(|found| evaluator.check(&found.order, &recorded));
        tracing::info!(?check, "followed the recorded run");
        let found = found.filter(|_| check == Some(Check::Fails));
        Ok(found.filter(|found| !self.is_rejected(found)))
    }

    /// Takes context switches from a failing schedule: what it does between two of them is moved as a whole.
    fn with_fewer_switches(
        &self,
        trace: &EventTrace,
        mut schedule: Schedule,
        switch_work: u64,
        budget: &Budget,
    ) -> Schedule {
        let until = self.share();
        let goes_on = || budget.is_left() && Instant::now() < until;
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

    /// Until when a part of the work may take.
    fn share(&self) -> Instant {
        Instant::now() + (self.left() / PART).min(LONGEST)
    }
}
