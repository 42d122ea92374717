//! Mappings obtained and given back, as far as the program or a library asks libc for them. They are
//! made by system calls of our own: the functions behind the interposed ones would have to be looked
//! up, which allocates, and an allocator may map memory. What libc maps for itself (large heap
//! objects, stacks) does not come by here.

use crate::layout::{
    MAPPING_GROWN, MAPPING_MOVED, MAPPING_OTHER, MAPPING_PAGE, MAPPING_ZERO, RuntimeEvent,
};
use crate::streams;
use crate::sys;
use crate::tls;
use core::ffi::{c_int, c_void};

type P = *mut c_void;

const PAGE: u64 = MAPPING_PAGE;

/// A length as the kernel takes it.
fn pages(length: usize) -> u64 {
    (length as u64).saturating_add(PAGE - 1) & !(PAGE - 1)
}

fn failed(at: P) -> bool {
    at as usize == sys::MAP_FAILED
}

/// Logs a mapping that a call made between two readings of the clock.
fn mapped(at: u64, length: u64, contents: u64, (before, after): (u64, u64)) {
    let thread = tls::recording();
    if !thread.is_null() && length > 0 {
        let payload = [at, length, contents, before, after];
        // SAFETY: the record is the calling thread's own.
        unsafe { streams::event(thread, RuntimeEvent::Map, &payload) };
    }
}

fn unmapped(at: u64, length: u64, tsc: u64) {
    let thread = tls::recording();
    if !thread.is_null() && length > 0 {
        // SAFETY: the record is the calling thread's own.
        unsafe { streams::event(thread, RuntimeEvent::Unmap, &[at, length, tsc]) };
    }
}

unsafe fn map(at: P, n: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> P {
    let before = sys::tsc();
    // SAFETY: the caller keeps the contract of `mmap`.
    let object = unsafe { sys::mmap(at, n, protection, flags, fd, offset) };
    if !failed(object) {
        let anonymous = flags & sys::MAP_ANONYMOUS != 0;
        let contents = if anonymous { MAPPING_ZERO } else { MAPPING_OTHER };
        mapped(object as u64, pages(n), contents, (before, sys::tsc()));
    }
    object
}

/// Says what `mremap` did: what went away first, then what came.
fn remapped(old: (u64, u64), new: (u64, u64), keeps: bool, before: u64) {
    let ((from, had), (to, has)) = (old, new);
    let after = sys::tsc();
    let mut began = before;
    if from != to {
        if !keeps {
            unmapped(from, had, before);
        }
        mapped(to, had.min(has), MAPPING_MOVED | from, (before, after));
        began = after;
    } else if has < had {
        unmapped(from + has, had - has, before);
    }
    if has > had {
        mapped(to + had, has - had, MAPPING_GROWN | to, (began, after));
    }
}

interpose! {
    fn mmap(at: P, n: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> P {
        map(at, n, protection, flags, fd, offset)
    }

    fn mmap64(at: P, n: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> P {
        map(at, n, protection, flags, fd, offset)
    }

    fn munmap(at: P, n: usize) -> c_int {
        // Another thread may get the addresses before the call is back.
        let tsc = sys::tsc();
        let result = sys::munmap(at, n);
        if result == 0 {
            unmapped(at as u64, pages(n), tsc);
        }
        result
    }

    // The last argument is there with some flags only; what its register holds otherwise, the kernel
    // does not look at.
    fn mremap(old: P, had: usize, has: usize, flags: c_int, to: P) -> P {
        let tsc = sys::tsc();
        let object = sys::mremap(old, had, has, flags, to);
        if !failed(object) {
            // A length of 0 asks for another mapping of the same memory, if it is shared.
            let keeps = had == 0 || flags & sys::MREMAP_DONTUNMAP != 0;
            let had = if had == 0 { has } else { had };
            remapped((old as u64, pages(had)), (object as u64, pages(has)), keeps, tsc);
        }
        object
    }
}
