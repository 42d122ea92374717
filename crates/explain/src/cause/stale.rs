//! A thread acted on what it had looked at before, and that had changed by then.
//!
//! Where two threads use one slot, or both do what only one should do, the pair of events that an
//! alternate schedule reverses may be one that follows from that: along the same paths both do it
//! whatever comes first, and a schedule passes only because one of them overwrites what the other did.
//! So this asks why the threads got there: for each branch and each index that led to an event of the
//! pair, would it be the same with what the variable held when the thread wrote it?

use super::atomicity::{Case, Triple, found};
use super::story::{Pair, Story};
use super::{CauseEvent, Found, several};
use crate::cone::expression_reads;
use model::{CellId, EventId, PathCondition, PathConditionKind, ReadRef, VarId};

/// So many conditions before an event are looked at, the nearest first.
const CONDITIONS: usize = 12;

/// A value that a thread went by.
#[derive(Clone, Copy)]
struct Look<'t> {
    read: ReadRef,
    var: VarId,
    cell: CellId,
    condition: &'t PathCondition,
}

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let ends = [order.after, order.before].map(|end| (end, looks(story, end)));
    let all = || ends.iter().flat_map(|(end, looks)| looks.iter().map(|look| (*end, *look)));
    let written = all().find_map(|(_, look)| overwritten(story, look));
    let (triple, case) =
        written.or_else(|| all().find_map(|(end, look)| seen(story, end, look)))?;
    // Whether the thread gets to write what it looked at depends on the run; where it meets it again
    // does not.
    let Triple { first, between, cell, .. } = triple;
    let thread = story.event(first).thread;
    let mut met = story.accesses(thread, cell).into_iter();
    let next = met.find(|id| story.event(*id).index > story.event(first).index);
    let marks = [Some(first), Some(between), next].into_iter().flatten();
    let marks = marks.map(CauseEvent::Failing).collect();
    Some(Found { marks, ..found(story, triple, case) })
}

/// What the event's thread went by to get there, in the same call, the last first.
fn looks<'t>(story: &Story<'t>, end: EventId) -> Vec<Look<'t>> {
    let trace = story.trace();
    let event = story.event(end);
    let conditions =
        story.decided_before(end, &[PathConditionKind::Branch, PathConditionKind::Address]);
    let looks = conditions.into_iter().take(CONDITIONS).flat_map(|condition| {
        let reads = expression_reads(trace, condition.expr).into_iter().rev();
        reads.filter_map(move |read| {
            let part = story.event(read.event).kind.reads().get(read.part as usize)?;
            Some(Look { read, var: part.var, cell: part.cell, condition })
        })
    });
    let near = |look: &Look<'_>| {
        story.event(look.read.event).thread == event.thread
            && look.read.event != end
            && several::forward(story, look.read.event, end)
    };
    // What the thread has looked at again since, it no longer goes by.
    let mut nearest: Vec<Look<'t>> = Vec::new();
    for look in looks.filter(near) {
        let known =
            |other: &Look<'_>| other.cell == look.cell && other.read.event != look.read.event;
        if !nearest.iter().any(known) {
            nearest.push(look);
        }
    }
    nearest
}

/// The thread wrote what it had looked at, and another thread had written it since.
fn overwritten(story: &Story<'_>, look: Look<'_>) -> Option<(Triple, Case)> {
    let Look { read, cell, .. } = look;
    let mut later = later(story, look);
    let second = later.find(|id| story.access(*id, cell).writes)?;
    if !several::forward(story, read.event, second) {
        return None;
    }
    let between = last_write(story, look, second)?;
    let (first, case) = (read.event, Case::ReadWriteWrite);
    Some((Triple { first, between, second, cell }, case))
}

/// The thread did the event, a write, and saw only then that what it had looked at is another.
fn seen(story: &Story<'_>, end: EventId, look: Look<'_>) -> Option<(Triple, Case)> {
    let Look { read, cell, .. } = look;
    let acts = story.event(end).kind.writes().is_empty();
    let second = later(story, look).next().filter(|_| !acts)?;
    let fits = story.access(second, cell).reads
        // The same place again is the next round, or the next call.
        && story.event(read.event).stack != story.event(second).stack
        && story.event(end).index < story.event(second).index
        && several::forward(story, read.event, second);
    let between = last_write(story, look, second).filter(|_| fits)?;
    let (first, case) = (read.event, Case::ReadWriteRead);
    Some((Triple { first, between, second, cell }, case))
}

/// The thread's accesses to what it looked at, behind that.
fn later<'s>(story: &'s Story<'_>, look: Look<'_>) -> impl Iterator<Item = EventId> + 's {
    let read = story.event(look.read.event);
    let accesses = story.accesses(read.thread, look.cell).into_iter();
    accesses.filter(|id| story.event(*id).index > read.index)
}

/// The write by another thread that the cell holds at an event, where it came behind the look and the
/// look would have another result with it.
fn last_write(story: &Story<'_>, look: Look<'_>, end: EventId) -> Option<EventId> {
    let writes = |event: &model::Event| story.access(event.id, look.cell).writes;
    let last = story.last_before(end, writes)?;
    let by_another = story.event(last).thread != story.event(end).thread;
    let since = by_another && story.before(look.read.event, last);
    (since && story.holds_with(look.condition, look.var, look.cell, last) == Some(false))
        .then_some(last)
}
