//! What a conflict teaches: a clause that prevents it, and how active its variables are.

use super::{ClauseId, FxHashMap, Literal, Search, Variable};

impl Search<'_> {
    /// A clause that prevents the conflict, and the level to go back to; the first literal is the
    /// one that it implies there. `None` when the conflict depends on no decision.
    pub(super) fn analyse(&mut self, mut conflict: Vec<Literal>) -> Option<(Vec<Literal>, usize)> {
        let level = |this: &Self, l: Literal| this.levels[l.variable().index()] as usize;
        let highest = conflict.iter().map(|&l| level(self, l)).max().unwrap_or(0);
        if highest == 0 {
            return None;
        }
        // A theory may notice late.
        self.cancel(highest);
        let mut learned = vec![conflict[0]];
        let mut open = 0;
        let mut position = self.trail.len();
        let mut cleared = Vec::new();
        loop {
            for literal in conflict.drain(..) {
                let variable = literal.variable();
                if self.seen[variable.index()] || self.levels[variable.index()] == 0 {
                    continue;
                }
                self.seen[variable.index()] = true;
                cleared.push(variable);
                self.bump(variable);
                if self.levels[variable.index()] as usize == highest {
                    open += 1;
                } else {
                    learned.push(literal);
                }
            }
            let literal = loop {
                position -= 1;
                let literal = self.trail[position];
                let index = literal.variable().index();
                if self.seen[index] && self.levels[index] as usize == highest {
                    break literal;
                }
            };
            open -= 1;
            if open == 0 {
                learned[0] = !literal;
                break;
            }
            if let Some(reason) = self.reasons[literal.variable().index()] {
                self.clauses.used(reason);
                conflict.extend(
                    self.clauses.literals(reason).iter().filter(|&&l| l != literal).copied(),
                );
            }
        }
        self.shorten(&mut learned);
        cleared.iter().for_each(|variable| self.seen[variable.index()] = false);
        let mut back = 0;
        if learned.len() > 1 {
            let latest = (1..learned.len()).max_by_key(|&index| level(self, learned[index]));
            if let Some(latest) = latest {
                learned.swap(1, latest);
                back = level(self, learned[1]);
            }
        }
        Some((learned, back))
    }

    /// Drops literals that follow from the others.
    fn shorten(&self, learned: &mut Vec<Literal>) {
        let first = learned[0];
        let mut known: FxHashMap<Variable, bool> = FxHashMap::default();
        learned
            .retain(|literal| *literal == first || !self.follows(literal.variable(), &mut known));
    }

    /// Does an assignment follow from literals that are seen? `known` has the answers for others.
    fn follows(&self, variable: Variable, known: &mut FxHashMap<Variable, bool>) -> bool {
        let mut open = vec![variable];
        while let Some(&top) = open.last() {
            if known.contains_key(&top) {
                open.pop();
                continue;
            }
            let Some(reason) = self.reasons[top.index()] else {
                known.insert(top, false);
                open.pop();
                continue;
            };
            // Reasons are assigned before what follows from them, so that this ends.
            let (mut all, mut missing) = (true, None);
            for other in self.clauses.literals(reason) {
                let other = other.variable();
                if other == top || self.levels[other.index()] == 0 || self.seen[other.index()] {
                    continue;
                }
                match known.get(&other) {
                    Some(true) => {}
                    Some(false) => {
                        all = false;
                        break;
                    }
                    None => missing = Some(other),
                }
            }
            match missing {
                Some(other) if all => open.push(other),
                _ => {
                    known.insert(top, all);
                    open.pop();
                }
            }
        }
        known.get(&variable).copied().unwrap_or(false)
    }

    fn bump(&mut self, variable: Variable) {
        self.activities.bump(variable);
        self.first.raise(&self.activities, variable);
        self.second.raise(&self.activities, variable);
    }

    /// The assumptions from which it follows that `literal`, itself one, is false.
    pub(super) fn core(&mut self, literal: Literal) -> Vec<Literal> {
        let mut core = vec![literal];
        let start = self.limits.first().copied().unwrap_or(self.trail.len());
        self.seen[literal.variable().index()] = true;
        for position in (start..self.trail.len()).rev() {
            let assigned = self.trail[position];
            let index = assigned.variable().index();
            if !std::mem::take(&mut self.seen[index]) {
                continue;
            }
            match self.reasons[index] {
                // Whatever was decided so far is an assumption.
                None => core.push(assigned),
                Some(reason) => {
                    for other in self.clauses.literals(reason) {
                        let other = other.variable().index();
                        if other != index && self.levels[other] > 0 {
                            self.seen[other] = true;
                        }
                    }
                }
            }
        }
        self.seen[literal.variable().index()] = false;
        core.sort_unstable();
        core.dedup();
        core
    }

    pub(super) fn learn(&mut self, learned: Vec<Literal>) {
        let literal = learned[0];
        if learned.len() == 1 {
            self.assign(literal, None);
            return;
        }
        let mut levels: Vec<u32> =
            learned.iter().map(|l| self.levels[l.variable().index()]).collect();
        levels.sort_unstable();
        levels.dedup();
        let back = self.levels[learned[1].variable().index()];
        let id = self.clauses.learn(learned, levels.len() as u32);
        self.assign_at(literal, Some(id), back);
    }

    pub(super) fn forget(&mut self) {
        let (reasons, trail) = (&self.reasons, &self.trail);
        let mut locked: Vec<ClauseId> =
            trail.iter().filter_map(|literal| reasons[literal.variable().index()]).collect();
        locked.sort_unstable();
        self.clauses.forget(&locked);
    }
}
