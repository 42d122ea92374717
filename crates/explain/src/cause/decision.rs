//! A thread decided to change something before another thread said that it needs it.
//!
//! What the other thread reads too late is only the last link: the write came because of a decision
//! (a reference count that had dropped to zero, a flag that was not set), and what was decided by
//! was changed by the reader's thread just after it had been looked at.

use super::story::Story;
use super::words::{at, did, quoted, whole};
use super::{Found, Pattern};
use model::{EventId, PathConditionKind};

/// So many branches before the write are looked at, the nearest first.
const BRANCHES: usize = 3;

/// For a write that another thread's read came after.
pub(super) fn find(story: &Story<'_>, write: EventId, read: EventId) -> Option<Found> {
    let (writer, reader) = (story.event(write), story.event(read));
    let branches = story.decided_before(write, &[PathConditionKind::Branch]);
    let decisions = branches.into_iter().take(BRANCHES).flat_map(|branch| {
        let reads = story.trace().reads_of(branch.expr);
        reads.into_iter().map(|read| read.event).rev().collect::<Vec<_>>()
    });
    let same_activation = |id: &EventId| {
        // Decisions far above, such as that of a loop in the thread's entry, explain little.
        let (one, other) = (&story.event(*id).stack, &writer.stack);
        one.last() == other.last() || one.len().abs_diff(other.len()) <= 1
    };
    decisions.filter(same_activation).find_map(|decision| {
        let own = &story.trace().threads[reader.thread.index()].events;
        let mut changes = own.iter().copied().filter(|id| {
            story.event(*id).index < reader.index
                && story.before(decision, *id)
                && story
                    .common_cells(decision, *id)
                    .iter()
                    .any(|cell| story.access(*id, *cell).writes)
        });
        changes.next().map(|change| told(story, [decision, change, write, read]))
    })
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
