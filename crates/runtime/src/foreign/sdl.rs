//! SDL 2: its spin locks. (Its mutexes, conditions and semaphores are made of those of pthreads.)

// The functions have the library's names.
#![allow(non_snake_case)]

use super::Lock;
use crate::layout::SyncOp;
use crate::schedule::WaitKind;
use core::ffi::{c_int, c_void};

type P = *mut c_void;

mod own {
    use super::P;

    super::super::functions! {
        SDL_AtomicLock(P);
        SDL_AtomicTryLock(P) -> u8;
        SDL_AtomicUnlock(P);
    }
}

static SPIN: Lock = Lock {
    lock: own::SDL_AtomicLock,
    try_lock: own::SDL_AtomicTryLock,
    unlock: own::SDL_AtomicUnlock,
    operations: [SyncOp::SpinLock, SyncOp::SpinTryLock, SyncOp::SpinUnlock],
    kind: WaitKind::Spin,
    yields: false,
    plain: false,
};

interpose! {
    fn SDL_AtomicLock(lock: P) { SPIN.take(lock) }
    fn SDL_AtomicTryLock(lock: P) -> c_int { c_int::from(SPIN.try_take(lock)) }
    fn SDL_AtomicUnlock(lock: P) { SPIN.give(lock) }
}
