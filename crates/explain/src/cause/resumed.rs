//! A thread went on in a critical section with what it had begun in its section before, and another thread's section of the
//! same lock, in between, had changed what both of them deal with.
//!
//! What is looked at in the first need not be what is used in the second: the first of a book's orders, and then the order.

use super::atomicity::{Case, Triple, found};
use super::container::last_reads;
use super::story::Story;
use super::words::{at, did, quoted};
use super::{Found, Pattern, sections};
use model::{CellId, EventId};

/// So many events of the thread before its section are looked at.
const EARLIER: usize = 1024;

pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?.event;
    last_reads(story, failure).into_iter().find_map(|(second, cell)| parted(story, second, cell))
}

/// The read saw what another thread wrote in a section, and in the thread's own section before that it did something to
/// what was changed there.
fn parted(story: &Story<'_>, second: EventId, cell: CellId) -> Option<Found> {
    let between = story.source(second, cell)?;
    let (user, writer) = (story.event(second), story.event(between));
    if writer.thread == user.thread || !story.is_named(second) {
        return None;
    }
    let held_by_writer = sections::held(story, between);
    let (lock, taken, entered) =
        sections::held(story, second).into_iter().find_map(|(lock, taken)| {
            let (_, entered) = held_by_writer.iter().find(|(other, _)| *other == lock)?;
            Some((lock, taken, *entered))
        })?;
    let own = &story.trace().threads[user.thread.index()].events;
    let earlier = own[..story.event(taken).index as usize].iter().rev().copied().take(EARLIER);
    let accesses = earlier.filter(|id| !story.cells(*id).is_empty());
    let mut accesses =
        accesses.filter_map(|id| Some((id, sections::taken(story, id, lock)?))).peekable();
    let its = accesses.peek()?.1;
    let section: Vec<EventId> =
        accesses.take_while(|(_, other)| *other == its).map(|(id, _)| id).collect();
    let came_between = story.before(its, entered)
        && story.before(entered, taken)
        && story.event(its).stack != story.event(taken).stack;
    if !came_between {
        return None;
    }
    let changed = |id: EventId, cell: CellId| {
        let own = story.accesses(writer.thread, cell).iter().copied();
        let mut own = own.filter(|write| story.access(*write, cell).writes);
        own.find(|write| {
            sections::taken(story, *write, lock) == Some(entered) && story.before(id, *write)
        })
    };
    let belongs = |id: EventId| {
        story.in_one_call(id, second)
            && story.is_named(id)
            && !story.event(id).is_affair_of_library()
    };
    // What a thread did that the user has joined since comes before its use in any schedule.
    let undone = |first: EventId, between: EventId| {
        let between_when_passing = story.before_when_passing(first, between) == Some(true)
            && story.before_when_passing(between, second) == Some(true);
        !between_when_passing && !story.always_before(between, second)
    };
    // What is the same variable at all three says most.
    let same = section.iter().copied().filter(|id| story.access(*id, cell).any() && belongs(*id));
    for first in same {
        let case = match story.access(first, cell).writes {
            true => Case::WriteWriteRead,
            false => Case::ReadWriteRead,
        };
        if undone(first, between) {
            return Some(found(story, Triple { first, between, second, cell }, case));
        }
    }
    let reads = section.iter().flat_map(|id| {
        let cells = story.cells(*id).into_iter();
        cells
            .filter(|cell| story.access(*id, *cell).reads)
            .map(|cell| (*id, cell))
            .collect::<Vec<_>>()
    });
    let (first, write) = reads.filter(|(id, _)| belongs(*id)).find_map(|(first, cell)| {
        let write = changed(first, cell)?;
        undone(first, write).then_some((first, write))
    })?;
    let sentence = format!(
        "{} {} {} ({}) between {}'s check of it ({}) and its use of {} ({})",
        story.thread(write),
        did(story.event(write)),
        quoted(&story.subject(write)),
        at(story, write),
        story.thread(second),
        at(story, first),
        quoted(&story.subject(second)),
        at(story, second),
    );
    let case = Some("read-write-use");
    Some(Found { case, ..Found::new(Pattern::Atomicity, sentence, &[write, first, second]) })
}
