//! Instructions, and constant expressions, which share their operations.

use super::{Reader, call};
use crate::types::{
    BinaryOp, BlockId, Call, Callee, CastOp, ConstantKind, FloatPredicate, GepTerm, InstKind,
    IntPredicate, Operand, Ordering, RmwOp, Type,
};
use llvm::llvm_sys::prelude::{LLVMBasicBlockRef, LLVMTypeRef, LLVMValueRef};

/// Opcodes as `LLVMGetInstructionOpcode` returns them; a newer LLVM may return others.
pub(super) mod opcode {
    use llvm::llvm_sys::LLVMOpcode as Op;
    macro_rules! opcodes {
        ($($name:ident = $op:ident,)*) => { $( pub(crate) const $name: i32 = Op::$op as i32; )* };
    }
    opcodes! {
        RET = LLVMRet,
        BR = LLVMBr,
        SWITCH = LLVMSwitch,
        INDIRECT_BR = LLVMIndirectBr,
        INVOKE = LLVMInvoke,
        UNREACHABLE = LLVMUnreachable,
        F_NEG = LLVMFNeg,
        ALLOCA = LLVMAlloca,
        LOAD = LLVMLoad,
        STORE = LLVMStore,
        GEP = LLVMGetElementPtr,
        I_CMP = LLVMICmp,
        F_CMP = LLVMFCmp,
        PHI = LLVMPHI,
        CALL = LLVMCall,
        SELECT = LLVMSelect,
        VA_ARG = LLVMVAArg,
        EXTRACT_ELEMENT = LLVMExtractElement,
        INSERT_ELEMENT = LLVMInsertElement,
        SHUFFLE_VECTOR = LLVMShuffleVector,
        EXTRACT_VALUE = LLVMExtractValue,
        INSERT_VALUE = LLVMInsertValue,
        FREEZE = LLVMFreeze,
        FENCE = LLVMFence,
        CMP_XCHG = LLVMAtomicCmpXchg,
        RMW = LLVMAtomicRMW,
        RESUME = LLVMResume,
        LANDING_PAD = LLVMLandingPad,
        BIT_CAST = LLVMBitCast,
        ADDR_SPACE_CAST = LLVMAddrSpaceCast,
    }
}

/// `LLVMGetTailCallKind` of a `musttail` call.
const MUST_TAIL: i32 = llvm::llvm_sys::LLVMTailCallKind::LLVMTailCallKindMustTail as i32;

impl Reader<'_> {
    /// What an instruction does.
    pub(super) fn instruction(&mut self, value: LLVMValueRef) -> InstKind {
        let code = call!(self, LLVMGetInstructionOpcode(value));
        self.control_flow(code, value)
            .or_else(|| self.memory(code, value))
            .or_else(|| self.simple_instruction(code, value))
            .unwrap_or_else(|| self.other(value))
    }

    /// An instruction that this reader does not know.
    fn other(&mut self, value: LLVMValueRef) -> InstKind {
        let text = self.text(value);
        let text = text.trim_start();
        let text = match text.split_once(" = ") {
            Some((name, rest)) if name.starts_with('%') => rest,
            _ => text,
        };
        let name = text.split(' ').next().unwrap_or_default().to_owned();
        InstKind::Other(name, self.operand_list(value))
    }

    fn operand_list(&mut self, value: LLVMValueRef) -> Vec<Operand> {
        // SAFETY: the value is alive.
        let values: Vec<LLVMValueRef> = unsafe { self.llvm.operands(value) }.collect();
        values.into_iter().map(|value| self.operand(value)).collect()
    }

    fn operand_at(&mut self, value: LLVMValueRef, index: u32) -> Operand {
        let operand = call!(self, LLVMGetOperand(value, index));
        self.operand(operand)
    }

    /// The number of a block of the function at hand.
    fn block(&self, block: LLVMBasicBlockRef) -> BlockId {
        self.blocks.get(&block).map_or(BlockId(0), |(_, block)| *block)
    }

    fn successor(&self, value: LLVMValueRef, index: u32) -> BlockId {
        self.block(call!(self, LLVMGetSuccessor(value, index)))
    }

    fn control_flow(&mut self, code: i32, value: LLVMValueRef) -> Option<InstKind> {
        Some(match code {
            opcode::RET => {
                let some = call!(self, LLVMGetNumOperands(value)) > 0;
                InstKind::Ret(some.then(|| self.operand_at(value, 0)))
            }
            opcode::BR if call!(self, LLVMGetNumSuccessors(value)) == 2 => {
                let condition = self.operand(call!(self, LLVMGetCondition(value)));
                InstKind::CondBr(condition, self.successor(value, 0), self.successor(value, 1))
            }
            opcode::BR => InstKind::Br(self.successor(value, 0)),
            opcode::SWITCH => self.switch(value),
            opcode::INDIRECT_BR => {
                let count = call!(self, LLVMGetNumSuccessors(value));
                let targets = (0..count).map(|index| self.successor(value, index)).collect();
                InstKind::IndirectBr(self.operand_at(value, 0), targets)
            }
            opcode::INVOKE => InstKind::Invoke {
                call: self.call(value),
                normal: self.block(call!(self, LLVMGetNormalDest(value))),
                unwind: self.block(call!(self, LLVMGetUnwindDest(value))),
            },
            opcode::RESUME => InstKind::Resume(self.operand_at(value, 0)),
            opcode::UNREACHABLE => InstKind::Unreachable,
            opcode::CALL => InstKind::Call(self.call(value)),
            opcode::PHI => self.phi(value),
            opcode::LANDING_PAD => InstKind::LandingPad,
            _ => return None,
        })
    }

    fn switch(&mut self, value: LLVMValueRef) -> InstKind {
        let count = call!(self, LLVMGetNumSuccessors(value));
        let mut cases = Vec::new();
        for index in 1..count {
            let case = match self.llvm.LLVMGetSwitchCaseValue() {
                // SAFETY: the index of a case is that of its successor.
                Some(case_value) => unsafe { case_value(value, index) },
                // Before LLVM 22 the cases are operands: value, block, value, block...
                None => call!(self, LLVMGetOperand(value, 2 * index)),
            };
            cases.push((self.constant(case), self.successor(value, index)));
        }
        InstKind::Switch(self.operand_at(value, 0), self.successor(value, 0), cases)
    }

    fn phi(&mut self, value: LLVMValueRef) -> InstKind {
        let count = call!(self, LLVMCountIncoming(value));
        let incoming = (0..count).map(|index| {
            let block = self.block(call!(self, LLVMGetIncomingBlock(value, index)));
            (block, self.operand(call!(self, LLVMGetIncomingValue(value, index))))
        });
        InstKind::Phi(incoming.collect())
    }

    fn call(&mut self, value: LLVMValueRef) -> Call {
        let count = call!(self, LLVMGetNumArgOperands(value));
        let (mut args, mut byval) = (Vec::new(), Vec::new());
        for index in 0..count {
            args.push(self.operand(call!(self, LLVMGetArgOperand(value, index))));
            let attribute = call!(self, LLVMGetCallSiteEnumAttribute(value, index + 1, self.byval));
            byval.push(self.byval_size(attribute));
        }
        Call {
            callee: self.callee(call!(self, LLVMGetCalledValue(value))),
            args,
            ty: self.ty(call!(self, LLVMGetCalledFunctionType(value))),
            byval,
            must_tail: !call!(self, LLVMIsACallInst(value)).is_null()
                && call!(self, LLVMGetTailCallKind(value)) == MUST_TAIL,
        }
    }

    fn callee(&mut self, value: LLVMValueRef) -> Callee {
        if !call!(self, LLVMIsAInlineAsm(value)).is_null() {
            let (mut text_length, mut constraint_length) = (0, 0);
            // SAFETY: LLVM returns each length with its start.
            return unsafe {
                let text = self.llvm.LLVMGetInlineAsmAsmString(value, &mut text_length);
                let text = llvm::bytes_to_string(text, text_length);
                let constraints =
                    self.llvm.LLVMGetInlineAsmConstraintString(value, &mut constraint_length);
                Callee::Asm(text, llvm::bytes_to_string(constraints, constraint_length))
            };
        }
        let operand = self.operand(value);
        let Operand::Const(id) = operand else { return Callee::Indirect(operand) };
        match self.module.constants.get(id.index()).map(|constant| &constant.kind) {
            Some(&ConstantKind::Function(function, 0)) => Callee::Direct(function),
            _ => Callee::Indirect(operand),
        }
    }

    fn memory(&mut self, code: i32, value: LLVMValueRef) -> Option<InstKind> {
        Some(match code {
            opcode::ALLOCA => {
                let ty = call!(self, LLVMGetAllocatedType(value));
                let size = self.size(ty);
                InstKind::Alloca { ty: self.ty(ty), size, count: self.operand_at(value, 0) }
            }
            opcode::LOAD => InstKind::Load {
                address: self.operand_at(value, 0),
                ordering: self.ordering(value),
                volatile: call!(self, LLVMGetVolatile(value)) != 0,
                align: call!(self, LLVMGetAlignment(value)),
            },
            opcode::STORE => InstKind::Store {
                address: self.operand_at(value, 1),
                value: self.operand_at(value, 0),
                ordering: self.ordering(value),
                volatile: call!(self, LLVMGetVolatile(value)) != 0,
                align: call!(self, LLVMGetAlignment(value)),
            },
            opcode::RMW => InstKind::AtomicRmw {
                op: rmw_op(call!(self, LLVMGetAtomicRMWBinOp(value))),
                address: self.operand_at(value, 0),
                value: self.operand_at(value, 1),
                ordering: self.ordering(value),
            },
            opcode::CMP_XCHG => InstKind::CmpXchg {
                address: self.operand_at(value, 0),
                expected: self.operand_at(value, 1),
                new: self.operand_at(value, 2),
                ordering: ordering(call!(self, LLVMGetCmpXchgSuccessOrdering(value))),
                weak: call!(self, LLVMGetWeak(value)) != 0,
            },
            opcode::FENCE => InstKind::Fence(self.ordering(value)),
            opcode::VA_ARG => InstKind::VaArg(self.operand_at(value, 0)),
            _ => return None,
        })
    }

    fn ordering(&self, value: LLVMValueRef) -> Ordering {
        ordering(call!(self, LLVMGetOrdering(value)))
    }

    /// An operation without control flow or memory, as an instruction or a constant expression.
    pub(super) fn simple_instruction(
        &mut self,
        code: i32,
        value: LLVMValueRef,
    ) -> Option<InstKind> {
        if let Some(op) = binary_op(code) {
            return Some(InstKind::Binary(
                op,
                self.operand_at(value, 0),
                self.operand_at(value, 1),
            ));
        }
        if let Some(op) = cast_op(code) {
            return Some(InstKind::Cast(op, self.operand_at(value, 0)));
        }
        Some(match code {
            opcode::F_NEG => InstKind::FNeg(self.operand_at(value, 0)),
            opcode::FREEZE => InstKind::Freeze(self.operand_at(value, 0)),
            opcode::I_CMP => {
                let predicate = int_predicate(call!(self, LLVMGetICmpPredicate(value)))?;
                InstKind::ICmp(predicate, self.operand_at(value, 0), self.operand_at(value, 1))
            }
            opcode::F_CMP => {
                let predicate = float_predicate(call!(self, LLVMGetFCmpPredicate(value)))?;
                InstKind::FCmp(predicate, self.operand_at(value, 0), self.operand_at(value, 1))
            }
            opcode::SELECT => InstKind::Select(
                self.operand_at(value, 0),
                self.operand_at(value, 1),
                self.operand_at(value, 2),
            ),
            opcode::GEP => return self.gep(value),
            _ => return self.elements(code, value),
        })
    }

    /// Parts of aggregates and vectors.
    fn elements(&mut self, code: i32, value: LLVMValueRef) -> Option<InstKind> {
        Some(match code {
            opcode::EXTRACT_VALUE => {
                InstKind::ExtractValue(self.operand_at(value, 0), self.indices(value))
            }
            opcode::INSERT_VALUE => InstKind::InsertValue(
                self.operand_at(value, 0),
                self.operand_at(value, 1),
                self.indices(value),
            ),
            opcode::EXTRACT_ELEMENT => {
                InstKind::ExtractElement(self.operand_at(value, 0), self.operand_at(value, 1))
            }
            opcode::INSERT_ELEMENT => InstKind::InsertElement(
                self.operand_at(value, 0),
                self.operand_at(value, 1),
                self.operand_at(value, 2),
            ),
            opcode::SHUFFLE_VECTOR => {
                let count = call!(self, LLVMGetNumMaskElements(value));
                let lane = |index| u32::try_from(call!(self, LLVMGetMaskValue(value, index))).ok();
                let mask = (0..count).map(lane).collect();
                InstKind::ShuffleVector(self.operand_at(value, 0), self.operand_at(value, 1), mask)
            }
            _ => return None,
        })
    }

    fn indices(&self, value: LLVMValueRef) -> Vec<u32> {
        let count = call!(self, LLVMGetNumIndices(value)) as usize;
        let start = call!(self, LLVMGetIndices(value));
        if start.is_null() {
            return Vec::new();
        }
        // SAFETY: LLVM keeps `count` indices there.
        unsafe { std::slice::from_raw_parts(start, count) }.to_vec()
    }

    /// A `getelementptr` as base, constant offset and scaled terms; `None` for vectors of pointers.
    pub(super) fn gep(&mut self, value: LLVMValueRef) -> Option<InstKind> {
        let result = self.ty(call!(self, LLVMTypeOf(value)));
        if !matches!(self.module.types.get(result.index()), Some(Type::Pointer)) {
            return None;
        }
        let base = self.operand_at(value, 0);
        let mut walk = GepWalk { offset: 0, terms: Vec::new() };
        let mut ty = call!(self, LLVMGetGEPSourceElementType(value));
        let source = self.ty(ty);
        let count = call!(self, LLVMGetNumOperands(value)).cast_unsigned();
        for position in 1..count {
            let index = call!(self, LLVMGetOperand(value, position));
            if position == 1 {
                self.step(&mut walk, index, ty);
                continue;
            }
            ty = self.descend(&mut walk, index, ty)?;
        }
        Some(InstKind::Gep { base, source, offset: walk.offset, terms: walk.terms })
    }

    /// `index` elements of type `element` further.
    fn step(&mut self, walk: &mut GepWalk, index: LLVMValueRef, element: LLVMTypeRef) {
        let scale = self.size(element);
        match self.small_int(index) {
            Some(index) => {
                let bytes = index.wrapping_mul(scale.cast_signed());
                walk.offset = walk.offset.wrapping_add(bytes);
            }
            None => walk.terms.push(GepTerm { index: self.operand(index), scale }),
        }
    }

    /// Into a field or element of `ty`; returns its type.
    fn descend(
        &mut self,
        walk: &mut GepWalk,
        index: LLVMValueRef,
        ty: LLVMTypeRef,
    ) -> Option<LLVMTypeRef> {
        let id = self.ty(ty);
        if let Some(Type::Struct { offsets, .. }) = self.module.types.get(id.index()) {
            let field = u32::try_from(self.small_int(index)?).ok()?;
            let bytes = *offsets.get(field as usize)?;
            walk.offset = walk.offset.wrapping_add(bytes.cast_signed());
            return Some(call!(self, LLVMStructGetTypeAtIndex(ty, field)));
        }
        let element = call!(self, LLVMGetElementType(ty));
        self.step(walk, index, element);
        Some(element)
    }
}

/// A `getelementptr` as far as it was walked.
struct GepWalk {
    offset: i64,
    terms: Vec<GepTerm>,
}

fn ordering(code: i32) -> Ordering {
    match code {
        0 => Ordering::NotAtomic,
        1 => Ordering::Unordered,
        2 => Ordering::Monotonic,
        4 => Ordering::Acquire,
        5 => Ordering::Release,
        6 => Ordering::AcquireRelease,
        // What is not known is at least as strong as the strongest that is.
        _ => Ordering::SequentiallyConsistent,
    }
}

fn rmw_op(code: i32) -> RmwOp {
    const OPS: [RmwOp; 17] = [
        RmwOp::Xchg,
        RmwOp::Add,
        RmwOp::Sub,
        RmwOp::And,
        RmwOp::Nand,
        RmwOp::Or,
        RmwOp::Xor,
        RmwOp::Max,
        RmwOp::Min,
        RmwOp::UMax,
        RmwOp::UMin,
        RmwOp::FAdd,
        RmwOp::FSub,
        RmwOp::FMax,
        RmwOp::FMin,
        RmwOp::UIncWrap,
        RmwOp::UDecWrap,
    ];
    usize::try_from(code).ok().and_then(|code| OPS.get(code).copied()).unwrap_or(RmwOp::Other)
}

fn binary_op(code: i32) -> Option<BinaryOp> {
    // LLVM numbers them from 8 on without gaps.
    const OPS: [BinaryOp; 18] = [
        BinaryOp::Add,
        BinaryOp::FAdd,
        BinaryOp::Sub,
        BinaryOp::FSub,
        BinaryOp::Mul,
        BinaryOp::FMul,
        BinaryOp::UDiv,
        BinaryOp::SDiv,
        BinaryOp::FDiv,
        BinaryOp::URem,
        BinaryOp::SRem,
        BinaryOp::FRem,
        BinaryOp::Shl,
        BinaryOp::LShr,
        BinaryOp::AShr,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Xor,
    ];
    OPS.get(usize::try_from(code.checked_sub(8)?).ok()?).copied()
}

fn cast_op(code: i32) -> Option<CastOp> {
    // From 30 on without gaps.
    const OPS: [CastOp; 12] = [
        CastOp::Trunc,
        CastOp::ZExt,
        CastOp::SExt,
        CastOp::FpToUi,
        CastOp::FpToSi,
        CastOp::UiToFp,
        CastOp::SiToFp,
        CastOp::FpTrunc,
        CastOp::FpExt,
        CastOp::PtrToInt,
        CastOp::IntToPtr,
        CastOp::BitCast,
    ];
    const PTR_TO_ADDR: i32 = 69;
    match code {
        opcode::ADDR_SPACE_CAST => Some(CastOp::AddrSpaceCast),
        // On x86-64 a pointer is nothing but its address.
        PTR_TO_ADDR => Some(CastOp::PtrToInt),
        _ => OPS.get(usize::try_from(code.checked_sub(30)?).ok()?).copied(),
    }
}

fn int_predicate(code: i32) -> Option<IntPredicate> {
    const PREDICATES: [IntPredicate; 10] = [
        IntPredicate::Eq,
        IntPredicate::Ne,
        IntPredicate::Ugt,
        IntPredicate::Uge,
        IntPredicate::Ult,
        IntPredicate::Ule,
        IntPredicate::Sgt,
        IntPredicate::Sge,
        IntPredicate::Slt,
        IntPredicate::Sle,
    ];
    PREDICATES.get(usize::try_from(code.checked_sub(32)?).ok()?).copied()
}

fn float_predicate(code: i32) -> Option<FloatPredicate> {
    const PREDICATES: [FloatPredicate; 16] = [
        FloatPredicate::False,
        FloatPredicate::Oeq,
        FloatPredicate::Ogt,
        FloatPredicate::Oge,
        FloatPredicate::Olt,
        FloatPredicate::Ole,
        FloatPredicate::One,
        FloatPredicate::Ord,
        FloatPredicate::Uno,
        FloatPredicate::Ueq,
        FloatPredicate::Ugt,
        FloatPredicate::Uge,
        FloatPredicate::Ult,
        FloatPredicate::Ule,
        FloatPredicate::Une,
        FloatPredicate::True,
    ];
    PREDICATES.get(usize::try_from(code).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::{binary_op, cast_op, float_predicate, int_predicate};
    use crate::types::{BinaryOp, CastOp, FloatPredicate, IntPredicate};
    use llvm::llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate};

    #[test]
    fn tables_agree_with_the_header() {
        assert_eq!(binary_op(LLVMOpcode::LLVMAdd as i32), Some(BinaryOp::Add));
        assert_eq!(binary_op(LLVMOpcode::LLVMFRem as i32), Some(BinaryOp::FRem));
        assert_eq!(binary_op(LLVMOpcode::LLVMXor as i32), Some(BinaryOp::Xor));
        assert_eq!(binary_op(LLVMOpcode::LLVMAlloca as i32), None);
        assert_eq!(cast_op(LLVMOpcode::LLVMTrunc as i32), Some(CastOp::Trunc));
        assert_eq!(cast_op(LLVMOpcode::LLVMBitCast as i32), Some(CastOp::BitCast));
        assert_eq!(cast_op(LLVMOpcode::LLVMPtrToAddr as i32), Some(CastOp::PtrToInt));
        assert_eq!(cast_op(LLVMOpcode::LLVMICmp as i32), None);
        assert_eq!(int_predicate(LLVMIntPredicate::LLVMIntSLE as i32), Some(IntPredicate::Sle));
        assert_eq!(
            float_predicate(LLVMRealPredicate::LLVMRealUNE as i32),
            Some(FloatPredicate::Une)
        );
    }
}
