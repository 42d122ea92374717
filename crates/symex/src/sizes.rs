//! How large the objects of synchronisation are.

use trace_format::layout::SyncOp;

/// Sizes in bytes of glibc's objects on x86-64, which tell a member from the struct around it.
pub(crate) const MUTEX_SIZE: u64 = 40;
pub(crate) const CONDITION_SIZE: u64 = 48;
pub(crate) const SEMAPHORE_SIZE: u64 = 32;
const RWLOCK_SIZE: u64 = 56;
pub(crate) const WORD_SIZE: u64 = 4;

/// How large an object is that the operation is about.
pub(crate) fn object_size(operation: SyncOp) -> u64 {
    match operation {
        SyncOp::CondWait | SyncOp::CondTimedWait | SyncOp::CondSignal | SyncOp::CondBroadcast => {
            CONDITION_SIZE
        }
        SyncOp::SemInit
        | SyncOp::SemWait
        | SyncOp::SemTryWait
        | SyncOp::SemTimedWait
        | SyncOp::SemPost
        | SyncOp::BarrierInit
        | SyncOp::BarrierWait
        | SyncOp::QueuePush
        | SyncOp::QueuePop
        | SyncOp::SocketWrite
        | SyncOp::SocketRead => SEMAPHORE_SIZE,
        SyncOp::RwReadLock
        | SyncOp::RwTryReadLock
        | SyncOp::RwTimedReadLock
        | SyncOp::RwWriteLock
        | SyncOp::RwTryWriteLock
        | SyncOp::RwTimedWriteLock
        | SyncOp::RwUnlock => RWLOCK_SIZE,
        SyncOp::SpinLock
        | SyncOp::SpinTryLock
        | SyncOp::SpinUnlock
        | SyncOp::Once
        | SyncOp::FutexWait
        | SyncOp::FutexWake
        | SyncOp::Panic => WORD_SIZE,
        SyncOp::MutexLock | SyncOp::MutexTryLock | SyncOp::MutexTimedLock | SyncOp::MutexUnlock => {
            MUTEX_SIZE
        }
    }
}

/// How large the object is that a function of the C library is about, by its name; none for functions that are about no such
/// object.
pub(crate) fn size_by_name(function: &str) -> Option<u64> {
    let sizes = [
        ("pthread_mutex_", MUTEX_SIZE),
        ("mtx_", MUTEX_SIZE),
        ("pthread_cond_", CONDITION_SIZE),
        ("cnd_", CONDITION_SIZE),
        ("pthread_rwlock_", RWLOCK_SIZE),
        ("pthread_spin_", WORD_SIZE),
        ("sem_", SEMAPHORE_SIZE),
    ];
    sizes.into_iter().find_map(|(head, size)| function.starts_with(head).then_some(size))
}
