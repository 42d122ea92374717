//! Heap objects, and the translation of recorded addresses to internal ones.
//!
//! A recorded address alone does not say which object it means: `malloc` reuses addresses, and
//! threads are walked one after the other rather than as they ran. So every allocation has its own
//! range of *internal* addresses, which memory, shadow state and cells are keyed by:
//!
//! | from | what |
//! | --- | --- |
//! | 0 | globals and memory nobody told us of: the recorded address |
//! | 1 << 48 | stacks: the recorded address plus (thread + 1) << 48 |
//! | [`PRIVATE`] | stack objects whose address was not logged, thread-local variables |
//! | [`HEAP`] | heap objects, one after the other |
//! | [`MAPS`] | mappings, see [`crate::mappings`] |

mod places;

use crate::mappings::{MAPS, Mapped, Mappings};
use places::Places;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;

/// Objects are taken to be no larger: only a damaged log says so.
const LARGEST: u64 = 1 << 32;

/// Allocators give at most a quarter more than asked for, and at least up to this many bytes.
const SPARE: u64 = 64;

/// Internal addresses of memory that only one thread can reach.
pub(crate) const PRIVATE: u64 = 0x6000_0000_0000_0000;
/// Internal addresses of heap objects.
pub(crate) const HEAP: u64 = 0x8000_0000_0000_0000;
/// User-space addresses are below.
pub(crate) const USER_END: u64 = 1 << 47;

/// One allocation. Times are time-stamp-counter readings.
#[derive(Clone, Debug)]
pub(crate) struct HeapObject {
    pub address: u64,
    pub size: u64,
    pub birth: u64,
    /// When it was freed, all of it; `u64::MAX` while it is live.
    pub death: u64,
    /// By which thread, and when.
    pub freed: Option<(usize, u64)>,
    /// Where its internal addresses begin.
    pub base: u64,
    /// So many of its bytes were zeros when it was obtained: then a thread that is walked before the one that
    /// obtained it finds zeros, too.
    pub zeros: u64,
    /// Of a mapping.
    pub mapped: Option<Box<Mapped>>,
}

/// All allocations of the run. They are found during the walk; a later pass starts with those
/// that an earlier one found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap {
    pub objects: Vec<HeapObject>,
    /// Those that are no mappings, by their internal addresses.
    allocated: Vec<usize>,
    pub mappings: Mappings,
    /// As `ordinals`, for mappings.
    pub map_ordinals: FxHashMap<(usize, u64), usize>,
    /// (thread, how many allocations of that thread came before) to object.
    ordinals: FxHashMap<(usize, u64), usize>,
    places: Places,
    next_base: u64,
    /// (thread, how many of that thread came before) to a local variable's object.
    locals: FxHashMap<(usize, u64), usize>,
    local_objects: FxHashSet<usize>,
    /// The object that was asked for last by an internal address.
    recent: Cell<usize>,
    /// The object freed by each `Free`, for the pass after: (thread, ordinal) to object.
    frees: FxHashMap<(usize, u64), usize>,
}

impl Heap {
    /// An allocation; `ordinal` is its number in its thread.
    pub fn allocate(
        &mut self,
        thread: usize,
        ordinal: u64,
        address: u64,
        size: u64,
        tsc: u64,
    ) -> usize {
        if let Some(&index) = self.ordinals.get(&(thread, ordinal)) {
            return index;
        }
        let size = size.min(LARGEST);
        let index = self.new_object(address, size, tsc);
        self.ordinals.insert((thread, ordinal), index);
        self.places.add(index, &self.objects);
        index
    }

    /// A local variable, of which only its threads' creation tells who means it; given are its thread and its
    /// number there, and the last stamp before it.
    pub fn local(
        &mut self,
        (thread, number): (usize, u64),
        address: u64,
        size: u64,
        birth: u64,
    ) -> usize {
        if let Some(&index) = self.locals.get(&(thread, number)) {
            return index;
        }
        let index = self.new_object(address, size.min(LARGEST), birth);
        self.locals.insert((thread, number), index);
        self.local_objects.insert(index);
        index
    }

    /// Was the byte zero when its object was obtained?
    pub fn began_with_zero(&self, internal: u64) -> bool {
        let object = self.at_internal(internal).and_then(|index| self.objects.get(index));
        object.is_some_and(|object| internal.wrapping_sub(object.base) < object.zeros)
    }

    /// Is it a local variable?
    pub fn is_local(&self, index: usize) -> bool {
        self.local_objects.contains(&index)
    }

    /// The end of a local variable in a thread, between these times.
    pub fn end_local(&mut self, index: usize, thread: usize, (earliest, latest): (u64, u64)) {
        let Some(object) = self.objects.get_mut(index) else { return };
        object.death = object.death.min(latest);
        object.freed.get_or_insert((thread, earliest));
    }

    fn new_object(&mut self, address: u64, size: u64, birth: u64) -> usize {
        let index = self.objects.len();
        if self.next_base == 0 {
            self.next_base = HEAP;
        }
        let base = self.next_base;
        // The same alignment as the real address, and a gap so that objects never touch.
        // There may turn out to be more of it than was asked for.
        let room = size.saturating_add(size / 4 + SPARE + 63) & !15;
        self.next_base = self.next_base.saturating_add(room.saturating_add(32));
        let base = base + (address & 15);
        let death = u64::MAX;
        let (freed, mapped) = (None, None);
        let zeros = 0;
        self.objects.push(HeapObject { address, size, birth, death, freed, base, zeros, mapped });
        self.allocated.push(index);
        index
    }

    /// The program was told that the object at `address` has `size` bytes, which may be more than
    /// it asked for; it may then use them all.
    pub fn extend(&mut self, index: usize, size: u64) {
        let Some(object) = self.objects.get_mut(index) else { return };
        let most = object.size.saturating_add(object.size / 4 + SPARE);
        if size <= object.size || size > most {
            return;
        }
        let old = object.size;
        object.size = size;
        self.places.extend(index, old, &self.objects);
    }

    /// A free; `ordinal` is its number in its thread. Gives the object freed.
    pub fn free(&mut self, thread: usize, ordinal: u64, address: u64, tsc: u64) -> Option<usize> {
        let index = match self.frees.get(&(thread, ordinal)) {
            Some(&index) => index,
            None => self.find_allocated(address, tsc, tsc).map(|(index, ..)| index).filter(
                |&index| {
                    let object = &self.objects[index];
                    object.address == address && object.birth <= tsc
                },
            )?,
        };
        self.frees.insert((thread, ordinal), index);
        let object = self.objects.get_mut(index)?;
        object.death = object.death.min(tsc);
        object.freed.get_or_insert((thread, tsc));
        Some(index)
    }

    /// The object that an access at `address` means, when it happened between the two readings:
    /// the youngest that lived then, else the youngest of all. Of a mapping and a heap object it is the
    /// younger one: the object is in an allocator's mapping, or was where the mapping is.
    pub fn find(&self, address: u64, from: u64, to: u64) -> Option<usize> {
        let allocated = self.find_allocated(address, from, to);
        let (allocated, mapped) = match (allocated, self.find_mapped(address, from, to)) {
            (Some(allocated), Some(mapped)) => (allocated, mapped),
            (allocated, mapped) => return allocated.or(mapped).map(|(index, ..)| index),
        };
        let birth = |index: usize| self.objects[index].birth;
        let (older, younger) = match birth(mapped.0) > birth(allocated.0) {
            true => (allocated, mapped),
            false => (mapped, allocated),
        };
        // An object that was freed lies in its allocator's memory still; what is behind a mapping that
        // was given back does not.
        let gone = !younger.2 || (!younger.1 && younger == mapped && older.1);
        Some(if gone { older.0 } else { younger.0 })
    }

    /// The heap object that an access means, whether it lived then, and whether it was there by then.
    fn find_allocated(&self, address: u64, from: u64, to: u64) -> Option<(usize, bool, bool)> {
        let holds = |index: &usize| self.holds(*index, address);
        let mut candidates = self.places.born_by(address, to, &self.objects).filter(holds);
        let first = candidates.next();
        let lives = |&index: &usize| self.objects[index].death >= from;
        let living = first.filter(lives).or_else(|| candidates.find(lives));
        let unborn = || {
            let mut later = self.places.born_after(address, to, &self.objects);
            later.find(holds).map(|index| (index, false, false))
        };
        let known = living.map(|index| (index, true, true));
        known.or(first.map(|index| (index, false, true))).or_else(unborn)
    }

    fn holds(&self, index: usize, address: u64) -> bool {
        let object = &self.objects[index];
        address.wrapping_sub(object.address) < object.size.max(1)
    }

    /// Have several objects had this address?
    pub fn is_reused(&self, address: u64) -> bool {
        let holds = |index: &usize| self.holds(*index, address);
        let allocated = self.places.born_by(address, u64::MAX, &self.objects).filter(holds);
        let allocated = allocated.take(2).count();
        allocated + self.mappings.at(address).len() > 1
    }

    /// The object that an internal address belongs to.
    pub fn at_internal(&self, internal: u64) -> Option<usize> {
        if internal < HEAP {
            return None;
        }
        if internal >= MAPS {
            return self.mappings.at_internal(internal, &self.objects);
        }
        let holds = |index: usize| {
            let object = self.objects.get(index)?;
            (internal.checked_sub(object.base)? < object.size.max(1)).then_some(index)
        };
        if let Some(index) = holds(self.recent.get()) {
            return Some(index);
        }
        let base = |&index: &usize| self.objects[index].base <= internal;
        let index = *self.allocated.get(self.allocated.partition_point(base).checked_sub(1)?)?;
        self.recent.set(index);
        holds(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reused_addresses_are_told_apart_by_time() {
        let mut heap = Heap::default();
        let first = heap.allocate(0, 0, 0x1000, 32, 10);
        heap.free(0, 0, 0x1000, 20);
        let second = heap.allocate(1, 0, 0x1000, 32, 30);
        assert_ne!(first, second);
        assert_eq!(heap.find(0x1008, 12, 18), Some(first));
        assert_eq!(heap.find(0x1008, 35, 40), Some(second));
        assert_eq!(heap.find(0x1020, 35, 40), None);
        let base = heap.objects[second].base;
        assert_eq!(heap.at_internal(base + 31), Some(second));
        assert_eq!(heap.at_internal(base + 32), None);
    }

    #[test]
    fn a_dead_object_inside_a_younger_one_is_not_meant() {
        let mut heap = Heap::default();
        heap.allocate(0, 0, 0x1040, 16, 10);
        heap.free(0, 0, 0x1040, 20);
        let whole = heap.allocate(0, 1, 0x1000, 0x2000, 30);
        assert_eq!(heap.find(0x1048, 5, 40), Some(whole));
        assert_eq!(heap.find(0x2fff, 35, 40), Some(whole));
        assert_eq!(heap.find(0x1048, 12, 15), Some(0));
    }

    #[test]
    fn an_object_may_be_larger_than_asked_for() {
        let mut heap = Heap::default();
        let first = heap.allocate(0, 0, 0x1ff0, 10, 10);
        let second = heap.allocate(0, 1, 0x2010, 10, 20);
        assert_eq!(heap.find(0x1ffa, 12, 18), None);
        heap.extend(first, 24);
        assert_eq!(heap.find(0x1ffa, 12, 18), Some(first));
        assert_eq!(heap.find(0x2004, 12, 18), Some(first));
        let (low, high) = (heap.objects[first].base, heap.objects[second].base);
        assert!(low + 24 < high);
        assert_eq!(heap.at_internal(low + 23), Some(first));
        heap.extend(first, 1 << 20);
        assert_eq!(heap.objects[first].size, 24, "no allocator gives so much more");
    }

    #[test]
    fn a_second_pass_finds_the_same_objects() {
        let mut heap = Heap::default();
        let first = heap.allocate(0, 0, 0x1000, 8, 10);
        heap.free(0, 0, 0x1000, 20);
        assert_eq!(heap.allocate(0, 0, 0x1000, 8, 10), first);
        assert_eq!(heap.free(0, 0, 0x1000, 20), Some(first));
        assert_eq!(heap.objects.len(), 1);
    }
}
