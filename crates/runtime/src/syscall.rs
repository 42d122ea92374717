//! System calls: the runtime's own, which go past libc, and the program's by `syscall`.
//!
//! Of the program's only futexes matter, which libstdc++ waits with (C++20 waits, futures, guards of
//! static variables), in its headers as in the library. All others go to the kernel, as in libc.

use crate::emulate::{self, Limit};
use crate::foreign;
use crate::layout::SyncOp;
use crate::sync::{Call, around};
use crate::sys::{self, TimeSpec};
use core::ffi::{c_int, c_long, c_void};

/// Its number on x86-64.
pub const FUTEX: c_long = 202;
const WAIT: c_long = 0;
const WAKE: c_long = 1;
const WAIT_BITSET: c_long = 9;
const WAKE_BITSET: c_long = 10;
/// Which command, without its options.
const COMMAND: c_long = 0x7f;
/// The option that absolute times are times of day.
const TIME_OF_DAY: c_long = 256;
/// Results above this are errors.
const LARGEST_ERROR: c_long = -4095;

/// A system call; missing arguments are 0. Returns what libc's `syscall` does, and sets `errno`.
///
/// # Safety
///
/// As for that system call.
pub unsafe fn call(number: c_long, arguments: &[c_long]) -> c_long {
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
    let result: c_long;
    // SAFETY: the caller vouches for the call; the kernel changes no registers but these.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") argument(0),
            in("rsi") argument(1),
            in("rdx") argument(2),
            in("r10") argument(3),
            in("r8") argument(4),
            in("r9") argument(5),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    if (LARGEST_ERROR..0).contains(&result) { failed(result) } else { result }
}

/// Sets `errno` to what the kernel said; the result of `syscall` then.
#[cfg_attr(symbiosis_export, unsafe(export_name = "__symbiosis_rt_syscall_failed"))]
pub extern "C" fn failed(result: c_long) -> c_long {
    sys::set_errno(-result as c_int);
    -1
}

/// What the program gets for `syscall(SYS_futex, ...)` that returns to `caller`. Those that a library makes
/// inside of its own locks wait as the program's do, and are not logged.
#[cfg_attr(symbiosis_export, unsafe(export_name = "__symbiosis_rt_futex"))]
pub unsafe extern "C" fn futex(
    number: c_long,
    word: *mut c_void,
    operation: c_long,
    value: c_long,
    time: *const TimeSpec,
    second: c_long,
    third: c_long,
    caller: u64,
) -> c_long {
    let own = || {
        let arguments = [word as c_long, operation, value, time as c_long, second, third];
        // SAFETY: the call is the program's.
        unsafe { call(number, &arguments) as c_int }
    };
    let argument = u64::from(value as u32);
    let limit = match operation & COMMAND {
        _ if time.is_null() => Limit::None,
        WAIT => Limit::In(time),
        _ if operation & TIME_OF_DAY != 0 => Limit::At(sys::CLOCK_REALTIME, time),
        _ => Limit::At(sys::CLOCK_MONOTONIC, time),
    };
    let quiet = foreign::inside() || foreign::holds(caller);
    // SAFETY: the caller keeps the contract of the system call.
    let result = unsafe {
        match operation & COMMAND {
            WAIT | WAIT_BITSET if quiet => {
                let between = !foreign::inside();
                emulate::wait_futex(word, value as u32, limit, between, own)
            }
            WAKE | WAKE_BITSET if quiet => emulate::wake_futex(word, value as u32, own),
            WAIT | WAIT_BITSET => {
                let call = Call { argument, ..Call::on(SyncOp::FutexWait, word) };
                let through = || emulate::wait_futex(word, value as u32, limit, false, own);
                // A wait without effect tells of the word, too.
                let changed = || word.cast::<u32>().read_volatile() != value as u32;
                let meaning = |result: c_int| match result {
                    0 => c_int::from(changed()),
                    _ if sys::errno() == sys::EAGAIN => 1,
                    _ => -1,
                };
                around(call, through, meaning)
            }
            WAKE | WAKE_BITSET => {
                let call = Call { argument, ..Call::on(SyncOp::FutexWake, word) };
                around(call, || emulate::wake_futex(word, value as u32, own), |result| result)
            }
            _ => own(),
        }
    };
    c_long::from(result)
}

// Written so that the kernel gets every other call as it was made, whatever the call does to the
// stack or to memory.
#[cfg(symbiosis_export)]
core::arch::global_asm!(
    ".text",
    ".p2align 4",
    ".weak syscall",
    ".type syscall,@function",
    "syscall:",
    ".cfi_startproc",
    "cmpq $202, %rdi",
    "jne 2f",
    // The seventh argument of the call goes along on the stack, and where it returns to behind that.
    "movq (%rsp), %rax",
    "movq 8(%rsp), %r10",
    "subq $8, %rsp",
    ".cfi_adjust_cfa_offset 8",
    "pushq %rax",
    ".cfi_adjust_cfa_offset 8",
    "pushq %r10",
    ".cfi_adjust_cfa_offset 8",
    "call __symbiosis_rt_futex",
    "addq $24, %rsp",
    ".cfi_adjust_cfa_offset -24",
    "ret",
    "2: movq %rdi, %rax",
    "movq %rsi, %rdi",
    "movq %rdx, %rsi",
    "movq %rcx, %rdx",
    "movq %r8, %r10",
    "movq %r9, %r8",
    "movq 8(%rsp), %r9",
    "syscall",
    "cmpq $-4095, %rax",
    "jae 3f",
    "ret",
    "3: movq %rax, %rdi",
    "jmp __symbiosis_rt_syscall_failed",
    ".cfi_endproc",
    ".size syscall,.-syscall",
    options(att_syntax)
);

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32;

    #[test]
    fn calls_go_to_the_kernel_with_their_arguments_and_errors() {
        let word = AtomicU32::new(7);
        let address = word.as_ptr();
        // SAFETY: the word lives; nobody waits on it.
        unsafe {
            assert_eq!(call(39, &[]), c_long::from(std::process::id()));
            assert_eq!(call(FUTEX, &[address as c_long, WAKE, 1]), 0);
            assert_eq!(call(FUTEX, &[address as c_long, WAIT, 8]), -1);
            assert_eq!(sys::errno(), sys::EAGAIN);
            let time = TimeSpec { seconds: 0, nanoseconds: 1 };
            let waited = futex(FUTEX, address.cast(), WAIT, 7, &raw const time, 0, 0, 0);
            assert_eq!((waited, sys::errno()), (-1, sys::ETIMEDOUT));
        }
    }
}
