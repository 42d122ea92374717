//! The constraint system: solver-independent, each constraint with its kind and origin events.

use crate::closure::Closure;
use model::{ConditionId, EventId, ExprId, ReadRef, WriteSource};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
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
    /// The recorded run's clock: no part of Φfail, but of the failing schedule's that is to be like
    /// the recorded run.
    Clock,
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
    /// the read (reads that matter to such conditions alone need no φrw besides), and that no update is
    /// lost where a condition says that a counter is complete.
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
    /// No other write of the cell comes between the source and the read: each comes before the
    /// source or after the read. [`ConstraintSystem::uninterrupted`] writes it out; written out for
    /// all reads of a contended cell it grows with the third power of the accesses.
    Uninterrupted(ReadRef, WriteSource),
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
    /// By constrained read: the writes of its cell that may be its source or come between.
    pub(crate) open_writes: FxHashMap<ReadRef, Vec<EventId>>,
    /// By event, about when it happened; empty when that is not known.
    pub(crate) moments: Vec<u64>,
    /// The orders that hold in every schedule, as far as they are known.
    pub(crate) closure: Closure,
    /// See [`is_determined`](Self::is_determined).
    pub(crate) determined: FxHashSet<ExprId>,
}

impl ConstraintSystem {
    /// The writes of a constrained read's cell that some schedule may put between another one and
    /// the read, the read's own event included where it writes the cell.
    #[must_use]
    pub fn open_writes(&self, read: ReadRef) -> &[EventId] {
        self.open_writes.get(&read).map_or(&[], Vec::as_slice)
    }

    /// By event, about when it happened in the recorded run, in ticks of its clock; empty when that
    /// is not known. A hint at which order to try first.
    #[must_use]
    pub fn moments(&self) -> &[u64] {
        &self.moments
    }

    /// Does `a` come before `b` in every schedule of the system, as far as is known without search?
    #[must_use]
    pub fn surely_before(&self, a: EventId, b: EventId) -> bool {
        self.closure.before(a, b)
    }

    /// Is the expression a condition whose truth follows from the order of events alone, by constraints
    /// about [counters](ConstraintKind::Counter)? The reads that it depends on need not be
    /// constrained, so that it may have no value. It has 1 bit.
    #[must_use]
    pub fn is_determined(&self, condition: ExprId) -> bool {
        self.determined.contains(&condition)
    }

    /// What must hold of one other write of a read's cell for the read to see `source`: it comes
    /// before the source or after the read.
    #[must_use]
    pub fn outside(&self, read: ReadRef, source: WriteSource, other: EventId) -> Term {
        let before = |a: EventId, b: EventId| {
            if self.closure.before(a, b) {
                Term::True
            } else if self.closure.before(b, a) {
                Term::False
            } else {
                Term::Before(a, b)
            }
        };
        match source {
            WriteSource::Write(event) if event == other => Term::True,
            _ if other == read.event => Term::True,
            WriteSource::Write(event) => {
                Term::any([before(other, event), before(read.event, other)])
            }
            WriteSource::Init => before(read.event, other),
        }
    }

    /// [`Term::Uninterrupted`] written out.
    #[must_use]
    pub fn uninterrupted(&self, read: ReadRef, source: WriteSource) -> Term {
        Term::all(self.open_writes(read).iter().map(|&other| self.outside(read, source, other)))
    }

    /// All constraints with their terms written out, one after the other.
    pub fn written_out(&self) -> impl Iterator<Item = Cow<'_, Constraint>> {
        self.constraints.iter().map(|constraint| match self.write_out(&constraint.term) {
            None => Cow::Borrowed(constraint),
            Some(term) => Cow::Owned(Constraint {
                id: constraint.id,
                kind: constraint.kind,
                origins: constraint.origins.clone(),
                term,
            }),
        })
    }

    /// The term written out; `None` when it is already.
    fn write_out(&self, term: &Term) -> Option<Term> {
        match term {
            Term::Uninterrupted(read, source) => Some(self.uninterrupted(*read, *source)),
            Term::And(parts) if parts.iter().any(|part| self.write_out(part).is_some()) => {
                let parts = parts.iter();
                let full = parts.map(|part| self.write_out(part).unwrap_or_else(|| part.clone()));
                Some(Term::all(full))
            }
            Term::Implies(condition, then) => {
                let then = self.write_out(then)?;
                Some(condition.as_ref().clone().implies(then))
            }
            _ => None,
        }
    }

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
