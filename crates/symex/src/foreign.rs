//! Synchronisation functions of libraries that have their own: what they are logged as, and how large
//! their objects are. What their effects are is in the log (`runtime::foreign`).

mod cxx;
mod rust;

use trace_format::layout::SyncOp;

/// A name's operation, and the size in bytes of the object that is the first argument.
type Known = (&'static str, SyncOp, u64);

const FUNCTIONS: [Known; 31] = [
    ("g_mutex_lock", SyncOp::MutexLock, 8),
    ("g_mutex_trylock", SyncOp::MutexTryLock, 8),
    ("g_mutex_unlock", SyncOp::MutexUnlock, 8),
    ("g_rec_mutex_lock", SyncOp::MutexLock, 16),
    ("g_rec_mutex_trylock", SyncOp::MutexTryLock, 16),
    ("g_rec_mutex_unlock", SyncOp::MutexUnlock, 16),
    ("g_rw_lock_reader_lock", SyncOp::RwReadLock, 16),
    ("g_rw_lock_reader_trylock", SyncOp::RwTryReadLock, 16),
    ("g_rw_lock_reader_unlock", SyncOp::RwUnlock, 16),
    ("g_rw_lock_writer_lock", SyncOp::RwWriteLock, 16),
    ("g_rw_lock_writer_trylock", SyncOp::RwTryWriteLock, 16),
    ("g_rw_lock_writer_unlock", SyncOp::RwUnlock, 16),
    ("g_cond_wait", SyncOp::CondWait, 16),
    ("g_cond_wait_until", SyncOp::CondTimedWait, 16),
    ("g_cond_signal", SyncOp::CondSignal, 16),
    ("g_cond_broadcast", SyncOp::CondBroadcast, 16),
    ("g_once_impl", SyncOp::Once, 16),
    ("g_async_queue_lock", SyncOp::MutexLock, 0),
    ("g_async_queue_unlock", SyncOp::MutexUnlock, 0),
    ("g_async_queue_push", SyncOp::QueuePush, 0),
    ("g_async_queue_push_unlocked", SyncOp::QueuePush, 0),
    ("g_async_queue_push_front", SyncOp::QueuePush, 0),
    ("g_async_queue_push_front_unlocked", SyncOp::QueuePush, 0),
    ("g_async_queue_pop", SyncOp::QueuePop, 0),
    ("g_async_queue_pop_unlocked", SyncOp::QueuePop, 0),
    ("g_async_queue_try_pop", SyncOp::QueuePop, 0),
    ("g_async_queue_try_pop_unlocked", SyncOp::QueuePop, 0),
    ("g_async_queue_timeout_pop", SyncOp::QueuePop, 0),
    ("g_async_queue_timeout_pop_unlocked", SyncOp::QueuePop, 0),
    ("g_thread_pool_push", SyncOp::QueuePush, 0),
    ("g_thread_pool_free", SyncOp::QueuePop, 0),
];

/// Size in bytes of a mutex that a condition of such a library is waited for with.
const MUTEX: u64 = 8;

fn known(name: &str) -> Option<&'static Known> {
    // Nearly every name that is asked for is none of these.
    match name.as_bytes() {
        [b'g', b'_', ..] => FUNCTIONS.iter().find(|(other, ..)| *other == name),
        [b'_', b'_', b's', ..] => rust::known(name).or_else(|| cxx::known(name)),
        [b'_', b'Z', b'N', ..] | [b'S', b'D', b'L', ..] => cxx::known(name),
        _ => None,
    }
}

/// What a call of the function is logged as.
pub(crate) fn operation(name: &str) -> Option<SyncOp> {
    known(name).map(|(_, operation, _)| *operation)
}

/// How large the lock is, or the object of another kind, that a call of the function is about.
pub(crate) fn size(name: &str, lock: bool) -> Option<u64> {
    let (_, operation, size) = known(name)?;
    match operation {
        SyncOp::CondWait | SyncOp::CondTimedWait if lock => Some((*size).min(MUTEX)),
        _ => Some(*size).filter(|size| *size > 0),
    }
}

/// Does the function give memory that is zeros?
pub(crate) fn gives_zeros(name: &str) -> bool {
    matches!(
        name,
        "g_malloc0"
            | "g_malloc0_n"
            | "g_try_malloc0"
            | "g_try_malloc0_n"
            | "g_slice_alloc0"
            | "g_aligned_alloc0"
    )
}

/// The name of an object that a call of the function is about, without the library's member that is all of it.
pub(crate) fn without_member(function: &str, name: String) -> String {
    match operation(function).and_then(|_| cxx::owner(&name)) {
        Some(owner) => owner.to_owned(),
        None => name,
    }
}

/// Functions whose effects are their events.
pub(crate) fn is_harmless(name: &str) -> bool {
    matches!(
        operation(name),
        Some(
            SyncOp::MutexLock
                | SyncOp::MutexTryLock
                | SyncOp::MutexUnlock
                | SyncOp::RwReadLock
                | SyncOp::RwTryReadLock
                | SyncOp::RwWriteLock
                | SyncOp::RwTryWriteLock
                | SyncOp::RwUnlock
                | SyncOp::SpinLock
                | SyncOp::SpinTryLock
                | SyncOp::SpinUnlock
                | SyncOp::CondTimedWait
        )
    ) || matches!(name, "g_thread_yield" | "g_usleep" | "g_get_monotonic_time" | "g_get_real_time")
}
