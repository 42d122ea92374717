//! Terms as clauses.

use super::expr::Expressions;
use super::{Formula, source_name};
use encoders::Term;
use model::EventId;
use std::cmp::Ordering;

impl Formula {
    /// Asserts a term, or its negation, under guards: conjunctions become one assertion per part,
    /// which solvers take more easily than a guarded conjunction.
    pub(super) fn assert(
        &mut self,
        expressions: &Expressions<'_>,
        guards: &[&str],
        term: &Term,
        positive: bool,
    ) {
        match (term, positive) {
            (Term::And(parts), true) | (Term::Or(parts), false) => {
                parts.iter().for_each(|part| self.assert(expressions, guards, part, positive));
            }
            (Term::Not(inner), _) => self.assert(expressions, guards, inner, !positive),
            (Term::Implies(condition, then), true) => {
                let Some(guard) = guard(condition) else {
                    return self.clause(expressions, guards, term, positive);
                };
                let guards: Vec<&str> = guards.iter().copied().chain([guard.as_str()]).collect();
                self.assert(expressions, &guards, then, true);
            }
            _ => self.clause(expressions, guards, term, positive),
        }
    }

    fn clause(
        &mut self,
        expressions: &Expressions<'_>,
        guards: &[&str],
        term: &Term,
        positive: bool,
    ) {
        let mut parts: Vec<String> = guards.iter().map(|guard| format!("(not {guard})")).collect();
        match (term, positive) {
            (Term::Or(inner), true) | (Term::And(inner), false) => {
                parts.extend(inner.iter().map(|part| literal(expressions, part, positive)));
            }
            _ => parts.push(literal(expressions, term, positive)),
        }
        let text = join("or", "false", parts);
        self.line(&format!("(assert {text})"));
        self.assertions += 1;
    }
}

/// A condition that is one boolean, as a guard.
fn guard(condition: &Term) -> Option<String> {
    match condition {
        Term::ReadsFrom(read, source) => Some(source_name(*read, *source)),
        Term::Choice(choice) => Some(choice.to_string()),
        _ => None,
    }
}

/// `a` comes before `b`: one atom for each unordered pair, see [`super`].
pub(crate) fn order(a: EventId, b: EventId) -> String {
    match a.cmp(&b) {
        Ordering::Less => format!("(< {a} {b})"),
        Ordering::Equal => "false".to_owned(),
        Ordering::Greater => format!("(not (< {b} {a}))"),
    }
}

/// A term, or its negation, in which negations stand at the leaves.
fn literal(expressions: &Expressions<'_>, term: &Term, positive: bool) -> String {
    let signed = |atom: String| if positive { atom } else { format!("(not {atom})") };
    match term {
        Term::True => positive.to_string(),
        Term::False => (!positive).to_string(),
        Term::Before(a, b) if a == b => (!positive).to_string(),
        Term::Before(a, b) if positive => order(*a, *b),
        Term::Before(a, b) => order(*b, *a),
        Term::ReadsFrom(read, source) => signed(source_name(*read, *source)),
        Term::Choice(choice) => signed(choice.to_string()),
        // Constraints are written out before they come here.
        Term::Uninterrupted(read, source) => signed(source_name(*read, *source)),
        Term::Value(expr) => signed(expressions.as_bool(*expr)),
        Term::Equal(a, b) => signed(expressions.equal(*a, *b)),
        Term::Not(inner) => literal(expressions, inner, !positive),
        Term::And(parts) => connective(expressions, parts, positive, positive),
        Term::Or(parts) => connective(expressions, parts, !positive, positive),
        Term::Implies(a, b) => {
            let parts = vec![literal(expressions, a, !positive), literal(expressions, b, positive)];
            if positive { join("or", "false", parts) } else { join("and", "true", parts) }
        }
    }
}

fn connective(
    expressions: &Expressions<'_>,
    parts: &[Term],
    conjunction: bool,
    positive: bool,
) -> String {
    let parts = parts.iter().map(|part| literal(expressions, part, positive)).collect();
    if conjunction { join("and", "true", parts) } else { join("or", "false", parts) }
}

fn join(operator: &str, empty: &str, mut parts: Vec<String>) -> String {
    match parts.len() {
        0 => empty.to_owned(),
        1 => parts.swap_remove(0),
        _ => format!("({operator} {})", parts.join(" ")),
    }
}
