//! Rust's standard library, by what instrumented programs call in its place.

use super::Known;
use trace_format::layout::SyncOp;

const WORD: u64 = 4;

const FUNCTIONS: [Known; 12] = [
    ("__symbiosis_rust_lock", SyncOp::MutexLock, WORD),
    ("__symbiosis_rust_try_lock", SyncOp::MutexTryLock, WORD),
    ("__symbiosis_rust_unlock", SyncOp::MutexUnlock, WORD),
    ("__symbiosis_rust_read", SyncOp::RwReadLock, WORD),
    ("__symbiosis_rust_try_read", SyncOp::RwTryReadLock, WORD),
    ("__symbiosis_rust_end_read", SyncOp::RwUnlock, WORD),
    ("__symbiosis_rust_write", SyncOp::RwWriteLock, WORD),
    ("__symbiosis_rust_try_write", SyncOp::RwTryWriteLock, WORD),
    ("__symbiosis_rust_end_write", SyncOp::RwUnlock, WORD),
    ("__symbiosis_rust_wait", SyncOp::CondWait, WORD),
    ("__symbiosis_rust_notify_one", SyncOp::CondSignal, WORD),
    ("__symbiosis_rust_notify_all", SyncOp::CondBroadcast, WORD),
];

pub(super) fn known(name: &str) -> Option<&'static Known> {
    FUNCTIONS.iter().find(|(other, ..)| *other == name)
}
