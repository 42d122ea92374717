//! What an execution may take: who calls it knows the clock and the memory, the executor only asks.

use crate::report::{Options, SymexError};
use std::cell::Cell;

/// So many steps of a walk are between two questions: some milliseconds.
const STEPS: u32 = 1 << 14;

/// The options, and the question whether there is anything left to spend.
pub(crate) struct Limits<'r> {
    pub options: &'r Options,
    is_left: &'r dyn Fn() -> bool,
    /// Steps until the next question, over all walks.
    until: Cell<u32>,
    spent: Cell<bool>,
}

impl<'r> Limits<'r> {
    /// `is_left` is asked every so many steps; once it says no, every walk ends.
    pub fn new(options: &'r Options, is_left: &'r dyn Fn() -> bool) -> Self {
        Self { options, is_left, until: Cell::new(STEPS), spent: Cell::new(false) }
    }

    /// A step is about to be made. Is everything spent?
    #[inline]
    pub fn step(&self) -> bool {
        match self.until.get().checked_sub(1) {
            Some(until) => self.until.set(until),
            None => {
                self.until.set(STEPS);
                if !(self.is_left)() {
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
        if !(self.is_left)() {
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
        let limits = Limits::new(&options, &is_left);
        let steps = (0..).take_while(|_| !limits.step()).count();
        assert!(steps >= STEPS as usize && asked.get() == 2, "{steps}, {asked:?}");
        assert!(limits.step() && asked.get() == 2);
        assert!(matches!(limits.check(), Err(SymexError::BudgetSpent)));
    }
}
