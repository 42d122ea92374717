//! The headers of loops that wait, see [`ir::repeats`]: is the header entered at the end of a
//! round?

use crate::build::Builder;
use ir::types::{BlockId, Function};
use llvm::Llvm;
use llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};
use std::collections::{BTreeMap, BTreeSet};
use trace_format::layout::loop_number;

/// One function's headers: at each a phi that tells.
///
/// Where a block of a loop can be reached from elsewhere, too, a phi of its own says whether control has
/// been in the loop since the header.
pub struct Repeats {
    headers: BTreeMap<BlockId, Header>,
    /// The function's blocks, without those that were put on edges.
    blocks: BTreeSet<LLVMBasicBlockRef>,
}

struct Header {
    /// See [`loop_number`].
    number: u16,
    again: LLVMValueRef,
    place: LLVMBasicBlockRef,
    /// The loop's other blocks, and what says that control came from the header; `None` where it always
    /// does.
    within: BTreeMap<LLVMBasicBlockRef, Option<LLVMValueRef>>,
}

impl Repeats {
    /// Builds the phis: `first` gives a block's first instruction.
    ///
    /// # Safety
    /// The instructions must be alive, each the first of its block.
    pub unsafe fn begin(
        llvm: &Llvm,
        builder: &Builder,
        (function, repeats): (&Function, &ir::repeats::Repeats),
        first: impl Fn(usize) -> Option<LLVMValueRef>,
    ) -> Self {
        // SAFETY: the instruction is alive and in a block.
        let place = |first| unsafe { llvm.LLVMGetInstructionParent(first) };
        let phi = |first| {
            builder.at_front(first);
            builder.phi(builder.int_type(1))
        };
        let (mut headers, mut blocks) = (BTreeMap::new(), BTreeSet::new());
        if !repeats.is_empty() {
            blocks = (0..function.blocks.len()).filter_map(&first).map(place).collect();
        }
        for (&header, found) in repeats {
            let Some(start) = first(header.index()) else { continue };
            let reachable = from_outside(function, header, &found.blocks);
            let mut within = BTreeMap::new();
            for block in found.blocks.iter().filter(|block| **block != header) {
                let Some(first) = first(block.index()) else { continue };
                within.insert(place(first), reachable.contains(block).then(|| phi(first)));
            }
            let number = loop_number(header.0, found.certain);
            headers
                .insert(header, Header { number, again: phi(start), place: place(start), within });
        }
        Self { headers, blocks }
    }

    /// Whether the block is entered at the end of a round, and the loop's number; `None` when it is no header.
    pub fn again(&self, block: usize) -> Option<(LLVMValueRef, u16)> {
        self.headers.get(&BlockId(block as u32)).map(|header| (header.again, header.number))
    }

    /// Tells the phis where control comes from.
    ///
    /// # Safety
    /// The function and all of its instructions must be alive.
    pub unsafe fn join(&self, llvm: &Llvm, builder: &Builder, function: LLVMValueRef) {
        let edges = self.edges(llvm, function);
        for header in self.headers.values() {
            // SAFETY: as the caller promises; terminators are asked for their successors.
            unsafe {
                for mut block in llvm.blocks(function) {
                    let terminator = llvm.LLVMGetBasicBlockTerminator(block);
                    if terminator.is_null() {
                        continue;
                    }
                    let from = edges.get(&block).copied().unwrap_or(block);
                    let mut since = match header.within.get(&from) {
                        Some(&Some(since)) => since,
                        Some(None) => builder.truth(true),
                        None => builder.truth(from == header.place),
                    };
                    for index in 0..llvm.LLVMGetNumSuccessors(terminator) {
                        let target = llvm.LLVMGetSuccessor(terminator, index);
                        let phi = match header.within.get(&target) {
                            Some(&phi) => phi,
                            None => (target == header.place).then_some(header.again),
                        };
                        if let Some(phi) = phi {
                            llvm.LLVMAddIncoming(phi, &raw mut since, &raw mut block, 1);
                        }
                    }
                }
            }
        }
    }
}

impl Repeats {
    /// Where the blocks on edges come from.
    fn edges(
        &self,
        llvm: &Llvm,
        function: LLVMValueRef,
    ) -> BTreeMap<LLVMBasicBlockRef, LLVMBasicBlockRef> {
        let mut edges = BTreeMap::new();
        // SAFETY: the caller of `join` vouches for the function; terminators are asked for their successors.
        unsafe {
            for block in llvm.blocks(function).filter(|_| !self.headers.is_empty()) {
                let terminator = llvm.LLVMGetBasicBlockTerminator(block);
                if terminator.is_null() {
                    continue;
                }
                for index in 0..llvm.LLVMGetNumSuccessors(terminator) {
                    let target = llvm.LLVMGetSuccessor(terminator, index);
                    if !self.blocks.contains(&target) && self.blocks.contains(&block) {
                        edges.insert(target, block);
                    }
                }
            }
        }
        edges
    }
}

/// The blocks of a loop, without its header, that can be reached from others without passing it.
fn from_outside(
    function: &Function,
    header: BlockId,
    blocks: &BTreeSet<BlockId>,
) -> BTreeSet<BlockId> {
    let mut found = BTreeSet::new();
    let mut work: Vec<BlockId> = (0..function.blocks.len() as u32).map(BlockId).collect();
    work.retain(|block| !blocks.contains(block));
    while let Some(block) = work.pop() {
        let last = function.blocks.get(block.index()).map(|block| block.terminator().index());
        let last = last.and_then(|last| function.instructions.get(last));
        for target in last.map(|last| last.kind.successors()).unwrap_or_default() {
            if target != header && blocks.contains(&target) && found.insert(target) {
                work.push(target);
            }
        }
    }
    found
}
