//! Contexts, modules, bitcode, passes and the X86 target.

use super::functions;
use llvm_sys::analysis::LLVMVerifierFailureAction;
use llvm_sys::comdat::LLVMComdatSelectionKind;
use llvm_sys::error::LLVMErrorRef;
use llvm_sys::prelude::{
    LLVMBool, LLVMComdatRef, LLVMContextRef, LLVMDiagnosticInfoRef, LLVMMemoryBufferRef,
    LLVMMetadataRef, LLVMModuleFlagEntry, LLVMModuleRef, LLVMTypeRef, LLVMValueRef,
};
use llvm_sys::target::LLVMTargetDataRef;
use llvm_sys::target_machine::{
    LLVMCodeGenFileType, LLVMCodeGenOptLevel, LLVMCodeModel, LLVMRelocMode,
    LLVMTargetMachineOptionsRef, LLVMTargetMachineRef, LLVMTargetRef,
};
use llvm_sys::transforms::pass_builder::LLVMPassBuilderOptionsRef;
use llvm_sys::{LLVMDiagnosticHandler, LLVMModuleFlagBehavior};
use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

functions! {
    /// Contexts, modules, bitcode, passes and the X86 target.
    Machine in machine;
    required {
        fn LLVMLinkModules2(dest: LLVMModuleRef, src: LLVMModuleRef) -> LLVMBool;
        fn LLVMGetOrInsertComdat(m: LLVMModuleRef, name: *const c_char) -> LLVMComdatRef;
        fn LLVMGetComdat(v: LLVMValueRef) -> LLVMComdatRef;
        fn LLVMSetComdat(v: LLVMValueRef, c: LLVMComdatRef);
        fn LLVMGetComdatSelectionKind(c: LLVMComdatRef) -> c_int;
        fn LLVMSetComdatSelectionKind(c: LLVMComdatRef, kind: LLVMComdatSelectionKind);
        fn LLVMGetFirstTarget() -> LLVMTargetRef;
        fn LLVMGetNextTarget(t: LLVMTargetRef) -> LLVMTargetRef;
        fn LLVMGetTargetFromName(name: *const c_char) -> LLVMTargetRef;
        fn LLVMGetTargetFromTriple(
            triple: *const c_char, t: *mut LLVMTargetRef, error_message: *mut *mut c_char
        ) -> LLVMBool;
        fn LLVMGetTargetName(t: LLVMTargetRef) -> *const c_char;
        fn LLVMGetTargetDescription(t: LLVMTargetRef) -> *const c_char;
        fn LLVMTargetHasTargetMachine(t: LLVMTargetRef) -> LLVMBool;
        fn LLVMCreateTargetMachineOptions() -> LLVMTargetMachineOptionsRef;
        fn LLVMDisposeTargetMachineOptions(options: LLVMTargetMachineOptionsRef);
        fn LLVMTargetMachineOptionsSetCPU(options: LLVMTargetMachineOptionsRef, cpu: *const c_char);
        fn LLVMTargetMachineOptionsSetFeatures(
            options: LLVMTargetMachineOptionsRef, features: *const c_char
        );
        fn LLVMTargetMachineOptionsSetABI(options: LLVMTargetMachineOptionsRef, abi: *const c_char);
        fn LLVMTargetMachineOptionsSetCodeGenOptLevel(
            options: LLVMTargetMachineOptionsRef, level: LLVMCodeGenOptLevel
        );
        fn LLVMTargetMachineOptionsSetRelocMode(
            options: LLVMTargetMachineOptionsRef, reloc: LLVMRelocMode
        );
        fn LLVMTargetMachineOptionsSetCodeModel(
            options: LLVMTargetMachineOptionsRef, code_model: LLVMCodeModel
        );
        fn LLVMCreateTargetMachineWithOptions(
            t: LLVMTargetRef, triple: *const c_char, options: LLVMTargetMachineOptionsRef
        ) -> LLVMTargetMachineRef;
        fn LLVMCreateTargetMachine(
            t: LLVMTargetRef, triple: *const c_char, cpu: *const c_char, features: *const c_char,
            level: LLVMCodeGenOptLevel, reloc: LLVMRelocMode, code_model: LLVMCodeModel
        ) -> LLVMTargetMachineRef;
        fn LLVMDisposeTargetMachine(t: LLVMTargetMachineRef);
        fn LLVMGetTargetMachineTriple(t: LLVMTargetMachineRef) -> *mut c_char;
        fn LLVMGetTargetMachineCPU(t: LLVMTargetMachineRef) -> *mut c_char;
        fn LLVMGetTargetMachineFeatureString(t: LLVMTargetMachineRef) -> *mut c_char;
        fn LLVMCreateTargetDataLayout(t: LLVMTargetMachineRef) -> LLVMTargetDataRef;
        fn LLVMSetTargetMachineAsmVerbosity(t: LLVMTargetMachineRef, verbose_asm: LLVMBool);
        fn LLVMSetTargetMachineFastISel(t: LLVMTargetMachineRef, enable: LLVMBool);
        fn LLVMTargetMachineEmitToFile(
            t: LLVMTargetMachineRef, m: LLVMModuleRef, filename: *const c_char,
            codegen: LLVMCodeGenFileType, error_message: *mut *mut c_char
        ) -> LLVMBool;
        fn LLVMTargetMachineEmitToMemoryBuffer(
            t: LLVMTargetMachineRef, m: LLVMModuleRef, codegen: LLVMCodeGenFileType,
            error_message: *mut *mut c_char, out_mem_buf: *mut LLVMMemoryBufferRef
        ) -> LLVMBool;
        fn LLVMGetDefaultTargetTriple() -> *mut c_char;
        fn LLVMNormalizeTargetTriple(triple: *const c_char) -> *mut c_char;
        fn LLVMGetHostCPUName() -> *mut c_char;
        fn LLVMGetHostCPUFeatures() -> *mut c_char;
        fn LLVMWriteBitcodeToFile(m: LLVMModuleRef, path: *const c_char) -> c_int;
        fn LLVMWriteBitcodeToMemoryBuffer(m: LLVMModuleRef) -> LLVMMemoryBufferRef;
        fn LLVMVerifyModule(
            m: LLVMModuleRef, action: LLVMVerifierFailureAction, out_message: *mut *mut c_char
        ) -> LLVMBool;
        fn LLVMVerifyFunction(
            function: LLVMValueRef, action: LLVMVerifierFailureAction
        ) -> LLVMBool;
        fn LLVMParseIRInContext(
            context_ref: LLVMContextRef, mem_buf: LLVMMemoryBufferRef, out_m: *mut LLVMModuleRef,
            out_message: *mut *mut c_char
        ) -> LLVMBool;
        fn LLVMParseCommandLineOptions(
            argc: c_int, argv: *const *const c_char, overview: *const c_char
        );
        fn LLVMConsumeError(err: LLVMErrorRef);
        fn LLVMGetErrorMessage(err: LLVMErrorRef) -> *mut c_char;
        fn LLVMDisposeErrorMessage(err_msg: *mut c_char);
        fn LLVMGetVersion(major: *mut c_uint, minor: *mut c_uint, patch: *mut c_uint);
        fn LLVMCreateMessage(message: *const c_char) -> *mut c_char;
        fn LLVMDisposeMessage(message: *mut c_char);
        fn LLVMContextCreate() -> LLVMContextRef;
        fn LLVMContextSetDiagnosticHandler(
            c: LLVMContextRef, handler: LLVMDiagnosticHandler, diagnostic_context: *mut c_void
        );
        fn LLVMContextSetDiscardValueNames(c: LLVMContextRef, discard: LLVMBool);
        fn LLVMContextDispose(c: LLVMContextRef);
        fn LLVMGetDiagInfoDescription(di: LLVMDiagnosticInfoRef) -> *mut c_char;
        fn LLVMGetDiagInfoSeverity(di: LLVMDiagnosticInfoRef) -> c_int;
        fn LLVMModuleCreateWithNameInContext(
            module_id: *const c_char, c: LLVMContextRef
        ) -> LLVMModuleRef;
        fn LLVMCloneModule(m: LLVMModuleRef) -> LLVMModuleRef;
        fn LLVMDisposeModule(m: LLVMModuleRef);
        fn LLVMGetModuleIdentifier(m: LLVMModuleRef, len: *mut usize) -> *const c_char;
        fn LLVMSetModuleIdentifier(m: LLVMModuleRef, ident: *const c_char, len: usize);
        fn LLVMModuleFlagEntriesGetFlagBehavior(
            entries: *mut LLVMModuleFlagEntry, index: c_uint
        ) -> c_int;
        fn LLVMModuleFlagEntriesGetKey(
            entries: *mut LLVMModuleFlagEntry, index: c_uint, len: *mut usize
        ) -> *const c_char;
        fn LLVMGetModuleFlag(
            m: LLVMModuleRef, key: *const c_char, key_len: usize
        ) -> LLVMMetadataRef;
        fn LLVMAddModuleFlag(
            m: LLVMModuleRef, behavior: LLVMModuleFlagBehavior, key: *const c_char, key_len: usize,
            val: LLVMMetadataRef
        );
        fn LLVMPrintModuleToFile(
            m: LLVMModuleRef, filename: *const c_char, error_message: *mut *mut c_char
        ) -> LLVMBool;
        fn LLVMPrintModuleToString(m: LLVMModuleRef) -> *mut c_char;
        fn LLVMGetModuleContext(m: LLVMModuleRef) -> LLVMContextRef;
        fn LLVMCreateMemoryBufferWithContentsOfFile(
            path: *const c_char, out_mem_buf: *mut LLVMMemoryBufferRef,
            out_message: *mut *mut c_char
        ) -> LLVMBool;
        fn LLVMCreateMemoryBufferWithMemoryRange(
            input_data: *const c_char, input_data_length: usize, buffer_name: *const c_char,
            requires_null_terminator: LLVMBool
        ) -> LLVMMemoryBufferRef;
        fn LLVMCreateMemoryBufferWithMemoryRangeCopy(
            input_data: *const c_char, input_data_length: usize, buffer_name: *const c_char
        ) -> LLVMMemoryBufferRef;
        fn LLVMGetBufferStart(mem_buf: LLVMMemoryBufferRef) -> *const c_char;
        fn LLVMGetBufferSize(mem_buf: LLVMMemoryBufferRef) -> usize;
        fn LLVMDisposeMemoryBuffer(mem_buf: LLVMMemoryBufferRef);
        fn LLVMGetModuleDataLayout(m: LLVMModuleRef) -> LLVMTargetDataRef;
        fn LLVMSetModuleDataLayout(m: LLVMModuleRef, r: LLVMTargetDataRef);
        fn LLVMCreateTargetData(string_rep: *const c_char) -> LLVMTargetDataRef;
        fn LLVMCopyStringRepOfTargetData(td: LLVMTargetDataRef) -> *mut c_char;
        fn LLVMByteOrder(td: LLVMTargetDataRef) -> c_int;
        fn LLVMPointerSize(td: LLVMTargetDataRef) -> c_uint;
        fn LLVMIntPtrTypeInContext(c: LLVMContextRef, td: LLVMTargetDataRef) -> LLVMTypeRef;
        fn LLVMSizeOfTypeInBits(td: LLVMTargetDataRef, ty: LLVMTypeRef) -> c_ulonglong;
        fn LLVMStoreSizeOfType(td: LLVMTargetDataRef, ty: LLVMTypeRef) -> c_ulonglong;
        fn LLVMABISizeOfType(td: LLVMTargetDataRef, ty: LLVMTypeRef) -> c_ulonglong;
        fn LLVMABIAlignmentOfType(td: LLVMTargetDataRef, ty: LLVMTypeRef) -> c_uint;
        fn LLVMOffsetOfElement(
            td: LLVMTargetDataRef, struct_ty: LLVMTypeRef, element: c_uint
        ) -> c_ulonglong;
        fn LLVMDisposeTargetData(td: LLVMTargetDataRef);
        fn LLVMParseBitcodeInContext2(
            context_ref: LLVMContextRef, mem_buf: LLVMMemoryBufferRef,
            out_module: *mut LLVMModuleRef
        ) -> LLVMBool;
        fn LLVMGetBitcodeModuleInContext2(
            context_ref: LLVMContextRef, mem_buf: LLVMMemoryBufferRef, out_m: *mut LLVMModuleRef
        ) -> LLVMBool;
        fn LLVMRunPasses(
            m: LLVMModuleRef, passes: *const c_char, tm: LLVMTargetMachineRef,
            options: LLVMPassBuilderOptionsRef
        ) -> LLVMErrorRef;
        fn LLVMCreatePassBuilderOptions() -> LLVMPassBuilderOptionsRef;
        fn LLVMPassBuilderOptionsSetVerifyEach(
            options: LLVMPassBuilderOptionsRef, verify_each: LLVMBool
        );
        fn LLVMPassBuilderOptionsSetDebugLogging(
            options: LLVMPassBuilderOptionsRef, debug_logging: LLVMBool
        );
        fn LLVMPassBuilderOptionsSetLoopInterleaving(
            options: LLVMPassBuilderOptionsRef, loop_interleaving: LLVMBool
        );
        fn LLVMPassBuilderOptionsSetLoopVectorization(
            options: LLVMPassBuilderOptionsRef, loop_vectorization: LLVMBool
        );
        fn LLVMPassBuilderOptionsSetSLPVectorization(
            options: LLVMPassBuilderOptionsRef, slp_vectorization: LLVMBool
        );
        fn LLVMPassBuilderOptionsSetLoopUnrolling(
            options: LLVMPassBuilderOptionsRef, loop_unrolling: LLVMBool
        );
        fn LLVMPassBuilderOptionsSetForgetAllSCEVInLoopUnroll(
            options: LLVMPassBuilderOptionsRef, forget_all_scev_in_loop_unroll: LLVMBool
        );
        fn LLVMPassBuilderOptionsSetLicmMssaOptCap(
            options: LLVMPassBuilderOptionsRef, licm_mssa_opt_cap: c_uint
        );
        fn LLVMPassBuilderOptionsSetLicmMssaNoAccForPromotionCap(
            options: LLVMPassBuilderOptionsRef, licm_mssa_no_acc_for_promotion_cap: c_uint
        );
        fn LLVMPassBuilderOptionsSetCallGraphProfile(
            options: LLVMPassBuilderOptionsRef, call_graph_profile: LLVMBool
        );
        fn LLVMPassBuilderOptionsSetMergeFunctions(
            options: LLVMPassBuilderOptionsRef, merge_functions: LLVMBool
        );
        fn LLVMPassBuilderOptionsSetInlinerThreshold(
            options: LLVMPassBuilderOptionsRef, threshold: c_int
        );
        fn LLVMDisposePassBuilderOptions(options: LLVMPassBuilderOptionsRef);
        fn LLVMInitializeX86TargetInfo();
        fn LLVMInitializeX86Target();
        fn LLVMInitializeX86TargetMC();
        fn LLVMInitializeX86AsmPrinter();
        fn LLVMInitializeX86AsmParser();
    }
    optional {
        fn LLVMRunPassesOnFunction(
            f: LLVMValueRef, passes: *const c_char, tm: LLVMTargetMachineRef,
            options: LLVMPassBuilderOptionsRef
        ) -> LLVMErrorRef;
        fn LLVMPassBuilderOptionsSetAAPipeline(
            options: LLVMPassBuilderOptionsRef, aa_pipeline: *const c_char
        );
    }
}
