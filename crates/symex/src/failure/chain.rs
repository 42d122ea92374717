//! A check of several parts, such as `assert(a || b)`, is a chain of branches with one way out of it: the run failed since none
//! of them took it.

use super::Found;
use crate::engine::Engine;
use crate::thread::{CodeFrame, Frame, Thread};
use ir::types::{BlockId, InstKind};
use std::collections::BTreeSet;

impl<'r> Engine<'r> {
    /// The branches right before the one that led to the failure that would have left by the same way, the nearest first. What
    /// another thread does can only come between them where the thread has an event there, which it would not have with
    /// another part of the check: such branches are none.
    pub(super) fn parts_before(&self, t: usize, found: Found) -> Vec<Found> {
        let thread = &self.threads[t];
        let Some(last) = found.path_condition else { return Vec::new() };
        let Some((frame, block)) = branch_of(thread, last) else { return Vec::new() };
        let Some(history) = &frame.history else { return Vec::new() };
        let Some(out) = way_not_taken(frame, block) else { return Vec::new() };
        let (mut chain, mut block) = (Vec::new(), block);
        let mut seen = BTreeSet::from([block]);
        // The one that comes to the last one found, and would have left by the same way.
        while let Some(before) =
            history.entered_from.get(&block).copied().filter(|it| seen.insert(*it))
        {
            let record = history.branches.get(&before).zip(history.branches.get(&block));
            let Some((record, next)) = record else { break };
            let follows = record.sequence + 1 == next.sequence;
            let part = record.condition.zip(record.path_condition);
            let Some((condition, number)) = part.filter(|_| follows) else { break };
            let leads = ways(frame, before) == Some([block, out])
                || ways(frame, before) == Some([out, block]);
            if !leads || !self.out.threads[t].at_once(number, last) {
                break;
            }
            chain.push(Found { condition, path_condition: Some(number) });
            block = before;
        }
        chain
    }
}

/// The function that is under way and has made this branch last, and where.
fn branch_of<'t, 'r>(
    thread: &'t Thread<'r>,
    number: usize,
) -> Option<(&'t CodeFrame<'r>, BlockId)> {
    thread.frames.iter().rev().find_map(|frame| {
        let Frame::Code(frame) = frame else { return None };
        let branches = frame.history.as_ref()?.branches.iter();
        let mut of_number = branches.filter(|(_, record)| record.path_condition == Some(number));
        of_number.next().map(|(block, _)| (&**frame, *block))
    })
}

/// Where a branch of two ways at the end of a block leads.
fn ways(frame: &CodeFrame<'_>, block: BlockId) -> Option<[BlockId; 2]> {
    let function = frame.info.function;
    let end = function.blocks.get(block.index())?.terminator();
    match function.instructions.get(end.index())?.kind {
        InstKind::CondBr(_, then, otherwise) => Some([then, otherwise]),
        _ => None,
    }
}

/// The way that the branch at the end of a block did not take. `None` where the function has come to both from there.
fn way_not_taken(frame: &CodeFrame<'_>, block: BlockId) -> Option<BlockId> {
    let entered = &frame.history.as_ref()?.entered_from;
    let came_to = |way: BlockId| entered.get(&way) == Some(&block);
    match ways(frame, block)? {
        [taken, other] | [other, taken] if came_to(taken) && !came_to(other) => Some(other),
        _ => None,
    }
}
