//! Crashes that the program handles itself: a handler of SIGSEGV that tells of it and then ends the process.
//!
//! How the handler ends it (`abort`, a status, SIGKILL) is not what went wrong. So what there is to say of a fault is kept
//! from the moment at which the handler is called until it is left, and is the failure if the run fails meanwhile. A
//! handler that returns, or jumps out, has dealt with the fault, which then is none. The same goes for the SIGABRT that
//! the C library sends when it finds the heap damaged.

use crate::layout::RawFailure;
use crate::process::{self, Failure, Moment};
use crate::sys;
use crate::text::Text;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// The handler's own frames lie within so many bytes.
const DEEPEST: usize = 8 << 20;

/// What is known of a crash.
#[derive(Clone, Copy)]
pub struct Crash {
    /// Which failure it is.
    pub kind: RawFailure,
    /// The signal.
    pub signal: c_int,
    /// `si_addr`.
    pub address: u64,
    /// Program counter.
    pub pc: u64,
    /// For people.
    pub message: Text<200>,
    /// How far its thread had come.
    pub moment: Moment,
}

impl Crash {
    /// As a failure.
    #[must_use]
    pub fn failure(&self) -> Failure<'_> {
        let (code, message) = (i64::from(self.signal), self.message.as_bytes());
        Failure { code, address: self.address, pc: self.pc, message }
    }
}

struct Slot(UnsafeCell<Option<Crash>>);

// SAFETY: it is written by the thread that claimed it, before `THERE` says so, and read afterwards.
unsafe impl Sync for Slot {}

static CRASH: Slot = Slot(UnsafeCell::new(None));
/// The kernel's number of the thread whose handler runs; 0 for none.
static OWNER: AtomicI32 = AtomicI32::new(0);
static THERE: AtomicBool = AtomicBool::new(false);
/// The stack's end where the handler was called.
static FRAME: AtomicUsize = AtomicUsize::new(0);

fn stack() -> usize {
    let here = 0_u8;
    &raw const here as usize
}

/// The program's handler of this crash is about to be called. False when another crash is being handled.
#[must_use]
pub fn begin(crash: &Crash) -> bool {
    let me = sys::gettid();
    if OWNER.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return false;
    }
    // SAFETY: the claim makes this thread the only writer.
    unsafe { *CRASH.0.get() = Some(*crash) };
    FRAME.store(stack(), Ordering::Relaxed);
    THERE.store(true, Ordering::Release);
    true
}

/// The handler has returned, or the calling thread jumped out of it.
pub fn left() {
    if OWNER.load(Ordering::Acquire) == sys::gettid() {
        forget();
    }
}

/// No crash is being handled, as in a child of `fork`.
pub fn forget() {
    THERE.store(false, Ordering::Release);
    OWNER.store(0, Ordering::Release);
}

/// The crash in whose handler the run fails so: in the handler itself, or because another thread sends the process the
/// same signal on the handler's behalf, or SIGKILL.
#[must_use]
pub fn behind(kind: RawFailure, signal: i64) -> Option<Crash> {
    use RawFailure::{Deadlock, Reached, Signal, User};
    if !THERE.load(Ordering::Acquire) || matches!(kind, Deadlock | Reached | User) {
        return None;
    }
    // SAFETY: it was written before `THERE` said so.
    let crash = unsafe { *CRASH.0.get() }?;
    let in_handler = || {
        let depth = FRAME.load(Ordering::Relaxed).checked_sub(stack());
        depth.is_some_and(|depth| depth < DEEPEST)
    };
    let sent = || {
        let same = [crash.signal, sys::SIGKILL].map(i64::from).contains(&signal);
        kind == Signal && same
    };
    let its_end =
        if OWNER.load(Ordering::Acquire) == sys::gettid() { in_handler() } else { sent() };
    its_end.then_some(crash)
}

/// The program sends itself this signal: SIGKILL ends it without a word.
pub fn sends_itself(signal: c_int) {
    if signal == sys::SIGKILL && behind(RawFailure::Signal, i64::from(signal)).is_some() {
        let failure = Failure { code: i64::from(signal), ..Failure::default() };
        process::note_failure(RawFailure::Signal, &failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_behind_what_its_handler_does() {
        let crash = Crash {
            kind: RawFailure::Signal,
            signal: sys::SIGSEGV,
            address: 8,
            pc: 1,
            message: Text::new(),
            moment: Moment::NOWHERE,
        };
        assert!(begin(&crash) && !begin(&crash));
        let found = |kind, signal| behind(kind, i64::from(signal)).map(|crash| crash.address);
        assert_eq!(found(RawFailure::Abort, sys::SIGABRT), Some(8));
        assert_eq!(found(RawFailure::Exit, 1), Some(8));
        assert_eq!(found(RawFailure::Reached, sys::SIGTRAP), None);
        let elsewhere = |kind, signal| {
            std::thread::spawn(move || behind(kind, i64::from(signal)).is_some()).join().unwrap()
        };
        assert!(elsewhere(RawFailure::Signal, sys::SIGSEGV));
        assert!(elsewhere(RawFailure::Signal, sys::SIGKILL));
        assert!(!elsewhere(RawFailure::Abort, sys::SIGABRT), "another thread's own");
        assert!(!elsewhere(RawFailure::Exit, 1));
        std::thread::spawn(left).join().unwrap();
        assert!(found(RawFailure::Exit, 1).is_some(), "it is not that thread's");
        left();
        assert_eq!(found(RawFailure::Exit, 1), None);
    }
}
