//! Thread-local variables: every thread has its own.
//!
//! The log has no real addresses of them, so they have made-up ones, at which nobody else comes by. Where one is
//! left in memory (the node of a lock's queue, the word that a thread sleeps on) and the log says that another
//! thread read a real address from there, that is what it is: from the next survey on the variable has its real
//! address, and is memory that threads share. Where that could be several variables, nothing is taken from it.

use super::Engine;
use crate::heap::USER_END;
use crate::memory::MemoryByte;
use crate::recording::Recording;
use crate::thread::{CodeFrame, Thread, owner_of_private, within_private};
use crate::value::Value;
use ir::types::{CastOp, ConstId, ConstantKind, Global, InstKind, Instruction, Operand};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A thread's variables lie no further below what libraries know it by, its thread pointer.
const BELOW: u64 = 1 << 20;

/// Where a thread-local variable really lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    thread: usize,
    /// The real address.
    address: u64,
    size: u64,
    /// The address in the walk.
    internal: u64,
    /// Another thread got its address.
    published: bool,
}

/// What a survey saw of addresses in memory.
#[derive(Default)]
pub(crate) struct Addresses {
    /// By where they were left: made-up addresses of thread-local variables.
    left: BTreeMap<u64, BTreeSet<u64>>,
    /// By where they were read: real addresses that are not what the walk had there.
    read: BTreeMap<u64, BTreeSet<u64>>,
    /// Made-up addresses at which a thread came by that has another variable of the name.
    reached: BTreeSet<u64>,
}

impl<'r> Engine<'r> {
    /// What a thread-local variable's real address is in the walk, if it is known to be one: the thread's own, one
    /// that others know, or one of a thread that still runs. A later thread may have its variables where an earlier
    /// one had them; only one of those is known to others.
    pub fn thread_local_at(&self, t: usize, address: u64) -> Option<u64> {
        let known = self.learned.thread_locals.iter();
        let there = known.filter(|found| address.wrapping_sub(found.address) < found.size);
        let fits =
            |found: &&Found| found.published || found.thread == t || !self.has_ended(found.thread);
        let found = there.filter(fits).min_by_key(|found| found.thread != t)?;
        Some(found.internal + (address - found.address))
    }

    /// No real address of a thread-local variable is recorded. Where a call of uninstrumented code is the first
    /// to write anything, to memory that nobody knows, and one argument of it is such a variable, this is it.
    pub fn learn_thread_local(&mut self, t: usize, address: u64, length: u64) {
        let known = self.learned.thread_locals.iter();
        let mut there = known.filter(|found| address.wrapping_sub(found.address) < found.size);
        let (own, others) = (there.clone().any(|found| found.thread == t), there.next().is_some());
        let unknown = || self.lookup(t, address) == Some(address);
        if own || !(others || unknown()) || self.image.global_at(address).is_some() {
            return;
        }
        let known = &self.threads[t].thread_locals;
        if known.is_empty() {
            return;
        }
        let sizes = thread_local_globals(self.recording).filter_map(|(m, g, global)| {
            known.get(&(m, g)).map(|&internal| (internal, global.size))
        });
        let sizes: Vec<(u64, u64)> = sizes.collect();
        let Some(call) = self.threads[t].external_call() else { return };
        if call.written.is_some() {
            return;
        }
        let scalars = call.arguments.iter().filter_map(Value::scalar);
        let pointers = scalars.filter_map(|scalar| u64::try_from(scalar.as_const()?).ok());
        let mut within = pointers.filter_map(|pointer| {
            let inside = |&&(internal, size): &&(u64, u64)| pointer.wrapping_sub(internal) < size;
            let &(internal, size) = sizes.iter().find(inside)?;
            Some((pointer, internal, size))
        });
        let (Some((pointer, internal, size)), None) = (within.next(), within.next()) else {
            return;
        };
        let offset = pointer - internal;
        if offset.saturating_add(length) > size || offset > address {
            return;
        }
        let address = address - offset;
        self.learned.thread_locals.push(Found {
            thread: t,
            address,
            size,
            internal,
            published: false,
        });
    }

    /// Notes that what is written to an address is the made-up one of a thread-local variable, if it is.
    pub fn note_left(&mut self, address: u64, bytes: &[MemoryByte]) {
        if self.symbolic() {
            return;
        }
        // Structures that have pointers in them are copied as a whole.
        for (at, word) in (address..).step_by(8).zip(bytes.chunks_exact(8)) {
            let value = word.iter().rev().try_fold(0u64, |value, byte| match byte {
                MemoryByte::Const(byte) => Some((value << 8) | u64::from(*byte)),
                _ => None,
            });
            let Some(value) = value.filter(|value| super::is_private(*value)) else { continue };
            if self.thread_local_of(value).is_some() {
                self.addresses.left.entry(at).or_default().insert(value);
            }
        }
    }

    /// Notes that a thread comes to another one's thread-local variable, by the address that the walk itself handed on: where
    /// a pointer comes from memory that is copied as a whole, the log has none that was read.
    pub fn note_reached(&mut self, t: usize, address: u64) {
        if self.symbolic() || !super::is_private(address) || owner_of_private(address) == Some(t) {
            return;
        }
        if self.thread_local_of(address).is_some() {
            self.addresses.reached.insert(address);
        }
    }

    /// Notes that a load gave something else than what was computed, which may be the address of a variable that
    /// another thread has.
    pub(super) fn note_read(&mut self, t: usize, inst: &Instruction, logged: &Value) {
        let (InstKind::Load { address, .. } | InstKind::AtomicRmw { address, .. }) = inst.kind
        else {
            return;
        };
        if self.symbolic() || self.threads[t].thread_locals.is_empty() {
            return;
        }
        let from = self.scalar(t, address).and_then(|from| u64::try_from(from.as_const()?).ok());
        if let Some(from) = from.and_then(|from| self.lookup(t, from)) {
            self.note_read_at(t, from, logged);
        }
    }

    /// The same of memory at an address in the walk, of which only the log said what was there.
    pub fn note_read_at(&mut self, t: usize, from: u64, logged: &Value) {
        let Some(word) = logged.scalar().filter(|word| word.width == 64) else { return };
        let word = word.as_const().and_then(|word| u64::try_from(word).ok());
        let Some(word) = word.filter(|word| (1 << 16..USER_END).contains(word)) else { return };
        if !self.symbolic() && !self.threads[t].thread_locals.is_empty() {
            self.addresses.read.entry(from).or_default().insert(word);
        }
    }

    /// Behind a survey: which thread-local variables others know, and where they really are. Says whether there are
    /// new ones.
    pub(crate) fn publish_thread_locals(&mut self) -> bool {
        let Addresses { left, read, reached } = std::mem::take(&mut self.addresses);
        let mut any = false;
        for (from, left) in &left {
            let Some(read) = read.get(from) else { continue };
            let may_be = |computed: u64, logged: u64| {
                let (thread, internal, size) = self.thread_local_of(computed)?;
                let address = logged.checked_sub(computed - internal)?;
                self.may_lie_at(thread, address, size).then_some((computed, logged))
            };
            let pairs = left.iter().flat_map(|left| read.iter().map(|read| (*left, *read)));
            let pairs: Vec<(u64, u64)> = pairs.filter_map(|(l, r)| may_be(l, r)).collect();
            let alone = |pair: &&(u64, u64)| {
                pairs.iter().filter(|other| other.0 == pair.0 || other.1 == pair.1).count() == 1
            };
            let certain: Vec<(u64, u64)> = pairs.iter().filter(alone).copied().collect();
            for (computed, logged) in certain {
                any |= self.publish_thread_local(computed, logged);
            }
        }
        // A variable is equally far from the thread pointer in all threads.
        for computed in left.into_values().flatten() {
            let Some(address) = self.as_in_another_thread(computed) else { continue };
            any |= self.publish_thread_local(computed, address);
        }
        for computed in reached {
            any |= self.publish_reached(computed);
        }
        any
    }

    /// Makes a variable that another thread came to one that threads share, at its real address if that is known, else where
    /// the walk has it. Says whether that is news.
    fn publish_reached(&mut self, computed: u64) -> bool {
        let Some((thread, internal, size)) = self.thread_local_of(computed) else { return false };
        let known = &mut self.learned.thread_locals;
        match known.iter_mut().find(|found| found.thread == thread && found.internal == internal) {
            Some(found) => found.size > 0 && !std::mem::replace(&mut found.published, true),
            None => {
                let address = internal;
                known.push(Found { thread, address, size, internal, published: true });
                true
            }
        }
    }

    /// Where an address of a thread-local variable really is, by where another thread has that variable.
    fn as_in_another_thread(&self, computed: u64) -> Option<u64> {
        let (thread, internal, _) = self.thread_local_of(computed)?;
        let pointers = &self.learned.thread_pointers;
        let pointer = pointers.get(&thread)?;
        let mut known = self.learned.thread_locals.iter();
        let distance = known.find_map(|found| {
            let same = within_private(found.internal) == within_private(internal);
            let other = pointers.get(&found.thread).filter(|_| same && found.published)?;
            other.checked_sub(found.address)
        })?;
        Some(pointer.checked_sub(distance)? + (computed - internal))
    }

    /// The thread-local variable that a made-up address lies in: its thread, its made-up address, and its size.
    fn thread_local_of(&self, computed: u64) -> Option<(usize, u64, u64)> {
        let owner = owner_of_private(computed)?;
        let thread = self.threads.get(owner)?;
        thread_local_globals(self.recording).find_map(|(m, g, global)| {
            let &internal = thread.thread_locals.get(&(m, g))?;
            let inside = computed.checked_sub(internal).is_some_and(|at| at < global.size);
            inside.then_some((owner, internal, global.size))
        })
    }

    /// Says whether that is news.
    fn publish_thread_local(&mut self, computed: u64, logged: u64) -> bool {
        let Some((thread, internal, size)) = self.thread_local_of(computed) else { return false };
        let Some(address) = logged.checked_sub(computed - internal) else { return false };
        if !self.may_lie_at(thread, address, size) {
            return false;
        }
        let known = &mut self.learned.thread_locals;
        let is_it = |found: &&mut Found| found.thread == thread && found.internal == internal;
        match known.iter_mut().find(is_it) {
            Some(found) if found.address == address && found.published => return false,
            Some(found) if found.address == address => found.published = true,
            Some(found) if super::is_private(found.address) => found.address = address,
            // It cannot lie at two places: what was read from memory there was something else.
            Some(found) => (found.size, found.published) = (0, false),
            None => known.push(Found { thread, address, size, internal, published: true }),
        }
        true
    }

    /// Can the thread's variables lie there? Nothing else may be there; those of a created thread lie below its
    /// thread pointer, which its `pthread_t` is.
    fn may_lie_at(&self, thread: usize, address: u64, size: u64) -> bool {
        let mut pointers = self.learned.thread_pointers.iter();
        let fits = pointers.all(|(&t, &pointer)| {
            (pointer.saturating_sub(BELOW)..pointer).contains(&address) == (t == thread)
        });
        let taken = self.learned.thread_locals.iter().any(|found| {
            found.thread != thread && address.wrapping_sub(found.address) < found.size
        });
        let (from, to) = self.interval(thread);
        let mut all = self.learned.stacks.iter().flatten();
        let in_stack = all.any(|&(low, high)| (low..high).contains(&address));
        fits && !taken
            && !in_stack
            && address.saturating_add(size) <= USER_END
            && self.image.global_at(address).is_none()
            && self.learned.heap.find(address, from, to).is_none()
    }

    /// Is it memory of a thread's own, whose address nobody else got?
    pub fn is_unpublished(&self, internal: u64) -> bool {
        let inside = |found: &Found| internal.wrapping_sub(found.internal) < found.size;
        super::is_private(internal)
            && !self.learned.thread_locals.iter().any(|found| found.published && inside(found))
    }

    /// What a thread's instructions call its thread-local variable: the real address where others have it, too.
    fn known_as(&self, t: usize, internal: u64) -> u64 {
        let mut known = self.learned.thread_locals.iter();
        let published =
            |found: &&Found| found.published && found.thread == t && found.internal == internal;
        known.find(published).map_or(internal, |found| found.address)
    }

    /// Gives every thread its own copy of every thread-local variable. Declarations share the
    /// definition of their name.
    pub(super) fn make_thread_locals(&mut self) {
        for t in 0..self.threads.len() {
            let mut by_name: FxHashMap<&'r str, u64> = FxHashMap::default();
            for (m, g, global) in thread_local_globals(self.recording) {
                if global.init.is_none() {
                    continue;
                }
                let internal = self.threads[t].thread_local(global.size);
                let address = self.known_as(t, internal);
                self.threads[t].thread_locals.insert((m, g), address);
                if !global.internal {
                    by_name.entry(&global.name).or_insert(address);
                }
                self.initialise(internal, m, global);
            }
            for (m, g, global) in thread_local_globals(self.recording) {
                if global.init.is_none() {
                    let address = match by_name.get(global.name.as_str()) {
                        Some(&address) => address,
                        None => {
                            let internal = self.threads[t].thread_local(global.size);
                            self.known_as(t, internal)
                        }
                    };
                    self.threads[t].thread_locals.insert((m, g), address);
                }
            }
        }
    }

    fn initialise(&mut self, address: u64, module: usize, global: &Global) {
        self.memory.fill(address, global.size, MemoryByte::Const(0));
        let Some(init) = global.init else { return };
        let Some(bytes) = self.image.render_constant(module, init, global.size) else { return };
        for (i, byte) in bytes.into_iter().enumerate() {
            let byte = byte.map_or(MemoryByte::Unknown, MemoryByte::Const);
            self.memory.set(address + i as u64, byte);
        }
    }
}

/// The address of a thread's thread-local variable, or of a part of it, that a constant names: it is another one in
/// every thread. As a number, too, as which atomic stores have it.
pub(super) fn named(thread: &Thread<'_>, frame: &CodeFrame<'_>, constant: ConstId) -> Option<u64> {
    if thread.thread_locals.is_empty() {
        return None;
    }
    let constants = &frame.module.constants;
    let mut constant = constants.get(constant.index())?;
    if let ConstantKind::Expression(kind) = &constant.kind
        && let InstKind::Cast(CastOp::PtrToInt, Operand::Const(pointer)) = **kind
        && frame.module.scalar_bits(constant.ty) == Some(64)
    {
        constant = constants.get(pointer.index())?;
    }
    let ConstantKind::Global(global, offset) = constant.kind else { return None };
    let address = thread.thread_locals.get(&(frame.info.module, global.0))?;
    Some(address.wrapping_add_signed(offset))
}

fn thread_local_globals(recording: &Recording) -> impl Iterator<Item = (usize, u32, &Global)> + '_ {
    recording.modules.iter().enumerate().flat_map(|(m, module)| {
        let globals = module.ir.globals.iter().enumerate();
        globals
            .filter(|(_, global)| global.thread_local)
            .map(move |(g, global)| (m, g as u32, global))
    })
}
