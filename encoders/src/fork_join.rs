//! φsync: a thread starts after its creation and is joined after its end; and what every schedule of a trace has besides.

use crate::context::{Builder, Context};
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventKind, EventTrace};

/// One constraint per fork, join and given order. The edges enter the closure.
pub(crate) fn encode(context: &mut Context<'_>, builder: &mut Builder) {
    let edges = edges(context.trace);
    for &(a, b) in &edges {
        builder.add(ConstraintKind::ForkJoin, [a, b], Term::Before(a, b));
    }
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
