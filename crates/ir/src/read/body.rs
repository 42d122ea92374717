//! Function bodies.

use super::{ReadError, Reader, call};
use crate::types::{Block, Function, InstId, Instruction, LocId, Operand};
use llvm::llvm_sys::LLVMValueKind as Kind;
use llvm::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMValueRef};

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
