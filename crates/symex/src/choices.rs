//! The choices of a thread's branches, as they come in tokens (`ir::regions`).

use crate::thread::{Stop, Thread, contradiction};
use trace_format::layout::tag;

/// See [`Thread`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choices {
    /// The token's bits behind a leading one.
    token: u32,
    /// How many of them were not used yet: the lowest.
    pub left: u32,
    /// How many choices the current region has made so far, in bits.
    pub made: u32,
}

/// The choices of a path entry, behind a leading one; none for other entries.
pub(crate) fn choices(word: u32) -> Option<u32> {
    let token = word ^ (tag::RETURN << tag::SHIFT | tag::CHOICES);
    (1..tag::CHOICES).contains(&token).then_some(token)
}

const OPEN: u32 = tag::RETURN << tag::SHIFT | tag::OPEN;

impl Thread<'_> {
    /// The way of a branch that takes so many bits; `peek` showed a choice.
    pub fn choose(&mut self, bits: u32) -> Result<u32, Stop> {
        if self.choices.left == 0 {
            self.read_choices()?;
        }
        let Some(left) = self.choices.left.checked_sub(bits) else {
            return contradiction("a choice is cut");
        };
        self.choices.left = left;
        self.choices.made += bits;
        Ok(self.choices.token >> left & ((1 << bits) - 1))
    }

    /// The next choice of one bit, which stays; none where no choice was read that is left.
    pub fn next_choice(&self) -> Option<u32> {
        let left = self.choices.left.checked_sub(1)?;
        Some(self.choices.token >> left & 1)
    }

    /// Reads the choices that come next; `peek` showed some, and none is left.
    pub fn read_choices(&mut self) -> Result<(), Stop> {
        let Some(token) = self.path_word().and_then(choices) else {
            return contradiction("no choices where a branch is");
        };
        let mut left = token.ilog2();
        self.choices = Choices { token, left, made: 0 };
        // What was known before the runtime had something to say comes once more.
        if let Some(known) = self.code_mut().and_then(|frame| frame.open.take()) {
            let bits = known.ilog2();
            left = left.saturating_sub(bits);
            if token >> left != known {
                return contradiction("choices that were made differ when they come once more");
            }
            self.choices = Choices { token, left, made: bits };
        }
        self.advance();
        self.pass_open(token);
        Ok(())
    }

    /// Passes the mark that a token's choices come once more.
    fn pass_open(&mut self, token: u32) {
        if self.path_word() != Some(OPEN) {
            return;
        }
        self.advance();
        if let Some(frame) = self.code_mut() {
            frame.open = Some(token);
        }
    }

    /// Passes a token that has nothing but what comes once more.
    pub fn pass_repeated(&mut self) {
        while self.choices.left == 0
            && let Some(known) = self.code().and_then(|frame| frame.open)
            && self.path_word().and_then(choices) == Some(known)
        {
            if let Some(frame) = self.code_mut() {
                frame.open = None;
            }
            self.advance();
            self.pass_open(known);
        }
    }

    /// A region ends here.
    pub fn end_region(&mut self) {
        self.pass_repeated();
        self.leave_region();
    }

    /// A region ended before, or was left by a jump: nothing of it comes once more.
    pub fn leave_region(&mut self) {
        if let Some(frame) = self.code_mut() {
            frame.open = None;
        }
        self.choices.made = 0;
    }

    /// Does a region end at a check that lets so many bits pass?
    pub fn fills_region(&self, bits: u32) -> bool {
        self.choices.made > bits
    }
}
