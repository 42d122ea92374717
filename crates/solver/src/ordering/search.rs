//! The search: conflict-driven clause learning over booleans, with the order of events and the
//! values of expressions as theories.
//!
//! What is decided are the sources of reads and the choices of the encoders; orders follow from
//! them. When nothing of that is left, the topological order of the graph decides all other
//! orders. Only where it leaves a clause unsatisfied another order is decided.

use super::Work;
use super::clauses::{ClauseId, Clauses};
use super::flows::Flow;
use super::graph::{Graph, Locks, Threads};
use super::heap::{Activities, Heap};
use super::literal::{Literal, Variable};
use super::values::{Claim, Consequence, Values};
use crate::session::UnknownReason;
use encoders::{ConstraintSystem, Term};
use model::{EventId, EventTrace, ReadRef, WriteSource};
use rustc_hash::{FxHashMap, FxHashSet};

mod assumed;
mod decisions;
mod front;
mod learning;
mod near;
mod sources;

pub(super) use decisions::Decision;
use decisions::Turn;
use front::Front;

/// Nothing can satisfy the clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsatisfiable;

/// What a variable stands for.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The first event comes before the second.
    Order(u32, u32),
    /// A claim about values.
    Claim(u32),
    /// One of the sources of a read; the number is the read's.
    Source(u32),
    /// A choice of an encoder.
    Choice,
    /// Part of a term.
    Auxiliary,
}

/// The answer of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The places of the events, and the values, are there to be read.
    Satisfiable,
    /// These of the assumptions cannot all hold.
    Unsatisfiable(Vec<Literal>),
    /// The search was ended.
    Unknown(UnknownReason),
    /// There were as many conflicts as were allowed for now; the search can go on.
    Paused,
}

impl Answer {
    /// For logs.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Satisfiable => "satisfiable",
            Self::Unsatisfiable(_) => "unsatisfiable",
            Self::Unknown(_) => "unknown",
            Self::Paused => "paused",
        }
    }
}

/// Conflicts between two restarts, times the term of Luby's series.
const RESTART: u64 = 100;
/// The search goes back no more levels than this to where a learned clause already says something:
/// it is enough that the conflict is no more ("chronological backtracking", Nadel and Ryvchin, SAT
/// 2018). What follows is of the level of the latest literal that it follows from, not of the one at
/// which it is noticed, and stays when that one is taken back.
const FAR: usize = 50;
/// So many learned clauses are kept at first, and so many more after each reduction.
const LEARNED: usize = 8_000;
const MORE_LEARNED: usize = 1_000;
/// Steps between two looks at the clock.
const STEPS: u64 = 16;

/// The state of the search.
#[derive(Debug)]
pub(super) struct Search<'t> {
    clauses: Clauses,
    graph: Graph,
    threads: Threads,
    /// Clauses for the question at hand alone.
    for_now: Vec<ClauseId>,
    values: Values<'t>,
    pub(super) system: &'t ConstraintSystem,
    /// What is known of reads' sources, and looked at when all else is decided.
    pub(super) flows: Vec<Flow>,
    /// By variable: the flow that the source begins.
    pub(super) flow_of: FxHashMap<Variable, u32>,
    /// Flows that have become what is decided, and have not been looked at since.
    pub(super) entered: Vec<u32>,
    /// The writes, by flow, about which there is a clause.
    pub(super) parted: FxHashSet<(u32, u32)>,
    /// The place of every event in the first topological order.
    first_places: Vec<u32>,
    /// By event its place in the schedule to look near; empty where there is none.
    model: Vec<u64>,
    locks: Locks,
    /// Is the topological order maybe further from that schedule than it has to be?
    has_drifted: bool,
    kinds: Vec<Kind>,
    /// By variable.
    assigned: Vec<Option<bool>>,
    levels: Vec<u32>,
    reasons: Vec<Option<ClauseId>>,
    phases: Vec<bool>,
    activities: Activities,
    /// Sources and choices; auxiliary variables and claims; orders are decided apart.
    first: Heap,
    second: Heap,
    /// Sources and choices again, in the order of the recorded run.
    line: Heap,
    places_in_line: Activities,
    turn: Turn,
    front: Front,
    /// How many levels to go back at most beyond the one of a conflict.
    pub(super) far: usize,
    /// The search pauses at so many conflicts.
    pub(super) pause: Option<u64>,
    trail: Vec<Literal>,
    /// Where on the trail each level begins.
    limits: Vec<usize>,
    /// How often levels were taken back.
    cancels: u64,
    /// What has been looked at of the trail, by clauses and by the theories.
    propagated: usize,
    theorised: usize,
    /// How many sources of each read are true.
    served: Vec<u32>,
    /// The sources of each read.
    sources_of: Vec<Vec<(Variable, Option<u32>)>>,
    /// The event of each read.
    readers: Vec<u32>,
    orders: FxHashMap<(u32, u32), Variable>,
    sources: FxHashMap<(ReadRef, WriteSource), Variable>,
    reads: FxHashMap<ReadRef, u32>,
    choices: FxHashMap<u32, Variable>,
    never: Option<Variable>,
    /// The clauses' own contradiction.
    broken: bool,
    /// Where the last search for an unsatisfied clause ended.
    cursor: usize,
    seen: Vec<bool>,
    work: Work,
}

impl<'t> Search<'t> {
    /// A search without clauses. `graph` has the orders that always hold.
    pub(super) fn new(
        trace: &'t EventTrace,
        system: &'t ConstraintSystem,
        (graph, locks): (Graph, Locks),
    ) -> Self {
        Self {
            clauses: Clauses::default(),
            system,
            flows: Vec::new(),
            flow_of: FxHashMap::default(),
            entered: Vec::new(),
            parted: FxHashSet::default(),
            first_places: graph.places().to_vec(),
            model: Vec::new(),
            locks,
            has_drifted: false,
            graph,
            threads: Threads::of(trace),
            for_now: Vec::new(),
            values: Values::new(trace),
            kinds: Vec::new(),
            assigned: Vec::new(),
            levels: Vec::new(),
            reasons: Vec::new(),
            phases: Vec::new(),
            activities: Activities::default(),
            first: Heap::default(),
            second: Heap::default(),
            line: Heap::default(),
            places_in_line: Activities::default(),
            turn: Turn::default(),
            front: Front::default(),
            far: FAR,
            pause: None,
            trail: Vec::new(),
            limits: Vec::new(),
            cancels: 0,
            propagated: 0,
            theorised: 0,
            served: Vec::new(),
            sources_of: Vec::new(),
            readers: Vec::new(),
            orders: FxHashMap::default(),
            sources: FxHashMap::default(),
            reads: FxHashMap::default(),
            choices: FxHashMap::default(),
            never: None,
            broken: false,
            cursor: 0,
            seen: Vec::new(),
            work: Work::default(),
        }
    }

    fn variable(&mut self, kind: Kind) -> Variable {
        let variable = Variable(self.kinds.len() as u32);
        self.kinds.push(kind);
        self.assigned.push(None);
        self.levels.push(0);
        self.reasons.push(None);
        self.phases.push(matches!(kind, Kind::Source(_)));
        self.seen.push(false);
        self.clauses.add_variable();
        self.activities.add(0.0);
        self.places_in_line.add(0.0);
        self.stand_in_line(variable);
        self.queue(variable);
        variable
    }

    /// Puts an unassigned variable where decisions are taken from.
    fn queue(&mut self, variable: Variable) {
        match self.kinds[variable.index()] {
            Kind::Source(_) | Kind::Choice => {
                self.first.insert(&self.activities, variable);
                self.line.insert(&self.places_in_line, variable);
            }
            Kind::Claim(_) | Kind::Auxiliary => self.second.insert(&self.activities, variable),
            Kind::Order(..) => {}
        }
    }

    /// A variable that stands for a part of a term.
    pub(super) fn auxiliary(&mut self) -> Variable {
        self.variable(Kind::Auxiliary)
    }

    /// "`a` comes before `b`".
    pub(super) fn order(&mut self, a: u32, b: u32) -> Literal {
        if a == b {
            return self.never();
        }
        let pair = (a.min(b), a.max(b));
        let variable = match self.orders.get(&pair) {
            Some(&variable) => variable,
            None => {
                let variable = self.variable(Kind::Order(pair.0, pair.1));
                self.orders.insert(pair, variable);
                variable
            }
        };
        variable.literal(a < b)
    }

    fn never(&mut self) -> Literal {
        if let Some(never) = self.never {
            return never.literal(true);
        }
        let never = self.auxiliary();
        self.never = Some(never);
        // A fresh variable contradicts nothing.
        let _ = self.add_clause(&[never.literal(false)]);
        never.literal(true)
    }

    /// "The read takes its value from this source".
    pub(super) fn source(&mut self, read: ReadRef, source: WriteSource) -> Literal {
        if let Some(variable) = self.sources.get(&(read, source)) {
            return variable.literal(true);
        }
        let next = self.served.len() as u32;
        let number = *self.reads.entry(read).or_insert(next);
        if number == next {
            self.served.push(0);
            self.sources_of.push(Vec::new());
            self.readers.push(read.event.0);
        }
        let variable = self.variable(Kind::Source(number));
        let write = match source {
            WriteSource::Init => None,
            WriteSource::Write(write) => Some(write.0),
        };
        self.sources_of[number as usize].push((variable, write));
        self.sources.insert((read, source), variable);
        variable.literal(true)
    }

    /// A choice of an encoder.
    pub(super) fn choice(&mut self, choice: u32) -> Literal {
        if let Some(variable) = self.choices.get(&choice) {
            return variable.literal(true);
        }
        let variable = self.variable(Kind::Choice);
        self.choices.insert(choice, variable);
        variable.literal(true)
    }

    /// A claim about values.
    pub(super) fn claim(&mut self, claim: Claim) -> Literal {
        if let Some(variable) = self.values.variable_of(claim) {
            return variable.literal(true);
        }
        let variable = Variable(self.kinds.len() as u32);
        let number = self.values.add(claim, variable);
        self.variable(Kind::Claim(number)).literal(true)
    }

    fn value(&self, literal: Literal) -> Option<bool> {
        self.assigned[literal.variable().index()].map(|value| value == literal.is_positive())
    }

    /// Adds a clause, outside of the search.
    pub(super) fn add_clause(&mut self, literals: &[Literal]) -> Result<(), Unsatisfiable> {
        self.cancel(0);
        let mut clause: Vec<Literal> = Vec::with_capacity(literals.len());
        let mut sorted = literals.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        for (index, &literal) in sorted.iter().enumerate() {
            let opposite = sorted.get(index + 1) == Some(&!literal);
            if opposite || self.value(literal) == Some(true) {
                return Ok(());
            }
            if self.value(literal).is_none() {
                clause.push(literal);
            }
        }
        match clause[..] {
            [] => {
                self.broken = true;
                Err(Unsatisfiable)
            }
            [only] => {
                self.assign(only, None);
                Ok(())
            }
            _ => {
                self.store(clause);
                Ok(())
            }
        }
    }

    /// Adds a clause of two or more literals to the formula.
    fn store(&mut self, clause: Vec<Literal>) -> ClauseId {
        let place = self.place_of(&clause);
        let id = self.clauses.add(clause, place.is_some());
        if let Some(place) = place {
            self.front.add_clause(place, id);
        }
        id
    }

    fn assign(&mut self, literal: Literal, reason: Option<ClauseId>) {
        self.assign_at(literal, reason, self.limits.len() as u32);
    }

    /// The level is that of the latest literal that it follows from, which may be below the one that
    /// the search is at.
    fn assign_at(&mut self, literal: Literal, reason: Option<ClauseId>, level: u32) {
        let index = literal.variable().index();
        self.assigned[index] = Some(literal.is_positive());
        self.levels[index] = level;
        self.reasons[index] = reason;
        if let Kind::Source(read) = self.kinds[index]
            && literal.is_positive()
        {
            self.served[read as usize] += 1;
        }
        self.trail.push(literal);
    }

    /// Takes all levels above this one back. What was noticed on them but follows from earlier ones
    /// stays, and is told to clauses and theories anew.
    fn cancel(&mut self, level: usize) {
        if self.limits.len() <= level {
            return;
        }
        self.cancels += 1;
        let start = self.limits[level];
        let mut edges = 0;
        let mut kept = Vec::new();
        for position in (start..self.trail.len()).rev() {
            let literal = self.trail[position];
            let variable = literal.variable();
            let index = variable.index();
            if matches!(self.kinds[index], Kind::Order(..)) && position < self.theorised {
                edges += 1;
            }
            if self.levels[index] as usize <= level {
                kept.push(literal);
                continue;
            }
            if let Kind::Source(read) = self.kinds[index]
                && literal.is_positive()
            {
                self.served[read as usize] -= 1;
                for &(other, _) in &self.sources_of[read as usize] {
                    self.first.insert(&self.activities, other);
                    self.line.insert(&self.places_in_line, other);
                }
            }
            self.assigned[index] = None;
            self.phases[index] = literal.is_positive();
            self.queue(variable);
        }
        self.graph.undo(self.graph.len() - edges);
        self.values.undo(start);
        self.trail.truncate(start);
        self.trail.extend(kept.into_iter().rev());
        self.limits.truncate(level);
        self.propagated = self.propagated.min(start);
        self.theorised = self.theorised.min(start);
    }

    /// Draws conclusions until there are no more. Gives the literals of a clause that is false.
    fn propagate(&mut self) -> Option<Vec<Literal>> {
        loop {
            if let Some(conflict) = self.by_clauses() {
                return Some(self.clauses.literals(conflict).to_vec());
            }
            if self.theorised < self.trail.len() {
                if let Some(conflict) = self.by_order() {
                    return Some(conflict);
                }
                continue;
            }
            let assigned = &self.assigned;
            let truth = |variable: Variable| assigned[variable.index()];
            match self.values.next(&truth, self.trail.len()) {
                None => return None,
                Some(Consequence::Conflict(clause)) => return Some(clause),
                Some(Consequence::Implied(mut clause)) => {
                    let last = clause.len() - 1;
                    clause.swap(0, last);
                    self.imply(clause);
                }
            }
        }
    }

    /// Assigns the first literal of a clause whose other literals are false.
    fn imply(&mut self, clause: Vec<Literal>) {
        if clause.len() == 1 {
            // It holds whatever was decided.
            self.cancel(0);
            self.assign(clause[0], None);
            return;
        }
        self.imply_by(clause);
    }

    /// As [`imply`](Self::imply), by a clause of two or more literals, which is kept until the next question.
    fn imply_for_now(&mut self, clause: Vec<Literal>) {
        let id = self.imply_by(clause);
        self.for_now.push(id);
    }

    fn imply_by(&mut self, mut clause: Vec<Literal>) -> ClauseId {
        let literal = clause[0];
        // The second watched literal is the one that is taken back first.
        let level_of = |l: &Literal| self.levels[l.variable().index()];
        if let Some(latest) = (1..clause.len()).max_by_key(|&index| level_of(&clause[index])) {
            clause.swap(1, latest);
        }
        let level = level_of(&clause[1]);
        let length = clause.len() as u32;
        let id = self.clauses.learn(clause, length);
        self.assign_at(literal, Some(id), level);
        id
    }

    fn by_clauses(&mut self) -> Option<ClauseId> {
        while let Some(&literal) = self.trail.get(self.propagated) {
            self.propagated += 1;
            let is_late = self.levels[literal.variable().index()] as usize == self.limits.len();
            let mut watches = self.clauses.take_watches(!literal);
            let mut kept = 0;
            let mut conflict = None;
            let mut index = 0;
            while index < watches.len() {
                let watch = watches[index];
                index += 1;
                if self.value(watch.blocker) == Some(true) {
                    watches[kept] = watch;
                    kept += 1;
                    continue;
                }
                let assigned = &self.assigned;
                let value =
                    |l: Literal| assigned[l.variable().index()].map(|v| v == l.is_positive());
                let Some((first, moved)) = self.clauses.rewatch(watch.clause, !literal, value)
                else {
                    continue;
                };
                if moved {
                    continue;
                }
                watches[kept] = super::clauses::Watch { clause: watch.clause, blocker: first };
                kept += 1;
                match self.value(first) {
                    Some(true) => {}
                    None if is_late => self.assign(first, Some(watch.clause)),
                    None => {
                        let others = &self.clauses.literals(watch.clause)[1..];
                        let levels = others.iter().map(|l| self.levels[l.variable().index()]);
                        let level = levels.max().unwrap_or(0);
                        self.assign_at(first, Some(watch.clause), level);
                    }
                    Some(false) => {
                        conflict = Some(watch.clause);
                        while index < watches.len() {
                            watches[kept] = watches[index];
                            kept += 1;
                            index += 1;
                        }
                    }
                }
            }
            watches.truncate(kept);
            self.clauses.put_watches(!literal, watches);
            if conflict.is_some() {
                return conflict;
            }
        }
        None
    }

    /// Tells the theories of assigned literals.
    fn by_order(&mut self) -> Option<Vec<Literal>> {
        while let Some(&literal) = self.trail.get(self.theorised) {
            match self.kinds[literal.variable().index()] {
                Kind::Order(a, b) => {
                    let (from, to) = if literal.is_positive() { (a, b) } else { (b, a) };
                    if let Err(path) = self.graph.add(from, to, literal) {
                        let mut clause: Vec<Literal> = path.into_iter().map(|l| !l).collect();
                        clause.push(!literal);
                        clause.sort_unstable();
                        clause.dedup();
                        return Some(clause);
                    }
                }
                Kind::Claim(atom) => self.values.assigned(atom),
                Kind::Source(_) if literal.is_positive() => {
                    self.entered.extend(self.flow_of.get(&literal.variable()));
                }
                Kind::Source(_) | Kind::Choice | Kind::Auxiliary => {}
            }
            self.theorised += 1;
        }
        None
    }

    /// Searches for an assignment in which all of `assumptions` hold. `goes_on` is asked now and
    /// then.
    pub(super) fn solve(
        &mut self,
        assumptions: &[Literal],
        goes_on: &mut dyn FnMut(usize) -> Result<(), UnknownReason>,
    ) -> Answer {
        self.cancel(0);
        if self.broken {
            return Answer::Unsatisfiable(Vec::new());
        }
        let for_now = std::mem::take(&mut self.for_now);
        self.clauses.drop_all(&for_now);
        let assumes_orders =
            |l: &Literal| matches!(self.kinds[l.variable().index()], Kind::Order(..));
        let mut rounds = if assumptions.iter().any(assumes_orders) { assumed::ROUNDS } else { 0 };
        self.enter_sure();
        self.begin_near();
        self.turn.reads = match self.system.moments() {
            [] if self.model.is_empty() => 0,
            _ => self.served.len() as u64,
        };
        self.front.reset();
        let (mut steps, mut restarts, mut since) = (0u64, 1u64, 0u64);
        let mut most = self.clauses.learned() + LEARNED;
        loop {
            steps += 1;
            if steps.is_multiple_of(STEPS)
                && let Err(reason) = goes_on(self.clauses.bytes())
            {
                return Answer::Unknown(reason);
            }
            if self.pause.is_some_and(|pause| self.work.conflicts >= pause) {
                return Answer::Paused;
            }
            if let Some(conflict) = self.propagate() {
                self.turn.count();
                self.work.conflicts += 1;
                self.has_drifted = true;
                since += 1;
                let Some((learned, back)) = self.analyse(conflict) else {
                    self.broken = true;
                    return Answer::Unsatisfiable(Vec::new());
                };
                let level = self.levels[learned[0].variable().index()] as usize;
                // What is not far back is decided otherwise soon; what is far back would mostly be
                // decided again as it was.
                let is_far = learned.len() > 1 && level - back > self.far;
                self.cancel(if is_far { level - 1 } else { back });
                self.learn(learned);
                self.activities.decay();
                continue;
            }
            let is_over = self.turn.pass();
            if is_over || (!self.turn.in_order && since >= RESTART * luby(restarts)) {
                restarts += 1;
                since = 0;
                self.cancel(assumptions.len().min(self.limits.len()));
            }
            if is_over {
                self.front.reset();
            }
            if self.propagated < self.trail.len() {
                // What a restart leaves is looked at anew before anything is decided.
                continue;
            }
            if self.clauses.learned() > most {
                most += MORE_LEARNED;
                self.forget();
            }
            if self.limits.len() == assumptions.len() {
                if rounds > 0 {
                    rounds -= 1;
                    if self.rule_out() {
                        most += self.for_now.len();
                        continue;
                    }
                    rounds = 0;
                }
                self.go_back_near();
            }
            match self.decide(assumptions) {
                Decision::Literal(literal) => {
                    self.work.decisions += 1;
                    self.limits.push(self.trail.len());
                    self.assign(literal, None);
                }
                Decision::Held => self.limits.push(self.trail.len()),
                Decision::Contradicts(assumption) => {
                    return Answer::Unsatisfiable(self.core(assumption));
                }
                Decision::Again => {}
                Decision::Broken => {
                    self.broken = true;
                    return Answer::Unsatisfiable(Vec::new());
                }
                Decision::Nothing => match self.interrupted() {
                    None => return Answer::Satisfiable,
                    Some(Err(Unsatisfiable)) => {
                        self.broken = true;
                        return Answer::Unsatisfiable(Vec::new());
                    }
                    Some(Ok(())) => {}
                },
            }
        }
    }

    /// Adds a clause of the formula within the search, and goes back as far as it takes for the
    /// clause not to be false.
    pub(super) fn add_lemma(&mut self, mut clause: Vec<Literal>) -> Result<(), Unsatisfiable> {
        clause.sort_unstable();
        clause.dedup();
        let level = |this: &Self, l: Literal| match this.value(l) {
            Some(false) => this.levels[l.variable().index()],
            _ => u32::MAX,
        };
        clause.sort_by_key(|&l| std::cmp::Reverse(level(self, l)));
        let [first, rest @ ..] = &clause[..] else { return Err(Unsatisfiable) };
        let first = *first;
        let Some(&second) = rest.first() else {
            self.cancel(0);
            return match self.value(first) {
                Some(true) => Ok(()),
                Some(false) => Err(Unsatisfiable),
                None => {
                    self.assign(first, None);
                    Ok(())
                }
            };
        };
        if level(self, first) == 0 {
            return Err(Unsatisfiable);
        }
        // Below the level of the first literal it is open again; below that of the second it
        // would not follow.
        let (highest, next) = (level(self, first), level(self, second));
        if highest != u32::MAX {
            let is_near = next < highest && (highest - next) as usize <= self.far;
            self.cancel(if is_near { next } else { highest - 1 } as usize);
        }
        let id = self.store(clause);
        if self.value(first).is_none() && self.value(second) == Some(false) {
            self.assign_at(first, Some(id), next);
        }
        Ok(())
    }

    pub(super) fn work(&self) -> Work {
        self.work
    }

    /// The place of every event, once an answer was satisfiable.
    pub(super) fn places(&self) -> &[u32] {
        self.graph.places()
    }

    /// What is known of values.
    pub(super) fn values(&self) -> &Values<'t> {
        &self.values
    }

    /// Is there a claim that was assigned without its values being known, and that nothing but its
    /// values determines?
    pub(super) fn is_guess(&self) -> bool {
        let is_determined = |claim| match claim {
            Claim::Holds(expr) => self.system.is_determined(expr),
            Claim::Equal(..) => false,
        };
        self.kinds.iter().enumerate().any(|(index, kind)| match kind {
            Kind::Claim(atom) => {
                self.assigned[index].is_some()
                    && self.values.is_open(*atom)
                    && !is_determined(self.values.claim(*atom))
            }
            _ => false,
        })
    }
}

/// The terms of Luby's series: 1, 1, 2, 1, 1, 2, 4, ...
fn luby(index: u64) -> u64 {
    let mut index = index;
    loop {
        let size = u64::BITS - index.leading_zeros();
        if index == (1 << size) - 1 {
            return 1 << (size - 1);
        }
        index -= (1 << (size - 1)) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::luby;

    #[test]
    fn restarts_follow_the_series() {
        let terms: Vec<u64> = (1..=15).map(luby).collect();
        assert_eq!(terms, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}
