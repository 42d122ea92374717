//! From terms of the constraint system to clauses.

use super::literal::Literal;
use super::search::{Search, Unsatisfiable};
use super::values::Claim;
use encoders::{Connective, Connectives, ConstraintSystem, Term};
use model::{ExprId, ExprPool, ReadRef, WriteSource};
use rustc_hash::FxHashMap;

/// Up to so many clauses about writes between a source and a read are there from the start, since
/// more follows from them then; more would take too much memory.
pub(super) const EAGER: usize = 1_000_000;

/// How many clauses the writes between sources and reads make.
fn size(system: &ConstraintSystem) -> usize {
    let reads = system.constraints.iter().filter_map(|constraint| uninterrupted(&constraint.term));
    reads.map(|read| system.open_writes(read).len()).fold(0, usize::saturating_add)
}

fn uninterrupted(term: &Term) -> Option<ReadRef> {
    match term {
        Term::Uninterrupted(read, _) => Some(*read),
        Term::And(parts) => parts.iter().find_map(uninterrupted),
        Term::Implies(_, then) => uninterrupted(then),
        _ => None,
    }
}

/// Takes terms to pieces.
pub(super) struct Clauses<'s, 't> {
    search: &'s mut Search<'t>,
    system: &'t ConstraintSystem,
    /// Are writes between a source and a read looked for once the rest is decided?
    lazy: bool,
    connectives: Connectives<'t>,
    /// The literals that imply an expression's value.
    implying: FxHashMap<(ExprId, bool), Literal>,
    /// The literals that hold if and only if an expression does.
    equivalent: FxHashMap<ExprId, Literal>,
}

impl<'s, 't> Clauses<'s, 't> {
    pub(super) fn new(
        search: &'s mut Search<'t>,
        system: &'t ConstraintSystem,
        pool: &'t ExprPool,
        eager: usize,
    ) -> Self {
        let lazy = size(system) > eager;
        Self {
            search,
            system,
            lazy,
            connectives: Connectives::new(pool),
            implying: FxHashMap::default(),
            equivalent: FxHashMap::default(),
        }
    }

    /// Has the term hold.
    pub(super) fn assert(&mut self, term: &Term) -> Result<(), Unsatisfiable> {
        self.unless(&mut Vec::new(), term, true)
    }

    /// A literal that holds if and only if the term does.
    pub(super) fn literal(&mut self, term: &Term) -> Result<Literal, Unsatisfiable> {
        if let Some(literal) = self.atom(term, true) {
            return Ok(literal);
        }
        let literal = self.search.auxiliary().literal(true);
        self.unless(&mut vec![!literal], term, true)?;
        self.unless(&mut vec![literal], term, false)?;
        Ok(literal)
    }

    /// Has one of the literals hold, or else the term have the value.
    fn unless(
        &mut self,
        others: &mut Vec<Literal>,
        term: &Term,
        value: bool,
    ) -> Result<(), Unsatisfiable> {
        if let Some(literal) = self.atom(term, value) {
            others.push(literal);
            let added = self.search.add_clause(others);
            others.pop();
            return added;
        }
        match (term, value) {
            (Term::True, true) | (Term::False, false) => Ok(()),
            (Term::True, false) | (Term::False, true) => self.search.add_clause(others),
            (Term::Not(inner), _) => self.unless(others, inner, !value),
            (Term::And(parts), true) => {
                parts.iter().try_for_each(|part| self.unless(others, part, true))
            }
            (Term::Or(parts), false) => {
                parts.iter().try_for_each(|part| self.unless(others, part, false))
            }
            (Term::Implies(condition, then), false) => {
                self.unless(others, condition, true)?;
                self.unless(others, then, false)
            }
            (Term::And(parts), false) => {
                let parts: Vec<(&Term, bool)> = parts.iter().map(|part| (part, false)).collect();
                self.any(others, &parts)
            }
            (Term::Or(parts), true) => {
                let parts: Vec<(&Term, bool)> = parts.iter().map(|part| (part, true)).collect();
                self.any(others, &parts)
            }
            (Term::Implies(condition, then), true) => {
                self.any(others, &[(condition, false), (then, true)])
            }
            (Term::Value(expr), _) => self.value(others, *expr, value),
            (Term::Uninterrupted(read, source), true) => self.uninterrupted(others, *read, *source),
            // No constraint says that some write does come between.
            (Term::Uninterrupted(read, source), false) => {
                let term = self.system.uninterrupted(*read, *source);
                self.unless(others, &term, false)
            }
            // These are atoms.
            (Term::Before(..) | Term::ReadsFrom(..) | Term::Choice(_) | Term::Equal(..), _) => {
                Ok(())
            }
        }
    }

    fn uninterrupted(
        &mut self,
        others: &mut Vec<Literal>,
        read: ReadRef,
        source: WriteSource,
    ) -> Result<(), Unsatisfiable> {
        let flow = self.search.add_flow(others, read, source);
        if self.lazy {
            return Ok(());
        }
        let system = self.system;
        system.open_writes(read).iter().try_for_each(|&other| {
            self.search.parted.insert((flow, other.0));
            self.unless(others, &system.outside(read, source, other), true)
        })
    }

    /// Has one of the literals hold or one of the parts have its value. The last part that is no
    /// atom stays in place of a literal of its own: its pieces become a clause each.
    fn any(
        &mut self,
        others: &mut Vec<Literal>,
        parts: &[(&Term, bool)],
    ) -> Result<(), Unsatisfiable> {
        let length = others.len();
        let mut last = None;
        for &(part, value) in parts {
            match (part, value) {
                (Term::True, true) | (Term::False, false) => {
                    others.truncate(length);
                    return Ok(());
                }
                (Term::True, false) | (Term::False, true) => continue,
                _ => {}
            }
            if let Some(literal) = self.atom(part, value) {
                others.push(literal);
            } else if let Some((earlier, its_value)) = last.replace((part, value)) {
                let literal = self.implies(earlier, its_value)?;
                others.push(literal);
            }
        }
        let added = match last {
            None => self.search.add_clause(others),
            Some((part, value)) => self.unless(others, part, value),
        };
        others.truncate(length);
        added
    }

    /// A literal from which it follows that the term has the value.
    fn implies(&mut self, term: &Term, value: bool) -> Result<Literal, Unsatisfiable> {
        let expr = match term {
            Term::Value(expr) => Some((*expr, value)),
            _ => None,
        };
        if let Some(known) = expr.and_then(|key| self.implying.get(&key)) {
            return Ok(*known);
        }
        let literal = self.search.auxiliary().literal(true);
        if let Some(key) = expr {
            self.implying.insert(key, literal);
        }
        self.unless(&mut vec![!literal], term, value)?;
        Ok(literal)
    }

    /// The literal of an atom that is to have a value; none for other terms.
    fn atom(&mut self, term: &Term, value: bool) -> Option<Literal> {
        let literal = match term {
            Term::Before(a, b) => self.search.order(a.0, b.0),
            Term::ReadsFrom(read, source) => self.search.source(*read, *source),
            Term::Choice(choice) => self.search.choice(choice.0),
            Term::Equal(a, b) => self.search.claim(Claim::Equal(*a, *b)),
            Term::Value(expr) if self.connective(*expr).is_none() => {
                self.search.claim(Claim::Holds(*expr))
            }
            Term::Not(inner) => return self.atom(inner, !value),
            _ => return None,
        };
        Some(if value { literal } else { !literal })
    }

    /// How an expression joins others; `None` for what counts as one claim.
    fn connective(&mut self, expr: ExprId) -> Option<Connective> {
        if self.system.is_determined(expr) { None } else { self.connectives.get(expr) }
    }

    /// A literal that holds if and only if the 1-bit expression does.
    fn equivalent(&mut self, expr: ExprId) -> Result<Literal, Unsatisfiable> {
        if let Some(known) = self.equivalent.get(&expr) {
            return Ok(*known);
        }
        let literal = self.literal(&Term::Value(expr))?;
        self.equivalent.insert(expr, literal);
        Ok(literal)
    }

    fn value(
        &mut self,
        others: &mut Vec<Literal>,
        expr: ExprId,
        value: bool,
    ) -> Result<(), Unsatisfiable> {
        // What joins nothing is an atom.
        let Some(connective) = self.connective(expr) else { return Ok(()) };
        let both = |a, b| Term::And(vec![Term::Value(a), Term::Value(b)]);
        let either = |a, b| Term::Or(vec![Term::Value(a), Term::Value(b)]);
        let (condition, (then, its_value), (otherwise, other_value)) = match connective {
            Connective::Constant(constant) if constant == value => return Ok(()),
            Connective::Constant(_) => return self.search.add_clause(others),
            Connective::Not(a) => return self.unless(others, &Term::Value(a), !value),
            Connective::Both(a, b) => return self.unless(others, &both(a, b), value),
            Connective::Either(a, b) => return self.unless(others, &either(a, b), value),
            Connective::Same(a, b) => (a, (b, value), (b, !value)),
            Connective::Differ(a, b) => (a, (b, !value), (b, value)),
            Connective::Choice(a, b, c) => (a, (b, value), (c, value)),
        };
        let condition = self.equivalent(condition)?;
        for (unless, expr, value) in
            [(!condition, then, its_value), (condition, otherwise, other_value)]
        {
            others.push(unless);
            let added = self.unless(others, &Term::Value(expr), value);
            others.pop();
            added?;
        }
        Ok(())
    }
}
