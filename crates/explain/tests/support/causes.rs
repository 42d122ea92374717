//! Causes of traces in text form.

use super::explained;
use encoders::dsl::{Parsed, parse};
use explain::{Cause, CauseEvent, Passing, Side, cause};
use model::EventId;

pub fn trace(text: &str) -> Parsed {
    parse(text).expect("the text is a trace")
}

pub fn cause_of(parsed: &Parsed) -> Cause {
    let explanation = explained(&parsed.trace, 1);
    let failing = explanation.failing.as_ref().expect("a failing schedule");
    let side = Side {
        trace: &parsed.trace,
        schedule: &failing.schedule,
        evaluation: &failing.evaluation,
        points: None,
    };
    let along = explanation.alternates.found.first().zip(explanation.dsps.first());
    let passing =
        along.map_or(Passing::None, |(alternate, dsp)| Passing::SamePaths { alternate, dsp });
    cause(side, explanation.root_cause.as_ref(), passing).expect("a cause")
}

pub fn events(parsed: &Parsed, labels: &[&str]) -> Vec<CauseEvent> {
    let ids: Vec<EventId> = labels.iter().map(|label| parsed.event(label)).collect();
    ids.into_iter().map(CauseEvent::Failing).collect()
}
