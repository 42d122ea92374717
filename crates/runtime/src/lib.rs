//! The library that is linked into a traced program. It writes what the program's own hooks and
//! its calls into libc tell about each thread, in the layout of [`layout`].
//!
//! The crate has two lives. As a workspace member it is an ordinary library that exports nothing,
//! so that it can be checked and unit-tested without interposing on the test binary's `malloc`.
//! The root build script compiles it a second time with `--cfg symbiosis_export` as a static
//! library: then the hooks' symbols and the interposed libc functions exist.
//!
//! Invariants:
//!
//! * Traced threads share no lock. Thread numbers, function numbers and the claim on the failure
//!   record are single atomic operations; every stream is written by its own thread alone. Only those share locks
//!   who wait for conditions of Rust's library, or notify one (`foreign::waiters`).
//! * The runtime never calls the program's `malloc`: its memory comes from `mmap`.
//! * It keeps no file descriptor open, because a program may close or count descriptors: files
//!   are opened by name when they grow.
//! * What goes wrong is noted in the trace; the program runs on.
//! * `errno` is the program's: slow paths save and restore it.
#![cfg_attr(not(test), no_std)]
#![allow(clippy::missing_safety_doc)]
// The interposed functions have libc's names.
#![allow(non_snake_case)]

#[path = "../../trace-format/src/layout/mod.rs"]
pub mod layout;

#[macro_use]
mod interpose;
pub mod allocation;
pub mod allocator;
pub mod avoid;
pub mod c11;
pub mod children;
pub mod clocks;
pub mod crashes;
pub mod emulate;
pub mod exceptions;
pub mod exits;
pub mod exported;
pub mod fail_at;
pub mod files;
pub mod foreign;
pub mod forks;
pub mod gates;
pub mod guard;
pub mod handlers;
pub mod inputs;
pub mod mappings;
pub mod memory;
pub mod modules;
pub mod noise;
pub mod order;
pub mod panics;
pub mod paths;
pub mod privileges;
pub mod process;
pub mod readings;
pub mod real;
pub mod reload;
pub mod repeats;
pub mod report;
pub mod schedule;
pub mod script;
pub mod signals;
pub mod sleep;
pub mod sockets;
pub mod start;
pub mod streams;
pub mod sync;
pub mod sys;
pub mod syscall;
pub mod text;
pub mod threads;
pub mod timers;
pub mod tls;
pub mod writes;

/// There is no way to report a panic inside somebody else's program, and the code has none to
/// report: this exists because a `no_std` library must have it.
#[cfg(symbiosis_export)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `_exit` takes no pointers and does not return.
    unsafe { sys::trap() }
}

// The precompiled `core` was built for unwinding and may name the personality routine. Weak and
// hidden, so that a program with Rust code of its own keeps its own.
#[cfg(symbiosis_export)]
core::arch::global_asm!(
    ".text",
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality,@function",
    "rust_eh_personality:",
    "ud2",
    options(att_syntax)
);
