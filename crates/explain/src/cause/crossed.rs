//! Two variables, each of which one thread writes and the other reads: one thread looked at the first
//! and wrote the second because of it, and another thread wrote the first and looked at the second
//! in between. In neither order of the two as a whole could both miss each other.

use super::sections::held;
use super::story::{Pair, Story};
use super::words::{at, did, quoted};
use super::{Found, Pattern};
use model::{CellId, EventId, FailureKind, PathCondition, PathConditionKind, ReadRef};

/// So many of a thread's later accesses are looked at.
const LATER: usize = 12;
/// So many branches before an event are looked at, the nearest first.
const BRANCHES: usize = 12;

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    by_change(story, pair).or_else(|| by_miss(story, pair))
}

/// The pair is the look at the first variable and the change of it.
fn by_change(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let (look, change) = (order.before, order.after);
    let cell = story
        .common_cells(look, change)
        .into_iter()
        .find(|cell| story.access(look, *cell).reads && story.access(change, *cell).writes)?;
    // Of several looks at it before the change, what the thread does hangs on the last one.
    let own = story.accesses(story.event(look).thread, cell).iter().copied().rev();
    let mut looks = own.filter(|id| {
        story.access(*id, cell).reads
            && story.event(*id).index >= story.event(look).index
            && story.before(*id, change)
    });
    looks.find_map(|look| {
        later(story, look)
            .filter(|act| !story.cells(*act).contains(&cell))
            .find_map(|act| crossing(story, look, change, act, cell))
    })
}

/// A thread's accesses behind this one, the nearest first.
fn later<'s>(story: &'s Story<'_>, id: EventId) -> impl Iterator<Item = EventId> + 's {
    let events = &story.trace().threads[story.event(id).thread.index()].events;
    let behind = events.iter().copied().filter(move |other| {
        story.event(*other).index > story.event(id).index
            && !story.cells(*other).is_empty()
            && !story.event(*other).is_affair_of_library()
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
    partners.next().map(|missed| found(story, [change, missed, look, act]))
}

/// The pair is the look at the second variable and the change of that: a run passes in which the other thread did all
/// of its part before. That the first variable was changed in between is to blame where one critical section looked
/// at the first, another one of that lock changed the second, and the other thread's came between the two.
fn by_miss(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let (missed, act) = (order.before, order.after);
    let misses = |cell: &CellId| {
        story.access(missed, *cell).reads
            && story.access(act, *cell).writes
            && story.decide_together(missed, missed, *cell)
    };
    if !story.common_cells(missed, act).iter().any(misses) {
        return None;
    }
    let branches = story.decided_before(act, &[PathConditionKind::Branch]);
    let looks = branches.into_iter().take(BRANCHES).flat_map(|branch| {
        story.trace().reads_of(branch.expr).into_iter().map(move |read| (branch, read))
    });
    let mut found_at = looks.filter_map(|(branch, look)| {
        if let Some(change) = overtaken(story, branch, look, (missed, act)) {
            let events = [change, missed, look.event, act];
            let parted = is_parted(story, look.event, act, (change, missed))
                || is_without_locks(story, look.event, act, (change, missed));
            return parted.then(|| found(story, events));
        }
        let change = announced_to(story, branch, look, (missed, act))?;
        Some(found_by_three(story, [change, missed, look.event, act]))
    });
    found_at.next()
}

/// A third thread's write of what was read for a branch on the way to `act`, with which the branch would have led
/// elsewhere, and which the other thread had seen when it came to `missed`: who asked whether a pool still runs, and
/// then gave it a task, whose worker had gone because it did not. The other thread did all of its part under a lock
/// that `act` is under as well, and the look is not in that section.
fn announced_to(
    story: &Story<'_>,
    branch: &PathCondition,
    look: ReadRef,
    (missed, act): (EventId, EventId),
) -> Option<EventId> {
    let (looked, own, other) = (story.event(look.event), story.event(act), story.event(missed));
    let part = looked.kind.reads().get(look.part as usize)?;
    if looked.thread != own.thread || looked.index >= own.index {
        return None;
    }
    let at_act = held(story, act);
    let reads = story.accesses(other.thread, part.cell).iter().copied().rev();
    let mut reads = reads.filter(|id| story.event(*id).index < other.index);
    let (seen, change) = reads.find_map(|id| Some((id, story.source(id, part.cell)?)))?;
    let sections = held(story, seen);
    let whole = held(story, missed).iter().any(|section| {
        sections.contains(section) && at_act.iter().any(|(lock, _)| *lock == section.0)
    });
    let apart = !held(story, look.event).iter().any(|section| at_act.contains(section));
    let third = ![own.thread, other.thread].contains(&story.event(change).thread);
    let fits = third
        && whole
        && apart
        && story.before(look.event, change)
        && !story.always_before(look.event, change)
        && story.in_one_call(look.event, act)
        && story.holds_with(branch, part.var, part.cell, change) == Some(false);
    fits.then_some(change)
}

fn found_by_three(story: &Story<'_>, [change, missed, look, act]: [EventId; 4]) -> Found {
    let named = |id: EventId| format!("{} ({})", quoted(&story.subject(id)), at(story, id));
    let sentence = format!(
        "{} {} {}, and {}, which saw that, read {} between {}'s read of {} and its write of {}",
        story.thread(change),
        did(story.event(change)),
        named(change),
        story.thread(missed),
        named(missed),
        story.thread(look),
        named(look),
        named(act)
    );
    let events = [change, missed, look, act];
    Found { case: Some("crossed"), ..Found::new(Pattern::SeveralVariables, sentence, &events) }
}

/// The other thread's write before `missed` of what was read for a branch on the way to `act`, which came behind that
/// look, and with which the branch would have led elsewhere.
fn overtaken(
    story: &Story<'_>,
    branch: &PathCondition,
    look: ReadRef,
    (missed, act): (EventId, EventId),
) -> Option<EventId> {
    let (looked, own, other) = (story.event(look.event), story.event(act), story.event(missed));
    let part = looked.kind.reads().get(look.part as usize)?;
    if looked.thread != own.thread || looked.index >= own.index {
        return None;
    }
    let writes = story.accesses(other.thread, part.cell).iter().copied().rev();
    let mut writes = writes
        .filter(|id| story.event(*id).index < other.index && story.access(*id, part.cell).writes);
    let change = writes.next()?;
    let overtakes = story.before(look.event, change)
        && !story.always_before(look.event, change)
        && story.holds_with(branch, part.var, part.cell, change) == Some(false);
    overtakes.then_some(change)
}

/// Is the one event of a thread in a critical section, and the other not in the same one, of a lock of which the other
/// thread has one around both of its?
fn is_parted(
    story: &Story<'_>,
    look: EventId,
    act: EventId,
    (change, missed): (EventId, EventId),
) -> bool {
    let (at_look, at_act) = (held(story, look), held(story, act));
    let at_missed = held(story, missed);
    held(story, change).iter().filter(|section| at_missed.contains(section)).any(|(lock, _)| {
        let of = |held: &[(_, EventId)]| held.iter().find(|(other, _)| other == lock).copied();
        of(&at_act).is_some_and(|act| of(&at_look) != Some(act))
    })
}

/// Of a thread that hangs: did it say that it goes to wait and then see nothing, and the other one look whether anybody
/// waits and then leave something, each in one call and none under any lock?
fn is_without_locks(
    story: &Story<'_>,
    look: EventId,
    act: EventId,
    (change, missed): (EventId, EventId),
) -> bool {
    let hangs = story.trace().failure.as_ref().is_some_and(|failure| {
        failure.kind == FailureKind::Hang
            && story.event(failure.event).thread == story.event(missed).thread
    });
    hangs
        && story.in_one_call(look, act)
        && story.in_one_call(change, missed)
        && [look, act, change, missed].into_iter().all(|id| held(story, id).is_empty())
}

fn found(story: &Story<'_>, [change, missed, look, act]: [EventId; 4]) -> Found {
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
    Found { case: Some("crossed"), ..Found::new(Pattern::SeveralVariables, sentence, &events) }
}
