//! Mappings among the objects of [`Heap`].
//!
//! They differ from what `malloc` gives: they may lie over older ones, parts of them go away, a part
//! may be had back, and programs rely on neighbours being neighbours. So a mapping's internal address is
//! its real one in a *generation*, a copy of the whole address space above [`MAPS`]. A mapping goes where
//! nothing else ever lay at its place, and beside its lower neighbour where it can.

use crate::heap::{Heap, HeapObject, USER_END};
use std::collections::BTreeMap;

/// Internal addresses of mappings.
pub(crate) const MAPS: u64 = 0xc000_0000_0000_0000;
/// So many generations there are; further mappings share the last one.
const GENERATIONS: u64 = (u64::MAX - MAPS) / USER_END + 1;

/// A part of a mapping that went away, in recorded addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub start: u64,
    pub end: u64,
    /// When.
    pub death: u64,
}

/// What is known of a mapping beside what is known of every object.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    /// Its pages were zeros at first.
    pub zero: bool,
    generation: u64,
    /// Sorted and apart.
    holes: Vec<Hole>,
}

impl Mapped {
    /// A part went away, unless it had gone before.
    fn punch(&mut self, start: u64, end: u64, death: u64) {
        let mut holes = Vec::with_capacity(self.holes.len() + 2);
        let mut at = start;
        let mut add = |start: u64, end: u64, death: u64| {
            if start < end {
                holes.push(Hole { start, end, death });
            }
        };
        for hole in &self.holes {
            let (low, high) = (hole.start.clamp(start, end), hole.end.clamp(start, end));
            add(hole.start, hole.end.min(start), hole.death);
            if low < high {
                add(at, low, death);
                add(low, high, hole.death.min(death));
                at = high;
            } else if hole.start >= end {
                add(at, end, death);
                at = end;
            }
            add(hole.start.max(end), hole.end, hole.death);
        }
        add(at, end, death);
        self.holes = holes;
    }
}

impl HeapObject {
    /// One past its last recorded address.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }

    /// When what is at a recorded address in it went away; `u64::MAX` while it is there.
    pub fn death_at(&self, address: u64) -> u64 {
        let Some(mapped) = &self.mapped else { return self.death };
        let after = mapped.holes.partition_point(|hole| hole.end <= address);
        mapped.holes.get(after).filter(|hole| hole.start <= address).map_or(u64::MAX, |h| h.death)
    }

    /// The parts that were never given back, in recorded addresses.
    pub fn live_parts(&self) -> Vec<(u64, u64)> {
        let Some(mapped) = &self.mapped else {
            let lives = self.death == u64::MAX;
            return lives.then(|| (self.address, self.end())).into_iter().collect();
        };
        let mut parts = Vec::new();
        let mut at = self.address;
        for hole in &mapped.holes {
            parts.push((at, hole.start));
            at = hole.end;
        }
        parts.push((at, self.end()));
        parts.retain(|(start, end)| start < end);
        parts
    }

    /// The part of it in a range went away.
    fn punch(&mut self, start: u64, end: u64, death: u64) {
        let (start, end) = (start.max(self.address), end.min(self.end()));
        let size = self.size;
        let Some(mapped) = &mut self.mapped else { return };
        if start >= end {
            return;
        }
        mapped.punch(start, end, death);
        let gone: u64 = mapped.holes.iter().map(|hole| hole.end - hole.start).sum();
        if gone == size {
            let last = mapped.holes.iter().map(|hole| hole.death).max();
            self.death = last.unwrap_or(u64::MAX);
        }
    }
}

/// Addresses that the same mappings ever held.
#[derive(Clone, Debug)]
struct Segment {
    end: u64,
    /// By time of birth.
    objects: Vec<usize>,
}

/// Where mappings lie.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    /// Start to segment; they do not overlap.
    segments: BTreeMap<u64, Segment>,
    /// First internal address to object.
    internal: BTreeMap<u64, usize>,
    /// What was given back: start, end, when.
    gone: Vec<(u64, u64, u64)>,
}

impl Mappings {
    /// The objects that ever held the address, by time of birth.
    pub fn at(&self, address: u64) -> &[usize] {
        let before = self.segments.range(..=address).next_back();
        let segment = before.map(|(_, segment)| segment).filter(|segment| address < segment.end);
        segment.map_or(&[], |segment| &segment.objects)
    }

    /// The objects that ever held some of the addresses.
    fn within(&self, start: u64, end: u64) -> Vec<usize> {
        let first = self.segments.range(..=start).next_back().map_or(start, |(&first, _)| first);
        let near = self.segments.range(first..end).filter(|(_, segment)| segment.end > start);
        let mut found: Vec<usize> =
            near.flat_map(|(_, segment)| segment.objects.iter().copied()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Lets a segment begin at an address.
    fn cut(&mut self, at: u64) {
        let Some((_, before)) = self.segments.range_mut(..at).next_back() else { return };
        if before.end > at {
            let rest = before.clone();
            before.end = at;
            self.segments.insert(at, rest);
        }
    }

    fn insert(&mut self, start: u64, end: u64, index: usize, objects: &[HeapObject]) {
        self.cut(start);
        self.cut(end);
        let birth = |index: usize| objects.get(index).map_or(0, |object| object.birth);
        let mut free = Vec::new();
        let mut at = start;
        for (&first, segment) in self.segments.range_mut(start..end) {
            free.push((at, first));
            at = segment.end;
            let place = segment.objects.partition_point(|&other| birth(other) <= birth(index));
            segment.objects.insert(place, index);
        }
        free.push((at, end));
        for (start, end) in free.into_iter().filter(|(start, end)| start < end) {
            self.segments.insert(start, Segment { end, objects: vec![index] });
        }
    }

    /// The mapping that an internal address belongs to.
    pub fn at_internal(&self, internal: u64, objects: &[HeapObject]) -> Option<usize> {
        let (&base, &index) = self.internal.range(..=internal).next_back()?;
        (internal - base < objects.get(index)?.size).then_some(index)
    }
}

impl Heap {
    /// A mapping of whole pages; `ordinal` is its number among its thread's. `None` for one that no
    /// address space has room for, which only a damaged log tells of.
    pub fn map(
        &mut self,
        (thread, ordinal): (usize, u64),
        (address, size): (u64, u64),
        zero: bool,
        tsc: u64,
    ) -> Option<usize> {
        if let Some(&index) = self.map_ordinals.get(&(thread, ordinal)) {
            return Some(index);
        }
        let end = address.checked_add(size).filter(|&end| end <= USER_END && size > 0)?;
        let over = self.mappings.within(address, end);
        let generation = self.generation(&over, address, tsc);
        let mut object = HeapObject {
            address,
            size,
            birth: tsc,
            death: u64::MAX,
            freed: None,
            base: MAPS + generation * USER_END + address,
            zeros: if zero { size } else { 0 },
            mapped: Some(Box::new(Mapped { zero, generation, holes: Vec::new() })),
        };
        for &(start, end, death) in self.mappings.gone.iter().filter(|gone| gone.2 > tsc) {
            object.punch(start, end, death);
        }
        // One of two mappings of a page went away when the other one came.
        for other in over {
            let other = &mut self.objects[other];
            if other.birth <= tsc {
                other.punch(address, end, tsc);
            } else {
                object.punch(other.address, other.end(), other.birth);
            }
        }
        let index = self.objects.len();
        self.mappings.internal.insert(object.base, index);
        self.objects.push(object);
        self.map_ordinals.insert((thread, ordinal), index);
        self.mappings.insert(address, end, index, &self.objects);
        Some(index)
    }

    /// Where a mapping over these others goes.
    fn generation(&self, over: &[usize], address: u64, tsc: u64) -> u64 {
        let of = |index: usize| self.objects[index].mapped.as_ref().map(|m| m.generation);
        let mut taken: Vec<u64> = over.iter().filter_map(|&index| of(index)).collect();
        taken.sort_unstable();
        taken.dedup();
        let below = address.checked_sub(1).and_then(|below| self.find_mapped(below, tsc, tsc));
        let beside = below.and_then(|(index, ..)| of(index));
        let free = |generation: &u64| taken.binary_search(generation).is_err();
        let first = (0..).find(free).unwrap_or(0);
        beside.filter(free).unwrap_or(first).min(GENERATIONS - 1)
    }

    /// Pages were given back. The mappings that this was the end of.
    pub fn unmap(&mut self, address: u64, size: u64, tsc: u64) -> Vec<usize> {
        let end = address.saturating_add(size).min(USER_END);
        if address >= end {
            return Vec::new();
        }
        if !self.mappings.gone.contains(&(address, end, tsc)) {
            self.mappings.gone.push((address, end, tsc));
        }
        let mut ended = self.mappings.within(address, end);
        ended.retain(|&index| {
            let object = &mut self.objects[index];
            if object.birth <= tsc {
                object.punch(address, end, tsc);
            }
            object.death == tsc
        });
        ended
    }

    /// The mapping that an access at `address` means, whether it lived between the two readings,
    /// and whether it was there by then.
    pub fn find_mapped(&self, address: u64, from: u64, to: u64) -> Option<(usize, bool, bool)> {
        let here = self.mappings.at(address);
        let born = here.partition_point(|&index| self.objects[index].birth <= to);
        let lives = |index: &usize| self.objects[*index].death_at(address) >= from;
        let known = &here[..born];
        if let Some(&living) = known.iter().rev().find(|&index| lives(index)) {
            return Some((living, true, true));
        }
        known
            .last()
            .map(|&index| (index, false, true))
            .or(here.get(born).map(|&i| (i, false, false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_went_away_is_another_object_when_it_is_had_again() {
        let mut heap = Heap::default();
        let whole = heap.map((0, 0), (0x10000, 0x4000), true, 10).unwrap();
        assert!(heap.unmap(0x11000, 0x1000, 20).is_empty());
        let again = heap.map((1, 0), (0x11000, 0x1000), false, 30).unwrap();
        assert_eq!(heap.find(0x11008, 12, 18), Some(whole));
        assert_eq!(heap.find(0x11008, 35, 40), Some(again));
        assert_eq!(heap.find(0x12000, 35, 40), Some(whole));
        let (base, other) = (heap.objects[whole].base, heap.objects[again].base);
        assert!(!(base..base + 0x4000).contains(&other));
        assert_eq!(heap.at_internal(base + 0x3fff), Some(whole));
        assert_eq!(heap.at_internal(base + 0x4000), None);
        assert_eq!(heap.at_internal(other), Some(again));
        assert_eq!(heap.objects[whole].live_parts(), [(0x10000, 0x11000), (0x12000, 0x14000)]);
        // The rest goes in two steps, the second of which reaches over both and beyond.
        assert!(heap.unmap(0x10000, 0x1000, 40).is_empty());
        assert_eq!(heap.unmap(0xf000, 0x9000, 50), [whole, again]);
        assert_eq!(heap.objects[whole].death, 50);
        assert_eq!(heap.objects[whole].death_at(0x10000), 40);
        assert_eq!(heap.objects[whole].death_at(0x11000), 20);
    }

    #[test]
    fn a_second_pass_finds_the_same_mappings() {
        let mut heap = Heap::default();
        // The thread that gives back is walked first.
        assert!(heap.unmap(0x10000, 0x1000, 20).is_empty());
        let object = heap.map((1, 0), (0x10000, 0x1000), true, 10);
        assert_eq!(heap.unmap(0x10000, 0x1000, 20), [object.unwrap()]);
        assert_eq!(heap.map((1, 0), (0x10000, 0x1000), true, 10), object);
        assert_eq!(heap.objects.len(), 1);
        assert_eq!(heap.find(0x10000, 12, 18), object);
    }

    #[test]
    fn neighbours_stay_neighbours() {
        let mut heap = Heap::default();
        let reserved = heap.map((0, 0), (0x100000, 0x10000), true, 10).unwrap();
        let first = heap.map((0, 1), (0x100000, 0x2000), true, 20).unwrap();
        let second = heap.map((0, 2), (0x102000, 0x2000), true, 30).unwrap();
        let base = |index: usize| heap.objects[index].base;
        assert_eq!(base(second), base(first) + 0x2000);
        assert_ne!(base(first), base(reserved));
        assert_eq!(heap.find(0x101fff, 40, 50), Some(first));
        assert_eq!(heap.find(0x104000, 40, 50), Some(reserved));
        assert_eq!(heap.find(0x100000, 12, 18), Some(reserved));
    }

    #[test]
    fn heap_objects_and_mappings_are_told_apart_by_their_ages() {
        let mut heap = Heap::default();
        // An allocator's own arena.
        let arena = heap.map((0, 0), (0x10000, 0x10000), true, 10).unwrap();
        let inside = heap.allocate(0, 0, 0x10040, 32, 20);
        heap.free(0, 0, 0x10040, 30);
        assert_eq!(heap.find(0x10048, 22, 25), Some(inside));
        assert_eq!(heap.find(0x10048, 35, 40), Some(inside));
        assert_eq!(heap.find(0x10060, 35, 40), Some(arena));
        // Where a large heap object was, the program maps something.
        let large = heap.allocate(0, 1, 0x40000, 0x1000, 50);
        heap.free(0, 1, 0x40000, 60);
        let after = heap.map((0, 1), (0x40000, 0x1000), false, 70).unwrap();
        assert_eq!(heap.find(0x40010, 52, 58), Some(large));
        assert_eq!(heap.find(0x40010, 75, 80), Some(after));
        assert!(heap.is_reused(0x40010) && heap.is_reused(0x10048) && !heap.is_reused(0x10060));
    }

    #[test]
    fn damaged_logs_map_nothing() {
        let mut heap = Heap::default();
        assert_eq!(heap.map((0, 0), (u64::MAX - 10, 0x1000), true, 10), None);
        assert_eq!(heap.map((0, 1), (USER_END - 0x1000, 0x2000), true, 10), None);
        assert_eq!(heap.map((0, 2), (0x1000, 0), true, 10), None);
        assert!(heap.unmap(u64::MAX, u64::MAX, 10).is_empty());
        assert_eq!(heap.find(USER_END - 1, 0, 10), None);
    }
}
