//! libc++, LLVM's standard library of C++: `std::call_once`, and `std::shared_mutex`, which it makes of a mutex
//! and two conditions inside of the shared library. (Its other locks and waits are pthread functions.)

use super::{Lock, READING, WRITING, aloud, functions, inside, quietly};
use crate::emulate;
use crate::layout::{ONCE_ALL_ONES, SyncOp, SyncPoint};
use crate::schedule::{self, WaitKind};
use crate::sync::{Call, logged};
use crate::sys;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU64, Ordering};

type P = *mut c_void;
type Routine = unsafe extern "C" fn(P);

mod own {
    use super::{P, Routine, functions};

    functions! {
        _ZNSt3__111__call_onceERVmPvPFvS2_E(P, P, Routine);
        _ZNSt3__119__thread_local_dataEv() -> P;
        _ZNSt3__119__shared_mutex_base4lockEv(P);
        _ZNSt3__119__shared_mutex_base8try_lockEv(P) -> u8;
        _ZNSt3__119__shared_mutex_base6unlockEv(P);
        _ZNSt3__119__shared_mutex_base11lock_sharedEv(P);
        _ZNSt3__119__shared_mutex_base15try_lock_sharedEv(P) -> u8;
        _ZNSt3__119__shared_mutex_base13unlock_sharedEv(P);
    }
}

static WRITER: Lock = Lock {
    lock: own::_ZNSt3__119__shared_mutex_base4lockEv,
    try_lock: own::_ZNSt3__119__shared_mutex_base8try_lockEv,
    unlock: own::_ZNSt3__119__shared_mutex_base6unlockEv,
    operations: WRITING,
    kind: WaitKind::RwWrite,
    yields: false,
    plain: false,
};

static READER: Lock = Lock {
    lock: own::_ZNSt3__119__shared_mutex_base11lock_sharedEv,
    try_lock: own::_ZNSt3__119__shared_mutex_base15try_lock_sharedEv,
    unlock: own::_ZNSt3__119__shared_mutex_base13unlock_sharedEv,
    operations: READING,
    kind: WaitKind::RwLock,
    yields: true,
    plain: false,
};

/// A once routine and whether it has been run.
struct Task {
    routine: Routine,
    argument: P,
    ran: Cell<bool>,
}

unsafe extern "C" fn run(task: P) {
    // SAFETY: `once` made the task, and waits for the end of the call.
    unsafe {
        let task = &*task.cast::<Task>();
        task.ran.set(true);
        aloud(|| (task.routine)(task.argument));
    }
}

/// What libc++ does, for a program that has it as an archive: what is defined here is not taken from there.
unsafe fn run_once(flag: P, task: P) {
    const RUNS: u64 = 1;
    // SAFETY: the caller vouches for the flag, which is a word.
    let state = unsafe { &*flag.cast::<AtomicU64>() };
    loop {
        match state.compare_exchange(0, RUNS, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
                // SAFETY: `once` made the task.
                unsafe { run(task) };
                state.store(u64::MAX, Ordering::Release);
                return;
            }
            Err(RUNS) => sys::yield_now(),
            Err(_) => return,
        }
    }
}

/// Runs the routine unless that has been done. The word at `flag` is 1 while it runs.
unsafe fn once(flag: P, argument: P, routine: Routine) {
    let task = Task { routine, argument, ran: Cell::new(false) };
    let work = || {
        let task = (&raw const task).cast_mut().cast();
        // SAFETY: the task lives until the end of this function.
        quietly(|| unsafe {
            match own::_ZNSt3__111__call_onceERVmPvPFvS2_E() {
                Some(function) => function(flag, task, run),
                None => run_once(flag, task),
            }
        });
        0
    };
    // SAFETY: the caller vouches for the flag and the routine.
    unsafe {
        if inside() {
            work();
            return;
        }
        let call = Call { argument: ONCE_ALL_ONES, ..Call::on(SyncOp::Once, flag) };
        schedule::at_point(SyncPoint::Begin, Some(call.op));
        let meaning = |_| (c_int::from(task.ran.get()), call.second);
        logged(call, || emulate::once(flag, work), meaning);
    }
}

interpose! {
    // The first threads meet at the guard of a variable in there.
    fn _ZNSt3__119__thread_local_dataEv() -> P {
        let own = || own::_ZNSt3__119__thread_local_dataEv().map_or(null_mut(), |own| own());
        quietly(own)
    }
    fn _ZNSt3__111__call_onceERVmPvPFvS2_E(flag: P, argument: P, routine: Routine) {
        once(flag, argument, routine)
    }
    fn _ZNSt3__119__shared_mutex_base4lockEv(lock: P) { WRITER.take(lock) }
    fn _ZNSt3__119__shared_mutex_base8try_lockEv(lock: P) -> u8 {
        u8::from(WRITER.try_take(lock))
    }
    fn _ZNSt3__119__shared_mutex_base6unlockEv(lock: P) { WRITER.give(lock) }
    fn _ZNSt3__119__shared_mutex_base11lock_sharedEv(lock: P) { READER.take(lock) }
    fn _ZNSt3__119__shared_mutex_base15try_lock_sharedEv(lock: P) -> u8 {
        u8::from(READER.try_take(lock))
    }
    fn _ZNSt3__119__shared_mutex_base13unlock_sharedEv(lock: P) { READER.give(lock) }
}
