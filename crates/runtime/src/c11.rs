//! C11's `mtx_`, `cnd_` and `call_once`: in glibc they reach the pthread functions inside of libc,
//! where nothing can be interposed. Their objects have the same layout; their results are logged
//! as the pthread functions would have given them.

use crate::emulate::{self, Limit};
use crate::layout::{RuntimeEvent, SyncOp};
use crate::real;
use crate::schedule;
use crate::streams;
use crate::sync::{Call, around, around_once, lock_mutex, unlock_mutex};
use crate::sys;
use crate::tls;
use core::ffi::{c_int, c_void};

type P = *mut c_void;
type Time = *const c_void;

const THRD_SUCCESS: c_int = 0;
const THRD_BUSY: c_int = 1;
const THRD_ERROR: c_int = 2;
const THRD_NOMEM: c_int = 3;
const THRD_TIMEDOUT: c_int = 4;

/// The `errno` that stands for a C11 result.
fn as_errno(result: c_int) -> c_int {
    match result {
        THRD_SUCCESS => 0,
        THRD_BUSY => sys::EBUSY,
        THRD_NOMEM => sys::ENOMEM,
        THRD_TIMEDOUT => sys::ETIMEDOUT,
        _ => sys::EINVAL,
    }
}

/// The C11 result that stands for an `errno`.
fn as_result(errno: c_int) -> c_int {
    match errno {
        0 => THRD_SUCCESS,
        sys::EBUSY => THRD_BUSY,
        sys::ENOMEM => THRD_NOMEM,
        sys::ETIMEDOUT => THRD_TIMEDOUT,
        _ => THRD_ERROR,
    }
}

/// As in `sync`; `own` gives an `errno`, as what it goes through does.
macro_rules! forward {
    ($call:expr, $name:ident($($argument:expr),*)) => {
        forward!($call, $name($($argument),*), own, own())
    };
    ($call:expr, $name:ident($($argument:expr),*), $own:ident, $through:expr) => {{
        let Some(function) = real::$name() else { return THRD_ERROR };
        let $own = || as_errno(function($($argument),*));
        as_result(around($call, || $through, |errno| errno))
    }};
}

/// C11 counts in UTC.
fn at(until: Time) -> Limit {
    Limit::At(sys::CLOCK_REALTIME, until.cast())
}

interpose! {
    fn mtx_lock(mutex: P) -> c_int {
        let Some(function) = real::mtx_lock() else { return THRD_ERROR };
        as_result(lock_mutex(mutex, || as_errno(function(mutex))))
    }

    fn mtx_trylock(mutex: P) -> c_int {
        forward!(Call::on_mutex(SyncOp::MutexTryLock, mutex), mtx_trylock(mutex))
    }

    fn mtx_timedlock(mutex: P, until: Time) -> c_int {
        let call = Call::on_mutex(SyncOp::MutexTimedLock, mutex);
        let through = |own: &dyn Fn() -> c_int| emulate::lock_mutex(mutex, at(until), own);
        forward!(call, mtx_timedlock(mutex, until), own, through(&own))
    }

    fn mtx_unlock(mutex: P) -> c_int {
        let Some(function) = real::mtx_unlock() else { return THRD_ERROR };
        as_result(unlock_mutex(mutex, || as_errno(function(mutex))))
    }

    fn cnd_init(condition: P) -> c_int {
        schedule::initialised(condition);
        match real::cnd_init() {
            Some(own) => own(condition),
            None => THRD_ERROR,
        }
    }

    fn cnd_wait(condition: P, mutex: P) -> c_int {
        let call = Call { second: mutex, ..Call::on(SyncOp::CondWait, condition) };
        let through = |own: &dyn Fn() -> c_int| {
            emulate::wait_condition(condition, mutex, Limit::None, own)
        };
        forward!(call, cnd_wait(condition, mutex), own, through(&own))
    }

    fn cnd_timedwait(condition: P, mutex: P, until: Time) -> c_int {
        let call = Call { second: mutex, ..Call::on(SyncOp::CondTimedWait, condition) };
        let through = |own: &dyn Fn() -> c_int| {
            emulate::wait_condition(condition, mutex, at(until), own)
        };
        forward!(call, cnd_timedwait(condition, mutex, until), own, through(&own))
    }

    fn cnd_signal(condition: P) -> c_int {
        let call = Call::on(SyncOp::CondSignal, condition);
        forward!(call, cnd_signal(condition), own, emulate::signal(condition, false, own))
    }

    fn cnd_broadcast(condition: P) -> c_int {
        let call = Call::on(SyncOp::CondBroadcast, condition);
        forward!(call, cnd_broadcast(condition), own, emulate::signal(condition, true, own))
    }

    fn call_once(once: P, routine: real::OnceRoutine) {
        if let Some(function) = real::call_once() {
            around_once(once, routine, |routine| {
                function(once, routine);
                0
            });
        }
    }

    fn thrd_exit(result: c_int) {
        let me = tls::recording();
        if !me.is_null() {
            streams::event(me, RuntimeEvent::NonLocal, &[]);
        }
        if let Some(exit) = real::thrd_exit() {
            exit(result);
        }
        sys::trap()
    }
}
