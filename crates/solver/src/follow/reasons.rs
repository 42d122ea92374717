//! What is to blame where no thread can go on: the steps that a search has to take back one of.

use super::program::Op;
use super::state::{Change, NONE, State};
use crate::actions::Action;

/// So many values that a cell held are looked at for one with which a thread could have gone on.
const VALUES: usize = 4_096;
/// So many of the steps are kept that took such a value away.
const TAKEN: usize = 8;

impl State<'_, '_> {
    /// The events because of which threads cannot go on: what made a cell or an object as it is. `None` where that
    /// may be any event before.
    pub(super) fn reasons(&self) -> Option<Vec<u32>> {
        let mut reasons = Vec::new();
        for thread in 0..self.done.len() {
            reasons.extend(self.reasons_of(thread)?);
        }
        Some(reasons)
    }

    /// The same of one thread.
    pub(super) fn reasons_of(&self, thread: usize) -> Option<Vec<u32>> {
        let mut reasons = Vec::new();
        let Some(op) = self.next(thread) else { return Some(reasons) };
        let ordered = |&(other, count): &(u32, u32)| self.done[other as usize] >= count;
        let is_hopeless = self.hopeless() == Some(thread);
        if !is_hopeless && !self.program.needs(op).iter().all(ordered) {
            // Another thread is behind, which has its own reason.
            return Some(reasons);
        }
        if !op.action.is_possible(&self.words) {
            match op.action {
                Action::Acquire { word, .. } => reasons.push(self.word_by[word]),
                Action::Wake { word } => self.reasons_of_wait(thread, word, &mut reasons),
                _ => return None,
            }
        } else if self.program.is_strict
            && let Some(read) = self.program.reads(op).iter().find(|read| !self.is_right(read))
        {
            // What is written may be wrong.
            if self.program.is_open(read.cell) {
                return None;
            }
            // What took its value away, and what wrote that too early.
            reasons.push(self.cell_by[read.cell as usize]);
            reasons.extend(read.wanted.and_then(|wanted| self.written.get(&(read.cell, wanted))));
        } else if !self.holds(op) {
            self.reasons_of_conditions(thread, op, &mut reasons);
        }
        reasons.retain(|&step| step != NONE);
        Some(reasons)
    }

    /// What is to blame besides a step that is: earlier ones that wrote the same.
    pub(super) fn written_before(&self, step: u32) -> impl Iterator<Item = u32> {
        self.changes_of(step).iter().filter_map(|change| match *change {
            Change::Written(_, last) if last != NONE => Some(last),
            _ => None,
        })
    }

    /// Why a wait does not end: it began behind the last signal that it could have got, or another wait took the one that
    /// came since.
    fn reasons_of_wait(&self, thread: usize, word: usize, reasons: &mut Vec<u32>) {
        reasons.push(self.word_by[word]);
        let Some(&began) = self.happened[thread].last() else { return };
        reasons.push(began);
        let condition = self.words[word];
        let notified = self.notified.get(&condition).map(Vec::as_slice).unwrap_or_default();
        let before = notified.partition_point(|&step| step < began);
        reasons.extend(before.checked_sub(1).and_then(|last| notified.get(last)));
    }

    /// Why a thread cannot go on whose next event reads what no condition of its path allows: the event comes too late,
    /// and then what took the values away that allow it is to blame; or it comes too early, as what is there now says; or
    /// the thread read something else before, of which the condition is made.
    fn reasons_of_conditions(&self, thread: usize, op: &Op, reasons: &mut Vec<u32>) {
        reasons.extend(self.happened[thread].last());
        for read in self.program.reads(op) {
            // Where nothing to come helps, what is there now does not matter.
            if self.hopeless() != Some(thread) {
                reasons.push(self.cell_by[read.cell as usize]);
            }
            let taken = self.history(read.cell).filter(|&(_, held)| {
                self.holds_with(op, |cell| match cell == read.cell {
                    true => held,
                    false => self.cells[cell as usize],
                })
            });
            reasons.extend(taken.take(TAKEN).map(|(step, _)| step));
        }
        for &condition in self.program.conditions(op) {
            for (place, cell) in self.program.reads_of(thread, condition) {
                let Some(&step) = self.happened[thread].get(place) else { continue };
                let mut sources = self.history(cell).map(|(step, _)| step);
                reasons.push(step);
                reasons.extend(sources.find(|&source| source <= step));
            }
        }
    }

    /// The steps that changed a cell, the last one first, each with what was there before; not all of very many.
    fn history(&self, cell: u32) -> impl Iterator<Item = (u32, u128)> {
        let mut step = self.cell_by[cell as usize];
        let changes = std::iter::from_fn(move || {
            let (held, earlier) = self.held_before(step, cell)?;
            Some((std::mem::replace(&mut step, earlier), held))
        });
        changes.take(VALUES)
    }

    /// What a cell held before a step changed it, and the step that had made it so.
    pub(super) fn held_before(&self, step: u32, cell: u32) -> Option<(u128, u32)> {
        self.changes_of(step).iter().find_map(|change| match *change {
            Change::Cell(changed, held, by) if changed == cell => Some((held, by)),
            _ => None,
        })
    }

    /// What a step changed.
    fn changes_of(&self, step: u32) -> &[Change] {
        let first = |step: usize| self.steps.get(step).map(|step| step.changes as usize);
        let from = first(step as usize).unwrap_or(self.changes.len());
        let to = first(step as usize + 1).unwrap_or(self.changes.len());
        &self.changes[from..to]
    }
}
