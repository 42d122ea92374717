//! What an atomic update leaves is read again, and another thread's update comes in between: the update itself gives
//! back what is needed, as where a count of users is taken down and then asked whether it is zero.

use super::steps::{cells, is_part_of_library};
use super::{Candidate, Kind, quoted};
use crate::Bug;
use crate::enforce::{Rule, Stretch};
use crate::source::{Span, span};
use model::{Event, EventKind};
use std::collections::BTreeSet;

/// The candidate in other words, where all that it holds a new lock for is such updates and the reads behind them.
/// What the function knows from the update stays as it was, as it would under the lock.
pub(super) fn without_reading(bug: &Bug<'_>, mut candidate: Candidate) -> Candidate {
    let Some(updates) = updates(bug, &candidate) else { return candidate };
    let repair = &mut candidate.repair;
    let what = repair.variables.first().map(|name| quoted(name)).unwrap_or_default();
    let steps = updates.iter().enumerate().map(|(number, (place, wrapper))| {
        let what = if number == 0 { what.as_str() } else { "it" };
        let what = match wrapper {
            Some(wrapper) => format!("{what} in {wrapper}"),
            None => what.to_owned(),
        };
        let again = match place.first == place.last {
            true => String::new(),
            false => format!(" ({})", place.end()),
        };
        format!(
            "in {}, take what the update of {what} gives back ({}), and do not read it again{again}",
            place.function,
            place.begin()
        )
    });
    repair.steps = steps.collect();
    repair.kind = Kind::OneStep;
    repair.lock = None;
    repair.places = updates.into_iter().map(|(place, _)| place).collect();
    candidate
}

/// Where the updates are, and the reads behind them, with the function that a call there makes the update in; `None` where
/// the lock is held for anything else.
fn updates(bug: &Bug<'_>, candidate: &Candidate) -> Option<BTreeSet<(Span, Option<String>)>> {
    let trace = bug.trace;
    let is_new = candidate.repair.lock.as_ref().is_some_and(|lock| lock.new);
    let Rule::Alone(stretches) = &candidate.repair.rule else { return None };
    if !is_new || bug.events.iter().any(|id| is_part_of_library(trace, *id)) {
        return None;
    }
    let mut places = BTreeSet::new();
    for Stretch { first, last } in stretches {
        let (update, read) = (trace.event(*first), trace.event(*last));
        if first == last && is_update(update) {
            continue;
        }
        let both = is_update(update)
            && matches!(read.kind, EventKind::Read { .. })
            && cells(update) == cells(read);
        if !both {
            return None;
        }
        let place = span(update, read)?;
        let wrapper = match is_in(update, &place) && is_in(read, &place) {
            true => None,
            false if is_called_in(update, &place) && is_called_in(read, &place) => {
                Some(update.site().function.clone()).filter(|name| *name != place.function)
            }
            false => return None,
        };
        places.insert((place, wrapper));
    }
    (!places.is_empty()).then_some(places)
}

/// Is it one of the lines that does this?
fn is_in(event: &Event, place: &Span) -> bool {
    place.has(event.site())
}

/// Is it done there, or in a function that is called there, as where the project has functions of its own for atomic variables?
fn is_called_in(event: &Event, place: &Span) -> bool {
    let outer = event.stack.get(event.depth() + 1);
    is_in(event, place) || outer.is_some_and(|call| place.has(call))
}

fn is_update(event: &Event) -> bool {
    matches!(event.kind, EventKind::ReadModifyWrite { .. })
}

#[cfg(test)]
mod tests {
    use super::super::of_pattern;
    use super::*;
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;

    /// What is offered first instead of a new lock for what two threads do to a count.
    fn offered(own: &str) -> Vec<(Kind, String)> {
        let text = format!(
            "cell users 32 = 2\nt: fork u\nt: [down] RMW users -> a = a - 1\n{own}t: [look] R users -> b\nt: fail b == 0\n\
             u: [other] RMW users -> c = c - 1\nu: [last] R users -> d\n"
        );
        let mut parsed = parse(&text).expect("the text is a trace");
        for (label, line) in [("down", 29), ("look", 30), ("other", 29), ("last", 30)] {
            let id = parsed.event(label);
            let file = "frames.c".to_owned();
            let site = Site { file, line, column: 5, function: "release".to_owned() };
            parsed.trace.events[id.index()].stack = [site].into();
        }
        let events = ["down", "other", "look"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events);
        let all = of_pattern(&bug).into_iter();
        all.map(|Candidate { repair, .. }| (repair.kind, repair.steps.join("; "))).collect()
    }

    /// The same where each of the steps is a function of its own.
    fn offered_by_way_of(outer: [(&str, u32); 2]) -> Vec<(Kind, String)> {
        let text = "cell users 32 = 2\nt: fork u\nt: [down] RMW users -> a = a - 1\nt: [look] R users -> b\nt: fail b == 0\n\
             u: [other] RMW users -> c = c - 1\nu: [last] R users -> d\n";
        let mut parsed = parse(text).expect("the text is a trace");
        for label in ["down", "look", "other", "last"] {
            let is_read = matches!(label, "look" | "last");
            let (inner, line) = if is_read { ("users_of", 46) } else { ("drop_user", 41) };
            let (function, call) = outer[usize::from(is_read)];
            let site = |file: &str, line: u32, function: &str| Site {
                file: file.to_owned(),
                line,
                column: 5,
                function: function.to_owned(),
            };
            let id = parsed.event(label);
            let stack = [site("users.c", line, inner), site("frames.c", call, function)];
            parsed.trace.events[id.index()].stack = stack.into();
        }
        let events = ["down", "other", "look"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events);
        let all = of_pattern(&bug).into_iter();
        all.map(|Candidate { repair, .. }| (repair.kind, repair.steps.join("; "))).collect()
    }

    #[test]
    fn an_update_in_a_function_of_its_own_gives_back_what_it_leaves() {
        let found = offered_by_way_of([("release", 29), ("release", 30)]);
        let text = "in release, take what the update of `users` in drop_user gives back (frames.c:29), and do not read it \
                    again (frames.c:30)";
        assert!(found.contains(&(Kind::OneStep, text.to_owned())), "{found:?}");
        assert!(found.iter().all(|(kind, _)| *kind != Kind::CriticalSection), "{found:?}");
        // What another function asks later is told to nobody by the update.
        let found = offered_by_way_of([("release", 29), ("report", 80)]);
        assert!(found.iter().all(|(kind, _)| *kind != Kind::OneStep), "{found:?}");
    }

    #[test]
    fn an_update_gives_back_what_it_leaves() {
        let found = offered("");
        let text = "in release, take what the update of `users` gives back (frames.c:29), and do not read it again (frames.c:30)";
        assert!(found.contains(&(Kind::OneStep, text.to_owned())), "{found:?}");
        assert!(found.iter().all(|(kind, _)| *kind != Kind::CriticalSection), "{found:?}");
    }
}
