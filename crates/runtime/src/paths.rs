//! Calls that name files, or use them: the clock is read before and behind each, so that it is known which
//! of two threads came first to a file. Those that pass bytes, and `close`, are in [`crate::sockets`].

use crate::real;
use crate::streams;
use crate::sys;
use crate::tls;
use core::ffi::{c_int, c_long, c_uint, c_void};
use core::ptr::null_mut;

type P = *mut c_void;

/// A call, between two readings of the clock.
pub fn timed<T>(own: impl FnOnce() -> T) -> T {
    sys::keeping_errno(read_clock);
    let result = own();
    sys::keeping_errno(read_clock);
    result
}

fn read_clock() {
    let thread = tls::recording();
    if !thread.is_null() {
        // SAFETY: the record is the calling thread's own.
        unsafe { streams::reading_in_call(thread) };
    }
}

/// What a function gives when it fails.
trait Failed {
    const FAILED: Self;
}

impl Failed for c_int {
    const FAILED: Self = -1;
}

impl Failed for isize {
    const FAILED: Self = -1;
}

impl Failed for P {
    const FAILED: Self = null_mut();
}

/// What an older kernel or library, which does not have the function, would do.
fn missing<T: Failed>() -> T {
    sys::set_errno(sys::ENOSYS);
    T::FAILED
}

macro_rules! timed {
    ($($name:ident($($argument:ident: $ty:ty),*) -> $result:ty;)*) => {
        interpose! {$(
            fn $name($($argument: $ty),*) -> $result {
                match real::$name() {
                    Some(function) => timed(|| function($($argument),*)),
                    None => missing(),
                }
            }
        )*}
    };
}

timed! {
    open(path: P, flags: c_int, mode: c_uint) -> c_int;
    open64(path: P, flags: c_int, mode: c_uint) -> c_int;
    __open_2(path: P, flags: c_int) -> c_int;
    __open64_2(path: P, flags: c_int) -> c_int;
    openat(directory: c_int, path: P, flags: c_int, mode: c_uint) -> c_int;
    openat64(directory: c_int, path: P, flags: c_int, mode: c_uint) -> c_int;
    creat(path: P, mode: c_uint) -> c_int;
    creat64(path: P, mode: c_uint) -> c_int;
    pread(fd: c_int, data: P, count: usize, at: c_long) -> isize;
    pread64(fd: c_int, data: P, count: usize, at: c_long) -> isize;
    pwrite(fd: c_int, data: P, count: usize, at: c_long) -> isize;
    pwrite64(fd: c_int, data: P, count: usize, at: c_long) -> isize;
    truncate(path: P, size: c_long) -> c_int;
    truncate64(path: P, size: c_long) -> c_int;
    ftruncate(fd: c_int, size: c_long) -> c_int;
    ftruncate64(fd: c_int, size: c_long) -> c_int;
    fopen(path: P, mode: P) -> P;
    fopen64(path: P, mode: P) -> P;
    fflush(stream: P) -> c_int;
    fclose(stream: P) -> c_int;
    stat(path: P, into: P) -> c_int;
    stat64(path: P, into: P) -> c_int;
    lstat(path: P, into: P) -> c_int;
    lstat64(path: P, into: P) -> c_int;
    access(path: P, mode: c_int) -> c_int;
    mkdir(path: P, mode: c_uint) -> c_int;
    rmdir(path: P) -> c_int;
    unlink(path: P) -> c_int;
    remove(path: P) -> c_int;
    rename(from: P, to: P) -> c_int;
    link(from: P, to: P) -> c_int;
    symlink(from: P, to: P) -> c_int;
}
