//! Who waits for a condition of Rust's library, and who is woken: exactly one thread by a notification of one, and one
//! that waited already.
//!
//! A waiting thread stands in a list until somebody takes it out. The lists are locked for some instructions at a
//! time, and only by threads that wait and notify.

use super::rust::{lock_word, unlock_word};
use crate::sys::{self, TimeSpec};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::ptr::{from_mut, null_mut};
use core::sync::atomic::{AtomicU32, Ordering};

type P = *mut c_void;

/// Conditions share lists by their addresses.
const ROWS: usize = 64;
/// Condition variables are at least so many bytes.
const CONDITION_SIZE: usize = 4;
const WOKEN: u32 = 1;

/// A thread that waits; lies on its stack. Linked into a list only while the thread is in [`wait`].
struct Waiter {
    condition: P,
    next: *mut Waiter,
    /// 0 until the thread was taken out of the list by another one.
    woken: AtomicU32,
}

/// A list of waiting threads, the one that waits longest first.
struct Row {
    lock: AtomicU32,
    first: UnsafeCell<*mut Waiter>,
}

// SAFETY: the list is only touched by who has the lock.
unsafe impl Sync for Row {}

static TABLE: [Row; ROWS] =
    [const { Row { lock: AtomicU32::new(0), first: UnsafeCell::new(null_mut()) } }; ROWS];

impl Row {
    fn of(condition: P) -> &'static Self {
        &TABLE[condition.addr() / CONDITION_SIZE % ROWS]
    }

    /// Does something with the list's first pointer that nobody else does meanwhile.
    fn locked<R>(&self, work: impl FnOnce(&mut *mut Waiter) -> R) -> R {
        lock_word(&self.lock);
        // SAFETY: the lock is held, and `work` keeps no reference.
        let result = work(unsafe { &mut *self.first.get() });
        unlock_word(&self.lock);
        result
    }
}

/// Takes the first waiter out of the list for which `wanted` holds; null if there is none.
///
/// # Safety
///
/// The list is locked, so that all in it are alive.
unsafe fn take(first: &mut *mut Waiter, wanted: impl Fn(*mut Waiter) -> bool) -> *mut Waiter {
    let mut link: *mut *mut Waiter = first;
    // SAFETY: links and waiters of a locked list are alive.
    unsafe {
        while !(*link).is_null() && !wanted(*link) {
            link = &raw mut (**link).next;
        }
        let found = *link;
        if !found.is_null() {
            *link = (*found).next;
        }
        found
    }
}

/// Waits for the condition: `free` gives the mutex back once the thread can be found. 0, or `ETIMEDOUT` when the time,
/// null for none, has come (as [`sys::futex_wait_until`] has it).
///
/// # Safety
///
/// The time is null or readable.
pub unsafe fn wait(
    condition: P,
    (operation, time): (c_int, *const TimeSpec),
    free: impl FnOnce(),
) -> c_int {
    let mut waiter = Waiter { condition, next: null_mut(), woken: AtomicU32::new(0) };
    let own = from_mut(&mut waiter);
    let row = Row::of(condition);
    // SAFETY: the waiter is alive until it is out of the list, and only who has the lock changes its link. Where another
    // thread has taken it out, that one touches nothing of it behind the store to `woken`.
    unsafe {
        row.locked(|first| {
            let mut link: *mut *mut Waiter = first;
            while !(*link).is_null() {
                link = &raw mut (**link).next;
            }
            *link = own;
        });
        free();
        let woken = || (*own).woken.load(Ordering::Acquire) == WOKEN;
        while !woken() {
            let slept = || sys::futex_wait_until(&(*own).woken, operation, 0, time);
            if sys::keeping_errno(slept) != sys::ETIMEDOUT {
                continue;
            }
            if row.locked(|first| !take(first, |other| other == own).is_null()) {
                return sys::ETIMEDOUT;
            }
            // Somebody has just taken this thread out, and is about to say so.
            core::hint::spin_loop();
        }
    }
    0
}

/// Takes all waiters out of the list for which `wanted` holds, and gives the first of them: each is linked to the one that
/// waits less long.
///
/// # Safety
///
/// The list is locked, so that all in it are alive.
unsafe fn take_all(first: &mut *mut Waiter, wanted: impl Fn(*mut Waiter) -> bool) -> *mut Waiter {
    let mut all = null_mut();
    let mut last: *mut *mut Waiter = &raw mut all;
    // SAFETY: the list is locked. A waiter that was taken out is alive until it is told that it is woken.
    unsafe {
        loop {
            let found = take(first, &wanted);
            *last = found;
            if found.is_null() {
                return all;
            }
            last = &raw mut (*found).next;
        }
    }
}

/// Wakes the thread that waits longest for the condition, or all that do; says whether there was one. Who waits again is
/// not woken again: one notification ends a wait that began before it, and no other.
pub fn notify(condition: P, all: bool) -> bool {
    // SAFETY: the list is locked.
    let mut waiter = Row::of(condition).locked(|first| unsafe {
        let wanted = |waiter: *mut Waiter| (*waiter).condition == condition;
        if all {
            return take_all(first, wanted);
        }
        let found = take(first, wanted);
        if !found.is_null() {
            (*found).next = null_mut();
        }
        found
    });
    let woke = !waiter.is_null();
    while !waiter.is_null() {
        // SAFETY: nobody else has the waiter any more, and its thread goes on only from the store on: its word is only
        // named to the kernel behind that.
        let (next, word) = unsafe {
            let found = ((*waiter).next, &raw const (*waiter).woken);
            (*found.1).store(WOKEN, Ordering::Release);
            found
        };
        sys::keeping_errno(|| sys::futex_wake_at(word, 1));
        waiter = next;
    }
    woke
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::thread;
    use std::time::Duration;

    /// `FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG`.
    const WAIT: c_int = 9 | 128;

    fn condition(of: &u32) -> P {
        core::ptr::from_ref(of).cast_mut().cast()
    }

    #[test]
    fn who_does_not_sleep_yet_takes_no_other_threads_wake_up() {
        let word = 0;
        let (freed, woken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    // The second one is notified before it sleeps.
                    let free = || {
                        freed.fetch_add(1, Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(100));
                    };
                    // SAFETY: there is no time.
                    assert_eq!(unsafe { wait(condition(&word), (WAIT, null()), free) }, 0);
                    woken.fetch_add(1, Ordering::SeqCst);
                });
            }
            while freed.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
            assert!(notify(condition(&word), false));
            thread::sleep(Duration::from_millis(300));
            assert_eq!(woken.load(Ordering::SeqCst), 1);
            assert!(notify(condition(&word), true));
        });
        assert_eq!(woken.load(Ordering::SeqCst), 2);
        assert!(!notify(condition(&word), true), "nobody is left");
    }

    #[test]
    fn a_notification_of_all_ends_no_wait_that_began_behind_it() {
        const THREADS: usize = 3;
        const NOTIFICATIONS: usize = 300;
        let word = 0;
        let (over, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
        let most = thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while !over.load(Ordering::SeqCst) {
                        let free = || {
                            begun.fetch_add(1, Ordering::SeqCst);
                        };
                        // SAFETY: there is no time.
                        unsafe { wait(condition(&word), (WAIT, null()), free) };
                    }
                });
            }
            let all_wait = |before: usize| {
                while begun.load(Ordering::SeqCst) < before + THREADS {
                    thread::yield_now();
                }
                begun.load(Ordering::SeqCst)
            };
            let mut before = all_wait(0);
            let mut most = 0;
            for _ in 0..NOTIFICATIONS {
                notify(condition(&word), true);
                let waits = all_wait(before);
                most = most.max(waits - before);
                before = waits;
            }
            over.store(true, Ordering::SeqCst);
            notify(condition(&word), true);
            most
        });
        assert_eq!(most, THREADS, "each thread was woken once by each notification");
    }

    #[test]
    fn a_wait_ends_when_its_time_has_come() {
        let word = 0;
        let long_ago = TimeSpec { seconds: 1, nanoseconds: 0 };
        // SAFETY: the time is alive.
        let result = unsafe { wait(condition(&word), (WAIT, &raw const long_ago), || ()) };
        assert_eq!(result, sys::ETIMEDOUT);
        assert!(!notify(condition(&word), false));
    }
}
