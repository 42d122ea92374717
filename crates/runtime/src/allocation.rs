//! The heap: objects obtained and given back, with time-stamp readings that order them between
//! threads (an address that two threads got was free in between).

use crate::layout::RuntimeEvent;
use crate::streams;
use crate::sys;
use crate::tls;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

type P = *mut c_void;

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
        unsafe { streams::event(thread, RuntimeEvent::Free, &[object as u64, tsc]) };
    }
}

/// `realloc`: one object ends and one begins, also when the address stays. Logged after the call,
/// because a `realloc` that fails leaves the old object alone.
unsafe fn resize(old: P, size: usize) -> P {
    let before = sys::tsc();
    // SAFETY: the caller keeps the contract of `realloc`.
    let new = unsafe { sys::__libc_realloc(old, size) };
    if !new.is_null() || (size == 0 && !old.is_null()) {
        gives_back(old, before);
    }
    obtained(new, size)
}

interpose! {
    fn malloc(size: usize) -> P {
        obtained(sys::__libc_malloc(size), size)
    }

    fn calloc(count: usize, size: usize) -> P {
        obtained(sys::__libc_calloc(count, size), count.wrapping_mul(size))
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
        sys::__libc_free(object)
    }

    fn aligned_alloc(align: usize, size: usize) -> P {
        obtained(sys::__libc_memalign(align, size), size)
    }

    fn memalign(align: usize, size: usize) -> P {
        obtained(sys::__libc_memalign(align, size), size)
    }

    fn valloc(size: usize) -> P {
        obtained(sys::__libc_valloc(size), size)
    }

    fn pvalloc(size: usize) -> P {
        obtained(sys::__libc_pvalloc(size), size)
    }

    fn posix_memalign(out: *mut P, align: usize, size: usize) -> c_int {
        if !align.is_power_of_two() || align < size_of::<P>() {
            return sys::EINVAL;
        }
        let object = sys::keeping_errno(|| sys::__libc_memalign(align, size));
        if object.is_null() {
            return sys::ENOMEM;
        }
        *out = obtained(object, size);
        0
    }
}
