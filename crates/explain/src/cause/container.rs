//! A container of a library is one variable to the program: what a thread found there in one critical section no longer
//! held in its next one, since another thread's section came in between.
//!
//! The places inside of a container that the two sections read, and that the other thread wrote, may be different ones:
//! the head of a tree, and then a link of a node.

use super::atomicity::{Case, Triple, found};
use super::story::Story;
use super::words::last_member;
use super::{Found, sections};
use model::names::outside_of_library;
use model::{CellId, EventId, PathConditionKind};

/// The reads of so many lines before the failure are looked at.
const LINES: usize = 2;
/// So many events of the thread before the section of the use are looked at.
const EARLIER: usize = 1024;

/// By what the failing thread went at last.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?.event;
    last_reads(story, failure).into_iter().find_map(|(second, cell)| {
        let between = story.source(second, cell)?;
        let triple = parted(story, (second, cell), between)?;
        Some(found(story, triple, Case::ReadWriteRead))
    })
}

/// What the thread read of containers in the last lines before the failure, and went by, the last first.
pub(super) fn last_reads(story: &Story<'_>, failure: EventId) -> Vec<(EventId, CellId)> {
    let thread = story.event(failure).thread;
    let kinds = [PathConditionKind::Branch, PathConditionKind::Address];
    let ways = story.decided_before(failure, &kinds).into_iter();
    let ways = ways.flat_map(|condition| story.trace().reads_of(condition.expr).into_iter().rev());
    let mut reads: Vec<EventId> = Vec::new();
    let (mut line, mut lines) = (None, 0);
    for read in story.failure_reads().into_iter().rev().chain(ways) {
        if story.event(read.event).thread != thread || reads.contains(&read.event) {
            continue;
        }
        let here = Some(story.site(read.event));
        lines += usize::from(line != here);
        line = here;
        if lines > LINES {
            break;
        }
        reads.push(read.event);
    }
    let parts = |id: EventId| story.event(id).kind.reads().iter().map(move |part| (id, part.cell));
    reads.into_iter().flat_map(parts).collect()
}

/// The thread's read of the container in an earlier section of a lock which both it and the other thread's write need, where
/// it came to this one by that.
fn parted(
    story: &Story<'_>,
    (second, read): (EventId, CellId),
    between: EventId,
) -> Option<Triple> {
    let (user, writer) = (story.event(second), story.event(between));
    let container = container(story, second)?;
    if writer.thread == user.thread {
        return None;
    }
    let held_by_writer = sections::held(story, between);
    let (lock, taken) = sections::held(story, second)
        .into_iter()
        .find(|(lock, _)| held_by_writer.iter().any(|(other, _)| other == lock))?;
    let own = &story.trace().threads[user.thread.index()].events;
    let earlier = own[..story.event(taken).index as usize].iter().rev().copied().take(EARLIER);
    let section = |id: EventId| sections::taken(story, id, lock);
    let mut looks = earlier.filter(|id| {
        !story.event(*id).kind.reads().is_empty()
            && self::container(story, *id).as_ref() == Some(&container)
    });
    let nearest = looks.next()?;
    let its = section(nearest)?;
    let looks = std::iter::once(nearest).chain(looks.take_while(|id| section(*id) == Some(its)));
    let looks: Vec<EventId> = looks.collect();
    let led = |first: EventId| {
        let cells = story.cells(first).into_iter();
        let mut cells = cells.filter(|cell| {
            story.decides(first, second, *cell) || story.follows(first, second, *cell)
        });
        cells.next().map(|cell| (first, cell))
    };
    let (first, cell) = looks.iter().copied().filter_map(led).find(|(first, _)| {
        story.before(*first, between)
            && story.site(*first) != story.site(second)
            && story.in_one_call(*first, second)
    })?;
    let passes = story.before_when_passing(first, between) == Some(true)
        && story.before_when_passing(between, second) == Some(true);
    // Of what the other thread changed in its section, what was looked at says most.
    let other = &story.trace().threads[writer.thread.index()].events;
    let in_section = |id: &EventId| {
        story.before(first, *id)
            && story.before(*id, second)
            && story.access(*id, cell).writes
            && story.in_one_call(*id, between)
    };
    let between = other.iter().copied().find(in_section).unwrap_or(between);
    // What came between all the same when it passed decides where the thread would not have failed with what it had seen: then
    // something else made good for it.
    let decides = || looks.iter().any(|look| is_undone(story, (second, read), *look));
    // What a thread did that the user has joined since comes before its use in any schedule.
    let fits = (!passes || decides()) && !story.always_before(between, second);
    fits.then_some(Triple { first, between, second, cell })
}

/// Would the thread have gone another way if it had read what it had read there at a look before?
fn is_undone(story: &Story<'_>, (second, cell): (EventId, CellId), look: EventId) -> bool {
    let seen = story.found(look, cell);
    let mut parts = story.event(second).kind.reads().iter();
    let var = parts.find(|part| part.cell == cell).map(|part| part.var);
    let Some((seen, var)) = seen.zip(var) else { return false };
    let Some(failure) = story.trace().failure.as_ref() else { return false };
    let mut ways = story.decided_before(failure.event, &[PathConditionKind::Branch]).into_iter();
    ways.any(|condition| story.value_if(condition.expr, var, seen) == Some(0))
}

/// What the program calls the container that a library's function reads: all of its elements are one variable.
fn container(story: &Story<'_>, id: EventId) -> Option<String> {
    if story.event(id).depth() == 0 || !story.is_named(id) {
        return None;
    }
    let name = last_member(outside_of_library(&story.subject(id)));
    Some(name.trim_end_matches("[*]").to_owned())
}
