//! Orders that follow from others, to a fixpoint: from locks, from values that only one source
//! can give, and from reads with one possible source. Everything found is a constraint of the
//! system, so that later simplifications by the closure lose nothing.

use crate::context::{Builder, Context};
use crate::locks;
use crate::read_write::{Candidate, candidates, event_of};
use crate::system::{ConstraintKind, Term};
use model::{EventId, ExprId, ReadPart, ReadRef, VarId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Each round costs about as much as encoding; what many rounds would still find is left to the
/// solver.
const MAX_ROUNDS: usize = 12;

type Edge = (EventId, EventId);

/// An order with the constraint that says it.
type Finding = (ConstraintKind, Vec<EventId>, Edge);

/// Extends the closure until nothing new follows.
pub(crate) fn saturate(context: &mut Context<'_>, builder: &mut Builder) {
    let mut values = Values::of(context);
    for _ in 0..MAX_ROUNDS {
        let mut findings = locks::forced(context);
        let progress = resolve_reads(context, &mut values, &mut findings);
        let mut edges: BTreeSet<Edge> = BTreeSet::new();
        findings.retain(|&(_, _, (a, b))| !context.closure.before(a, b) && edges.insert((a, b)));
        let edges: Vec<Edge> = findings.iter().map(|&(.., edge)| edge).collect();
        for (kind, origins, (a, b)) in findings {
            builder.add(kind, origins, Term::Before(a, b));
        }
        // A cycle means that there is no schedule; the constraints just added say so.
        if !context.closure.add(context.trace, &edges) || (edges.is_empty() && !progress) {
            return;
        }
    }
}

/// Looks at every read: excludes sources by value, and orders what a single source orders.
/// True when a source was excluded or a value became known.
fn resolve_reads(
    context: &mut Context<'_>,
    values: &mut Values,
    findings: &mut Vec<Finding>,
) -> bool {
    let trace = context.trace;
    let mut progress = false;
    for event in &trace.events {
        for (index, part) in event.kind.reads().iter().enumerate() {
            let read = ReadRef { event: event.id, part: index as u32 };
            let mut sources = candidates(context, read, *part);
            for source in sources.clone() {
                if values.contradicts(context, part.var, source.value) {
                    context.excluded.insert((read, source.source));
                    sources.retain(|other| other.source != source.source);
                    progress = true;
                }
            }
            if let [only] = sources[..] {
                progress |= values.learn(context, part.var, only.value);
                order_single(context, read, *part, only, findings);
            }
        }
    }
    progress
}

fn order_single(
    context: &Context<'_>,
    read: ReadRef,
    part: ReadPart,
    only: Candidate,
    findings: &mut Vec<Finding>,
) {
    let kind = ConstraintKind::ReadFrom;
    let source = event_of(only.source);
    if let Some(write) = source {
        findings.push((kind, vec![read.event, write], (write, read.event)));
    }
    for (_, writes) in context.writes(part.cell) {
        for other in writes.iter().map(|write| write.event) {
            if Some(other) == source || other == read.event {
                continue;
            }
            match source {
                Some(write) if context.closure.before(write, other) => {
                    let origins = vec![read.event, write, other];
                    findings.push((kind, origins, (read.event, other)));
                }
                Some(write) if context.closure.before(other, read.event) => {
                    let origins = vec![read.event, write, other];
                    findings.push((kind, origins, (other, write)));
                }
                Some(_) => {}
                None => findings.push((kind, vec![read.event, other], (read.event, other))),
            }
        }
    }
}

/// What is known about values without looking at orders.
struct Values {
    /// The path conditions that mention a variable.
    conditions: FxHashMap<VarId, Vec<ExprId>>,
    known: FxHashMap<VarId, u128>,
}

impl Values {
    fn of(context: &Context<'_>) -> Self {
        let mut conditions: FxHashMap<VarId, Vec<ExprId>> = FxHashMap::default();
        for condition in &context.trace.conditions {
            for var in context.trace.exprs.variables(condition.expr) {
                conditions.entry(var).or_default().push(condition.expr);
            }
        }
        Self { conditions, known: FxHashMap::default() }
    }

    fn value(&self, context: &Context<'_>, expr: ExprId) -> Option<u128> {
        context.trace.exprs.evaluate(expr, &|var| self.known.get(&var).copied())
    }

    /// Would a path condition be false if `var` had the value of `expr`?
    fn contradicts(&self, context: &Context<'_>, var: VarId, expr: ExprId) -> bool {
        let Some(conditions) = self.conditions.get(&var) else { return false };
        let Some(value) = self.value(context, expr) else { return false };
        let lookup =
            |other: VarId| if other == var { Some(value) } else { self.known.get(&other).copied() };
        conditions.iter().any(|&cond| context.trace.exprs.evaluate(cond, &lookup) == Some(0))
    }

    /// Notes that `var` has the value of `expr`. True when that was not known.
    fn learn(&mut self, context: &Context<'_>, var: VarId, expr: ExprId) -> bool {
        if self.known.contains_key(&var) {
            return false;
        }
        let Some(value) = self.value(context, expr) else { return false };
        self.known.insert(var, value);
        true
    }
}
