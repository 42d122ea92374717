//! What finds the names of a panic's call stack is not instrumented; functions of the library for its types are, where the program
//! calls them as well.

use crate::rust::{finds_names, is_of_symboliser, mentions_symboliser, plain_name};
use llvm::Llvm;
use llvm_sys::prelude::{LLVMMetadataRef, LLVMValueRef};

/// Is it a function of the library for a symboliser's types that others call as well? LLVM makes one function of those that are
/// alike, such as what grows vectors of elements of one size, under the name of any of them.
///
/// # Safety
/// The function must be alive; likewise below.
pub(crate) unsafe fn is_shared(llvm: &Llvm, function: LLVMValueRef, name: &str) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        mentions_symboliser(name)
            && callers(llvm, function).iter().any(|caller| !is_of_symbolisers(llvm, *caller))
    }
}

/// The functions whose instructions use the function.
unsafe fn callers(llvm: &Llvm, function: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    // SAFETY: as the caller promises; instructions are in blocks of functions.
    unsafe {
        let mut next = llvm.LLVMGetFirstUse(function);
        while !next.is_null() {
            let user = llvm.LLVMGetUser(next);
            if !llvm.LLVMIsAInstruction(user).is_null() {
                found.push(llvm.LLVMGetBasicBlockParent(llvm.LLVMGetInstructionParent(user)));
            }
            next = llvm.LLVMGetNextUse(next);
        }
    }
    found
}

/// Is it a function of a symboliser, by its file or its name?
unsafe fn is_of_symbolisers(llvm: &Llvm, function: LLVMValueRef) -> bool {
    // SAFETY: as the caller promises; scopes of a live module are alive.
    unsafe {
        if is_of_symboliser(&plain_name(&llvm.value_name(function))) {
            return true;
        }
        let scope = llvm.LLVMGetSubprogram(function);
        if scope.is_null() {
            return false;
        }
        let file = llvm.LLVMDIScopeGetFile(scope);
        if file.is_null() {
            return false;
        }
        let (directory, name) = path_of(llvm, file);
        finds_names(&directory, &name)
    }
}

/// A source file's directory and name.
pub(crate) unsafe fn path_of(llvm: &Llvm, file: LLVMMetadataRef) -> (String, String) {
    let (mut of_directory, mut of_name) = (0, 0);
    // SAFETY: as the caller promises; LLVM returns lengths with starts.
    unsafe {
        let start = llvm.LLVMDIFileGetDirectory(file, &mut of_directory);
        let directory = llvm::bytes_to_string(start, of_directory as usize);
        let start = llvm.LLVMDIFileGetFilename(file, &mut of_name);
        (directory, llvm::bytes_to_string(start, of_name as usize))
    }
}
