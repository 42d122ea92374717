//! How large a constraint system is.

use crate::system::{ConstraintSystem, Term};
use model::{EventId, EventTrace, ReadRef, VarId, WriteSource};
use std::collections::BTreeSet;

/// Counts over one system, for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemSize {
    /// Constraints, φbug not counted.
    pub constraints: usize,
    /// Unknowns: order variables, value variables and choices.
    pub variables: usize,
    /// Events whose order matters to some constraint.
    pub order_variables: usize,
    /// Value variables that occur in some constraint.
    pub value_variables: usize,
    /// Reads that are constrained.
    pub reads: usize,
    /// Sources of these reads, over all of them.
    pub candidates: usize,
}

#[derive(Default)]
struct Seen {
    events: BTreeSet<EventId>,
    variables: BTreeSet<VarId>,
    sources: BTreeSet<(ReadRef, WriteSource)>,
}

impl ConstraintSystem {
    /// Counts constraints and unknowns. `trace` is the trace that was encoded.
    #[must_use]
    pub fn size(&self, trace: &EventTrace) -> SystemSize {
        let mut seen = Seen::default();
        let terms = self.constraints.iter().map(|constraint| &constraint.term);
        for term in terms.chain(&self.failure) {
            seen.visit(trace, term);
        }
        // A write between needs one order at least; which of them are needed is not counted here.
        for (read, open) in &self.open_writes {
            seen.events.insert(read.event);
            seen.events.extend(open);
        }
        let reads: BTreeSet<ReadRef> = seen.sources.iter().map(|&(read, _)| read).collect();
        SystemSize {
            constraints: self.constraints.len(),
            variables: seen.events.len() + seen.variables.len() + self.choices as usize,
            order_variables: seen.events.len(),
            value_variables: seen.variables.len(),
            reads: reads.len(),
            candidates: seen.sources.len(),
        }
    }
}

impl Seen {
    fn visit(&mut self, trace: &EventTrace, term: &Term) {
        match term {
            Term::True | Term::False | Term::Choice(_) => {}
            Term::Before(a, b) => self.events.extend([*a, *b]),
            Term::ReadsFrom(read, source) | Term::Uninterrupted(read, source) => {
                self.sources.insert((*read, *source));
            }
            Term::Value(expr) => self.variables.extend(trace.exprs.variables(*expr)),
            Term::Equal(a, b) => {
                self.variables.extend(trace.exprs.variables(*a));
                self.variables.extend(trace.exprs.variables(*b));
            }
            Term::Not(inner) => self.visit(trace, inner),
            Term::And(parts) | Term::Or(parts) => {
                parts.iter().for_each(|part| self.visit(trace, part));
            }
            Term::Implies(a, b) => {
                self.visit(trace, a);
                self.visit(trace, b);
            }
        }
    }
}
