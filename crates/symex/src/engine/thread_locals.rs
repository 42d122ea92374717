//! Thread-local variables: every thread has its own.

use super::Engine;
use crate::memory::MemoryByte;
use crate::recording::Recording;
use crate::value::Value;
use ir::types::Global;
use rustc_hash::FxHashMap;

/// Where a thread-local variable really lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    thread: usize,
    /// The real address.
    address: u64,
    size: u64,
    /// The address in the walk.
    internal: u64,
}

impl<'r> Engine<'r> {
    /// What a thread-local variable's real address is in the walk, if it is known to be one: the thread's own, or
    /// one of a thread that still runs. A later thread may have its variables where an earlier one had them.
    pub fn thread_local_at(&self, t: usize, address: u64) -> Option<u64> {
        let known = self.learned.thread_locals.iter();
        let there = known.filter(|found| address.wrapping_sub(found.address) < found.size);
        let fits = |found: &&Found| found.thread == t || !self.has_ended(found.thread);
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
        self.learned.thread_locals.push(Found { thread: t, address, size, internal });
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
                let address = self.threads[t].thread_local(global.size);
                self.threads[t].thread_locals.insert((m, g), address);
                if !global.internal {
                    by_name.entry(&global.name).or_insert(address);
                }
                self.initialise(address, m, global);
            }
            for (m, g, global) in thread_local_globals(self.recording) {
                if global.init.is_none() {
                    let address = match by_name.get(global.name.as_str()) {
                        Some(&address) => address,
                        None => self.threads[t].thread_local(global.size),
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

fn thread_local_globals(recording: &Recording) -> impl Iterator<Item = (usize, u32, &Global)> + '_ {
    recording.modules.iter().enumerate().flat_map(|(m, module)| {
        let globals = module.ir.globals.iter().enumerate();
        globals
            .filter(|(_, global)| global.thread_local)
            .map(move |(g, global)| (m, g as u32, global))
    })
}
