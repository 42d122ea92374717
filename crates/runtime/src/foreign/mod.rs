//! Locks, conditions and queues of libraries that have their own, which do not reach the pthread functions:
//! one file per library. A call of the program is a synchronisation event as a pthread function's is, and
//! what the library does inside of it (futexes, internal locks) is none.
//!
//! Calls that a library makes inside of itself cannot be interposed. Where it waits there, it waits in
//! `syscall(SYS_futex, ...)`: [`holds`] tells by the caller that this is nobody's event. Under a scheduler
//! such a wait is emulated like any other (`emulate::wait_futex`).
//!
//! To add a library: its functions in [`functions`], a [`Lock`] per kind of lock, and `interpose!` with one
//! line per function; its name in [`LIBRARIES`]; its functions' names in `crates/symex/src/foreign.rs`.

pub mod abseil;
pub mod assertions;
pub mod glib;
pub mod libcxx;
pub mod qt;
pub mod rust;
pub mod sdl;
pub mod waiters;

use crate::emulate::{self, Limit};
use crate::layout::{ONCE_WITH_RESULT, SyncOp, SyncPoint};
use crate::schedule::{self, WaitKind};
use crate::sync::{Call, around, log_locked, log_unlocked, logged};
use crate::sys::{self, ObjectInfo};
use crate::tls;
use core::cell::Cell;
use core::ffi::{CStr, c_int, c_void};
use core::ptr::null;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

type P = *mut c_void;

/// How the names of libraries begin whose futexes are inside of calls that are known here.
const LIBRARIES: [&[u8]; 8] = [
    b"libglib-2.0.so",
    b"libgobject-2.0.so",
    b"libgio-2.0.so",
    b"libQt5Core.so",
    b"libQt6Core.so",
    b"libabsl_synchronization.so",
    b"libabsl_base.so",
    b"libc++.so",
];

/// Declares functions of libraries, each with what finds it behind the interposed one. Looked for when it is
/// first called: a program that calls one has its library.
macro_rules! functions {
    ($($name:ident($($ty:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("The library's own `", stringify!($name), "`.")]
        #[inline]
        pub fn $name() -> Option<unsafe extern "C" fn($($ty),*) $(-> $result)?> {
            static SLOT: core::sync::atomic::AtomicUsize =
                core::sync::atomic::AtomicUsize::new(0);
            let name = concat!(stringify!($name), "\0");
            let address = $crate::real::find(&SLOT, name.as_ptr().cast());
            // SAFETY: zero is `None`, and anything else is the function of that name, whose type is the
            // library's.
            unsafe { core::mem::transmute(address) }
        }
    )*};
}
pub(crate) use functions;

/// Defines functions that instrumented code calls under names of ours.
macro_rules! entries {
    ($($(#[$about:meta])* fn $name:ident($($argument:ident: $ty:ty),*) $(-> $result:ty)? $body:block)*) => {$(
        #[doc = concat!("What instrumented code calls as `", stringify!($name), "`.")]
        $(#[$about])*
        ///
        /// # Safety
        ///
        /// The objects must be the library's locks of that kind.
        #[cfg_attr(symbiosis_export, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $ty),*) $(-> $result)? {
            // SAFETY: the caller vouches for the objects.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    )*};
}
pub(crate) use entries;

/// Finds a function that takes an object and gives nothing.
pub type Plain = fn() -> Option<unsafe extern "C" fn(P)>;
/// Finds a function that takes an object and says in the lowest byte of its result whether it could.
pub type Asking = fn() -> Option<unsafe extern "C" fn(P) -> u8>;

/// How a kind of lock is taken and given back, in one of its modes.
pub struct Lock {
    /// Waits for the lock, and takes it.
    pub lock: Plain,
    /// Takes the lock if it is free. The lowest byte of what it returns is 0 if it is not.
    pub try_lock: Asking,
    /// Gives the lock back.
    pub unlock: Plain,
    /// What these are logged as.
    pub operations: [SyncOp; 3],
    /// How the scheduler knows those who wait.
    pub kind: WaitKind,
    /// Readers let writers go first that wait for the lock already.
    pub yields: bool,
    /// A mutex that no thread can take twice: a lock of it never finds it the thread's own.
    pub plain: bool,
}

/// What a mutex, plain or recursive, is logged as.
pub const MUTEX: [SyncOp; 3] = [SyncOp::MutexLock, SyncOp::MutexTryLock, SyncOp::MutexUnlock];
/// What the readers' side of a lock is logged as.
pub const READING: [SyncOp; 3] = [SyncOp::RwReadLock, SyncOp::RwTryReadLock, SyncOp::RwUnlock];
/// What the writers' side of a lock is logged as.
pub const WRITING: [SyncOp; 3] = [SyncOp::RwWriteLock, SyncOp::RwTryWriteLock, SyncOp::RwUnlock];

/// Is the calling thread inside of a call of a library that is one event as a whole?
#[inline]
#[must_use]
pub fn inside() -> bool {
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        !thread.is_null() && (*thread).quiet != 0
    }
}

/// Sets how deep the calling thread is inside of such calls; says how deep it was.
fn set_quiet(depth: u32) -> u32 {
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        if thread.is_null() { 0 } else { core::mem::replace(&mut (*thread).quiet, depth) }
    }
}

/// Makes a call of a library that is one event as a whole.
#[inline]
pub fn quietly<R>(work: impl FnOnce() -> R) -> R {
    let before = set_quiet(1);
    let result = work();
    set_quiet(before);
    result
}

/// Calls the program back out of such a call.
#[inline]
pub fn aloud<R>(work: impl FnOnce() -> R) -> R {
    let before = set_quiet(0);
    let result = work();
    set_quiet(before);
    result
}

impl Lock {
    /// Tries to take the lock: 0, or `EBUSY`.
    unsafe fn attempt(&self, object: P) -> c_int {
        // Under a scheduler writers wait there, so that the lock itself does not know of them.
        if self.yields && schedule::waits_for(WaitKind::RwWrite, object) {
            return sys::EBUSY;
        }
        let Some(function) = (self.try_lock)() else { return sys::EBUSY };
        // SAFETY: the caller vouches for the object.
        let taken = quietly(|| unsafe { function(object) }) != 0;
        if taken { 0 } else { sys::EBUSY }
    }

    /// Takes the lock, or waits for it.
    unsafe fn wait(&self, object: P) -> c_int {
        let Some(function) = (self.lock)() else { return sys::ENOSYS };
        // SAFETY: the caller vouches for the object.
        quietly(|| unsafe { function(object) });
        0
    }

    /// Takes the lock as the scheduler says, if there is one.
    unsafe fn acquire(&self, object: P) -> c_int {
        // SAFETY: the caller vouches for the object.
        unsafe {
            let attempt = || self.attempt(object);
            let own = || self.wait(object);
            emulate::attempts(self.kind, object, null(), Limit::None, attempt, own)
        }
    }

    /// Gives the lock back.
    unsafe fn release(&self, object: P) -> c_int {
        emulate::unlock(object, || {
            let Some(function) = (self.unlock)() else { return sys::ENOSYS };
            // SAFETY: the caller vouches for the object.
            quietly(|| unsafe { function(object) });
            0
        })
    }

    /// What the program gets for the function that takes the lock.
    ///
    /// # Safety
    ///
    /// The object must be such a lock, as for the functions below.
    pub unsafe fn take(&self, object: P) {
        let [operation, ..] = self.operations;
        // SAFETY: the caller vouches for the object; the record is the calling thread's own.
        unsafe {
            if inside() {
                self.acquire(object);
                return;
            }
            schedule::at_point(SyncPoint::Begin, Some(operation));
            let thread = tls::recording();
            let short = self.plain && !thread.is_null() && !schedule::active();
            if short && self.attempt(object) == 0 {
                log_locked(thread, object);
                return;
            }
            let call = Call::on(operation, object);
            logged(call, || self.acquire(object), |result| (result, call.second));
        }
    }

    /// What the program gets for the function that tries to take the lock.
    ///
    /// # Safety
    ///
    /// As for [`Self::take`].
    pub unsafe fn try_take(&self, object: P) -> bool {
        let call = Call::on(self.operations[1], object);
        // SAFETY: the caller vouches for the object.
        unsafe { around(call, || self.attempt(object), |result| result) == 0 }
    }

    /// What the program gets for the function that gives the lock back.
    ///
    /// # Safety
    ///
    /// As for [`Self::take`].
    pub unsafe fn give(&self, object: P) {
        let [.., operation] = self.operations;
        // SAFETY: the caller vouches for the object; the record is the calling thread's own.
        unsafe {
            if inside() {
                self.release(object);
                return;
            }
            schedule::at_point(SyncPoint::Begin, Some(operation));
            let thread = tls::recording();
            if self.plain && !thread.is_null() && !schedule::active() {
                log_unlocked(thread, object);
                self.release(object);
                return;
            }
            let call = Call::on(operation, object);
            logged(call, || self.release(object), |result| (result, call.second));
        }
    }

    /// What the program gets for a function that waits for a condition: 0, or `ETIMEDOUT`. `own` is the call
    /// of the library's own function, with such a result.
    ///
    /// # Safety
    ///
    /// As for [`Self::take`] of the mutex.
    pub unsafe fn wait_for(
        &self,
        condition: P,
        mutex: P,
        limit: Limit,
        own: impl FnOnce() -> c_int,
    ) -> c_int {
        let operation = match limit {
            Limit::None => SyncOp::CondWait,
            Limit::At(..) | Limit::In(_) => SyncOp::CondTimedWait,
        };
        let through = || {
            if !schedule::decides() {
                return quietly(own);
            }
            // SAFETY: the caller vouches for the objects.
            unsafe {
                let free = || self.release(mutex);
                emulate::wait_between(condition, limit, false, free, || self.acquire(mutex))
            }
        };
        // SAFETY: as above.
        unsafe {
            let call = Call { second: mutex, ..Call::on(operation, condition) };
            around(call, through, |result| result)
        }
    }
}

/// What the program gets for a function that wakes who waits for a condition; `own` is the call of the
/// library's own function.
///
/// # Safety
///
/// The object must be a condition.
pub unsafe fn wake(condition: P, all: bool, own: impl FnOnce()) {
    let operation = if all { SyncOp::CondBroadcast } else { SyncOp::CondSignal };
    let own = || {
        quietly(own);
        0
    };
    // SAFETY: the caller vouches for the object.
    unsafe {
        let call = Call::on(operation, condition);
        around(call, || emulate::signal(condition, all, own), |result| result);
    }
}

/// An executable or library that made a futex call.
struct Caller {
    /// Where its code begins. 0 while nobody is noted here.
    start: AtomicU64,
    /// Where its code ends.
    end: AtomicU64,
    /// 1 for one of [`LIBRARIES`].
    library: AtomicU32,
}

static CALLERS: [Caller; 32] = [const {
    Caller { start: AtomicU64::new(0), end: AtomicU64::new(0), library: AtomicU32::new(0) }
}; 32];
/// How many are noted, or about to be.
static NOTED: AtomicU32 = AtomicU32::new(0);

/// Is this an address in the code of one of [`LIBRARIES`]?
#[must_use]
pub fn holds(address: u64) -> bool {
    for caller in &CALLERS {
        // The start is written last.
        let start = caller.start.load(Ordering::Acquire);
        if start != 0 && start <= address && address < caller.end.load(Ordering::Relaxed) {
            return caller.library.load(Ordering::Relaxed) != 0;
        }
    }
    look_up(address)
}

#[cold]
fn look_up(address: u64) -> bool {
    let mut found = Found { address, start: 0, end: 0, library: false };
    // SAFETY: the visitor gets back the pointer it is given here.
    unsafe { sys::dl_iterate_phdr(visit, (&raw mut found).cast()) };
    let place = NOTED.load(Ordering::Relaxed) as usize;
    if found.start != 0
        && let Some(caller) = CALLERS.get(place)
        && NOTED
            .compare_exchange(place as u32, place as u32 + 1, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    {
        caller.end.store(found.end, Ordering::Relaxed);
        caller.library.store(u32::from(found.library), Ordering::Relaxed);
        caller.start.store(found.start, Ordering::Release);
    }
    found.library
}

struct Found {
    address: u64,
    start: u64,
    end: u64,
    library: bool,
}

unsafe extern "C" fn visit(info: *const ObjectInfo, _: usize, data: *mut c_void) -> c_int {
    const PT_LOAD: u32 = 1;
    // SAFETY: the dynamic linker's description of a loaded object, and `look_up`'s own data.
    unsafe {
        let found = &mut *data.cast::<Found>();
        for index in 0..(*info).count as usize {
            let header = &*(*info).headers.add(index);
            let start = (*info).base.wrapping_add(header.address);
            let end = start.wrapping_add(header.memory_size);
            if header.kind == PT_LOAD && start <= found.address && found.address < end {
                (found.start, found.end) = (start, end);
                let path: &[u8] = match (*info).name {
                    name if name.is_null() => b"",
                    name => CStr::from_ptr(name).to_bytes(),
                };
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                found.library = LIBRARIES.iter().any(|library| name.starts_with(library));
                return 1;
            }
        }
        0
    }
}

/// Runs a once routine unless that has been done, where the word at `once` says 1 while it runs and 2 behind
/// that, as glibc's do, and its result stands 8 bytes behind it. `call` makes the library's own call; it gets
/// what it is to call in place of the routine.
///
/// # Safety
///
/// As for the library's function.
pub unsafe fn once_with_result(
    once: P,
    routine: unsafe extern "C" fn(P) -> P,
    argument: P,
    call: impl FnOnce(unsafe extern "C" fn(P) -> P, P) -> P,
) -> P {
    let mut task = Task { routine, argument, ran: false };
    let result = Cell::new(core::ptr::null_mut());
    let task = &raw mut task;
    let work = || {
        result.set(quietly(|| call(run_task, task.cast())));
        // SAFETY: the task lives until the end of this function.
        c_int::from(unsafe { (*task).ran })
    };
    // SAFETY: the caller vouches for the object and the routine.
    unsafe {
        // The end of the call carries what it gave.
        let event = Call { argument: ONCE_WITH_RESULT, ..Call::on(SyncOp::Once, once) };
        if inside() {
            work();
            return result.get();
        }
        schedule::at_point(SyncPoint::Begin, Some(event.op));
        logged(event, || emulate::once(once, work), |ran| (ran, result.get()));
    }
    result.get()
}

/// A once routine and whether it has been run.
struct Task {
    routine: unsafe extern "C" fn(P) -> P,
    argument: P,
    ran: bool,
}

unsafe extern "C" fn run_task(task: P) -> P {
    // SAFETY: `once_with_result` made the task, and waits for the end of the call.
    unsafe {
        let task = task.cast::<Task>();
        (*task).ran = true;
        let (routine, argument) = ((*task).routine, (*task).argument);
        aloud(|| routine(argument))
    }
}
