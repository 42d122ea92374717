//! Threads that wait for each other: take locks in one order, or give one back before waiting.

use super::{Candidate, Guard, Kind, Repair, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::enforce::{Rule, Stretch};
use crate::sections::{Section, around, lock_name, sections};
use crate::source::Span;
use model::{Awaited, Event, EventId, EventKind, FailureCondition, LockMode, ObjectId};

pub(super) fn candidates(bug: &Bug<'_>) -> Vec<Candidate> {
    let trace = bug.trace;
    let all = sections(trace);
    let blocks: Vec<&Event> = bug
        .events
        .iter()
        .map(|id| trace.event(*id))
        .filter(|event| matches!(event.kind, EventKind::Block { .. }))
        .collect();
    let mut found = Vec::new();
    let one_order = one_order(bug, &all, &blocks);
    let same_code = one_order.is_some();
    found.extend(one_order);
    // Who came last is the likeliest to be the one that does it otherwise than the rest.
    for block in blocks.iter().rev() {
        let Some(held) = held(bug, &all, block) else { continue };
        match block.kind {
            EventKind::Block { on: Awaited::Lock { object, mode } }
                if object != held.object && !same_code =>
            {
                found.extend(in_order(bug, &all, (block, object, mode), held));
            }
            EventKind::Block { on: Awaited::Lock { .. } } => {}
            EventKind::Block { .. } => found.extend(release_first(bug, block, held)),
            _ => {}
        }
    }
    found
}

/// The failure's condition, and that all threads of the circle ask while all of them have what they
/// have: who got on before another one asked is not waited for. In the recorded run nobody gives
/// anything back, so that it says no more there; with a repair, the releases are real.
fn at_once(bug: &Bug<'_>, all: &[Section]) -> Option<FailureCondition> {
    let trace = bug.trace;
    let mut parts = vec![trace.failure.as_ref()?.condition.clone()];
    let blocks = || {
        let events = bug.events.iter().map(|id| trace.event(*id));
        events.filter(|event| matches!(event.kind, EventKind::Block { .. }))
    };
    for held in blocks().filter_map(|block| held(bug, all, block)) {
        let before = |block: &Event| FailureCondition::Before(block.id, held.unlock);
        parts.extend(blocks().map(before));
    }
    Some(FailureCondition::All(parts))
}

/// What the thread of a request holds that another thread of the circle waits for.
fn held(bug: &Bug<'_>, all: &[Section], block: &Event) -> Option<Section> {
    let around = around(bug.trace, all, block.id);
    let named = around.iter().find(|section| bug.events.contains(&section.lock));
    let waited_for = |section: &&Section| {
        bug.trace.events.iter().any(|event| {
            event.thread != block.thread
                && matches!(event.kind, EventKind::Block { on } if on.object() == Some(section.object))
        })
    };
    named.or_else(|| around.iter().find(waited_for)).copied()
}

/// All threads of the circle run the same code: the lines cannot change places, but the locks can
/// be taken in one order, whoever takes them.
fn one_order(bug: &Bug<'_>, all: &[Section], blocks: &[&Event]) -> Option<Candidate> {
    let trace = bug.trace;
    let first = blocks.first()?;
    if blocks.len() < 2 || blocks.iter().any(|block| block.site() != first.site()) {
        return None;
    }
    let mut edit = Edit::new(trace);
    let mut place = None;
    for block in blocks {
        let EventKind::Block { on: Awaited::Lock { object, mode } } = block.kind else {
            return None;
        };
        let held = held(bug, all, block)?;
        place = Some(trace.event(held.lock).site());
        // The order of the trace's objects stands for any that all threads agree on.
        if object < held.object {
            edit.before(held.lock, EventKind::Lock { object, mode });
            edit.after(held.unlock, EventKind::Unlock { object, mode, synthetic: true });
        }
    }
    edit.fails_when(at_once(bug, all)?);
    let edited = edit.finish()?;
    let places = [place?, first.site()].map(Span::of);
    let locks: Vec<String> =
        blocks.iter().filter_map(|block| Some(lock_name(trace, block.kind.object()?))).collect();
    let named: Vec<String> = locks.iter().map(|lock| quoted(lock)).collect();
    let step = format!(
        "in {}, take the locks of {} and {} in one order in all threads, by their numbers or \
         addresses: {}",
        places[0].function,
        places[0].begin(),
        places[1].begin(),
        named.join(", ")
    );
    let repair = Repair {
        kind: Kind::LockOrder,
        steps: vec![step],
        lock: None,
        variables: locks,
        places: places.to_vec(),
        rule: alone(bug, all),
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// Takes the lock that is asked for before the one that is held.
fn in_order(
    bug: &Bug<'_>,
    all: &[Section],
    (block, object, mode): (&Event, ObjectId, LockMode),
    held: Section,
) -> Option<Candidate> {
    let trace = bug.trace;
    let site = |id: EventId| trace.event(id).site();
    let mut edit = Edit::new(trace);
    // Whoever came through here before did it in the same order.
    for inner in all.iter().filter(|section| site(section.lock) == block.site()) {
        let outer = around(trace, all, inner.lock)
            .into_iter()
            .find(|section| site(section.lock) == site(held.lock) && section.lock != inner.lock);
        if let Some(outer) = outer {
            edit.move_before(inner.lock, outer.lock);
        }
    }
    edit.before(held.lock, EventKind::Lock { object, mode });
    edit.after(held.unlock, EventKind::Unlock { object, mode, synthetic: true });
    edit.fails_when(at_once(bug, all)?);
    let edited = edit.finish()?;
    let lock = lock_name(trace, object);
    let other = lock_name(trace, held.object);
    let places = [block.id, held.lock].map(|id| Span::of(site(id)));
    let step = format!(
        "in {}, take {} ({}) before {} ({})",
        places[0].function,
        quoted(&lock),
        places[0].begin(),
        quoted(&other),
        places[1].begin()
    );
    let repair = Repair {
        kind: Kind::LockOrder,
        steps: vec![step],
        lock: Some(Guard { name: lock.clone(), new: false }),
        variables: vec![lock, other],
        places: places.to_vec(),
        rule: alone(bug, all),
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// Only one thread at a time on its way from the first lock to the second.
fn alone(bug: &Bug<'_>, all: &[Section]) -> Rule {
    let trace = bug.trace;
    let blocks = bug.events.iter().map(|id| trace.event(*id));
    let blocks = blocks.filter(|event| matches!(event.kind, EventKind::Block { .. }));
    let stretches = blocks.filter_map(|block| {
        let held = held(bug, all, block)?;
        Some(Stretch { first: held.lock, last: block.id })
    });
    Rule::Alone(stretches.collect())
}

/// Gives the lock back before it waits for something else.
fn release_first(bug: &Bug<'_>, block: &Event, held: Section) -> Option<Candidate> {
    let trace = bug.trace;
    let EventKind::Unlock { object, mode, .. } = trace.event(held.unlock).kind else { return None };
    // A wait on a condition variable begins at the release of its mutex.
    let before = trace.thread_of(block.id).events.get((block.index as usize).checked_sub(1)?)?;
    let signal = matches!(block.kind, EventKind::Block { on: Awaited::Signal { .. } });
    let begins = signal && matches!(trace.event(*before).kind, EventKind::Unlock { .. });
    let target = if begins { *before } else { block.id };
    let mut edit = Edit::new(trace);
    edit.move_before(held.unlock, target);
    edit.replace(held.unlock, EventKind::Unlock { object, mode, synthetic: false });
    edit.fails_when(at_once(bug, &sections(trace))?);
    let edited = edit.finish()?;
    let lock = lock_name(trace, object);
    let places = [block.id, held.lock].map(|id| Span::of(trace.event(id).site()));
    let what = match block.kind {
        EventKind::Block { on: Awaited::End { child } } => {
            format!("joining {}", quoted(&trace.threads[child.index()].name))
        }
        _ => format!("waiting for {}", quoted(trace.subject(block).unwrap_or("it"))),
    };
    let step = format!(
        "in {}, give {} (taken at {}) back before {what} ({})",
        places[0].function,
        quoted(&lock),
        places[1].begin(),
        places[0].begin()
    );
    // Whoever wants the lock comes before it is taken.
    let wanting = trace.events.iter().filter(|event| {
        event.thread != block.thread
            && matches!(event.kind, EventKind::Block { on } if on.object() == Some(object))
    });
    let first: Vec<EventId> = wanting.map(|event| event.id).collect();
    let repair = Repair {
        kind: Kind::ReleaseFirst,
        steps: vec![step],
        lock: Some(Guard { name: lock.clone(), new: false }),
        variables: vec![lock],
        places: places.to_vec(),
        rule: Rule::After { first, then: vec![held.lock] },
        checked: None,
    };
    Some(Candidate { repair, edited })
}
