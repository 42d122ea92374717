//! A thread decided to change something before another thread said that it needs it.
//!
//! What the other thread reads too late is only the last link: the write came because of a decision
//! (a reference count that had dropped to zero, a flag that was not set), and what was decided by
//! was changed by the reader's thread just after it had been looked at.

use super::story::Story;
use super::words::{at, did, quoted, whole};
use super::{Found, Pattern};
use model::{EventId, EventKind, PathCondition, PathConditionKind, ReadRef};

/// The branches of so many lines before the write are looked at, the nearest first, ...
const BRANCHES: usize = 3;
/// ... and of so many where it is known that something came between two steps of the reader.
const MORE_BRANCHES: usize = 12;

/// For a write that another thread's read came after.
pub(super) fn find(story: &Story<'_>, write: EventId, read: EventId) -> Option<Found> {
    find_among(story, write, read, BRANCHES)
}

/// The same where the write came between two steps of the reader.
pub(super) fn find_between(story: &Story<'_>, write: EventId, read: EventId) -> Option<Found> {
    find_among(story, write, read, MORE_BRANCHES)
}

fn find_among(story: &Story<'_>, write: EventId, read: EventId, most: usize) -> Option<Found> {
    let (writer, reader) = (story.event(write), story.event(read));
    let branches = story.decided_before(write, &[PathConditionKind::Branch]);
    let decisions = branches.into_iter().flat_map(|branch| {
        let reads = story.trace().reads_of(branch.expr);
        reads.into_iter().map(|read| (branch, read)).rev().collect::<Vec<_>>()
    });
    // A line that searches a container has as many branches as that has elements on the way.
    let (mut line, mut lines) = (None, 0);
    let near = |(_, look): &(&PathCondition, ReadRef)| {
        let here = Some(story.site(look.event));
        lines += usize::from(line != here);
        line = here;
        lines <= most
    };
    let same_activation = |(_, look): &(&PathCondition, ReadRef)| {
        // Decisions far above, such as that of a loop in the thread's entry, explain little.
        let (one, other) = (&story.event(look.event).stack, &writer.stack);
        one.last() == other.last() || one.len().abs_diff(other.len()) <= 1
    };
    // How threads wait for each other inside of a library, no line of the program decides.
    let own_affair = |look: ReadRef| story.event(look.event).is_affair_of_library();
    let decisions = decisions.take_while(near).filter(same_activation);
    let counts = |look: ReadRef| !own_affair(look) && !story.is_done_with(look.event, write);
    decisions.filter(|(_, look)| counts(*look)).find_map(|(branch, look)| {
        let part = story.event(look.event).kind.reads().get(look.part as usize)?;
        let writes = |id: &EventId| story.access(*id, part.cell).writes;
        let own = &story.trace().threads[reader.thread.index()].events;
        let mut changes = own.iter().copied().filter(|id| {
            story.event(*id).index < reader.index && story.before(look.event, *id) && writes(id)
        });
        let change = changes.next()?;
        // What the writer itself has written there since, and what leads to the same, decided nothing.
        let rewritten = story.accesses(writer.thread, part.cell).iter().copied().any(|id| {
            writes(&id)
                && (story.event(look.event).index + 1..writer.index)
                    .contains(&story.event(id).index)
                && story.before(id, change)
        });
        // Who has looked again since, and seen the change, went by that.
        let seen = story.accesses(writer.thread, part.cell).iter().copied().any(|id| {
            story.access(id, part.cell).reads
                && story.event(id).index < writer.index
                && story.before(change, id)
        });
        let same = story.holds_with(branch, part.var, part.cell, change) == Some(true);
        (!rewritten && !seen && !same).then(|| told(story, [look.event, change, write, read]))
    })
}

/// The same for an object that was freed, where it was freed by a decision before another thread's use.
pub(super) fn find_free(story: &Story<'_>, free: EventId, access: EventId) -> Option<Found> {
    let found = find_among(story, free, access, MORE_BRANCHES)?;
    Some(Found { pattern: Pattern::UseAfterFree, ..found })
}

fn told(story: &Story<'_>, events: [EventId; 4]) -> Found {
    let [decision, change, write, read] = events;
    let sentence = format!(
        "{} before {} {} it ({}), and so {} {} ({}), which {} {} ({})",
        whole(story, decision),
        story.thread(change),
        did(story.event(change)),
        at(story, change),
        match story.trace().ends_local(story.event(write)) {
            true => "left the scope of",
            false => did(story.event(write)),
        },
        quoted(&story.subject(write)),
        at(story, write),
        story.thread(read),
        match &story.event(read).kind {
            EventKind::Block { .. } => "asked for",
            kind if kind.writes().is_empty() => "read",
            _ => "wrote",
        },
        at(story, read)
    );
    Found { case: Some("decided-too-early"), ..Found::new(Pattern::Order, sentence, &events) }
}
