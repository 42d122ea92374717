//! Which branches decide that a block is reached, as a person reads it: a failed assertion ends the program, and what
//! stands behind the assertion is not decided by it. So it is of a check that throws or panics, which leaves the function by
//! what it cleans up on the way.

use crate::dependence::PostDominators;
use crate::flow::Flow;
use crate::types::{BlockId, Function, InstId, InstKind, Operand};
use std::collections::BTreeSet;

/// In a larger function any branch may decide about any block.
const MOST_BLOCKS: usize = 4_096;

/// The branches of a function that `is_asked` for, and the blocks that each of them decides about.
pub(crate) fn decided(
    function: &Function,
    is_asked: &dyn Fn(&InstId) -> bool,
) -> Vec<(InstId, Vec<BlockId>)> {
    let branches = (0..).map(BlockId).zip(&function.blocks).filter_map(|(id, block)| {
        let last = block.terminator();
        let kind = &function.instructions.get(last.index())?.kind;
        let branch = matches!(kind, InstKind::CondBr(..) | InstKind::Switch { .. });
        (branch && is_asked(&last)).then_some((id, last))
    });
    let branches: Vec<(BlockId, InstId)> = branches.collect();
    if branches.is_empty() {
        return Vec::new();
    }
    let ends = to_ends(function);
    let all = || (0..function.blocks.len() as u32).map(BlockId);
    let decided_by = |branch| all().filter(|block| ends.decides(branch, *block)).collect();
    branches.into_iter().map(|(block, last)| (last, decided_by(block))).collect()
}

/// The blocks of a function whose branches decide that a block is reached, be it that they decide about such a branch, or
/// which value a local has that one goes by.
#[must_use]
pub fn deciding(function: &Function, block: BlockId) -> BTreeSet<BlockId> {
    let all = || (0..function.blocks.len() as u32).map(BlockId);
    if function.blocks.len() > MOST_BLOCKS {
        return all().collect();
    }
    let ends = to_ends(function);
    let mut found = BTreeSet::new();
    let mut asked = BTreeSet::new();
    let mut open = vec![block];
    while let Some(block) = open.pop() {
        if !asked.insert(block) {
            continue;
        }
        for branch in all().filter(|branch| ends.decides(*branch, block)) {
            if found.insert(branch) {
                open.push(branch);
            }
            let chosen = Origins::of(function, branch).blocks;
            found.extend(chosen.iter().filter(|block| ends_in_branch(function, **block)));
            open.extend(chosen);
        }
    }
    found
}

/// Does a block end in a branch?
fn ends_in_branch(function: &Function, block: BlockId) -> bool {
    let block = function.blocks.get(block.index());
    let last = block.and_then(|block| function.instructions.get(block.terminator().index()));
    last.is_some_and(|last| matches!(last.kind, InstKind::CondBr(..) | InstKind::Switch { .. }))
}

/// Where the value that a branch goes by may have been chosen: the blocks that it comes from in a loop or behind other
/// branches, and those that store it in a local variable.
struct Origins<'f> {
    function: &'f Function,
    seen: BTreeSet<InstId>,
    blocks: Vec<BlockId>,
}

impl<'f> Origins<'f> {
    fn of(function: &'f Function, branch: BlockId) -> Self {
        let mut origins = Self { function, seen: BTreeSet::new(), blocks: Vec::new() };
        let block = function.blocks.get(branch.index());
        let last = block.and_then(|block| function.instructions.get(block.terminator().index()));
        if let Some(InstKind::CondBr(operand, ..) | InstKind::Switch(operand, ..)) =
            last.map(|last| &last.kind)
        {
            origins.follow(*operand);
        }
        origins
    }

    fn follow(&mut self, operand: Operand) {
        let Operand::Inst(id) = operand else { return };
        if !self.seen.insert(id) {
            return;
        }
        let Some(instruction) = self.function.instructions.get(id.index()) else { return };
        match &instruction.kind {
            InstKind::Phi(incoming) => {
                for (from, operand) in incoming {
                    self.blocks.push(*from);
                    self.follow(*operand);
                }
            }
            InstKind::Load { address: Operand::Inst(local), .. } => self.stored(*local),
            InstKind::Binary(_, a, b) | InstKind::ICmp(_, a, b) | InstKind::FCmp(_, a, b) => {
                self.follow(*a);
                self.follow(*b);
            }
            InstKind::Cast(_, a) | InstKind::Freeze(a) | InstKind::ExtractValue(a, _) => {
                self.follow(*a);
            }
            InstKind::Select(condition, a, b) => {
                [condition, a, b].into_iter().for_each(|operand| self.follow(*operand));
            }
            _ => {}
        }
    }

    fn stored(&mut self, local: InstId) {
        let function = self.function;
        let is_local = function
            .instructions
            .get(local.index())
            .is_some_and(|it| matches!(it.kind, InstKind::Alloca { .. }));
        if !is_local {
            return;
        }
        for (at, instruction) in function.instructions.iter().enumerate() {
            if let InstKind::Store { address, value, .. } = &instruction.kind
                && *address == Operand::Inst(local)
            {
                self.blocks.extend(function.block_of(InstId(at as u32)));
                self.follow(*value);
            }
        }
    }
}

/// What every way from a block to the function's end passes. Ways that end the program, or leave the function by an
/// exception or panic, are none.
fn to_ends(function: &Function) -> PostDominators {
    let count = function.blocks.len();
    let flow = Flow::of(function);
    let all = || (0..count as u32).map(BlockId);
    let returns = |block: &BlockId| {
        let block = function.blocks.get(block.index());
        let last = block.and_then(|block| function.instructions.get(block.terminator().index()));
        last.is_some_and(|last| {
            let stops = matches!(last.kind, InstKind::Unreachable | InstKind::Resume(_));
            last.kind.successors().is_empty() && !stops
        })
    };
    let mut ends: Vec<BlockId> = all().filter(returns).collect();
    let mut goes_on = vec![false; count];
    reach(&flow, &ends, &mut goes_on);
    // Of a loop that nothing leads out of, every round has an end.
    for (header, latches) in flow.back_edges() {
        if !goes_on[header.index()] {
            reach(&flow, &latches, &mut goes_on);
            ends.extend(latches);
        }
    }
    let next: Vec<Vec<BlockId>> = all()
        .map(|block| {
            let targets = flow.after(block).iter().copied();
            targets.filter(|to| goes_on[to.index()]).collect()
        })
        .collect();
    PostDominators::of_ways(next, &ends)
}

/// Marks these blocks and those that lead to them.
fn reach(flow: &Flow, ends: &[BlockId], marked: &mut [bool]) {
    let mut open = ends.to_vec();
    while let Some(block) = open.pop() {
        if !std::mem::replace(&mut marked[block.index()], true) {
            open.extend(flow.before(block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::types::{ConstId, Instruction};

    /// What the branch of block 0 decides, in a function whose blocks only branch. A block without targets returns, one
    /// that leads to itself alone ends the program.
    fn decided_by_first(blocks: &[&[u32]]) -> Vec<u32> {
        let kind = |(at, targets): (u32, &&[u32])| match **targets {
            [only] if only == at => InstKind::Unreachable,
            _ => testing::terminator(targets),
        };
        let function = testing::function((0..).zip(blocks).map(kind).collect());
        let all = decided(&function, &|id| *id == InstId(0));
        all.into_iter().flat_map(|(_, blocks)| blocks).map(|block| block.0).collect()
    }

    /// A look that something else is done for, and the loop in which a thread waits (3).
    #[test]
    fn what_decides_a_wait_is_the_loop_around_it() {
        let blocks: [&[u32]; 6] = [&[1, 2], &[2], &[3, 4], &[2], &[5, 2], &[]];
        let kinds = blocks.iter().map(|targets| testing::terminator(targets)).collect();
        let function = testing::function(kinds);
        let found = deciding(&function, BlockId(3));
        assert_eq!(found, [BlockId(2), BlockId(4)].into());
    }

    /// A branch goes by what another one chose for it.
    #[test]
    fn what_chooses_the_value_that_a_branch_goes_by_decides_as_well() {
        let chosen = Operand::Const(ConstId(0));
        let phi = InstKind::Phi(vec![(BlockId(1), chosen), (BlockId(2), chosen)]);
        let kinds = vec![
            testing::terminator(&[1, 2]),
            testing::terminator(&[3]),
            testing::terminator(&[3]),
            InstKind::CondBr(Operand::Inst(InstId(6)), BlockId(4), BlockId(5)),
            testing::terminator(&[5]),
            testing::terminator(&[]),
        ];
        let mut function = testing::function(kinds);
        assert_eq!(deciding(&function, BlockId(4)), [BlockId(3)].into());
        let like = function.instructions[0].clone();
        function.instructions.push(Instruction { kind: phi, ..like });
        assert_eq!(deciding(&function, BlockId(4)), [BlockId(0), BlockId(3)].into());
    }

    #[test]
    fn what_stands_behind_a_branch_is_not_decided_by_it() {
        assert_eq!(decided_by_first(&[&[1, 2], &[3], &[3], &[]]), [1, 2]);
    }

    #[test]
    fn what_stands_behind_a_return_is_decided_by_it() {
        assert_eq!(decided_by_first(&[&[1, 2], &[], &[3], &[]]), [1, 2, 3]);
    }

    #[test]
    fn what_stands_behind_an_assertion_is_not() {
        assert_eq!(decided_by_first(&[&[1, 2], &[1], &[3], &[]]), Vec::<u32>::new());
    }

    /// A bounds check of Rust whose panic drops what the function owns.
    #[test]
    fn what_stands_behind_a_panic_that_cleans_up_is_not() {
        let nothing = Operand::Const(ConstId(0));
        let kinds = vec![
            testing::terminator(&[1, 2]),
            testing::terminator(&[3]),
            testing::terminator(&[]),
            InstKind::Resume(nothing),
        ];
        let function = testing::function(kinds);
        assert_eq!(decided(&function, &|id| *id == InstId(0)), [(InstId(0), Vec::new())]);
    }

    #[test]
    fn a_loop_without_an_end_is_no_decision() {
        // 0: c ? 1 : 2; 1: goto 2; 2: goto 0.
        assert_eq!(decided_by_first(&[&[1, 2], &[2], &[3], &[0, 0]]), [1]);
    }
}
