//! Memory for what lives as long as the process: from `mmap`, never given back.

use crate::sys;

/// A list with room for a fixed number of elements.
#[derive(Debug)]
pub struct List<T: Copy + 'static> {
    data: *mut T,
    length: usize,
    room: usize,
}

impl<T: Copy + 'static> List<T> {
    /// The list without room.
    #[must_use]
    pub const fn none() -> Self {
        Self { data: core::ptr::null_mut(), length: 0, room: 0 }
    }

    /// An empty list with room for so many elements; none when there is no memory.
    #[must_use]
    pub fn with_room(room: usize) -> Option<Self> {
        let size = room.checked_mul(size_of::<T>())?.max(1);
        let data = sys::anonymous(size).cast::<T>();
        if data.is_null() { None } else { Some(Self { data, length: 0, room }) }
    }

    /// Appends an element; false when there is no room.
    pub fn push(&mut self, element: T) -> bool {
        if self.length == self.room {
            return false;
        }
        // SAFETY: the block has room for `room` elements, and is aligned to a page.
        unsafe { self.data.add(self.length).write(element) };
        self.length += 1;
        true
    }

    /// The elements.
    #[must_use]
    pub fn as_slice(&self) -> &'static [T] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: so many elements were written, and the block is never given back. Elements in a
        // slice that was handed out are only changed by `as_mut_slice`, see there.
        unsafe { core::slice::from_raw_parts(self.data, self.length) }
    }

    /// The elements for sorting; to be called before any of [`Self::as_slice`].
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        if self.data.is_null() {
            return &mut [];
        }
        // SAFETY: as in `as_slice`; the list is borrowed for writing.
        unsafe { core::slice::from_raw_parts_mut(self.data, self.length) }
    }
}

/// Puts a value where it stays for ever; none when there is no memory.
#[must_use]
pub fn keep<T>(value: T) -> Option<&'static T> {
    let at = sys::anonymous(size_of::<T>().max(1)).cast::<T>();
    if at.is_null() {
        return None;
    }
    // SAFETY: the block is fresh, large enough, aligned to a page and never given back.
    unsafe {
        at.write(value);
        Some(&*at)
    }
}

/// A copy of bytes that stays for ever; none when there is no memory.
#[must_use]
pub fn copy(bytes: &[u8]) -> Option<&'static [u8]> {
    let mut list = List::with_room(bytes.len())?;
    for &byte in bytes {
        list.push(byte);
    }
    Some(list.as_slice())
}
