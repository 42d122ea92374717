//! The module descriptor: what the object tells the runtime about itself.

use crate::InstrumentError;
use crate::hooks::Hooks;
use ir::types::Module as Source;
use llvm::{Llvm, Module};
use llvm_sys::LLVMLinkage;
use llvm_sys::prelude::{LLVMTypeRef, LLVMValueRef};
use std::ffi::CStr;
use trace_format::layout::{DESCRIPTOR_HAS_DEFINED, INSTRUMENTATION_VERSION};

/// The section with the saved bitcode.
const SECTION: &CStr = c".symbiosis.ir";

/// How hard the bitcode is compressed: every compilation pays for it.
const COMPRESSION_LEVEL: i32 = 3;

/// A module's functions and global variables in IR order, taken before the hooks come in.
pub struct Handles {
    pub functions: Vec<LLVMValueRef>,
    /// Per function, its address; null where it must not be taken.
    function_addresses: Vec<LLVMValueRef>,
    /// The same for the global variables.
    global_addresses: Vec<LLVMValueRef>,
}

impl Handles {
    pub fn collect(module: &Module<'_>, source: &Source) -> Result<Self, InstrumentError> {
        let llvm = module.llvm();
        let functions: Vec<LLVMValueRef> = module.functions().collect();
        let globals: Vec<LLVMValueRef> = module.globals().collect();
        check(functions.len() == source.functions.len(), "the functions")?;
        check(globals.len() == source.globals.len(), "the global variables")?;
        // SAFETY: both lists are of the live module.
        let (function_addresses, global_addresses) = unsafe {
            let function = |&value: &LLVMValueRef| {
                let usable = llvm.LLVMGetIntrinsicID(value) == 0 && has_address(llvm, value);
                if usable { value } else { std::ptr::null_mut() }
            };
            let global = |&value: &LLVMValueRef| {
                let usable = is_ordinary(llvm, value) && has_address(llvm, value);
                if usable { value } else { std::ptr::null_mut() }
            };
            (functions.iter().map(function).collect(), globals.iter().map(global).collect())
        };
        Ok(Self { functions, function_addresses, global_addresses })
    }
}

fn check(same: bool, what: &'static str) -> Result<(), InstrumentError> {
    let mismatch = InstrumentError::Mismatch { function: "the module".to_owned(), what };
    if same { Ok(()) } else { Err(mismatch) }
}

/// Whether the symbol can be named by this object without asking the linker for more than the
/// program itself asks for. A local symbol in a COMDAT group may be discarded with its group.
///
/// # Safety
/// The value must be a live function or global variable.
unsafe fn has_address(llvm: &Llvm, value: LLVMValueRef) -> bool {
    const LOCAL: [LLVMLinkage; 2] =
        [LLVMLinkage::LLVMInternalLinkage, LLVMLinkage::LLVMPrivateLinkage];
    // SAFETY: as the caller promises.
    unsafe {
        let linkage = llvm.LLVMGetLinkage(value);
        let elsewhere = llvm.LLVMIsDeclaration(value) != 0
            || linkage == LLVMLinkage::LLVMAvailableExternallyLinkage as i32;
        if elsewhere {
            return !llvm.LLVMGetFirstUse(value).is_null();
        }
        let local = LOCAL.iter().any(|&local| local as i32 == linkage);
        !local || llvm.LLVMGetComdat(value).is_null()
    }
}

/// Whether a global variable is one at run time: LLVM's own tables are not, and a thread-local one
/// has an address per thread.
///
/// # Safety
/// The value must be a live global variable.
unsafe fn is_ordinary(llvm: &Llvm, value: LLVMValueRef) -> bool {
    // SAFETY: as the caller promises; the section is null or a C string.
    unsafe {
        let section = llvm.LLVMGetSection(value);
        let metadata = !section.is_null() && CStr::from_ptr(section) == c"llvm.metadata";
        let space = llvm.LLVMGetPointerAddressSpace(llvm.LLVMTypeOf(value));
        let elsewhere =
            llvm.LLVMGetLinkage(value) == LLVMLinkage::LLVMAvailableExternallyLinkage as i32;
        let thread_local = llvm.LLVMIsThreadLocal(value) != 0;
        let own_table = llvm.value_name(value).starts_with("llvm.");
        !(metadata || space != 0 || elsewhere || thread_local || own_table)
    }
}

/// Fills in the descriptor, whose layout is `trace_format::layout::ModuleDescriptor`.
pub fn fill(
    module: &Module<'_>,
    hooks: &Hooks,
    source: &Source,
    handles: &Handles,
    bitcode: &[u8],
) -> Result<(), InstrumentError> {
    let constants = Constants::new(module);
    let compressed =
        zstd::bulk::compress(bitcode, COMPRESSION_LEVEL).map_err(InstrumentError::Compress)?;
    let defined: Vec<u8> =
        source.functions.iter().map(|function| u8::from(!function.is_declaration())).collect();
    let [low, high] = trace_format::bitcode_hash(bitcode);
    let saved = constants.bytes(c"__symbiosis_ir", &compressed);
    // SAFETY: everything is of the live module, and the fields are those of the type in `hooks.ll`.
    unsafe {
        module.llvm().LLVMSetSection(saved, SECTION.as_ptr());
        let mut words = [constants.i64(low), constants.i64(high)];
        let mut fields = [
            constants.i32(INSTRUMENTATION_VERSION),
            constants.i32(count(&handles.function_addresses)),
            constants.i32(count(&handles.global_addresses)),
            constants.i32(DESCRIPTOR_HAS_DEFINED),
            module.llvm().LLVMConstArray2(constants.i64, words.as_mut_ptr(), 2),
            saved,
            constants.i64(compressed.len() as u64),
            constants.addresses(c"__symbiosis_functions", &handles.function_addresses),
            constants.addresses(c"__symbiosis_globals", &handles.global_addresses),
            hooks.base,
            constants.bytes(c"__symbiosis_defined", &defined),
            hooks.sites[0],
            hooks.sites[1],
            hooks.gate_thunk,
        ];
        let initial = constants.record(&mut fields);
        module.llvm().LLVMSetInitializer(hooks.descriptor, initial);
        module.llvm().LLVMSetGlobalConstant(hooks.descriptor, 1);
    }
    Ok(())
}

fn count(list: &[LLVMValueRef]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// Makes constants of one module.
struct Constants<'m> {
    module: &'m Module<'m>,
    i32: LLVMTypeRef,
    i64: LLVMTypeRef,
    pointer: LLVMTypeRef,
}

impl<'m> Constants<'m> {
    fn new(module: &'m Module<'_>) -> Self {
        let (llvm, context) = (module.llvm(), module.context().raw());
        // SAFETY: the context is alive.
        unsafe {
            Self {
                module,
                i32: llvm.LLVMInt32TypeInContext(context),
                i64: llvm.LLVMInt64TypeInContext(context),
                pointer: llvm.LLVMPointerTypeInContext(context, 0),
            }
        }
    }

    fn i32(&self, value: u32) -> LLVMValueRef {
        // SAFETY: the type is an integer type.
        unsafe { self.module.llvm().LLVMConstInt(self.i32, u64::from(value), 0) }
    }

    fn i64(&self, value: u64) -> LLVMValueRef {
        // SAFETY: the type is an integer type.
        unsafe { self.module.llvm().LLVMConstInt(self.i64, value, 0) }
    }

    fn record(&self, fields: &mut [LLVMValueRef]) -> LLVMValueRef {
        let context = self.module.context().raw();
        let count = count(fields);
        // SAFETY: the fields are constants of this context.
        unsafe {
            self.module.llvm().LLVMConstStructInContext(context, fields.as_mut_ptr(), count, 0)
        }
    }

    /// An internal constant with these bytes.
    fn bytes(&self, name: &CStr, bytes: &[u8]) -> LLVMValueRef {
        let context = self.module.context().raw();
        // SAFETY: the bytes are readable, and copied.
        let contents = unsafe {
            let start = bytes.as_ptr().cast();
            self.module.llvm().LLVMConstStringInContext2(context, start, bytes.len(), 1)
        };
        self.global(name, contents)
    }

    /// An internal constant with these addresses, null being 0.
    fn addresses(&self, name: &CStr, values: &[LLVMValueRef]) -> LLVMValueRef {
        let llvm = self.module.llvm();
        // SAFETY: the values are null or functions and globals of the module.
        let contents = unsafe {
            let null = llvm.LLVMConstNull(self.pointer);
            let mut list: Vec<LLVMValueRef> =
                values.iter().map(|&value| if value.is_null() { null } else { value }).collect();
            llvm.LLVMConstArray2(self.pointer, list.as_mut_ptr(), list.len() as u64)
        };
        self.global(name, contents)
    }

    fn global(&self, name: &CStr, contents: LLVMValueRef) -> LLVMValueRef {
        let llvm = self.module.llvm();
        // SAFETY: the contents are a constant of this context.
        unsafe {
            let ty = llvm.LLVMTypeOf(contents);
            let global = llvm.LLVMAddGlobal(self.module.raw(), ty, name.as_ptr());
            llvm.LLVMSetInitializer(global, contents);
            llvm.LLVMSetLinkage(global, LLVMLinkage::LLVMInternalLinkage);
            llvm.LLVMSetGlobalConstant(global, 1);
            global
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;
    use trace_format::layout::{Control, ModuleDescriptor};

    /// `hooks.ll` and `fill` rely on these.
    #[test]
    fn the_layouts_are_those_of_the_hooks() {
        let control = [
            offset_of!(Control, path_next),
            offset_of!(Control, path_limit),
            offset_of!(Control, value_next),
            offset_of!(Control, value_limit),
            offset_of!(Control, choices),
            offset_of!(Control, called),
            offset_of!(Control, called_as),
        ];
        assert_eq!(control, [0, 8, 16, 24, 32, 192, 200]);
        let descriptor = [
            offset_of!(ModuleDescriptor, reserved),
            offset_of!(ModuleDescriptor, hash),
            offset_of!(ModuleDescriptor, bitcode),
            offset_of!(ModuleDescriptor, bitcode_length),
            offset_of!(ModuleDescriptor, functions),
            offset_of!(ModuleDescriptor, globals),
            offset_of!(ModuleDescriptor, base),
            offset_of!(ModuleDescriptor, defined),
            offset_of!(ModuleDescriptor, sites_begin),
            offset_of!(ModuleDescriptor, sites_end),
            offset_of!(ModuleDescriptor, gate),
        ];
        assert_eq!(descriptor, [12, 16, 32, 40, 48, 56, 64, 72, 80, 88, 96]);
        assert_eq!(size_of::<ModuleDescriptor>(), 104);
    }
}
