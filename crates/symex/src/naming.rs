//! Source places, and names of what is accessed.

use crate::access::{Place, unstack};
use crate::builder::{name_quality, says_more};
use crate::containers::{is_library_function, is_of_program};
use crate::descriptors;
use crate::engine::{Engine, is_private};
use crate::foreign;
use crate::heap::HEAP;
use crate::image::FunctionInfo;
use crate::openmp;
use crate::thread::{CodeFrame, Frame};
use crate::value::{Scalar, Value};
use ir::name::{self, AccessPart, DisplayKind, Part};
use ir::types::{BlockId, FuncId, Function, InstId, LocId, Module, Operand};
use ir::wrappers::{self, Wrapper};
use model::trace::ValueDisplay;
use model::{Interruption, ObjectId, Site, Stack};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// The longest chain of inlined calls that is followed.
const LONGEST_CHAIN: usize = 256;

/// The ways of calls by which events were reached, as a tree: a run has few of them and many
/// events.
#[derive(Default)]
pub(crate) struct CallPaths {
    /// Parent plus one or 0, and what was called, to the node's number.
    numbers: FxHashMap<(u32, Called), u32>,
    /// Per node: the stack of an event that happens there, once one has.
    stacks: Vec<Option<Stack>>,
}

/// What a node of [`CallPaths`] stands for.
#[derive(PartialEq, Eq, Hash)]
enum Called {
    /// Module, function, place in it.
    Code(usize, FuncId, Option<LocId>),
    /// A handler of this signal, which came in this function of a library.
    Handler(u32, Option<String>),
}

impl CallPaths {
    fn child(&mut self, parent: u32, called: Called) -> u32 {
        let stacks = &mut self.stacks;
        *self.numbers.entry((parent, called)).or_insert_with(|| {
            stacks.push(None);
            stacks.len() as u32
        })
    }
}

/// Where a frame is.
#[derive(Clone, Copy)]
pub(crate) struct PlaceInCode<'r> {
    info: &'r FunctionInfo<'r>,
    module: &'r Module,
    loc: Option<LocId>,
}

impl PlaceInCode<'_> {
    /// The place in the source, where the code has one.
    pub(crate) fn loc(self) -> Option<LocId> {
        self.loc
    }
}

impl<'r> Engine<'r> {
    /// Where the thread is; nowhere in a pass that makes no events.
    pub fn site(&mut self, t: usize) -> Site {
        if !self.symbolic() {
            return Site::default();
        }
        self.site_in_any_pass(t)
    }

    /// Where the thread is, in any pass.
    pub(crate) fn site_in_any_pass(&mut self, t: usize) -> Site {
        match self.threads[t].innermost_code() {
            Some(frame) => {
                let place = place_of(frame);
                self.chain(place).first().cloned().unwrap_or_default()
            }
            None => Site::default(),
        }
    }

    /// Where in the source the innermost function goes from one block to another: what a branch back to
    /// a loop's header says of its place is the loop's own, whatever stands in the header.
    pub fn site_of_branch(&mut self, t: usize, from: BlockId, to: BlockId) -> Site {
        if !self.symbolic() {
            return Site::default();
        }
        let Some(frame) = self.threads[t].innermost_code() else { return Site::default() };
        let PlaceInCode { info, module, .. } = place_of(frame);
        let code = |block: BlockId| {
            let block = info.function.blocks.get(block.index());
            let range = block.map(|block| block.first.index()..block.end.index());
            range.and_then(|range| info.function.instructions.get(range)).unwrap_or_default()
        };
        let branch = code(from).last().and_then(|branch| branch.loc);
        let loc = branch.or_else(|| code(to).iter().find_map(|inst| inst.loc));
        self.chain(PlaceInCode { info, module, loc }).first().cloned().unwrap_or_default()
    }

    /// The call stack, innermost first, inlined calls expanded.
    pub fn stack(&mut self, t: usize) -> Stack {
        let mut node = 0;
        let mut inside = None;
        for frame in &self.threads[t].frames {
            let called = match (frame.code().map(place_of), frame.signal()) {
                (Some(place), _) => Some(Called::Code(place.info.module, place.info.id, place.loc)),
                (None, Some(signal)) => Some(Called::Handler(signal, inside.map(str::to_owned))),
                (None, None) => None,
            };
            if let Some(called) = called {
                node = self.call_paths.child(node, called);
            }
            inside = frame.called();
        }
        let known = (node as usize).checked_sub(1).and_then(|at| self.call_paths.stacks.get(at));
        if let Some(Some(stack)) = known {
            return stack.clone();
        }
        let frames = &self.threads[t].frames;
        let handler = frames.iter().rposition(|frame| frame.signal().is_some());
        let places = |range: Range<usize>| -> Vec<PlaceInCode<'r>> {
            let frames = frames[range].iter().rev();
            frames.filter_map(Frame::code).map(place_of).collect()
        };
        let interrupted = handler.and_then(|at| {
            let inside = at.checked_sub(1).and_then(|below| frames[below].called());
            Some((frames[at].signal()?, inside.map(str::to_owned)))
        });
        let (inner, outer) = match handler {
            Some(at) => (places(at..frames.len()), places(0..at)),
            None => (places(0..frames.len()), Vec::new()),
        };
        let mut stack = self.sites(inner);
        let outer = self.sites(outer);
        let interruption =
            interrupted.map(|(signal, inside)| Interruption { signal, inside, outer: outer.len() });
        stack.extend(outer);
        let stack = match interruption {
            Some(interruption) => Stack::from(stack).in_handler(interruption),
            None => Stack::from(stack),
        };
        let slot = (node as usize).checked_sub(1).and_then(|at| self.call_paths.stacks.get_mut(at));
        if let Some(slot) = slot {
            *slot = Some(stack.clone());
        }
        stack
    }

    /// The places of frames, inlined calls expanded.
    fn sites(&mut self, frames: Vec<PlaceInCode<'r>>) -> Vec<Site> {
        let mut sites = Vec::new();
        for place in frames {
            sites.extend(self.chain(place).iter().cloned());
        }
        openmp::join_frames(&mut sites);
        sites
    }

    /// The call stack of an event that is about a lock and the like: from where it is named on.
    pub(crate) fn sync_stack(&mut self, t: usize) -> Stack {
        let stack = self.stack(t);
        let inside: Vec<PlaceInCode<'r>> =
            self.wrapping(t).into_iter().map(|(frame, _)| place_of(frame)).collect();
        let frames = inside.len();
        let sites: usize = inside.into_iter().map(|place| self.chain(place).len()).sum();
        let sites = sites + self.inlined_wrappers(t, frames);
        match stack.get(sites) {
            Some(site) if sites > 0 && site.line != 0 => stack.without_innermost(sites),
            _ => stack,
        }
    }

    /// How many of the functions that were inlined where a frame of code stands do nothing but what is called there, if
    /// one of them is the program's own. Of a library's [`Self::outer_name`] knows more.
    fn inlined_wrappers(&mut self, t: usize, frame: usize) -> usize {
        let Some(frame) = self.callers(t).nth(frame) else { return 0 };
        let (info, module, place) = (frame.info, frame.module, place_of(frame));
        let Some(call) = calling(info.function, frame.next.index()) else { return 0 };
        let key = (info.module, info.id, call);
        if let Some(levels) = self.inlined_levels.get(&key) {
            return *levels;
        }
        let levels = wrappers::inlined(module, info.function, call, self.image);
        let chain = self.chain(place);
        let passed = chain.get(..levels).unwrap_or_default();
        let levels = if passed.iter().all(Site::is_in_library) { 0 } else { levels };
        self.inlined_levels.insert(key, levels);
        levels
    }

    /// The frames of functions that do nothing but take a lock and the like, which their callers
    /// name, innermost first, and where they have it. Of a library's functions [`Self::outer_name`]
    /// knows more.
    fn wrapping(&self, t: usize) -> Vec<(&CodeFrame<'r>, Wrapper)> {
        let callers = self.callers(t).skip(1);
        // Who has no caller there takes the lock itself.
        let wrapping = self
            .callers(t)
            .zip(callers)
            .map_while(|(frame, _)| Some((frame, frame.info.wrapper(frame.module, self.image)?)));
        let mut found: Vec<_> = wrapping.collect();
        let is_own = |(frame, _): &(&CodeFrame<'r>, Wrapper)| {
            !is_library_function(frame.module, frame.info.function)
        };
        found.truncate(found.iter().rposition(is_own).map_or(0, |last| last + 1));
        found
    }

    /// The frames of code, innermost first, as far as each was called by the next one.
    fn callers(&self, t: usize) -> impl Iterator<Item = &CodeFrame<'r>> {
        let frames = &self.threads[t].frames;
        let mut called: Option<&str> = None;
        let code = frames.iter().rev().map_while(move |frame| match frame {
            Frame::Code(frame) => {
                called = Some(&frame.info.function.name);
                Some(Some(&**frame))
            }
            // A function of another module is called by its name.
            Frame::External(frame) => {
                let name = frame.call.as_ref().map(|call| call.name);
                (called.is_none() || called == name).then_some(None)
            }
        });
        code.flatten()
    }

    /// What the caller of such a function calls the object of `size` bytes at an address that it is about: the lock
    /// that a wait gives back is another one than what it waits for.
    fn callers_word(&mut self, t: usize, address: u64, size: Option<u64>) -> Option<String> {
        let wrappers: Vec<Wrapper> =
            self.wrapping(t).into_iter().map(|(_, wrapper)| wrapper).collect();
        let Some(depth) = wrappers.len().checked_sub(1) else {
            return self.outer_word(t, address, size);
        };
        let wrapper = *wrappers.last()?;
        let is_first = self.argument_at(t, address).is_none_or(|(position, _)| position == 0);
        let object = match (is_first, wrapper.is_virtual) {
            (true, true) => wrappers::behind(&wrappers)?,
            (true, false) => wrapper.object,
            (false, _) => wrapper.lock?,
        };
        let level = self.inlined_wrappers(t, depth + 1);
        let caller = self.callers(t).nth(depth + 1)?;
        let (info, module, next) = (caller.info, caller.module, caller.next.index());
        let call = calling(info.function, next)?;
        let part = if object.pointer { Part::Bytes(8) } else { Part::Object(size) };
        let place = (object.parameter, u64::try_from(object.offset).ok()?);
        let key = (info.module, info.id, call, place, part);
        let known = self.passed_names.entry(key).or_insert_with(|| {
            let outer =
                || name::argument_part_in(module, info.function, (call, level), place, part);
            let here = || name::argument_part(module, info.function, call, place, part);
            (level > 0).then(outer).flatten().or_else(here)
        });
        let name = known.as_ref()?;
        Some(if object.pointer { format!("*{name}") } else { name.clone() })
    }

    /// The same where the functions that do no more were inlined.
    fn outer_word(&mut self, t: usize, address: u64, size: Option<u64>) -> Option<String> {
        let level = self.inlined_wrappers(t, 0);
        let (argument, _) = self.argument_at(t, address).filter(|_| level > 0)?;
        let caller = self.callers(t).next()?;
        let (info, module, next) = (caller.info, caller.module, caller.next.index());
        let call = calling(info.function, next)?;
        let place = (argument, 0);
        name::argument_part_in(module, info.function, (call, level), place, Part::Object(size))
    }

    pub(crate) fn chain(&mut self, place: PlaceInCode<'r>) -> Arc<[Site]> {
        let PlaceInCode { info, module, loc } = place;
        let Some(loc) = loc else {
            let function = name::function_name(module, info.function);
            return Arc::from([Site { function, ..Site::default() }]);
        };
        let chain = self.sites.entry((info.module, loc)).or_insert_with(|| {
            let mut sites = Vec::new();
            let mut next = Some(loc);
            while let Some(location) = next.and_then(|loc| module.debug.locations.get(loc.index()))
            {
                let scope = module.debug.scopes.get(location.scope.index());
                sites.push(Site {
                    file: scope.map(|scope| scope.file.clone()).unwrap_or_default(),
                    line: location.line,
                    column: location.column,
                    function: match scope {
                        Some(scope) if !scope.function.is_empty() => scope.function.clone(),
                        _ => name::function_name(module, info.function),
                    },
                });
                if sites.len() >= LONGEST_CHAIN {
                    break;
                }
                next = location.inlined_at;
            }
            Arc::from(sites)
        });
        Arc::clone(chain)
    }

    /// What an access touches, in the source's words.
    pub fn access_name(&mut self, t: usize, place: Place) -> Option<String> {
        let name = match self.threads[t].innermost_code().map(|frame| frame.next) {
            Some(at) => self.access_name_at(t, at, place),
            None => self.global_name(place.address, place.length),
        };
        self.name_by_lock(t, (place.address, place.length), name)
    }

    /// What Rust's library does to what one of its locks keeps is called as the lock, where it has no name: the program gets there by
    /// a guard, whose pointer has none, and what the library's functions call `self` says nothing. Another member of the object that
    /// has the lock has a name of its own.
    fn name_by_lock(
        &mut self,
        t: usize,
        (address, length): (u64, u64),
        name: Option<String>,
    ) -> Option<String> {
        /// A lock keeps a few words, right behind its own.
        const REACH: u64 = 64;
        let says_something = |name: &str| name_quality(name) >= name_quality("q->filled");
        let is_word = |name: &str| says_something(name) && self.is_word_of_program(t, name);
        if name.as_deref().is_some_and(is_word) {
            return name;
        }
        let behind = |lock: u64| address.checked_sub(lock).filter(|distance| *distance < REACH);
        let held = self.threads[t].held.iter().filter(|held| behind(held.address).is_some());
        let Some(lock) = held.max_by_key(|held| held.address).map(|held| held.acquired) else {
            return name;
        };
        if !self.site(t).file.starts_with("/rustc/") {
            return name;
        }
        let outer = self.outer_name(t, address, Part::Bytes(length));
        let lock = self.out.threads[t].name_of(lock).filter(|lock| says_something(lock));
        outer.or_else(|| lock.map(str::to_owned)).or(name)
    }

    /// The same of another instruction of the function.
    pub fn access_name_at(&mut self, t: usize, at: InstId, place: Place) -> Option<String> {
        let by_path = place.pointer.and_then(|pointer| self.path_name(t, at, pointer));
        by_path.or_else(|| self.known_global_name(place.address, place.length))
    }

    /// As [`Self::pointer_name_at`] without a size, which depends on the instruction alone.
    fn path_name(&mut self, t: usize, at: InstId, pointer: Operand) -> Option<String> {
        let frame = self.threads[t].innermost_code()?;
        let key = (frame.info.module, frame.info.id, at, pointer);
        if let Some(name) = self.path_names.get(&key) {
            return name.clone();
        }
        let name = self.pointer_name_at(t, at, pointer, None);
        self.path_names.insert(key, name.clone());
        name
    }

    /// The scalars that the current instruction moves at once, where it moves several.
    pub(crate) fn access_parts(&mut self, t: usize) -> Option<Arc<[AccessPart]>> {
        let frame = self.threads[t].innermost_code()?;
        let key = (frame.info.module, frame.info.id, frame.next);
        if let Some(parts) = self.access_parts.get(&key) {
            return Some(Arc::clone(parts));
        }
        let parts: Arc<[AccessPart]> =
            name::access_parts(frame.module, frame.info.function, frame.next).into();
        self.access_parts.insert(key, Arc::clone(&parts));
        Some(parts)
    }

    /// The name of what a pointer operand of the current instruction points to.
    pub(crate) fn pointer_name(
        &self,
        t: usize,
        pointer: Operand,
        size: Option<u64>,
    ) -> Option<String> {
        self.pointer_name_at(t, self.threads[t].innermost_code()?.next, pointer, size)
    }

    fn pointer_name_at(
        &self,
        t: usize,
        at: InstId,
        pointer: Operand,
        size: Option<u64>,
    ) -> Option<String> {
        let frame = self.threads[t].innermost_code()?;
        let function = frame.info.function;
        let instruction = function.instructions.get(at.index())?;
        match instruction.kind.as_call() {
            Some(call) => {
                let argument = call.args.iter().position(|operand| *operand == pointer)?;
                name::argument_path(frame.module, function, at, argument, size)
            }
            None => name::access_path(frame.module, function, at),
        }
    }

    /// As [`Self::global_name`]: locks are named at every event.
    fn known_global_name(&mut self, address: u64, size: u64) -> Option<String> {
        // Other places have no such name, and are too many to be remembered.
        if self.image.global_at(address).is_none() {
            return descriptors::name(address)
                .or_else(|| self.learned.initialisations.name(address))
                .or_else(|| self.learned.files.name(address))
                .or_else(|| self.learned.contents.name(address));
        }
        if let Some(name) = self.global_names.get(&(address, size)) {
            return name.clone();
        }
        let name = self.global_name(address, size);
        self.global_names.insert((address, size), name.clone());
        name
    }

    fn global_name(&self, address: u64, size: u64) -> Option<String> {
        if let Some(name) = descriptors::name(address) {
            return Some(name);
        }
        let (module, global, offset) = self.image.global_at(address)?;
        let ir = self.image.module(module);
        name::global_path(ir, global, offset, size).or_else(|| {
            let symbol = &ir.globals.get(global.index())?.name;
            Some(match offset {
                0 => symbol.clone(),
                offset => format!("{symbol}+{offset}"),
            })
        })
    }

    /// The name and display of a cell: of the place itself for a global, else as the first access
    /// to it calls it.
    pub fn cell_name(
        &mut self,
        t: usize,
        address: u64,
        length: u32,
        place: Place,
    ) -> (String, ValueDisplay) {
        let size = u64::from(length);
        let exact = place.address == address && place.length == size;
        let pointer = place.pointer.filter(|_| exact);
        let name = self
            .global_name(address, size)
            .or_else(|| pointer.and_then(|pointer| self.pointer_name(t, pointer, Some(size))));
        let name = self.name_by_lock(t, (address, size), name);
        let name = name.unwrap_or_else(|| self.fallback_name(address));
        let by_type = self.image.global_at(address).and_then(|(module, global, offset)| {
            name::global_display(self.image.module(module), global, offset, size)
        });
        let display = by_type.or_else(|| {
            let frame = pointer.and(self.threads[t].innermost_code())?;
            Some(name::access_display(frame.module, frame.info.function, frame.next))
        });
        (name, display.map_or(ValueDisplay::Signed, value_display))
    }

    fn fallback_name(&self, address: u64) -> String {
        if let Some(index) = self.learned.heap.at_internal(address) {
            let object = &self.learned.heap.objects[index];
            return format!("*{:#x}", object.address + (address - object.base));
        }
        match is_private(address) || address >= HEAP {
            true => format!("*{address:#x}"),
            false => format!("*{:#x}", unstack(address)),
        }
    }

    /// The name of the object of `size` bytes at a recorded address that the current call names.
    pub fn object_name(&mut self, t: usize, address: u64, size: Option<u64>) -> Option<String> {
        if !self.symbolic() {
            return None;
        }
        if let Some(lock) = self.openmp_lock(t) {
            return Some(lock);
        }
        let internal = self.lookup(t, address);
        let global = internal.and_then(|at| self.known_global_name(at, size.unwrap_or(0)));
        let name = global.or_else(|| self.callers_word(t, address, size)).or_else(|| {
            let (_, operand) = self.argument_at(t, address)?;
            self.pointer_name(t, operand, size)
        });
        let name = match name {
            Some(name) if self.is_word_of_program(t, &name) => Some(name),
            name => internal.and_then(|at| self.outer_name(t, at, Part::Object(size))).or(name),
        };
        let call = self.threads[t].external_call().map_or("", |call| call.name);
        name.map(|name| foreign::without_member(call, name))
    }

    fn is_word_of_program(&self, t: usize, name: &str) -> bool {
        let frame = self.threads[t].innermost_code();
        frame.is_none_or(|frame| is_of_program(name, frame))
    }

    /// What an event calls its object: a library's word for it, such as that of a lock's holder,
    /// says less than the object's name.
    pub(crate) fn event_object_name(
        &mut self,
        t: usize,
        address: u64,
        object: ObjectId,
        size: u64,
    ) -> Option<String> {
        let name = self.object_name(t, address, Some(size));
        let known = self.out.objects.get(object.index()).map(|object| &object.name);
        let known = known.filter(|known| !known.starts_with("0x"));
        let better = known.filter(|known| name.as_ref().is_none_or(|name| says_more(known, name)));
        better.cloned().or(name)
    }

    /// The operand of the call in progress whose value is the address, and its place among the arguments.
    fn argument_at(&mut self, t: usize, address: u64) -> Option<(usize, Operand)> {
        let call = self.threads[t].external_call()?;
        let pairs: Vec<(usize, Operand, Scalar)> = call
            .operands
            .iter()
            .zip(&call.arguments)
            .enumerate()
            .filter_map(|(at, (&operand, value))| Some((at, operand, Value::scalar(value)?)))
            .collect();
        pairs.into_iter().find_map(|(position, operand, scalar)| {
            let value = match scalar.as_expr() {
                None => scalar.as_const(),
                Some(id) => self.recorded_value(id),
            };
            (value == Some(u128::from(address))).then_some((position, operand))
        })
    }
}

/// The call that a frame stands at, or goes on behind.
pub(crate) fn calling(function: &Function, next: usize) -> Option<InstId> {
    let call = [next, next.wrapping_sub(1)].into_iter().find(|at| {
        let instruction = function.instructions.get(*at);
        instruction.is_some_and(|instruction| instruction.kind.as_call().is_some())
    });
    call.and_then(|at| u32::try_from(at).ok()).map(InstId)
}

/// Instructions that make room on the stack have no line: there the first one behind counts.
pub(crate) fn place_of<'r>(frame: &CodeFrame<'r>) -> PlaceInCode<'r> {
    let rest = frame.info.function.instructions.get(frame.next.index()..).unwrap_or_default();
    let loc = rest.iter().find_map(|instruction| instruction.loc);
    PlaceInCode { info: frame.info, module: frame.module, loc }
}

pub(crate) fn value_display(kind: DisplayKind) -> ValueDisplay {
    match kind {
        DisplayKind::Signed => ValueDisplay::Signed,
        DisplayKind::Unsigned => ValueDisplay::Unsigned,
        DisplayKind::Pointer => ValueDisplay::Pointer,
        DisplayKind::Char => ValueDisplay::Char,
        DisplayKind::Bool => ValueDisplay::Bool,
        DisplayKind::Float => ValueDisplay::Float,
        DisplayKind::Either(values) => ValueDisplay::Either(values),
    }
}
