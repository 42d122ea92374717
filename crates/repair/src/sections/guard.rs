//! Making parts of threads critical sections of a lock.

use super::{Section, begins_wait, is_end, is_last_release, sections};
use crate::edit::Edit;
use model::{EventId, EventKind, EventTrace, LockMode, ObjectId};

/// Makes these parts of threads, each from its first to its last event, critical sections of the
/// lock. What they touch of the lock's sections becomes one section with them. A wait on a condition
/// variable gives the lock back all the same.
pub(crate) fn guard(edit: &mut Edit<'_>, lock: ObjectId, regions: &[(EventId, EventId)]) {
    let trace = edit.trace;
    let all = sections(trace);
    let shares = all.iter().any(|s| s.object == lock && s.mode == LockMode::Shared);
    let index = |id: EventId| trace.event(id).index;
    for thread in &trace.threads {
        let own = |id: EventId| trace.event(id).thread == thread.id;
        let known: Vec<Section> =
            all.iter().filter(|s| s.object == lock && own(s.lock)).copied().collect();
        let last_release = known.iter().map(|section| section.unlock);
        let last_release = last_release.rev().find(|unlock| is_last_release(trace, *unlock));
        let wanted = regions.iter().filter(|(first, _)| own(*first)).map(|(first, last)| {
            let last = before_wait(trace, last_release, *last);
            (behind_failed(trace, lock, *first, last), last)
        });
        // Behind the release of a wait without an end nothing is done.
        let wanted = wanted.filter(|(first, last)| index(*first) <= index(*last));
        for (first, last) in merged(trace, &known, wanted) {
            let from = known.partition_point(|section| index(section.lock) < index(first));
            let to = known.partition_point(|section| index(section.lock) <= index(last));
            one(edit, (lock, shares), &known[from..to], first, last);
        }
    }
}

/// The parts of a thread that are to be one section each: those that are wanted, with one another and with known
/// sections where they overlap.
fn merged(
    trace: &EventTrace,
    known: &[Section],
    wanted: impl Iterator<Item = (EventId, EventId)>,
) -> Vec<(EventId, EventId)> {
    let index = |id: EventId| trace.event(id).index;
    let known = known.iter().map(|section| (section.lock, section.unlock, false));
    let wanted = wanted.map(|(first, last)| (first, last, true));
    let mut parts: Vec<(EventId, EventId, bool)> = known.chain(wanted).collect();
    parts.sort_by_key(|(first, ..)| index(*first));
    let mut merged: Vec<(EventId, EventId, bool)> = Vec::new();
    for (first, last, is_wanted) in parts {
        match merged.last_mut() {
            Some((_, end, wanted)) if index(first) <= index(*end) => {
                *end = if index(last) > index(*end) { last } else { *end };
                *wanted |= is_wanted;
            }
            _ => merged.push((first, last, is_wanted)),
        }
    }
    let wanted = merged.into_iter().filter(|(.., is_wanted)| *is_wanted);
    wanted.map(|(first, last, _)| (first, last)).collect()
}

/// The first event of a region that does not ask for the lock in vain: only then it is taken.
fn behind_failed(trace: &EventTrace, lock: ObjectId, first: EventId, last: EventId) -> EventId {
    let index = |id: EventId| trace.event(id).index as usize;
    let own = trace.thread_of(first).events.get(index(first)..=index(last));
    let asks = |id: &&EventId| matches!(trace.event(**id).kind, EventKind::TryLockFailed { object, .. } if object == lock);
    own.and_then(|own| own.iter().find(|id| !asks(id))).copied().unwrap_or(last)
}

/// A region's last event, or, where it ends in or behind a wait that did not come to an end, the release of the lock
/// that the wait began with: behind that the thread does nothing, and does not have the lock.
fn before_wait(trace: &EventTrace, last_release: Option<EventId>, last: EventId) -> EventId {
    let index = |id: EventId| trace.event(id).index;
    last_release.filter(|unlock| index(*unlock) < index(last)).unwrap_or(last)
}

/// One section from the first to the last event, of which the known ones in between become part.
fn one(
    edit: &mut Edit<'_>,
    (object, shares): (ObjectId, bool),
    merged: &[Section],
    first: EventId,
    last: EventId,
) {
    let trace = edit.trace;
    let (from, to) = (trace.event(first).index, trace.event(last).index);
    let own = &trace.thread_of(first).events[from as usize..=to as usize];
    let writes = own.iter().any(|id| !trace.event(*id).kind.writes().is_empty());
    let exclusive = merged.iter().any(|section| section.mode == LockMode::Exclusive);
    let mode = match shares && !writes && !exclusive {
        true => LockMode::Shared,
        false => LockMode::Exclusive,
    };
    // Whoever has the lock does not ask for it in vain.
    for &id in own {
        if matches!(trace.event(id).kind, EventKind::TryLockFailed { object: o, .. } if o == object)
        {
            edit.remove(id);
        }
    }
    let mut open = false;
    for (number, section) in merged.iter().enumerate() {
        // The wait of the section before has just given the lock back, or it is where it begins.
        let begins = section.lock == first || open;
        if begins {
            edit.replace(section.lock, EventKind::Lock { object, mode });
        } else {
            edit.remove(section.lock);
        }
        let is_last = number + 1 == merged.len();
        let waits = begins_wait(trace, section.unlock);
        let EventKind::Unlock { synthetic, .. } = trace.event(section.unlock).kind else {
            continue;
        };
        if section.unlock == last || waits {
            edit.replace(section.unlock, EventKind::Unlock { object, mode, synthetic });
        } else {
            edit.remove(section.unlock);
        }
        open = waits && !is_last;
    }
    if merged.first().is_none_or(|section| section.lock != first) {
        edit.before(first, EventKind::Lock { object, mode });
    }
    if merged.last().is_none_or(|section| section.unlock != last) {
        let synthetic = is_end(trace, last);
        edit.after(last, EventKind::Unlock { object, mode, synthetic });
    }
}
