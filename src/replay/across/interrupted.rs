//! Runs that undo how a thread's steps were interrupted, where all runs that pass are far from the failing one.
//!
//! What a check at the end of a program finds may have gone wrong at any time, and a run that passes then goes another way
//! from its beginning: the pair in which the two differ first says nothing of the failure. What is known is when it was too
//! late, and which patterns of accesses only the failing run has ([`explain::interrupted_alone`]). Each is put to the test: a
//! run that follows the failing schedule until the steps are done, and no further, has to fail, and one that follows it just
//! as far with the steps in one piece has to pass. Both go on at will, and again with each thread to its end.

use super::{CrossAlternate, FAR, Plan, Search, Told};
use crate::replay::ReplayError;
use explain::{Flip, Interrupted};
use model::{EventId, EventTrace, Schedule};
use render::solution::Replay;
use std::time::{Duration, Instant};

/// So many patterns are put to the test.
const PATTERNS: usize = 12;
/// The last moment is looked for no longer than this.
const PATIENCE: Duration = Duration::from_secs(3);

impl Search<'_> {
    /// The confirmed run of which it can be said; `bounds` are places of the failing schedule up to which a run passes, and
    /// fails. `None` where a run that passes is near, or no pattern decides.
    pub(super) fn by_interrupted(
        &mut self,
        bounds: (usize, usize),
    ) -> Result<Option<CrossAlternate>, ReplayError> {
        let is_far = |it: &super::Passed| it.across.distance >= FAR && it.told == Told::Failure;
        if !self.passed.first().is_some_and(is_far) || self.hangs() {
            return Ok(None);
        }
        let failing = self.failing;
        let moment = self.moment(bounds)?;
        let passing: Vec<(&EventTrace, &Schedule)> =
            self.passed.iter().map(|passed| (&passed.trace, &passed.schedule)).collect();
        let found =
            explain::interrupted_alone((failing.trace, failing.schedule), &passing, Some(moment));
        tracing::debug!(
            moment,
            patterns = found.len(),
            "steps that only the failing run has interrupted"
        );
        for steps in found.into_iter().take(PATTERNS) {
            if Instant::now() >= self.end {
                break;
            }
            if let Some(found) = self.undone(&steps)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The place of the failing schedule behind which nothing avoids the failure any more, as far as the time goes.
    fn moment(&mut self, (mut passes, mut fails): (usize, usize)) -> Result<usize, ReplayError> {
        let until = self.end.min(Instant::now() + PATIENCE);
        while fails - passes > 1 && Instant::now() < until {
            let middle = passes.midpoint(fails);
            match self.attempt(&Plan::Until(middle))? {
                Some((attempt, _)) if !super::failed(&attempt) => passes = middle,
                _ => fails = middle,
            }
        }
        Ok(passes)
    }

    /// The confirmed run in which these steps are not interrupted, where they decide.
    fn undone(&mut self, steps: &Interrupted) -> Result<Option<CrossAlternate>, ReplayError> {
        let failing = self.failing;
        let (trace, schedule) = (failing.trace, failing.schedule);
        let own = trace.event(steps.second).thread;
        let Some(done) = schedule.order.iter().position(|id| *id == steps.second) else {
            return Ok(None);
        };
        let interrupted = &schedule.order[..=done];
        let fails = |search: &mut Self, to_the_end| -> Result<bool, ReplayError> {
            let text = search.text_up_to(interrupted, Some(own), to_the_end);
            let attempt = search.attempt_with(&Plan::Done(steps.second), text)?;
            Ok(attempt.is_some_and(|(attempt, _)| super::failed(&attempt)))
        };
        let all = self.passed.len();
        for to_the_end in [false, true] {
            if !fails(self, to_the_end)? {
                return Ok(None);
            }
            for flip in steps.flips(trace, schedule) {
                let order = undone_up_to(trace, schedule, flip, steps.second);
                let (plan, text) =
                    (Plan::Check(flip), self.text_up_to(&order, Some(own), to_the_end));
                if let Some((attempt, text)) = self.attempt_with(&plan, text)?
                    && !super::failed(&attempt)
                {
                    self.keep(&plan, &attempt, text, Told::Interrupted(steps.clone()));
                }
            }
        }
        for passed in self.passed.split_off(all) {
            let alternate = self.confirm(passed)?;
            if alternate.replay == Replay::Confirmed {
                return Ok(Some(alternate));
            }
        }
        Ok(None)
    }
}

/// The failing schedule with the pair the other way round, up to where both of it, and the steps' last, are done.
fn undone_up_to(
    trace: &EventTrace,
    schedule: &Schedule,
    flip: Flip,
    second: EventId,
) -> Vec<EventId> {
    let mut order = explain::flipped_order(trace, schedule, flip);
    let done = |id: &EventId| [flip.after, second].contains(id);
    let until = order.iter().rposition(done).map_or(order.len(), |place| place + 1);
    order.truncate(until);
    order
}
