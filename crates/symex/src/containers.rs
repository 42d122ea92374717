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
use crate::thread::{CodeFrame, Frame};
use crate::value::{Scalar, Value};
use ir::types::{InstId, Operand, Type, TypeId};
use model::names::{is_reserved, outside_of_library};
use model::{CellId, Site};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::Arc;

/// No container begins further in front of the pointers that it holds.
const LARGEST: u64 = 1 << 12;

/// What pointers lead to, by the number of a heap object.
#[derive(Default)]
pub(crate) struct Containers {
    /// The variable that reaches the object.
    owners: BTreeMap<usize, Arc<str>>,
    /// Objects with a pointer, and where it leads.
    links: FxHashSet<(usize, usize)>,
    /// Events with a name of the library, by thread and index, and what they are about.
    events: Vec<(usize, u32, usize)>,
    /// The same for cells.
    cells: FxHashMap<CellId, usize>,
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

    /// Gives the events and cells of objects that a container reaches its name.
    pub(crate) fn rename(mut self, out: &mut Builder) {
        let mut links: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in self.links {
            links.entry(from).or_default().push(to);
        }
        let mut stack: Vec<usize> = self.owners.keys().rev().copied().collect();
        while let Some(object) = stack.pop() {
            let Some(owner) = self.owners.get(&object).cloned() else { continue };
            let mut reached = links.remove(&object).unwrap_or_default();
            reached.sort_unstable();
            for object in reached {
                if let Entry::Vacant(entry) = self.owners.entry(object) {
                    entry.insert(Arc::clone(&owner));
                    stack.push(object);
                }
            }
        }
        for (thread, index, object) in self.events {
            if let Some(owner) = self.owners.get(&object) {
                out.rename_event(thread, index, |name, site| {
                    is_of_library(name, site).then(|| of_container(owner, name))
                });
            }
        }
        for (cell, object) in self.cells {
            if let (Some(owner), Some(cell)) =
                (self.owners.get(&object), out.cells.get_mut(cell.index()))
                && is_of_library(&cell.name, None)
            {
                cell.name = of_container(owner, &cell.name);
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
        if let Some(holder) = self.learned.heap.at_internal(place.address)
            && holder != target
        {
            self.containers.links.insert((holder, target));
        }
        if self.containers.owners.contains_key(&target) {
            return;
        }
        let name = self.access_name_at(t, at, place);
        let name = name.filter(|name| !is_of_library(name, None));
        let within = name.as_deref().map(|name| (name.len(), outside_of_library(name)));
        let own = within.filter(|(whole, outside)| outside.len() < *whole);
        let owner = own.map(|(_, outside)| outside.to_owned());
        if let Some(owner) = owner.or_else(|| self.container_in_call(t, place.address)) {
            self.containers.owners.insert(target, owner.into());
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

    /// In a function of a library: the variable that the program called it with as its object, if
    /// the address is in it.
    fn container_in_call(&mut self, t: usize, address: u64) -> Option<String> {
        let frames: Vec<&CodeFrame<'r>> = self.threads[t]
            .frames
            .iter()
            .filter_map(|frame| match frame {
                Frame::Code(frame) => Some(&**frame),
                Frame::External(_) => None,
            })
            .collect();
        let calls = frames.windows(2).rev().map(|pair| {
            let object = pair[1].arguments.first().and_then(Value::scalar);
            let library = is_of_standard_library(&pair[1].info.function.name);
            let size = ir::name::object_size(pair[1].module, pair[1].info.function);
            (library, pair[0].module, pair[0].info.function, pair[0].next.index(), object, size)
        });
        let calls: Vec<_> = calls.take_while(|(library, ..)| *library).collect();
        for (_, module, function, next, object, size) in calls {
            let begin = self.pointed_at(t, object?)?;
            if !(begin..begin.saturating_add(LARGEST)).contains(&address) {
                return None;
            }
            // The caller goes on behind the call, or stands at it.
            let name = [next, next.wrapping_sub(1)]
                .into_iter()
                .filter(|at| {
                    let called = function.instructions.get(*at);
                    called.is_some_and(|inst| inst.kind.as_call().is_some())
                })
                .find_map(|at| {
                    let id = InstId(u32::try_from(at).ok()?);
                    ir::name::argument_path(module, function, id, 0, size)
                })?;
            if !is_of_library(&name, None) {
                return Some(outside_of_library(&name).to_owned());
            }
        }
        None
    }

    /// An event with a name of the library is to be named after its container, if it has one.
    pub(crate) fn note_contained(&mut self, t: usize, event: u32, place: Place) {
        if !self.symbolic() {
            return;
        }
        if let Some(object) = self.learned.heap.at_internal(place.address) {
            self.containers.events.push((t, event, object));
        } else if self.out.event_name(t, event).is_some_and(|name| is_of_library(name, None))
            && let Some(owner) = self.container_in_call(t, place.address)
        {
            self.out.rename_event(t, event, |name, _| Some(of_container(&owner, name)));
        }
    }

    /// The same for a cell.
    pub(crate) fn note_contained_cell(&mut self, cell: CellId, address: u64) {
        if let Some(object) = self.learned.heap.at_internal(address) {
            self.containers.cells.insert(cell, object);
        }
    }
}

/// Is it the symbol of a function in `std` or `__gnu_cxx`?
fn is_of_standard_library(symbol: &str) -> bool {
    let inside = symbol.strip_prefix("_ZNK").or_else(|| symbol.strip_prefix("_ZN"));
    symbol.starts_with("_ZSt")
        || inside.is_some_and(|rest| rest.starts_with('S') || rest.starts_with("9__gnu_cxx"))
}

/// A library's name of a member, behind the container's: `cache.entries_->_M_left`.
fn of_container(owner: &str, name: &str) -> String {
    let members = match name.starts_with("*0x") {
        true => "",
        false => name.find("->_").map_or("", |at| &name[at..]),
    };
    format!("{owner}{members}")
}

/// Does a name begin with a variable of a library, or with none? `site` is where it is used.
fn is_of_library(name: &str, site: Option<&Site>) -> bool {
    if name.starts_with("*0x") {
        return true;
    }
    let root = name.trim_start_matches(['*', '(', '&']);
    let end = root.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(root.len());
    let root = &root[..end];
    let outside = outside_of_library(name);
    is_reserved(root)
        || (root == "this" && outside.trim_matches(['*', '(', ')']) == "this")
        || (root == "this" && site.is_some_and(Site::is_in_library))
}
