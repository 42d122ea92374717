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
use model::expr::{Compiled, Scratch, mask};
use model::{BinOp, CmpOp, Expr, ExprId, ExprPool, ReadRef, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

/// Larger sets become [`Values::Any`].
const MAX_VALUES: usize = 48;
/// More combinations of operands' values than this are not tried out.
const MAX_COMBINATIONS: usize = 512;
/// See [`Effort`].
const WORK: usize = 10_000_000;
/// See [`Effort`].
const WORK_PER_READ: usize = 2_000;
/// More nodes of expressions than this, all together, are not kept for the next evaluation.
const MAX_KEPT: usize = 4_000_000;
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

/// What all rounds of one encoding share: their limit, and expressions ready to be evaluated.
///
/// The limit is on the nodes of expressions that evaluations look at. What they find only makes the
/// search easier, so that it must not take longer than the search.
pub(crate) struct Effort {
    left: usize,
    compiled: FxHashMap<ExprId, Rc<Compiled>>,
    /// The nodes of these.
    kept: usize,
    scratch: Scratch,
}

impl Effort {
    pub(crate) fn new(readers: &[Reader]) -> Self {
        Self {
            left: WORK.max(readers.len().saturating_mul(WORK_PER_READ)),
            compiled: FxHashMap::default(),
            kept: 0,
            scratch: Scratch::default(),
        }
    }

    fn is_spent(&self) -> bool {
        self.left == 0
    }

    fn compiled(&mut self, pool: &ExprPool, id: ExprId) -> Rc<Compiled> {
        if let Some(known) = self.compiled.get(&id) {
            return Rc::clone(known);
        }
        let compiled = Rc::new(pool.compile(id));
        self.left = self.left.saturating_sub(compiled.size());
        if self.kept + compiled.size() <= MAX_KEPT {
            self.kept += compiled.size();
            self.compiled.insert(id, Rc::clone(&compiled));
        }
        compiled
    }

    /// Evaluates for one combination after the other of the variables' values, until `goes_on` says
    /// otherwise. Nothing to do where a variable has no value.
    fn evaluate(
        &mut self,
        pool: &ExprPool,
        compiled: &Compiled,
        values: &[Vec<u128>],
        mut goes_on: impl FnMut(Option<u128>) -> bool,
    ) {
        if values.iter().any(Vec::is_empty) {
            return;
        }
        let mut chosen = vec![0; values.len()];
        loop {
            self.left = self.left.saturating_sub(compiled.size());
            let value_of = |place: usize| Some(values[place][chosen[place]]);
            if !goes_on(compiled.evaluate(pool, &mut self.scratch, &value_of)) {
                return;
            }
            // The last variable's values go by fastest.
            let Some(place) = (0..values.len()).rfind(|&p| chosen[p] + 1 < values[p].len()) else {
                return;
            };
            chosen[place] += 1;
            chosen[place + 1..].fill(0);
        }
    }
}

/// The values of the variables of all reads that matter.
pub(crate) struct ValueSets<'e> {
    sets: FxHashMap<VarId, Values>,
    /// The path conditions that mention a variable.
    conditions: FxHashMap<VarId, Vec<ExprId>>,
    effort: &'e mut Effort,
}

impl<'e> ValueSets<'e> {
    /// The fixpoint for the sources that are left. Without a fixpoint, because the effort was spent
    /// before, nothing is known.
    pub(crate) fn of(context: &Context<'_>, readers: &[Reader], effort: &'e mut Effort) -> Self {
        let mut this =
            Self { sets: FxHashMap::default(), conditions: FxHashMap::default(), effort };
        let pool = &context.trace.exprs;
        let mut known = FxHashSet::default();
        for condition in &context.trace.conditions {
            if this.effort.is_spent() {
                return this;
            }
            if !known.insert(condition.expr) {
                continue;
            }
            for &var in this.effort.compiled(pool, condition.expr).variables() {
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
                    let compiled = self.effort.compiled(&context.trace.exprs, source.value);
                    for &var in compiled.variables() {
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
            if steps == 0 || self.effort.is_spent() {
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
            if self.effort.is_spent() {
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

    fn of_expression(&mut self, context: &Context<'_>, expr: ExprId) -> Values {
        let pool = &context.trace.exprs;
        if let Some(value) = pool.as_const(expr) {
            return Values::Of(BTreeSet::from([value]));
        }
        let compiled = self.effort.compiled(pool, expr);
        let Some(lists) = self.lists(compiled.variables(), None) else { return Values::Any };
        let mut values = BTreeSet::new();
        let mut known = true;
        self.effort.evaluate(pool, &compiled, &lists, |value| {
            values.extend(value);
            known = value.is_some() && values.len() <= MAX_VALUES;
            known
        });
        if known { Values::Of(values) } else { Values::Any }
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
            let compiled = self.effort.compiled(&context.trace.exprs, condition);
            if which == Conditions::OnItAlone && compiled.variables() != [var] {
                continue;
            }
            if values == Values::Any
                && let Some(only) = equal_to(&context.trace.exprs, condition, var)
            {
                values = Values::Of(only);
            }
            let Values::Of(set) = &mut values else { continue };
            self.keep_allowed(context, &compiled, var, set);
        }
        values
    }

    /// Keeps the values of `var` with which a condition can hold.
    fn keep_allowed(
        &mut self,
        context: &Context<'_>,
        condition: &Compiled,
        var: VarId,
        set: &mut BTreeSet<u128>,
    ) {
        let variables = condition.variables();
        let Some(mut lists) = self.lists(variables, Some(var)) else { return };
        let Ok(place) = variables.binary_search(&var) else { return };
        let effort = &mut *self.effort;
        set.retain(|&value| {
            if effort.is_spent() {
                return true;
            }
            lists[place] = vec![value];
            let mut holds = false;
            effort.evaluate(&context.trace.exprs, condition, &lists, |value| {
                holds = value != Some(0);
                !holds
            });
            holds
        });
    }

    /// The values of each variable, but for one that is given later; `None` when there are too many
    /// combinations or a variable may have any value.
    fn lists(&self, variables: &[VarId], but: Option<VarId>) -> Option<Vec<Vec<u128>>> {
        let mut combinations = 1;
        let list = |&var: &VarId| {
            if Some(var) == but {
                return Some(Vec::new());
            }
            let Values::Of(values) = self.of_variable(var) else { return None };
            combinations *= values.len();
            (combinations <= MAX_COMBINATIONS).then(|| values.iter().copied().collect())
        };
        variables.iter().map(list).collect()
    }
}

/// The values that a condition of the form `var == constant`, or `factor * var == constant`, leaves, where they are
/// few: as [`ExprPool::pinned`] leaves them.
fn equal_to(pool: &ExprPool, condition: ExprId, var: VarId) -> Option<BTreeSet<u128>> {
    let Expr::Cmp(CmpOp::Eq, a, b) = pool.get(condition) else { return None };
    let (of, value) = with_constant(pool, a, b)?;
    let is_var = |id: ExprId| matches!(pool.get(id), Expr::Var { var: other, .. } if other == var);
    if is_var(of) {
        return Some(BTreeSet::from([value]));
    }
    let Expr::Bin(BinOp::Mul, a, b) = pool.get(of) else { return None };
    let (of, factor) = with_constant(pool, a, b)?;
    let left_out = factor.trailing_zeros();
    if !is_var(of) || left_out > MOST_LEFT_OUT || left_out >= pool.width(of) {
        return None;
    }
    // What is left of the factor has an inverse, by which the number is known but for its highest bits.
    let width = pool.width(of) - left_out;
    if value.trailing_zeros() < left_out {
        return Some(BTreeSet::new());
    }
    let low = (value >> left_out).wrapping_mul(inverse(factor >> left_out)) & mask(width);
    Some((0..1u128 << left_out).map(|high| (high << width) | low).collect())
}

/// So many of a number's highest bits may be unknown.
const MOST_LEFT_OUT: u32 = 4;

/// Which of the two is no constant, and the other one's value.
fn with_constant(pool: &ExprPool, a: ExprId, b: ExprId) -> Option<(ExprId, u128)> {
    match (pool.as_const(a), pool.as_const(b)) {
        (Some(value), None) => Some((b, value)),
        (None, Some(value)) => Some((a, value)),
        _ => None,
    }
}

/// The inverse of an odd number, modulo two to the power of 128.
fn inverse(odd: u128) -> u128 {
    // Each step doubles the number of bits that are right, of which there are three at first.
    (0..6)
        .fold(odd, |inverse, _| inverse.wrapping_mul(2u128.wrapping_sub(odd.wrapping_mul(inverse))))
}

#[cfg(test)]
mod tests {
    use super::{BTreeSet, equal_to, inverse};
    use model::{BinOp, ExprPool, VarId};

    #[test]
    fn odd_numbers_have_inverses() {
        for odd in [1u128, 3, 25, 0xff, u128::MAX] {
            assert_eq!(odd.wrapping_mul(inverse(odd)), 1);
        }
    }

    #[test]
    fn a_product_leaves_few_values() {
        let mut pool = ExprPool::default();
        let var = pool.var(VarId(0), 8);
        for factor in [1u128, 3, 12, 24, 48] {
            for value in 0..256 {
                let (by, product) = (pool.constant(8, factor), pool.constant(8, value));
                let times = pool.bin(BinOp::Mul, var, by);
                let condition = pool.eq(times, product);
                let holds = |x: &u128| pool.evaluate(condition, &|_| Some(*x)) == Some(1);
                let all: BTreeSet<u128> = (0..256).filter(holds).collect();
                assert_eq!(equal_to(&pool, condition, VarId(0)), Some(all), "{factor} {value}");
            }
        }
        let by = pool.constant(8, 32);
        let times = pool.bin(BinOp::Mul, var, by);
        let condition = pool.eq(times, by);
        assert_eq!(equal_to(&pool, condition, VarId(0)), None);
    }
}
