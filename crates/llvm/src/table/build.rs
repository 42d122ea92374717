//! Making and changing values.

use super::functions;
use llvm_sys::prelude::{
    LLVMAttributeRef, LLVMBasicBlockRef, LLVMBool, LLVMBuilderRef, LLVMContextRef, LLVMModuleRef,
    LLVMOperandBundleRef, LLVMTypeRef, LLVMValueRef,
};
use llvm_sys::{
    LLVMAtomicOrdering, LLVMAtomicRMWBinOp, LLVMAttributeIndex, LLVMGEPNoWrapFlags,
    LLVMInlineAsmDialect, LLVMIntPredicate, LLVMLinkage, LLVMOpcode, LLVMRealPredicate,
    LLVMTailCallKind, LLVMThreadLocalMode, LLVMUnnamedAddr, LLVMVisibility,
};
use std::ffi::{c_char, c_double, c_uint, c_ulonglong};

functions! {
    /// Making and changing values.
    Build in build;
    required {
        fn LLVMCreateEnumAttribute(
            c: LLVMContextRef, kind_id: c_uint, val: u64
        ) -> LLVMAttributeRef;
        fn LLVMCreateTypeAttribute(
            c: LLVMContextRef, kind_id: c_uint, type_ref: LLVMTypeRef
        ) -> LLVMAttributeRef;
        fn LLVMCreateConstantRangeAttribute(
            c: LLVMContextRef, kind_id: c_uint, num_bits: c_uint, lower_words: *const u64,
            upper_words: *const u64
        ) -> LLVMAttributeRef;
        fn LLVMCreateStringAttribute(
            c: LLVMContextRef, k: *const c_char, k_length: c_uint, v: *const c_char,
            v_length: c_uint
        ) -> LLVMAttributeRef;
        fn LLVMSetSourceFileName(m: LLVMModuleRef, name: *const c_char, len: usize);
        fn LLVMSetDataLayout(m: LLVMModuleRef, data_layout_str: *const c_char);
        fn LLVMSetModuleInlineAsm2(m: LLVMModuleRef, asm: *const c_char, len: usize);
        fn LLVMAppendModuleInlineAsm(m: LLVMModuleRef, asm: *const c_char, len: usize);
        fn LLVMGetInlineAsm(
            ty: LLVMTypeRef, asm_string: *const c_char, asm_string_size: usize,
            constraints: *const c_char, constraints_size: usize, has_side_effects: LLVMBool,
            is_align_stack: LLVMBool, dialect: LLVMInlineAsmDialect, can_throw: LLVMBool
        ) -> LLVMValueRef;
        fn LLVMAddFunction(
            m: LLVMModuleRef, name: *const c_char, function_ty: LLVMTypeRef
        ) -> LLVMValueRef;
        fn LLVMInt1TypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMInt8TypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMInt16TypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMInt32TypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMInt64TypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMInt128TypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMIntTypeInContext(c: LLVMContextRef, num_bits: c_uint) -> LLVMTypeRef;
        fn LLVMHalfTypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMBFloatTypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMFloatTypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMDoubleTypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMX86FP80TypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMFP128TypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMPPCFP128TypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMFunctionType(
            return_type: LLVMTypeRef, param_types: *mut LLVMTypeRef, param_count: c_uint,
            is_var_arg: LLVMBool
        ) -> LLVMTypeRef;
        fn LLVMStructTypeInContext(
            c: LLVMContextRef, element_types: *mut LLVMTypeRef, element_count: c_uint,
            packed: LLVMBool
        ) -> LLVMTypeRef;
        fn LLVMStructCreateNamed(c: LLVMContextRef, name: *const c_char) -> LLVMTypeRef;
        fn LLVMStructSetBody(
            struct_ty: LLVMTypeRef, element_types: *mut LLVMTypeRef, element_count: c_uint,
            packed: LLVMBool
        );
        fn LLVMArrayType(element_type: LLVMTypeRef, element_count: c_uint) -> LLVMTypeRef;
        fn LLVMArrayType2(element_type: LLVMTypeRef, element_count: u64) -> LLVMTypeRef;
        fn LLVMPointerType(element_type: LLVMTypeRef, address_space: c_uint) -> LLVMTypeRef;
        fn LLVMPointerTypeInContext(c: LLVMContextRef, address_space: c_uint) -> LLVMTypeRef;
        fn LLVMVectorType(element_type: LLVMTypeRef, element_count: c_uint) -> LLVMTypeRef;
        fn LLVMVoidTypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMLabelTypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMTokenTypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMSetValueName(val: LLVMValueRef, name: *const c_char);
        fn LLVMSetValueName2(val: LLVMValueRef, name: *const c_char, name_len: usize);
        fn LLVMReplaceAllUsesWith(old_val: LLVMValueRef, new_val: LLVMValueRef);
        fn LLVMSetOperand(user: LLVMValueRef, index: c_uint, val: LLVMValueRef);
        fn LLVMConstNull(ty: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMConstAllOnes(ty: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMGetUndef(ty: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMGetPoison(ty: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMConstPointerNull(ty: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMConstInt(int_ty: LLVMTypeRef, n: c_ulonglong, sign_extend: LLVMBool) -> LLVMValueRef;
        fn LLVMConstIntOfArbitraryPrecision(
            int_ty: LLVMTypeRef, num_words: c_uint, words: *const u64
        ) -> LLVMValueRef;
        fn LLVMConstReal(real_ty: LLVMTypeRef, n: c_double) -> LLVMValueRef;
        fn LLVMConstStringInContext(
            c: LLVMContextRef, str: *const c_char, length: c_uint, dont_null_terminate: LLVMBool
        ) -> LLVMValueRef;
        fn LLVMConstStringInContext2(
            c: LLVMContextRef, str: *const c_char, length: usize, dont_null_terminate: LLVMBool
        ) -> LLVMValueRef;
        fn LLVMConstStructInContext(
            c: LLVMContextRef, constant_vals: *mut LLVMValueRef, count: c_uint, packed: LLVMBool
        ) -> LLVMValueRef;
        fn LLVMConstArray(
            element_ty: LLVMTypeRef, constant_vals: *mut LLVMValueRef, length: c_uint
        ) -> LLVMValueRef;
        fn LLVMConstArray2(
            element_ty: LLVMTypeRef, constant_vals: *mut LLVMValueRef, length: u64
        ) -> LLVMValueRef;
        fn LLVMConstNamedStruct(
            struct_ty: LLVMTypeRef, constant_vals: *mut LLVMValueRef, count: c_uint
        ) -> LLVMValueRef;
        fn LLVMConstVector(scalar_constant_vals: *mut LLVMValueRef, size: c_uint) -> LLVMValueRef;
        fn LLVMConstAdd(lhs_constant: LLVMValueRef, rhs_constant: LLVMValueRef) -> LLVMValueRef;
        fn LLVMConstSub(lhs_constant: LLVMValueRef, rhs_constant: LLVMValueRef) -> LLVMValueRef;
        fn LLVMConstGEP2(
            ty: LLVMTypeRef, constant_val: LLVMValueRef, constant_indices: *mut LLVMValueRef,
            num_indices: c_uint
        ) -> LLVMValueRef;
        fn LLVMConstInBoundsGEP2(
            ty: LLVMTypeRef, constant_val: LLVMValueRef, constant_indices: *mut LLVMValueRef,
            num_indices: c_uint
        ) -> LLVMValueRef;
        fn LLVMConstGEPWithNoWrapFlags(
            ty: LLVMTypeRef, constant_val: LLVMValueRef, constant_indices: *mut LLVMValueRef,
            num_indices: c_uint, no_wrap_flags: LLVMGEPNoWrapFlags
        ) -> LLVMValueRef;
        fn LLVMConstTrunc(constant_val: LLVMValueRef, to_type: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMConstPtrToInt(constant_val: LLVMValueRef, to_type: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMConstIntToPtr(constant_val: LLVMValueRef, to_type: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMConstBitCast(constant_val: LLVMValueRef, to_type: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMConstAddrSpaceCast(constant_val: LLVMValueRef, to_type: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMConstPointerCast(constant_val: LLVMValueRef, to_type: LLVMTypeRef) -> LLVMValueRef;
        fn LLVMConstExtractElement(
            vector_constant: LLVMValueRef, index_constant: LLVMValueRef
        ) -> LLVMValueRef;
        fn LLVMConstInsertElement(
            vector_constant: LLVMValueRef, element_value_constant: LLVMValueRef,
            index_constant: LLVMValueRef
        ) -> LLVMValueRef;
        fn LLVMConstShuffleVector(
            vector_a_constant: LLVMValueRef, vector_b_constant: LLVMValueRef,
            mask_constant: LLVMValueRef
        ) -> LLVMValueRef;
        fn LLVMBlockAddress(f: LLVMValueRef, bb: LLVMBasicBlockRef) -> LLVMValueRef;
        fn LLVMSetLinkage(global: LLVMValueRef, linkage: LLVMLinkage);
        fn LLVMSetSection(global: LLVMValueRef, section: *const c_char);
        fn LLVMSetVisibility(global: LLVMValueRef, viz: LLVMVisibility);
        fn LLVMSetUnnamedAddress(global: LLVMValueRef, unnamed_addr: LLVMUnnamedAddr);
        fn LLVMSetAlignment(v: LLVMValueRef, bytes: c_uint);
        fn LLVMAddGlobal(m: LLVMModuleRef, ty: LLVMTypeRef, name: *const c_char) -> LLVMValueRef;
        fn LLVMAddGlobalInAddressSpace(
            m: LLVMModuleRef, ty: LLVMTypeRef, name: *const c_char, address_space: c_uint
        ) -> LLVMValueRef;
        fn LLVMDeleteGlobal(global_var: LLVMValueRef);
        fn LLVMSetInitializer(global_var: LLVMValueRef, constant_val: LLVMValueRef);
        fn LLVMSetThreadLocal(global_var: LLVMValueRef, is_thread_local: LLVMBool);
        fn LLVMSetGlobalConstant(global_var: LLVMValueRef, is_constant: LLVMBool);
        fn LLVMSetThreadLocalMode(global_var: LLVMValueRef, mode: LLVMThreadLocalMode);
        fn LLVMSetExternallyInitialized(global_var: LLVMValueRef, is_ext_init: LLVMBool);
        fn LLVMAliasSetAliasee(alias: LLVMValueRef, aliasee: LLVMValueRef);
        fn LLVMAddAlias2(
            m: LLVMModuleRef, value_ty: LLVMTypeRef, addr_space: c_uint, aliasee: LLVMValueRef,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMDeleteFunction(function: LLVMValueRef);
        fn LLVMSetPersonalityFn(function: LLVMValueRef, personality_fn: LLVMValueRef);
        fn LLVMLookupIntrinsicID(name: *const c_char, name_len: usize) -> c_uint;
        fn LLVMGetIntrinsicDeclaration(
            module: LLVMModuleRef, id: c_uint, param_types: *mut LLVMTypeRef, param_count: usize
        ) -> LLVMValueRef;
        fn LLVMSetFunctionCallConv(function: LLVMValueRef, cc: c_uint);
        fn LLVMAddAttributeAtIndex(f: LLVMValueRef, idx: LLVMAttributeIndex, a: LLVMAttributeRef);
        fn LLVMRemoveEnumAttributeAtIndex(
            f: LLVMValueRef, idx: LLVMAttributeIndex, kind_id: c_uint
        );
        fn LLVMRemoveStringAttributeAtIndex(
            f: LLVMValueRef, idx: LLVMAttributeIndex, k: *const c_char, k_len: c_uint
        );
        fn LLVMAddTargetDependentFunctionAttr(
            function: LLVMValueRef, a: *const c_char, v: *const c_char
        );
        fn LLVMSetParamAlignment(arg: LLVMValueRef, align: c_uint);
        fn LLVMCreateOperandBundle(
            tag: *const c_char, tag_len: usize, args: *mut LLVMValueRef, num_args: c_uint
        ) -> LLVMOperandBundleRef;
        fn LLVMDisposeOperandBundle(bundle: LLVMOperandBundleRef);
        fn LLVMInsertExistingBasicBlockAfterInsertBlock(
            builder: LLVMBuilderRef, bb: LLVMBasicBlockRef
        );
        fn LLVMAppendExistingBasicBlock(function: LLVMValueRef, bb: LLVMBasicBlockRef);
        fn LLVMCreateBasicBlockInContext(
            c: LLVMContextRef, name: *const c_char
        ) -> LLVMBasicBlockRef;
        fn LLVMAppendBasicBlockInContext(
            c: LLVMContextRef, function: LLVMValueRef, name: *const c_char
        ) -> LLVMBasicBlockRef;
        fn LLVMInsertBasicBlockInContext(
            c: LLVMContextRef, bb: LLVMBasicBlockRef, name: *const c_char
        ) -> LLVMBasicBlockRef;
        fn LLVMDeleteBasicBlock(bb: LLVMBasicBlockRef);
        fn LLVMRemoveBasicBlockFromParent(bb: LLVMBasicBlockRef);
        fn LLVMMoveBasicBlockBefore(bb: LLVMBasicBlockRef, move_pos: LLVMBasicBlockRef);
        fn LLVMMoveBasicBlockAfter(bb: LLVMBasicBlockRef, move_pos: LLVMBasicBlockRef);
        fn LLVMInstructionRemoveFromParent(inst: LLVMValueRef);
        fn LLVMInstructionEraseFromParent(inst: LLVMValueRef);
        fn LLVMDeleteInstruction(inst: LLVMValueRef);
        fn LLVMInstructionClone(inst: LLVMValueRef) -> LLVMValueRef;
        fn LLVMSetInstructionCallConv(instr: LLVMValueRef, cc: c_uint);
        fn LLVMSetInstrParamAlignment(instr: LLVMValueRef, idx: LLVMAttributeIndex, align: c_uint);
        fn LLVMAddCallSiteAttribute(c: LLVMValueRef, idx: LLVMAttributeIndex, a: LLVMAttributeRef);
        fn LLVMRemoveCallSiteEnumAttribute(
            c: LLVMValueRef, idx: LLVMAttributeIndex, kind_id: c_uint
        );
        fn LLVMRemoveCallSiteStringAttribute(
            c: LLVMValueRef, idx: LLVMAttributeIndex, k: *const c_char, k_len: c_uint
        );
        fn LLVMSetTailCall(call_inst: LLVMValueRef, is_tail_call: LLVMBool);
        fn LLVMSetTailCallKind(call_inst: LLVMValueRef, kind: LLVMTailCallKind);
        fn LLVMSetNormalDest(invoke_inst: LLVMValueRef, b: LLVMBasicBlockRef);
        fn LLVMSetUnwindDest(invoke_inst: LLVMValueRef, b: LLVMBasicBlockRef);
        fn LLVMSetSuccessor(term: LLVMValueRef, i: c_uint, block: LLVMBasicBlockRef);
        fn LLVMSetCondition(branch: LLVMValueRef, cond: LLVMValueRef);
        fn LLVMSetIsInBounds(gep: LLVMValueRef, in_bounds: LLVMBool);
        fn LLVMGEPSetNoWrapFlags(gep: LLVMValueRef, no_wrap_flags: LLVMGEPNoWrapFlags);
        fn LLVMAddIncoming(
            phi_node: LLVMValueRef, incoming_values: *mut LLVMValueRef,
            incoming_blocks: *mut LLVMBasicBlockRef, count: c_uint
        );
        fn LLVMCreateBuilderInContext(c: LLVMContextRef) -> LLVMBuilderRef;
        fn LLVMPositionBuilder(
            builder: LLVMBuilderRef, block: LLVMBasicBlockRef, instr: LLVMValueRef
        );
        fn LLVMPositionBuilderBefore(builder: LLVMBuilderRef, instr: LLVMValueRef);
        fn LLVMPositionBuilderAtEnd(builder: LLVMBuilderRef, block: LLVMBasicBlockRef);
        fn LLVMGetInsertBlock(builder: LLVMBuilderRef) -> LLVMBasicBlockRef;
        fn LLVMClearInsertionPosition(builder: LLVMBuilderRef);
        fn LLVMInsertIntoBuilder(builder: LLVMBuilderRef, instr: LLVMValueRef);
        fn LLVMInsertIntoBuilderWithName(
            builder: LLVMBuilderRef, instr: LLVMValueRef, name: *const c_char
        );
        fn LLVMDisposeBuilder(builder: LLVMBuilderRef);
        fn LLVMBuildRetVoid(builder: LLVMBuilderRef) -> LLVMValueRef;
        fn LLVMBuildRet(builder: LLVMBuilderRef, v: LLVMValueRef) -> LLVMValueRef;
        fn LLVMBuildBr(builder: LLVMBuilderRef, dest: LLVMBasicBlockRef) -> LLVMValueRef;
        fn LLVMBuildCondBr(
            builder: LLVMBuilderRef, condition: LLVMValueRef, consequence: LLVMBasicBlockRef,
            otherwise: LLVMBasicBlockRef
        ) -> LLVMValueRef;
        fn LLVMBuildSwitch(
            builder: LLVMBuilderRef, v: LLVMValueRef, otherwise: LLVMBasicBlockRef,
            num_cases: c_uint
        ) -> LLVMValueRef;
        fn LLVMBuildIndirectBr(
            b: LLVMBuilderRef, addr: LLVMValueRef, num_dests: c_uint
        ) -> LLVMValueRef;
        fn LLVMBuildInvoke2(
            builder: LLVMBuilderRef, ty: LLVMTypeRef, function: LLVMValueRef,
            args: *mut LLVMValueRef, num_args: c_uint, consequence: LLVMBasicBlockRef,
            catch: LLVMBasicBlockRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildInvokeWithOperandBundles(
            builder: LLVMBuilderRef, ty: LLVMTypeRef, function: LLVMValueRef,
            args: *mut LLVMValueRef, num_args: c_uint, consequence: LLVMBasicBlockRef,
            catch: LLVMBasicBlockRef, bundles: *mut LLVMOperandBundleRef, num_bundles: c_uint,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildUnreachable(b: LLVMBuilderRef) -> LLVMValueRef;
        fn LLVMBuildResume(b: LLVMBuilderRef, exn: LLVMValueRef) -> LLVMValueRef;
        fn LLVMBuildLandingPad(
            b: LLVMBuilderRef, ty: LLVMTypeRef, pers_fn: LLVMValueRef, num_clauses: c_uint,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMAddCase(switch: LLVMValueRef, on_val: LLVMValueRef, dest: LLVMBasicBlockRef);
        fn LLVMAddDestination(indirect_br: LLVMValueRef, dest: LLVMBasicBlockRef);
        fn LLVMAddClause(landing_pad: LLVMValueRef, clause_val: LLVMValueRef);
        fn LLVMSetCleanup(landing_pad: LLVMValueRef, val: LLVMBool);
        fn LLVMSetArgOperand(funclet: LLVMValueRef, i: c_uint, value: LLVMValueRef);
        fn LLVMBuildAdd(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFAdd(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildSub(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFSub(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildMul(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFMul(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildUDiv(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildSDiv(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFDiv(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildURem(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildSRem(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFRem(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildShl(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildLShr(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildAShr(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildAnd(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildOr(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildXor(
            builder: LLVMBuilderRef, lhs: LLVMValueRef, rhs: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildBinOp(
            b: LLVMBuilderRef, op: LLVMOpcode, lhs: LLVMValueRef, rhs: LLVMValueRef,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildNeg(
            builder: LLVMBuilderRef, v: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFNeg(
            builder: LLVMBuilderRef, v: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildNot(
            builder: LLVMBuilderRef, v: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMSetNUW(arith_inst: LLVMValueRef, has_nuw: LLVMBool);
        fn LLVMSetNSW(arith_inst: LLVMValueRef, has_nsw: LLVMBool);
        fn LLVMSetExact(div_or_shr_inst: LLVMValueRef, is_exact: LLVMBool);
        fn LLVMSetNNeg(non_neg_inst: LLVMValueRef, is_non_neg: LLVMBool);
        fn LLVMSetIsDisjoint(inst: LLVMValueRef, is_disjoint: LLVMBool);
        fn LLVMBuildMemSet(
            b: LLVMBuilderRef, ptr: LLVMValueRef, val: LLVMValueRef, len: LLVMValueRef,
            align: c_uint
        ) -> LLVMValueRef;
        fn LLVMBuildMemCpy(
            b: LLVMBuilderRef, dst: LLVMValueRef, dst_align: c_uint, src: LLVMValueRef,
            src_align: c_uint, size: LLVMValueRef
        ) -> LLVMValueRef;
        fn LLVMBuildMemMove(
            b: LLVMBuilderRef, dst: LLVMValueRef, dst_align: c_uint, src: LLVMValueRef,
            src_align: c_uint, size: LLVMValueRef
        ) -> LLVMValueRef;
        fn LLVMBuildAlloca(
            builder: LLVMBuilderRef, ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildArrayAlloca(
            builder: LLVMBuilderRef, ty: LLVMTypeRef, val: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildLoad2(
            builder: LLVMBuilderRef, ty: LLVMTypeRef, pointer_val: LLVMValueRef,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildStore(
            builder: LLVMBuilderRef, val: LLVMValueRef, ptr: LLVMValueRef
        ) -> LLVMValueRef;
        fn LLVMBuildGEP2(
            b: LLVMBuilderRef, ty: LLVMTypeRef, pointer: LLVMValueRef, indices: *mut LLVMValueRef,
            num_indices: c_uint, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildInBoundsGEP2(
            b: LLVMBuilderRef, ty: LLVMTypeRef, pointer: LLVMValueRef, indices: *mut LLVMValueRef,
            num_indices: c_uint, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildGEPWithNoWrapFlags(
            b: LLVMBuilderRef, ty: LLVMTypeRef, pointer: LLVMValueRef, indices: *mut LLVMValueRef,
            num_indices: c_uint, name: *const c_char, no_wrap_flags: LLVMGEPNoWrapFlags
        ) -> LLVMValueRef;
        fn LLVMBuildStructGEP2(
            b: LLVMBuilderRef, ty: LLVMTypeRef, pointer: LLVMValueRef, idx: c_uint,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMSetVolatile(memory_access_inst: LLVMValueRef, is_volatile: LLVMBool);
        fn LLVMSetWeak(cmp_xchg_inst: LLVMValueRef, is_weak: LLVMBool);
        fn LLVMSetOrdering(memory_access_inst: LLVMValueRef, ordering: LLVMAtomicOrdering);
        fn LLVMSetAtomicRMWBinOp(atomic_rmw_inst: LLVMValueRef, bin_op: LLVMAtomicRMWBinOp);
        fn LLVMBuildTrunc(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildZExt(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildSExt(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFPToUI(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFPToSI(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildUIToFP(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildSIToFP(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFPTrunc(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFPExt(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildPtrToInt(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildIntToPtr(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildBitCast(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildAddrSpaceCast(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildCast(
            b: LLVMBuilderRef, op: LLVMOpcode, val: LLVMValueRef, dest_ty: LLVMTypeRef,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildIntCast2(
            builder: LLVMBuilderRef, val: LLVMValueRef, dest_ty: LLVMTypeRef, is_signed: LLVMBool,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildICmp(
            builder: LLVMBuilderRef, op: LLVMIntPredicate, lhs: LLVMValueRef, rhs: LLVMValueRef,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFCmp(
            builder: LLVMBuilderRef, op: LLVMRealPredicate, lhs: LLVMValueRef, rhs: LLVMValueRef,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildPhi(
            builder: LLVMBuilderRef, ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildCall2(
            builder: LLVMBuilderRef, ty: LLVMTypeRef, function: LLVMValueRef,
            args: *mut LLVMValueRef, num_args: c_uint, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildCallWithOperandBundles(
            builder: LLVMBuilderRef, ty: LLVMTypeRef, function: LLVMValueRef,
            args: *mut LLVMValueRef, num_args: c_uint, bundles: *mut LLVMOperandBundleRef,
            num_bundles: c_uint, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildSelect(
            builder: LLVMBuilderRef, condition: LLVMValueRef, consequence: LLVMValueRef,
            otherwise: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildVAArg(
            builder: LLVMBuilderRef, list: LLVMValueRef, ty: LLVMTypeRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildExtractElement(
            builder: LLVMBuilderRef, vec_val: LLVMValueRef, index: LLVMValueRef,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildInsertElement(
            builder: LLVMBuilderRef, vec_val: LLVMValueRef, elt_val: LLVMValueRef,
            index: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildShuffleVector(
            builder: LLVMBuilderRef, v1: LLVMValueRef, v2: LLVMValueRef, mask: LLVMValueRef,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildExtractValue(
            builder: LLVMBuilderRef, agg_val: LLVMValueRef, index: c_uint, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildInsertValue(
            builder: LLVMBuilderRef, agg_val: LLVMValueRef, elt_val: LLVMValueRef, index: c_uint,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFreeze(
            builder: LLVMBuilderRef, val: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildIsNull(
            builder: LLVMBuilderRef, val: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildIsNotNull(
            builder: LLVMBuilderRef, val: LLVMValueRef, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildPtrDiff2(
            builder: LLVMBuilderRef, elem_ty: LLVMTypeRef, lhs: LLVMValueRef, rhs: LLVMValueRef,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildFence(
            b: LLVMBuilderRef, ordering: LLVMAtomicOrdering, single_thread: LLVMBool,
            name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildAtomicRMW(
            b: LLVMBuilderRef, op: LLVMAtomicRMWBinOp, ptr: LLVMValueRef, val: LLVMValueRef,
            ordering: LLVMAtomicOrdering, single_thread: LLVMBool
        ) -> LLVMValueRef;
        fn LLVMBuildAtomicCmpXchg(
            b: LLVMBuilderRef, ptr: LLVMValueRef, cmp: LLVMValueRef, new: LLVMValueRef,
            success_ordering: LLVMAtomicOrdering, failure_ordering: LLVMAtomicOrdering,
            single_thread: LLVMBool
        ) -> LLVMValueRef;
        fn LLVMSetAtomicSingleThread(atomic_inst: LLVMValueRef, single_thread: LLVMBool);
        fn LLVMSetCmpXchgSuccessOrdering(cmp_xchg_inst: LLVMValueRef, ordering: LLVMAtomicOrdering);
        fn LLVMSetCmpXchgFailureOrdering(cmp_xchg_inst: LLVMValueRef, ordering: LLVMAtomicOrdering);
    }
    optional {
        fn LLVMGetOrInsertFunction(
            m: LLVMModuleRef, name: *const c_char, name_len: usize, function_ty: LLVMTypeRef
        ) -> LLVMValueRef;
        fn LLVMConstFPFromBits(ty: LLVMTypeRef, n: *const u64) -> LLVMValueRef;
        fn LLVMConstDataArray(
            element_ty: LLVMTypeRef, data: *const c_char, size_in_bytes: usize
        ) -> LLVMValueRef;
        fn LLVMSetICmpSameSign(inst: LLVMValueRef, same_sign: LLVMBool);
        fn LLVMSetSwitchCaseValue(switch_instr: LLVMValueRef, i: c_uint, case_value: LLVMValueRef);
        fn LLVMGetBuilderContext(builder: LLVMBuilderRef) -> LLVMContextRef;
        fn LLVMBuildFenceSyncScope(
            b: LLVMBuilderRef, ordering: LLVMAtomicOrdering, ssid: c_uint, name: *const c_char
        ) -> LLVMValueRef;
        fn LLVMBuildAtomicRMWSyncScope(
            b: LLVMBuilderRef, op: LLVMAtomicRMWBinOp, ptr: LLVMValueRef, val: LLVMValueRef,
            ordering: LLVMAtomicOrdering, ssid: c_uint
        ) -> LLVMValueRef;
        fn LLVMBuildAtomicCmpXchgSyncScope(
            b: LLVMBuilderRef, ptr: LLVMValueRef, cmp: LLVMValueRef, new: LLVMValueRef,
            success_ordering: LLVMAtomicOrdering, failure_ordering: LLVMAtomicOrdering,
            ssid: c_uint
        ) -> LLVMValueRef;
        fn LLVMSetAtomicSyncScopeID(atomic_inst: LLVMValueRef, ssid: c_uint);
    }
}
