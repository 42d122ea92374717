//! The choices of a function's branches on their way to the path stream, see [`ir::regions`].
//!
//! The number that collects a region's bits is a value of its own: 1 where a region begins, at a
//! branch twice the number and the bit of the way taken, and a phi where ways meet.

use crate::build::Builder;
use ir::plan::FunctionPlan;
use ir::regions::{Choice, REGION_BITS, choice};
use ir::types::{BlockId, Function};
use llvm::Llvm;
use llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};
use std::collections::HashMap;

/// One function's numbers, by block.
pub struct Choices {
    choices: Vec<Option<Choice>>,
    /// Some branch chooses to go there.
    chosen: Vec<bool>,
    /// The phi at the start, where there may be bits.
    phis: Vec<Option<LLVMValueRef>>,
    /// The number at the end; `None` for 1.
    ends: Vec<Option<LLVMValueRef>>,
    /// LLVM's blocks.
    places: HashMap<LLVMBasicBlockRef, usize>,
}

impl Choices {
    /// Builds the phis: `first` gives a block's first instruction.
    ///
    /// # Safety
    /// The instructions must be alive, each the first of its block.
    pub unsafe fn begin(
        llvm: &Llvm,
        builder: &Builder,
        function: &Function,
        plan: &FunctionPlan,
        first: impl Fn(usize) -> Option<LLVMValueRef>,
    ) -> Self {
        let count = function.blocks.len();
        let choices: Vec<Option<Choice>> = function
            .blocks
            .iter()
            .map(|block| choice(&function.instructions.get(block.terminator().index())?.kind))
            .collect();
        let mut chosen = vec![false; count];
        for target in choices.iter().flatten().flat_map(|choice| &choice.targets) {
            if let Some(chosen) = chosen.get_mut(target.index()) {
                *chosen = true;
            }
        }
        let mut phis = vec![None; count];
        let mut places = HashMap::new();
        for (at, phi) in phis.iter_mut().enumerate() {
            let Some(first) = first(at) else { continue };
            // SAFETY: the instruction is alive and in a block.
            places.insert(unsafe { llvm.LLVMGetInstructionParent(first) }, at);
            if plan.regions.filled.get(at) == Some(&true) {
                builder.at_front(first);
                *phi = Some(builder.phi(builder.int_type(32)));
            }
        }
        Self { choices, chosen, phis, ends: vec![None; count], places }
    }

    /// The number at a block's start; `None` for 1.
    pub fn at_start(&self, block: usize) -> Option<LLVMValueRef> {
        self.phis.get(block).copied().flatten()
    }

    /// Does a choice lead to the block?
    pub fn is_chosen(&self, block: usize) -> bool {
        self.chosen.get(block) == Some(&true)
    }

    /// From which number on a region ends at the start of the block, if one ever does.
    pub fn most(&self, block: usize, plan: &FunctionPlan) -> Option<u32> {
        let bits = plan.regions.checks.get(block).copied().flatten()?;
        (bits < REGION_BITS).then_some(2 << bits)
    }

    /// Notes the number at a block's end.
    pub fn at_end(&mut self, block: usize, number: Option<LLVMValueRef>) {
        if let Some(end) = self.ends.get_mut(block) {
            *end = number;
        }
    }

    /// Joins the blocks' numbers, when all are known.
    ///
    /// # Safety
    /// The function and all of its instructions must be alive.
    pub unsafe fn join(&self, llvm: &Llvm, builder: &Builder, function: LLVMValueRef) {
        // SAFETY: as the caller promises; terminators are asked for their successors.
        unsafe {
            for block in llvm.blocks(function) {
                let terminator = llvm.LLVMGetBasicBlockTerminator(block);
                if terminator.is_null() {
                    continue;
                }
                builder.before(terminator);
                let from = self.places.get(&block).copied();
                let mut known = HashMap::new();
                for index in 0..llvm.LLVMGetNumSuccessors(terminator) {
                    let target = llvm.LLVMGetSuccessor(terminator, index);
                    let Some(&to) = self.places.get(&target) else { continue };
                    let Some(phi) = self.at_start(to) else { continue };
                    let mut number =
                        *known.entry(to).or_insert_with(|| self.on_edge(builder, from, to));
                    let mut block = block;
                    llvm.LLVMAddIncoming(phi, &raw mut number, &raw mut block, 1);
                }
            }
        }
    }

    /// The number on the way from one block to another. A block that the instrumenter made is
    /// behind a call.
    fn on_edge(&self, builder: &Builder, from: Option<usize>, to: usize) -> LLVMValueRef {
        let one = builder.i32(1);
        let Some(from) = from else { return one };
        let number = self.ends.get(from).copied().flatten();
        let Some(choice) = self.choices.get(from).and_then(Option::as_ref) else {
            return number.unwrap_or(one);
        };
        let target = BlockId(to as u32);
        let way = choice.targets.iter().position(|&known| known == target).unwrap_or(0) as u32;
        match number {
            None => builder.i32(1 << choice.bits | way),
            Some(number) => {
                let shifted = builder.mul(number, builder.i32(1 << choice.bits));
                if way == 0 { shifted } else { builder.add(shifted, builder.i32(way)) }
            }
        }
    }
}
