//! Once routines: a word in memory says whether one has been run, or is being run.

use crate::access::{Grain, Place};
use crate::engine::Engine;
use crate::memory::MemoryByte;
use crate::sizes::WORD_SIZE;
use crate::thread::PendingSync;
use trace_format::layout::{ONCE_ALL_ONES, ONCE_WITH_RESULT, SyncOp};

/// What stands for "done" in the word of a once object: glibc's own value.
const DONE: u32 = 2;
/// What libc++ and GLib have there while the routine runs.
const ONCE_RUNS: u64 = 1;
/// Where the result of a once routine stands behind the word.
const RESULT_AT: u64 = 8;

/// How many bytes the flag of such a call has, and what is there when the routine has been run.
fn flag(argument: u64) -> (u64, u64) {
    match argument {
        ONCE_ALL_ONES => (u64::from(u64::BITS / 8), u64::MAX),
        _ => (WORD_SIZE, u64::from(DONE)),
    }
}

/// Is it a library's own flag, which says that the routine runs while it does?
fn is_own(argument: u64) -> bool {
    matches!(argument, ONCE_ALL_ONES | ONCE_WITH_RESULT)
}

impl Engine<'_> {
    /// Whether a once routine has been run is a word in memory, which the thread that ran it writes
    /// and every other one reads. Its result may be there, too.
    pub(crate) fn note_once(&mut self, t: usize, begun: &PendingSync, ran: bool, gave: u64) {
        let Some(internal) = self.resolve(t, begun.address) else { return };
        let (size, done) = flag(begun.argument);
        let place = Place::new(internal, size, None);
        if ran {
            self.note_ran(t, begun);
            if begun.argument == ONCE_WITH_RESULT {
                let gave = gave.to_le_bytes().map(MemoryByte::Const);
                let place = Place::new(internal + RESULT_AT, gave.len() as u64, None);
                self.write(t, place, &gave, Grain::Access);
            }
            let done = done.to_le_bytes().map(MemoryByte::Const);
            self.write(t, place, &done[..size as usize], Grain::Access);
        } else {
            let bytes = self.read(t, place, Grain::Access);
            self.assume_bytes(t, &bytes, u128::from(done), true);
        }
    }

    fn note_ran(&mut self, t: usize, begun: &PendingSync) {
        self.learned.ran_once.insert((t, begun.address, begun.stamp));
        let call = (t, begun.stamp);
        if *self.learned.ran_at.entry(begun.address).or_insert(call) != call {
            self.learned.ran_again.insert(begun.address);
        }
    }

    /// Calls that an exception left come to no other end. A once routine that threw has not been run, as far as its word
    /// says, and the next thread runs it again.
    pub(crate) fn left_by_exception(&mut self, t: usize) {
        let depth = self.threads[t].frames.len();
        while let Some(begun) = self.threads[t].pending_sync.pop_if(|begun| begun.depth > depth) {
            if begun.operation != SyncOp::Once {
                continue;
            }
            self.note_ran(t, &begun);
            if is_own(begun.argument)
                && let Some(internal) = self.resolve(t, begun.address)
            {
                let (size, _) = flag(begun.argument);
                let nothing = vec![MemoryByte::Const(0); size as usize];
                self.write(t, Place::new(internal, size, None), &nothing, Grain::Access);
            }
            self.release(t, begun.address, WORD_SIZE);
        }
    }

    /// Who runs the routine found that it has not been run: the word may say so again where the program resets it.
    /// Whether it is run is known at the call's end, and so from an earlier walk. It is found so both when the call begins,
    /// where a thread can be stopped, and when nobody else runs the routine, where none can.
    pub(crate) fn expect_not_run(&mut self, t: usize, (address, stamp): (u64, u64), argument: u64) {
        let ran = self.learned.ran_once.contains(&(t, address, stamp));
        // A word with which one call ran the routine is as it was before that.
        if !ran || !self.learned.ran_again.contains(&address) {
            return;
        }
        let Some(internal) = self.resolve(t, address) else { return };
        let (size, done) = flag(argument);
        let found = self.read(t, Place::new(internal, size, None), Grain::Access);
        // What is known without another thread says nothing of the order of threads.
        if !found.iter().all(|byte| matches!(byte, MemoryByte::Const(_))) {
            self.assume_bytes(t, &found, u128::from(done), false);
        }
    }

    /// While the routine of a library's own flag runs, the flag says so, and programs look at these themselves.
    pub(crate) fn begin_once(&mut self, t: usize, (address, stamp): (u64, u64), argument: u64) {
        let Some(internal) = self.resolve(t, address) else { return };
        let (size, _) = flag(argument);
        if is_own(argument) && self.learned.ran_once.contains(&(t, address, stamp)) {
            let runs = ONCE_RUNS.to_le_bytes().map(MemoryByte::Const);
            self.write(t, Place::new(internal, size, None), &runs[..size as usize], Grain::Access);
        }
    }
}
