//! A builder of instructions over the LLVM-C API, reduced to what the hooks need.

use crate::hooks::Callable;
use llvm::Llvm;
use llvm_sys::LLVMIntPredicate;
use llvm_sys::prelude::{
    LLVMBasicBlockRef, LLVMBuilderRef, LLVMContextRef, LLVMTypeRef, LLVMValueRef,
};
use std::ffi::c_uint;

const NO_NAME: *const std::ffi::c_char = c"".as_ptr();

/// Builds instructions at one place. All values given to it must be of its context, and alive.
pub struct Builder {
    llvm: &'static Llvm,
    raw: LLVMBuilderRef,
    i32: LLVMTypeRef,
    i64: LLVMTypeRef,
    context: LLVMContextRef,
}

impl Builder {
    pub fn new(llvm: &'static Llvm, context: LLVMContextRef) -> Self {
        // SAFETY: the context is alive; the builder is disposed of in `drop`.
        unsafe {
            Self {
                llvm,
                raw: llvm.LLVMCreateBuilderInContext(context),
                i32: llvm.LLVMInt32TypeInContext(context),
                i64: llvm.LLVMInt64TypeInContext(context),
                context,
            }
        }
    }

    /// Goes before an instruction, and takes its source location on.
    pub fn before(&self, instruction: LLVMValueRef) {
        // SAFETY: the instruction is in a block.
        unsafe {
            self.llvm.LLVMPositionBuilderBefore(self.raw, instruction);
            let location = self.llvm.LLVMInstructionGetDebugLoc(instruction);
            self.llvm.LLVMSetCurrentDebugLocation2(self.raw, location);
        }
    }

    /// Goes to the front of the instruction's block, for a phi: debug records stay behind, and so do hooks
    /// that the block may begin with by now.
    pub fn at_front(&self, instruction: LLVMValueRef) {
        // SAFETY: the instruction is in a block, which has a first one therefore.
        unsafe {
            let block = self.llvm.LLVMGetInstructionParent(instruction);
            let first = self.llvm.LLVMGetFirstInstruction(block);
            self.llvm.LLVMPositionBuilderBeforeInstrAndDbgRecords(self.raw, first);
            let location = self.llvm.LLVMInstructionGetDebugLoc(first);
            self.llvm.LLVMSetCurrentDebugLocation2(self.raw, location);
        }
    }

    /// Goes to the end of a block that has no terminator yet; takes on the location of `like`.
    pub fn at_end(&self, block: LLVMBasicBlockRef, like: LLVMValueRef) {
        // SAFETY: block and instruction are alive.
        unsafe {
            self.llvm.LLVMPositionBuilderAtEnd(self.raw, block);
            let location = self.llvm.LLVMInstructionGetDebugLoc(like);
            self.llvm.LLVMSetCurrentDebugLocation2(self.raw, location);
        }
    }

    /// Puts an instruction that has no place in here.
    pub fn insert(&self, instruction: LLVMValueRef) {
        // SAFETY: the instruction was removed from its block before.
        unsafe { self.llvm.LLVMInsertIntoBuilder(self.raw, instruction) }
    }

    pub fn call(&self, callee: Callable, args: &mut [LLVMValueRef]) -> LLVMValueRef {
        let count = c_uint::try_from(args.len()).unwrap_or(0);
        // SAFETY: the callee is a function of this type, and the arguments have its types.
        unsafe {
            let (ty, value) = (callee.ty, callee.value);
            self.llvm.LLVMBuildCall2(self.raw, ty, value, args.as_mut_ptr(), count, NO_NAME)
        }
    }

    /// A place on the stack for 64 bits.
    pub fn stack_word(&self) -> LLVMValueRef {
        // SAFETY: the type is of this context.
        unsafe { self.llvm.LLVMBuildAlloca(self.raw, self.i64, NO_NAME) }
    }

    pub fn store(&self, value: LLVMValueRef, to: LLVMValueRef) {
        // SAFETY: `to` is a pointer to at least as many bytes.
        unsafe { self.llvm.LLVMBuildStore(self.raw, value, to) };
    }

    pub fn jump(&self, to: LLVMBasicBlockRef) {
        // SAFETY: the block is of the same function.
        unsafe { self.llvm.LLVMBuildBr(self.raw, to) };
    }

    /// Goes to the end of a block of a function without source locations.
    pub fn to(&self, block: LLVMBasicBlockRef) {
        // SAFETY: the block is alive.
        unsafe { self.llvm.LLVMPositionBuilderAtEnd(self.raw, block) };
    }

    pub fn branch(&self, on: LLVMValueRef, then: LLVMBasicBlockRef, otherwise: LLVMBasicBlockRef) {
        // SAFETY: the condition is a truth value, and the blocks are of the same function.
        unsafe { self.llvm.LLVMBuildCondBr(self.raw, on, then, otherwise) };
    }

    /// Returns from a function without a result.
    pub fn end(&self) {
        // SAFETY: the builder stands at the end of a block.
        unsafe { self.llvm.LLVMBuildRetVoid(self.raw) };
    }

    pub fn phi(&self, ty: LLVMTypeRef) -> LLVMValueRef {
        // SAFETY: the type is of this context.
        unsafe { self.llvm.LLVMBuildPhi(self.raw, ty, NO_NAME) }
    }

    pub fn truth(&self, value: bool) -> LLVMValueRef {
        // SAFETY: the type is an integer type.
        unsafe { self.llvm.LLVMConstInt(self.int_type(1), value.into(), 0) }
    }

    pub fn i8(&self, value: u8) -> LLVMValueRef {
        // SAFETY: the type is an integer type.
        unsafe { self.llvm.LLVMConstInt(self.int_type(8), u64::from(value), 0) }
    }

    pub fn i32(&self, value: u32) -> LLVMValueRef {
        // SAFETY: the type is an integer type.
        unsafe { self.llvm.LLVMConstInt(self.i32, u64::from(value), 0) }
    }

    pub fn i64(&self, value: u64) -> LLVMValueRef {
        // SAFETY: the type is an integer type.
        unsafe { self.llvm.LLVMConstInt(self.i64, value, 0) }
    }

    pub fn null(&self) -> LLVMValueRef {
        // SAFETY: the type is a pointer type of this context.
        unsafe { self.llvm.LLVMConstNull(self.llvm.LLVMPointerTypeInContext(self.context, 0)) }
    }

    /// The integer type of that width.
    pub fn int_type(&self, bits: u32) -> LLVMTypeRef {
        // SAFETY: the context is alive.
        unsafe { self.llvm.LLVMIntTypeInContext(self.context, bits) }
    }

    pub fn load_i32(&self, from: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: `from` is a pointer.
        unsafe { self.llvm.LLVMBuildLoad2(self.raw, self.i32, from, NO_NAME) }
    }

    pub fn load_pointer(&self, from: LLVMValueRef, offset: u64) -> LLVMValueRef {
        // SAFETY: `from` is a pointer to at least `offset` and eight bytes.
        unsafe {
            let byte = self.llvm.LLVMInt8TypeInContext(self.context);
            let mut index = [self.i64(offset)];
            let place =
                self.llvm.LLVMBuildGEP2(self.raw, byte, from, index.as_mut_ptr(), 1, NO_NAME);
            let pointer = self.llvm.LLVMPointerTypeInContext(self.context, 0);
            self.llvm.LLVMBuildLoad2(self.raw, pointer, place, NO_NAME)
        }
    }

    pub fn add(&self, a: LLVMValueRef, b: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: both are integers of one type.
        unsafe { self.llvm.LLVMBuildAdd(self.raw, a, b, NO_NAME) }
    }

    pub fn mul(&self, a: LLVMValueRef, b: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: both are integers of one type.
        unsafe { self.llvm.LLVMBuildMul(self.raw, a, b, NO_NAME) }
    }

    pub fn and(&self, a: LLVMValueRef, b: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: both are integers of one type.
        unsafe { self.llvm.LLVMBuildAnd(self.raw, a, b, NO_NAME) }
    }

    pub fn or(&self, a: LLVMValueRef, b: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: both are integers of one type.
        unsafe { self.llvm.LLVMBuildOr(self.raw, a, b, NO_NAME) }
    }

    pub fn sub(&self, a: LLVMValueRef, b: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: both are integers of one type.
        unsafe { self.llvm.LLVMBuildSub(self.raw, a, b, NO_NAME) }
    }

    pub fn compare(
        &self,
        predicate: LLVMIntPredicate,
        a: LLVMValueRef,
        b: LLVMValueRef,
    ) -> LLVMValueRef {
        // SAFETY: both are integers of one type.
        unsafe { self.llvm.LLVMBuildICmp(self.raw, predicate, a, b, NO_NAME) }
    }

    pub fn select(
        &self,
        condition: LLVMValueRef,
        a: LLVMValueRef,
        b: LLVMValueRef,
    ) -> LLVMValueRef {
        // SAFETY: the condition is a truth value, and the others are of one type.
        unsafe { self.llvm.LLVMBuildSelect(self.raw, condition, a, b, NO_NAME) }
    }

    pub fn number_to_pointer(&self, value: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: the value is an integer.
        unsafe {
            let pointer = self.llvm.LLVMPointerTypeInContext(self.context, 0);
            self.llvm.LLVMBuildIntToPtr(self.raw, value, pointer, NO_NAME)
        }
    }

    /// The smaller of two numbers, without sign.
    pub fn min(&self, a: LLVMValueRef, b: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: both are integers of one type.
        unsafe {
            let less = LLVMIntPredicate::LLVMIntULT;
            let condition = self.llvm.LLVMBuildICmp(self.raw, less, a, b, NO_NAME);
            self.llvm.LLVMBuildSelect(self.raw, condition, a, b, NO_NAME)
        }
    }

    /// `otherwise` where `a` is negative, else `b`.
    pub fn unless_negative(
        &self,
        a: LLVMValueRef,
        b: LLVMValueRef,
        otherwise: LLVMValueRef,
    ) -> LLVMValueRef {
        // SAFETY: all are 64-bit integers.
        unsafe {
            let less = LLVMIntPredicate::LLVMIntSLT;
            let condition = self.llvm.LLVMBuildICmp(self.raw, less, a, self.i64(0), NO_NAME);
            self.llvm.LLVMBuildSelect(self.raw, condition, otherwise, b, NO_NAME)
        }
    }

    /// An integer widened or cut to 64 bits.
    pub fn to_i64(&self, value: LLVMValueRef, signed: bool) -> LLVMValueRef {
        // SAFETY: the value is an integer.
        unsafe { self.llvm.LLVMBuildIntCast2(self.raw, value, self.i64, signed.into(), NO_NAME) }
    }

    /// The integer with zeros above it, `bits` wide.
    pub fn to_int(&self, value: LLVMValueRef, bits: u32) -> LLVMValueRef {
        // SAFETY: the value is an integer.
        unsafe { self.llvm.LLVMBuildIntCast2(self.raw, value, self.int_type(bits), 0, NO_NAME) }
    }

    pub fn pointer_to_i64(&self, value: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: the value is a pointer.
        unsafe { self.llvm.LLVMBuildPtrToInt(self.raw, value, self.i64, NO_NAME) }
    }

    /// The same bits as an integer of `bits` width.
    pub fn bits(&self, value: LLVMValueRef, bits: u32) -> LLVMValueRef {
        // SAFETY: the value has that many bits.
        unsafe { self.llvm.LLVMBuildBitCast(self.raw, value, self.int_type(bits), NO_NAME) }
    }

    /// Bits `64 * word` to `64 * word + 63` of an integer of `bits` width.
    pub fn word(&self, value: LLVMValueRef, bits: u32, word: u32) -> LLVMValueRef {
        // SAFETY: the value is an integer of that width.
        unsafe {
            let amount = self.llvm.LLVMConstInt(self.int_type(bits), u64::from(word) * 64, 0);
            let shifted = self.llvm.LLVMBuildLShr(self.raw, value, amount, NO_NAME);
            self.to_i64(shifted, false)
        }
    }

    pub fn field(&self, aggregate: LLVMValueRef, index: u32) -> LLVMValueRef {
        // SAFETY: the value is an aggregate with that element.
        unsafe { self.llvm.LLVMBuildExtractValue(self.raw, aggregate, index, NO_NAME) }
    }

    pub fn lane(&self, vector: LLVMValueRef, index: u32) -> LLVMValueRef {
        // SAFETY: the value is a vector with that element.
        unsafe { self.llvm.LLVMBuildExtractElement(self.raw, vector, self.i32(index), NO_NAME) }
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        // SAFETY: the builder is ours.
        unsafe { self.llvm.LLVMDisposeBuilder(self.raw) }
    }
}
