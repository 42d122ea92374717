//! From terms of the constraint system to clauses.

use super::literal::Literal;
use super::search::{Search, Unsatisfiable};
use super::values::Claim;
use encoders::{ConstraintSystem, Term};
use model::{BinOp, Expr, ExprId, ExprPool, ReadRef, WriteSource};
use rustc_hash::FxHashMap;

/// Expressions are taken to pieces down to this depth; what is below counts as one claim.
const DEEPEST: u32 = 64;

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
    pool: &'t ExprPool,
    depth: u32,
    /// The literals that imply an expression's value.
    implying: FxHashMap<(ExprId, bool), Literal>,
}

impl<'s, 't> Clauses<'s, 't> {
    pub(super) fn new(
        search: &'s mut Search<'t>,
        system: &'t ConstraintSystem,
        pool: &'t ExprPool,
        eager: usize,
    ) -> Self {
        let lazy = size(system) > eager;
        Self { search, system, lazy, pool, depth: 0, implying: FxHashMap::default() }
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

    /// The term of a 1-bit expression that joins others.
    fn connective(&self, expr: ExprId) -> Option<Term> {
        if let Some(value) = self.pool.as_const(expr) {
            return Some(if value == 0 { Term::False } else { Term::True });
        }
        if self.pool.width(expr) != 1 || self.depth >= DEEPEST {
            return None;
        }
        match self.pool.get(expr) {
            Expr::Not(a) => Some(Term::Value(a).negated()),
            Expr::Bin(BinOp::And, a, b) => Some(Term::And(vec![Term::Value(a), Term::Value(b)])),
            Expr::Bin(BinOp::Or, a, b) => Some(Term::Or(vec![Term::Value(a), Term::Value(b)])),
            _ => None,
        }
    }

    fn value(
        &mut self,
        others: &mut Vec<Literal>,
        expr: ExprId,
        value: bool,
    ) -> Result<(), Unsatisfiable> {
        let Some(term) = self.connective(expr) else { return Ok(()) };
        self.depth += 1;
        let added = self.unless(others, &term, value);
        self.depth -= 1;
        added
    }
}
