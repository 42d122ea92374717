//! Natural loops: a header dominates the blocks from which control comes back to it.

use crate::flow::Flow;
use crate::types::{BlockId, Function, InstId};

/// The natural loops of a function, one per header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loops {
    /// By block, the loop that begins there, as an index into `loops`.
    at: Vec<Option<u32>>,
    loops: Vec<Loop>,
}

/// A natural loop. Loops that share a header are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Where every round begins.
    pub header: BlockId,
    /// The blocks that branch back to the header.
    pub latches: Vec<BlockId>,
    /// By block: does it belong to the loop?
    body: Vec<bool>,
}

impl Loop {
    /// Does the block belong to the loop, header included?
    #[must_use]
    pub fn contains(&self, block: BlockId) -> bool {
        self.body.get(block.index()).copied().unwrap_or(false)
    }
}

impl Loops {
    /// Finds the loops of a function. Cycles that have several ways in are none.
    #[must_use]
    pub fn of(function: &Function) -> Self {
        let flow = Flow::of(function);
        let count = function.blocks.len();
        let mut found = Self { at: vec![None; count], loops: Vec::new() };
        for (header, latches) in flow.back_edges() {
            let mut body = vec![false; count];
            body[header.index()] = true;
            let mut open = latches.clone();
            while let Some(block) = open.pop() {
                if !std::mem::replace(&mut body[block.index()], true) {
                    open.extend(flow.before(block));
                }
            }
            found.at[header.index()] = Some(found.loops.len() as u32);
            found.loops.push(Loop { header, latches, body });
        }
        found
    }

    /// The headers of the loops that an instruction is in.
    pub fn around<'a>(
        &'a self,
        function: &'a Function,
        instruction: InstId,
    ) -> impl Iterator<Item = BlockId> + 'a {
        let block = function.block_of(instruction);
        let around = self.loops.iter().filter(move |it| block.is_some_and(|b| it.contains(b)));
        around.map(|it| it.header)
    }

    /// The loop that begins at a block.
    #[must_use]
    pub fn at(&self, header: BlockId) -> Option<&Loop> {
        let index = (*self.at.get(header.index())?)?;
        self.loops.get(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// A function whose blocks only branch: block `i` to `blocks[i]`.
    fn function(blocks: &[&[u32]]) -> Function {
        testing::function(blocks.iter().map(|targets| testing::terminator(targets)).collect())
    }

    fn body(found: &Loop, count: u32) -> Vec<u32> {
        (0..count).filter(|&block| found.contains(BlockId(block))).collect()
    }

    #[test]
    fn nested_loops_and_two_ways_back() {
        // 0 -> 1; 1 -> 2 or out; 2 -> 2 or 3; 3 -> 1 or 4; 4 -> 1.
        let loops = Loops::of(&function(&[&[1], &[2, 5], &[2, 3], &[1, 4], &[1], &[]]));
        let outer = loops.at(BlockId(1)).expect("a loop");
        assert_eq!(outer.latches, [BlockId(3), BlockId(4)]);
        assert_eq!(body(outer, 6), [1, 2, 3, 4]);
        let inner = loops.at(BlockId(2)).expect("a loop");
        assert_eq!((body(inner, 6), inner.latches.as_slice()), (vec![2], [BlockId(2)].as_slice()));
        assert!([0, 3, 4, 5].iter().all(|&block| loops.at(BlockId(block)).is_none()));
    }

    #[test]
    fn a_cycle_with_two_ways_in_is_no_loop() {
        let loops = Loops::of(&function(&[&[1, 2], &[2], &[1, 3], &[]]));
        assert!((0..4).all(|block| loops.at(BlockId(block)).is_none()));
        // Code that cannot be reached does not count, whatever it branches to.
        let loops = Loops::of(&function(&[&[1], &[], &[1, 2]]));
        assert!((0..3).all(|block| loops.at(BlockId(block)).is_none()));
    }
}
