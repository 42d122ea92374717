//! Clauses, and who watches them.

use super::literal::Literal;

/// A clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClauseId(u32);

/// A clause that is looked at when a literal becomes false.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) clause: ClauseId,
    /// Another literal of the clause; when it holds, so does the clause.
    pub(super) blocker: Literal,
}

#[derive(Debug)]
struct Clause {
    literals: Box<[Literal]>,
    /// How many levels its literals were of when it was learned; 0 for a clause of the formula.
    levels: u32,
    /// Has it taken part in a conflict since the last reduction?
    used: bool,
}

/// All clauses. The first two literals of each are watched.
#[derive(Debug, Default)]
pub(super) struct Clauses {
    all: Vec<Clause>,
    free: Vec<u32>,
    watches: Vec<Vec<Watch>>,
    /// The clauses of the formula that speak of orders.
    with_orders: Vec<ClauseId>,
    learned: usize,
    literals: usize,
}

impl Clauses {
    pub(super) fn add_variable(&mut self) {
        self.watches.push(Vec::new());
        self.watches.push(Vec::new());
    }

    /// Adds a clause of two or more literals to the formula.
    pub(super) fn add(&mut self, literals: Vec<Literal>, has_order: bool) -> ClauseId {
        let id = self.store(literals, 0);
        if has_order {
            self.with_orders.push(id);
        }
        id
    }

    /// Adds a clause of two or more literals that follows from others.
    pub(super) fn learn(&mut self, literals: Vec<Literal>, levels: u32) -> ClauseId {
        self.learned += 1;
        self.store(literals, levels.max(1))
    }

    fn store(&mut self, literals: Vec<Literal>, levels: u32) -> ClauseId {
        let clause = Clause { literals: literals.into(), levels, used: true };
        self.literals += clause.literals.len();
        let id = match self.free.pop() {
            Some(free) => {
                self.all[free as usize] = clause;
                ClauseId(free)
            }
            None => {
                self.all.push(clause);
                ClauseId(self.all.len() as u32 - 1)
            }
        };
        let [first, second] = [0, 1].map(|index| self.all[id.0 as usize].literals[index]);
        self.watches[first.code()].push(Watch { clause: id, blocker: second });
        self.watches[second.code()].push(Watch { clause: id, blocker: first });
        id
    }

    pub(super) fn literals(&self, id: ClauseId) -> &[Literal] {
        &self.all[id.0 as usize].literals
    }

    /// The clauses of the formula that speak of orders.
    pub(super) fn with_orders(&self) -> &[ClauseId] {
        &self.with_orders
    }

    /// How many clauses were learned and are still there.
    pub(super) fn learned(&self) -> usize {
        self.learned
    }

    /// About how much memory the clauses take.
    pub(super) fn bytes(&self) -> usize {
        self.all.len() * 56 + self.literals * 4
    }

    /// The clause has taken part in a conflict.
    pub(super) fn used(&mut self, id: ClauseId) {
        self.all[id.0 as usize].used = true;
    }

    pub(super) fn take_watches(&mut self, literal: Literal) -> Vec<Watch> {
        std::mem::take(&mut self.watches[literal.code()])
    }

    pub(super) fn put_watches(&mut self, literal: Literal, watches: Vec<Watch>) {
        self.watches[literal.code()] = watches;
    }

    /// A watched literal of the clause has become false: watches another one that has not, if
    /// there is one. Gives the other watched literal, and whether the watch was moved; `None` for
    /// a clause that is no more.
    pub(super) fn rewatch(
        &mut self,
        id: ClauseId,
        gone: Literal,
        value: impl Fn(Literal) -> Option<bool>,
    ) -> Option<(Literal, bool)> {
        let clause = self.all.get_mut(id.0 as usize)?;
        if clause.literals.len() < 2 {
            return None;
        }
        if clause.literals[0] == gone {
            clause.literals.swap(0, 1);
        }
        let first = clause.literals[0];
        if value(first) == Some(true) {
            return Some((first, false));
        }
        for index in 2..clause.literals.len() {
            let literal = clause.literals[index];
            if value(literal) != Some(false) {
                clause.literals.swap(1, index);
                self.watches[literal.code()].push(Watch { clause: id, blocker: first });
                return Some((first, true));
            }
        }
        Some((first, false))
    }

    /// Drops half of the learned clauses: those whose literals were of many levels and that took
    /// part in no conflict of late. `locked` ones, in order, stay.
    pub(super) fn forget(&mut self, locked: &[ClauseId]) {
        let mut candidates: Vec<u32> = (0..self.all.len() as u32)
            .filter(|&index| {
                let clause = &self.all[index as usize];
                clause.levels > 2
                    && clause.literals.len() > 2
                    && locked.binary_search(&ClauseId(index)).is_err()
            })
            .collect();
        // Unused ones first, of these the ones of many levels.
        candidates.sort_by_key(|&index| {
            let clause = &self.all[index as usize];
            (clause.used, std::cmp::Reverse(clause.levels))
        });
        candidates.truncate(candidates.len() / 2);
        let candidates: Vec<ClauseId> = candidates.into_iter().map(ClauseId).collect();
        self.drop_all(&candidates);
        for clause in &mut self.all {
            clause.used = false;
        }
    }

    /// Drops learned clauses, each named once; not those that are dropped already.
    pub(super) fn drop_all(&mut self, ids: &[ClauseId]) {
        if ids.is_empty() {
            return;
        }
        let mut dropped = vec![false; self.all.len()];
        for &id in ids {
            let clause = &mut self.all[id.0 as usize];
            if clause.levels == 0 {
                continue;
            }
            dropped[id.0 as usize] = true;
            self.literals -= clause.literals.len();
            clause.literals = Box::default();
            clause.levels = 0;
            self.learned -= 1;
            self.free.push(id.0);
        }
        for watches in &mut self.watches {
            watches.retain(|watch| !dropped[watch.clause.0 as usize]);
        }
    }
}
