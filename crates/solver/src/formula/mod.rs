//! The formula: what every back end solves, as SMT-LIB 2 text.
//!
//! One text for all back ends, so that what `--dump-smt` shows is what was solved. Its names are
//! the identifiers: `e12` is the place of event e12 in the schedule (an integer), `x3` the value
//! of variable x3 (a bit-vector), `v7` a shared expression, `b2` a choice, `rf_e12_0_e5` "part 0
//! of the read e12 takes its value from e5", and `goal_fail` and `goal_pass` guard φbug and its
//! negation.
//!
//! The order of two events is one atom, the comparison of the one with the smaller identifier
//! with the other, and its negation: solvers decide twice as many atoms otherwise. The negation
//! admits equal places, so equal places stand for the order of decreasing identifiers. That is
//! consistent: a comparison that holds separates its places, and program order, in which
//! identifiers increase, is made of such comparisons alone. No constraint says that places are
//! distinct.

mod expr;
mod float;
mod term;

pub(crate) use term::order;

use crate::session::{Goal, SolverError};
use encoders::{ConstraintSystem, Term};
use expr::Expressions;
use model::{EventId, EventTrace, ReadRef, VarId, WriteSource};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The text of a constraint system with both goals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Formula {
    /// Declarations, definitions and assertions.
    pub(crate) text: String,
    /// How many assertions the text has.
    pub(crate) assertions: usize,
    /// The variables that the text declares, in identifier order, with their widths.
    pub(crate) variables: Vec<(VarId, u32)>,
    /// Is there a φbug?
    pub(crate) has_failure: bool,
}

/// What a system mentions.
#[derive(Default)]
struct Mentioned {
    sources: BTreeSet<(ReadRef, WriteSource)>,
    expressions: Vec<model::ExprId>,
}

impl Mentioned {
    fn visit(&mut self, term: &Term) {
        match term {
            Term::True | Term::False | Term::Choice(_) | Term::Before(..) => {}
            Term::Uninterrupted(..) => {}
            Term::ReadsFrom(read, source) => {
                self.sources.insert((*read, *source));
            }
            Term::Value(expr) => self.expressions.push(*expr),
            Term::Equal(a, b) => self.expressions.extend([*a, *b]),
            Term::Not(inner) => self.visit(inner),
            Term::And(parts) | Term::Or(parts) => parts.iter().for_each(|part| self.visit(part)),
            Term::Implies(a, b) => {
                self.visit(a);
                self.visit(b);
            }
        }
    }
}

impl Formula {
    /// Prints the system of a trace.
    pub(crate) fn of(trace: &EventTrace, system: &ConstraintSystem) -> Result<Self, SolverError> {
        Ok(Self::within(trace, system, usize::MAX)?.unwrap_or_default())
    }

    /// The same, `None` where the text would have more than so many bytes.
    pub(crate) fn within(
        trace: &EventTrace,
        system: &ConstraintSystem,
        most: usize,
    ) -> Result<Option<Self>, SolverError> {
        let mut mentioned = Mentioned::default();
        let terms = system.constraints.iter().map(|constraint| &constraint.term);
        terms.chain(&system.failure).for_each(|term| mentioned.visit(term));

        let mut formula = Self { has_failure: system.failure.is_some(), ..Self::default() };
        formula.declare(trace, system, &mentioned);
        let expressions = Expressions::define(trace, &mentioned.expressions, &mut formula)?;
        for constraint in system.written_out() {
            if formula.text.len() > most {
                return Ok(None);
            }
            formula.comment(&constraint);
            formula.assert(&expressions, &[], &constraint.term, true);
        }
        if let Some(failure) = &system.failure {
            formula.line("; failure");
            formula.assert(&expressions, &[goal_name(Goal::Fail)], failure, true);
            formula.assert(&expressions, &[goal_name(Goal::Pass)], failure, false);
        }
        Ok((formula.text.len() <= most).then_some(formula))
    }

    fn declare(&mut self, trace: &EventTrace, system: &ConstraintSystem, mentioned: &Mentioned) {
        for event in &trace.events {
            self.line(&format!("(declare-fun {} () Int)", event.id));
        }
        for choice in 0..system.choices {
            self.line(&format!("(declare-fun {} () Bool)", encoders::ChoiceId(choice)));
        }
        for &(read, source) in &mentioned.sources {
            self.line(&format!("(declare-fun {} () Bool)", source_name(read, source)));
        }
        for goal in [Goal::Fail, Goal::Pass] {
            self.line(&format!("(declare-fun {} () Bool)", goal_name(goal)));
        }
    }

    fn comment(&mut self, constraint: &encoders::Constraint) {
        let origins: Vec<_> = constraint.origins.iter().map(ToString::to_string).collect();
        let (id, kind) = (constraint.id, constraint.kind);
        self.line(&format!("; {id} {kind} [{}]", origins.join(" ")));
    }

    fn line(&mut self, text: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{text}");
    }
}

/// The literal that guards a goal.
pub(crate) fn goal_name(goal: Goal) -> &'static str {
    match goal {
        Goal::Fail => "goal_fail",
        Goal::Pass => "goal_pass",
        Goal::Any => "true",
    }
}

/// The boolean "the read takes its value from the source".
fn source_name(read: ReadRef, source: WriteSource) -> String {
    match source {
        WriteSource::Init => format!("rf_{}_{}_init", read.event, read.part),
        WriteSource::Write(event) => format!("rf_{}_{}_{event}", read.event, read.part),
    }
}

/// The literal that stands for an assumed order.
pub(crate) fn order_name(before: EventId, after: EventId) -> String {
    format!("o_{before}_{after}")
}

/// The formula with one goal asserted, as a complete SMT-LIB 2 script. Deterministic.
///
/// # Errors
/// When an expression cannot be expressed in SMT-LIB.
pub fn dump_smtlib(
    trace: &EventTrace,
    system: &ConstraintSystem,
    goal: Goal,
) -> Result<String, SolverError> {
    let formula = Formula::of(trace, system)?;
    let mut script = String::from("(set-option :produce-models true)\n(set-logic ALL)\n");
    script.push_str(&formula.text);
    if goal != Goal::Any {
        script.push_str(&format!("(assert {})\n", goal_name(goal)));
    }
    script.push_str("(check-sat)\n(get-model)\n");
    Ok(script)
}
