//! Runs in which threads meet so often that not all schedules can be looked at.

use crate::check::{Checked, Limits, Refusal, Verdict, off_path};
use crate::edit::Edited;
use encoders::{ConstraintSystem, EncodeError};
use model::EventTrace;
use solver::{CoarseSession, Goal, OrderingSession, Outcome, Session, SolverError};

/// With more sources of reads than that, no system has all of them: there are some constraints for each source, of about a
/// kilobyte each.
const SOURCES: u64 = 2_000_000;
/// How often each way to go on from one place of the source to the next may be interrupted.
const ROUNDS: u32 = 3;
/// Why there is no answer.
pub(crate) const TOO_OFTEN: &str = "threads meet too often for all schedules to be looked at";

/// Are there too many schedules?
pub(crate) fn is_contended(trace: &EventTrace) -> bool {
    encoders::sources(trace) > SOURCES
}

/// A system for what holds in every schedule; for no more than that where threads meet too often.
pub(crate) fn orders(trace: &EventTrace) -> Result<ConstraintSystem, EncodeError> {
    match is_contended(trace) {
        true => encoders::encode_orders(trace),
        false => encoders::encode(trace),
    }
}

/// Does a repair do what it is for, by schedules that switch threads at few places?
pub(crate) fn check(edited: &Edited, limits: Limits<'_>) -> Result<Verdict, SolverError> {
    let trace = &edited.trace;
    let undecided = |why: &str| Ok(Verdict::Refused(Refusal::Undecided(why.to_owned())));
    let Some(coarse) = encoders::coarsen(trace, ROUNDS) else { return undecided(TOO_OFTEN) };
    if is_contended(&coarse.trace) {
        return undecided(TOO_OFTEN);
    }
    let system = match limits.encode(&coarse.trace) {
        Ok(system) => system,
        Err(error) => return undecided(&error.to_string()),
    };
    let solver_limits = limits.of_question();
    let mut inner = OrderingSession::new(&coarse.trace, &system, solver_limits);
    match inner.check(Goal::Fail, &[])? {
        Outcome::Unsat(_) => {}
        Outcome::Sat(_) => return Ok(Verdict::Refused(Refusal::Fails)),
        Outcome::Unknown(reason) => return undecided(&reason.to_string()),
    }
    let constraints = system.constraints.len();
    if let Outcome::Unsat(_) = inner.check(Goal::Pass, &[])? {
        return Ok(match off_path(&coarse.trace, constraints, limits)? {
            Verdict::Holds(checked) => Verdict::Holds(Checked { at_few_places: true, ..checked }),
            refused @ Verdict::Refused(_) => refused,
        });
    }
    match CoarseSession::new(trace, &coarse, inner).check(Goal::Pass, &[])? {
        Outcome::Sat(found) => {
            let recorded = found.schedule.order.iter();
            let recorded =
                recorded.filter_map(|id| edited.origin.get(id.index()).copied().flatten());
            let passing = Some(recorded.collect());
            let checked = Checked { passing, at_few_places: true, ..Checked::of(constraints) };
            Ok(Verdict::Holds(checked))
        }
        Outcome::Unsat(_) => undecided(TOO_OFTEN),
        Outcome::Unknown(reason) => undecided(&reason.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// Two threads that read and write one variable so many times each.
    fn meeting(times: usize) -> EventTrace {
        let mut text = "cell x 32 = 0\nt0: fork a\nt0: fork b\n".to_owned();
        for round in 0..times {
            for thread in ["a", "b"] {
                writeln!(text, "{thread}: R x -> {thread}{round}\n{thread}: W x {round}")
                    .expect("a string takes all");
            }
        }
        encoders::dsl::parse(&text).expect("the text is a trace").trace
    }

    #[test]
    fn a_system_that_would_not_fit_into_memory_is_not_made() {
        let limits = Limits {
            time: std::time::Duration::from_secs(60),
            memory_mb: None,
            left: &|| std::time::Duration::MAX,
        };
        assert!(limits.encode(&meeting(20)).is_ok());
        let error = limits.encode(&meeting(1100)).err();
        assert_eq!(error, Some(EncodeError::BudgetSpent));
    }
}
