//! Threads that only wait a round longer.
//!
//! A run is made to pass by any delay of the thread that does the harm. Where it was delayed by having to look once more at
//! what it waits for, the pair that came the other way round says nothing of the harm: it looks until it sees what it
//! saw in the failing run, and goes on from there as it did.

use super::{Flipped, Side, View};
use model::{Event, EventId, EventKind, EventTrace, ReadRef};

/// Do the runs differ, by the pair that comes the other way round, only in that the thread that reads waits for longer in
/// one of them: until it reads what it has read in the other one, at the same place, with nothing done in between?
pub(super) fn only_waits(view: &View<'_>, flipped: Flipped) -> bool {
    let Flipped::Reversed(order) = flipped else { return false };
    let only_reads =
        |id: &EventId| matches!(view.failing.trace.event(*id).kind, EventKind::Read { .. });
    [order.before, order.after].into_iter().filter(only_reads).any(|event| {
        let read = ReadRef { event, part: 0 };
        view.flow(read).is_some_and(|flow| {
            let other = flow.passing.read.event;
            let (failing, passing) = ((&view.failing, event), (&view.passing, other));
            view.returns_another_value(&flow)
                && (again(failing, passing) || again(passing, failing))
        })
    })
}

/// How much the two threads of the pair do in the passing run between the two, and not in the failing one: a thread that
/// was held back for the pair's sake may have let the other one go round a loop.
pub(super) fn in_between(view: &View<'_>, flipped: Flipped) -> usize {
    let Flipped::Reversed(order) = flipped else { return 0 };
    let place = |id: EventId| view.passing_place(id).map(|place| place as usize);
    let (Some(from), Some(to)) = (place(order.after), place(order.before)) else { return 0 };
    let passing = view.passing;
    let between = passing.schedule.order.get(from..to).unwrap_or_default();
    let name = |trace: &EventTrace, id: EventId| trace.thread_of(id).name.clone();
    let names = [order.before, order.after].map(|id| name(view.failing.trace, id));
    let own = passing.trace.threads.iter().filter(|thread| names.contains(&thread.name));
    let own: Vec<_> = own.map(|thread| thread.id).collect();
    let is_new = |id: &&EventId| {
        own.contains(&passing.trace.event(**id).thread) && view.matching.in_failing(**id).is_none()
    };
    between.iter().filter(is_new).count()
}

/// Does the thread that looked in vain in the second run look again, until it finds what the first one found, and do
/// nothing else meanwhile?
fn again(first: (&Side<'_>, EventId), second: (&Side<'_>, EventId)) -> bool {
    let ((first, found), (second, looked)) = (first, second);
    let trace = second.trace;
    let event = trace.event(looked);
    let behind = trace.thread_of(looked).events.iter().skip(event.index as usize + 1);
    let behind = behind.map(|id| trace.event(*id));
    for later in behind {
        if !is_look(later) {
            return false;
        }
        if later.stack == event.stack && is_read_alike(later, event) {
            let value = |trace: &EventTrace, values: &[Option<u128>], id: EventId| {
                let part = trace.event(id).kind.reads().first()?;
                values.get(part.var.index()).copied().flatten()
            };
            let here = value(first.trace, &first.evaluation.values, found);
            let there = value(trace, &second.evaluation.values, later.id);
            if here.is_some() && here == there {
                return true;
            }
        }
    }
    false
}

/// A step that changes nothing for others once it is over.
fn is_look(event: &Event) -> bool {
    matches!(event.kind, EventKind::Read { .. } | EventKind::Lock { .. } | EventKind::Unlock { .. })
}

/// Do both read the same variable?
fn is_read_alike(one: &Event, other: &Event) -> bool {
    let cell = |event: &Event| match event.kind {
        EventKind::Read { .. } => event.kind.reads().first().map(|part| part.cell),
        _ => None,
    };
    cell(one).is_some() && cell(one) == cell(other)
}
