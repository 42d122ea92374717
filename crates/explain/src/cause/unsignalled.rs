//! What a thread waits for has changed while it waits, and nobody tells it.

use super::story::Story;
use super::wakeup::{awaited, beginning, looks, signals};
use super::words::{at, quoted, whole};
use super::{CauseEvent, Found, Pattern};
use model::{Event, EventId, FailureKind, ObjectId, PathCondition, PathConditionKind, ThreadId};

/// A write with which the thread that hangs would not have gone to wait, behind which its condition variable is not
/// signalled any more.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    if failure.kind != FailureKind::Hang {
        return None;
    }
    // Others may wait because they have nothing to do.
    let failing = story.event(failure.event).thread;
    let own = story.trace().events.iter().filter(|event| event.thread == failing);
    own.filter_map(|wait| Some((wait, awaited(wait)?)))
        .find_map(|(wait, condition)| untold(story, wait, condition))
}

/// The same of another thread, where nobody signalled what the thread that hangs waits for: that other one has something
/// to do, and was to be told by the thread that hangs.
pub(super) fn find_beside(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    if failure.kind != FailureKind::Hang {
        return None;
    }
    let failing = story.event(failure.event).thread;
    let others = story.trace().events.iter().filter(|event| event.thread != failing);
    others
        .filter_map(|wait| Some((wait, awaited(wait)?)))
        .filter_map(|(wait, condition)| untold(story, wait, condition))
        .find(|found| found.events.iter().any(|event| is_of(story, event, failing)))
}

/// Is that an event of this thread in the failing run?
fn is_of(story: &Story<'_>, event: &CauseEvent, thread: ThreadId) -> bool {
    matches!(event, CauseEvent::Failing(id) if story.event(*id).thread == thread)
}

fn untold(story: &Story<'_>, wait: &Event, condition: ObjectId) -> Option<Found> {
    let began = beginning(story, wait);
    let told = story.last(|event| signals(event, condition));
    let goes_on = looks(story, wait)?.into_iter().filter(|look| {
        let of_wait = matches!(look.kind, PathConditionKind::Branch | PathConditionKind::Address);
        of_wait && !look.is_beside_wait && story.holds_at_the_end(look) == Some(false)
    });
    let changes = goes_on.flat_map(|look| changes(story, wait, look));
    let untold = |write: &EventId| {
        story.before(began, *write) && told.is_none_or(|told| story.before(told, *write))
    };
    let write = changes.filter(untold).min_by_key(|write| story.place(*write))?;
    let sentence = format!(
        "{} while {} waited for {} ({}), and {} did not signal that",
        whole(story, write),
        story.thread(wait.id),
        quoted(&story.subject(wait.id)),
        at(story, wait.id),
        story.thread(write)
    );
    let found = Found::new(Pattern::MissedWakeup, sentence, &[write, wait.id]);
    Some(Found { case: Some("no-signal"), ..found })
}

/// The other threads' writes with which a look would have had another outcome.
fn changes(story: &Story<'_>, wait: &Event, look: &PathCondition) -> Vec<EventId> {
    let mut found = Vec::new();
    for read in story.trace().reads_of(look.expr) {
        let parts = story.event(read.event).kind.reads();
        let Some(part) = parts.get(read.part as usize) else { continue };
        let others = story.trace().events.iter().filter(|event| event.thread != wait.thread);
        let writes = others.map(|event| event.id).filter(|id| {
            story.access(*id, part.cell).writes
                && story.holds_with(look, part.var, part.cell, *id) == Some(false)
        });
        found.extend(writes);
    }
    found
}
