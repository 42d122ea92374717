//! A thread waits for a signal that came before it waited, or that woke another thread.

use super::story::Story;
use super::words::{at, did, quoted, whole};
use super::{Found, Pattern};
use crate::cone::expression_reads;
use model::{
    Awaited, Event, EventId, EventKind, FailureKind, ObjectId, PathCondition, PathConditionKind,
};

pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    if failure.kind != FailureKind::Hang {
        return None;
    }
    // The thread that the failure is put down to comes first.
    let failing = story.event(failure.event).thread;
    let mut waits: Vec<&Event> =
        story.trace().events.iter().filter(|e| awaited(e).is_some()).collect();
    waits.sort_by_key(|wait| wait.thread != failing);
    waits.into_iter().find_map(|wait| missed(story, wait, awaited(wait)?))
}

/// The condition variable that a thread waits at until the end.
fn awaited(event: &Event) -> Option<ObjectId> {
    match event.kind {
        EventKind::Block { on: Awaited::Signal { condition } } => Some(condition),
        _ => None,
    }
}

fn missed(story: &Story<'_>, wait: &Event, condition: ObjectId) -> Option<Found> {
    // The wait begins at the release before it.
    let events = &story.trace().threads[wait.thread.index()].events;
    let own = events.iter().rev().copied().find(|id| {
        let event = story.event(*id);
        event.index < wait.index && matches!(event.kind, EventKind::Unlock { .. })
    });
    let began = own.unwrap_or(wait.id);
    let signals = |event: &Event| {
        event.thread != wait.thread
            && matches!(event.kind, EventKind::Signal { condition: c }
                | EventKind::Broadcast { condition: c } if c == condition)
    };
    let name = quoted(&story.subject(wait.id));
    let waiter = story.thread(wait.id);
    // A signal during the wait went to somebody else.
    let stolen =
        story.trace().events.iter().filter(|event| signals(event) && story.before(began, event.id));
    if let Some((signal, wake)) =
        stolen.filter_map(|event| Some((event.id, woken_by(story, event.id)?))).next()
    {
        let sentence = format!(
            "{} and woke {} ({}), not {waiter}, which had waited for {name} since before ({})",
            whole(story, signal),
            story.thread(wake),
            at(story, wake),
            at(story, wait.id)
        );
        let found = Found::new(Pattern::MissedWakeup, sentence, &[signal, wake, wait.id]);
        return Some(Found { case: Some("woke-another"), ..found });
    }
    let signal = story.last_before(began, signals)?;
    if let Some((check, change)) = check_and_change(story, began, signal) {
        let sentence = format!(
            "{} and {} {name} ({}) between {waiter}'s check ({}) and its wait ({})",
            whole(story, change),
            did(story.event(signal)),
            at(story, signal),
            at(story, check),
            at(story, wait.id)
        );
        let found = Found::new(Pattern::MissedWakeup, sentence, &[change, signal, check, wait.id]);
        return Some(Found { case: Some("signal-between-check-and-wait"), ..found });
    }
    let sentence = format!(
        "{} before {waiter} waited for it ({}), and nobody does so again",
        whole(story, signal),
        at(story, wait.id)
    );
    let found = Found::new(Pattern::MissedWakeup, sentence, &[signal, wait.id]);
    Some(Found { case: Some("signal-before-wait"), ..found })
}

/// The last thing that the waiting thread looked at before it waited and that the signal's thread
/// changed after that and before the signal: the read and the write.
fn check_and_change(
    story: &Story<'_>,
    began: EventId,
    signal: EventId,
) -> Option<(EventId, EventId)> {
    let (waiter, sender) = (story.event(began), story.event(signal));
    let mut branches: Vec<&PathCondition> = story
        .trace()
        .conditions
        .iter()
        .filter(|c| c.thread == waiter.thread && c.kind == PathConditionKind::Branch)
        .filter(|c| c.position <= waiter.index)
        .collect();
    branches.sort_by_key(|condition| std::cmp::Reverse((condition.position, condition.id)));
    branches.into_iter().find_map(|branch| {
        let mut reads: Vec<EventId> =
            expression_reads(story.trace(), branch.expr).iter().map(|read| read.event).collect();
        reads.sort_by_key(|read| std::cmp::Reverse(story.event(*read).index));
        reads.into_iter().find_map(|check| {
            let writes = |id: &EventId| {
                story.event(*id).index < sender.index
                    && story.before(check, *id)
                    && story.common_cells(check, *id).iter().any(|c| story.access(*id, *c).writes)
            };
            let own = &story.trace().threads[sender.thread.index()].events;
            let change = own.iter().rev().copied().find(writes)?;
            Some((check, change))
        })
    })
}

/// The wake-up that a signal brought about.
fn woken_by(story: &Story<'_>, signal: EventId) -> Option<EventId> {
    let mut wakes = story.failing.evaluation.woken_by.iter();
    wakes.find(|(_, waker)| **waker == signal).map(|(wake, _)| *wake)
}
