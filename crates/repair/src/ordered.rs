//! A run that passes, with an order of its events as what makes it fail.

use crate::check::Limits;
use crate::edit::Edit;
use model::{ConditionId, EventId, EventKind, EventTrace, FailureCondition};
use solver::{Goal, OrderingSession, Outcome, Session, SolverError};

/// A run that passes, and the order in which two of its events must not come.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// The run; it counts as failing when `then` comes before `first`.
    pub trace: EventTrace,
    /// What has to come first.
    pub first: EventId,
    /// What needs it.
    pub then: EventId,
}

/// Where a failing run ended before the event that came too late, nothing can be shown on it. A run that
/// passes has the event: along its paths the program may not have the order of the cause.
///
/// `None` when the trace has no such events.
#[must_use]
pub fn ordered(passing: &EventTrace, first: EventId, then: EventId) -> Option<Ordered> {
    passing.events.get(first.index()).and(passing.events.get(then.index()))?;
    // The initial thread ends the run; nobody waits for its end.
    let initial = passing.threads.first()?.events.iter();
    let end = *initial.rev().find(|id| passing.event(**id).kind == EventKind::Exit)?;
    let mut edit = Edit::new(passing);
    edit.fails_at(end, FailureCondition::Before(then, first));
    let mut edited = edit.finish()?;
    let image = |id: EventId| {
        let at = edited.origin.iter().position(|origin| *origin == Some(id));
        at.map(EventId::from_index)
    };
    let (first, then) = (image(first)?, image(then)?);
    // With the other order the thread goes on otherwise behind that: that it went on as in a run that passes is no
    // reason why the order cannot be. An assertion that holds is such a reason.
    let (thread, index) = (edited.trace.event(then).thread, edited.trace.event(then).index);
    edited.trace.conditions.retain(|c| c.thread != thread || c.position <= index);
    for (number, condition) in edited.trace.conditions.iter_mut().enumerate() {
        condition.id = ConditionId::from_index(number);
    }
    Some(Ordered { trace: edited.trace, first, then })
}

impl Ordered {
    /// Can the run, as it is, have the order that makes it fail? Otherwise that it cannot with a repair says nothing.
    /// No where the solver has no answer within the limits.
    ///
    /// # Errors
    /// When the solver breaks.
    pub fn can_fail(&self, limits: Limits<'_>) -> Result<bool, SolverError> {
        let Ok(system) = limits.encode(&self.trace) else { return Ok(false) };
        let mut session = OrderingSession::new(&self.trace, &system, limits.of_question());
        Ok(matches!(session.check(Goal::Fail, &[])?, Outcome::Sat(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use std::time::Duration;

    fn can_fail(text: &str) -> bool {
        let parsed = parse(text).expect("the text is a trace");
        let [put, get] = ["put", "get"].map(|label| parsed.event(label));
        let limits =
            Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };
        let ordered = ordered(&parsed.trace, put, get).expect("both events are there");
        ordered.can_fail(limits).expect("the solver answers")
    }

    /// That an assertion held in the run that passes does not keep the order from coming up; what the thread waited
    /// for does.
    #[test]
    fn what_is_asserted_behind_a_step_orders_nothing() {
        let text = "
            cell item 32 = 0
            sem full 0
            t0: fork a
            a: post full
            a: [put] W item 1
            t0: sem-wait full
            t0: [get] R item -> i
            t0: assume i == 1
        ";
        assert!(can_fail(text));
        let late = text.replace("a: post full", "").replace("item 1", "item 1\na: post full");
        assert!(!can_fail(&late));
    }
}
