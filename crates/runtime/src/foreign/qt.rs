//! Qt 5 and 6: `QMutex`, `QRecursiveMutex`, `QReadWriteLock`, `QWaitCondition` and `QSemaphore`, by their
//! mangled names. (`QThread` makes its threads with `pthread_create`, and is seen there.)
//!
//! Qt's own library calls these functions directly, so what it does with its locks inside is not seen. In Qt 6 a
//! `QMutex` is a word that the program's own code takes and gives inline; `instrument::qt` puts calls of the functions
//! here in the place of that. What the word means is what it means to the library.

// The functions have their mangled names.
#![allow(non_snake_case)]

use super::{Lock, MUTEX, READING, WRITING, entries, inside, quietly, wake};
use crate::emulate::{self, Limit};
use crate::layout::SyncOp;
use crate::schedule::WaitKind;
use crate::sync::{Call, around};
use crate::sys::{self, TimeSpec};
use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::ptr::null;
use core::sync::atomic::{AtomicU64, Ordering};

type P = *mut c_void;

/// `QDeadlineTimer`, as it is passed: whole seconds and nanoseconds of the monotonic clock.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Deadline {
    seconds: i64,
    nanoseconds: c_uint,
    kind: c_uint,
}

mod own {
    use super::{Deadline, P, c_int, c_uint, c_ulong};

    super::super::functions! {
        _ZN6QMutex4lockEv(P);
        _ZN6QMutex7tryLockEi(P, c_int) -> u8;
        _ZN6QMutex6unlockEv(P);
        _ZN11QBasicMutex12lockInternalEv(P);
        _ZN11QBasicMutex12lockInternalEi(P, c_int) -> u8;
        _ZN11QBasicMutex14unlockInternalEv(P);
        _ZN15QRecursiveMutex7tryLockEi(P, c_int) -> u8;
        _ZN15QRecursiveMutex6unlockEv(P);
        _ZN14QReadWriteLock11lockForReadEv(P);
        _ZN14QReadWriteLock14tryLockForReadEv(P) -> u8;
        _ZN14QReadWriteLock14tryLockForReadEi(P, c_int) -> u8;
        _ZN14QReadWriteLock12lockForWriteEv(P);
        _ZN14QReadWriteLock15tryLockForWriteEv(P) -> u8;
        _ZN14QReadWriteLock15tryLockForWriteEi(P, c_int) -> u8;
        _ZN14QReadWriteLock6unlockEv(P);
        _ZNK14QReadWriteLock21stateForWaitConditionEv(P) -> c_uint;
        _ZN14QWaitCondition4waitEP6QMutex14QDeadlineTimer(P, P, Deadline) -> u8;
        _ZN14QWaitCondition4waitEP6QMutexm(P, P, c_ulong) -> u8;
        _ZN14QWaitCondition4waitEP14QReadWriteLock14QDeadlineTimer(P, P, Deadline) -> u8;
        _ZN14QWaitCondition4waitEP14QReadWriteLockm(P, P, c_ulong) -> u8;
        _ZN14QWaitCondition7wakeOneEv(P);
        _ZN14QWaitCondition7wakeAllEv(P);
        _ZN10QSemaphoreC1Ei(P, c_int);
        _ZN10QSemaphore7acquireEi(P, c_int);
        _ZN10QSemaphore10tryAcquireEi(P, c_int) -> u8;
        _ZN10QSemaphore10tryAcquireEii(P, c_int, c_int) -> u8;
        _ZN10QSemaphore7releaseEi(P, c_int);
    }
}

unsafe extern "C" fn try_mutex_now(mutex: P) -> u8 {
    // SAFETY: the caller vouches for the mutex.
    own::_ZN6QMutex7tryLockEi().map_or(0, |function| unsafe { function(mutex, 0) })
}

fn try_mutex() -> Option<unsafe extern "C" fn(P) -> u8> {
    Some(try_mutex_now)
}

static MUTUAL: Lock = Lock {
    lock: own::_ZN6QMutex4lockEv,
    try_lock: try_mutex,
    unlock: own::_ZN6QMutex6unlockEv,
    operations: MUTEX,
    kind: WaitKind::Mutex,
    yields: false,
    // It may have been made recursive.
    plain: false,
};
/// The word of a mutex of Qt 6.
const FREE: u64 = 0;
const HELD: u64 = 1;

unsafe fn word<'a>(mutex: P) -> &'a AtomicU64 {
    // SAFETY: the callers' objects are such words.
    unsafe { &*mutex.cast::<AtomicU64>() }
}

unsafe extern "C" fn try_word(mutex: P) -> u8 {
    // SAFETY: the caller vouches for the mutex, as below.
    let word = unsafe { word(mutex) };
    let taken = word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
    u8::from(taken.is_ok())
}

unsafe extern "C" fn lock_word(mutex: P) {
    unsafe {
        if try_word(mutex) == 0
            && let Some(function) = own::_ZN11QBasicMutex12lockInternalEv()
        {
            function(mutex);
        }
    }
}

unsafe extern "C" fn unlock_word(mutex: P) {
    unsafe {
        let free = word(mutex).compare_exchange(HELD, FREE, Ordering::Release, Ordering::Relaxed);
        if free.is_err()
            && let Some(function) = own::_ZN11QBasicMutex14unlockInternalEv()
        {
            function(mutex);
        }
    }
}

unsafe extern "C" fn try_recursive(mutex: P) -> u8 {
    own::_ZN15QRecursiveMutex7tryLockEi().map_or(0, |function| unsafe { function(mutex, 0) })
}

unsafe extern "C" fn lock_recursive(mutex: P) {
    if let Some(function) = own::_ZN15QRecursiveMutex7tryLockEi() {
        unsafe { function(mutex, -1) };
    }
}

static WORD: Lock = Lock {
    lock: || Some(lock_word),
    try_lock: || Some(try_word),
    unlock: || Some(unlock_word),
    operations: MUTEX,
    kind: WaitKind::Mutex,
    yields: false,
    plain: true,
};
static RECURSIVE: Lock = Lock {
    lock: || Some(lock_recursive),
    try_lock: || Some(try_recursive),
    unlock: own::_ZN15QRecursiveMutex6unlockEv,
    operations: MUTEX,
    kind: WaitKind::Mutex,
    yields: false,
    plain: false,
};

/// The mutex that a condition of the program's Qt is waited for with.
fn mutual() -> &'static Lock {
    if own::_ZN6QMutex4lockEv().is_some() { &MUTUAL } else { &WORD }
}

static READER: Lock = Lock {
    lock: own::_ZN14QReadWriteLock11lockForReadEv,
    try_lock: own::_ZN14QReadWriteLock14tryLockForReadEv,
    unlock: own::_ZN14QReadWriteLock6unlockEv,
    operations: READING,
    kind: WaitKind::RwLock,
    yields: true,
    plain: false,
};
static WRITER: Lock = Lock {
    lock: own::_ZN14QReadWriteLock12lockForWriteEv,
    try_lock: own::_ZN14QReadWriteLock15tryLockForWriteEv,
    unlock: own::_ZN14QReadWriteLock6unlockEv,
    operations: WRITING,
    kind: WaitKind::RwWrite,
    yields: false,
    plain: false,
};

/// What `stateForWaitCondition` calls a lock that is taken to read.
const LOCKED_FOR_READ: c_uint = 0;

fn milliseconds(time: u64) -> TimeSpec {
    let (seconds, rest) = (time / 1000, time % 1000);
    TimeSpec { seconds: seconds as i64, nanoseconds: rest as i64 * 1_000_000 }
}

/// Takes a lock within a time; says whether it could.
unsafe fn take_until(lock: &Lock, object: P, time: TimeSpec, own: impl FnOnce() -> u8) -> bool {
    let operation = match lock.kind {
        WaitKind::RwLock => SyncOp::RwTimedReadLock,
        WaitKind::RwWrite => SyncOp::RwTimedWriteLock,
        _ => SyncOp::MutexTimedLock,
    };
    let limit = Limit::In(&raw const time);
    let own = || if quietly(own) != 0 { 0 } else { sys::ETIMEDOUT };
    // SAFETY: the caller vouches for the object.
    unsafe {
        let attempt = || lock.attempt(object);
        let through = || emulate::attempts(lock.kind, object, null(), limit, attempt, own);
        around(Call::on(operation, object), through, |result| result) == 0
    }
}

/// Takes a lock within so many milliseconds, all the time there is if they are negative. `own` is the
/// library's own call.
unsafe fn take_in_time(lock: &Lock, object: P, time: c_int, own: impl FnOnce() -> u8) -> u8 {
    // SAFETY: the caller vouches for the object.
    unsafe {
        match u64::try_from(time) {
            Ok(0) => u8::from(lock.try_take(object)),
            Ok(time) => u8::from(take_until(lock, object, milliseconds(time), own)),
            Err(_) => {
                lock.take(object);
                1
            }
        }
    }
}

/// Waits for a condition with a mutex; `own` is the library's own call.
unsafe fn wait(lock: &Lock, condition: P, object: P, limit: Limit, own: impl FnOnce() -> u8) -> u8 {
    let own = || if own() != 0 { 0 } else { sys::ETIMEDOUT };
    // SAFETY: the caller vouches for the objects.
    u8::from(unsafe { lock.wait_for(condition, object, limit, own) } == 0)
}

/// The side of a lock that its holder has.
unsafe fn side(lock: P) -> &'static Lock {
    // SAFETY: the caller vouches for the lock.
    let state = own::_ZNK14QReadWriteLock21stateForWaitConditionEv()
        .map(|function| unsafe { function(lock) });
    if state == Some(LOCKED_FOR_READ) { &READER } else { &WRITER }
}

/// The time limit of a wait until then; `time` is where it lies meanwhile.
fn until(deadline: Deadline, time: &TimeSpec) -> Limit {
    match deadline.seconds {
        i64::MAX => Limit::None,
        _ => Limit::At(sys::CLOCK_MONOTONIC, &raw const *time),
    }
}

fn time_of(deadline: Deadline) -> TimeSpec {
    TimeSpec { seconds: deadline.seconds, nanoseconds: deadline.nanoseconds.into() }
}

/// The time limit of a wait of so many milliseconds, as above.
fn within(time: c_ulong, place: &TimeSpec) -> Limit {
    match time {
        c_ulong::MAX => Limit::None,
        _ => Limit::In(&raw const *place),
    }
}

/// More units at once are as this many to the model.
const MOST_UNITS: c_int = 1 << 12;

/// Takes units of a semaphore as `operation`, one event for each. `attempt` takes all of them if they are
/// there, `own` waits for them. 0, or `EBUSY` or `ETIMEDOUT`.
unsafe fn take_units(
    (operation, semaphore): (SyncOp, P),
    units: c_int,
    limit: Limit,
    attempt: impl Fn() -> bool,
    own: impl FnOnce() -> c_int,
) -> c_int {
    let through = || {
        let attempt = || if quietly(&attempt) { 0 } else { sys::EBUSY };
        if operation == SyncOp::SemTryWait {
            return attempt();
        }
        let own = || quietly(own);
        // SAFETY: the caller vouches for the semaphore and the time.
        unsafe { emulate::attempts(WaitKind::Semaphore, semaphore, null(), limit, attempt, own) }
    };
    let call = Call::on(operation, semaphore);
    // SAFETY: as above.
    unsafe {
        let result = around(call, through, |result| if result == 0 { 0 } else { -1 });
        if result == 0 && !inside() {
            for _ in 1..units.min(MOST_UNITS) {
                around(call, || 0, |result| result);
            }
        }
        result
    }
}

/// Makes a semaphore.
unsafe fn make(semaphore: P, units: c_int) {
    let make = || {
        if let Some(function) = own::_ZN10QSemaphoreC1Ei() {
            // SAFETY: the caller vouches for the place.
            quietly(|| unsafe { function(semaphore, units) });
        }
        0
    };
    let argument = u64::from(units.unsigned_abs());
    let call = Call { argument, ..Call::on(SyncOp::SemInit, semaphore) };
    // SAFETY: as above.
    unsafe { around(call, make, |result| result) };
}

interpose! {
    fn _ZN6QMutex4lockEv(mutex: P) { MUTUAL.take(mutex) }
    fn _ZN6QMutex6unlockEv(mutex: P) { MUTUAL.give(mutex) }
    fn _ZN6QMutex7tryLockEi(mutex: P, time: c_int) -> u8 {
        let own = || own::_ZN6QMutex7tryLockEi().map_or(0, |function| function(mutex, time));
        take_in_time(&MUTUAL, mutex, time, own)
    }
    fn _ZN11QBasicMutex12lockInternalEi(mutex: P, time: c_int) -> u8 {
        let own =
            || own::_ZN11QBasicMutex12lockInternalEi().map_or(0, |function| function(mutex, time));
        take_in_time(&WORD, mutex, time, own)
    }
    fn _ZN15QRecursiveMutex7tryLockEi(mutex: P, time: c_int) -> u8 {
        let own =
            || own::_ZN15QRecursiveMutex7tryLockEi().map_or(0, |function| function(mutex, time));
        take_in_time(&RECURSIVE, mutex, time, own)
    }
    fn _ZN15QRecursiveMutex6unlockEv(mutex: P) { RECURSIVE.give(mutex) }
    fn _ZN14QReadWriteLock11lockForReadEv(lock: P) { READER.take(lock) }
    fn _ZN14QReadWriteLock14tryLockForReadEv(lock: P) -> u8 { u8::from(READER.try_take(lock)) }
    fn _ZN14QReadWriteLock14tryLockForReadEi(lock: P, time: c_int) -> u8 {
        let own = || {
            own::_ZN14QReadWriteLock14tryLockForReadEi().map_or(0, |function| function(lock, time))
        };
        take_in_time(&READER, lock, time, own)
    }
    fn _ZN14QReadWriteLock12lockForWriteEv(lock: P) { WRITER.take(lock) }
    fn _ZN14QReadWriteLock15tryLockForWriteEv(lock: P) -> u8 { u8::from(WRITER.try_take(lock)) }
    fn _ZN14QReadWriteLock15tryLockForWriteEi(lock: P, time: c_int) -> u8 {
        let own = || {
            own::_ZN14QReadWriteLock15tryLockForWriteEi()
                .map_or(0, |function| function(lock, time))
        };
        take_in_time(&WRITER, lock, time, own)
    }
    fn _ZN14QReadWriteLock6unlockEv(lock: P) { WRITER.give(lock) }

    fn _ZN14QWaitCondition4waitEP6QMutex14QDeadlineTimer(
        condition: P,
        mutex: P,
        deadline: Deadline,
    ) -> u8 {
        let time = time_of(deadline);
        wait(mutual(), condition, mutex, until(deadline, &time), || {
            own::_ZN14QWaitCondition4waitEP6QMutex14QDeadlineTimer()
                .map_or(0, |function| function(condition, mutex, deadline))
        })
    }
    fn _ZN14QWaitCondition4waitEP6QMutexm(condition: P, mutex: P, time: c_ulong) -> u8 {
        let limit = milliseconds(time);
        wait(mutual(), condition, mutex, within(time, &limit), || {
            own::_ZN14QWaitCondition4waitEP6QMutexm()
                .map_or(0, |function| function(condition, mutex, time))
        })
    }
    fn _ZN14QWaitCondition4waitEP14QReadWriteLock14QDeadlineTimer(
        condition: P,
        lock: P,
        deadline: Deadline,
    ) -> u8 {
        let time = time_of(deadline);
        wait(side(lock), condition, lock, until(deadline, &time), || {
            own::_ZN14QWaitCondition4waitEP14QReadWriteLock14QDeadlineTimer()
                .map_or(0, |function| function(condition, lock, deadline))
        })
    }
    fn _ZN14QWaitCondition4waitEP14QReadWriteLockm(condition: P, lock: P, time: c_ulong) -> u8 {
        let limit = milliseconds(time);
        wait(side(lock), condition, lock, within(time, &limit), || {
            own::_ZN14QWaitCondition4waitEP14QReadWriteLockm()
                .map_or(0, |function| function(condition, lock, time))
        })
    }
    fn _ZN14QWaitCondition7wakeOneEv(condition: P) {
        wake(condition, false, || {
            if let Some(function) = own::_ZN14QWaitCondition7wakeOneEv() {
                function(condition);
            }
        });
    }
    fn _ZN14QWaitCondition7wakeAllEv(condition: P) {
        wake(condition, true, || {
            if let Some(function) = own::_ZN14QWaitCondition7wakeAllEv() {
                function(condition);
            }
        });
    }

    fn _ZN10QSemaphoreC1Ei(semaphore: P, units: c_int) { make(semaphore, units) }
    fn _ZN10QSemaphoreC2Ei(semaphore: P, units: c_int) { make(semaphore, units) }
    fn _ZN10QSemaphore7acquireEi(semaphore: P, units: c_int) {
        let own = || {
            if let Some(function) = own::_ZN10QSemaphore7acquireEi() {
                function(semaphore, units);
            }
            0
        };
        let attempt = || {
            own::_ZN10QSemaphore10tryAcquireEi()
                .is_some_and(|function| function(semaphore, units) != 0)
        };
        take_units((SyncOp::SemWait, semaphore), units, Limit::None, attempt, own);
    }
    fn _ZN10QSemaphore10tryAcquireEi(semaphore: P, units: c_int) -> u8 {
        let attempt = || {
            own::_ZN10QSemaphore10tryAcquireEi()
                .is_some_and(|function| function(semaphore, units) != 0)
        };
        let call = (SyncOp::SemTryWait, semaphore);
        u8::from(take_units(call, units, Limit::None, attempt, || sys::EBUSY) == 0)
    }
    fn _ZN10QSemaphore10tryAcquireEii(semaphore: P, units: c_int, time: c_int) -> u8 {
        let limit = milliseconds(u64::try_from(time).unwrap_or(0));
        let (operation, limit) = match time {
            ..0 => (SyncOp::SemWait, Limit::None),
            0 => (SyncOp::SemTryWait, Limit::None),
            _ => (SyncOp::SemTimedWait, Limit::In(&raw const limit)),
        };
        let attempt = || {
            own::_ZN10QSemaphore10tryAcquireEi()
                .is_some_and(|function| function(semaphore, units) != 0)
        };
        let own = || {
            let taken = own::_ZN10QSemaphore10tryAcquireEii()
                .is_some_and(|function| function(semaphore, units, time) != 0);
            if taken { 0 } else { sys::ETIMEDOUT }
        };
        u8::from(take_units((operation, semaphore), units, limit, attempt, own) == 0)
    }
    fn _ZN10QSemaphore7releaseEi(semaphore: P, units: c_int) {
        let call = Call::on(SyncOp::SemPost, semaphore);
        if !inside() {
            for _ in 1..units.min(MOST_UNITS) {
                around(call, || 0, |result| result);
            }
        }
        // All are there when the last event is, so that nobody is seen to take one before.
        let give = || {
            emulate::unlock(semaphore, || {
                if let Some(function) = own::_ZN10QSemaphore7releaseEi() {
                    quietly(|| function(semaphore, units));
                }
                0
            })
        };
        around(call, give, |result| result);
    }
}

entries! {
    fn __symbiosis_qt_lock(mutex: P) { WORD.take(mutex) }
    /// 0, the word of a free mutex, if it was taken.
    fn __symbiosis_qt_try_lock(mutex: P) -> u32 { u32::from(!WORD.try_take(mutex)) }
    fn __symbiosis_qt_unlock(mutex: P) { WORD.give(mutex) }
}
