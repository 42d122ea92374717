//! Threads that are cancelled while they wait: nothing in the log says so, but what comes behind the wait does.

use crate::engine::Engine;
use crate::externals::plain_name;
use crate::report::GapKind;
use crate::sync::WaitEnd;
use crate::thread::{Entry, ExternalCall, Frame, PendingSync};
use trace_format::layout::{RuntimeEvent, SyncOp};

impl Engine<'_> {
    /// A thread was cancelled in a call that waits: the call has no end. The mutex of a condition
    /// wait is taken again before the handlers run.
    pub fn cancelled(&mut self, t: usize) -> bool {
        let joins = self.threads[t].external_call().is_some_and(|call| call.name.contains("join"));
        if joins && self.threads[t].joining.take().is_some() {
            self.was_cancelled(t);
            return true;
        }
        // A signal handler that interrupted the call has more frames.
        let depth = self.threads[t].frames.len();
        if self.threads[t].cancelled_in == Some(depth) {
            return true;
        }
        let waits =
            |begun: &&PendingSync| is_cancellation_point(begun.operation) && begun.depth == depth;
        let Some(begun) = self.threads[t].pending_sync.last().filter(waits).cloned() else {
            return false;
        };
        self.threads[t].pending_sync.pop();
        match begun.operation {
            SyncOp::CondWait | SyncOp::CondTimedWait => {
                self.ended_wait(t, &begun, begun.second, WaitEnd::Cancelled);
            }
            _ => self.was_cancelled(t),
        }
        true
    }

    /// Does a call do what it cannot do, so that an earlier return, which looked like one of a call in which the thread was cancelled,
    /// was none? What handlers do behind that may look like what the program does behind the call, up to here.
    pub fn denies_return(&self, t: usize, next: Option<Entry>) -> bool {
        let thread = &self.threads[t];
        let takes = |frame: &Frame<'_>| match frame {
            Frame::External(frame) => frame
                .call
                .as_ref()
                .is_some_and(|call| !call.walked && plain_name(call.name) == "pthread_mutex_lock"),
            _ => false,
        };
        matches!(next, Some(Entry::Runtime(RuntimeEvent::Unlocked)))
            && thread.doubtful_return.is_some()
            && !self.learned.jumps.contains_key(&t)
            && thread.frames.last().is_some_and(takes)
    }

    /// Notes what the walk could not make sense of behind a return that may have been none.
    pub fn doubt_return(&mut self, t: usize, what: &GapKind) {
        let contradicts = matches!(
            what,
            GapKind::WrongBranch | GapKind::WrongValue(_) | GapKind::Synchronisation
        );
        let thread = &mut self.threads[t];
        if contradicts && thread.contradicted_return.is_none() {
            thread.contradicted_return = thread.doubtful_return;
        }
    }

    /// Where a walk stopped before its log's end, or contradicted it, the thread may have been cancelled in its last call
    /// before that. Says whether there is something to try.
    pub fn learn_jumps(&mut self) -> bool {
        let mut any = false;
        for t in 0..self.threads.len() {
            let thread = &self.threads[t];
            let contradicted = thread.contradicted_return;
            if thread.report.reached_end && contradicted.is_none() {
                continue;
            }
            match (self.learned.jumps.get(&t), contradicted.or(thread.doubtful_return)) {
                (None, Some(at)) => {
                    self.learned.jumps.insert(t, Some(at));
                    any = true;
                }
                (Some(Some(_)), _) => {
                    self.learned.jumps.insert(t, None);
                    any = true;
                }
                _ => {}
            }
        }
        any
    }

    /// Something happens in a thread that was waiting, and no signal handler does it: a thread that was cancelled takes locks of
    /// the compiler's library then, and runs the destructors of its own variables.
    pub fn cancelled_inside(&mut self, t: usize) {
        let waits = |call: &mut ExternalCall<'_>| {
            let name = plain_name(call.name);
            !call.walked && ["pthread_cond_", "sem_"].iter().any(|it| name.starts_with(it))
        };
        if self.threads[t].external_call().is_some_and(waits) && self.cancelled(t) {
            self.threads[t].cancelled_in = Some(self.threads[t].frames.len());
        }
    }
}

/// The calls that are cancellation points.
fn is_cancellation_point(operation: SyncOp) -> bool {
    matches!(
        operation,
        SyncOp::CondWait | SyncOp::CondTimedWait | SyncOp::SemWait | SyncOp::SemTimedWait
    )
}
