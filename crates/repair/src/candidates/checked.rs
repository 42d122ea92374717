//! The check that led to a write: both belong together.

use super::atomicity::{cells, touches};
use super::planner::Block;
use crate::Bug;
use crate::sections::{Section, Sections};
use crate::source::frames;
use model::{CellId, Event, EventId, EventKind, EventTrace, PathConditionKind, Site, WritePart};
use std::collections::BTreeSet;

/// From the check that led a thread to a write to that write, where the cause begins with the write.
pub(super) fn from_check(trace: &EventTrace, block: &Block) -> Option<Block> {
    let event = trace.event(block.first);
    if event.kind.writes().is_empty() || !event.kind.reads().is_empty() {
        return None;
    }
    let touched = |id: &&EventId| {
        let kind = &trace.event(**id).kind;
        let reads = kind.reads().iter().map(|part| part.cell);
        let mut cells = reads.chain(kind.writes().iter().map(|part| part.cell));
        cells.any(|cell| parts_have(event.kind.writes(), cell))
    };
    let mut before = trace.thread_of(block.first).events.iter().take(event.index as usize).rev();
    // What a thread looked at before it created others was no check of what those do.
    let forks = |id: &&EventId| matches!(trace.event(**id).kind, EventKind::Fork { .. });
    let check = *before.find(|id| touched(id) || forks(id))?;
    let is_check = matches!(trace.event(check).kind, EventKind::Read { .. })
        && decides(trace, check, block.first);
    is_check.then(|| Block { first: check, last: block.first, ..block.clone() })
}

/// From the look of a thread that found what another one had found before it wrote there, up to what it did because of
/// that and failed by.
pub(super) fn up_to_failure(bug: &Bug<'_>, block: &Block) -> Option<Block> {
    let trace = bug.trace;
    let &[read, look, write] = bug.events else { return None };
    let [found, rival, written] = [read, look, write].map(|id| trace.event(id));
    let only_reads =
        |event: &Event| !event.kind.reads().is_empty() && event.kind.writes().is_empty();
    let failure = trace.event(trace.failure.as_ref()?.event);
    let fits = block.first == read
        && block.last == read
        && found.thread == failure.thread
        && rival.thread == written.thread
        && only_reads(found)
        && only_reads(rival)
        && !written.kind.writes().is_empty();
    let own = &trace.thread_of(read).events;
    let last = *own.get((failure.index as usize).checked_sub(1)?)?;
    (fits && trace.event(last).index > found.index).then(|| Block { last, ..block.clone() })
}

/// The blocks, some of them only from the last section in which a thread looks at something that the others' section
/// changes as well, such as the version of a record: who looks again before it writes relies on that look. Empty where
/// there is no such look.
pub(super) fn validated(bug: &Bug<'_>, all: &Sections, mut blocks: Vec<Block>) -> Vec<Block> {
    let trace = bug.trace;
    let index = |id: EventId| trace.event(id).index as usize;
    let inside = |first: EventId, last: EventId| {
        trace.thread_of(first).events.get(index(first)..=index(last)).unwrap_or_default()
    };
    let others: Vec<Section> = bug
        .events
        .iter()
        .filter(|id| !trace.event(**id).kind.writes().is_empty())
        .flat_map(|id| all.around(trace, *id))
        .collect();
    let mut shorter = false;
    for block in &mut blocks {
        let thread = trace.event(block.first).thread;
        let theirs = |one: &Section| {
            let written = others.iter().filter(|other| {
                other.object == one.object && trace.event(other.lock).thread != thread
            });
            let written = written.flat_map(|other| inside(other.lock, other.unlock));
            let written = written.flat_map(|id| trace.event(*id).kind.writes());
            written.map(|part| part.cell).collect::<BTreeSet<CellId>>()
        };
        let mut earlier = all.left_before(trace, block.last);
        let look = earlier
            .by_ref()
            .take_while(|one| index(one.lock) > index(block.first))
            .filter(|one| index(one.unlock) < index(block.last))
            .find_map(|one| {
                let cells = theirs(&one);
                let looks = |id: &&EventId| {
                    matches!(trace.event(**id).kind, EventKind::Read { .. })
                        && touches(trace, **id, &cells)
                };
                inside(one.lock, one.unlock).iter().find(looks).copied()
            });
        // What is looked at again is mostly not the value itself.
        let own = cells(trace, &[block.last]);
        if let Some(first) = look.filter(|look| !touches(trace, *look, &own)) {
            block.first = first;
            shorter = true;
        }
    }
    if shorter { blocks } else { Vec::new() }
}

fn parts_have(parts: &[WritePart], cell: CellId) -> bool {
    parts.iter().any(|part| part.cell == cell)
}

/// Does a branch between the two events hang on what the first has read, in a call that both belong to? A function
/// that has looked, decided and gone on by itself has not asked for its caller.
fn decides(trace: &EventTrace, read: EventId, then: EventId) -> bool {
    let (from, to) = (trace.event(read), trace.event(then));
    let vars: BTreeSet<_> = from.kind.reads().iter().map(|part| part.var).collect();
    let own = &trace.thread_of(read).events;
    let (reads, writes) = (frames(from), frames(to));
    let common = reads.iter().zip(&writes).take_while(|(a, b)| a == b).count();
    // The call that the read was made in, from the function to which both belong.
    let callee = common + 1;
    let goes_on = |position: u32| {
        let releases = |id: &&EventId| matches!(trace.event(**id).kind, EventKind::Unlock { .. });
        let mut later = own.iter().skip(position as usize).skip_while(releases);
        let Some(next) = later.next().map(|id| frames(trace.event(*id))) else { return false };
        let called = |all: &[&Site]| all.get(callee).map(|site| site.function.clone());
        callee < reads.len()
            && next.get(..callee) == reads.get(..callee)
            && called(&next) == called(&reads)
    };
    trace.conditions.iter().any(|condition| {
        condition.thread == from.thread
            && condition.kind == PathConditionKind::Branch
            && (from.index + 1..=to.index).contains(&condition.position)
            && trace.exprs.variables(condition.expr).iter().any(|var| vars.contains(var))
            && !goes_on(condition.position)
    })
}

/// Up to a step between a thread's first and last event that others see: its own write after a look,
/// or that it counts itself as a user.
pub(super) fn to_step(bug: &Bug<'_>, block: &Block) -> Option<Block> {
    let trace = bug.trace;
    let own_cells = cells(trace, bug.events);
    let updates = |id: EventId| matches!(trace.event(id).kind, EventKind::ReadModifyWrite { .. });
    let index = |id: EventId| trace.event(id).index as usize;
    let own = &trace.thread_of(block.first).events;
    let between = own.get(index(block.first) + 1..index(block.last)).unwrap_or_default();
    let looks = trace.event(block.first).kind.writes().is_empty();
    let first = cells(trace, &[block.first]);
    let writes = |id: &&EventId| {
        looks && trace.event(**id).kind.writes().iter().any(|part| first.contains(&part.cell))
    };
    if let Some(&last) = between.iter().find(writes) {
        return Some(Block { last, ..block.clone() });
    }
    // Others of the cause's threads do the same update, so it counts something. Of several counts the
    // last is the one that what follows relies on.
    let counts = |id: &&EventId| {
        let updated = cells(trace, &[**id]);
        let same = |other: &model::Event| {
            other.thread != trace.event(**id).thread
                && updates(other.id)
                && !cells(trace, &[other.id]).is_disjoint(&updated)
        };
        let known = |thread| bug.events.iter().any(|named| trace.event(*named).thread == thread);
        updates(**id)
            && updated.is_disjoint(&own_cells)
            && trace.events.iter().any(|other| same(other) && known(other.thread))
    };
    let last = *between.iter().rev().find(counts)?;
    Some(Block { last, counts: true, ..block.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    /// A thread looks whether `low` is to be written in `function`, and writes it in `reset` behind that.
    fn first(function: &str, last: u32) -> Option<EventId> {
        let text = "
            a: [check] R low -> p
            a: assume p == 0
            a: [next] W count 1
            a: [write] W low 2
            b: R low -> q
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let site = |function: &str, line| {
            let (file, function) = ("window.cc".to_owned(), function.to_owned());
            Site { file, line, column: 1, function }
        };
        let places = [
            ("check", vec![site("add", 21), site("run", 61)]),
            ("next", vec![site(function, 25), site("run", last)]),
            ("write", vec![site("reset", 13), site("run", 62)]),
        ];
        for (label, stack) in places {
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = stack.into();
        }
        let write = parsed.event("write");
        let block = Block { first: write, last: write, lines: None, counts: false };
        from_check(&parsed.trace, &block).map(|block| block.first)
    }

    #[test]
    fn a_function_that_decides_for_itself_has_not_asked_for_its_caller() {
        assert_eq!(first("add", 61), None, "the same call goes on");
        assert!(first("reset", 62).is_some(), "the call was over when it was decided");
    }

    #[test]
    fn who_fails_by_what_it_did_after_a_look_holds_the_lock_until_then() {
        let text = "
            cell done 32 = 0
            t0: fork a
            a: [look] R done -> d
            a: assume d == 0
            a: [act] W done 1
            t0: [read] R done -> e
            t0: [kept] R promise -> p
            t0: fail e == 0
        ";
        let parsed = parse(text).expect("the text is a trace");
        let [read, look, act, kept] =
            ["read", "look", "act", "kept"].map(|label| parsed.event(label));
        let block = |id| Block { first: id, last: id, lines: None, counts: false };
        let up_to = |events: &[EventId]| {
            let bug = Bug::by_hand(&parsed.trace, explain::Pattern::Atomicity, events);
            up_to_failure(&bug, &block(events[0])).map(|block| block.last)
        };
        assert_eq!(up_to(&[read, look, act]), Some(kept));
        assert_eq!(up_to(&[read, act, act]), None, "it lies between two writes");
    }
}
