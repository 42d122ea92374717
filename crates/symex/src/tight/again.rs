//! What earlier walks of the run found.
//!
//! A run is walked several times, and where a loop accesses no memory, what comes of it depends on the numbers that it begins
//! with and on the thread's log alone: the next walk that comes to the same place with the same numbers takes the outcome, and
//! goes on behind it in the log.

use super::{Slot, Tight, Way};
use crate::choices::Choices;
use crate::engine::Engine;
use ir::types::InstId;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// Of so many instructions at least the outcome is kept.
const LEAST: u32 = 1 << 10;
/// So many outcomes are kept of a loop.
const MOST: usize = 1 << 15;
/// Of a loop with more values none is kept.
const MOST_SLOTS: usize = 64;

/// Where a loop begins: thread, entries of its path before, and choices that are left of the last one.
type Place = (usize, usize, u32);

/// See the module.
#[derive(Default)]
pub(super) struct Outcomes {
    all: RefCell<FxHashMap<Place, Rc<Outcome>>>,
}

/// What is there when a loop begins.
pub(super) struct Begin {
    place: Place,
    stamps: usize,
    choices: Choices,
    branches: u64,
    slots: Box<[Slot]>,
}

struct Outcome {
    begin: Begin,
    /// How many entries of the path it passed.
    entries: usize,
    choices: Choices,
    branches: u64,
    slots: Box<[Slot]>,
    way: Way,
    end: (usize, InstId),
}

impl Engine<'_> {
    /// The place and the numbers with which the thread begins a loop; none where nothing is kept of that.
    pub(super) fn begins(&self, t: usize, tight: &Tight, slots: &[Slot]) -> Option<Begin> {
        let thread = &self.threads[t];
        let is_kept = tight.may_repeat && slots.len() <= MOST_SLOTS;
        let open = thread.code().is_none_or(|frame| frame.open.is_some());
        (is_kept && !open).then(|| Begin {
            place: (t, thread.path_at, thread.choices.left),
            stamps: thread.stamps,
            choices: thread.choices,
            branches: thread.branch_sequence,
            slots: slots.into(),
        })
    }

    /// Keeps what came of a loop that was walked.
    pub(super) fn keep_outcome(
        &self,
        t: usize,
        tight: &Tight,
        begin: Begin,
        (slots, way, end): (&[Slot], &Way, (usize, InstId)),
    ) {
        let thread = &self.threads[t];
        let open = thread.code().is_none_or(|frame| frame.open.is_some());
        let mut all = tight.outcomes.all.borrow_mut();
        if way.walked < LEAST || open || all.len() >= MOST {
            return;
        }
        let outcome = Outcome {
            entries: thread.path_at - begin.place.1,
            choices: thread.choices,
            branches: thread.branch_sequence,
            slots: slots.into(),
            way: way.clone(),
            end,
            begin,
        };
        all.insert(outcome.begin.place, Rc::new(outcome));
    }

    /// Does what an earlier walk did from this place on, if it did.
    pub(super) fn repeat_outcome(
        &mut self,
        t: usize,
        tight: &Tight,
        begin: &Begin,
        slots: &mut [Slot],
    ) -> Option<(Way, (usize, InstId))> {
        let outcome = Rc::clone(tight.outcomes.all.borrow().get(&begin.place)?);
        let is_same = outcome.begin.slots == begin.slots
            && (outcome.begin.stamps, outcome.begin.choices) == (begin.stamps, begin.choices);
        if !is_same
            || outcome.begin.branches != begin.branches
            || slots.len() != outcome.slots.len()
        {
            return None;
        }
        slots.copy_from_slice(&outcome.slots);
        let thread = &mut self.threads[t];
        thread.skip(outcome.entries);
        thread.choices = outcome.choices;
        thread.branch_sequence = outcome.branches;
        Some((outcome.way.clone(), outcome.end))
    }
}
