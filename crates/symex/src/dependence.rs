//! Control dependence: which branches decide that a block is reached.

use ir::types::{BlockId, Function};
use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::graph::{DiGraph, NodeIndex};

/// The post-dominators of one function.
pub(crate) struct PostDominators {
    tree: Dominators<NodeIndex>,
    successors: Vec<Vec<BlockId>>,
}

impl PostDominators {
    pub fn of(function: &Function) -> Self {
        let count = function.blocks.len();
        let mut reversed: DiGraph<(), ()> = DiGraph::new();
        let nodes: Vec<NodeIndex> = (0..=count).map(|_| reversed.add_node(())).collect();
        let exit = nodes[count];
        let mut successors = Vec::with_capacity(count);
        for (index, block) in function.blocks.iter().enumerate() {
            let last = function.instructions.get(block.terminator().index());
            let next = last.map(|last| last.kind.successors()).unwrap_or_default();
            for target in &next {
                if let Some(&node) = nodes.get(target.index()).filter(|_| target.index() < count) {
                    reversed.add_edge(node, nodes[index], ());
                }
            }
            // Returns, and blocks that end in a call that does not return.
            if next.is_empty() {
                reversed.add_edge(exit, nodes[index], ());
            }
            successors.push(next);
        }
        Self { tree: simple_fast(&reversed, exit), successors }
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
    use ir::types::{Block, ConstId, InstId, InstKind, Instruction, Operand, TypeId};

    /// A function whose blocks hold a terminator each.
    fn function(terminators: Vec<InstKind>) -> Function {
        let blocks = (0..terminators.len() as u32)
            .map(|i| Block { first: InstId(i), end: InstId(i + 1) })
            .collect();
        let instructions = terminators
            .into_iter()
            .map(|kind| Instruction { kind, ty: TypeId(0), loc: None })
            .collect();
        Function {
            name: "f".into(),
            ty: TypeId(0),
            result: TypeId(0),
            params: Vec::new(),
            varargs: false,
            internal: false,
            mergeable: false,
            address_taken: false,
            intrinsic: false,
            noreturn: false,
            blocks,
            instructions,
            scope: None,
            variables: Vec::new(),
        }
    }

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
