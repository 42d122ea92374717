//! Makes threads do what the state machine says: a short lock around it, a place to sleep for each
//! thread, and the watch over the thread that has the turn.

use super::core::{Core, Next};
use super::outside;
use super::slots::{NONE, State};
use super::words;
use crate::layout::{DEADLOCK_STATUS, RawFailure};
use crate::order;
use crate::process::{self, Failure};
use crate::report;
use crate::sys;
use crate::text::Text;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// How often the watching thread looks, in nanoseconds.
const TICK: u64 = 20_000_000;
/// So many looks in a row have to find the holder of the turn asleep.
const ASLEEP: u32 = 2;
/// Looks that are so far apart mean that the whole process was stopped, by a debugger for
/// instance; that time does not count.
const STOPPED: u64 = 500_000_000;
/// So long nobody may be able to run before that counts as a deadlock: what does not depend on the
/// program's threads (the kernel releasing a robust mutex) needs a moment.
const GRACE: u64 = 100_000_000;
/// So long where all threads wait, in the kernel too, for what only this process can give.
const SOON: u64 = 400_000_000;
/// After so many decisions the clock is read without a look being due.
const DECISIONS: u32 = 64;

/// What the watching thread has seen.
struct Watch {
    /// The thread that watches while it sleeps; [`NONE`].
    poller: u32,
    /// Who is to be woken when the lock is released.
    wake: [u32; 2],
    /// Nanoseconds that a line, or a thread that runs without passing points, may take.
    patience: u64,
    ticked: u64,
    holder: u32,
    passed: u64,
    since: u64,
    asleep: u32,
    effort: usize,
    effort_since: u64,
    idle_since: u64,
    decisions: u32,
    switches: u64,
    left: bool,
}

struct Shared {
    core: UnsafeCell<Core>,
    watch: UnsafeCell<Watch>,
}

// SAFETY: only used through `Held`.
unsafe impl Sync for Shared {}

static PASSED: AtomicU64 = AtomicU64::new(0);
static UNSEEN: AtomicBool = AtomicBool::new(false);
static LOCK: AtomicU32 = AtomicU32::new(0);
static SHARED: Shared = Shared {
    core: UnsafeCell::new(Core::new()),
    watch: UnsafeCell::new(Watch {
        poller: NONE,
        wake: [NONE; 2],
        patience: 0,
        ticked: 0,
        holder: NONE,
        passed: 0,
        since: 0,
        asleep: 0,
        effort: usize::MAX,
        effort_since: 0,
        idle_since: 0,
        decisions: 0,
        switches: 0,
        left: false,
    }),
};

/// Monotonic nanoseconds.
fn clock() -> u64 {
    sys::clock(sys::CLOCK_MONOTONIC)
}

/// The virtual time that has passed, in nanoseconds.
pub fn passed_time() -> u64 {
    PASSED.load(Ordering::Relaxed)
}

/// Something may have ended waits without the scheduler's knowledge.
pub fn note_unseen() {
    UNSEEN.store(true, Ordering::Release);
}

/// The scheduler's lock, held. It is never held while waiting for anything but itself.
pub struct Held(());

impl Held {
    /// Takes the lock.
    #[must_use]
    pub fn take() -> Self {
        if LOCK.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while LOCK.swap(2, Ordering::Acquire) != 0 {
                sys::futex_wait(&LOCK, 2, None);
            }
        }
        Self(())
    }

    /// Takes the lock if it is free.
    #[must_use]
    pub fn try_take() -> Option<Self> {
        LOCK.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok().map(|_| Self(()))
    }

    /// The state machine.
    #[allow(clippy::unused_self)]
    pub fn core(&mut self) -> &mut Core {
        // SAFETY: the lock makes its holder the only user.
        unsafe { &mut *SHARED.core.get() }
    }

    #[allow(clippy::unused_self)]
    fn watch(&mut self) -> &mut Watch {
        // SAFETY: as in `core`.
        unsafe { &mut *SHARED.watch.get() }
    }

    /// Sets the patience in nanoseconds.
    pub fn set_patience(&mut self, nanoseconds: u64) {
        self.watch().patience = nanoseconds;
    }

    /// Lets the state machine choose who has the turn, and whoever that is wake up. `me` is the
    /// calling thread if it is going to sleep now unless it is chosen, else [`NONE`].
    pub fn decide(&mut self, me: u32) {
        if UNSEEN.load(Ordering::Relaxed) && UNSEEN.swap(false, Ordering::Acquire) {
            self.core().dirty = true;
        }
        let next = self.core().decide();
        match next {
            Next::Turn(index) => {
                self.watch().idle_since = 0;
                if index != me {
                    self.rouse(index);
                }
            }
            Next::Stuck => self.end_deadlock(),
            Next::Far => self.end_far(),
            Next::Idle => {
                if self.watch().idle_since == 0 {
                    self.watch().idle_since = clock();
                }
            }
        }
        self.find_poller(me);
        self.tell();
        self.watch().decisions += 1;
        if self.watch().decisions.is_multiple_of(DECISIONS) {
            self.check_line(clock());
        }
    }

    fn rouse(&mut self, index: u32) {
        self.core().slots.get(index).go.fetch_add(1, Ordering::Release);
        if let Some(place) = self.watch().wake.iter_mut().find(|place| **place == NONE) {
            *place = index;
        }
    }

    /// Sees to it that a sleeping thread watches the holder of the turn.
    fn find_poller(&mut self, me: u32) {
        let turn = self.core().turn;
        let poller = self.watch().poller;
        if poller != NONE && poller != turn && self.core().slots.get(poller).parked {
            return;
        }
        if me != NONE && me != turn {
            self.watch().poller = me;
            return;
        }
        let slots = &self.core().slots;
        let sleeper = slots.living().find(|index| *index != turn && slots.get(*index).parked);
        self.watch().poller = sleeper.unwrap_or(NONE);
        if let Some(index) = sleeper {
            self.rouse(index);
        }
    }

    /// Passes on what the state machine has to say.
    fn tell(&mut self) {
        let core = self.core();
        if let Some(record) = core.record.take() {
            order::append(record);
        }
        let (switches, steps, followed, left) =
            (core.switches, core.steps, core.followed, core.left.is_some());
        while self.watch().switches < switches {
            self.watch().switches += 1;
            report::count_switch();
        }
        let now = self.core().now;
        PASSED.store(now, Ordering::Relaxed);
        report::set_steps(steps);
        report::followed(followed);
        if left && !self.watch().left {
            self.watch().left = true;
            if let Some(left) = &self.core().left {
                report::left(left.line, left.reason, left.site, left.message.as_bytes());
            }
        }
    }

    /// Releases the lock and wakes whoever is to be woken.
    pub fn release(mut self) {
        let wake = core::mem::replace(&mut self.watch().wake, [NONE; 2]);
        let words = wake.map(|index| (index != NONE).then(|| self.core().slots.go(index)));
        if LOCK.swap(0, Ordering::Release) == 2 {
            sys::futex_wake(&LOCK, 1);
        }
        for word in words.into_iter().flatten() {
            sys::futex_wake(word, 1);
        }
    }

    /// Returns when the calling thread has the turn. If it has it already, it stands at a point,
    /// or waits for something: then it is decided anew who goes on.
    #[must_use]
    pub fn wait_turn(mut self, me: u32) -> Self {
        if self.core().turn == me || self.core().turn == NONE {
            self.decide(me);
        }
        while self.core().turn != me {
            self.find_poller(me);
            let slot = self.core().slots.get_mut(me);
            slot.parked = true;
            let seen = slot.go.load(Ordering::Relaxed);
            let word = self.core().slots.go(me);
            let timeout = (self.watch().poller == me).then_some(TICK);
            self.release();
            sys::futex_wait(word, seen, timeout);
            self = Self::take();
            self.core().slots.get_mut(me).parked = false;
            self.core().back(me);
            if self.core().turn == NONE {
                self.decide(me);
            }
            if self.watch().poller == me && self.core().turn != me {
                self.look(me);
            }
        }
        if self.watch().poller == me {
            self.find_poller(NONE);
        }
        self
    }

    /// The watching thread looks whether there is progress.
    fn look(&mut self, me: u32) {
        let now = clock();
        let before = core::mem::replace(&mut self.watch().ticked, now);
        if now.saturating_sub(before) < TICK / 2 {
            // It was woken for something else.
            self.watch().ticked = before;
            return;
        }
        let gap = now.saturating_sub(before);
        if before != 0 && gap > STOPPED {
            let watch = self.watch();
            watch.since += gap;
            watch.effort_since += gap;
            if watch.idle_since != 0 {
                watch.idle_since += gap;
            }
        }
        self.check_line(now);
        match self.core().turn {
            NONE => self.look_at_nobody(me, now),
            holder => self.look_at(holder, me, now),
        }
    }

    fn look_at_nobody(&mut self, me: u32, now: u64) {
        let elapsed = now.saturating_sub(self.watch().idle_since);
        let patience = self.watch().patience;
        let for_good = elapsed >= SOON && self.core().waits_outside() && self.all_wait_within();
        if for_good || self.core().idle_for(elapsed, patience, GRACE) {
            let slots = &self.core().slots;
            let running = slots.living().any(|index| {
                let slot = slots.get(index);
                slot.state == State::Away && !slot.comes_later() && !asleep(slot.tid)
            });
            if !running {
                self.end_deadlock();
            }
            self.watch().idle_since = now;
        }
        self.decide(me);
    }

    /// Do all threads that wait outside of what the scheduler controls wait for what only this process's
    /// threads could give?
    fn all_wait_within(&mut self) -> bool {
        let slots = &self.core().slots;
        let mut away = slots.living().filter(|index| slots.get(*index).state == State::Away);
        let within = away.all(|index| outside::waits_within(slots.get(index).tid));
        within && outside::is_alone(slots.living().count())
    }

    fn look_at(&mut self, holder: u32, me: u32, now: u64) {
        let slot = self.core().slots.get(holder);
        if slot.parked {
            // Whoever gave it the turn has not come to waking it yet.
            self.rouse(holder);
            return;
        }
        let (tid, passed) = (slot.tid, slot.passed());
        let watch = self.watch();
        let passed = passed.wrapping_add(u64::from(watch.decisions));
        if watch.holder != holder || watch.passed != passed {
            watch.holder = holder;
            watch.passed = passed;
            watch.since = now;
            watch.asleep = 0;
            return;
        }
        watch.asleep = if tid != 0 && asleep(tid) { watch.asleep + 1 } else { 0 };
        if watch.asleep >= ASLEEP || now.saturating_sub(watch.since) > watch.patience {
            watch.holder = NONE;
            self.core().lose(holder);
            self.decide(me);
        }
    }

    /// Gives up a line that takes too long.
    fn check_line(&mut self, now: u64) {
        let (effort, hurry) = (self.core().effort(), self.core().was_late());
        let watch = self.watch();
        if watch.effort != effort {
            watch.effort = effort;
            watch.effort_since = now;
            return;
        }
        let patience = if hurry { watch.patience / 4 } else { watch.patience };
        if now.saturating_sub(watch.effort_since) > patience {
            watch.effort_since = now;
            self.core().expire();
            self.tell();
        }
    }

    /// The process ends, by the thread `me` ([`NONE`] when it is not scheduled).
    pub fn process_ends(&mut self, me: u32, failed: bool) {
        let turn = self.core().turn;
        if turn != NONE {
            self.core().count(turn);
        }
        self.core().process_ends(me, failed);
        self.tell();
    }

    /// As much of the run was asked for, and no more: ends the process.
    fn end_far(&mut self) -> ! {
        self.process_ends(NONE, false);
        report::far();
        sys::exit_now(0)
    }

    /// Nobody will ever run again: says so, and ends the process.
    fn end_deadlock(&mut self) -> ! {
        let mut text = Text::<2048>::new();
        words::deadlock(self.core(), &mut text);
        self.tell();
        report::deadlock(text.as_bytes());
        let failure = Failure {
            code: i64::from(DEADLOCK_STATUS),
            message: text.as_bytes(),
            ..Failure::default()
        };
        process::note_failure(RawFailure::Deadlock, &failure);
        sys::exit_now(DEADLOCK_STATUS)
    }
}

/// Does the kernel say that this thread sleeps until something happens? A thread that waits for
/// the disk does not count: that ends by itself.
fn asleep(tid: i32) -> bool {
    let mut name = Text::<64>::new();
    name.push(b"/proc/self/task/").push_decimal(tid.unsigned_abs().into()).push(b"/stat");
    let mut bytes = [0u8; 512];
    let length = sys::read_small_file(&name, &mut bytes);
    let bytes = bytes.get(..length).unwrap_or(&[]);
    // The thread's own name, in parentheses, may contain anything.
    let Some(close) = bytes.iter().rposition(|byte| *byte == b')') else { return false };
    bytes.get(close + 2) == Some(&b'S')
}
