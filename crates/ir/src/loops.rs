//! Natural loops: a header dominates the blocks from which control comes back to it.

use crate::types::{BlockId, Function};

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
        let count = function.blocks.len();
        let successors: Vec<Vec<usize>> = function
            .blocks
            .iter()
            .map(|block| {
                let last = block.instructions().last();
                let last = last.and_then(|id| function.instructions.get(id.index()));
                let next = last.map(|inst| inst.kind.successors()).unwrap_or_default();
                next.iter().map(|id| id.index()).filter(|&to| to < count).collect()
            })
            .collect();
        let order = reverse_postorder(&successors);
        let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); count];
        for &from in &order {
            for &to in &successors[from] {
                predecessors[to].push(from);
            }
        }
        let dominators = dominators(&order, &predecessors);
        let mut found = Self { at: vec![None; count], loops: Vec::new() };
        for &from in &order {
            for &to in &successors[from] {
                if dominates(&dominators, to, from) {
                    found.add(from, to, &predecessors);
                }
            }
        }
        found
    }

    fn add(&mut self, latch: usize, header: usize, predecessors: &[Vec<usize>]) {
        let index = match self.at[header] {
            Some(index) => index as usize,
            None => {
                self.at[header] = Some(self.loops.len() as u32);
                let mut body = vec![false; self.at.len()];
                body[header] = true;
                let header = BlockId(header as u32);
                self.loops.push(Loop { header, latches: Vec::new(), body });
                self.loops.len() - 1
            }
        };
        let found = &mut self.loops[index];
        let latch_id = BlockId(latch as u32);
        if !found.latches.contains(&latch_id) {
            found.latches.push(latch_id);
        }
        let mut open = vec![latch];
        while let Some(block) = open.pop() {
            if !std::mem::replace(&mut found.body[block], true) {
                open.extend(&predecessors[block]);
            }
        }
    }

    /// The loop that begins at a block.
    #[must_use]
    pub fn at(&self, header: BlockId) -> Option<&Loop> {
        let index = (*self.at.get(header.index())?)?;
        self.loops.get(index as usize)
    }
}

/// The blocks that can be reached from the first one.
fn reverse_postorder(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; successors.len()];
    let mut order = Vec::with_capacity(successors.len());
    let mut open: Vec<(usize, usize)> = Vec::new();
    if let Some(first) = seen.first_mut() {
        *first = true;
        open.push((0, 0));
    }
    while let Some((block, next)) = open.pop() {
        match successors[block].get(next) {
            Some(&to) => {
                open.push((block, next + 1));
                if !std::mem::replace(&mut seen[to], true) {
                    open.push((to, 0));
                }
            }
            None => order.push(block),
        }
    }
    order.reverse();
    order
}

/// By block that can be reached: its place in the order, and the place of its immediate dominator.
struct Dominators {
    place: Vec<Option<usize>>,
    immediate: Vec<usize>,
}

/// The algorithm of Cooper, Harvey and Kennedy: immediate dominators until nothing changes.
fn dominators(order: &[usize], predecessors: &[Vec<usize>]) -> Dominators {
    const NONE: usize = usize::MAX;
    let mut place = vec![None; predecessors.len()];
    for (at, &block) in order.iter().enumerate() {
        place[block] = Some(at);
    }
    let mut immediate = vec![NONE; order.len()];
    if let Some(first) = immediate.first_mut() {
        *first = 0;
    }
    let meet = |immediate: &[usize], mut a: usize, mut b: usize| {
        while a != b {
            while a > b {
                a = immediate[a];
            }
            while b > a {
                b = immediate[b];
            }
        }
        a
    };
    let mut changed = true;
    while changed {
        changed = false;
        for (at, &block) in order.iter().enumerate().skip(1) {
            let before = predecessors[block].iter().filter_map(|&from| place[from]);
            let known = before.filter(|&from| immediate[from] != NONE);
            let new = known.reduce(|a, b| meet(&immediate, a, b)).unwrap_or(0);
            if immediate[at] != new {
                immediate[at] = new;
                changed = true;
            }
        }
    }
    Dominators { place, immediate }
}

fn dominates(dominators: &Dominators, above: usize, below: usize) -> bool {
    let (Some(above), Some(mut at)) = (dominators.place[above], dominators.place[below]) else {
        return false;
    };
    while at > above {
        at = dominators.immediate[at];
    }
    at == above
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Block, ConstId, InstId, InstKind, Instruction, Operand, TypeId};

    /// A function whose blocks only branch: block `i` to `blocks[i]`.
    fn function(blocks: &[&[u32]]) -> Function {
        let condition = Operand::Const(ConstId(0));
        let kind = |targets: &[u32]| match *targets {
            [] => InstKind::Ret(None),
            [only] => InstKind::Br(BlockId(only)),
            [a, b, ..] => InstKind::CondBr(condition, BlockId(a), BlockId(b)),
        };
        let instructions = blocks
            .iter()
            .map(|targets| Instruction { kind: kind(targets), ty: TypeId(0), loc: None })
            .collect();
        let blocks = (0..blocks.len() as u32)
            .map(|at| Block { first: InstId(at), end: InstId(at + 1) })
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
