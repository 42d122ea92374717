//! Orders that change nothing: of two additions to a counter, whose sum is the same either way.

use crate::cone::{failure_reads, path_reads};
use model::{BinOp, CellId, EventId, EventKind, EventTrace, Expr, ReadRef, VarId, VariableOrigin};
use solver::Order;
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Which updates of a trace are additions that nobody looks at in between.
pub struct Commuting<'t> {
    trace: &'t EventTrace,
    /// The reads that a branch, the failure or what somebody writes depends on.
    used: OnceCell<BTreeSet<ReadRef>>,
}

impl<'t> Commuting<'t> {
    /// Of this trace.
    #[must_use]
    pub fn new(trace: &'t EventTrace) -> Self {
        Self { trace, used: OnceCell::new() }
    }

    /// Do both add to one counter, atomically, and is what each of them found there used for nothing else? That they
    /// came in this order says how far their threads were, and not what went wrong.
    #[must_use]
    pub fn has(&self, order: Order) -> bool {
        let [before, after] = [order.before, order.after].map(|id| added(self.trace, id));
        let (Some(before), Some(after)) = (before, after) else { return false };
        let unused = |id: EventId| !self.used().contains(&ReadRef { event: id, part: 0 });
        before == after && unused(order.before) && unused(order.after)
    }

    fn used(&self) -> &BTreeSet<ReadRef> {
        self.used.get_or_init(|| {
            let trace = self.trace;
            let mut used = failure_reads(trace);
            used.extend(path_reads(trace));
            let others = trace.events.iter().filter(|event| added(trace, event.id).is_none());
            let values = others.flat_map(|event| event.kind.writes()).map(|part| part.value);
            let read = |var: VarId| match trace.variables.get(var.index())?.origin {
                VariableOrigin::Read { event, part } => Some(ReadRef { event, part }),
                _ => None,
            };
            let known: BTreeSet<_> = values.collect();
            used.extend(known.into_iter().flat_map(|v| trace.exprs.variables(v)).filter_map(read));
            used
        })
    }
}

/// The counter that an event adds a constant to, in one atomic step.
fn added(trace: &EventTrace, id: EventId) -> Option<CellId> {
    let EventKind::ReadModifyWrite { reads, writes } = &trace.event(id).kind else { return None };
    let ([read], [write]) = (reads.as_slice(), writes.as_slice()) else { return None };
    let own = |id| matches!(trace.exprs.get(id), Expr::Var { var, .. } if var == read.var);
    let constant = |id| trace.exprs.as_const(id).is_some();
    let adds = match trace.exprs.get(write.value) {
        Expr::Bin(BinOp::Add, a, b) => own(a) && constant(b) || constant(a) && own(b),
        Expr::Bin(BinOp::Sub, a, b) => own(a) && constant(b),
        _ => false,
    };
    (adds && read.cell == write.cell).then_some(read.cell)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    fn commute(rest: &str) -> bool {
        let text = format!(
            "a: [one] RMW count -> x = x + 1\nb: [two] RMW count -> y = y + 2\n{rest}\n\
             b: [end] R count -> all\nb: fail all == 3"
        );
        let parsed = parse(&text).expect("the text is a trace");
        let [before, after] = ["one", "two"].map(|label| parsed.event(label));
        Commuting::new(&parsed.trace).has(Order { before, after })
    }

    #[test]
    fn two_additions_have_one_sum() {
        assert!(commute("a: W other 1"));
        assert!(!commute("a: assume x == 0"), "a ticket");
        assert!(!commute("b: W other y"), "a place that somebody takes");
    }

    #[test]
    fn what_the_last_one_leaves_hangs_on_the_order() {
        let text = "a: [one] RMW count -> x = x + 1\nb: [two] RMW count -> y = 0\na: fail 1 == 1";
        let parsed = parse(text).expect("the text is a trace");
        let [before, after] = ["one", "two"].map(|label| parsed.event(label));
        assert!(!Commuting::new(&parsed.trace).has(Order { before, after }));
    }
}
