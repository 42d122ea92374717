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

use std::collections::{BTreeMap, HashMap};

/// Internal addresses of memory that only one thread can reach.
pub(crate) const PRIVATE: u64 = 0x6000_0000_0000_0000;
/// Internal addresses of heap objects.
pub(crate) const HEAP: u64 = 0x8000_0000_0000_0000;
/// User-space addresses are below.
pub(crate) const USER_END: u64 = 1 << 47;

/// One allocation. Times are time-stamp-counter readings.
#[derive(Clone, Debug)]
pub(crate) struct HeapObject {
    /// The walked thread that allocated it.
    pub thread: usize,
    pub address: u64,
    pub size: u64,
    pub birth: u64,
    /// When it was freed; `u64::MAX` while it is live.
    pub death: u64,
    /// Freed in the walk so far.
    pub freed: bool,
    /// Allocated in the walk so far.
    pub born: bool,
    /// Where its internal addresses begin.
    pub base: u64,
}

/// All allocations of the run. They are found during the walk; a later pass starts with those
/// that an earlier one found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap {
    pub objects: Vec<HeapObject>,
    /// (thread, how many allocations of that thread came before) to object.
    ordinals: HashMap<(usize, u64), usize>,
    /// Start address to the objects that ever were there.
    starts: BTreeMap<u64, Vec<usize>>,
    largest: u64,
    next_base: u64,
    /// The object freed by each `Free`, for the pass after: (thread, ordinal) to object.
    frees: HashMap<(usize, u64), usize>,
}

impl Heap {
    /// Forgets what the walk did, keeps the objects.
    pub fn rewind(&mut self) {
        for object in &mut self.objects {
            object.freed = false;
            object.born = false;
        }
    }

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
            self.objects[index].born = true;
            return index;
        }
        let index = self.objects.len();
        if self.next_base == 0 {
            self.next_base = HEAP;
        }
        let base = self.next_base;
        // The same alignment as the real address, and a gap so that objects never touch.
        let room = size.saturating_add(63) & !15;
        self.next_base = self.next_base.saturating_add(room.saturating_add(32));
        let base = base + (address & 15);
        self.objects.push(HeapObject {
            thread,
            address,
            size,
            birth: tsc,
            death: u64::MAX,
            freed: false,
            born: true,
            base,
        });
        self.ordinals.insert((thread, ordinal), index);
        self.starts.entry(address).or_default().push(index);
        self.largest = self.largest.max(size);
        index
    }

    /// A free; `ordinal` is its number in its thread. Gives the object freed.
    pub fn free(&mut self, thread: usize, ordinal: u64, address: u64, tsc: u64) -> Option<usize> {
        let index = match self.frees.get(&(thread, ordinal)) {
            Some(&index) => index,
            None => {
                let candidates = self.starts.get(&address)?;
                let alive = candidates
                    .iter()
                    .copied()
                    .filter(|&i| self.objects[i].birth <= tsc && self.objects[i].death >= tsc);
                alive.max_by_key(|&i| self.objects[i].birth)?
            }
        };
        self.frees.insert((thread, ordinal), index);
        let object = self.objects.get_mut(index)?;
        object.freed = true;
        object.death = object.death.min(tsc);
        Some(index)
    }

    /// The object that a thread's access at `address` means, when the access happened between the
    /// two readings.
    pub fn find(&self, thread: usize, address: u64, from: u64, to: u64) -> Option<usize> {
        let mut best: Option<(u8, u64, usize)> = None;
        let lowest = address.saturating_sub(self.largest);
        for (&start, indices) in self.starts.range(lowest..=address).rev() {
            for &index in indices {
                let object = &self.objects[index];
                // One past the end still belongs to the object, so that `p + n` names it.
                if address - start >= object.size.max(1) {
                    continue;
                }
                let rank = rank(object, thread, from, to);
                let candidate = (rank, object.birth, index);
                if best.is_none_or(|best| candidate > best) {
                    best = Some(candidate);
                }
            }
            // Objects that start lower can only matter when this start had no live candidate.
            if best.is_some_and(|(rank, _, _)| rank >= 2) {
                break;
            }
        }
        best.map(|(_, _, index)| index)
    }

    /// The object that an internal address belongs to.
    pub fn at_internal(&self, internal: u64) -> Option<usize> {
        if internal < HEAP {
            return None;
        }
        let end = self.objects.partition_point(|object| object.base <= internal);
        let index = end.checked_sub(1)?;
        (internal - self.objects[index].base < self.objects[index].size.max(1)).then_some(index)
    }
}

/// How well an object fits an access: live in the interval and own, live in it, or not.
fn rank(object: &HeapObject, thread: usize, from: u64, to: u64) -> u8 {
    let live = object.birth <= to && object.death >= from;
    match (live, object.thread == thread && object.born && !object.freed) {
        (true, true) => 3,
        (true, false) => 2,
        (false, true) => 1,
        (false, false) => 0,
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
        assert_eq!(heap.find(1, 0x1008, 12, 18), Some(first));
        assert_eq!(heap.find(0, 0x1008, 35, 40), Some(second));
        assert_eq!(heap.find(0, 0x1020, 35, 40), None);
        let base = heap.objects[second].base;
        assert_eq!(heap.at_internal(base + 31), Some(second));
        assert_eq!(heap.at_internal(base + 32), None);
    }

    #[test]
    fn a_second_pass_finds_the_same_objects() {
        let mut heap = Heap::default();
        let first = heap.allocate(0, 0, 0x1000, 8, 10);
        heap.free(0, 0, 0x1000, 20);
        heap.rewind();
        assert_eq!(heap.allocate(0, 0, 0x1000, 8, 10), first);
        assert_eq!(heap.free(0, 0, 0x1000, 20), Some(first));
        assert_eq!(heap.objects.len(), 1);
    }
}
