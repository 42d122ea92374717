//! Runtime entries about memory: heap objects and mappings, obtained and given back.

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::foreign;
use crate::memory::MemoryByte;
use crate::report::GapKind;
use crate::sync::file_name;
use model::{EventKind, Interval, ObjectId, ObjectKind};
use trace_format::layout::{MAPPING_GROWN, MAPPING_MOVED, MAPPING_PAGE, MAPPING_ZERO};

/// The most bytes of a `calloc` that are known to be zero.
const LARGEST_ZEROED: u64 = 1 << 28;
/// The most bytes of a mapping that move with it; what a longer one held is not known where it goes.
const LARGEST_MOVED: u64 = 1 << 24;

impl Engine<'_> {
    pub fn allocate(&mut self, t: usize, address: u64, size: u64, tsc: u64) {
        // The object was obtained before the stamp.
        self.threads[t].call_time =
            Some(Interval { earliest: self.threads[t].last_stamp, latest: tsc });
        self.stamp(t, tsc);
        let ordinal = self.threads[t].allocations;
        self.threads[t].allocations += 1;
        let index = self.learned.heap.allocate(t, ordinal, address, size, tsc);
        let object = &mut self.learned.heap.objects[index];
        let (base, size) = (object.base, object.size.min(LARGEST_ZEROED));
        if let Some(call) = self.threads[t].external_call() {
            call.allocated = Some(index);
            if call.name == "calloc" || foreign::gives_zeros(call.name) {
                object.zeros = size;
                self.memory.fill(base, size, MemoryByte::Const(0));
            }
        }
        if let Some(object) = self.heap_object(t, index) {
            self.event(t, EventKind::Allocate { object }, None);
        }
    }

    pub fn free(&mut self, t: usize, address: u64, tsc: u64) {
        self.stamp(t, tsc);
        let ordinal = self.threads[t].frees;
        self.threads[t].frees += 1;
        let Some(index) = self.learned.heap.free(t, ordinal, address, tsc) else {
            self.note_unknown_free(address);
            return;
        };
        let base = self.learned.heap.objects[index].base;
        if let Some(text) = self.threads[t].external_call().and_then(|call| call.text.as_mut()) {
            text.note_freed(address, base);
        }
        let object = self.heap_object(t, index);
        let event = object.map(|object| {
            let name = self.object_name(t, address, None);
            let event = self.event(t, EventKind::Free { object }, name);
            self.note_contained_object(t, event, index);
            event
        });
        self.note_free(t, index, event);
    }

    /// `contents` is what the log says of what is there; the times are those around the call.
    pub fn map(
        &mut self,
        t: usize,
        (address, size): (u64, u64),
        contents: u64,
        (before, tsc): (u64, u64),
    ) {
        // What the thread did until then was in what lay there before.
        self.stamp(t, before);
        self.threads[t].call_time = Some(Interval { earliest: before, latest: tsc });
        self.stamp(t, tsc);
        let ordinal = self.threads[t].mappings;
        self.threads[t].mappings += 1;
        let (what, source) = (contents % MAPPING_PAGE, contents - contents % MAPPING_PAGE);
        let goes_on = matches!(what, MAPPING_MOVED | MAPPING_GROWN);
        // As it was before the call gave it back.
        let heap = &self.learned.heap;
        let old = goes_on.then(|| heap.find_mapped(source, before, before)).flatten();
        let old = old.map(|(index, ..)| &heap.objects[index]);
        let held =
            old.map(|old| (old.base + (source - old.address), old.address + old.size - source));
        let was_zero = old.and_then(|old| old.mapped.as_ref()).is_some_and(|mapped| mapped.zero);
        let zero = what == MAPPING_ZERO || was_zero;
        let Some(index) = self.learned.heap.map((t, ordinal), (address, size), zero, tsc) else {
            return;
        };
        let base = self.learned.heap.objects[index].base;
        if zero {
            self.memory.zero(base, size);
        }
        if let Some(object) = self.heap_object(t, index) {
            self.event(t, EventKind::Allocate { object }, None);
        }
        let Some((from, had)) = held.filter(|_| what == MAPPING_MOVED) else { return };
        let length = had.min(size);
        if length > LARGEST_MOVED {
            self.gap(t, GapKind::External("mremap".to_owned()), format!("{length} bytes"));
            return;
        }
        let bytes = self.read(t, Place::new(from, length, None), Grain::Cell);
        self.write(t, Place::new(base, length, None), &bytes, Grain::Cell);
    }

    pub fn unmap(&mut self, t: usize, address: u64, size: u64, tsc: u64) {
        self.stamp(t, tsc);
        let mut ended = self.learned.heap.unmap(address, size, tsc);
        let faulting = self.faulting_mapping(t, (address, size), tsc);
        ended.extend(faulting.filter(|index| !ended.contains(index)));
        for index in ended {
            let event = self.heap_object(t, index).map(|object| {
                let name = self.object_name(t, address, None);
                self.event(t, EventKind::Free { object }, name)
            });
            self.note_free(t, index, event);
        }
    }

    /// The model's object for a local variable with shared cells.
    pub(crate) fn local_object(&mut self, index: usize, name: Option<&str>) -> Option<ObjectId> {
        // A lock has no cells.
        let matters = self.shared_heap.contains(&index)
            || self.learned.locals.are_only_ends()
            || self.lifetime.freed.suspects.contains(&index);
        if !self.symbolic() || !matters {
            return None;
        }
        if let Some(&object) = self.heap_objects.get(&index) {
            return Some(object);
        }
        let name = name.unwrap_or("a local variable").to_owned();
        let local = &self.learned.heap.objects[index];
        let addresses = local.address..local.address.saturating_add(local.size.max(1));
        let object = self.out.memory(ObjectKind::Local, name, addresses);
        self.heap_objects.insert(index, object);
        Some(object)
    }

    /// The model's object for a heap object with shared cells.
    fn heap_object(&mut self, t: usize, index: usize) -> Option<ObjectId> {
        if !self.symbolic() || !self.shared_heap.contains(&index) {
            return None;
        }
        if let Some(&object) = self.heap_objects.get(&index) {
            return Some(object);
        }
        let heap_object = &self.learned.heap.objects[index];
        let (address, size) = (heap_object.address, heap_object.size);
        let what = if heap_object.mapped.is_some() { "mapping" } else { "heap object" };
        // A library's line says nothing of the program.
        let stack = self.stack(t);
        let own = stack.iter().find(|site| site.line != 0 && !site.is_in_library());
        let site = own.or(stack.first()).cloned().unwrap_or_default();
        let name = match site.line {
            0 => format!("{what} at {address:#x}"),
            line => format!("{what} of {}:{line}", file_name(&site.file)),
        };
        let addresses = address..address.saturating_add(size);
        let object = self.out.memory(ObjectKind::Heap, name, addresses);
        self.heap_objects.insert(index, object);
        Some(object)
    }
}
