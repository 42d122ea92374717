//! A thread decided to change something before another thread said that it needs it.
//!
//! What the other thread reads too late is only the last link: the write came because of a decision
//! (a reference count that had dropped to zero, a flag that was not set), and what was decided by
//! was changed by the reader's thread just after it had been looked at.

use super::story::Story;
use super::words::{at, did, quoted, whole};
use super::{Found, Pattern};
use model::{EventId, PathCondition, PathConditionKind, ReadRef};

/// So many branches before the write are looked at, the nearest first, ...
const BRANCHES: usize = 3;
/// ... and so many where it is known that something came between two steps of the reader.
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
    let decisions = branches.into_iter().take(most).flat_map(|branch| {
        let reads = story.trace().reads_of(branch.expr);
        reads.into_iter().map(|read| (branch, read)).rev().collect::<Vec<_>>()
    });
    let same_activation = |(_, look): &(&PathCondition, ReadRef)| {
        // Decisions far above, such as that of a loop in the thread's entry, explain little.
        let (one, other) = (&story.event(look.event).stack, &writer.stack);
        one.last() == other.last() || one.len().abs_diff(other.len()) <= 1
    };
    // How threads wait for each other inside of a library, no line of the program decides.
    let own_affair = |look: ReadRef| story.event(look.event).is_affair_of_library();
    decisions.filter(same_activation).filter(|(_, look)| !own_affair(*look)).find_map(
        |(branch, look)| {
            let part = story.event(look.event).kind.reads().get(look.part as usize)?;
            let writes = |id: &EventId| story.access(*id, part.cell).writes;
            let own = &story.trace().threads[reader.thread.index()].events;
            let mut changes = own.iter().copied().filter(|id| {
                story.event(*id).index < reader.index && story.before(look.event, *id) && writes(id)
            });
            let change = changes.next()?;
            // What the writer itself has written there since, and what leads to the same, decided nothing.
            let rewritten = story.accesses(writer.thread, part.cell).into_iter().any(|id| {
                writes(&id)
                    && (story.event(look.event).index + 1..writer.index)
                        .contains(&story.event(id).index)
                    && story.before(id, change)
            });
            let same = story.holds_with(branch, part.var, part.cell, change) == Some(true);
            (!rewritten && !same).then(|| told(story, [look.event, change, write, read]))
        },
    )
}

fn told(story: &Story<'_>, events: [EventId; 4]) -> Found {
    let [decision, change, write, read] = events;
    let sentence = format!(
        "{} before {} {} it ({}), and so {} {} ({}), which {} read ({})",
        whole(story, decision),
        story.thread(change),
        did(story.event(change)),
        at(story, change),
        did(story.event(write)),
        quoted(&story.subject(write)),
        at(story, write),
        story.thread(read),
        at(story, read)
    );
    Found { case: Some("decided-too-early"), ..Found::new(Pattern::Order, sentence, &events) }
}
