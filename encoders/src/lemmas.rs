//! Facts about counters that the other constraints imply, but that a solver finds by trying the
//! orders of all additions: the truth of conditions on a counter's value, from how many of its
//! additions come before the read.

use crate::connectives::{Connective, Connectives};
use crate::context::{Builder, Context};
use crate::counters::{Counters, Sum};
use crate::system::{ConstraintKind, Term};
use model::expr::{Compiled, Scratch, mask};
use model::{EventId, Expr, ExprId, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Conditions on more variables are left to the solver.
const MAX_VARIABLES: usize = 4;
/// Counters that can have more values at a read are not tried out.
const MAX_VALUES: usize = 1_024;
/// For more combinations of "so many of this thread's additions come first" there are no
/// constraints.
const MAX_COMBINATIONS: usize = 512;
/// A constraint over more writes names the reads alone as its origins: each of many conditions in
/// a loop would list all of the loop's writes.
const MAX_ORIGINS: usize = 128;

/// What the lemmas determine on their own: on these nothing else needs to depend, where only their
/// truth is asked for.
#[derive(Default)]
pub(crate) struct Resolved {
    /// Conditions whose truth follows from the order of events.
    pub(crate) conditions: FxHashSet<ExprId>,
}

/// What is asked of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    /// Whether it holds, which its pieces tell ([`Connectives`]).
    Truth,
    /// Its value.
    Value,
}

impl Resolved {
    /// The variables whose values are needed to know what is asked of an expression, apart from what is
    /// in `seen`, where all that was looked at is added. Where truth is asked for, conditions that are
    /// determined need none.
    pub(crate) fn open_variables(
        &self,
        connectives: &mut Connectives<'_>,
        context: &Context<'_>,
        asked: (ExprId, Asked),
        seen: &mut FxHashSet<(ExprId, Asked)>,
    ) -> BTreeSet<VarId> {
        let mut found = BTreeSet::new();
        let mut pending = vec![asked];
        while let Some((id, asked)) = pending.pop() {
            let truth = asked == Asked::Truth;
            if (truth && self.conditions.contains(&id))
                || seen.contains(&(id, Asked::Value))
                || !seen.insert((id, asked))
            {
                continue;
            }
            if truth && let Some(connective) = connectives.get(id) {
                pending.extend(connective.operands().map(|operand| (operand, Asked::Truth)));
                continue;
            }
            let expr = context.trace.exprs.get(id);
            if let Expr::Var { var, .. } = expr {
                found.insert(var);
            }
            expr.for_each_operand(|operand| pending.push((operand, Asked::Value)));
        }
        found
    }
}

/// Constrains the conditions in `roots` that depend on counters alone, and the pieces of the others
/// that do.
pub(crate) fn encode(context: &Context<'_>, builder: &mut Builder, roots: &[ExprId]) -> Resolved {
    let mut lemmas =
        Lemmas { context, counters: Counters::default(), resolved: Resolved::default() };
    let supports = lemmas.supports(roots);
    let mut connectives = Connectives::new(&context.trace.exprs);
    let mut seen = FxHashSet::default();
    let mut pending: Vec<ExprId> = roots.iter().rev().copied().collect();
    while let Some(id) = pending.pop() {
        if context.is_over() {
            break;
        }
        if context.trace.exprs.width(id) != 1 || !seen.insert(id) {
            continue;
        }
        if let Some(Some(support)) = supports.get(&id)
            && lemmas.condition(builder, id, support)
        {
            lemmas.resolved.conditions.insert(id);
            continue;
        }
        pending.extend(connectives.get(id).into_iter().flat_map(Connective::operands));
    }
    lemmas.resolved
}

/// The variables of every expression below some roots, where all are counters' values and few.
type Supports = FxHashMap<ExprId, Option<Vec<VarId>>>;

struct Lemmas<'a, 't> {
    context: &'a Context<'t>,
    counters: Counters,
    resolved: Resolved,
}

impl Lemmas<'_, '_> {
    fn supports(&mut self, roots: &[ExprId]) -> Supports {
        let pool = &self.context.trace.exprs;
        let mut below = BTreeSet::new();
        let mut pending = roots.to_vec();
        while let Some(id) = pending.pop() {
            if below.insert(id) {
                pool.get(id).for_each_operand(|operand| pending.push(operand));
            }
        }
        let mut supports = Supports::default();
        // Operands have smaller identifiers than what they stand in.
        for id in below {
            let support = self.support(&supports, pool.get(id));
            supports.insert(id, support);
        }
        supports
    }

    fn support(&mut self, supports: &Supports, expr: Expr) -> Option<Vec<VarId>> {
        if let Expr::Var { var, .. } = expr {
            return self.counters.sum(self.context, var).map(|_| vec![var]);
        }
        let mut union = BTreeSet::new();
        let mut known = true;
        expr.for_each_operand(|operand| match supports.get(&operand) {
            Some(Some(variables)) => union.extend(variables.iter().copied()),
            _ => known = false,
        });
        (known && union.len() <= MAX_VARIABLES).then(|| union.into_iter().collect())
    }

    /// Constrains a condition; false when nothing determines it.
    fn condition(&mut self, builder: &mut Builder, id: ExprId, support: &[VarId]) -> bool {
        let mut fixed = Vec::new();
        let mut open = None;
        let (mut origins, mut writes) = (BTreeSet::new(), BTreeSet::new());
        let mut adds = false;
        for &var in support {
            let Some(sum) = self.counters.sum(self.context, var) else { return false };
            adds |= sum.adds;
            origins.insert(sum.read);
            let additions = sum.open.iter().flatten().map(|(event, _)| event);
            writes.extend(sum.sure.iter().chain(additions).copied());
            if sum.open.is_empty() {
                fixed.push((var, sum.base));
            } else if open.replace((var, sum.clone())).is_some() {
                return false;
            }
        }
        if !adds {
            return false;
        }
        if writes.len() <= MAX_ORIGINS {
            origins.extend(writes);
        }
        let compiled = self.context.trace.exprs.compile(id);
        let scratch = RefCell::default();
        let condition = Condition { context: self.context, id, compiled, scratch, fixed, origins };
        match open {
            None => condition.always(builder, [None]),
            Some((var, sum)) => condition.of_sum(builder, var, &sum),
        }
    }
}

/// A condition on counters' values, all but one of which are known.
struct Condition<'a, 't> {
    context: &'a Context<'t>,
    id: ExprId,
    compiled: Compiled,
    scratch: RefCell<Scratch>,
    fixed: Vec<(VarId, u128)>,
    origins: BTreeSet<EventId>,
}

impl Condition<'_, '_> {
    fn holds(&self, open: Option<(VarId, u128)>) -> Option<bool> {
        let lookup = |place: usize| {
            let var = *self.compiled.variables().get(place)?;
            let values = self.fixed.iter().chain(open.as_ref());
            values.copied().find(|&(other, _)| other == var).map(|(_, value)| value)
        };
        let pool = &self.context.trace.exprs;
        let scratch = &mut self.scratch.borrow_mut();
        self.compiled.evaluate(pool, scratch, &lookup).map(|value| value != 0)
    }

    fn term(&self, holds: bool) -> Term {
        if holds { Term::Value(self.id) } else { Term::Value(self.id).negated() }
    }

    /// Constrains the condition when it is the same for all values of the open variable.
    fn always(
        &self,
        builder: &mut Builder,
        values: impl IntoIterator<Item = Option<(VarId, u128)>>,
    ) -> bool {
        let mut values = values.into_iter().map(|value| self.holds(value));
        let Some(Some(first)) = values.next() else { return false };
        if !values.all(|holds| holds == Some(first)) {
            return false;
        }
        builder.add(ConstraintKind::Counter, self.origins.iter().copied(), self.term(first));
        true
    }

    /// Constrains the condition by how many additions come before the read of the open variable.
    fn of_sum(&self, builder: &mut Builder, var: VarId, sum: &Sum) -> bool {
        let values = values(sum);
        if values.is_some_and(|values| {
            self.always(builder, values.into_iter().map(|value| Some((var, value))))
        }) {
            return true;
        }
        let combinations =
            sum.open.iter().try_fold(1usize, |all, thread| all.checked_mul(thread.len() + 1));
        if combinations.is_none_or(|all| all > MAX_COMBINATIONS) {
            return false;
        }
        // The longest thread last, since its runs of equal truth share a constraint.
        let mut threads: Vec<&[(EventId, u128)]> = sum.open.iter().map(Vec::as_slice).collect();
        threads.sort_by_key(|thread| thread.len());
        let Some(last) = threads.pop() else { return false };
        let mut terms = Vec::new();
        for (otherwise, base) in starts(self.context, sum, &threads) {
            let Some(runs) = self.runs(var, sum, base, last) else { return false };
            for (from, to, holds) in runs {
                let other = outside(self.context, sum.read, last, from, to);
                let parts = otherwise.iter().cloned().chain(other).chain([self.term(holds)]);
                terms.push(Term::any(parts));
            }
        }
        for term in terms {
            builder.add(ConstraintKind::Counter, self.origins.iter().copied(), term);
        }
        true
    }

    /// The condition's truth by how many of a thread's additions come first, as runs.
    fn runs(
        &self,
        var: VarId,
        sum: &Sum,
        base: u128,
        thread: &[(EventId, u128)],
    ) -> Option<Vec<(usize, usize, bool)>> {
        let mut runs: Vec<(usize, usize, bool)> = Vec::new();
        for (count, value) in prefixes(base, sum.width, thread).enumerate() {
            let holds = self.holds(Some((var, value)))?;
            match runs.last_mut() {
                Some((_, to, before)) if *before == holds => *to = count,
                _ => runs.push((count, count, holds)),
            }
        }
        Some(runs)
    }
}

/// All values that a sum can have, unless they are too many.
fn values(sum: &Sum) -> Option<BTreeSet<u128>> {
    let mut values = BTreeSet::from([sum.base]);
    for thread in &sum.open {
        let mut next = BTreeSet::new();
        for base in values {
            next.extend(prefixes(base, sum.width, thread));
            if next.len() > MAX_VALUES {
                return None;
            }
        }
        values = next;
    }
    Some(values)
}

/// `base` plus the first additions of a thread: none of them, one, and so on.
fn prefixes(
    base: u128,
    width: u32,
    thread: &[(EventId, u128)],
) -> impl Iterator<Item = u128> + use<'_> {
    let sums = thread.iter().scan(base, move |sum, &(_, constant)| {
        *sum = sum.wrapping_add(constant) & mask(width);
        Some(*sum)
    });
    std::iter::once(base).chain(sums)
}

/// Every combination of how many additions of each thread come before the read: the terms one of
/// which holds in all other combinations, and the sum.
fn starts(
    context: &Context<'_>,
    sum: &Sum,
    threads: &[&[(EventId, u128)]],
) -> Vec<(Vec<Term>, u128)> {
    let mut starts = vec![(Vec::new(), sum.base)];
    for thread in threads {
        let mut next = Vec::new();
        for (otherwise, base) in starts {
            for (count, value) in prefixes(base, sum.width, thread).enumerate() {
                let mut otherwise: Vec<Term> = otherwise.clone();
                otherwise.extend(outside(context, sum.read, thread, count, count));
                next.push((otherwise, value));
            }
        }
        starts = next;
    }
    starts
}

/// The terms one of which holds unless at least `from` and at most `to` of the thread's additions
/// come before the read.
fn outside(
    context: &Context<'_>,
    read: EventId,
    thread: &[(EventId, u128)],
    from: usize,
    to: usize,
) -> impl Iterator<Item = Term> {
    let fewer = from.checked_sub(1).and_then(|index| thread.get(index));
    let more = thread.get(to);
    let fewer = fewer.map(|&(last, _)| context.before(read, last));
    let more = more.map(|&(next, _)| context.before(next, read));
    fewer.into_iter().chain(more)
}
