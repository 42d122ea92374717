//! Two variables that belong together were read at two moments, and other threads, each for its part,
//! went on in between: what was read was never there at one moment.
//!
//! That they belong together is taken from the failure, whose condition compares them. It would not hold
//! with what both were at the first read, and not with what both were at the second.

use super::story::{Pair, Story};
use super::words::{at, did, quoted};
use super::{Found, Pattern};
use model::{CellId, EventId, FailureCondition, ReadRef, VarId};

#[derive(Clone, Copy)]
struct Read {
    event: EventId,
    var: VarId,
    cell: CellId,
}

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let reads: Vec<Read> =
        story.failure_reads().into_iter().filter_map(|read| part(story, read)).collect();
    let own = reads.iter().find(|read| [order.before, order.after].contains(&read.event))?;
    let others = reads.iter().filter(|other| {
        story.event(other.event).thread == story.event(own.event).thread
            && other.cell != own.cell
            && story.is_named(other.event)
            && story.subject(other.event) != story.subject(own.event)
    });
    let in_order = |other: &Read| {
        if story.event(own.event).index < story.event(other.event).index {
            (*own, *other)
        } else {
            (*other, *own)
        }
    };
    others.map(in_order).find_map(|(first, second)| torn(story, first, second))
}

fn part(story: &Story<'_>, read: ReadRef) -> Option<Read> {
    let part = story.event(read.event).kind.reads().get(read.part as usize)?;
    Some(Read { event: read.event, var: part.var, cell: part.cell })
}

fn torn(story: &Story<'_>, first: Read, second: Read) -> Option<Found> {
    let reader = story.event(first.event).thread;
    let inside = |cell: CellId| {
        let writes = |event: &model::Event| {
            event.thread != reader
                && story.access(event.id, cell).writes
                && story.before(first.event, event.id)
        };
        story.last_before(second.event, writes)
    };
    let (one, other) = (inside(first.cell)?, inside(second.cell)?);
    if story.event(one).thread == story.event(other).thread {
        return None;
    }
    let FailureCondition::Value(condition) = story.trace().failure.as_ref()?.condition else {
        return None;
    };
    let was = story.last_write_before(first.event, second.cell)?;
    let later = story.value_with(condition, first.var, first.cell, one);
    let earlier = story.value_with(condition, second.var, second.cell, was);
    if (later, earlier) != (Some(0), Some(0)) {
        return None;
    }
    let named = |id: EventId| format!("{} ({})", quoted(&story.subject(id)), at(story, id));
    let act = |id: EventId| format!("{} {}", story.thread(id), did(story.event(id)));
    let sentence = format!(
        "{} read {} and {} at two moments: between them {} the one ({}) and {} the other ({})",
        story.thread(first.event),
        named(first.event),
        named(second.event),
        act(one),
        at(story, one),
        act(other),
        at(story, other)
    );
    let events = [first.event, second.event, one, other];
    Some(Found {
        case: Some("two-moments"),
        ..Found::new(Pattern::SeveralVariables, sentence, &events)
    })
}
