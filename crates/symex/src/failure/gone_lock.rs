//! A lock that was a local variable of another thread, and that had ended when it was asked for.
//!
//! A thread that outlives the function that has started it asks for a mutex of that function. What lies there by then is no
//! mutex: the C library says that it cannot be had, at which C++'s `lock` throws, or the thread crashes in the call. φbug is
//! that the variable's end comes before it is asked for, as for reads of what nobody wrote ([`super::freed`]).

use super::lifetime::At;
use crate::engine::Engine;
use crate::sizes::MUTEX_SIZE;
use crate::thread::PendingSync;
use crate::value::Value;
use model::{Awaited, EventKind, LockMode, ObjectKind};
use trace_format::layout::SyncOp;

/// Who throws since a lock was refused takes no more steps on its path than this.
const NEAR: usize = 16;

/// Locks that the failing thread asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoneLock {
    /// The variable, of the heap, that the last call is about, where that had ended.
    object: Option<usize>,
    /// The last call on such a variable that came back without the lock, and how far the thread had come on its path. What
    /// throws has locks of its own.
    refused: Option<(usize, PendingSync, usize)>,
    /// That it was asked for, if the thread failed of it.
    asked: Option<(usize, At)>,
}

impl Engine<'_> {
    /// The failing thread begins a call of synchronisation.
    pub(crate) fn note_asked_lock(&mut self, t: usize, address: u64) {
        if self.failing != Some(t) || !self.symbolic() {
            return;
        }
        if self.lifetime.freed.suspects.is_empty() {
            let call = self.threads[t].external_call();
            let pointer = call.and_then(|call| call.arguments.first()).and_then(Value::scalar);
            let internal = self.resolve(t, address);
            self.note_use_of_local(t, pointer, (address, internal));
            return;
        }
        let meant = self.access_key(t).and_then(|key| self.lifetime.freed.meant.get(&key).copied());
        let internal = self.resolve(t, address);
        let object = meant.or_else(|| self.learned.heap.at_internal(internal?));
        let latest = self.happened(t).latest;
        let had_ended = |object: &usize| {
            let ended = self.learned.heap.objects.get(*object).and_then(|object| object.freed);
            ended.is_some_and(|(thread, time)| thread != t && time < latest)
        };
        let object = object.filter(|object| self.lifetime.freed.suspects.contains(object));
        self.lifetime.gone_lock.object = object.filter(had_ended);
    }

    /// A call of synchronisation came back: without a lock that had ended?
    pub(crate) fn note_refusal(&mut self, t: usize, begun: &PendingSync, result: u64) -> bool {
        if self.failing != Some(t) || result == 0 || !asks(begun.operation) {
            return false;
        }
        let Some(object) = self.lifetime.gone_lock.object else { return false };
        let at = self.threads[t].path_position();
        self.lifetime.gone_lock.refused = Some((object, begun.clone(), at));
        true
    }

    /// The failing thread fails: of such a lock?
    pub(super) fn note_gone_lock(&mut self, t: usize) {
        let thread = &self.threads[t];
        let is_lost = self.learned.lost == Some(t);
        let pending = thread.pending_sync.last();
        let pending = pending.filter(|begun| is_lost || asks(begun.operation));
        let pending = self.lifetime.gone_lock.object.zip(pending.cloned());
        let position = thread.path_position();
        let refused = self.lifetime.gone_lock.refused.take();
        let refused = refused.filter(|(_, _, at)| position.saturating_sub(*at) <= NEAR);
        let refused = refused.map(|(object, begun, _)| (object, begun));
        let Some((object, begun)) = pending.or(refused) else { return };
        if !asks(begun.operation) {
            let kind = EventKind::Block { on: Awaited::Other };
            let event = self.event_at(t, kind, begun.stack, begun.name);
            self.lifetime.gone_lock.asked = Some((object, (t, event)));
            return;
        }
        let address = self.learned.heap.objects[object].address;
        let lock = self.sized_object(t, address, ObjectKind::Lock, MUTEX_SIZE);
        let mode = match begun.operation {
            SyncOp::RwReadLock => LockMode::Shared,
            _ => LockMode::Exclusive,
        };
        let on = Awaited::Lock { object: lock, mode };
        let kind = EventKind::Block { on };
        let event = self.event_at(t, kind, begun.stack, begun.name);
        self.lifetime.gone_lock.asked = Some((object, (t, event)));
    }

    /// Makes it the failure that the lock had ended. Had it?
    pub(super) fn blame_gone_lock(&mut self) -> bool {
        let Some((object, event)) = self.lifetime.gone_lock.asked else { return false };
        let known = self.lifetime.frees.contains_key(&object);
        if known {
            self.lifetime.blame(object, event);
            self.used_after_free = None;
        }
        known
    }
}

/// Is it a call that comes back with a lock, or with an error?
fn asks(operation: SyncOp) -> bool {
    matches!(operation, SyncOp::MutexLock | SyncOp::RwReadLock | SyncOp::RwWriteLock)
}
