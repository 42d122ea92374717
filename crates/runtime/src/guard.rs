//! The guarded heap (`record --detect=use-after-free`): every object has pages of its own, which
//! cannot be accessed once it is freed and are never used again. An access to a freed object is then
//! a fault, wherever it comes from, and a second free is seen as one.
//!
//! Ordinary heaps stay readable after a free, so such an access mostly shows late or never; and the
//! next owner of the memory hides who was meant. This costs a page or more per object and a system
//! call per free, so it is only done on request.

use crate::layout::RawFailure;
use crate::process::{self, Failure};
use crate::sys;
use crate::text::Text;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

type P = *mut c_void;

const PAGE: u64 = 4096;
/// Pages of address space. Objects beyond them come from libc.
const PAGES: u64 = 1 << 24;
/// In the table: an object begins here, and its size stands above these two bits.
const BEGINS: u64 = 1;
const FREED: u64 = 2;
const SIZE_SHIFT: u32 = 2;

/// Where the zone begins; 0 when heaps are not guarded.
static ZONE: AtomicU64 = AtomicU64::new(0);
/// One word per page.
static TABLE: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());
/// How many pages were given out.
static USED: AtomicU64 = AtomicU64::new(0);

/// Reserves the address space. False when there is none to be had.
#[must_use]
pub fn start() -> bool {
    let reserve = |bytes: u64| {
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
        // SAFETY: a mapping at an address of the kernel's choice disturbs nothing.
        let at =
            unsafe { sys::mmap(null_mut(), bytes as usize, sys::PROT_READ_WRITE, flags, -1, 0) };
        if at as usize == sys::MAP_FAILED { null_mut() } else { at }
    };
    let (zone, table) = (reserve(PAGES * PAGE), reserve(PAGES * 8));
    if zone.is_null() || table.is_null() {
        return false;
    }
    TABLE.store(table.cast(), Ordering::Release);
    ZONE.store(zone as u64, Ordering::Release);
    true
}

/// Is the heap guarded?
#[inline]
pub fn active() -> bool {
    ZONE.load(Ordering::Relaxed) != 0
}

/// The number of the page that holds an address of the zone.
fn page_of(address: u64) -> Option<u64> {
    let zone = ZONE.load(Ordering::Acquire);
    let page = address.checked_sub(zone)? / PAGE;
    (zone != 0 && page < PAGES).then_some(page)
}

/// The table's word of a page.
fn word(page: u64) -> Option<&'static AtomicU64> {
    let table = TABLE.load(Ordering::Acquire);
    // SAFETY: once made, the table stays, and has a word per page.
    (!table.is_null() && page < PAGES).then(|| unsafe { &*table.add(page as usize) })
}

/// An object of zeros; null when the zone is used up.
#[must_use]
pub fn allocate(size: usize, align: usize) -> P {
    let pages = (size as u64).div_ceil(PAGE).max(1);
    let align = (align as u64).div_ceil(PAGE).max(1);
    let more = pages.saturating_add(align - 1);
    if more > PAGES {
        return null_mut();
    }
    let first = USED.fetch_add(more, Ordering::Relaxed);
    if first.saturating_add(more) > PAGES {
        USED.store(PAGES, Ordering::Relaxed);
        return null_mut();
    }
    let zone = ZONE.load(Ordering::Acquire);
    let address = (zone + first * PAGE).next_multiple_of(align * PAGE);
    if let Some(word) = page_of(address).and_then(word) {
        word.store((size as u64) << SIZE_SHIFT | BEGINS, Ordering::Release);
    }
    address as P
}

/// What [`release`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// Nothing: the object is libc's.
    Elsewhere,
    /// The object is freed.
    Freed,
    /// Nothing: it was freed before, or is no object at all.
    Refused(RawFailure),
}

/// Frees an object.
///
/// # Safety
///
/// Nobody has a right to access the object any more.
pub unsafe fn release(object: P) -> Released {
    let address = object as u64;
    let Some(page) = page_of(address) else { return Released::Elsewhere };
    let Some(word) = word(page) else { return Released::Elsewhere };
    let before = word.load(Ordering::Acquire);
    if !address.is_multiple_of(PAGE) || before & BEGINS == 0 {
        return Released::Refused(RawFailure::HeapCorruption);
    }
    let live = before & !FREED;
    if word.compare_exchange(live, live | FREED, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return Released::Refused(RawFailure::DoubleFree);
    }
    let length = (live >> SIZE_SHIFT).div_ceil(PAGE).max(1) * PAGE;
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED;
    // Where the kernel has no room for one more mapping, the object stays accessible.
    sys::keeping_errno(|| {
        // SAFETY: the pages are the object's own, and the program has given it back.
        unsafe { sys::mmap(object, length as usize, sys::PROT_NONE, flags, -1, 0) }
    });
    Released::Freed
}

/// Is the address one of the guarded heap?
#[must_use]
pub fn holds(object: P) -> bool {
    page_of(object as u64).is_some()
}

/// The size of a live object of the zone; none for all others.
#[must_use]
pub fn size(object: P) -> Option<usize> {
    let value = word(page_of(object as u64)?)?.load(Ordering::Acquire);
    (value & (BEGINS | FREED) == BEGINS).then_some((value >> SIZE_SHIFT) as usize)
}

/// The freed object at an address: where it begins, and its size.
#[must_use]
pub fn freed(address: u64) -> Option<(u64, u64)> {
    let mut page = page_of(address)?;
    let value = loop {
        let value = word(page)?.load(Ordering::Acquire);
        if value & BEGINS != 0 {
            break value;
        }
        page = page.checked_sub(1)?;
    };
    let start = ZONE.load(Ordering::Acquire) + page * PAGE;
    let size = value >> SIZE_SHIFT;
    let within = address - start < size.div_ceil(PAGE).max(1) * PAGE;
    (within && value & FREED != 0).then_some((start, size))
}

/// Ends the process for a free that makes no sense.
pub fn refuse(kind: RawFailure, object: P) -> ! {
    let message: &[u8] = match kind {
        RawFailure::DoubleFree => b"free of an object that was freed before",
        _ => b"free of what is no object",
    };
    let code = i64::from(sys::SIGABRT);
    let address = object as u64;
    process::note_failure(kind, &Failure { code, address, message, pc: 0 });
    crate::report::complain(message);
    crate::exits::end_by_abort()
}

/// What the fault at an address is said to be.
pub fn describe(address: u64, start: u64, size: u64) -> Text<160> {
    let mut text = Text::new();
    text.push(b"access to byte ").push_decimal(address - start);
    text.push(b" of a freed object of ").push_decimal(size).push(b" bytes");
    text
}

interpose! {
    fn malloc_usable_size(object: P) -> usize {
        match size(object) {
            Some(size) => size,
            None => crate::real::malloc_usable_size().map_or(0, |real| real(object)),
        }
    }
}

/// The value of the variable that asks for it.
#[must_use]
pub fn is_wanted(value: &[u8]) -> bool {
    value == b"use-after-free"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_objects_are_known_and_not_freed_twice() {
        // SAFETY: the test does not use what it frees.
        let give = |object| unsafe { release(object) };
        assert!(start());
        let object = allocate(5000, 16);
        assert_eq!(size(object), Some(5000));
        assert_eq!(freed(object as u64), None);
        assert_eq!(
            give(object.wrapping_byte_add(8)),
            Released::Refused(RawFailure::HeapCorruption)
        );
        assert_eq!(give(object), Released::Freed);
        assert_eq!(freed(object as u64 + 4999), Some((object as u64, 5000)));
        assert_eq!(give(object), Released::Refused(RawFailure::DoubleFree));
        assert_eq!(size(object), None);
        let aligned = allocate(1, 1 << 16);
        assert_eq!(aligned as u64 % (1 << 16), 0);
        assert_eq!(give(null_mut()), Released::Elsewhere);
    }
}
