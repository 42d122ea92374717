//! Lines behind those of a repair that read again in the source what these write, while the compiler had kept the value, so
//! that the recorded run has no read there: with the lock given back before, or behind the one step, they would read what
//! another thread has written meanwhile.

use super::{Candidate, Kind, quoted};
use crate::source::Span;
use crate::uses::Uses;
use explain::last_member;

/// Adds to each repair that keeps lines together which lines behind these are to take what was written.
pub(super) fn told(uses: Uses<'_>, found: &mut [Candidate]) {
    let keeps =
        |kind: Kind| matches!(kind, Kind::HoldAcross | Kind::CriticalSection | Kind::OneStep);
    for Candidate { repair, .. } in found.iter_mut().filter(|found| keeps(found.repair.kind)) {
        let variables = &repair.variables;
        let of_repair =
            |name: &str| variables.iter().any(|own| last_member(own) == last_member(name));
        let mut steps = Vec::new();
        for place in repair.places.iter().filter(|place| place.first > 0) {
            let again = uses.0.reads_again(&place.file, place.first, place.last);
            for (line, name) in again.into_iter().filter(|(_, name)| of_repair(name)) {
                let at = Span { first: line, last: line, ..place.clone() };
                let known = |other: &Span| {
                    other.file == at.file && (other.first..=other.last).contains(&line)
                };
                if repair.places.iter().any(known) {
                    continue;
                }
                steps.push(format!(
                    "do not read {} again at {} in {}, but keep what is written",
                    quoted(&name),
                    at.begin(),
                    at.function
                ));
            }
        }
        for step in steps {
            if !repair.steps.contains(&step) {
                repair.steps.push(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::all;
    use super::*;
    use crate::{Bug, LineUse, Lines};
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;
    use std::collections::BTreeMap;

    struct Again(&'static str);

    impl Lines for Again {
        fn uses(&self, _: &str, _: u32, _: u32) -> Vec<LineUse> {
            Vec::new()
        }

        fn reads_again(&self, _: &str, _: u32, last: u32) -> Vec<(u32, String)> {
            vec![(last + 3, self.0.to_owned())]
        }
    }

    #[test]
    fn what_was_written_is_not_read_again_behind_the_lines() {
        let text = "cell last 16 = 7\nt: fork u\nt: [look] R last -> a\nt: [count] W last a + 1\n\
                    u: [other] R last -> b\nu: [overtake] W last b + 1\nt: join u\nt: fail a == b\n";
        let mut parsed = parse(text).expect("the text is a trace");
        for (label, line) in [("look", 52), ("count", 53), ("other", 52), ("overtake", 53)] {
            let id = parsed.event(label);
            let (file, function) = ("mid.c".to_owned(), "next".to_owned());
            parsed.trace.events[id.index()].stack =
                [Site { file, line, column: 3, function }].into();
        }
        let [look, overtake, count] =
            ["look", "overtake", "count"].map(|label| parsed.event(label));
        let told = |name: &'static str| {
            let again = Again(name);
            let bug = Bug {
                trace: &parsed.trace,
                pattern: Pattern::Atomicity,
                events: &[look, overtake, count],
                schedule: &[look, overtake, count],
                handlers: &[],
                uses: Uses(&again),
            };
            let kept = |step: &String| step.contains("again at mid.c:56 in next, but keep what");
            let found = all(&bug);
            let keeps = |kind: Kind| matches!(kind, Kind::OneStep | Kind::CriticalSection);
            let found = found.into_iter().filter(|found| keeps(found.repair.kind));
            let mut kinds = BTreeMap::new();
            for found in found {
                let told = found.repair.steps.iter().any(kept);
                kinds.entry(found.repair.kind).or_insert_with(Vec::new).push(told);
            }
            kinds
        };
        for (kind, found) in told("m->last") {
            assert!(found.iter().all(|told| *told), "{kind:?}");
        }
        let other = told("m->other");
        assert!(other.contains_key(&Kind::OneStep) && other.contains_key(&Kind::CriticalSection));
        assert!(!other.values().flatten().any(|told| *told), "not what the repair is about");
    }
}
