//! What is decided next.
//!
//! There are two ways to go about it, which take turns, since each was seen to find soon what the other
//! had not found when it was given up. One decides what took part in the latest conflicts, as solvers do. The
//! other goes through the reads in the order of the recorded run as far as it is known: conflicts
//! are then between events near each other in time, however long the run was, and what was settled
//! of its beginning stays. Both learn clauses, and keep what the other has learned.

use super::{ClauseId, Kind, Literal, Search, Variable};

/// What the search does next.
pub(in super::super) enum Decision {
    Literal(Literal),
    /// The assumption holds already.
    Held,
    /// The assumption does not hold.
    Contradicts(Literal),
    /// Clauses were added: there are conclusions to be drawn first.
    Again,
    /// The clauses contradict each other.
    Broken,
    /// There is nothing left to decide.
    Nothing,
}

/// So many conflicts the first turn takes; each pair of turns takes twice as many as the one before.
const TURN: u64 = 2_000;
/// For every so many reads a turn in the order of the run takes once more: the other way loses its
/// place in a long run.
const READS: u64 = 50;

/// Whose turn it is.
#[derive(Debug)]
pub(super) struct Turn {
    /// Do reads come in the order of the recorded run?
    pub(super) in_order: bool,
    /// How many reads there are; 0 where no more than their program order is known of the run.
    pub(super) reads: u64,
    /// How many conflicts the first one takes.
    first: u64,
    /// How many conflicts it is long, and how many there have been in it, or, where reads come in
    /// order, since the search was further in the run than ever before in the turn.
    length: u64,
    conflicts: u64,
}

impl Default for Turn {
    fn default() -> Self {
        Self::of(TURN)
    }
}

impl Turn {
    /// The first turn takes so many conflicts.
    fn of(conflicts: u64) -> Self {
        Self { in_order: true, reads: 0, first: conflicts, length: conflicts, conflicts: 0 }
    }

    /// Begins anew with the first turn.
    pub(super) fn begin(&mut self) {
        *self = Self::of(self.first);
    }

    /// There has been a conflict.
    pub(super) fn count(&mut self) {
        self.conflicts += 1;
    }

    /// The search was never so far.
    pub(super) fn goes_well(&mut self) {
        self.conflicts = 0;
    }

    /// Ends the turn when it is over; says whether it was.
    pub(super) fn pass(&mut self) -> bool {
        let times = if self.in_order { 1 + self.reads / READS } else { 1 };
        if self.conflicts < self.length.saturating_mul(times) {
            return false;
        }
        if !self.in_order {
            self.length = self.length.saturating_mul(2);
        }
        self.in_order = !self.in_order;
        self.conflicts = 0;
        true
    }
}

impl Search<'_> {
    /// Begins with turns of so many conflicts.
    pub(in super::super) fn take_turns_of(&mut self, conflicts: u64) {
        self.turn = Turn::of(conflicts);
    }

    pub(super) fn decide(&mut self, assumptions: &[Literal]) -> Decision {
        if let Some(&assumption) = assumptions.get(self.limits.len()) {
            return match self.value(assumption) {
                Some(true) => Decision::Held,
                Some(false) => Decision::Contradicts(assumption),
                None => Decision::Literal(assumption),
            };
        }
        if let Some(decision) = self.look_at_entered() {
            return decision;
        }
        loop {
            let of_the_trace = if self.turn.in_order {
                self.line.pop(&self.places_in_line)
            } else {
                self.first.pop(&self.activities)
            };
            let next = of_the_trace.or_else(|| self.second.pop(&self.activities));
            let Some(variable) = next else { break };
            if self.is_decided(variable) {
                continue;
            }
            if self.turn.in_order
                && let Some(order) = self.reach(self.place_in_line(variable))
            {
                self.queue(variable);
                return Decision::Literal(order);
            }
            let Kind::Source(read) = self.kinds[variable.index()] else {
                return Decision::Literal(variable.literal(self.phases[variable.index()]));
            };
            let nearest = self.nearest(read).unwrap_or(variable);
            if nearest != variable {
                self.queue(variable);
            }
            return Decision::Literal(nearest.literal(true));
        }
        self.unsatisfied().map_or(Decision::Nothing, Decision::Literal)
    }

    /// Is there nothing to decide about a variable? Of a read one source is enough: what is not
    /// decided does not hold then.
    fn is_decided(&self, variable: Variable) -> bool {
        self.assigned[variable.index()].is_some()
            || match self.kinds[variable.index()] {
                Kind::Source(read) => self.served[read as usize] > 0,
                _ => false,
            }
    }

    /// An order to decide, from a clause that the topological order does not satisfy.
    fn unsatisfied(&mut self) -> Option<Literal> {
        let clauses = self.clauses.with_orders();
        let count = clauses.len();
        for step in 0..count {
            let at = (self.cursor + step) % count;
            if let Some(best) = self.open_order(clauses[at]) {
                self.cursor = at;
                return Some(best);
            }
        }
        None
    }

    /// A literal to decide of a clause that the topological order does not satisfy; none when it
    /// does.
    pub(super) fn open_order(&self, clause: ClauseId) -> Option<Literal> {
        let literals = self.clauses.literals(clause);
        let holds = |literal: Literal| match self.value(literal) {
            Some(value) => value,
            None => match self.kinds[literal.variable().index()] {
                Kind::Order(a, b) => self.graph.precedes(a, b) == literal.is_positive(),
                // Of a read that is not decided yet nothing is to be mended.
                Kind::Source(_) => !literal.is_positive(),
                _ => false,
            },
        };
        if literals.iter().any(|&literal| holds(literal)) {
            return None;
        }
        let open = literals.iter().filter(|&&literal| self.value(literal).is_none());
        let activity = |l: &Literal| self.activities.get(l.variable());
        open.copied().max_by(|a, b| {
            let first = || self.was_first(*a).cmp(&self.was_first(*b));
            activity(a).total_cmp(&activity(b)).then_with(first)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{READS, TURN, Turn};

    #[test]
    fn turns_alternate_and_get_longer() {
        let mut turn = Turn::default();
        let mut ends = Vec::new();
        for conflict in 1..=6 * TURN {
            turn.count();
            if turn.pass() {
                ends.push((conflict / TURN, turn.in_order));
            }
        }
        assert_eq!(ends, [(1, false), (2, true), (4, false), (6, true)]);
    }

    #[test]
    fn a_turn_in_order_goes_on_while_it_goes_well_and_is_longer_in_long_runs() {
        let conflicts = |turn: &mut Turn| {
            (1..).find(|_| {
                turn.count();
                turn.pass()
            })
        };
        let mut turn = Turn { reads: 2 * READS, ..Turn::default() };
        turn.count();
        turn.goes_well();
        assert_eq!(conflicts(&mut turn), Some(3 * TURN));
        assert_eq!(conflicts(&mut turn), Some(TURN));
    }
}
