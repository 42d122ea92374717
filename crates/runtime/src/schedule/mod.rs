//! The scheduler: exactly one thread has the turn, and only that one runs code of the program.
//!
//! A thread comes here at every *point*: at gates that take the slow path, at sync points, and
//! when it would block. `core` and `choice` decide who goes on, as a state machine without threads;
//! `park` puts threads to sleep and wakes them, and watches the one that has the turn. What the
//! calls of the program do under a scheduler is in `sync`, `c11`, `threads` and `sleep`.
//!
//! Blocking calls are made of calls that do not block, so that the scheduler knows who waits for
//! whom, and nothing depends on the kernel's choices: locks and semaphores are tried, and tried
//! again after somebody released them; conditions, barriers, joins and times are modelled here.
//! Time is virtual: a thread that sleeps, or waits with a time limit, goes on when nobody else can
//! run (earliest deadline first), or, with a schedule, when the schedule says that it goes on. The
//! clocks that the program reads go forward by as much, so that it believes it.

mod choice;
mod core;
mod outside;
mod park;
mod slots;
mod table;
mod words;

#[cfg(test)]
mod tests;

pub use park::passed_time;
pub use slots::{NEVER, NONE, WaitKind, Wake};

use self::core::Plan;
use self::park::Held;
use self::slots::{MOST, Slots, State, Wait};
use crate::avoid;
use crate::gates;
use crate::layout::{SyncOp, SyncPoint, site_hash, sync_point_name};
use crate::noise;
use crate::report;
use crate::script::Script;
use crate::sys::{self, Pthread};
use crate::threads::Thread;
use crate::tls;
use ::core::ffi::{c_char, c_int, c_void};
use ::core::ptr::{null_mut, read_volatile, write_volatile};
use ::core::sync::atomic::{AtomicBool, Ordering};

static ACTIVE: AtomicBool = AtomicBool::new(false);

/// What the scheduler is asked for.
#[derive(Clone, Copy)]
pub struct Config {
    /// The schedule to follow; none for a perturbed run.
    pub script: Option<&'static Script>,
    /// The noise; of interest to the scheduler is [`noise::Config::Pct`].
    pub noise: noise::Config,
    /// After so many milliseconds random disturbances end.
    pub noise_time: u64,
    /// Milliseconds without progress after which following is given up.
    pub patience: u64,
    /// So many gates may be passed in one line of the schedule.
    pub gates: u64,
    /// So many may be passed behind the schedule.
    pub tail: u64,
}

/// Does a scheduler decide, that is, was a schedule or `pct` asked for?
#[inline]
#[must_use]
pub fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

fn thread_name(hash: u64) -> &'static [u8] {
    gates::script().map_or(b"", |script| script.thread_text(hash))
}

fn site_name(hash: u64) -> &'static [u8] {
    gates::script().map_or(b"", |script| script.site_text(hash))
}

/// Starts the scheduler. Called once, before the program's first instruction, when the initial
/// thread has its record, and only when there is a schedule or `pct`. The initial thread passes
/// its point `~start` here.
pub fn start(config: Config) {
    // SAFETY: the record is the calling thread's own.
    let thread = unsafe { *tls::thread_slot() };
    if thread.is_null() {
        return;
    }
    let mut held = Held::take();
    held.set_patience(config.patience.saturating_mul(1_000_000));
    let core = held.core();
    core.slots = Slots::with_room(MOST);
    core.tail = config.tail;
    match (config.script, config.noise) {
        (Some(script), _) => {
            report::set_lines(script.turns().len() as u32);
            let plan = Plan {
                turns: script.turns(),
                marks: script.marks(),
                hold: script.hold_at_end(),
                polls: script.polls(),
                waits: script.waits(),
                name: thread_name,
                site: site_name,
            };
            core.follow(plan, config.patience.saturating_mul(1_000_000));
            core.gates = config.gates;
        }
        (None, noise::Config::Pct { seed, depth, steps }) => core.perturb(seed, depth, steps),
        (None, _) => {}
    }
    held.release();
    // SAFETY: as above; the functions registered stay.
    unsafe {
        if !create(thread) {
            return;
        }
        sys::__register_atfork(None, None, Some(forked), null_mut());
        sys::on_exit(at_exit, null_mut());
        ACTIVE.store(true, Ordering::Release);
        started();
    }
}

/// In a child of `fork` there is one thread, and nothing to schedule. `gates::forked` sees to its
/// gates.
unsafe extern "C" fn forked() {
    ACTIVE.store(false, Ordering::Relaxed);
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        if !thread.is_null() {
            (*thread).slot = NONE;
            (*thread).gate.inside = false;
        }
    }
}

unsafe extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    ending();
    process_ends(status & 0xff != 0);
}

/// The calling thread while it is in the scheduler: what a signal handler passes meanwhile is not
/// scheduled.
struct Inside {
    thread: *mut Thread,
    me: u32,
}

impl Inside {
    /// None when no scheduler decides about the calling thread, or it is in it already.
    fn enter() -> Option<Self> {
        if !active() {
            return None;
        }
        // SAFETY: the record is the calling thread's own.
        unsafe {
            let thread = *tls::thread_slot();
            if thread.is_null() || (*thread).slot == NONE || !gates::enter(thread) {
                return None;
            }
            Some(Self { thread, me: (*thread).slot })
        }
    }

    /// Waits for the turn: the thread may have lost it.
    fn with_turn(&self) -> Held {
        let mut held = Held::take();
        held.core().back(self.me);
        if held.core().turn == self.me { held } else { held.wait_turn(self.me) }
    }

    /// Stands at a point until it may be passed, and passes it.
    fn point(&self, site: u64) {
        let mut held = Held::take();
        held.core().back(self.me);
        held.core().stand(self.me, site);
        let held = held.wait_turn(self.me);
        self.pass(held);
    }

    /// Passes the sync point that the thread stands at.
    fn pass(&self, mut held: Held) {
        // SAFETY: the record and its control page are the calling thread's own.
        unsafe {
            let points = &raw mut (*(*self.thread).control).points;
            write_volatile(points, read_volatile(points) + 1);
        }
        let mark = pass(&mut held, self.me);
        held.release();
        announce(mark, self.thread);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // SAFETY: the record is the calling thread's own.
        unsafe { gates::leave(self.thread) };
    }
}

fn pass(held: &mut Held, me: u32) -> Option<u64> {
    let occurrence = held.core().pass(me)?;
    held.core().mark(me, occurrence)
}

fn announce(mark: Option<u64>, thread: *mut Thread) {
    if let Some(number) = mark {
        // SAFETY: the record is the calling thread's own.
        symbiosis_mark(number, unsafe { (*thread).name.as_c() });
    }
}

/// Called when a marked place is passed, in the thread that passes it: for debuggers to stop at.
#[cfg_attr(symbiosis_export, unsafe(no_mangle))]
#[inline(never)]
pub extern "C" fn symbiosis_mark(number: u64, thread: *const c_char) {
    // Keeps the call, and its arguments in their registers.
    ::core::hint::black_box((number, thread));
}

/// The calling thread stands at a gate that it has not passed yet (it is not counted). Returns
/// when the thread may go on.
///
/// # Safety
///
/// `thread` is the calling thread's own record, and marked by [`gates::enter`]; the caller keeps
/// `errno`.
pub unsafe fn at_gate(thread: *mut Thread, site: u64) {
    // SAFETY: the caller vouches for the record.
    let me = unsafe { (*thread).slot };
    if !active() || me == NONE {
        return;
    }
    let mut held = Held::take();
    held.core().back(me);
    held.core().stand(me, site);
    let mut held = held.wait_turn(me);
    let mark = pass(&mut held, me);
    held.release();
    announce(mark, thread);
}

fn site(point: SyncPoint, operation: Option<SyncOp>) -> u64 {
    site_hash(sync_point_name(point, operation).as_bytes())
}

/// The calling thread comes to a sync point: the scheduler, if there is one, decides when it goes
/// on. `operation` is for [`SyncPoint::Begin`].
#[inline]
pub fn at_point(point: SyncPoint, operation: Option<SyncOp>) {
    if avoid::active() || active() || noise::active() {
        decide_at_point(point, operation);
    }
}

#[cold]
fn decide_at_point(point: SyncPoint, operation: Option<SyncOp>) {
    // SAFETY: the record is the calling thread's own.
    unsafe { avoid::at_point(*tls::thread_slot(), point, || site(point, operation)) };
    if active() {
        sys::keeping_errno(|| match Inside::enter() {
            Some(inside) => inside.point(site(point, operation)),
            None => pass_unscheduled(),
        });
    } else {
        // SAFETY: the record is the calling thread's own.
        unsafe {
            let thread = *tls::thread_slot();
            if !thread.is_null() {
                noise::at_point(thread);
            }
        }
    }
}

/// A signal handler that interrupted the scheduler passes a sync point.
fn pass_unscheduled() {
    // SAFETY: the record and its control page are the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        if !thread.is_null() && (*thread).slot != NONE {
            let points = &raw mut (*(*thread).control).points;
            write_volatile(points, read_volatile(points) + 1);
        }
    }
}

// The lives of threads.

/// A thread gets its slot; its creator has the turn. It will stand at `~start`. Says whether there
/// was room; a thread without a slot runs freely.
///
/// # Safety
///
/// The record must have its name and its control page, and nobody else may use it yet.
pub unsafe fn create(child: *mut Thread) -> bool {
    // SAFETY: the caller vouches for the record.
    unsafe {
        let mut held = Held::take();
        let start = site(SyncPoint::Start, None);
        let index = held.core().add((*child).name.as_bytes(), (*child).control, start);
        if let Some(index) = index {
            (*child).slot = index;
            held.core().slots.get_mut(index).serial = (*child).serial;
        }
        held.release();
        index.is_some()
    }
}

/// A thread with a slot could not be created after all.
pub fn not_created(slot: u32) {
    if active() && slot != NONE {
        let mut held = Held::take();
        held.core().remove(slot);
        held.release();
    }
}

/// A thread that was given a slot is made by the library, when its time has come.
pub fn comes_later(slot: u32) {
    if active() && slot != NONE {
        let mut held = Held::take();
        held.core().lose(slot);
        held.release();
    }
}

/// A thread was created; the creator tells which.
pub fn created(slot: u32, pthread: Pthread) {
    if active() && slot != NONE {
        let mut held = Held::take();
        held.core().slots.get_mut(slot).pthread = pthread;
        held.release();
    }
}

/// The calling thread is there, and stands at `~start`.
pub fn started() {
    sys::keeping_errno(|| {
        let Some(inside) = Inside::enter() else { return };
        let mut held = Held::take();
        held.core().back(inside.me);
        let slot = held.core().slots.get_mut(inside.me);
        slot.tid = sys::gettid();
        // SAFETY: takes nothing.
        slot.pthread = unsafe { sys::pthread_self() };
        let held = held.wait_turn(inside.me);
        inside.pass(held);
    });
}

/// The calling thread is about to log its end.
pub fn exiting() {
    // SAFETY: the record is the calling thread's own.
    let initial = unsafe {
        let thread = *tls::thread_slot();
        thread.is_null() || (*thread).slot == 0
    };
    if !initial {
        at_point(SyncPoint::Exit, None);
    }
}

/// The calling thread has logged its end: it gives the turn away for good.
pub fn ended() {
    sys::keeping_errno(|| {
        let Some(inside) = Inside::enter() else { return };
        let mut held = inside.with_turn();
        held.core().end(inside.me);
        held.decide(NONE);
        // SAFETY: the record is the calling thread's own.
        unsafe { (*inside.thread).slot = NONE };
        held.release();
    });
}

/// The calling thread is about to end the process in good order: what the schedule says of other
/// threads comes first, as far as it can. The thread stands at a point of its own meanwhile, so that
/// it is behind any other.
pub fn ending() {
    sys::keeping_errno(|| {
        let Some(inside) = Inside::enter() else { return };
        let mut held = Held::take();
        held.core().back(inside.me);
        if !held.core().is_under_way(inside.me) {
            held.release();
            return;
        }
        held.core().stand(inside.me, site_hash(b"~end"));
        let mut held = held.wait_turn(inside.me);
        held.core().pass(inside.me);
        held.release();
    });
}

/// The process ends: lines of the schedule that were not reached will not be.
pub fn process_ends(failed: bool) {
    if !active() {
        return;
    }
    // SAFETY: the record is the calling thread's own.
    let me = unsafe {
        let thread = *tls::thread_slot();
        if thread.is_null() { NONE } else { (*thread).slot }
    };
    // It may be a signal handler that interrupted the scheduler, which then never gives the lock back; a
    // thread that has it may wait long for a processor.
    for round in 0..1200 {
        if let Some(mut held) = Held::try_take() {
            held.process_ends(me, failed);
            held.release();
            return;
        }
        match round {
            0..1000 => sys::yield_now(),
            _ => sys::keeping_errno(|| sys::sleep_micros(1000)),
        }
    }
}

// Waiting.

/// What a call waits for; see [`wait`].
#[derive(Clone, Copy)]
pub struct Request {
    /// Its kind.
    pub kind: WaitKind,
    /// The object.
    pub object: *const c_void,
    /// Where the kernel id of the object's holder is found; null when nowhere.
    pub owner: *const i32,
    /// From [`deadline`]; [`NEVER`] for none.
    pub deadline: u64,
    /// The call is a cancellation point, and the thread can be cancelled.
    pub cancellable: bool,
    /// The value of a futex's word.
    pub expected: u32,
    /// The wait is a library's own, outside of any call of the program that passes points.
    pub between: bool,
}

impl Request {
    /// A wait without end for an object that nobody is known to hold.
    #[must_use]
    pub fn on(kind: WaitKind, object: *const c_void) -> Self {
        let owner = ::core::ptr::null();
        Self {
            kind,
            object,
            owner,
            deadline: NEVER,
            cancellable: false,
            expected: 0,
            between: false,
        }
    }
}

/// The virtual time that is so many nanoseconds away.
#[must_use]
pub fn deadline(nanoseconds: u64) -> u64 {
    let mut held = Held::take();
    let deadline = held.core().now.saturating_add(nanoseconds).min(NEVER - 1);
    held.release();
    deadline
}

/// The calling thread waits. With `point`, it stands at that point meanwhile and passes it at the
/// end. None when no scheduler decides about the thread: then the program's own function has to
/// wait.
#[must_use]
pub fn wait(request: Request, point: Option<SyncPoint>) -> Option<Wake> {
    sys::keeping_errno(|| {
        let inside = Inside::enter()?;
        let mut held = Held::take();
        held.core().back(inside.me);
        if held.core().turn != inside.me && point.is_none() {
            // What it found may have changed while it did not have the turn.
            held.wait_turn(inside.me).release();
            return Some(Wake::Again);
        }
        if held.core().turn != inside.me {
            held = held.wait_turn(inside.me);
        }
        let wait = Wait {
            kind: request.kind,
            address: request.object as u64,
            owner: request.owner,
            deadline: request.deadline,
            cancellable: request.cancellable,
            expected: request.expected,
            between: request.between,
        };
        let site = point.map_or(0, |point| site(point, None));
        let core = held.core();
        core.block(inside.me, wait, site);
        if request.cancellable && core.slots.get(inside.me).cancelled {
            core.cancel(inside.me);
        }
        // SAFETY: the record is the calling thread's own. Volatile, because a signal handler looks.
        let waits = unsafe { &raw mut (*inside.thread).gate.waits };
        // SAFETY: as before.
        unsafe { write_volatile(waits, true) };
        let mut held = held.wait_turn(inside.me);
        // SAFETY: as before.
        unsafe { write_volatile(waits, false) };
        let wake = held.core().slots.get(inside.me).wake;
        let pause = ::core::mem::take(&mut held.core().pause);
        if point.is_some() {
            inside.pass(held);
        } else {
            held.release();
        }
        if pause > 0 {
            sys::sleep_micros(pause / 1_000);
        }
        Some(wake)
    })
}

/// Does a scheduler decide about the calling thread now?
#[must_use]
pub fn decides() -> bool {
    Inside::enter().is_some()
}

/// An object was released by a call that is no condition's: whoever waits for it tries again.
pub fn released(object: *const c_void) {
    change(|core| core.released(object as u64));
}

/// Does any thread wait for this object in this way?
pub fn waits_for(kind: WaitKind, object: *const c_void) -> bool {
    let mut found = false;
    change(|core| found = core.is_awaited(kind, object as u64));
    found
}

/// A condition was signalled. Says whether the scheduler has seen to it.
pub fn signal(condition: *const c_void, all: bool) -> bool {
    change(|core| core.signal(condition as u64, all))
}

/// A condition is initialised, for which threads may wait already.
pub fn initialised(condition: *const c_void) {
    change(|core| core.initialised(condition as u64));
}

/// Waiters of a futex are woken, so many at most. Says how many.
pub fn wake(word: *const c_void, most: u32) -> u32 {
    let mut woken = 0;
    change(|core| woken = core.wake(word as u64, most));
    woken
}

/// Was this the kernel id of a thread that has passed its last point?
#[must_use]
pub fn has_ended(tid: i32) -> bool {
    let mut ended = false;
    change(|core| ended = core.has_ended(tid));
    ended
}

fn change(work: impl FnOnce(&mut self::core::Core)) -> bool {
    if !active() {
        return false;
    }
    sys::keeping_errno(|| match Inside::enter() {
        Some(inside) => {
            let mut held = inside.with_turn();
            work(held.core());
            held.release();
            true
        }
        None if is_foreign() => {
            let mut held = Held::take();
            work(held.core());
            if held.core().turn == NONE {
                held.decide(NONE);
            }
            held.release();
            true
        }
        None => {
            // A signal handler that interrupted the scheduler, which may hold the lock.
            park::note_unseen();
            false
        }
    })
}

/// Is the calling thread one that the scheduler does not know?
fn is_foreign() -> bool {
    // SAFETY: the record is the calling thread's own.
    unsafe {
        let thread = *tls::thread_slot();
        thread.is_null() || (*thread).slot == NONE
    }
}

/// The calling thread comes to a barrier. True: it is the last one, and the others go on.
#[must_use]
pub fn at_barrier(barrier: *const c_void, threads: u32) -> bool {
    let mut last = false;
    change(|core| last = core.at_barrier(barrier as u64, threads));
    last
}

/// The calling thread yields. False when no scheduler decides about it.
#[must_use]
pub fn give_way() -> bool {
    if !active() {
        return false;
    }
    sys::keeping_errno(|| {
        let Some(inside) = Inside::enter() else { return false };
        let mut held = inside.with_turn();
        held.core().give_way(inside.me);
        held.wait_turn(inside.me).release();
        true
    })
}

/// Waits until a thread has come to its end, so that a real join does not take long. None when it
/// is not one of the scheduler's, [`Wake::TimedOut`] when it has not ended by then; a deadline of 0
/// only asks.
#[must_use]
pub fn wait_for_end(thread: Pthread, deadline: u64, cancellable: bool) -> Option<Wake> {
    loop {
        let target = {
            let inside = Inside::enter()?;
            let mut held = inside.with_turn();
            let slots = &held.core().slots;
            let found = (0..slots.count).rev().find(|index| {
                let slot = slots.get(*index);
                slot.pthread == thread && !slot.joined
            });
            let ended = found.is_some_and(|index| slots.get(index).state == State::Ended);
            held.release();
            let target = found.filter(|index| *index != inside.me)?;
            if ended {
                return Some(Wake::Again);
            }
            target
        };
        if deadline == 0 {
            return Some(Wake::TimedOut);
        }
        let object = target as usize as *const c_void;
        let request = Request { deadline, cancellable, ..Request::on(WaitKind::Join, object) };
        match wait(request, None)? {
            Wake::Again => {}
            wake => return Some(wake),
        }
    }
}

/// A thread was joined: another one may get its `pthread_t`.
pub fn joined(thread: Pthread) {
    change(|core| {
        for index in (0..core.slots.count).rev() {
            let slot = core.slots.get_mut(index);
            if slot.pthread == thread && !slot.joined {
                slot.joined = slot.state == State::Ended;
                return;
            }
        }
    });
}

/// A thread was cancelled: if it waits in a cancellation point, it goes on to act on that.
pub fn cancelled(thread: Pthread) {
    change(|core| {
        for index in (0..core.slots.count).rev() {
            let slot = core.slots.get(index);
            if slot.pthread == thread && slot.state != State::Ended {
                core.cancel(index);
                return;
            }
        }
    });
}

/// The calling thread acts on its cancellation: that ends no wait of it any more.
pub fn acted_on_cancellation() {
    let Some(inside) = Inside::enter() else { return };
    let mut held = Held::take();
    held.core().slots.get_mut(inside.me).cancelled = false;
    held.release();
}
