//! A thread looked at something before it went to wait for something else, that changed when it had looked, and where it
//! waits it does not ask for it.

use super::order::followed;
use super::story::Story;
use super::wakeup::{awaited, beginning, looks};
use super::words::{at, quoted, told};
use super::{CauseEvent, Found, Pattern};
use model::{Event, EventId, FailureKind, PathCondition, PathConditionKind};

/// For a thread that hangs on a condition variable, and would go on waiting if it looked again at what it waits for: with
/// what another thread has written since, an earlier look in the same call would have kept it from there. The passing
/// run has to show that.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    if failure.kind != FailureKind::Hang || !story.passes_elsewhere() {
        return None;
    }
    let failing = story.event(failure.event).thread;
    let mut own = story.trace().events.iter().filter(|event| event.thread == failing);
    own.find_map(|wait| awaited(wait).and_then(|_| before_wait(story, wait)))
}

fn before_wait(story: &Story<'_>, wait: &Event) -> Option<Found> {
    let began = beginning(story, wait);
    let asked: Vec<_> = looks(story, wait)?;
    let earlier = story.decided_before(began, &[PathConditionKind::Branch]);
    let may_keep_away = |look: &&PathCondition| {
        !look.is_beside_wait && asked.iter().all(|other| other.id != look.id)
    };
    let earlier: Vec<_> = earlier.into_iter().filter(may_keep_away).collect();
    let asked: Vec<_> = asked
        .iter()
        .flat_map(|look| story.trace().reads_of(look.expr))
        .flat_map(|read| story.cells(read.event))
        .collect();
    earlier.into_iter().find_map(|look| {
        story.trace().reads_of(look.expr).into_iter().find_map(|read| {
            let event = story.event(read.event);
            let part = event.kind.reads().get(read.part as usize)?;
            let is_last = |id: &EventId| {
                story.event(*id).index > event.index && story.event(*id).index < wait.index
            };
            let usable = event.thread == wait.thread
                && event.kind.writes().is_empty()
                && story.in_one_call(read.event, began)
                // What a call that has returned went by decided something else.
                && !story.has_returned(read.event, began)
                && story.is_named(read.event)
                && !event.is_affair_of_library()
                && !asked.contains(&part.cell)
                && story.reads_otherwise(read.event)
                && !story.accesses(wait.thread, part.cell).iter().any(is_last);
            if !usable {
                return None;
            }
            let write = story.last(|event| story.access(event.id, part.cell).writes)?;
            let changed = story.event(write).thread != wait.thread
                && story.before(read.event, write)
                && story.holds_with(look, part.var, part.cell, write) == Some(false);
            changed.then(|| sentence(story, [read.event, write, wait.id]))
        })
    })
}

fn sentence(story: &Story<'_>, events: [EventId; 3]) -> Found {
    let [look, write, wait] = events.map(CauseEvent::Failing);
    let id = events[2];
    let sentence = format!(
        "{} before {}, and then waited for {} ({}), where it does not look at it",
        told(story, look),
        followed(story, write, look),
        quoted(&story.subject(id)),
        at(story, id)
    );
    let case = Some("not-asked-where-it-waits");
    Found {
        case,
        marks: vec![look, write, wait],
        ..Found::new(Pattern::MissedWakeup, sentence, &events)
    }
}
