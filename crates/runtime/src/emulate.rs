//! Blocking calls under a scheduler: made of calls that do not block, so that the scheduler knows
//! who waits for whom. Without a scheduler, and in threads that it does not know, each of these
//! is the program's own function.

use crate::clocks;
use crate::forks;
use crate::layout::SyncPoint;
use crate::real;
use crate::schedule::{self, NEVER, Request, WaitKind, Wake};
use crate::sys::{self, TimeSpec};
use core::ffi::{c_int, c_void};
use core::ptr::null;

type P = *mut c_void;

/// When a call with a time limit gives up.
#[derive(Clone, Copy)]
pub enum Limit {
    /// Never.
    None,
    /// At this time of this clock.
    At(c_int, *const TimeSpec),
    /// When so much time has passed.
    In(*const TimeSpec),
}

/// Times before this second of a clock are not meant as times of day: 1985. A condition variable
/// does not tell outside of libc which clock it uses.
const TIME_OF_DAY: i64 = 500_000_000;
/// The bit of a mutex's kind in glibc that says that it is robust.
const ROBUST: u32 = 16;
/// How often, and with how many microseconds between, a robust mutex is tried whose holder has
/// ended: the kernel releases it when the thread is really gone.
const ROBUST_TRIES: u32 = 2000;
const ROBUST_PAUSE: u64 = 50;

impl Limit {
    /// The limit in virtual time; none when it is not a valid time.
    ///
    /// # Safety
    ///
    /// The pointer must be to a time.
    pub unsafe fn deadline(self) -> Option<u64> {
        let (Self::At(_, time) | Self::In(time)) = self else { return Some(NEVER) };
        if time.is_null() {
            return None;
        }
        // SAFETY: the caller vouches for it.
        let time = unsafe { *time };
        let mut left = time.nanoseconds()?;
        if let Self::At(clock, _) = self {
            let clock = if time.seconds < TIME_OF_DAY { sys::CLOCK_MONOTONIC } else { clock };
            left = left.saturating_sub(clocks::now(clock));
        }
        Some(schedule::deadline(round(left)))
    }
}

/// Rounds a duration up to a few significant bits: what is left until a point in time depends on
/// when the program computed it, and who waits longer should not.
fn round(nanoseconds: u64) -> u64 {
    let grain = (nanoseconds / 8).checked_next_power_of_two().unwrap_or(1).max(1 << 20);
    nanoseconds.div_ceil(grain).saturating_mul(grain)
}

/// Can the calling thread be cancelled now?
pub fn cancellable() -> bool {
    let mut old = sys::CANCEL_DISABLE;
    // SAFETY: the pointer is to a live object.
    unsafe {
        sys::pthread_setcancelstate(sys::CANCEL_DISABLE, &mut old);
        sys::pthread_setcancelstate(old, core::ptr::null_mut());
    }
    old == sys::CANCEL_ENABLE
}

/// A cancellation point.
fn test_cancel() {
    // SAFETY: the callers are cancellation points of the program.
    unsafe { sys::pthread_testcancel() };
}

/// What a thread does whose wait was ended since it was cancelled. Comes back where it acts on that already: its cleanup
/// handlers may wait, and those waits end like any other.
fn act_on_cancellation() {
    test_cancel();
    schedule::acted_on_cancellation();
}

/// Tries until it is not busy any more.
///
/// # Safety
///
/// The pointers must be those of the program's call.
pub unsafe fn attempts(
    kind: WaitKind,
    object: P,
    owner: *const i32,
    limit: Limit,
    attempt: impl Fn() -> c_int,
    own: impl FnOnce() -> c_int,
) -> c_int {
    if !schedule::decides() {
        return own();
    }
    let mut deadline = None;
    loop {
        let result = attempt();
        if result != sys::EBUSY {
            return result;
        }
        if deadline.is_none() {
            // SAFETY: the caller's pointers are those of the program's call.
            deadline = unsafe { limit.deadline() };
        }
        let Some(deadline) = deadline else { return sys::EINVAL };
        let request = Request { owner, deadline, ..Request::on(kind, object) };
        match schedule::wait(request, None) {
            Some(Wake::TimedOut) => return sys::ETIMEDOUT,
            Some(Wake::Again | Wake::Cancelled) => {}
            None => return own(),
        }
    }
}

/// Takes a mutex.
///
/// # Safety
///
/// As for `pthread_mutex_lock`; `own` does the same with the program's own function.
pub unsafe fn lock_mutex(mutex: P, limit: Limit, own: impl FnOnce() -> c_int) -> c_int {
    let Some(try_lock) = real::pthread_mutex_trylock() else { return own() };
    // SAFETY: in glibc's x86-64 layout the third word is the owner's kernel id, and the fifth the
    // kind.
    unsafe {
        let owner = mutex.cast::<i32>().add(2);
        let kind = mutex.cast::<u32>().add(4).read_volatile();
        let checks = kind & 3 == 2;
        let attempt = || match try_lock(mutex) {
            sys::EBUSY if checks && owner.read_volatile() == sys::gettid() => sys::EDEADLK,
            sys::EBUSY if kind & ROBUST != 0 => inherit(owner, || try_lock(mutex)),
            result => result,
        };
        attempts(WaitKind::Mutex, mutex, owner, limit, attempt, own)
    }
}

/// Tries a robust mutex until its holder, which has passed its last point, is really gone.
unsafe fn inherit(owner: *const i32, try_lock: impl Fn() -> c_int) -> c_int {
    for _ in 0..ROBUST_TRIES {
        // SAFETY: the caller's pointer is to the owner field of a mutex.
        let tid = unsafe { owner.read_volatile() };
        if tid != 0 && !schedule::has_ended(tid) {
            break;
        }
        sys::keeping_errno(|| sys::sleep_micros(ROBUST_PAUSE));
        match try_lock() {
            sys::EBUSY => {}
            result => return result,
        }
    }
    sys::EBUSY
}

/// Releases a lock by the program's own function.
pub fn unlock(lock: P, own: impl FnOnce() -> c_int) -> c_int {
    let result = own();
    if result == 0 {
        schedule::released(lock);
    }
    result
}

/// What a reader-writer lock is taken for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Beside other readers.
    Reading,
    /// Alone.
    Writing,
}

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`: readers let waiting writers go first. Under the
/// other kinds readers never wait for a writer that waits itself.
const PREFER_WRITER_NONRECURSIVE: u32 = 2;

/// Takes a reader-writer lock.
///
/// # Safety
///
/// As for [`lock_mutex`].
pub unsafe fn lock_rwlock(
    lock: P,
    use_for: Use,
    limit: Limit,
    own: impl FnOnce() -> c_int,
) -> c_int {
    let (kind, try_lock) = match use_for {
        Use::Reading => (WaitKind::RwLock, real::pthread_rwlock_tryrdlock()),
        Use::Writing => (WaitKind::RwWrite, real::pthread_rwlock_trywrlock()),
    };
    let Some(try_lock) = try_lock else { return own() };
    // SAFETY: in glibc's x86-64 layout the seventh word is the kernel id of the writer, and the
    // thirteenth the kind.
    unsafe {
        let owner = lock.cast::<i32>().add(6);
        let yields = use_for == Use::Reading
            && lock.cast::<u32>().add(12).read_volatile() == PREFER_WRITER_NONRECURSIVE;
        let attempt = || {
            // Writers wait in the scheduler, so that the lock itself does not know of them.
            if yields && schedule::waits_for(WaitKind::RwWrite, lock) {
                return sys::EBUSY;
            }
            match try_lock(lock) {
                sys::EBUSY if owner.read_volatile() == sys::gettid() => sys::EDEADLK,
                result => result,
            }
        };
        let result = attempts(kind, lock, owner, limit, attempt, own);
        if use_for == Use::Writing && result != 0 {
            // Readers that let this writer go first need not any more.
            schedule::released(lock);
        }
        result
    }
}

/// Takes a spin lock.
///
/// # Safety
///
/// As for [`lock_mutex`].
pub unsafe fn lock_spin(lock: P, own: impl FnOnce() -> c_int) -> c_int {
    let Some(try_lock) = real::pthread_spin_trylock() else { return own() };
    // SAFETY: the caller vouches for the lock.
    unsafe { attempts(WaitKind::Spin, lock, null(), Limit::None, || try_lock(lock), own) }
}

/// Waits for a semaphore; a cancellation point.
///
/// # Safety
///
/// As for `sem_wait`.
pub unsafe fn wait_semaphore(semaphore: P, limit: Limit, own: impl FnOnce() -> c_int) -> c_int {
    let Some(try_wait) = real::sem_trywait() else { return own() };
    if !schedule::decides() {
        return own();
    }
    test_cancel();
    let mut deadline = None;
    loop {
        // SAFETY: the caller vouches for the semaphore and the time.
        unsafe {
            if try_wait(semaphore) == 0 {
                return 0;
            }
            if sys::errno() != sys::EAGAIN {
                return -1;
            }
            if deadline.is_none() {
                deadline = limit.deadline();
            }
        }
        let Some(deadline) = deadline else {
            sys::set_errno(sys::EINVAL);
            return -1;
        };
        let request = Request {
            deadline,
            cancellable: cancellable(),
            ..Request::on(WaitKind::Semaphore, semaphore)
        };
        match schedule::wait(request, None) {
            Some(Wake::Again) => {}
            Some(Wake::Cancelled) => act_on_cancellation(),
            Some(Wake::TimedOut) => {
                sys::set_errno(sys::ETIMEDOUT);
                return -1;
            }
            None => return own(),
        }
    }
}

/// Waits for a condition; a cancellation point. The condition variable itself is not touched:
/// who waits for it is the scheduler's knowledge.
///
/// # Safety
///
/// As for `pthread_cond_wait`; `own` does the same with the program's own function.
pub unsafe fn wait_condition(
    condition: P,
    mutex: P,
    limit: Limit,
    own: impl FnOnce() -> c_int,
) -> c_int {
    let (Some(lock), Some(free)) = (real::pthread_mutex_lock(), real::pthread_mutex_unlock())
    else {
        return own();
    };
    if !schedule::decides() {
        return own();
    }
    test_cancel();
    // SAFETY: the caller vouches for the objects.
    unsafe {
        let free = || unlock(mutex, || free(mutex));
        let lock = || lock_mutex(mutex, Limit::None, || lock(mutex));
        let may_end = cancellable();
        wait_between(condition, limit, may_end, free, lock)
    }
}

/// Waits for a condition between giving its mutex back and taking it again. `may_end`: the call is a
/// cancellation point, and the thread can be cancelled.
///
/// # Safety
///
/// As for [`Limit::deadline`].
pub unsafe fn wait_between(
    condition: P,
    limit: Limit,
    may_end: bool,
    free: impl FnOnce() -> c_int,
    lock: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller vouches for the time.
    let Some(deadline) = (unsafe { limit.deadline() }) else { return sys::EINVAL };
    let freed = free();
    if freed != 0 {
        return freed;
    }
    let request =
        Request { deadline, cancellable: may_end, ..Request::on(WaitKind::Condition, condition) };
    let wake = schedule::wait(request, Some(SyncPoint::Wake));
    schedule::at_point(SyncPoint::Relock, None);
    let locked = lock();
    match wake {
        Some(Wake::TimedOut) if locked == 0 => sys::ETIMEDOUT,
        Some(Wake::Cancelled) => {
            act_on_cancellation();
            locked
        }
        _ => locked,
    }
}

/// Signals a condition. Threads that the scheduler does not know wait in the program's own
/// function, so that one is called too.
pub fn signal(condition: P, all: bool, own: impl FnOnce() -> c_int) -> c_int {
    schedule::signal(condition, all);
    own()
}

/// Waits until somebody wakes the waiters of a futex, unless its word has another value already.
///
/// # Safety
///
/// As for the system call; `own` makes it. `between`: see [`Request::between`].
pub unsafe fn wait_futex(
    word: P,
    value: u32,
    limit: Limit,
    between: bool,
    own: impl FnOnce() -> c_int,
) -> c_int {
    if !schedule::decides() {
        return own();
    }
    // SAFETY: the caller vouches for the word and the time.
    let (now, deadline) = unsafe { (word.cast::<u32>().read_volatile(), limit.deadline()) };
    let Some(deadline) = deadline else {
        sys::set_errno(sys::EINVAL);
        return -1;
    };
    if now != value {
        sys::set_errno(sys::EAGAIN);
        return -1;
    }
    let request = Request {
        deadline,
        expected: value,
        between,
        ..Request::on(WaitKind::Futex, word.cast_const())
    };
    match schedule::wait(request, None) {
        Some(Wake::TimedOut) => {
            sys::set_errno(sys::ETIMEDOUT);
            -1
        }
        // It may not have waited at all; callers have to look again in any case.
        Some(Wake::Again | Wake::Cancelled) => 0,
        None => own(),
    }
}

/// Wakes so many waiters of a futex; says how many there were. Threads that the scheduler does not
/// know wait in the kernel, so that is asked, too.
pub fn wake_futex(word: P, most: u32, own: impl FnOnce() -> c_int) -> c_int {
    let woken = schedule::wake(word, most);
    let others = own();
    if others < 0 { others } else { others.saturating_add(woken as c_int) }
}

/// Waits at a barrier.
///
/// # Safety
///
/// As for `pthread_barrier_wait`.
pub unsafe fn wait_barrier(barrier: P, own: impl FnOnce() -> c_int) -> c_int {
    if !schedule::decides() {
        return own();
    }
    // SAFETY: in glibc's layout the third word is the count that the barrier was made with.
    let threads = unsafe { barrier.cast::<u32>().add(2).read_volatile() };
    if schedule::at_barrier(barrier, threads) {
        schedule::at_point(SyncPoint::Leave, None);
        return sys::BARRIER_SERIAL_THREAD;
    }
    match schedule::wait(Request::on(WaitKind::Barrier, barrier), Some(SyncPoint::Leave)) {
        Some(_) => 0,
        None => own(),
    }
}

/// Runs a once routine by the program's own function, but not while another thread does.
///
/// # Safety
///
/// As for `pthread_once`.
pub unsafe fn once(control: P, own: impl FnOnce() -> c_int) -> c_int {
    if !schedule::decides() {
        return own();
    }
    loop {
        // SAFETY: in glibc's layout bit 0 says that the routine runs, and bit 1 that it has run.
        let running = unsafe { control.cast::<u32>().read_volatile() } & 3 == 1;
        if !running || schedule::wait(Request::on(WaitKind::Once, control), None).is_none() {
            break;
        }
    }
    let result = own();
    schedule::released(control);
    result
}

/// Joins a thread by the program's own function, when it has come to its end.
///
/// # Safety
///
/// As for `pthread_join`. `late` is what the call returns when the limit comes first.
pub unsafe fn join(
    thread: sys::Pthread,
    limit: Limit,
    late: c_int,
    own: impl FnOnce() -> c_int,
) -> c_int {
    if !schedule::decides() {
        return own();
    }
    test_cancel();
    // SAFETY: the caller vouches for the time.
    let Some(deadline) = (unsafe { limit.deadline() }) else { return sys::EINVAL };
    if wait_for_end(thread, deadline) == Some(Wake::TimedOut) {
        return late;
    }
    let result = own();
    if result == 0 {
        schedule::joined(thread);
    }
    result
}

fn wait_for_end(thread: sys::Pthread, deadline: u64) -> Option<Wake> {
    loop {
        match schedule::wait_for_end(thread, deadline, cancellable()) {
            Some(Wake::Cancelled) => act_on_cancellation(),
            other => return other,
        }
    }
}

/// Joins a thread that has come to its end already.
pub fn try_join(thread: sys::Pthread, busy: c_int, own: impl FnOnce() -> c_int) -> c_int {
    if schedule::decides() && schedule::wait_for_end(thread, 0, false) == Some(Wake::TimedOut) {
        return busy;
    }
    let result = own();
    if result == 0 {
        schedule::joined(thread);
    }
    result
}

/// So many microseconds of a sleep pass, at most, where other processes may be waited for.
const LONGEST_REAL_SLEEP: u64 = 10_000;

/// Sleeps in virtual time; a cancellation point. False when the program's own function has to.
pub fn sleep(nanoseconds: u64) -> bool {
    if !schedule::decides() {
        return false;
    }
    test_cancel();
    // Other processes know nothing of virtual time: who sleeps until one has done something would not give it any.
    if forks::have_children() {
        sys::sleep_micros((nanoseconds / 1000).min(LONGEST_REAL_SLEEP));
    }
    let deadline = schedule::deadline(nanoseconds);
    loop {
        let request = Request {
            deadline,
            cancellable: cancellable(),
            ..Request::on(WaitKind::Sleep, null())
        };
        match schedule::wait(request, None) {
            Some(Wake::Cancelled) => act_on_cancellation(),
            Some(_) => return true,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::round;

    #[test]
    fn durations_that_were_meant_to_be_equal_become_equal() {
        let tenth = 100_000_000;
        assert_eq!(round(tenth - 50_000), round(tenth - 900_000));
        assert!(round(2 * tenth - 900_000) > round(tenth));
        assert_eq!(round(0), 0);
        assert!(round(u64::MAX - 1) > u64::MAX / 2);
    }
}
