//! Orders that follow from others, to a fixpoint: from locks, from the values that a read can
//! return, and from what all possible sources of a read have in common. Everything found is a
//! constraint of the system, so that later simplifications by the closure lose nothing.

use crate::context::{Builder, Context};
use crate::locks;
use crate::read_write::{Candidate, Reader, event_of, readers};
use crate::system::{ConstraintKind, Term};
use crate::values::{Effort, ValueSets};
use model::{EventId, ReadPart, ReadRef};
use std::collections::BTreeSet;

/// Each round costs about as much as encoding; what many rounds would still find is left to the
/// solver.
const MAX_ROUNDS: usize = 12;

type Edge = (EventId, EventId);

/// An order with the constraint that says it.
type Finding = (ConstraintKind, Vec<EventId>, Edge);

/// Extends the closure until nothing new follows.
pub(crate) fn saturate(context: &mut Context<'_>, builder: &mut Builder) {
    let mut effort = None;
    for _ in 0..MAX_ROUNDS {
        let mut readers = readers(context);
        if context.is_over() {
            return;
        }
        let effort = effort.get_or_insert_with(|| Effort::new(&readers));
        let excluded = ValueSets::of(context, &readers, effort).impossible(context, &readers);
        let progress = !excluded.is_empty();
        context.excluded.extend(excluded);
        for reader in &mut readers {
            let is_left =
                |source: &Candidate| !context.excluded.contains(&(reader.read, source.source));
            reader.sources.retain(is_left);
        }

        let mut findings = locks::forced(context);
        reads(context, &readers, &mut findings);
        let mut edges: BTreeSet<Edge> = BTreeSet::new();
        findings.retain(|&(_, _, (a, b))| !context.closure.before(a, b) && edges.insert((a, b)));
        let edges: Vec<Edge> = findings.iter().map(|&(.., edge)| edge).collect();
        for (kind, origins, (a, b)) in findings {
            builder.add(kind, origins, Term::Before(a, b));
        }
        // A cycle means that there is no schedule; the constraints just added say so.
        if !context.closure.add(context.trace, &edges) || (edges.is_empty() && !progress) {
            return;
        }
    }
}

fn reads(context: &Context<'_>, readers: &[Reader], findings: &mut Vec<Finding>) {
    for &Reader { read, part, ref sources } in readers {
        if context.is_over() {
            return;
        }
        after_all(context, read, sources, findings);
        before_hiding(context, read, part, sources, findings);
        if let [only] = sources[..]
            && let Some(write) = event_of(only.source)
        {
            source_after_earlier(context, read, part, write, findings);
        }
    }
}

/// What comes before every possible source comes before the read.
fn after_all(
    context: &Context<'_>,
    read: ReadRef,
    sources: &[Candidate],
    findings: &mut Vec<Finding>,
) {
    let Some(writes) =
        sources.iter().map(|source| event_of(source.source)).collect::<Option<Vec<EventId>>>()
    else {
        return;
    };
    for (index, thread) in context.trace.threads.iter().enumerate() {
        let common = writes.iter().map(|&write| context.closure.clock(write, index)).min();
        let latest = common.and_then(|count| thread.events.get((count as usize).checked_sub(1)?));
        if let Some(&latest) = latest
            && latest != read.event
        {
            let origins = std::iter::once(read.event).chain(writes.iter().copied()).collect();
            findings.push((ConstraintKind::ReadFrom, origins, (latest, read.event)));
        }
    }
}

/// A write that comes after every possible source comes after the read. Of each thread the first
/// such write says it for those behind it.
fn before_hiding(
    context: &Context<'_>,
    read: ReadRef,
    part: ReadPart,
    sources: &[Candidate],
    findings: &mut Vec<Finding>,
) {
    if sources.is_empty() {
        return;
    }
    for (_, writes) in context.writes(part.cell) {
        let hides = |other: EventId| {
            let hides = |source: &Candidate| {
                event_of(source.source).is_none_or(|write| context.closure.before(write, other))
            };
            sources.iter().all(hides)
        };
        let first = writes.partition_point(|write| !hides(write.event));
        if let Some(first) = writes.get(first).filter(|first| first.event != read.event) {
            let origins = vec![read.event, first.event];
            findings.push((ConstraintKind::ReadFrom, origins, (read.event, first.event)));
        }
    }
}

/// A write that surely comes before the read comes before the read's only source. Of each thread
/// the last such write says it for those before it.
fn source_after_earlier(
    context: &Context<'_>,
    read: ReadRef,
    part: ReadPart,
    source: EventId,
    findings: &mut Vec<Finding>,
) {
    for (thread, writes) in context.writes(part.cell) {
        let clock = context.closure.clock(read.event, *thread);
        let index = |event: EventId| context.trace.event(event).index;
        let before = writes.partition_point(|write| index(write.event) < clock);
        let others = writes[..before].iter().rev().map(|write| write.event);
        let last = others.filter(|&other| other != source && other != read.event).take(1);
        findings.extend(last.map(|other| {
            (ConstraintKind::ReadFrom, vec![read.event, source, other], (other, source))
        }));
    }
}
