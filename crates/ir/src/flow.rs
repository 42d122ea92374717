//! The control flow of a function: what leads to what, and what every way passes.

use crate::types::{BlockId, Function};
use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::DfsPostOrder;
use std::collections::{BTreeMap, BTreeSet};

/// The control flow graph of a function. Edges to blocks that it does not have are left out.
pub(crate) struct Flow {
    successors: Vec<Vec<BlockId>>,
    predecessors: Vec<Vec<BlockId>>,
    /// Per block that can be reached: its number in an order in which a block comes behind those that
    /// it leads to, but for loops.
    finished: Vec<Option<usize>>,
    /// None without an edge that goes back in that order.
    dominators: Option<Dominators<NodeIndex>>,
}

impl Flow {
    pub fn of(function: &Function) -> Self {
        let count = function.blocks.len();
        let successors: Vec<Vec<BlockId>> = function
            .blocks
            .iter()
            .map(|block| {
                let last = function.instructions.get(block.terminator().index());
                let next = last.map(|last| last.kind.successors()).unwrap_or_default();
                next.into_iter().filter(|to| to.index() < count).collect()
            })
            .collect();
        let mut graph: DiGraph<(), ()> = DiGraph::new();
        let nodes: Vec<NodeIndex> = (0..count).map(|_| graph.add_node(())).collect();
        let mut predecessors = vec![Vec::new(); count];
        for (from, targets) in (0..).map(BlockId).zip(&successors) {
            for to in targets {
                predecessors[to.index()].push(from);
                graph.add_edge(nodes[from.index()], nodes[to.index()], ());
            }
        }
        let (mut finished, mut dominators) = (vec![None; count], None);
        if let Some(&entry) = nodes.first() {
            let mut search = DfsPostOrder::new(&graph, entry);
            let mut number = 0..;
            while let Some(node) = search.next(&graph) {
                finished[node.index()] = number.next();
            }
            let goes_back = |edge| {
                let ends = graph.edge_endpoints(edge);
                ends.is_some_and(|(from, to)| is_back(&finished, from.index(), to.index()))
            };
            if graph.edge_indices().any(goes_back) {
                dominators = Some(simple_fast(&graph, entry));
            }
        }
        Self { successors, predecessors, finished, dominators }
    }

    /// The blocks that control goes to behind a block.
    pub fn after(&self, block: BlockId) -> &[BlockId] {
        self.successors.get(block.index()).map_or(&[], Vec::as_slice)
    }

    /// The blocks that control comes to a block from.
    pub fn before(&self, block: BlockId) -> &[BlockId] {
        self.predecessors.get(block.index()).map_or(&[], Vec::as_slice)
    }

    /// These blocks, each behind those that lead to it, but for loops.
    pub fn in_order(&self, blocks: &BTreeSet<BlockId>) -> Vec<BlockId> {
        let mut order: Vec<BlockId> = blocks.iter().copied().collect();
        let finished = |block: &BlockId| self.finished.get(block.index()).copied().flatten();
        order.sort_by_key(|block| std::cmp::Reverse(finished(block)));
        order
    }

    /// Does every way to `block` pass `above`? Only asked where there are loops.
    pub fn dominates(&self, above: BlockId, block: BlockId) -> bool {
        let Some(tree) = &self.dominators else { return above == block };
        let chain = tree.dominators(NodeIndex::new(block.index()));
        chain.is_some_and(|mut chain| chain.any(|node| node.index() == above.index()))
    }

    /// The headers of natural loops, each with where control comes back to it from.
    pub fn back_edges(&self) -> BTreeMap<BlockId, Vec<BlockId>> {
        let mut back: BTreeMap<BlockId, Vec<BlockId>> = BTreeMap::new();
        if self.dominators.is_none() {
            return back;
        }
        for (from, targets) in (0..).map(BlockId).zip(&self.successors) {
            for &to in targets {
                if is_back(&self.finished, from.index(), to.index()) && self.dominates(to, from) {
                    let latches = back.entry(to).or_default();
                    if !latches.contains(&from) {
                        latches.push(from);
                    }
                }
            }
        }
        back
    }
}

/// Does an edge between blocks that can be reached go back, or stay?
fn is_back(finished: &[Option<usize>], from: usize, to: usize) -> bool {
    finished[from].is_some() && finished[to] >= finished[from]
}
