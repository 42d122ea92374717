//! Metadata and debug information.

use super::functions;
use llvm_sys::debuginfo::LLVMDIFlags;
use llvm_sys::prelude::{
    LLVMBasicBlockRef, LLVMBool, LLVMBuilderRef, LLVMContextRef, LLVMDbgRecordRef, LLVMMetadataRef,
    LLVMModuleFlagEntry, LLVMModuleRef, LLVMNamedMDNodeRef, LLVMTypeRef, LLVMValueMetadataEntry,
    LLVMValueRef,
};
use std::ffi::{c_char, c_int, c_uint};

functions! {
    /// Metadata and debug information.
    Debug in debug;
    required {
        fn LLVMGetModuleDebugMetadataVersion(module: LLVMModuleRef) -> c_uint;
        fn LLVMStripModuleDebugInfo(module: LLVMModuleRef) -> LLVMBool;
        fn LLVMDILocationGetLine(location: LLVMMetadataRef) -> c_uint;
        fn LLVMDILocationGetColumn(location: LLVMMetadataRef) -> c_uint;
        fn LLVMDILocationGetScope(location: LLVMMetadataRef) -> LLVMMetadataRef;
        fn LLVMDILocationGetInlinedAt(location: LLVMMetadataRef) -> LLVMMetadataRef;
        fn LLVMDIScopeGetFile(scope: LLVMMetadataRef) -> LLVMMetadataRef;
        fn LLVMDIFileGetDirectory(file: LLVMMetadataRef, len: *mut c_uint) -> *const c_char;
        fn LLVMDIFileGetFilename(file: LLVMMetadataRef, len: *mut c_uint) -> *const c_char;
        fn LLVMDIFileGetSource(file: LLVMMetadataRef, len: *mut c_uint) -> *const c_char;
        fn LLVMDITypeGetName(d_type: LLVMMetadataRef, length: *mut usize) -> *const c_char;
        fn LLVMDITypeGetSizeInBits(d_type: LLVMMetadataRef) -> u64;
        fn LLVMDITypeGetOffsetInBits(d_type: LLVMMetadataRef) -> u64;
        fn LLVMDITypeGetAlignInBits(d_type: LLVMMetadataRef) -> u32;
        fn LLVMDITypeGetLine(d_type: LLVMMetadataRef) -> c_uint;
        fn LLVMDITypeGetFlags(d_type: LLVMMetadataRef) -> LLVMDIFlags;
        fn LLVMGetDINodeTag(md: LLVMMetadataRef) -> u16;
        fn LLVMDIGlobalVariableExpressionGetVariable(gve: LLVMMetadataRef) -> LLVMMetadataRef;
        fn LLVMDIGlobalVariableExpressionGetExpression(gve: LLVMMetadataRef) -> LLVMMetadataRef;
        fn LLVMDIVariableGetFile(var: LLVMMetadataRef) -> LLVMMetadataRef;
        fn LLVMDIVariableGetScope(var: LLVMMetadataRef) -> LLVMMetadataRef;
        fn LLVMDIVariableGetLine(var: LLVMMetadataRef) -> c_uint;
        fn LLVMMetadataReplaceAllUsesWith(
            temp_target_metadata: LLVMMetadataRef, replacement: LLVMMetadataRef
        );
        fn LLVMGetSubprogram(func: LLVMValueRef) -> LLVMMetadataRef;
        fn LLVMSetSubprogram(func: LLVMValueRef, sp: LLVMMetadataRef);
        fn LLVMDISubprogramGetLine(subprogram: LLVMMetadataRef) -> c_uint;
        fn LLVMInstructionGetDebugLoc(inst: LLVMValueRef) -> LLVMMetadataRef;
        fn LLVMInstructionSetDebugLoc(inst: LLVMValueRef, loc: LLVMMetadataRef);
        fn LLVMGetMetadataKind(metadata: LLVMMetadataRef) -> c_int;
        fn LLVMGetMDKindIDInContext(
            c: LLVMContextRef, name: *const c_char, s_len: c_uint
        ) -> c_uint;
        fn LLVMCopyModuleFlagsMetadata(
            m: LLVMModuleRef, len: *mut usize
        ) -> *mut LLVMModuleFlagEntry;
        fn LLVMDisposeModuleFlagsMetadata(entries: *mut LLVMModuleFlagEntry);
        fn LLVMModuleFlagEntriesGetMetadata(
            entries: *mut LLVMModuleFlagEntry, index: c_uint
        ) -> LLVMMetadataRef;
        fn LLVMGetFirstNamedMetadata(m: LLVMModuleRef) -> LLVMNamedMDNodeRef;
        fn LLVMGetLastNamedMetadata(m: LLVMModuleRef) -> LLVMNamedMDNodeRef;
        fn LLVMGetNextNamedMetadata(named_md_node: LLVMNamedMDNodeRef) -> LLVMNamedMDNodeRef;
        fn LLVMGetPreviousNamedMetadata(named_md_node: LLVMNamedMDNodeRef) -> LLVMNamedMDNodeRef;
        fn LLVMGetNamedMetadata(
            m: LLVMModuleRef, name: *const c_char, name_len: usize
        ) -> LLVMNamedMDNodeRef;
        fn LLVMGetOrInsertNamedMetadata(
            m: LLVMModuleRef, name: *const c_char, name_len: usize
        ) -> LLVMNamedMDNodeRef;
        fn LLVMGetNamedMetadataName(
            named_md: LLVMNamedMDNodeRef, name_len: *mut usize
        ) -> *const c_char;
        fn LLVMGetNamedMetadataNumOperands(m: LLVMModuleRef, name: *const c_char) -> c_uint;
        fn LLVMGetNamedMetadataOperands(
            m: LLVMModuleRef, name: *const c_char, dest: *mut LLVMValueRef
        );
        fn LLVMAddNamedMetadataOperand(m: LLVMModuleRef, name: *const c_char, val: LLVMValueRef);
        fn LLVMMetadataTypeInContext(c: LLVMContextRef) -> LLVMTypeRef;
        fn LLVMPrintDbgRecordToString(record: LLVMDbgRecordRef) -> *mut c_char;
        fn LLVMIsAMDNode(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAValueAsMetadata(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsAMDString(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMGlobalSetMetadata(global: LLVMValueRef, kind: c_uint, md: LLVMMetadataRef);
        fn LLVMGlobalEraseMetadata(global: LLVMValueRef, kind: c_uint);
        fn LLVMGlobalClearMetadata(global: LLVMValueRef);
        fn LLVMGlobalCopyAllMetadata(
            value: LLVMValueRef, num_entries: *mut usize
        ) -> *mut LLVMValueMetadataEntry;
        fn LLVMDisposeValueMetadataEntries(entries: *mut LLVMValueMetadataEntry);
        fn LLVMValueMetadataEntriesGetKind(
            entries: *mut LLVMValueMetadataEntry, index: c_uint
        ) -> c_uint;
        fn LLVMValueMetadataEntriesGetMetadata(
            entries: *mut LLVMValueMetadataEntry, index: c_uint
        ) -> LLVMMetadataRef;
        fn LLVMMDStringInContext2(
            c: LLVMContextRef, str: *const c_char, s_len: usize
        ) -> LLVMMetadataRef;
        fn LLVMMDNodeInContext2(
            c: LLVMContextRef, m_ds: *mut LLVMMetadataRef, count: usize
        ) -> LLVMMetadataRef;
        fn LLVMMetadataAsValue(c: LLVMContextRef, md: LLVMMetadataRef) -> LLVMValueRef;
        fn LLVMValueAsMetadata(val: LLVMValueRef) -> LLVMMetadataRef;
        fn LLVMGetMDString(v: LLVMValueRef, len: *mut c_uint) -> *const c_char;
        fn LLVMGetMDNodeNumOperands(v: LLVMValueRef) -> c_uint;
        fn LLVMGetMDNodeOperands(v: LLVMValueRef, dest: *mut LLVMValueRef);
        fn LLVMReplaceMDNodeOperandWith(
            v: LLVMValueRef, index: c_uint, replacement: LLVMMetadataRef
        );
        fn LLVMHasMetadata(val: LLVMValueRef) -> c_int;
        fn LLVMGetMetadata(val: LLVMValueRef, kind_id: c_uint) -> LLVMValueRef;
        fn LLVMSetMetadata(val: LLVMValueRef, kind_id: c_uint, node: LLVMValueRef);
        fn LLVMInstructionGetAllMetadataOtherThanDebugLoc(
            instr: LLVMValueRef, num_entries: *mut usize
        ) -> *mut LLVMValueMetadataEntry;
        fn LLVMIsADbgInfoIntrinsic(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsADbgVariableIntrinsic(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMIsADbgDeclareInst(val: LLVMValueRef) -> LLVMValueRef;
        fn LLVMPositionBuilderBeforeDbgRecords(
            builder: LLVMBuilderRef, block: LLVMBasicBlockRef, inst: LLVMValueRef
        );
        fn LLVMPositionBuilderBeforeInstrAndDbgRecords(
            builder: LLVMBuilderRef, instr: LLVMValueRef
        );
        fn LLVMGetCurrentDebugLocation2(builder: LLVMBuilderRef) -> LLVMMetadataRef;
        fn LLVMSetCurrentDebugLocation2(builder: LLVMBuilderRef, loc: LLVMMetadataRef);
        fn LLVMSetInstDebugLocation(builder: LLVMBuilderRef, inst: LLVMValueRef);
        fn LLVMAddMetadataToInst(builder: LLVMBuilderRef, inst: LLVMValueRef);
    }
    optional {
        fn LLVMIsNewDbgInfoFormat(m: LLVMModuleRef) -> LLVMBool;
        fn LLVMSetIsNewDbgInfoFormat(m: LLVMModuleRef, use_new_format: LLVMBool);
        fn LLVMGlobalAddMetadata(global: LLVMValueRef, kind: c_uint, md: LLVMMetadataRef);
        fn LLVMGetFirstDbgRecord(inst: LLVMValueRef) -> LLVMDbgRecordRef;
        fn LLVMGetLastDbgRecord(inst: LLVMValueRef) -> LLVMDbgRecordRef;
        fn LLVMGetNextDbgRecord(dbg_record: LLVMDbgRecordRef) -> LLVMDbgRecordRef;
        fn LLVMGetPreviousDbgRecord(dbg_record: LLVMDbgRecordRef) -> LLVMDbgRecordRef;
        fn LLVMDbgRecordGetDebugLoc(rec: LLVMDbgRecordRef) -> LLVMMetadataRef;
        fn LLVMDbgRecordGetKind(rec: LLVMDbgRecordRef) -> c_int;
        fn LLVMDbgVariableRecordGetValue(rec: LLVMDbgRecordRef, op_idx: c_uint) -> LLVMValueRef;
        fn LLVMDbgVariableRecordGetVariable(rec: LLVMDbgRecordRef) -> LLVMMetadataRef;
        fn LLVMDbgVariableRecordGetExpression(rec: LLVMDbgRecordRef) -> LLVMMetadataRef;
    }
}
