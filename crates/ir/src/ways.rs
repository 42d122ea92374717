//! Which instructions of a function a thread may come to again, or still, from others.

use crate::flow::Flow;
use crate::types::{BlockId, Function, InstId};
use std::collections::BTreeSet;

/// The instructions that are asked about from which control may come to one of `targets` without passing one of `past`.
/// A loop does that, and so does one whose rounds the compiler wrote out one behind the other.
#[must_use]
pub fn leading_to(
    function: &Function,
    asked: &BTreeSet<InstId>,
    targets: &BTreeSet<InstId>,
    past: &BTreeSet<InstId>,
) -> BTreeSet<InstId> {
    let flow = Flow::of(function);
    let mut found = BTreeSet::new();
    let mut whole: BTreeSet<BlockId> = BTreeSet::new();
    // Backwards from an instruction, which itself is not looked at, to the beginning of its block.
    let mut open: Vec<(BlockId, InstId)> =
        targets.iter().filter_map(|&target| Some((function.block_of(target)?, target))).collect();
    while let Some((block, end)) = open.pop() {
        let Some(body) = function.blocks.get(block.index()) else { continue };
        let stop = past.range(body.first..end).next_back().copied();
        let begin = stop.map_or(body.first, |stop| InstId(stop.0 + 1));
        found.extend(asked.range(begin.min(end)..end).copied());
        if stop.is_some() {
            continue;
        }
        for &before in flow.before(block) {
            let Some(body) = function.blocks.get(before.index()) else { continue };
            if whole.insert(before) {
                open.push((before, body.end));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// Of a function whose blocks only branch, block `i` to `blocks[i]`: those that lead to `target` and not past `past`.
    fn leading(blocks: &[&[u32]], target: u32, past: u32) -> Vec<u32> {
        let function =
            testing::function(blocks.iter().map(|targets| testing::terminator(targets)).collect());
        let last = |block: u32| {
            let body = &function.blocks[block as usize];
            InstId(body.end.0 - 1)
        };
        let asked: BTreeSet<InstId> =
            (0..blocks.len()).map(|block| last(u32::try_from(block).expect("few"))).collect();
        let one = |block: u32| BTreeSet::from([last(block)]);
        let found = leading_to(&function, &asked, &one(target), &one(past));
        let blocks = found.into_iter().filter_map(|instruction| function.block_of(instruction));
        blocks.map(|block| block.0).collect()
    }

    #[test]
    fn rounds_that_are_written_out_lead_on_to_the_next() {
        // 0 begins; 1 and 3 are two rounds of which 2 and 4 are done now and then; 5 is behind them.
        let rounds: &[&[u32]] = &[&[1], &[2, 3], &[3], &[4, 5], &[5], &[]];
        assert_eq!(leading(rounds, 3, 0), [1, 2]);
        // 1 -> 2 -> 1 or 3: a loop around both leads to 1 again by way of 0 alone.
        assert_eq!(leading(&[&[1], &[2], &[0, 3], &[]], 1, 0), [] as [u32; 0]);
        assert_eq!(leading(&[&[1], &[2], &[1, 3], &[]], 1, 0), [1, 2]);
    }
}
