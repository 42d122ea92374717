//! Control dependence: which branches decide that a block is reached.

use crate::types::{BlockId, Function};
use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::graph::{DiGraph, NodeIndex};

/// The post-dominators of one function.
pub struct PostDominators {
    tree: Dominators<NodeIndex>,
    successors: Vec<Vec<BlockId>>,
}

impl PostDominators {
    /// Of all ways through a function, also those that end the program.
    #[must_use]
    pub fn of(function: &Function) -> Self {
        let count = function.blocks.len();
        let next = function.blocks.iter().map(|block| {
            let last = function.instructions.get(block.terminator().index());
            let next = last.map(|last| last.kind.successors()).unwrap_or_default();
            next.into_iter().filter(|to| to.index() < count).collect()
        });
        let next: Vec<Vec<BlockId>> = next.collect();
        // Returns, and blocks that end in a call that does not return.
        let ends = (0..).map(BlockId).zip(&next).filter(|(_, next)| next.is_empty());
        let ends: Vec<BlockId> = ends.map(|(block, _)| block).collect();
        Self::of_ways(next, &ends)
    }

    /// Of the ways that lead from each block to these others, all of which are there, up to the ends.
    pub(crate) fn of_ways(successors: Vec<Vec<BlockId>>, ends: &[BlockId]) -> Self {
        let count = successors.len();
        let mut reversed: DiGraph<(), ()> = DiGraph::new();
        let nodes: Vec<NodeIndex> = (0..=count).map(|_| reversed.add_node(())).collect();
        for (from, targets) in successors.iter().enumerate() {
            for to in targets {
                reversed.add_edge(nodes[to.index()], nodes[from], ());
            }
        }
        for end in ends {
            reversed.add_edge(nodes[count], nodes[end.index()], ());
        }
        Self { tree: simple_fast(&reversed, nodes[count]), successors }
    }

    /// Does every way from `from` to the end lead through `block`? A block does so for itself.
    fn post_dominates(&self, block: BlockId, from: BlockId) -> bool {
        if block == from {
            return true;
        }
        let from = NodeIndex::new(from.index());
        let block = NodeIndex::new(block.index());
        self.tree.dominators(from).is_some_and(|mut chain| chain.any(|node| node == block))
    }

    /// Does the branch at the end of `branch` decide whether `block` is reached?
    #[must_use]
    pub fn decides(&self, branch: BlockId, block: BlockId) -> bool {
        let Some(successors) = self.successors.get(branch.index()) else { return false };
        let several = successors.iter().any(|next| Some(next) != successors.first());
        let reached = successors.iter().any(|&next| self.post_dominates(block, next));
        several && reached && (branch == block || !self.post_dominates(block, branch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::function;
    use crate::types::{ConstId, InstKind, Operand};

    fn branch(then: u32, otherwise: u32) -> InstKind {
        InstKind::CondBr(Operand::Const(ConstId(0)), BlockId(then), BlockId(otherwise))
    }

    #[test]
    fn an_assertion_depends_on_both_halves_of_its_conjunction() {
        // 0: a ? 1 : 3;  1: b ? 2 : 3;  2: return;  3: fail.
        let f =
            function(vec![branch(1, 3), branch(2, 3), InstKind::Ret(None), InstKind::Unreachable]);
        let tree = PostDominators::of(&f);
        assert!(tree.decides(BlockId(0), BlockId(3)));
        assert!(tree.decides(BlockId(1), BlockId(3)));
        assert!(tree.decides(BlockId(0), BlockId(1)));
        assert!(!tree.decides(BlockId(2), BlockId(3)));
    }

    #[test]
    fn a_join_depends_on_neither_side() {
        // 0: c ? 1 : 2;  1: goto 3;  2: goto 3;  3: return.
        let f = function(vec![
            branch(1, 2),
            InstKind::Br(BlockId(3)),
            InstKind::Br(BlockId(3)),
            InstKind::Ret(None),
        ]);
        let tree = PostDominators::of(&f);
        assert!(tree.decides(BlockId(0), BlockId(1)));
        assert!(!tree.decides(BlockId(0), BlockId(3)));
    }
}
