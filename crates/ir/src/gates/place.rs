//! What an address means, as far as the IR tells without debug information.
//!
//! Names are made of what a rebuild keeps: symbols, types, positions of fields and parameters.

use crate::stack::StackObjects;
use crate::types::{CastOp, ConstantKind, Function, InstKind, Module, Operand, Type, TypeId};
use std::fmt::Write;

/// Types that nest deeper are cut off.
const DEEPEST: usize = 64;

/// Names the addresses of one function.
pub(super) struct Places<'m> {
    module: &'m Module,
    function: &'m Function,
    stack: &'m StackObjects,
    /// Per instruction: the parameter whose value an `alloca` holds all the time, as in code that
    /// was not optimised.
    spilled: Vec<Option<u32>>,
}

/// A way from an address to where it came from.
#[derive(Clone, Copy)]
struct Reach {
    /// Constant bytes from there.
    offset: i64,
    /// There are variable parts.
    variable: bool,
    /// The named struct type nearest to the origin, the bytes from its beginning, and whether
    /// there are variable parts behind it.
    within: Option<(TypeId, i64, bool)>,
}

impl<'m> Places<'m> {
    pub(super) fn of(module: &'m Module, function: &'m Function, stack: &'m StackObjects) -> Self {
        Self { module, function, stack, spilled: spilled(module, function, stack) }
    }

    /// The scalar that an access touches.
    pub(super) fn accessed(&self, address: Operand) -> String {
        self.name(address, false)
    }

    /// The outermost object that begins there: what a copy touches.
    pub(super) fn object(&self, address: Operand) -> String {
        self.name(address, true)
    }

    fn name(&self, address: Operand, outermost: bool) -> String {
        let mut reach = Reach { offset: 0, variable: false, within: None };
        let origin = self.origin(address, &mut reach);
        if let Operand::Const(id) = origin
            && let Some(constant) = self.module.constants.get(id.index())
        {
            match &constant.kind {
                ConstantKind::Global(id, start) => {
                    if let Some(global) = self.module.globals.get(id.index()) {
                        let offset = start.wrapping_add(reach.offset);
                        let fields = Fields { module: self.module, outermost, any: reach.variable };
                        return global.name.clone() + &fields.path(global.ty, offset);
                    }
                }
                ConstantKind::Function(id, _) => {
                    if let Some(function) = self.module.functions.get(id.index()) {
                        return function.name.clone();
                    }
                }
                _ => {}
            }
        }
        if let Some((ty, offset, any)) = reach.within
            && let Some(name) = struct_name(self.module.ty(ty))
        {
            let fields = Fields { module: self.module, outermost, any };
            return name.to_owned() + &fields.path(ty, offset);
        }
        let base = self.base(origin);
        if reach.offset == 0 { base } else { format!("{base}.{}", reach.offset) }
    }

    /// Follows address computations back to their origin.
    fn origin(&self, address: Operand, reach: &mut Reach) -> Operand {
        let mut address = address;
        // An unreachable block may compute an address from itself.
        for _ in 0..self.function.instructions.len() {
            let Some(kind) = self.kind(address) else { return address };
            address = match kind {
                InstKind::Gep { base, source, offset, terms } => {
                    reach.step(self.module, *source, *offset, !terms.is_empty());
                    *base
                }
                InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, inner) => *inner,
                InstKind::Call(call) => match self.thread_local(call.args.as_slice(), kind) {
                    Some(variable) => variable,
                    None => return address,
                },
                _ => return address,
            };
        }
        address
    }

    fn kind(&self, operand: Operand) -> Option<&'m InstKind> {
        match operand {
            Operand::Inst(id) => {
                self.function.instructions.get(id.index()).map(|instruction| &instruction.kind)
            }
            Operand::Const(id) => match &self.module.constants.get(id.index())?.kind {
                ConstantKind::Expression(kind) => Some(kind),
                _ => None,
            },
            Operand::Param(_) | Operand::Other => None,
        }
    }

    /// The variable behind `llvm.threadlocal.address`.
    fn thread_local(&self, args: &[Operand], kind: &InstKind) -> Option<Operand> {
        let target = kind.as_call()?.target(self.module)?;
        target.name.starts_with("llvm.threadlocal.address").then_some(*args.first()?)
    }

    /// An origin that is no global variable.
    fn base(&self, origin: Operand) -> String {
        let parameter = match origin {
            Operand::Param(index) => Some(index),
            Operand::Inst(_) if self.stack.root(origin).is_some() => return "stack".to_owned(),
            Operand::Inst(_) => match self.kind(origin) {
                Some(InstKind::Load { address: Operand::Inst(slot), .. }) => {
                    self.spilled.get(slot.index()).copied().flatten()
                }
                _ => None,
            },
            Operand::Const(_) | Operand::Other => None,
        };
        parameter.map_or_else(|| "?".to_owned(), |index| format!("arg{index}"))
    }
}

impl Reach {
    fn step(&mut self, module: &Module, source: TypeId, offset: i64, variable: bool) {
        self.offset = self.offset.wrapping_add(offset);
        self.variable |= variable;
        if struct_name(module.ty(source)).is_some() {
            self.within = Some((source, self.offset, self.variable));
        }
    }
}

/// A struct type's name without what LLVM adds to it: the kind, and the number that tells it from
/// types of the same name.
fn struct_name(ty: &Type) -> Option<&str> {
    let Type::Struct { name: Some(name), .. } = ty else { return None };
    let kinds = ["struct.", "class.", "union."];
    let name = kinds.iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name);
    let name = match name.rsplit_once('.') {
        Some((front, number)) if number.bytes().all(|b| b.is_ascii_digit()) => front,
        _ => name,
    };
    (!name.is_empty()).then_some(name)
}

/// The way from a type's beginning to a field, as text.
struct Fields<'m> {
    module: &'m Module,
    /// Stop at the first object that begins at the place.
    outermost: bool,
    /// Indices of arrays may have variable parts: they are all written `*`.
    any: bool,
}

impl Fields<'_> {
    fn path(&self, ty: TypeId, offset: i64) -> String {
        let mut path = String::new();
        let (mut ty, mut offset) = (ty, self.wrapped(ty, offset));
        for _ in 0..DEEPEST {
            if self.outermost && offset == 0 {
                break;
            }
            let Some((step, inner, rest)) = self.step(ty, offset) else {
                if offset != 0 {
                    // Inside a scalar, or outside of the object.
                    let _ = write!(path, ".~{offset}");
                }
                break;
            };
            path += &step;
            (ty, offset) = (inner, rest);
        }
        path
    }

    /// Elements of an array of the type are all alike, when the index is not known or the type is
    /// a struct that a pointer leads to. A struct with a flexible array member has no such arrays.
    fn wrapped(&self, ty: TypeId, offset: i64) -> i64 {
        let flexible = |ty: &TypeId| matches!(self.module.ty(*ty), Type::Array { length: 0, .. });
        let period = match self.module.ty(ty) {
            Type::Struct { fields, .. } if fields.last().is_some_and(flexible) => 0,
            Type::Struct { size, .. } => *size,
            Type::Array { element, .. } if self.any => self.module.size_of(*element),
            _ => 0,
        };
        match i64::try_from(period) {
            Ok(period) if period > 0 => offset.rem_euclid(period),
            _ => offset,
        }
    }

    /// One field or element down: its text, its type, and the rest of the offset.
    fn step(&self, ty: TypeId, offset: i64) -> Option<(String, TypeId, i64)> {
        let offset = u64::try_from(offset).ok()?;
        let (text, inner, rest) = match self.module.ty(ty) {
            Type::Struct { fields, offsets, .. } => {
                let index = offsets.partition_point(|&start| start <= offset).checked_sub(1)?;
                let start = *offsets.get(index)?;
                (format!(".{index}"), *fields.get(index)?, offset - start)
            }
            Type::Array { element, length } => {
                let size = self.module.size_of(*element);
                let index = offset.checked_div(size)?;
                if !self.any && *length != 0 && index >= *length {
                    return None;
                }
                let text = if self.any { ".*".to_owned() } else { format!(".{index}") };
                (text, *element, offset - index * size)
            }
            _ => return None,
        };
        Some((text, inner, i64::try_from(rest).ok()?))
    }
}

/// The stack objects that hold a parameter and nothing else, ever.
fn spilled(module: &Module, function: &Function, stack: &StackObjects) -> Vec<Option<u32>> {
    let mut held: Vec<Option<u32>> = vec![None; function.instructions.len()];
    let mut writes = vec![0_u32; function.instructions.len()];
    for instruction in &function.instructions {
        let (address, parameter) = match &instruction.kind {
            InstKind::Store { address, value: Operand::Param(index), .. } => {
                (*address, Some(*index))
            }
            InstKind::Store { address, .. }
            | InstKind::AtomicRmw { address, .. }
            | InstKind::CmpXchg { address, .. } => (*address, None),
            // Copies and fills take the address of what they write.
            InstKind::Call(call) if call.target(module).is_some_and(|f| f.intrinsic) => {
                match call.args.first() {
                    Some(&to) if writes_memory(module, &instruction.kind) => (to, None),
                    _ => continue,
                }
            }
            _ => continue,
        };
        let Some(object) = stack.private_root(address) else { continue };
        writes[object.index()] += 1;
        if address == Operand::Inst(object) {
            held[object.index()] = parameter;
        }
    }
    held.into_iter().zip(writes).map(|(held, writes)| held.filter(|_| writes == 1)).collect()
}

fn writes_memory(module: &Module, kind: &InstKind) -> bool {
    use crate::intrinsics::{Intrinsic, called};
    let call = kind.as_call().and_then(|call| called(module, call));
    matches!(call, Some(Intrinsic::Copy | Intrinsic::Fill))
}
