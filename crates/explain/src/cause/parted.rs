//! What a thread looked at in two steps, and another thread wrote in one, which came in between: what the
//! first step saw and what the second one saw were never there together.
//!
//! Where the values lead through a library's function (a text that was copied and compared), no condition
//! names both. What is known all the same is that the writer had both in one critical section, or in one
//! statement, and the reader, in one call, in two.

use super::sections::held;
use super::story::Story;
use super::words::{at, both_named, quoted, same_variable};
use super::{Found, Pattern};
use model::{CellId, EventId, EventKind, ObjectId};

/// So many of a thread's reads before the one that saw what was new are looked at.
const READS: usize = 12;

/// So many reads before the failure are looked at.
const LAST_READS: usize = 4;

/// For a read that came after another thread's write.
pub(super) fn find(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    if story.event(read).thread == story.event(write).thread || !story.before(write, read) {
        return None;
    }
    by_reads(story, read, write).or_else(|| by_sections(story, read, write))
}

/// For a failure of which nothing is known but that it came behind what the thread had read last.
pub(super) fn find_failure(story: &Story<'_>, failure: EventId) -> Option<Found> {
    let event = story.event(failure);
    let own = &story.trace().threads[event.thread.index()].events;
    let before = own.iter().copied().take(event.index as usize).rev();
    let reads = before.filter(|id| !story.event(*id).kind.reads().is_empty()).take(LAST_READS);
    let near = reads.filter(|id| story.in_one_call(*id, failure));
    near.flat_map(|read| story.cells(read).into_iter().map(move |cell| (read, cell)))
        .find_map(|(read, cell)| find(story, read, story.source(read, cell)?))
}

/// The reader had looked at another variable before, which the writer wrote together with this one.
fn by_reads(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    let event = story.event(read);
    let own = &story.trace().threads[event.thread.index()].events;
    let earlier = own[..event.index as usize].iter().rev().copied();
    let earlier = earlier.filter(|id| !story.event(*id).kind.reads().is_empty()).take(READS);
    let mut earlier = earlier.filter(|id| {
        story.before(*id, write)
            && story.is_named(*id)
            && !story.event(*id).is_affair_of_library()
            && !same_variable(&story.subject(*id), &story.subject(read))
            && story.in_one_call(*id, read)
            && !story.waited_between(*id, read)
    });
    earlier.find_map(|first| {
        let cells = story.cells(first).into_iter();
        let other = cells.filter(|cell| story.access(first, *cell).reads).find_map(|cell| {
            let other = together(story, write, cell)?;
            (story.before(first, other)
                && !story.always_before(first, other)
                && story.brings_news(other, first, cell))
            .then_some(other)
        })?;
        let [one, two] = match story.before(other, write) {
            true => [other, write],
            false => [write, other],
        };
        let sentence = format!(
            "{} wrote {} between {}'s reads of {}",
            story.thread(write),
            both_named(story, one, two),
            story.thread(read),
            both_named(story, first, read)
        );
        let case = Some("writes-between-reads");
        let events = [one, two, first, read];
        Some(Found { case, ..Found::new(Pattern::SeveralVariables, sentence, &events) })
    })
}

/// The thread's write of the cell in the same critical section as this one.
fn together(story: &Story<'_>, write: EventId, cell: CellId) -> Option<EventId> {
    let sections = held(story, write);
    let writes = story.accesses(story.event(write).thread, cell).iter().copied();
    let mut writes = writes.filter(|id| *id != write && story.access(*id, cell).writes);
    writes.find(|id| held(story, *id).iter().any(|section| sections.contains(section)))
}

/// The reader had held the lock before, in the same call and elsewhere, and given it back.
fn by_sections(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    let at_write = held(story, write);
    let (lock, second) = held(story, read)
        .into_iter()
        .find(|(lock, _)| at_write.iter().any(|(other, _)| other == lock))?;
    let first = last_section(story, second, lock)?;
    let taken = at_write.iter().find(|(other, _)| *other == lock).map(|(_, taken)| *taken)?;
    let [one, two] = [first, second].map(|id| &story.event(id).stack);
    let fits = story.before(first, taken)
        && !story.always_before(first, taken)
        && one != two
        && story.in_one_call(first, read)
        && !story.waited_between(first, read);
    let sentence = format!(
        "{} wrote {} ({}) between {}'s two sections with {} ({} and {}), of which the second read it ({})",
        story.thread(write),
        quoted(&story.subject(write)),
        at(story, write),
        story.thread(read),
        quoted(&story.subject(first)),
        at(story, first),
        at(story, second),
        at(story, read)
    );
    let events = [write, first, read];
    let case = Some("between-sections");
    fits.then(|| Found { case, ..Found::new(Pattern::Atomicity, sentence, &events) })
}

/// Where the thread of a lock's acquisition took it last before that.
fn last_section(story: &Story<'_>, taken: EventId, lock: ObjectId) -> Option<EventId> {
    let event = story.event(taken);
    let own = &story.trace().threads[event.thread.index()].events;
    own[..event.index as usize].iter().rev().copied().find(
        |id| matches!(story.event(*id).kind, EventKind::Lock { object, .. } if object == lock),
    )
}
