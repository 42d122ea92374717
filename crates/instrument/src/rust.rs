//! Programs in Rust. The standard library comes as part of the program's bitcode, with its locks inline: what
//! takes and gives them is an atomic update of a word. Here such updates become calls of the runtime
//! (`runtime::foreign::rust`), which knows the locks that they stand for, and panics announce themselves.
//!
//! An update is told by the functions that the debug information says it was inlined from, whatever the optimiser
//! did to the code around it. Where the library looks at what it found in the word, it finds what leads past
//! its own sleeping and waking:
//!
//! | in | what | becomes |
//! | --- | --- | --- |
//! | `Mutex::lock`, `RwLock::read`, `write` | a look at the word | free |
//! | | the compare-and-exchange | the call, and "exchanged" |
//! | `Mutex::try_lock` | the compare-and-exchange | the call's word, and whether it was free |
//! | `RwLock::try_read`, `try_write` | the look | the call's word |
//! | | the compare-and-exchange | "exchanged" |
//! | `unlock`, `read_unlock`, `write_unlock` | the update | the call, and "nobody sleeps" |
//! | `Condvar::wait` and its kin | looks, the mutex's updates | "unchanged", done |
//! | | the system call | the call |
//! | `Condvar::notify_one`, `notify_all` | the update | the call |
//! | | waking | nothing |

use crate::rewriter::{NO_NAME, Rewriter, string};
use crate::symbolisers;
use ir::name::rust::{DEPENDENCIES, LIBRARY};
use llvm::Module;
use llvm_sys::prelude::{LLVMBasicBlockRef, LLVMMetadataRef, LLVMValueRef};
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMIntPredicate, LLVMOpcode};
use std::collections::HashMap;
use std::ffi::c_uint;

/// A reader's share of a lock's word, and a writer's.
const ONE_READER: u64 = 1;
const WRITER: u64 = 0x3fff_ffff;
/// A lock's word while it is held and nobody sleeps.
const HELD: u64 = 1;
/// Which argument of the function that begins a panic is its place.
const PLACE_ARGUMENT: c_uint = 2;

/// `SIG_IGN`: what a signal's action says first that is not the default.
const SIGNAL_IGNORED: u64 = 1;

/// The library's dependencies that find the names behind the addresses of a panic's call stack, which takes tens of millions of
/// steps and tells nothing of what threads do.
const SYMBOLISERS: [&str; 6] =
    ["addr2line-", "adler2-", "gimli-", "miniz_oxide-", "object-", "rustc-demangle-"];

/// What a function of the library does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Lock,
    TryLock,
    Unlock,
    Read,
    TryRead,
    EndRead,
    Write,
    TryWrite,
    EndWrite,
    Wait,
    Notify { all: bool },
}

impl Role {
    /// By the function's name, without hash and angle brackets.
    fn of(name: &str) -> Option<Self> {
        let (place, function) = name.rsplit_once("::")?;
        let (module, kind) = place.rsplit_once("::")?;
        if !module.starts_with("std::sys") || !module.contains("futex") {
            return None;
        }
        Some(match (kind, function) {
            ("Mutex", "lock") => Self::Lock,
            ("Mutex", "try_lock") => Self::TryLock,
            ("Mutex", "unlock") => Self::Unlock,
            ("RwLock", "read") => Self::Read,
            ("RwLock", "try_read") => Self::TryRead,
            ("RwLock", "read_unlock") => Self::EndRead,
            ("RwLock", "write") => Self::Write,
            ("RwLock", "try_write") => Self::TryWrite,
            ("RwLock", "write_unlock") => Self::EndWrite,
            ("Condvar", "wait" | "wait_timeout" | "wait_optional_timeout") => Self::Wait,
            ("Condvar", "notify_one") => Self::Notify { all: false },
            ("Condvar", "notify_all") => Self::Notify { all: true },
            _ => return None,
        })
    }

    /// The runtime's function.
    fn entry(self) -> &'static str {
        match self {
            Self::Lock => "__symbiosis_rust_lock",
            Self::TryLock => "__symbiosis_rust_try_lock",
            Self::Unlock => "__symbiosis_rust_unlock",
            Self::Read => "__symbiosis_rust_read",
            Self::TryRead => "__symbiosis_rust_try_read",
            Self::EndRead => "__symbiosis_rust_end_read",
            Self::Write => "__symbiosis_rust_write",
            Self::TryWrite => "__symbiosis_rust_try_write",
            Self::EndWrite => "__symbiosis_rust_end_write",
            Self::Wait => "__symbiosis_rust_wait",
            Self::Notify { all: false } => "__symbiosis_rust_notify_one",
            Self::Notify { all: true } => "__symbiosis_rust_notify_all",
        }
    }

    /// Does the runtime's function give the word?
    fn gives_word(self) -> bool {
        matches!(self, Self::TryLock | Self::TryRead | Self::TryWrite)
    }
}

/// A symbol's name in the source, without hash, parameters of types and angle brackets around the type of an
/// inherent function.
pub(crate) fn plain_name(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol)).replace(['<', '>'], "")
}

/// Is the module the work of rustc?
fn is_rust(module: &Module<'_>) -> bool {
    let llvm = module.llvm();
    let name = c"llvm.ident";
    // SAFETY: the module is alive, and the list has as many places as there are operands.
    unsafe {
        let count = llvm.LLVMGetNamedMetadataNumOperands(module.raw(), name.as_ptr()) as usize;
        let mut nodes = vec![std::ptr::null_mut(); count];
        llvm.LLVMGetNamedMetadataOperands(module.raw(), name.as_ptr(), nodes.as_mut_ptr());
        nodes.into_iter().any(|node| {
            if llvm.LLVMGetMDNodeNumOperands(node) == 0 {
                return false;
            }
            let mut operands =
                vec![std::ptr::null_mut(); llvm.LLVMGetMDNodeNumOperands(node) as usize];
            llvm.LLVMGetMDNodeOperands(node, operands.as_mut_ptr());
            operands.first().is_some_and(|&text| string(llvm, text).starts_with("rustc"))
        })
    }
}

/// The module with calls of the runtime in the place of the library's own updates, as bitcode; `None` for one
/// that is not of Rust.
pub fn prepared(module: &Module<'_>) -> Option<Vec<u8>> {
    if !is_rust(module) {
        return None;
    }
    let llvm = module.llvm();
    let mut library = Library::new(module);
    for function in module.functions() {
        // SAFETY: the function is alive, and instructions are removed after all have been seen.
        unsafe {
            let blocks: Vec<LLVMBasicBlockRef> = llvm.blocks(function).collect();
            if blocks.is_empty() {
                continue;
            }
            if library.stays_out(function) {
                library.leave(function);
            } else {
                library.function(function, &blocks);
            }
        }
    }
    drop(library);
    Some(module.write_bitcode())
}

/// Where an instruction comes from: what it is part of, and which inlined copy of that.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    role: Role,
    copy: LLVMMetadataRef,
}

struct Library<'m, 'c> {
    code: Rewriter<'m, 'c>,
    roles: HashMap<LLVMMetadataRef, Option<Role>>,
}

impl<'m, 'c> Library<'m, 'c> {
    fn new(module: &'m Module<'c>) -> Self {
        Self { code: Rewriter::new(module), roles: HashMap::new() }
    }

    /// Is the function's work to find the names of a call stack, to know the threads' stacks for the case that one
    /// overflows, or to say where a panic arrives?
    ///
    /// # Safety
    /// The function must be alive; likewise below.
    unsafe fn stays_out(&self, function: LLVMValueRef) -> bool {
        let llvm = self.code.llvm;
        // SAFETY: as the caller promises; scopes of a live module are alive, and LLVM returns lengths with starts.
        unsafe {
            let scope = llvm.LLVMGetSubprogram(function);
            if scope.is_null() {
                // The library's dependencies come without, and what `symbiosis` has compiled comes with it.
                return is_of_symboliser(&plain_name(&llvm.value_name(function)));
            }
            let file = llvm.LLVMDIScopeGetFile(scope);
            if file.is_null() {
                return false;
            }
            let (directory, name) = symbolisers::path_of(llvm, file);
            if finds_names(&directory, &name) || !directory.starts_with(LIBRARY) {
                return finds_names(&directory, &name);
            }
            let symbol = plain_name(&llvm.value_name(function));
            unwinds(&name, &symbol)
                || (is_about_stacks(&symbol) && !symbolisers::is_shared(llvm, function, &symbol))
        }
    }

    /// The function is left as it is.
    unsafe fn leave(&self, function: LLVMValueRef) {
        let (llvm, name) = (self.code.llvm, ir::UNTRACED);
        let length = c_uint::try_from(name.count_bytes()).unwrap_or(0);
        // SAFETY: as the caller promises; the name lives for ever.
        unsafe {
            let context = self.code.module.context().raw();
            let attribute =
                llvm.LLVMCreateStringAttribute(context, name.as_ptr(), length, NO_NAME, 0);
            llvm.LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute);
        }
    }

    /// # Safety
    /// The function and its blocks must be alive; likewise for the values that the functions below get.
    unsafe fn function(&mut self, function: LLVMValueRef, blocks: &[LLVMBasicBlockRef]) {
        let llvm = self.code.llvm;
        // SAFETY: as the caller promises.
        unsafe {
            if begins_panic(&llvm.value_name(function)) {
                self.announce(function);
            }
            let all: Vec<LLVMValueRef> =
                blocks.iter().flat_map(|&block| llvm.instructions(block)).collect();
            for &asked in all.iter().filter(|&&i| self.asks_for_handler(i)) {
                self.claim_handler(asked);
            }
            let parts: Vec<(LLVMValueRef, Part)> =
                all.into_iter().filter_map(|i| self.part(i).map(|part| (i, part))).collect();
            let of_wait = |part: &Part| part.role == Role::Wait;
            // Which mutex is given back in a wait, by the copy of the wait.
            let mutexes: Vec<(Part, LLVMValueRef)> = parts
                .iter()
                .filter(|(i, part)| of_wait(part) && self.code.is(*i, LLVMOpcode::LLVMAtomicRMW))
                .map(|&(i, part)| (part, llvm.LLVMGetOperand(i, 0)))
                .collect();
            let sleeps: Vec<Part> = parts
                .iter()
                .filter(|(i, part)| of_wait(part) && self.sleeps(*i))
                .map(|&(_, part)| part)
                .collect();
            for (instruction, part) in parts {
                // A wait is replaced as a whole, or stays as it is: else its mutex would not be given back.
                let whole =
                    sleeps.contains(&part) && mutexes.iter().any(|(released, _)| *released == part);
                if !of_wait(&part) || whole {
                    self.replace(instruction, part, &mutexes);
                }
            }
        }
    }

    /// Is it a call by which a wait sleeps, of the form that is known?
    unsafe fn sleeps(&self, instruction: LLVMValueRef) -> bool {
        let llvm = self.code.llvm;
        // SAFETY: as the caller promises; only calls are asked for what they call.
        unsafe {
            if !self.code.is(instruction, LLVMOpcode::LLVMCall) {
                return false;
            }
            let callee = llvm.LLVMIsAFunction(llvm.LLVMGetCalledValue(instruction));
            !callee.is_null()
                && llvm.value_name(callee) == "syscall"
                && llvm.LLVMGetNumArgOperands(instruction) >= 5
                && llvm.LLVMTypeOf(llvm.LLVMGetOperand(instruction, 2)) == self.code.i32
        }
    }

    /// Does the library ask by this call whether somebody else handles the signal of stack overflows? Its own handler
    /// takes a table of all threads, which has a lock, and stands in the way of the runtime's.
    unsafe fn asks_for_handler(&self, instruction: LLVMValueRef) -> bool {
        let llvm = self.code.llvm;
        // SAFETY: as the caller promises; only calls are asked for what they call.
        unsafe {
            if !self.code.is(instruction, LLVMOpcode::LLVMCall) {
                return false;
            }
            let callee = llvm.LLVMIsAFunction(llvm.LLVMGetCalledValue(instruction));
            if callee.is_null()
                || llvm.value_name(callee) != "sigaction"
                || llvm.LLVMGetNumArgOperands(instruction) != 3
                || llvm.LLVMIsNull(llvm.LLVMGetOperand(instruction, 1)) == 0
            {
                return false;
            }
            self.code.within(instruction).any(|(scope, _)| {
                let symbol = self.code.symbol(scope);
                symbol.is_some_and(|symbol| installs_handler(&plain_name(&symbol)))
            })
        }
    }

    /// The library's question gets the answer that somebody does.
    unsafe fn claim_handler(&self, asked: LLVMValueRef) {
        let llvm = self.code.llvm;
        // SAFETY: a call is followed by an instruction of its block, and the operand is what the call writes to.
        unsafe {
            llvm.LLVMPositionBuilderBefore(self.code.builder, llvm.LLVMGetNextInstruction(asked));
            let location = llvm.LLVMInstructionGetDebugLoc(asked);
            llvm.LLVMSetCurrentDebugLocation2(self.code.builder, location);
            let ignored = llvm.LLVMConstInt(self.code.i64, SIGNAL_IGNORED, 0);
            llvm.LLVMBuildStore(self.code.builder, ignored, llvm.LLVMGetOperand(asked, 2));
        }
    }

    /// What the instruction is part of: of a wait whatever is inside of it, else of the innermost function that
    /// matters. `None` for an instruction that stays as it is.
    unsafe fn part(&mut self, instruction: LLVMValueRef) -> Option<Part> {
        // SAFETY: as the caller promises; only loads are asked whether they are atomic.
        unsafe {
            let word = match () {
                () if self.code.is(instruction, LLVMOpcode::LLVMLoad) => {
                    self.code.llvm.LLVMGetOrdering(instruction) != 0
                }
                () => {
                    [LLVMOpcode::LLVMAtomicCmpXchg, LLVMOpcode::LLVMAtomicRMW, LLVMOpcode::LLVMCall]
                        .into_iter()
                        .any(|opcode| self.code.is(instruction, opcode))
                }
            };
            if !word {
                return None;
            }
            let mut found: Option<Part> = None;
            for (scope, copy) in self.code.within(instruction) {
                if let Some(role) = self.role(scope)
                    && (found.is_none() || role == Role::Wait)
                    && found.is_none_or(|found| found.role != Role::Wait)
                {
                    found = Some(Part { role, copy });
                }
            }
            found
        }
    }

    /// The role of the function around a scope.
    unsafe fn role(&mut self, scope: LLVMMetadataRef) -> Option<Role> {
        if let Some(&role) = self.roles.get(&scope) {
            return role;
        }
        // SAFETY: scopes of a live module are alive.
        let role =
            unsafe { self.code.symbol(scope) }.and_then(|symbol| Role::of(&plain_name(&symbol)));
        self.roles.insert(scope, role);
        role
    }

    unsafe fn replace(
        &self,
        instruction: LLVMValueRef,
        part: Part,
        mutexes: &[(Part, LLVMValueRef)],
    ) {
        let llvm = self.code.llvm;
        let role = part.role;
        // SAFETY: the operands are those that the instructions have.
        unsafe {
            let word = |value: u64| llvm.LLVMConstInt(self.code.i32, value, 0);
            let narrow = |value| llvm.LLVMTypeOf(value) == self.code.i32;
            if self.code.is(instruction, LLVMOpcode::LLVMLoad) {
                let new = match role {
                    Role::Read | Role::Write | Role::Wait => word(0),
                    Role::TryRead | Role::TryWrite => {
                        self.call(instruction, role, &mut [llvm.LLVMGetOperand(instruction, 0)])
                    }
                    _ => return,
                };
                if narrow(instruction) {
                    self.code.put(instruction, new);
                }
            } else if self.code.is(instruction, LLVMOpcode::LLVMAtomicCmpXchg) {
                if !narrow(llvm.LLVMGetOperand(instruction, 1)) {
                    return;
                }
                let object = llvm.LLVMGetOperand(instruction, 0);
                let found = match role {
                    Role::Lock | Role::Read | Role::Write => {
                        self.call(instruction, role, &mut [object]);
                        word(0)
                    }
                    Role::TryLock => self.call(instruction, role, &mut [object]),
                    Role::TryRead | Role::TryWrite | Role::Wait => word(0),
                    _ => return,
                };
                self.put_exchanged(instruction, found);
            } else if self.code.is(instruction, LLVMOpcode::LLVMAtomicRMW) {
                if !narrow(instruction) {
                    return;
                }
                let object = llvm.LLVMGetOperand(instruction, 0);
                let found = match role {
                    Role::Unlock => word(HELD),
                    // One more is left, or nobody.
                    Role::EndRead => word(2 * ONE_READER),
                    Role::EndWrite => word(WRITER),
                    Role::Notify { .. } => word(0),
                    Role::Wait => word(HELD),
                    _ => return,
                };
                if role != Role::Wait {
                    self.call(instruction, role, &mut [object]);
                }
                self.code.put(instruction, found);
            } else {
                self.replace_call(instruction, part, mutexes);
            }
        }
    }

    /// The library sleeps or wakes.
    unsafe fn replace_call(
        &self,
        instruction: LLVMValueRef,
        part: Part,
        mutexes: &[(Part, LLVMValueRef)],
    ) {
        let llvm = self.code.llvm;
        // SAFETY: the operands are those that a call has.
        unsafe {
            let callee = llvm.LLVMIsAFunction(llvm.LLVMGetCalledValue(instruction));
            if callee.is_null() {
                return;
            }
            let name = llvm.value_name(callee);
            match part.role {
                Role::Wait if self.sleeps(instruction) => {
                    let Some(&(_, mutex)) = mutexes.iter().find(|(other, _)| *other == part) else {
                        return;
                    };
                    let argument = |index| llvm.LLVMGetOperand(instruction, index);
                    let (condition, operation, time) = (argument(1), argument(2), argument(4));
                    let new =
                        self.call(instruction, part.role, &mut [condition, mutex, operation, time]);
                    self.code.put(instruction, new);
                }
                Role::Notify { .. }
                    if name == "syscall" || plain_name(&name).contains("::futex_wake") =>
                {
                    let ty = llvm.LLVMTypeOf(instruction);
                    if ty == self.code.void {
                        llvm.LLVMInstructionEraseFromParent(instruction);
                    } else {
                        self.code.put(instruction, llvm.LLVMConstNull(ty));
                    }
                }
                _ => {}
            }
        }
    }

    /// Calls the runtime before the instruction.
    unsafe fn call(
        &self,
        before: LLVMValueRef,
        role: Role,
        arguments: &mut [LLVMValueRef],
    ) -> LLVMValueRef {
        let (result, parameters) = match role {
            Role::Wait => (
                self.code.i64,
                vec![self.code.pointer, self.code.pointer, self.code.i32, self.code.pointer],
            ),
            _ if role.gives_word() => (self.code.i32, vec![self.code.pointer]),
            _ => (self.code.void, vec![self.code.pointer]),
        };
        // SAFETY: the arguments have the types of the parameters.
        unsafe { self.code.build_call(before, role.entry(), result, parameters, arguments) }
    }

    /// As [`Rewriter::put`] for what a compare-and-exchange gives that found this: it has exchanged if that is 0.
    unsafe fn put_exchanged(&self, instruction: LLVMValueRef, found: LLVMValueRef) {
        let llvm = self.code.llvm;
        // SAFETY: as the caller promises.
        unsafe {
            llvm.LLVMPositionBuilderBefore(self.code.builder, instruction);
            let location = llvm.LLVMInstructionGetDebugLoc(instruction);
            llvm.LLVMSetCurrentDebugLocation2(self.code.builder, location);
            let zero = llvm.LLVMConstInt(self.code.i32, 0, 0);
            let equal = LLVMIntPredicate::LLVMIntEQ;
            let exchanged = llvm.LLVMBuildICmp(self.code.builder, equal, found, zero, NO_NAME);
            let pair = llvm.LLVMGetUndef(llvm.LLVMTypeOf(instruction));
            let pair = llvm.LLVMBuildInsertValue(self.code.builder, pair, found, 0, NO_NAME);
            let pair = llvm.LLVMBuildInsertValue(self.code.builder, pair, exchanged, 1, NO_NAME);
            self.code.put(instruction, pair);
        }
    }

    /// A panic begins in this function.
    unsafe fn announce(&self, function: LLVMValueRef) {
        let llvm = self.code.llvm;
        // SAFETY: a function with blocks has a first instruction.
        unsafe {
            let parameters = llvm.LLVMCountParams(function);
            let place = (parameters > PLACE_ARGUMENT)
                .then(|| llvm.LLVMGetParam(function, PLACE_ARGUMENT))
                .filter(|&place| llvm.LLVMTypeOf(place) == self.code.pointer);
            let place = place.unwrap_or_else(|| llvm.LLVMConstNull(self.code.pointer));
            let entry = llvm.LLVMGetEntryBasicBlock(function);
            let first =
                llvm.instructions(entry).find(|&i| !self.code.is(i, LLVMOpcode::LLVMAlloca));
            if let Some(first) = first {
                let name = "__symbiosis_rust_panic";
                self.code.build_call(
                    first,
                    name,
                    self.code.void,
                    vec![self.code.pointer],
                    &mut [place],
                );
            }
        }
    }
}

/// Is it the function by which the library takes the signals of stack overflows, unless somebody else has them?
fn installs_handler(name: &str) -> bool {
    name.starts_with("std::sys::")
        && name.contains("::stack_overflow::")
        && name.ends_with("::init")
}

/// Is the file one whose functions find the names of a call stack?
pub(crate) fn finds_names(directory: &str, file: &str) -> bool {
    let of_dependency = |path: &str| {
        let package = path.strip_prefix(DEPENDENCIES)?;
        Some(SYMBOLISERS.iter().any(|known| package.starts_with(known)))
    };
    of_dependency(directory)
        .or_else(|| of_dependency(file))
        .unwrap_or_else(|| file.contains("library/std/src/../../backtrace/"))
}

/// Is the function of the library one that the unwinder calls, to find out where what is thrown arrives, or that gives out
/// what arrived? In C++ both are in a library of their own.
fn unwinds(file: &str, name: &str) -> bool {
    file.contains("std/src/sys/personality/") || name.ends_with("::__rust_panic_cleanup")
}

/// Is it a function of the library for what finds the names of a call stack, or for its table of the threads' stacks?
fn is_about_stacks(name: &str) -> bool {
    let of_table = name.contains("::stack_overflow::") && !installs_handler(name);
    of_table || mentions_symboliser(name)
}

/// Is it a function for types of those that find the names of a call stack?
pub(crate) fn mentions_symboliser(name: &str) -> bool {
    ["gimli::", "addr2line::", "miniz_oxide::", "object::read::", "std::backtrace_rs::"]
        .iter()
        .any(|module| name.contains(module))
}

/// Is it a function of a package that finds the names of a call stack, or one for its types?
pub(crate) fn is_of_symboliser(name: &str) -> bool {
    let of_package = SYMBOLISERS.iter().any(|package| {
        let module = name.strip_prefix(package.trim_end_matches('-').replace('-', "_").as_str());
        module.is_some_and(|rest| rest.starts_with("::"))
    });
    of_package || mentions_symboliser(name)
}

/// Does every panic go through the function of this symbol, before anything is said of it?
fn begins_panic(symbol: &str) -> bool {
    // Nearly every symbol is none of these.
    symbol.contains("panic_with_hook")
        && matches!(
            plain_name(symbol).as_str(),
            "std::panicking::panic_with_hook" | "std::panicking::rust_panic_with_hook"
        )
}

#[cfg(test)]
mod tests {
    use super::{
        Role, begins_panic, finds_names, is_about_stacks, is_of_symboliser, mentions_symboliser,
        plain_name, unwinds,
    };

    #[test]
    fn what_finds_the_names_of_call_stacks_is_known_by_its_files() {
        assert!(finds_names("/rust/deps/gimli-0.32.3", "src/read/unit.rs"));
        assert!(finds_names("/rustc/59807", "library/std/src/../../backtrace/src/print.rs"));
        assert!(!finds_names("/rust/deps/hashbrown-0.16.1", "src/map.rs"));
        assert!(!finds_names("/home/me/gimli-0.32.3", "src/read/unit.rs"));
        assert!(unwinds("library/std/src/sys/personality/gcc.rs", "rust_eh_personality"));
        assert!(unwinds("library/panic_unwind/src/lib.rs", "__rustc::__rust_panic_cleanup"));
        assert!(!unwinds("library/std/src/panicking.rs", "std::panicking::catch_unwind::cleanup"));
        let sorts = "core::slice::sort::stable::driftsort_main::<addr2line::unit::UnitRange>";
        assert!(mentions_symboliser(sorts));
        assert!(!mentions_symboliser("alloc::vec::Vec<app::Job>::push"));
        assert!(is_of_symboliser("adler2::Adler32::write_slice"));
        assert!(is_of_symboliser("rustc_demangle::v0::Parser::backref"));
        assert!(!is_of_symboliser("adler2_store::write_all"));
        assert!(!is_of_symboliser("core::fmt::write"));
        // Every thread that ends takes itself out of the table.
        assert!(is_about_stacks("std::sys::pal::unix::stack_overflow::imp::drop_handler"));
        assert!(!is_about_stacks("std::sys::pal::unix::stack_overflow::imp::init"));
    }

    #[test]
    fn functions_are_known_by_both_manglings() {
        let legacy = "_ZN3std3sys4sync5mutex5futex5Mutex4lock17h858891f2d810f051E";
        let v0 = "_RNvMNtNtNtNtCs1_3std3sys4sync5mutex5futexNtB2_5Mutex8try_lock";
        assert_eq!(Role::of(&plain_name(legacy)), Some(Role::Lock));
        assert_eq!(Role::of(&plain_name(v0)), Some(Role::TryLock));
        assert_eq!(Role::of("std::sys::sync::mutex::futex::Mutex::lock_contended"), None);
        assert_eq!(Role::of("app::futex::Mutex::lock"), None);
    }

    #[test]
    fn a_panic_begins_where_its_hook_is_called() {
        assert!(begins_panic("_ZN3std9panicking20rust_panic_with_hook17h0123456789abcdefE"));
        assert!(!begins_panic("_ZN3app15panic_with_hook17h0123456789abcdefE"));
    }
}
