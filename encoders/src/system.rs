//! The constraint system: solver-independent, each constraint with its kind and origin events.

use model::{ConditionId, EventId, ExprId, ReadRef, WriteSource};
use std::fmt;

/// A constraint of a [`ConstraintSystem`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConstraintId(pub u32);

impl fmt::Display for ConstraintId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl fmt::Debug for ConstraintId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which part of Φfail a constraint belongs to ([S] 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConstraintKind {
    /// φpath: a recorded branch, address or call target.
    Path(ConditionId),
    /// φmo: program order.
    ProgramOrder,
    /// φsync: fork/start and exit/join.
    ForkJoin,
    /// φsync: mutual exclusion.
    Lock,
    /// φsync: failed trylocks.
    TryLock,
    /// φsync: condition waits and their signals.
    Condition,
    /// φsync: semaphores.
    Semaphore,
    /// φsync: barriers.
    Barrier,
    /// φrw: a read takes its value from one source.
    ReadFrom,
    /// Lemmas that φpath ∧ φsync ∧ φrw ∧ φmo imply, so that they cut no schedule off and a core over
    /// orders stays a core: the truth of a condition on counters, given which additions come before
    /// the read. Reads that matter to such conditions alone need no φrw besides.
    Counter,
    /// Allocation before use, use before free.
    Lifetime,
    /// No part of Φfail: a schedule that the real program did not follow is not to be found again.
    Rejected,
}

/// A boolean term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// Always true.
    True,
    /// Never true.
    False,
    /// The first event comes before the second. Orders are total and strict over events.
    Before(EventId, EventId),
    /// The read takes its value from this source.
    ReadsFrom(ReadRef, WriteSource),
    /// A choice that a constraint introduces, such as "this signal wakes this wait". Chosen
    /// freely where nothing else constrains it.
    Choice(ChoiceId),
    /// A 1-bit expression is 1.
    Value(ExprId),
    /// Two expressions of one width are equal.
    Equal(ExprId, ExprId),
    /// Negation.
    Not(Box<Term>),
    /// Conjunction; the empty one is true.
    And(Vec<Term>),
    /// Disjunction; the empty one is false.
    Or(Vec<Term>),
    /// Implication.
    Implies(Box<Term>, Box<Term>),
}

impl Term {
    /// The conjunction of `terms`, without the trivial ones.
    #[must_use]
    pub fn all(terms: impl IntoIterator<Item = Term>) -> Self {
        let mut kept = Vec::new();
        for term in terms {
            match term {
                Self::True => {}
                Self::False => return Self::False,
                Self::And(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::True,
            1 => kept.swap_remove(0),
            _ => Self::And(kept),
        }
    }

    /// The disjunction of `terms`, without the trivial ones.
    #[must_use]
    pub fn any(terms: impl IntoIterator<Item = Term>) -> Self {
        let mut kept = Vec::new();
        for term in terms {
            match term {
                Self::False => {}
                Self::True => return Self::True,
                Self::Or(inner) => kept.extend(inner),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::False,
            1 => kept.swap_remove(0),
            _ => Self::Or(kept),
        }
    }

    /// The negation.
    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// `self` implies `then`.
    #[must_use]
    pub fn implies(self, then: Term) -> Self {
        match (self, then) {
            (Self::True, then) => then,
            (Self::False, _) | (_, Self::True) => Self::True,
            (condition, Self::False) => condition.negated(),
            (condition, then) => Self::Implies(Box::new(condition), Box::new(then)),
        }
    }
}

/// A boolean introduced by an encoder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChoiceId(pub u32);

impl fmt::Display for ChoiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

impl fmt::Debug for ChoiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The identifier, equal to the index in the system.
    pub id: ConstraintId,
    /// Which part of the formula it is.
    pub kind: ConstraintKind,
    /// The events it comes from.
    pub origins: Vec<EventId>,
    /// What must hold.
    pub term: Term,
}

/// φpath ∧ φsync ∧ φrw ∧ φmo of one event trace, and φbug apart from it, so that it can be
/// asserted or negated. Expressions are of the trace's pool.
#[derive(Clone, Debug, Default)]
pub struct ConstraintSystem {
    /// The constraints that always hold.
    pub constraints: Vec<Constraint>,
    /// φbug.
    pub failure: Option<Term>,
    /// How many [`Term::Choice`] booleans there are.
    pub choices: u32,
}

impl ConstraintSystem {
    /// Forbids these orders to hold all at once; nothing can satisfy the system when there are
    /// none.
    pub fn reject(&mut self, orders: &[(EventId, EventId)]) {
        let id = ConstraintId(u32::try_from(self.constraints.len()).unwrap_or(u32::MAX));
        let mut origins: Vec<EventId> = orders.iter().flat_map(|(a, b)| [*a, *b]).collect();
        origins.sort_unstable();
        origins.dedup();
        let term = Term::any(orders.iter().map(|(before, after)| Term::Before(*after, *before)));
        self.constraints.push(Constraint { id, kind: ConstraintKind::Rejected, origins, term });
    }
}
