//! What uninstrumented code wrote to memory, as the instrumented code reports it.

use crate::layout::{EXTERNAL_WRITE_LIMIT, RuntimeEvent};
use crate::modules;
use crate::process;
use crate::streams;
use crate::sys;
use crate::tls;
use core::ffi::c_void;

/// Uninstrumented code wrote `n` bytes at `p`.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_external_write(p: *const c_void, n: u64) {
    let thread = tls::recording();
    if thread.is_null() || n == 0 || p.is_null() {
        return;
    }
    let length = n.min(EXTERNAL_WRITE_LIMIT);
    if length < n {
        process::count_cut();
    }
    // SAFETY: the record is the calling thread's own, and the instrumented code vouches for the
    // bytes.
    unsafe {
        streams::event(thread, RuntimeEvent::ExternalWrite, &[p as u64, length]);
        streams::bytes(thread, p.cast(), length);
    }
}

/// As [`__symbiosis_external_write`], unless `callee` is instrumented: then its own log says it.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_fallback_write(
    callee: *const c_void,
    p: *const c_void,
    n: u64,
) {
    if !modules::defines(callee as u64) {
        // SAFETY: passed on.
        unsafe { __symbiosis_external_write(p, n) }
    }
}

/// As [`__symbiosis_fallback_write`], where only a pointer's type says that there are so many bytes:
/// those that cannot be read are left out.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn __symbiosis_pointee_write(
    callee: *const c_void,
    p: *const c_void,
    n: u64,
) {
    // Whether the bytes can be read takes a system call, so it is asked last.
    let is_silent = n == 0 || p.is_null() || tls::recording().is_null();
    if is_silent || modules::defines(callee as u64) {
        return;
    }
    let start = p as u64;
    let Some(end) = start.checked_add(n) else { return };
    let length = (readable_end(start, end) - start).min(n);
    // SAFETY: the bytes can be read.
    unsafe { __symbiosis_external_write(p, length) }
}

/// How far memory from `start` on can be read, up to `end`.
fn readable_end(start: u64, end: u64) -> u64 {
    const PAGE: u64 = 4096;
    let mut page = start & !(PAGE - 1);
    while page < end {
        if !sys::is_readable(page) {
            return page.max(start);
        }
        page += PAGE;
    }
    end
}
