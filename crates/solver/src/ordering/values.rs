//! Values by evaluation: once it is decided where reads take their values from, every expression
//! over them has a value.

use super::literal::{Literal, Variable};
use model::{CmpOp, EventTrace, Expr, ExprId, ExprPool, VarId};
use rustc_hash::{FxHashMap, FxHashSet};

/// A value variable of the trace that occurs in an atom.
type Slot = u32;

/// What a boolean variable says about values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Claim {
    /// A 1-bit expression is 1.
    Holds(ExprId),
    /// Two expressions are equal.
    Equal(ExprId, ExprId),
}

/// A claim, and what it hangs on.
#[derive(Debug)]
struct Atom {
    variable: Variable,
    claim: Claim,
    /// When the claim is that a value variable equals an expression: the variable. It gets the
    /// expression's value when the claim holds.
    defines: Option<Slot>,
    /// The value variables of the claim, without the one that it defines.
    support: Vec<Slot>,
    /// How many of these have no value yet.
    missing: u32,
}

/// A value variable.
#[derive(Debug, Default)]
struct Place {
    value: Option<u128>,
    /// The atom that gave it its value.
    given_by: u32,
    /// The atoms in whose support it is.
    supports: Vec<u32>,
    /// The atoms that could define it.
    defined_by: Vec<u32>,
}

/// What follows from values.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// The last literal of the clause holds; all others are false.
    Implied(Vec<Literal>),
    /// All literals of the clause are false.
    Conflict(Vec<Literal>),
}

/// The values that are known.
#[derive(Debug)]
pub(super) struct Values<'t> {
    pool: &'t ExprPool,
    atoms: Vec<Atom>,
    by_claim: FxHashMap<Claim, u32>,
    slots: FxHashMap<VarId, Slot>,
    places: Vec<Place>,
    /// The value variables that have a value, with the number of literals on the trail then.
    known: Vec<(Slot, usize)>,
    /// Atoms to look at again.
    pending: Vec<u32>,
}

impl<'t> Values<'t> {
    pub(super) fn new(trace: &'t EventTrace) -> Self {
        Self {
            pool: &trace.exprs,
            atoms: Vec::new(),
            by_claim: FxHashMap::default(),
            slots: FxHashMap::default(),
            places: Vec::new(),
            known: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// The boolean variable of a claim, if it has one already.
    pub(super) fn variable_of(&self, claim: Claim) -> Option<Variable> {
        self.by_claim.get(&claim).map(|&atom| self.atoms[atom as usize].variable)
    }

    /// Has a claim that `variable` stands for. Nothing may be known yet: claims come before the
    /// search.
    pub(super) fn add(&mut self, claim: Claim, variable: Variable) -> u32 {
        let number = self.atoms.len() as u32;
        let (defined, support) = self.parts(claim);
        let defines = defined.map(|var| self.slot(var));
        let support: Vec<Slot> = support.into_iter().map(|var| self.slot(var)).collect();
        for &slot in &support {
            self.places[slot as usize].supports.push(number);
        }
        if let Some(slot) = defines {
            self.places[slot as usize].defined_by.push(number);
        }
        let missing = support.len() as u32;
        self.atoms.push(Atom { variable, claim, defines, support, missing });
        self.by_claim.insert(claim, number);
        self.pending.push(number);
        number
    }

    fn slot(&mut self, var: VarId) -> Slot {
        let places = &mut self.places;
        *self.slots.entry(var).or_insert_with(|| {
            places.push(Place::default());
            places.len() as Slot - 1
        })
    }

    /// The variable that a claim defines, and the variables that it hangs on besides.
    fn parts(&self, claim: Claim) -> (Option<VarId>, Vec<VarId>) {
        let (a, b) = match claim {
            Claim::Equal(a, b) => (a, b),
            Claim::Holds(expr) => match self.pool.get(expr) {
                Expr::Cmp(CmpOp::Eq, a, b) => (a, b),
                _ => return (None, self.pool.variables(expr)),
            },
        };
        for (one, other) in [(a, b), (b, a)] {
            if let Expr::Var { var, .. } = self.pool.get(one) {
                let support = self.pool.variables(other);
                if !support.contains(&var) {
                    return (Some(var), support);
                }
            }
        }
        let mut support = self.pool.variables(a);
        support.extend(self.pool.variables(b));
        support.sort_unstable();
        support.dedup();
        (None, support)
    }

    /// What an atom claims.
    pub(super) fn claim(&self, atom: u32) -> Claim {
        self.atoms[atom as usize].claim
    }

    /// Is every value variable of the claim that an assigned literal makes known?
    pub(super) fn is_open(&self, atom: u32) -> bool {
        let atom = &self.atoms[atom as usize];
        atom.missing > 0
            || atom.defines.is_some_and(|slot| self.places[slot as usize].value.is_none())
    }

    /// The value variables that occur in claims.
    pub(super) fn variables(&self) -> impl Iterator<Item = VarId> + '_ {
        self.slots.keys().copied()
    }

    /// The value of a variable, where it is known.
    pub(super) fn value(&self, var: VarId) -> Option<u128> {
        self.places[*self.slots.get(&var)? as usize].value
    }

    /// The claim's literal has been assigned.
    pub(super) fn assigned(&mut self, atom: u32) {
        self.pending.push(atom);
    }

    /// Forgets what became known when more than so many literals were on the trail.
    pub(super) fn undo(&mut self, trail: usize) {
        self.pending.clear();
        while let Some(&(slot, at)) = self.known.last()
            && at > trail
        {
            self.known.pop();
            self.places[slot as usize].value = None;
            for index in 0..self.places[slot as usize].supports.len() {
                let atom = self.places[slot as usize].supports[index];
                self.atoms[atom as usize].missing += 1;
            }
        }
    }

    /// The next consequence of what is known, if there is one. `truth` gives the values of
    /// literals' variables, of which there are `trail`.
    pub(super) fn next(
        &mut self,
        truth: &impl Fn(Variable) -> Option<bool>,
        trail: usize,
    ) -> Option<Consequence> {
        while let Some(number) = self.pending.pop() {
            let atom = &self.atoms[number as usize];
            if atom.missing > 0 {
                continue;
            }
            let assigned = truth(atom.variable);
            let found = match atom.defines {
                Some(slot) if self.places[slot as usize].value.is_none() => {
                    if assigned == Some(true)
                        && let Some(value) = self.defined_value(number)
                    {
                        self.learn(slot, value, number, trail);
                    }
                    None
                }
                _ => self.evaluate(number),
            };
            let Some(holds) = found else { continue };
            if assigned == Some(holds) {
                continue;
            }
            let variable = self.atoms[number as usize].variable;
            let mut clause = self.explain(number, holds);
            clause.push(variable.literal(holds));
            return Some(match assigned {
                None => Consequence::Implied(clause),
                Some(_) => Consequence::Conflict(clause),
            });
        }
        None
    }

    fn learn(&mut self, slot: Slot, value: u128, by: u32, trail: usize) {
        let place = &mut self.places[slot as usize];
        place.value = Some(value);
        place.given_by = by;
        self.known.push((slot, trail));
        for &atom in &place.supports {
            let atom_of = &mut self.atoms[atom as usize];
            atom_of.missing -= 1;
            if atom_of.missing == 0 {
                self.pending.push(atom);
            }
        }
        self.pending.extend(&place.defined_by);
    }

    fn sides(&self, claim: Claim) -> Option<(ExprId, ExprId)> {
        match claim {
            Claim::Equal(a, b) => Some((a, b)),
            Claim::Holds(expr) => match self.pool.get(expr) {
                Expr::Cmp(CmpOp::Eq, a, b) => Some((a, b)),
                _ => None,
            },
        }
    }

    /// The value that an atom gives to the variable that it defines.
    fn defined_value(&self, number: u32) -> Option<u128> {
        let atom = &self.atoms[number as usize];
        let slot = atom.defines?;
        let (a, b) = self.sides(atom.claim)?;
        let is_slot = |expr: ExprId| match self.pool.get(expr) {
            Expr::Var { var, .. } => self.slots.get(&var) == Some(&slot),
            _ => false,
        };
        self.value_of(if is_slot(a) { b } else { a })
    }

    fn value_of(&self, expr: ExprId) -> Option<u128> {
        self.pool.evaluate(expr, &|var| self.value(var))
    }

    /// Does the claim hold?
    fn evaluate(&self, number: u32) -> Option<bool> {
        match self.atoms[number as usize].claim {
            Claim::Holds(expr) => self.value_of(expr).map(|value| value != 0),
            Claim::Equal(a, b) => Some(self.value_of(a)? == self.value_of(b)?),
        }
    }

    /// The negations of the literals from which the claim's truth follows.
    fn explain(&self, number: u32, holds: bool) -> Vec<Literal> {
        let atom = &self.atoms[number as usize];
        let mut open: Vec<Slot> = match (self.deciding(atom.claim, holds), atom.defines) {
            (Some(slots), _) => slots,
            (None, defined) => atom.support.iter().copied().chain(defined).collect(),
        };
        let mut seen: FxHashSet<Slot> = open.iter().copied().collect();
        let mut literals = FxHashSet::default();
        let mut clause = Vec::new();
        while let Some(slot) = open.pop() {
            let by = &self.atoms[self.places[slot as usize].given_by as usize];
            let literal = by.variable.literal(false);
            if literals.insert(literal) {
                clause.push(literal);
            }
            open.extend(by.support.iter().copied().filter(|&slot| seen.insert(slot)));
        }
        clause
    }

    /// Of many variables, those without whose values the claim's truth would not be known, as far
    /// as leaving them out one by one tells.
    fn deciding(&self, claim: Claim, holds: bool) -> Option<Vec<Slot>> {
        let Claim::Holds(expr) = claim else { return None };
        let variables = self.pool.variables(expr);
        if variables.len() < 2 || variables.len() > 12 {
            return None;
        }
        let mut left_out = FxHashSet::default();
        for &var in &variables {
            left_out.insert(var);
            let value = |var: VarId| if left_out.contains(&var) { None } else { self.value(var) };
            if self.pool.evaluate(expr, &value).map(|value| value != 0) != Some(holds) {
                left_out.remove(&var);
            }
        }
        if left_out.is_empty() {
            return None;
        }
        let kept = variables.iter().filter(|var| !left_out.contains(var));
        Some(kept.filter_map(|var| self.slots.get(var).copied()).collect())
    }
}
