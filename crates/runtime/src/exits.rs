//! The ways in which a program ends itself.

use crate::crashes;
use crate::layout::{RawFailure, RuntimeEvent};
use crate::panics;
use crate::process::{self, Failure};
use crate::real;
use crate::report;
use crate::schedule;
use crate::streams;
use crate::sys;
use crate::text::Text;
use crate::threads;
use crate::tls;
use core::ffi::{c_char, c_int, c_uint, c_void};

unsafe fn text<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"?";
    }
    // SAFETY: a non-null argument is a C string.
    unsafe { core::slice::from_raw_parts(text.cast(), sys::strlen(text)) }
}

fn note_status(status: c_int) {
    process::note_exit(status);
    if status & 0xff != 0 {
        panics::settle();
        process::note_failure(
            RawFailure::Exit,
            &Failure { code: i64::from(status & 0xff), ..Failure::default() },
        );
    }
}

/// Runs after all other exit handlers and destructors: here the status that `main` returned shows.
pub unsafe extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    schedule::ending();
    note_status(status);
    threads::mark_end();
}

fn note_jump() {
    crashes::left();
    let me = tls::recording();
    if !me.is_null() {
        // SAFETY: the record is the calling thread's own.
        unsafe { streams::event(me, RuntimeEvent::NonLocal, &[]) };
    }
}

macro_rules! forward_for_good {
    ($name:ident($($argument:expr),*)) => {{
        if let Some(function) = real::$name() {
            function($($argument),*);
        }
        sys::trap()
    }};
}

/// Ends the process as `abort` does, after its failure was recorded.
pub fn end_by_abort() -> ! {
    // SAFETY: `abort` takes no arguments.
    unsafe {
        schedule::process_ends(true);
        forward_for_good!(abort())
    }
}

/// What `symbiosis_fail_if` of `symbiosis.h` calls when its condition holds: records the failure, and
/// ends the process as a failed assertion does.
///
/// # Safety
///
/// The texts are C strings, or null.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
pub unsafe extern "C" fn symbiosis_fail(
    condition: *const c_char,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) -> ! {
    let mut message = Text::<2048>::new();
    // SAFETY: the caller vouches for the texts.
    unsafe {
        message.push(text(file)).push(b":").push_decimal(u64::from(line)).push(b": ");
        message.push(text(function)).push(b": ").push(text(condition));
    }
    let code = i64::from(sys::SIGABRT);
    let bytes = message.as_bytes();
    let failure = Failure { code, message: bytes, ..Failure::default() };
    process::note_failure(RawFailure::User, &failure);
    let mut words = Text::<2100>::new();
    report::complain(words.push(bytes).push(b": symbiosis_fail_if").as_bytes());
    end_by_abort()
}

interpose! {
    fn __assert_fail(
        expression: *const c_char,
        file: *const c_char,
        line: c_uint,
        function: *const c_char,
    ) {
        let mut message = Text::<2048>::new();
        message.push(text(file)).push(b":").push_decimal(u64::from(line)).push(b": ");
        message.push(text(function)).push(b": ").push(text(expression));
        let failure = Failure {
            code: i64::from(sys::SIGABRT),
            message: message.as_bytes(),
            ..Failure::default()
        };
        process::note_failure(RawFailure::Assertion, &failure);
        schedule::process_ends(true);
        forward_for_good!(__assert_fail(expression, file, line, function))
    }

    fn abort() {
        let failure = Failure { code: i64::from(sys::SIGABRT), ..Failure::default() };
        process::note_failure(RawFailure::Abort, &failure);
        schedule::process_ends(true);
        forward_for_good!(abort())
    }

    fn exit(status: c_int) {
        schedule::ending();
        note_status(status);
        forward_for_good!(exit(status))
    }

    fn _exit(status: c_int) {
        schedule::ending();
        note_status(status);
        schedule::process_ends(status & 0xff != 0);
        forward_for_good!(_exit(status))
    }

    fn _Exit(status: c_int) {
        schedule::ending();
        note_status(status);
        schedule::process_ends(status & 0xff != 0);
        forward_for_good!(_Exit(status))
    }

    fn quick_exit(status: c_int) {
        schedule::ending();
        note_status(status);
        schedule::process_ends(status & 0xff != 0);
        forward_for_good!(quick_exit(status))
    }

    fn longjmp(environment: *mut c_void, value: c_int) {
        note_jump();
        forward_for_good!(longjmp(environment, value))
    }

    fn _longjmp(environment: *mut c_void, value: c_int) {
        note_jump();
        forward_for_good!(_longjmp(environment, value))
    }

    fn siglongjmp(environment: *mut c_void, value: c_int) {
        note_jump();
        forward_for_good!(siglongjmp(environment, value))
    }

    fn __longjmp_chk(environment: *mut c_void, value: c_int) {
        note_jump();
        forward_for_good!(__longjmp_chk(environment, value))
    }
}
