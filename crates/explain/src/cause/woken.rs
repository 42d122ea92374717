//! A thread was woken, did not look again at what it had waited for, and that was not so, or no longer; or it gave up its
//! wait, and did not look again although what it had waited for, or something else, had come by then.

use super::story::{Pair, Story};
use super::wakeup::looks;
use super::words::{at, did, quoted};
use super::{Found, Pattern};
use model::{CellId, Event, EventId, EventKind, PathCondition, PathConditionKind, ReadRef};

/// No more of a thread's events behind a read are looked at for what it writes there.
const STEP: usize = 64;

/// The failing thread went to wait because of what it saw, would have waited again with what was there when it was back
/// from its wait, and did not look.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    find_before(story, story.trace().failure.as_ref()?.event)
}

/// The same of a thread that wrote what another one then failed with: by the ends of a pair, or by what it writes to
/// what it has read there.
pub(super) fn find_writer(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let step = |end: EventId| {
        let cells = story.cells(end);
        let own = &story.trace().threads[story.event(end).thread.index()].events;
        let behind = own.iter().copied().skip(story.event(end).index as usize);
        let writes = |id: &EventId| cells.iter().any(|cell| story.access(*id, *cell).writes);
        behind.take_while(|id| story.in_one_call(end, *id)).take(STEP).find(writes)
    };
    [order.after, order.before].into_iter().filter_map(step).find_map(|id| find_before(story, id))
}

fn find_before(story: &Story<'_>, end: EventId) -> Option<Found> {
    let end = story.event(end);
    let own = &story.trace().threads[end.thread.index()].events[..end.index as usize];
    let wake = own.iter().rev().copied().find(|id| {
        matches!(story.event(*id).kind, EventKind::Wake { .. } | EventKind::WaitTimedOut { .. })
    })?;
    if !story.in_one_call(wake, end.id) {
        return None;
    }
    // Who knows that the time was up looks at something else.
    if !matches!(story.event(wake).kind, EventKind::Wake { .. }) {
        return gave_up(story, wake, end);
    }
    let behind = own.iter().copied().skip(story.event(wake).index as usize + 1);
    let back = behind.clone().find(|id| matches!(story.event(*id).kind, EventKind::Lock { .. }))?;
    let looks: Vec<&PathCondition> = looks(story, story.event(wake))?
        .into_iter()
        .filter(|look| look.kind == PathConditionKind::Branch)
        .filter(|look| !story.trace().reads_of(look.expr).is_empty())
        .collect();
    let would_wait = looks.iter().all(|look| story.holds_at(look, Some(back)) == Some(true));
    let last = last_read(story, looks.last()?)?;
    if !would_wait || is_tested(story, &looks, (wake, end.id)) {
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
    let used = match end.kind {
        EventKind::Failure => decisive.or_else(|| used.next())?,
        _ => end.id,
    };
    let (thread, looked) = (story.thread(last), quoted(&story.subject(last)));
    // Of all that it looked at, what was written last.
    let looked_at = cells_of(story, &looks);
    let changes =
        |event: &model::Event| looked_at.iter().any(|cell| story.access(event.id, *cell).writes);
    let changed = story.last_before(back, changes);
    let changed = changed
        .filter(|write| story.event(*write).thread != end.thread && story.before(last, *write));
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

/// The failing thread's time was up. What it had looked at before it waited was another by then, so that it would have gone
/// another way, and that is what it failed with.
fn gave_up(story: &Story<'_>, wake: EventId, end: &Event) -> Option<Found> {
    if end.kind != EventKind::Failure {
        return None;
    }
    let own = &story.trace().threads[end.thread.index()].events[..end.index as usize];
    let behind = own.iter().copied().skip(story.event(wake).index as usize + 1);
    let back = behind.clone().find(|id| matches!(story.event(*id).kind, EventKind::Lock { .. }))?;
    let named = story.failure_reads();
    let mut looks = looks(story, story.event(wake))?.into_iter().rev();
    looks.find_map(|look| {
        let differs = look.kind == PathConditionKind::Branch
            && story.holds_at(look, Some(back)) == Some(false);
        let (first, cell) = parts_of(story, look).into_iter().rev().find(|(first, cell)| {
            differs
                && story.is_named(*first)
                && named.iter().any(|read| story.access(read.event, *cell).reads)
        })?;
        let used = behind.clone().find(|id| {
            story.access(*id, cell).reads && named.iter().any(|read| read.event == *id)
        })?;
        if is_tested(story, &[look], (wake, used)) {
            return None;
        }
        let change = story.last_write_before(back, cell)?;
        let by_another = story.event(change).thread != end.thread && story.before(first, change);
        let sentence = format!(
            "{} {} {} ({}) and {} {} ({}) without another look at it ({}), which {} had written by then ({})",
            story.thread(used),
            did(story.event(wake)),
            quoted(&story.subject(wake)),
            at(story, wake),
            did(story.event(used)),
            quoted(&story.subject(used)),
            at(story, used),
            at(story, first),
            story.thread(change),
            at(story, change)
        );
        by_another.then(|| Found {
            case: Some("gave-up-without-look"),
            ..Found::new(Pattern::Atomicity, sentence, &[change, first, wake, used])
        })
    })
}

/// The last event that a look read.
fn last_read(story: &Story<'_>, look: &PathCondition) -> Option<EventId> {
    let reads = story.trace().reads_of(look.expr).into_iter();
    reads.map(|read| read.event).max_by_key(|id| story.event(*id).index)
}

/// The cells that looks read.
fn cells_of(story: &Story<'_>, looks: &[&PathCondition]) -> Vec<CellId> {
    looks.iter().flat_map(|look| parts_of(story, look)).map(|(_, cell)| cell).collect()
}

/// What a look read, and where.
fn parts_of(story: &Story<'_>, look: &PathCondition) -> Vec<(EventId, CellId)> {
    let part = |read: ReadRef| {
        let part = story.event(read.event).kind.reads().get(read.part as usize)?;
        Some((read.event, part.cell))
    };
    story.trace().reads_of(look.expr).into_iter().filter_map(part).collect()
}

/// Does the thread look at any of this again between these two of its events, and go by it? Or at anything that it compares
/// with what was there before it waited, as of a round that is over?
fn is_tested(story: &Story<'_>, looks: &[&PathCondition], (wake, end): (EventId, EventId)) -> bool {
    let looked = cells_of(story, looks);
    let behind = story.event(wake).index;
    // What a container asks of itself in the step is no look of the program's.
    let in_step =
        |read: EventId| story.event(read).depth() > 0 && story.site(read) == story.site(end);
    story.decided_before(end, &[PathConditionKind::Branch]).into_iter().any(|condition| {
        let parts = parts_of(story, condition);
        let is_new = |read: EventId| story.event(read).index > behind;
        let was_seen =
            |cell: CellId| parts.iter().any(|(read, other)| *other == cell && !is_new(*read));
        condition.position > behind
            && parts.iter().any(|(read, cell)| {
                is_new(*read) && (looked.contains(cell) || was_seen(*cell)) && !in_step(*read)
            })
    })
}
