//! Runs that are compared with each other. The lines of the two texts are the places of the events, so that
//! what both runs have stands on the same lines.

use super::explained;
use encoders::dsl::{Parsed, parse};
use explain::{Across, DataFlow, Passing, Side, across, cause};
use model::evaluate::Evaluation;
use model::{EventId, ReadRef, Schedule, WriteSource};

/// A run: its events, their order, and what they did.
pub struct Run {
    pub parsed: Parsed,
    pub schedule: Schedule,
    pub evaluation: Evaluation,
}

impl Run {
    pub fn failing(text: &str) -> Self {
        Self::explained(parse(text).expect("the text is a trace"))
    }

    /// The process died before the last thread came to its end.
    pub fn cut(text: &str) -> Self {
        let mut parsed = parse(text).expect("the text is a trace");
        let exit = parsed.trace.events.pop().expect("an event");
        assert_eq!(exit.kind.name(), "exit");
        let thread = &mut parsed.trace.threads[exit.thread.index()];
        assert_eq!(thread.events.pop(), Some(exit.id));
        Self::explained(parsed)
    }

    pub fn explained(parsed: Parsed) -> Self {
        let failing = explained(&parsed.trace, 1).failing.expect("a failing schedule");
        Self { schedule: failing.schedule, evaluation: failing.evaluation, parsed }
    }

    /// The initial thread up to its first join, then the others in this order, then its rest.
    pub fn passing(text: &str, threads: [usize; 2]) -> Self {
        let parsed = parse(text).expect("the text is a trace");
        let trace = &parsed.trace;
        let main = &trace.threads[0].events;
        let join = |id: &&EventId| trace.event(**id).kind.name() == "join";
        let first = main.iter().position(|id| join(&id)).expect("a join");
        let mut order = main[..first].to_vec();
        threads.iter().for_each(|thread| order.extend(&trace.threads[*thread].events));
        order.extend(&main[first..]);
        let schedule = Schedule { order };
        let evaluation =
            model::evaluate::evaluate(trace, &schedule, &|_| None).expect("the run can happen");
        Self { schedule, evaluation, parsed }
    }

    /// The threads' next events in turn: each number is a thread that goes on by one event.
    pub fn in_order(parsed: Parsed, threads: &[usize]) -> Self {
        let mut next = vec![0; parsed.trace.threads.len()];
        let order = threads.iter().map(|thread| {
            next[*thread] += 1;
            parsed.trace.threads[*thread].events[next[*thread] - 1]
        });
        let schedule = Schedule { order: order.collect() };
        let evaluation = model::evaluate::evaluate(&parsed.trace, &schedule, &|_| None);
        let evaluation = evaluation.expect("the run can happen");
        Self { schedule, evaluation, parsed }
    }

    pub fn side(&self) -> Side<'_> {
        Side {
            trace: &self.parsed.trace,
            schedule: &self.schedule,
            evaluation: &self.evaluation,
            points: None,
        }
    }

    pub fn event(&self, label: &str) -> EventId {
        self.parsed.event(label)
    }

    pub fn flow(&self, write: &str, read: &str) -> DataFlow {
        let write = match write {
            "init" => WriteSource::Init,
            label => WriteSource::Write(self.event(label)),
        };
        DataFlow { write, read: ReadRef { event: self.event(read), part: 0 } }
    }
}

pub fn compared(failing: &Run, passing: &Run) -> Across {
    across(failing.side(), passing.side(), None).expect("the runs differ in an order")
}

/// What is told of a failing run and one that passes along other paths.
pub fn cause_across(failing: &Run, passing: &Run) -> explain::Cause {
    let found = compared(failing, passing);
    let against = Passing::OtherPaths { run: passing.side(), across: &found, in_vain: true };
    cause(failing.side(), None, against).expect("a cause")
}
