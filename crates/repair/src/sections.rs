//! Critical sections of a trace, and making them larger.

use crate::edit::Edit;
use model::{Awaited, EventId, EventKind, EventTrace, LockMode, ObjectId, Thread};
use std::collections::BTreeMap;

/// A critical section of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) object: ObjectId,
    pub(crate) mode: LockMode,
    pub(crate) lock: EventId,
    pub(crate) unlock: EventId,
}

/// All critical sections, thread by thread, in the order of their ends.
pub(crate) fn sections(trace: &EventTrace) -> Vec<Section> {
    let mut found = Vec::new();
    for thread in &trace.threads {
        let mut open: BTreeMap<ObjectId, (EventId, LockMode)> = BTreeMap::new();
        for &id in &thread.events {
            match trace.event(id).kind {
                EventKind::Lock { object, mode } => {
                    open.entry(object).or_insert((id, mode));
                }
                EventKind::Unlock { object, .. } => {
                    if let Some((lock, mode)) = open.remove(&object) {
                        found.push(Section { object, mode, lock, unlock: id });
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// From taking a unit of a semaphore to posting one, thread by thread: where a semaphore is used as a
/// lock.
pub(crate) fn units(trace: &EventTrace) -> Vec<Section> {
    let mut found = Vec::new();
    for thread in &trace.threads {
        let mut taken: BTreeMap<ObjectId, Vec<EventId>> = BTreeMap::new();
        for &id in &thread.events {
            match trace.event(id).kind {
                EventKind::SemaphoreWait { object } => taken.entry(object).or_default().push(id),
                EventKind::SemaphorePost { object } => {
                    if let Some(lock) = taken.get_mut(&object).and_then(Vec::pop) {
                        let mode = LockMode::Exclusive;
                        found.push(Section { object, mode, lock, unlock: id });
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// The units that a thread took and did not post, each with where it took it. A post is of the
/// unit that was taken last.
pub(crate) fn open_units(trace: &EventTrace, thread: &Thread) -> Vec<(ObjectId, EventId)> {
    let mut open: Vec<(ObjectId, EventId)> = Vec::new();
    for &id in &thread.events {
        match trace.event(id).kind {
            EventKind::SemaphoreWait { object } => open.push((object, id)),
            EventKind::SemaphorePost { object } => {
                if let Some(last) = open.iter().rposition(|(other, _)| *other == object) {
                    open.remove(last);
                }
            }
            _ => {}
        }
    }
    open
}

/// The sections that an event lies in or bounds, outermost first.
pub(crate) fn around(trace: &EventTrace, all: &[Section], id: EventId) -> Vec<Section> {
    let event = trace.event(id);
    let index = |id: EventId| trace.event(id).index;
    let has = |section: &&Section| {
        trace.event(section.lock).thread == event.thread
            && index(section.lock) <= event.index
            && event.index <= index(section.unlock)
    };
    let mut around: Vec<Section> = all.iter().filter(has).copied().collect();
    around.sort_by_key(|section| index(section.lock));
    around
}

/// [`around`] of many events at once, thread by thread and in each thread's order.
pub(crate) fn around_each(
    trace: &EventTrace,
    all: &[Section],
    wanted: impl Fn(EventId) -> bool,
) -> Vec<(EventId, Vec<Section>)> {
    let index = |id: EventId| trace.event(id).index;
    let mut of_threads: Vec<Vec<Section>> = vec![Vec::new(); trace.threads.len()];
    for section in all {
        of_threads[trace.event(section.lock).thread.index()].push(*section);
    }
    let mut found = Vec::new();
    for (thread, mut sections) in trace.threads.iter().zip(of_threads) {
        sections.sort_by_key(|section| index(section.lock));
        let mut next = sections.into_iter().peekable();
        let mut open: Vec<Section> = Vec::new();
        for &id in thread.events.iter().filter(|id| wanted(**id)) {
            while let Some(section) = next.next_if(|section| index(section.lock) <= index(id)) {
                open.push(section);
            }
            open.retain(|section| index(id) <= index(section.unlock));
            found.push((id, open.clone()));
        }
    }
    found
}

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
        let wanted = regions.iter().filter(|(first, _)| own(*first));
        let mut wanted: Vec<(EventId, EventId)> = wanted
            .map(|(first, last)| {
                let last = before_wait(trace, &known, *last);
                (behind_failed(trace, lock, *first, last), last)
            })
            .collect();
        wanted.sort_by_key(|(first, _)| index(*first));
        let mut merged: Vec<(EventId, EventId)> = Vec::new();
        for (mut first, mut last) in wanted {
            // Sections that overlap become part of it, and those may overlap others.
            loop {
                let overlaps = |from: EventId, to: EventId| {
                    index(from) <= index(last) && index(to) >= index(first)
                };
                let sections = known.iter().map(|section| (section.lock, section.unlock));
                let wider = sections.chain(merged.iter().copied()).find(|(from, to)| {
                    overlaps(*from, *to)
                        && (index(*from) < index(first) || index(*to) > index(last))
                });
                let Some((from, to)) = wider else { break };
                first = if index(from) < index(first) { from } else { first };
                last = if index(to) > index(last) { to } else { last };
            }
            merged.retain(|(from, to)| index(*to) < index(first) || index(*from) > index(last));
            merged.push((first, last));
        }
        for (first, last) in merged {
            one(edit, (lock, shares), &known, first, last);
        }
    }
}

/// The first event of a region that does not ask for the lock in vain: only then it is taken.
fn behind_failed(trace: &EventTrace, lock: ObjectId, first: EventId, last: EventId) -> EventId {
    let index = |id: EventId| trace.event(id).index as usize;
    let own = trace.thread_of(first).events.get(index(first)..=index(last));
    let asks = |id: &&EventId| matches!(trace.event(**id).kind, EventKind::TryLockFailed { object } if object == lock);
    own.and_then(|own| own.iter().find(|id| !asks(id))).copied().unwrap_or(last)
}

/// A region's last event, or, where it ends in or behind a wait that did not come to an end, the release of the lock
/// that the wait began with: behind that the thread does nothing, and does not have the lock.
fn before_wait(trace: &EventTrace, known: &[Section], last: EventId) -> EventId {
    let releases = known.iter().map(|section| section.unlock);
    let mut own = releases.filter(|unlock| {
        let released = trace.event(*unlock);
        released.thread == trace.event(last).thread
            && released.index < trace.event(last).index
            && is_last_release(trace, *unlock)
    });
    own.next().unwrap_or(last)
}

/// One section from the first to the last event.
fn one(
    edit: &mut Edit<'_>,
    (object, shares): (ObjectId, bool),
    known: &[Section],
    first: EventId,
    last: EventId,
) {
    let trace = edit.trace;
    let (from, to) = (trace.event(first).index, trace.event(last).index);
    let inside = |id: EventId| (from..=to).contains(&trace.event(id).index);
    let own = &trace.thread_of(first).events[from as usize..=to as usize];
    let writes = own.iter().any(|id| !trace.event(*id).kind.writes().is_empty());
    let merged: Vec<&Section> = known.iter().filter(|section| inside(section.lock)).collect();
    let exclusive = merged.iter().any(|section| section.mode == LockMode::Exclusive);
    let mode = match shares && !writes && !exclusive {
        true => LockMode::Shared,
        false => LockMode::Exclusive,
    };
    // Whoever has the lock does not ask for it in vain.
    for &id in own {
        if matches!(trace.event(id).kind, EventKind::TryLockFailed { object: o } if o == object) {
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
    if !known.iter().any(|section| section.lock == first) {
        edit.before(first, EventKind::Lock { object, mode });
    }
    if !known.iter().any(|section| section.unlock == last) {
        let synthetic = is_end(trace, last);
        edit.after(last, EventKind::Unlock { object, mode, synthetic });
    }
}

/// What the program calls a lock: as its acquisitions do, or else as the object is called.
pub(crate) fn lock_name(trace: &EventTrace, object: ObjectId) -> String {
    named(trace, object, |_| true)
}

/// What a lock is called where a thread takes it between two of its events; otherwise what the thread
/// calls it elsewhere, or anybody. One object has many names: `this->lock` in its own functions, and
/// `other->lock` in those of others.
pub(crate) fn lock_name_in(
    trace: &EventTrace,
    object: ObjectId,
    (first, last): (EventId, EventId),
) -> String {
    let (from, to) = (trace.event(first), trace.event(last));
    let own = |event: &model::Event| event.thread == from.thread;
    let inside =
        |event: &model::Event| own(event) && (from.index..=to.index).contains(&event.index);
    let takes = |event: &model::Event| taken(event) == Some(object);
    let is_some = |fits: &dyn Fn(&model::Event) -> bool| {
        trace.events.iter().any(|event| takes(event) && fits(event))
    };
    if is_some(&inside) {
        named(trace, object, inside)
    } else if is_some(&own) {
        named(trace, object, own)
    } else {
        lock_name(trace, object)
    }
}

/// The first name that is not one of a library's own, among those by which it is taken.
fn named(trace: &EventTrace, object: ObjectId, fits: impl Fn(&model::Event) -> bool) -> String {
    let takes = |event: &&model::Event| taken(event) == Some(object) && fits(event);
    let names = || trace.events.iter().filter(takes).filter_map(|event| trace.subject(event));
    let own = || trace.objects.get(object.index()).map(|object| object.name.as_str());
    let name = names().find(|name| !is_internal(name)).or_else(|| names().next()).or_else(own);
    name.map_or_else(|| object.to_string(), str::to_owned)
}

/// The lock or semaphore that an event takes.
pub(crate) fn taken(event: &model::Event) -> Option<ObjectId> {
    match event.kind {
        EventKind::Lock { object, .. } | EventKind::SemaphoreWait { object } => Some(object),
        _ => None,
    }
}

/// Is this a name that only an implementation uses?
pub(crate) fn is_internal(name: &str) -> bool {
    let last = name.rsplit(['.', '>', '*', '&']).next().unwrap_or(name);
    last.starts_with("__") || (last.starts_with('_') && last[1..].starts_with(char::is_uppercase))
}

/// Is this no lock of the program but what makes a routine run once? One call is then the beginning and
/// the end of each section.
pub(crate) fn is_once(trace: &EventTrace, all: &[Section], object: ObjectId) -> bool {
    let site = |id: EventId| trace.event(id).site();
    let mut own = all.iter().filter(|section| section.object == object).peekable();
    own.peek().is_some() && own.all(|section| site(section.lock) == site(section.unlock))
}

/// Is this release the beginning of a wait on a condition variable?
#[must_use]
pub fn begins_wait(trace: &EventTrace, unlock: EventId) -> bool {
    let event = trace.event(unlock);
    if !matches!(event.kind, EventKind::Unlock { .. }) {
        return false;
    }
    let later = trace.thread_of(unlock).events.iter().skip(event.index as usize + 1);
    let mut later = later.map(|id| &trace.event(*id).kind);
    later.any(|kind| match kind {
        EventKind::Wake { began, .. } | EventKind::WaitTimedOut { began, .. } => *began == unlock,
        _ => false,
    }) || is_last_release(trace, unlock)
}

/// Does the thread hold the lock from one of its events to another as it is, but for waits?
pub(crate) fn is_held(
    trace: &EventTrace,
    all: &[Section],
    lock: ObjectId,
    first: EventId,
    last: EventId,
) -> bool {
    let index = |id: EventId| trace.event(id).index;
    let thread = trace.event(first).thread;
    let own = all.iter().filter(|s| s.object == lock && trace.event(s.lock).thread == thread);
    let own = own.filter(|s| index(s.unlock) >= index(first) && index(s.lock) <= index(last));
    let mut own: Vec<&Section> = own.collect();
    own.sort_by_key(|section| index(section.lock));
    let begins = own.first().is_some_and(|section| index(section.lock) <= index(first));
    let ends = own.last().is_some_and(|section| index(section.unlock) >= index(last));
    begins && ends && own.windows(2).all(|pair| begins_wait(trace, pair[0].unlock))
}

/// Is this the release of a wait that did not come to an end?
fn is_last_release(trace: &EventTrace, unlock: EventId) -> bool {
    let event = trace.event(unlock);
    let next = trace.thread_of(unlock).events.get(event.index as usize + 1);
    next.is_some_and(|id| {
        matches!(trace.event(*id).kind, EventKind::Block { on: Awaited::Signal { .. } })
    })
}

/// Is there nothing behind the event that the thread's code did?
pub(crate) fn is_end(trace: &EventTrace, id: EventId) -> bool {
    let event = trace.event(id);
    let mut later = trace.thread_of(id).events.iter().skip(event.index as usize + 1);
    later.all(|id| matches!(trace.event(*id).kind, EventKind::Unlock { synthetic: true, .. }))
}
