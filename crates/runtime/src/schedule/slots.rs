//! What the scheduler knows of every thread.

use crate::layout::Control;
use crate::sys;
use crate::text::Text;
use core::ptr::{null, null_mut, read_volatile, write_volatile};
use core::sync::atomic::AtomicU32;

/// No slot.
pub const NONE: u32 = u32::MAX;
/// Threads beyond so many are not scheduled: they run freely.
pub const MOST: usize = 65_536;
/// The deadline of a wait without one.
pub const NEVER: u64 = u64::MAX;

/// What a thread may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, or goes on as soon as it has the turn.
    Ready,
    /// It waits for something, see [`Wait`].
    Blocked,
    /// It lost the turn inside of something that the scheduler does not control, and may be
    /// running; at its next point it waits for the turn.
    Away,
    /// It has passed its last point.
    Ended,
}

/// The kind of thing that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// Nothing.
    None,
    /// A mutex.
    Mutex,
    /// A reader-writer lock, to read.
    RwLock,
    /// A reader-writer lock, to write.
    RwWrite,
    /// A spin lock.
    Spin,
    /// A semaphore.
    Semaphore,
    /// A signal of a condition variable.
    Condition,
    /// The others at a barrier.
    Barrier,
    /// The end of the thread whose slot is in `address`.
    Join,
    /// Another thread's run of a once routine.
    Once,
    /// A wake-up of a futex.
    Futex,
    /// A time.
    Sleep,
}

impl WaitKind {
    /// Does the waiter find out by trying again?
    #[must_use]
    pub const fn retries(self) -> bool {
        matches!(
            self,
            Self::Mutex
                | Self::RwLock
                | Self::RwWrite
                | Self::Spin
                | Self::Semaphore
                | Self::Once
                | Self::Join
        )
    }
}

impl WaitKind {
    /// Does it take somebody's signal to end the wait?
    #[must_use]
    pub const fn is_signalled(self) -> bool {
        matches!(self, Self::Condition | Self::Futex)
    }
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Its kind.
    pub kind: WaitKind,
    /// The object's address, or for a join the slot's number.
    pub address: u64,
    /// Where the kernel id of the thread that holds the object is found; null when nowhere.
    pub owner: *const i32,
    /// When the wait ends by itself, in virtual nanoseconds; [`NEVER`].
    pub deadline: u64,
    /// The wait is a cancellation point.
    pub cancellable: bool,
    /// What a futex's word was when the wait began.
    pub expected: u32,
    /// The wait is inside of a library, outside of any call that passes points: what came before it is done.
    pub between: bool,
}

impl Wait {
    /// No wait.
    pub const NOTHING: Self = Self::on(WaitKind::None, 0);

    /// A wait without end for an object that nobody is known to hold.
    #[must_use]
    pub const fn on(kind: WaitKind, address: u64) -> Self {
        Self {
            kind,
            address,
            owner: null(),
            deadline: NEVER,
            cancellable: false,
            expected: 0,
            between: false,
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// What was waited for may be there: try again. For conditions, barriers and sleeps: it is.
    Again,
    /// The deadline came first.
    TimedOut,
    /// Somebody cancelled the thread.
    Cancelled,
}

/// A thread.
#[repr(C)]
pub struct Slot {
    /// `t0`, `t0.1`, ...
    pub name: Text<200>,
    /// `script::thread_hash` of the name.
    pub hash: u64,
    /// Its number in the trace.
    pub serial: u64,
    /// What it may do.
    pub state: State,
    /// Its control page; null once it ended.
    pub control: *mut Control,
    /// The site that it stands at and has not passed; 0 when it is between two.
    pub at: u64,
    /// The site that it passed last, as far as it was a sync point or is named in the schedule.
    pub behind: u64,
    /// What it waits for when it is blocked.
    pub wait: Wait,
    /// How its last wait ended.
    pub wake: Wake,
    /// When it began to wait for its condition; see `Core::signal`.
    pub ticket: u64,
    /// The signal that is kept for it; 0 for none.
    pub grant: u64,
    /// The higher, the earlier it runs (`pct`).
    pub priority: u64,
    /// How many points it had passed when its quantum began.
    pub quantum: u64,
    /// How many of its points are in the total.
    pub counted: u64,
    /// It used up its quantum while it helped another thread.
    pub tired: bool,
    /// The schedule names it.
    pub scripted: bool,
    /// Somebody cancelled it.
    pub cancelled: bool,
    /// It sleeps in the kernel until it gets the turn.
    pub parked: bool,
    /// It was joined: its `pthread_t` may belong to another thread by now.
    pub joined: bool,
    /// Its kernel id; 0 before it started.
    pub tid: i32,
    /// Its `pthread_t`; 0 before that is known.
    pub pthread: u64,
    /// Neighbours in the list of threads that have not ended, in order of creation.
    pub next: u32,
    /// See `next`.
    pub previous: u32,
    /// What it sleeps on: changes whenever it gets the turn.
    pub go: AtomicU32,
}

impl Slot {
    /// Has the library yet to make it, as it makes the threads of timers?
    #[must_use]
    pub fn comes_later(&self) -> bool {
        self.state == State::Away && self.tid == 0
    }

    /// How many gates and sync points the thread has passed.
    #[must_use]
    pub fn passed(&self) -> u64 {
        let (gates, points) = self.counters();
        gates.wrapping_add(points)
    }

    /// [`Control::gates`] and [`Control::points`]; zeros when the thread has ended.
    #[must_use]
    pub fn counters(&self) -> (u64, u64) {
        if self.control.is_null() {
            return (0, 0);
        }
        // SAFETY: the control page is there until the thread ends, and that resets the pointer.
        unsafe {
            let control = self.control;
            (
                read_volatile(&raw const (*control).gates),
                read_volatile(&raw const (*control).points),
            )
        }
    }

    /// Lets the thread pass so many gates more before one takes the slow path.
    pub fn allow(&self, gates: u64) {
        if !self.control.is_null() {
            let stop = if gates == 0 { 0 } else { self.counters().0.saturating_add(gates) };
            // SAFETY: as in `counters`. Only the holder of the scheduler's lock writes it.
            unsafe { write_volatile(&raw mut (*self.control).gate_stop, stop) };
        }
    }
}

/// All slots, in order of creation.
pub struct Slots {
    base: *mut Slot,
    room: usize,
    /// How many were given out.
    pub count: u32,
    /// The first thread that has not ended.
    pub first: u32,
    /// The last one.
    pub last: u32,
}

impl Slots {
    /// No slots at all.
    #[must_use]
    pub const fn empty() -> Self {
        Self { base: null_mut(), room: 0, count: 0, first: NONE, last: NONE }
    }

    /// Sets aside address space for `room` slots.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        let base = sys::anonymous(room * size_of::<Slot>()).cast::<Slot>();
        let room = if base.is_null() { 0 } else { room };
        Self { base, room, ..Self::empty() }
    }

    /// A slot by its number, which must have been given out.
    #[must_use]
    pub fn get(&self, index: u32) -> &Slot {
        // SAFETY: numbers only come from `add`, and slots stay.
        unsafe { &*self.base.add(index as usize) }
    }

    /// See [`Slots::get`].
    pub fn get_mut(&mut self, index: u32) -> &mut Slot {
        // SAFETY: as in `get`.
        unsafe { &mut *self.base.add(index as usize) }
    }

    /// What a thread sleeps on; stays valid without the scheduler's lock.
    #[must_use]
    pub fn go(&self, index: u32) -> &'static AtomicU32 {
        // SAFETY: as in `get`; the memory is never given back.
        unsafe { &(*self.base.add(index as usize)).go }
    }

    /// A new slot at the list's end; none when there is no room.
    pub fn add(&mut self, name: &[u8], control: *mut Control) -> Option<u32> {
        if self.count as usize >= self.room {
            return None;
        }
        let index = self.count;
        let mut text = Text::new();
        text.push(name);
        let slot = Slot {
            name: text,
            hash: crate::script::thread_hash(name),
            serial: 0,
            state: State::Ready,
            control,
            at: 0,
            behind: 0,
            wait: Wait::NOTHING,
            wake: Wake::Again,
            ticket: 0,
            grant: 0,
            priority: 0,
            quantum: 0,
            counted: 0,
            tired: false,
            scripted: false,
            cancelled: false,
            parked: false,
            joined: false,
            tid: 0,
            pthread: 0,
            next: NONE,
            previous: self.last,
            go: AtomicU32::new(0),
        };
        // SAFETY: there is room, and nobody has the slot yet.
        unsafe { self.base.add(index as usize).write(slot) };
        self.count += 1;
        match self.last {
            NONE => self.first = index,
            last => self.get_mut(last).next = index,
        }
        self.last = index;
        Some(index)
    }

    /// Takes a thread out of the list; its slot stays.
    pub fn unlink(&mut self, index: u32) {
        let (previous, next) = (self.get(index).previous, self.get(index).next);
        match previous {
            NONE => self.first = next,
            previous => self.get_mut(previous).next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.get_mut(next).previous = previous,
        }
    }

    /// The threads that have not ended, in order of creation.
    #[must_use]
    pub fn living(&self) -> Living<'_> {
        Living { slots: self, at: self.first }
    }
}

/// See [`Slots::living`].
pub struct Living<'a> {
    slots: &'a Slots,
    at: u32,
}

impl Iterator for Living<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let at = self.at;
        if at == NONE {
            return None;
        }
        self.at = self.slots.get(at).next;
        Some(at)
    }
}
