//! Threads: their records and streams, creation, joining and their end.

use crate::emulate::{self, Limit};
use crate::files;
use crate::forks;
use crate::gates;
use crate::handlers;
use crate::inputs;
use crate::layout::{
    CONTROL_MAGIC, CONTROL_PAGE_SIZE, Control, RuntimeEvent, SyncCoder, SyncPoint,
};
use crate::noise;
use crate::process;
use crate::readings;
use crate::real;
use crate::repeats;
use crate::schedule;
use crate::signals;
use crate::streams::{self, RING, Stream};
use crate::sys::{self, Pthread};
use crate::text::Text;
use crate::tls;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::{null_mut, read_volatile, write_volatile};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Bytes of the record's pages, before the rings.
const RECORD: usize = 8192;
/// Where the alternate signal stack begins in the block.
const STACK_AT: usize = RECORD + 2 * RING as usize;
/// Bytes of the alternate signal stack.
const STACK: usize = 64 << 10;
const BLOCK: usize = STACK_AT + STACK;
/// Rounds of destructors that glibc makes at a thread's end (`PTHREAD_DESTRUCTOR_ITERATIONS`).
const DESTRUCTOR_ROUNDS: u32 = 4;
/// So often a thread that joins another yields to it until that has said its serial.
const YIELDS: u32 = 1_000;
/// Then it sleeps so often (ten seconds in all),
const PAUSES: u32 = 50_000;
/// so many microseconds each.
const PAUSE: u64 = 200;

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static RETIRED: AtomicPtr<Thread> = AtomicPtr::new(null_mut());

/// The runtime's record of a thread: the head of a block that also holds two rings and the
/// alternate signal stack.
#[repr(C)]
pub struct Thread {
    /// Where this thread's hooks write: its control page, or `sink`.
    pub control: *mut Control,
    /// The thread has streams.
    pub live: bool,
    /// Its number.
    pub serial: u64,
    /// `t0`, `t0.1`, ..., also in a run that is not recorded; empty for threads that the runtime
    /// did not see start.
    pub name: Text<200>,
    /// The scheduler's number for it; `schedule::NONE` when it is not scheduled.
    pub slot: u32,
    /// The path stream.
    pub path: Stream,
    /// The values stream.
    pub values: Stream,
    /// Of its synchronisation events.
    pub sync: SyncCoder,
    /// The clock is read when the path stream has so many bytes.
    pub next_reading: u64,
    /// Of the round of a waiting loop that it is in.
    pub round: repeats::State,
    /// For its gates.
    pub gate: gates::State,
    /// How many calls of libraries it is in whose own calls are not logged (`foreign`).
    pub quiet: u32,
    /// The object that it is freeing, or freed last.
    pub freeing: u64,
    /// For its signal handlers.
    pub signals: handlers::State,
    /// What it gets back of the recorded run.
    pub inputs: inputs::State,
    routine: usize,
    argument: usize,
    once: usize,
    rounds: u32,
    /// The kernel's id.
    pub tid: i32,
    /// The control page as it was at the thread's last `fork`.
    pub at_fork: Control,
    next_retired: *mut Thread,
    sink: Control,
}

const _: () = assert!(size_of::<Thread>() <= RECORD);

impl Thread {
    /// The ring for path entries that nobody reads.
    pub fn path_ring(&self) -> u64 {
        core::ptr::from_ref(self) as u64 + RECORD as u64
    }

    /// The ring for value words that nobody reads.
    pub fn value_ring(&self) -> u64 {
        self.path_ring() + RING
    }
}

/// A fresh record whose hooks write into the rings; null when there is no memory.
unsafe fn new_block() -> *mut Thread {
    let thread = sys::anonymous(BLOCK).cast::<Thread>();
    if thread.is_null() {
        return null_mut();
    }
    // SAFETY: the block is fresh, zeroed and large enough; zeros are a valid `Control`.
    unsafe {
        (*thread).name = Text::new();
        (*thread).slot = schedule::NONE;
        (*thread).path = Stream::none(b".path");
        (*thread).values = Stream::none(b".values");
        let sink = &raw mut (*thread).sink;
        streams::use_rings(sink, (*thread).path_ring(), (*thread).value_ring());
        (*sink).gate_stop = u64::MAX;
        (*thread).control = sink;
    }
    thread
}

/// Makes the streams of a thread; on failure it keeps its rings.
unsafe fn make_streams(thread: *mut Thread) -> Result<(), c_int> {
    // SAFETY: the record is not yet shared.
    unsafe {
        let name = (*thread).name;
        (*thread).path.create(name.as_bytes())?;
        (*thread).values.create(name.as_bytes())?;
        let page = files::name(&[b"threads/", name.as_bytes(), b".ctl"]);
        let control = files::create_mapped(&page, CONTROL_PAGE_SIZE, true)? as *mut Control;
        (*control).path_base = (*thread).path.base;
        (*control).path_next = (*thread).path.base;
        readings::plan(thread, (*thread).path.base);
        (*control).path_limit = readings::limit(thread);
        (*control).value_base = (*thread).values.base;
        (*control).value_next = (*thread).values.base;
        (*control).value_limit = (*thread).values.limit();
        (*control).gate_stop = u64::MAX;
        (*control).serial = (*thread).serial;
        (*control).start_routine = (*thread).routine as u64;
        (*thread).control = control;
        (*thread).live = true;
    }
    Ok(())
}

/// Marks a control page as complete: from here on the reader takes the thread for real.
unsafe fn publish(thread: *mut Thread, parent: u64, ordinal: u64) {
    // SAFETY: the record is live and not yet shared.
    unsafe {
        let control = (*thread).control;
        (*control).parent = parent;
        (*control).ordinal = ordinal;
        write_volatile(&raw mut (*control).magic, CONTROL_MAGIC);
    }
    process::count_thread();
}

/// Takes back what `make_streams` did.
unsafe fn discard_streams(thread: *mut Thread) {
    // SAFETY: nobody else has the record.
    unsafe {
        let name = (*thread).name;
        (*thread).path.release();
        (*thread).values.release();
        for suffix in [&b".path"[..], b".values", b".ctl"] {
            sys::unlink(files::name(&[b"threads/", name.as_bytes(), suffix]).as_c());
        }
        if (*thread).live {
            sys::munmap((*thread).control.cast(), CONTROL_PAGE_SIZE);
        }
        (*thread).live = false;
        (*thread).control = &raw mut (*thread).sink;
    }
}

unsafe fn try_streams(thread: *mut Thread, parent: u64, ordinal: u64) {
    // SAFETY: nobody else has the record.
    unsafe {
        match make_streams(thread) {
            Ok(()) => publish(thread, parent, ordinal),
            Err(error) => {
                let mut file = Text::<256>::new();
                file.push(b"threads/").push((*thread).name.as_bytes());
                process::note_write_error(file.as_bytes(), 0, error);
                process::count_unattached();
                discard_streams(thread);
            }
        }
    }
}

/// Makes the calling thread the owner of a record.
unsafe fn adopt(thread: *mut Thread) {
    // SAFETY: the variables are the calling thread's own, and nobody else has the record.
    unsafe {
        (*thread).tid = sys::gettid();
        *tls::control_slot() = (*thread).control;
        *tls::thread_slot() = thread;
        let serial = if (*thread).live { (*thread).serial } else { tls::NO_SERIAL };
        write_volatile(tls::serial_slot(), serial);
        let key = KEY.load(Ordering::Relaxed);
        if key != u32::MAX {
            sys::pthread_setspecific(key as c_uint, thread.cast());
        }
        if (*thread).live {
            let stack = thread.cast::<u8>().add(STACK_AT);
            signals::use_stack(stack.cast(), STACK);
        }
        noise::at_start(thread);
    }
}

/// Sets up what all threads share, and attaches the calling, initial thread.
pub fn start() {
    // SAFETY: called once, while the process has one thread.
    unsafe {
        let mut key: c_uint = 0;
        if sys::pthread_key_create(&mut key, Some(thread_ends)) == 0 {
            KEY.store(key, Ordering::Relaxed);
        }
        let thread = new_block();
        if thread.is_null() {
            return;
        }
        (*thread).serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        (*thread).name.push(b"t0");
        if process::recording() {
            try_streams(thread, 0, 0);
        }
        adopt(thread);
    }
}

/// Gives a thread that the runtime did not see start a sink of its own.
pub fn attach_late() {
    // SAFETY: the record is fresh.
    unsafe {
        let thread = new_block();
        if !thread.is_null() {
            process::count_unattached();
            adopt(thread);
            handlers::unblock_faults();
        }
    }
}

/// Prepares the record of a thread that the library will make some time, and logs its creation by the calling one; null
/// when there is no memory.
///
/// # Safety
///
/// `routine` must be what the thread will call.
pub unsafe fn prepare_for_later(routine: usize, argument: usize) -> *mut Thread {
    // SAFETY: nobody else has the record.
    unsafe {
        let block = sys::keeping_errno(|| prepare(routine, argument));
        if !block.is_null() {
            let child = Child::of(block);
            schedule::comes_later(child.slot);
            created(child, Some(0), [routine, argument]);
        }
        block
    }
}

/// The calling thread, which the library made, is the one of this record.
///
/// # Safety
///
/// Nobody else may have the record, and the thread none of its own.
pub unsafe fn begin(thread: *mut Thread) {
    // SAFETY: the caller vouches for it.
    unsafe {
        adopt(thread);
        schedule::started();
    }
    handlers::unblock_faults();
}

/// Prepares the record of a thread to be created by the calling one; null when there is no memory.
unsafe fn prepare(routine: usize, argument: usize) -> *mut Thread {
    // SAFETY: the parent's record is the calling thread's own, the child's is fresh.
    unsafe {
        sweep();
        let child = new_block();
        if child.is_null() {
            return child;
        }
        (*child).routine = routine;
        (*child).argument = argument;
        let parent = *tls::thread_slot();
        if parent.is_null() || (*parent).name.as_bytes().is_empty() {
            if process::recording() {
                process::count_unattached();
            }
            return child;
        }
        (*child).serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        let ordinal = (*(*parent).control).children + 1;
        let name = &raw mut (*child).name;
        (*name).push((*parent).name.as_bytes()).push(b".").push_decimal(ordinal);
        if !(*name).is_whole() {
            // Too deep for a file name: the number is as good, the reader does not parse it.
            *name = Text::new();
            (*name).push(b"s").push_decimal((*child).serial);
        }
        if (*parent).live {
            try_streams(child, (*parent).serial, ordinal);
        } else if process::recording() {
            process::count_unattached();
        }
        if schedule::active() {
            schedule::create(child);
        }
        child
    }
}

/// Makes a call that may run a once routine in the calling thread; says what it returned, and
/// whether it did.
///
/// # Safety
///
/// The call may do with the function that it gets what it may do with `routine`.
pub unsafe fn noting_once(
    routine: real::OnceRoutine,
    call: impl FnOnce(real::OnceRoutine) -> c_int,
) -> (c_int, bool) {
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        if thread.is_null() {
            return (call(routine), false);
        }
        (*thread).once = routine as usize;
        let result = call(once_routine);
        let ran = core::mem::take(&mut (*thread).once) == 0;
        (result, ran)
    }
}

/// Runs the routine that the calling thread noted.
unsafe extern "C" fn once_routine() {
    // SAFETY: `noting_once` put a routine there, in a thread with a record.
    unsafe {
        let thread = *tls::thread_slot();
        let routine = core::mem::take(&mut (*thread).once);
        if routine != 0 {
            core::mem::transmute::<usize, real::OnceRoutine>(routine)();
        }
    }
}

/// What the creator remembers of a child, whose record it may not touch once it runs.
#[derive(Clone, Copy)]
struct Child {
    block: *mut Thread,
    slot: u32,
    named: bool,
    serial: u64,
}

impl Child {
    unsafe fn of(block: *mut Thread) -> Self {
        // SAFETY: the record is fresh from `prepare`.
        unsafe {
            Self {
                block,
                slot: (*block).slot,
                named: !(*block).name.as_bytes().is_empty(),
                serial: if (*block).live { (*block).serial } else { 0 },
            }
        }
    }
}

/// Logs a successful creation, or takes back the preparation.
unsafe fn created(child: Child, thread: Option<Pthread>, start: [usize; 2]) {
    // SAFETY: on success the child belongs to the new thread (which may have ended already) and is
    // not touched; on failure nobody else has it.
    unsafe {
        let Some(pthread) = thread else {
            schedule::not_created(child.slot);
            if (*child.block).live {
                discard_streams(child.block);
            }
            sys::munmap(child.block.cast(), BLOCK);
            return;
        };
        schedule::created(child.slot, pthread);
        let parent = *tls::thread_slot();
        if parent.is_null() || !child.named {
            return;
        }
        (*(*parent).control).children += 1;
        if (*parent).live && child.serial != 0 {
            let payload = [child.serial, pthread, start[0] as u64, start[1] as u64];
            streams::event(parent, RuntimeEvent::ThreadCreate, &payload);
        }
    }
}

unsafe fn enter(block: *mut c_void) -> (usize, *mut c_void) {
    let thread = block.cast::<Thread>();
    // SAFETY: the creator handed the record over.
    unsafe {
        adopt(thread);
        schedule::started();
        handlers::started(thread);
        ((*thread).routine, (*thread).argument as *mut c_void)
    }
}

unsafe extern "C" fn trampoline(block: *mut c_void) -> *mut c_void {
    // SAFETY: `prepare` got the routine from the program's own call.
    unsafe {
        let (routine, argument) = enter(block);
        let routine: real::StartRoutine = core::mem::transmute(routine);
        routine(argument)
    }
}

unsafe extern "C" fn c11_trampoline(block: *mut c_void) -> c_int {
    // SAFETY: as in `trampoline`.
    unsafe {
        let (routine, argument) = enter(block);
        let routine: real::C11Routine = core::mem::transmute(routine);
        routine(argument)
    }
}

/// Runs in the destructors of thread-specific data: after the program's `thread_local` destructors
/// and, by coming back in every round, after nearly all other such data.
unsafe extern "C" fn thread_ends(block: *mut c_void) {
    let thread = block.cast::<Thread>();
    // SAFETY: the record is the calling thread's own.
    unsafe {
        (*thread).rounds += 1;
        let key = KEY.load(Ordering::Relaxed) as c_uint;
        if (*thread).rounds < DESTRUCTOR_ROUNDS && sys::pthread_setspecific(key, block) == 0 {
            return;
        }
        if (*thread).live {
            finish(thread);
        } else {
            schedule::exiting();
            schedule::ended();
        }
        retire(thread);
    }
}

/// Closes the streams of the calling thread, whose instrumented code has come to its end.
unsafe fn finish(thread: *mut Thread) {
    // SAFETY: the record is the calling thread's own.
    unsafe {
        schedule::exiting();
        mark_end();
        schedule::ended();
        let control = (*thread).control;
        (*thread).live = false;
        (*thread).control = &raw mut (*thread).sink;
        *tls::control_slot() = (*thread).control;
        sys::keeping_errno(|| {
            (*thread).path.release();
            (*thread).values.release();
            sys::munmap(control.cast(), CONTROL_PAGE_SIZE);
        });
    }
}

/// Logs that the calling thread has come to its end.
pub fn mark_end() {
    let thread = tls::recording();
    if !thread.is_null() {
        // SAFETY: the record is the calling thread's own.
        unsafe {
            streams::event(thread, RuntimeEvent::ThreadExit, &[sys::tsc()]);
            write_volatile(&raw mut (*(*thread).control).ended, 1);
        }
    }
}

/// Leaves a record for [`sweep`]: the thread itself still needs it for its last instructions.
unsafe fn retire(thread: *mut Thread) {
    let mut head = RETIRED.load(Ordering::Relaxed);
    loop {
        // SAFETY: the record is this thread's until it is in the list.
        unsafe { (*thread).next_retired = head };
        match RETIRED.compare_exchange_weak(head, thread, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// Frees the records of threads that are gone. The whole list is taken at once, so that two
/// threads cannot free the same record.
unsafe fn sweep() {
    let mut thread = RETIRED.swap(null_mut(), Ordering::AcqRel);
    while !thread.is_null() {
        // SAFETY: records in the list taken belong to this call.
        unsafe {
            let next = (*thread).next_retired;
            let gone = sys::keeping_errno(|| {
                sys::tgkill((*thread).tid, 0) != 0 && sys::errno() == sys::ESRCH
            });
            if gone {
                sys::munmap(thread.cast(), BLOCK);
            } else {
                retire(thread);
            }
            thread = next;
        }
    }
}

/// In a child of `fork`: its hooks must not write to the parent's files. Either they write to its own
/// from here on, or the control page is replaced in place, because a hook may hold its address.
pub unsafe extern "C" fn forked() {
    gates::forked();
    let thread = tls::recording();
    // SAFETY: the record is the calling thread's own, the only one in the child.
    if !thread.is_null() && unsafe { forks::follow(thread) } {
        return;
    }
    process::forget();
    if thread.is_null() {
        return;
    }
    // SAFETY: the record is the calling thread's own, the only one in the child.
    unsafe {
        (*thread).live = false;
        handlers::forget(thread);
        (*thread).path.stopped = true;
        (*thread).values.stopped = true;
        let control = (*thread).control;
        let copy = read_volatile(control);
        let at = sys::mmap(
            control.cast(),
            CONTROL_PAGE_SIZE,
            sys::PROT_READ_WRITE,
            sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_FIXED,
            -1,
            0,
        );
        if at as usize == sys::MAP_FAILED {
            (*thread).control = &raw mut (*thread).sink;
            *tls::control_slot() = (*thread).control;
            return;
        }
        write_volatile(control, Control { gate_stop: u64::MAX, ..copy });
        streams::use_rings(control, (*thread).path_ring(), (*thread).value_ring());
    }
}

/// The serial of a thread about to be joined; 0 when it has no streams. A thread that was created
/// a moment ago may not have said it yet, and on a busy machine may not for long. A join without a serial
/// orders nothing for the reader, and the caller is going to wait for the thread anyway; only one that
/// was created without memory for its record never says it.
unsafe fn joined_serial(thread: Pthread) -> u64 {
    for round in 0..YIELDS + PAUSES {
        // SAFETY: the program may join the thread, so it is there.
        match unsafe { tls::serial_of(thread) } {
            0 if round < YIELDS => sys::yield_now(),
            0 => sys::keeping_errno(|| sys::sleep_micros(PAUSE)),
            tls::NO_SERIAL => return 0,
            serial => return serial,
        }
    }
    0
}

/// Logs a join around the call that does it.
pub unsafe fn around_join(thread: Pthread, join: impl FnOnce() -> c_int) -> c_int {
    schedule::at_point(SyncPoint::Join, None);
    let me = tls::recording();
    if me.is_null() {
        return join();
    }
    // SAFETY: the record is the calling thread's own; `thread` is a thread to be joined.
    unsafe {
        let serial = joined_serial(thread);
        streams::event(me, RuntimeEvent::JoinBegin, &[serial]);
        let result = join();
        streams::event(me, RuntimeEvent::JoinEnd, &[serial, result as u64]);
        result
    }
}

interpose! {
    fn pthread_create(
        out: *mut Pthread,
        attributes: *const c_void,
        routine: usize,
        argument: *mut c_void,
    ) -> c_int {
        let Some(create) = real::pthread_create() else { return sys::ENOSYS };
        schedule::at_point(SyncPoint::Create, None);
        let block = sys::keeping_errno(|| prepare(routine, argument as usize));
        if block.is_null() {
            let routine = core::mem::transmute::<usize, real::StartRoutine>(routine);
            return create(out, attributes, routine, argument);
        }
        let child = Child::of(block);
        let result =
            handlers::starting(block, || create(out, attributes, trampoline, block.cast()));
        let pthread = if result == 0 { Some(*out) } else { None };
        created(child, pthread, [routine, argument as usize]);
        result
    }

    fn thrd_create(out: *mut Pthread, routine: usize, argument: *mut c_void) -> c_int {
        let Some(create) = real::thrd_create() else { return 2 };
        schedule::at_point(SyncPoint::Create, None);
        let block = sys::keeping_errno(|| prepare(routine, argument as usize));
        if block.is_null() {
            let routine = core::mem::transmute::<usize, real::C11Routine>(routine);
            return create(out, routine, argument);
        }
        let child = Child::of(block);
        let result = handlers::starting(block, || create(out, c11_trampoline, block.cast()));
        let pthread = if result == 0 { Some(*out) } else { None };
        created(child, pthread, [routine, argument as usize]);
        result
    }

    fn pthread_join(thread: Pthread, out: *mut *mut c_void) -> c_int {
        let Some(join) = real::pthread_join() else { return sys::ENOSYS };
        around_join(thread, || emulate::join(thread, Limit::None, 0, || join(thread, out)))
    }

    fn pthread_tryjoin_np(thread: Pthread, out: *mut *mut c_void) -> c_int {
        let Some(join) = real::pthread_tryjoin_np() else { return sys::ENOSYS };
        around_join(thread, || emulate::try_join(thread, sys::EBUSY, || join(thread, out)))
    }

    fn pthread_timedjoin_np(thread: Pthread, out: *mut *mut c_void, until: *const c_void) -> c_int {
        let Some(join) = real::pthread_timedjoin_np() else { return sys::ENOSYS };
        let limit = Limit::At(sys::CLOCK_REALTIME, until.cast());
        let own = || join(thread, out, until);
        around_join(thread, || emulate::join(thread, limit, sys::ETIMEDOUT, own))
    }

    fn pthread_clockjoin_np(
        thread: Pthread,
        out: *mut *mut c_void,
        clock: c_int,
        until: *const c_void,
    ) -> c_int {
        let Some(join) = real::pthread_clockjoin_np() else { return sys::ENOSYS };
        let limit = Limit::At(clock, until.cast());
        let own = || join(thread, out, clock, until);
        around_join(thread, || emulate::join(thread, limit, sys::ETIMEDOUT, own))
    }

    fn thrd_join(thread: Pthread, out: *mut c_int) -> c_int {
        let Some(join) = real::thrd_join() else { return 2 };
        around_join(thread, || emulate::join(thread, Limit::None, 0, || join(thread, out)))
    }

    fn pthread_cancel(thread: Pthread) -> c_int {
        let Some(cancel) = real::pthread_cancel() else { return sys::ENOSYS };
        let result = cancel(thread);
        if result == 0 {
            schedule::cancelled(thread);
        }
        result
    }

    fn pthread_exit(value: *mut c_void) {
        let me = tls::recording();
        if !me.is_null() {
            streams::event(me, RuntimeEvent::NonLocal, &[]);
        }
        if let Some(exit) = real::pthread_exit() {
            exit(value);
        }
        sys::trap()
    }
}
