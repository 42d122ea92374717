//! A write that other threads saw late: the processor kept it in its store buffer while it read on. Found by who made the
//! trace so (`encoders::models::tso`), and only told here.

use super::story::Story;
use super::words::{at, quoted};
use super::{Cause, CauseEvent, Found, Pattern};
use crate::across::Side;
use model::EventId;

/// The cause where these writes were seen late, each with the reads of its thread that overtook it. `None` when
/// no other thread read one of them meanwhile.
///
/// The failing schedule is one of the trace in which the writes stand behind those reads.
#[must_use]
pub fn late_write(failing: Side<'_>, late: &[(EventId, &[EventId])]) -> Option<Cause> {
    let story = Story::new(failing, None, super::Passing::None);
    let found = late.iter().find_map(|(write, overtaking)| tell(&story, *write, overtaking))?;
    Some(found.finish(&story))
}

fn tell(story: &Story<'_>, write: EventId, overtaking: &[EventId]) -> Option<Found> {
    let cells = story.cells(write);
    let thread = story.event(write).thread;
    let first = *overtaking.first()?;
    // What the others found in its place.
    let meanwhile = |id: &EventId| story.before(first, *id) && story.before(*id, write);
    let reads = story.trace().events.iter().filter(|event| {
        event.thread != thread && event.kind.reads().iter().any(|part| cells.contains(&part.cell))
    });
    let missed = reads.map(|event| event.id).filter(meanwhile).min_by_key(|id| story.place(*id))?;
    // The nearest read before that whose own writer comes later is what the write should have come before.
    let before = overtaking.iter().rev().filter(|read| story.before(**read, missed));
    let overwritten =
        before.clone().find_map(|read| Some((*read, overwriting(story, *read, missed)?)));
    let read = overwritten.map(|(read, _)| read);
    let read = read.or(before.clone().next().copied()).unwrap_or(first);
    let owner = story.thread(write);
    let sentence = format!(
        "{owner}'s write of {} ({}) was still in its processor's store buffer when {owner} read {} ({}) and {} \
         read {} ({})",
        quoted(&story.subject(write)),
        at(story, write),
        quoted(&story.subject(read)),
        at(story, read),
        story.thread(missed),
        quoted(&story.subject(missed)),
        at(story, missed),
    );
    let mut found = Found::new(Pattern::LateWrite, sentence, &[write, read, missed]);
    if let Some((_, other)) = overwritten {
        // Either of the two threads may be the one whose write is late.
        found.marks = [write, read, missed, other].map(CauseEvent::Failing).to_vec();
    }
    Some(found)
}

/// The last write of what was read by another thread, between the read and the other event.
fn overwriting(story: &Story<'_>, read: EventId, until: EventId) -> Option<EventId> {
    let (cells, thread) = (story.cells(read), story.event(read).thread);
    story.last(|event| {
        event.thread != thread
            && event.kind.writes().iter().any(|part| cells.contains(&part.cell))
            && story.before(read, event.id)
            && story.before(event.id, until)
    })
}
