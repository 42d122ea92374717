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
}

/// All demands of a program.
pub(super) struct Demands {
    all: Vec<Demand>,
    /// Those of the conditions of the trace, with the earliest time of the read, in its order.
    line: Vec<(u64, usize)>,
    /// Writes by cell's word: thread and place in it.
    writes: FxHashMap<usize, Vec<(usize, usize)>>,
    /// How often it was said what is to be looked at.
    looks: u64,
}

impl Demands {
    pub(super) fn new(program: &mut Program<'_>) -> Self {
        let mut demands =
            Self { all: Vec::new(), line: Vec::new(), writes: FxHashMap::default(), looks: 0 };
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

    /// Has [`worth`](Self::worth) look at nothing that has happened in all states: `done` says how many
    /// events of each thread have.
    pub(super) fn look_at(&mut self, first: usize, until: u64, done: &[u64]) {
        self.looks += 1;
        let mut next: Vec<usize> = Vec::new();
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

    /// The logarithm of the probability that the demands that are to be met up to some time, and
    /// are not left out, can be met; `None` when one cannot.
    pub(super) fn worth(
        &mut self,
        program: &mut Program<'_>,
        state: &[u64],
        first: usize,
        until: u64,
    ) -> Option<f64> {
        let mut worth = 0.0;
        for at in first..self.line.len() {
            let (earliest, demand) = self.line[at];
            if earliest > until {
                break;
            }
            if let Some(chance) = self.chance(program, state, demand) {
                if chance <= 0.0 {
                    return None;
                }
                worth += chance.ln();
            }
        }
        Some(worth)
    }

    /// The probability that a demand is met; `None` when its read has happened.
    fn chance(&mut self, program: &mut Program<'_>, state: &[u64], at: usize) -> Option<f64> {
        let Demand { thread, index, cell, own, .. } = self.all[at];
        let done = state[thread] as usize;
        if done > index {
            return None;
        }
        let mut missed = 1.0;
        if own.is_none_or(|own| own < done) && self.fits(program, at, state[cell]) {
            missed -= STAYS.0 + STAYS.1 / (1 + index - done) as f64;
        }
        for live in 0..self.all[at].live.len() {
            let Source { thread, index, is_own, of } = self.all[at].live[live];
            let done = state[thread as usize];
            if done > u64::from(index) {
                continue;
            }
            let right = match of {
                Written::Right => 1.0,
                Written::Anything => UNKNOWN,
                Written::Of { index, word, place, .. } if done > u64::from(index) => {
                    let written = program.functions.of_one(place, state[word as usize]);
                    if self.fits(program, at, written) { 1.0 } else { 0.0 }
                }
                Written::Of { demand: None, .. } => UNKNOWN,
                Written::Of { demand: Some(demand), .. } => {
                    self.chance(program, state, demand.get() as usize).unwrap_or(UNKNOWN)
                }
            };
            missed *= 1.0 - right * if is_own { OWN } else { OTHERS };
        }
        Some(1.0 - missed)
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
