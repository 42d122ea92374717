//! Which container of the program a library's heap objects belong to.
//!
//! The nodes of a `std::map` have no name of the program: their members are named by whatever the
//! library calls its pointers (`__x->_M_left`), and by an address where it has none, so that one bug
//! would have another name in each run, by how the tree happened to be. They are named after the
//! container that reaches them instead: what a pointer in a library's member of a variable
//! (`cache.entries_._M_t._M_impl._M_header._M_parent`) points to belongs to the variable, and what a
//! pointer in such an object points to, too. Which objects these are is known when all threads were
//! walked; then the events and cells get their names.

use crate::access::Place;
use crate::builder::Builder;
use crate::engine::Engine;
use crate::naming::calling;
use crate::thread::{CodeFrame, Frame};
use crate::value::{Scalar, Value};
use ir::name::{self, Part};
use ir::types::{Function, InstId, Module, Operand, Type, TypeId};
use model::names::{is_installed, is_reserved, outside_of_library};
use model::{CellId, EventKind, ObjectId, Site};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::Arc;

/// What a function that nobody declared here does with an argument is taken to lie in so many bytes.
pub(crate) const UNDECLARED: u64 = 64;
/// No container begins further in front of the pointers that it holds.
const LARGEST: u64 = 1 << 12;

/// What pointers lead to, by the number of a heap object.
#[derive(Default)]
pub(crate) struct Containers {
    /// The variable that reaches the object.
    owners: BTreeMap<usize, Owner>,
    /// The variable that tells a place in a container, such as an iterator, and where it is. It
    /// owns what nobody else does.
    pointing: BTreeMap<usize, Owner>,
    /// Objects with a pointer, and where it leads.
    links: FxHashSet<(usize, usize)>,
    /// Events that may have a name of the library.
    events: Vec<Note>,
    /// The same for cells.
    cells: FxHashMap<CellId, usize>,
    /// The same for locks and the like.
    locks: FxHashMap<ObjectId, usize>,
}

/// An event that is about a heap object.
struct Note {
    thread: usize,
    index: u32,
    object: usize,
    /// It is in a library's function: a `this` there is no word of the program. One of a function of the
    /// program is, also where a library's code was inlined.
    foreign: bool,
}

/// A variable that reaches objects.
#[derive(Clone)]
struct Owner {
    name: Arc<str>,
    /// It is a container, and what it reaches are elements of it.
    elements: bool,
    /// The heap object that it lies in. A container's nodes lead back to the container, and a
    /// container without nodes points to itself: what has the container is none of its parts.
    home: Option<usize>,
}

impl Containers {
    /// How many notes of events there are.
    pub(crate) fn noted(&self) -> usize {
        self.events.len()
    }

    /// Takes notes of events out.
    pub(crate) fn remove(&mut self, notes: Range<usize>) {
        self.events.drain(notes);
    }

    /// Gives the events and cells of objects that a container reaches its name; what is about such an
    /// object as a whole is about what the container points to.
    pub(crate) fn rename(mut self, out: &mut Builder) {
        let mut links: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in std::mem::take(&mut self.links) {
            links.entry(from).or_default().push(to);
        }
        self.follow(&mut links);
        for (object, owner) in std::mem::take(&mut self.pointing) {
            self.owners.entry(object).or_insert(owner);
        }
        self.follow(&mut links);
        for Note { thread, index, object, foreign } in std::mem::take(&mut self.events) {
            if let Some(owner) = self.owners.get(&object) {
                let frees = matches!(out.event_kind(thread, index), Some(EventKind::Free { .. }));
                out.rename_event(thread, index, |name, site| {
                    let site = site.filter(|_| foreign);
                    let renamed = is_of_library(name, site) || is_at_position(name);
                    renamed.then(|| match frees {
                        true => format!("*{}", owner.name),
                        false => of_container(owner, name, foreign),
                    })
                });
            }
        }
        for (cell, object) in std::mem::take(&mut self.cells) {
            if let (Some(owner), Some(cell)) =
                (self.owners.get(&object), out.cells.get_mut(cell.index()))
                && (is_of_library(&cell.name, None) || is_at_position(&cell.name))
            {
                cell.name = of_container(owner, &cell.name, true);
            }
        }
        for (lock, object) in std::mem::take(&mut self.locks) {
            if let (Some(owner), Some(lock)) =
                (self.owners.get(&object), out.objects.get_mut(lock.index()))
                && is_of_library(&lock.name, None)
            {
                lock.name = of_container(owner, &lock.name, true);
            }
        }
    }

    /// What the owned objects lead to is owned, too.
    fn follow(&mut self, links: &mut BTreeMap<usize, Vec<usize>>) {
        let mut stack: Vec<usize> = self.owners.keys().rev().copied().collect();
        while let Some(object) = stack.pop() {
            let Some(owner) = self.owners.get(&object).cloned() else { continue };
            let mut reached = links.remove(&object).unwrap_or_default();
            reached.sort_unstable();
            for object in reached {
                if owner.home == Some(object) {
                    continue;
                }
                if let Entry::Vacant(entry) = self.owners.entry(object) {
                    entry.insert(owner.clone());
                    stack.push(object);
                }
            }
        }
    }
}

impl<'r> Engine<'r> {
    /// The place that a load reads a pointer from, where it is of interest what that points to.
    pub(crate) fn held_pointer(&mut self, t: usize, ty: TypeId, pointer: Operand) -> Option<Place> {
        let is_pointer = matches!(self.module(t).types.get(ty.index()), Some(Type::Pointer));
        if !self.symbolic() || !is_pointer {
            return None;
        }
        let address = self.scalar(t, pointer)?;
        let internal = self.pointed_at(t, address)?;
        Some(Place::new(internal, 8, Some(pointer)))
    }

    /// An instruction read a pointer from a place: notes to whom belongs what it points to.
    pub(crate) fn reaches(&mut self, t: usize, at: InstId, place: Place) {
        let frame = self.threads[t].code();
        let value = frame.and_then(|frame| frame.registers.get(at.index())?.scalar());
        let Some(target) = value.and_then(|value| self.pointed_at(t, value)) else { return };
        let Some(target) = self.learned.heap.at_internal(target) else { return };
        let home = self.learned.heap.at_internal(place.address);
        if home == Some(target) {
            return;
        }
        let link = home.map(|holder| (holder, target));
        let linked = link.is_some_and(|link| self.containers.links.contains(&link));
        let owned = self.containers.owners.contains_key(&target);
        if owned && (linked || link.is_none()) {
            return;
        }
        let name = self
            .access_name_at(t, at, place)
            .filter(|name| self.threads[t].code().is_some_and(|frame| is_of_program(name, frame)));
        // What the program itself keeps a pointer to is not the container's: a job of a vector may lead
        // to all that the program has.
        if let Some(link) = link.filter(|_| !name.as_deref().is_some_and(is_member)) {
            self.containers.links.insert(link);
        }
        if owned {
            return;
        }
        let name = name.filter(|name| outside_of_library(name).len() < name.len());
        let bytes = Part::Bytes(place.length);
        let name = name.or_else(|| self.outer_name(t, place.address, bytes));
        if let Some(name) = name {
            let owner = outside_of_library(&name);
            let elements = has_elements(&name[owner.len()..]) || self.is_in_container(t);
            let to = if is_position(&name[owner.len()..]) {
                &mut self.containers.pointing
            } else {
                &mut self.containers.owners
            };
            to.entry(target).or_insert_with(|| Owner { name: owner.into(), elements, home });
        }
    }

    /// The internal address of what a value points to, as far as it is known.
    fn pointed_at(&mut self, t: usize, value: Scalar) -> Option<u64> {
        let address = match value.as_expr() {
            None => value.as_const(),
            Some(expr) => self.recorded_value(expr),
        };
        self.lookup(t, u64::try_from(address?).ok()?)
    }

    /// In a call of a library: what the program calls the place, which it passed on, or the object
    /// that has it.
    pub(crate) fn outer_name(&mut self, t: usize, address: u64, part: Part) -> Option<String> {
        let mut at = self.threads[t].frames.len().checked_sub(1)?;
        loop {
            let frames = &self.threads[t].frames;
            let (operands, callee) = match frames.get(at)? {
                Frame::Code(called) if is_library_function(called.module, called.info.function) => {
                    (&called.arguments, Some((called.module, called.info.function)))
                }
                Frame::Code(_) => return None,
                Frame::External(frame) => (&frame.call.as_ref()?.arguments, None),
            };
            let arguments: Vec<Option<Scalar>> = operands.iter().map(Value::scalar).collect();
            at = at.checked_sub(1)?;
            // A function of another module was called from code that is not walked itself.
            if let (Some(Frame::External(frame)), Some((_, function))) = (frames.get(at), callee)
                && frame.call.as_ref()?.name == function.name
            {
                at = at.checked_sub(1)?;
            }
            let Some(Frame::Code(caller)) = frames.get(at) else { return None };
            let (info, module, next) = (caller.info, caller.module, caller.next.index());
            let size = |argument| match callee {
                Some((module, function)) => name::pointee_size(module, function, argument),
                None => Some(UNDECLARED),
            };
            let Some(passed) = self.passed(t, &arguments, address, size) else { continue };
            let Some(call) = calling(info.function, next) else { continue };
            let foreign = is_library_code(module, info.function, call);
            let key = (info.module, info.id, call, passed, part);
            let known = self.passed_names.entry(key).or_insert_with(|| {
                name::argument_part_of_program(module, info.function, call, passed, part)
            });
            if let Some(name) = known.as_ref().filter(|name| is_used_by_program(name, foreign)) {
                return Some(name.clone());
            }
        }
    }

    /// The argument of a function that leads to an address, and how many bytes are in between.
    pub(crate) fn passed(
        &mut self,
        t: usize,
        arguments: &[Option<Scalar>],
        address: u64,
        size: impl Fn(usize) -> Option<u64>,
    ) -> Option<(usize, u64)> {
        let mut nearest: Option<(usize, u64)> = None;
        for (at, argument) in arguments.iter().enumerate() {
            let Some(begin) = argument.and_then(|value| self.pointed_at(t, value)) else {
                continue;
            };
            let Some(offset) = address.checked_sub(begin).filter(|offset| *offset < LARGEST) else {
                continue;
            };
            let within = offset == 0 || size(at).is_some_and(|size| offset < size);
            if within && nearest.is_none_or(|(_, other)| offset < other) {
                nearest = Some((at, offset));
            }
        }
        nearest
    }

    /// An event with a name of the library is to be named after its container, if it has one.
    pub(crate) fn note_contained(&mut self, t: usize, event: u32, place: Place) {
        if !self.symbolic() {
            return;
        }
        let foreign = self.is_in_library(t);
        let is_of_library =
            |name: &str, site: Option<&Site>| is_of_library(name, site.filter(|_| foreign));
        if self.out.event_is(t, event, is_of_library)
            && let Some(name) = self.outer_name(t, place.address, Part::Bytes(place.length))
        {
            self.out.name_event(t, event, &name);
        } else if let Some(object) = self.learned.heap.at_internal(place.address) {
            self.containers.events.push(Note { thread: t, index: event, object, foreign });
        }
    }

    /// Does the thread stand in code of a library alone?
    fn is_in_library(&self, t: usize) -> bool {
        let frame = self.threads[t].innermost_code();
        frame.is_none_or(|frame| is_library_code(frame.module, frame.info.function, frame.next))
    }

    /// Does the thread stand in code of a library's container? Where that is all that is known, what it has for members is not.
    fn is_in_container(&mut self, t: usize) -> bool {
        const CONTAINERS: [&str; 8] = [
            "stl_tree.h",
            "hashtable.h",
            "hashtable_policy.h",
            "stl_vector.h",
            "stl_list.h",
            "stl_deque.h",
            "forward_list.h",
            "__tree",
        ];
        let site = self.site_in_any_pass(t);
        let file = site.file.rsplit('/').next().unwrap_or_default();
        is_installed(&site.file) && CONTAINERS.contains(&file)
    }

    /// The same for an event that is about an object as a whole.
    pub(crate) fn note_contained_object(&mut self, t: usize, event: u32, object: usize) {
        if self.symbolic() && self.out.event_is(t, event, is_of_library) {
            self.containers.events.push(Note { thread: t, index: event, object, foreign: true });
        }
    }

    /// The same for an event that is about a lock, which has the best name that the calls have for it.
    pub(crate) fn note_contained_sync(&mut self, t: usize, event: u32, address: u64) {
        if self.symbolic()
            && self.out.event_is(t, event, |name, _| is_of_library(name, None))
            && let Some(object) = self.learned.heap.at_internal(address)
        {
            self.containers.events.push(Note { thread: t, index: event, object, foreign: true });
        }
    }

    /// The same for a lock, a condition variable or the like.
    pub(crate) fn note_contained_lock(&mut self, lock: ObjectId, address: u64) {
        if let Some(object) = self.learned.heap.at_internal(address) {
            self.containers.locks.insert(lock, object);
        }
    }

    /// The same for a cell.
    pub(crate) fn note_contained_cell(&mut self, cell: CellId, address: u64) {
        if let Some(object) = self.learned.heap.at_internal(address) {
            self.containers.cells.insert(cell, object);
        }
    }
}

/// Is it a function of the standard library, or of another installed header?
pub(crate) fn is_library_function(module: &Module, function: &Function) -> bool {
    let scope = function.scope;
    let scope = scope.and_then(|scope| module.debug.scopes.get(scope.index()));
    is_of_standard_library(&function.name) || scope.is_some_and(|scope| is_installed(&scope.file))
}

/// Is an instruction in code of such functions alone? A library's function may have the program's
/// inlined, and the other way round.
fn is_library_code(module: &Module, function: &Function, at: InstId) -> bool {
    let rest = function.instructions.get(at.index()..).unwrap_or_default();
    let debug = &module.debug;
    let mut next = rest.iter().find_map(|instruction| instruction.loc);
    while let Some(location) = next.and_then(|loc| debug.locations.get(loc.index())) {
        let scope = debug.scopes.get(location.scope.index());
        if scope.is_some_and(|scope| !is_installed(&scope.file)) {
            return false;
        }
        next = location.inlined_at;
    }
    is_library_function(module, function)
}

/// Is it the symbol of a function in `std` or `__gnu_cxx`?
fn is_of_standard_library(symbol: &str) -> bool {
    let inside = symbol.strip_prefix("_ZNK").or_else(|| symbol.strip_prefix("_ZN"));
    symbol.starts_with("_ZSt")
        || inside.is_some_and(|rest| rest.starts_with('S') || rest.starts_with("9__gnu_cxx"))
}

/// A library's name of a member, behind the container's: `cache.entries_->_M_left`, and `cache.entries_[..]` of
/// what the program keeps there. So is one of the program's own: `calls_->priority` of `__element->priority`. What has no name
/// in code of the library (`foreign`) may be a link of a node as well.
fn of_container(Owner { name: owner, elements, .. }: &Owner, name: &str, foreign: bool) -> String {
    // Where a node has room for an element.
    const ROOMS: [&str; 2] = ["->_M_storage", "->__value_"];
    let own = || name.rfind("->").filter(|at| !is_reserved(&name[at + 2..]));
    let library = name.find("->_").or_else(|| name.find("->{_"));
    let members = library.or_else(own).map_or("", |at| &name[at..]);
    let behind_links = || is_at_position(name) && outside_of_library(name).contains('[');
    let element = (name.starts_with("*0x") && !foreign)
        || ROOMS.iter().any(|room| members.starts_with(room))
        || behind_links();
    match element && *elements {
        true => format!("{owner}[..]"),
        false => format!("{owner}{members}"),
    }
}

/// Are a library's members, behind a variable, those of a container: `._M_t._M_impl._M_header._M_parent`? A pointer that
/// is kept in a smart one, or what a function object has, is no element.
fn has_elements(members: &str) -> bool {
    const CONTAINERS: [&str; 7] =
        ["_M_impl", "_M_h", "__begin_", "__end_", "__tree_", "__table_", "__map_"];
    let direct = members.split("->").next().unwrap_or_default();
    direct.split('.').any(|member| CONTAINERS.contains(&member))
}

/// Is a library's member, behind a variable, a place in another object, as iterators and the
/// holders of locks have it?
fn is_position(members: &str) -> bool {
    const POSITIONS: [&str; 6] =
        ["_M_node", "_M_cur", "_M_current", "_M_device", "_M_pm", "_M_data"];
    let member = members.trim_start_matches(['.', '-', '>']);
    let end = member.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    POSITIONS.contains(&&member[..end.unwrap_or(member.len())])
}

/// Is it a library's member of what a lone variable points to, as optimised code has it where an
/// iterator is a mere pointer: `it[1]._M_parent`?
fn is_at_position(name: &str) -> bool {
    let outside = outside_of_library(name);
    let variable = outside.split('[').next().unwrap_or(outside);
    let word = variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let pointer = variable.len() < outside.len() || name[outside.len()..].starts_with("->");
    word && pointer && outside.len() < name.len()
}

/// Does a name that a function uses begin with a variable of the program?
pub(crate) fn is_of_program(name: &str, user: &CodeFrame<'_>) -> bool {
    is_used_by_program(name, is_library_code(user.module, user.info.function, user.next))
}

/// What a method calls the object that it is called on, in C++ and in Rust.
fn is_own_object(variable: &str) -> bool {
    ["this", "self"].contains(&variable)
}

/// The same where it is known whether the function is a library's, whose `this` is no word of the program.
fn is_used_by_program(name: &str, foreign: bool) -> bool {
    let of_library = is_own_object(variable_of(name)) && foreign;
    !of_library && !is_of_library(name, None)
}

/// The variable that a name begins with; empty where it begins with none.
fn variable_of(name: &str) -> &str {
    let root = name.trim_start_matches(['*', '(', '&']);
    let end = root.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &root[..end.unwrap_or(root.len())]
}

/// Does a name of the program lead to a member that is the program's, too: `job->next`, but not `*it`,
/// `*this->cursor_`, `row[2]` or `jobs._M_start`?
fn is_member(name: &str) -> bool {
    let outside = outside_of_library(name).len() == name.len();
    let begin = name.rfind(['.', '>']).map_or(0, |at| at + 1);
    outside && begin > 0 && !name.starts_with('*') && !name[begin..].contains(['[', ']'])
}

/// Does a name begin with a variable of a library, or with none? `site` is where it is used.
pub(crate) fn is_of_library(name: &str, site: Option<&Site>) -> bool {
    if name.starts_with("*0x") {
        return true;
    }
    let root = variable_of(name);
    let outside = outside_of_library(name);
    root.is_empty()
        || is_reserved(root)
        || (root == "this" && outside.trim_matches(['*', '(', ')']) == "this")
        || (is_own_object(root) && site.is_some_and(Site::is_in_library))
}

#[cfg(test)]
mod tests {
    use super::{is_member, is_used_by_program};

    #[test]
    fn members_of_the_program_are_told_from_elements() {
        for member in ["job->next", "this->queue_.first", "(*it)->owner", "handle->_PP"] {
            assert!(is_member(member), "{member}");
        }
        for other in ["*it", "*this->cursor_", "row[2]", "this->rows[i]", "jobs._M_impl._M_start"] {
            assert!(!is_member(other), "{other}");
        }
    }

    #[test]
    fn what_a_library_calls_its_object_is_no_word_of_the_program() {
        for own in ["this->lock", "*self", "self.lock.inner"] {
            assert!(!is_used_by_program(own, true), "{own}");
            assert!(is_used_by_program(own, false), "{own}");
        }
        assert!(is_used_by_program("guard.ready", true));
    }
}
