//! Local variables that one thread gave another one and that ended before that one used them.
//!
//! The stack is one piece of memory per thread, so that what a function leaves there is overwritten by the
//! next one, and by code that is not instrumented. Where the failing thread used another one's stack, the run is
//! walked again with the variables that lay there as objects of their own, from the function's entry to its
//! end, which then is an event and frees them (`failure::freed` says when that is the failure). Which of the
//! variables that ever lay at an address is meant tells the store of its address that the thread read
//! ([`crate::pointed`]), or else the creation of the thread: those that its creator had then.
//!
//! The event of a variable's end stands where its thread next calls code that is not instrumented, or before
//! its next event that others can wait for: what the function left on the stack is there until then, mostly,
//! and at a return no thread can be stopped.

use crate::engine::Engine;
use crate::heap::{PRIVATE, USER_END};
use crate::memory::MemoryByte;
use crate::pointed::Stores;
use crate::value::{Scalar, Value};
use ir::types::{Call, CastOp, InstId, InstKind, Operand};
use model::{EventKind, ObjectId, Stack};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most addresses that are looked for.
const MOST: usize = 4096;

/// Addresses in other threads' stacks, with these threads.
pub(crate) type Used = BTreeSet<(usize, u64)>;

/// What earlier walks found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locals {
    /// What the failing thread used.
    pub used: Arc<Used>,
    /// Per thread: the variables that it can have been given when it was created, innermost last, as objects
    /// of the heap.
    given: Vec<Vec<usize>>,
    /// No others are looked at, where that is known.
    chosen: Option<Arc<BTreeSet<usize>>>,
    /// They lie in their thread's stack as in the run, and only their ends are known.
    only_ends: bool,
    /// Where their addresses were stored.
    pub stores: Stores,
}

impl Locals {
    /// What a thread can have been given when it was created.
    pub fn given_to(&self, t: usize) -> impl Iterator<Item = usize> {
        self.given.get(t).into_iter().flatten().copied()
    }

    /// Only these are to be looked at. Other threads that used their own too late go on with what lies there
    /// by then.
    pub fn choose(&mut self, objects: &BTreeSet<usize>) {
        self.chosen = Some(Arc::new(objects.clone()));
        self.stores = Stores::default();
        self.given.clear();
    }

    /// The same, of variables whose ends alone are of interest: whoever writes there later writes to what lies there by then.
    pub fn choose_ends(&mut self, objects: &BTreeSet<usize>) {
        self.choose(objects);
        self.only_ends = true;
    }

    /// Are ends of variables events, wherever the variables lie?
    pub fn are_only_ends(&self) -> bool {
        self.only_ends
    }
}

/// A local variable of a function that has not returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local {
    /// The frame's.
    serial: u64,
    /// Of the heap.
    object: usize,
    instruction: InstId,
    /// Its scope has not been left.
    lives: bool,
    /// It is looked at: others are only kept for the next time that their scope is entered.
    chosen: bool,
}

/// A local variable of a function that has returned, and whose event is to come.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Of the heap.
    object: usize,
    model: ObjectId,
    /// Where the function returned.
    stack: Stack,
    name: Option<String>,
}

/// The thread in whose stack an internal address lies.
pub(crate) fn owner_of_stack(internal: u64) -> Option<usize> {
    let is_in_stack = (USER_END << 1..PRIVATE).contains(&internal);
    is_in_stack.then(|| (internal >> 48) as usize - 1)
}

impl Engine<'_> {
    /// A thread uses an address: is it the failing one, or is the address in that one's stack?
    pub(crate) fn note_use_of_local(
        &mut self,
        t: usize,
        pointer: Option<Scalar>,
        (address, internal): (u64, Option<u64>),
    ) {
        let Some(internal) = internal else { return };
        let Some(owner) = owner_of_stack(internal) else { return };
        if owner == t || !self.symbolic() {
            return;
        }
        if self.failing == Some(owner) {
            self.note_outlived(t, pointer, (owner, address));
        } else if self.failing == Some(t)
            && self.lifetime.locals.len() < MOST
            && self.may_be_of_freed_memory(t, true)
        {
            self.lifetime.locals.insert((owner, address));
            let used = self.pointed(t, pointer, (owner, address));
            self.lifetime.pointed.uses.extend(used);
        }
    }

    /// A local variable begins.
    pub(crate) fn begin_local(&mut self, t: usize, id: InstId, address: u64, size: u64) {
        self.note_standing(t, (address, size));
        let end = address.saturating_add(size.max(1));
        if self.learned.locals.used.range((t, address)..(t, end)).next().is_none() {
            return;
        }
        let ordinal = self.threads[t].locals_made;
        self.threads[t].locals_made += 1;
        let birth = self.threads[t].last_stamp;
        let object = self.learned.heap.local((t, ordinal), address, size, birth);
        let chosen = &self.learned.locals.chosen;
        let chosen = chosen.as_ref().is_none_or(|chosen| chosen.contains(&object));
        let Some(serial) = self.threads[t].code().map(|frame| frame.serial) else { return };
        self.threads[t].locals.push(Local { serial, object, instruction: id, lives: true, chosen });
    }

    /// The compiler says where the scope of a variable begins and ends.
    pub(crate) fn note_scope(
        &mut self,
        t: usize,
        name: &str,
        (call, arguments): (&Call, &[Value]),
    ) {
        let begins = name.starts_with("lifetime.start");
        if begins {
            self.begin_lifetime(t, arguments);
        } else {
            self.note_scope_left(t, arguments.last());
        }
        if self.learned.locals.used.is_empty() {
            return;
        }
        let variable = call.args.last().and_then(|pointer| self.variable_behind(t, *pointer));
        let Some(at) = variable.and_then(|id| self.own_local(t, id)) else { return };
        if begins {
            self.enter_scope(t, at);
        } else {
            self.leave_scope(t, at);
        }
    }

    /// The scope of a variable of the top frame is entered: behind its end it is another one.
    fn enter_scope(&mut self, t: usize, at: usize) {
        let local = self.threads[t].locals.remove(at);
        if local.lives {
            // Of two variables that share a place it is the one that is meant from now on.
            self.threads[t].locals.push(local);
            return;
        }
        let (address, size) = {
            let object = &self.learned.heap.objects[local.object];
            (object.address, object.size)
        };
        self.begin_local(t, local.instruction, address, size);
        if let Some(internal) = self.resolve(t, address) {
            self.begin_own(internal, size);
            self.memory.fill(internal, size, MemoryByte::Fresh);
        }
    }

    /// The scope of a variable of the top frame is left.
    fn leave_scope(&mut self, t: usize, at: usize) {
        let Some(local) = self.threads[t].locals.get_mut(at).filter(|local| local.lives) else {
            return;
        };
        local.lives = false;
        let local = *local;
        self.end_local(t, local);
    }

    /// Which of its thread's variables the top frame's one is that an instruction made.
    fn own_local(&self, t: usize, id: InstId) -> Option<usize> {
        let serial = self.threads[t].code()?.serial;
        let is_meant = |local: &Local| local.serial == serial && local.instruction == id;
        self.threads[t].locals.iter().rposition(is_meant)
    }

    /// The instruction that made the variable of the top frame that a pointer leads to, whatever its type.
    fn variable_behind(&self, t: usize, pointer: Operand) -> Option<InstId> {
        let instructions = &self.threads[t].code()?.info.function.instructions;
        let mut pointer = pointer;
        loop {
            let Operand::Inst(id) = pointer else { return None };
            match instructions.get(id.index())?.kind {
                InstKind::Cast(CastOp::BitCast | CastOp::AddrSpaceCast, inner) => pointer = inner,
                _ => return Some(id),
            }
        }
    }

    /// The top frame is about to be left, and with it its variables.
    pub(crate) fn end_locals(&mut self, t: usize) {
        self.note_returned(t);
        let Some(serial) = self.threads[t].code().map(|frame| frame.serial) else { return };
        while let Some(local) = self.threads[t].locals.pop_if(|local| local.serial == serial) {
            if local.lives {
                self.end_local(t, local);
            }
        }
    }

    fn end_local(&mut self, t: usize, local: Local) {
        if !local.chosen {
            return;
        }
        let (earliest, latest) = (self.threads[t].last_stamp, self.latest(t));
        self.learned.heap.end_local(local.object, t, (earliest, latest));
        let name = self.local_name(t, local.instruction);
        match self.local_object(local.object, name.as_deref()) {
            Some(model) => {
                let stack = self.stack(t);
                let ended = Ended { object: local.object, model, stack, name };
                self.threads[t].ended_locals.push(ended);
            }
            None => self.note_free(t, local.object, None),
        }
    }

    /// The variables that have ended are overwritten from now on.
    pub(crate) fn overwrite_locals(&mut self, t: usize) {
        for ended in std::mem::take(&mut self.threads[t].ended_locals) {
            let kind = EventKind::Free { object: ended.model };
            let event = self.event_at(t, kind, ended.stack, ended.name);
            self.note_free(t, ended.object, Some(event));
        }
    }

    /// A thread is created.
    pub(crate) fn give_locals(&mut self, t: usize, child: usize) {
        if self.learned.locals.used.is_empty() {
            return;
        }
        let threads = self.threads.len();
        let given = &mut self.learned.locals.given;
        given.resize(threads, Vec::new());
        let mut all = given[t].clone();
        let own = self.threads[t].locals.iter().filter(|local| local.lives && local.chosen);
        all.extend(own.map(|local| local.object));
        given[child] = all;
    }

    /// The internal address of what the thread itself has at an address, or was given there.
    pub(crate) fn in_local(&self, t: usize, address: u64, own: bool) -> Option<u64> {
        if self.learned.locals.used.is_empty() || self.learned.locals.only_ends {
            return None;
        }
        let at = |object: usize| {
            let object = &self.learned.heap.objects[object];
            let offset =
                address.checked_sub(object.address).filter(|at| *at < object.size.max(1))?;
            Some(object.base + offset)
        };
        match own {
            true => {
                let own = self.threads[t].locals.iter().rev();
                let own = own.filter(|local| local.lives && local.chosen);
                own.map(|local| local.object).find_map(at)
            }
            false => {
                let given = self.learned.locals.given.get(t)?;
                given.iter().rev().find_map(|object| at(*object))
            }
        }
    }

    fn local_name(&self, t: usize, id: InstId) -> Option<String> {
        let function = self.threads[t].code()?.info.function;
        let mut variables = function.variables.iter();
        let own = variables.find(|local| local.address && local.value == Operand::Inst(id))?;
        Some(own.name.clone())
    }
}
