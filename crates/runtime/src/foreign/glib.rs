//! GLib's threads: `GMutex`, `GRecMutex`, `GRWLock`, `GCond`, `GOnce`, `GAsyncQueue`, `GThreadPool`.
//! (`GThread` makes its threads with `pthread_create`, and is seen there.)

use super::{
    Lock, MUTEX, READING, WRITING, aloud, functions, inside, once_with_result, quietly, wake,
};
use crate::avoid;
use crate::emulate::Limit;
use crate::layout::{SyncOp, SyncPoint};
use crate::memory;
use crate::schedule::{self, WaitKind};
use crate::sync::{Call, around, log_locked, log_unlocked, logged};
use crate::sys::{self, TimeSpec};
use crate::tls;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

type P = *mut c_void;
type Routine = unsafe extern "C" fn(P) -> P;
type Compare = unsafe extern "C" fn(*const c_void, *const c_void, P) -> c_int;
/// What a thread of a pool does with an item.
type Work = unsafe extern "C" fn(P, P);

mod own {
    use super::{Compare, P, Routine, Work, c_int};

    super::functions! {
        g_mutex_lock(P);
        g_mutex_trylock(P) -> u8;
        g_mutex_unlock(P);
        g_rec_mutex_lock(P);
        g_rec_mutex_trylock(P) -> u8;
        g_rec_mutex_unlock(P);
        g_rw_lock_reader_lock(P);
        g_rw_lock_reader_trylock(P) -> u8;
        g_rw_lock_reader_unlock(P);
        g_rw_lock_writer_lock(P);
        g_rw_lock_writer_trylock(P) -> u8;
        g_rw_lock_writer_unlock(P);
        g_cond_wait(P, P);
        g_cond_wait_until(P, P, i64) -> c_int;
        g_cond_signal(P);
        g_cond_broadcast(P);
        g_once_impl(P, Routine, P) -> P;
        g_async_queue_lock(P);
        g_async_queue_unlock(P);
        g_async_queue_push(P, P);
        g_async_queue_push_unlocked(P, P);
        g_async_queue_push_front(P, P);
        g_async_queue_push_front_unlocked(P, P);
        g_async_queue_push_sorted(P, P, Compare, P);
        g_async_queue_push_sorted_unlocked(P, P, Compare, P);
        g_async_queue_pop(P) -> P;
        g_async_queue_pop_unlocked(P) -> P;
        g_async_queue_try_pop(P) -> P;
        g_async_queue_try_pop_unlocked(P) -> P;
        g_async_queue_timeout_pop(P, u64) -> P;
        g_async_queue_timeout_pop_unlocked(P, u64) -> P;
        g_async_queue_remove(P, P) -> c_int;
        g_async_queue_remove_unlocked(P, P) -> c_int;
        g_thread_pool_new(Work, P, c_int, c_int, P) -> P;
        g_thread_pool_new_full(Work, P, P, c_int, c_int, P) -> P;
        g_thread_pool_push(P, P, P) -> c_int;
        g_thread_pool_free(P, c_int, c_int);
    }
}

static PLAIN: Lock = Lock {
    lock: own::g_mutex_lock,
    try_lock: own::g_mutex_trylock,
    unlock: own::g_mutex_unlock,
    operations: MUTEX,
    kind: WaitKind::Mutex,
    yields: false,
    plain: true,
};
static RECURSIVE: Lock = Lock {
    lock: own::g_rec_mutex_lock,
    try_lock: own::g_rec_mutex_trylock,
    unlock: own::g_rec_mutex_unlock,
    operations: MUTEX,
    kind: WaitKind::Mutex,
    yields: false,
    plain: false,
};
static READER: Lock = Lock {
    lock: own::g_rw_lock_reader_lock,
    try_lock: own::g_rw_lock_reader_trylock,
    unlock: own::g_rw_lock_reader_unlock,
    operations: READING,
    kind: WaitKind::RwLock,
    yields: false,
    plain: false,
};
static WRITER: Lock = Lock {
    lock: own::g_rw_lock_writer_lock,
    try_lock: own::g_rw_lock_writer_trylock,
    unlock: own::g_rw_lock_writer_unlock,
    operations: WRITING,
    kind: WaitKind::RwWrite,
    yields: false,
    plain: false,
};

interpose! {
    fn g_mutex_lock(mutex: P) { PLAIN.take(mutex) }
    fn g_mutex_trylock(mutex: P) -> c_int { c_int::from(PLAIN.try_take(mutex)) }
    fn g_mutex_unlock(mutex: P) { PLAIN.give(mutex) }
    fn g_rec_mutex_lock(mutex: P) { RECURSIVE.take(mutex) }
    fn g_rec_mutex_trylock(mutex: P) -> c_int { c_int::from(RECURSIVE.try_take(mutex)) }
    fn g_rec_mutex_unlock(mutex: P) { RECURSIVE.give(mutex) }
    fn g_rw_lock_reader_lock(lock: P) { READER.take(lock) }
    fn g_rw_lock_reader_trylock(lock: P) -> c_int { c_int::from(READER.try_take(lock)) }
    fn g_rw_lock_reader_unlock(lock: P) { READER.give(lock) }
    fn g_rw_lock_writer_lock(lock: P) { WRITER.take(lock) }
    fn g_rw_lock_writer_trylock(lock: P) -> c_int { c_int::from(WRITER.try_take(lock)) }
    fn g_rw_lock_writer_unlock(lock: P) { WRITER.give(lock) }

    fn g_cond_wait(condition: P, mutex: P) {
        PLAIN.wait_for(condition, mutex, Limit::None, || {
            if let Some(function) = own::g_cond_wait() {
                function(condition, mutex);
            }
            0
        });
    }

    fn g_cond_wait_until(condition: P, mutex: P, until: i64) -> c_int {
        let time = TimeSpec {
            seconds: until.div_euclid(MICROSECONDS),
            nanoseconds: until.rem_euclid(MICROSECONDS) * 1000,
        };
        let limit = Limit::At(sys::CLOCK_MONOTONIC, &raw const time);
        let waited = PLAIN.wait_for(condition, mutex, limit, || {
            let woken = own::g_cond_wait_until().is_some_and(|wait| {
                wait(condition, mutex, until) != 0
            });
            if woken { 0 } else { sys::ETIMEDOUT }
        });
        c_int::from(waited == 0)
    }

    fn g_cond_signal(condition: P) {
        wake(condition, false, || {
            if let Some(function) = own::g_cond_signal() {
                function(condition);
            }
        });
    }

    fn g_cond_broadcast(condition: P) {
        wake(condition, true, || {
            if let Some(function) = own::g_cond_broadcast() {
                function(condition);
            }
        });
    }

    fn g_once_impl(once: P, routine: Routine, argument: P) -> P {
        once_with_result(once, routine, argument, |routine, argument| {
            own::g_once_impl().map_or(null_mut(), |call| call(once, routine, argument))
        })
    }
}

/// Arguments of [`SyncOp::QueuePush`] and [`SyncOp::QueuePop`].
const AT_THE_END: u64 = 0;
const ELSEWHERE: u64 = 1;
const TASK: u64 = 2;
const CERTAIN: u64 = 0;
const PERHAPS: u64 = 1;
const THIS: u64 = 2;
/// Microseconds in a second.
const MICROSECONDS: i64 = 1_000_000;

/// An item is given to a queue, to its end.
unsafe fn push(queue: P, item: P, give: impl FnOnce()) {
    // SAFETY: the caller vouches for the call.
    unsafe { push_as(AT_THE_END, queue, item, give) };
}

/// An item is given to a queue, perhaps in front of others.
unsafe fn push_elsewhere(queue: P, item: P, give: impl FnOnce()) {
    // SAFETY: the caller vouches for the call.
    unsafe { push_as(ELSEWHERE, queue, item, give) };
}

unsafe fn push_as(argument: u64, queue: P, item: P, give: impl FnOnce()) {
    let call = Call { second: item, argument, ..Call::on(SyncOp::QueuePush, queue) };
    let give = || {
        quietly(give);
        0
    };
    // SAFETY: the caller vouches for the call.
    unsafe { around(call, give, |result| result) };
}

/// An item is taken from a queue. `argument` is what is logged.
unsafe fn pop(queue: P, argument: u64, take: impl FnOnce() -> P) -> P {
    if inside() {
        return take();
    }
    schedule::at_point(SyncPoint::Begin, Some(SyncOp::QueuePop));
    let item = Cell::new(null_mut());
    let call = Call { argument, ..Call::on(SyncOp::QueuePop, queue) };
    // SAFETY: the caller vouches for the call.
    unsafe {
        let take = || {
            item.set(quietly(take));
            c_int::from(!item.get().is_null())
        };
        logged(call, take, |taken| (taken, item.get()));
    }
    item.get()
}

/// An item is taken by a thread that has the queue's lock, and gives it back while it waits.
unsafe fn pop_unlocked(
    queue: P,
    argument: u64,
    look: impl FnOnce() -> P,
    take: impl FnOnce() -> P,
) -> P {
    if inside() {
        return take();
    }
    // SAFETY: the caller vouches for the call; the record is the calling thread's own.
    unsafe {
        let there = quietly(look);
        if !there.is_null() {
            return pop(queue, argument, || there);
        }
        let thread = tls::recording();
        if !thread.is_null() {
            log_unlocked(thread, queue);
        }
        let item = pop(queue, argument, take);
        let thread = tls::recording();
        if !thread.is_null() {
            log_locked(thread, queue);
        }
        item
    }
}

/// An item is taken out of a queue wherever it is; says whether it was there.
unsafe fn remove(queue: P, item: P, take: impl FnOnce() -> c_int) -> c_int {
    let mut removed = 0;
    // SAFETY: the caller vouches for the call.
    unsafe {
        pop(queue, THIS, || {
            removed = take();
            if removed == 0 { null_mut() } else { item }
        });
    }
    removed
}

macro_rules! call {
    ($name:ident($($argument:expr),*)) => {
        || own::$name().map_or(null_mut(), |function| function($($argument),*))
    };
}
macro_rules! give {
    ($name:ident($($argument:expr),*)) => {
        || if let Some(function) = own::$name() { function($($argument),*) }
    };
}

interpose! {
    fn g_async_queue_lock(queue: P) {
        let own = || {
            quietly(|| give!(g_async_queue_lock(queue))());
            0
        };
        around(Call::on(SyncOp::MutexLock, queue), own, |result| result);
    }

    fn g_async_queue_unlock(queue: P) {
        let own = || {
            quietly(|| give!(g_async_queue_unlock(queue))());
            0
        };
        around(Call::on(SyncOp::MutexUnlock, queue), own, |result| result);
    }

    fn g_async_queue_push(queue: P, item: P) {
        push(queue, item, give!(g_async_queue_push(queue, item)));
    }

    fn g_async_queue_push_unlocked(queue: P, item: P) {
        push(queue, item, give!(g_async_queue_push_unlocked(queue, item)));
    }

    fn g_async_queue_push_front(queue: P, item: P) {
        push_elsewhere(queue, item, give!(g_async_queue_push_front(queue, item)));
    }

    fn g_async_queue_push_front_unlocked(queue: P, item: P) {
        push_elsewhere(queue, item, give!(g_async_queue_push_front_unlocked(queue, item)));
    }

    fn g_async_queue_push_sorted(queue: P, item: P, compare: Compare, data: P) {
        push_elsewhere(queue, item, give!(g_async_queue_push_sorted(queue, item, compare, data)));
    }

    fn g_async_queue_push_sorted_unlocked(queue: P, item: P, compare: Compare, data: P) {
        push_elsewhere(queue, item, give!(g_async_queue_push_sorted_unlocked(queue, item, compare, data)));
    }

    fn g_async_queue_pop(queue: P) -> P {
        pop(queue, CERTAIN, call!(g_async_queue_pop(queue)))
    }

    fn g_async_queue_try_pop(queue: P) -> P {
        pop(queue, PERHAPS, call!(g_async_queue_try_pop(queue)))
    }

    fn g_async_queue_try_pop_unlocked(queue: P) -> P {
        pop(queue, PERHAPS, call!(g_async_queue_try_pop_unlocked(queue)))
    }

    fn g_async_queue_timeout_pop(queue: P, microseconds: u64) -> P {
        pop(queue, PERHAPS, call!(g_async_queue_timeout_pop(queue, microseconds)))
    }

    fn g_async_queue_pop_unlocked(queue: P) -> P {
        let look = call!(g_async_queue_try_pop_unlocked(queue));
        pop_unlocked(queue, CERTAIN, look, call!(g_async_queue_pop_unlocked(queue)))
    }

    fn g_async_queue_timeout_pop_unlocked(queue: P, microseconds: u64) -> P {
        let look = call!(g_async_queue_try_pop_unlocked(queue));
        let take = call!(g_async_queue_timeout_pop_unlocked(queue, microseconds));
        pop_unlocked(queue, PERHAPS, look, take)
    }

    fn g_async_queue_remove(queue: P, item: P) -> c_int {
        let own = || own::g_async_queue_remove().map_or(0, |remove| remove(queue, item));
        remove(queue, item, own)
    }

    fn g_async_queue_remove_unlocked(queue: P, item: P) -> c_int {
        let own = || own::g_async_queue_remove_unlocked().map_or(0, |remove| remove(queue, item));
        remove(queue, item, own)
    }
}

/// What a pool's threads run, and how often they have.
struct Pool {
    work: Work,
    data: P,
    /// The library's object, known when it is made.
    object: AtomicPtr<c_void>,
    done: AtomicU32,
    next: AtomicPtr<Pool>,
}

/// The latest pool that was made. They stay, as a thread may be on its way out of one when it is freed.
static POOLS: AtomicPtr<Pool> = AtomicPtr::new(null_mut());

/// What stands for the first end of a pool's function; the next ones have the numbers below. Given when it ends,
/// and taken by whoever waits for all of them.
const DONE: P = core::ptr::without_provenance_mut(usize::MAX);

/// Makes a pool whose function is [`run`]; `make` gets the function and its data.
unsafe fn make_pool(work: Work, data: P, make: impl FnOnce(Work, P) -> P) -> P {
    let pool = Pool {
        work,
        data,
        object: AtomicPtr::new(null_mut()),
        done: AtomicU32::new(0),
        next: AtomicPtr::new(null_mut()),
    };
    let Some(pool) = memory::keep(pool) else { return make(work, data) };
    let place = core::ptr::from_ref(pool).cast_mut();
    let object = make(run, place.cast());
    pool.object.store(object, Ordering::Release);
    let mut head = POOLS.load(Ordering::Relaxed);
    loop {
        pool.next.store(head, Ordering::Relaxed);
        match POOLS.compare_exchange_weak(head, place, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return object,
            Err(now) => head = now,
        }
    }
}

/// The pool that was made last of those at an address.
fn pool_at(object: P) -> Option<&'static Pool> {
    // SAFETY: null, or pools that were published and stay.
    let read = |at: &AtomicPtr<Pool>| unsafe { at.load(Ordering::Acquire).as_ref() };
    let mut pools = core::iter::successors(read(&POOLS), |pool| read(&pool.next));
    pools.find(|pool| pool.object.load(Ordering::Acquire) == object)
}

/// A thread of a pool works on an item: it was given before, and whoever waits for the pool waits for its end.
unsafe extern "C" fn run(item: P, pool: P) {
    // SAFETY: `make_pool` passed the pool, which stays; the function and its data are the program's.
    unsafe {
        let pool = &*pool.cast::<Pool>();
        let object = pool.object.load(Ordering::Acquire);
        aloud(|| {
            pop(object, CERTAIN, || item);
            (pool.work)(item, pool.data);
            let before = pool.done.fetch_add(1, Ordering::AcqRel) as usize;
            push_as(TASK, object, DONE.wrapping_byte_sub(before), || {});
            avoid::task_ends();
        });
    }
}

interpose! {
    fn g_thread_pool_new(work: Work, data: P, most: c_int, exclusive: c_int, error: P) -> P {
        let Some(make) = own::g_thread_pool_new() else { return null_mut() };
        make_pool(work, data, |work, data| make(work, data, most, exclusive, error))
    }

    fn g_thread_pool_new_full(
        work: Work,
        data: P,
        free: P,
        most: c_int,
        exclusive: c_int,
        error: P,
    ) -> P {
        let Some(make) = own::g_thread_pool_new_full() else { return null_mut() };
        make_pool(work, data, |work, data| make(work, data, free, most, exclusive, error))
    }

    fn g_thread_pool_push(pool: P, item: P, error: P) -> c_int {
        let mut pushed = 0;
        push_as(TASK, pool, item, || {
            pushed = own::g_thread_pool_push().map_or(0, |push| push(pool, item, error));
        });
        pushed
    }

    fn g_thread_pool_free(pool: P, immediate: c_int, wait: c_int) {
        let Some(free) = own::g_thread_pool_free() else { return };
        let known = pool_at(pool).filter(|_| wait != 0 && !inside());
        let Some(known) = known else { return free(pool, immediate, wait) };
        schedule::at_point(SyncPoint::Begin, Some(SyncOp::QueuePop));
        let own = || {
            quietly(|| free(pool, immediate, wait));
            known.done.load(Ordering::Acquire) as c_int
        };
        logged(Call::on(SyncOp::QueuePop, pool), own, |done| (done, DONE));
    }
}
