//! The start: before any constructor of the program, or at the first registration.

use crate::exits;
use crate::files;
use crate::layout::TRACE_DIR_VARIABLE;
use crate::process;
use crate::real;
use crate::signals;
use crate::sys;
use crate::text::Text;
use crate::threads;
use core::ffi::{c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};

static STARTED: AtomicU32 = AtomicU32::new(0);

/// In an executable, the dynamic linker runs this before everything else, constructors of shared
/// libraries included.
#[cfg(symbiosis_export)]
#[used]
#[unsafe(link_section = ".preinit_array")]
static AT_START: unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = preinit;

/// The first thing that runs.
pub unsafe extern "C" fn preinit(
    _count: c_int,
    _arguments: *mut *mut c_char,
    environment: *mut *mut c_char,
) {
    start(environment);
}

/// Starts the runtime unless that was done.
pub fn ensure() {
    if STARTED.load(Ordering::Acquire) == 0 {
        // SAFETY: reads a pointer that libc keeps.
        start(unsafe { sys::environ });
    }
}

fn start(environment: *mut *mut c_char) {
    if STARTED.swap(1, Ordering::AcqRel) != 0 {
        return;
    }
    sys::keeping_errno(|| {
        real::find_all();
        // SAFETY: the environment is a null-terminated array of C strings, and nobody else reads
        // it yet.
        let directory = unsafe { take_variable(environment) };
        if let Some(directory) = directory {
            match open_trace(directory) {
                // Another process of this recording was first: this one runs unrecorded.
                Ok(()) | Err(sys::EEXIST) => {}
                Err(error) => complain(directory, error),
            }
        }
        threads::start();
        if process::recording() {
            signals::install();
            // SAFETY: the functions stay, and are what these registrations ask for.
            unsafe {
                sys::__register_atfork(None, None, Some(threads::forked), null_mut());
                sys::on_exit(exits::at_exit, null_mut());
            }
        }
    });
}

fn open_trace(directory: &[u8]) -> Result<(), c_int> {
    files::set_directory(directory)?;
    files::make_directory(b"threads")?;
    files::make_directory(b"ir")?;
    process::create()
}

/// Says on standard error why there will be no trace: there is no other place for it.
fn complain(directory: &[u8], error: c_int) {
    let mut text = Text::<4400>::new();
    text.push(b"symbiosis: this run is not recorded: cannot write to ").push(directory);
    text.push(b" (errno ").push_decimal(error as u64).push(b")\n");
    // SAFETY: the bytes are there.
    unsafe { sys::write(2, text.as_bytes().as_ptr().cast(), text.as_bytes().len()) };
}

/// Finds the variable and takes it out of the environment, so that programs which this one starts
/// do not write into the same trace.
unsafe fn take_variable<'a>(environment: *mut *mut c_char) -> Option<&'a [u8]> {
    if environment.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for the array.
    unsafe {
        let mut at = environment;
        while !(*at).is_null() {
            let entry = core::slice::from_raw_parts((*at).cast::<u8>(), sys::strlen(*at));
            if let Some(value) = value_of(entry) {
                while !(*at).is_null() {
                    *at = *at.add(1);
                    at = at.add(1);
                }
                return if value.is_empty() { None } else { Some(value) };
            }
            at = at.add(1);
        }
    }
    None
}

/// The variable's value, when this entry is it.
fn value_of(entry: &[u8]) -> Option<&[u8]> {
    entry.strip_prefix(TRACE_DIR_VARIABLE.as_bytes())?.strip_prefix(b"=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_name_is_the_variable() {
        assert_eq!(value_of(b"SYMBIOSIS_TRACE_DIR=/x"), Some(&b"/x"[..]));
        assert_eq!(value_of(b"SYMBIOSIS_TRACE_DIRECTORY=/x"), None);
        assert_eq!(value_of(b"PATH=/x"), None);
    }

    #[test]
    fn the_variable_leaves_the_environment() {
        let mut entries: Vec<Vec<u8>> = ["A=1", "SYMBIOSIS_TRACE_DIR=/tmp/x", "B=2"]
            .iter()
            .map(|text| [text.as_bytes(), b"\0"].concat())
            .collect();
        let mut array: Vec<*mut c_char> =
            entries.iter_mut().map(|entry| entry.as_mut_ptr().cast()).collect();
        let (a, b) = (array[0], array[2]);
        array.push(null_mut());
        // SAFETY: a null-terminated array of C strings.
        let value = unsafe { take_variable(array.as_mut_ptr()) };
        assert_eq!(value, Some(&b"/tmp/x"[..]));
        assert_eq!(array, [a, b, null_mut(), null_mut()]);
    }
}
