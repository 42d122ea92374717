//! φsync: a thread starts after its creation and is joined after its end; an object is obtained before it is given back; and
//! what every schedule of a trace has besides.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventKind, EventTrace, ObjectId};
use std::collections::HashMap;

/// One constraint per fork, join, given order, and free of an object whose allocation is an event. The edges enter the closure.
pub(crate) fn encode(context: &mut Context<'_>, builder: &mut Builder) {
    let mut edges = edges(context.trace);
    let lifetimes = lifetimes(context.trace);
    for (kind, edges) in
        [(ConstraintKind::ForkJoin, &edges), (ConstraintKind::Lifetime, &lifetimes)]
    {
        for &(a, b) in edges {
            builder.add(kind, [a, b], Term::Before(a, b));
        }
    }
    edges.extend(lifetimes);
    // A cycle here (a thread that joins its creator) makes the system unsatisfiable, which the
    // constraints above say without the closure's help.
    context.closure.add(context.trace, &edges);
}

fn edges(trace: &EventTrace) -> Vec<(EventId, EventId)> {
    let mut edges = Vec::new();
    for event in &trace.events {
        match event.kind {
            EventKind::Fork { child } => {
                let first =
                    trace.threads.get(child.index()).and_then(|thread| thread.events.first());
                edges.extend(first.map(|&first| (event.id, first)));
            }
            EventKind::Join { child } => {
                let last = trace.threads.get(child.index()).and_then(|thread| thread.events.last());
                edges.extend(last.map(|&last| (last, event.id)));
            }
            _ => {}
        }
    }
    edges.extend_from_slice(&trace.given);
    edges
}

/// Mostly the pointer that is freed says so, too; not where a gap hides where that comes from.
fn lifetimes(trace: &EventTrace) -> Vec<(EventId, EventId)> {
    let obtained: HashMap<ObjectId, EventId> = trace
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Allocate { object } => Some((object, event.id)),
            _ => None,
        })
        .collect();
    let freed = trace.events.iter().filter_map(|event| match event.kind {
        EventKind::Free { object } => Some((*obtained.get(&object)?, event.id)),
        _ => None,
    });
    freed.collect()
}

#[cfg(test)]
mod tests {
    use crate::dsl::parse;
    use crate::{ConstraintKind, Term, encode};
    use model::EventKind;

    #[test]
    fn objects_are_obtained_before_they_are_given_back() {
        let trace = parse("t0: alloc h\nt1: free h\nt1: free g").expect("a trace").trace;
        let system = encode(&trace).expect("a system");
        let lifetimes = system.constraints.iter();
        let lifetimes = lifetimes.filter(|constraint| constraint.kind == ConstraintKind::Lifetime);
        let terms: Vec<&Term> = lifetimes.map(|constraint| &constraint.term).collect();
        let [Term::Before(obtains, gives)] = terms[..] else { panic!("{terms:?}") };
        let of = |event: &EventKind| match *event {
            EventKind::Allocate { object } | EventKind::Free { object } => Some(object),
            _ => None,
        };
        let [obtains, gives] = [obtains, gives].map(|id| &trace.event(*id).kind);
        assert!(matches!(obtains, EventKind::Allocate { .. }), "{obtains:?}");
        assert!(matches!(gives, EventKind::Free { .. }) && of(obtains) == of(gives), "{gives:?}");
    }
}
