//! Values that nobody logged, such that the recorded paths are gone.
//!
//! Of an input that the log says nothing of (memory of a library, say) the branches tell something all the same: the
//! recorded run had a value with which they went as they did. Taken to be 0, it may be one with which no schedule goes
//! along the recorded paths, not even the recorded one.

use crate::expr::{Expr, ExprId, mask};
use crate::ids::VarId;
use crate::trace::{EventTrace, VariableOrigin};
use std::collections::{BTreeMap, BTreeSet};

/// Of the constants in an input's conditions so many are tried, and their neighbours.
const MOST_CONSTANTS: usize = 64;
/// So many expressions below an input's conditions are looked at for constants.
const MOST_EXPRESSIONS: usize = 4096;

/// What an expression depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Nothing,
    /// One value that the log does not tell of.
    Value(VarId),
    More,
}

/// Gives inputs of which neither the log nor a read tells the value one with which the path conditions hold that depend
/// on nothing else, where 0 is none. Where none is found, nothing is said.
pub fn fit_inputs(trace: &mut EventTrace) {
    let is_open = |var: VarId| {
        let variable = trace.variables.get(var.index());
        variable.is_some_and(|it| it.origin == VariableOrigin::Input && it.recorded.is_none())
    };
    let open: Vec<bool> = (0..trace.variables.len()).map(|at| is_open(VarId(at as u32))).collect();
    let value_of = |var: VarId| open.get(var.index()).is_some_and(|open| *open).then_some(var);
    fit_values(trace, value_of, &BTreeMap::new());
}

/// The same of values that reads passed on: `value_of` gives the variable that a variable of the log's silence is equal to,
/// and `seen` what was seen of such a value where it was read.
pub fn fit_values(
    trace: &mut EventTrace,
    value_of: impl Fn(VarId) -> Option<VarId>,
    seen: &BTreeMap<VarId, BTreeSet<u128>>,
) {
    let on = |var| value_of(var).map_or(On::More, On::Value);
    let on = trace.exprs.joined(On::Nothing, on, |one, other| match (one, other) {
        (one, On::Nothing) | (On::Nothing, one) => one,
        (one, other) if one == other => one,
        _ => On::More,
    });
    let mut conditions: BTreeMap<VarId, BTreeSet<ExprId>> = BTreeMap::new();
    for condition in &trace.conditions {
        if let Some(On::Value(var)) = on.get(condition.expr.0 as usize) {
            conditions.entry(*var).or_default().insert(condition.expr);
        }
    }
    seen.keys().for_each(|var| _ = conditions.entry(*var).or_default());
    for (var, conditions) in conditions {
        let Some(width) = trace.variables.get(var.index()).map(|it| it.width) else { continue };
        let seen = seen.get(&var);
        let found = fitting(trace, width, &conditions, seen.into_iter().flatten().copied());
        if let (Some(found), Some(variable)) = (found, trace.variables.get_mut(var.index())) {
            variable.recorded = Some(found);
        }
    }
}

/// A value with which the conditions hold, one that was `seen` before any other; none where 0 does as well, or none is found.
fn fitting(
    trace: &EventTrace,
    width: u32,
    conditions: &BTreeSet<ExprId>,
    seen: impl Iterator<Item = u128>,
) -> Option<u128> {
    let is_broken =
        |expr: &ExprId, value: u128| trace.exprs.evaluate(*expr, &|_| Some(value)) != Some(1);
    let holds = |value: u128| !conditions.iter().any(|expr| is_broken(expr, value));
    if let Some(seen) = seen.into_iter().find(|value| holds(*value)) {
        return Some(seen);
    }
    if holds(0) {
        return None;
    }
    let near = |value: u128| [value, value.wrapping_add(1), value.wrapping_sub(1)];
    let constants = constants(trace, conditions);
    let values = [1, u128::MAX].into_iter().chain(constants.iter().copied().flat_map(near));
    let whole = values.map(|it| it & mask(width)).find(|value| holds(*value));
    whole.or_else(|| {
        // Of a text that is looked at byte by byte, each byte may be another constant.
        let broken = |value: u128| conditions.iter().filter(|expr| is_broken(expr, value)).count();
        let bytes: BTreeSet<u128> =
            constants.into_iter().flat_map(near).map(|it| it & 0xff).collect();
        let (mut value, mut least) = (0, broken(0));
        for low in (0..width).step_by(8) {
            for byte in &bytes {
                let changed = (value & !(0xff << low)) | (byte << low);
                let left = broken(changed);
                if left < least {
                    (value, least) = (changed, left);
                }
            }
        }
        (least == 0).then_some(value)
    })
}

/// The constants in some expressions.
fn constants(trace: &EventTrace, roots: &BTreeSet<ExprId>) -> BTreeSet<u128> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut pending: Vec<ExprId> = roots.iter().copied().collect();
    while let Some(id) = pending.pop() {
        if found.len() >= MOST_CONSTANTS || seen.len() >= MOST_EXPRESSIONS {
            break;
        }
        if seen.insert(id) {
            let expr = trace.exprs.get(id);
            if let Expr::Const { value, .. } = expr {
                found.insert(value);
            }
            expr.for_each_operand(|operand| pending.push(operand));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::CmpOp;
    use crate::ids::{ConditionId, ThreadId};
    use crate::trace::{PathCondition, PathConditionKind, Variable};

    fn variable(id: u32, origin: VariableOrigin) -> Variable {
        Variable { id: VarId(id), width: 8, origin, recorded: None }
    }

    fn assume(trace: &mut EventTrace, expr: ExprId) {
        trace.conditions.push(PathCondition {
            id: ConditionId::from_index(trace.conditions.len()),
            thread: ThreadId(0),
            position: 0,
            expr,
            kind: PathConditionKind::Branch,
            site: crate::Site::default(),
            is_beside_wait: false,
        });
    }

    #[test]
    fn an_input_has_a_value_with_which_the_branches_go_as_they_did() {
        let variables = (0..6).map(|id| variable(id, VariableOrigin::Input)).collect();
        let mut trace = EventTrace { variables, ..EventTrace::default() };
        let vars: Vec<ExprId> = (0..6).map(|id| trace.exprs.var(VarId(id), 8)).collect();
        let [zero, five, nine] = [0, 5, 9].map(|value| trace.exprs.constant(8, value));
        let is_zero = trace.exprs.eq(vars[0], zero);
        let is_not_zero = trace.exprs.not(is_zero);
        let between = [
            trace.exprs.cmp(CmpOp::ULt, five, vars[1]),
            trace.exprs.cmp(CmpOp::ULt, vars[1], nine),
        ];
        let is_small = trace.exprs.cmp(CmpOp::ULt, vars[2], five);
        let never = [trace.exprs.eq(vars[3], five), trace.exprs.eq(vars[3], nine)];
        let of_two = trace.exprs.cmp(CmpOp::ULt, vars[4], vars[5]);
        let all = [is_not_zero, is_small, of_two].into_iter().chain(between).chain(never);
        all.for_each(|expr| assume(&mut trace, expr));
        fit_inputs(&mut trace);
        let found: Vec<Option<u128>> = trace.variables.iter().map(|it| it.recorded).collect();
        assert_eq!(found, [Some(1), Some(6), None, None, None, None]);
    }
}
