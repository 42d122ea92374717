//! A look and the write that follows from it, for which Rust's library has one call: `get_or_init` of what is set once, and
//! `entry` of a map. What is to be held for both is said to be that.

use super::{Candidate, Kind};
use crate::Bug;
use crate::rust;
use crate::source::Span;
use model::{Event, EventTrace};

/// The same repair, in the words of the call that does both.
pub(super) fn told(bug: &Bug<'_>, mut candidate: Candidate) -> Candidate {
    if !rust::are_rust(&candidate.repair.places) {
        return candidate;
    }
    set_once(bug, &mut candidate);
    entry(bug.trace, &mut candidate);
    candidate
}

/// A new lock around asking whether something is set, and setting it, is what `get_or_init` has: it runs one thread's
/// closure, and the others wait for that.
fn set_once(bug: &Bug<'_>, candidate: &mut Candidate) {
    let trace = bug.trace;
    let repair = &mut candidate.repair;
    let asks_and_sets = |span: &Span| {
        let asked = line(trace, span, Event::asks_whether_it_is_set)?;
        let set = line(trace, span, Event::sets_once)?;
        (asked <= set).then_some((asked, set))
    };
    let is_of_cause = bug.events.iter().any(|id| trace.event(*id).sets_once());
    let is_new = repair.lock.as_ref().is_some_and(|lock| lock.new);
    let calls: Option<Vec<(u32, u32)>> = repair.places.iter().map(asks_and_sets).collect();
    let Some(calls) = calls.filter(|_| is_of_cause && is_new) else { return };
    let what = super::variables(bug).first().map(|name| super::quoted(name)).unwrap_or_default();
    let steps = repair.places.iter().zip(calls).map(|(span, (asked, set))| {
        let at = |line: u32| Span { first: line, last: line, ..span.clone() }.begin();
        format!(
            "in {}, call `get_or_init` of {what} where it is asked for ({}), and make in its closure what is set now ({})",
            span.function,
            at(asked),
            at(set)
        )
    });
    repair.steps = steps.collect();
    repair.kind = Kind::OneStep;
    repair.lock = None;
}

/// Where a map is looked into and written in lines that are to be one section, its `entry` is both.
fn entry(trace: &EventTrace, candidate: &mut Candidate) {
    let repair = &mut candidate.repair;
    if repair.lock.is_none() {
        return;
    }
    for (step, span) in repair.steps.iter_mut().zip(&repair.places) {
        let looked = line(trace, span, |event| event.inserts_into_map() == Some(false));
        let inserted = line(trace, span, |event| event.inserts_into_map() == Some(true));
        if let Some((looked, inserted)) = looked.zip(inserted)
            && looked <= inserted
        {
            let at = |line: u32| Span { first: line, last: line, ..span.clone() }.begin();
            step.push_str(&format!(
                "; `entry` and `or_insert_with` look ({}) and insert ({}) in one",
                at(looked),
                at(inserted)
            ));
        }
    }
}

/// The first of these lines in which an event is of this kind, as called by them.
fn line(trace: &EventTrace, span: &Span, fits: impl Fn(&Event) -> bool) -> Option<u32> {
    let own = trace.events.iter().filter(|event| span.has(event.site()) && fits(event));
    own.map(|event| event.site().line).min()
}
