//! Readings of the clock in the middle of the program's own code, after every so many bytes of a
//! thread's path (docs/clock.md).
//!
//! They cost the hooks nothing: [`crate::layout::Control::path_limit`] is where the next one is due, when
//! that comes before the end of the window.
//!
//! A hook calls behind the token with which it ended a region, or before any other token that it writes.
//! The reader tells the two apart by what stands before the reading: choices, or something else. A
//! region without choices is not seen by the reader, so no reading is taken at its end, but a token
//! later.

use crate::handlers;
use crate::layout::{DEFAULT_READINGS, STREAM_PIECE, token};
use crate::streams;
use crate::threads::Thread;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{AtomicU64, Ordering};

/// Every window has some.
const MOST: u64 = STREAM_PIECE as u64 / 2;

/// After how many bytes of its path a thread reads the clock; 0 for never.
static EVERY: AtomicU64 = AtomicU64::new(DEFAULT_READINGS);

/// Has all threads read the clock after so many bytes of their paths; 0 for never.
pub fn set(every: u64) {
    EVERY.store(every, Ordering::Relaxed);
}

/// Has a reading taken so many bytes behind `from`, a place in the thread's window.
///
/// # Safety
///
/// The record must be the calling thread's own.
pub unsafe fn plan(thread: *mut Thread, from: u64) {
    let every = EVERY.load(Ordering::Relaxed);
    let next = if every == 0 { u64::MAX } else { from + every.min(MOST) };
    // SAFETY: the caller vouches for the record.
    unsafe { (*thread).next_reading = next }
}

/// Where the thread's path hooks call the runtime: at a reading, or where the window is full.
///
/// # Safety
///
/// The record must be the calling thread's own, and have streams.
pub unsafe fn limit(thread: *mut Thread) -> u64 {
    // SAFETY: the caller vouches for the record.
    unsafe { (*thread).path.limit().min((*thread).next_reading) }
}

/// A hook calls: takes the reading that is due, unless something else is to be done. Says whether the
/// hook can go on.
///
/// # Safety
///
/// The record must be the calling thread's own; a path hook of the thread is running.
pub unsafe fn take(thread: *mut Thread) -> bool {
    // SAFETY: all of it is the calling thread's own.
    unsafe {
        let control = (*thread).control;
        let inside = &raw mut (*thread).gate.inside;
        let at = read_volatile(&raw const (*control).path_next);
        if !has_room(thread) || at < (*thread).next_reading || read_volatile(inside) {
            return false;
        }
        // A signal that comes meanwhile waits for the next hook.
        write_volatile(inside, true);
        if at == (*thread).path.base || read_volatile((at - 1) as *const u8) == token::EMPTY {
            (*thread).next_reading = at + 1;
        } else {
            streams::reading(thread);
            plan(thread, at + 1);
        }
        write_volatile(&raw mut (*control).path_limit, limit(thread));
        write_volatile(inside, false);
        if handlers::waits(thread) {
            write_volatile(&raw mut (*control).path_limit, 0);
        }
        true
    }
}

/// Does an entry fit into the window of the path, with no signal to be handled first? Then there is
/// nothing to do but a reading.
///
/// # Safety
///
/// The record must be the calling thread's own.
pub unsafe fn has_room(thread: *mut Thread) -> bool {
    // SAFETY: the caller vouches for the record.
    unsafe {
        let next = read_volatile(&raw const (*(*thread).control).path_next);
        !(*thread).path.stopped && next < (*thread).path.limit() && !handlers::waits(thread)
    }
}

/// Puts a reading that is due off by a token: the hook that could have taken it was busy otherwise,
/// and the next one stands elsewhere. A window that was emptied is read in anew.
///
/// # Safety
///
/// The record must be the calling thread's own.
pub unsafe fn put_off(thread: *mut Thread) {
    // SAFETY: the caller vouches for the record.
    unsafe {
        let next = read_volatile(&raw const (*(*thread).control).path_next);
        let due = (*thread).next_reading;
        plan(thread, next);
        if due <= next {
            (*thread).next_reading = (*thread).next_reading.min(next + 1);
        } else {
            (*thread).next_reading = (*thread).next_reading.min(due);
        }
    }
}
