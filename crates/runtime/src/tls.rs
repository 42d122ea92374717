//! The thread-local variables, and the sink.
//!
//! Stable Rust without `std` has no thread-local statics, so they are defined in assembly, with
//! the initial-exec model: a load of one is two instructions, and the variables of another thread
//! are found from its `pthread_t`, which in glibc is the address that the offsets count from.

use crate::layout::Control;
use crate::sys::Pthread;
use crate::threads::Thread;

/// Bytes of each of the sink's two rings.
pub const SINK_RING: usize = 4096;

// The sink is what hooks write to in a thread that the runtime has not seen yet. Both its streams
// stand at their limit, so that the first hook calls the runtime, which gives the thread a sink of
// its own (`threads::attach_late`). The room behind the rings is there because two such threads
// may step over the limit at once.
#[cfg(symbiosis_export)]
core::arch::global_asm!(
    ".section .tdata,\"awT\",@progbits",
    ".p2align 3",
    ".globl __symbiosis_control",
    ".type __symbiosis_control,@object",
    ".size __symbiosis_control,8",
    "__symbiosis_control: .quad __symbiosis_sink",
    ".section .tbss,\"awT\",@nobits",
    ".p2align 3",
    ".globl __symbiosis_thread",
    ".type __symbiosis_thread,@object",
    ".size __symbiosis_thread,8",
    "__symbiosis_thread: .zero 8",
    ".globl __symbiosis_serial",
    ".type __symbiosis_serial,@object",
    ".size __symbiosis_serial,8",
    "__symbiosis_serial: .zero 8",
    ".data",
    ".p2align 6",
    ".globl __symbiosis_sink",
    ".type __symbiosis_sink,@object",
    "__symbiosis_sink:",
    ".quad __symbiosis_sink_path+4096, __symbiosis_sink_path+4096",
    ".quad __symbiosis_sink_values+4096, __symbiosis_sink_values+4096",
    // No choices.
    ".zero 8",
    ".quad __symbiosis_sink_path, __symbiosis_sink_values",
    // Eleven words up to `gate_stop`, which says never.
    ".zero 88",
    ".quad -1",
    ".zero 128",
    ".size __symbiosis_sink,.-__symbiosis_sink",
    ".bss",
    ".p2align 6",
    "__symbiosis_sink_path: .zero 65536",
    "__symbiosis_sink_values: .zero 65536",
    ".text",
    options(att_syntax)
);

const _: () = assert!(core::mem::offset_of!(Control, gate_stop) == 7 * 8 + 88);
const _: () = assert!(size_of::<Control>() == 7 * 8 + 88 + 8 + 128);

#[cfg(symbiosis_export)]
macro_rules! offset_of_variable {
    ($name:literal) => {{
        let offset: usize;
        // SAFETY: reads a constant of the global offset table.
        unsafe {
            core::arch::asm!(
                concat!("movq ", $name, "@GOTTPOFF(%rip), {0}"),
                out(reg) offset,
                options(att_syntax, pure, readonly, nostack, preserves_flags)
            );
        }
        offset
    }};
}

#[cfg(symbiosis_export)]
macro_rules! variable {
    ($name:literal) => {{
        let base: usize;
        // SAFETY: the first word of glibc's thread control block is its own address.
        unsafe {
            core::arch::asm!(
                "movq %fs:0, {0}",
                out(reg) base,
                options(att_syntax, pure, readonly, nostack, preserves_flags)
            );
        }
        base.wrapping_add(offset_of_variable!($name))
    }};
}

// Outside of a traced program there is one thread's worth of these variables, never used.
#[cfg(not(symbiosis_export))]
macro_rules! variable {
    ($name:literal) => {{
        static WORD: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);
        core::ptr::addr_of!(WORD) as usize
    }};
}

/// The thread's control pointer, which the inline hooks read.
#[inline]
pub fn control_slot() -> *mut *mut Control {
    variable!("__symbiosis_control") as *mut *mut Control
}

/// The runtime's own record of the thread; null before it was attached.
#[inline]
pub fn thread_slot() -> *mut *mut Thread {
    variable!("__symbiosis_thread") as *mut *mut Thread
}

/// The thread's serial for `pthread_join` in another thread: 0 when it has not started yet,
/// [`NO_SERIAL`] when it has no streams.
#[inline]
pub fn serial_slot() -> *mut u64 {
    variable!("__symbiosis_serial") as *mut u64
}

/// The calling thread's serial, also behind the end of its log; `None` when it never had one.
pub fn own_serial() -> Option<u64> {
    // SAFETY: the variable is the calling thread's own, and other threads only read it.
    let serial = unsafe { core::ptr::read_volatile(serial_slot()) };
    Some(serial).filter(|serial| *serial != 0 && *serial != NO_SERIAL)
}

/// A started thread without streams.
pub const NO_SERIAL: u64 = u64::MAX;

/// So much memory from address 0 on is never mapped.
#[cfg(symbiosis_export)]
const NULL_PAGE: usize = 4096;

/// The serial variable of another thread, which must not have been joined yet. A handle that is still zero is
/// no thread's: libc says so, where reading in front of it would end the program.
#[cfg(symbiosis_export)]
pub unsafe fn serial_of(thread: Pthread) -> u64 {
    if (thread as usize) < NULL_PAGE {
        return NO_SERIAL;
    }
    let at = (thread as usize).wrapping_add(offset_of_variable!("__symbiosis_serial"));
    // SAFETY: the thread's control block, and with it its thread-local storage, is there until it
    // is joined; the other thread may write at the same time, hence volatile.
    unsafe { core::ptr::read_volatile(at as *const u64) }
}

/// The serial variable of another thread; there is none outside of a traced program.
#[cfg(not(symbiosis_export))]
pub unsafe fn serial_of(_thread: Pthread) -> u64 {
    NO_SERIAL
}

/// The sink of threads that are not attached.
#[cfg(symbiosis_export)]
pub fn sink() -> *mut Control {
    unsafe extern "C" {
        static mut __symbiosis_sink: Control;
    }
    core::ptr::addr_of_mut!(__symbiosis_sink)
}

/// There is no sink outside of a traced program.
#[cfg(not(symbiosis_export))]
pub fn sink() -> *mut Control {
    core::ptr::null_mut()
}

/// The calling thread's record when it has streams to write to, else null. A raw pointer, because
/// a signal handler of the same thread may get it too.
#[inline]
pub fn recording() -> *mut Thread {
    // SAFETY: the slot is the calling thread's own, and a record in it lives as long as the thread.
    unsafe {
        let thread = *thread_slot();
        if thread.is_null() || !(*thread).live { core::ptr::null_mut() } else { thread }
    }
}
