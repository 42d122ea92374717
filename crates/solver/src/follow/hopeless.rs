//! Threads that can never go on: their next event reads what is not there, and nobody will write it.
//!
//! Without that a search goes on with the other threads for as long as they can, and then has to take all of it back.

use super::program::{Op, Read, Value};
use super::state::State;

/// A thread with more accesses to a cell ahead of it may write anything there: they are not looked at.
const AHEAD: usize = 1 << 17;

impl State<'_, '_> {
    /// A thread that can never go on from the state as it is.
    pub(super) fn hopeless(&self) -> Option<usize> {
        self.hopeless.map(|(thread, _)| thread as usize)
    }

    /// A thread that can never go on now that this event of a thread has happened: that thread itself, which has come to
    /// its next event, or one whose next event reads what this one has changed.
    pub(super) fn left_behind(&self, thread: usize, op: &Op) -> Option<u32> {
        let is_left = |other: usize| self.next(other).is_some_and(|op| self.is_left(other, op));
        if is_left(thread) {
            return Some(thread as u32);
        }
        if self.program.writes(op).is_empty() {
            return None;
        }
        let step = self.steps.len() as u32 - 1;
        let mut others = (0..self.done.len()).filter(|&other| other != thread);
        others.find(|&other| self.lost(other, step) && is_left(other)).map(|other| other as u32)
    }

    /// Could a thread have gone on with what its next event reads before this step changed that?
    fn lost(&self, thread: usize, step: u32) -> bool {
        let Some(op) = self.next(thread) else { return false };
        let [read] = self.program.reads(op) else { return false };
        let before = self.held_before(step, read.cell);
        before.is_some_and(|(value, _)| self.suits(op, read, value))
    }

    /// Does an event read one cell, in which it neither finds nor ever will find what lets its thread go on?
    pub(super) fn is_left(&self, thread: usize, op: &Op) -> bool {
        let [read] = self.program.reads(op) else { return false };
        if self.spared.contains(&op.event) {
            return false;
        }
        let suits = |value: u128| self.suits(op, read, value);
        !suits(self.cells[read.cell as usize]) && !self.may_come(thread, read.cell, suits)
    }

    /// Can the thread go on when its next event, which reads one cell, finds this there?
    fn suits(&self, op: &Op, read: &Read, value: u128) -> bool {
        match read.wanted.filter(|_| self.program.is_strict) {
            Some(wanted) => value == wanted,
            None => self.program.conditions(op).is_empty() || self.holds_with(op, |_| value),
        }
    }

    /// May another thread than this one write a value to a cell that suits?
    fn may_come(&self, thread: usize, cell: u32, suits: impl Fn(u128) -> bool) -> bool {
        (0..self.done.len()).filter(|&other| other != thread).any(|other| {
            let ahead = self.program.accesses_from(other, cell, self.done[other]);
            let ops = ahead.iter().filter_map(|&at| self.program.threads[other].get(at as usize));
            // What was not looked at may suit.
            ahead.len() > AHEAD
                || ops.flat_map(|op| self.program.writes(op)).any(|write| match write.value {
                    Value::Known(value) => write.cell == cell && suits(value),
                    Value::Open(_) => write.cell == cell,
                })
        })
    }
}
