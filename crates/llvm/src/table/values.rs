//! Looking at modules, types and values.

use super::functions;
use llvm_sys::prelude::{
    LLVMAttributeRef, LLVMBasicBlockRef, LLVMBool, LLVMContextRef, LLVMMetadataRef, LLVMModuleRef,
    LLVMOperandBundleRef, LLVMTypeRef, LLVMUseRef, LLVMValueRef,
};
use llvm_sys::{LLVMAttributeIndex, LLVMGEPNoWrapFlags};
use std::ffi::{c_char, c_double, c_int, c_longlong, c_uint, c_ulonglong};

functions! {
    /// Looking at modules, types and values.
    Values in values;
    required {
        fn LLVMGetEnumAttributeKindForName(name: *const c_char, s_len: usize) -> c_uint;
        fn LLVMGetLastEnumAttributeKind() -> c_uint;
        fn LLVMGetEnumAttributeKind(a: LLVMAttributeRef) -> c_uint;
        fn LLVMGetEnumAttributeValue(a: LLVMAttributeRef) -> u64;
        fn LLVMGetTypeAttributeValue(a: LLVMAttributeRef) -> LLVMTypeRef;
        fn LLVMGetStringAttributeKind(a: LLVMAttributeRef, length: *mut c_uint) -> *const c_char;
        fn LLVMGetStringAttributeValue(a: LLVMAttributeRef, length: *mut c_uint) -> *const c_char;
        fn LLVMIsEnumAttribute(a: LLVMAttributeRef) -> LLVMBool;
        fn LLVMIsStringAttribute(a: LLVMAttributeRef) -> LLVMBool;
        fn LLVMIsTypeAttribute(a: LLVMAttributeRef) -> LLVMBool;
        fn LLVMGetTypeByName2(c: LLVMContextRef, name: *const c_char) -> LLVMTypeRef;
        fn LLVMGetSourceFileName(m: LLVMModuleRef, len: *mut usize) -> *const c_char;
        fn LLVMGetDataLayout(m: LLVMModuleRef) -> *const c_char;
        fn LLVMGetDataLayoutStr(m: LLVMModuleRef) -> *const c_char;
        fn LLVMGetTarget(m: LLVMModuleRef) -> *const c_char;
        fn LLVMGetModuleInlineAsm(m: LLVMModuleRef, len: *mut usize) -> *const c_char;
        fn LLVMGetInlineAsmAsmString(
            inline_asm_val: LLVMValueRef, len: *mut usize
        ) -> *const c_char;
        fn LLVMGetInlineAsmConstraintString(
            inline_asm_val: LLVMValueRef, len: *mut usize
        ) -> *const c_char;
        fn LLVMGetInlineAsmDialect(inline_asm_val: LLVMValueRef) -> c_int;
        fn LLVMGetInlineAsmFunctionType(inline_asm_val: LLVMValueRef) -> LLVMTypeRef;
        fn LLVMGetInlineAsmHasSideEffects(inline_asm_val: LLVMValueRef) -> LLVMBool;
        fn LLVMGetInlineAsmNeedsAlignedStack(inline_asm_val: LLVMValueRef) -> LLVMBool;
        fn LLVMGetNamedFunction(m: LLVMModuleRef, name: *const c_char) -> LLVMValueRef;
        fn LLVMGetFirstFunction(m: LLVMModuleRef) -> LLVMValueRef;
        fn LLVMGetLastFunction(m: LLVMModuleRef) -> LLVMValueRef;
        fn LLVMGetNextFunction(function: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetPreviousFunction(function: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetTypeKind(ty: LLVMTypeRef) -> c_int;
        fn LLVMTypeIsSized(ty: LLVMTypeRef) -> LLVMBool;
        fn LLVMGetTypeContext(ty: LLVMTypeRef) -> LLVMContextRef;
        fn LLVMPrintTypeToString(val: LLVMTypeRef) -> *mut c_char;
        fn LLVMGetIntTypeWidth(integer_ty: LLVMTypeRef) -> c_uint;
        fn LLVMIsFunctionVarArg(function_ty: LLVMTypeRef) -> LLVMBool;
        fn LLVMGetReturnType(function_ty: LLVMTypeRef) -> LLVMTypeRef;
        fn LLVMCountParamTypes(function_ty: LLVMTypeRef) -> c_uint;
        fn LLVMGetParamTypes(function_ty: LLVMTypeRef, dest: *mut LLVMTypeRef);
        fn LLVMGetStructName(ty: LLVMTypeRef) -> *const c_char;
        fn LLVMCountStructElementTypes(struct_ty: LLVMTypeRef) -> c_uint;
        fn LLVMGetStructElementTypes(struct_ty: LLVMTypeRef, dest: *mut LLVMTypeRef);
        fn LLVMStructGetTypeAtIndex(struct_ty: LLVMTypeRef, i: c_uint) -> LLVMTypeRef;
        fn LLVMIsPackedStruct(struct_ty: LLVMTypeRef) -> LLVMBool;
        fn LLVMIsOpaqueStruct(struct_ty: LLVMTypeRef) -> LLVMBool;
        fn LLVMIsLiteralStruct(struct_ty: LLVMTypeRef) -> LLVMBool;
        fn LLVMGetElementType(ty: LLVMTypeRef) -> LLVMTypeRef;
        fn LLVMGetSubtypes(tp: LLVMTypeRef, arr: *mut LLVMTypeRef);
        fn LLVMGetNumContainedTypes(tp: LLVMTypeRef) -> c_uint;
        fn LLVMGetArrayLength(array_ty: LLVMTypeRef) -> c_uint;
        fn LLVMGetArrayLength2(array_ty: LLVMTypeRef) -> u64;
        fn LLVMGetPointerAddressSpace(pointer_ty: LLVMTypeRef) -> c_uint;
        fn LLVMScalableVectorType(element_type: LLVMTypeRef, element_count: c_uint) -> LLVMTypeRef;
        fn LLVMGetVectorSize(vector_ty: LLVMTypeRef) -> c_uint;
        fn LLVMGetValueKind(val: LLVMValueRef) -> c_int;
        fn LLVMTypeOf(val: LLVMValueRef) -> LLVMTypeRef;
        fn LLVMGetValueName(val: LLVMValueRef) -> *const c_char;
        fn LLVMGetValueName2(val: LLVMValueRef, length: *mut usize) -> *const c_char;
        fn LLVMPrintValueToString(val: LLVMValueRef) -> *mut c_char;
        fn LLVMIsConstant(val: LLVMValueRef) -> LLVMBool;
        fn LLVMIsUndef(val: LLVMValueRef) -> LLVMBool;
        fn LLVMIsPoison(val: LLVMValueRef) -> LLVMBool;
        fn LLVMGetFirstUse(val: LLVMValueRef) -> LLVMUseRef;
        fn LLVMGetNextUse(u: LLVMUseRef) -> LLVMUseRef;
        fn LLVMGetUser(u: LLVMUseRef) -> LLVMValueRef;
        fn LLVMGetUsedValue(u: LLVMUseRef) -> LLVMValueRef;
        fn LLVMGetOperand(val: LLVMValueRef, index: c_uint) -> LLVMValueRef;
        fn LLVMGetOperandUse(val: LLVMValueRef, index: c_uint) -> LLVMUseRef;
        fn LLVMGetNumOperands(val: LLVMValueRef) -> c_int;
        fn LLVMIsNull(val: LLVMValueRef) -> LLVMBool;
        fn LLVMConstIntGetZExtValue(constant_val: LLVMValueRef) -> c_ulonglong;
        fn LLVMConstIntGetSExtValue(constant_val: LLVMValueRef) -> c_longlong;
        fn LLVMConstRealGetDouble(
            constant_val: LLVMValueRef, loses_info: *mut LLVMBool
        ) -> c_double;
        fn LLVMIsConstantString(c: LLVMValueRef) -> LLVMBool;
        fn LLVMGetAsString(c: LLVMValueRef, length: *mut usize) -> *const c_char;
        fn LLVMGetAggregateElement(c: LLVMValueRef, idx: c_uint) -> LLVMValueRef;
        fn LLVMGetElementAsConstant(c: LLVMValueRef, idx: c_uint) -> LLVMValueRef;
        fn LLVMGetConstOpcode(constant_val: LLVMValueRef) -> c_int;
        fn LLVMGetBlockAddressFunction(block_addr: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetBlockAddressBasicBlock(block_addr: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetGlobalParent(global: LLVMValueRef) -> LLVMModuleRef;
        fn LLVMIsDeclaration(global: LLVMValueRef) -> LLVMBool;
        fn LLVMGetLinkage(global: LLVMValueRef) -> c_int;
        fn LLVMGetSection(global: LLVMValueRef) -> *const c_char;
        fn LLVMGetVisibility(global: LLVMValueRef) -> c_int;
        fn LLVMGetUnnamedAddress(global: LLVMValueRef) -> c_int;
        fn LLVMGlobalGetValueType(global: LLVMValueRef) -> LLVMTypeRef;
        fn LLVMGetAlignment(v: LLVMValueRef) -> c_uint;
        fn LLVMGetNamedGlobal(m: LLVMModuleRef, name: *const c_char) -> LLVMValueRef;
        fn LLVMGetFirstGlobal(m: LLVMModuleRef) -> LLVMValueRef;
        fn LLVMGetLastGlobal(m: LLVMModuleRef) -> LLVMValueRef;
        fn LLVMGetNextGlobal(global_var: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetPreviousGlobal(global_var: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetInitializer(global_var: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsThreadLocal(global_var: LLVMValueRef) -> LLVMBool;
        fn LLVMIsGlobalConstant(global_var: LLVMValueRef) -> LLVMBool;
        fn LLVMGetThreadLocalMode(global_var: LLVMValueRef) -> c_int;
        fn LLVMIsExternallyInitialized(global_var: LLVMValueRef) -> LLVMBool;
        fn LLVMGetNamedGlobalAlias(
            m: LLVMModuleRef, name: *const c_char, name_len: usize
        ) -> LLVMValueRef;
        fn LLVMGetFirstGlobalAlias(m: LLVMModuleRef) -> LLVMValueRef;
        fn LLVMGetLastGlobalAlias(m: LLVMModuleRef) -> LLVMValueRef;
        fn LLVMGetNextGlobalAlias(ga: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetPreviousGlobalAlias(ga: LLVMValueRef) -> LLVMValueRef;
        fn LLVMAliasGetAliasee(alias: LLVMValueRef) -> LLVMValueRef;
        fn LLVMHasPersonalityFn(function: LLVMValueRef) -> LLVMBool;
        fn LLVMGetPersonalityFn(function: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetIntrinsicID(function: LLVMValueRef) -> c_uint;
        fn LLVMIntrinsicGetType(
            ctx: LLVMContextRef, id: c_uint, param_types: *mut LLVMTypeRef, param_count: usize
        ) -> LLVMTypeRef;
        fn LLVMIntrinsicGetName(id: c_uint, name_length: *mut usize) -> *const c_char;
        fn LLVMIntrinsicCopyOverloadedName2(
            module: LLVMModuleRef, id: c_uint, param_types: *mut LLVMTypeRef, param_count: usize,
            name_length: *mut usize
        ) -> *mut c_char;
        fn LLVMIntrinsicIsOverloaded(id: c_uint) -> LLVMBool;
        fn LLVMGetFunctionCallConv(function: LLVMValueRef) -> c_uint;
        fn LLVMGetAttributeCountAtIndex(f: LLVMValueRef, idx: LLVMAttributeIndex) -> c_uint;
        fn LLVMGetAttributesAtIndex(
            f: LLVMValueRef, idx: LLVMAttributeIndex, attrs: *mut LLVMAttributeRef
        );
        fn LLVMGetEnumAttributeAtIndex(
            f: LLVMValueRef, idx: LLVMAttributeIndex, kind_id: c_uint
        ) -> LLVMAttributeRef;
        fn LLVMGetStringAttributeAtIndex(
            f: LLVMValueRef, idx: LLVMAttributeIndex, k: *const c_char, k_len: c_uint
        ) -> LLVMAttributeRef;
        fn LLVMCountParams(function: LLVMValueRef) -> c_uint;
        fn LLVMGetParams(function: LLVMValueRef, params: *mut LLVMValueRef);
        fn LLVMGetParam(function: LLVMValueRef, index: c_uint) -> LLVMValueRef;
        fn LLVMGetParamParent(inst: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetFirstParam(function: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetLastParam(function: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetNextParam(arg: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetPreviousParam(arg: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetOperandBundleTag(bundle: LLVMOperandBundleRef, len: *mut usize) -> *const c_char;
        fn LLVMGetNumOperandBundleArgs(bundle: LLVMOperandBundleRef) -> c_uint;
        fn LLVMGetOperandBundleArgAtIndex(
            bundle: LLVMOperandBundleRef, index: c_uint
        ) -> LLVMValueRef;
        fn LLVMGetNamedGlobalIFunc(
            m: LLVMModuleRef, name: *const c_char, name_len: usize
        ) -> LLVMValueRef;
        fn LLVMGetFirstGlobalIFunc(m: LLVMModuleRef) -> LLVMValueRef;
        fn LLVMGetLastGlobalIFunc(m: LLVMModuleRef) -> LLVMValueRef;
        fn LLVMGetNextGlobalIFunc(i_func: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetGlobalIFuncResolver(i_func: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetPreviousGlobalIFunc(i_func: LLVMValueRef) -> LLVMValueRef;
        fn LLVMBasicBlockAsValue(bb: LLVMBasicBlockRef) -> LLVMValueRef;
        fn LLVMValueIsBasicBlock(val: LLVMValueRef) -> LLVMBool;
        fn LLVMValueAsBasicBlock(val: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetBasicBlockName(bb: LLVMBasicBlockRef) -> *const c_char;
        fn LLVMGetBasicBlockParent(bb: LLVMBasicBlockRef) -> LLVMValueRef;
        fn LLVMGetBasicBlockTerminator(bb: LLVMBasicBlockRef) -> LLVMValueRef;
        fn LLVMCountBasicBlocks(function: LLVMValueRef) -> c_uint;
        fn LLVMGetBasicBlocks(function: LLVMValueRef, basic_blocks: *mut LLVMBasicBlockRef);
        fn LLVMGetFirstBasicBlock(function: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetLastBasicBlock(function: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetNextBasicBlock(bb: LLVMBasicBlockRef) -> LLVMBasicBlockRef;
        fn LLVMGetPreviousBasicBlock(bb: LLVMBasicBlockRef) -> LLVMBasicBlockRef;
        fn LLVMGetEntryBasicBlock(function: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetFirstInstruction(bb: LLVMBasicBlockRef) -> LLVMValueRef;
        fn LLVMGetLastInstruction(bb: LLVMBasicBlockRef) -> LLVMValueRef;
        fn LLVMGetInstructionParent(inst: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetNextInstruction(inst: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetPreviousInstruction(inst: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetInstructionOpcode(inst: LLVMValueRef) -> c_int;
        fn LLVMGetICmpPredicate(inst: LLVMValueRef) -> c_int;
        fn LLVMGetFCmpPredicate(inst: LLVMValueRef) -> c_int;
        fn LLVMGetNumArgOperands(instr: LLVMValueRef) -> c_uint;
        fn LLVMGetInstructionCallConv(instr: LLVMValueRef) -> c_uint;
        fn LLVMGetCallSiteAttributeCount(c: LLVMValueRef, idx: LLVMAttributeIndex) -> c_uint;
        fn LLVMGetCallSiteAttributes(
            c: LLVMValueRef, idx: LLVMAttributeIndex, attrs: *mut LLVMAttributeRef
        );
        fn LLVMGetCallSiteEnumAttribute(
            c: LLVMValueRef, idx: LLVMAttributeIndex, kind_id: c_uint
        ) -> LLVMAttributeRef;
        fn LLVMGetCallSiteStringAttribute(
            c: LLVMValueRef, idx: LLVMAttributeIndex, k: *const c_char, k_len: c_uint
        ) -> LLVMAttributeRef;
        fn LLVMGetCalledFunctionType(c: LLVMValueRef) -> LLVMTypeRef;
        fn LLVMGetCalledValue(instr: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetNumOperandBundles(c: LLVMValueRef) -> c_uint;
        fn LLVMGetOperandBundleAtIndex(c: LLVMValueRef, index: c_uint) -> LLVMOperandBundleRef;
        fn LLVMIsTailCall(call_inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetTailCallKind(call_inst: LLVMValueRef) -> c_int;
        fn LLVMGetNormalDest(invoke_inst: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetUnwindDest(invoke_inst: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetCallBrDefaultDest(call_br: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetCallBrNumIndirectDests(call_br: LLVMValueRef) -> c_uint;
        fn LLVMGetCallBrIndirectDest(call_br: LLVMValueRef, idx: c_uint) -> LLVMBasicBlockRef;
        fn LLVMGetNumSuccessors(term: LLVMValueRef) -> c_uint;
        fn LLVMGetSuccessor(term: LLVMValueRef, i: c_uint) -> LLVMBasicBlockRef;
        fn LLVMIsConditional(branch: LLVMValueRef) -> LLVMBool;
        fn LLVMGetCondition(branch: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetSwitchDefaultDest(switch_instr: LLVMValueRef) -> LLVMBasicBlockRef;
        fn LLVMGetAllocatedType(alloca: LLVMValueRef) -> LLVMTypeRef;
        fn LLVMIsInBounds(gep: LLVMValueRef) -> LLVMBool;
        fn LLVMGetGEPSourceElementType(gep: LLVMValueRef) -> LLVMTypeRef;
        fn LLVMGEPGetNoWrapFlags(gep: LLVMValueRef) -> LLVMGEPNoWrapFlags;
        fn LLVMCountIncoming(phi_node: LLVMValueRef) -> c_uint;
        fn LLVMGetIncomingValue(phi_node: LLVMValueRef, index: c_uint) -> LLVMValueRef;
        fn LLVMGetIncomingBlock(phi_node: LLVMValueRef, index: c_uint) -> LLVMBasicBlockRef;
        fn LLVMIsAArgument(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsABasicBlock(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAInlineAsm(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstant(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsABlockAddress(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantAggregateZero(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantArray(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantDataSequential(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantDataArray(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantDataVector(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantExpr(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantFP(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantInt(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantPointerNull(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantStruct(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAConstantVector(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAGlobalValue(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAGlobalAlias(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAGlobalIFunc(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAGlobalObject(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAFunction(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAGlobalVariable(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAUndefValue(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAPoisonValue(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAInstruction(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsACallInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAIntrinsicInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAMemIntrinsic(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAGetElementPtrInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsALandingPadInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAPHINode(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAStoreInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsABranchInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAInvokeInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAReturnInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsASwitchInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsACallBrInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAAllocaInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsALoadInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAAtomicCmpXchgInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAAtomicRMWInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAFenceInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGetNumIndices(inst: LLVMValueRef) -> c_uint;
        fn LLVMGetIndices(inst: LLVMValueRef) -> *const c_uint;
        fn LLVMGetNumClauses(landing_pad: LLVMValueRef) -> c_uint;
        fn LLVMGetClause(landing_pad: LLVMValueRef, idx: c_uint) -> LLVMValueRef;
        fn LLVMIsCleanup(landing_pad: LLVMValueRef) -> LLVMBool;
        fn LLVMGetArgOperand(funclet: LLVMValueRef, i: c_uint) -> LLVMValueRef;
        fn LLVMGetNUW(arith_inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetNSW(arith_inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetExact(div_or_shr_inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetNNeg(non_neg_inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetIsDisjoint(inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetVolatile(inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetWeak(cmp_xchg_inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetOrdering(memory_access_inst: LLVMValueRef) -> c_int;
        fn LLVMGetAtomicRMWBinOp(atomic_rmw_inst: LLVMValueRef) -> c_int;
        fn LLVMGetCastOpcode(
            builder: LLVMValueRef, src_is_signed: LLVMBool, dest_ty: LLVMTypeRef,
            dest_is_signed: LLVMBool
        ) -> c_int;
        fn LLVMGetNumMaskElements(shuffle_vector_inst: LLVMValueRef) -> c_uint;
        fn LLVMGetUndefMaskElem() -> c_int;
        fn LLVMGetMaskValue(shuffle_vector_inst: LLVMValueRef, elt: c_uint) -> c_int;
        fn LLVMIsAtomicSingleThread(atomic_inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetCmpXchgSuccessOrdering(cmp_xchg_inst: LLVMValueRef) -> c_int;
        fn LLVMGetCmpXchgFailureOrdering(cmp_xchg_inst: LLVMValueRef) -> c_int;
    }
    optional {
        fn LLVMGetSyncScopeID(c: LLVMContextRef, name: *const c_char, s_len: usize) -> c_uint;
        fn LLVMGetNamedFunctionWithLength(
            m: LLVMModuleRef, name: *const c_char, length: usize
        ) -> LLVMValueRef;
        fn LLVMGetValueContext(val: LLVMValueRef) -> LLVMContextRef;
        fn LLVMGetRawDataValues(c: LLVMValueRef, size_in_bytes: usize) -> *const c_char;
        fn LLVMGlobalAddDebugInfo(global: LLVMValueRef, gve: LLVMMetadataRef);
        fn LLVMGetNamedGlobalWithLength(
            m: LLVMModuleRef, name: *const c_char, length: usize
        ) -> LLVMValueRef;
        fn LLVMGetICmpSameSign(inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetSwitchCaseValue(switch_instr: LLVMValueRef, i: c_uint) -> LLVMValueRef;
        fn LLVMIsAtomic(inst: LLVMValueRef) -> LLVMBool;
        fn LLVMGetAtomicSyncScopeID(atomic_inst: LLVMValueRef) -> c_uint;
    }
}
