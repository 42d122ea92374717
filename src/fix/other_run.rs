//! Causes about an event that the failing run ended before: a run that passes has it.

use super::{FixError, Recorded};
use crate::pipeline::ReplayOptions;
use crate::replay::across::{self, CrossAlternate, Failing};
use explain::{CauseEvent, Flipped, Passing, Side};
use model::evaluate::Evaluator;
use model::{EventId, Schedule, VarId, VariableOrigin};
use repair::{Ordered, ordered};
use std::time::{Duration, Instant};
use symex::Execution;
use trace_format::{Manifest, State};

/// Runs the program along other paths until it passes, and gives that run with the order of its events
/// that the failing run had the other way round. `None` where no such run was found, in that time and before that
/// moment.
///
/// # Errors
/// When the trace cannot be read, or the user interrupts.
pub(super) fn find(
    recorded: &Recorded,
    schedule: &[EventId],
    time: Duration,
    until: Option<Instant>,
) -> Result<Option<Ordered>, FixError> {
    let directory = &recorded.directory;
    let mut manifest = Manifest::read(directory).map_err(crate::replay::ReplayError::from)?;
    if manifest.state == State::Recording {
        trace_format::read_raw(directory, &mut manifest)
            .map_err(crate::replay::ReplayError::from)?;
    }
    let options = ReplayOptions::default();
    let settings = options.settings(&manifest);
    let Ok(target) = options.target(directory, &manifest) else { return Ok(None) };
    let target = target.until(until);
    let Execution { trace, points, inputs, .. } = &recorded.execution;
    let schedule = Schedule { order: schedule.to_vec() };
    let input = |var: VarId| {
        let variable = trace.variables.get(var.index())?;
        match variable.origin {
            VariableOrigin::Read { .. } => None,
            _ => Some(variable.recorded.unwrap_or(0)),
        }
    };
    let Ok(evaluation) = Evaluator::new(trace).run(&schedule.order, &input) else {
        return Ok(None);
    };
    let failing = Failing {
        manifest: &manifest,
        trace,
        points,
        inputs,
        schedule: &schedule,
        evaluation: &evaluation,
    };
    let found = across::search(
        &failing,
        &target,
        &settings,
        Instant::now().checked_add(time).into_iter().chain(until).min(),
    )?;
    let Some(found) = found.alternate else {
        tracing::debug!(attempts = found.attempts, "no run passes");
        return Ok(None);
    };
    let (first, then) = match named(&failing, &found).unwrap_or(found.across.flipped) {
        Flipped::Late { after, needs, .. } => (Some(after), Some(needs)),
        Flipped::Reversed(order) => {
            let there = |id| found.across.matching.in_passing(id);
            (there(order.after), there(order.before))
        }
    };
    Ok(first.zip(then).and_then(|(first, then)| ordered(&found.trace, first, then)))
}

/// What the sentence about the cause names of the two runs, where that is an event that only the second one has.
fn named(failing: &Failing<'_>, found: &CrossAlternate) -> Option<Flipped> {
    let side = Side {
        trace: failing.trace,
        schedule: failing.schedule,
        evaluation: failing.evaluation,
        points: Some(failing.points),
    };
    let run = Side {
        trace: &found.trace,
        schedule: &found.schedule,
        evaluation: &found.evaluation,
        points: None,
    };
    let passing = Passing::OtherPaths { run, across: &found.across, in_vain: false };
    match *explain::cause(side, None, passing)?.events {
        [CauseEvent::Failing(before), CauseEvent::Passing(after)] => {
            let needs = found.across.matching.in_passing(before)?;
            Some(Flipped::Late { before, after, needs })
        }
        _ => None,
    }
}
