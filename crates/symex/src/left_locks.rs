//! Locks that threads had when they came to their own end. Nobody gets such a lock any more: who tries to fails, and no critical
//! section of another thread comes behind.
//!
//! What a thread has at the end of its *log* is given back by a synthetic event, since the thread would have gone on. That is
//! also done where the walk cannot be sure: of a robust mutex, which the next thread gets, of a lock that another
//! thread gave back, or got later all the same, as one that was initialised again, and of a run that hangs, whose explanation begins with what
//! is still held.

use crate::engine::Engine;
use crate::recording::RecordedFailureKind;
use rustc_hash::{FxHashMap, FxHashSet};

/// What the survey has seen of locks.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftLocks {
    /// By lock and thread, a time stamp before the last acquisition.
    taken: FxHashMap<(u64, usize), u64>,
    /// Locks that a thread released which did not have them.
    given_back: FxHashSet<u64>,
}

impl Engine<'_> {
    /// Notes an acquisition of the lock at an internal address.
    pub(crate) fn note_taken(&mut self, t: usize, lock: u64) {
        if !self.symbolic() {
            let earliest = self.happened(t).earliest;
            self.learned.left_locks.taken.insert((lock, t), earliest);
        }
    }

    /// Notes a release, by a thread that does not have it, of the lock at an internal address.
    pub(crate) fn note_given_back(&mut self, lock: u64) {
        self.learned.left_locks.given_back.insert(lock);
    }

    /// Forgets that the thread, which has come to its end, has locks that nobody will get any more.
    pub(crate) fn leave_locks(&mut self, t: usize) {
        let asked = self.limits.failure.as_ref().map(|failure| failure.kind);
        let hangs = asked.is_none_or(|kind| kind == RecordedFailureKind::TimedOut);
        let robust = self.functions.contains_key("pthread_mutexattr_setrobust");
        if hangs || robust || !self.recording.common_clock || self.recording.forked {
            return;
        }
        let ended = self.threads[t].last_stamp;
        let LeftLocks { taken, given_back } = &self.learned.left_locks;
        let had_later = |lock: u64| {
            let by_another = |(&(other, by), &earliest): (&(u64, usize), &u64)| {
                other == lock && by != t && earliest > ended
            };
            given_back.contains(&lock) || taken.iter().any(by_another)
        };
        self.threads[t].held.retain(|held| had_later(held.address));
    }
}
