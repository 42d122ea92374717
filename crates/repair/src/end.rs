//! The end of a long run: what a repair does is looked at where the failure came about.
//!
//! No schedule of the run that begins as the failing one did and fails with a repair is left out; what the repair
//! would have changed before is not looked at.

use crate::check::Limits;
use crate::{Bug, Repair};
use encoders::Slice;
use model::evaluate::Evaluator;
use model::{EventId, Schedule};
use std::collections::BTreeSet;
use std::time::Duration;

/// One question about an end may take no longer than that.
const LONGEST: Duration = Duration::from_secs(5);

/// An end of a run, and the cause in it.
pub(crate) struct End {
    window: Slice,
    events: Vec<EventId>,
    schedule: Vec<EventId>,
}

impl End {
    /// The ends to look at, the one to begin with in front: the shortest with all the places of the program at which the
    /// longest one has what the cause is about. None where the run is not long or the failing schedule is not one of
    /// all its events.
    pub(crate) fn of(bug: &Bug<'_>) -> Vec<Self> {
        let Bug { trace, schedule, events, .. } = *bug;
        if !encoders::is_long(trace) || schedule.len() != trace.events.len() {
            return Vec::new();
        }
        let order = Schedule { order: schedule.to_vec() };
        let recorded = |id: model::VarId| {
            Some(trace.variables.get(id.index()).and_then(|of| of.recorded).unwrap_or(0))
        };
        let Ok(evaluation) = Evaluator::new(trace).run(&order.order, &recorded) else {
            return Vec::new();
        };
        let decides = schedule.iter().position(|id| events.contains(id));
        let parts = encoders::ends(trace, &order, decides);
        let windows =
            parts.into_iter().filter_map(|part| encoders::window(trace, &order, &evaluation, part));
        let ends = windows.filter_map(|window| Self::in_window(bug, window));
        let mut ends: Vec<Self> = ends.collect();
        let places: Vec<usize> = ends.iter().map(|end| end.places(bug).len()).collect();
        let most = places.iter().max().copied().unwrap_or(0);
        if let Some(first) = places.iter().position(|places| *places == most) {
            ends[..=first].rotate_right(1);
        }
        ends
    }

    /// `None` where not all events of the cause are in the window.
    fn in_window(bug: &Bug<'_>, window: Slice) -> Option<Self> {
        let events: Option<Vec<EventId>> = bug.events.iter().map(|id| window.find(*id)).collect();
        let schedule = bug.schedule.iter().filter_map(|id| window.find(*id)).collect();
        Some(Self { events: events?, schedule, window })
    }

    /// The places at which the end has accesses and operations like those of the cause.
    fn places(&self, bug: &Bug<'_>) -> BTreeSet<(&str, u32)> {
        let of_cause = bug.events.iter().map(|id| bug.trace.event(*id));
        let names: BTreeSet<&str> = of_cause.filter_map(|event| event.name.as_deref()).collect();
        let named = self
            .window
            .trace
            .events
            .iter()
            .filter(|event| event.name.as_deref().is_some_and(|name| names.contains(name)));
        named.map(|event| (event.site().file.as_str(), event.site().line)).collect()
    }

    /// How many events it has.
    pub(crate) fn len(&self) -> usize {
        self.window.trace.events.len()
    }

    /// The cause in the end's events.
    pub(crate) fn bug<'a>(&'a self, recorded: &Bug<'a>) -> Bug<'a> {
        Bug {
            trace: &self.window.trace,
            events: &self.events,
            schedule: &self.schedule,
            ..*recorded
        }
    }

    /// What may be asked about it.
    pub(crate) fn limits(limits: Limits<'_>) -> Limits<'_> {
        Limits { time: limits.time.min(LONGEST), ..limits }
    }

    /// Lets a repair speak of the whole run's events.
    pub(crate) fn recorded(&self, repair: &mut Repair) {
        if let Some(checked) = &mut repair.checked {
            checked.end = Some(self.len());
        }
        repair.speak_of(|id| (id.index() < self.len()).then(|| self.window.event(id)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Rule, Uses, repairs};
    use encoders::dsl::{Parsed, parse};
    use explain::Pattern;
    use model::Site;
    use solver::{Goal, OrderingSession, Outcome, Session};
    use std::fmt::Write;

    /// Somebody works for long, and then says that something is there before it is.
    fn run(rounds: usize) -> Parsed {
        let mut text = String::new();
        for round in 0..rounds {
            writeln!(text, "t0: R work -> w{round}\nt0: W work {round}").expect("text");
        }
        text.push_str(
            "t0: fork a
            t0: fork b
            a: [say] W there 1
            a: [put] W place 1
            b: R there -> t
            b: assume t == 1
            b: [get] R place -> p
            b: fail p == 0
            ",
        );
        let mut parsed = parse(&text).expect("the text is a trace");
        for (label, line) in [("say", 28), ("put", 29), ("get", 36)] {
            let function = if line < 30 { "put_down" } else { "take_up" };
            let (file, function) = ("quay.c".to_owned(), function.to_owned());
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 1, function }].into();
        }
        parsed
    }

    fn found(parsed: &Parsed) -> Vec<Repair> {
        let trace = &parsed.trace;
        let limits =
            Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };
        let system = limits.encode(trace).expect("the trace has constraints");
        let mut session = OrderingSession::new(trace, &system, limits.of_question());
        let failing = match session.check(Goal::Fail, &[]).expect("the solver answers") {
            Outcome::Sat(failing) => failing.schedule.order,
            other => panic!("it can fail: {other:?}"),
        };
        let events = ["get", "put"].map(|label| parsed.event(label));
        let bug = Bug {
            trace,
            pattern: Pattern::Order,
            events: &events,
            schedule: &failing,
            handlers: &[],
            uses: Uses::NONE,
        };
        repairs(&bug, &[], 10, limits).expect("the solver answers").found
    }

    #[test]
    fn a_long_run_is_repaired_at_its_end_and_speaks_of_all_its_events() {
        let (short, long) = (run(10), run(4_000));
        let (of_short, of_long) = (found(&short), found(&long));
        assert!(!of_short.is_empty());
        let told = |found: &[Repair]| -> Vec<(Kind, Vec<String>)> {
            found.iter().map(|repair| (repair.kind, repair.steps.clone())).collect()
        };
        assert_eq!(told(&of_short), told(&of_long));
        let ends = |found: &[Repair]| -> Vec<Option<usize>> {
            found.iter().map(|repair| repair.checked.as_ref().and_then(|it| it.end)).collect()
        };
        assert!(ends(&of_short).iter().all(Option::is_none));
        assert!(ends(&of_long).iter().all(|end| end.is_some_and(|events| events < 1_000)));
        let labels = ["say", "put", "get"].map(|label| long.event(label));
        for repair in &of_long {
            let events = match &repair.rule {
                Rule::Alone(stretches) => {
                    stretches.iter().flat_map(|part| [part.first, part.last]).collect()
                }
                Rule::After { first, then } => [first.clone(), then.clone()].concat(),
                Rule::None => Vec::new(),
            };
            assert!(events.iter().all(|id| long.trace.event(*id).thread.index() > 0), "{repair:?}");
            let names = |id: &EventId| labels.contains(id);
            assert!(events.is_empty() || events.iter().any(names), "{repair:?}");
            let passing = repair.checked.as_ref().and_then(|it| it.passing.as_ref());
            assert!(passing.is_some_and(|order| order.contains(&labels[1])), "{repair:?}");
        }
    }
}
