//! Two variables, each of which one thread writes and the other reads: one thread looked at the first
//! and wrote the second because of it, and another thread wrote the first and looked at the second
//! in between. In neither order of the two as a whole could both miss each other.

use super::story::{Pair, Story};
use super::words::{at, did, quoted};
use super::{Found, Pattern};
use model::{CellId, EventId};

/// So many of a thread's later accesses are looked at.
const LATER: usize = 12;

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let (look, change) = (order.before, order.after);
    let cell = story
        .common_cells(look, change)
        .into_iter()
        .find(|cell| story.access(look, *cell).reads && story.access(change, *cell).writes)?;
    later(story, look)
        .filter(|act| !story.cells(*act).contains(&cell))
        .find_map(|act| crossing(story, look, change, act, cell))
}

/// A thread's accesses behind this one, the nearest first.
fn later<'s>(story: &'s Story<'_>, id: EventId) -> impl Iterator<Item = EventId> + 's {
    let events = &story.trace().threads[story.event(id).thread.index()].events;
    let behind = events.iter().copied().filter(move |other| {
        story.event(*other).index > story.event(id).index && !story.cells(*other).is_empty()
    });
    behind.take(LATER)
}

/// `act` writes what hangs on `look`; does the other thread read that, behind its change and before
/// it is written, and go another way because of it?
fn crossing(
    story: &Story<'_>,
    look: EventId,
    change: EventId,
    act: EventId,
    cell: CellId,
) -> Option<Found> {
    let hangs = story.decides(look, act, cell) || story.computes(look, act, cell);
    if !hangs {
        return None;
    }
    let mut partners = later(story, change).filter(|partner| {
        let both = story.common_cells(*partner, act);
        story.before(*partner, act)
            && both.iter().any(|other| {
                story.access(*partner, *other).reads
                    && story.access(act, *other).writes
                    && story.decides_something(*partner, *other)
            })
    });
    let missed = partners.next()?;
    let sentence = format!(
        "{} {} {} ({}) and read {} ({}) between {}'s read of {} ({}) and its write of {} ({})",
        story.thread(change),
        did(story.event(change)),
        quoted(&story.subject(change)),
        at(story, change),
        quoted(&story.subject(missed)),
        at(story, missed),
        story.thread(look),
        quoted(&story.subject(look)),
        at(story, look),
        quoted(&story.subject(act)),
        at(story, act)
    );
    let events = [change, missed, look, act];
    Some(Found {
        case: Some("crossed"),
        ..Found::new(Pattern::SeveralVariables, sentence, &events)
    })
}
