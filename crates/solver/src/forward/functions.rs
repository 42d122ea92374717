//! Expressions over the words of a state. Those of one variable are remembered by its value.

use model::expr::{Compiled, Scratch};
use model::{ExprId, ExprPool, VarId};
use rustc_hash::FxHashMap;

/// So many values of one expression are remembered.
const REMEMBERED: usize = 1 << 14;

/// Values below this are found without a look into a map: as many as a word has bits.
pub(super) const SMALL: usize = 64;

/// What is computed from a state.
#[derive(Clone, Debug)]
pub(super) enum Function {
    Constant(u64),
    /// An expression by its place, and the word of its only variable.
    OfOne(u32, usize),
    /// An expression by its place.
    OfMany(u32),
}

struct Entry {
    compiled: Compiled,
    /// The words of its variables.
    words: Vec<usize>,
    /// Of one variable's expression: which of its values for small ones are known, and these.
    small: (u64, [u64; SMALL]),
    known: FxHashMap<u64, u64>,
}

/// All expressions.
pub(super) struct Functions<'a> {
    pool: &'a ExprPool,
    entries: Vec<Entry>,
    places: FxHashMap<(ExprId, usize), u32>,
    scratch: Scratch,
}

impl<'a> Functions<'a> {
    /// None yet; `pool` is the one that all expressions are of.
    pub(super) fn new(pool: &'a ExprPool) -> Self {
        let (entries, places) = (Vec::new(), FxHashMap::default());
        Self { pool, entries, places, scratch: Scratch::default() }
    }

    /// An expression whose variables are in these words; `None` when one has no word.
    pub(super) fn compile(
        &mut self,
        expr: ExprId,
        word: &impl Fn(VarId) -> Option<usize>,
    ) -> Option<Function> {
        if let Some(value) = self.pool.as_const(expr) {
            return Some(Function::Constant(value as u64));
        }
        let compiled = self.pool.compile(expr);
        let words = compiled.variables().iter().map(|&var| word(var));
        let words: Vec<usize> = words.collect::<Option<_>>()?;
        let place = self.entries.len() as u32;
        let function = match words[..] {
            [word] => match self.places.get(&(expr, word)) {
                Some(&place) => return Some(Function::OfOne(place, word)),
                None => {
                    self.places.insert((expr, word), place);
                    Function::OfOne(place, word)
                }
            },
            _ => Function::OfMany(place),
        };
        let (small, known) = ((0, [0; SMALL]), FxHashMap::default());
        self.entries.push(Entry { compiled, words, small, known });
        Some(function)
    }

    /// The value in a state; 0 where there is none.
    pub(super) fn value(&mut self, function: &Function, state: &[u64]) -> u64 {
        match *function {
            Function::Constant(value) => value,
            Function::OfOne(place, word) => self.of_one(place, state[word]),
            Function::OfMany(place) => {
                let entry = &self.entries[place as usize];
                let value = |place: usize| Some(u128::from(state[entry.words[place]]));
                let found = entry.compiled.evaluate(self.pool, &mut self.scratch, &value);
                found.unwrap_or(0) as u64
            }
        }
    }

    /// The value of an expression of one variable that has this value.
    pub(super) fn of_one(&mut self, place: u32, of: u64) -> u64 {
        let entry = &mut self.entries[place as usize];
        let small = (of < SMALL as u64).then_some(of as usize);
        match small {
            Some(at) if entry.small.0 >> at & 1 == 1 => return entry.small.1[at],
            Some(_) => {}
            None => {
                if let Some(&value) = entry.known.get(&of) {
                    return value;
                }
            }
        }
        let found =
            entry.compiled.evaluate(self.pool, &mut self.scratch, &|_| Some(u128::from(of)));
        let value = found.unwrap_or(0) as u64;
        if let Some(at) = small {
            entry.small.0 |= 1 << at;
            entry.small.1[at] = value;
            return value;
        }
        if entry.known.len() >= REMEMBERED {
            entry.known.clear();
        }
        entry.known.insert(of, value);
        value
    }
}
