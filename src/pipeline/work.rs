//! Encoding, solving and explaining, again where replay or inputs make it necessary.

use super::budget::Budget;
use super::contended::{FewPlaces, SECTIONS};
use super::followed::{ByUpdate, Followed, too_many};
use super::window::End;
use super::{Backend, PipelineError, SolveOptions};
use crate::answer::{self, Timing};
use encoders::{ConstraintSystem, EncodeError, Slice, SystemSize};
use explain::{CauseKind, Explanation, FailingSchedule, Verdict};
use model::{EventId, EventTrace, Schedule};
use solver::{Goal, Limits, OrderingSession, Session, SmtLibSession, Z3Session};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// An explanation and what it is about.
#[derive(Debug)]
pub(super) struct Explained<'t> {
    /// The event trace; with fixed inputs, where that was necessary.
    pub(super) trace: Cow<'t, EventTrace>,
    /// How large the constraints were.
    pub(super) size: SystemSize,
    pub(super) explanation: Explanation,
}

/// Orders that must not hold all at once.
pub(super) type Rejected = Vec<(EventId, EventId)>;

/// One solve on its way.
pub(super) struct Work<'a> {
    pub(super) options: &'a SolveOptions,
    pub(super) deadline: Option<Instant>,
    pub(super) timing: Timing,
    /// The inputs were fixed to what the failing schedule has.
    pub(super) pinned: bool,
    /// What the program did not follow.
    pub(super) rejected: Vec<Rejected>,
    /// Failing schedules stay as near to the recorded run as they are found: with as many context switches.
    pub(super) as_found: bool,
    /// What the recorded run's clock was good for.
    pub(super) clock: explain::Clock,
    /// The schedules that were looked at switch threads at few places.
    pub(super) few_places: Option<FewPlaces>,
    /// The schedules that were looked at begin as the recorded run did.
    pub(super) end: Option<End>,
    /// Other schedules were not looked at.
    pub(super) by_update: Option<ByUpdate>,
    /// A failing schedule of the trace that is being explained, for when nothing else is found.
    pub(super) followed: Option<Followed>,
    /// Where the program does not follow the first failing schedule, what was freed is looked at before others are.
    pub(super) may_be_freed: bool,
    /// Where the end of a long run does not explain it, a run along other paths is looked for before all schedules are.
    pub(super) across_first: bool,
    /// That was so: schedules that differ from the recorded run elsewhere were not looked at.
    pub(super) only_end: bool,
}

impl Work<'_> {
    pub(super) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Explains the failure. When values that no read fixes (unknown initial values, results of
    /// uninstrumented code) could avoid it, they are fixed to what the failing schedule has, so
    /// that the cause is about orders alone.
    pub(super) fn explain<'t>(
        &mut self,
        trace: &'t EventTrace,
    ) -> Result<Explained<'t>, PipelineError> {
        let switch_work = match self.as_found {
            true => 0,
            false => explain::Options::default().switch_work,
        };
        let mut explained = self.explain_once(trace, switch_work)?;
        let failing = explained.explanation.failing.as_ref();
        if failing.is_some_and(|failing| self.is_rejected(&failing.schedule)) {
            // Reducing its context switches made it one that is known not to work.
            explained = self.explain_once(trace, 0)?;
        }
        let by_inputs = explained.by_inputs();
        match &explained.explanation.failing {
            Some(failing) if by_inputs => {
                tracing::info!("fixing the inputs to their values in the failing schedule");
                let pinned = explain::pin_inputs(trace, &failing.evaluation);
                self.pinned = true;
                Ok(self.explain_once(&pinned, switch_work)?.into_owned())
            }
            _ => Ok(explained),
        }
    }

    /// The time that is left.
    pub(super) fn left(&self) -> Duration {
        self.deadline.map_or(self.options.time, |deadline| {
            deadline.saturating_duration_since(Instant::now())
        })
    }

    pub(super) fn explain_options(&self, switch_work: u64) -> explain::Options {
        let limits = Limits { time: Some(self.options.time), memory_mb: None };
        explain::Options {
            alternates: self.options.alternates,
            spare: if self.options.replay.is_some() { SPARE } else { 0 },
            examined: explain::Options::default().examined.max(self.options.alternates),
            switch_work,
            time: limits.shared().unwrap_or(self.options.time),
            ..explain::Options::default()
        }
    }

    pub(super) fn is_rejected(&self, schedule: &Schedule) -> bool {
        let mut place = vec![0; schedule.order.len()];
        for (index, event) in schedule.order.iter().enumerate() {
            if let Some(place) = place.get_mut(event.index()) {
                *place = index;
            }
        }
        let at = |event: EventId| place.get(event.index()).copied().unwrap_or(0);
        let holds = |orders: &Rejected| orders.iter().all(|(a, b)| at(*a) < at(*b));
        self.rejected.iter().any(holds)
    }

    /// The system of the schedules that agree with what the recorded run's clock and log tell of it,
    /// where it had a clock, and the trace that it is about.
    fn recorded(
        &self,
        trace: &EventTrace,
        budget: &Budget,
    ) -> Result<Option<(EventTrace, ConstraintSystem)>, PipelineError> {
        let uses_clock = matches!(self.options.backend, Backend::Ordering | Backend::Z3);
        if trace.intervals.is_empty() || !uses_clock {
            return Ok(None);
        }
        let trace = encoders::with_recorded_values(trace);
        let mut system = encoders::encode_within(&trace, true, &|| budget.is_left())?;
        for orders in &self.rejected {
            system.reject(orders);
        }
        tracing::info!(constraints = system.constraints.len(), "encoded with the clock");
        Ok(Some((trace, system)))
    }

    /// Explains the part of the trace that matters, where that is much less than all of it, and all
    /// of it otherwise.
    fn explain_once<'t>(
        &mut self,
        trace: &'t EventTrace,
        switch_work: u64,
    ) -> Result<Explained<'t>, PipelineError> {
        if let Some(slice) = self.slice(trace)? {
            let before = self.timing;
            let rejected = self.rejected.clone();
            self.rejected = rejected.iter().map(|orders| within(&slice, orders)).collect();
            let found = self.explain_all(&slice.trace, switch_work);
            self.rejected = rejected;
            let Explained { size, explanation, .. } = found?;
            if let Some(explanation) = explain::widen(trace, &slice, explanation) {
                return Ok(Explained { trace: Cow::Borrowed(trace), size, explanation });
            }
            tracing::info!("a schedule of the slice is none of the whole trace");
            self.timing = before;
        }
        self.explain_all(trace, switch_work)
    }

    /// The part of the trace that matters; `None` when there is nothing to gain, or when the whole
    /// is asked for: the paper's encoding leaves nothing out, and a schedule that is ruled out by
    /// what is not in the slice would rule out too many.
    fn slice(&self, trace: &EventTrace) -> Result<Option<Slice>, PipelineError> {
        if trace.events.len() < SLICED || self.options.backend == Backend::Paper {
            return Ok(None);
        }
        let Some(slice) = encoders::slice_below(trace, trace.events.len() / 4 * 3)? else {
            return Ok(None);
        };
        let events = slice.trace.events.len();
        tracing::info!(events, of = trace.events.len(), "sliced");
        let known = |orders: &Rejected| within(&slice, orders).len() == orders.len();
        Ok(self.rejected.iter().all(known).then_some(slice))
    }

    fn explain_all<'t>(
        &mut self,
        trace: &'t EventTrace,
        switch_work: u64,
    ) -> Result<Explained<'t>, PipelineError> {
        let budget = Budget::new(self.deadline, self.options.memory_mb);
        (self.few_places, self.by_update, self.followed) = (None, None, None);
        (self.end, self.only_end) = (None, false);
        let mut partial = None;
        if let Some(explained) = self.explain_coarse(trace, switch_work, &budget, &mut partial)? {
            return Ok(explained);
        }
        let sources = encoders::sources(trace);
        let too_long = encoders::section_pairs(trace) > SECTIONS.1;
        if self.followed.as_ref().is_some_and(|it| too_long || it.is_all_there_is(sources))
            && let Some(explained) = self.explain_by_update(trace, too_many(), &budget)
        {
            return Ok(explained);
        }
        self.by_update = None;
        if let Some(partial) = partial.take_if(|_| !budget.is_left()) {
            return Ok(partial);
        }
        let explained = match self.explain_within(trace, switch_work, &budget) {
            Err(PipelineError::Encode(EncodeError::BudgetSpent)) => {
                tracing::info!(
                    "the constraints were not complete when the time or the memory was up"
                );
                let explanation = Explanation::unanswered(budget.reason());
                let size = ConstraintSystem::default().size(trace);
                Explained { trace: Cow::Borrowed(trace), size, explanation }
            }
            explained => explained?,
        };
        if let Verdict::Unknown(reason) = &explained.explanation.verdict
            && let Some(found) = self.explain_by_update(trace, reason.clone(), &budget).or(partial)
        {
            return Ok(found);
        }
        if let Some(near) = self.explain_near(trace, &explained, &budget)? {
            return Ok(near);
        }
        if explained.tells_little()
            && let Some(found) = self.explain_by_update(trace, too_many(), &budget)
        {
            return Ok(found);
        }
        Ok(explained)
    }

    fn explain_within<'t>(
        &mut self,
        trace: &'t EventTrace,
        switch_work: u64,
        budget: &Budget,
    ) -> Result<Explained<'t>, PipelineError> {
        let started = Instant::now();
        let mut system = match self.options.backend {
            Backend::Paper => encoders::encode_paper(trace)?,
            _ => encoders::encode_within(trace, false, &|| budget.is_left())?,
        };
        for orders in &self.rejected {
            system.reject(orders);
        }
        tracing::info!(constraints = system.constraints.len(), "encoded");
        if let Some(path) = &self.options.dump_smt {
            let script = solver::dump_smtlib(trace, &system, Goal::Fail)?;
            fs_err::write(path, script).map_err(PipelineError::Write)?;
        }
        let limits = Limits { time: Some(self.left()), memory_mb: self.options.memory_mb };
        let mut session: Box<dyn Session + '_> = match &self.options.backend {
            Backend::Ordering => {
                Box::new(OrderingSession::until(trace, &system, limits, self.deadline))
            }
            Backend::Z3 | Backend::Paper => {
                Box::new(Z3Session::new(trace, &system, limits)?.ending_at(self.deadline))
            }
            Backend::SmtLib(command) => {
                Box::new(SmtLibSession::new(trace, &system, command, limits)?)
            }
        };
        let recorded = self.recorded(trace, budget)?;
        let mut recorded: Option<Box<dyn Session + '_>> = match (&recorded, &self.options.backend) {
            (Some((trace, system)), Backend::Ordering) => {
                Some(Box::new(OrderingSession::until(trace, system, limits, self.deadline)))
            }
            (Some((trace, system)), Backend::Z3) => {
                Some(Box::new(Z3Session::new(trace, system, limits)?.ending_at(self.deadline)))
            }
            (None, _) | (_, Backend::SmtLib(_) | Backend::Paper) => None,
        };
        let limit = budget;
        let budget = || limit.is_left();
        let clock = answer::PhaseClock::start(started);
        let options = self.explain_options(switch_work);
        let likely: Option<&mut dyn Session> = match recorded.as_mut() {
            Some(recorded) => Some(recorded.as_mut()),
            None => None,
        };
        let all: &mut dyn Session = session.as_mut();
        let sessions = (all, likely);
        let begins = |phase| clock.enter(phase);
        // Without one the solver goes on looking.
        let followed = || self.follow(trace, true, limit).ok().flatten();
        let mut explanation =
            explain::explain_with(trace, &system, sessions, &options, &budget, &begins, &followed)?;
        drop((session, recorded));
        limit.name(&mut explanation);
        // With schedules ruled out besides, a contradiction does not show that the clock is wrong.
        if self.rejected.is_empty() {
            self.clock = explanation.clock;
        }
        clock.finish(&mut self.timing);
        Ok(Explained { trace: Cow::Borrowed(trace), size: system.size(trace), explanation })
    }
}

/// So many more alternates are kept for when the first ones are not what the program does.
const SPARE: usize = 5;

/// So many orders can be looked at by a person.
const FEW: usize = 8;

/// Traces with fewer events are explained as a whole.
const SLICED: usize = 2_000;

/// The orders whose events are in the slice, with their names there.
pub(super) fn within(slice: &Slice, orders: &Rejected) -> Rejected {
    let pairs = orders.iter().filter_map(|(a, b)| Some((slice.find(*a)?, slice.find(*b)?)));
    pairs.collect()
}

impl Explained<'_> {
    /// The same with a trace of its own.
    fn into_owned<'t>(self) -> Explained<'t> {
        Explained { trace: Cow::Owned(self.trace.into_owned()), ..self }
    }

    /// Are there many orders, of which not all may be needed, and no schedule that passes?
    fn tells_little(&self) -> bool {
        let Explanation { root_cause, alternates, .. } = &self.explanation;
        let many =
            root_cause.as_ref().is_some_and(|cause| !cause.minimal && cause.orders.len() > FEW);
        many && alternates.found.is_empty()
    }

    fn by_inputs(&self) -> bool {
        let cause = self.explanation.root_cause.as_ref();
        cause.is_some_and(|cause| cause.kind == CauseKind::Inputs)
    }

    /// What made this failing schedule fail: its root cause, or, where that is not known or asked
    /// for in full, all that makes it different from others.
    pub(super) fn cause_of(&self, failing: &FailingSchedule, in_full: bool) -> Rejected {
        let cause = self.explanation.root_cause.as_ref().map(|cause| cause.orders.as_slice());
        let pair = |order: &explain::ConflictOrder| (order.order.before, order.order.after);
        match cause {
            Some(orders) if !orders.is_empty() && !in_full => orders.iter().map(pair).collect(),
            _ => explain::conflict_orders(&self.trace, &failing.schedule, &failing.evaluation)
                .iter()
                .map(pair)
                .collect(),
        }
    }
}
