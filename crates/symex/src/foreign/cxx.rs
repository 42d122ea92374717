//! Qt, abseil, SDL and libc++.

use super::Known;
use trace_format::layout::SyncOp;

const WORD: u64 = 8;
/// Of Qt 6: an owner, a count and a mutex.
const RECURSIVE_MUTEX: u64 = 24;
/// Of libc++: a mutex, two conditions and a count.
const SHARED_MUTEX: u64 = 144;

const FUNCTIONS: [Known; 38] = [
    // What instrumented code calls for the mutexes that Qt 6 has inline.
    ("__symbiosis_qt_lock", SyncOp::MutexLock, WORD),
    ("__symbiosis_qt_try_lock", SyncOp::MutexTryLock, WORD),
    ("__symbiosis_qt_unlock", SyncOp::MutexUnlock, WORD),
    ("_ZN6QMutex4lockEv", SyncOp::MutexLock, WORD),
    ("_ZN6QMutex7tryLockEi", SyncOp::MutexTryLock, WORD),
    ("_ZN6QMutex6unlockEv", SyncOp::MutexUnlock, WORD),
    ("_ZN11QBasicMutex12lockInternalEi", SyncOp::MutexTryLock, WORD),
    ("_ZN15QRecursiveMutex7tryLockEi", SyncOp::MutexTryLock, RECURSIVE_MUTEX),
    ("_ZN15QRecursiveMutex6unlockEv", SyncOp::MutexUnlock, RECURSIVE_MUTEX),
    ("_ZN14QReadWriteLock11lockForReadEv", SyncOp::RwReadLock, WORD),
    ("_ZN14QReadWriteLock14tryLockForReadEv", SyncOp::RwTryReadLock, WORD),
    ("_ZN14QReadWriteLock14tryLockForReadEi", SyncOp::RwTryReadLock, WORD),
    ("_ZN14QReadWriteLock12lockForWriteEv", SyncOp::RwWriteLock, WORD),
    ("_ZN14QReadWriteLock15tryLockForWriteEv", SyncOp::RwTryWriteLock, WORD),
    ("_ZN14QReadWriteLock15tryLockForWriteEi", SyncOp::RwTryWriteLock, WORD),
    ("_ZN14QReadWriteLock6unlockEv", SyncOp::RwUnlock, WORD),
    ("_ZN14QWaitCondition4waitEP6QMutex14QDeadlineTimer", SyncOp::CondTimedWait, WORD),
    ("_ZN14QWaitCondition4waitEP6QMutexm", SyncOp::CondTimedWait, WORD),
    ("_ZN14QWaitCondition4waitEP14QReadWriteLock14QDeadlineTimer", SyncOp::CondTimedWait, WORD),
    ("_ZN14QWaitCondition4waitEP14QReadWriteLockm", SyncOp::CondTimedWait, WORD),
    ("_ZN14QWaitCondition7wakeOneEv", SyncOp::CondSignal, WORD),
    ("_ZN14QWaitCondition7wakeAllEv", SyncOp::CondBroadcast, WORD),
    ("_ZN10QSemaphoreC1Ei", SyncOp::SemInit, WORD),
    ("_ZN10QSemaphoreC2Ei", SyncOp::SemInit, WORD),
    ("_ZN10QSemaphore7acquireEi", SyncOp::SemWait, WORD),
    ("_ZN10QSemaphore10tryAcquireEi", SyncOp::SemTryWait, WORD),
    ("_ZN10QSemaphore10tryAcquireEii", SyncOp::SemTimedWait, WORD),
    ("_ZN10QSemaphore7releaseEi", SyncOp::SemPost, WORD),
    ("SDL_AtomicLock", SyncOp::SpinLock, 4),
    ("SDL_AtomicTryLock", SyncOp::SpinTryLock, 4),
    ("SDL_AtomicUnlock", SyncOp::SpinUnlock, 4),
    ("_ZNSt3__111__call_onceERVmPvPFvS2_E", SyncOp::Once, WORD),
    ("_ZNSt3__119__shared_mutex_base4lockEv", SyncOp::RwWriteLock, SHARED_MUTEX),
    ("_ZNSt3__119__shared_mutex_base8try_lockEv", SyncOp::RwTryWriteLock, SHARED_MUTEX),
    ("_ZNSt3__119__shared_mutex_base6unlockEv", SyncOp::RwUnlock, SHARED_MUTEX),
    ("_ZNSt3__119__shared_mutex_base11lock_sharedEv", SyncOp::RwReadLock, SHARED_MUTEX),
    ("_ZNSt3__119__shared_mutex_base15try_lock_sharedEv", SyncOp::RwTryReadLock, SHARED_MUTEX),
    ("_ZNSt3__119__shared_mutex_base13unlock_sharedEv", SyncOp::RwUnlock, SHARED_MUTEX),
];

/// As the names of abseil's functions end: its namespace has the version in it.
const ABSEIL: [Known; 9] = [
    ("5Mutex4LockEv", SyncOp::MutexLock, WORD),
    ("5Mutex7TryLockEv", SyncOp::MutexTryLock, WORD),
    ("5Mutex6UnlockEv", SyncOp::MutexUnlock, WORD),
    ("5Mutex10ReaderLockEv", SyncOp::RwReadLock, WORD),
    ("5Mutex13ReaderTryLockEv", SyncOp::RwTryReadLock, WORD),
    ("5Mutex12ReaderUnlockEv", SyncOp::RwUnlock, WORD),
    ("5MutexE", SyncOp::CondWait, WORD),
    ("7CondVar6SignalEv", SyncOp::CondSignal, WORD),
    ("7CondVar9SignalAllEv", SyncOp::CondBroadcast, WORD),
];

pub(super) fn known(name: &str) -> Option<&'static Known> {
    if let Some(rest) = name.strip_prefix("_ZN4absl") {
        // `CondVar::Wait` is the one that a mutex ends.
        let waits = |known: &Known| known.0 != "5MutexE" || rest.contains("7CondVar4Wait");
        return ABSEIL.iter().find(|known| rest.ends_with(known.0) && waits(known));
    }
    FUNCTIONS.iter().find(|(other, ..)| *other == name)
}

/// Members that are all of an object, in the classes of these libraries.
const MEMBERS: [&str; 3] = ["d_ptr", "mu_", "cv_"];

/// `queue.mutex` of `queue.mutex.d_ptr._q_value`.
pub(super) fn owner(name: &str) -> Option<&str> {
    let name = name.strip_suffix("._q_value").unwrap_or(name);
    let (owner, member) = name.rsplit_once('.')?;
    MEMBERS.contains(&member).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_called_by_its_variable() {
        assert_eq!(owner("queue.mutex.d_ptr._q_value"), Some("queue.mutex"));
        assert_eq!(owner("lock_.mu_"), Some("lock_"));
        assert_eq!(owner("queue.mutex"), None);
    }

    #[test]
    fn abseil_is_known_in_every_version() {
        let operation = |name: &str| known(name).map(|(_, operation, _)| *operation);
        for version in ["7debian3", "12lts_20230802", ""] {
            let name = |rest: &str| format!("_ZN4absl{version}{rest}");
            assert_eq!(operation(&name("5Mutex4LockEv")), Some(SyncOp::MutexLock));
            assert_eq!(operation(&name("7CondVar4WaitEPNS0_5MutexE")), Some(SyncOp::CondWait));
            assert_eq!(operation(&name("5Mutex5BlockEPNS0_5MutexE")), None);
        }
    }
}
