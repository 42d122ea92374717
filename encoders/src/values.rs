//! Which values a read may return, whatever the order of events.
//!
//! The least fixpoint over "a read returns what one of its sources writes", cut down by the path
//! conditions: in every schedule each value derives from constants in finitely many steps, so it
//! is in the fixpoint. Sets that grow too large become "any value".
//!
//! While the sets grow, only conditions on one variable cut them down: a condition on two could
//! keep a value out of each set because it is not yet in the other. Afterwards the sets hold
//! every value there can be, and all conditions apply.

use crate::context::Context;
use crate::read_write::Reader;
use model::{CmpOp, Expr, ExprId, ReadRef, VarId};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};

/// Larger sets become [`Values::Any`].
const MAX_VALUES: usize = 48;
/// More combinations of operands' values than this are not tried out.
const MAX_COMBINATIONS: usize = 512;
/// See [`most_work`].
const WORK: usize = 2_000_000;
/// See [`most_work`].
const WORK_PER_READ: usize = 300;
/// A fixpoint that takes more steps than so many per read is given up: nothing is then known.
const MAX_ROUNDS: usize = 64;

/// A set of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    Any,
    Of(BTreeSet<u128>),
}

impl Values {
    fn none() -> Self {
        Self::Of(BTreeSet::new())
    }

    fn add(&mut self, more: &Self) {
        match (&mut *self, more) {
            (Self::Of(values), Self::Of(more)) => {
                values.extend(more);
                if values.len() > MAX_VALUES {
                    *self = Self::Any;
                }
            }
            _ => *self = Self::Any,
        }
    }
}

/// Which path conditions cut a set down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conditions {
    OnItAlone,
    All,
}

/// What a write may store.
struct Written {
    values: Values,
    /// The reads that may take it, by number.
    readers: Vec<usize>,
}

/// The values of the variables of all reads that matter.
pub(crate) struct ValueSets {
    sets: FxHashMap<VarId, Values>,
    /// The path conditions that mention a variable.
    conditions: FxHashMap<VarId, Vec<ExprId>>,
    /// The variables of every expression that is looked at, once computed.
    variables: FxHashMap<ExprId, Vec<VarId>>,
    /// How much of [`MOST_WORK`] is left.
    work: Cell<usize>,
}

/// The evaluations, times their variables, that all rounds of one encoding may take together: what they
/// find only makes the search easier, so that it must not take longer than the search.
pub(crate) fn most_work(readers: &[Reader]) -> usize {
    WORK.max(readers.len().saturating_mul(WORK_PER_READ))
}

impl ValueSets {
    /// The fixpoint for the sources that are left, within so much work. Without a fixpoint nothing is
    /// known.
    pub(crate) fn of(context: &Context<'_>, readers: &[Reader], work: usize) -> Self {
        let mut this = Self {
            sets: FxHashMap::default(),
            conditions: FxHashMap::default(),
            variables: FxHashMap::default(),
            work: Cell::new(work),
        };
        for condition in &context.trace.conditions {
            for var in context.trace.exprs.variables(condition.expr) {
                this.conditions.entry(var).or_default().push(condition.expr);
            }
        }
        for reader in readers {
            this.sets.insert(reader.part.var, Values::none());
        }
        if !this.grow(context, readers) {
            this.sets.clear();
        }
        this
    }

    /// Lets the sets grow until nothing changes any more; false when that takes too long. A read is
    /// looked at again when the values of something that its sources write have changed.
    fn grow(&mut self, context: &Context<'_>, readers: &[Reader]) -> bool {
        let mut written: FxHashMap<ExprId, Written> = FxHashMap::default();
        let mut uses: FxHashMap<VarId, Vec<ExprId>> = FxHashMap::default();
        for (number, reader) in readers.iter().enumerate() {
            for source in &reader.sources {
                let of = written.entry(source.value).or_insert_with(|| {
                    for var in self.variables_of(context, source.value) {
                        uses.entry(var).or_default().push(source.value);
                    }
                    let values = self.of_expression(context, source.value);
                    Written { values, readers: Vec::new() }
                });
                of.readers.push(number);
            }
        }
        let mut pending: VecDeque<usize> = (0..readers.len()).collect();
        let mut is_pending = vec![true; readers.len()];
        let mut steps = MAX_ROUNDS.saturating_mul(readers.len());
        while let Some(number) = pending.pop_front() {
            is_pending[number] = false;
            if steps == 0 || self.work_left() == 0 {
                return false;
            }
            steps -= 1;
            let reader = &readers[number];
            let var = reader.part.var;
            let mut values = Values::none();
            for source in &reader.sources {
                values.add(&written[&source.value].values);
                if values == Values::Any {
                    break;
                }
            }
            let values = self.restrict(context, var, values, Conditions::OnItAlone);
            if self.sets.get(&var) == Some(&values) {
                continue;
            }
            self.sets.insert(var, values);
            for &expr in uses.get(&var).into_iter().flatten() {
                let values = self.of_expression(context, expr);
                let Some(of) = written.get_mut(&expr).filter(|of| of.values != values) else {
                    continue;
                };
                of.values = values;
                for &reader in &of.readers {
                    if !std::mem::replace(&mut is_pending[reader], true) {
                        pending.push_back(reader);
                    }
                }
            }
        }
        true
    }

    /// The work that is left.
    pub(crate) fn work_left(&self) -> usize {
        self.work.get()
    }

    fn spend(&self, combinations: usize, variables: usize) {
        let work = combinations.saturating_mul(1 + variables);
        self.work.set(self.work.get().saturating_sub(work));
    }

    /// The sources that can give no value which the path conditions allow.
    pub(crate) fn impossible(
        &mut self,
        context: &Context<'_>,
        readers: &[Reader],
    ) -> Vec<(ReadRef, model::WriteSource)> {
        let mut found = Vec::new();
        // Many reads may have one write as their source.
        let mut written: FxHashMap<ExprId, Values> = FxHashMap::default();
        for reader in readers {
            if self.work_left() == 0 {
                break;
            }
            let mut refused: FxHashMap<ExprId, bool> = FxHashMap::default();
            for source in &reader.sources {
                let is_refused = match refused.get(&source.value) {
                    Some(&known) => known,
                    None => {
                        let values = match written.get(&source.value) {
                            Some(values) => values.clone(),
                            None => {
                                let values = self.of_expression(context, source.value);
                                written.insert(source.value, values.clone());
                                values
                            }
                        };
                        let var = reader.part.var;
                        let left = self.restrict(context, var, values, Conditions::All);
                        let none = left == Values::none();
                        refused.insert(source.value, none);
                        none
                    }
                };
                if is_refused {
                    found.push((reader.read, source.source));
                }
            }
        }
        found
    }

    fn of_variable(&self, var: VarId) -> &Values {
        self.sets.get(&var).unwrap_or(&Values::Any)
    }

    fn variables_of(&mut self, context: &Context<'_>, expr: ExprId) -> Vec<VarId> {
        let list = self.variables.entry(expr);
        list.or_insert_with(|| context.trace.exprs.variables(expr)).clone()
    }

    fn of_expression(&mut self, context: &Context<'_>, expr: ExprId) -> Values {
        if let Some(value) = context.trace.exprs.as_const(expr) {
            return Values::Of(BTreeSet::from([value]));
        }
        let variables = self.variables_of(context, expr);
        let Some(combinations) = self.combinations(&variables, None) else { return Values::Any };
        self.spend(combinations.len(), variables.len());
        let mut values = Values::none();
        for combination in combinations {
            let lookup = |var: VarId| find(&variables, &combination, var);
            match context.trace.exprs.evaluate(expr, &lookup) {
                Some(value) => values.add(&Values::Of(BTreeSet::from([value]))),
                None => return Values::Any,
            }
        }
        values
    }

    /// The values that the path conditions on `var` allow.
    fn restrict(
        &mut self,
        context: &Context<'_>,
        var: VarId,
        values: Values,
        which: Conditions,
    ) -> Values {
        let conditions = self.conditions.get(&var).cloned().unwrap_or_default();
        let mut values = values;
        for condition in conditions {
            let variables = self.variables_of(context, condition);
            if which == Conditions::OnItAlone && variables != [var] {
                continue;
            }
            if values == Values::Any
                && let Some(only) = equal_to(context, condition, var)
            {
                values = Values::Of(BTreeSet::from([only]));
            }
            let Values::Of(set) = &mut values else { continue };
            set.retain(|&value| self.allows(context, condition, &variables, var, value));
        }
        values
    }

    fn allows(
        &self,
        context: &Context<'_>,
        condition: ExprId,
        variables: &[VarId],
        var: VarId,
        value: u128,
    ) -> bool {
        let Some(combinations) = self.combinations(variables, Some((var, value))) else {
            return true;
        };
        self.spend(combinations.len(), variables.len());
        combinations.iter().any(|combination| {
            let lookup = |var: VarId| find(variables, combination, var);
            context.trace.exprs.evaluate(condition, &lookup) != Some(0)
        })
    }

    /// All combinations of the variables' values, with one variable fixed; `None` when there are
    /// too many or a variable may have any value.
    fn combinations(
        &self,
        variables: &[VarId],
        fixed: Option<(VarId, u128)>,
    ) -> Option<Vec<Vec<u128>>> {
        let mut combinations: Vec<Vec<u128>> = vec![Vec::new()];
        for &var in variables {
            let values: Vec<u128> = match (fixed, self.of_variable(var)) {
                (Some((other, value)), _) if other == var => vec![value],
                (_, Values::Of(values)) => values.iter().copied().collect(),
                (_, Values::Any) => return None,
            };
            if combinations.len() * values.len() > MAX_COMBINATIONS {
                return None;
            }
            combinations = combinations
                .iter()
                .flat_map(|start| {
                    values.iter().map(|&value| start.iter().copied().chain([value]).collect())
                })
                .collect();
        }
        Some(combinations)
    }
}

fn find(variables: &[VarId], combination: &[u128], var: VarId) -> Option<u128> {
    let index = variables.iter().position(|&other| other == var)?;
    combination.get(index).copied()
}

/// The constant that a condition of the form `var == constant` names.
fn equal_to(context: &Context<'_>, condition: ExprId, var: VarId) -> Option<u128> {
    let Expr::Cmp(CmpOp::Eq, a, b) = context.trace.exprs.get(condition) else { return None };
    let pool = &context.trace.exprs;
    let is_var = |id: ExprId| matches!(pool.get(id), Expr::Var { var: other, .. } if other == var);
    match (pool.as_const(a), pool.as_const(b)) {
        (Some(value), _) if is_var(b) => Some(value),
        (_, Some(value)) if is_var(a) => Some(value),
        _ => None,
    }
}
