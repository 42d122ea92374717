//! From a run that passed to what it differs in from the failing schedule.

use super::super::original::executed;
use super::{Attempt, Failing, Told};
use explain::{Across, Side};
use model::evaluate::{Evaluation, Evaluator};
use model::{EventTrace, Schedule, Site, VarId};
use solver::Order;
use std::path::Path;
use symex::Execution;
use trace_format::Trace;
use trace_format::layout::OrderRecord;

/// A run that passed, executed and compared.
pub(super) struct Compared {
    pub(super) execution: Execution,
    pub(super) schedule: Schedule,
    pub(super) evaluation: Evaluation,
    pub(super) across: Across,
}

/// Executes a run that passed, finds out in which order it did what it did, and compares it with
/// the failing schedule: what it was made to reverse (`forced`), and what it was to tell of. Else says why that is not possible.
pub(super) fn compared(
    failing: &Failing<'_>,
    attempt: &Attempt,
    forced: Option<Order>,
    told: &Told,
) -> Result<Compared, String> {
    let execution = executed(attempt).ok_or("its trace cannot be executed, or is too long")?;
    let trace = &execution.trace;
    if trace.failure.is_some() {
        return Err("it failed after all".to_owned());
    }
    let records = turns(&attempt.directory, trace)?;
    let schedule = schedule::observed(trace, &execution.points, &records)
        .map_err(|error| error.to_string())?;
    let recorded = |var: VarId| trace.variables.get(var.index()).and_then(|v| v.recorded);
    let evaluation = Evaluator::new(trace).run(&schedule.order, &recorded).map_err(|errors| {
        let first = errors.first().map(ToString::to_string).unwrap_or_default();
        format!("its order cannot be: {first}")
    })?;
    if let Some(condition) = evaluation.violated.first() {
        let place = trace.conditions.get(condition.index()).map(|condition| {
            let Site { file, line, .. } = &condition.site;
            let thread = &trace.threads[condition.thread.index()].name;
            format!(" of {thread} ({}:{line})", file.rsplit('/').next().unwrap_or_default())
        });
        let place = place.unwrap_or_default();
        return Err(format!("its order leaves its own path at {condition}{place}"));
    }
    let here = Side {
        trace: failing.trace,
        schedule: failing.schedule,
        evaluation: failing.evaluation,
        points: Some(failing.points),
    };
    let points = Some(&execution.points);
    let there = Side { trace, schedule: &schedule, evaluation: &evaluation, points };
    let across = match told {
        Told::Check(check) => explain::across_check(here, there, forced, *check)
            .ok_or("the check went the same way, or has read the same")?,
        Told::Interrupted(steps) => explain::across_interrupted(here, there, steps)
            .ok_or("none of the steps' accesses come in another order")?,
        Told::Failure => {
            explain::across(here, there, forced).ok_or("it has no pair in another order")?
        }
    };
    Ok(Compared { execution, schedule, evaluation, across })
}

/// The turns of a scheduled run: the thread's index in the event trace, and how many gates and sync
/// points it had passed at the turn's end.
pub(in crate::replay) fn turns(
    directory: &Path,
    trace: &EventTrace,
) -> Result<Vec<(usize, u64, u64)>, String> {
    let recorded = Trace::open(directory).map_err(|error| error.to_string())?;
    let records = recorded.order().map_err(|error| error.to_string())?;
    let records = records.ok_or("its threads ran freely")?;
    let index = |serial: u64| {
        let thread = recorded.threads().iter().find(|thread| thread.serial == serial)?;
        trace.threads.iter().position(|other| other.name == thread.name)
    };
    let turn = |record: OrderRecord| {
        let thread =
            index(record.thread).ok_or("its order names a thread that it does not have")?;
        Ok((thread, record.gates, record.points))
    };
    records.into_iter().map(turn).collect()
}
