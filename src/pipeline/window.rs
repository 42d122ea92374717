//! Long runs that are explained by their end: by the schedules that begin as the recorded run did.

use super::PipelineError;
use super::budget::Budget;
use super::contended::{CONTENDED, NEAR, SECTIONS, is_complete};
use super::followed::recorded;
use super::work::{Explained, Work, within};
use crate::answer;
use encoders::Slice;
use explain::{CauseKind, Clock, CutReason, Explanation, Phase};
use model::evaluate::Evaluator;
use model::{EventTrace, Schedule};
use solver::{Limits, Model};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

/// With so many times more sources than other traces may have, the end is looked at in steps.
const EXACT: u64 = 5;
/// One question may take so much of the time that is left...
const PART: u32 = 6;
/// ...and no longer than that.
const LONGEST: Duration = Duration::from_secs(5);
/// All about one end may take so much of it...
const PART_OF_END: u32 = 8;
/// ...and no longer than that: there are other ways.
const LONGEST_END: Duration = Duration::from_secs(30);

/// To look at all schedules of a run with so many events takes minutes.
const MANY: usize = 10_000;

/// Was it shown that every schedule fails?
fn fails_always(explanation: &Explanation) -> bool {
    let cause = explanation.root_cause.as_ref();
    is_complete(explanation) && cause.is_some_and(|cause| cause.kind == CauseKind::FailsAlways)
}

/// Says that only schedules were looked at that begin as the recorded run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// How many events come in another order.
    events: usize,
    /// Events of the trace.
    of: usize,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, of } = self;
        write!(
            f,
            "this is a long run: schedules were compared that are like it but for {events} of {of} events before the \
             failure; that the root cause always leads to the failure was shown for these"
        )
    }
}

impl Work<'_> {
    /// Explains a failing schedule by its end. Where `passing` is known, which passes, the end is long enough for it.
    /// `None` where the end does not explain it: a root cause that is shown to be one, and an alternate; or that every
    /// schedule fails, where runs along other paths come first ([`Work::across_first`]).
    pub(super) fn explain_end<'t>(
        &mut self,
        trace: &'t EventTrace,
        schedule: &Schedule,
        passing: Option<&Schedule>,
        budget: &Budget,
    ) -> Result<Option<Explained<'t>>, PipelineError> {
        let events = trace.events.len();
        if !encoders::is_long(trace) {
            return Ok(None);
        }
        let started = Instant::now();
        let Ok(evaluation) = Evaluator::new(trace).run(&schedule.order, &recorded(trace)) else {
            return Ok(None);
        };
        let differs = passing.and_then(|passing| {
            let mut pairs = schedule.order.iter().zip(&passing.order);
            pairs.position(|(one, other)| one != other)
        });
        self.timing.solve += started.elapsed();
        // Every schedule fails, as far as the end goes.
        let mut always = None;
        for Range { start: from, end: until } in encoders::ends(trace, schedule, differs) {
            if !budget.is_left() {
                break;
            }
            let Some(window) = encoders::window(trace, schedule, &evaluation, from..until) else {
                tracing::debug!(from, until, "no window");
                continue;
            };
            let known: Vec<_> = schedule.order.iter().filter_map(|id| window.find(*id)).collect();
            let known = Model { schedule: Schedule { order: known }, ..Model::default() };
            let before = self.timing;
            let part = budget.part((self.left() / PART_OF_END).min(LONGEST_END));
            let Some(explained) = self.explain_window(&window, known, &part)? else {
                continue;
            };
            let explanation = explained.explanation;
            always = None;
            if fails_always(&explanation) {
                let wide = explain::widen(trace, &window, explanation);
                always = wide.map(|wide| (window.trace.events.len(), explained.size, wide));
                self.timing = before;
                continue;
            }
            let complete = self.explains(&explanation);
            let limited =
                explanation.cut.iter().any(|cut| matches!(cut.reason, CutReason::Limit(_)));
            let looked_at = window.trace.events.len();
            tracing::info!(events = looked_at, from, until, complete, "looked at the end");
            let wide = complete.then(|| explain::widen(trace, &window, explanation)).flatten();
            let Some(mut explanation) = wide else {
                self.timing = before;
                // With more events it takes longer.
                if limited {
                    break;
                }
                continue;
            };
            if !self.explains(&explanation) {
                // None of its alternates is one of the whole run.
                self.timing = before;
                continue;
            }
            explanation.clock = Clock::Followed;
            let explained =
                Explained { trace: Cow::Borrowed(trace), size: explained.size, explanation };
            self.end = Some(End { events: looked_at, of: events });
            self.note_clock(&explained);
            return Ok(Some(explained));
        }
        let first = self.looks_across_first(trace) && passing.is_none() && budget.is_left();
        let Some((looked_at, size, mut explanation)) = always.filter(|_| first) else {
            return Ok(None);
        };
        explanation.clock = Clock::Followed;
        tracing::info!(events = looked_at, "every schedule of the end fails");
        (self.end, self.only_end) = (Some(End { events: looked_at, of: events }), true);
        let explained = Explained { trace: Cow::Borrowed(trace), size, explanation };
        self.note_clock(&explained);
        Ok(Some(explained))
    }

    /// Is a run along other paths looked for before all schedules of the trace are?
    pub(super) fn looks_across_first(&self, trace: &EventTrace) -> bool {
        self.across_first && trace.events.len() >= MANY && self.rejected.is_empty()
    }

    fn explains(&self, explanation: &Explanation) -> bool {
        let cause = explanation.root_cause.as_ref();
        let passes = self.options.alternates == 0 || !explanation.alternates.found.is_empty();
        is_complete(explanation) && passes && cause.is_some_and(|it| it.kind == CauseKind::Orders)
    }

    /// Explains a failing schedule of the end. `None` where schedules that are ruled out are about what is not in it, and
    /// where nothing is found in time.
    fn explain_window<'w>(
        &mut self,
        window: &'w Slice,
        known: Model,
        budget: &Budget,
    ) -> Result<Option<Explained<'w>>, PipelineError> {
        let rejected: Vec<_> = self.rejected.iter().map(|orders| within(window, orders)).collect();
        if rejected.iter().zip(&self.rejected).any(|(here, all)| here.len() != all.len()) {
            return Ok(None);
        }
        let trace = &window.trace;
        let whole = std::mem::replace(&mut self.rejected, rejected);
        let contended = encoders::sources(trace) > CONTENDED * EXACT;
        let explained = match contended {
            true => match encoders::coarsen_near(trace, NEAR, &known.schedule) {
                Some(coarse) => {
                    let options = self.explain_options(0);
                    self.explain_steps(trace, (&coarse, Some(known)), &options, budget).map(Some)
                }
                None => {
                    tracing::debug!("no steps of the end");
                    Ok(None)
                }
            },
            false => self.explain_exactly(trace, &known, budget).map(Some),
        };
        self.rejected = whole;
        match explained {
            Ok(explained) => Ok(explained),
            // There are other ways, which say so themselves where it is not for this one alone.
            Err(error) => {
                tracing::info!(%error, "the end explains nothing");
                Ok(None)
            }
        }
    }

    fn explain_exactly<'w>(
        &mut self,
        trace: &'w EventTrace,
        known: &Model,
        budget: &Budget,
    ) -> Result<Explained<'w>, PipelineError> {
        let started = Instant::now();
        if encoders::section_pairs(trace) > SECTIONS.0 {
            return Err(encoders::EncodeError::BudgetSpent.into());
        }
        let mut system = encoders::encode_within(trace, false, &|| budget.is_left())?;
        for orders in &self.rejected {
            system.reject(orders);
        }
        let limits = Limits {
            time: Some((self.left() / PART).min(LONGEST)),
            memory_mb: self.options.memory_mb,
        };
        let mut session = self.session(trace, &system, limits)?;
        let clock = answer::PhaseClock::start(started);
        clock.enter(Phase::RootCause);
        let explanation = explain::explain_from(
            trace,
            &system,
            session.as_mut(),
            known,
            &self.explain_options(explain::Options::default().switch_work),
            &|| budget.is_left(),
        );
        drop(session);
        let mut explanation = explanation?;
        budget.name(&mut explanation);
        clock.finish(&mut self.timing);
        let size = system.size(trace);
        Ok(Explained { trace: Cow::Borrowed(trace), size, explanation })
    }
}
