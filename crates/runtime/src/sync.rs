//! The synchronisation calls of pthreads: each is logged before and after, in the calling thread.

use crate::layout::{RuntimeEvent, SyncOp};
use crate::real;
use crate::streams;
use crate::sys;
use crate::tls;
use core::ffi::{c_int, c_uint, c_void};

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
        // SAFETY: in glibc's x86-64 layout the fifth word is the kind; its lowest two bits are the
        // public constant, the others are internal.
        let kind = unsafe { mutex.cast::<u32>().add(4).read_volatile() } & 3;
        Self { argument: u64::from(kind), ..Self::on(op, mutex) }
    }
}

/// Logs a call's begin and end around it. `meaning` turns what it returns into what is logged.
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
    let thread = tls::recording();
    if thread.is_null() {
        return work();
    }
    let (op, object, second) = (call.op as u64, call.object as u64, call.second as u64);
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let begin = [op, object, second, call.argument];
        streams::event(thread, RuntimeEvent::SyncBegin, &begin);
        let result = work();
        // A fork inside the call (in a once routine) may have stopped the recording.
        let thread = tls::recording();
        if !thread.is_null() {
            let end = [op, object, second, i64::from(meaning(result)) as u64];
            streams::event(thread, RuntimeEvent::SyncEnd, &end);
        }
        result
    }
}

macro_rules! forward {
    ($call:expr, $name:ident($($argument:expr),*)) => {{
        let Some(function) = real::$name() else { return sys::ENOSYS };
        around($call, || function($($argument),*), |result| result)
    }};
}

interpose! {
    fn pthread_mutex_lock(mutex: P) -> c_int {
        forward!(Call::on_mutex(SyncOp::MutexLock, mutex), pthread_mutex_lock(mutex))
    }

    fn pthread_mutex_trylock(mutex: P) -> c_int {
        forward!(Call::on_mutex(SyncOp::MutexTryLock, mutex), pthread_mutex_trylock(mutex))
    }

    fn pthread_mutex_timedlock(mutex: P, until: Time) -> c_int {
        let call = Call::on_mutex(SyncOp::MutexTimedLock, mutex);
        forward!(call, pthread_mutex_timedlock(mutex, until))
    }

    fn pthread_mutex_clocklock(mutex: P, clock: c_int, until: Time) -> c_int {
        let call = Call::on_mutex(SyncOp::MutexTimedLock, mutex);
        forward!(call, pthread_mutex_clocklock(mutex, clock, until))
    }

    fn pthread_mutex_unlock(mutex: P) -> c_int {
        forward!(Call::on_mutex(SyncOp::MutexUnlock, mutex), pthread_mutex_unlock(mutex))
    }

    fn pthread_rwlock_rdlock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::RwReadLock, lock), pthread_rwlock_rdlock(lock))
    }

    fn pthread_rwlock_tryrdlock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::RwTryReadLock, lock), pthread_rwlock_tryrdlock(lock))
    }

    fn pthread_rwlock_timedrdlock(lock: P, until: Time) -> c_int {
        forward!(Call::on(SyncOp::RwTimedReadLock, lock), pthread_rwlock_timedrdlock(lock, until))
    }

    fn pthread_rwlock_clockrdlock(lock: P, clock: c_int, until: Time) -> c_int {
        let call = Call::on(SyncOp::RwTimedReadLock, lock);
        forward!(call, pthread_rwlock_clockrdlock(lock, clock, until))
    }

    fn pthread_rwlock_wrlock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::RwWriteLock, lock), pthread_rwlock_wrlock(lock))
    }

    fn pthread_rwlock_trywrlock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::RwTryWriteLock, lock), pthread_rwlock_trywrlock(lock))
    }

    fn pthread_rwlock_timedwrlock(lock: P, until: Time) -> c_int {
        forward!(Call::on(SyncOp::RwTimedWriteLock, lock), pthread_rwlock_timedwrlock(lock, until))
    }

    fn pthread_rwlock_clockwrlock(lock: P, clock: c_int, until: Time) -> c_int {
        let call = Call::on(SyncOp::RwTimedWriteLock, lock);
        forward!(call, pthread_rwlock_clockwrlock(lock, clock, until))
    }

    fn pthread_rwlock_unlock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::RwUnlock, lock), pthread_rwlock_unlock(lock))
    }

    fn pthread_cond_wait(condition: P, mutex: P) -> c_int {
        let call = Call { second: mutex, ..Call::on(SyncOp::CondWait, condition) };
        forward!(call, pthread_cond_wait(condition, mutex))
    }

    fn pthread_cond_timedwait(condition: P, mutex: P, until: Time) -> c_int {
        let call = Call { second: mutex, ..Call::on(SyncOp::CondTimedWait, condition) };
        forward!(call, pthread_cond_timedwait(condition, mutex, until))
    }

    fn pthread_cond_clockwait(condition: P, mutex: P, clock: c_int, until: Time) -> c_int {
        let call = Call { second: mutex, ..Call::on(SyncOp::CondTimedWait, condition) };
        forward!(call, pthread_cond_clockwait(condition, mutex, clock, until))
    }

    fn pthread_cond_signal(condition: P) -> c_int {
        forward!(Call::on(SyncOp::CondSignal, condition), pthread_cond_signal(condition))
    }

    fn pthread_cond_broadcast(condition: P) -> c_int {
        forward!(Call::on(SyncOp::CondBroadcast, condition), pthread_cond_broadcast(condition))
    }

    fn pthread_barrier_init(barrier: P, attributes: *const c_void, count: c_uint) -> c_int {
        let call = Call { argument: u64::from(count), ..Call::on(SyncOp::BarrierInit, barrier) };
        forward!(call, pthread_barrier_init(barrier, attributes, count))
    }

    fn pthread_barrier_wait(barrier: P) -> c_int {
        forward!(Call::on(SyncOp::BarrierWait, barrier), pthread_barrier_wait(barrier))
    }

    fn pthread_spin_lock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::SpinLock, lock), pthread_spin_lock(lock))
    }

    fn pthread_spin_trylock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::SpinTryLock, lock), pthread_spin_trylock(lock))
    }

    fn pthread_spin_unlock(lock: P) -> c_int {
        forward!(Call::on(SyncOp::SpinUnlock, lock), pthread_spin_unlock(lock))
    }

    fn pthread_once(once: P, routine: real::OnceRoutine) -> c_int {
        forward!(Call::on(SyncOp::Once, once), pthread_once(once, routine))
    }
}

/// A semaphore function that this libc does not have.
fn missing() -> c_int {
    sys::set_errno(sys::ENOSYS);
    -1
}

macro_rules! forward_semaphore {
    ($call:expr, $name:ident($($argument:expr),*)) => {{
        let Some(function) = real::$name() else { return missing() };
        around($call, || function($($argument),*), |result| result)
    }};
}

interpose! {
    fn sem_init(semaphore: P, shared: c_int, value: c_uint) -> c_int {
        let call = Call { argument: u64::from(value), ..Call::on(SyncOp::SemInit, semaphore) };
        forward_semaphore!(call, sem_init(semaphore, shared, value))
    }

    fn sem_wait(semaphore: P) -> c_int {
        forward_semaphore!(Call::on(SyncOp::SemWait, semaphore), sem_wait(semaphore))
    }

    fn sem_trywait(semaphore: P) -> c_int {
        forward_semaphore!(Call::on(SyncOp::SemTryWait, semaphore), sem_trywait(semaphore))
    }

    fn sem_timedwait(semaphore: P, until: Time) -> c_int {
        let call = Call::on(SyncOp::SemTimedWait, semaphore);
        forward_semaphore!(call, sem_timedwait(semaphore, until))
    }

    fn sem_clockwait(semaphore: P, clock: c_int, until: Time) -> c_int {
        let call = Call::on(SyncOp::SemTimedWait, semaphore);
        forward_semaphore!(call, sem_clockwait(semaphore, clock, until))
    }

    fn sem_post(semaphore: P) -> c_int {
        forward_semaphore!(Call::on(SyncOp::SemPost, semaphore), sem_post(semaphore))
    }
}
