//! Programs that give up what they may do, as servers do once they have begun: they make another directory their root, or
//! go on as another user. The trace directory is held open before, and given to that user, so that further threads can
//! be recorded.

use crate::real;
use crate::{files, process, sys};
use core::ffi::{c_int, c_uint, c_void};

type P = *mut c_void;

/// "As it is", for functions that set several.
const UNCHANGED: c_uint = c_uint::MAX;
const ROOT: c_uint = 0;

/// The process is about to become another user's. What cannot be done shows where a file cannot be made.
fn become_user(user: c_uint) {
    if user == UNCHANGED || user == ROOT || !process::recording() {
        return;
    }
    sys::keeping_errno(|| {
        if sys::geteuid() == ROOT && files::hold_directory().is_ok() {
            let _ = files::give_to(user);
        }
    });
}

fn leave_root() {
    if process::recording() {
        sys::keeping_errno(|| {
            let _ = files::hold_directory();
        });
    }
}

fn missing() -> c_int {
    sys::set_errno(sys::ENOSYS);
    -1
}

interpose! {
    fn chroot(path: P) -> c_int {
        leave_root();
        real::chroot().map_or_else(missing, |function| function(path))
    }
    fn setuid(user: c_uint) -> c_int {
        become_user(user);
        real::setuid().map_or_else(missing, |function| function(user))
    }
    fn seteuid(user: c_uint) -> c_int {
        become_user(user);
        real::seteuid().map_or_else(missing, |function| function(user))
    }
    fn setreuid(own: c_uint, effective: c_uint) -> c_int {
        become_user(effective);
        real::setreuid().map_or_else(missing, |function| function(own, effective))
    }
    fn setresuid(own: c_uint, effective: c_uint, saved: c_uint) -> c_int {
        become_user(effective);
        real::setresuid().map_or_else(missing, |function| function(own, effective, saved))
    }
}
