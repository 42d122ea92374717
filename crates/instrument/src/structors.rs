//! Constructors and destructors of the module.
//!
//! Through the LLVM-C API the code generator can only make the `.ctors` and `.dtors` sections of
//! old, which not every linker runs. So the tables are lowered here, to `.init_array` and
//! `.fini_array`, as clang does it.

use llvm::{Llvm, Module};
use llvm_sys::LLVMLinkage;
use llvm_sys::prelude::LLVMValueRef;
use std::ffi::{CStr, CString};

/// The priority of constructors that have none.
const NO_PRIORITY: u64 = 65535;

/// Replaces `llvm.global_ctors` and `llvm.global_dtors`.
pub fn lower(module: &Module<'_>) {
    lower_table(module, c"llvm.global_ctors", ".init_array");
    lower_table(module, c"llvm.global_dtors", ".fini_array");
}

fn lower_table(module: &Module<'_>, name: &CStr, section: &str) {
    let llvm = module.llvm();
    // SAFETY: the module is alive; the table is deleted when nothing is asked of it any more, and
    // nothing can refer to it.
    unsafe {
        let table = llvm.LLVMGetNamedGlobal(module.raw(), name.as_ptr());
        if table.is_null() {
            return;
        }
        let entries = llvm.LLVMGetInitializer(table);
        if !entries.is_null() {
            let length = llvm.LLVMGetArrayLength2(llvm.LLVMTypeOf(entries));
            for index in 0..u32::try_from(length).unwrap_or(u32::MAX) {
                let entry = llvm.LLVMGetAggregateElement(entries, index);
                if !entry.is_null() {
                    lower_entry(module, entry, section);
                }
            }
        }
        llvm.LLVMDeleteGlobal(table);
    }
}

/// # Safety
/// The entry must be a `{ i32 priority, ptr function, ptr data }` of the module.
unsafe fn lower_entry(module: &Module<'_>, entry: LLVMValueRef, section: &str) {
    let llvm = module.llvm();
    // SAFETY: as the caller promises.
    unsafe {
        let priority = llvm.LLVMConstIntGetZExtValue(llvm.LLVMGetAggregateElement(entry, 0));
        let function = llvm.LLVMGetAggregateElement(entry, 1);
        if llvm.LLVMIsNull(function) != 0 {
            return;
        }
        let name = c"__symbiosis_structor".as_ptr();
        let slot = llvm.LLVMAddGlobal(module.raw(), llvm.LLVMTypeOf(function), name);
        llvm.LLVMSetInitializer(slot, function);
        llvm.LLVMSetLinkage(slot, LLVMLinkage::LLVMInternalLinkage);
        llvm.LLVMSetAlignment(slot, 8);
        if let Some(section) = section_name(section, priority) {
            llvm.LLVMSetSection(slot, section.as_ptr());
        }
        tie(llvm, slot, llvm.LLVMGetAggregateElement(entry, 2));
    }
}

fn section_name(section: &str, priority: u64) -> Option<CString> {
    let name = match priority {
        NO_PRIORITY => section.to_owned(),
        _ => format!("{section}.{priority}"),
    };
    CString::new(name).ok()
}

/// A constructor that initialises `data` goes away when the linker keeps another copy of `data`.
///
/// # Safety
/// The slot must be a live global variable, and the data a live constant or null.
unsafe fn tie(llvm: &Llvm, slot: LLVMValueRef, data: LLVMValueRef) {
    // SAFETY: as the caller promises; only functions and variables are asked for their group.
    unsafe {
        if data.is_null() || llvm.LLVMIsAGlobalObject(data).is_null() {
            return;
        }
        let group = llvm.LLVMGetComdat(data);
        if !group.is_null() {
            llvm.LLVMSetComdat(slot, group);
        }
    }
}
