//! Uncaught C++ exceptions: `std::terminate` is heard by a handler of our own, installed before the
//! program runs, which passes on to the one that was there, or that the program has installed since: what that one
//! does (`abort`, an exit status) is not what went wrong.
//!
//! libstdc++ is asked by name at run time: a C program has none. What the exception says of itself
//! comes from `std::exception::what`, found through the exception's run-time type as a `catch` would.

use crate::exported;
use crate::layout::RawFailure;
use crate::process::{self, Failure};
use crate::real;
use crate::sys;
use crate::text::Text;
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type P = *mut c_void;
type Handler = unsafe extern "C" fn();

/// The program's handler.
static BEFORE: AtomicUsize = AtomicUsize::new(0);
/// Is the runtime's own in front of it?
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// The header of a caught exception (`__cxa_exception` on x86-64), whose size is also where the object is.
struct Header {
    size: usize,
    /// Where its `exception_class` is, in bytes.
    class: usize,
    /// Where the object's address is, in an exception that shares another's.
    shared: usize,
    /// The class of an exception with an object of its own; one that shares another's has the next number.
    primary: u64,
}

const HEADERS: [Header; 2] = [
    // libstdc++.
    Header { size: 112, class: 80, shared: 0, primary: u64::from_be_bytes(*b"GNUCC++\0") },
    // libc++abi.
    Header { size: 128, class: 96, shared: 8, primary: u64::from_be_bytes(*b"CLNGC++\0") },
];
/// Index in the table of virtual functions of `std::type_info::__do_catch` (libc++abi's is `can_catch`), and
/// of `std::exception::what`.
const DO_CATCH: usize = 4;
const WHAT: usize = 2;

/// A function of C++'s library, if the program has it.
fn find(name: &core::ffi::CStr) -> P {
    // SAFETY: the name ends with a zero; a null handle stands for all objects.
    let search = || unsafe { sys::dlsym(null_mut(), name.as_ptr()) };
    if exported::is_anywhere(name) { sys::keeping_errno(search) } else { null_mut() }
}

/// Installs the handler, if the program has exceptions.
pub fn start() {
    let found = find(c"_ZSt13set_terminatePFvvE");
    let own = _ZSt13set_terminatePFvvE as *const ();
    let set: Option<unsafe extern "C" fn(usize) -> usize> = match real::_ZSt13set_terminatePFvvE() {
        None if found.is_null() || found.cast_const().cast() == own => None,
        // SAFETY: this is the type of `std::set_terminate`.
        None => {
            Some(unsafe { core::mem::transmute::<P, unsafe extern "C" fn(usize) -> usize>(found) })
        }
        real => real,
    };
    let Some(set) = set else { return };
    // SAFETY: a handler that stays.
    let before = unsafe { set(terminated as *const () as usize) };
    BEFORE.store(before, Ordering::Release);
    INSTALLED.store(true, Ordering::Release);
}

interpose! {
    /// `std::set_terminate`.
    fn _ZSt13set_terminatePFvvE(handler: usize) -> usize {
        if INSTALLED.load(Ordering::Acquire) {
            BEFORE.swap(handler, Ordering::AcqRel)
        } else {
            real::_ZSt13set_terminatePFvvE().map_or(0, |set| set(handler))
        }
    }
}

unsafe extern "C" fn terminated() {
    let mut message = Text::<1024>::new();
    // SAFETY: the functions are C++'s library's, called as its own handler calls them.
    let kind = unsafe { describe(&mut message) };
    let code = i64::from(sys::SIGABRT);
    process::note_failure(
        kind,
        &Failure { code, message: message.as_bytes(), ..Failure::default() },
    );
    let before = BEFORE.load(Ordering::Acquire);
    if before != 0 {
        // SAFETY: a terminate handler that the program had.
        unsafe {
            let before: Handler = core::mem::transmute(before);
            before();
        }
    }
    crate::exits::end_by_abort()
}

/// Says which exception it is; without one somebody called `std::terminate`.
unsafe fn describe(message: &mut Text<1024>) -> RawFailure {
    // SAFETY: see `terminated`.
    unsafe {
        let current = find(c"__cxa_current_exception_type");
        let kind = if current.is_null() {
            null_mut()
        } else {
            let current: unsafe extern "C" fn() -> P = core::mem::transmute(current);
            current()
        };
        if kind.is_null() {
            message.push(b"std::terminate was called without an exception");
            return RawFailure::Abort;
        }
        // A `type_info` is a table of functions and a name; the name of a local type has a star.
        let name = kind.cast::<*const c_char>().add(1).read();
        let name = if name.read() == b'*' as c_char { name.add(1) } else { name };
        push_name(message, name);
        let object = object();
        if !object.is_null() {
            push_what(message, kind, object);
        }
    }
    RawFailure::Exception
}

unsafe fn push_text(message: &mut Text<1024>, text: *const c_char) {
    // SAFETY: a C string.
    message.push(unsafe { core::slice::from_raw_parts(text.cast(), sys::strlen(text)) });
}

/// The name as people write it.
unsafe fn push_name(message: &mut Text<1024>, mangled: *const c_char) {
    // SAFETY: see `terminated`.
    unsafe {
        let demangle = find(c"__cxa_demangle");
        if !demangle.is_null() {
            let demangle: unsafe extern "C" fn(
                *const c_char,
                *mut c_char,
                *mut usize,
                *mut c_int,
            ) -> *mut c_char = core::mem::transmute(demangle);
            let mut status = 0;
            let plain = demangle(mangled, null_mut(), null_mut(), &mut status);
            if status == 0 && !plain.is_null() {
                // The process ends: nobody needs the memory back.
                return push_text(message, plain);
            }
        }
        push_text(message, mangled);
    }
}

/// The object that was thrown; null when another language threw it.
unsafe fn object() -> P {
    #[repr(C)]
    struct Globals {
        caught: P,
        uncaught: c_uint,
    }
    // SAFETY: see `terminated`; the layout is that of the C++ ABI.
    unsafe {
        let globals = find(c"__cxa_get_globals");
        if globals.is_null() {
            return null_mut();
        }
        let globals: unsafe extern "C" fn() -> *const Globals = core::mem::transmute(globals);
        let header = (*globals()).caught.cast::<u8>();
        if header.is_null() {
            return null_mut();
        }
        // Every header is as long as reaches the class in all of them.
        for known in &HEADERS {
            let class = header.add(known.class).cast::<u64>().read();
            if class == known.primary {
                return header.add(known.size).cast();
            }
            if class == known.primary + 1 {
                return header.add(known.shared).cast::<P>().read();
            }
        }
        null_mut()
    }
}

/// `what()`, when the exception is a `std::exception`.
unsafe fn push_what(message: &mut Text<1024>, kind: P, object: P) {
    let base = find(c"_ZTISt9exception");
    if base.is_null() {
        return;
    }
    // SAFETY: both are `std::type_info`s; the tables are those of the C++ ABI.
    unsafe {
        let table = base.cast::<*const usize>().read();
        let catches: unsafe extern "C" fn(P, P, *mut P, c_uint) -> bool =
            core::mem::transmute(table.add(DO_CATCH).read());
        let mut exception = object;
        if !catches(base, kind, &mut exception, 1) {
            return;
        }
        let table = exception.cast::<*const usize>().read();
        let what: unsafe extern "C" fn(P) -> *const c_char =
            core::mem::transmute(table.add(WHAT).read());
        let text = what(exception);
        if !text.is_null() {
            message.push(b": ");
            push_text(message, text);
        }
    }
}
