//! How far the search has come in the recorded run.
//!
//! Orders that no source decides, such as those of critical sections, could be left to the end, where
//! the topological order mostly satisfies their clauses. But where it does not, the reads that have
//! to change may be those of the beginning. So while reads are decided in the order of the run, the
//! clauses about the latest part of it are looked at before the search goes on.

use super::{ClauseId, Kind, Literal, Search, Variable};

/// So many events are decided between two looks.
const STEP: u32 = 4;
/// The clauses of so many events are kept together.
const PART: u32 = 32;
/// So many parts are looked at.
const PARTS: usize = 16;

/// See the module. Places are those of the first topological order.
#[derive(Debug, Default)]
pub(super) struct Front {
    /// The reads before this place are decided first, and then the clauses about them.
    end: u32,
    /// How far it has been.
    furthest: u32,
    /// The clauses of the formula that speak of orders, by the place of their last event.
    clauses: Vec<Vec<ClauseId>>,
    /// By part, the state of the search in which all of its clauses were satisfied.
    satisfied: Vec<Option<State>>,
}

/// As long as it is the same, so is what the topological order makes of clauses about what is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// How often events changed their places.
    changes: u64,
    /// How often decisions were taken back.
    cancels: u64,
}

impl Front {
    pub(super) fn add_clause(&mut self, place: u32, clause: ClauseId) {
        let part = (place / PART) as usize;
        if self.clauses.len() <= part {
            self.clauses.resize(part + 1, Vec::new());
            self.satisfied.resize(part + 1, None);
        }
        self.clauses[part].push(clause);
        self.satisfied[part] = None;
    }

    /// Without clauses.
    pub(super) fn clear(&mut self) {
        self.clauses.clear();
        self.satisfied.clear();
    }

    /// Goes back to the beginning.
    pub(super) fn reset(&mut self) {
        (self.end, self.furthest) = (0, 0);
    }
}

impl Search<'_> {
    /// Goes on to decide what stands at this place; before that, an order to decide, from a clause
    /// about the latest events that the topological order does not satisfy.
    pub(super) fn reach(&mut self, place: u32) -> Option<Literal> {
        if place < self.front.end {
            return None;
        }
        let end = (self.front.end.div_ceil(PART) as usize).min(self.front.clauses.len());
        let open = (end.saturating_sub(PARTS)..end).find_map(|part| self.open_in(part));
        if open.is_none() {
            self.front.end = place.saturating_add(STEP);
            if self.front.end > self.front.furthest {
                self.front.furthest = self.front.end;
                self.turn.goes_well();
            }
        }
        open
    }

    /// An order to decide, from a clause of this part.
    fn open_in(&mut self, part: usize) -> Option<Literal> {
        let state = State { changes: self.graph.changes(), cancels: self.cancels };
        if self.front.satisfied[part] == Some(state) {
            return None;
        }
        let mut clauses = self.front.clauses[part].iter();
        let open = clauses.find_map(|&clause| self.open_order(clause));
        // What is not decided yet may still ask for something.
        let is_decided = (part as u32 + 1) * PART <= self.front.end;
        if open.is_none() && is_decided {
            self.front.satisfied[part] = Some(state);
        }
        open
    }

    /// The place of a source's read, behind all others for what is no source.
    pub(super) fn place_in_line(&self, variable: Variable) -> u32 {
        match self.kinds[variable.index()] {
            Kind::Source(read) => self.first_places[self.readers[read as usize] as usize],
            _ => u32::MAX,
        }
    }

    /// The place of the last event that a clause orders; none when it orders no events.
    pub(super) fn place_of(&self, clause: &[Literal]) -> Option<u32> {
        let place = |event: u32| self.first_places[event as usize];
        let places =
            clause.iter().filter_map(|literal| match self.kinds[literal.variable().index()] {
                Kind::Order(a, b) => Some(place(a).max(place(b))),
                _ => None,
            });
        places.max()
    }
}
