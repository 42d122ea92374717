//! Fences, where a failure needs writes that other threads see late.

use super::answer::{Checks, Fixes, Lines, Repair};
use super::{FixError, Options, Recorded};
use crate::pipeline;
use encoders::models::tso::delayed;
use explain::last_member;
use model::evaluate::evaluate;
use model::{EventId, EventTrace, Site};
use render::Solution;
use render::solution::Location;
use solver::{Goal, Limits, OrderingSession, Outcome, Session};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// So often writes that are late in another failing schedule are added to those that a fence stands behind.
const ROUNDS: usize = 4;

/// Finds the writes that need a fence behind them, so that no schedule of the recorded run fails in which all others are
/// seen at once, nor one in which they are as late as they may be.
pub(super) fn find(
    recorded: &Recorded,
    solution: &Solution,
    options: Options,
) -> Result<Fixes, FixError> {
    let mut fixes = Fixes::of(solution);
    let trace = &recorded.execution.trace;
    let left = || match options.until {
        Some(until) => until.saturating_duration_since(Instant::now()),
        None => Duration::MAX,
    };
    let late = solution.late_writes.iter().filter_map(|late| solution.event(&late.write));
    let mut fenced: BTreeSet<Place> = late.map(|event| Place::of(&event.location)).collect();
    // Where a schedule fails in which no write is late, fences are no repair.
    let mut late = false;
    for _ in 0..=ROUNDS {
        let waits = |id| late && !fenced.contains(&Place::at(trace.event(id).site()));
        let made = delayed(trace, &waits);
        let encoded = encoders::encode_within(&made.trace, false, &|| !left().is_zero());
        let Ok(system) = encoded else { break };
        let limits = Limits { time: Some(options.time.min(left())), memory_mb: options.memory_mb };
        let mut session = OrderingSession::new(&made.trace, &system, limits);
        match session.check(Goal::Fail, &[])? {
            Outcome::Unsat(_) if !late => late = true,
            Outcome::Sat(_) if !late => {
                fixes.refused = 1;
                return Ok(fixes);
            }
            Outcome::Unsat(_) => {
                let passes = passes(&made.trace, &session.check(Goal::Pass, &[])?);
                let checks = Checks {
                    unsatisfiable_constraints: system.constraints.len() as u64,
                    with_late_writes: true,
                    passes_on_recorded_paths: passes,
                    // Nobody waits for a fence.
                    no_new_deadlock: true,
                    not_replayed: Some("no run can be made to have a write seen late".to_owned()),
                    ..Checks::default()
                };
                fixes.repairs.push(repair(trace, &fenced, checks));
                return Ok(fixes);
            }
            Outcome::Unknown(_) => break,
            Outcome::Sat(found) => {
                let inputs = |var: model::VarId| found.values.get(&var).copied();
                let Ok(evaluation) = evaluate(&made.trace, &found.schedule, &inputs) else { break };
                let failing = (&found.schedule, &evaluation);
                let wanted = pipeline::fewest(trace, &made, failing, &|| left().is_zero());
                let Some(wanted) = wanted else { break };
                let before = fenced.len();
                fenced.extend(wanted.iter().map(|id| Place::at(trace.event(*id).site())));
                if fenced.len() == before {
                    break;
                }
            }
        }
    }
    fixes.undecided = 1;
    fixes.out_of_time = left().is_zero();
    Ok(fixes)
}

/// Does the evaluator say that it passes?
fn passes(trace: &EventTrace, outcome: &Outcome) -> bool {
    let Outcome::Sat(found) = outcome else { return false };
    let inputs = |var: model::VarId| found.values.get(&var).copied();
    evaluate(trace, &found.schedule, &inputs).is_ok_and(|evaluation| !evaluation.fails)
}

/// A place of the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: String,
    line: u32,
    column: u32,
}

impl Place {
    fn of(location: &Location) -> Self {
        Self { file: location.file.clone(), line: location.line, column: location.column }
    }

    fn at(site: &Site) -> Self {
        Self { file: site.file.clone(), line: site.line, column: site.column }
    }
}

/// A fence behind all writes at these places.
fn repair(trace: &EventTrace, fenced: &BTreeSet<Place>, checks: Checks) -> Repair {
    let writes: Vec<EventId> = fenced
        .iter()
        .filter_map(|place| {
            let here = trace.events.iter().filter(|event| !event.kind.writes().is_empty());
            let found =
                here.filter(|event| Place::at(event.site()) == *place).map(|event| event.id);
            found.min()
        })
        .collect();
    let subject = |id: &EventId| trace.subject(trace.event(*id)).unwrap_or("?").to_owned();
    let steps = writes.iter().map(|id| {
        let site = trace.event(*id).site();
        let file = site.file.rsplit('/').next().unwrap_or_default();
        format!(
            "in {}, make the write of `{}` ({file}:{}) sequentially consistent, or put {} behind it",
            site.function,
            subject(id),
            site.line,
            fence(file)
        )
    });
    let places = writes.iter().map(|id| {
        let site = trace.event(*id).site();
        let (file, function) = (site.file.clone(), site.function.clone());
        Lines { file, function, first: site.line, last: site.line }
    });
    let mut variables: Vec<String> = writes.iter().map(|id| last_member(&subject(id))).collect();
    variables.sort_unstable();
    variables.dedup();
    Repair {
        kind: "fence".to_owned(),
        steps: steps.collect(),
        lock: None,
        variables,
        places: places.collect(),
        checks,
        rule: None,
    }
}

/// A full fence in the language of a file.
fn fence(file: &str) -> &'static str {
    match file.rsplit_once('.').map(|(_, ending)| ending) {
        Some("rs") => "`fence(Ordering::SeqCst)`",
        Some("c" | "h") => "`atomic_thread_fence(memory_order_seq_cst)`",
        _ => "`std::atomic_thread_fence(std::memory_order_seq_cst)`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_named_in_the_language_of_the_file() {
        assert_eq!(fence("queue.rs"), "`fence(Ordering::SeqCst)`");
        assert!(fence("queue.hpp").starts_with("`std::atomic_thread_fence"));
        assert!(fence("queue.c").starts_with("`atomic_thread_fence"));
    }
}
