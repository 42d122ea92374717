//! Reports of what uninstrumented code wrote.

use crate::build::Builder;
use crate::hooks::{Callable, Hooks};
use crate::values::underlying_object;
use ir::assembly::Assembly;
use ir::effects::{Effect, Length, Place, Write, effect};
use llvm::{Llvm, Module};
use llvm_sys::LLVMTypeKind;
use llvm_sys::prelude::LLVMValueRef;
use std::ffi::CStr;

/// No more of an object is reported when nothing is known about the callee.
const LONGEST_FALLBACK: u64 = 4096;
/// Size of a `va_list`.
const VA_LIST: u64 = 24;
/// Size of the register save area: six general and eight vector registers.
const REGISTER_SAVE_AREA: u64 = 176;
/// How much of the arguments on the stack is reported: sixteen words.
const OVERFLOW_AREA: u64 = 128;

/// A call that has returned, and the builder at the place behind it.
pub struct Returned<'a> {
    pub module: &'a Module<'a>,
    pub hooks: &'a Hooks,
    pub builder: &'a Builder,
    pub call: LLVMValueRef,
    /// Per argument: passed as a copy?
    pub copied: Vec<bool>,
}

impl Returned<'_> {
    fn llvm(&self) -> &'static Llvm {
        self.module.llvm()
    }

    /// Reports what the call wrote, as far as it can be known.
    pub fn report(&self) {
        // SAFETY: the call is alive.
        let callee = unsafe { self.llvm().LLVMGetCalledValue(self.call) };
        // SAFETY: the callee is alive.
        let name = unsafe {
            let function = self.llvm().LLVMIsAFunction(callee);
            (!function.is_null()).then(|| self.llvm().value_name(function))
        };
        match name.as_deref().and_then(effect) {
            Some(Effect::Modelled) => {}
            Some(rules) if !self.fits(rules) => self.report_objects(callee),
            Some(Effect::Writes(writes)) => {
                writes.iter().for_each(|write| self.report_write(write))
            }
            None => self.report_objects(callee),
        }
    }

    /// Reports what inline assembly may have written: its outputs in memory, and with a clobber of
    /// memory also the objects that other arguments point into.
    pub fn report_assembly(&self, assembly: &Assembly) {
        if !assembly.reports_writes() {
            return;
        }
        if assembly.clobbers_memory {
            let elsewhere = |index: u8| assembly.memory_argument(index.into()).is_none();
            self.report_objects_of(self.builder.null(), elsewhere);
        }
        // SAFETY: the call is alive.
        for index in 0..unsafe { self.llvm().LLVMGetNumArgOperands(self.call) } {
            if assembly.memory_argument(index as usize) != Some(true) {
                continue;
            }
            let size = self.element_size(index);
            let place = u8::try_from(index).ok().and_then(|index| self.argument(index));
            if let (Some(size), Some(place)) = (size, place) {
                self.external(place, self.builder.i64(size));
            }
        }
    }

    /// The size of what an operand in memory points to; `None` for other operands.
    fn element_size(&self, index: u32) -> Option<u64> {
        const NAME: &str = "elementtype";
        let llvm = self.llvm();
        // SAFETY: the call is alive; the attribute is asked for its type only when it is there.
        unsafe {
            let kind = llvm.LLVMGetEnumAttributeKindForName(NAME.as_ptr().cast(), NAME.len());
            let attribute = llvm.LLVMGetCallSiteEnumAttribute(self.call, index + 1, kind);
            if attribute.is_null() {
                return None;
            }
            let ty = llvm.LLVMGetTypeAttributeValue(attribute);
            let layout = llvm.LLVMGetModuleDataLayout(self.module.raw());
            (llvm.LLVMTypeIsSized(ty) != 0).then(|| llvm.LLVMStoreSizeOfType(layout, ty))
        }
    }

    /// Reports what `va_start` made: the list, and the areas that it points to, from which the
    /// arguments are read with ordinary loads.
    pub fn report_va_start(&self) {
        let Some(list) = self.argument(0) else { return };
        self.external(list, self.builder.i64(VA_LIST));
        let overflow = self.builder.load_pointer(list, 8);
        self.external(overflow, self.builder.i64(OVERFLOW_AREA));
        let registers = self.builder.load_pointer(list, 16);
        self.external(registers, self.builder.i64(REGISTER_SAVE_AREA));
    }

    /// Whether the call has the arguments and the result that the rules speak of. A program may
    /// declare a function of its own under a known name.
    fn fits(&self, rules: &Effect) -> bool {
        let Effect::Writes(writes) = rules else { return true };
        let result = self.result_kind();
        writes.iter().all(|write| {
            let place = match write.place {
                Place::Argument(index) | Place::Pointee(index) => self.is_pointer(index),
                Place::Result | Place::Table { .. } => {
                    result == LLVMTypeKind::LLVMPointerTypeKind as i32
                }
            };
            let length = match write.length {
                Length::Bytes(_) | Length::Text => true,
                Length::Argument(index) | Length::ArgumentTimes(index, _) => self.is_integer(index),
                Length::Product(a, b) => self.is_integer(a) && self.is_integer(b),
                Length::PointedTo32(index) => self.is_pointer(index),
                Length::ResultTimesArgument(index) | Length::TextWithin(index) => {
                    self.is_integer(index) && result == LLVMTypeKind::LLVMIntegerTypeKind as i32
                }
                Length::ResultTimes(_) | Length::TextOfResult => {
                    result == LLVMTypeKind::LLVMIntegerTypeKind as i32
                }
            };
            place && length
        })
    }

    fn report_write(&self, write: &Write) {
        let place = match write.place {
            Place::Argument(index) => self.argument(index),
            Place::Pointee(index) => self
                .argument(index)
                .map(|argument| self.builder.call(self.hooks.pointee, &mut [argument])),
            Place::Result => Some(self.call),
            Place::Table { index, before } => {
                return self.report_table(index, before, write.length);
            }
        };
        let Some(place) = place else { return };
        if write.length == Length::Text {
            self.builder.call(self.hooks.write_text, &mut [place]);
        } else if let Some(length) = self.length(write.length) {
            self.external(place, length);
        }
    }

    fn report_table(&self, index: u8, before: u16, length: Length) {
        let Some(length) = self.length(length) else { return };
        let (index, before) = (self.builder.i64(index.into()), self.builder.i64(before.into()));
        self.builder.call(self.hooks.table, &mut [self.call, index, before, length]);
    }

    fn length(&self, length: Length) -> Option<LLVMValueRef> {
        let builder = self.builder;
        Some(match length {
            Length::Bytes(bytes) => builder.i64(bytes),
            Length::Argument(index) => self.number(index)?,
            Length::ArgumentTimes(index, factor) => {
                builder.mul(self.number(index)?, builder.i64(factor))
            }
            Length::Product(a, b) => builder.mul(self.number(a)?, self.number(b)?),
            Length::ResultTimes(factor) => builder.mul(self.result(), builder.i64(factor)),
            Length::ResultTimesArgument(index) => builder.mul(self.result(), self.number(index)?),
            Length::TextWithin(index) => {
                let text = builder.add(self.result(), builder.i64(1));
                let bounded = builder.min(text, self.number(index)?);
                builder.unless_negative(self.result(), bounded, builder.i64(0))
            }
            Length::TextOfResult => {
                let text = builder.add(self.result(), builder.i64(1));
                builder.unless_negative(self.result(), text, builder.i64(0))
            }
            Length::PointedTo32(index) => {
                builder.call(self.hooks.number, &mut [self.argument(index)?])
            }
            Length::Text => return None,
        })
    }

    /// Reports the objects that the arguments point into: those of known size as a whole, of
    /// others what a C++ reference promises to be there.
    fn report_objects(&self, callee: LLVMValueRef) {
        self.report_objects_of(callee, |_| true);
    }

    /// As [`Self::report_objects`], for the arguments that `wanted` says.
    fn report_objects_of(&self, callee: LLVMValueRef, wanted: impl Fn(u8) -> bool) {
        let llvm = self.llvm();
        // SAFETY: the call is alive.
        let count = unsafe { llvm.LLVMGetNumArgOperands(self.call) };
        let mut reported = Vec::new();
        for index in 0..u8::try_from(count).unwrap_or(u8::MAX) {
            let copied = self.copied.get(usize::from(index)).copied().unwrap_or(false);
            let plain = wanted(index) && !copied;
            let Some(argument) = self.argument(index).filter(|_| plain && self.is_pointer(index))
            else {
                continue;
            };
            // SAFETY: the argument is alive, and so is the object behind it.
            let (object, size) = unsafe {
                let object = underlying_object(llvm, argument);
                match self.object_size(object) {
                    Some(size) => (object, Some(size)),
                    None => (argument, self.dereferenceable(callee, index)),
                }
            };
            let Some(size) = size.filter(|_| !reported.contains(&object)) else { continue };
            reported.push(object);
            let size = self.builder.i64(size.min(LONGEST_FALLBACK));
            self.builder.call(self.hooks.fallback, &mut [callee, object, size]);
        }
    }

    /// The bytes that an argument is known to point to, by an attribute of the call or the callee.
    /// Not for calls through pointers: they may be deleting destructors, after which the object is
    /// gone.
    ///
    /// # Safety
    /// The callee must be alive.
    unsafe fn dereferenceable(&self, callee: LLVMValueRef, index: u8) -> Option<u64> {
        const NAME: &str = "dereferenceable";
        let llvm = self.llvm();
        let place = u32::from(index) + 1;
        // SAFETY: as the caller promises; only a function is asked for its parameters' attributes.
        unsafe {
            let known = !llvm.LLVMIsAFunction(callee).is_null();
            if !known || llvm.value_name(callee).ends_with("D0Ev") {
                return None;
            }
            let kind = llvm.LLVMGetEnumAttributeKindForName(NAME.as_ptr().cast(), NAME.len());
            let mut attribute = llvm.LLVMGetCallSiteEnumAttribute(self.call, place, kind);
            if attribute.is_null() {
                attribute = llvm.LLVMGetEnumAttributeAtIndex(callee, place, kind);
            }
            (!attribute.is_null()).then(|| llvm.LLVMGetEnumAttributeValue(attribute))
        }
    }

    /// The size in bytes of a stack object or a variable; `None` for anything else.
    ///
    /// # Safety
    /// The value must be alive.
    unsafe fn object_size(&self, object: LLVMValueRef) -> Option<u64> {
        let llvm = self.llvm();
        // SAFETY: as the caller promises; sizes are asked of sized types only.
        unsafe {
            if llvm.LLVMGetPointerAddressSpace(llvm.LLVMTypeOf(object)) != 0 {
                return None;
            }
            let (ty, count) = if !llvm.LLVMIsAAllocaInst(object).is_null() {
                let count = llvm.LLVMIsAConstantInt(llvm.LLVMGetOperand(object, 0));
                if count.is_null() {
                    return None;
                }
                (llvm.LLVMGetAllocatedType(object), llvm.LLVMConstIntGetZExtValue(count))
            } else if !llvm.LLVMIsAGlobalVariable(object).is_null()
                && llvm.LLVMIsGlobalConstant(object) == 0
            {
                (llvm.LLVMGlobalGetValueType(object), 1)
            } else {
                return None;
            };
            if llvm.LLVMTypeIsSized(ty) == 0 {
                return None;
            }
            let layout = llvm.LLVMGetModuleDataLayout(self.module.raw());
            let size = llvm.LLVMABISizeOfType(layout, ty).checked_mul(count)?;
            (size > 0).then_some(size)
        }
    }

    fn external(&self, place: LLVMValueRef, length: LLVMValueRef) {
        self.builder.call(self.hooks.write, &mut [place, length]);
    }

    fn argument(&self, index: u8) -> Option<LLVMValueRef> {
        // SAFETY: the call is alive, and has the argument.
        unsafe {
            let count = self.llvm().LLVMGetNumArgOperands(self.call);
            (u32::from(index) < count)
                .then(|| self.llvm().LLVMGetOperand(self.call, u32::from(index)))
        }
    }

    fn argument_kind(&self, index: u8) -> Option<i32> {
        // SAFETY: the argument is alive.
        self.argument(index)
            .map(|value| unsafe { self.llvm().LLVMGetTypeKind(self.llvm().LLVMTypeOf(value)) })
    }

    fn is_pointer(&self, index: u8) -> bool {
        self.argument_kind(index) == Some(LLVMTypeKind::LLVMPointerTypeKind as i32)
    }

    fn is_integer(&self, index: u8) -> bool {
        self.argument_kind(index) == Some(LLVMTypeKind::LLVMIntegerTypeKind as i32)
    }

    fn result_kind(&self) -> i32 {
        // SAFETY: the call is alive.
        unsafe { self.llvm().LLVMGetTypeKind(self.llvm().LLVMTypeOf(self.call)) }
    }

    /// An integer argument as 64 bits; those of the C library that are narrower have a sign.
    fn number(&self, index: u8) -> Option<LLVMValueRef> {
        self.argument(index).map(|value| self.builder.to_i64(value, true))
    }

    fn result(&self) -> LLVMValueRef {
        self.builder.to_i64(self.call, true)
    }
}

/// Has the module's constructor report the tables that the module may come to use: before there are
/// threads, so that nobody's reading races with the report.
pub fn report_tables(module: &Module<'_>, hooks: &Hooks, handles: &[LLVMValueRef]) {
    let llvm = module.llvm();
    let builder = Builder::new(llvm, module.context().raw());
    for &function in handles {
        // SAFETY: the functions are alive, and the constructor ends in a return.
        let (name, callable, end) = unsafe {
            let ty = llvm.LLVMGlobalGetValueType(function);
            let entry = llvm.LLVMGetEntryBasicBlock(hooks.construct);
            let end = llvm.LLVMGetBasicBlockTerminator(entry);
            (llvm.value_name(function), Callable { value: function, ty }, end)
        };
        let Some(Effect::Writes(writes)) = effect(&name) else { continue };
        let tables = writes.iter().any(|write| matches!(write.place, Place::Table { .. }));
        // SAFETY: the type is a function type.
        if !tables || unsafe { llvm.LLVMCountParamTypes(callable.ty) } != 0 {
            continue;
        }
        builder.before(end);
        let call = builder.call(callable, &mut []);
        let returned = Returned { module, hooks, builder: &builder, call, copied: Vec::new() };
        if returned.fits(&Effect::Writes(writes)) {
            writes.iter().for_each(|write| returned.report_write(write));
        }
    }
}

/// Whether the call is `va_start`.
///
/// # Safety
/// The call must be alive.
pub unsafe fn is_va_start(llvm: &Llvm, call: LLVMValueRef) -> bool {
    // SAFETY: as the caller promises; intrinsic names live as long as the library.
    unsafe {
        let callee = llvm.LLVMIsAFunction(llvm.LLVMGetCalledValue(call));
        if callee.is_null() {
            return false;
        }
        let id = llvm.LLVMGetIntrinsicID(callee);
        let mut length = 0;
        id != 0 && {
            let name = llvm.LLVMIntrinsicGetName(id, &raw mut length);
            !name.is_null() && CStr::from_ptr(name).to_bytes().starts_with(b"llvm.va_start")
        }
    }
}
