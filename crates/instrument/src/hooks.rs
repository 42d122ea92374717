//! Brings the hooks (`hooks.ll`) into a module.

use crate::{InstrumentError, gates};
use llvm::{Module, bytes_to_string};
use llvm_sys::LLVMLinkage;
use llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};
use std::ffi::CString;
use std::mem::offset_of;
use trace_format::layout::{Control, NOTED_READINGS};

/// The hooks as textual IR, which every supported LLVM reads.
const SOURCE: &str = include_str!("hooks.ll");

// What the text takes for granted.
const _: () = assert!(offset_of!(Control, round) == 208);
const _: () = assert!(offset_of!(Control, round_changes) == 232);
const _: () = assert!(offset_of!(Control, readings) == 240);
const _: () = assert!(offset_of!(Control, reading_at) == 248 && NOTED_READINGS == 4);

/// A function and its type.
#[derive(Clone, Copy)]
pub struct Callable {
    pub value: LLVMValueRef,
    pub ty: LLVMTypeRef,
}

/// The hooks of one module.
pub struct Hooks {
    /// `(i8 token)`.
    pub path: Callable,
    /// `(i8 token, i32 number)`.
    pub path_number: Callable,
    /// `(i64 address, i32 types)`.
    pub mark: Callable,
    /// `(i64 address, i32 types) -> i1`.
    pub is_marked: Callable,
    /// `(i64 address, i32 types) -> i1`.
    pub is_called: Callable,
    /// `()`.
    pub unmark: Callable,
    /// `(i8 token, i32 number)`.
    pub entry: Callable,
    /// `(i32 choices)`.
    pub choices: Callable,
    /// `(i32 choices)`.
    pub end: Callable,
    /// `(i32 choices)`, of choices that fit into a short token.
    pub end_short: Callable,
    /// `(i32 choices, i32 most) -> i32`.
    pub check: Callable,
    /// Of a number with 8, 16, 32 and 64 bits: `(iN number)`.
    pub values: [Callable; 4],
    /// The same behind one that found room ([`crate::words::Room`]).
    pub more: [Callable; 4],
    /// A guessed load of 8, 16, 32 and 64 bits: `(i32 choices, iN number, ptr kept) -> i32`.
    pub guesses: [Callable; 4],
    /// `()`: the clock as a word.
    pub reading: Callable,
    /// `(i32 choices, i1 again, i64 loop) -> i32`, at the header of a waiting loop.
    pub round: Callable,
    /// `(i1 changed)`, behind an atomic update in a waiting loop.
    pub changed: Callable,
    /// `(ptr place, i64 length)`.
    pub write: Callable,
    /// `(ptr place)`.
    pub write_text: Callable,
    /// `(ptr place)`, of a text of `wchar_t`.
    pub write_wide: Callable,
    /// `(ptr array, i64 count)`.
    pub write_texts: Callable,
    /// `(ptr array, i64 count, i64 bytes)`.
    pub write_vector: Callable,
    /// `(ptr result, i64 index, i64 before, i64 length)`.
    pub table: Callable,
    /// `(i32 count, ptr arguments)`.
    pub arguments: Callable,
    /// The constructor that registers the module.
    pub construct: LLVMValueRef,
    /// `(ptr callee, ptr object, i64 size, i1 back)`.
    pub fallback: Callable,
    /// As `fallback`, for memory that may not be there.
    pub pointee: Callable,
    /// `(ptr place, i64 offset) -> i64`.
    pub word: Callable,
    /// `(ptr place) -> i64`.
    pub number: Callable,
    /// A gate: `(i64 site)`.
    pub gate: Callable,
    /// Where an open gate goes.
    pub gate_thunk: LLVMValueRef,
    /// Where the entries of the gates begin and end, or null at run time.
    pub sites: [LLVMValueRef; 2],
    /// `(i32 function, i32 block)`, of a program whose path has a witness.
    pub witness: Option<Callable>,
    /// The module's base, an `i32`.
    pub base: LLVMValueRef,
    /// The descriptor.
    pub descriptor: LLVMValueRef,
}

/// Links the hooks into the module. Everything they define becomes internal.
pub fn link(module: &Module<'_>, witness: bool) -> Result<Hooks, InstrumentError> {
    if global(module, "__symbiosis_module").is_ok() {
        return Err(InstrumentError::Twice);
    }
    let hooks = module.context().parse_ir(source(module).as_bytes())?;
    module.link(hooks)?;
    let own = |name| {
        let callable = function(module, name)?;
        internalise(module, callable.value);
        Ok::<_, InstrumentError>(callable)
    };
    let own_global = |name| {
        let value = global(module, name)?;
        internalise(module, value);
        Ok::<_, InstrumentError>(value)
    };
    own_global("__symbiosis_tables")?;
    Ok(Hooks {
        path: own("__symbiosis_hook_path")?,
        path_number: own("__symbiosis_hook_path_number")?,
        mark: own("__symbiosis_hook_mark")?,
        is_marked: own("__symbiosis_hook_is_marked")?,
        is_called: own("__symbiosis_hook_is_called")?,
        unmark: own("__symbiosis_hook_unmark")?,
        entry: own("__symbiosis_hook_entry")?,
        choices: own("__symbiosis_hook_choices")?,
        end: own("__symbiosis_hook_end")?,
        end_short: own("__symbiosis_hook_end_short")?,
        check: own("__symbiosis_hook_check")?,
        values: [
            own("__symbiosis_hook_value8")?,
            own("__symbiosis_hook_value16")?,
            own("__symbiosis_hook_value32")?,
            own("__symbiosis_hook_value64")?,
        ],
        more: [
            own("__symbiosis_hook_more8")?,
            own("__symbiosis_hook_more16")?,
            own("__symbiosis_hook_more32")?,
            own("__symbiosis_hook_more64")?,
        ],
        guesses: [
            own("__symbiosis_hook_guess8")?,
            own("__symbiosis_hook_guess16")?,
            own("__symbiosis_hook_guess32")?,
            own("__symbiosis_hook_guess64")?,
        ],
        reading: own("__symbiosis_hook_reading")?,
        round: own("__symbiosis_hook_round")?,
        changed: own("__symbiosis_hook_changed")?,
        write: own("__symbiosis_hook_write")?,
        write_text: own("__symbiosis_hook_write_text")?,
        write_wide: own("__symbiosis_hook_write_wide")?,
        write_texts: own("__symbiosis_hook_write_texts")?,
        write_vector: own("__symbiosis_hook_write_vector")?,
        arguments: own("__symbiosis_hook_arguments")?,
        construct: own("__symbiosis_construct")?.value,
        table: own("__symbiosis_hook_table")?,
        fallback: own("__symbiosis_hook_fallback")?,
        pointee: own("__symbiosis_hook_pointee")?,
        word: own("__symbiosis_hook_word")?,
        number: own("__symbiosis_hook_number")?,
        gate: gates::assembly(module),
        gate_thunk: own("__symbiosis_gate_thunk")?.value,
        sites: [
            global(module, "__start_symbiosis_sites")?,
            global(module, "__stop_symbiosis_sites")?,
        ],
        witness: witness.then(|| declare_witness(module)),
        base: middle(module, own_global("__symbiosis_base")?),
        descriptor: own_global("__symbiosis_module")?,
    })
}

fn declare_witness(module: &Module<'_>) -> Callable {
    let (llvm, context) = (module.llvm(), module.context().raw());
    // SAFETY: module and context are alive, and the name is a C string.
    unsafe {
        let mut parameters = [llvm.LLVMInt32TypeInContext(context); 2];
        let void = llvm.LLVMVoidTypeInContext(context);
        let ty = llvm.LLVMFunctionType(void, parameters.as_mut_ptr(), 2, 0);
        let name = c"__symbiosis_witness";
        Callable { value: llvm.LLVMAddFunction(module.raw(), name.as_ptr(), ty), ty }
    }
}

/// The hook module's text, under the layout and triple of the module it goes into.
fn source(module: &Module<'_>) -> String {
    let llvm = module.llvm();
    // SAFETY: the module is alive, and both strings are C strings that it owns.
    let (layout, triple) = unsafe {
        let text = |start: *const std::ffi::c_char| {
            let length =
                if start.is_null() { 0 } else { std::ffi::CStr::from_ptr(start).count_bytes() };
            bytes_to_string(start, length)
        };
        (text(llvm.LLVMGetDataLayoutStr(module.raw())), text(llvm.LLVMGetTarget(module.raw())))
    };
    format!("target datalayout = \"{layout}\"\ntarget triple = \"{triple}\"\n{SOURCE}")
}

fn function(module: &Module<'_>, name: &'static str) -> Result<Callable, InstrumentError> {
    let symbol = CString::new(name).map_err(|_| InstrumentError::Hook { name })?;
    // SAFETY: the module is alive; a function is asked for its type only when it is there.
    unsafe {
        let value = module.llvm().LLVMGetNamedFunction(module.raw(), symbol.as_ptr());
        if value.is_null() {
            return Err(InstrumentError::Hook { name });
        }
        Ok(Callable { value, ty: module.llvm().LLVMGlobalGetValueType(value) })
    }
}

fn global(module: &Module<'_>, name: &'static str) -> Result<LLVMValueRef, InstrumentError> {
    let symbol = CString::new(name).map_err(|_| InstrumentError::Hook { name })?;
    // SAFETY: the module is alive.
    let value = unsafe { module.llvm().LLVMGetNamedGlobal(module.raw(), symbol.as_ptr()) };
    if value.is_null() { Err(InstrumentError::Hook { name }) } else { Ok(value) }
}

/// So many numbers before the base's own are only there to keep it away from what the program writes.
const BEFORE_BASE: u64 = 64;

/// The base's own number within its variable.
fn middle(module: &Module<'_>, base: LLVMValueRef) -> LLVMValueRef {
    let llvm = module.llvm();
    // SAFETY: the variable is an array of more `i32` than that.
    unsafe {
        let context = module.context().raw();
        let number = llvm.LLVMInt32TypeInContext(context);
        let index = llvm.LLVMInt64TypeInContext(context);
        let mut indices = [llvm.LLVMConstInt(index, BEFORE_BASE, 0)];
        llvm.LLVMConstInBoundsGEP2(number, base, indices.as_mut_ptr(), 1)
    }
}

fn internalise(module: &Module<'_>, value: LLVMValueRef) {
    // SAFETY: the value is a definition of the module.
    unsafe { module.llvm().LLVMSetLinkage(value, LLVMLinkage::LLVMInternalLinkage) }
}
