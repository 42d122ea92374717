//! Tries to take a lock that did not get it.

use crate::engine::Engine;
use crate::memory::{self, Bytes, MemoryByte};
use crate::sizes::WORD_SIZE;
use crate::thread::ExternalCall;
use model::{EventKind, LockMode, ObjectKind};

/// Where glibc's reader-writer locks have their kind, and the one whose readers let waiting writers go first.
const KIND_AT: u64 = 48;
const PREFER_WRITER_NONRECURSIVE: u128 = 2;

impl Engine<'_> {
    /// How a lock is asked for by a try to read: `Shared` where other readers certainly let it in, as they do unless the lock's kind
    /// has writers that wait go first. Locks of other libraries than the C library do that.
    pub(crate) fn what_turns_readers_away(&mut self, t: usize, address: u64) -> LockMode {
        let of_libc = |call: &mut ExternalCall<'_>| call.name == "pthread_rwlock_tryrdlock";
        let chosen = self.functions.contains_key("pthread_rwlockattr_setkind_np");
        if chosen || !self.threads[t].external_call().is_some_and(of_libc) {
            return LockMode::Exclusive;
        }
        let Some(internal) = self.resolve(t, address) else { return LockMode::Exclusive };
        let kind = (0..WORD_SIZE).map(|at| self.memory.peek(internal + KIND_AT + at));
        let kind: Bytes = kind.collect();
        let known = kind.iter().all(|byte| matches!(byte, MemoryByte::Const(_)));
        let kind = memory::compose(&mut self.pool, &kind).as_const();
        match known && kind != Some(PREFER_WRITER_NONRECURSIVE) {
            true => LockMode::Shared,
            false => LockMode::Exclusive,
        }
    }

    /// A try to take a lock that somebody has.
    pub(crate) fn try_failed(&mut self, t: usize, address: u64, mode: LockMode, size: u64) {
        let internal = self.resolve(t, address).unwrap_or(address);
        // A trylock of a lock that the thread holds itself fails under every schedule.
        if self.threads[t].held.iter().any(|held| held.address == internal) {
            return;
        }
        let size = self.lock_size(t, size);
        let object = self.sized_object(t, address, ObjectKind::Lock, size);
        let name = self.event_object_name(t, address, object, size);
        self.event(t, EventKind::TryLockFailed { object, mode }, name);
    }
}
