//! Rust panics. The failure is where the first one begins that the program told of: from there on the thread unwinds, others
//! find a lock poisoned, a channel closed or the thread ended with an error, and panic as well.
//!
//! None of that is walked. A thread's walk ends at its own panic behind the failing one, and at the first event of its log that
//! came behind that by the processor's clock, or where the library finds that somebody panics and it may be that. Threads
//! that were created behind it are not walked at all. What came before it was caught, as a test that should panic is: there
//! the walk goes on.
//!
//! The same goes for a crash that the program has a handler for, which may have other threads end the process.

use crate::engine::Engine;
use crate::recording::RecordedFailureKind;
use crate::thread::{Frame, Stop};
use ir::types::{BlockId, Call, Callee, InstKind};
use model::FailureKind;
use trace_format::layout::RuntimeEvent;

/// Part of the mangled name of what the library calls where some thread panics.
const FINDS_PANIC: &str = "panic_count17is_zero_slow_path";

/// Is it a file of Rust's own libraries, by its path?
fn is_library(file: &str) -> bool {
    let own =
        |root: &str| file.split_once(root).is_some_and(|(_, rest)| rest.contains("/library/"));
    own("/rustc/") || own("/rustlib/src/rust")
}

impl Engine<'_> {
    fn failed_by_panic(&self) -> bool {
        let kind = self.limits.failure.as_ref().map(|failure| failure.kind);
        kind == Some(RecordedFailureKind::Panic)
    }

    /// A panic begins in this thread.
    pub fn begin_panic(&mut self, t: usize) -> Result<(), Stop> {
        if !self.failed_by_panic() || self.is_caught(t)? {
            return Ok(());
        }
        if self.failing == Some(t) && !self.symbolic() {
            self.learned.panicked = Some(self.threads[t].last_stamp);
        }
        if self.failure_kind(t).is_none() {
            return self.stop_here(t);
        }
        let found = self.search(t);
        let condition = found.map(|found| self.take(t, found));
        self.leave_library(t);
        let stop = self.fail(t, FailureKind::Panic, condition);
        self.out.strip_last_stack(t, &is_library);
        Err(stop)
    }

    /// Did the panic that begins in this thread come before the one that the run failed of?
    fn is_caught(&mut self, t: usize) -> Result<bool, Stop> {
        if self.failing == Some(t) {
            // The log of that thread ends where it failed.
            return Ok(self.threads[t].peek()?.is_some());
        }
        let began = self.threads[t].last_stamp;
        Ok(self.recording.common_clock && self.learned.panicked.is_none_or(|failed| began < failed))
    }

    /// The walk of the thread ends here.
    fn stop_here(&mut self, t: usize) -> Result<(), Stop> {
        self.threads[t].left_out = true;
        Err(Stop::EndOfLog)
    }

    /// When another thread began the panic that the run failed of, where that is known.
    fn panicked_elsewhere(&self, t: usize) -> Option<u64> {
        self.learned.panicked.filter(|_| self.failing != Some(t))
    }

    /// An event of the log: did it come behind the panic that the run failed of?
    pub fn check_after_panic(
        &mut self,
        t: usize,
        event: RuntimeEvent,
        words: &[u64],
    ) -> Result<(), Stop> {
        let Some(panicked) = self.panicked_elsewhere(t) else { return Ok(()) };
        let time = match (event, words) {
            (RuntimeEvent::SyncBegin | RuntimeEvent::SyncEnd, [.., time])
            | (RuntimeEvent::Locked | RuntimeEvent::Unlocked, [.., time])
            | (
                RuntimeEvent::Reading | RuntimeEvent::CallReading | RuntimeEvent::ThreadExit,
                [time],
            )
            | (RuntimeEvent::Allocate | RuntimeEvent::Free, [.., time]) => *time,
            _ => return Ok(()),
        };
        if time > panicked { self.stop_here(t) } else { Ok(()) }
    }

    /// The clock as the thread read it behind an access: is that behind the panic that the run failed of? Its walk ends there:
    /// what an atomic variable holds may come from what is not walked.
    pub fn check_reading_after_panic(&mut self, t: usize, time: u64) {
        let is_behind = self.panicked_elsewhere(t).is_some_and(|panicked| time > panicked);
        self.threads[t].left_out |= is_behind;
    }

    /// The thread has read a value that the walk does not have. Where the clock allows that to be behind the panic that the run
    /// failed of, it comes of what is not walked, and the walk ends there.
    pub fn ends_behind_panic(&mut self, t: usize) -> bool {
        let may_be = self.may_be_behind_panic(t);
        self.threads[t].left_out |= may_be;
        may_be
    }

    pub(crate) fn may_be_behind_panic(&self, t: usize) -> bool {
        self.panicked_elsewhere(t).is_some_and(|panicked| self.latest(t) > panicked)
    }

    /// The thread goes on to this block. Does the library find there that somebody panics, where the clock allows it to be the
    /// panic that the run failed of? Mutexes look for it without a reading of the clock.
    pub fn check_panicking(&mut self, t: usize, target: BlockId) -> Result<(), Stop> {
        if self.may_be_behind_panic(t) && self.tells_of_panic(t, target) {
            self.stop_here(t)
        } else {
            Ok(())
        }
    }

    fn tells_of_panic(&self, t: usize, target: BlockId) -> bool {
        let Some((info, _)) = self.current(t) else { return false };
        let function = info.function;
        let Some(block) = function.blocks.get(target.index()) else { return false };
        let mut instructions =
            block.instructions().filter_map(|id| function.instructions.get(id.index()));
        instructions.any(|inst| match &inst.kind {
            InstKind::Call(Call { callee: Callee::Direct(callee), .. })
            | InstKind::Invoke { call: Call { callee: Callee::Direct(callee), .. }, .. } => {
                let callee = self.module(t).functions.get(callee.index());
                callee.is_some_and(|callee| callee.name.contains(FINDS_PANIC))
            }
            _ => false,
        })
    }

    /// Nobody created the thread so far: is that because it was created behind the failure, where its creator's walk ended (a
    /// panic, or a check of a test framework, which goes on)? It is not walked then, as what it was given was never made.
    pub fn check_created(&mut self, t: usize) {
        let parent = self.serials.get(&self.threads[t].log.parent).copied();
        self.threads[t].left_out |= parent.is_some_and(|parent| {
            let thread = &self.threads[parent];
            thread.left_out || matches!(thread.stop, Some(Stop::Failed))
        });
    }

    /// The thread is about to get the end of another one: has that panicked?
    pub fn check_joined(&mut self, t: usize) -> Result<(), Stop> {
        let joined = self.threads[t].joining.filter(|_| self.failed_by_panic());
        let panicked = joined
            .is_some_and(|joined| Some(joined) == self.failing || self.threads[joined].left_out);
        if panicked { self.stop_here(t) } else { Ok(()) }
    }

    /// Takes the library's own frames away, so that the failure is in the program.
    fn leave_library(&mut self, t: usize) {
        let own = |frame: &Frame<'_>| match frame {
            Frame::Code(frame) => {
                let scope = frame.info.function.scope;
                let scope = scope.and_then(|scope| frame.module.debug.scopes.get(scope.index()));
                scope.is_some_and(|scope| is_library(&scope.file))
            }
            Frame::External(_) => true,
        };
        let frames = &self.threads[t].frames;
        let Some(last) = frames.iter().rposition(|frame| !own(frame)) else { return };
        self.threads[t].frames.truncate(last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::is_library;

    #[test]
    fn library_files_are_told_by_their_paths() {
        assert!(is_library("/rustc/59807616e1fa/library/core/src/panicking.rs"));
        assert!(!is_library("/home/me/rustc/src/main.rs"));
        assert!(!is_library("/work/library/src/lib.rs"));
    }
}
