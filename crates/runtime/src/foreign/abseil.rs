//! abseil: `Mutex` and `CondVar`, as Debian 12 has them; the namespace in the mangled names has the
//! library's version in it.
//!
//! A thread that waits for a condition of the program's (`Await`, `LockWhen`) looks at it itself each time that
//! another thread has had the mutex. In the library whoever gives the mutex back would look.

// The functions have their mangled names.
#![allow(non_snake_case)]

use super::{Lock, MUTEX, READING, inside, quietly, wake};
use crate::emulate::{self, Limit};
use crate::layout::SyncOp;
use crate::schedule::{self, WaitKind};
use crate::sync::{Call, around};
use crate::sys::{self, TimeSpec};
use crate::tls;
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::null;
use core::sync::atomic::{AtomicU32, Ordering};

type P = *mut c_void;

/// `absl::Duration`, as it is passed: seconds and quarters of a nanosecond.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Duration {
    seconds: i64,
    quarters: u32,
}

/// `absl::Time`: since 1970.
type Time = Duration;
/// The quarters of a duration or time without end.
const INFINITE: u32 = u32::MAX;

mod own {
    use super::{Duration, Evaluate, P, Time};

    super::super::functions! {
        _ZN4absl7debian35Mutex4LockEv(P);
        _ZN4absl7debian35Mutex7TryLockEv(P) -> u8;
        _ZN4absl7debian35Mutex6UnlockEv(P);
        _ZN4absl7debian35Mutex10ReaderLockEv(P);
        _ZN4absl7debian35Mutex13ReaderTryLockEv(P) -> u8;
        _ZN4absl7debian35Mutex12ReaderUnlockEv(P);
        _ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(P, P);
        _ZN4absl7debian39ConditionC1EPFbPvES2_(P, Evaluate, P);
        _ZNK4absl7debian39Condition4EvalEv(P) -> u8;
        _ZN4absl7debian37CondVar4WaitEPNS0_5MutexE(P, P);
        _ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE(P, P, Duration) -> u8;
        _ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE(P, P, Time) -> u8;
        _ZN4absl7debian37CondVar6SignalEv(P);
        _ZN4absl7debian37CondVar9SignalAllEv(P);
    }
}

static MUTUAL: Lock = Lock {
    lock: own::_ZN4absl7debian35Mutex4LockEv,
    try_lock: own::_ZN4absl7debian35Mutex7TryLockEv,
    unlock: own::_ZN4absl7debian35Mutex6UnlockEv,
    operations: MUTEX,
    kind: WaitKind::Mutex,
    yields: false,
    plain: false,
};
static READER: Lock = Lock {
    lock: own::_ZN4absl7debian35Mutex10ReaderLockEv,
    try_lock: own::_ZN4absl7debian35Mutex13ReaderTryLockEv,
    unlock: own::_ZN4absl7debian35Mutex12ReaderUnlockEv,
    operations: READING,
    kind: WaitKind::RwLock,
    yields: false,
    plain: false,
};

/// How often mutexes were given back, by their addresses.
static GIVEN: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

fn given(mutex: P) -> &'static AtomicU32 {
    let [first, ..] = &GIVEN;
    GIVEN.get((mutex as usize >> 3) % GIVEN.len()).unwrap_or(first)
}

/// What a function of a condition is.
type Evaluate = unsafe extern "C" fn(P) -> u8;

/// Another thread has had the mutex since its waiter began to wait.
struct Changed {
    waiter: Cell<u64>,
    changed: Cell<bool>,
}

/// Whoever gives the mutex back looks at its waiters' conditions, and has had it then.
unsafe extern "C" fn has_changed(state: P) -> u8 {
    // SAFETY: the waiter's own, which lives while it waits, and is looked at with the mutex held.
    let state = unsafe { &*state.cast::<Changed>() };
    if state.waiter.get() != tls::thread_slot() as u64 {
        state.changed.set(true);
    }
    u8::from(state.changed.get())
}

/// Room for an `absl::Condition`, which has four words in the versions so far.
type Room = [u64; 16];

/// Gives the mutex back, and takes it again when another thread has had it.
unsafe fn let_others(mutex: P) {
    let before = given(mutex).load(Ordering::Relaxed);
    let free = || {
        if schedule::decides() {
            // SAFETY: the caller vouches for the mutex.
            return unsafe { MUTUAL.release(mutex) };
        }
        0
    };
    let again = || {
        if schedule::decides() {
            let attempt = || match given(mutex).load(Ordering::Relaxed) == before {
                true => sys::EBUSY,
                // SAFETY: as above.
                false => unsafe { MUTUAL.attempt(mutex) },
            };
            // SAFETY: as above.
            return unsafe {
                let own = || MUTUAL.wait(mutex);
                emulate::attempts(WaitKind::Mutex, mutex, null(), Limit::None, attempt, own)
            };
        }
        let state =
            Changed { waiter: Cell::new(tls::thread_slot() as u64), changed: Cell::new(false) };
        let mut room: Room = [0; 16];
        let (Some(make), Some(wait)) = (
            own::_ZN4absl7debian39ConditionC1EPFbPvES2_(),
            own::_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(),
        ) else {
            return sys::ENOSYS;
        };
        let condition = (&raw mut room).cast::<c_void>();
        // SAFETY: as above; the condition and its state live until the call is over.
        quietly(|| unsafe {
            make(condition, has_changed, (&raw const state).cast_mut().cast());
            wait(mutex, condition);
        });
        0
    };
    // SAFETY: as above.
    unsafe {
        around(Call::on(SyncOp::MutexUnlock, mutex), free, |result| result);
        around(Call::on(SyncOp::MutexLock, mutex), again, |result| result);
    }
}

/// Waits with the mutex until a condition of the program's holds.
unsafe fn wait_until(mutex: P, condition: P) {
    let Some(holds) = own::_ZNK4absl7debian39Condition4EvalEv() else { return };
    // SAFETY: the caller vouches for the objects.
    while unsafe { holds(condition) } == 0 {
        // SAFETY: as above.
        unsafe { let_others(mutex) };
    }
}

unsafe fn give(lock: &Lock, mutex: P) {
    given(mutex).fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller vouches for the mutex.
    unsafe { lock.give(mutex) };
}

/// Waits for a condition variable; says whether it took too long.
unsafe fn wait(condition: P, mutex: P, limit: Limit, own: impl FnOnce() -> bool) -> u8 {
    given(mutex).fetch_add(1, Ordering::Relaxed);
    let own = || if own() { sys::ETIMEDOUT } else { 0 };
    // SAFETY: the caller vouches for the objects.
    u8::from(unsafe { MUTUAL.wait_for(condition, mutex, limit, own) } == sys::ETIMEDOUT)
}

fn time_of(time: Duration) -> TimeSpec {
    let time = match time.seconds {
        ..0 => Duration { seconds: 0, quarters: 0 },
        _ => time,
    };
    TimeSpec { seconds: time.seconds, nanoseconds: i64::from(time.quarters / 4) }
}

interpose! {
    fn _ZN4absl7debian35Mutex4LockEv(mutex: P) { MUTUAL.take(mutex) }
    fn _ZN4absl7debian35Mutex7TryLockEv(mutex: P) -> u8 { u8::from(MUTUAL.try_take(mutex)) }
    fn _ZN4absl7debian35Mutex6UnlockEv(mutex: P) { give(&MUTUAL, mutex) }
    fn _ZN4absl7debian35Mutex10ReaderLockEv(mutex: P) { READER.take(mutex) }
    fn _ZN4absl7debian35Mutex13ReaderTryLockEv(mutex: P) -> u8 {
        u8::from(READER.try_take(mutex))
    }
    fn _ZN4absl7debian35Mutex12ReaderUnlockEv(mutex: P) { give(&READER, mutex) }

    fn _ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE(mutex: P, condition: P) {
        if inside() {
            if let Some(function) = own::_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE() {
                function(mutex, condition);
            }
            return;
        }
        wait_until(mutex, condition);
    }
    fn _ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE(mutex: P, condition: P) {
        MUTUAL.take(mutex);
        wait_until(mutex, condition);
    }

    fn _ZN4absl7debian37CondVar4WaitEPNS0_5MutexE(condition: P, mutex: P) {
        wait(condition, mutex, Limit::None, || {
            if let Some(function) = own::_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE() {
                function(condition, mutex);
            }
            false
        });
    }
    fn _ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE(
        condition: P,
        mutex: P,
        time: Duration,
    ) -> u8 {
        let place = time_of(time);
        let limit = match time.quarters {
            INFINITE => Limit::None,
            _ => Limit::In(&raw const place),
        };
        wait(condition, mutex, limit, || {
            own::_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE()
                .is_some_and(|function| function(condition, mutex, time) != 0)
        })
    }
    fn _ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE(
        condition: P,
        mutex: P,
        time: Time,
    ) -> u8 {
        let place = time_of(time);
        let limit = match time.quarters {
            INFINITE => Limit::None,
            _ => Limit::At(sys::CLOCK_REALTIME, &raw const place),
        };
        wait(condition, mutex, limit, || {
            own::_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE()
                .is_some_and(|function| function(condition, mutex, time) != 0)
        })
    }
    fn _ZN4absl7debian37CondVar6SignalEv(condition: P) {
        wake(condition, false, || {
            if let Some(function) = own::_ZN4absl7debian37CondVar6SignalEv() {
                function(condition);
            }
        });
    }
    fn _ZN4absl7debian37CondVar9SignalAllEv(condition: P) {
        wake(condition, true, || {
            if let Some(function) = own::_ZN4absl7debian37CondVar9SignalAllEv() {
                function(condition);
            }
        });
    }
}
