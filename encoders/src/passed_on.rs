//! What nobody logged, and another thread looked at.
//!
//! A text that a library made, say, goes through a queue, and whoever takes it out branches on its bytes. The log has the
//! branches alone. Taken to be 0, such a value is one with which no schedule goes along the recorded paths. About when
//! each event happened, the clock tells: who read most likely saw what was written last before.

use crate::clock::moments;
use model::{EventTrace, Expr, VarId, VariableOrigin};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// Gives what neither the log nor a read tells a value with which those branches go as they did that depend on it, where it
/// was read along the recorded run, as far as the clock tells. A guess: whoever finds a schedule by it checks that.
pub fn fit_passed_on(trace: &mut EventTrace) {
    let is_open = |var: VarId| {
        let variable = trace.variables.get(var.index());
        variable.is_some_and(|it| {
            it.recorded.is_none() && !matches!(it.origin, VariableOrigin::Read { .. })
        })
    };
    let is_input = |at: u32| {
        let var = VarId(at);
        is_open(var) && trace.variables[var.index()].origin == VariableOrigin::Input
    };
    if trace.intervals.is_empty() || !(0..trace.variables.len() as u32).any(is_input) {
        return;
    }
    let moments = moments(trace);
    let mut order: Vec<usize> = (0..trace.events.len()).collect();
    order.sort_by_key(|&at| (moments.get(at).copied().unwrap_or(0), at));
    let mut value_of: FxHashMap<VarId, VarId> = FxHashMap::default();
    let mut seen: BTreeMap<VarId, BTreeSet<u128>> = BTreeMap::new();
    // By cell, the value of which nothing is known that stands there.
    let mut held: FxHashMap<u32, VarId> = FxHashMap::default();
    for event in order.into_iter().filter_map(|at| trace.events.get(at)) {
        for read in event.kind.reads() {
            let Some(&value) = held.get(&read.cell.0) else { continue };
            let Some(variable) = trace.variables.get(read.var.index()) else { continue };
            if trace.variables.get(value.index()).is_none_or(|of| of.width != variable.width) {
                continue;
            }
            match variable.recorded {
                Some(recorded) => _ = seen.entry(value).or_default().insert(recorded),
                None => _ = value_of.insert(read.var, value),
            }
        }
        for write in event.kind.writes() {
            let value = match trace.exprs.get(write.value) {
                Expr::Var { var, .. } if is_open(var) => Some(var),
                Expr::Var { var, .. } => value_of.get(&var).copied(),
                _ => None,
            };
            match value {
                Some(value) => _ = held.insert(write.cell.0, value),
                None => _ = held.remove(&write.cell.0),
            }
        }
    }
    let passed: BTreeSet<VarId> = value_of.values().chain(seen.keys()).copied().collect();
    if passed.is_empty() {
        return;
    }
    let value_of =
        |var: VarId| value_of.get(&var).copied().or_else(|| passed.contains(&var).then_some(var));
    model::fit_values(trace, value_of, &seen);
}

#[cfg(test)]
mod tests {
    use super::fit_passed_on;
    use crate::dsl::parse;
    use model::{Interval, VariableOrigin};

    /// What a producer wrote of which nothing is known goes through two cells; whoever reads it branches on its bytes.
    #[test]
    fn what_was_branched_on_elsewhere_is_a_value_with_which_the_branches_go_as_they_did() {
        let text = "cell x 16 = 0\ncell y 16 = 0\ninput i 16\ninput j 16\n\
            a: W x i\na: W x j\n\
            b: R x -> v\nb: assume v == 31809\nb: W y v\n\
            c: R y -> w\nc: assume w > 31000\n";
        let mut trace = parse(text).expect("the text is a trace").trace;
        trace.variables.iter_mut().for_each(|variable| variable.recorded = None);
        let inputs = |trace: &model::EventTrace| -> Vec<Option<u128>> {
            let all = trace.variables.iter();
            let inputs = all.filter(|it| it.origin == VariableOrigin::Input);
            inputs.map(|it| it.recorded).collect()
        };
        fit_passed_on(&mut trace);
        assert_eq!(inputs(&trace), [None, None], "nothing tells which of them was read");
        let at = |at: u64| Interval { earliest: 10 * at, latest: 10 * at + 5 };
        trace.intervals = (0..trace.events.len() as u64).map(at).collect();
        fit_passed_on(&mut trace);
        assert_eq!(inputs(&trace), [None, Some(31809)]);
    }
}
