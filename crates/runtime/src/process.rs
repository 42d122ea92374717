//! `process.bin`: the failure record, and what could not be written.

use crate::crashes;
use crate::files;
use crate::layout::{
    INSTRUMENTATION_VERSION, PROCESS_FILE_SIZE, PROCESS_MAGIC, Process, RawFailure,
};
use crate::panics;
use crate::streams;
use crate::sys;
use crate::tls;
use core::ffi::c_int;
use core::ptr::{null_mut, write_volatile};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());
static FAILED: AtomicU32 = AtomicU32::new(0);
static WRITE_FAILED: AtomicU32 = AtomicU32::new(0);

const _: () = assert!(size_of::<Process>() <= PROCESS_FILE_SIZE);

/// Makes `process.bin`; `EEXIST` when another process records there already.
pub fn create(forked: bool) -> Result<(), c_int> {
    let path = files::name(&[b"process.bin"]);
    let page = files::create_mapped(&path, PROCESS_FILE_SIZE, true)? as *mut Process;
    // SAFETY: the mapping is fresh and large enough.
    unsafe {
        (*page).version = INSTRUMENTATION_VERSION;
        (*page).pid = sys::getpid();
        (*page).parent = sys::getppid() as u32;
        (*page).started = sys::clock(sys::CLOCK_REALTIME);
        (*page).forked = u32::from(forked);
        write_volatile(&raw mut (*page).magic, PROCESS_MAGIC);
    }
    // What a parent failed of, or panicked and caught, is none of the child's.
    FAILED.store(0, Ordering::Release);
    panics::forget();
    crashes::forget();
    PROCESS.store(page, Ordering::Release);
    Ok(())
}

/// Stops writing to `process.bin`: it is the parent's.
pub fn forget() {
    PROCESS.store(null_mut(), Ordering::Release);
}

/// What `process.bin` counts.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    threads: u64,
    unattached: u64,
    cut_writes: u64,
}

/// In a child of `fork`: as [`forget`], and gives what the parent had counted.
pub fn leave() -> Counts {
    let page = PROCESS.swap(null_mut(), Ordering::AcqRel);
    if page.is_null() {
        return Counts::default();
    }
    // SAFETY: the parent's page stays mapped.
    unsafe {
        Counts {
            threads: (*page).threads,
            unattached: (*page).unattached,
            cut_writes: (*page).cut_writes,
        }
    }
}

/// Goes on from what the parent had counted.
pub fn continue_counts(counts: Counts) {
    let page = PROCESS.load(Ordering::Acquire);
    if !page.is_null() {
        // SAFETY: the page is fresh, and there is one thread.
        unsafe {
            (*page).threads = counts.threads;
            (*page).unattached = counts.unattached;
            (*page).cut_writes = counts.cut_writes;
        }
    }
}

/// Notes with which status the process is about to end.
pub fn note_exit(status: c_int) {
    let page = page();
    if !page.is_null() {
        // SAFETY: the page stays mapped, and the word is written as one.
        unsafe { write_volatile(&raw mut (*page).exit_status, (status & 0xff) as u64 + 1) };
    }
}

/// Is this process recording? Not in a child of `vfork` either, which shares the memory.
fn page() -> *mut Process {
    let page = PROCESS.load(Ordering::Acquire);
    // SAFETY: once made, the page stays mapped.
    if page.is_null() || unsafe { (*page).pid } != sys::getpid() { null_mut() } else { page }
}

/// Does the process record?
pub fn recording() -> bool {
    !PROCESS.load(Ordering::Acquire).is_null()
}

/// What is known of a failure.
#[derive(Clone, Copy, Default)]
pub struct Failure<'a> {
    /// Signal number or exit status.
    pub code: i64,
    /// `si_addr`.
    pub address: u64,
    /// Program counter.
    pub pc: u64,
    /// For people.
    pub message: &'a [u8],
}

/// How far a thread had come.
#[derive(Clone, Copy)]
pub struct Moment {
    /// The thread's serial; 0 where it has none.
    serial: u64,
    /// Lengths of its streams, in bytes.
    path: u64,
    values: u64,
}

impl Moment {
    /// Of no thread in particular.
    pub const NOWHERE: Self = Self { serial: 0, path: 0, values: 0 };

    /// Of the calling thread.
    #[must_use]
    pub fn now() -> Self {
        let thread = tls::recording();
        if thread.is_null() {
            // Libraries clean up behind a thread, when its log has ended.
            return Self { serial: tls::own_serial().unwrap_or(0), ..Self::NOWHERE };
        }
        // SAFETY: the record is the calling thread's own.
        unsafe {
            let (path, values) = streams::lengths(thread);
            Self { serial: (*thread).serial, path, values }
        }
    }
}

/// Records the failure unless there was one before: the first one wins, because what follows (the
/// SIGABRT of an assertion, say) is its consequence. So is what a program's own handler of a crash does. What the
/// processor or the heap sees is none of a panic that the program kept to itself.
pub fn note_failure(kind: RawFailure, failure: &Failure<'_>) {
    match crashes::behind(kind, failure.code) {
        Some(crash) => note(crash.kind, &crash.failure(), || crash.moment),
        // A deadlock is nobody's in particular; the caller only noticed it.
        None if kind == RawFailure::Deadlock => note(kind, failure, || Moment::NOWHERE),
        None => note(kind, failure, Moment::now),
    }
}

/// As [`note_failure`], whatever crash is being handled.
pub fn note(kind: RawFailure, failure: &Failure<'_>, moment: impl Fn() -> Moment) {
    let page = page();
    if page.is_null() {
        return;
    }
    if FAILED.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        // SAFETY: the page stays mapped, and the claim makes this thread its only writer.
        unsafe { fill(page, kind, failure, moment()) };
    } else if is_crash(kind, failure) && !panics::any_told() {
        replace_panic(kind, failure, moment());
    }
}

fn is_crash(kind: RawFailure, failure: &Failure<'_>) -> bool {
    use RawFailure::{DoubleFree, HeapCorruption, Signal, StackOverflow, UseAfterFree};
    match kind {
        Signal => failure.code != i64::from(sys::SIGABRT),
        StackOverflow | UseAfterFree | DoubleFree | HeapCorruption => true,
        _ => false,
    }
}

/// Records the failure where a panic is recorded, once.
pub fn replace_panic(kind: RawFailure, failure: &Failure<'_>, moment: Moment) {
    let page = page();
    if page.is_null() {
        return;
    }
    // SAFETY: the page stays mapped; only who claims the failure writes it, the second one when the first one is done.
    unsafe {
        let recorded = AtomicU32::from_ptr(&raw mut (*page).failure).load(Ordering::Acquire);
        let claim = || FAILED.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if recorded == RawFailure::Panic as u32 && claim() {
            fill(page, kind, failure, moment);
        }
    }
}

/// # Safety
///
/// The page is mapped, and nobody else writes its failure.
unsafe fn fill(page: *mut Process, kind: RawFailure, failure: &Failure<'_>, moment: Moment) {
    // SAFETY: the caller vouches for the page.
    unsafe {
        (*page).failure_thread = moment.serial;
        (*page).failure_path_bytes = moment.path;
        (*page).failure_value_bytes = moment.values;
        (*page).code = failure.code;
        (*page).fault_address = failure.address;
        (*page).fault_pc = failure.pc;
        (*page).message_length = copy(&mut (*page).message, failure.message);
        AtomicU32::from_ptr(&raw mut (*page).failure).store(kind as u32, Ordering::Release);
    }
}

/// Records that a file of the trace could not be made or grown; the first one wins.
pub fn note_write_error(file: &[u8], offset: u64, error: c_int) {
    let page = page();
    if page.is_null()
        || WRITE_FAILED.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire).is_err()
    {
        return;
    }
    // SAFETY: as in `note_failure`.
    unsafe {
        (*page).write_offset = offset;
        (*page).write_file_length = copy(&mut (*page).write_file, file);
        write_volatile(&raw mut (*page).write_errno, error as u64);
    }
}

/// Counts a thread with a control page.
pub fn count_thread() {
    count(|page| &raw mut page.threads);
}

/// Counts a thread without streams.
pub fn count_unattached() {
    count(|page| &raw mut page.unattached);
}

/// Counts a payload that was cut.
pub fn count_cut() {
    count(|page| &raw mut page.cut_writes);
}

fn count(field: impl Fn(&mut Process) -> *mut u64) {
    let page = PROCESS.load(Ordering::Acquire);
    if !page.is_null() {
        // SAFETY: the page stays mapped, and its counters are only used atomically.
        unsafe { AtomicU64::from_ptr(field(&mut *page)).fetch_add(1, Ordering::Relaxed) };
    }
}

/// As much as there is room for; gives how many bytes that was.
pub fn copy(to: &mut [u8], from: &[u8]) -> u32 {
    let mut length = 0;
    for (place, byte) in to.iter_mut().zip(from) {
        *place = *byte;
        length += 1;
    }
    length
}
