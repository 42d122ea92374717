//! GLib's assertions: they end in functions that print what failed, and abort.

use super::functions;
use crate::layout::RawFailure;
use crate::process::{self, Failure};
use crate::schedule;
use crate::sys;
use crate::text::Text;
use core::ffi::{c_char, c_int, c_void};

type P = *mut c_void;

mod own {
    use super::P;

    super::functions! {
        g_assertion_message(P, P, i32, P, P);
        g_assertion_message_expr(P, P, i32, P, P);
        g_assertion_message_cmpstr(P, P, i32, P, P);
        g_assertion_message_cmpstrv(P, P, i32, P, P);
        g_assertion_message_cmpint(P, P, i32, P, P);
        g_assertion_message_cmpnum(P, P, i32, P, P);
        g_assertion_message_error(P, P, i32, P, P);
    }
}

unsafe fn push_text<const SIZE: usize>(message: &mut Text<SIZE>, text: *const c_char) {
    if !text.is_null() {
        // SAFETY: a non-null argument is a C string.
        message.push(unsafe { core::slice::from_raw_parts(text.cast(), sys::strlen(text)) });
    }
}

/// Notes a failed assertion with the arguments that all of these functions have first; gives the library's own
/// function of this number.
///
/// # Safety
///
/// The texts are C strings, or null.
#[cfg_attr(symbiosis_export, unsafe(export_name = "__symbiosis_rt_glib_assertion"))]
pub unsafe extern "C" fn note(
    _domain: *const c_char,
    file: *const c_char,
    line: c_int,
    function: *const c_char,
    expression: *const c_char,
    number: u64,
) -> usize {
    let mut message = Text::<2048>::new();
    // SAFETY: the caller vouches for the texts.
    unsafe {
        push_text(&mut message, file);
        message.push(b":").push_decimal(u64::from(line.unsigned_abs())).push(b": ");
        push_text(&mut message, function);
        message.push(b": ");
        // `g_assert_not_reached` has none.
        match expression.is_null() {
            true => _ = message.push(b"code should not be reached"),
            false => push_text(&mut message, expression),
        }
    }
    let code = i64::from(sys::SIGABRT);
    let failure = Failure { code, message: message.as_bytes(), ..Failure::default() };
    process::note_failure(RawFailure::Assertion, &failure);
    schedule::process_ends(true);
    let found = match number {
        0 => own::g_assertion_message(),
        1 => own::g_assertion_message_expr(),
        2 => own::g_assertion_message_cmpstr(),
        3 => own::g_assertion_message_cmpstrv(),
        4 => own::g_assertion_message_cmpint(),
        5 => own::g_assertion_message_cmpnum(),
        _ => own::g_assertion_message_error(),
    };
    found.map_or(end as *const () as usize, |function| function as *const () as usize)
}

/// Stands in for a function that this library does not have.
unsafe extern "C" fn end() {
    crate::exits::end_by_abort()
}

/// The arguments behind the first five differ, and some are in the caller's frame: the library's function gets
/// all of them as they were.
macro_rules! assertions {
    ($($number:literal $name:literal)*) => {$(
        #[cfg(symbiosis_export)]
        core::arch::global_asm!(
            ".text",
            ".p2align 4",
            concat!(".weak ", $name),
            concat!(".type ", $name, ",@function"),
            concat!($name, ":"),
            ".cfi_startproc",
            "pushq %rdi",
            ".cfi_adjust_cfa_offset 8",
            "pushq %rsi",
            ".cfi_adjust_cfa_offset 8",
            "pushq %rdx",
            ".cfi_adjust_cfa_offset 8",
            "pushq %rcx",
            ".cfi_adjust_cfa_offset 8",
            "pushq %r8",
            ".cfi_adjust_cfa_offset 8",
            "pushq %r9",
            ".cfi_adjust_cfa_offset 8",
            "subq $8, %rsp",
            ".cfi_adjust_cfa_offset 8",
            concat!("movl $", $number, ", %r9d"),
            "call __symbiosis_rt_glib_assertion",
            "addq $8, %rsp",
            ".cfi_adjust_cfa_offset -8",
            "popq %r9",
            ".cfi_adjust_cfa_offset -8",
            "popq %r8",
            ".cfi_adjust_cfa_offset -8",
            "popq %rcx",
            ".cfi_adjust_cfa_offset -8",
            "popq %rdx",
            ".cfi_adjust_cfa_offset -8",
            "popq %rsi",
            ".cfi_adjust_cfa_offset -8",
            "popq %rdi",
            ".cfi_adjust_cfa_offset -8",
            "jmp *%rax",
            ".cfi_endproc",
            concat!(".size ", $name, ",.-", $name),
            options(att_syntax)
        );
    )*};
}

assertions! {
    0 "g_assertion_message"
    1 "g_assertion_message_expr"
    2 "g_assertion_message_cmpstr"
    3 "g_assertion_message_cmpstrv"
    4 "g_assertion_message_cmpint"
    5 "g_assertion_message_cmpnum"
    6 "g_assertion_message_error"
}
