//! Runs in which a value does not come back before a compare-exchange (ABA).
//!
//! What the threads do with what both got by such an exchange decides whether the run fails, too, and says less.

use super::super::{ReplayError, Settings, Target};
use super::{CrossAlternate, Failing, Found, Plan, Search, search_by};
use explain::CameBack;
use render::solution::Replay;
use std::time::Instant;

/// So many orders at most are tried.
const ORDERS: usize = 6;

/// As [`super::search`], with nothing but orders in which no value comes back (see [`explain::came_back`]).
///
/// # Errors
///
/// When the user interrupts.
pub fn search_came_back(
    failing: &Failing<'_>,
    target: &Target,
    settings: &Settings,
    deadline: Option<Instant>,
) -> Result<Found, ReplayError> {
    search_by(failing, target, settings, deadline, Search::by_values_that_came_back)
}

impl Search<'_> {
    /// A confirmed run that passes, in which a value does not come back that did in the failing schedule. `None` where none did,
    /// and where none of these runs passes.
    pub(super) fn by_values_that_came_back(
        &mut self,
    ) -> Result<Option<CrossAlternate>, ReplayError> {
        let Failing { trace, schedule, evaluation, .. } = *self.failing;
        let all = explain::came_back(trace, schedule, evaluation);
        for flip in all.iter().flat_map(CameBack::flips).take(ORDERS) {
            if Instant::now() >= self.end {
                break;
            }
            let known = self.passed.len();
            self.try_out(&Plan::Near(flip))?;
            for passed in self.passed.split_off(known) {
                let alternate = self.confirm(passed)?;
                if alternate.replay == Replay::Confirmed {
                    return Ok(Some(alternate));
                }
            }
        }
        Ok(None)
    }
}
