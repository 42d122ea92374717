//! φrw: every read takes its value from one source ([S] 3.2, read-write constraints).

use crate::context::{Builder, Context, Write};
use crate::lemmas::Resolved;
use crate::system::{ConstraintKind, Term};
use model::{EventId, EventTrace, ExprId, ReadPart, ReadRef, VarId, WriteSource};
use std::collections::BTreeSet;

/// A source that a read may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) source: WriteSource,
    pub(crate) value: ExprId,
}

/// Constrains every read on whose value something depends.
pub(crate) fn encode(context: &Context<'_>, builder: &mut Builder, resolved: &Resolved) {
    for (read, part) in relevant(context, resolved) {
        let candidates = candidates(context, read, part);
        let sources = candidates.iter().map(|candidate| Term::ReadsFrom(read, candidate.source));
        builder.add(ConstraintKind::ReadFrom, [read.event], Term::any(sources));
        for candidate in &candidates {
            let term = source(context, read, part, *candidate);
            let origins = std::iter::once(read.event).chain(event_of(candidate.source));
            let chosen = Term::ReadsFrom(read, candidate.source);
            let term = if candidates.len() == 1 { term } else { chosen.implies(term) };
            builder.add(ConstraintKind::ReadFrom, origins, term);
        }
    }
}

/// The event of a source that is a write.
pub(crate) fn event_of(source: WriteSource) -> Option<EventId> {
    match source {
        WriteSource::Init => None,
        WriteSource::Write(event) => Some(event),
    }
}

/// The path conditions and the expressions of the failure condition.
pub(crate) fn roots(trace: &EventTrace) -> Vec<ExprId> {
    let mut roots: Vec<ExprId> = trace.conditions.iter().map(|condition| condition.expr).collect();
    if let Some(failure) = &trace.failure {
        values(&failure.condition, &mut roots);
    }
    roots
}

/// The reads that path conditions and the failure condition depend on, through however many
/// writes of values read elsewhere, and that lemmas do not make superfluous.
fn relevant(context: &Context<'_>, resolved: &Resolved) -> Vec<(ReadRef, ReadPart)> {
    let mut pending = roots(context.trace);
    let mut expanded: BTreeSet<ExprId> = BTreeSet::new();
    let mut variables: BTreeSet<VarId> = BTreeSet::new();
    let mut found = BTreeSet::new();
    while let Some(expr) = pending.pop() {
        if !expanded.insert(expr) {
            continue;
        }
        for var in resolved.open_variables(context, expr) {
            if !variables.insert(var) {
                continue;
            }
            let Some(read) = context.read_of(var) else { continue };
            if let Some(part) = part_of(context, read) {
                found.insert(read);
                pending.extend(candidates(context, read, part).iter().map(|from| from.value));
            }
        }
    }
    found.into_iter().filter_map(|read| Some((read, part_of(context, read)?))).collect()
}

fn values(condition: &model::FailureCondition, found: &mut Vec<ExprId>) {
    match condition {
        model::FailureCondition::Value(expr) => found.push(*expr),
        model::FailureCondition::Before(..) | model::FailureCondition::Unwoken { .. } => {}
        model::FailureCondition::All(parts) | model::FailureCondition::Any(parts) => {
            parts.iter().for_each(|part| values(part, found));
        }
    }
}

fn part_of(context: &Context<'_>, read: ReadRef) -> Option<ReadPart> {
    let event = context.trace.events.get(read.event.index())?;
    event.kind.reads().get(read.part as usize).copied()
}

/// What follows from one source: it comes before the read, the values agree, and every other
/// write of the cell is before the source or after the read.
fn source(context: &Context<'_>, read: ReadRef, part: ReadPart, from: Candidate) -> Term {
    let mut terms = Vec::new();
    let source = event_of(from.source);
    terms.extend(source.map(|write| context.before(write, read.event)));
    if let Some(var) = context.variable(part.var) {
        terms.push(if var == from.value { Term::True } else { Term::Equal(var, from.value) });
    }
    for (_, writes) in context.writes(part.cell) {
        for other in writes.iter().map(|write| write.event) {
            if Some(other) == source || other == read.event {
                continue;
            }
            let earlier = source.map_or(Term::False, |write| context.before(other, write));
            terms.push(Term::any([earlier, context.before(read.event, other)]));
        }
    }
    Term::all(terms)
}

/// The sources that a read may have: not after it, not surely overwritten before it, not of a
/// value that contradicts a path condition.
pub(crate) fn candidates(context: &Context<'_>, read: ReadRef, part: ReadPart) -> Vec<Candidate> {
    let threads = context.writes(part.cell);
    let latest: Vec<EventId> = threads
        .iter()
        .filter_map(|(thread, writes)| latest(context, read, *thread, writes))
        .collect();
    let mut found = Vec::new();
    if latest.is_empty()
        && let Some(cell) = context.trace.cells.get(part.cell.index())
    {
        found.push(Candidate { source: WriteSource::Init, value: cell.init });
    }
    for (_, writes) in threads {
        for (index, write) in writes.iter().enumerate() {
            let event = write.event;
            let hidden = event == read.event
                || context.closure.before(read.event, event)
                || latest.iter().any(|&later| context.closure.before(event, later))
                || overwritten_by_lock(context, read, part, writes, index);
            if !hidden {
                found.push(Candidate { source: WriteSource::Write(event), value: write.value });
            }
        }
    }
    found.retain(|candidate| !context.excluded.contains(&(read, candidate.source)));
    found
}

/// The last of a thread's writes that surely comes before the read.
fn latest(
    context: &Context<'_>,
    read: ReadRef,
    thread: usize,
    writes: &[Write],
) -> Option<EventId> {
    let clock = context.closure.clock(read.event, thread);
    writes
        .iter()
        .rev()
        .map(|write| write.event)
        .find(|&event| event != read.event && context.trace.event(event).index < clock)
}

/// Is the read in a critical section that excludes one around the write, and does another write
/// come between them whichever of the two sections is first? Either the write's section writes
/// the cell again, or the read's section writes it before it reads.
fn overwritten_by_lock(
    context: &Context<'_>,
    read: ReadRef,
    part: ReadPart,
    writes: &[Write],
    index: usize,
) -> bool {
    let event = writes[index].event;
    let trace = context.trace;
    context.regions.around(event).any(|outer| {
        context.regions.around(read.event).filter(|inner| inner.excludes(outer)).any(|inner| {
            let again = writes.get(index + 1).is_some_and(|next| outer.contains(trace, next.event));
            let reader = trace.event(read.event).thread.index();
            let own = context.writes(part.cell).iter().find(|(thread, _)| *thread == reader);
            again
                || own.is_some_and(|(_, own)| {
                    own.iter().any(|write| {
                        inner.contains(trace, write.event)
                            && context.closure.before(write.event, read.event)
                    })
                })
        })
    })
}
