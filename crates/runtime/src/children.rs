//! Processes that another recorded process started: each makes a trace directory of its own where
//! the recorder said, and writes down what it is.

use crate::files;
use crate::layout::{OPENMP_FILE, OPENMP_PREFIX, ORIGIN_FILE};
use crate::process;
use crate::sys;
use crate::text::Text;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The directory for the traces; empty when children are not recorded.
struct Root(UnsafeCell<Text<4096>>);

// SAFETY: written once, before there is a second thread.
unsafe impl Sync for Root {}

static ROOT: Root = Root(UnsafeCell::new(Text::new()));

/// The environment that the process began with.
static ENVIRONMENT: AtomicPtr<*mut c_char> = AtomicPtr::new(null_mut());

/// Notes the environment that the process began with.
pub fn set_environment(environment: *mut *mut c_char) {
    ENVIRONMENT.store(environment, Ordering::Relaxed);
}

/// So many programs of one process are recorded.
const MOST_PROGRAMS: u64 = 100_000;

/// Sets the directory; to be called once, while the process has one thread. A copy is kept, because
/// the program may change its environment.
pub fn set_root(name: &[u8]) {
    // SAFETY: only the one thread there is gets here.
    unsafe {
        let root = &mut *ROOT.0.get();
        root.push(name);
        if !root.is_whole() {
            *root = Text::new();
        }
    }
}

fn root() -> &'static [u8] {
    // SAFETY: after start-up nobody writes to it.
    unsafe { (*ROOT.0.get()).as_bytes() }
}

/// Are the children of this process recorded?
#[must_use]
pub fn followed() -> bool {
    !root().is_empty()
}

/// Makes a trace directory for this process, and makes it the one to write to. The process must
/// have one thread.
///
/// # Errors
///
/// The `errno`.
pub fn open(forked: bool) -> Result<(), c_int> {
    claim()?;
    write_origin()?;
    process::create(forked)
}

/// Makes the directories, under the first free name. The files follow; `process.bin`, which says
/// that there is a trace, last.
///
/// # Errors
///
/// The `errno`.
pub fn claim() -> Result<(), c_int> {
    for number in 1..=MOST_PROGRAMS {
        let mut name = Text::<4096>::new();
        name.push(root()).push(b"/").push_decimal(u64::from(sys::getpid()));
        name.push(b"-").push_decimal(number);
        if !name.is_whole() {
            return Err(sys::ENAMETOOLONG);
        }
        // SAFETY: the name ends with a zero.
        if unsafe { sys::mkdir(name.as_c(), 0o777) } == 0 {
            files::set_directory(name.as_bytes())?;
            files::make_directory(b"threads")?;
            return files::make_directory(b"ir");
        }
        if sys::errno() != sys::EEXIST {
            return Err(sys::errno());
        }
    }
    Err(sys::EEXIST)
}

/// Writes the executable's path, the working directory and the arguments, and what the environment says to OpenMP.
///
/// # Errors
///
/// The `errno`.
pub fn write_origin() -> Result<(), c_int> {
    let mut place = [0u8; 4096];
    let fd = files::open(&files::name(&[ORIGIN_FILE.as_bytes()]), sys::O_WRONLY | sys::O_CREAT)?;
    // SAFETY: the buffer has the length given, and the names end with a zero.
    let written = unsafe {
        let room = place.len() - 1;
        let length = sys::readlink(c"/proc/self/exe".as_ptr(), place.as_mut_ptr().cast(), room);
        let length = usize::try_from(length).unwrap_or(0);
        let executable = place.get(..=length).unwrap_or(&[0]);
        files::write_all(fd, executable.as_ptr(), executable.len()).and_then(|()| {
            place = [0; 4096];
            sys::getcwd(place.as_mut_ptr().cast(), room);
            let length = sys::strlen(place.as_ptr().cast());
            files::write_all(fd, place.as_ptr(), length + 1)
        })
    };
    let written = written.and_then(|()| {
        let mut name = files::FileName::new();
        name.push(b"/proc/self/cmdline");
        // SAFETY: no pointers.
        let end = unsafe { sys::lseek(fd, 0, 2) };
        files::copy(&name, 0, fd, u64::try_from(end).unwrap_or(0), u64::MAX)
    });
    files::close(fd);
    written.and_then(|()| write_openmp())
}

/// Writes the variables of OpenMP, each ended by a zero, if there are any.
fn write_openmp() -> Result<(), c_int> {
    let mut fd = None;
    // SAFETY: the environment is a list of texts that ends with a null pointer, and so does each text with a zero.
    // libc's pointer is null as long as libc itself has not begun.
    unsafe {
        let own = sys::environ;
        let mut at = if own.is_null() { ENVIRONMENT.load(Ordering::Relaxed) } else { own };
        while !at.is_null() && !(*at).is_null() {
            let text = CStr::from_ptr(*at).to_bytes_with_nul();
            if text.starts_with(OPENMP_PREFIX.as_bytes()) {
                let name = || files::name(&[OPENMP_FILE.as_bytes()]);
                let to = match fd {
                    Some(to) => to,
                    None => files::open(&name(), sys::O_WRONLY | sys::O_CREAT)?,
                };
                fd = Some(to);
                files::write_all(to, text.as_ptr(), text.len())?;
            }
            at = at.add(1);
        }
    }
    if let Some(fd) = fd {
        files::close(fd);
    }
    Ok(())
}
