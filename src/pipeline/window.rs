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
use model::{EventTrace, FailureCondition, Schedule};
use solver::{Limits, Model};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

/// So many events before the failure are looked at, and where all schedules of these fail, or none could be followed, so
/// many...
const SIZES: [usize; 3] = [600, 3_000, 12_000];
/// ...of traces that have so many times more...
const SHORTER: usize = 4;
/// ...and have so many at all.
const LONG: usize = 8_000;
/// With more events behind the failure than that, these are left as they were.
const BEHIND: usize = 500;
/// So many events before what decides whether the run fails are part of the end.
const AHEAD: usize = 200;
/// With so many times more sources than other traces may have, the end is looked at in steps.
const EXACT: u64 = 5;
/// One question may take so much of the time that is left...
const PART: u32 = 6;
/// ...and no longer than that.
const LONGEST: Duration = Duration::from_secs(5);

/// How many events of a schedule have happened when it has failed. `None` where that is a matter of all of them.
fn failed(trace: &EventTrace, schedule: &Schedule) -> Option<usize> {
    let failure = trace.failure.as_ref()?;
    if asks_for_all(&failure.condition) {
        return None;
    }
    let mut named = vec![failure.event];
    named.extend(failure.condition.clone().events_mut().into_iter().map(|event| *event));
    let last = schedule.order.iter().rposition(|id| named.contains(id))?;
    Some(last + 1)
}

/// The parts of a schedule to look at: up to the failure, and where that is not the end, up to the end as well, since what
/// passes may be otherwise behind it. `decides` has to be in them.
fn parts(events: usize, failed: usize, decides: usize) -> Vec<Range<usize>> {
    let most = SIZES.iter().max().copied().unwrap_or(0) + AHEAD;
    let mut parts: Vec<Range<usize>> = Vec::new();
    for size in SIZES.into_iter().filter(|size| events >= size * SHORTER) {
        let from = failed.saturating_sub(size).min(decides);
        for until in [failed, events] {
            let part = from..until;
            if part.len() <= most && !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    parts
}

/// Whether somebody is woken up is known at the end alone.
fn asks_for_all(condition: &FailureCondition) -> bool {
    match condition {
        FailureCondition::Value(_) | FailureCondition::Before(..) => false,
        FailureCondition::Unwoken { .. } => true,
        FailureCondition::All(parts) | FailureCondition::Any(parts) => {
            parts.iter().any(asks_for_all)
        }
    }
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
    /// `None` where the end does not explain it: a root cause that is shown to be one, and an alternate.
    pub(super) fn explain_end<'t>(
        &mut self,
        trace: &'t EventTrace,
        schedule: &Schedule,
        passing: Option<&Schedule>,
        budget: &Budget,
    ) -> Result<Option<Explained<'t>>, PipelineError> {
        let events = trace.events.len();
        if events < LONG {
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
        let until = failed(trace, schedule).filter(|at| events - at > BEHIND).unwrap_or(events);
        self.timing.solve += started.elapsed();
        let decides = differs.map_or(events, |at| at.saturating_sub(AHEAD));
        for Range { start: from, end: until } in parts(events, until, decides) {
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
            let Some(explained) = self.explain_window(&window, known, budget)? else {
                continue;
            };
            let explanation = explained.explanation;
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
        Ok(None)
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

#[cfg(test)]
mod tests {
    use super::{AHEAD, parts};

    #[test]
    fn the_parts_have_what_decides_and_are_not_too_long() {
        let one = parts(10_000, 10_000, 10_000);
        assert_eq!((one.len(), one.first()), (1, Some(&(9_400..10_000))));
        assert_eq!(
            parts(100_000, 100_000, 99_000),
            [99_000..100_000, 97_000..100_000, 88_000..100_000]
        );
        // Where other threads went on, both ends are tried, as far as they are near.
        assert_eq!(
            parts(20_000, 12_000, 20_000),
            [11_400..12_000, 11_400..20_000, 9_000..12_000, 9_000..20_000]
        );
        assert_eq!(parts(90_000, 12_000, 90_000)[..2], [11_400..12_000, 9_000..12_000]);
        assert!(parts(100_000, 100_000, 80_000).is_empty());
        assert_eq!(parts(60_000, 60_000, 48_000 - AHEAD).len(), 1);
    }
}
