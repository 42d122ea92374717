//! From a byte offset to a member: the walk down a debug type.

use crate::types::{DebugEncoding, DebugMember, DebugType, DebugTypeId, Module};
use model::names::is_reserved;
use std::cmp::Ordering;
use std::fmt::Write;

/// Types whose members say nothing, though their names are not reserved ones.
const CLOSED: [&str; 5] = ["_GMutex", "_GRecMutex", "_GRWLock", "_GCond", "_GThreadPool"];

/// Nesting beyond this is malformed.
pub(super) const DEEPEST: usize = 64;

/// What is named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    /// What an access of so many bytes touches.
    Access(u64),
    /// A pointer that leads on. Members that only a library knows are left out: a smart pointer
    /// is written like the pointer that it keeps.
    Link,
    /// The outermost object that begins there, of that size when it is known.
    Object(Option<u64>),
}

impl Want {
    /// The size of what is named, when it is known.
    pub(super) fn bytes(self) -> Option<u64> {
        match self {
            Self::Access(bytes) => Some(bytes),
            Self::Link => Some(8),
            Self::Object(bytes) => bytes,
        }
    }
}

/// A variable index: what it is called, and the bytes per step.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) text: Option<String>,
    pub(super) scale: u64,
}

/// How what was reached agrees with what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is that.
    Whole,
    /// It is more or less than that.
    Part,
    /// It does not reach so far.
    Outside,
}

/// Where a walk ended.
pub(super) struct Walk {
    /// `.member`, `[3]` and so on; empty when the type itself is meant.
    pub(super) suffix: String,
    /// What follows the innermost lambda expression or closure on the way, if there is one: what it captures has names of
    /// its own there, wherever it is kept itself.
    pub(super) captured: Option<String>,
    /// The type of what was reached; `None` when it is not a whole member.
    pub(super) ty: Option<DebugTypeId>,
    /// How that agrees with what is wanted.
    pub(super) end: End,
    /// The way led through the insides of a library type.
    pub(super) library: bool,
    /// The innermost type that holds all that is wanted, and the place in it.
    pub(super) within: (Option<DebugTypeId>, u64),
    /// The way led through one of several members at one place, any of which it could be: what a variant of an `enum` keeps.
    pub(super) guess: bool,
}

/// One of several scalars that one access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// Bytes from the beginning of the access.
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) ty: Option<DebugTypeId>,
}

/// The type without typedefs and qualifiers.
pub(super) fn strip(module: &Module, ty: Option<DebugTypeId>) -> Option<&DebugType> {
    let mut ty = ty?;
    for _ in 0..DEEPEST {
        match module.debug.types.get(ty.index())? {
            DebugType::Alias(inner) => ty = (*inner)?,
            found => return Some(found),
        }
    }
    None
}

/// Size in bytes; 0 when unknown.
pub(super) fn size(module: &Module, ty: Option<DebugTypeId>) -> u64 {
    let mut ty = ty;
    let mut factor = 1_u64;
    for _ in 0..DEEPEST {
        match strip(module, ty) {
            Some(DebugType::Array { element, length }) => {
                factor = factor.saturating_mul(*length);
                ty = *element;
            }
            Some(
                DebugType::Basic { size, .. }
                | DebugType::Composite { size, .. }
                | DebugType::Enumeration { size, .. },
            ) => return factor.saturating_mul(*size),
            Some(DebugType::Pointer(_) | DebugType::Reference(_)) => {
                return factor.saturating_mul(8);
            }
            _ => return 0,
        }
    }
    0
}

/// Goes down from a type to what lies at the offset.
pub(super) fn descend(
    module: &Module,
    ty: Option<DebugTypeId>,
    offset: u64,
    indices: Vec<Index>,
    want: Want,
) -> Walk {
    let suffix = String::new();
    let within = (ty, offset);
    let mut state = State {
        module,
        ty,
        offset,
        indices,
        want,
        suffix,
        closure: None,
        library: false,
        bits: false,
        several: false,
        within,
        guess: false,
    };
    for _ in 0..DEEPEST {
        if !state.step() {
            break;
        }
        let left = size(module, state.ty).saturating_sub(state.offset);
        if want.bytes().is_none_or(|wanted| wanted <= left) {
            state.within = (state.ty, state.offset);
        }
    }
    let end = state.end();
    let State { suffix, closure, ty, library, within, guess, .. } = state;
    let captured =
        closure.and_then(|from| suffix.get(from..)?.strip_prefix('.')).map(str::to_owned);
    Walk { end, suffix, captured, ty, library, within, guess }
}

/// The scalars that so many bytes at a place in a type consist of, in order; a run of characters
/// counts as one. `None` where that cannot be said: unions, bit-fields, parts of scalars.
pub(super) fn leaves(
    module: &Module,
    (ty, offset): (Option<DebugTypeId>, u64),
    bytes: u64,
) -> Option<Vec<Leaf>> {
    let mut found = Vec::new();
    let span = Span { first: offset, end: offset.checked_add(bytes)? };
    collect(module, ty, 0, span, DEEPEST, &mut found)?;
    let apart = found.windows(2).all(|pair| pair[0].offset + pair[0].size <= pair[1].offset);
    apart.then_some(found)
}

/// The bytes that an access touches, counted from the beginning of the outermost type.
#[derive(Clone, Copy)]
struct Span {
    first: u64,
    end: u64,
}

fn collect(
    module: &Module,
    ty: Option<DebugTypeId>,
    at: u64,
    span: Span,
    depth: usize,
    found: &mut Vec<Leaf>,
) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match strip(module, ty)? {
        DebugType::Array { element, .. } if is_character(module, *element) => {
            let (first, end) = (at.max(span.first), (at + size(module, ty)).min(span.end));
            let size = end.checked_sub(first)?;
            found.push(Leaf { offset: first - span.first, size, ty: *element });
        }
        DebugType::Array { element, length } => {
            let step = size(module, *element);
            let first = span.first.saturating_sub(at).checked_div(step)?;
            let end = span.end.saturating_sub(at).div_ceil(step).min(*length);
            for index in first..end {
                collect(module, *element, at + index * step, span, depth, found)?;
            }
        }
        DebugType::Composite { members, .. } => {
            for member in members {
                let start = at.checked_add(member.offset)?;
                let end = start.checked_add(size(module, member.ty))?;
                if is_empty(module, member.ty) || start >= span.end || end <= span.first {
                    continue;
                }
                if member.bits.is_some() {
                    return None;
                }
                collect(module, member.ty, start, span, depth, found)?;
            }
        }
        _ => {
            let size = size(module, ty);
            if size == 0 || at < span.first || at + size > span.end {
                return None;
            }
            found.push(Leaf { offset: at - span.first, size, ty });
        }
    }
    Some(())
}

fn is_character(module: &Module, ty: Option<DebugTypeId>) -> bool {
    matches!(strip(module, ty), Some(DebugType::Basic { encoding: DebugEncoding::Char, .. }))
}

/// Is it a queue or a stack of C++'s library, which keeps a container of another type?
fn is_adapter(name: &str) -> bool {
    ["queue<", "stack<", "priority_queue<"].iter().any(|adapter| name.starts_with(adapter))
}

/// An empty base class has a byte, but nothing is kept there. What is larger has members: compilers
/// leave them out where the type's constructors are elsewhere, as those of
/// `std::condition_variable` are.
fn is_empty(module: &Module, ty: Option<DebugTypeId>) -> bool {
    matches!(strip(module, ty), Some(DebugType::Composite { members, size: ..=1, .. })
        if members.is_empty())
}

struct State<'m> {
    module: &'m Module,
    ty: Option<DebugTypeId>,
    offset: u64,
    indices: Vec<Index>,
    want: Want,
    suffix: String,
    /// Where the part of the suffix begins that is in a lambda expression or closure.
    closure: Option<usize>,
    library: bool,
    /// It ended at bit-fields.
    bits: bool,
    /// It ended at several members.
    several: bool,
    within: (Option<DebugTypeId>, u64),
    guess: bool,
}

impl State<'_> {
    /// One level down; false at the end.
    fn step(&mut self) -> bool {
        let module = self.module;
        match strip(module, self.ty) {
            Some(DebugType::Array { element, length }) => self.element(*element, *length),
            Some(DebugType::Composite { name, .. }) if CLOSED.contains(&name.as_str()) => false,
            Some(DebugType::Composite { name, members, closure, .. }) => {
                if *closure {
                    self.closure = Some(self.suffix.len());
                }
                self.member(members, is_adapter(name))
            }
            _ => false,
        }
    }

    fn end(&self) -> End {
        if self.several {
            return End::Part;
        }
        let known = size(self.module, self.ty);
        if self.bits || (known == 0 && self.offset == 0) || self.whole() {
            return End::Whole;
        }
        if self.offset < known { End::Part } else { End::Outside }
    }

    /// Is the type at hand, as a whole, what is named?
    fn whole(&self) -> bool {
        let here = self.offset == 0 && self.indices.is_empty();
        here && self.want.bytes().is_none_or(|wanted| size(self.module, self.ty) == wanted)
    }

    fn element(&mut self, element: Option<DebugTypeId>, length: u64) -> bool {
        let step = size(self.module, element);
        if step == 0 || (self.whole() && (length > 1 || matches!(self.want, Want::Object(_)))) {
            return false;
        }
        let place = self.offset / step;
        self.offset %= step;
        let index = take_index(&mut self.indices, step);
        // A step that fits no level of the array cannot be told apart from the others.
        let index = index.or_else(|| {
            let leftover = !self.indices.is_empty() && !nested(self.module, element);
            leftover.then(|| {
                self.indices.clear();
                None
            })
        });
        self.suffix.push_str(&bracket(index, place.cast_signed()));
        self.ty = element;
        true
    }

    fn member(&mut self, members: &[DebugMember], adapter: bool) -> bool {
        let whole = self.whole();
        if whole && matches!(self.want, Want::Object(_)) {
            return false;
        }
        if self.bit_fields(members) || self.several(members) {
            return false;
        }
        let Some((member, guess)) = self.best(members) else { return false };
        // Which member a number of bytes leads to that nobody knows, as a pointer to a member has it, is not known either.
        if !self.indices.is_empty() && !self.has_array(member.ty, DEEPEST) {
            return false;
        }
        // An access to a whole object goes on to a member of that size, but not into the insides
        // of a library type such as `std::atomic`.
        let inner = is_reserved(&member.name);
        // `std::array` is written as an array is, and the container that a `std::queue` keeps as the queue.
        let written = member.name == "_M_elems" || (adapter && member.name == "c");
        let hidden = written || (inner && self.want == Want::Link);
        if whole && (!self.fits(member) || (inner && !hidden)) {
            return false;
        }
        self.offset -= member.offset;
        self.library |= inner && !hidden;
        self.guess |= guess;
        if !hidden && !member.name.is_empty() {
            let _ = write!(self.suffix, ".{}", member.name);
        }
        self.ty = member.ty;
        true
    }

    /// Names the bit-fields that an access touches; several may share its bytes.
    fn bit_fields(&mut self, members: &[DebugMember]) -> bool {
        let Want::Access(bytes) = self.want else { return false };
        let (first, end) = (self.offset * 8, (self.offset + bytes) * 8);
        let touched = |member: &&DebugMember| {
            member.bits.is_some_and(|bits| {
                let start = member.offset * 8 + bits.first;
                start < end && first < start + bits.width
            })
        };
        let named: Vec<&DebugMember> = members.iter().filter(touched).collect();
        self.bits = !named.is_empty();
        match named.as_slice() {
            [] => return false,
            [one] => {
                let _ = write!(self.suffix, ".{}", one.name);
                self.ty = one.ty;
            }
            several => {
                let names: Vec<&str> = several.iter().map(|m| m.name.as_str()).collect();
                let _ = write!(self.suffix, ".{{{}}}", names.join(","));
                self.ty = None;
            }
        }
        true
    }

    /// Names the members that an access touches where none holds all of it.
    fn several(&mut self, members: &[DebugMember]) -> bool {
        let Want::Access(bytes) = self.want else { return false };
        let end = |member: &DebugMember| member.offset.saturating_add(size(self.module, member.ty));
        let wanted = self.offset.saturating_add(bytes);
        let touched = |member: &&DebugMember| {
            let nothing = is_empty(self.module, member.ty);
            !nothing && member.offset < wanted && self.offset < end(member)
        };
        let touched: Vec<&DebugMember> = members.iter().filter(touched).collect();
        let named = touched.iter().all(|member| !member.name.is_empty());
        let whole = touched.iter().any(|m| m.offset <= self.offset && wanted <= end(m));
        if touched.len() < 2 || !named || whole || self.whole() || !self.indices.is_empty() {
            return false;
        }
        let names: Vec<&str> = touched.iter().map(|member| member.name.as_str()).collect();
        let _ = write!(self.suffix, ".{{{}}}", names.join(","));
        self.library |= touched.iter().all(|member| is_reserved(&member.name));
        self.within = (self.ty, self.offset);
        self.ty = None;
        self.several = true;
        true
    }

    /// The member that the offset lies in; among several (a union) the one that fits best, and whether another one fits as well.
    fn best<'t>(&self, members: &'t [DebugMember]) -> Option<(&'t DebugMember, bool)> {
        let score = |member: &DebugMember| {
            let step = match strip(self.module, member.ty) {
                Some(DebugType::Array { element, .. }) => size(self.module, *element),
                _ => 0,
            };
            let indexed = self.indices.iter().any(|index| index.scale == step);
            // An empty base class has a byte, but nothing is kept there.
            let end = member.offset.saturating_add(size(self.module, member.ty));
            let wanted = self.offset.saturating_add(self.want.bytes().unwrap_or(0));
            let exact = self.has_inside(member.ty, self.offset.checked_sub(member.offset), DEEPEST);
            (indexed, self.fits(member), exact, wanted <= end)
        };
        let mut best: Option<(&DebugMember, bool)> = None;
        for member in members.iter().filter(|member| self.holds(member)) {
            match best.map(|(best, _)| score(member).cmp(&score(best))) {
                None | Some(Ordering::Greater) => best = Some((member, false)),
                Some(Ordering::Equal) => best = best.map(|(best, _)| (best, true)),
                Some(Ordering::Less) => {}
            }
        }
        best
    }

    fn fits(&self, member: &DebugMember) -> bool {
        let exact = self.want.bytes().is_some_and(|wanted| size(self.module, member.ty) == wanted);
        member.offset == self.offset && exact
    }

    /// Does something of just the size that is named lie at this offset in a type? Of the members of a union, the others
    /// are about something else.
    fn has_inside(&self, ty: Option<DebugTypeId>, offset: Option<u64>, depth: usize) -> bool {
        let (Some(wanted), Some(offset), Some(depth)) =
            (self.want.bytes(), offset, depth.checked_sub(1))
        else {
            return false;
        };
        if offset == 0 && size(self.module, ty) == wanted {
            return true;
        }
        match strip(self.module, ty) {
            Some(DebugType::Array { element, .. }) => {
                let inner = offset.checked_rem(size(self.module, *element));
                self.has_inside(*element, inner, depth)
            }
            Some(DebugType::Composite { members, .. }) => {
                let mut around = members.iter().filter(|member| {
                    let end = member.offset.saturating_add(size(self.module, member.ty));
                    member.bits.is_none() && (member.offset..end).contains(&offset)
                });
                around.any(|member| {
                    self.has_inside(member.ty, offset.checked_sub(member.offset), depth)
                })
            }
            _ => false,
        }
    }

    /// Is there an array somewhere in a type?
    fn has_array(&self, ty: Option<DebugTypeId>, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        match strip(self.module, ty) {
            Some(DebugType::Array { .. }) => true,
            Some(DebugType::Composite { members, .. }) => {
                members.iter().any(|member| self.has_array(member.ty, depth))
            }
            _ => false,
        }
    }

    fn holds(&self, member: &DebugMember) -> bool {
        if self.offset < member.offset || member.bits.is_some() {
            return false;
        }
        match strip(self.module, member.ty) {
            // A flexible array member goes on to the end of the allocation.
            Some(DebugType::Array { length: 0, .. }) => true,
            _ if is_empty(self.module, member.ty) => false,
            _ => self.offset < member.offset + size(self.module, member.ty),
        }
    }
}

/// Takes the index that steps over elements of this size.
pub(super) fn take_index(indices: &mut Vec<Index>, step: u64) -> Option<Option<String>> {
    let found = indices.iter().position(|index| index.scale == step);
    found.map(|position| indices.remove(position).text)
}

/// Is there another array further down?
fn nested(module: &Module, ty: Option<DebugTypeId>) -> bool {
    matches!(strip(module, ty), Some(DebugType::Array { .. } | DebugType::Composite { .. }))
}

/// `[3]`, `[i]`, `[i+1]`, `[..]`.
pub(super) fn bracket(index: Option<Option<String>>, place: i64) -> String {
    match index {
        None => format!("[{place}]"),
        Some(None) => "[..]".to_owned(),
        Some(Some(text)) if place == 0 => format!("[{text}]"),
        Some(Some(text)) => format!("[{text}{place:+}]"),
    }
}
