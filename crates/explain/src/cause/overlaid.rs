//! Two threads write the same two variables, one after the other: the one's steps come between the other's, so that the first
//! variable is left as the one has it, and the second as the other.
//!
//! Which of the two wrote the second variable last is all that shows in a read of that alone. That the variables belong together is
//! taken from the program: the same lines write both in one call, and the thread that came between had read what the other one had
//! written to the first, so that it knew of it and went on for that reason.

use super::story::{Pair, Story};
use super::words::{at, quoted, same_variable};
use super::{Found, Pattern};
use model::{CellId, EventId, EventKind};

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let (between, last) = (order.before, order.after);
    let is_write = |id: EventId| matches!(story.event(id).kind, EventKind::Write { .. });
    if ![between, last].into_iter().all(is_write)
        || story.event(between).thread == story.event(last).thread
        || story.site(between) != story.site(last)
    {
        return None;
    }
    let first = steps(story, last).find(|first| overtaken(story, (*first, last), between))?;
    let named = |id: EventId| format!("{} ({})", quoted(&story.subject(id)), at(story, id));
    let sentence = format!(
        "{} wrote {} between {}'s writes of {} and {}",
        story.thread(between),
        named(between),
        story.thread(first),
        named(first),
        named(last)
    );
    let found = Found::new(Pattern::SeveralVariables, sentence, &[between, first, last]);
    Some(Found { case: Some("mixed-writes"), ..found })
}

/// What a thread wrote of other variables before a write, in the same call, the last one first.
fn steps<'s>(story: &'s Story<'_>, write: EventId) -> impl Iterator<Item = EventId> + 's {
    let event = story.event(write);
    let own = &story.trace().threads[event.thread.index()].events[..event.index as usize];
    let subject = story.subject(write);
    own.iter().rev().copied().filter(move |id| {
        !story.event(*id).kind.writes().is_empty()
            && story.is_named(*id)
            && !same_variable(&story.subject(*id), &subject)
            && story.in_one_call(*id, write)
    })
}

/// Did the thread of `between` write in the same place, behind the first of these, what that one had written, having seen it?
fn overtaken(story: &Story<'_>, (first, last): (EventId, EventId), between: EventId) -> bool {
    let saw = |cell: CellId, step: EventId| {
        let event = story.event(step);
        let own = &story.trace().threads[event.thread.index()].events;
        let mut reads = own[..=event.index as usize].iter().copied();
        reads.any(|id| story.in_one_call(id, step) && story.source(id, cell) == Some(first))
    };
    story.before(first, between)
        && story.before(between, last)
        && steps(story, between).any(|step| {
            story.site(step) == story.site(first)
                && story.before(first, step)
                && story.common_cells(first, step).into_iter().any(|cell| saw(cell, step))
        })
}
