//! What a thread was woken for is taken again before it gets to it.

use super::Found;
use super::atomicity::{Case, Triple, found};
use super::story::Story;
use model::{CellId, EventId, EventKind};

/// The failing thread looked, waited, and went on without a second look; what it was woken for was there, and another
/// thread took it before. That is so whichever of several that wait alike comes first: the recorded paths' alternate
/// has the next one fail, and a run along others passes for some other reason.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    if !story.passes_elsewhere() {
        return None;
    }
    story.failure_reads().into_iter().find_map(|read| {
        let part = usize::try_from(read.part).ok()?;
        let cell = story.event(read.event).kind.reads().get(part)?.cell;
        Some(found(story, taken(story, read.event, cell)?, Case::ReadWriteRead))
    })
}

fn taken(story: &Story<'_>, second: EventId, cell: CellId) -> Option<Triple> {
    let between = story.source(second, cell)?;
    let event = story.event(second);
    let thread = event.thread;
    if story.event(between).thread == thread {
        return None;
    }
    let own = story.trace().thread_of(second).events.iter().take(event.index as usize);
    let began = own.rev().find_map(|id| match story.event(*id).kind {
        EventKind::Wake { began, .. } if story.in_one_call(*id, second) => Some(began),
        _ => None,
    })?;
    let wait = story.event(began).index;
    let accesses = story.accesses(thread, cell);
    let mut looks = accesses.iter().rev().filter(|id| story.event(**id).index < wait);
    let first = *looks.next()?;
    let decides = story.in_one_call(first, second) && story.decides_something(first, cell);
    // Who waits in a loop has looked again.
    let mut behind =
        accesses.iter().filter(|id| (wait..=event.index).contains(&story.event(**id).index));
    if !decides || behind.any(|id| story.event(*id).stack == story.event(first).stack) {
        return None;
    }
    let came = story.last_write_before(between, cell)?;
    let was_there = story.before(began, came) && story.event(came).thread != thread;
    was_there.then_some(Triple { first, between, second, cell })
}
