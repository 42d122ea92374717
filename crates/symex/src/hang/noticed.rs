//! A run that hung and did not wait for somebody to lose patience: a watchdog, an alarm or a wait with a time limit
//! noticed, and ended it as a failure of another kind.
//!
//! What such a check sees is the consequence. Two things show that the run would have hung without it, and then it is asked
//! why ([`crate::report::EndedBy`]):
//!
//! * Threads waited for each other's locks in a circle when the run was ended.
//! * All other threads waited without an end in time, and the thread that failed only watched: its wait had a time limit,
//!   which was up when nobody did anything any more; or it slept and looked, and never did anything that another thread
//!   could see; and then it found nothing that another one had written. Or it was in the handler of a signal that interrupted
//!   its own wait. Here it counts only where the order of the run is to blame for one of the waits, a worker that has nothing
//!   to do waits as well; or where nobody is left who could end a wait: the thread that failed stood in such a wait itself when
//!   the signal came, or it never did anything but wait and look, and the initial thread waits, and not for it.

use crate::engine::Engine;
use crate::failure::SIGABRT;
use crate::recording::RecordedFailureKind;
use crate::sync::TIMED_OUT;
use crate::thread::{Frame, PendingSync};
use model::{CellId, EventKind, LockMode};
use std::collections::{BTreeMap, BTreeSet};
use trace_format::PATIENCE;
use trace_format::layout::SyncOp;

const SIGKILL: i32 = 9;

/// What a thread waits for without an end in time.
#[derive(Clone, Copy, Debug)]
enum Request {
    /// A lock, by internal address.
    Lock { address: u64, mode: LockMode },
    /// Another thread's end.
    End(usize),
    /// What another thread does once: a signal, a unit, an arrival.
    News,
}

/// What the threads of a run that failed in some other way than by a hang waited for at its end, and held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    asked: BTreeMap<usize, Request>,
    /// Thread, address, mode.
    held: BTreeSet<(usize, u64, bool)>,
    /// Threads that did not wait.
    free: BTreeSet<usize>,
    /// The thread that failed was in the handler of a signal that interrupted its wait.
    interrupted: bool,
}

/// Where the walk of a thread ends that only watched: what it did then came of the hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastWait {
    /// The thread's serial.
    pub serial: u64,
    /// In what.
    pub of: Watching,
    /// In which of them, from 1.
    pub number: usize,
}

/// How a thread watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watching {
    /// In waits whose time is up.
    Waits,
    /// In sleeps.
    Sleeps,
}

/// How a run that failed had hung before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noticed {
    /// Threads waited for each other in a circle: no order but theirs matters.
    pub circle: bool,
    /// Nobody was left who could have ended one of the waits, whatever led to them.
    pub for_ever: bool,
    /// The serial of the thread that failed.
    pub watcher: u64,
    /// Where the walk of that thread ends.
    pub last_wait: Option<LastWait>,
}

impl Engine<'_> {
    /// Notes what a thread waits for at the end of its walk, and what it holds. To be called before it gives that back.
    pub fn note_request(&mut self, t: usize) {
        if !self.symbolic() || self.limits.failure.is_none() || self.hung() {
            return;
        }
        let held = &self.threads[t].held;
        let held = held.iter().map(|lock| (t, lock.address, lock.mode == LockMode::Exclusive));
        self.requests.held.extend(held);
        if self.threads[t].exited {
            return;
        }
        let request = match (self.threads[t].pending_sync.last().cloned(), self.threads[t].joining)
        {
            (Some(pending), _) => self.request(t, &pending),
            (None, child) => child.map(Request::End),
        };
        match request {
            Some(request) => _ = self.requests.asked.insert(t, request),
            None => _ = self.requests.free.insert(t),
        }
        if self.failing == Some(t) {
            let mut signals = self.threads[t].frames.iter().filter_map(Frame::signal);
            let kind = self.limits.failure.as_ref().map(|failure| failure.kind);
            self.requests.interrupted = kind.is_some_and(is_ended)
                || signals
                    .next_back()
                    .and_then(|it| i32::try_from(it).ok())
                    .is_some_and(|it| PATIENCE.contains(&it));
        }
    }

    fn request(&mut self, t: usize, pending: &PendingSync) -> Option<Request> {
        let mode = match pending.operation {
            SyncOp::MutexLock | SyncOp::RwWriteLock | SyncOp::SpinLock => LockMode::Exclusive,
            SyncOp::RwReadLock => LockMode::Shared,
            SyncOp::CondWait
            | SyncOp::SemWait
            | SyncOp::BarrierWait
            | SyncOp::Once
            | SyncOp::FutexWait
            | SyncOp::QueuePop => return Some(Request::News),
            _ => return None,
        };
        let address = self.resolve(t, pending.address).unwrap_or(pending.address);
        Some(Request::Lock { address, mode })
    }

    /// A wait has ended. Is that where the walk of a thread ends that only watched?
    pub fn ends_in_wait(&mut self, t: usize, begun: &PendingSync, result: u64) -> bool {
        let timed_out = match begun.operation {
            SyncOp::CondTimedWait
            | SyncOp::MutexTimedLock
            | SyncOp::RwTimedReadLock
            | SyncOp::RwTimedWriteLock => result == TIMED_OUT,
            SyncOp::SemTimedWait => result != 0,
            // Other failures of it are none of programs that work.
            SyncOp::FutexWait => result as u32 == u32::MAX,
            _ => false,
        };
        timed_out && self.was_in_vain(t)
    }

    /// The time of a wait was up. Is that where the walk of a thread ends that only watched?
    fn was_in_vain(&mut self, t: usize) -> bool {
        let thread = &mut self.threads[t];
        thread.timed_out.push(thread.last_stamp);
        thread.looked = self.out.event_count(t);
        let (serial, number) = (thread.log.serial, thread.timed_out.len());
        self.limits.last_wait == Some(LastWait { serial, of: Watching::Waits, number })
    }

    /// The same for a thread that waited for the end of another one.
    pub fn ends_in_join(&mut self, t: usize, result: u64) -> bool {
        result == TIMED_OUT && self.was_in_vain(t)
    }

    /// The thread is about to sleep. Is that where the walk of a thread ends that only watched?
    pub fn ends_in_sleep(&mut self, t: usize) -> bool {
        let thread = &mut self.threads[t];
        thread.sleeps += 1;
        thread.looked = self.out.event_count(t);
        let (serial, number) = (thread.log.serial, thread.sleeps);
        self.limits.last_wait == Some(LastWait { serial, of: Watching::Sleeps, number })
    }

    /// Had the run hung before it failed, as far as can be told?
    pub fn hung_before(&mut self) -> Option<Noticed> {
        let kind = self.limits.failure.as_ref().map(|failure| failure.kind);
        let failing =
            self.failing.filter(|_| self.failure.is_some() && kind.is_some_and(is_check))?;
        let watcher = self.threads[failing].log.serial;
        let watches = !self.requests.asked.contains_key(&failing);
        let sleeps = (watches && self.only_looks(failing)).then(|| LastWait {
            serial: watcher,
            of: Watching::Sleeps,
            number: self.threads[failing].sleeps,
        });
        let last_wait = if watches { self.last_wait(failing) } else { None };
        if self.requests.have_circle() {
            let last_wait = last_wait.or(sleeps);
            return Some(Noticed { circle: true, for_ever: true, watcher, last_wait });
        }
        let others = self.requests.free.iter().all(|&thread| thread == failing);
        let waits = self.requests.asked.keys().any(|&thread| thread != failing);
        if !others || !waits {
            return None;
        }
        let last_wait = last_wait.filter(|_| self.all_was_quiet(failing)).or(sleeps);
        let last_wait = last_wait.filter(|_| self.found_nothing(failing));
        let noticed = if watches { last_wait.is_some() } else { self.requests.interrupted };
        let for_ever = if watches { self.only_waits(failing) } else { true };
        noticed.then_some(Noticed { circle: false, for_ever, watcher, last_wait })
    }

    /// The last wait of a thread whose time was up, if the thread has given nobody anything since.
    fn last_wait(&self, t: usize) -> Option<LastWait> {
        let waits = &self.threads[t].timed_out;
        let serial = self.threads[t].log.serial;
        let place = LastWait { serial, of: Watching::Waits, number: waits.len() };
        let stamp = *waits.last()?;
        let log = self.out.threads.get(t)?;
        let mut events = log.events.iter().zip(&log.intervals);
        let gave = events.any(|(event, interval)| gives(&event.kind) && interval.latest > stamp);
        (!gave).then_some(place)
    }

    /// Did nobody else do anything any more when the last wait of this thread was over? Had its time not been up, the thread
    /// would wait to this day then.
    fn all_was_quiet(&self, t: usize) -> bool {
        let Some(stamp) = self.threads[t].timed_out.last() else { return false };
        let others = self.threads.iter().filter(|other| other.index != t && !other.exited);
        self.recording.common_clock && others.into_iter().all(|other| other.acted_last() < *stamp)
    }

    /// Did the thread find nothing that another one had written, when it looked behind its last wait or sleep? Else it may
    /// have failed of what it found.
    fn found_nothing(&self, t: usize) -> bool {
        let logs = self.out.threads.iter().enumerate();
        let others = logs.filter(|(thread, _)| *thread != t).flat_map(|(_, log)| &log.events);
        let written: BTreeSet<CellId> =
            others.flat_map(|event| event.kind.writes().iter().map(|part| part.cell)).collect();
        let behind = self.out.threads.get(t).into_iter().flat_map(|log| &log.events);
        let behind = behind.filter(|event| event.index >= self.threads[t].looked);
        !behind.flat_map(|event| event.kind.reads()).any(|part| written.contains(&part.cell))
    }

    /// Did the thread sleep and look, and nothing else, while the initial thread waited, and for another one?
    fn only_looks(&self, t: usize) -> bool {
        let harmless = |kind: &EventKind| looks(kind) || matches!(kind, EventKind::Failure);
        self.threads[t].sleeps > 0 && self.stands_aside(t, harmless)
    }

    /// Did the thread wait and look, and nothing else, while the initial thread waited, and for another one?
    fn only_waits(&self, t: usize) -> bool {
        let harmless = |kind: &EventKind| {
            let waited = matches!(kind, EventKind::Wake { .. } | EventKind::WaitTimedOut { .. });
            looks(kind) || waited || matches!(kind, EventKind::Failure)
        };
        self.stands_aside(t, harmless)
    }

    /// Did the thread do nothing else than what is harmless, while the initial thread waited, and for another one?
    fn stands_aside(&self, t: usize, harmless: impl Fn(&EventKind) -> bool) -> bool {
        let waits_for_it =
            self.requests.asked.keys().any(|&thread| self.requests.awaited(thread).contains(&t));
        let log = self.out.threads.get(t);
        self.requests.asked.contains_key(&0)
            && !waits_for_it
            && log.is_some_and(|log| log.events.iter().all(|event| harmless(&event.kind)))
    }
}

/// Is it nothing that another thread could see but by a lock that is held?
fn looks(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Start
            | EventKind::Read { .. }
            | EventKind::Fence
            | EventKind::Lock { .. }
            | EventKind::Unlock { .. }
    )
}

/// May the program have failed so because it looked whether it gets on? What uses memory that is not there does not look.
fn is_check(kind: RecordedFailureKind) -> bool {
    use RecordedFailureKind::{Abort, Assertion, Exception, Exit, Panic, Signal, User};
    match kind {
        Assertion | Abort | Exit { .. } | Exception | Panic | User => true,
        // A program may send itself SIGABRT.
        Signal { signo, .. } => signo == SIGABRT || is_ended(kind),
        _ => false,
    }
}

/// Was the process ended by a signal that says nothing of what it did? By recordings of before these were no hangs.
fn is_ended(kind: RecordedFailureKind) -> bool {
    match kind {
        RecordedFailureKind::Signal { signo, .. } => signo == SIGKILL || PATIENCE.contains(&signo),
        _ => false,
    }
}

/// May a thread that waits go on because of such an event?
fn gives(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Signal { .. }
            | EventKind::Broadcast { .. }
            | EventKind::SemaphorePost { .. }
            | EventKind::BarrierArrive { .. }
    )
}

impl Requests {
    /// For whom a thread waits.
    fn awaited(&self, thread: usize) -> Vec<usize> {
        match self.asked.get(&thread) {
            None | Some(Request::News) => Vec::new(),
            Some(Request::End(child)) => vec![*child],
            Some(Request::Lock { address, mode }) => {
                let exclusive = *mode == LockMode::Exclusive;
                let held = self.held.iter();
                held.filter(|(_, held, whole)| held == address && (exclusive || *whole))
                    .map(|(holder, ..)| *holder)
                    .collect()
            }
        }
    }

    fn have_circle(&self) -> bool {
        // A join alone waits for whoever it waits for under every schedule.
        let asks = |thread: &usize| matches!(self.asked.get(thread), Some(Request::Lock { .. }));
        self.asked.keys().filter(|thread| asks(thread)).any(|&first| {
            let (mut open, mut seen) = (self.awaited(first), BTreeSet::new());
            while let Some(thread) = open.pop() {
                if thread == first {
                    return true;
                }
                if seen.insert(thread) {
                    open.extend(self.awaited(thread));
                }
            }
            false
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(asked: &[(usize, Request)], held: &[(usize, u64, bool)]) -> Requests {
        let (asked, held) = (asked.iter().copied().collect(), held.iter().copied().collect());
        Requests { asked, held, ..Requests::default() }
    }

    fn lock(address: u64, mode: LockMode) -> Request {
        Request::Lock { address, mode }
    }

    #[test]
    fn who_waits_for_each_other_is_found() {
        use LockMode::{Exclusive, Shared};
        let (a, b) = (lock(1, Exclusive), lock(2, Exclusive));
        let held = [(1, 1, true), (2, 2, true)];
        assert!(requests(&[(1, b), (2, a)], &held).have_circle());
        assert!(requests(&[(0, Request::End(1)), (1, b), (2, a)], &held).have_circle());
        assert!(!requests(&[(1, b)], &held).have_circle(), "t2 goes on");
        assert!(requests(&[(1, a)], &held).have_circle(), "its own lock");
        assert!(requests(&[(1, Request::End(2)), (2, a)], &held).have_circle());
        assert!(!requests(&[(0, Request::End(1)), (1, Request::End(0))], &held).have_circle());
        let readers = [(1, 1, false), (2, 2, false)];
        let (a, b) = (lock(1, Shared), lock(2, Shared));
        assert!(!requests(&[(1, b), (2, a)], &readers).have_circle(), "readers let each other in");
        assert!(requests(&[(1, b), (2, a)], &held).have_circle());
    }
}
