//! Other bugs of the program: a run of the new program that fails for another cause says nothing against the patch where
//! the recorded program fails for that one as well.

use super::runs::{Runner, Taken};
use super::{Judge, Told, Verdict, Verification, claimed};
use crate::compare::Traits;
use crate::fix::{FixError, RECORDED_LEAST, RECORDED_RUNS, Recorded};
use crate::pipeline::ReplayOptions;
use crate::replay::ReplayError;
use render::Solution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

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
    /// As what it was told: by a run's log alone, and with runs of the program. Only what has a fingerprint.
    #[serde(skip)]
    traits: Vec<Traits>,
    /// It may be the recorded cause, told in another way.
    #[serde(skip)]
    may_be_same: bool,
}

impl Other {
    fn is_known(&self) -> bool {
        self.recorded_runs > 0
    }

    /// Was it told with this fingerprint?
    fn has(&self, print: Option<&String>) -> bool {
        print.is_some() && self.traits.iter().any(|traits| traits.fingerprint.as_ref() == print)
    }

    /// May it be the bug by which a run of the recorded program failed? A patch moves lines, so that its fingerprint may be another
    /// one there.
    fn may_be(&self, seen: &Traits) -> bool {
        self.traits.iter().any(|traits| traits.may_be_one_with(seen))
    }
}

/// Notes that a run of the new program failed for another cause; `None` where that is not known. Says whether it is one that the
/// recorded program was already seen to fail for.
pub(super) fn note(others: &mut Vec<Other>, solution: &Solution, told: Option<&Told>) -> bool {
    let recorded = Traits::of(solution);
    let traits = told.map(|told| told.traits.clone()).unwrap_or_default();
    let side = told.map(|told| told.comparison.sides[1].clone()).unwrap_or_default();
    let last = traits.last().filter(|traits| traits.are_apart(&recorded));
    let is_of = |other: &Other| other.is_known() && last.is_some_and(|traits| other.may_be(traits));
    let is_known = others.iter().any(is_of);
    let may_be_same = last.is_none();
    others.push(Other {
        cause: side.cause,
        fingerprint: side.fingerprint,
        failure: side.failure,
        runs: 1,
        recorded_runs: 0,
        may_be_same,
        traits: traits.into_iter().filter(|traits| traits.fingerprint.is_some()).collect(),
    });
    join(others);
    is_known
}

/// Puts those together that are one cause: they have a fingerprint in common; or of one it is known no more than that it failed
/// where another one did.
fn join(others: &mut Vec<Other>) {
    let (told, untold): (Vec<Other>, Vec<Other>) =
        std::mem::take(others).into_iter().partition(|other| !other.traits.is_empty());
    for other in told.into_iter().chain(untold) {
        let is_one = |known: &&mut Other| match other.traits.is_empty() {
            true => known.failure == other.failure,
            false => other.traits.iter().any(|traits| known.has(traits.fingerprint.as_ref())),
        };
        match others.iter_mut().find(is_one) {
            Some(known) => {
                known.runs += other.runs;
                known.may_be_same |= other.may_be_same && !other.traits.is_empty();
                for traits in other.traits {
                    if !known.has(traits.fingerprint.as_ref()) {
                        known.traits.push(traits);
                    }
                }
            }
            None => others.push(other),
        }
    }
}

/// As what failing runs are told, by their logs alone and with runs of the program: once for those of which the log tells the same.
#[derive(Default)]
struct Tellings(Vec<(Option<Traits>, Option<Traits>)>);

impl Tellings {
    /// What a failing run is told as, by its log alone and then with runs of the program. The log alone may tell the cause of another
    /// bug, where both led the run to its paths.
    fn of(&mut self, taken: &Taken, time: Duration) -> Vec<Traits> {
        let told = |replay: Option<ReplayOptions>| {
            let traits = claimed(taken, time, replay).map(|solution| Traits::of(&solution));
            traits.filter(|traits| traits.fingerprint.is_some())
        };
        let by_log = told(None);
        let known = self.0.iter().find(|(log, _)| log.is_some() && *log == by_log);
        let by_runs = match known {
            Some((_, runs)) => runs.clone(),
            None => {
                let runs = told(Some(ReplayOptions::default()));
                self.0.push((by_log.clone(), runs.clone()));
                runs
            }
        };
        by_log.into_iter().chain(by_runs).collect()
    }
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
        let why = match other.traits.is_empty() {
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
    let cause = Traits::of(judge.solution);
    let mut tellings = Tellings::default();
    let began = Instant::now();
    let mut runs = 0;
    while (runs < RECORDED_RUNS || began.elapsed() < RECORDED_LEAST)
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
        let seen = tellings.of(&taken, judge.options.time / 4);
        let apart = seen.last().filter(|seen| seen.are_apart(&cause));
        let is_it = |other: &Other| {
            seen.iter().any(|seen| other.has(seen.fingerprint.as_ref()))
                || apart.is_some_and(|seen| other.may_be(seen))
        };
        // One bug may be told in several ways.
        for other in found.others.iter_mut().filter(|other| is_it(other)) {
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
    use super::{Other, Traits, join};

    fn other(print: Option<&str>, failure: &str) -> Other {
        let of = |print: &str| Traits { fingerprint: Some(print.to_owned()), ..Traits::default() };
        let traits = print.into_iter().map(of).collect();
        Other { failure: failure.to_owned(), runs: 1, traits, ..Other::default() }
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
