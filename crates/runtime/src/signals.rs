//! Fatal signals: recorded, then left to end the process as they would have.

use crate::crashes::Crash;
use crate::fail_at;
use crate::guard;
use crate::handlers;
use crate::layout::RawFailure;
use crate::process::{self, Failure, Moment};
use crate::schedule;
use crate::sys::{self, SignalAction, SignalStack};
use crate::text::Text;
use crate::tls;
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};

const FATAL: [c_int; 6] =
    [sys::SIGSEGV, sys::SIGBUS, sys::SIGFPE, sys::SIGILL, sys::SIGABRT, sys::SIGTRAP];

/// Offset of the program counter in `ucontext_t`, in bytes: general register 16 of those that
/// begin at byte 40.
const PC_IN_CONTEXT: usize = 40 + 16 * 8;
/// The stack pointer is register 15 of these.
const STACK_IN_CONTEXT: usize = 40 + 15 * 8;
/// Offsets in `siginfo_t`.
const CODE_IN_INFO: usize = 8;
const ADDRESS_IN_INFO: usize = 16;
const SENDER_IN_INFO: usize = 16;
/// `si_code` of what a process sent by `kill`, and of what it sent to one of its threads.
const SENT: c_int = 0;
const SENT_TO_THREAD: c_int = -6;

fn own_action() -> SignalAction {
    SignalAction {
        handler: fatal as *const () as usize,
        mask: [0; 16],
        flags: sys::SA_SIGINFO | sys::SA_ONSTACK,
        restorer: 0,
    }
}

/// Installs the handlers, except where the process was started with a signal ignored.
pub fn install() {
    find_last_words();
    let action = own_action();
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

/// Is it one of the signals that are recorded when they end the process?
pub fn catches(signal: c_int) -> bool {
    process::recording() && FATAL.contains(&signal)
}

/// Puts the runtime's handler back for a signal that the program handles no longer.
///
/// # Safety
///
/// `old` is null or a live structure.
pub unsafe fn catch(signal: c_int, old: *mut SignalAction) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { sys::sigaction(signal, &own_action(), old) }
}

/// Is this the runtime's own handler?
pub fn is_own(handler: usize) -> bool {
    handler == fatal as *const () as usize
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

/// A fault this far below the stack pointer is one of the stack: a call pushes next to it, and
/// functions with large frames touch what lies further below.
const BELOW_STACK: u64 = 64 << 10;
/// The same above it, in the frame that a function has just made.
const FRAME: u64 = 4 << 20;
/// How much of libc's last words is looked at, in bytes.
const LONGEST_WORDS: usize = 512;
/// How messages about a damaged heap begin.
const HEAP_WORDS: [&[u8]; 12] = [
    b"free(): ",
    b"malloc(): ",
    b"realloc(): ",
    b"calloc(): ",
    b"corrupted ",
    b"munmap_chunk(): ",
    b"mremap_chunk(): ",
    b"malloc_consolidate(): ",
    b"unaligned ",
    b"tcache_thread_shutdown(): ",
    b"int_mallinfo(): ",
    b"Fatal glibc error: malloc ",
];

/// Where libc keeps its last words before it aborts.
static LAST_WORDS: AtomicUsize = AtomicUsize::new(0);

/// Finds what a handler could not look for.
fn find_last_words() {
    // SAFETY: both texts end with a zero; a null handle stands for all objects.
    let at = sys::keeping_errno(|| unsafe {
        sys::dlvsym(null_mut(), c"__abort_msg".as_ptr(), c"GLIBC_PRIVATE".as_ptr())
    });
    LAST_WORDS.store(at as usize, Ordering::Release);
}

/// What libc said before it aborted; empty when it did not.
fn last_words() -> &'static [u8] {
    let at = LAST_WORDS.load(Ordering::Acquire) as *const *const c_uint;
    // SAFETY: libc's variable: null, or a pointer to the text's size with the text behind it. Both
    // stay until the process ends.
    let text = unsafe {
        if at.is_null() || (*at).is_null() {
            return b"";
        }
        let text = (*at).add(1).cast::<c_char>();
        core::slice::from_raw_parts(text.cast::<u8>(), sys::strlen(text).min(LONGEST_WORDS))
    };
    text.trim_ascii_end()
}

/// What an abort with these last words is about.
fn of_words(words: &[u8]) -> RawFailure {
    let twice = words.starts_with(b"free(): double free")
        || (words.starts_with(b"double free or corruption") && !words.ends_with(b"(out)"));
    if twice {
        RawFailure::DoubleFree
    } else if words.starts_with(b"double free or corruption")
        || HEAP_WORDS.iter().any(|begin| words.starts_with(begin))
    {
        RawFailure::HeapCorruption
    } else {
        RawFailure::Abort
    }
}

/// Is a fault at this address one of the stack, whose pointer is `stack`?
fn beyond_stack(address: u64, stack: u64) -> bool {
    let from = stack.saturating_sub(BELOW_STACK);
    if !(from..stack.saturating_add(FRAME)).contains(&address) {
        return false;
    }
    // Above the pointer, only when the pointer itself has left the stack.
    address < stack.saturating_add(4096) || !sys::is_readable(stack)
}

/// Which failure a signal stands for.
unsafe fn failure_of<'a>(
    signal: c_int,
    address: u64,
    pc: u64,
    stack: u64,
    room: &'a mut Text<160>,
) -> (RawFailure, Failure<'a>) {
    let mut failure = Failure { code: i64::from(signal), address, pc, message: b"" };
    let kind = match signal {
        sys::SIGSEGV | sys::SIGBUS => {
            if let Some((start, size)) = guard::freed(address) {
                *room = guard::describe(address, start, size);
                failure.message = room.as_bytes();
                RawFailure::UseAfterFree
            } else if beyond_stack(address, stack) {
                RawFailure::StackOverflow
            } else {
                RawFailure::Signal
            }
        }
        sys::SIGABRT => {
            failure.message = last_words();
            let thread = tls::recording();
            if !thread.is_null() {
                // SAFETY: the record is the calling thread's own.
                failure.address = unsafe { (*thread).freeing };
            }
            match failure.message {
                b"" => RawFailure::Signal,
                words => of_words(words),
            }
        }
        sys::SIGTRAP => match fail_at::reached(pc) {
            Some(name) => {
                failure.message = name;
                RawFailure::Reached
            }
            None => RawFailure::Signal,
        },
        _ => RawFailure::Signal,
    };
    if !matches!(kind, RawFailure::DoubleFree | RawFailure::HeapCorruption)
        && signal == sys::SIGABRT
    {
        failure.address = 0;
    }
    (kind, failure)
}

/// What crashed when this signal came to the calling thread: a fault, or what the thread found for which it sent itself
/// SIGABRT. None for what somebody else sent.
///
/// # Safety
///
/// Both structures are what the kernel gives to a handler with SA_SIGINFO.
pub unsafe fn crash(signal: c_int, info: *const u8, context: *const u8) -> Option<Crash> {
    // SAFETY: as the caller promises.
    unsafe {
        let code = info.add(CODE_IN_INFO).cast::<c_int>().read();
        let sender = info.add(SENDER_IN_INFO).cast::<u32>().read();
        let by_kernel = code > 0;
        let by_itself = signal == sys::SIGABRT && code == SENT_TO_THREAD && sender == sys::getpid();
        if !process::recording() || !catches(signal) || !(by_kernel || by_itself) {
            return None;
        }
        let address = if by_kernel { info.add(ADDRESS_IN_INFO).cast::<u64>().read() } else { 0 };
        let pc = context.add(PC_IN_CONTEXT).cast::<u64>().read();
        let stack = context.add(STACK_IN_CONTEXT).cast::<u64>().read();
        let mut room = Text::new();
        let (kind, failure) = failure_of(signal, address, pc, stack, &mut room);
        let mut message = Text::new();
        message.push(failure.message);
        Some(Crash { kind, signal, address: failure.address, pc, message, moment: Moment::now() })
    }
}

unsafe extern "C" fn fatal(signal: c_int, info: *const u8, context: *mut u8) {
    // SAFETY: the kernel gives both structures to a handler with SA_SIGINFO.
    unsafe {
        let code = info.add(CODE_IN_INFO).cast::<c_int>().read();
        if signal == sys::SIGTRAP && handlers::stepped(code, context) {
            return;
        }
        let by_kernel = code > 0;
        let address = if by_kernel { info.add(ADDRESS_IN_INFO).cast::<u64>().read() } else { 0 };
        let pc = context.add(PC_IN_CONTEXT).cast::<u64>().read();
        let stack = context.add(STACK_IN_CONTEXT).cast::<u64>().read();
        let mut room = Text::new();
        let (mut kind, failure) = failure_of(signal, address, pc, stack, &mut room);
        // Somebody lost patience, as with a signal that nothing is to be seen of here.
        let sender = info.add(SENDER_IN_INFO).cast::<u32>().read();
        if signal == sys::SIGABRT && code == SENT && sender != sys::getpid() {
            kind = RawFailure::Deadlock;
        }
        process::note_failure(kind, &failure);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_tell_what_an_abort_is_about() {
        for (words, kind) in [
            (&b"free(): double free detected in tcache 2"[..], RawFailure::DoubleFree),
            (b"double free or corruption (!prev)", RawFailure::DoubleFree),
            (b"double free or corruption (out)", RawFailure::HeapCorruption),
            (b"free(): invalid next size (fast)", RawFailure::HeapCorruption),
            (b"corrupted size vs. prev_size", RawFailure::HeapCorruption),
            (
                b"tcache_thread_shutdown(): unaligned tcache chunk detected",
                RawFailure::HeapCorruption,
            ),
            (b"Fatal glibc error: malloc assertion failure in free: p", RawFailure::HeapCorruption),
            (b"Fatal glibc error: array index out of range", RawFailure::Abort),
            (b"*** stack smashing detected ***: terminated", RawFailure::Abort),
        ] {
            assert_eq!(of_words(words), kind, "{}", String::from_utf8_lossy(words));
        }
    }

    #[test]
    fn a_fault_next_to_the_stack_pointer_is_one_of_the_stack() {
        let here = 0_u8;
        let stack = &raw const here as u64;
        assert!(beyond_stack(stack - 8, stack));
        assert!(!beyond_stack(0, stack));
        // The stack pointer is where it should be, so the address is something else's.
        assert!(!beyond_stack(stack + (1 << 20), stack));
        assert!(sys::is_readable(stack) && !sys::is_readable(8));
    }
}
