//! What an execution may take: who calls it knows the clock and the memory, the executor only asks. And which failure
//! it is about.

use crate::hang::{LastWait, Noticed};
use crate::recording::{RecordedFailure, RecordedFailureKind, Recording};
use crate::report::{Options, SymexError};
use std::cell::Cell;

/// So many steps of a walk are between two questions: some milliseconds.
const STEPS: u32 = 1 << 14;

/// What an execution may take, by who knows the clock and the memory.
pub trait Spending {
    /// Is there anything left to spend?
    fn is_left(&self) -> bool;

    /// Is there so much left that walks may be made which an answer does not need, each as long as all that was walked until
    /// now?
    fn is_ample(&self) -> bool {
        self.is_left()
    }
}

impl<F: Fn() -> bool> Spending for F {
    fn is_left(&self) -> bool {
        self()
    }
}

/// The options, and the question whether there is anything left to spend.
pub(crate) struct Limits<'r> {
    pub options: &'r Options,
    /// The failure that is asked about; none when the run did not fail.
    pub failure: Option<RecordedFailure>,
    /// All threads of a run that was ended waited: none went round a loop for ever.
    pub stuck: bool,
    /// Of a run that went on when it had failed: the failing thread's serial, and a time stamp by when it had. No other
    /// thread is walked beyond a wait that was over later.
    pub failed_by: Option<(u64, u64)>,
    /// The serial of the thread that noticed that the run hung: what it did then is no wait of the run.
    pub watcher: Option<u64>,
    /// Where the walk of a thread ends that only watched whether the run gets on.
    pub last_wait: Option<LastWait>,
    spending: &'r dyn Spending,
    /// Steps until the next question, over all walks.
    until: Cell<u32>,
    spent: Cell<bool>,
}

impl<'r> Limits<'r> {
    /// `is_left` is asked every so many steps; once it says no, every walk ends.
    pub fn new(recording: &Recording, options: &'r Options, spending: &'r dyn Spending) -> Self {
        Self {
            options,
            failure: recording.failure.clone(),
            stuck: recording.stuck,
            failed_by: None,
            watcher: None,
            last_wait: None,
            spending,
            until: Cell::new(STEPS),
            spent: Cell::new(false),
        }
    }

    /// The same for a run that is asked why it did not come to its end, however it was ended.
    pub fn of_hang(
        recording: &Recording,
        noticed: Noticed,
        (options, spending): (&'r Options, &'r dyn Spending),
    ) -> Self {
        let kind = RecordedFailureKind::TimedOut;
        let failure = RecordedFailure { kind, thread_serial: 0, message: String::new() };
        Self {
            failure: Some(failure),
            stuck: true,
            watcher: Some(noticed.watcher),
            last_wait: noticed.last_wait,
            ..Self::new(recording, options, spending)
        }
    }

    /// A step is about to be made. Is everything spent?
    #[inline]
    pub fn step(&self) -> bool {
        match self.until.get().checked_sub(1) {
            Some(until) => self.until.set(until),
            None => {
                self.until.set(STEPS);
                if !self.spending.is_left() {
                    self.spent.set(true);
                }
            }
        }
        self.spent.get()
    }

    /// So many steps were made.
    pub fn steps(&self, count: u32) {
        self.until.set(self.until.get().saturating_sub(count));
    }

    /// See [`Spending::is_ample`].
    pub fn is_ample(&self) -> bool {
        self.spending.is_ample()
    }

    /// Fails when everything was spent: what was walked until then is no whole run.
    ///
    /// # Errors
    /// [`SymexError::BudgetSpent`].
    pub fn check(&self) -> Result<(), SymexError> {
        if self.spent.get() { Err(SymexError::BudgetSpent) } else { Ok(()) }
    }

    /// The same, where a stage ends that does not count its steps.
    ///
    /// # Errors
    /// [`SymexError::BudgetSpent`].
    pub fn ask(&self) -> Result<(), SymexError> {
        if !self.spending.is_left() {
            self.spent.set(true);
        }
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_stays_spent() {
        let options = Options::default();
        let asked = Cell::new(0);
        let is_left = || {
            asked.set(asked.get() + 1);
            asked.get() < 2
        };
        let limits = Limits::new(&Recording::default(), &options, &is_left);
        let steps = (0..).take_while(|_| !limits.step()).count();
        assert!(steps >= STEPS as usize && asked.get() == 2, "{steps}, {asked:?}");
        assert!(limits.step() && asked.get() == 2);
        assert!(matches!(limits.check(), Err(SymexError::BudgetSpent)));
    }
}
