//! Qt 6: a `QMutex` is a word that programs take and give by atomic updates of their own, inlined from its header; only
//! where it is not free do they call the library. Here these updates become calls of the runtime (`runtime::foreign::qt`),
//! as Qt 5's functions are calls, whatever the optimiser did to the code around them:
//!
//! | in | what | becomes |
//! | --- | --- | --- |
//! | `fastTryLock` of `lock` | the compare-and-exchange | the call, and "exchanged" |
//! | `fastTryLock` of `tryLock` | the compare-and-exchange | the call, and whether it was free |
//! | `fastTryUnlock` | the compare-and-exchange | the call, and "exchanged" |
//! | `unlock`, an assertion | a look at the word | held |
//! | the destructor | a look at the word | free |
//!
//! Without optimisation these are calls, and are replaced as such.

use crate::rewriter::{NO_NAME, Rewriter};
use llvm::Module;
use llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};
use llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMTypeKind};

const LOCK: &str = "_ZN11QBasicMutex4lockEv";
const UNLOCK: &str = "_ZN11QBasicMutex6unlockEv";
const FAST_LOCK: &str = "_ZN11QBasicMutex11fastTryLockEv";
const FAST_UNLOCK: &str = "_ZN11QBasicMutex13fastTryUnlockEv";
const LOOK: &str = "_ZNK19QBasicAtomicPointerI13QMutexPrivateE11loadRelaxedEv";
/// Both symbols of the destructor.
const DESTRUCTOR: [&str; 2] = ["_ZN6QMutexD2Ev", "_ZN6QMutexD1Ev"];
/// One of these is called by every module with such a mutex.
const SLOW: [&std::ffi::CStr; 3] = [
    c"_ZN11QBasicMutex12lockInternalEv",
    c"_ZN11QBasicMutex12lockInternalEi",
    c"_ZN11QBasicMutex14unlockInternalEv",
];

const FREE: u64 = 0;
const HELD: u64 = 1;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Lock,
    TryLock,
    Unlock,
    /// It looks at a word that is known to be this.
    Look(u64),
}

impl Role {
    /// Of an update or call in the function that is first in the list and inlined into the following ones.
    fn of_update(within: &[String]) -> Option<Self> {
        let place =
            within.iter().position(|symbol| symbol == FAST_LOCK || symbol == FAST_UNLOCK)?;
        // What the function does is replaced where it is called or was inlined, not in itself.
        let caller = within.get(place + 1)?;
        Some(match (within[place] == FAST_UNLOCK, caller == LOCK) {
            (true, _) => Self::Unlock,
            (false, true) => Self::Lock,
            (false, false) => Self::TryLock,
        })
    }

    /// Of a look in the first of these functions, likewise.
    fn of_look(within: &[String]) -> Option<Self> {
        within.iter().find_map(|symbol| match symbol.as_str() {
            UNLOCK => Some(Self::Look(HELD)),
            symbol if DESTRUCTOR.contains(&symbol) => Some(Self::Look(FREE)),
            _ => None,
        })
    }
}

/// The module with calls of the runtime in the place of updates of Qt 6's mutexes, as bitcode; `None` for one that has
/// none.
pub fn prepared(module: &Module<'_>) -> Option<Vec<u8>> {
    let llvm = module.llvm();
    // SAFETY: the module is alive, and the names end in zeros.
    let uses = |name: &std::ffi::CStr| unsafe {
        !llvm.LLVMGetNamedFunction(module.raw(), name.as_ptr()).is_null()
    };
    if !SLOW.iter().any(|name| uses(name)) {
        return None;
    }
    let code = Rewriter::new(module);
    for function in module.functions() {
        // SAFETY: the function is alive, and instructions are removed after all have been seen.
        unsafe {
            let name = llvm.value_name(function);
            let all: Vec<LLVMValueRef> =
                llvm.blocks(function).flat_map(|block| llvm.instructions(block)).collect();
            for instruction in all {
                if let Some(role) = role(&code, instruction, &name) {
                    replace(&code, instruction, role);
                }
            }
        }
    }
    drop(code);
    Some(module.write_bitcode())
}

/// What the instruction of a function of this name does; `None` where it stays as it is.
///
/// # Safety
/// The instruction must be alive; likewise below.
unsafe fn role(code: &Rewriter<'_, '_>, instruction: LLVMValueRef, name: &str) -> Option<Role> {
    let llvm = code.llvm;
    // SAFETY: as the caller promises; only calls are asked for what they call, and loads whether they are atomic.
    unsafe {
        // The functions around it, the innermost first. Without debug information only the outermost is known.
        let within = || {
            let mut symbols: Vec<String> =
                code.within(instruction).filter_map(|(scope, _)| code.symbol(scope)).collect();
            if symbols.is_empty() {
                symbols.push(name.to_owned());
            }
            symbols
        };
        if code.is(instruction, LLVMOpcode::LLVMAtomicCmpXchg) {
            return Role::of_update(&within());
        }
        if code.is(instruction, LLVMOpcode::LLVMLoad) {
            let atomic = llvm.LLVMGetOrdering(instruction) != 0;
            return if atomic { Role::of_look(&within()) } else { None };
        }
        if !code.is(instruction, LLVMOpcode::LLVMCall) {
            return None;
        }
        let callee = llvm.LLVMIsAFunction(llvm.LLVMGetCalledValue(instruction));
        if callee.is_null() {
            return None;
        }
        match llvm.value_name(callee) {
            callee if callee == FAST_LOCK || callee == FAST_UNLOCK => {
                let mut functions = vec![callee];
                functions.extend(within());
                Role::of_update(&functions)
            }
            callee if callee == LOOK => Role::of_look(&within()),
            _ => None,
        }
    }
}

unsafe fn replace(code: &Rewriter<'_, '_>, instruction: LLVMValueRef, role: Role) {
    let llvm = code.llvm;
    // SAFETY: the operands are those that the instructions have, and what is put in the place of one has its type.
    unsafe {
        let ty = llvm.LLVMTypeOf(instruction);
        let (entry, result) = match role {
            Role::Lock => ("__symbiosis_qt_lock", code.void),
            Role::TryLock => ("__symbiosis_qt_try_lock", code.i32),
            Role::Unlock => ("__symbiosis_qt_unlock", code.void),
            Role::Look(found) => return code.put(instruction, constant(code, ty, found)),
        };
        let object = llvm.LLVMGetOperand(instruction, 0);
        let call = code.build_call(instruction, entry, result, vec![code.pointer], &mut [object]);
        let done = match role {
            Role::TryLock => {
                let zero = llvm.LLVMConstInt(code.i32, FREE, 0);
                let equal = LLVMIntPredicate::LLVMIntEQ;
                llvm.LLVMBuildICmp(code.builder, equal, call, zero, NO_NAME)
            }
            _ => llvm.LLVMConstInt(llvm.LLVMInt1TypeInContext(code.module.context().raw()), 1, 0),
        };
        if code.is(instruction, LLVMOpcode::LLVMCall) {
            code.put(instruction, done);
            return;
        }
        // What is found in the word nobody looks at who knows that it was exchanged, or was not.
        let word = llvm.LLVMTypeOf(llvm.LLVMGetOperand(instruction, 1));
        let found = constant(code, word, if role == Role::Lock { FREE } else { HELD });
        let pair = llvm.LLVMGetUndef(ty);
        let pair = llvm.LLVMBuildInsertValue(code.builder, pair, found, 0, NO_NAME);
        let pair = llvm.LLVMBuildInsertValue(code.builder, pair, done, 1, NO_NAME);
        code.put(instruction, pair);
    }
}

/// A word of that type.
unsafe fn constant(code: &Rewriter<'_, '_>, ty: LLVMTypeRef, value: u64) -> LLVMValueRef {
    let llvm = code.llvm;
    // SAFETY: the type is an integer's or a pointer's.
    unsafe {
        if llvm.LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMPointerTypeKind as i32 {
            return llvm.LLVMConstIntToPtr(llvm.LLVMConstInt(code.i64, value, 0), ty);
        }
        llvm.LLVMConstInt(ty, value, 0)
    }
}
