//! φbug of runs that did not come to an end: which threads wait for what, and which orders led
//! there.
//!
//! * **Deadlock**: threads in a circle, each holding a lock that the one before waits for. All of
//!   them acquired what they hold before any of them gave something back. What a thread holds at
//!   the end of its log is released by a synthetic event ([S] 4.2, "Locks Held at Failure
//!   Points"), so schedules in which one critical section comes after the other are there to be
//!   found.
//! * **Lost wake-up**: a thread waits on a condition variable, and every signal came before it
//!   began to.
//! * For any other wait (a semaphore, a join, a barrier) the recorded paths alone do not say which
//!   order was wrong: the failure holds under every schedule along them.

use crate::engine::Engine;
use crate::recording::RecordedFailureKind;
use crate::thread::PendingSync;
use model::{EventId, EventKind, EventTrace, Failure, FailureCondition, FailureKind, ObjectId};
use trace_format::layout::SyncOp;

/// What a thread waited for when the run was ended.
#[derive(Clone, Debug)]
pub(crate) enum Waits {
    /// A lock, by internal address.
    Lock(u64),
    /// A condition variable, since this event of the thread.
    Condition { condition: ObjectId, began: u32 },
    /// Another thread's end.
    Join(usize),
    /// Something else.
    Other,
}

/// A lock that a thread held when the run was ended.
#[derive(Clone, Copy, Debug)]
struct Held {
    address: u64,
    /// The acquisition, as an index in the thread.
    acquired: u32,
    /// The synthetic release.
    released: u32,
}

/// A thread at the end of a run that did not come to one.
#[derive(Clone, Debug)]
pub(crate) struct Stuck {
    thread: usize,
    waits: Waits,
    held: Vec<Held>,
    /// For people.
    words: String,
}

/// An event as thread and index in it.
type Place = (usize, u32);

/// What makes the run a failure: every pair is in this order.
#[derive(Clone, Debug, Default)]
pub(crate) struct HangOrders(Vec<(Place, Place)>);

impl Engine<'_> {
    fn hangs(&self) -> bool {
        let kind = self.recording.failure.as_ref().map(|failure| &failure.kind);
        self.symbolic() && kind == Some(&RecordedFailureKind::TimedOut)
    }

    /// Notes what a thread waits for at the end of its walk, and releases what it holds. False
    /// when the run did not hang, or the thread does not wait.
    pub fn note_wait(&mut self, t: usize) -> bool {
        if !self.threads[t].exited {
            self.complete_certain(t);
        }
        let pending = self.threads[t].pending_sync.last().cloned();
        // A thread that waits on a condition has released the mutex, which no entry tells but the
        // one of the wait's end.
        let began = match &pending {
            Some(pending) if !self.threads[t].exited => self.begin_wait(t, pending),
            _ => None,
        };
        if !self.hangs() || self.threads[t].exited {
            return false;
        }
        let waits = match (&pending, self.threads[t].joining) {
            (Some(pending), _) => self.waits(t, pending, began),
            (None, Some(child)) => Waits::Join(child),
            (None, None) => return false,
        };
        let words = self.words(t, &waits, pending.as_ref());
        let locks = self.threads[t].held.clone();
        let first = self.out.event_count(t);
        self.release_all(t);
        // They are released last acquired first.
        let held = locks.iter().rev().zip(first..).map(|(lock, released)| Held {
            address: lock.address,
            acquired: lock.acquired,
            released,
        });
        let held = held.collect();
        self.stuck.push(Stuck { thread: t, waits, held, words });
        true
    }

    fn waits(&mut self, t: usize, pending: &PendingSync, began: Option<(ObjectId, u32)>) -> Waits {
        match pending.operation {
            SyncOp::MutexLock
            | SyncOp::MutexTimedLock
            | SyncOp::RwReadLock
            | SyncOp::RwTimedReadLock
            | SyncOp::RwWriteLock
            | SyncOp::RwTimedWriteLock
            | SyncOp::SpinLock => {
                Waits::Lock(self.resolve(t, pending.address).unwrap_or(pending.address))
            }
            SyncOp::CondWait | SyncOp::CondTimedWait => match began {
                Some((condition, began)) => Waits::Condition { condition, began },
                None => Waits::Other,
            },
            _ => Waits::Other,
        }
    }

    fn words(&self, t: usize, waits: &Waits, pending: Option<&PendingSync>) -> String {
        let name = &self.threads[t].log.name;
        let object = pending.map_or("?", |pending| pending.blocked.object.as_str());
        match waits {
            Waits::Lock(_) => format!("{name} waits for the lock {object}"),
            Waits::Condition { .. } => format!("{name} waits on the condition {object}"),
            Waits::Join(child) => {
                let child = self.threads.get(*child).map_or("?", |child| child.log.name.as_str());
                format!("{name} waits for the end of {child}")
            }
            Waits::Other => {
                let operation = pending.map_or("?", |pending| pending.blocked.operation.as_str());
                format!("{name} waits in {operation} of {object}")
            }
        }
    }

    /// After all walks: the failure of a run that did not come to an end because threads wait.
    pub fn explain_hang(&mut self) -> HangOrders {
        if !self.hangs() || self.failure.is_some() || self.stuck.is_empty() {
            return HangOrders::default();
        }
        let circle = circle(&self.stuck);
        let (kind, thread, orders) = match &circle {
            Some(circle) => (FailureKind::Deadlock, circle[0], circle_orders(&self.stuck, circle)),
            None => {
                let stuck = nearest_to_the_cause(&self.stuck);
                (FailureKind::Hang, stuck, self.signals_before(stuck))
            }
        };
        let t = self.stuck[thread].thread;
        let event = self.event(t, EventKind::Failure, None);
        let words: Vec<&str> = match &circle {
            Some(circle) => circle.iter().map(|&at| self.stuck[at].words.as_str()).collect(),
            None => self.stuck.iter().map(|stuck| stuck.words.as_str()).collect(),
        };
        let message = words.join(", ");
        let always = self.pool.boolean(true);
        let condition = FailureCondition::Value(always);
        self.failure = Some((t, Failure { kind, event: EventId(event), condition, message }));
        HangOrders(orders)
    }

    /// Every signal that could have woken the thread came before its wait began.
    fn signals_before(&self, stuck: usize) -> Vec<(Place, Place)> {
        let Stuck { thread, waits: Waits::Condition { condition, began }, .. } = self.stuck[stuck]
        else {
            return Vec::new();
        };
        let mut orders = Vec::new();
        let mut taken = 0usize;
        for (other, log) in self.out.threads.iter().enumerate().filter(|(t, _)| *t != thread) {
            for event in &log.events {
                match event.kind {
                    EventKind::Wake { condition: c, .. } if c == condition => taken += 1,
                    EventKind::Signal { condition: c } | EventKind::Broadcast { condition: c }
                        if c == condition =>
                    {
                        orders.push(((other, event.index), (thread, began)));
                    }
                    _ => {}
                }
            }
        }
        // A signal that woke another thread may have come later.
        if taken > 0 { Vec::new() } else { orders }
    }
}

impl HangOrders {
    /// Makes the orders the failure condition of the finished trace.
    pub fn apply(&self, trace: &mut EventTrace) {
        let id = |(thread, index): Place| {
            trace.threads.get(thread).and_then(|thread| thread.events.get(index as usize)).copied()
        };
        let orders = self.0.iter().filter_map(|&(before, after)| id(before).zip(id(after)));
        let orders: Vec<FailureCondition> =
            orders.map(|(before, after)| FailureCondition::Before(before, after)).collect();
        if let Some(failure) = trace.failure.as_mut().filter(|_| !orders.is_empty()) {
            failure.condition = FailureCondition::All(orders);
        }
    }
}

/// A thread that holds the lock which this one waits for.
fn holder(stuck: &[Stuck], at: usize) -> Option<usize> {
    let Waits::Lock(address) = stuck[at].waits else { return None };
    stuck.iter().position(|other| other.held.iter().any(|held| held.address == address))
}

/// Threads that wait for each other's locks: each waits for what the next one holds. The circle of
/// the first thread in it, which is its first element.
fn circle(stuck: &[Stuck]) -> Option<Vec<usize>> {
    (0..stuck.len()).find_map(|first| {
        let mut circle = vec![first];
        while let Some(next) = circle.last().and_then(|&last| holder(stuck, last)) {
            if next == first {
                return Some(circle);
            }
            if circle.contains(&next) {
                return None;
            }
            circle.push(next);
        }
        None
    })
}

/// Every thread of the circle acquired what its predecessor waits for before any other thread of
/// the circle released that.
fn circle_orders(stuck: &[Stuck], circle: &[usize]) -> Vec<(Place, Place)> {
    let wanted: Vec<(usize, Held)> = circle
        .iter()
        .filter_map(|&at| {
            let Waits::Lock(address) = stuck[at].waits else { return None };
            let holder = &stuck[holder(stuck, at)?];
            let held = holder.held.iter().find(|held| held.address == address)?;
            Some((holder.thread, *held))
        })
        .collect();
    let mut orders = Vec::new();
    for &(a, acquired) in &wanted {
        for &(b, released) in wanted.iter().filter(|(b, _)| *b != a) {
            orders.push(((a, acquired.acquired), (b, released.released)));
        }
    }
    orders
}

/// Threads that wait for a signal come before those that wait for a lock, which somebody holds, and
/// those before the ones that wait for the end of a thread.
fn nearest_to_the_cause(stuck: &[Stuck]) -> usize {
    let rank = |stuck: &Stuck| match stuck.waits {
        Waits::Condition { .. } => 0,
        Waits::Other => 1,
        Waits::Lock(_) => 2,
        Waits::Join(_) => 3,
    };
    (0..stuck.len()).min_by_key(|&at| (rank(&stuck[at]), at)).unwrap_or(0)
}
