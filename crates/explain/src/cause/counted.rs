//! A reference that was taken when the last one was gone: a thread had read the pointer, and counted itself only behind
//! another thread's giving up what was the last reference by then.

use super::lifetime::{freed_before, pointer_to};
use super::story::Story;
use super::words::{at, both_at, quoted};
use super::{Found, Pattern};
use model::trace::ValueDisplay;
use model::{CellId, Event, EventId, EventKind, PathConditionKind, ReadRef};

/// So many updates of a thread are looked at, the last first.
const UPDATES: usize = 64;
/// An update of a count writes no more variables than so many.
const PARTS: usize = 2;
/// So much of what is done because a count fell to zero is looked at.
const ENDS: usize = 256;
/// Nothing lies in the first page of memory.
const FIRST_PAGE: u128 = 4096;

/// What was freed because its count fell to zero was counted again, by a thread that had come to it before.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let trace = story.trace();
    let failure = trace.failure.as_ref()?;
    let freed = freed_before(story, &failure.condition);
    let failing = story.event(failure.event).thread;
    let read = read_by_failure(story);
    let others = trace.threads.iter().map(|thread| thread.id).filter(|id| *id != failing);
    // Who else took a reference is of interest only where the failure is about the object itself.
    let others = others.filter(|_| freed.is_some());
    [failing].into_iter().chain(others).find_map(|thread| {
        let own = trace.threads[thread.index()].events.iter().rev().map(|id| story.event(*id));
        // What writes much at once copies or clears something.
        let updates = own.filter(|event| (1..=PARTS).contains(&event.kind.writes().len()));
        let updates = updates.take(UPDATES);
        let mut taken = updates.flat_map(|event| {
            let cells = event.kind.writes().iter().map(|part| part.cell);
            cells.map(move |cell| (event, cell))
        });
        taken.find_map(|(update, cell)| {
            let concerns = |end: EventId| match freed {
                // Who counted too late may have freed it first, by when the one who gave up the last reference goes on.
                Some((free, access)) => end == free || end == access,
                None => {
                    let is_free = matches!(story.event(end).kind, EventKind::Free { .. });
                    let matters = is_free && story.before(end, failure.event);
                    (matters || read.contains(&end)) && story.in_one_call(update.id, failure.event)
                }
            };
            too_late(story, (update, cell), freed, &concerns)
        })
    })
}

/// The writes that the failure's condition reads.
fn read_by_failure(story: &Story<'_>) -> Vec<EventId> {
    let sources = story.failure_reads().into_iter().filter_map(|read| {
        let part = story.event(read.event).kind.reads().get(read.part as usize)?;
        story.source(read.event, part.cell)
    });
    sources.collect()
}

/// The update counts one more in an object that was, or is about to be, freed or taken apart because there were none.
fn too_late(
    story: &Story<'_>,
    (update, cell): (&Event, CellId),
    freed: Option<(EventId, EventId)>,
    concerns: &dyn Fn(EventId) -> bool,
) -> Option<Found> {
    if story.trace().cells[cell.index()].display == ValueDisplay::Pointer {
        return None;
    }
    let found = found_before(story, update, cell)?;
    if story.left(update.id, cell) != found.checked_add(1) {
        return None;
    }
    let was_last = |event: &Event| {
        event.thread != update.thread
            && story.left(event.id, cell) == Some(0)
            && found_before(story, event, cell) == Some(1)
    };
    let last = story.event(story.last_before(update.id, was_last)?);
    let ends = ends(story, last, cell, freed.map(|(_, access)| access));
    if !ends.iter().any(|end| concerns(*end)) {
        return None;
    }
    let frees = ends.iter().copied().chain(freed.map(|(free, _)| free));
    let mut objects = frees.filter_map(|end| story.event(end).kind.object());
    let read = match freed {
        Some(_) => objects
            .find_map(|object| pointer_to(story, object, update.id))
            .map_or_else(|| pointer_at(story, update), |(read, _)| Some(read))?,
        // Nothing else says then that what was counted are references to it: a list counts its elements, too, and frees
        // them when they are taken off.
        None => pointer_at(story, update)?,
    };
    story.before(read, last.id).then(|| told(story, read, last.id, update.id))
}

/// What a count was before the event changed it, as its thread saw that.
fn found_before(story: &Story<'_>, update: &Event, cell: CellId) -> Option<u128> {
    story.found(look(story, update, cell)?, cell)
}

/// Where the event's thread saw the cell as it changed it: in the event itself, or before.
fn look(story: &Story<'_>, event: &Event, cell: CellId) -> Option<EventId> {
    if story.access(event.id, cell).reads {
        return Some(event.id);
    }
    let own = story.accesses(event.thread, cell).iter().copied();
    own.rev().find(|id| story.event(*id).index < event.index)
}

/// What the thread did behind its giving up a reference, because of what it found the count to be.
fn ends(story: &Story<'_>, last: &Event, cell: CellId, access: Option<EventId>) -> Vec<EventId> {
    let look = look(story, last, cell);
    let own = &story.trace().threads[last.thread.index()].events;
    let later = own.get(last.index as usize + 1..).unwrap_or_default().iter().copied();
    let changes = |id: &EventId| {
        let kind = &story.event(*id).kind;
        let is_access = access == Some(*id);
        is_access || matches!(kind, EventKind::Free { .. }) || !kind.writes().is_empty()
    };
    let here = later.filter(changes).take(ENDS).take_while(|id| story.in_one_call(last.id, *id));
    here.filter(|id| look.is_some_and(|look| story.decides(look, *id, cell))).collect()
}

/// The read, in the same call, of the pointer by which the event, first of all, came to its place: where the object was not
/// freed yet, nothing tells where it lies.
fn pointer_at(story: &Story<'_>, event: &Event) -> Option<EventId> {
    let conditions = story.decided_before(event.id, &[PathConditionKind::Address]);
    let mut own = conditions.into_iter().filter(|condition| condition.position == event.index);
    let read = own.find_map(|condition| {
        let reads = story.trace().reads_of(condition.expr);
        let mut others = reads.into_iter().filter(|read| read.event != event.id);
        others.rfind(|read| may_be_address(story, *read)).map(|read| read.event)
    })?;
    story.in_one_call(read, event.id).then_some(read)
}

/// Not an index, by which an address may have been computed as well.
fn may_be_address(story: &Story<'_>, read: ReadRef) -> bool {
    let part = story.event(read.event).kind.reads().get(read.part as usize);
    let value = part.and_then(|part| story.value(part.var));
    value.is_none_or(|value| value >= FIRST_PAGE)
}

fn told(story: &Story<'_>, read: EventId, last: EventId, update: EventId) -> Found {
    let [one, two] = both_at(story, read, update);
    let sentence = format!(
        "{} gave up the last reference to what {} pointed to ({}) between {}'s read of that pointer ({one}) and its taking \
         a reference ({two})",
        story.thread(last),
        quoted(&story.subject(read)),
        at(story, last),
        story.thread(read),
    );
    let case = Some("reference-taken-too-late");
    Found { case, ..Found::new(Pattern::Atomicity, sentence, &[last, read, update]) }
}
