//! Runs that undo how a thread's steps were interrupted, where all runs that pass are far from the failing one.
//!
//! What a check at the end of a program finds may have gone wrong at any time, and a run that passes then goes another way
//! from its beginning: the pair in which the two differ first says nothing of the failure. What is known is when it was too
//! late, and which patterns of accesses only the failing run has ([`explain::interrupted_alone`]). Each is put to the test: a
//! run that follows the failing schedule until the steps are done, and no further, has to fail, and one that follows it just
//! as far with the steps in one piece has to pass. Both go on at will, and again with each thread to its end.

use super::{CrossAlternate, FAR, Plan, Search, Told};
use crate::replay::{Attempt, ReplayError};
use explain::{Flip, Interrupted};
use model::{EventId, EventTrace, Schedule};
use render::solution::Replay;
use std::time::{Duration, Instant};

/// So many interrupted steps are put to the test.
const STEPS: usize = 24;
/// The last moments are looked for no longer than this.
const PATIENCE: Duration = Duration::from_secs(4);

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
        // The threads that go first may make the same mistake, and where all go on at will they may, too.
        let until = self.end.min(Instant::now() + PATIENCE);
        let first =
            self.moment(bounds, until, |search, place| search.attempt(&Plan::Until(place)))?;
        let length = failing.schedule.order.len();
        let at_will = self.moment((0, length), until, |search, place| {
            let order = &failing.schedule.order[..place];
            let text = search.text_up_to(order, None, false);
            search.attempt_with(&Plan::UpTo(place), text)
        })?;
        let moments = [at_will, first];
        let passing: Vec<(&EventTrace, &Schedule)> =
            self.passed.iter().map(|passed| (&passed.trace, &passed.schedule)).collect();
        let found =
            explain::interrupted_steps((failing.trace, failing.schedule), &passing, &moments);
        tracing::debug!(?moments, steps = found.len(), "interrupted steps");
        let all = self.passed.len();
        let mut likely = Vec::new();
        for steps in found.into_iter().take(STEPS) {
            if Instant::now() >= self.end {
                break;
            }
            let is_undone = self.undo(&steps)?;
            let passed = self.passed.split_off(all);
            match is_undone {
                Undone::Always => {
                    if let Some(found) = self.first_confirmed(passed)? {
                        return Ok(Some(found));
                    }
                }
                Undone::Once => likely.extend(passed),
                Undone::Never => {}
            }
        }
        self.first_confirmed(likely)
    }

    fn first_confirmed(
        &mut self,
        passed: Vec<super::Passed>,
    ) -> Result<Option<CrossAlternate>, ReplayError> {
        for passed in passed {
            let alternate = self.confirm(passed)?;
            if alternate.replay == Replay::Confirmed {
                return Ok(Some(alternate));
            }
        }
        Ok(None)
    }

    /// The last place of the failing schedule up to which a run can follow it, and then `goes_on` and passes, as far as the
    /// time goes: taking it that runs pass before one place and fail behind it.
    fn moment(
        &mut self,
        (mut passes, mut fails): (usize, usize),
        until: Instant,
        goes_on: impl Fn(&mut Self, usize) -> Result<Option<(Attempt, String)>, ReplayError>,
    ) -> Result<usize, ReplayError> {
        while fails - passes > 1 && Instant::now() < until {
            let middle = passes.midpoint(fails);
            match goes_on(self, middle)? {
                Some((attempt, _)) if !super::failed(&attempt) => passes = middle,
                _ => fails = middle,
            }
        }
        Ok(passes)
    }

    /// Puts steps to the test, and keeps the runs that pass where they decide.
    fn undo(&mut self, steps: &Interrupted) -> Result<Undone, ReplayError> {
        let failing = self.failing;
        let (trace, schedule) = (failing.trace, failing.schedule);
        let own = trace.event(steps.second).thread;
        let Some(done) = schedule.order.iter().position(|id| *id == steps.second) else {
            return Ok(Undone::Never);
        };
        for to_the_end in [false, true] {
            let text = self.text_up_to(&schedule.order[..=done], Some(own), to_the_end);
            let attempt = self.attempt_with(&Plan::UpTo(done + 1), text)?;
            if attempt.is_none_or(|(attempt, _)| !super::failed(&attempt)) {
                return Ok(Undone::Never);
            }
        }
        let mut undone = Undone::Never;
        for flip in steps.flips(trace, schedule) {
            let order = undone_up_to(trace, schedule, flip, steps.second);
            let known = self.passed.len();
            let mut always = true;
            for to_the_end in [false, true] {
                let (plan, text) =
                    (Plan::Check(flip), self.text_up_to(&order, Some(own), to_the_end));
                match self.attempt_with(&plan, text)? {
                    Some((attempt, text)) if !super::failed(&attempt) => {
                        self.keep(&plan, &attempt, text, Told::Interrupted(steps.clone()));
                    }
                    _ => always = false,
                }
            }
            undone = match undone {
                Undone::Never if self.passed.len() > known => Undone::Once,
                undone => undone,
            };
            if always && self.passed.len() > known {
                return Ok(Undone::Always);
            }
        }
        Ok(undone)
    }
}

/// What came of runs without an interruption.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Undone {
    /// One order of the steps passes however the threads go on.
    Always,
    /// One passes.
    Once,
    /// None does, or the failing run did not fail by them.
    Never,
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
