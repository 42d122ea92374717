//! From an address to the expression of the source that it stands for.

use super::layout::{self, End, Index, Walk, Want, bracket, descend, take_index};
use super::rust;
use crate::types::{
    BinaryOp, CastOp, ConstantKind, DebugType, DebugTypeId, Function, GepTerm, GlobalId, InstId,
    InstKind, LocId, LocalVariable, Location, Module, Operand, Scope, Type,
};
use model::names::{is_installed, is_reserved};

/// Chains of loads and address computations are followed this far.
const DEEPEST: usize = 24;
/// Inlined calls nest this deep at most; more is malformed.
const DEEPEST_INLINED: usize = 256;
/// How much arithmetic an index may show.
pub(super) const DEEPEST_INDEX: usize = 4;

/// How the text of a place leads to its bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Via {
    /// The text names the object.
    Object,
    /// The text names a pointer to it.
    Pointer,
    /// The text names a reference to it.
    Reference,
}

/// How well a name explains an access, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The bytes are not in what is named.
    Outside,
    /// Nothing is known about what lies there.
    Untyped,
    /// An element before or after the one that is pointed to.
    Neighbour,
    /// Part of a member, several members, or the inside of a library type.
    Partial,
    /// Exactly what is accessed.
    Exact,
}

/// An address in terms of the source: an object or pointer, and where in it.
#[derive(Clone)]
pub(super) struct Place {
    text: String,
    via: Via,
    /// The type of the object.
    ty: Option<DebugTypeId>,
    offset: i64,
    indices: Vec<Index>,
    /// The name is no better than this, whatever it leads to.
    limit: Fit,
}

/// A name and the type of what is named.
pub(super) struct Named {
    pub(super) text: String,
    pub(super) ty: Option<DebugTypeId>,
    /// The innermost type that holds all of it, and the place in it.
    pub(super) within: (Option<DebugTypeId>, u64),
    /// It could as well be another member at the same place.
    guess: bool,
}

impl Place {
    /// A place in a global variable.
    pub(super) fn global(module: &Module, id: GlobalId, offset: i64) -> Option<Self> {
        let global = module.globals.get(id.index())?;
        let part = global.debug.as_ref().map_or(0, |debug| debug.offset);
        let offset = offset.wrapping_add(part);
        if let Some(debug) = global.debug.as_ref().filter(|debug| debug.points_to_it) {
            let inner = match layout::strip(module, debug.ty) {
                Some(DebugType::Pointer(inner)) => *inner,
                _ => None,
            };
            return Some(Self { offset, ..Self::new(debug.name.clone(), Via::Pointer, inner) });
        }
        let (text, ty) = match &global.debug {
            Some(debug) if !debug.name.is_empty() => (debug.name.clone(), debug.ty),
            // Literals and the like have made-up names that start with a dot.
            _ if global.name.is_empty() || global.name.starts_with('.') => return None,
            _ => (super::demangle(&global.name), None),
        };
        Some(Self { offset, ..Self::new(text, Via::Object, ty) })
    }

    pub(super) fn new(text: String, via: Via, ty: Option<DebugTypeId>) -> Self {
        Self { text, via, ty, offset: 0, indices: Vec::new(), limit: Fit::Exact }
    }

    /// The expression of the source.
    pub(super) fn finish(self, module: &Module, want: Want) -> Option<Named> {
        self.found(module, want).map(|found| found.named)
    }

    /// How well this explains an access from here; and whether it names a member.
    fn explains(&self, module: &Module, reach: &Reach) -> (Fit, bool) {
        let mut place = self.clone();
        place.offset = place.offset.wrapping_add(reach.offset);
        place.indices.extend(reach.indices.iter().cloned());
        match place.found(module, reach.want) {
            Some(found) => (found.fit.min(self.limit), found.member),
            None => (Fit::Outside, false),
        }
    }

    /// Is it named by a variable of Rust's library? What C++ reserves is told by its name.
    pub(super) fn is_librarys(&self) -> bool {
        self.limit == Fit::Untyped && !is_reserved(&self.text)
    }

    /// Does an access from here stay within what the text names? A reference of Rust's leads to one object, and who
    /// has that as a part is no element before or after it: `self[3]` of the count in an `Arc`.
    fn reaches(&self, module: &Module, reach: &Reach) -> bool {
        let unlimited = Self { limit: Fit::Exact, ..self.clone() };
        unlimited.explains(module, reach).0 > Fit::Neighbour
    }

    fn found(mut self, module: &Module, want: Want) -> Option<Found> {
        if self.via == Via::Object {
            return self.in_object(module, want);
        }
        let size = layout::size(module, self.ty);
        if size == 0 {
            return Some(self.untyped(want));
        }
        let step = size.cast_signed();
        let mut place = self.offset.div_euclid(step);
        // There is no array of what ends in an array without a length: an index is one of that, even where its
        // elements have the size of the whole.
        let index = match open_ended(module, self.ty) {
            true => {
                place = place.min(0);
                None
            }
            false => take_index(&mut self.indices, size),
        };
        if place > 0 && index.is_none() && is_head_of_node(module, self.ty) {
            // Not a second node, but the element behind the links of this one.
            let text = format!("*{}", self.text);
            return Some(Found { fit: Fit::Neighbour, ..Found::untyped(text) });
        }
        // There is no array of what a method is called on: that is a part of something larger.
        if self.text == "this" && place != 0 {
            return None;
        }
        self.offset -= place * step;
        if index.is_some() || place != 0 {
            // `worker[..]` with something taken off an index that nobody can name is as good a guess as an
            // element before `worker`: what lies in front of an array is found that way, too.
            let known = index.as_ref().is_some_and(|index| index.is_some() || place >= 0);
            let fit = if known { Fit::Exact } else { Fit::Neighbour };
            let of_one = self.via == Via::Reference;
            self.text = format!("{}{}", grouped(&self.text), bracket(index, place));
            self.via = Via::Object;
            // A reference leads to one object: what lies in front of that is what holds it, as an `Arc` does beside a count.
            let fit = if of_one && !known && place < 0 { Fit::Outside } else { fit };
            let found = self.in_object(module, want)?;
            return Some(Found { fit: found.fit.min(fit), ..found });
        }
        self.behind_pointer(module, want)
    }

    fn in_object(self, module: &Module, want: Want) -> Option<Found> {
        let offset = u64::try_from(self.offset).ok()?;
        if layout::strip(module, self.ty).is_none() && (offset != 0 || !self.indices.is_empty()) {
            let text = match self.indices.is_empty() {
                true => format!("{}+{offset}", self.text),
                false => format!("{}[..]", self.text),
            };
            return Some(Found::untyped(text));
        }
        let walk = descend(module, self.ty, offset, self.indices, want);
        let text = walk.captured.clone().unwrap_or_else(|| self.text + &walk.suffix);
        Some(Found::reached(text, &walk))
    }

    /// Nothing is known about what the pointer points to.
    fn untyped(self, want: Want) -> Found {
        let text = match (self.offset, self.indices.as_slice()) {
            (0, []) if self.via == Via::Reference => self.text,
            (0, []) => format!("*{}", self.text),
            (0, [Index { text: Some(index), scale }]) if want.bytes() == Some(*scale) => {
                format!("{}[{index}]", grouped(&self.text))
            }
            // A lock within something of which only a library knows what it is: the thing itself.
            (_, []) if matches!(want, Want::Object(_)) => format!("*{}", self.text),
            (_, []) if self.via == Via::Reference => format!("{}[..]", grouped(&self.text)),
            (offset, []) => format!("*({}{offset:+})", self.text),
            _ => format!("{}[..]", grouped(&self.text)),
        };
        Found::untyped(text)
    }

    fn behind_pointer(self, module: &Module, want: Want) -> Option<Found> {
        let offset = u64::try_from(self.offset).ok()?;
        let is_librarys = self.is_librarys();
        let walk = descend(module, self.ty, offset, self.indices, want);
        let text = match (self.via, walk.suffix.strip_prefix('.')) {
            // What a lambda expression captures has a name of its own.
            _ if walk.captured.is_some() => walk.captured.clone().unwrap_or_default(),
            // A method of Rust's library has no better name for its object, but somebody else may.
            (Via::Reference, None) if is_librarys && walk.suffix.is_empty() => {
                format!("*{}", self.text)
            }
            (Via::Reference, _) => self.text + &walk.suffix,
            (_, Some(member)) => format!("{}->{member}", grouped(&self.text)),
            (_, None) if walk.suffix.is_empty() => format!("*{}", self.text),
            (_, None) => format!("(*{}){}", self.text, walk.suffix),
        };
        Some(Found::reached(text, &walk))
    }
}

/// A name, and how good it is.
struct Found {
    named: Named,
    fit: Fit,
    /// The name leads into an object.
    member: bool,
}

impl Found {
    fn untyped(text: String) -> Self {
        Self {
            named: Named { text, ty: None, within: (None, 0), guess: false },
            fit: Fit::Untyped,
            member: false,
        }
    }

    fn reached(text: String, walk: &Walk) -> Self {
        let fit = match walk.end {
            End::Whole if !walk.library => Fit::Exact,
            End::Whole | End::Part => Fit::Partial,
            End::Outside => Fit::Outside,
        };
        let named = Named { text, ty: walk.ty, within: walk.within, guess: walk.guess };
        Self { named, fit, member: !walk.suffix.is_empty() }
    }
}

/// A place, how well it explains an access, and whether it names a member.
type Ranked = ((Fit, bool), Place);

/// What is accessed, as seen from an address on the way to it.
pub(super) struct Reach {
    offset: i64,
    indices: Vec<Index>,
    want: Want,
}

impl Reach {
    /// What the address itself points to.
    pub(super) fn here(want: Want) -> Self {
        Self { offset: 0, indices: Vec::new(), want }
    }
}

/// With parentheses where a postfix operator would bind first.
pub(super) fn grouped(text: &str) -> String {
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

/// Is it what leads to the elements of one of Rust's containers? Of what type they are its pointer does not say, so that an
/// offset in it is no index.
fn is_untyped_buffer(module: &Module, ty: Option<DebugTypeId>) -> bool {
    matches!(layout::strip(module, ty), Some(DebugType::Composite { name, .. })
        if ["NonNull<u8>", "Unique<u8>"].contains(&name.as_str()))
}

/// Is it what the nodes of a container of the library begin with? `_Rb_tree_node_base` for instance.
fn is_head_of_node(module: &Module, ty: Option<DebugTypeId>) -> bool {
    matches!(layout::strip(module, ty), Some(DebugType::Composite { name, .. })
        if name.starts_with('_') && name.contains("node_base"))
}

/// Finds places from inside one function.
pub(super) struct Namer<'m> {
    pub(super) module: &'m Module,
    pub(super) function: &'m Function,
    /// Where the access stands: its variables are preferred to those of inlined functions.
    pub(super) scope: Option<&'m Scope>,
    /// Its variables are the only ones.
    alone: bool,
    /// It is the program's: what packages call something says less.
    of_program: bool,
}

impl<'m> Namer<'m> {
    pub(super) fn new(module: &'m Module, function: &'m Function, at: InstId) -> Self {
        let location = function.instructions.get(at.index()).and_then(|inst| inst.loc);
        let location_of = |loc: LocId| module.debug.locations.get(loc.index());
        let scope = |at: &Location| module.debug.scopes.get(at.scope.index());
        let mut at = location.and_then(location_of);
        // What Rust's library does inline is named by who has it done.
        for _ in 0..DEEPEST_INLINED {
            let Some(inner) = at.filter(|at| scope(at).is_some_and(is_of_rusts_library)) else {
                break;
            };
            let Some(outer) = inner.inlined_at.and_then(location_of) else { break };
            at = Some(outer);
        }
        // So is what a package does inline, if the program's own code is around it.
        let mut around = at;
        for _ in 0..DEEPEST_INLINED {
            let of_package =
                |at: &&Location| scope(at).is_some_and(|scope| is_installed(&scope.file));
            let Some(inner) = around.filter(of_package) else { break };
            around = inner.inlined_at.and_then(location_of);
        }
        let packaged = at.and_then(scope).is_some_and(|scope| rust::is_packages(&scope.file));
        let of_program = packaged && around.is_some();
        let scope = (if of_program { around } else { at }).and_then(scope);
        Self { module, function, scope, alone: false, of_program }
    }

    /// In the words of one function alone, which may be inlined.
    pub(super) fn within(module: &'m Module, function: &'m Function, scope: &'m Scope) -> Self {
        Self { module, function, scope: Some(scope), alone: true, of_program: false }
    }

    /// The place that an address points to, of which `want` is needed.
    pub(super) fn place(&self, address: Operand, want: Want) -> Option<Place> {
        self.place_within(address, &Reach::here(want), DEEPEST)
    }

    /// The place so many bytes behind where an address points to.
    pub(super) fn place_behind(&self, address: Operand, offset: i64, want: Want) -> Option<Place> {
        let reach = Reach { offset, ..Reach::here(want) };
        let mut place = self.place_within(address, &reach, DEEPEST)?;
        place.offset = place.offset.wrapping_add(offset);
        Some(place)
    }

    /// The place of an address from which `reach` leads on. A variable that the access sees under
    /// its own name comes first, then what the address is computed from, then variables of inlined
    /// functions and of the insides of libraries; but before all that counts how well they explain
    /// the access, for a value may belong to variables of unrelated types.
    pub(super) fn place_within(
        &self,
        address: Operand,
        reach: &Reach,
        depth: usize,
    ) -> Option<Place> {
        let depth = depth.checked_sub(1)?;
        if let Operand::Const(id) = address {
            return match self.module.constants.get(id.index())?.kind {
                ConstantKind::Global(global, offset) => Place::global(self.module, global, offset),
                _ => None,
            };
        }
        let (strong, weak) = self.variables(address);
        let strong = self.most_telling(&strong, reach);
        if let Some((_, place)) = strong.clone().filter(|((fit, _), _)| *fit == Fit::Exact) {
            return Some(place);
        }
        // `row[3]` is the source's word for `grid[2][3]` where it has a `row`.
        let row = strong.as_ref().is_some_and(|((fit, _), _)| *fit == Fit::Neighbour);
        let most = if row { Fit::Neighbour } else { Fit::Exact };
        let computed = self.computed(address, reach, depth).map(|place| {
            let (fit, member) = place.explains(self.module, reach);
            ((fit.min(most), member), place)
        });
        // A mere `*pointer` of another function says less than a computation.
        let weak = self.most_telling(&weak, reach).map(|((fit, member), place)| {
            let most = if member { Fit::Exact } else { Fit::Neighbour };
            ((fit.min(most), member), place)
        });
        // The source may have a name for it as an object of another type only.
        let cast = self.most_telling(&self.casts(address), reach);
        let beside = self.beside(address, reach);
        let piece = self.piece(address, reach);
        let mut best: Option<Ranked> = None;
        for candidate in [strong, computed, weak, cast, beside, piece].into_iter().flatten() {
            if best.as_ref().is_none_or(|best| candidate.0.0 > best.0.0) {
                best = Some(candidate);
            }
        }
        best.map(|(_, place)| place)
    }

    /// The variables that describe a value: those that the access sees under their own names, and
    /// those that come from an inlined function or from the inside of a library.
    fn variables(&self, value: Operand) -> (Vec<&'m LocalVariable>, Vec<&'m LocalVariable>) {
        let described = self.function.variables.iter();
        let described = described.filter(|v| v.value == value && (!self.alone || self.sees(v)));
        described.partition(|v| self.strong(v))
    }

    /// In the words of a variable that points to an object which the address lies in, where both are computed from one
    /// address: optimised code has `self.balance` at a distance from what `self` itself is at a distance from.
    fn beside(&self, address: Operand, reach: &Reach) -> Option<Ranked> {
        let (base, distance) = self.apart(address)?;
        let mut best: Option<Ranked> = None;
        for (at, _) in self.function.instructions.iter().enumerate() {
            let other = Operand::Inst(InstId(u32::try_from(at).ok()?));
            let Some((_, from)) = self.apart(other).filter(|(of, _)| *of == base) else { continue };
            if other == address {
                continue;
            }
            for variable in self.variables(other).0 {
                let Some(mut place) = self.at_variable(variable) else { continue };
                place.offset = place.offset.wrapping_add(distance.wrapping_sub(from));
                let rank = place.explains(self.module, reach);
                let is_part = rank.0 >= Fit::Partial && place.reaches(self.module, reach);
                if is_part && best.as_ref().is_none_or(|best| rank > best.0) {
                    best = Some((rank, place));
                }
            }
        }
        best
    }

    /// In the words of a variable of which the value is a part, and leads on from it: one end of a channel is two words.
    fn piece(&self, value: Operand, reach: &Reach) -> Option<Ranked> {
        let pieces = self.function.pieces.iter();
        let pieces = pieces.filter(|v| v.value == value && (!self.alone || self.sees(v)));
        let mut best: Option<Ranked> = None;
        for piece in pieces.filter(|piece| self.strong(piece)) {
            let Some(at) = u64::try_from(piece.offset).ok() else { continue };
            let Some(place) = self.within_wrapper(piece.name.clone(), (piece.ty, at)) else {
                continue;
            };
            let rank = place.explains(self.module, reach);
            if rank.0 >= Fit::Partial && best.as_ref().is_none_or(|best| rank > best.0) {
                best = Some((rank, place));
            }
        }
        best
    }

    /// The address that another one is computed from, and how far behind it that is.
    fn apart(&self, address: Operand) -> Option<(Operand, i64)> {
        let Operand::Inst(id) = address else { return None };
        match &self.function.instructions.get(id.index())?.kind {
            InstKind::Gep { base, offset, terms, .. } if terms.is_empty() => Some((*base, *offset)),
            _ => None,
        }
    }

    /// The variables that the access sees under their own names, and that describe a value as another type: they hold
    /// casts of it.
    fn casts(&self, value: Operand) -> Vec<&'m LocalVariable> {
        let is_cast = |variable: &&LocalVariable| {
            let Operand::Inst(id) = variable.value else { return false };
            let cast = self.function.instructions.get(id.index()).map(|inst| &inst.kind);
            !variable.address
                && matches!(cast, Some(InstKind::Cast(CastOp::BitCast, from)) if *from == value)
        };
        let described = self.function.variables.iter().filter(is_cast);
        described.filter(|variable| self.strong(variable)).collect()
    }

    /// Is it a variable of the function that the access stands in?
    fn sees(&self, variable: &LocalVariable) -> bool {
        let scope = variable.scope.and_then(|id| self.module.debug.scopes.get(id.index()));
        match (scope, self.scope) {
            (Some(theirs), Some(ours)) => {
                theirs.function == ours.function && theirs.line == ours.line
            }
            _ => true,
        }
    }

    fn strong(&self, variable: &LocalVariable) -> bool {
        if self.is_of_rusts_library(variable) {
            return false;
        }
        let scope = variable.scope.and_then(|id| self.module.debug.scopes.get(id.index()));
        let inner = variable.name == "this" || is_reserved(&variable.name);
        if variable.address && !(inner && self.is_inlined(scope)) {
            return true;
        }
        self.sees(variable) && variable.name != "this" && !is_reserved(&variable.name)
    }

    /// Is it a variable of a function of Rust's library, or of a package that the program's code called?
    fn is_of_rusts_library(&self, variable: &LocalVariable) -> bool {
        let scope = variable.scope.and_then(|id| self.module.debug.scopes.get(id.index()));
        let of_package = |scope: &Scope| self.of_program && rust::is_packages(&scope.file);
        scope.is_some_and(|scope| is_of_rusts_library(scope) || of_package(scope))
    }

    /// Is it the scope of a function that was inlined?
    fn is_inlined(&self, scope: Option<&Scope>) -> bool {
        let own = self.function.scope.and_then(|id| self.module.debug.scopes.get(id.index()));
        match (scope, own) {
            (Some(theirs), Some(own)) => theirs.function != own.function || theirs.line != own.line,
            _ => false,
        }
    }

    /// What is kept in a local variable that is written once.
    fn kept_in(&self, address: Operand) -> Option<Operand> {
        let Operand::Inst(id) = address else { return None };
        let local = self.function.instructions.get(id.index())?;
        if !matches!(local.kind, InstKind::Alloca { .. }) {
            return None;
        }
        let mut values =
            self.function.instructions.iter().filter_map(|instruction| match instruction.kind {
                InstKind::Store { address: to, value, .. } if to == address => Some(value),
                _ => None,
            });
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// What a pointer leads to that was written to a variable which the access sees: in a `match`, what a variant keeps is
    /// called as the arm calls it.
    fn copied(&self, pointer: Operand) -> Option<Place> {
        let copies = self.function.instructions.iter().filter_map(|it| match it.kind {
            InstKind::Store { address, value, .. } if value == pointer => Some(address),
            _ => None,
        });
        let variables = copies.flat_map(|address| self.variables(address).0);
        let variable = variables.filter(|variable| variable.address).find(|it| self.sees(it))?;
        let kept = self.at_variable(variable)?.finish(self.module, Want::Link)?;
        let (via, ty) = self.pointee(kept.ty);
        ty.map(|ty| Place::new(kept.text, via, Some(ty)))
    }

    /// The variable that explains an access best; of equals, one that leads to a member, and then
    /// the first, which is the one of the outermost function.
    fn most_telling(&self, variables: &[&'m LocalVariable], reach: &Reach) -> Option<Ranked> {
        let mut best: Option<Ranked> = None;
        for variable in variables {
            let Some(place) = self.at_variable(variable) else { continue };
            if self.is_of_rusts_library(variable) && !place.reaches(self.module, reach) {
                continue;
            }
            let rank = place.explains(self.module, reach);
            if best.as_ref().is_none_or(|best| rank > best.0) {
                best = Some((rank, place));
            }
        }
        best
    }

    /// How a value of this type leads on, and to what.
    pub(super) fn pointee(&self, ty: Option<DebugTypeId>) -> (Via, Option<DebugTypeId>) {
        match layout::strip(self.module, ty) {
            Some(DebugType::Reference(inner)) => (Via::Reference, *inner),
            Some(DebugType::Pointer(inner)) => (Via::Pointer, *inner),
            _ => (Via::Pointer, None),
        }
    }

    fn at_variable(&self, variable: &LocalVariable) -> Option<Place> {
        let text = variable.name.clone();
        // A parameter that the source gives no name.
        if text.is_empty() {
            return None;
        }
        // A library's own variable says less than any other.
        let rusts = self.is_of_rusts_library(variable);
        if variable.address {
            let limit = if rusts { Fit::Untyped } else { Fit::Exact };
            return Some(Place { limit, ..Place::new(text, Via::Object, variable.ty) });
        }
        let foreign = rusts || is_reserved(&variable.name);
        let limit = if foreign { Fit::Untyped } else { Fit::Exact };
        if matches!(layout::strip(self.module, variable.ty), Some(DebugType::Composite { .. }))
            && variable.offset == 0
        {
            let place = self.in_wrapper(text, variable.ty)?;
            return Some(if rusts { Place { limit, ..place } } else { place });
        }
        let (via, ty) = self.pointee(variable.ty);
        if variable.offset != 0 && ty.is_none() {
            return None;
        }
        let offset = variable.offset.wrapping_neg();
        Some(Place { offset, limit, ..Place::new(text, via, ty) })
    }

    /// A pointer that is the first member of an object which a register holds: a smart pointer,
    /// the holder of a lock.
    fn in_wrapper(&self, text: String, of: Option<DebugTypeId>) -> Option<Place> {
        self.within_wrapper(text, (of, 0))
    }

    /// The same of a pointer so many bytes from its beginning.
    fn within_wrapper(&self, text: String, (of, at): (Option<DebugTypeId>, u64)) -> Option<Place> {
        let walk = descend(self.module, of, at, Vec::new(), Want::Link);
        let kind = layout::strip(self.module, walk.ty)?;
        if !matches!(kind, DebugType::Pointer(_) | DebugType::Reference(_)) {
            return None;
        }
        let (via, ty) = self.pointee(walk.ty);
        // A pointer to the object is closer to the source.
        let limit = Fit::Partial;
        let text = walk.captured.unwrap_or_else(|| text + &walk.suffix);
        Some(Place { limit, ..Place::new(text, via, ty) })
    }

    /// Through the instruction that computes the address.
    fn computed(&self, address: Operand, reach: &Reach, depth: usize) -> Option<Place> {
        let Operand::Inst(id) = address else { return None };
        match &self.function.instructions.get(id.index())?.kind {
            InstKind::Gep { base, offset, terms, .. } => {
                let indices: Vec<Index> = terms.iter().map(|term| self.index(term)).collect();
                let further = Reach {
                    offset: offset.wrapping_add(reach.offset),
                    indices: indices.iter().chain(&reach.indices).cloned().collect(),
                    want: reach.want,
                };
                let mut place = self.place_within(*base, &further, depth)?;
                place.offset = place.offset.wrapping_add(*offset);
                place.indices.extend(indices);
                Some(place)
            }
            InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, inner)
            | InstKind::Freeze(inner) => self.place_within(*inner, reach, depth),
            InstKind::Load { address, .. } => {
                // At -O0, an inlined function's parameter is a variable that holds what it got, and
                // a loop over a container has one of its own.
                if self.variables(*address).0.iter().all(|v| is_reserved(&v.name))
                    && let Some(kept) = self.kept_in(*address)
                    && let Some(place) = self.place_within(kept, reach, depth)
                {
                    return Some(place);
                }
                let pointer = self.place_within(*address, &Reach::here(Want::Link), depth)?;
                // A pointer that Rust's library keeps in a variable of its own, as who holds a lock does.
                let is_librarys = pointer.is_librarys();
                let pointer = pointer.finish(self.module, Want::Link)?;
                if pointer.guess
                    && let Some(place) = self.copied(Operand::Inst(id))
                {
                    return Some(place);
                }
                let (via, ty) = match is_untyped_buffer(self.module, pointer.within.0) {
                    true => (Via::Reference, None),
                    false => self.pointee(pointer.ty),
                };
                // The `this` that a lambda captures is a member of that name.
                let captured = [".this", "->this"].iter().any(|end| pointer.text.ends_with(end));
                // What a library's object keeps for itself leads on from no name of the source.
                let limit = match is_librarys {
                    true => Fit::Untyped,
                    false if pointer.text == "*this" => Fit::Partial,
                    false => Fit::Exact,
                };
                let text = if captured { "this".to_owned() } else { pointer.text };
                Some(Place { limit, ..Place::new(text, via, ty) })
            }
            InstKind::Call(call) | InstKind::Invoke { call, .. } => {
                let target = call.target(self.module)?;
                let same = ["llvm.threadlocal.address", "llvm.launder.", "llvm.strip."];
                match same.iter().any(|prefix| target.name.starts_with(prefix)) {
                    true => self.place_within(*call.args.first()?, reach, depth),
                    false => self.called((call, target), reach, depth),
                }
            }
            _ => None,
        }
    }

    fn index(&self, term: &GepTerm) -> Index {
        Index { text: self.index_text(term.index, DEEPEST_INDEX), scale: term.scale }
    }

    /// An index in the source's words.
    pub(super) fn index_text(&self, index: Operand, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        let (strong, weak) = self.variables(index);
        let number = |variable: &&&LocalVariable| {
            let ty = layout::strip(self.module, variable.ty);
            !variable.address
                && variable.offset == 0
                && !is_reserved(&variable.name)
                && !self.is_of_rusts_library(variable)
                && !matches!(ty, Some(DebugType::Composite { .. }))
        };
        if let Some(variable) = strong.iter().chain(&weak).find(number) {
            return Some(variable.name.clone());
        }
        let Operand::Inst(id) = index else { return None };
        let instruction = self.function.instructions.get(id.index())?;
        match &instruction.kind {
            InstKind::Cast(CastOp::SExt | CastOp::ZExt | CastOp::Trunc, inner)
            | InstKind::Freeze(inner) => self.index_text(*inner, depth),
            InstKind::Load { address, .. } => {
                let want = Want::Access(self.module.store_size(instruction.ty));
                Some(self.place(*address, want)?.finish(self.module, want)?.text)
            }
            InstKind::Binary(op, left, right) => {
                let (left, right) = (self.index_text(*left, depth)?, self.small(*right)?);
                let sum = matches!(op, BinaryOp::Add | BinaryOp::Sub);
                let loose: &[char] = if sum { &['&'] } else { &['+', '-', '&'] };
                let left = if has_operator(&left, loose) { format!("({left})") } else { left };
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
    pub(super) fn small(&self, operand: Operand) -> Option<i64> {
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

/// Is it the scope of a function of Rust's standard library?
fn is_of_rusts_library(scope: &Scope) -> bool {
    rust::is_librarys(&scope.file)
}

/// Does a text have one of these operators outside of all brackets? `->` is none.
fn has_operator(text: &str, operators: &[char]) -> bool {
    let mut open = 0_u32;
    let plain = text.replace("->", ".");
    plain.chars().any(|character| {
        match character {
            '(' | '[' => open += 1,
            ')' | ']' => open = open.saturating_sub(1),
            _ => {}
        }
        open == 0 && operators.contains(&character)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_count_outside_of_brackets_only() {
        for (text, expected) in [
            ("i+1", true),
            ("(i+1)", false),
            ("q->at[i+1]", false),
            ("q->n", false),
            ("a[0]-1", true),
        ] {
            assert_eq!(has_operator(text, &['+', '-']), expected, "{text}");
        }
    }
}
