//! Which heap objects ever lay at an address.
//!
//! A program that makes and frees an object for each request has thousands of them at the same few addresses, one after
//! the other, and beside them some that it keeps. Who looks for one of these must not look at all the others that
//! ever lay nearby: small objects are found by pieces of memory that hardly hold two of them at once.

use super::HeapObject;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Objects of up to so many bytes are found by pieces of memory of 2 to the power of that.
const LEVELS: [(u64, u32); 3] = [(256, 4), (4096, 8), (u64::MAX, 12)];

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// For each level, by the number of the piece, the objects that ever lay in it, by time of birth.
    levels: [FxHashMap<u64, SmallVec<[usize; 2]>>; LEVELS.len()],
}

/// The level of objects of this size.
fn level(size: u64) -> usize {
    LEVELS.iter().position(|(largest, _)| size <= *largest).unwrap_or(LEVELS.len() - 1)
}

/// The pieces of a level that an object has a part of.
fn pieces(level: usize, address: u64, size: u64) -> std::ops::RangeInclusive<u64> {
    let (_, shift) = LEVELS[level];
    address >> shift..=address.saturating_add(size.max(1) - 1) >> shift
}

impl Places {
    /// A new object.
    pub(super) fn add(&mut self, index: usize, objects: &[HeapObject]) {
        let HeapObject { address, size, .. } = objects[index];
        self.note(index, objects, pieces(level(size), address, size));
    }

    /// The object had `old` bytes, and has more now.
    pub(super) fn extend(&mut self, index: usize, old: u64, objects: &[HeapObject]) {
        let HeapObject { address, size, .. } = objects[index];
        let (before, now) = (level(old), level(size));
        let had = pieces(before, address, old);
        if before == now {
            let last = *pieces(now, address, size).end();
            return self.note(index, objects, had.end() + 1..=last);
        }
        for piece in had {
            if let Some(here) = self.levels[before].get_mut(&piece) {
                here.retain(|other| *other != index);
            }
        }
        self.add(index, objects);
    }

    fn note(
        &mut self,
        index: usize,
        objects: &[HeapObject],
        pieces: std::ops::RangeInclusive<u64>,
    ) {
        let HeapObject { size, birth, .. } = objects[index];
        for piece in pieces {
            let here = self.levels[level(size)].entry(piece).or_default();
            let at = here.partition_point(|&other| objects[other].birth <= birth);
            here.insert(at, index);
        }
    }

    /// For each level, what ever lay in the piece of memory around the address, as far as it was born by then, and the
    /// rest.
    fn around(
        &self,
        address: u64,
        by: u64,
        objects: &[HeapObject],
    ) -> [(&[usize], &[usize]); LEVELS.len()] {
        let mut level = 0;
        self.levels.each_ref().map(|pieces| {
            let (_, shift) = LEVELS[level];
            level += 1;
            let here = pieces.get(&(address >> shift)).map_or(&[][..], SmallVec::as_slice);
            here.split_at(here.partition_point(|&index| objects[index].birth <= by))
        })
    }

    /// The objects that may hold the address and were born by then, the youngest first.
    pub(super) fn born_by(
        &self,
        address: u64,
        by: u64,
        objects: &[HeapObject],
    ) -> impl Iterator<Item = usize> {
        let mut left = self.around(address, by, objects).map(|(born, _)| born);
        std::iter::from_fn(move || {
            let age =
                |born: &&mut &[usize]| born.last().map(|&index| (objects[index].birth, index));
            let born = left.iter_mut().max_by_key(age)?;
            let (youngest, rest) = born.split_last()?;
            *born = rest;
            Some(*youngest)
        })
    }

    /// The objects that may hold the address and were born later, the oldest first.
    pub(super) fn born_after(
        &self,
        address: u64,
        by: u64,
        objects: &[HeapObject],
    ) -> impl Iterator<Item = usize> {
        let later = self.around(address, by, objects).map(|(_, later)| later);
        let mut found: Vec<usize> = later.into_iter().flatten().copied().collect();
        found.sort_by_key(|&index| (objects[index].birth, index));
        found.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use crate::heap::Heap;

    /// The answer of a search through all objects.
    fn plainly(heap: &Heap, address: u64, (from, to): (u64, u64)) -> Option<usize> {
        let objects = &heap.objects;
        let holds =
            |&index: &usize| address.wrapping_sub(objects[index].address) < objects[index].size;
        let mut all: Vec<usize> = (0..objects.len()).filter(holds).collect();
        all.sort_by_key(|&index| objects[index].birth);
        let born = all.iter().rev().filter(|index| objects[**index].birth <= to);
        let lives = |index: &&usize| objects[**index].death >= from;
        let unborn = all.iter().find(|index| objects[**index].birth > to);
        born.clone().find(lives).or(born.clone().next()).or(unborn).copied()
    }

    /// Objects of all sizes that are made and freed at the same few addresses, some of which grow.
    #[test]
    fn objects_are_found_among_many_others() {
        let mut heap = Heap::default();
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let sizes = [8, 24, 200, 250, 256, 300, 1000, 4000, 4096, 5000, 20_000];
        for number in 0..400 {
            let (address, size) = (0x10_0000 + 16 * next(600), sizes[next(11) as usize]);
            let born = 10 + 10 * next(1000);
            let index = heap.allocate(0, number, address, size, born);
            if next(4) == 0 {
                heap.extend(index, size + next(size / 4 + 64));
            }
            if next(3) != 0 {
                heap.objects[index].death = born + 1 + next(500);
            }
        }
        for _ in 0..20_000 {
            let address = 0x10_0000 + next(34_000);
            let from = next(11_000);
            let times = (from, from + next(50));
            assert_eq!(heap.find(address, times.0, times.1), plainly(&heap, address, times));
        }
    }

    #[test]
    fn what_lies_beside_is_not_looked_at() {
        let mut heap = Heap::default();
        let kept = heap.allocate(0, 0, 0x1000, 64, 1);
        for number in 1..1000 {
            heap.allocate(0, number, 0x1040 + 32 * (number % 8), 24, 10 * number);
        }
        let seen: Vec<usize> = heap.places.born_by(0x1020, u64::MAX, &heap.objects).collect();
        assert_eq!(seen, [kept]);
    }
}
