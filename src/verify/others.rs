//! Other bugs of the program: a run of the new program that fails for another cause says nothing against the patch where
//! the recorded program fails for that one as well.

use super::runs::{Runner, Taken};
use super::{Judge, Told, Verdict, Verification, claimed};
use crate::compare::fingerprint;
use crate::fix::{FixError, Recorded};
use crate::pipeline::ReplayOptions;
use crate::replay::ReplayError;
use explain::Pattern;
use render::Solution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// So many runs of the recorded program are taken to see whether it fails for the other causes, and more where they are over
/// before that time.
const RUNS: u32 = 40;
const LEAST: Duration = Duration::from_secs(20);

/// A cause other than the recorded one by which runs of the new program failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Other {
    /// The sentence about it; empty where none is known.
    pub cause: String,
    /// Its fingerprint; empty where none is known.
    pub fingerprint: String,
    /// The failure's kind and place.
    pub failure: String,
    /// How many runs of the new program failed for it.
    pub runs: u32,
    /// How many runs of the recorded program were seen to fail for it.
    pub recorded_runs: u32,
    /// Every fingerprint that it was told by: by a run's log alone, and with runs of the program.
    #[serde(skip)]
    prints: BTreeSet<String>,
    /// It may be the recorded cause, told in another way.
    #[serde(skip)]
    may_be_same: bool,
}

impl Other {
    fn is_known(&self) -> bool {
        self.recorded_runs > 0
    }
}

/// Notes that a run of the new program failed for another cause; `None` where that is not known.
pub(super) fn note(others: &mut Vec<Other>, solution: &Solution, told: Option<&Told>) {
    let prints = told.map(|told| told.prints.clone()).unwrap_or_default();
    let side = told.map(|told| told.comparison.sides[1].clone()).unwrap_or_default();
    others.push(Other {
        cause: side.cause,
        fingerprint: side.fingerprint,
        failure: side.failure,
        runs: 1,
        recorded_runs: 0,
        may_be_same: told.is_none_or(|told| !are_apart(solution, told)),
        prints,
    });
    join(others);
}

/// Puts those together that are one cause: they have a fingerprint in common; or of one it is known no more than that it failed
/// where another one did.
fn join(others: &mut Vec<Other>) {
    let (told, untold): (Vec<Other>, Vec<Other>) =
        std::mem::take(others).into_iter().partition(|other| !other.prints.is_empty());
    for other in told.into_iter().chain(untold) {
        let is_one = |known: &&mut Other| match other.prints.is_empty() {
            true => known.failure == other.failure,
            false => !known.prints.is_disjoint(&other.prints),
        };
        match others.iter_mut().find(is_one) {
            Some(known) => {
                known.runs += other.runs;
                known.prints.extend(other.prints);
            }
            None => others.push(other),
        }
    }
}

/// Can the two not be one bug that is told in two ways? Those are about one variable mostly. That threads wait for each other in
/// a circle is a bug of its own.
fn are_apart(solution: &Solution, told: &Told) -> bool {
    let recorded = solution.cause.as_ref().map(|cause| cause.pattern.as_str()).unwrap_or_default();
    let is_deadlock = |pattern: &str| pattern == Pattern::Deadlock.name();
    if is_deadlock(recorded) != is_deadlock(&told.pattern) {
        return true;
    }
    let variables = crate::compare::variables(solution);
    let named = !variables.is_empty() && !told.variables.is_empty();
    named && told.variables.iter().all(|name| !variables.contains(name))
}

/// The fingerprint of a failing run's cause, for which the program is run where the log alone tells none.
fn print_of(taken: &Taken, time: Duration) -> Option<String> {
    let print = |solution: Solution| fingerprint(&solution).map(str::to_owned);
    let by_log = print(claimed(taken, time, None)?);
    by_log.or_else(|| claimed(taken, time, Some(ReplayOptions::default())).and_then(print))
}

/// Does the recorded program fail for all of the other causes, too? It is run under noise until it was seen to. Where it does not,
/// or one of them may be the recorded cause after all, the verdict stays, and says why.
///
/// # Errors
/// When a run is interrupted.
pub(super) fn are_known(
    recorded: &Recorded,
    (judge, runner): (Judge<'_>, &Runner),
    found: &mut Verification,
    budget: &dyn Fn() -> bool,
) -> Result<bool, FixError> {
    if let Some(other) = found.others.iter().find(|other| other.may_be_same) {
        let why = match other.prints.is_empty() {
            true => "; of a failure too little is known to tell it from the recorded one",
            false => "; that may be the recorded cause, told in another way",
        };
        found.reason.push_str(why);
        return Ok(false);
    }
    let old = match Runner::of_recorded(recorded, runner) {
        Ok(old) => old,
        Err(error) => {
            tracing::info!(%error, "the recorded program is not run");
            found
                .reason
                .push_str("; whether the recorded program fails so, too, was not looked at");
            return Ok(false);
        }
    };
    let began = Instant::now();
    let mut runs = 0;
    while (runs < RUNS || began.elapsed() < LEAST)
        && budget()
        && !found.others.iter().all(Other::is_known)
    {
        let taken = match old.run(runner.free_kind(runs), "") {
            Ok(taken) => taken,
            Err(error @ FixError::Replay(ReplayError::Interrupted(_))) => return Err(error),
            Err(error) => {
                tracing::info!(%error, "the recorded program is not run");
                break;
            }
        };
        runs += 1;
        if !taken.failed {
            continue;
        }
        let Some(print) = print_of(&taken, judge.options.time / 4) else { continue };
        if let Some(other) = found.others.iter_mut().find(|other| other.prints.contains(&print)) {
            other.recorded_runs += 1;
        }
    }
    let known = found.others.iter().all(Other::is_known);
    if known {
        found.verdict = Verdict::Undecided;
    } else {
        let unknown = found.others.iter().filter(|other| !other.is_known());
        let places: BTreeSet<&str> = unknown.map(|other| other.failure.as_str()).collect();
        let places = places.into_iter().collect::<Vec<_>>().join("; ");
        let _ = write!(
            found.reason,
            "; none of {runs} runs of the recorded program was seen to fail as some of the new one's did ({places})"
        );
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::{BTreeSet, Other, join};

    fn other(print: Option<&str>, failure: &str) -> Other {
        let prints: BTreeSet<String> = print.into_iter().map(str::to_owned).collect();
        Other { failure: failure.to_owned(), runs: 1, prints, ..Other::default() }
    }

    #[test]
    fn what_is_not_told_is_what_failed_at_its_place() {
        let mut others = vec![
            other(None, "segfault at a.c:1"),
            other(Some("a"), "segfault at a.c:1"),
            other(Some("b"), "exit at a.c:1"),
            other(Some("a"), "exit at a.c:2"),
            other(None, "exit at a.c:2"),
        ];
        join(&mut others);
        let told: Vec<(&str, u32)> =
            others.iter().map(|other| (other.failure.as_str(), other.runs)).collect();
        let expected = [("segfault at a.c:1", 3), ("exit at a.c:1", 1), ("exit at a.c:2", 1)];
        assert_eq!(told, expected);
    }
}
