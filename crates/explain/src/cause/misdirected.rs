//! A thread did its step to something else than in the run that passes, since another thread had changed in between by
//! what it found its way there.
//!
//! What the failure misses is what the passing run has: a write by another thread. Where that thread comes by the same
//! line in the failing run, and writes elsewhere, the failure is told by the pointer or the index that led there.

use super::order;
use super::story::{Pair, Story};
use super::{Found, Pattern};
use crate::across::{Across, Side};
use model::{Event, EventId, EventTrace, PathConditionKind, ReadRef, WriteSource};
use solver::Order;
use std::collections::BTreeSet;

/// So many reads are followed back from a write, by what gave their addresses.
const LONGEST_WAY: usize = 12;

/// For a run that passes along other paths.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let (run, across) = story.other_run()?;
    missed(story, run, across).into_iter().find_map(|write| {
        let there = run.trace.event(write);
        let here = counterpart(story, run.trace, across, there)?;
        let same = story.cells(here).into_iter().any(|cell| {
            let name = story.trace().cells.get(cell.index()).map(|cell| &cell.name);
            let mut cells = there.kind.writes().iter();
            cells.any(|part| run.trace.cells.get(part.cell.index()).map(|c| &c.name) == name)
        });
        if same {
            return None;
        }
        // Where the way began to be another one.
        way_to(story, here).into_iter().rev().find_map(|read| {
            let cell = *story.cells(read).first()?;
            let change = story.source(read, cell)?;
            let overwritten = story.event(change).thread != story.event(read).thread
                && story.reads_otherwise(read)
                && story.is_named(read)
                && !story.always_before(change, read);
            let pair = Pair::Reversed(Order { before: change, after: read });
            let found = overwritten.then(|| order::find(story, pair)).flatten()?;
            (found.pattern == Pattern::Order).then_some(found)
        })
    })
}

/// The other threads' writes that the passing run has for what the failure is about.
fn missed(story: &Story<'_>, run: Side<'_>, across: &Across) -> Vec<EventId> {
    let Some(failure) = &story.trace().failure else { return Vec::new() };
    let failure = story.event(failure.event);
    let name = &story.trace().threads[failure.thread.index()].name;
    let named = story.failure_reads();
    // What nobody else touches in the failing run is no event there.
    let fits = |event: &&Event| {
        let of_thread = run.trace.threads[event.thread.index()].name == *name;
        match across.matching.in_failing(event.id) {
            Some(here) => named.iter().any(|read| read.event == here),
            None => of_thread && event.stack == failure.stack,
        }
    };
    let reads = run.trace.events.iter().filter(|event| !event.kind.reads().is_empty());
    let sources = reads.filter(fits).flat_map(|event| {
        let parts = 0..u32::try_from(event.kind.reads().len()).unwrap_or(0);
        parts.filter_map(|part| {
            match run.evaluation.reads_from.get(&ReadRef { event: event.id, part }) {
                Some(WriteSource::Write(write))
                    if run.trace.event(*write).thread != event.thread =>
                {
                    Some(*write)
                }
                _ => None,
            }
        })
    });
    sources.collect()
}

/// The same step of the failing run's thread.
fn counterpart(
    story: &Story<'_>,
    trace: &EventTrace,
    across: &Across,
    there: &Event,
) -> Option<EventId> {
    if let Some(here) = across.matching.in_failing(there.id) {
        return Some(here);
    }
    let name = &trace.threads[there.thread.index()].name;
    let thread = story.trace().threads.iter().find(|thread| thread.name == *name)?;
    let mut own = thread.events.iter().copied();
    own.find(|id| {
        let event = story.event(*id);
        across.matching.in_passing(*id).is_none()
            && event.stack == there.stack
            && !event.kind.writes().is_empty()
    })
}

/// The reads by which a thread found the place of its write, the nearest first.
fn way_to(story: &Story<'_>, write: EventId) -> Vec<EventId> {
    let trace = story.trace();
    let thread = story.event(write).thread;
    let mut found: Vec<EventId> = Vec::new();
    let mut open: BTreeSet<EventId> = BTreeSet::from([write]);
    while let Some(event) = open.pop_last() {
        let led = trace.conditions.iter().filter(|condition| {
            condition.thread == thread
                && condition.kind == PathConditionKind::Address
                && condition.position == story.event(event).index
        });
        for read in led.flat_map(|condition| trace.reads_of(condition.expr)) {
            if found.len() < LONGEST_WAY && !found.contains(&read.event) {
                found.push(read.event);
                open.insert(read.event);
            }
        }
    }
    found
}
