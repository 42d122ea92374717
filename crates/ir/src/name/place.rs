//! From an address to the expression of the source that it stands for.

use super::layout::{self, Index, Want, bracket, descend, reserved, take_index};
use crate::types::{
    BinaryOp, CastOp, ConstantKind, DebugType, DebugTypeId, Function, GepTerm, GlobalId, InstId,
    InstKind, LocalVariable, Module, Operand, Scope, Type,
};

/// Chains of loads and address computations are followed this far.
const DEEPEST: usize = 24;
/// How much arithmetic an index may show.
const DEEPEST_INDEX: usize = 4;

/// How the text of a place leads to its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Via {
    /// The text names the object.
    Object,
    /// The text names a pointer to it.
    Pointer,
    /// The text names a reference to it.
    Reference,
}

/// An address in terms of the source: an object or pointer, and where in it.
pub(super) struct Place {
    text: String,
    via: Via,
    /// The type of the object.
    ty: Option<DebugTypeId>,
    offset: i64,
    indices: Vec<Index>,
}

/// A name and the type of what is named.
pub(super) struct Named {
    pub(super) text: String,
    pub(super) ty: Option<DebugTypeId>,
}

impl Place {
    /// A place in a global variable.
    pub(super) fn global(module: &Module, id: GlobalId, offset: i64) -> Option<Self> {
        let global = module.globals.get(id.index())?;
        let (text, ty) = match &global.debug {
            Some(debug) if !debug.name.is_empty() => (debug.name.clone(), debug.ty),
            // Literals and the like have made-up names that start with a dot.
            _ if global.name.is_empty() || global.name.starts_with('.') => return None,
            _ => (super::demangle(&global.name), None),
        };
        Some(Self { text, via: Via::Object, ty, offset, indices: Vec::new() })
    }

    /// The expression of the source.
    pub(super) fn finish(mut self, module: &Module, want: Want) -> Option<Named> {
        if self.via == Via::Object {
            return self.in_object(module, want);
        }
        let size = layout::size(module, self.ty);
        if size == 0 {
            return Some(self.untyped(want));
        }
        let index = take_index(&mut self.indices, size);
        let step = size.cast_signed();
        let mut place = self.offset.div_euclid(step);
        if place > 0 && index.is_none() && open_ended(module, self.ty) {
            place = 0;
        }
        self.offset -= place * step;
        if index.is_some() || place != 0 {
            self.text = format!("{}{}", grouped(&self.text), bracket(index, place));
            self.via = Via::Object;
            return self.in_object(module, want);
        }
        self.behind_pointer(module, want)
    }

    fn in_object(self, module: &Module, want: Want) -> Option<Named> {
        let offset = u64::try_from(self.offset).ok()?;
        if layout::strip(module, self.ty).is_none() && (offset != 0 || !self.indices.is_empty()) {
            let text = match self.indices.is_empty() {
                true => format!("{}+{offset}", self.text),
                false => format!("{}[..]", self.text),
            };
            return Some(Named { text, ty: None });
        }
        let walk = descend(module, self.ty, offset, self.indices, want);
        Some(Named { text: self.text + &walk.suffix, ty: walk.ty })
    }

    /// Nothing is known about what the pointer points to.
    fn untyped(self, want: Want) -> Named {
        let text = match (self.offset, self.indices.as_slice()) {
            (0, []) if self.via == Via::Reference => self.text,
            (0, []) => format!("*{}", self.text),
            (0, [Index { text: Some(index), scale }]) if want == Want::Access(*scale) => {
                format!("{}[{index}]", grouped(&self.text))
            }
            (offset, []) => format!("*({}{offset:+})", self.text),
            _ => format!("{}[..]", grouped(&self.text)),
        };
        Named { text, ty: None }
    }

    fn behind_pointer(self, module: &Module, want: Want) -> Option<Named> {
        let offset = u64::try_from(self.offset).ok()?;
        let walk = descend(module, self.ty, offset, self.indices, want);
        let text = match (self.via, walk.suffix.strip_prefix('.')) {
            (Via::Reference, _) => self.text + &walk.suffix,
            (_, Some(member)) => format!("{}->{member}", grouped(&self.text)),
            (_, None) if walk.suffix.is_empty() => format!("*{}", self.text),
            (_, None) => format!("(*{}){}", self.text, walk.suffix),
        };
        Some(Named { text, ty: walk.ty })
    }
}

/// With parentheses where a postfix operator would bind first.
fn grouped(text: &str) -> String {
    if text.starts_with('*') { format!("({text})") } else { text.to_owned() }
}

/// Does the type end in a flexible array member?
fn open_ended(module: &Module, ty: Option<DebugTypeId>) -> bool {
    let Some(DebugType::Composite { members, .. }) = layout::strip(module, ty) else {
        return false;
    };
    members.last().is_some_and(|member| {
        matches!(layout::strip(module, member.ty), Some(DebugType::Array { length: 0, .. }))
    })
}

/// Finds places from inside one function.
pub(super) struct Namer<'m> {
    pub(super) module: &'m Module,
    pub(super) function: &'m Function,
    /// Where the access stands: its variables are preferred to those of inlined functions.
    scope: Option<&'m Scope>,
}

impl<'m> Namer<'m> {
    pub(super) fn new(module: &'m Module, function: &'m Function, at: InstId) -> Self {
        let location = function.instructions.get(at.index()).and_then(|inst| inst.loc);
        let location = location.and_then(|loc| module.debug.locations.get(loc.index()));
        let scope = location.and_then(|loc| module.debug.scopes.get(loc.scope.index()));
        Self { module, function, scope }
    }

    /// The place that an address points to.
    pub(super) fn place(&self, address: Operand) -> Option<Place> {
        self.place_within(address, DEEPEST)
    }

    fn place_within(&self, address: Operand, depth: usize) -> Option<Place> {
        let depth = depth.checked_sub(1)?;
        if let Operand::Const(id) = address {
            return match self.module.constants.get(id.index())?.kind {
                ConstantKind::Global(global, offset) => Place::global(self.module, global, offset),
                _ => None,
            };
        }
        let (strong, weak) = self.variables(address);
        strong
            .map(|variable| self.at_variable(variable))
            .or_else(|| self.computed(address, depth))
            .or_else(|| weak.map(|variable| self.at_variable(variable)))
    }

    /// The variables that describe a value: one that the access sees under its own name, and one
    /// that comes from an inlined function or from the inside of a library.
    fn variables(&self, value: Operand) -> (Option<&'m LocalVariable>, Option<&'m LocalVariable>) {
        let described = self.function.variables.iter().filter(|v| v.value == value);
        let (strong, weak): (Vec<_>, Vec<_>) = described.partition(|v| self.strong(v));
        (self.most_telling(&strong), self.most_telling(&weak))
    }

    fn strong(&self, variable: &LocalVariable) -> bool {
        if variable.address {
            return true;
        }
        let scope = variable.scope.and_then(|id| self.module.debug.scopes.get(id.index()));
        let visible = match (scope, self.scope) {
            (Some(theirs), Some(ours)) => {
                theirs.function == ours.function && theirs.line == ours.line
            }
            _ => true,
        };
        visible && variable.name != "this" && !reserved(&variable.name)
    }

    /// A `void *` that was assigned to a typed pointer is described by both.
    fn most_telling(&self, variables: &[&'m LocalVariable]) -> Option<&'m LocalVariable> {
        let typed = |variable: &&&LocalVariable| {
            variable.address || layout::size(self.module, self.pointee(variable.ty).1) != 0
        };
        variables.iter().find(typed).or(variables.first()).copied()
    }

    /// How a value of this type leads on, and to what.
    fn pointee(&self, ty: Option<DebugTypeId>) -> (Via, Option<DebugTypeId>) {
        match layout::strip(self.module, ty) {
            Some(DebugType::Reference(inner)) => (Via::Reference, *inner),
            Some(DebugType::Pointer(inner)) => (Via::Pointer, *inner),
            _ => (Via::Pointer, None),
        }
    }

    fn at_variable(&self, variable: &LocalVariable) -> Place {
        let text = variable.name.clone();
        let (via, ty) = match variable.address {
            true => (Via::Object, variable.ty),
            false => self.pointee(variable.ty),
        };
        Place { text, via, ty, offset: 0, indices: Vec::new() }
    }

    /// Through the instruction that computes the address.
    fn computed(&self, address: Operand, depth: usize) -> Option<Place> {
        let Operand::Inst(id) = address else { return None };
        match &self.function.instructions.get(id.index())?.kind {
            InstKind::Gep { base, offset, terms } => {
                let mut place = self.place_within(*base, depth)?;
                place.offset = place.offset.wrapping_add(*offset);
                place.indices.extend(terms.iter().map(|term| self.index(term)));
                Some(place)
            }
            InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, inner)
            | InstKind::Freeze(inner) => self.place_within(*inner, depth),
            InstKind::Load { address, .. } => {
                let pointer = self.place_within(*address, depth)?;
                let pointer = pointer.finish(self.module, Want::Access(8))?;
                let (via, ty) = self.pointee(pointer.ty);
                Some(Place { text: pointer.text, via, ty, offset: 0, indices: Vec::new() })
            }
            InstKind::Call(call) => {
                let target = call.target(self.module)?;
                let same = ["llvm.threadlocal.address", "llvm.launder.", "llvm.strip."];
                if !same.iter().any(|prefix| target.name.starts_with(prefix)) {
                    return None;
                }
                self.place_within(*call.args.first()?, depth)
            }
            _ => None,
        }
    }

    fn index(&self, term: &GepTerm) -> Index {
        Index { text: self.index_text(term.index, DEEPEST_INDEX), scale: term.scale }
    }

    /// An index in the source's words.
    fn index_text(&self, index: Operand, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        let (strong, weak) = self.variables(index);
        if let Some(variable) = strong.or(weak).filter(|variable| !variable.address) {
            return Some(variable.name.clone());
        }
        let Operand::Inst(id) = index else { return None };
        let instruction = self.function.instructions.get(id.index())?;
        match &instruction.kind {
            InstKind::Cast(CastOp::SExt | CastOp::ZExt | CastOp::Trunc, inner)
            | InstKind::Freeze(inner) => self.index_text(*inner, depth),
            InstKind::Load { address, .. } => {
                let want = Want::Access(self.module.store_size(instruction.ty));
                Some(self.place(*address)?.finish(self.module, want)?.text)
            }
            InstKind::Binary(op, left, right) => {
                let (left, right) = (self.index_text(*left, depth)?, self.small(*right)?);
                match op {
                    BinaryOp::Add => Some(format!("{left}{right:+}")),
                    BinaryOp::Sub => Some(format!("{left}{:+}", right.checked_neg()?)),
                    BinaryOp::URem | BinaryOp::SRem => Some(format!("{left}%{right}")),
                    BinaryOp::And if right >= 0 => Some(format!("{left}&{right}")),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A constant as a signed number.
    fn small(&self, operand: Operand) -> Option<i64> {
        let Operand::Const(id) = operand else { return None };
        let constant = self.module.constants.get(id.index())?;
        match (&constant.kind, self.module.types.get(constant.ty.index())?) {
            (ConstantKind::Int(words), Type::Int(bits @ 1..=64)) => {
                let shift = 64 - bits;
                Some((words.first()? << shift).cast_signed() >> shift)
            }
            _ => None,
        }
    }
}
