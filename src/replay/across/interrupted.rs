//! Runs that undo how a thread's steps were interrupted, where all runs that pass are far from the failing one.
//!
//! What a check at the end of a program finds may have gone wrong at any time, and a run that passes then goes another way
//! from its beginning: the pair in which the two differ first says nothing of the failure. What is known is when it was too
//! late, and which steps of a thread others came between, here alone or just then ([`explain::interrupted_steps`]). Each is put
//! to the test: runs that follow the failing schedule until the steps are done, and no further, have to fail, and one that
//! follows it just as far with the steps in one piece has to pass. They go on at will, and again with each thread to its end.

use super::{CrossAlternate, FAR, Plan, Search, Told};
use crate::replay::{Attempt, ReplayError};
use explain::{Flip, Interrupted};
use model::{EventId, EventTrace, Schedule};
use render::solution::Replay;
use std::time::{Duration, Instant};

/// So many interrupted steps are put to the test.
const STEPS: usize = 24;
/// There is so much time for all of it, also where the search for runs that pass took all of its own.
const TIME: Duration = Duration::from_secs(10);
/// With so many differences between the failing run and the nearest one that passes the first of them may say nothing.
const APART: usize = 250;
/// The last moments are looked for no longer than this.
const PATIENCE: Duration = Duration::from_secs(4);

impl Search<'_> {
    /// The confirmed run of which it can be said; `bounds` are places of the failing schedule up to which a run passes, and
    /// fails. `None` where a run that passes is near, or no steps decide.
    pub(super) fn by_interrupted(
        &mut self,
        bounds: (usize, usize),
    ) -> Result<Option<CrossAlternate>, ReplayError> {
        let told = |it: &super::Passed| (it.told == Told::Failure).then_some(it.across.distance);
        let apart = self.passed.first().and_then(told).unwrap_or(0);
        if apart < APART || self.hangs() {
            return Ok(None);
        }
        // Where runs are long, the search for those that pass has taken all of its time.
        let more = Instant::now() + TIME;
        self.end = self.end.max(self.deadline.map_or(more, |deadline| deadline.min(more)));
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
        let mut likely = None;
        for steps in found.into_iter().take(STEPS) {
            if Instant::now() >= self.end {
                break;
            }
            // Of those that pass only once the first is enough. What a nearer run differs in may tell as much, and where the
            // program fails anyhow, one that fails and one that passes say little.
            let once = apart >= FAR && at_will > 0 && likely.is_none();
            let always = self.undo(&steps, once)?;
            let Some(passed) = self.passed.split_off(all).pop() else { continue };
            if always {
                let alternate = self.confirm(passed)?;
                if alternate.replay == Replay::Confirmed {
                    return Ok(Some(alternate));
                }
            } else {
                likely = Some(passed);
            }
        }
        let likely = likely.map(|passed| self.confirm(passed)).transpose()?;
        Ok(likely.filter(|alternate| alternate.replay == Replay::Confirmed))
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

    /// Puts steps to the test, and keeps a run that passes where they decide: one of an order that passes however the threads go
    /// on, which it says, or else, if `once` is enough, one that passes. To walk such a run takes longer than to make it.
    fn undo(&mut self, steps: &Interrupted, once: bool) -> Result<bool, ReplayError> {
        let failing = self.failing;
        let (trace, schedule) = (failing.trace, failing.schedule);
        let own = trace.event(steps.second).thread;
        let Some(done) = schedule.order.iter().position(|id| *id == steps.second) else {
            return Ok(false);
        };
        for to_the_end in [false, true] {
            let text = self.text_up_to(&schedule.order[..=done], Some(own), to_the_end);
            let attempt = self.attempt_with(&Plan::UpTo(done + 1), text)?;
            let Some((attempt, _)) = attempt else { return Ok(false) };
            // Behind the steps each thread may have to wait for others before it comes to its end.
            let followed = to_the_end || attempt.report.left.is_none();
            if !followed || !self.fails_alike(&attempt) {
                return Ok(false);
            }
        }
        let known = self.passed.len();
        let mut alone = Vec::new();
        for flip in steps.flips(trace, schedule) {
            let order = undone_up_to(trace, schedule, flip, steps.second);
            let plan = Plan::Check(flip);
            let mut passed = Vec::new();
            for to_the_end in [false, true] {
                let text = self.text_up_to(&order, Some(own), to_the_end);
                let attempt = self.attempt_with(&plan, text)?;
                passed.extend(attempt.filter(|(attempt, _)| !super::failed(attempt)));
            }
            if passed.len() < 2 {
                alone.extend(passed.pop().map(|run| (plan, run)));
                continue;
            }
            for (attempt, text) in passed {
                self.keep(&plan, &attempt, text, Told::Interrupted(steps.clone()));
                if self.passed.len() > known {
                    return Ok(true);
                }
            }
        }
        for (plan, (attempt, text)) in alone.into_iter().filter(|_| once) {
            if self.passed.len() == known {
                self.keep(&plan, &attempt, text, Told::Interrupted(steps.clone()));
            }
        }
        Ok(false)
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
