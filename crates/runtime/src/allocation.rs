//! The heap: objects obtained and given back, with time-stamp readings that order them between
//! threads (an address that two threads got was free in between).

use crate::allocator;
use crate::guard::{self, Released};
use crate::layout::RuntimeEvent;
use crate::streams;
use crate::sys;
use crate::tls;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

type P = *mut c_void;

const PAGE: usize = 4096;

#[inline]
fn obtained(object: P, size: usize) -> P {
    let thread = tls::recording();
    if !thread.is_null() && !object.is_null() {
        let payload = [object as u64, size as u64, sys::tsc()];
        // SAFETY: the record is the calling thread's own.
        unsafe { streams::event(thread, RuntimeEvent::Allocate, &payload) };
    }
    object
}

#[inline]
fn gives_back(object: P, tsc: u64) {
    let thread = tls::recording();
    if !thread.is_null() && !object.is_null() {
        // SAFETY: the record is the calling thread's own.
        unsafe {
            (*thread).freeing = object as u64;
            streams::event(thread, RuntimeEvent::Free, &[object as u64, tsc]);
        }
    }
}

/// `realloc`: one object ends and one begins, also when the address stays. Logged after the call,
/// because a `realloc` that fails leaves the old object alone.
unsafe fn resize(old: P, size: usize) -> P {
    let before = sys::tsc();
    // SAFETY: the caller keeps the contract of `realloc`.
    let new = unsafe {
        if guard::active() { move_guarded(old, size) } else { allocator::realloc(old, size) }
    };
    if !new.is_null() || (size == 0 && !old.is_null()) {
        gives_back(old, before);
    }
    obtained(new, size)
}

/// `realloc` with a guarded heap: always another object.
unsafe fn move_guarded(old: P, size: usize) -> P {
    // SAFETY: as for `resize`.
    unsafe {
        if !old.is_null() && size == 0 {
            give_back(old);
            return null_mut();
        }
        let length = match (old.is_null(), guard::size(old)) {
            (true, _) => 0,
            (_, Some(length)) => length,
            // libc's own: from before the guard was there, or beyond its room.
            _ if !guard::holds(old) => return allocator::realloc(old, size),
            _ => {
                give_back(old);
                return null_mut();
            }
        };
        let new = get(size, 1);
        if !new.is_null() {
            core::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), length.min(size));
            if !old.is_null() {
                give_back(old);
            }
        }
        new
    }
}

/// An object from the guarded heap if there is one, else from libc. `align` of 1 asks for no more
/// than `malloc` does.
#[inline]
unsafe fn get(size: usize, align: usize) -> P {
    if guard::active() {
        let object = guard::allocate(size, align);
        if !object.is_null() {
            return object;
        }
    }
    // SAFETY: libc's own functions.
    unsafe { if align == 1 { allocator::malloc(size) } else { allocator::memalign(align, size) } }
}

/// Gives an object back to where it came from.
#[inline]
unsafe fn give_back(object: P) {
    if guard::active() {
        // SAFETY: the caller keeps the contract of `free`.
        match unsafe { guard::release(object) } {
            Released::Freed => return,
            Released::Elsewhere => {}
            Released::Refused(kind) => guard::refuse(kind, object),
        }
    }
    // SAFETY: the caller keeps the contract of `free`.
    unsafe { allocator::free(object) }
}

interpose! {
    fn malloc(size: usize) -> P {
        obtained(get(size, 1), size)
    }

    fn calloc(count: usize, size: usize) -> P {
        let total = count.wrapping_mul(size);
        if guard::active() && count.checked_mul(size).is_some() {
            let object = guard::allocate(total, 1);
            if !object.is_null() {
                return obtained(object, total);
            }
        }
        obtained(allocator::calloc(count, size), total)
    }

    fn realloc(old: P, size: usize) -> P {
        resize(old, size)
    }

    fn reallocarray(old: P, count: usize, size: usize) -> P {
        match count.checked_mul(size) {
            Some(total) => resize(old, total),
            None => {
                sys::set_errno(sys::ENOMEM);
                null_mut()
            }
        }
    }

    fn free(object: P) {
        gives_back(object, sys::tsc());
        give_back(object)
    }

    fn aligned_alloc(align: usize, size: usize) -> P {
        obtained(get(size, align), size)
    }

    fn memalign(align: usize, size: usize) -> P {
        obtained(get(size, align), size)
    }

    fn valloc(size: usize) -> P {
        obtained(get(size, PAGE), size)
    }

    fn pvalloc(size: usize) -> P {
        obtained(get(size.next_multiple_of(PAGE), PAGE), size)
    }

    fn posix_memalign(out: *mut P, align: usize, size: usize) -> c_int {
        if !align.is_power_of_two() || align < size_of::<P>() {
            return sys::EINVAL;
        }
        let object = sys::keeping_errno(|| get(size, align));
        if object.is_null() {
            return sys::ENOMEM;
        }
        *out = obtained(object, size);
        0
    }
}
