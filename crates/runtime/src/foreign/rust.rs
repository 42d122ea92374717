//! Rust's standard library: `Mutex`, `RwLock` and `Condvar`, which it makes of words that threads sleep on, and
//! panics.
//!
//! The library's own code is compiled into every program, much of it inline. `instrument::rust` puts calls of
//! the functions here in the place of what takes and gives such a word. What the words mean is what they mean to
//! the library, as far as code that was left as it was looks at them.

use super::waiters;
use super::{Lock, MUTEX, READING, WRITING, entries, wake};
use crate::emulate::Limit;
use crate::layout::SyncOp;
use crate::schedule::WaitKind;
use crate::sync::{Call, around};
use crate::sys::{self, TimeSpec};
use crate::text::Text;
use crate::{noise, panics, tls};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

type P = *mut c_void;

/// A mutex's word.
const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody sleeps.
const CONTENDED: u32 = 2;

/// A reader-writer lock's word: so many readers, or a writer, and whether somebody sleeps.
const READERS: u32 = 0x3fff_ffff;
const WRITER: u32 = READERS;
/// A reader sleeps.
const READER_WAITS: u32 = 1 << 30;
/// A writer sleeps: no further reader gets the lock.
const WRITER_WAITS: u32 = 1 << 31;

/// Of `FUTEX_WAIT_BITSET`: its time is one of the clock of days.
const TIME_OF_DAY: c_int = 256;

unsafe fn word<'a>(object: P) -> &'a AtomicU32 {
    // SAFETY: the callers' objects are such words.
    unsafe { &*object.cast::<AtomicU32>() }
}

unsafe extern "C" fn try_mutex(mutex: P) -> u8 {
    // SAFETY: the caller vouches for the mutex.
    let word = unsafe { word(mutex) };
    let taken = word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
    u8::from(taken.is_ok())
}

unsafe extern "C" fn lock_mutex(mutex: P) {
    // SAFETY: the caller vouches for the mutex.
    lock_word(unsafe { word(mutex) });
}

/// Takes a mutex by its word, asleep while it cannot be had.
pub(super) fn lock_word(word: &AtomicU32) {
    if word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        return;
    }
    while word.swap(CONTENDED, Ordering::Acquire) != FREE {
        sys::keeping_errno(|| sys::futex_wait(word, CONTENDED, None));
    }
}

unsafe extern "C" fn unlock_mutex(mutex: P) {
    // SAFETY: the caller vouches for the mutex.
    unlock_word(unsafe { word(mutex) });
}

/// Gives a mutex back by its word.
pub(super) fn unlock_word(word: &AtomicU32) {
    if word.swap(FREE, Ordering::Release) == CONTENDED {
        sys::keeping_errno(|| sys::futex_wake(word, 1));
    }
}

/// Takes a reader-writer lock when `free` says of its word, without the bits of those who sleep, that it can be.
fn attempt(word: &AtomicU32, free: fn(u32) -> bool, add: u32) -> bool {
    let taken = |state| free(state).then(|| state + add);
    word.fetch_update(Ordering::Acquire, Ordering::Relaxed, taken).is_ok()
}

fn readable(state: u32) -> bool {
    state & WRITER_WAITS == 0 && state & READERS < READERS - 1
}

fn writable(state: u32) -> bool {
    state & READERS == 0
}

/// Takes a reader-writer lock, asleep while it cannot be had.
fn acquire(word: &AtomicU32, free: fn(u32) -> bool, add: u32, waits: u32) {
    while !attempt(word, free, add) {
        let state = word.load(Ordering::Relaxed);
        if free(state) {
            continue;
        }
        let noted = state | waits;
        if word.compare_exchange(state, noted, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            sys::keeping_errno(|| sys::futex_wait(word, noted, None));
        }
    }
}

/// Gives a reader-writer lock back; who slept looks again.
fn release(word: &AtomicU32, holds: u32) {
    let before = word.fetch_sub(holds, Ordering::Release);
    let left = before.wrapping_sub(holds);
    if left & READERS == 0 && left != 0 {
        word.fetch_and(!(READER_WAITS | WRITER_WAITS), Ordering::Relaxed);
        sys::keeping_errno(|| sys::futex_wake(word, i32::MAX.unsigned_abs()));
    }
}

unsafe extern "C" fn try_read(lock: P) -> u8 {
    // SAFETY: the caller vouches for the lock, as below.
    u8::from(attempt(unsafe { word(lock) }, readable, 1))
}

unsafe extern "C" fn read(lock: P) {
    acquire(unsafe { word(lock) }, readable, 1, READER_WAITS);
}

unsafe extern "C" fn end_read(lock: P) {
    release(unsafe { word(lock) }, 1);
}

unsafe extern "C" fn try_write(lock: P) -> u8 {
    u8::from(attempt(unsafe { word(lock) }, writable, WRITER))
}

unsafe extern "C" fn write(lock: P) {
    acquire(unsafe { word(lock) }, writable, WRITER, WRITER_WAITS);
}

unsafe extern "C" fn end_write(lock: P) {
    release(unsafe { word(lock) }, WRITER);
}

static MUTEXES: Lock = Lock {
    lock: || Some(lock_mutex),
    try_lock: || Some(try_mutex),
    unlock: || Some(unlock_mutex),
    operations: MUTEX,
    kind: WaitKind::Mutex,
    yields: false,
    plain: true,
};

static READER_SIDE: Lock = Lock {
    lock: || Some(read),
    try_lock: || Some(try_read),
    unlock: || Some(end_read),
    operations: READING,
    kind: WaitKind::RwLock,
    yields: true,
    plain: false,
};

static WRITER_SIDE: Lock = Lock {
    lock: || Some(write),
    try_lock: || Some(try_write),
    unlock: || Some(end_write),
    operations: WRITING,
    kind: WaitKind::RwWrite,
    yields: false,
    plain: false,
};

/// What a function gives that tries to take a lock: the word as if it had been looked at.
fn seen(taken: bool, otherwise: u32) -> u32 {
    if taken { FREE } else { otherwise }
}

entries! {
    fn __symbiosis_rust_lock(mutex: P) { MUTEXES.take(mutex) }
    fn __symbiosis_rust_try_lock(mutex: P) -> u32 { seen(MUTEXES.try_take(mutex), HELD) }
    fn __symbiosis_rust_unlock(mutex: P) { MUTEXES.give(mutex) }
    fn __symbiosis_rust_read(lock: P) { READER_SIDE.take(lock) }
    fn __symbiosis_rust_try_read(lock: P) -> u32 { seen(READER_SIDE.try_take(lock), WRITER) }
    fn __symbiosis_rust_end_read(lock: P) { READER_SIDE.give(lock) }
    fn __symbiosis_rust_write(lock: P) { WRITER_SIDE.take(lock) }
    fn __symbiosis_rust_try_write(lock: P) -> u32 { seen(WRITER_SIDE.try_take(lock), WRITER) }
    fn __symbiosis_rust_end_write(lock: P) { WRITER_SIDE.give(lock) }
    fn __symbiosis_rust_notify_one(condition: P) {
        wake(condition, false, || notify(condition, 1));
    }
    fn __symbiosis_rust_notify_all(condition: P) {
        wake(condition, true, || notify(condition, i32::MAX.unsigned_abs()));
    }
    fn __symbiosis_rust_wait(condition: P, mutex: P, operation: c_int, time: *const TimeSpec) -> i64 {
        let limit = match operation & TIME_OF_DAY {
            _ if time.is_null() => Limit::None,
            0 => Limit::At(sys::CLOCK_MONOTONIC, time),
            _ => Limit::At(sys::CLOCK_REALTIME, time),
        };
        let own = || wait(condition, mutex, operation, time);
        match MUTEXES.wait_for(condition, mutex, limit, own) {
            0 => 0,
            error => {
                sys::set_errno(error);
                -1
            }
        }
    }
    fn __symbiosis_rust_panic(place: *const Place) { note_panic(place) }
}

/// Wakes one thread or all. Code that was left as it was waits as the library does, for the condition's word to change.
unsafe fn notify(condition: P, threads: u32) {
    if waiters::notify(condition, threads > 1) && threads == 1 {
        return;
    }
    // SAFETY: the caller vouches for the condition.
    let word = unsafe { word(condition) };
    word.fetch_add(1, Ordering::Relaxed);
    sys::keeping_errno(|| sys::futex_wake(word, threads));
}

/// Gives the mutex back, sleeps until somebody wakes this thread, takes the mutex. The library's own condition counts
/// how often it was notified, and a thread that is about to sleep when that happens goes on although another one was
/// woken: nothing in the log tells such a wake-up from one that somebody meant.
unsafe fn wait(condition: P, mutex: P, operation: c_int, time: *const TimeSpec) -> c_int {
    // SAFETY: the caller vouches for the objects.
    unsafe {
        let free = || unlock_mutex(mutex);
        let result = waiters::wait(condition, (operation, time), free);
        lock_mutex(mutex);
        result
    }
}

/// `core::panic::Location`.
#[repr(C)]
pub struct Place {
    file: *const u8,
    length: usize,
    line: u32,
    column: u32,
}

/// A thread panics. Whether the program fails of it shows when it ends.
unsafe fn note_panic(place: *const Place) {
    const LONGEST: usize = 1024;
    let mut message = Text::<2048>::new();
    message.push(b"panicked");
    // SAFETY: the library's description of the place lives as long as the program.
    if let Some(place) = unsafe { place.as_ref() }
        && !place.file.is_null()
        && place.length <= LONGEST
    {
        // SAFETY: as above.
        let file = unsafe { core::slice::from_raw_parts(place.file, place.length) };
        message.push(b" at ").push(file.strip_suffix(b"\0").unwrap_or(file));
        message.push(b":").push_decimal(u64::from(place.line));
        message.push(b":").push_decimal(u64::from(place.column));
    }
    let note = || {
        panics::note(message.as_bytes());
        0
    };
    // SAFETY: the call has no objects, and the record is the calling thread's own.
    unsafe {
        around(Call::on(SyncOp::Panic, core::ptr::null_mut()), note, |result| result);
        let thread = *tls::thread_slot();
        if !thread.is_null() {
            noise::spare(thread);
        }
    }
}
