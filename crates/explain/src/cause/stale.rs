//! A thread acted on what it had looked at before, and that had changed by then.
//!
//! Where two threads use one slot, or both do what only one should do, the pair of events that an
//! alternate schedule reverses may be one that follows from that: along the same paths both do it
//! whatever comes first, and a schedule passes only because one of them overwrites what the other did.
//! So this asks why the threads got there: for each branch and each index that led to an event of the
//! pair, would it be the same with what the variable held when the thread wrote it?

use super::atomicity::{Case, Triple, found, is_one_step};
use super::story::{Pair, Story};
use super::words::{at, both_at, did, quoted};
use super::{CauseEvent, Found, Pattern, sections};
use model::names::is_of_language;
use model::trace::ValueDisplay;
use model::{CellId, EventId, PathCondition, PathConditionKind, ReadRef, VarId};
use solver::Order;
use std::cell::LazyCell;

/// So many conditions before an event are looked at, the nearest first.
const CONDITIONS: usize = 12;

/// So many reads before the failure are looked at where nothing is known of their order.
const LAST_READS: usize = 12;
/// So many of the failing thread's last events are asked about what another thread had found there, too.
const LOOKS_ON_THE_WAY: usize = 32;

/// A value that a thread went by.
#[derive(Clone, Copy)]
struct Look<'t> {
    read: ReadRef,
    var: VarId,
    cell: CellId,
    condition: &'t PathCondition,
}

/// Where several variables are known to belong together (`together`), that the one was checked and the other
/// used is known as well.
pub(super) fn find(story: &Story<'_>, pair: Pair, together: bool) -> Option<Found> {
    let overtaken = |end: EventId| overtaken(story, end).filter(|_| !together);
    let order = match pair {
        Pair::Reversed(order) => order,
        Pair::Late { before, .. } => return overtaken(before),
    };
    let ends = [order.after, order.before].map(|end| (end, looks(story, end)));
    let all = || ends.iter().flat_map(|(end, looks)| looks.iter().map(|look| (*end, *look)));
    let mut written = all().filter_map(|(_, look)| overwritten(story, look));
    // An update finds what is there, whatever was looked at.
    let updates = |triple: &Triple| story.access(triple.second, triple.cell).reads;
    let stale = written.clone().find(|(triple, _)| !updates(triple));
    let updated = written.next().filter(|_| !together);
    let seen = || all().find_map(|(end, look)| seen(story, end, look));
    let first = stale.or_else(seen).map(|(triple, case)| claimed(story, triple, case));
    first
        .or_else(|| overtaken(order.after).filter(|_| !unseen(story, order)))
        .or_else(|| updated.map(|(triple, case)| claimed(story, triple, case)))
        .or_else(|| all().find_map(|(end, look)| used(story, end, look)))
}

/// The failing thread came to what it failed with by a check that another thread's operation overtook, and the
/// passing run went another way.
pub(super) fn find_wrong_way(story: &Story<'_>) -> Option<Found> {
    if !story.passes_elsewhere() {
        return None;
    }
    let failure = story.event(story.trace().failure.as_ref()?.event);
    let own = &story.trace().threads[failure.thread.index()].events;
    let before = own.iter().copied().take(failure.index as usize).rev();
    let reads = before.filter(|id| !story.event(*id).kind.reads().is_empty()).take(LAST_READS);
    // What the thread did in a call that came to its end did not lead to the failure in a later one, nor did what a
    // library keeps for itself, as for printing.
    let of_library = |read: &EventId| {
        story.event(*read).is_affair_of_library()
            || story.name(CauseEvent::Failing(*read)).is_some_and(|name| is_of_language(&name))
    };
    let mut reads = reads.filter(|read| !of_library(read) && story.in_one_call(*read, failure.id));
    let found = reads.find_map(|read| overtaken(story, read))?;
    // Where the passing run came to the same last look, and saw something else there, the way that led to it does not
    // decide; what was looked at on it may be anything.
    let sees_otherwise = |read: &ReadRef| {
        story.place_when_passing(read.event).is_some() && story.reads_otherwise(read.event)
    };
    let of_another = found.case == Some("read-write-use");
    (!of_another || !story.failure_reads().iter().any(sees_otherwise)).then_some(found)
}

/// The later event of the pair was come to by a check outside of its critical section, of what another thread changed under
/// the same lock, as it did what is read there.
pub(super) fn find_overtaken(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(Order { before, after }) = pair else { return None };
    let found = overtaken(story, after)?;
    let &[CauseEvent::Failing(between), CauseEvent::Failing(look), _] = found.events.as_slice()
    else {
        return None;
    };
    let parted = sections::held(story, after).into_iter().any(|(lock, taken)| {
        let section = |id: EventId| sections::taken(story, id, lock);
        let checked = section(look) != Some(taken);
        checked && section(before).is_some() && section(between).is_some()
    });
    parted.then_some(found)
}

fn claimed(story: &Story<'_>, triple: Triple, case: Case) -> Found {
    // Whether the thread gets to write what it looked at depends on the run; where it meets it again
    // does not.
    let Triple { first, between, cell, .. } = triple;
    let thread = story.event(first).thread;
    let mut met = story.accesses(thread, cell).iter().copied();
    let next = met.find(|id| story.event(*id).index > story.event(first).index);
    let marks = [Some(first), Some(between), next].into_iter().flatten();
    let marks = marks.map(CauseEvent::Failing).collect();
    Found { marks, ..found(story, triple, case) }
}

/// A thread came to a write by a look at what it then wrote itself, in one call, although another thread had written it
/// since and the look would have led it elsewhere.
pub(super) fn find_way_to(story: &Story<'_>, write: EventId) -> Option<Found> {
    let (triple, case) = looks(story, write).into_iter().find_map(|look| {
        let (triple, case) = overwritten(story, look)?;
        let Triple { first, second, cell, .. } = triple;
        let fits = look.condition.kind == PathConditionKind::Branch
            && story.event(second).index <= story.event(write).index
            && story.is_named(second)
            && story.decides(first, second, cell);
        fits.then_some((triple, case))
    })?;
    Some(found(story, triple, case))
}

/// Both threads found a variable free, say, and both took it: what they did to each other then, as two owners
/// of one thing, follows from that.
pub(super) fn find_claims(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let claimed = |end: EventId, other: Option<EventId>| {
        all_looks(story, end).into_iter().find_map(|look| {
            let (triple, case) = overwritten(story, look)?;
            let Triple { first, between, second, cell } = triple;
            let rival = story.event(between).thread;
            let of_pair = other.is_none_or(|other| {
                story.event(other).thread == rival
                    && story.event(between).index <= story.event(other).index
            });
            let until = story.event(between).index;
            let deciding = LazyCell::new(|| story.deciding(rival, cell, until));
            let both = of_pair
                && story.event(second).index <= story.event(end).index
                && story.decides(first, second, cell)
                && story.accesses(rival, cell).iter().copied().any(|id| {
                    story.event(id).index < story.event(between).index
                        && story.find_the_same(id, first, cell)
                        && deciding.contains(&id)
                });
            both.then(|| found(story, triple, case))
        })
    };
    match pair {
        Pair::Reversed(order) => claimed(order.after, Some(order.before))
            .or_else(|| claimed(order.before, Some(order.after))),
        // What the other thread did not get to, it would have done as one owner of two.
        Pair::Late { before, .. } => claimed(before, None),
    }
}

/// The earlier event of the pair read at the place of the source at which the other thread had found the same before it
/// wrote there: one of two that both found a variable free, say, which failed before it could take it.
pub(super) fn find_rival(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(Order { before: read, after: write }) = pair else { return None };
    let rival = story.event(write);
    let cells = story.common_cells(read, write).into_iter();
    let written = cells.filter(|cell| story.access(write, *cell).writes);
    let (look, cell) = written.into_iter().find_map(|cell| {
        let own = story.accesses(rival.thread, cell).iter().copied().rev();
        let mut own = own.filter(|id| story.event(*id).index < rival.index);
        // Only what it looked at last may have led it there, but for what an addition reads.
        own.find(|id| story.site(*id) != story.site(write)).map(|look| (look, cell))
    })?;
    let looked = |id: EventId| {
        let event = story.event(id);
        event.kind.writes().is_empty() && !event.is_affair_of_library()
    };
    let fits = [read, look].into_iter().all(looked)
        && story.site(look) == story.site(read)
        && story.find_the_same(read, look, cell)
        && story.in_one_call(look, write)
        && story.decides(look, write, cell)
        && story.decide_together(read, read, cell)
        && !story.find_the_same(read, write, cell)
        && !story.always_before(read, look)
        && !story.always_before(look, read);
    let sentence = format!(
        "{} read {} ({}) before {}, which had found the same there ({}), {} it ({})",
        story.thread(read),
        quoted(&story.subject(read)),
        at(story, read),
        story.thread(write),
        at(story, look),
        did(rival),
        at(story, write)
    );
    let case = Some("found-the-same");
    let events = [read, look, write];
    fits.then(|| Found { case, ..Found::new(Pattern::Atomicity, sentence, &events) })
}

/// The same of what the failing thread looked at in the call that it failed in, before another thread, which had found the same
/// there, wrote it: whatever else the passing run has in another order, both went by that.
pub(super) fn find_rival_on_the_way(story: &Story<'_>) -> Option<Found> {
    let failure = story.event(story.trace().failure.as_ref()?.event);
    let own = story.trace().threads[failure.thread.index()].events.get(..failure.index as usize)?;
    let looks = own.iter().rev().copied().take_while(|id| story.in_one_call(*id, failure.id));
    let mut looks = looks.filter(|id| story.is_named(*id)).take(LOOKS_ON_THE_WAY);
    looks.find_map(|look| {
        let cell = *story.cells(look).first()?;
        let threads = story.trace().threads.iter().filter(|thread| thread.id != failure.thread);
        let mut next = threads.filter_map(|thread| {
            let accesses = story.accesses(thread.id, cell).iter().copied();
            let mut writes = accesses.filter(|id| story.access(*id, cell).writes);
            writes.find(|write| story.before(look, *write))
        });
        next.find_map(|write| {
            let order = Order { before: look, after: write };
            let kept = story.before_when_passing(look, write) == Some(true);
            let found = find_rival(story, Pair::Reversed(order)).filter(|_| !kept)?;
            let [_, CauseEvent::Failing(its), _] = found.events[..] else { return None };
            // What the other one did when the call that the thread failed in was over is another step.
            let within = calls_in_common(story, its, write);
            (within >= calls_in_common(story, look, failure.id)).then_some(found)
        })
    })
}

/// How many calls both events of a thread are in, the innermost by its function alone.
fn calls_in_common(story: &Story<'_>, one: EventId, other: EventId) -> usize {
    let [one, other] = [one, other].map(|id| &story.event(id).stack);
    let mut both = one.iter().rev().zip(other.iter().rev());
    let same = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let last = both.nth(same).is_some_and(|(a, b)| a.function == b.function);
    same + usize::from(last)
}

/// The thread used an index that another thread's write had made another one.
fn used(story: &Story<'_>, end: EventId, look: Look<'_>) -> Option<Found> {
    let Look { read, cell, condition, .. } = look;
    let pointer = story.trace().cells[cell.index()].display == ValueDisplay::Pointer;
    if pointer || condition.kind != PathConditionKind::Address {
        return None;
    }
    let own = &story.trace().threads[condition.thread.index()].events;
    let second = *own.get(condition.position as usize)?;
    if story.event(second).index > story.event(end).index || second == read.event {
        return None;
    }
    let between = last_write(story, look, second)?;
    let (thread, other) = (story.thread(second), story.thread(between));
    let [one, two] = both_at(story, read.event, second);
    let sentence = format!(
        "{other} {} {} ({}) between {thread}'s read of it ({one}) and the use of what that gave ({two})",
        did(story.event(between)),
        quoted(&story.subject(between)),
        at(story, between),
    );
    let events = [between, read.event, second];
    let case = Some("read-write-use");
    Some(Found { case, ..Found::new(Pattern::Atomicity, sentence, &events) })
}

/// The thread came to a read by a branch on what another thread had changed since, in the operation in which
/// that one wrote what was read.
fn overtaken(story: &Story<'_>, end: EventId) -> Option<Found> {
    let cells = story.cells(end).into_iter();
    let sources: Vec<EventId> = cells.filter_map(|cell| story.source(end, cell)).collect();
    let of_one = |between: EventId, other: EventId| {
        story.event(other).thread == story.event(between).thread
            && (story.in_one_call(between, other) || story.in_one_call(other, between))
    };
    // What that operation wrote there may have been written again by another one since.
    let overwritten = |look: EventId, between: EventId| {
        story.cells(end).into_iter().any(|cell| {
            let own = story.accesses(story.event(between).thread, cell).iter().copied();
            let mut writes = own.filter(|id| story.access(*id, cell).writes);
            writes.any(|id| story.before(look, id) && story.before(id, end) && of_one(between, id))
        })
    };
    let beside = |look: EventId, between: EventId| {
        sources.iter().any(|source| of_one(between, *source)) || overwritten(look, between)
    };
    let mut checks = looks(story, end);
    checks.retain(|look| {
        look.condition.kind == PathConditionKind::Branch
            && !story.access(end, look.cell).any()
            && !story.waited_between(look.read.event, end)
    });
    let (look, between) = checks.into_iter().find_map(|look| {
        let between = last_write(story, look, end)?;
        if !beside(look.read.event, between) {
            return None;
        }
        // Whom the thread waited for had done its part by then, in any schedule.
        (!story.always_before(between, end)).then_some((look, between))
    })?;
    // Where the thread comes to use what it had looked at, that is the use.
    let first = look.read.event;
    let used = later(story, look).find(|id| story.before(between, *id));
    let used = used.and_then(|second| {
        let triple = Triple { first, between, second, cell: look.cell };
        let fits = story.in_one_call(first, second) && story.decides(first, second, look.cell);
        let case = match story.access(second, look.cell).reads {
            true => Case::ReadWriteRead,
            false => Case::ReadWriteWrite,
        };
        fits.then(|| self::found(story, triple, case))
    });
    if used.is_some() {
        return used;
    }
    let (thread, other) = (story.thread(end), story.thread(between));
    let sentence = format!(
        "{other} {} {} ({}) between {thread}'s check of it ({}) and its use of {} ({})",
        did(story.event(between)),
        quoted(&story.subject(between)),
        at(story, between),
        at(story, look.read.event),
        quoted(&story.subject(end)),
        at(story, end),
    );
    let events = [between, look.read.event, end];
    let case = Some("read-write-use");
    Some(Found { case, ..Found::new(Pattern::Atomicity, sentence, &events) })
}

/// A thread read what the later event was to write, and only read it. How the writer came to write is nothing that
/// this read can have seen: without the write it would have read the same.
fn unseen(story: &Story<'_>, order: Order) -> bool {
    let (before, after) = (story.event(order.before), story.event(order.after));
    let written = |cell: CellId| after.kind.writes().iter().any(|part| part.cell == cell);
    before.kind.writes().is_empty() && before.kind.reads().iter().any(|part| written(part.cell))
}

/// What the event's thread went by to get there, in the same call, the last first.
fn all_looks<'t>(story: &Story<'t>, end: EventId) -> Vec<Look<'t>> {
    let trace = story.trace();
    let event = story.event(end);
    let conditions =
        story.decided_before(end, &[PathConditionKind::Branch, PathConditionKind::Address]);
    let looks = conditions.into_iter().take(CONDITIONS).flat_map(|condition| {
        let reads = trace.reads_of(condition.expr).into_iter().rev();
        reads.filter_map(move |read| {
            let part = story.event(read.event).kind.reads().get(read.part as usize)?;
            Some(Look { read, var: part.var, cell: part.cell, condition })
        })
    });
    // What gave the event's own address was not looked at for something else, whenever that was.
    let leads_to = |look: &Look<'_>, event: &model::Event| {
        look.condition.kind == PathConditionKind::Address && look.condition.position == event.index
    };
    // What the library counts inside of its own is nothing that the program goes by.
    let own_affair = |look: &Look<'_>| {
        let read = story.event(look.read.event);
        read.is_affair_of_library()
    };
    let near = |look: &Look<'_>| {
        story.event(look.read.event).thread == event.thread
            && !own_affair(look)
            && look.read.event != end
            && (leads_to(look, event) || story.in_one_call(look.read.event, end))
    };
    looks.filter(near).collect()
}

/// The same without what the thread has looked at again since, and so no longer goes by.
fn looks<'t>(story: &Story<'t>, end: EventId) -> Vec<Look<'t>> {
    let mut nearest: Vec<Look<'t>> = Vec::new();
    for look in all_looks(story, end) {
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
    let second = later.find(|id| story.access(*id, cell).writes && !story.keeps(*id, cell))?;
    // A compiler may keep what it has read, and write it much later.
    if !story.in_one_call(read.event, second) && !story.feeds(read.event, second, cell) {
        return None;
    }
    // Who comes to the same look again goes by that one.
    let again = |id: EventId| {
        story.event(id).index < story.event(second).index
            && story.event(id).stack == story.event(read.event).stack
    };
    if self::later(story, look).any(again) {
        return None;
    }
    if story.is_done_with(read.event, second) {
        return None;
    }
    let between = last_write(story, look, second)?;
    let triple = Triple { first: read.event, between, second, cell };
    (!is_one_step(story, triple)).then_some((triple, Case::ReadWriteWrite))
}

/// The thread did the event, a write, and saw only then that what it had looked at is another.
fn seen(story: &Story<'_>, end: EventId, look: Look<'_>) -> Option<(Triple, Case)> {
    let Look { read, cell, .. } = look;
    let acts = story.event(end).kind.writes().is_empty();
    let second = later(story, look).next().filter(|_| !acts)?;
    // The same place again is the next round, or the next call, wherever that was made.
    let again = story.event(read.event).stack == story.event(second).stack
        || story.looks_anew(read.event, second);
    let fits = story.access(second, cell).reads
        && !again
        && story.event(end).index < story.event(second).index
        && story.in_one_call(read.event, second);
    let between = last_write(story, look, second).filter(|_| fits)?;
    let (first, case) = (read.event, Case::ReadWriteRead);
    Some((Triple { first, between, second, cell }, case))
}

/// The thread's accesses to what it looked at, behind that.
fn later<'s>(story: &'s Story<'_>, look: Look<'_>) -> impl Iterator<Item = EventId> + 's {
    let read = story.event(look.read.event);
    let accesses = story.accesses(read.thread, look.cell).iter().copied();
    accesses.filter(|id| story.event(*id).index > read.index)
}

/// The write by another thread that the cell holds at an event, where it came behind the look and the
/// look would have another result with it. Where the thread has itself written since what it had looked at, as who
/// reserves something does, what others write then is theirs.
fn last_write(story: &Story<'_>, look: Look<'_>, end: EventId) -> Option<EventId> {
    let last = story.last_write_before(end, look.cell)?;
    let by_another = story.event(last).thread != story.event(end).thread;
    let claimed = later(story, look)
        .any(|own| story.access(own, look.cell).writes && story.before(own, last));
    let since = by_another && story.before(look.read.event, last) && !claimed;
    (since && story.holds_with(look.condition, look.var, look.cell, last) == Some(false))
        .then_some(last)
}
