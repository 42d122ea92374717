//! The synchronisation calls of pthreads: each is a sync point, and is logged before and after, in
//! the calling thread. What blocks is in `emulate` when a scheduler decides.

use crate::avoid;
use crate::emulate::{self, Limit, Use};
use crate::foreign;
use crate::layout::{RuntimeEvent, SyncOp, SyncPoint};
use crate::real;
use crate::schedule;
use crate::streams;
use crate::sys;
use crate::threads::{self, Thread};
use crate::tls;
use core::cell::Cell;
use core::ffi::{c_char, c_int, c_uint, c_void};

type P = *mut c_void;
type Time = *const c_void;

/// What a call is about.
#[derive(Clone, Copy)]
pub struct Call {
    /// Which call.
    pub op: SyncOp,
    /// The object.
    pub object: P,
    /// The mutex of a condition wait, else null.
    pub second: P,
    /// See [`SyncOp`].
    pub argument: u64,
}

impl Call {
    /// A call about one object.
    #[inline]
    pub fn on(op: SyncOp, object: P) -> Self {
        Self { op, object, second: core::ptr::null_mut(), argument: 0 }
    }

    /// A call about a mutex, whose kind is logged.
    ///
    /// # Safety
    ///
    /// It must be a mutex.
    #[inline]
    pub unsafe fn on_mutex(op: SyncOp, mutex: P) -> Self {
        // SAFETY: the caller vouches for the mutex.
        let kind = unsafe { kind_of(mutex) };
        Self { argument: u64::from(kind & PUBLIC_KIND), ..Self::on(op, mutex) }
    }

    /// Is the clock read at the end of the call? What is behind an unlock waits for nothing.
    #[inline]
    fn ends_with_reading(&self) -> bool {
        self.op != SyncOp::MutexUnlock
    }
}

/// The bits of a mutex's kind that are the public constant; the others are internal.
const PUBLIC_KIND: u32 = 3;

/// The kind of a mutex, 0 for an ordinary one.
#[inline]
unsafe fn kind_of(mutex: P) -> u32 {
    // SAFETY: in glibc's x86-64 layout the fifth word is the kind.
    unsafe { mutex.cast::<u32>().add(4).read_volatile() }
}

/// A call: the scheduler, if there is one, decides when it begins; its begin and end are logged.
/// `meaning` turns what it returns into what is logged.
///
/// # Safety
///
/// None beyond that of the call itself.
#[inline]
pub unsafe fn around(
    call: Call,
    work: impl FnOnce() -> c_int,
    meaning: impl FnOnce(c_int) -> c_int,
) -> c_int {
    if foreign::inside() {
        return work();
    }
    schedule::at_point(SyncPoint::Begin, Some(call.op));
    // SAFETY: the caller vouches for the call.
    unsafe { logged(call, work, |result| (meaning(result), call.second)) }
}

/// A call that may begin: its begin and end are logged. `meaning` gives what is logged as its result and as
/// the second address of its end.
///
/// # Safety
///
/// None beyond that of the call itself.
#[inline]
pub unsafe fn logged(
    call: Call,
    work: impl FnOnce() -> c_int,
    meaning: impl FnOnce(c_int) -> (c_int, P),
) -> c_int {
    let work = || {
        let waits = matches!(call.op, SyncOp::CondWait | SyncOp::CondTimedWait);
        if waits {
            avoid::waits();
        }
        let result = work();
        if waits {
            avoid::woken();
        }
        result
    };
    let thread = tls::recording();
    if thread.is_null() {
        return work();
    }
    let (op, object, second) = (call.op as u64, call.object as u64, call.second as u64);
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let begin = [op, object, second, call.argument, sys::tsc()];
        streams::sync_event(thread, RuntimeEvent::SyncBegin, begin);
        let result = work();
        // A fork inside the call (in a once routine) may have stopped the recording.
        let thread = tls::recording();
        if !thread.is_null() {
            let read = call.ends_with_reading();
            let time = if read { sys::tsc() } else { (*thread).sync.time() };
            let (result, second) = meaning(result);
            let end = [op, object, second as u64, i64::from(result) as u64, time];
            streams::sync_event(thread, RuntimeEvent::SyncEnd, end);
        }
        result
    }
}

/// Locks a mutex; `own` is the call of the program's own function.
///
/// A mutex that can be had at once takes one reading of the clock, behind the lock, and an unlock one
/// before it; the two others would say little more (docs/clock.md).
///
/// # Safety
///
/// It must be a mutex, and `own` lock it.
#[inline]
pub unsafe fn lock_mutex(mutex: P, own: impl Fn() -> c_int) -> c_int {
    // SAFETY: the caller vouches for the mutex.
    unsafe {
        if foreign::inside() {
            return emulate::lock_mutex(mutex, Limit::None, own);
        }
        schedule::at_point(SyncPoint::Begin, Some(SyncOp::MutexLock));
        if lock_at_once(mutex) {
            return 0;
        }
        let call = Call::on_mutex(SyncOp::MutexLock, mutex);
        let through = || emulate::lock_mutex(mutex, Limit::None, own);
        logged(call, through, |result| (result, call.second))
    }
}

/// A mutex of an ordinary kind was taken at once.
///
/// # Safety
///
/// The record must be the calling thread's own.
#[inline]
pub unsafe fn log_locked(thread: *mut Thread, mutex: P) {
    let time = sys::tsc_behind_locked();
    // SAFETY: the caller vouches for the record.
    unsafe { streams::short_event(thread, RuntimeEvent::Locked, mutex as u64, time) };
}

/// A mutex of an ordinary kind is about to be given back.
///
/// # Safety
///
/// The record must be the calling thread's own.
#[inline]
pub unsafe fn log_unlocked(thread: *mut Thread, mutex: P) {
    // SAFETY: the caller vouches for the record.
    unsafe {
        let time = sys::loose_tsc().max((*thread).sync.time());
        streams::short_event(thread, RuntimeEvent::Unlocked, mutex as u64, time);
    }
}

/// Locks a mutex of a recorded run if that takes no waiting. Robust mutexes and those that know
/// priorities are left to the program's own call (glibc keeps an unrecoverable one that is tried);
/// for all others a lock that succeeds at once and one that does not wait are the same.
#[inline]
unsafe fn lock_at_once(mutex: P) -> bool {
    let thread = tls::recording();
    if thread.is_null() || schedule::active() {
        return false;
    }
    let Some(function) = real::pthread_mutex_trylock() else { return false };
    // SAFETY: the caller vouches for the mutex, and the record is the calling thread's own.
    unsafe {
        sys::prefetch_to_write(mutex);
        let kind = kind_of(mutex);
        if kind & !PUBLIC_KIND != 0 || function(mutex) != 0 {
            return false;
        }
        if kind == 0 {
            log_locked(thread, mutex);
            return true;
        }
        // A recursive mutex may have been its own all the while: then nothing emptied the store buffer.
        let (op, object) = (SyncOp::MutexLock as u64, mutex as u64);
        let begin = [op, object, 0, u64::from(kind), (*thread).sync.time()];
        streams::sync_event(thread, RuntimeEvent::SyncBegin, begin);
        let end = [op, object, 0, 0, sys::tsc()];
        streams::sync_event(thread, RuntimeEvent::SyncEnd, end);
        true
    }
}

/// Unlocks a mutex; `own` is the call of the program's own function. What is logged before the call says
/// that an ordinary mutex was unlocked: whoever gets it then finds that in the log, whatever ends the
/// process.
///
/// # Safety
///
/// It must be a mutex, and `own` unlock it.
#[inline]
pub unsafe fn unlock_mutex(mutex: P, own: impl FnOnce() -> c_int) -> c_int {
    if foreign::inside() {
        return emulate::unlock(mutex, own);
    }
    schedule::at_point(SyncPoint::Begin, Some(SyncOp::MutexUnlock));
    let thread = tls::recording();
    // SAFETY: the caller vouches for the mutex, and the record is the calling thread's own.
    unsafe {
        if !thread.is_null() && !schedule::active() && kind_of(mutex) == 0 {
            log_unlocked(thread, mutex);
            return own();
        }
        let call = Call::on_mutex(SyncOp::MutexUnlock, mutex);
        logged(call, || emulate::unlock(mutex, own), |result| (result, call.second))
    }
}

/// Passes a call on to the program's own function, or through what has it when a scheduler
/// decides: `own` is then the call of the program's own function.
macro_rules! forward {
    ($call:expr, $name:ident($($argument:expr),*)) => {
        forward!($call, $name($($argument),*), own, own())
    };
    ($call:expr, $name:ident($($argument:expr),*), $own:ident, $through:expr) => {{
        let Some(function) = real::$name() else { return sys::ENOSYS };
        let $own = || function($($argument),*);
        around($call, || $through, |result| result)
    }};
}

/// A time of the default clock.
fn at(until: Time) -> Limit {
    Limit::At(sys::CLOCK_REALTIME, until.cast())
}

interpose! {
    fn pthread_mutex_lock(mutex: P) -> c_int {
        let Some(function) = real::pthread_mutex_lock() else { return sys::ENOSYS };
        lock_mutex(mutex, || function(mutex))
    }

    fn pthread_mutex_trylock(mutex: P) -> c_int {
        forward!(Call::on_mutex(SyncOp::MutexTryLock, mutex), pthread_mutex_trylock(mutex))
    }

    fn pthread_mutex_timedlock(mutex: P, until: Time) -> c_int {
        let call = Call::on_mutex(SyncOp::MutexTimedLock, mutex);
        let limit = at(until);
        let through = |own: &dyn Fn() -> c_int| emulate::lock_mutex(mutex, limit, own);
        forward!(call, pthread_mutex_timedlock(mutex, until), own, through(&own))
    }

    fn pthread_mutex_clocklock(mutex: P, clock: c_int, until: Time) -> c_int {
        let call = Call::on_mutex(SyncOp::MutexTimedLock, mutex);
        let limit = Limit::At(clock, until.cast());
        let through = |own: &dyn Fn() -> c_int| emulate::lock_mutex(mutex, limit, own);
        forward!(call, pthread_mutex_clocklock(mutex, clock, until), own, through(&own))
    }

    fn pthread_mutex_unlock(mutex: P) -> c_int {
        let Some(function) = real::pthread_mutex_unlock() else { return sys::ENOSYS };
        unlock_mutex(mutex, || function(mutex))
    }

    fn pthread_rwlock_rdlock(lock: P) -> c_int {
        let call = Call::on(SyncOp::RwReadLock, lock);
        let through = |own: &dyn Fn() -> c_int| {
            emulate::lock_rwlock(lock, Use::Reading, Limit::None, own)
        };
        forward!(call, pthread_rwlock_rdlock(lock), own, through(&own))
    }

    fn pthread_rwlock_tryrdlock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::RwTryReadLock, lock), pthread_rwlock_tryrdlock(lock))
    }

    fn pthread_rwlock_timedrdlock(lock: P, until: Time) -> c_int {
        let call = Call::on(SyncOp::RwTimedReadLock, lock);
        let through = |own: &dyn Fn() -> c_int| {
            emulate::lock_rwlock(lock, Use::Reading, at(until), own)
        };
        forward!(call, pthread_rwlock_timedrdlock(lock, until), own, through(&own))
    }

    fn pthread_rwlock_clockrdlock(lock: P, clock: c_int, until: Time) -> c_int {
        let call = Call::on(SyncOp::RwTimedReadLock, lock);
        let through = |own: &dyn Fn() -> c_int| {
            emulate::lock_rwlock(lock, Use::Reading, Limit::At(clock, until.cast()), own)
        };
        forward!(call, pthread_rwlock_clockrdlock(lock, clock, until), own, through(&own))
    }

    fn pthread_rwlock_wrlock(lock: P) -> c_int {
        let call = Call::on(SyncOp::RwWriteLock, lock);
        let through = |own: &dyn Fn() -> c_int| {
            emulate::lock_rwlock(lock, Use::Writing, Limit::None, own)
        };
        forward!(call, pthread_rwlock_wrlock(lock), own, through(&own))
    }

    fn pthread_rwlock_trywrlock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::RwTryWriteLock, lock), pthread_rwlock_trywrlock(lock))
    }

    fn pthread_rwlock_timedwrlock(lock: P, until: Time) -> c_int {
        let call = Call::on(SyncOp::RwTimedWriteLock, lock);
        let through = |own: &dyn Fn() -> c_int| {
            emulate::lock_rwlock(lock, Use::Writing, at(until), own)
        };
        forward!(call, pthread_rwlock_timedwrlock(lock, until), own, through(&own))
    }

    fn pthread_rwlock_clockwrlock(lock: P, clock: c_int, until: Time) -> c_int {
        let call = Call::on(SyncOp::RwTimedWriteLock, lock);
        let through = |own: &dyn Fn() -> c_int| {
            emulate::lock_rwlock(lock, Use::Writing, Limit::At(clock, until.cast()), own)
        };
        forward!(call, pthread_rwlock_clockwrlock(lock, clock, until), own, through(&own))
    }

    fn pthread_rwlock_unlock(lock: P) -> c_int {
        let call = Call::on(SyncOp::RwUnlock, lock);
        forward!(call, pthread_rwlock_unlock(lock), own, emulate::unlock(lock, own))
    }

    fn pthread_cond_init(condition: P, attributes: *const c_void) -> c_int {
        schedule::initialised(condition);
        match real::pthread_cond_init() {
            Some(own) => own(condition, attributes),
            None => sys::EINVAL,
        }
    }

    /// `std::condition_variable::condition_variable`.
    fn _ZNSt18condition_variableC1Ev(condition: P) {
        schedule::initialised(condition);
        if let Some(own) = real::_ZNSt18condition_variableC1Ev() {
            own(condition);
        }
    }

    fn pthread_cond_wait(condition: P, mutex: P) -> c_int {
        let call = Call { second: mutex, ..Call::on(SyncOp::CondWait, condition) };
        let through = |own: &dyn Fn() -> c_int| {
            emulate::wait_condition(condition, mutex, Limit::None, own)
        };
        forward!(call, pthread_cond_wait(condition, mutex), own, through(&own))
    }

    fn pthread_cond_timedwait(condition: P, mutex: P, until: Time) -> c_int {
        let call = Call { second: mutex, ..Call::on(SyncOp::CondTimedWait, condition) };
        let through = |own: &dyn Fn() -> c_int| {
            emulate::wait_condition(condition, mutex, at(until), own)
        };
        forward!(call, pthread_cond_timedwait(condition, mutex, until), own, through(&own))
    }

    fn pthread_cond_clockwait(condition: P, mutex: P, clock: c_int, until: Time) -> c_int {
        let call = Call { second: mutex, ..Call::on(SyncOp::CondTimedWait, condition) };
        let through = |own: &dyn Fn() -> c_int| {
            emulate::wait_condition(condition, mutex, Limit::At(clock, until.cast()), own)
        };
        forward!(call, pthread_cond_clockwait(condition, mutex, clock, until), own, through(&own))
    }

    fn pthread_cond_signal(condition: P) -> c_int {
        let call = Call::on(SyncOp::CondSignal, condition);
        forward!(call, pthread_cond_signal(condition), own, emulate::signal(condition, false, own))
    }

    fn pthread_cond_broadcast(condition: P) -> c_int {
        let call = Call::on(SyncOp::CondBroadcast, condition);
        let through = |own: &dyn Fn() -> c_int| emulate::signal(condition, true, own);
        forward!(call, pthread_cond_broadcast(condition), own, through(&own))
    }

    fn pthread_barrier_init(barrier: P, attributes: *const c_void, count: c_uint) -> c_int {
        let call = Call { argument: u64::from(count), ..Call::on(SyncOp::BarrierInit, barrier) };
        forward!(call, pthread_barrier_init(barrier, attributes, count))
    }

    fn pthread_barrier_wait(barrier: P) -> c_int {
        let call = Call::on(SyncOp::BarrierWait, barrier);
        forward!(call, pthread_barrier_wait(barrier), own, emulate::wait_barrier(barrier, own))
    }

    fn pthread_spin_lock(lock: P) -> c_int {
        let call = Call::on(SyncOp::SpinLock, lock);
        forward!(call, pthread_spin_lock(lock), own, emulate::lock_spin(lock, own))
    }

    fn pthread_spin_trylock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::SpinTryLock, lock), pthread_spin_trylock(lock))
    }

    fn pthread_spin_unlock(lock: P) -> c_int {
        let call = Call::on(SyncOp::SpinUnlock, lock);
        forward!(call, pthread_spin_unlock(lock), own, emulate::unlock(lock, own))
    }

    fn pthread_once(once: P, routine: real::OnceRoutine) -> c_int {
        let Some(function) = real::pthread_once() else { return sys::ENOSYS };
        around_once(once, routine, |routine| function(once, routine))
    }
}

/// A call that runs a once routine unless that has been done; what is logged says whether it did.
///
/// # Safety
///
/// As for `pthread_once`.
pub unsafe fn around_once(
    once: P,
    routine: real::OnceRoutine,
    own: impl Fn(real::OnceRoutine) -> c_int,
) -> c_int {
    let ran = Cell::new(false);
    // SAFETY: the caller vouches for the object and the routine.
    unsafe {
        let work = || {
            let (result, did) = threads::noting_once(routine, &own);
            ran.set(did);
            result
        };
        let meaning = |_| c_int::from(ran.get());
        around(Call::on(SyncOp::Once, once), || emulate::once(once, work), meaning)
    }
}

/// A semaphore function that this libc does not have.
fn missing() -> c_int {
    sys::set_errno(sys::ENOSYS);
    -1
}

macro_rules! forward_semaphore {
    ($call:expr, $name:ident($($argument:expr),*)) => {
        forward_semaphore!($call, $name($($argument),*), own, own())
    };
    ($call:expr, $name:ident($($argument:expr),*), $own:ident, $through:expr) => {{
        let Some(function) = real::$name() else { return missing() };
        let $own = || function($($argument),*);
        around($call, || $through, |result| result)
    }};
}

interpose! {
    fn sem_init(semaphore: P, shared: c_int, value: c_uint) -> c_int {
        let call = Call { argument: u64::from(value), ..Call::on(SyncOp::SemInit, semaphore) };
        forward_semaphore!(call, sem_init(semaphore, shared, value))
    }

    fn sem_open(name: *const c_char, flags: c_int, mode: c_uint, value: c_uint) -> P {
        let Some(function) = real::sem_open() else {
            missing();
            return core::ptr::null_mut();
        };
        let semaphore = function(name, flags, mode, value);
        let mut now: c_int = 0;
        if !semaphore.is_null()
            && let Some(value) = real::sem_getvalue()
            && sys::keeping_errno(|| value(semaphore, &mut now)) == 0
        {
            // What it is worth to this process: it may have been there before.
            let argument = u64::from(now.unsigned_abs());
            around(Call { argument, ..Call::on(SyncOp::SemInit, semaphore) }, || 0, |result| result);
        }
        semaphore
    }

    fn sem_wait(semaphore: P) -> c_int {
        let call = Call::on(SyncOp::SemWait, semaphore);
        let through = |own: &dyn Fn() -> c_int| {
            emulate::wait_semaphore(semaphore, Limit::None, own)
        };
        forward_semaphore!(call, sem_wait(semaphore), own, through(&own))
    }

    fn sem_trywait(semaphore: P) -> c_int {
        forward_semaphore!(Call::on(SyncOp::SemTryWait, semaphore), sem_trywait(semaphore))
    }

    fn sem_timedwait(semaphore: P, until: Time) -> c_int {
        let call = Call::on(SyncOp::SemTimedWait, semaphore);
        let through = |own: &dyn Fn() -> c_int| {
            emulate::wait_semaphore(semaphore, at(until), own)
        };
        forward_semaphore!(call, sem_timedwait(semaphore, until), own, through(&own))
    }

    fn sem_clockwait(semaphore: P, clock: c_int, until: Time) -> c_int {
        let call = Call::on(SyncOp::SemTimedWait, semaphore);
        let through = |own: &dyn Fn() -> c_int| {
            emulate::wait_semaphore(semaphore, Limit::At(clock, until.cast()), own)
        };
        forward_semaphore!(call, sem_clockwait(semaphore, clock, until), own, through(&own))
    }

    fn sem_post(semaphore: P) -> c_int {
        let call = Call::on(SyncOp::SemPost, semaphore);
        forward_semaphore!(call, sem_post(semaphore), own, emulate::unlock(semaphore, own))
    }
}
