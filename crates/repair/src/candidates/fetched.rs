//! An object that is freed between getting a pointer to it and its use: both belong together. So do, where the
//! pointer itself stays, the look at what says that the object is there, such as a callback that is taken back before
//! the object goes, and the use.

use super::atomicity::{cells, touches};
use super::planner::Block;
use crate::Bug;
use crate::sections::Sections;
use explain::Pattern;
use model::{CellId, EventId, EventKind, EventTrace, ObjectId};
use std::collections::BTreeSet;

/// From the read of the pointer to the use, and from where the other thread looked at it or changed it to the
/// free, or to its next change, if it had not changed it before. Where nobody knows the pointer, from the last look at
/// what the other thread changed behind that and before the free. Empty where there is none, or the cause is another one.
pub(super) fn blocks(bug: &Bug<'_>) -> Vec<Block> {
    if bug.pattern != Pattern::UseAfterFree {
        return Vec::new();
    }
    let block = |first, last| Block { first, last, lines: None, counts: false };
    let Some((UseOf { fetch, access }, free)) = used(bug) else {
        return looked(bug).map(|(look, access)| block(look, access)).into_iter().collect();
    };
    let trace = bug.trace;
    let pointer = cells(trace, &[fetch]);
    let index = |id: EventId| trace.event(id).index as usize;
    let own = &trace.thread_of(free).events;
    let writes =
        |id: EventId| trace.event(id).kind.writes().iter().any(|part| pointer.contains(&part.cell));
    let near = |id: &EventId| is_in_call_of(trace, *id, free);
    let mut before = own.iter().take(index(free)).rev().copied().filter(near);
    let first = before.find(|id| touches(trace, *id, &pointer)).unwrap_or(free);
    // Whoever comes behind a write of the pointer no longer gets to the object.
    if first != free && writes(first) {
        return vec![block(fetch, access)];
    }
    let mut behind = own.iter().skip(index(free) + 1).copied().filter(near);
    let last = behind.find(|id| writes(*id)).unwrap_or(free);
    vec![block(fetch, access), block(first, last)]
}

/// Does a lock that is held in these regions keep a use from a free that came first? Only where the using thread looks,
/// in the region of its use, at something that the freeing one writes under the lock: else it goes on and uses what
/// is gone. Yes for other bugs.
pub(super) fn settles(
    bug: &Bug<'_>,
    all: &Sections,
    lock: Option<ObjectId>,
    regions: &[(EventId, EventId)],
) -> bool {
    let trace = bug.trace;
    let is_free = |id: &&EventId| matches!(trace.event(**id).kind, EventKind::Free { .. });
    let free = bug.events.iter().find(is_free);
    let access = bug.events.iter().rfind(|id| !is_free(id));
    let Some((&free, &access)) = free.zip(access).filter(|_| bug.pattern == Pattern::UseAfterFree)
    else {
        return true;
    };
    let (freeing, using) = (trace.event(free).thread, trace.event(access).thread);
    let index = |id: EventId| trace.event(id).index as usize;
    let inside = |(first, last): &(EventId, EventId)| {
        trace.thread_of(*first).events.get(index(*first)..=index(*last)).unwrap_or_default()
    };
    let of = |thread| regions.iter().filter(move |region| trace.event(region.0).thread == thread);
    let mut uses = of(using).filter(|region| inside(region).contains(&access));
    let Some(around) = uses.next() else { return true };
    let before = inside(around).iter().filter(|id| index(**id) < index(access));
    let looked: BTreeSet<CellId> =
        before.flat_map(|id| trace.event(*id).kind.reads().iter().map(|part| part.cell)).collect();
    let known =
        all.iter().filter(|s| Some(s.object) == lock && trace.event(s.lock).thread == freeing);
    let known: Vec<_> = known.map(|section| (section.lock, section.unlock)).collect();
    let held = of(freeing).chain(&known).flat_map(inside);
    let mut written = held.flat_map(|id| trace.event(*id).kind.writes());
    using == freeing || written.any(|part| looked.contains(&part.cell))
}

struct UseOf {
    fetch: EventId,
    access: EventId,
}

/// The use, and the free by another thread.
fn use_and_free(bug: &Bug<'_>) -> Option<(EventId, EventId)> {
    let trace = bug.trace;
    let is_free = |id: &&EventId| matches!(trace.event(**id).kind, EventKind::Free { .. });
    let free = *bug.events.iter().find(is_free)?;
    let access = *bug.events.iter().rfind(|id| !is_free(id))?;
    (trace.event(access).thread != trace.event(free).thread).then_some((access, free))
}

/// The use, and the last look of its thread at what the freeing one changed only behind that, and before the free: by
/// the failing schedule.
fn looked(bug: &Bug<'_>) -> Option<(EventId, EventId)> {
    let (access, free) = use_and_free(bug)?;
    let trace = bug.trace;
    let (using, freeing) = (trace.event(access).thread, trace.event(free).thread);
    let end = bug.schedule.iter().position(|id| *id == free)?;
    // From the end, so that what is changed behind an event is known there.
    let mut changed: BTreeSet<CellId> = BTreeSet::new();
    let look = bug.schedule[..end].iter().rev().find(|id| {
        let event = trace.event(**id);
        if event.thread == freeing {
            changed.extend(event.kind.writes().iter().map(|part| part.cell));
        }
        event.thread == using
            && event.index < trace.event(access).index
            && event.kind.reads().iter().any(|part| changed.contains(&part.cell))
    })?;
    Some((*look, access))
}

/// The use, with the read that gave it its pointer, and the free.
fn used(bug: &Bug<'_>) -> Option<(UseOf, EventId)> {
    let trace = bug.trace;
    let (access, free) = use_and_free(bug)?;
    let event = trace.event(access);
    let reads = trace.address_reads(event).into_iter().map(|read| read.event);
    let own = reads.filter(|read| trace.event(*read).thread == event.thread);
    // What others never write led to no other object.
    let shared = own.filter(|read| is_written_by_others(trace, *read));
    let fetch = shared.max_by_key(|read| trace.event(*read).index)?;
    Some((UseOf { fetch, access }, free))
}

fn is_written_by_others(trace: &EventTrace, read: EventId) -> bool {
    let pointer: BTreeSet<CellId> = cells(trace, &[read]);
    trace.events.iter().any(|event| {
        event.thread != trace.event(read).thread
            && event.kind.writes().iter().any(|part| pointer.contains(&part.cell))
    })
}

/// Did the thread perform it in the same call of the function that the other event is in?
fn is_in_call_of(trace: &EventTrace, id: EventId, other: EventId) -> bool {
    let callers = |id: EventId| {
        let event = trace.event(id);
        event.stack.get(event.depth() + 1..).unwrap_or_default()
    };
    let function = |id: EventId| &trace.event(id).site().function;
    callers(id) == callers(other) && function(id) == function(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use model::PathConditionKind;

    #[test]
    fn the_pointer_belongs_to_the_use() {
        let text = "
            t0: alloc o
            t0: W current 1
            t0: fork a
            t0: fork b
            a: [fetch] R current -> p
            a: assume p == 1
            a: [use] R field -> f
            b: [look] R current -> q
            b: [free] free o
            b: [next] W current 2
            a: fail f == 0
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let [fetch, access, look, free, next] =
            ["fetch", "use", "look", "free", "next"].map(|label| parsed.event(label));
        parsed.trace.conditions[0].kind = PathConditionKind::Address;
        parsed.trace.conditions[0].position = parsed.trace.event(access).index;
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::UseAfterFree,
            events: &[free, access],
            schedule: &[],
            handlers: &[],
            uses: crate::Uses::NONE,
        };
        let ends = |bug: &Bug<'_>| -> Vec<(EventId, EventId)> {
            blocks(bug).iter().map(|block| (block.first, block.last)).collect()
        };
        assert_eq!(ends(&bug), [(fetch, access), (look, next)]);
        // The same where the cause says besides why the object was freed.
        let decided = Bug { events: &[look, fetch, free, access], ..bug };
        assert_eq!(ends(&decided), [(fetch, access), (look, next)]);
        let none = crate::sections::sections(&parsed.trace);
        assert!(settles(&bug, &none, None, &[(fetch, access), (look, next)]));
        assert!(
            !settles(&bug, &none, None, &[(access, access), (free, free)]),
            "the free may come first"
        );
        let order = Bug { pattern: Pattern::Order, ..bug };
        assert!(settles(&order, &none, None, &[(access, access)]));
        let mut unlinked = parsed.trace.clone();
        let write = unlinked.event(next).kind.clone();
        unlinked.events[look.index()].kind = write;
        assert_eq!(ends(&Bug { trace: &unlinked, ..bug }), [(fetch, access)]);
        assert!(ends(&Bug { pattern: Pattern::Order, ..bug }).is_empty());
    }

    #[test]
    fn a_look_at_what_is_taken_back_before_the_free_belongs_to_the_use() {
        let text = "
            t0: alloc o
            t0: W callback 1
            t0: fork a
            t0: fork b
            a: [look] R callback -> c
            a: assume c == 1
            b: [back] W callback 0
            b: [free] free o
            a: [use] R field -> f
            a: fail f == 0
        ";
        let parsed = parse(text).expect("the text is a trace");
        let [look, access, back, free] =
            ["look", "use", "back", "free"].map(|label| parsed.event(label));
        let schedule: Vec<EventId> = parsed.trace.events.iter().map(|event| event.id).collect();
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::UseAfterFree,
            events: &[free, access],
            schedule: &schedule,
            handlers: &[],
            uses: crate::Uses::NONE,
        };
        let ends = |bug: &Bug<'_>| -> Vec<(EventId, EventId)> {
            blocks(bug).iter().map(|block| (block.first, block.last)).collect()
        };
        assert_eq!(ends(&bug), [(look, access)]);
        // It was taken back before the look, which so has nothing to do with it.
        let mut other = schedule.clone();
        other.swap(look.index(), back.index());
        assert!(ends(&Bug { schedule: &other, ..bug }).is_empty());
    }
}
