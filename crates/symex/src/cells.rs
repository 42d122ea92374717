//! The shared cells of the symbolic pass, by internal address.

use crate::engine::{Engine, Pass};
use crate::memory::PAGE;
use model::CellId;
use rustc_hash::FxHashMap;

const PAGE_BYTES: usize = 4096;

/// A shared cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedCell {
    pub address: u64,
    /// In bytes, at most 8.
    pub length: u32,
    /// The model's cell, once an event has touched it.
    pub id: Option<CellId>,
}

impl SharedCell {
    pub fn end(&self) -> u64 {
        self.address + u64::from(self.length)
    }
}

/// All shared cells.
#[derive(Default)]
pub(crate) struct SharedCells {
    pub cells: Vec<SharedCell>,
    /// Per page and byte: the cell's index plus one.
    pages: FxHashMap<u64, Box<[u32; PAGE_BYTES]>>,
}

impl SharedCells {
    pub fn new(ranges: &[(u64, u32)]) -> Self {
        let mut shared = Self::default();
        for &(address, length) in ranges {
            shared.cells.push(SharedCell { address, length, id: None });
            let number = shared.cells.len() as u32;
            for byte in address..address + u64::from(length) {
                let page =
                    shared.pages.entry(byte / PAGE).or_insert_with(|| Box::new([0; PAGE_BYTES]));
                page[(byte % PAGE) as usize] = number;
            }
        }
        shared
    }

    pub fn at(&self, address: u64) -> Option<usize> {
        let page = self.pages.get(&(address / PAGE))?;
        (page[(address % PAGE) as usize] as usize).checked_sub(1)
    }

    /// Does no cell overlap a range?
    pub fn none_within(&self, address: u64, length: u64) -> bool {
        let end = (address % PAGE).saturating_add(length);
        match self.pages.get(&(address / PAGE)) {
            Some(_) if end > PAGE => self.within(address, length).is_empty(),
            Some(numbers) => {
                let mut bytes = numbers[(address % PAGE) as usize..end as usize].iter();
                bytes.all(|number| *number == 0)
            }
            None => end <= PAGE || self.within(address, length).is_empty(),
        }
    }

    /// The cells that overlap a range, in order.
    pub fn within(&self, address: u64, length: u64) -> Vec<usize> {
        let mut found = Vec::new();
        if self.cells.is_empty() || length == 0 {
            return found;
        }
        let end = address.saturating_add(length);
        let mut page = address / PAGE;
        while page <= (end - 1) / PAGE {
            if let Some(numbers) = self.pages.get(&page) {
                let from = address.max(page.saturating_mul(PAGE));
                let to = end.min((page + 1).saturating_mul(PAGE));
                self.within_page(numbers, from, to, &mut found);
            }
            page += 1;
        }
        found
    }

    fn within_page(&self, numbers: &[u32; PAGE_BYTES], from: u64, to: u64, found: &mut Vec<usize>) {
        let mut at = from;
        while at < to {
            match (numbers[(at % PAGE) as usize] as usize).checked_sub(1) {
                Some(index) => {
                    if found.last() != Some(&index) {
                        found.push(index);
                    }
                    at = self.cells[index].end();
                }
                None => at += 1,
            }
        }
    }
}

impl Engine<'_> {
    /// Notes which heap objects have shared cells.
    pub(crate) fn find_shared_heap(&mut self) {
        let Pass::Symbolic(shared) = &self.pass else { return };
        for cell in &shared.cells {
            if let Some(object) = self.learned.heap.at_internal(cell.address) {
                self.shared_heap.insert(object);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, SharedCells};

    #[test]
    fn a_range_is_free_of_cells_where_none_is_in_it() {
        let shared = SharedCells::new(&[(0x100, 8), (2 * PAGE - 4, 4), (2 * PAGE, 2)]);
        for address in [0xf0, 0xf9, 0x100, 0x107, 0x108, 2 * PAGE - 12, 2 * PAGE - 4, 3 * PAGE] {
            for length in [0, 1, 7, 8, 9, 64] {
                let none = shared.within(address, length).is_empty();
                assert_eq!(shared.none_within(address, length), none, "{address:x} {length}");
            }
        }
        assert!(!shared.none_within(2 * PAGE - 5, 2) && shared.none_within(2 * PAGE + 2, 8));
    }
}
