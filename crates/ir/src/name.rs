//! Names in the source's words: `q->filled`, `accounts[3].balance`, `stats.total`, `*p`.
//!
//! A name is found by walking from the address that an instruction uses back to a variable: over
//! address computations, loads of pointers, and the variables that the debug information says a
//! value belongs to. The byte offset then leads down the variable's debug type. Where debug
//! information is missing there is no name, and the caller falls back to something else.
//!
//! Architecture invariant: naming never fails and never panics; it returns `None`.

mod called;
mod lambda;
mod layout;
pub(crate) mod openmp;
mod place;
pub mod rust;

pub(crate) use lambda::call_name;
pub use openmp::is_construct;

use crate::types::{
    DebugEncoding, DebugType, DebugTypeId, Function, GlobalId, InstId, InstKind, LocId,
    LocalVariable, Module, Operand, Type, TypeId,
};
use layout::Want;
use place::{Named, Namer, Place};

/// How a scalar is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DisplayKind {
    /// Decimal, two's complement.
    Signed,
    /// Decimal, unsigned.
    Unsigned,
    /// An address.
    Pointer,
    /// A C `char`.
    Char,
    /// `true` or `false`.
    Bool,
    /// IEEE 754.
    Float,
    /// One of two numbers: these stand for 0 and 1.
    Either([i64; 2]),
}

/// The name of `size` bytes at an offset in a global variable; `size` 0 stands for the outermost
/// object that begins there. `None` for a global without a name in the source.
#[must_use]
pub fn global_path(module: &Module, global: GlobalId, offset: u64, size: u64) -> Option<String> {
    let symbol = module.globals.get(global.index()).map(|global| global.name.as_str());
    if let Some(section) = symbol.and_then(openmp::critical_section) {
        return Some(section);
    }
    named_global(module, global, offset, size).map(|named| named.text)
}

/// How the bytes that [`global_path`] names are shown, when the debug information says so.
#[must_use]
pub fn global_display(
    module: &Module,
    global: GlobalId,
    offset: u64,
    size: u64,
) -> Option<DisplayKind> {
    let debug = module.globals.get(global.index()).and_then(|global| global.debug.as_ref());
    if let Some((debug, values)) = debug.and_then(|debug| Some((debug, debug.either?))) {
        let unsigned = display(module, debug.ty) == Some(DisplayKind::Unsigned);
        let bits = 64 - 8 * layout::size(module, debug.ty).clamp(1, 8) as u32;
        // The numbers are as wide as the variable, without their sign.
        let signed = |value: i64| if unsigned { value } else { value << bits >> bits };
        return Some(DisplayKind::Either(values.map(signed)));
    }
    named_global(module, global, offset, size).and_then(|named| display(module, named.ty))
}

fn named_global(module: &Module, global: GlobalId, offset: u64, size: u64) -> Option<Named> {
    let offset = i64::try_from(offset).ok()?;
    let want = if size == 0 { Want::Object(None) } else { Want::Access(size) };
    Place::global(module, global, offset)?.finish(module, want)
}

/// The name of what a load, store or atomic operation accesses; of a call, of what its first
/// argument points to.
#[must_use]
pub fn access_path(module: &Module, function: &Function, access: InstId) -> Option<String> {
    let instruction = function.instructions.get(access.index())?;
    if instruction.kind.as_call().is_some() {
        return argument_path(module, function, access, 0, None);
    }
    accessed(module, function, access).map(|named| named.text)
}

/// How the value of a load, store or atomic operation is shown: by the source's type, else by the
/// type in the IR. Of anything else, [`DisplayKind::Signed`].
#[must_use]
pub fn access_display(module: &Module, function: &Function, access: InstId) -> DisplayKind {
    accessed(module, function, access)
        .and_then(|named| display(module, named.ty))
        .or_else(|| accessed_type(module, function, access).map(|ty| ir_display(module, ty)))
        .unwrap_or(DisplayKind::Signed)
}

/// One of several scalars that one access moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessPart {
    /// Bytes from the beginning of the access.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// How it is shown.
    pub display: DisplayKind,
}

/// The scalars that a load, store or atomic operation moves at once, in the order of their
/// addresses: compilers copy small structures so. Empty where it moves one, and where the debug
/// information does not say.
#[must_use]
pub fn access_parts(module: &Module, function: &Function, access: InstId) -> Vec<AccessPart> {
    let parts = accessed_type(module, function, access).and_then(|ty| {
        let within = accessed(module, function, access)?.within;
        layout::leaves(module, within, module.store_size(ty))
    });
    let parts = parts.filter(|parts| parts.len() > 1).unwrap_or_default();
    let shown = parts.into_iter().map(|part| AccessPart {
        offset: part.offset,
        size: part.size,
        display: display(module, part.ty).unwrap_or(DisplayKind::Signed),
    });
    shown.collect()
}

/// Is what a load, store or atomic operation moves a pointer in the IR?
#[must_use]
pub fn moves_pointer(module: &Module, function: &Function, access: InstId) -> bool {
    accessed_type(module, function, access)
        .is_some_and(|ty| ir_display(module, ty) == DisplayKind::Pointer)
}

/// The name of the object that an argument of a call points to, argument 0 being the first. With
/// `size` (in bytes, of a mutex for instance) the member of that size is meant when an outer
/// object begins at the same address; without, the outermost one.
#[must_use]
pub fn argument_path(
    module: &Module,
    function: &Function,
    call: InstId,
    argument: usize,
    size: Option<u64>,
) -> Option<String> {
    let called = function.instructions.get(call.index())?.kind.as_call()?;
    let address = *called.args.get(argument)?;
    let namer = Namer::new(module, function, call);
    // What is copied as a whole is called by its own name, and not by that of what it is the first part of.
    let copied = || {
        let target = called.target(module).filter(|target| {
            ["llvm.memcpy.", "llvm.memmove."].iter().any(|prefix| target.name.starts_with(prefix))
        });
        let bytes = namer.small(*target.and(called.args.get(2))?)?.cast_unsigned();
        let want = Want::Object(Some(bytes));
        let named = namer.place(address, want)?.finish(module, want)?;
        (layout::size(module, named.ty) == bytes).then_some(named.text)
    };
    let whole = |want| Some(namer.place(address, want)?.finish(module, want)?.text);
    let copied = if size.is_none() { copied() } else { None };
    copied.or_else(|| whole(Want::Object(size)))
}

/// The name of what lies `offset` bytes behind where an argument of a call points to: `want` says
/// what it is. For accesses by the called function in its caller's words.
#[must_use]
pub fn argument_part(
    module: &Module,
    function: &Function,
    call: InstId,
    (argument, offset): (usize, u64),
    want: Part,
) -> Option<String> {
    let (place, want) = part(module, function, call, (argument, offset), want)?;
    place.finish(module, want).map(|named| named.text)
}

/// As [`argument_part`], where that is no word of Rust's library, as for the variable that `drop` has.
#[must_use]
pub fn argument_part_of_program(
    module: &Module,
    function: &Function,
    call: InstId,
    (argument, offset): (usize, u64),
    want: Part,
) -> Option<String> {
    let (place, want) = part(module, function, call, (argument, offset), want)?;
    let place = Some(place).filter(|place| !place.is_librarys())?;
    place.finish(module, want).map(|named| named.text)
}

/// What lies so many bytes behind where an argument of a call points to, and what is wanted of it.
fn part(
    module: &Module,
    function: &Function,
    call: InstId,
    (argument, offset): (usize, u64),
    want: Part,
) -> Option<(Place, Want)> {
    let called = function.instructions.get(call.index())?.kind.as_call()?;
    let address = *called.args.get(argument)?;
    let want = match want {
        Part::Bytes(bytes) => Want::Access(bytes),
        Part::Object(bytes) => Want::Object(bytes),
    };
    let offset = i64::try_from(offset).ok()?;
    let place = Namer::new(module, function, call).place_behind(address, offset, want)?;
    Some((place, want))
}

/// As [`argument_part`], in the words of one of the functions that the call stands in: 0 is the innermost one that was
/// inlined there, the next number the one that it was inlined into. `None` where that one has no variable that leads
/// to it.
#[must_use]
pub fn argument_part_in(
    module: &Module,
    function: &Function,
    (call, level): (InstId, usize),
    (argument, offset): (usize, u64),
    want: Part,
) -> Option<String> {
    let instruction = function.instructions.get(call.index())?;
    let address = *instruction.kind.as_call()?.args.get(argument)?;
    let want = match want {
        Part::Bytes(bytes) => Want::Access(bytes),
        Part::Object(bytes) => Want::Object(bytes),
    };
    let location = |loc: LocId| module.debug.locations.get(loc.index());
    let mut at = location(instruction.loc?)?;
    for _ in 0..level {
        at = location(at.inlined_at?)?;
    }
    let scope = module.debug.scopes.get(at.scope.index())?;
    let offset = i64::try_from(offset).ok()?;
    let place = Namer::within(module, function, scope).place_behind(address, offset, want)?;
    place.finish(module, want).map(|named| named.text)
}

/// What [`argument_part`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// What an access of so many bytes touches.
    Bytes(u64),
    /// The outermost object that begins there, of so many bytes when that is known.
    Object(Option<u64>),
}

/// How many bytes the object has that a parameter points to, parameter 0 being the first, when the
/// debug information says so.
#[must_use]
pub fn pointee_size(module: &Module, function: &Function, parameter: usize) -> Option<u64> {
    let variable = parameter_variable(function, parameter)?;
    match layout::strip(module, variable.ty)? {
        DebugType::Pointer(object) | DebugType::Reference(object) => {
            Some(layout::size(module, *object)).filter(|size| *size > 0)
        }
        _ => None,
    }
}

/// The variable that a parameter is in the source, parameter 0 being the first.
fn parameter_variable(function: &Function, parameter: usize) -> Option<&LocalVariable> {
    let parameter = Operand::Param(u32::try_from(parameter).ok()?);
    let spilled = function.instructions.iter().find_map(|instruction| match instruction.kind {
        InstKind::Store { address, value, .. } if value == parameter => Some(address),
        _ => None,
    });
    function.variables.iter().find(|variable| match variable.address {
        true => Some(variable.value) == spilled,
        false => variable.value == parameter && variable.offset == 0,
    })
}

/// The name of a function: as in the source, else demangled without parameters.
#[must_use]
pub fn function_name(module: &Module, function: &Function) -> String {
    let scope = function.scope.and_then(|scope| module.debug.scopes.get(scope.index()));
    match scope.filter(|scope| !scope.function.is_empty()) {
        Some(scope) => scope.function.clone(),
        None => demangle(&function.name),
    }
}

/// The name of a function that a thread starts in: with its classes, and a lambda expression's by the function
/// that it is in.
#[must_use]
pub fn start_name(function: &Function) -> String {
    call_name(&function.name).unwrap_or_else(|| demangle(&function.name))
}

/// A C++ symbol without its parameters and result, a Rust one without its hash; any other name as it is.
#[must_use]
pub fn demangle(symbol: &str) -> String {
    // Rust's older symbols are C++'s, too, but for the hash at their ends.
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        let plain = format!("{rust:#}");
        if symbol.starts_with("_R") || plain != rust.to_string() {
            return plain;
        }
    }
    // Without it this would be a type's name: `f` is `float` there.
    if !symbol.starts_with("_Z") {
        return symbol.to_owned();
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(symbol)
        .ok()
        .and_then(|parsed| parsed.demangle_with_options(&options).ok())
        .unwrap_or_else(|| symbol.to_owned())
}

fn accessed(module: &Module, function: &Function, access: InstId) -> Option<Named> {
    let address = function.instructions.get(access.index())?.kind.address()?;
    let want = Want::Access(module.store_size(accessed_type(module, function, access)?));
    Namer::new(module, function, access).place(address, want)?.finish(module, want)
}

/// The type of the value that is read or written.
fn accessed_type(module: &Module, function: &Function, access: InstId) -> Option<TypeId> {
    let instruction = function.instructions.get(access.index())?;
    match &instruction.kind {
        InstKind::Load { .. } => Some(instruction.ty),
        InstKind::Store { value, .. } | InstKind::AtomicRmw { value, .. } => {
            operand_type(module, function, *value)
        }
        InstKind::CmpXchg { new, .. } => operand_type(module, function, *new),
        _ => None,
    }
}

/// The type of an operand; `None` for metadata and the like.
#[must_use]
pub fn operand_type(module: &Module, function: &Function, operand: Operand) -> Option<TypeId> {
    match operand {
        Operand::Inst(id) => function.instructions.get(id.index()).map(|inst| inst.ty),
        Operand::Param(index) => function.params.get(index as usize).map(|param| param.ty),
        Operand::Const(id) => module.constants.get(id.index()).map(|constant| constant.ty),
        Operand::Other => None,
    }
}

fn display(module: &Module, ty: Option<DebugTypeId>) -> Option<DisplayKind> {
    display_within(module, ty, layout::DEEPEST)
}

fn display_within(module: &Module, ty: Option<DebugTypeId>, depth: usize) -> Option<DisplayKind> {
    let depth = depth.checked_sub(1)?;
    Some(match layout::strip(module, ty)? {
        DebugType::Basic { name, encoding, .. } => match encoding {
            DebugEncoding::Signed => DisplayKind::Signed,
            DebugEncoding::Unsigned => DisplayKind::Unsigned,
            DebugEncoding::Bool => DisplayKind::Bool,
            DebugEncoding::Float => DisplayKind::Float,
            // Bytes that are meant as numbers say their sign.
            DebugEncoding::Char if name.starts_with("unsigned") => DisplayKind::Unsigned,
            DebugEncoding::Char if name.starts_with("signed") => DisplayKind::Signed,
            DebugEncoding::Char => DisplayKind::Char,
            DebugEncoding::Other => return None,
        },
        DebugType::Pointer(_) | DebugType::Reference(_) => DisplayKind::Pointer,
        DebugType::Enumeration { .. } => DisplayKind::Signed,
        // A type with one member, such as `std::atomic<T>`, is shown as that member.
        DebugType::Composite { members, size, .. } => {
            let mut whole =
                members.iter().filter(|member| layout::size(module, member.ty) == *size);
            return match (whole.next(), whole.next()) {
                (Some(only), None) => display_within(module, only.ty, depth),
                _ => None,
            };
        }
        DebugType::Array { .. } | DebugType::Alias(_) | DebugType::Other => return None,
    })
}

fn ir_display(module: &Module, ty: TypeId) -> DisplayKind {
    match module.types.get(ty.index()) {
        Some(Type::Pointer) => DisplayKind::Pointer,
        Some(Type::Float(_)) => DisplayKind::Float,
        Some(Type::Int(1)) => DisplayKind::Bool,
        _ => DisplayKind::Signed,
    }
}
