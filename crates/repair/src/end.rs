//! The end of a long run: what a repair does is looked at where the failure came about.
//!
//! No schedule of the run that begins as the failing one did and fails with a repair is left out; what the repair
//! would have changed before is not looked at.

use crate::check::Limits;
use crate::{Bug, Repair};
use encoders::Slice;
use model::evaluate::{Evaluation, Evaluator};
use model::{ConditionId, EventId, Schedule};
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

/// One question about an end may take no longer than that.
const LONGEST: Duration = Duration::from_secs(5);

/// An end of a run, and the cause in it.
pub(crate) struct End {
    window: Slice,
    events: Vec<EventId>,
    schedule: Vec<EventId>,
    /// It ends with a check that the failure tells of.
    before_check: bool,
}

impl End {
    /// The ends to look at, one after the other: what came before the check that the failure tells of, where it does, and
    /// else what came shortly before the failure. None where the run is neither long nor of that kind, or the failing
    /// schedule is not one of all its events.
    pub(crate) fn of<'a>(
        bug: &'a Bug<'a>,
        told_of: Option<ConditionId>,
    ) -> impl Iterator<Item = Self> + 'a {
        let is_long = encoders::is_long(bug.trace);
        let known = (is_long || told_of.is_some()).then(|| known(bug)).flatten();
        let before_check = known.as_ref().zip(told_of).and_then(|((order, evaluation), check)| {
            let mut sizes = encoders::BEFORE_CHECK.into_iter();
            sizes.find_map(|most| {
                let (window, order) =
                    encoders::up_to_check(bug.trace, order, evaluation, check, most)?;
                let end = Self::in_window(bug, window)?;
                Some(Self { schedule: order.order, before_check: true, ..end })
            })
        });
        let long = known.as_ref().filter(|_| is_long);
        let parts = long.map(|(order, _)| parts(bug, order)).unwrap_or_default();
        let windows = parts.into_iter().filter_map(move |part| {
            let (order, evaluation) = known.as_ref()?;
            let window = encoders::window(bug.trace, order, evaluation, part)?;
            Self::in_window(bug, window)
        });
        before_check.into_iter().chain(windows)
    }

    /// `None` where not all events of the cause are in the window.
    fn in_window(bug: &Bug<'_>, window: Slice) -> Option<Self> {
        let events: Option<Vec<EventId>> = bug.events.iter().map(|id| window.find(*id)).collect();
        let schedule = bug.schedule.iter().filter_map(|id| window.find(*id)).collect();
        Some(Self { events: events?, schedule, window, before_check: false })
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
            checked.before_check = self.before_check;
        }
        repair.speak_of(|id| (id.index() < self.len()).then(|| self.window.event(id)));
    }
}

/// The failing schedule, where it is one of all events, and what it does.
fn known(bug: &Bug<'_>) -> Option<(Schedule, Evaluation)> {
    let Bug { trace, schedule, .. } = *bug;
    if schedule.len() != trace.events.len() {
        return None;
    }
    let recorded = |var| Some(trace.recorded_value(var));
    let evaluation = Evaluator::new(trace).run(schedule, &recorded).ok()?;
    Some((Schedule { order: schedule.to_vec() }, evaluation))
}

/// The parts of the schedule that may be an end, the one to begin with in front: the shortest in which what the cause is
/// about is used at as many places of the program as in any.
fn parts(bug: &Bug<'_>, order: &Schedule) -> Vec<Range<usize>> {
    let decides = order.order.iter().position(|id| bug.events.contains(id));
    let mut parts = encoders::ends(bug.trace, order, decides);
    let named = bug.events.iter().filter_map(|id| bug.trace.event(*id).name.as_deref());
    let names: BTreeSet<&str> = named.collect();
    let places = |part: &Range<usize>| -> usize {
        let events = order.order[part.clone()].iter().map(|id| bug.trace.event(*id));
        let named = events.filter(|e| e.name.as_deref().is_some_and(|name| names.contains(name)));
        named.map(|event| (&event.site().file, event.site().line)).collect::<BTreeSet<_>>().len()
    };
    let counts: Vec<usize> = parts.iter().map(places).collect();
    if let Some(first) = counts.iter().position(|count| Some(count) == counts.iter().max()) {
        parts[..=first].rotate_right(1);
    }
    parts
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

    /// Somebody works for long, and then says that something is there before it is. In one of the rounds, the place is
    /// looked at besides.
    fn run(rounds: usize, looks: Option<usize>) -> Parsed {
        let mut text = String::new();
        for round in 0..rounds {
            writeln!(text, "t0: R work -> w{round}\nt0: W work {round}").expect("text");
            if looks == Some(round) {
                text.push_str("t0: R place -> empty\n");
            }
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
        repairs(&bug, None, &[], 10, limits).expect("the solver answers").found
    }

    #[test]
    fn a_long_run_is_repaired_at_its_end_and_speaks_of_all_its_events() {
        let (short, long) = (run(10, None), run(4_000, None));
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

    #[test]
    fn an_end_with_all_the_places_of_what_the_cause_is_about_comes_first() {
        let events = |looks: Option<usize>| {
            let found = found(&run(6_200, looks));
            found[0].checked.as_ref().and_then(|it| it.end).expect("it was looked at the end")
        };
        assert!(events(None) < 1_000);
        // A thousand events before the failure; and further away than any end goes.
        assert!(events(Some(5_700)) > 2_000);
        assert!(events(Some(100)) < 1_000);
    }

    /// A monitor sees the first of two variables that belong together without the second, and the run fails by what it noted.
    #[test]
    fn where_the_failure_tells_of_a_check_what_came_before_that_is_the_end() {
        let text = "
            t0: fork a
            t0: fork b
            a: [take] lock m
            a: [up] W level 1
            a: unlock m
            a: lock m
            a: [turn] W trend 2
            a: [done] unlock m
            b: lock m
            b: [level] R level -> l
            b: [trend] R trend -> t
            b: unlock m
            b: assume t != l + l
            b: [more] R work -> w
            t0: join a
            t0: W work 1
            t0: join b
            t0: fail
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        for event in &mut parsed.trace.events {
            let function = ["main", "measure", "monitor"][event.thread.index()].to_owned();
            let line = 10 * event.thread.0 + event.index;
            event.stack = [Site { file: "gauge.c".to_owned(), line, column: 1, function }].into();
        }
        let trace = &parsed.trace;
        let limits =
            Limits { time: Duration::from_secs(60), memory_mb: None, left: &|| Duration::MAX };
        let system = limits.encode(trace).expect("the trace has constraints");
        let mut session = OrderingSession::new(trace, &system, limits.of_question());
        let Outcome::Sat(failing) = session.check(Goal::Fail, &[]).expect("an answer") else {
            panic!("it can fail");
        };
        let events = ["up", "level", "trend", "turn"].map(|label| parsed.event(label));
        let bug = Bug {
            trace,
            pattern: Pattern::SeveralVariables,
            events: &events,
            schedule: &failing.schedule.order,
            handlers: &[],
            uses: Uses::NONE,
        };
        let check = trace.conditions[0].id;
        let found = repairs(&bug, Some(check), &[], 10, limits).expect("an answer").found;
        let across = found.iter().find(|repair| repair.kind == Kind::HoldAcross);
        let checked = across.and_then(|repair| repair.checked.as_ref()).expect("the lock is held");
        assert!(checked.before_check);
        assert!(checked.end.is_some_and(|events| events < trace.events.len()), "{checked:?}");
        // A schedule passes on the paths up to there, as none of the whole run does.
        let passing = checked.passing.as_ref().expect("a schedule that passes");
        assert!(passing.contains(&parsed.event("trend")));
        let found = repairs(&bug, None, &[], 10, limits).expect("an answer").found;
        let whole = found.iter().filter_map(|repair| repair.checked.as_ref());
        assert!(
            whole.into_iter().all(|checked| checked.passing.is_none() && checked.end.is_none())
        );
    }
}
