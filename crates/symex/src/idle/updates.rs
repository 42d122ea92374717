//! Atomic updates in rounds of waiting: did they find what they wrote?

use crate::engine::Engine;
use crate::idle::LeaveOut;
use model::{CellId, Expr, ExprId, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// An atomic update of a cell that may have left it as it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    pub cell: CellId,
    pub old: VarId,
    pub new: ExprId,
}

/// What an update has to do: where the conditions hold, `new` is `old`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Assumption {
    cell: CellId,
    old: VarId,
    new: ExprId,
    conditions: Vec<ExprId>,
}

impl Engine<'_> {
    /// Did all of these updates find what they wrote? Where that is not in the log, it is assumed of
    /// those of which it may be so.
    pub(super) fn change_nothing(&mut self, updates: Range<usize>, conditions: &[ExprId]) -> bool {
        let updates = self.idle.updates[updates].to_vec();
        for update in updates {
            if self.pool.get(update.new) == self.variable_expr(update) {
                continue;
            }
            if let Some(old) = self.out.recorded(update.old) {
                if self.pool.evaluate(update.new, &|_| Some(old)) == Some(old)
                    && self.pool.variables(update.new).iter().all(|&var| var == update.old)
                {
                    continue;
                }
                return false;
            }
            let own = |id: &&ExprId| self.pool.variables(**id) == [update.old];
            let conditions: Vec<ExprId> = conditions.iter().filter(own).copied().collect();
            let Update { cell, old, new } = update;
            let assumption = Assumption { cell, old, new, conditions };
            let limit = model::expr::mask(self.pool.width(new));
            let samples = [0, 1, 2, 3, limit].into_iter().chain(self.pool.as_const(new));
            let mut possible = samples.filter_map(|value| self.keeps(&assumption, value));
            if self.idle.leave_out != LeaveOut::Updates || !possible.any(|keeps| keeps) {
                return false;
            }
            drop(possible);
            self.idle.assumptions.insert(assumption);
        }
        true
    }

    fn variable_expr(&self, update: Update) -> Expr {
        Expr::Var { var: update.old, width: self.pool.width(update.new) }
    }

    /// Does the update leave this value as it is? None when it does not come to it, because the
    /// thread would go another way.
    fn keeps(&self, assumption: &Assumption, value: u128) -> Option<bool> {
        let of = |var: VarId| (var == assumption.old).then_some(value);
        let holds = |id: &ExprId| self.pool.evaluate(*id, &of) != Some(0);
        let all = assumption.conditions.iter().all(holds);
        all.then(|| self.pool.evaluate(assumption.new, &of) == Some(value))
    }

    /// After all walks: was it right to leave updates out?
    pub fn assumptions_hold(&self) -> bool {
        if self.idle.assumptions.is_empty() {
            return true;
        }
        let mut values: FxHashMap<CellId, Option<FxHashSet<u128>>> = FxHashMap::default();
        for assumption in &self.idle.assumptions {
            let init = self.out.cells.get(assumption.cell.index()).map(|cell| cell.init);
            let init = init.and_then(|init| self.pool.as_const(init));
            values.insert(assumption.cell, init.map(|value| FxHashSet::from_iter([value])));
        }
        for event in self.out.threads.iter().flat_map(|thread| &thread.events) {
            for write in event.kind.writes() {
                let Some(known) = values.get_mut(&write.cell) else { continue };
                let own = event.kind.reads().iter().find(|read| read.cell == write.cell);
                let mut open = vec![write.value];
                while let Some(id) = open.pop() {
                    match self.pool.get(id) {
                        Expr::Const { value, .. } => {
                            known.iter_mut().for_each(|known| {
                                known.insert(value);
                            });
                        }
                        Expr::Var { var, .. } if own.is_some_and(|read| read.var == var) => {}
                        Expr::Ite(_, then, otherwise) => open.extend([then, otherwise]),
                        _ => *known = None,
                    }
                }
            }
        }
        self.idle.assumptions.iter().all(|assumption| {
            let known = values.get(&assumption.cell).and_then(Option::as_ref);
            known.is_some_and(|known| {
                known.iter().all(|&value| self.keeps(assumption, value).unwrap_or(true))
            })
        })
    }
}
