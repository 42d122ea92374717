//! Function bodies.

use super::{ReadError, Reader, call};
use crate::types::{Block, Function, InstId, Instruction, LocId, Operand};
use llvm::llvm_sys::LLVMValueKind as Kind;
use llvm::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};

/// So many instructions of other blocks are looked at for the line of one that has none.
const NEAR: usize = 1000;

impl Reader<'_> {
    /// Numbers the parameters and instructions of a function.
    pub(super) fn number(&mut self, function: LLVMValueRef) -> Result<(), ReadError> {
        for index in 0..call!(self, LLVMCountParams(function)) {
            let param = call!(self, LLVMGetParam(function, index));
            self.values.insert(param, Operand::Param(index));
        }
        let mut next = 0_u32;
        // SAFETY: the function and its blocks are alive.
        unsafe {
            for block in self.llvm.blocks(function) {
                for instruction in self.llvm.instructions(block) {
                    self.values.insert(instruction, Operand::Inst(InstId(next)));
                    next = next.checked_add(1).ok_or(ReadError::TooLarge("instructions"))?;
                }
            }
        }
        Ok(())
    }

    /// Converts the body of `source` into `target`.
    pub(super) fn body(&mut self, source: LLVMValueRef, target: &mut Function) {
        // SAFETY: the function is alive.
        let blocks: Vec<LLVMBasicBlockRef> = unsafe { self.llvm.blocks(source) }.collect();
        let mut end = 0;
        for block in blocks {
            let first = end;
            // SAFETY: the block is alive.
            let instructions: Vec<LLVMValueRef> =
                unsafe { self.llvm.instructions(block) }.collect();
            for instruction in instructions {
                let converted = Instruction {
                    kind: self.instruction(instruction),
                    ty: self.ty(call!(self, LLVMTypeOf(instruction))),
                    loc: self.instruction_location(instruction),
                };
                target.instructions.push(converted);
                end += 1;
            }
            target.blocks.push(Block { first: InstId(first), end: InstId(end) });
        }
        self.place_merged_code(target);
    }

    /// Code that the optimiser made of several lines has line 0, which tells nobody anything: it
    /// gets the line of the nearest instruction of the same function of the source that has one,
    /// in its own block if there is one there, else in a block that leads there, before rather than
    /// after it, as a debugger that steps over it stays where it was.
    fn place_merged_code(&mut self, target: &mut Function) {
        let leading = leading_to(target);
        let numbered = target.blocks.iter().zip(&leading);
        let found: Vec<(usize, LocId)> = numbered
            .flat_map(|(block, leading)| {
                (block.first.index()..block.end.index()).map(move |at| (block, leading, at))
            })
            .filter_map(|(block, leading, at)| {
                let unplaced = target.instructions[at].loc.filter(|loc| self.line(*loc) == 0)?;
                let fits = |other: &usize| {
                    let loc = target.instructions[*other].loc;
                    loc.is_some_and(|loc| self.line(loc) != 0 && self.same_code(loc, unplaced))
                };
                let (first, end) = (block.first.index(), block.end.index());
                let before = (first..at).rev().find(fits);
                // How the block is left may be the head of the loop around it.
                let near = before.or_else(|| (at + 1..end.saturating_sub(1)).find(fits));
                let near = near.or_else(|| {
                    let mut ways = leading.iter().filter_map(|way| target.blocks.get(*way));
                    ways.find_map(|way| (way.first.index()..way.end.index()).rev().find(fits))
                });
                let near = near.or_else(|| (at + 1..end).find(fits));
                let near = near.or_else(|| (0..first).rev().take(NEAR).find(fits));
                let rest = end..target.instructions.len();
                let near = near.or_else(|| rest.take(NEAR).find(fits))?;
                Some((at, target.instructions[near].loc?))
            })
            .collect();
        for (at, loc) in found {
            target.instructions[at].loc = Some(loc);
        }
    }

    fn line(&self, loc: LocId) -> u32 {
        self.module.debug.locations.get(loc.index()).map_or(0, |location| location.line)
    }

    /// Are both places in one function of the source, inlined by the same call if at all?
    fn same_code(&self, one: LocId, other: LocId) -> bool {
        let debug = &self.module.debug;
        let place = |loc: LocId| {
            let location = debug.locations.get(loc.index())?;
            let scope = debug.scopes.get(location.scope.index())?;
            Some((location.inlined_at, &scope.file, &scope.function))
        };
        place(one).is_some() && place(one) == place(other)
    }

    /// What an instruction uses.
    pub(super) fn operand(&mut self, value: LLVMValueRef) -> Operand {
        const BLOCK: i32 = Kind::LLVMBasicBlockValueKind as i32;
        const METADATA: i32 = Kind::LLVMMetadataAsValueValueKind as i32;
        const ASM: i32 = Kind::LLVMInlineAsmValueKind as i32;
        if value.is_null() {
            return Operand::Other;
        }
        if let Some(&operand) = self.values.get(&value) {
            return operand;
        }
        if matches!(call!(self, LLVMGetValueKind(value)), BLOCK | METADATA | ASM)
            || call!(self, LLVMIsConstant(value)) == 0
        {
            return Operand::Other;
        }
        Operand::Const(self.constant(value))
    }

    fn instruction_location(&mut self, instruction: LLVMValueRef) -> Option<LocId> {
        let location = call!(self, LLVMInstructionGetDebugLoc(instruction));
        self.location(location)
    }
}

/// Per block, the blocks that control comes from.
fn leading_to(function: &Function) -> Vec<Vec<usize>> {
    let mut leading = vec![Vec::new(); function.blocks.len()];
    for (number, block) in function.blocks.iter().enumerate() {
        let last = block.end.index().checked_sub(1).and_then(|at| function.instructions.get(at));
        for next in last.map(|last| last.kind.successors()).unwrap_or_default() {
            if let Some(ways) = leading.get_mut(next.index()) {
                ways.push(number);
            }
        }
    }
    leading
}
