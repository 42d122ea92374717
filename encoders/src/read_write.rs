//! φrw: every read takes its value from one source ([S] 3.2, read-write constraints).

use crate::closure::Closure;
use crate::connectives::Connectives;
use crate::context::{Builder, Context, Write};
use crate::lemmas::{Asked, Resolved};
use crate::locks::Region;
use crate::system::{ConstraintKind, Term};
use model::{CellId, EventId, EventTrace, ExprId, ReadPart, ReadRef, WriteSource};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// A source that a read may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) source: WriteSource,
    pub(crate) value: ExprId,
}

/// Constrains every read on whose value something depends.
pub(crate) fn encode(context: &Context<'_>, builder: &mut Builder, resolved: &Resolved) {
    let relevant = relevant(context, resolved).into_iter();
    encode_each(context, builder, relevant.map(|reader| (reader.read, reader.part)).collect());
}

/// Constrains every read.
pub(crate) fn encode_all(context: &Context<'_>, builder: &mut Builder) {
    let reads = context.trace.events.iter().flat_map(|event| {
        let parts = event.kind.reads().iter().enumerate();
        parts.map(|(index, part)| (ReadRef { event: event.id, part: index as u32 }, *part))
    });
    encode_each(context, builder, reads.collect());
}

fn encode_each(context: &Context<'_>, builder: &mut Builder, reads: Vec<(ReadRef, ReadPart)>) {
    for (read, part) in reads {
        if context.is_over() {
            return;
        }
        let open = Open::of(context, read, part);
        let candidates = candidates_among(context, read, part, &open);
        let open: Vec<EventId> = open.events().collect();
        let sources = candidates.iter().map(|candidate| Term::ReadsFrom(read, candidate.source));
        builder.add(ConstraintKind::ReadFrom, [read.event], Term::any(sources));
        for candidate in &candidates {
            let term = source(context, read, part, *candidate, &open);
            let origins = std::iter::once(read.event).chain(event_of(candidate.source));
            let chosen = Term::ReadsFrom(read, candidate.source);
            let term = if candidates.len() == 1 { term } else { chosen.implies(term) };
            builder.add(ConstraintKind::ReadFrom, origins, term);
        }
        builder.system.open_writes.insert(read, open);
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
    let conditions = trace.conditions.iter().map(|condition| condition.expr);
    conditions.chain(failure_values(trace)).collect()
}

/// The expressions of the failure condition.
pub(crate) fn failure_values(trace: &EventTrace) -> Vec<ExprId> {
    let mut found = Vec::new();
    if let Some(failure) = &trace.failure {
        values(&failure.condition, &mut found);
    }
    found
}

/// A read that matters, with the sources that it may have.
pub(crate) struct Reader {
    pub(crate) read: ReadRef,
    pub(crate) part: ReadPart,
    pub(crate) sources: Vec<Candidate>,
}

/// The reads that path conditions and the failure condition depend on, through however many
/// writes of values read elsewhere.
pub(crate) fn readers(context: &Context<'_>) -> Vec<Reader> {
    relevant(context, &Resolved::default())
}

/// Those of [`readers`] that lemmas do not make superfluous.
fn relevant(context: &Context<'_>, resolved: &Resolved) -> Vec<Reader> {
    let mut connectives = Connectives::new(&context.trace.exprs);
    let roots = roots(context.trace).into_iter();
    let mut pending: Vec<(ExprId, Asked)> = roots.map(|root| (root, Asked::Truth)).collect();
    let mut seen = FxHashSet::default();
    let mut found: BTreeMap<ReadRef, Reader> = BTreeMap::new();
    while let Some(asked) = pending.pop().filter(|_| !context.is_over()) {
        for var in resolved.open_variables(&mut connectives, context, asked, &mut seen) {
            let Some(read) = context.read_of(var) else { continue };
            if let Some(part) = part_of(context, read) {
                let sources = candidates(context, read, part);
                pending.extend(sources.iter().map(|from| (from.value, Asked::Value)));
                found.insert(read, Reader { read, part, sources });
            }
        }
    }
    found.into_values().collect()
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

pub(crate) fn part_of(context: &Context<'_>, read: ReadRef) -> Option<ReadPart> {
    let event = context.trace.events.get(read.event.index())?;
    event.kind.reads().get(read.part as usize).copied()
}

/// What follows from one source: it comes before the read, the values agree, and no other write of
/// the cell comes between.
fn source(
    context: &Context<'_>,
    read: ReadRef,
    part: ReadPart,
    from: Candidate,
    open: &[EventId],
) -> Term {
    let source = event_of(from.source);
    let earlier = source.map(|write| context.before(write, read.event));
    let equal = context
        .variable(part.var)
        .filter(|&var| var != from.value)
        .map(|var| Term::Equal(var, from.value));
    let others = open.iter().any(|&other| Some(other) != source && other != read.event);
    let alone = others.then_some(Term::Uninterrupted(read, from.source));
    Term::all(earlier.into_iter().chain(equal).chain(alone))
}

/// The writes of a read's cell that matter to the read: those that neither come after it in every
/// schedule nor are overwritten before it in every schedule. What is left out follows: it comes
/// before a write that comes before the read, so that whatever the source is, that write comes
/// before the source or is it.
pub(crate) struct Open<'c> {
    /// Of each thread that writes the cell, all of its writes and the range of the open ones.
    threads: Vec<(&'c [Write], std::ops::Range<usize>)>,
    /// Does some write come before the read in every schedule?
    is_written: bool,
}

impl<'c> Open<'c> {
    pub(crate) fn of(context: &'c Context<'_>, read: ReadRef, part: ReadPart) -> Self {
        let trace = context.trace;
        let (closure, all) = (&context.closure, context.writes(part.cell));
        let index = |write: &Write| trace.event(write.event).index;
        // Of each thread the last write that surely comes before the read.
        let latest: Vec<Option<EventId>> = all
            .iter()
            .map(|(thread, writes)| {
                let clock = closure.clock(read.event, *thread);
                let before = &writes[..writes.partition_point(|write| index(write) < clock)];
                let own = before.last().is_some_and(|write| write.event == read.event);
                let before = &before[..before.len() - usize::from(own)];
                before.last().map(|write| write.event)
            })
            .collect();
        let last = last_of_all(closure, latest.iter().flatten().copied());
        let threads = all
            .iter()
            .map(|(thread, writes)| {
                let overwritten = last.iter().map(|&later| {
                    let own = trace.event(later).thread.index() == *thread;
                    closure.clock(later, *thread) - u32::from(own)
                });
                let hidden = overwritten.max().unwrap_or(0);
                let start = writes.partition_point(|write| index(write) < hidden);
                let end = writes
                    .partition_point(|write| !closure.before(read.event, write.event))
                    .max(start);
                (writes.as_slice(), start..end)
            })
            .collect();
        Self { threads, is_written: latest.iter().any(Option::is_some) }
    }

    /// Of each thread that writes the cell, which of its writes are open.
    pub(crate) fn ranges(
        &self,
        context: &Context<'_>,
        cell: CellId,
    ) -> Vec<(usize, std::ops::Range<usize>)> {
        let threads = context.writes(cell).iter().map(|(thread, _)| *thread);
        threads.zip(self.threads.iter().map(|(_, range)| range.clone())).collect()
    }

    /// The open writes, a read-modify-write's own among them.
    pub(crate) fn events(&self) -> impl Iterator<Item = EventId> + '_ {
        let writes = self.threads.iter().flat_map(|(writes, range)| &writes[range.clone()]);
        writes.map(|write| write.event)
    }
}

/// Of some events, those that come before no other one of them in every schedule. Before each of the others comes one of these,
/// and with it all that comes before that.
fn last_of_all(
    closure: &Closure,
    events: impl DoubleEndedIterator<Item = EventId>,
) -> Vec<EventId> {
    let mut last: Vec<EventId> = Vec::new();
    // What later threads do is mostly later.
    for event in events.rev() {
        if !last.iter().any(|&other| closure.before(event, other)) {
            last.retain(|&other| !closure.before(other, event));
            last.push(event);
        }
    }
    last
}

/// The sources that a read may have: not after it, not surely overwritten before it, not of a
/// value that contradicts a path condition.
pub(crate) fn candidates(context: &Context<'_>, read: ReadRef, part: ReadPart) -> Vec<Candidate> {
    candidates_among(context, read, part, &Open::of(context, read, part))
}

fn candidates_among(
    context: &Context<'_>,
    read: ReadRef,
    part: ReadPart,
    open: &Open<'_>,
) -> Vec<Candidate> {
    let mut found = Vec::new();
    if !open.is_written
        && let Some(cell) = context.trace.cells.get(part.cell.index())
    {
        found.push(Candidate { source: WriteSource::Init, value: cell.init });
    }
    let written = written_in_section(context, read, part);
    for (writes, range) in &open.threads {
        for (index, write) in writes.iter().enumerate().take(range.end).skip(range.start) {
            let next = writes.get(index + 1).map(|next| next.event);
            let hidden = write.event == read.event
                || overwritten_by_lock(context, read, write.event, next, &written);
            if !hidden {
                let source = WriteSource::Write(write.event);
                found.push(Candidate { source, value: write.value });
            }
        }
    }
    found.retain(|candidate| !context.excluded.contains(&(read, candidate.source)));
    found
}

/// The critical sections around a read, and whether the section writes the cell before it reads.
fn written_in_section<'c>(
    context: &'c Context<'_>,
    read: ReadRef,
    part: ReadPart,
) -> Vec<(&'c Region, bool)> {
    let trace = context.trace;
    let mut sections = context.regions.around(read.event).peekable();
    if sections.peek().is_none() {
        return Vec::new();
    }
    let event = trace.event(read.event);
    let own = context.writes(part.cell).iter().find(|(thread, _)| *thread == event.thread.index());
    let last = own.and_then(|(_, own)| {
        let before = own.partition_point(|write| trace.event(write.event).index < event.index);
        own[..before].last()
    });
    let writes = |region: &Region| last.is_some_and(|write| region.contains(trace, write.event));
    sections.map(|region| (region, writes(region))).collect()
}

/// Is the read in a critical section that excludes one around the write, and does another write
/// come between them whichever of the two sections is first? Either the write's section writes
/// the cell again, or the read's section writes it before it reads.
fn overwritten_by_lock(
    context: &Context<'_>,
    read: ReadRef,
    write: EventId,
    next: Option<EventId>,
    sections: &[(&Region, bool)],
) -> bool {
    if sections.is_empty() {
        return false;
    }
    debug_assert_ne!(read.event, write);
    context.regions.around(write).any(|outer| {
        let again = || next.is_some_and(|next| outer.contains(context.trace, next));
        sections.iter().any(|&(inner, written)| inner.excludes(outer) && (written || again()))
    })
}
