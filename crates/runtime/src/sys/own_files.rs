//! What the runtime does with its own files, past the interposed functions: those write to the streams whose
//! files these may be.

use super::{SYS_OPENAT, SYS_PWRITE};
use crate::syscall;
use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

macro_rules! system_calls {
    ($($(#[$about:meta])* $name:ident = $number:expr, ($($argument:ident: $ty:ty),*) -> $result:ty;)*) => {$(
        $(#[$about])*
        ///
        /// # Safety
        ///
        /// That of the function.
        pub unsafe fn $name($($argument: $ty),*) -> $result {
            // SAFETY: the caller's.
            unsafe { syscall::call($number, &[$($argument as c_long),*]) as $result }
        }
    )*};
}

system_calls! {
    /// `openat`.
    open_at = SYS_OPENAT, (directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int;
    /// `fchownat`.
    change_owner = 260,
        (directory: c_int, path: *const c_char, user: c_uint, group: c_uint, flags: c_int) -> c_int;
    /// `pwrite`.
    pwrite = SYS_PWRITE, (fd: c_int, data: *const c_void, n: usize, offset: i64) -> isize;
    /// `access`.
    access = 21, (path: *const c_char, mode: c_int) -> c_int;
    /// `rename`.
    rename = 82, (from: *const c_char, to: *const c_char) -> c_int;
    /// `mkdir`.
    mkdir = 83, (path: *const c_char, mode: c_uint) -> c_int;
    /// `link`.
    link = 86, (from: *const c_char, to: *const c_char) -> c_int;
    /// `unlink`.
    unlink = 87, (path: *const c_char) -> c_int;
}
