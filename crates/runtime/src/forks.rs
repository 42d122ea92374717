//! A child of `fork` gets a trace of its own, which begins with what the parent's threads had logged
//! until then: so the walk of its one thread begins at the program's beginning, and finds there what
//! the other threads had done.
//!
//! All of it happens in the child, between the kernel's `fork` and the return of libc's. The forking
//! thread's own cursors are taken before, since the parent goes on writing to the control page that
//! both still share. Other threads of the parent go on meanwhile, so their part of the child's trace
//! may be a little too long, never too short; what is too much comes after all that the child saw.

use crate::children;
use crate::files::{self, FileName};
use crate::layout::{CONTROL_MAGIC, CONTROL_PAGE_SIZE, Control, STREAM_BEHIND, STREAM_WINDOW};
use crate::process;
use crate::real;
use crate::report;
use crate::streams::{self, Stream};
use crate::sys;
use crate::text::Text;
use crate::threads::Thread;
use crate::tls;
use core::ffi::c_int;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{AtomicBool, Ordering};

/// Streams that are longer together, in bytes, are not copied into a child's trace.
const MOST_BYTES: u64 = 1 << 30;
/// Where the part of a stream's file behind the window begins.
const BEHIND: u64 = STREAM_BEHIND as u64;
/// How often a thread that goes on in the parent is looked at until its streams hold still.
const MOST_TRIES: u32 = 1000;

/// Has the process made others, as far as `fork` makes them?
static FORKED: AtomicBool = AtomicBool::new(false);

/// May other processes that this one made be under way?
pub fn have_children() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Runs in the forking thread before the `fork`.
pub unsafe extern "C" fn before() {
    FORKED.store(true, Ordering::Relaxed);
    let thread = tls::recording();
    if !thread.is_null() && children::followed() {
        // SAFETY: the record is the calling thread's own. The child still shares the windows, which
        // the parent goes on writing to, so nothing that the child needs may be in them.
        unsafe {
            streams::empty_windows(thread);
            write_volatile(&raw mut (*(*thread).control).round, 0);
            (*thread).at_fork = read_volatile((*thread).control);
        }
    }
}

/// Gives the child a trace of its own; false when that is not possible, and then the child must not
/// be recorded. `thread` is its only thread's record, as the parent had it.
///
/// # Safety
///
/// Only to be called in the child, by the thread whose record it is, after [`before`].
pub unsafe fn follow(thread: *mut Thread) -> bool {
    if !children::followed() || !process::recording() {
        return false;
    }
    let parent = files::directory();
    let counts = process::leave();
    // SAFETY: the caller vouches for the record.
    let done = unsafe {
        children::claim()
            .and_then(|()| copy_modules(&parent))
            .and_then(|()| copy_threads(&parent, thread))
            .and_then(|()| take_over(thread))
    };
    let done = done.and_then(|()| children::write_origin()).and_then(|()| process::create(true));
    match done {
        Ok(()) => {
            process::continue_counts(counts);
            true
        }
        Err(error) => {
            let mut text = Text::<128>::new();
            text.push(b"process ").push_decimal(u64::from(sys::getpid()));
            text.push(b", a child of fork, is not recorded (errno ");
            report::complain(text.push_decimal(error as u64).push(b")").as_bytes());
            false
        }
    }
}

type Directory = Text<4096>;

fn in_parent(parent: &Directory, parts: &[&[u8]]) -> FileName {
    let mut name = FileName::new();
    name.push(parent.as_bytes()).push(b"/");
    for part in parts {
        name.push(part);
    }
    name
}

fn copy_file(from: &FileName, to: &[&[u8]], length: u64) -> Result<(), c_int> {
    let fd = files::open(&files::name(to), sys::O_WRONLY | sys::O_CREAT)?;
    let copied = files::copy(from, 0, fd, 0, length);
    files::close(fd);
    copied
}

fn copy_modules(parent: &Directory) -> Result<(), c_int> {
    copy_file(&in_parent(parent, &[b"modules.bin"]), &[b"modules.bin"], u64::MAX)?;
    files::for_each(&in_parent(parent, &[b"ir"]), |name| {
        if !name.ends_with(b".bc.zst") {
            return Ok(());
        }
        let (from, to) = (in_parent(parent, &[b"ir/", name]), files::name(&[b"ir/", name]));
        // SAFETY: both names end with a zero.
        match unsafe { sys::link(from.as_c(), to.as_c()) } {
            0 => Ok(()),
            _ => copy_file(&from, &[b"ir/", name], u64::MAX),
        }
    })
}

/// Copies the streams of all threads, and the control pages of all but the forking one.
unsafe fn copy_threads(parent: &Directory, thread: *mut Thread) -> Result<(), c_int> {
    let mut total = 0;
    files::for_each(&in_parent(parent, &[b"threads"]), |name| {
        let Some(stem) = name.strip_suffix(b".ctl") else { return Ok(()) };
        let from = |suffix: &[u8]| in_parent(parent, &[b"threads/", stem, suffix]);
        // SAFETY: the record is the calling thread's own.
        let own = unsafe { (*thread).name.as_bytes() == stem };
        if own {
            // SAFETY: as above.
            let control = unsafe { (*thread).at_fork };
            total += copy_thread(parent, stem, &control, &mut [0; 2], total)?;
            return Ok(());
        }
        let mut copied = [0; 2];
        for _ in 0..MOST_TRIES {
            let Some(control) = read_control(&from(b".ctl"))? else { return Ok(()) };
            let bytes = copy_thread(parent, stem, &control, &mut copied, total)?;
            // What was copied is right when no window was emptied meanwhile.
            if read_page(&from(b".ctl"))?.is_some_and(|now| is_same_window(&control, &now)) {
                total += bytes;
                return Ok(());
            }
        }
        Err(sys::EAGAIN)
    })
}

/// Copies a thread's streams, as long as the control page says, and the page; gives how many bytes the
/// streams have, which `others` have before. `copied` are the bytes behind the windows that were copied
/// already, which never change.
fn copy_thread(
    parent: &Directory,
    stem: &[u8],
    control: &Control,
    copied: &mut [u64; 2],
    others: u64,
) -> Result<u64, c_int> {
    let streams =
        [(&b".path"[..], control.path_extent()), (&b".values"[..], control.value_extent())];
    let mut total = 0;
    for ((suffix, extent), done) in streams.into_iter().zip(copied) {
        let extent = extent.ok_or(sys::EINVAL)?;
        total += extent.length();
        if others + total > MOST_BYTES {
            return Err(sys::EFBIG);
        }
        let from = in_parent(parent, &[b"threads/", stem, suffix]);
        let fd =
            files::open(&files::name(&[b"threads/", stem, suffix]), sys::O_RDWR | sys::O_CREAT)?;
        let left = extent.moved.saturating_sub(*done);
        let at = BEHIND + *done;
        let result = files::extend(fd, 0, STREAM_WINDOW as u64)
            .and_then(|()| files::copy(&from, at, fd, at, left))
            .and_then(|()| files::copy(&from, 0, fd, 0, extent.window));
        files::close(fd);
        result?;
        *done = extent.moved;
    }
    write_control(stem, control)?;
    Ok(total)
}

/// Was no window emptied, or begun to be, between two looks at a control page?
fn is_same_window(before: &Control, after: &Control) -> bool {
    let words = |control: &Control| {
        [control.path_moved, control.path_moving, control.value_moved, control.value_moving]
    };
    words(before) == words(after)
}

/// A control page that a thread may be writing to, at a moment when its windows are not being
/// emptied.
fn read_control(name: &FileName) -> Result<Option<Control>, c_int> {
    for _ in 0..MOST_TRIES {
        let Some(before) = read_page(name)? else { return Ok(None) };
        let Some(control) = read_page(name)? else { return Ok(None) };
        let still = control.path_moved == control.path_moving
            && control.value_moved == control.value_moving;
        let round = |control: &Control| (control.round, control.round_path, control.round_values);
        if still && is_same_window(&before, &control) && round(&before) == round(&control) {
            return Ok(Some(without_round(control)));
        }
        sys::yield_now();
    }
    Err(sys::EAGAIN)
}

/// Leaves out the round of a waiting loop that the thread is in: it may take its log back.
fn without_round(mut control: Control) -> Control {
    if control.round != 0 {
        control.path_next = control.path_next.min(control.round_path);
        control.value_next = control.value_next.min(control.round_values);
        control.choices = 0;
        control.round = 0;
    }
    control
}

fn read_page(name: &FileName) -> Result<Option<Control>, c_int> {
    let mut bytes = [0u64; CONTROL_PAGE_SIZE / 8];
    let fd = files::open(name, 0)?;
    // SAFETY: the buffer has the length given.
    let length = unsafe { sys::read(fd, bytes.as_mut_ptr().cast(), CONTROL_PAGE_SIZE) };
    files::close(fd);
    // SAFETY: the buffer is aligned and large enough, and any bytes are a valid page.
    let control = unsafe { bytes.as_ptr().cast::<Control>().read() };
    let whole = length == CONTROL_PAGE_SIZE as isize && control.magic == CONTROL_MAGIC;
    Ok(whole.then_some(control))
}

fn write_control(stem: &[u8], control: &Control) -> Result<(), c_int> {
    let name = files::name(&[b"threads/", stem, b".ctl"]);
    let fd = files::open(&name, sys::O_RDWR | sys::O_CREAT)?;
    // SAFETY: the page's fields are plain words.
    let written = files::extend(fd, 0, CONTROL_PAGE_SIZE as u64).and_then(|()| unsafe {
        sys::lseek(fd, 0, 0);
        let from = core::ptr::from_ref(control).cast();
        match sys::pwrite(fd, from, size_of::<Control>(), 0) {
            length if length == size_of::<Control>() as isize => Ok(()),
            _ => Err(sys::errno()),
        }
    });
    files::close(fd);
    written
}

/// Puts the child's files where the parent's are mapped, so that all addresses stay what they are.
unsafe fn take_over(thread: *mut Thread) -> Result<(), c_int> {
    // SAFETY: the caller vouches for the record; the ranges are the streams' own reservations.
    unsafe {
        let name = (*thread).name;
        take_over_stream(&raw mut (*thread).path, name.as_bytes())?;
        take_over_stream(&raw mut (*thread).values, name.as_bytes())?;
        let page = files::name(&[b"threads/", name.as_bytes(), b".ctl"]);
        let fd = files::open(&page, sys::O_RDWR)?;
        let mapped = files::map(fd, 0, CONTROL_PAGE_SIZE, (*thread).control as u64);
        files::close(fd);
        mapped?;
        (*(*thread).control).gate_stop = u64::MAX;
        (*thread).tid = sys::gettid();
    }
    Ok(())
}

unsafe fn take_over_stream(stream: *mut Stream, thread_name: &[u8]) -> Result<(), c_int> {
    // SAFETY: as for `take_over`.
    unsafe {
        if (*stream).stopped {
            return Ok(());
        }
        let path = files::name(&[b"threads/", thread_name, (*stream).suffix]);
        let fd = files::open(&path, sys::O_RDWR)?;
        let done = files::map(fd, 0, STREAM_WINDOW, (*stream).base);
        files::close(fd);
        done.map(|_| ())
    }
}

interpose! {
    // A child of the kernel's `vfork` would write into the parent's memory, its log included.
    fn vfork() -> c_int {
        let Some(fork) = real::fork() else { return -1 };
        fork()
    }
}
