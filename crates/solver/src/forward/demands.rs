//! What states are worth: can the reads that have to return a rare value still get it?
//!
//! A *demand* is such a read with what its own conditions ask for. It is met by what the cell holds
//! now, or by a write to come: of a constant, or of something that was read before and is in the
//! state already, or has still to be read, which is a demand of its own, one level further down. The
//! probabilities are guesses; that one is 0 is not: then the state leads nowhere.

use super::functions::{Function, SMALL};
use super::program::{Op, Program};
use model::VarId;
use rustc_hash::FxHashMap;
use std::num::NonZeroU32;

/// That a write that others perform is there when it is needed.
const OTHERS: f64 = 0.35;
/// The same of a write of the read's own thread.
const OWN: f64 = 0.8;
/// That what is written fits, where it depends on more than is looked at.
const UNKNOWN: f64 = 0.15;
/// That what a cell holds stays until it is read: at least, and so much more when it is read next.
const STAYS: (f64, f64) = (0.5, 0.4);
/// How far back what is written is followed.
const LEVELS: u32 = 1;
/// A read of which more of the constants written to its cell are right is no demand.
const COMMON: f64 = 0.6;
/// How much more a demand counts each time that nothing led past its read.
const DEARER: f64 = 1.0;
/// It does not count for still more after so many times.
const MOST_BLAMED: u32 = 5;
/// So many events of its thread before its read such a demand is thought of.
const AHEAD: usize = 100;
/// A read with more possible sources is none either.
const MOST_SOURCES: usize = 400;

/// A write that may be the source.
#[derive(Clone, Copy)]
struct Source {
    thread: u32,
    index: u32,
    is_own: bool,
    of: Written,
}

#[derive(Clone, Copy)]
enum Written {
    /// What fits, always.
    Right,
    /// What nobody can tell before it is there.
    Anything,
    /// A function of what the same thread read in an event before: its place there, the word in
    /// which it is, the function, and the demand that it returns something that fits.
    Of { index: u32, word: u32, place: u32, demand: Option<NonZeroU32> },
}

/// What values fit.
enum Test {
    /// The conditions of one variable at the read itself.
    Conditions,
    /// Those too, and what the function makes of the value fits the other demand.
    Then { place: u32, demand: usize },
}

struct Demand {
    thread: usize,
    index: usize,
    cell: usize,
    conditions: Vec<u32>,
    test: Test,
    /// What is known of values: of small ones which are, and which fit.
    small: (u64, u64),
    known: FxHashMap<u64, bool>,
    /// The last write to the cell before the read in its own thread.
    own: Option<usize>,
    sources: Vec<Source>,
    /// Those of them that have not happened in all states.
    live: Vec<Source>,
    /// When that was looked at last.
    looked_at: u64,
    /// How often its read was what nothing led past.
    blamed: u32,
}

/// What the demands still hang on where so many events of each thread have happened: each stands behind
/// those that it waits for.
#[derive(Default)]
pub(super) struct Left {
    nodes: Vec<Node>,
    /// The nodes' words, one node's behind the other's: the word, the function of it that will be
    /// written, and that it is there when it is needed.
    words: Vec<(u32, u32, f64)>,
}

struct Node {
    demand: u32,
    /// The cell, where what it holds now may be read.
    cell: Option<u32>,
    /// That it is lost if it is right.
    stays: f64,
    /// That what the state does not decide fails.
    missed: f64,
    role: Role,
    words: u32,
    children: u32,
}

#[derive(Clone, Copy)]
enum Role {
    /// A demand of its own, and how much it counts.
    Own { power: f64 },
    /// Another demand waits for it: that it is there when that one needs it.
    For { weight: f64 },
}

/// All demands of a program.
pub(super) struct Demands {
    all: Vec<Demand>,
    /// Those of the conditions of the trace, with the earliest time of the read, in its order.
    line: Vec<(u64, usize)>,
    /// Those that were blamed.
    blamed: Vec<usize>,
    /// Writes by cell's word: thread and place in it.
    writes: FxHashMap<usize, Vec<(usize, usize)>>,
    /// How often it was said what is to be looked at.
    looks: u64,
    /// Of demands that another one waits for.
    chances: Vec<f64>,
}

impl Demands {
    pub(super) fn new(program: &mut Program<'_>) -> Self {
        let mut demands = Self {
            all: Vec::new(),
            line: Vec::new(),
            blamed: Vec::new(),
            writes: FxHashMap::default(),
            looks: 0,
            chances: Vec::new(),
        };
        for (thread, ops) in program.threads.iter().enumerate() {
            for (index, op) in ops.iter().enumerate() {
                for (cell, _) in &op.writes {
                    demands.writes.entry(*cell).or_default().push((thread, index));
                }
            }
        }
        for thread in 0..program.threads.len() {
            for index in 0..program.threads[thread].len() {
                let op = &program.threads[thread][index];
                let earliest = op.interval.earliest;
                let parts: Vec<(usize, VarId)> =
                    op.reads.iter().map(|&(cell, _, var)| (cell, var)).collect();
                for (cell, var) in parts {
                    let conditions = conditions_of(&program.threads[thread][index], var);
                    if conditions.is_empty() || demands.is_common(program, cell, &conditions) {
                        continue;
                    }
                    let read = (thread, index, cell);
                    if let Some(demand) =
                        demands.add(program, read, conditions, Test::Conditions, LEVELS)
                    {
                        demands.line.push((earliest, demand));
                    }
                }
            }
        }
        demands.line.sort_unstable();
        demands
    }

    /// Would most of the constants that are written to the cell do?
    fn is_common(&self, program: &mut Program<'_>, cell: usize, conditions: &[u32]) -> bool {
        let (mut right, mut all) = (0.0, 0.0);
        for &(thread, index) in self.writes.get(&cell).into_iter().flatten().take(MOST_SOURCES) {
            for (written, function) in &program.threads[thread][index].writes {
                if *written != cell {
                    continue;
                }
                if let Function::Constant(value) = *function {
                    all += 1.0;
                    if conditions.iter().all(|&place| program.functions.of_one(place, value) != 0) {
                        right += 1.0;
                    }
                }
            }
        }
        right > COMMON * all
    }

    fn add(
        &mut self,
        program: &mut Program<'_>,
        (thread, index, cell): (usize, usize, usize),
        conditions: Vec<u32>,
        test: Test,
        levels: u32,
    ) -> Option<usize> {
        let writes = self.writes.get(&cell).cloned().unwrap_or_default();
        let own =
            writes.iter().filter(|&&(by, at)| by == thread && at < index).map(|&(_, at)| at).max();
        let read = program.threads[thread][index].interval;
        let of = |by: usize, at: usize| program.threads[by][at].interval;
        // What is before this is hidden by a write that surely comes before the read.
        let surely = writes.iter().filter(|&&(by, at)| {
            of(by, at).latest < read.earliest || (by == thread && Some(at) == own)
        });
        let hidden = surely.map(|&(by, at)| of(by, at).earliest).max().unwrap_or(0);
        let may_be = |&&(by, at): &&(usize, usize)| {
            let is_there =
                if by == thread { Some(at) == own } else { of(by, at).earliest <= read.latest };
            is_there && of(by, at).latest >= hidden
        };
        let found: Vec<(usize, usize)> = writes.iter().filter(may_be).copied().collect();
        if found.len() > MOST_SOURCES {
            return None;
        }
        let demand = self.all.len();
        let (small, known) = ((0, 0), FxHashMap::default());
        let sources = Vec::with_capacity(found.len());
        self.all.push(Demand {
            thread,
            index,
            cell,
            conditions,
            test,
            small,
            known,
            own,
            sources,
            live: Vec::new(),
            looked_at: 0,
            blamed: 0,
        });
        for (by, at) in found {
            if let Some(of) = self.written(program, (by, at, cell), demand, levels) {
                let is_own = by == thread;
                let source = Source { thread: by as u32, index: at as u32, is_own, of };
                self.all[demand].sources.push(source);
            }
        }
        Some(demand)
    }

    /// What a write may do for a demand; `None` for nothing.
    fn written(
        &mut self,
        program: &mut Program<'_>,
        (thread, index, cell): (usize, usize, usize),
        demand: usize,
        levels: u32,
    ) -> Option<Written> {
        let op = &program.threads[thread][index];
        let function = op.writes.iter().find(|(written, _)| *written == cell);
        match function?.1 {
            Function::Constant(value) => {
                self.fits(program, demand, value).then_some(Written::Right)
            }
            Function::OfMany(_) => Some(Written::Anything),
            Function::OfOne(place, word) => {
                // Who read what is in the word then?
                let before = program.threads[thread][..=index].iter().enumerate().rev();
                let mut read = before.filter_map(|(at, op)| {
                    let part = op.reads.iter().find(|(_, to, _)| *to == Some(word))?;
                    Some((at, part.0, part.2))
                });
                let Some((at, from, var)) = read.next() else { return Some(Written::Anything) };
                if at == index {
                    // An update: it reads what is there when it writes.
                    return Some(Written::Anything);
                }
                let mut of =
                    Written::Of { index: at as u32, word: word as u32, place, demand: None };
                if levels > 0 {
                    let conditions = conditions_of(&program.threads[thread][at], var);
                    let test = Test::Then { place, demand };
                    let child = self.add(program, (thread, at, from), conditions, test, levels - 1);
                    if let Written::Of { demand, .. } = &mut of {
                        // The first demand is nobody's child.
                        *demand = child.and_then(|child| NonZeroU32::new(child as u32));
                    }
                }
                Some(of)
            }
        }
    }

    /// Does a value fit a demand?
    fn fits(&mut self, program: &mut Program<'_>, demand: usize, value: u64) -> bool {
        let bit = (value < SMALL as u64).then(|| 1 << value);
        match bit {
            Some(bit) if self.all[demand].small.0 & bit != 0 => {
                return self.all[demand].small.1 & bit != 0;
            }
            Some(_) => {}
            None => {
                if let Some(&known) = self.all[demand].known.get(&value) {
                    return known;
                }
            }
        }
        let Demand { conditions, test, .. } = &self.all[demand];
        let mut fits = conditions.iter().all(|&place| program.functions.of_one(place, value) != 0);
        if let Test::Then { place, demand } = *test
            && fits
        {
            let made = program.functions.of_one(place, value);
            fits = self.fits(program, demand, made);
        }
        let Demand { small, known, .. } = &mut self.all[demand];
        match bit {
            Some(bit) => {
                small.0 |= bit;
                small.1 |= if fits { bit } else { 0 };
            }
            None => {
                known.insert(value, fits);
            }
        }
        fits
    }

    /// Leaves out of account what has happened in all states from now on; `first` demands are left
    /// out already, and how many are now is the answer.
    pub(super) fn met(&self, first: usize, is_met: impl Fn(usize, usize) -> bool) -> usize {
        let met = self.line[first..].iter().take_while(|(_, demand)| {
            let demand = &self.all[*demand];
            is_met(demand.thread, demand.index)
        });
        first + met.count()
    }

    /// Notes that nothing led past a read: its demands count for more from now on, and are thought of
    /// earlier.
    pub(super) fn blame(&mut self, program: &mut Program<'_>, (thread, index): (usize, usize)) {
        let parts: Vec<(usize, VarId)> = match program.threads[thread].get(index) {
            Some(op) => op.reads.iter().map(|&(cell, _, var)| (cell, var)).collect(),
            None => return,
        };
        for (cell, var) in parts {
            let is_its = |&demand: &usize| {
                let demand = &self.all[demand];
                (demand.thread, demand.index, demand.cell) == (thread, index, cell)
            };
            let mut in_line = self.line.iter().map(|&(_, demand)| demand);
            let known = self.blamed.iter().copied().find(is_its);
            let demand = known.or_else(|| in_line.find(is_its)).or_else(|| {
                let conditions = conditions_of(&program.threads[thread][index], var);
                let read = (thread, index, cell);
                let is_demand = !conditions.is_empty();
                is_demand.then(|| self.add(program, read, conditions, Test::Conditions, LEVELS))?
            });
            let Some(demand) = demand else { continue };
            self.all[demand].blamed += 1;
            if known.is_none() {
                self.blamed.push(demand);
            }
        }
    }

    /// Has [`worth`](Self::worth) look at nothing that has happened in all states: `done` says how many
    /// events of each thread have.
    pub(super) fn look_at(&mut self, first: usize, until: u64, done: &[u64]) {
        self.looks += 1;
        let mut next: Vec<usize> = self.blamed.clone();
        next.retain(|&demand| self.all[demand].index as u64 >= done[self.all[demand].thread]);
        let soon = self.line[first..].iter().take_while(|(earliest, _)| *earliest <= until);
        next.extend(soon.map(|&(_, demand)| demand));
        while let Some(demand) = next.pop() {
            let Demand { sources, live, looked_at, .. } = &mut self.all[demand];
            if std::mem::replace(looked_at, self.looks) == self.looks {
                continue;
            }
            live.clear();
            let is_live =
                |source: &&Source| u64::from(source.index) >= done[source.thread as usize];
            live.extend(sources.iter().filter(is_live));
            next.extend(live.iter().filter_map(|source| match source.of {
                Written::Of { demand, .. } => Some(demand?.get() as usize),
                Written::Right | Written::Anything => None,
            }));
        }
    }

    /// What decides how likely the demands are met that are not left out, up to some time, in states in
    /// which so many events of each thread have happened; or the read of one that cannot be, its thread and its
    /// place there.
    pub(super) fn left(
        &self,
        done: &[u64],
        first: usize,
        until: u64,
    ) -> Result<Left, (usize, usize)> {
        let mut left = Left::default();
        let soon = self.line[first..].iter().take_while(|(earliest, _)| *earliest <= until);
        let soon = soon.map(|&(_, demand)| demand);
        let soon = soon.filter(|&demand| self.all[demand].blamed == 0);
        let is_near = |&demand: &usize| {
            let Demand { thread, index, .. } = self.all[demand];
            index < done[thread] as usize + AHEAD
        };
        let blamed = self.blamed.iter().copied().filter(is_near);
        for demand in soon.chain(blamed) {
            let Demand { thread, index, blamed, .. } = self.all[demand];
            if done[thread] as usize > index {
                continue;
            }
            let power = 1.0 + DEARER * f64::from(blamed.min(MOST_BLAMED));
            self.add_left(done, demand, Role::Own { power }, &mut left);
            let cannot = |root: &Node| {
                root.cell.is_none() && root.words == 0 && root.children == 0 && root.missed >= 1.0
            };
            if left.nodes.last().is_some_and(cannot) {
                return Err((thread, index));
            }
        }
        Ok(left)
    }

    /// Adds a demand behind those of the reads that it depends on.
    fn add_left(&self, all: &[u64], at: usize, role: Role, left: &mut Left) {
        let Demand { thread, index, cell, own, ref live, .. } = self.all[at];
        let mine = all[thread] as usize;
        let is_there = own.is_none_or(|own| own < mine);
        let (mut missed, mut children, mut words) = (1.0, 0, Vec::new());
        for &Source { thread, index, is_own, of } in live {
            let done = all[thread as usize];
            if done > u64::from(index) {
                continue;
            }
            let weight = if is_own { OWN } else { OTHERS };
            match of {
                Written::Right => missed *= 1.0 - weight,
                Written::Of { index, word, place, .. } if done > u64::from(index) => {
                    words.push((word, place, weight));
                }
                Written::Of { demand: Some(demand), .. } => {
                    self.add_left(all, demand.get() as usize, Role::For { weight }, left);
                    children += 1;
                }
                Written::Anything | Written::Of { demand: None, .. } => {
                    missed *= 1.0 - UNKNOWN * weight;
                }
            }
        }
        left.nodes.push(Node {
            demand: at as u32,
            cell: is_there.then_some(cell as u32),
            stays: 1.0 - (STAYS.0 + STAYS.1 / (1 + index - mine) as f64),
            missed,
            role,
            words: words.len() as u32,
            children,
        });
        left.words.extend(words);
    }

    /// The logarithm of the probability that the demands can be met that `left` is about, or the read
    /// whose demand cannot.
    pub(super) fn worth(
        &mut self,
        program: &mut Program<'_>,
        state: &[u64],
        left: &Left,
    ) -> Result<f64, (usize, usize)> {
        self.chances.clear();
        let (mut worth, mut product, mut words) = (0.0, 1.0f64, left.words.iter());
        for node in &left.nodes {
            let demand = node.demand as usize;
            let mut missed = node.missed;
            if let Some(cell) = node.cell
                && self.fits(program, demand, state[cell as usize])
            {
                missed *= node.stays;
            }
            for &(word, place, weight) in words.by_ref().take(node.words as usize) {
                let written = program.functions.of_one(place, state[word as usize]);
                if self.fits(program, demand, written) {
                    missed *= 1.0 - weight;
                }
            }
            for _ in 0..node.children {
                missed *= 1.0 - self.chances.pop().unwrap_or(0.0);
            }
            let chance = 1.0 - missed;
            match node.role {
                Role::For { weight } => self.chances.push(weight * chance),
                Role::Own { .. } if chance <= 0.0 => {
                    return Err((self.all[demand].thread, self.all[demand].index));
                }
                Role::Own { power } if power > 1.0 => worth += power * chance.ln(),
                Role::Own { .. } => {
                    product *= chance;
                    // Far from where it would be 0.
                    if product < 1e-100 {
                        worth += product.ln();
                        product = 1.0;
                    }
                }
            }
        }
        Ok(worth + product.ln())
    }
}

/// The conditions of an event that are about one variable alone.
fn conditions_of(op: &Op, var: VarId) -> Vec<u32> {
    let about = op.conditions.iter().filter(|condition| condition.only == Some(var));
    let places = about.filter_map(|condition| match condition.function {
        Function::OfOne(place, _) => Some(place),
        Function::Constant(_) | Function::OfMany(_) => None,
    });
    places.collect()
}
