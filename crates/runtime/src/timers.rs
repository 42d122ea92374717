//! Threads that the C library makes for timers and message queues (`SIGEV_THREAD`), with a function of its own that
//! nobody can stand in for.
//!
//! Setting a timer creates the thread in which its function will run: its record is made, and its creation logged, there.
//! Whichever thread of the library comes first takes it; of a timer that rings again it makes the next record, so that the
//! thread that runs next is the first one's child. One whose time never comes is a thread that has not begun.

use crate::layout::SyncPoint;
use crate::process;
use crate::real;
use crate::schedule;
use crate::sys;
use crate::threads::{self, Thread};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// `SIGEV_THREAD`
const BY_THREAD: c_int = 2;
/// Bytes of what sources are taken from.
const PAGE: usize = 4096;
/// So often a thread looks for a record that another one is about to make,
const LOOKS: u32 = 50_000;
/// with so many microseconds in between (ten seconds in all).
const PAUSE: u64 = 200;

type Function = unsafe extern "C" fn(usize);

/// `struct sigevent`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Notice {
    value: usize,
    signal: c_int,
    how: c_int,
    function: usize,
    attributes: usize,
    rest: [u64; 4],
}

const _: () = assert!(size_of::<Notice>() == 64);

/// What makes threads: a timer, or a message queue that is watched. Never given back, since a thread of it may begin
/// when it is gone.
struct Source {
    /// The function, and what it gets.
    function: usize,
    value: usize,
    /// The timer's identifier plus one; 0 once it is deleted, and of a message queue.
    timer: AtomicUsize,
    /// The record of the thread that runs next, or [`BEING_MADE`].
    next: AtomicPtr<Thread>,
    /// Will there be another one?
    again: AtomicBool,
    /// The source that was made before.
    older: *mut Source,
}

/// Somebody makes the record.
const BEING_MADE: *mut Thread = core::ptr::without_provenance_mut(1);

static SOURCES: AtomicPtr<Source> = AtomicPtr::new(null_mut());
/// Where the next source is taken from.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// Memory for one source; null when there is none.
fn room() -> *mut Source {
    let bytes = size_of::<Source>();
    loop {
        let at = FREE.load(Ordering::Acquire);
        let fits = !at.is_multiple_of(PAGE) && at % PAGE + bytes <= PAGE;
        let (from, fresh) = if fits {
            (at, null_mut())
        } else {
            let fresh = sys::anonymous(PAGE);
            if fresh.is_null() {
                return null_mut();
            }
            (fresh as usize, fresh)
        };
        match FREE.compare_exchange(at, from + bytes, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return from as *mut Source,
            Err(_) if fresh.is_null() => {}
            Err(_) => {
                // SAFETY: nobody else has the page.
                unsafe { sys::munmap(fresh.cast(), PAGE) };
            }
        }
    }
}

/// The source of a notice that asks for a thread; null for any other, and where nobody wants to know of threads.
unsafe fn source(notice: *const Notice) -> *mut Source {
    // SAFETY: the notice is the program's own, for this call.
    unsafe {
        if notice.is_null() || (*notice).how != BY_THREAD {
            return null_mut();
        }
        if !process::recording() && !schedule::active() {
            return null_mut();
        }
        let source = sys::keeping_errno(room);
        if !source.is_null() {
            source.write(Source {
                function: (*notice).function,
                value: (*notice).value,
                timer: AtomicUsize::new(0),
                next: AtomicPtr::new(null_mut()),
                again: AtomicBool::new(false),
                older: null_mut(),
            });
        }
        source
    }
}

/// The notice by which the library calls us.
unsafe fn ours(notice: *const Notice, source: *mut Source) -> Notice {
    let begin: Function = begin;
    // SAFETY: the notice is the program's own, for this call.
    unsafe { Notice { value: source as usize, function: begin as usize, ..*notice } }
}

/// Makes the record of the thread that will run next, unless there is one.
unsafe fn arm(source: *mut Source) {
    // SAFETY: sources stay.
    unsafe {
        let next = &(*source).next;
        let mine =
            next.compare_exchange(null_mut(), BEING_MADE, Ordering::AcqRel, Ordering::Relaxed);
        if mine.is_ok() {
            schedule::at_point(SyncPoint::Create, None);
            let block = threads::prepare_for_later((*source).function, (*source).value);
            next.store(block, Ordering::Release);
        }
    }
}

/// Takes the record of the thread that runs next; null where there is none yet.
unsafe fn take(source: *mut Source) -> *mut Thread {
    // SAFETY: sources stay.
    let next = unsafe { &(*source).next };
    let taken = next.fetch_update(Ordering::AcqRel, Ordering::Acquire, |block| {
        (block != BEING_MADE && !block.is_null()).then_some(null_mut())
    });
    taken.unwrap_or(null_mut())
}

/// Will there be a record?
unsafe fn comes(source: *mut Source) -> bool {
    // SAFETY: sources stay.
    unsafe {
        (*source).again.load(Ordering::Acquire)
            || (*source).next.load(Ordering::Acquire) == BEING_MADE
    }
}

/// The source of a timer.
fn of(timer: usize) -> *mut Source {
    let mut source = SOURCES.load(Ordering::Acquire);
    // SAFETY: sources stay.
    unsafe {
        while !source.is_null() && (*source).timer.load(Ordering::Acquire) != timer.wrapping_add(1)
        {
            source = (*source).older;
        }
    }
    source
}

/// What a thread of the library begins with.
unsafe extern "C" fn begin(source: usize) {
    let source = source as *mut Source;
    // SAFETY: the library passes on what it was given, and sources stay.
    unsafe {
        let mut block = take(source);
        let mut looks = 0;
        while block.is_null() && comes(source) && looks < LOOKS {
            sys::keeping_errno(|| sys::sleep_micros(PAUSE));
            looks += 1;
            block = take(source);
        }
        let function: Function = core::mem::transmute((*source).function);
        if block.is_null() {
            return function((*source).value);
        }
        threads::begin(block);
        if (*source).again.load(Ordering::Acquire) {
            arm(source);
        }
        function((*source).value);
    }
}

interpose! {
    fn timer_create(clock: c_int, notice: *const Notice, timer: *mut usize) -> c_int {
        let Some(create) = real::timer_create() else { return -1 };
        let source = source(notice);
        if source.is_null() {
            return create(clock, notice.cast(), timer);
        }
        let notice = ours(notice, source);
        let result = create(clock, (&raw const notice).cast(), timer);
        if result == 0 {
            (*source).timer.store((*timer).wrapping_add(1), Ordering::Release);
            let mut older = SOURCES.load(Ordering::Acquire);
            loop {
                (*source).older = older;
                let newest = SOURCES.compare_exchange(older, source, Ordering::AcqRel, Ordering::Acquire);
                match newest {
                    Ok(_) => break,
                    Err(now) => older = now,
                }
            }
        }
        result
    }

    fn timer_settime(timer: usize, flags: c_int, new: *const [i64; 4], old: *mut c_void) -> c_int {
        let Some(set) = real::timer_settime() else { return -1 };
        let source = of(timer);
        if !source.is_null() && !new.is_null() {
            let [again, rest @ ..] = *new;
            let [again_fraction, first, first_fraction] = rest;
            let rings = first != 0 || first_fraction != 0;
            (*source).again.store(rings && (again != 0 || again_fraction != 0), Ordering::Release);
            if rings {
                arm(source);
            }
        }
        set(timer, flags, new.cast(), old)
    }

    fn timer_delete(timer: usize) -> c_int {
        let Some(delete) = real::timer_delete() else { return -1 };
        let source = of(timer);
        if !source.is_null() {
            (*source).timer.store(0, Ordering::Release);
            (*source).again.store(false, Ordering::Release);
        }
        delete(timer)
    }

    fn mq_notify(queue: c_int, notice: *const Notice) -> c_int {
        let Some(notify) = real::mq_notify() else { return -1 };
        let source = source(notice);
        if source.is_null() {
            return notify(queue, notice.cast());
        }
        arm(source);
        let notice = ours(notice, source);
        notify(queue, (&raw const notice).cast())
    }
}
