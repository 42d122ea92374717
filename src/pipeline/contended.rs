//! Traces in which threads meet so often that their schedules cannot all be looked at.

use super::budget::Budget;
use super::followed::HOPELESS;
use super::work::{Explained, Work};
use super::{Backend, PipelineError};
use crate::answer;
use encoders::{Coarse, ConstraintSystem, EncodeError};
use explain::{Cut, CutReason, Explanation, FailingSchedule, Phase};
use model::{EventTrace, VarId};
use solver::{CoarseSession, Limits, Model, OrderingSession, Session, Z3Session};
use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};

/// With more sources of reads than that, schedules that switch threads at few places are looked at first.
pub(super) const CONTENDED: u64 = 20_000;
/// The same with more pairs of critical sections under one lock than that.
const MANY_SECTIONS: u64 = 1_000_000;
/// How often each way to go on from one place of the source to the next may be interrupted: where the first do
/// not lead to a failing schedule, the next may.
const ROUNDS: [u32; 2] = [3, 8];
/// The same near a schedule that is known.
pub(super) const NEAR: u32 = ROUNDS[0];
/// The coarse trace has to have so many times fewer sources.
pub(super) const FEWER: u64 = 4;
/// With more pairs of critical sections under one lock, the constraints on them take more time and memory than there
/// is: of a coarse trace, and of all schedules where one is known already.
pub(super) const SECTIONS: (u64, u64) = (100_000_000, 500_000_000);
/// One question may take so much of the time that is left...
const PART: u32 = 6;
/// ...and no longer than that.
const LONGEST: Duration = Duration::from_secs(20);
/// The same where a failing schedule is known.
const KNOWN: (u32, Duration) = (3, Duration::from_secs(40));

/// Says that only schedules were looked at that switch threads at few places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FewPlaces {
    /// Events that the schedules do at once.
    steps: usize,
    /// Events of the trace.
    events: usize,
}

impl FewPlaces {
    pub(super) fn of(trace: &EventTrace, coarse: &Coarse) -> Self {
        Self { steps: coarse.trace.events.len(), events: trace.events.len() }
    }
}

impl fmt::Display for FewPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, events } = self;
        write!(
            f,
            "threads meet so often here that only schedules were compared that interrupt them at few places \
             ({events} events in {steps} steps); that the root cause always leads to the failure was shown for these"
        )
    }
}

impl Work<'_> {
    /// Explains the failure by schedules that switch threads at few places, where there are too many others to
    /// look at. `None` where the trace is not like that, and where that does not lead to a root cause; a failing
    /// schedule that was found without one is left in `partial`.
    pub(super) fn explain_coarse<'t>(
        &mut self,
        trace: &'t EventTrace,
        switch_work: u64,
        budget: &Budget,
        partial: &mut Option<Explained<'t>>,
    ) -> Result<Option<Explained<'t>>, PipelineError> {
        let sources = encoders::sources(trace);
        let contended = || {
            sources >= CONTENDED
                || encoders::section_pairs(trace) >= MANY_SECTIONS
                || encoders::is_often_woken(trace)
        };
        if !self.has_coarse_sessions() || !contended() {
            return Ok(None);
        }
        let mut followed = None;
        let mut few_places = true;
        for (rounds, is_strict) in ROUNDS.into_iter().zip([true, false]) {
            if !budget.is_left() {
                break;
            }
            let near = (sources, switch_work);
            if followed.is_none()
                && self.followed.is_none()
                && let Some(explained) = self.explain_followed(trace, is_strict, near, budget)?
            {
                if is_complete(&explained.explanation) || self.only_end {
                    self.note_clock(&explained);
                    return Ok(Some(explained));
                }
                followed = Some(explained);
            }
            if !few_places {
                continue;
            }
            // With more cuts there are more sources.
            few_places = false;
            let Some(coarse) = encoders::coarsen(trace, rounds) else { continue };
            let few = encoders::sources(&coarse.trace);
            tracing::info!(
                events = trace.events.len(),
                sources,
                steps = coarse.trace.events.len(),
                of_steps = few,
                "coarsened"
            );
            if few > sources / FEWER || few > HOPELESS.1 {
                continue;
            }
            let before = self.timing;
            match self.explain_steps(
                trace,
                (&coarse, None),
                &self.explain_options(switch_work),
                budget,
            ) {
                Err(PipelineError::Encode(EncodeError::BudgetSpent)) => {}
                Err(error) => return Err(error),
                Ok(explained) if is_complete(&explained.explanation) => {
                    (self.few_places, self.by_update) = (Some(FewPlaces::of(trace, &coarse)), None);
                    return Ok(Some(explained));
                }
                Ok(explained) => {
                    let verdict = &explained.explanation.verdict;
                    tracing::info!(?verdict, "no root cause at few places");
                    self.timing = before;
                    few_places = true;
                    if explained.explanation.failing.is_some() {
                        *partial = Some(explained);
                    }
                }
            }
        }
        // One that may have more orders than it takes is better than none.
        let tells = |explained: &Explained<'_>| !explained.explanation.alternates.found.is_empty();
        let followed = followed.filter(tells);
        followed.iter().for_each(|explained| self.note_clock(explained));
        Ok(followed)
    }

    /// With schedules ruled out besides, nothing shows what the clock is good for.
    pub(super) fn note_clock(&mut self, explained: &Explained<'_>) {
        if self.rejected.is_empty() {
            self.clock = explained.explanation.clock;
        }
    }

    /// Explains a failing schedule whose root cause was not found, or not shown to be minimal, in time, by schedules
    /// that switch threads where it does. `None` where that does not lead to a root cause either.
    pub(super) fn explain_near<'t>(
        &mut self,
        trace: &'t EventTrace,
        found: &Explained<'t>,
        budget: &Budget,
    ) -> Result<Option<Explained<'t>>, PipelineError> {
        let limited =
            |cut: &Cut| cut.phase == Phase::RootCause && matches!(cut.reason, CutReason::Limit(_));
        let Some(failing) = &found.explanation.failing else { return Ok(None) };
        if !self.has_coarse_sessions() || !found.explanation.cut.iter().any(limited) {
            return Ok(None);
        }
        let coarse = encoders::coarsen_near(trace, NEAR, &failing.schedule);
        let Some(coarse) = coarse else { return Ok(None) };
        let hardly_fewer = encoders::sources(&coarse.trace) > encoders::sources(trace) / FEWER;
        if hardly_fewer {
            return Ok(None);
        }
        tracing::info!(steps = coarse.trace.events.len(), "looks near the failing schedule");
        let explained = match self.explain_steps(
            trace,
            (&coarse, Some(as_model(failing))),
            &self.explain_options(0),
            budget,
        ) {
            Ok(explained) => explained,
            // What was found is kept.
            Err(error) => {
                tracing::info!(%error, "no root cause near the failing schedule");
                return Ok(None);
            }
        };
        let complete = is_complete(&explained.explanation);
        self.few_places = complete.then(|| FewPlaces::of(trace, &coarse));
        Ok(complete.then_some(explained))
    }

    /// A session of the back end, where the solver can be asked about parts of a trace
    /// ([`has_coarse_sessions`](Self::has_coarse_sessions)).
    pub(super) fn session<'s>(
        &self,
        trace: &'s EventTrace,
        system: &'s ConstraintSystem,
        limits: Limits,
    ) -> Result<Box<dyn Session + 's>, PipelineError> {
        Ok(match self.options.backend {
            Backend::Z3 => {
                Box::new(Z3Session::new(trace, system, limits)?.ending_at(self.deadline))
            }
            _ => Box::new(OrderingSession::until(trace, system, limits, self.deadline)),
        })
    }

    /// Can the solver be asked about coarse traces? What is written of the constraints is of the whole one.
    pub(super) fn has_coarse_sessions(&self) -> bool {
        matches!(self.options.backend, Backend::Ordering | Backend::Z3)
            && self.options.dump_smt.is_none()
    }

    /// Explains the failure, or a failing schedule of it that is known, by the schedules of a coarse trace.
    pub(super) fn explain_steps<'t>(
        &mut self,
        trace: &'t EventTrace,
        (coarse, known): (&Coarse, Option<Model>),
        options: &explain::Options,
        budget: &Budget,
    ) -> Result<Explained<'t>, PipelineError> {
        let started = Instant::now();
        let pairs = encoders::section_pairs(&coarse.trace);
        if pairs > SECTIONS.0 {
            tracing::info!(pairs, "too many critical sections");
            return Err(EncodeError::BudgetSpent.into());
        }
        let mut system = encoders::encode_within(&coarse.trace, false, &|| budget.is_left())?;
        for orders in &self.rejected {
            let image = |(before, after): &(_, _)| {
                let pair = (coarse.image(*before)?, coarse.image(*after)?);
                // Within one event they are as the thread does them.
                (pair.0 != pair.1).then_some(pair)
            };
            let orders: Vec<_> = orders.iter().filter_map(image).collect();
            system.reject(&orders);
        }
        tracing::info!(constraints = system.constraints.len(), "encoded");
        let limits = Limits {
            time: Some(match known {
                None => (self.left() / PART).min(LONGEST),
                Some(_) => (self.left() / KNOWN.0).min(KNOWN.1),
            }),
            memory_mb: self.options.memory_mb,
        };
        let inner = self.session(&coarse.trace, &system, limits)?;
        let mut session = CoarseSession::new(trace, coarse, inner);
        let clock = answer::PhaseClock::start(started);
        let limit = budget;
        let budget = || limit.is_left();
        let mut explanation = match known {
            None => {
                let begins = |phase| clock.enter(phase);
                let sessions = (&mut session as &mut dyn Session, None);
                let followed = || None;
                explain::explain_with(
                    trace, &system, sessions, options, &budget, &begins, &followed,
                )?
            }
            Some(found) => {
                clock.enter(Phase::RootCause);
                explain::explain_from(trace, &system, &mut session, &found, options, &budget)?
            }
        };
        drop(session);
        limit.name(&mut explanation);
        clock.finish(&mut self.timing);
        let size = system.size(&coarse.trace);
        Ok(Explained { trace: Cow::Borrowed(trace), size, explanation })
    }
}

/// A failing schedule as a solver gives it.
fn as_model(failing: &FailingSchedule) -> Model {
    let values = failing.evaluation.values.iter().enumerate();
    let values = values.filter_map(|(index, value)| Some((VarId::from_index(index), (*value)?)));
    Model {
        schedule: failing.schedule.clone(),
        reads_from: failing.evaluation.reads_from.clone(),
        values: values.collect(),
    }
}

/// Is there a root cause that was shown to be one?
pub(super) fn is_complete(explanation: &Explanation) -> bool {
    explanation.root_cause.is_some()
        && !explanation.cut.iter().any(|cut| cut.phase == Phase::RootCause)
}
