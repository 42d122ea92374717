//! The answer's sentence about the cause.

use super::across::Identifiers;
use crate::replay::across::CrossAlternate;
use explain::{CauseEvent, Explanation, Passing, Side};
use model::EventTrace;
use render::Solution;
use render::solution::Cause;

/// Adds the cause in one sentence. `across` is the alternate along other paths, where the answer
/// shows one; `trace` is the one that the explanation is about.
pub fn add_cause(
    solution: &mut Solution,
    trace: &EventTrace,
    explanation: &Explanation,
    across: Option<&CrossAlternate>,
) {
    let Some(failing) = &explanation.failing else { return };
    let side =
        Side { trace, schedule: &failing.schedule, evaluation: &failing.evaluation, points: None };
    let along = explanation.alternates.found.first().zip(explanation.dsps.first());
    let passing = match (across, along) {
        (Some(found), _) => Passing::OtherPaths {
            run: Side {
                trace: &found.trace,
                schedule: &found.schedule,
                evaluation: &found.evaluation,
                points: None,
            },
            across: &found.across,
        },
        (None, Some((alternate, dsp))) => Passing::SamePaths { alternate, dsp },
        (None, None) => Passing::None,
    };
    let identifiers = across.map(|found| Identifiers::new(&found.across.matching, &found.trace));
    let identifier = |event: &CauseEvent| match (event, &identifiers) {
        (CauseEvent::Passing(id), Some(identifiers)) => identifiers.of(*id),
        (CauseEvent::Failing(id) | CauseEvent::Passing(id), _) => id.to_string(),
    };
    let cause = explain::cause(side, explanation.root_cause.as_ref(), passing);
    solution.cause = cause.map(|cause| Cause {
        pattern: cause.pattern.name().to_owned(),
        case: cause.case.map(str::to_owned),
        sentence: cause.sentence,
        variables: cause.variables,
        events: cause.events.iter().map(identifier).collect(),
        names: cause.names,
        fingerprint: cause.fingerprint,
    });
}
