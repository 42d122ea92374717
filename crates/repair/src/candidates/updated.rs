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
    let Some(places) = updates(bug, &candidate) else { return candidate };
    let repair = &mut candidate.repair;
    let what = repair.variables.first().map(|name| quoted(name)).unwrap_or_default();
    let steps = places.iter().enumerate().map(|(number, place)| {
        let what = if number == 0 { what.as_str() } else { "it" };
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
    repair.places = places.into_iter().collect();
    candidate
}

/// Where the updates are, and the reads behind them; `None` where the lock is held for anything else.
fn updates(bug: &Bug<'_>, candidate: &Candidate) -> Option<BTreeSet<Span>> {
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
        let (here, there) = (update.site(), read.site());
        let both = is_update(update)
            && matches!(read.kind, EventKind::Read { .. })
            && cells(update) == cells(read)
            && (&here.function, &here.file) == (&there.function, &there.file);
        if !both {
            return None;
        }
        places.insert(span(update, read)?);
    }
    (!places.is_empty()).then_some(places)
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

    #[test]
    fn an_update_gives_back_what_it_leaves() {
        let found = offered("");
        let text = "in release, take what the update of `users` gives back (frames.c:29), and do not read it again (frames.c:30)";
        assert!(found.contains(&(Kind::OneStep, text.to_owned())), "{found:?}");
        assert!(found.iter().all(|(kind, _)| *kind != Kind::CriticalSection), "{found:?}");
    }
}
