//! Calls that only let time pass, or others run. Under a scheduler they do so in virtual time; see
//! `schedule`. Without one they are the program's own functions.

use crate::clocks;
use crate::emulate;
use crate::real;
use crate::schedule;
use crate::sys::{self, TimeSpec};
use core::ffi::{c_int, c_long, c_uint, c_ulong, c_void};

type P = *mut c_void;
type Time = *const c_void;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// `struct timeval`.
#[repr(C)]
struct TimeValue {
    seconds: c_long,
    microseconds: c_long,
}

/// The nanoseconds of a `struct timespec`; none when it is no valid duration.
unsafe fn duration(time: Time) -> Option<u64> {
    if time.is_null() {
        return None;
    }
    // SAFETY: the caller's pointer is to a time.
    let time = unsafe { *time.cast::<TimeSpec>() };
    if time.seconds < 0 { None } else { time.nanoseconds() }
}

/// Sleeps; false when the program's own function has to.
fn sleep_for(nanoseconds: Option<u64>) -> bool {
    schedule::active() && nanoseconds.is_some_and(emulate::sleep)
}

unsafe fn until(clock: c_int, flags: c_int, time: Time) -> Option<u64> {
    // SAFETY: the caller's pointer is to a time.
    let time = unsafe { duration(time)? };
    if flags & sys::TIMER_ABSTIME == 0 {
        return Some(time);
    }
    Some(time.saturating_sub(clocks::now(clock)))
}

interpose! {
    fn sched_yield() -> c_int {
        if schedule::give_way() {
            return 0;
        }
        let Some(function) = real::sched_yield() else { return 0 };
        function()
    }

    fn pthread_yield() -> c_int {
        if schedule::give_way() {
            return 0;
        }
        let Some(function) = real::sched_yield() else { return 0 };
        function()
    }

    fn thrd_yield() {
        if !schedule::give_way()
            && let Some(function) = real::thrd_yield()
        {
            function();
        }
    }

    fn usleep(microseconds: c_uint) -> c_int {
        if sleep_for(Some(u64::from(microseconds) * MICROSECOND)) {
            return 0;
        }
        let Some(function) = real::usleep() else { return 0 };
        function(microseconds)
    }

    fn sleep(seconds: c_uint) -> c_uint {
        if sleep_for(Some(u64::from(seconds) * SECOND)) {
            return 0;
        }
        let Some(function) = real::sleep() else { return 0 };
        function(seconds)
    }

    fn nanosleep(time: Time, left: P) -> c_int {
        if schedule::active() && sleep_for(duration(time)) {
            return 0;
        }
        let Some(function) = real::nanosleep() else { return 0 };
        function(time, left)
    }

    fn clock_nanosleep(clock: c_int, flags: c_int, time: Time, left: P) -> c_int {
        if schedule::active() && sleep_for(until(clock, flags, time)) {
            return 0;
        }
        let Some(function) = real::clock_nanosleep() else { return sys::ENOSYS };
        function(clock, flags, time, left)
    }

    fn thrd_sleep(time: Time, left: P) -> c_int {
        if schedule::active() && sleep_for(duration(time)) {
            return 0;
        }
        let Some(function) = real::thrd_sleep() else { return 0 };
        function(time, left)
    }

    fn poll(descriptors: P, count: c_ulong, milliseconds: c_int) -> c_int {
        let only_time = count == 0 && milliseconds >= 0;
        if only_time && sleep_for(Some(milliseconds.unsigned_abs().into()).map(|ms: u64| ms * MILLISECOND)) {
            return 0;
        }
        let Some(function) = real::poll() else {
            sys::set_errno(sys::ENOSYS);
            return -1;
        };
        function(descriptors, count, milliseconds)
    }

    fn select(count: c_int, read: P, write: P, except: P, time: P) -> c_int {
        let only_time = count == 0 && !time.is_null();
        if only_time && schedule::active() {
            let value = &*time.cast::<TimeValue>();
            let nanoseconds = u64::try_from(value.seconds)
                .ok()
                .zip(u64::try_from(value.microseconds).ok())
                .map(|(s, us)| s.saturating_mul(SECOND).saturating_add(us * MICROSECOND));
            if sleep_for(nanoseconds) {
                return 0;
            }
        }
        let Some(function) = real::select() else {
            sys::set_errno(sys::ENOSYS);
            return -1;
        };
        function(count, read, write, except, time)
    }
}
