//! Small tables in memory from the kernel: from a number to a number.

use crate::sys;
use core::ptr::null_mut;

/// A slot of a table; a key of 0 is an empty one.
#[repr(C)]
struct Entry {
    key: u64,
    value: u64,
}

/// From non-zero keys to values. Never shrinks, and holds no more than it was made for.
pub struct Table {
    entries: *mut Entry,
    mask: usize,
    used: usize,
}

impl Table {
    /// The table that holds nothing.
    #[must_use]
    pub const fn empty() -> Self {
        Self { entries: null_mut(), mask: 0, used: 0 }
    }

    /// A table for up to `most` keys; the empty one when there is no memory.
    #[must_use]
    pub fn with_room(most: usize) -> Self {
        let places = most.saturating_mul(2).max(8).next_power_of_two();
        let entries = sys::anonymous(places * size_of::<Entry>()).cast::<Entry>();
        if entries.is_null() {
            return Self::empty();
        }
        Self { entries, mask: places - 1, used: 0 }
    }

    fn place(&self, key: u64) -> *mut Entry {
        if self.entries.is_null() || key == 0 {
            return null_mut();
        }
        let mut at = (key ^ (key >> 32)) as usize & self.mask;
        loop {
            // SAFETY: the index is masked to the table's length, which never is full.
            unsafe {
                let entry = self.entries.add(at);
                if (*entry).key == key || (*entry).key == 0 {
                    return entry;
                }
            }
            at = (at + 1) & self.mask;
        }
    }

    /// The value of a key, if it is there.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<u64> {
        let entry = self.place(key);
        // SAFETY: a place is an entry of the table.
        unsafe { (!entry.is_null() && (*entry).key == key).then(|| (*entry).value) }
    }

    /// Sets the value of a key that is there; says whether it is.
    pub fn set(&mut self, key: u64, value: u64) -> bool {
        let entry = self.place(key);
        // SAFETY: as in `get`.
        unsafe {
            if entry.is_null() || (*entry).key != key {
                return false;
            }
            (*entry).value = value;
        }
        true
    }

    /// Puts a key in, unless it is there already.
    pub fn insert(&mut self, key: u64, value: u64) {
        let entry = self.place(key);
        // One place always stays empty, so that every search ends.
        if entry.is_null() || self.used >= self.mask {
            return;
        }
        // SAFETY: as in `get`.
        unsafe {
            if (*entry).key == 0 {
                *entry = Entry { key, value };
                self.used += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn keys_that_share_a_place_are_told_apart() {
        let mut table = Table::with_room(4);
        for key in [8u64, 16, 24, 32] {
            table.insert(key, key + 1);
        }
        table.insert(8, 99);
        assert_eq!((table.get(8), table.get(32), table.get(40)), (Some(9), Some(33), None));
        assert!(table.set(16, 5) && !table.set(48, 5));
        assert_eq!(table.get(16), Some(5));
        assert_eq!(Table::empty().get(8), None);
    }
}
