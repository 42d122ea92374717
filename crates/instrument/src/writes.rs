//! Reports of what uninstrumented code wrote.

use crate::build::Builder;
use crate::hooks::{Callable, Hooks};
use crate::pointees;
use crate::scan::{self, Conversion};
use crate::values::underlying_object;
use ir::assembly::Assembly;
use ir::effects::futex;
use ir::effects::{
    Base, Declaration, Extent, Format, Kind, Measured, Number, Place, Printed, Region, Success,
    effect, printed,
};
use llvm::{Llvm, Module};
use llvm_sys::prelude::LLVMValueRef;
use llvm_sys::{LLVMIntPredicate, LLVMTypeKind};
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
    /// A truth value: the callee was instrumented and has returned. None where that cannot be.
    pub back: Option<LLVMValueRef>,
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
        let Some(declaration) = name.as_deref().and_then(effect) else {
            self.report_objects(callee);
            if name.is_none() {
                self.report_candidates(callee);
            }
            return;
        };
        if !self.fits(declaration) {
            self.report_objects(callee);
            return;
        }
        if declaration.kind == Kind::Computed {
            self.report_measured(declaration);
            return;
        }
        let conversions = declaration.format.filter(|format| format.scans);
        let conversions = conversions.map(|format| (format, self.conversions(format)));
        let unknown = matches!(conversions, Some((_, None)));
        if declaration.objects || unknown {
            let is_call = name.as_deref() == Some("syscall");
            let nothing = is_call.then(|| self.is_plain_futex()).flatten();
            self.report_objects_of(callee, nothing, |_| true);
        }
        let success = declaration.when.map(|when| self.success(when));
        for region in &declaration.writes {
            self.report_region(region, success);
        }
        if let Some(format) = declaration.format.filter(|format| !format.scans) {
            self.report_counts(format);
        }
        if let Some((format, Some(conversions))) = conversions {
            self.report_scanned(format, &conversions);
        }
    }

    /// Reports the texts that the executor may not know the length of.
    fn report_measured(&self, declaration: &Declaration) {
        let (written, read) = match declaration.measured {
            Measured::Nothing => return,
            Measured::Written => (&declaration.writes, None),
            Measured::All => (&declaration.writes, Some(&declaration.reads)),
        };
        for region in written.iter().chain(read.into_iter().flatten()) {
            self.report_region(region, None);
        }
    }

    /// Reports what a call through a pointer wrote if it went to one of the described functions whose
    /// address the module takes, such as those in a table of system calls.
    fn report_candidates(&self, callee: LLVMValueRef) {
        let llvm = self.llvm();
        for function in self.module.functions() {
            // SAFETY: call and functions are alive.
            let candidate = unsafe {
                llvm.LLVMIsDeclaration(function) != 0
                    && llvm.LLVMGlobalGetValueType(function)
                        == llvm.LLVMGetCalledFunctionType(self.call)
                    && is_address_taken(llvm, function)
            };
            // SAFETY: the function is alive.
            let declaration = candidate.then(|| effect(&unsafe { llvm.value_name(function) }));
            let Some(declaration) = declaration.flatten() else { continue };
            if declaration.kind == Kind::Computed || !self.fits(declaration) {
                continue;
            }
            let regions = declaration.writes.iter().filter(|region| is_plain(region));
            let regions: Vec<&Region> = regions.collect();
            if regions.is_empty() {
                continue;
            }
            let builder = self.builder;
            let [called, known] = [callee, function].map(|value| builder.pointer_to_i64(value));
            let mut wrote = builder.compare(LLVMIntPredicate::LLVMIntEQ, called, known);
            if let Some(when) = declaration.when {
                wrote = builder.select(wrote, self.success(when), wrote);
            }
            for region in regions {
                self.report_region(region, Some(wrote));
            }
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
            self.report_objects_of(self.builder.null(), None, elsewhere);
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

    /// Whether the call has the arguments and the result that a declaration speaks of. A program
    /// may declare a function of its own under a known name.
    fn fits(&self, declaration: &Declaration) -> bool {
        let has_result = matches!(
            self.result_kind(),
            kind if kind == LLVMTypeKind::LLVMPointerTypeKind as i32
                || kind == LLVMTypeKind::LLVMIntegerTypeKind as i32
        );
        let place = |place: &Place| match place.base {
            Base::Argument(index) => self.is_pointer(index),
            Base::Result => self.result_kind() == LLVMTypeKind::LLVMPointerTypeKind as i32,
        };
        let mut fits = declaration.when.is_none() || has_result;
        for region in &declaration.writes {
            fits &= place(&region.place);
            let Some(number) = region.extent.number() else { continue };
            number.for_each(&mut |part| {
                fits &= match part {
                    Number::Argument(index) => self.is_pointer(*index) || self.is_integer(*index),
                    Number::Pointed32(index) => self.is_pointer(*index),
                    Number::Word(at, _) => place(at),
                    Number::Result => has_result,
                    _ => true,
                };
            });
        }
        fits
    }

    /// Reports a region; where `success` is false, none of it.
    fn report_region(&self, region: &Region, success: Option<LLVMValueRef>) {
        let Some(mut place) = self.place(&region.place) else { return };
        if let Some(success) = success {
            place = self.builder.select(success, place, self.builder.null());
        }
        match &region.extent {
            Extent::Bytes(number) => {
                if let Some(length) = self.length(number) {
                    self.external(place, length);
                }
            }
            Extent::Text(_) => {
                self.builder.call(self.hooks.write_text, &mut [place]);
            }
            Extent::Wide(_) => {
                self.builder.call(self.hooks.write_wide, &mut [place]);
            }
            Extent::Texts(count) => {
                if let Some(count) = self.length(count) {
                    self.builder.call(self.hooks.write_texts, &mut [place, count]);
                }
            }
            Extent::Vector(count) => {
                if let (Some(count), Some(bytes)) = (self.length(count), self.result_number()) {
                    self.builder.call(self.hooks.write_vector, &mut [place, count, bytes]);
                }
            }
            &Extent::Table { index, before, length } => {
                let builder = self.builder;
                let numbers = [u64::from(index), u64::from(before), length];
                let [index, before, length] = numbers.map(|number| builder.i64(number));
                builder.call(self.hooks.table, &mut [place, index, before, length]);
            }
        }
    }

    /// Where a place is after the call.
    fn place(&self, place: &Place) -> Option<LLVMValueRef> {
        let mut at = match place.base {
            Base::Argument(index) => self.argument(index)?,
            Base::Result => self.call,
        };
        for &offset in &place.path {
            let word = self.word(at, offset);
            at = self.builder.number_to_pointer(word);
        }
        Some(at)
    }

    /// The word that lies so many bytes behind, 0 when there is no place.
    fn word(&self, at: LLVMValueRef, offset: u16) -> LLVMValueRef {
        self.builder.call(self.hooks.word, &mut [at, self.builder.i64(offset.into())])
    }

    /// A length: 0 when the result is a part of it and negative.
    fn length(&self, number: &Number) -> Option<LLVMValueRef> {
        let value = self.number_of(number)?;
        let mut with_result = false;
        number.for_each(&mut |part| with_result |= *part == Number::Result);
        match with_result {
            true => {
                let result = self.result_number()?;
                Some(self.builder.unless_negative(result, value, self.builder.i64(0)))
            }
            false => Some(value),
        }
    }

    fn number_of(&self, number: &Number) -> Option<LLVMValueRef> {
        let builder = self.builder;
        Some(match number {
            Number::Constant(value) => builder.i64(*value),
            Number::Argument(index) => self.number(*index)?,
            Number::Result => self.result_number()?,
            Number::Pointed32(index) => {
                builder.call(self.hooks.number, &mut [self.argument(*index)?])
            }
            Number::Word(place, offset) => self.word(self.place(place)?, *offset),
            Number::Sum(a, b) => builder.add(self.number_of(a)?, self.number_of(b)?),
            Number::Difference(a, b) => builder.sub(self.number_of(a)?, self.number_of(b)?),
            Number::Product(a, b) => builder.mul(self.number_of(a)?, self.number_of(b)?),
            Number::Smaller(a, b) => builder.min(self.number_of(a)?, self.number_of(b)?),
            Number::Odd(inner) => builder.and(self.number_of(inner)?, builder.i64(1)),
        })
    }

    /// Did the call do what it should?
    fn success(&self, when: Success) -> LLVMValueRef {
        let zero = self.builder.i64(0);
        let result = self.result_number().unwrap_or(zero);
        let predicate = match when {
            Success::Zero => LLVMIntPredicate::LLVMIntEQ,
            Success::NotZero => LLVMIntPredicate::LLVMIntNE,
            Success::Positive => LLVMIntPredicate::LLVMIntSGT,
            Success::NotNegative => LLVMIntPredicate::LLVMIntSGE,
        };
        self.builder.compare(predicate, result, zero)
    }

    /// What a scanning call assigns, when its format is a constant and the arguments are there.
    fn conversions(&self, format: Format) -> Option<Vec<Conversion>> {
        if format.list.is_some() {
            return None;
        }
        let text = self.constant_text(self.argument(format.format)?)?;
        let conversions = scan::conversions(&text)?;
        let there = |at: usize| {
            let index = u8::try_from(usize::from(format.first) + at).ok();
            index.is_some_and(|index| self.is_pointer(index))
        };
        (0..conversions.len()).all(there).then_some(conversions)
    }

    /// Reports what `%n` got, when the format is a constant.
    fn report_counts(&self, format: Format) {
        let text = self.argument(format.format).and_then(|text| self.constant_text(text));
        let Some(arguments) = text.and_then(|text| printed(&text)) else { return };
        for (at, argument) in (0u8..).zip(&arguments) {
            let index = format.first.saturating_add(at);
            if let Printed::Count(size) = argument
                && self.is_pointer(index)
                && let Some(place) = self.argument(index)
            {
                self.external(place, self.builder.i64(*size));
            }
        }
    }

    /// Reports what the conversions assigned: as many as the result says.
    fn report_scanned(&self, format: Format, conversions: &[Conversion]) {
        let Some(result) = self.result_number() else { return };
        let builder = self.builder;
        let mut assigned = 0u64;
        for (at, conversion) in (0u8..).zip(conversions) {
            let Some(place) = self.argument(format.first.saturating_add(at)) else { continue };
            // What %n got is not counted in the result, and may be there without it.
            if let Conversion::Count(size) = conversion {
                self.external(place, builder.i64(*size));
                continue;
            }
            let more = LLVMIntPredicate::LLVMIntSGT;
            let there = builder.compare(more, result, builder.i64(assigned));
            let place = builder.select(there, place, builder.null());
            assigned += 1;
            match conversion {
                Conversion::Bytes(size) | Conversion::Count(size) => {
                    self.external(place, builder.i64(*size));
                }
                Conversion::Text => {
                    builder.call(self.hooks.write_text, &mut [place]);
                }
                Conversion::Wide => {
                    builder.call(self.hooks.write_wide, &mut [place]);
                }
                Conversion::NewText => {
                    self.external(place, builder.i64(8));
                    let text = builder.number_to_pointer(self.word(place, 0));
                    builder.call(self.hooks.write_text, &mut [text]);
                }
            }
        }
    }

    /// The bytes before the zero byte of a constant text.
    fn constant_text(&self, pointer: LLVMValueRef) -> Option<Vec<u8>> {
        let llvm = self.llvm();
        // SAFETY: the pointer is alive; an initial value is asked for only where there is one, and
        // its bytes live as long as the context.
        unsafe {
            let object = underlying_object(llvm, pointer);
            if object != pointer
                || llvm.LLVMIsAGlobalVariable(object).is_null()
                || llvm.LLVMIsGlobalConstant(object) == 0
            {
                return None;
            }
            let initial = llvm.LLVMGetInitializer(object);
            if initial.is_null() || llvm.LLVMIsConstantString(initial) == 0 {
                return None;
            }
            let mut length = 0;
            let start = llvm.LLVMGetAsString(initial, &raw mut length);
            let bytes = std::slice::from_raw_parts(start.cast::<u8>(), length);
            Some(bytes.iter().copied().take_while(|&byte| byte != 0).collect())
        }
    }

    /// Reports the objects that the arguments point into: those of known size as a whole, of
    /// others what a C++ reference promises to be there, or what the pointer's type says.
    fn report_objects(&self, callee: LLVMValueRef) {
        self.report_objects_of(callee, None, |_| true);
    }

    /// As [`Self::report_objects`], for the arguments that `wanted` says; where `nothing` is true, nothing was written.
    fn report_objects_of(
        &self,
        callee: LLVMValueRef,
        nothing: Option<LLVMValueRef>,
        wanted: impl Fn(u8) -> bool,
    ) {
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
            if reported.contains(&object) {
                continue;
            }
            let (hook, size) = match size {
                Some(size) => (self.hooks.fallback, size),
                None => match self.pointee_size(callee, index, argument) {
                    Some(size) => (self.hooks.pointee, size),
                    None => continue,
                },
            };
            reported.push(object);
            let size = self.builder.i64(size.min(LONGEST_FALLBACK));
            let none =
                nothing.map(|nothing| self.builder.select(nothing, self.builder.i64(0), size));
            let size = none.unwrap_or(size);
            let back = self.back.unwrap_or_else(|| self.builder.truth(false));
            self.builder.call(hook, &mut [callee, object, size, back]);
        }
    }

    /// How much memory lies behind a pointer, if it is what its type says.
    fn pointee_size(&self, callee: LLVMValueRef, index: u8, argument: LLVMValueRef) -> Option<u64> {
        // Pointers of inline assembly are what its constraints say.
        // SAFETY: module, call, callee and argument are alive.
        unsafe {
            if !self.llvm().LLVMIsAInlineAsm(callee).is_null() {
                return None;
            }
            pointees::declared_size(self.llvm(), callee, index)
                .or_else(|| pointees::used_size(self.llvm(), self.module.raw(), argument))
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

    fn constant(&self, index: u8) -> Option<u64> {
        // SAFETY: the argument is alive; constants alone are asked for their value.
        unsafe {
            let value = self.llvm().LLVMIsAConstantInt(self.argument(index)?);
            (!value.is_null()).then(|| self.llvm().LLVMConstIntGetZExtValue(value))
        }
    }

    /// Is this system call an operation on a futex that writes nothing? The waits and notifications of C++20's atomic
    /// variables are, and what a program's own function for it mostly does, which gets the operation as an argument:
    /// a truth value, unless it is no call for a futex.
    fn is_plain_futex(&self) -> Option<LLVMValueRef> {
        if self.constant(0) != Some(futex::FUTEX) || !self.is_integer(2) {
            return None;
        }
        let builder = self.builder;
        let operation = builder.and(self.number(2)?, builder.i64(!futex::FLAGS));
        let is =
            |plain| builder.compare(LLVMIntPredicate::LLVMIntEQ, operation, builder.i64(plain));
        futex::PLAIN.into_iter().map(is).reduce(|one, other| builder.or(one, other))
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

    /// An integer or a pointer as 64 bits; those of the C library that are narrower have a sign.
    fn number(&self, index: u8) -> Option<LLVMValueRef> {
        let value = self.argument(index)?;
        Some(match self.is_pointer(index) {
            true => self.builder.pointer_to_i64(value),
            false => self.builder.to_i64(value, true),
        })
    }

    /// The result as 64 bits; `None` when it is neither an integer nor a pointer.
    fn result_number(&self) -> Option<LLVMValueRef> {
        match self.result_kind() {
            kind if kind == LLVMTypeKind::LLVMPointerTypeKind as i32 => {
                Some(self.builder.pointer_to_i64(self.call))
            }
            kind if kind == LLVMTypeKind::LLVMIntegerTypeKind as i32 => {
                Some(self.builder.to_i64(self.call, true))
            }
            _ => None,
        }
    }
}

/// Does a region follow from arguments and result alone, without a look at memory that another callee
/// may not have been given?
fn is_plain(region: &Region) -> bool {
    let mut plain = region.place.path.is_empty();
    match &region.extent {
        Extent::Bytes(number) => number.for_each(&mut |part| {
            plain &= !matches!(part, Number::Pointed32(_) | Number::Word(..));
        }),
        Extent::Text(_) | Extent::Wide(_) => {}
        _ => plain = false,
    }
    plain
}

/// Is the function used other than by calling it?
///
/// # Safety
/// The function must be alive.
unsafe fn is_address_taken(llvm: &Llvm, function: LLVMValueRef) -> bool {
    // SAFETY: as the caller promises; only calls are asked for their callee.
    unsafe {
        let calls = |user| {
            let call =
                !llvm.LLVMIsACallInst(user).is_null() || !llvm.LLVMIsAInvokeInst(user).is_null();
            call && llvm.LLVMGetCalledValue(user) == function
        };
        let mut next = llvm.LLVMGetFirstUse(function);
        while !next.is_null() {
            if !calls(llvm.LLVMGetUser(next)) {
                return true;
            }
            next = llvm.LLVMGetNextUse(next);
        }
    }
    false
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
        let Some(declaration) = effect(&name) else { continue };
        let is_table = |region: &Region| matches!(region.extent, Extent::Table { .. });
        let tables = declaration.writes.iter().any(is_table);
        // SAFETY: the type is a function type.
        if !tables || unsafe { llvm.LLVMCountParamTypes(callable.ty) } != 0 {
            continue;
        }
        builder.before(end);
        let call = builder.call(callable, &mut []);
        let (builder, copied) = (&builder, Vec::new());
        let returned = Returned { module, hooks, builder, call, copied, back: None };
        if returned.fits(declaration) {
            declaration.writes.iter().for_each(|region| returned.report_region(region, None));
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
