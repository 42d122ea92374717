//! What every encoder works on: the trace, its indices, the happens-before closure, and the
//! system that grows.

use crate::closure::Closure;
use crate::locks::Regions;
use crate::system::{ChoiceId, Constraint, ConstraintId, ConstraintKind, ConstraintSystem, Term};
use model::{
    CellId, EventId, EventTrace, Expr, ExprId, ReadRef, VarId, VariableOrigin, WriteSource,
};
use rustc_hash::FxHashSet;
use std::cell::Cell;

/// One write to a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) event: EventId,
    pub(crate) value: ExprId,
}

/// A trace with its indices.
pub(crate) struct Context<'a> {
    pub(crate) trace: &'a EventTrace,
    pub(crate) closure: Closure,
    pub(crate) regions: Regions,
    /// The expression that stands for a variable, for the variables that occur in any.
    variables: Vec<Option<ExprId>>,
    /// By cell: the writes of each thread that writes it, in program order.
    writes: Vec<Vec<(usize, Vec<Write>)>>,
    /// Sources whose value would contradict a path condition.
    pub(crate) excluded: FxHashSet<(ReadRef, WriteSource)>,
    /// Asked now and then; ends the work by answering false.
    budget: &'a dyn Fn() -> bool,
    over: Cell<bool>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(trace: &'a EventTrace, regions: Regions) -> Self {
        let mut variables = vec![None; trace.variables.len()];
        for id in (0..trace.exprs.len()).map(|index| ExprId(index as u32)) {
            if let Expr::Var { var, .. } = trace.exprs.get(id)
                && let Some(slot) = variables.get_mut(var.index())
            {
                *slot = Some(id);
            }
        }
        Self {
            trace,
            closure: Closure::of_program_order(trace),
            regions,
            variables,
            writes: writes(trace),
            excluded: FxHashSet::default(),
            budget: &|| true,
            over: Cell::new(false),
        }
    }

    /// The same, within a budget.
    pub(crate) fn within(mut self, budget: &'a dyn Fn() -> bool) -> Self {
        self.budget = budget;
        self
    }

    /// Is the budget spent? What is not done yet is not worth doing then.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get() || {
            self.over.set(!(self.budget)());
            self.over.get()
        }
    }

    /// The writes to a cell, of each thread that writes it, in program order.
    pub(crate) fn writes(&self, cell: CellId) -> &[(usize, Vec<Write>)] {
        self.writes.get(cell.index()).map_or(&[], Vec::as_slice)
    }

    /// The read whose value a variable is.
    pub(crate) fn read_of(&self, var: VarId) -> Option<ReadRef> {
        match self.trace.variables.get(var.index())?.origin {
            VariableOrigin::Read { event, part } => Some(ReadRef { event, part }),
            VariableOrigin::Init(_) | VariableOrigin::Input => None,
        }
    }

    /// The expression of a variable; `None` when no expression mentions it.
    pub(crate) fn variable(&self, var: VarId) -> Option<ExprId> {
        self.variables.get(var.index()).copied().flatten()
    }

    /// "`a` comes before `b`", decided where the closure decides it.
    pub(crate) fn before(&self, a: EventId, b: EventId) -> Term {
        if self.closure.before(a, b) {
            Term::True
        } else if a == b || self.closure.before(b, a) {
            Term::False
        } else {
            Term::Before(a, b)
        }
    }
}

fn writes(trace: &EventTrace) -> Vec<Vec<(usize, Vec<Write>)>> {
    let mut writes: Vec<Vec<(usize, Vec<Write>)>> = vec![Vec::new(); trace.cells.len()];
    for thread in &trace.threads {
        for &event in &thread.events {
            for part in trace.event(event).kind.writes() {
                let Some(threads) = writes.get_mut(part.cell.index()) else { continue };
                let write = Write { event, value: part.value };
                match threads.last_mut() {
                    Some((last, list)) if *last == thread.id.index() => list.push(write),
                    _ => threads.push((thread.id.index(), vec![write])),
                }
            }
        }
    }
    writes
}

/// Collects constraints.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) system: ConstraintSystem,
}

/// Of so many choices each two are looked at.
const FEW_CHOICES: usize = 8;

impl Builder {
    /// Adds a constraint, unless it holds anyway.
    pub(crate) fn add(
        &mut self,
        kind: ConstraintKind,
        origins: impl IntoIterator<Item = EventId>,
        term: Term,
    ) {
        if term == Term::True {
            return;
        }
        let id = ConstraintId(u32::try_from(self.system.constraints.len()).unwrap_or(u32::MAX));
        let origins = origins.into_iter().collect();
        self.system.constraints.push(Constraint { id, kind, origins, term });
    }

    /// A fresh choice.
    pub(crate) fn choice(&mut self) -> Term {
        let id = ChoiceId(self.system.choices);
        self.system.choices += 1;
        Term::Choice(id)
    }

    /// Asserts that at most one of `choices` holds: of each two not both where they are few, and by a chain of
    /// "one of the first ones holds" where that would be too many constraints.
    pub(crate) fn at_most_one(&mut self, kind: ConstraintKind, choices: &[(Term, Vec<EventId>)]) {
        if choices.len() > FEW_CHOICES {
            return self.at_most_one_in_chain(kind, choices);
        }
        for (index, first) in choices.iter().enumerate() {
            for second in &choices[index + 1..] {
                self.not_both(kind, first, second);
            }
        }
    }

    fn not_both(
        &mut self,
        kind: ConstraintKind,
        (first, origins): &(Term, Vec<EventId>),
        (second, others): &(Term, Vec<EventId>),
    ) {
        let mut origins: Vec<_> = origins.iter().chain(others).copied().collect();
        origins.sort_unstable();
        origins.dedup();
        self.add(kind, origins, Term::any([first.clone().negated(), second.clone().negated()]));
    }

    fn at_most_one_in_chain(&mut self, kind: ConstraintKind, choices: &[(Term, Vec<EventId>)]) {
        let mut earlier: Option<(Term, Vec<EventId>)> = None;
        for choice in choices {
            let (term, origins) = choice;
            if let Some(earlier) = &earlier {
                self.not_both(kind, earlier, choice);
            }
            let so_far = self.choice();
            let implied = term.clone().implies(so_far.clone());
            self.add(kind, origins.iter().copied(), implied);
            if let Some((earlier, before)) = earlier {
                let origins = before.iter().chain(origins).copied();
                self.add(kind, origins, earlier.implies(so_far.clone()));
            }
            earlier = Some((so_far, origins.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a term says where these choices hold.
    fn holds(term: &Term, chosen: &[bool]) -> bool {
        match term {
            Term::Choice(id) => chosen[id.0 as usize],
            Term::Not(inner) => !holds(inner, chosen),
            Term::Or(parts) => parts.iter().any(|part| holds(part, chosen)),
            Term::Implies(one, other) => !holds(one, chosen) || holds(other, chosen),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn at_most_one_of_many_choices_holds() {
        for count in [1, FEW_CHOICES, FEW_CHOICES + 1, 12] {
            let mut builder = Builder::default();
            let choices: Vec<_> =
                (0..count).map(|number| (builder.choice(), vec![EventId(number as u32)])).collect();
            builder.at_most_one(ConstraintKind::Condition, &choices);
            let all = builder.system.choices as usize;
            for bits in 0u32..1 << count {
                let mut chosen: Vec<bool> = (0..count).map(|bit| bits >> bit & 1 == 1).collect();
                // What the constraints add is true where they say that it must be, and nowhere else.
                chosen.extend((0..all - count).map(|so_far| bits & ((2 << so_far) - 1) != 0));
                let kept = builder.system.constraints.iter().all(|it| holds(&it.term, &chosen));
                assert_eq!(kept, bits.count_ones() <= 1, "{count} {bits:b}");
            }
        }
    }
}
