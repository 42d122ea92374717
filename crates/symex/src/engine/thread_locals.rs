//! Thread-local variables: every thread has its own.

use super::Engine;
use crate::memory::MemoryByte;
use crate::recording::Recording;
use ir::types::Global;
use rustc_hash::FxHashMap;

impl<'r> Engine<'r> {
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
