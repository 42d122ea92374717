//! A run that went on when it had failed: its output was wrong.
//!
//! The failing thread's walk ends there. What it gave to others later, as when it arrived at a barrier, is no event, so the
//! waits that were over because of that must not be any either: no order of the rest would lead to them.

use crate::engine::Engine;
use crate::recording::RecordedFailureKind;
use trace_format::layout::SyncOp;

impl Engine<'_> {
    /// A wait of a thread has come to its end by a time stamp. Is that more than the run did until it had failed?
    pub fn ends_behind_failure(&mut self, t: usize, operation: SyncOp, latest: u64) -> bool {
        if !receives(operation) {
            return false;
        }
        let thread = &mut self.threads[t];
        thread.received = thread.received.max(latest);
        let failed = self.limits.failed_by;
        failed.is_some_and(|(serial, by)| thread.log.serial != serial && latest > by)
    }

    /// The failing thread's serial, and by when it had failed, where another thread came back from a wait later.
    pub fn went_on(&self) -> Option<(u64, u64)> {
        let kind = self.limits.failure.as_ref().map(|failure| failure.kind);
        if kind != Some(RecordedFailureKind::Output) || !self.recording.common_clock {
            return None;
        }
        let (failing, _) = self.failure.as_ref()?;
        let by = self.out.threads.get(*failing)?.intervals.last()?.latest;
        let mut others = self.threads.iter().filter(|thread| thread.index != *failing);
        let later = others.any(|thread| thread.received > by);
        later.then(|| (self.threads[*failing].log.serial, by))
    }
}

/// Does a thread come back from it because of what another one did?
fn receives(operation: SyncOp) -> bool {
    matches!(
        operation,
        SyncOp::BarrierWait
            | SyncOp::SemWait
            | SyncOp::SemTimedWait
            | SyncOp::CondWait
            | SyncOp::CondTimedWait
            | SyncOp::FutexWait
            | SyncOp::QueuePop
            | SyncOp::SocketRead
    )
}
