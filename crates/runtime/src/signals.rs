//! Fatal signals: recorded, then left to end the process as they would have.

use crate::layout::RawFailure;
use crate::process::{self, Failure};
use crate::schedule;
use crate::sys::{self, SignalAction, SignalStack};
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};

const FATAL: [c_int; 6] =
    [sys::SIGSEGV, sys::SIGBUS, sys::SIGFPE, sys::SIGILL, sys::SIGABRT, sys::SIGTRAP];

/// Offset of the program counter in `ucontext_t`, in bytes: general register 16 of those that
/// begin at byte 40.
const PC_IN_CONTEXT: usize = 40 + 16 * 8;
/// Offsets in `siginfo_t`.
const CODE_IN_INFO: usize = 8;
const ADDRESS_IN_INFO: usize = 16;

/// Installs the handlers, except where the process was started with a signal ignored.
pub fn install() {
    let action = SignalAction {
        handler: fatal as *const () as usize,
        mask: [0; 16],
        flags: sys::SA_SIGINFO | sys::SA_ONSTACK,
        restorer: 0,
    };
    for signal in FATAL {
        let mut old = SignalAction { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
        // SAFETY: the pointers are to live objects; the handler is async-signal-safe.
        unsafe {
            if sys::sigaction(signal, null(), &mut old) == 0 && old.handler == 0 {
                sys::sigaction(signal, &action, null_mut());
            }
        }
    }
}

/// Gives the calling thread a stack for its handlers, so that a stack overflow can be recorded.
///
/// # Safety
///
/// The memory must outlive the thread.
pub unsafe fn use_stack(base: *mut c_void, size: usize) {
    let stack = SignalStack { base, flags: 0, size };
    // SAFETY: the caller vouches for the memory.
    unsafe { sys::sigaltstack(&stack, null_mut()) };
}

unsafe extern "C" fn fatal(signal: c_int, info: *const u8, context: *const u8) {
    // SAFETY: the kernel gives both structures to a handler with SA_SIGINFO.
    unsafe {
        let code = info.add(CODE_IN_INFO).cast::<c_int>().read();
        let by_kernel = code > 0;
        let failure = Failure {
            code: i64::from(signal),
            address: if by_kernel { info.add(ADDRESS_IN_INFO).cast::<u64>().read() } else { 0 },
            pc: context.add(PC_IN_CONTEXT).cast::<u64>().read(),
            message: b"",
        };
        process::note_failure(RawFailure::Signal, &failure);
        schedule::process_ends(true);
        let default = SignalAction { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
        sys::sigaction(signal, &default, null_mut());
        // A fault happens again when the handler returns. What somebody sent, and a trap, whose
        // instruction is already over, has to be sent again; it waits until the handler returns.
        if !by_kernel || signal == sys::SIGTRAP {
            sys::tgkill(sys::gettid(), signal);
        }
    }
}
