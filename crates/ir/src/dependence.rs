//! Control dependence: which branches decide that a block is reached.

use crate::types::{BlockId, Function, InstKind};
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
        Self::of_blocks(successors(function, true))
    }

    /// Of the ways on which no call ends by an exception; nor, where the block leads to a return, do the ways
    /// count that only end the program or throw. `None` if the block is on none of them.
    #[must_use]
    pub fn without_exceptions(function: &Function, block: BlockId) -> Option<Self> {
        let mut next = successors(function, false);
        let returns = |block: &BlockId| {
            let last = function.blocks.get(block.index()).map(|block| block.terminator());
            let last = last.and_then(|last| function.instructions.get(last.index()));
            matches!(last.map(|last| &last.kind), Some(InstKind::Ret(_)))
        };
        let all = || (0..).map(BlockId).take(next.len());
        let mut before = vec![Vec::new(); next.len()];
        for (from, to) in
            all().zip(&next).flat_map(|(from, to)| to.iter().map(move |to| (from, *to)))
        {
            before[to.index()].push(from);
        }
        let ended = reached(&before, all().filter(returns).collect());
        if *ended.get(block.index())? {
            for targets in &mut next {
                targets.retain(|to| ended[to.index()]);
            }
        }
        let is_reached = reached(&next, vec![BlockId(0)])[block.index()];
        is_reached.then(|| Self::of_blocks(next))
    }

    fn of_blocks(next: Vec<Vec<BlockId>>) -> Self {
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

/// Where each block leads to, by exceptions as well if they are asked for.
fn successors(function: &Function, exceptions: bool) -> Vec<Vec<BlockId>> {
    let count = function.blocks.len();
    let next = function.blocks.iter().map(|block| {
        let last = function.instructions.get(block.terminator().index());
        let next = match last.map(|last| &last.kind) {
            Some(InstKind::Invoke { normal, .. }) if !exceptions => vec![*normal],
            last => last.map(InstKind::successors).unwrap_or_default(),
        };
        next.into_iter().filter(|to| to.index() < count).collect()
    });
    next.collect()
}

/// Which blocks these lead to, themselves among them.
fn reached(next: &[Vec<BlockId>], mut open: Vec<BlockId>) -> Vec<bool> {
    let mut reached = vec![false; next.len()];
    while let Some(at) = open.pop() {
        let Some(seen) = reached.get_mut(at.index()) else { continue };
        if !std::mem::replace(seen, true) {
            open.extend(&next[at.index()]);
        }
    }
    reached
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

    #[test]
    fn what_may_throw_decides_nothing_of_what_returns() {
        // 0: long ? 1 : 2;  1: throw;  2: c ? 3 : 4;  3: goto 4;  4: return.
        let f = function(vec![
            branch(1, 2),
            InstKind::Unreachable,
            branch(3, 4),
            InstKind::Br(BlockId(4)),
            InstKind::Ret(None),
        ]);
        assert!(PostDominators::of(&f).decides(BlockId(0), BlockId(4)));
        let tree = PostDominators::without_exceptions(&f, BlockId(4)).expect("it is reached");
        assert!(!tree.decides(BlockId(0), BlockId(4)));
        let tree = PostDominators::without_exceptions(&f, BlockId(3)).expect("it is reached");
        assert!(tree.decides(BlockId(2), BlockId(3)));
        let tree = PostDominators::without_exceptions(&f, BlockId(1)).expect("it is reached");
        assert!(tree.decides(BlockId(0), BlockId(1)));
    }
}
