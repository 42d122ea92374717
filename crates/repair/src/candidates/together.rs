//! Variables besides those that the cause names, with which the same calls of the same threads have to do: what is
//! wrong with two of them is mostly wrong with all.

use super::atomicity::{cells, touches};
use super::planner::Block;
use crate::Bug;
use crate::source::frames;
use model::{CellId, Event, EventId, EventTrace};
use std::collections::BTreeSet;

/// Each of two threads may have more to do with what the other one touches than a moment ago: so often both are looked at.
const ROUNDS: usize = 4;

/// The blocks, each with what its call does besides with variables that others of these threads write, and with what
/// it, or a call around it, does with those that the others' blocks touch. Empty where that is nothing.
pub(super) fn blocks(bug: &Bug<'_>, mut blocks: Vec<Block>) -> Vec<Block> {
    let trace = bug.trace;
    let threads: Vec<_> = blocks.iter().map(|block| trace.event(block.first).thread).collect();
    let mut grown = false;
    for _ in 0..ROUNDS {
        let mut changed = false;
        for at in 0..blocks.len() {
            let thread = threads[at];
            let theirs = trace
                .events
                .iter()
                .filter(|event| event.thread != thread && threads.contains(&event.thread));
            let written: BTreeSet<CellId> =
                theirs.flat_map(|event| event.kind.writes()).map(|part| part.cell).collect();
            let others = blocks.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<EventId> =
                others.flat_map(|(_, block)| inside(trace, block)).copied().collect();
            let common = cells(trace, &others);
            let wider = own_call(trace, &blocks[at], &written);
            let wider = calls_around(trace, &wider, &common);
            if (wider.first, wider.last) != (blocks[at].first, blocks[at].last) {
                blocks[at] = wider;
                changed = true;
            }
        }
        grown |= changed;
        if !changed {
            break;
        }
    }
    if grown { blocks } else { Vec::new() }
}

fn inside<'t>(trace: &'t EventTrace, block: &Block) -> &'t [EventId] {
    let index = |id: EventId| trace.event(id).index as usize;
    let own = &trace.thread_of(block.first).events;
    own.get(index(block.first)..=index(block.last)).unwrap_or_default()
}

/// How deep the call lies to which both ends of a block belong; the thread's own function is 0.
fn depth(trace: &EventTrace, block: &Block) -> Option<usize> {
    let (a, b) = (frames(trace.event(block.first)), frames(trace.event(block.last)));
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    match (a.get(common), b.get(common)) {
        (Some(a), Some(b)) if a.function == b.function && a.file == b.file => Some(common),
        _ => common.checked_sub(1),
    }
}

/// What comes before and behind a block in the call of this depth, nearest first. A line further up is the next round of a
/// loop.
fn rest(trace: &EventTrace, block: &Block, depth: usize) -> [Vec<EventId>; 2] {
    let own = &trace.thread_of(block.first).events;
    let index = |id: EventId| trace.event(id).index as usize;
    let belongs = |event: &Event, end: &Event, is_later: bool| {
        let (a, b) = (frames(event), frames(end));
        let (Some(at), Some(from)) = (a.get(depth), b.get(depth)) else { return false };
        let line = if is_later { at.line >= from.line } else { at.line <= from.line };
        line && at.function == from.function && at.file == from.file && a[..depth] == b[..depth]
    };
    let go = |ids: &mut dyn Iterator<Item = EventId>, end: EventId, is_later: bool| {
        let mut found = Vec::new();
        let mut end = trace.event(end);
        for id in ids {
            let event = trace.event(id);
            if !belongs(event, end, is_later) {
                break;
            }
            found.push(id);
            end = event;
        }
        found
    };
    let before = &mut own[..index(block.first)].iter().rev().copied();
    let behind = &mut own[index(block.last) + 1..].iter().copied();
    [go(before, block.first, false), go(behind, block.last, true)]
}

/// Up to the last accesses of the block's own call to cells that others write.
fn own_call(trace: &EventTrace, block: &Block, written: &BTreeSet<CellId>) -> Block {
    let Some(depth) = depth(trace, block) else { return block.clone() };
    let [before, behind] = rest(trace, block, depth);
    let last = |ids: &[EventId]| ids.iter().rev().copied().find(|id| touches(trace, *id, written));
    let first = last(&before).unwrap_or(block.first);
    Block { first, last: last(&behind).unwrap_or(block.last), ..block.clone() }
}

/// Up to the nearest writes of the cells, each in the innermost call around the block that has one.
fn calls_around(trace: &EventTrace, block: &Block, cells_of_others: &BTreeSet<CellId>) -> Block {
    let mut block = block.clone();
    let Some(depth) = depth(trace, &block) else { return block };
    let known = cells(trace, inside(trace, &block));
    for cell in cells_of_others.difference(&known) {
        let writes =
            |id: &EventId| trace.event(*id).kind.writes().iter().any(|part| part.cell == *cell);
        for depth in (0..=depth).rev() {
            let [before, behind] = rest(trace, &block, depth);
            if let Some(last) = behind.into_iter().find(writes) {
                block.last = last;
                break;
            }
            if let Some(first) = before.into_iter().find(writes) {
                block.first = first;
                break;
            }
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use explain::Pattern;
    use model::Site;

    /// A payment is two additions, each in a section of its own, and a balance reads what both have added.
    #[test]
    fn what_two_calls_have_in_common_belongs_together() {
        let text = "
            a: [net1] W net 1
            a: [tax1] W tax 1
            a: [net] W net 2
            a: [tax] W tax 2
            a: [note] W notes 1
            b: [sum] R net -> p
            b: [heads] R heads -> q
            b: [taxes] R tax -> r
            b: [done] R notes -> s
        ";
        let mut parsed = parse(text).expect("the text is a trace");
        let site = |function: &str, line| {
            let (file, function) = ("pay.cc".to_owned(), function.to_owned());
            Site { file, line, column: 1, function }
        };
        let pay = |line| vec![site("add", 23), site("pay", line), site("run", 87)];
        let balance = |line| vec![site("balanced", line), site("audit", 99)];
        let places = [
            ("net1", pay(50)),
            ("tax1", pay(51)),
            ("net", pay(50)),
            ("tax", pay(51)),
            ("note", vec![site("run", 88)]),
            ("sum", balance(56)),
            ("heads", balance(57)),
            ("taxes", balance(58)),
            ("done", vec![site("audit", 100)]),
        ];
        for (label, stack) in places {
            let id = parsed.event(label);
            parsed.trace.events[id.index()].stack = stack.into();
        }
        let [net, tax, sum, heads, taxes] =
            ["net", "tax", "sum", "heads", "taxes"].map(|label| parsed.event(label));
        let events = [sum, net, heads];
        let bug = Bug {
            trace: &parsed.trace,
            pattern: Pattern::SeveralVariables,
            events: &events,
            schedule: &[],
            handlers: &[],
            uses: crate::Uses::NONE,
        };
        let block = |first, last| Block { first, last, lines: None, counts: false };
        let ends = |found: Vec<Block>| -> Vec<(EventId, EventId)> {
            found.iter().map(|block| (block.first, block.last)).collect()
        };
        let found = blocks(&bug, vec![block(net, net), block(sum, heads)]);
        assert_eq!(ends(found), [(net, tax), (sum, taxes)]);
        let whole = vec![block(net, tax), block(sum, taxes)];
        assert!(blocks(&bug, whole).is_empty(), "nothing is missing");
    }
}
