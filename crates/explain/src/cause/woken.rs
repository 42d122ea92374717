//! A thread was woken, did not look again at what it had waited for, and that was not so, or no longer.

use super::story::Story;
use super::wakeup::looks;
use super::words::{at, did, quoted};
use super::{Found, Pattern};
use model::{CellId, EventId, EventKind, PathCondition, PathConditionKind};

/// The failing thread went to wait because of what it saw, would have waited again with what was there when it was back
/// from its wait, and did not look.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.event(story.trace().failure.as_ref()?.event);
    let own = &story.trace().threads[failure.thread.index()].events[..failure.index as usize];
    let wake = own.iter().rev().copied().find(|id| {
        matches!(story.event(*id).kind, EventKind::Wake { .. } | EventKind::WaitTimedOut { .. })
    })?;
    // Who knows that the time was up looks at something else.
    if !matches!(story.event(wake).kind, EventKind::Wake { .. })
        || !story.in_one_call(wake, failure.id)
    {
        return None;
    }
    let behind = own.iter().copied().skip(story.event(wake).index as usize + 1);
    let back = behind.clone().find(|id| matches!(story.event(*id).kind, EventKind::Lock { .. }))?;
    let looks: Vec<&PathCondition> = looks(story, story.event(wake))?
        .into_iter()
        .filter(|look| look.kind == PathConditionKind::Branch)
        .filter(|look| !story.trace().reads_of(look.expr).is_empty())
        .collect();
    let would_wait = looks.iter().all(|look| story.holds_at(look, Some(back)) == Some(true));
    let (last, cell) = last_read(story, looks.last()?)?;
    if !would_wait || is_tested(story, &looks, (wake, failure.id)) {
        return None;
    }
    // What a barrier or a latch looks at before it lets a thread go on is its own affair.
    if story.event(last).is_in_synchronisation() {
        return None;
    }
    let named = story.failure_reads();
    let reads = |id: &EventId| !story.cells(*id).is_empty() && story.is_named(*id);
    let mut used = behind.filter(reads);
    let decisive = used.clone().find(|id| named.iter().any(|read| read.event == *id));
    let used = decisive.or_else(|| used.next())?;
    let (thread, looked) = (story.thread(last), quoted(&story.subject(last)));
    let changed = story.last_before(back, |event| story.access(event.id, cell).writes);
    let changed = changed
        .filter(|write| story.event(*write).thread != failure.thread && story.before(last, *write));
    let goes_on = format!(
        "{} {} ({})",
        did(story.event(used)),
        quoted(&story.subject(used)),
        at(story, used)
    );
    let (sentence, events) = match changed {
        Some(write) => (
            format!(
                "{thread} was woken ({}) and {goes_on} without another look at {looked} ({}), which {} had written \
                 by then ({})",
                at(story, wake),
                at(story, last),
                story.thread(write),
                at(story, write)
            ),
            vec![write, last, used],
        ),
        None => (
            format!(
                "{thread} was woken ({}) and {goes_on} without another look at {looked} ({}), which had not changed",
                at(story, wake),
                at(story, last)
            ),
            vec![last, used],
        ),
    };
    Some(Found {
        case: Some("woken-without-look"),
        ..Found::new(Pattern::Atomicity, sentence, &events)
    })
}

/// The last event that a look read, and which cell.
fn last_read(story: &Story<'_>, look: &PathCondition) -> Option<(EventId, CellId)> {
    let reads = story.trace().reads_of(look.expr);
    let last = reads.into_iter().max_by_key(|read| story.event(read.event).index)?;
    let part = story.event(last.event).kind.reads().get(last.part as usize)?;
    Some((last.event, part.cell))
}

/// Does the thread look at any of this again between these two of its events, and go by it?
fn is_tested(story: &Story<'_>, looks: &[&PathCondition], (wake, end): (EventId, EventId)) -> bool {
    let cells = |condition: &PathCondition| -> Vec<(EventId, CellId)> {
        let reads = story.trace().reads_of(condition.expr).into_iter();
        let part = |read: model::ReadRef| {
            let part = story.event(read.event).kind.reads().get(read.part as usize)?;
            Some((read.event, part.cell))
        };
        reads.filter_map(part).collect()
    };
    let looked: Vec<CellId> =
        looks.iter().flat_map(|look| cells(look)).map(|(_, cell)| cell).collect();
    let behind = story.event(wake).index;
    story.decided_before(end, &[PathConditionKind::Branch]).into_iter().any(|condition| {
        condition.position > behind
            && cells(condition)
                .into_iter()
                .any(|(read, cell)| story.event(read).index > behind && looked.contains(&cell))
    })
}
