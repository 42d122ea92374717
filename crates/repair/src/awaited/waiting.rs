//! Does a write leave whoever waits there waiting? Then it is none of those that are waited for, as one that counts owners in
//! the word whose lowest bit says that all is over.

use super::Wait;
use crate::check::Limits;
use crate::possible::Went;
use model::{CellId, Event, EventTrace, PathCondition, VarId, VariableOrigin, WritePart};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// What the run had for its variables, found out when it is asked for.
pub(super) struct Known<'a> {
    run: &'a EventTrace,
    limits: Limits<'a>,
    went: OnceCell<Option<Went>>,
}

impl<'a> Known<'a> {
    pub(super) fn new(run: &'a EventTrace, limits: Limits<'a>) -> Self {
        Self { run, limits, went: OnceCell::new() }
    }

    pub(super) fn run(&self) -> &'a EventTrace {
        self.run
    }

    /// Whatever the cells held before that: would each of these threads that waits go on waiting behind the write? No, where
    /// that is not known.
    pub(super) fn leaves_waiting(
        &self,
        waits: &[&Wait],
        tested: &BTreeSet<CellId>,
        write: &Event,
    ) -> bool {
        let went = self.went.get_or_init(|| Went::of(self.run, self.limits));
        let Some(went) = went.as_ref() else { return false };
        let parts = write.kind.writes().iter().filter(|part| tested.contains(&part.cell));
        parts.into_iter().all(|part| {
            let Some(held) = self.held(went, part.cell) else { return false };
            waits.iter().filter(|wait| wait.thread != write.thread).all(|wait| {
                let decided = self.decided(wait, part.cell);
                let waits = |value: u128| self.hold(went, &decided, part.cell, value);
                !decided.is_empty()
                    && held
                        .iter()
                        .filter(|value| waits(**value))
                        .all(|value| self.written((write, part), *value).is_some_and(waits))
            })
        })
    }

    /// What the cell held in the run; none where some of it is not known.
    fn held(&self, went: &Went, cell: CellId) -> Option<BTreeSet<u128>> {
        let run = self.run;
        let value = |expr| run.exprs.evaluate(expr, &|var| went.value(var));
        let parts = run.events.iter().flat_map(|event| event.kind.writes());
        let written = parts.filter(|part| part.cell == cell).map(|part| part.value);
        let first = run.cells.get(cell.index()).map(|cell| cell.init);
        written.chain(first).map(value).collect()
    }

    /// By what the thread decided to wait, of what it saw of the cell.
    fn decided(&self, wait: &Wait, cell: CellId) -> Vec<&'a PathCondition> {
        let run = self.run;
        let [begin, end] = [wait.section.lock, wait.section.unlock].map(|id| run.event(id).index);
        let of_cell = |condition: &&PathCondition| {
            let reads = run.reads_of(condition.expr);
            reads
                .iter()
                .any(|read| run.event(read.event).kind.reads().iter().any(|part| part.cell == cell))
        };
        let there = run.conditions.iter().filter(|condition| {
            condition.thread == wait.thread && (begin + 1..=end).contains(&condition.position)
        });
        there.filter(of_cell).collect()
    }

    /// Do the conditions hold where the cell has this value?
    fn hold(&self, went: &Went, conditions: &[&PathCondition], cell: CellId, value: u128) -> bool {
        let with = |var: VarId| match self.is_read_of(var, cell, None) {
            true => Some(value),
            false => went.value(var),
        };
        conditions.iter().all(|one| self.run.exprs.evaluate(one.expr, &with) == Some(1))
    }

    /// What is written where the event finds this value in the cell. None where that depends on anything else, such as an
    /// earlier look at it.
    fn written(&self, (event, part): (&Event, &WritePart), found: u128) -> Option<u128> {
        let variables = self.run.exprs.variables(part.value);
        let is_own = |var: VarId| self.is_read_of(var, part.cell, Some(event));
        if !variables.into_iter().all(is_own) {
            return None;
        }
        self.run.exprs.evaluate(part.value, &|_| Some(found))
    }

    /// Is the variable what a read of the cell returned, that of this event where one is given?
    fn is_read_of(&self, var: VarId, cell: CellId, by: Option<&Event>) -> bool {
        let variable = self.run.variables.get(var.index());
        let Some(VariableOrigin::Read { event, part }) = variable.map(|it| it.origin) else {
            return false;
        };
        let read = self.run.event(event).kind.reads().get(part as usize);
        read.is_some_and(|read| read.cell == cell) && by.is_none_or(|by| by.id == event)
    }
}
