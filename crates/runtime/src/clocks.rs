//! The clocks that the program reads. Under a scheduler they go forward by its virtual time too.
//! Times of the recorded run are given back (see `inputs`); from then on the thread's clocks go on
//! from there, so that what it computes from several readings, some of them given back and others
//! not, makes sense, and so that a time limit that it computes from an old time is not over yet.

use crate::inputs::{self, Values};
use crate::real;
use crate::schedule;
use crate::sys::{self, TimeSpec};
use crate::tls;
use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::{AtomicI64, Ordering};

type P = *mut c_void;

const MICROSECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000_000;
const MILLION: u64 = 1_000_000;

/// How many clocks can be set.
const CLOCKS: usize = 5;

/// How far a thread's clocks are from those that the others read, in nanoseconds, if it got a time
/// back. Zeros are the state of a new thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offsets([(bool, i64); CLOCKS]);

/// How far the clocks are from the real ones in threads that got no time back themselves.
static OFFSETS: [AtomicI64; CLOCKS] = [const { AtomicI64::new(0) }; CLOCKS];

/// The place of a clock that can be set. The coarse ones are set with the others; clocks of the
/// processor time have none, and virtual time does not count for them.
fn place(clock: c_int) -> Option<usize> {
    Some(match clock {
        sys::CLOCK_REALTIME | 5 => 0,
        sys::CLOCK_MONOTONIC | 6 => 1,
        // CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_TAI
        4 => 2,
        7 => 3,
        11 => 4,
        _ => return None,
    })
}

/// How far the calling thread's clock is set forward, in nanoseconds.
fn offset(clock: c_int) -> i64 {
    let Some(place) = place(clock) else { return 0 };
    // SAFETY: the record is the calling thread's own.
    let own = unsafe {
        let thread = *tls::thread_slot();
        if thread.is_null() { None } else { (*thread).inputs.offsets.0.get(place).copied() }
    };
    match own {
        Some((true, offset)) => offset,
        _ => OFFSETS.get(place).map_or(0, |offset| offset.load(Ordering::Relaxed)),
    }
}

/// What a clock says before it is set.
fn unset(clock: c_int) -> u64 {
    sys::clock(clock).saturating_add(schedule::passed_time())
}

/// The time of a clock, in nanoseconds, as the program sees it.
#[must_use]
pub fn now(clock: c_int) -> u64 {
    unset(clock).saturating_add_signed(offset(clock))
}

/// Sets the calling thread's clock to a time that was given back, in nanoseconds.
fn set(clock: c_int, time: u64) {
    let Some(place) = place(clock) else { return };
    let offset = time.wrapping_sub(unset(clock)).cast_signed();
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        if !thread.is_null()
            && let Some(own) = (*thread).inputs.offsets.0.get_mut(place)
        {
            *own = (true, offset);
        }
    }
    if let Some(all) = OFFSETS.get(place) {
        all.store(offset, Ordering::Relaxed);
    }
}

/// As [`set`] with a time in whole seconds: how far the second has come is not known.
fn set_seconds(clock: c_int, seconds: u64) {
    let now = now(clock);
    if now / SECOND != seconds {
        set(clock, seconds.saturating_mul(SECOND).saturating_add(now % SECOND));
    }
}

/// How many nanoseconds a real time has to be set forward by.
fn ahead(clock: c_int) -> i64 {
    match place(clock) {
        Some(_) => schedule::passed_time().cast_signed().saturating_add(offset(clock)),
        None => 0,
    }
}

/// Seconds and a fraction, `unit` of which make a second, set forward by so many nanoseconds.
fn advanced(seconds: i64, fraction: i64, unit: u64, nanoseconds: i64) -> (i64, i64) {
    let unit = unit.cast_signed();
    let grain = SECOND.cast_signed() / unit;
    let total = fraction.saturating_add(nanoseconds / grain);
    (seconds.saturating_add(total.div_euclid(unit)), total.rem_euclid(unit))
}

/// Sets the two words of a time forward.
unsafe fn advance(time: P, unit: u64, clock: c_int) {
    let ahead = ahead(clock);
    if ahead != 0 && !time.is_null() {
        // SAFETY: the caller's pointer is to a time.
        let [seconds, fraction] = unsafe { &mut *time.cast::<[i64; 2]>() };
        (*seconds, *fraction) = advanced(*seconds, *fraction, unit, ahead);
    }
}

/// Gives back the result of a call, and the time that it wrote, if there was a place for it.
/// `clock` is set, when it is a time.
unsafe fn give_back(
    function: usize,
    caller: u64,
    time: P,
    unit: u64,
    clock: Option<c_int>,
) -> Option<u64> {
    let mut values = Values::of(function, caller)?;
    let result = values.next()?;
    if !time.is_null() {
        let (seconds, fraction) = (values.next()?, values.next()?);
        let read = TimeSpec {
            seconds: seconds.cast_signed(),
            nanoseconds: fraction.wrapping_mul(SECOND / unit).cast_signed(),
        };
        // SAFETY: the caller's pointer is to a time.
        unsafe { *time.cast::<[u64; 2]>() = [seconds, fraction] };
        if let (Some(clock), Some(time)) = (clock, read.nanoseconds()) {
            set(clock, time);
        }
    }
    values.given();
    Some(result)
}

interpose_with_caller! { caller:
    "rdx" fn clock_gettime(clock: c_int, time: P) -> c_int {
        if let Some(result) = give_back(NUMBER, caller, time, SECOND, Some(clock)) {
            return result as c_int;
        }
        let Some(function) = real::clock_gettime() else {
            sys::set_errno(sys::ENOSYS);
            return -1;
        };
        let result = function(clock, time);
        if result == 0 {
            advance(time, SECOND, clock);
        }
        result
    }

    "rdx" fn timespec_get(time: P, base: c_int) -> c_int {
        let clock = (base == 1).then_some(sys::CLOCK_REALTIME);
        if let Some(result) = give_back(NUMBER, caller, time, SECOND, clock) {
            return result as c_int;
        }
        let Some(function) = real::timespec_get() else { return 0 };
        let result = function(time, base);
        if result != 0 {
            advance(time, SECOND, sys::CLOCK_REALTIME);
        }
        result
    }

    "rdx" fn gettimeofday(time: P, zone: P) -> c_int {
        let Some(function) = real::gettimeofday() else { return -1 };
        // For the time zone, which is not given back.
        let result = function(time, zone);
        let clock = Some(sys::CLOCK_REALTIME);
        if let Some(result) = give_back(NUMBER, caller, time, MILLION, clock) {
            return result as c_int;
        }
        if result == 0 {
            advance(time, SECOND / MICROSECOND, sys::CLOCK_REALTIME);
        }
        result
    }

    "rsi" fn time(out: P) -> c_long {
        let clock = sys::CLOCK_REALTIME;
        let given = inputs::result(NUMBER, caller);
        if let Some(seconds) = given {
            set_seconds(clock, seconds);
        } else if ahead(clock) == 0 {
            return match real::time() {
                Some(function) => function(out),
                None => -1,
            };
        }
        let now = given.unwrap_or_else(|| now(clock) / SECOND) as c_long;
        if !out.is_null() {
            *out.cast::<c_long>() = now;
        }
        now
    }

    "rdi" fn clock() -> c_long {
        match (inputs::result(NUMBER, caller), real::clock()) {
            (Some(result), _) => result as c_long,
            (None, Some(function)) => function(),
            (None, None) => -1,
        }
    }

    /// `std::chrono::system_clock::now`.
    "rdi" fn _ZNSt6chrono3_V212system_clock3nowEv() -> i64 {
        let own = real::_ZNSt6chrono3_V212system_clock3nowEv();
        chrono(sys::CLOCK_REALTIME, 1, inputs::result(NUMBER, caller), own)
    }

    /// `std::chrono::steady_clock::now`.
    "rdi" fn _ZNSt6chrono3_V212steady_clock3nowEv() -> i64 {
        let own = real::_ZNSt6chrono3_V212steady_clock3nowEv();
        chrono(sys::CLOCK_MONOTONIC, 1, inputs::result(NUMBER, caller), own)
    }

    /// libc++'s `std::chrono::system_clock::now`.
    "rdi" fn _ZNSt3__16chrono12system_clock3nowEv() -> i64 {
        let own = real::_ZNSt3__16chrono12system_clock3nowEv();
        chrono(sys::CLOCK_REALTIME, MICROSECOND, inputs::result(NUMBER, caller), own)
    }

    /// libc++'s `std::chrono::steady_clock::now`.
    "rdi" fn _ZNSt3__16chrono12steady_clock3nowEv() -> i64 {
        let own = real::_ZNSt3__16chrono12steady_clock3nowEv();
        chrono(sys::CLOCK_MONOTONIC, 1, inputs::result(NUMBER, caller), own)
    }
}

/// What a clock of C++ gives, in units of so many nanoseconds: the recorded time, if there is one, and else
/// what the library's own function says, which asks `clock_gettime`.
unsafe fn chrono(
    clock: c_int,
    unit: u64,
    given: Option<u64>,
    own: Option<unsafe extern "C" fn() -> i64>,
) -> i64 {
    if let Some(time) = given {
        set(clock, time.saturating_mul(unit));
        return time.cast_signed();
    }
    match own {
        // SAFETY: the function takes nothing.
        Some(function) => unsafe { function() },
        None => (now(clock) / unit).cast_signed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_set_forward_and_back() {
        let second = SECOND.cast_signed();
        assert_eq!(advanced(10, 999_999_999, SECOND, 1), (11, 0));
        assert_eq!(advanced(10, 0, SECOND, -1), (9, 999_999_999));
        assert_eq!(advanced(10, 5, SECOND, 3 * second + 7), (13, 12));
        assert_eq!(advanced(10, 999_999, MILLION, 1_000), (11, 0));
        assert_eq!(advanced(10, 0, MILLION, -second), (9, 0));
        assert_eq!(advanced(10, 3, MILLION, 999), (10, 3), "less than a microsecond");
    }

    #[test]
    fn clocks_of_the_processor_time_are_not_set() {
        let before = now(2);
        set(2, 7);
        assert!(before > 7 && now(2) >= before);
        assert_eq!(ahead(2), 0);
    }
}
