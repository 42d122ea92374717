//! A failing schedule made from its beginning, by taking very many states a step further at a time.
//!
//! What a thread does next depends on what the cells hold, not on who wrote it. So states in which all
//! threads are as far and all cells hold the same are one, however they came about; that is what a
//! search for the sources of reads, which takes a decision for each, cannot see. Of all states with the
//! same number of events so many are kept, those whose rare reads can still be served
//! ([`demands`]) before others, with some luck. Where none is left, the search goes back a little,
//! keeps more, and gives more weight to the reads at which the states ended.
//!
//! It knows the recorded run's clock as orders between events, and is of use where these leave few
//! events to choose from at each moment. What it finds is a proposal: whoever asked checks it. That it
//! finds nothing says nothing.

mod demands;
mod functions;
mod program;
#[cfg(test)]
mod tests;

use demands::Demands;
use model::{EventId, EventTrace};
use program::Program;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::BTreeMap;
use std::hash::Hasher;

/// So many states are kept.
const WIDTH: usize = 500;
/// Where the search is stuck: how many times as many are kept then, and how many events it goes back.
/// Behind the last it begins with the first again, since luck differs.
const AGAIN: [(usize, usize); 6] = [(1, 60), (2, 120), (4, 120), (4, 240), (8, 240), (16, 480)];
/// So many times the search goes back without getting any further.
const TRIES: usize = 60;
/// Where the search was stuck, it keeps more states until it is so many events further.
const BEYOND: usize = 60;
/// Every so many events the states are kept for going back.
const APART: usize = 50;
/// So many times...
const KEPT: usize = 40;
/// ...of so many words in all.
const KEPT_WORDS: usize = 1 << 25;
/// No more words of states are taken a step further at once.
const WIDEST: usize = 1 << 22;
/// Where the search is stuck, states that ended so many events before count for what is to blame.
const NEAR: usize = 12;
/// One of so many of these ended at a read that is to blame.
const SHARE: usize = 10;
/// How much luck counts, in the unit of the logarithms of probabilities.
const LUCK: f64 = 2.5;

/// Where a state came from: the step before, and the thread that went on.
type Step = (u32, u32);
/// The step before the first.
const NO_STEP: u32 = u32::MAX;

/// States of which as many events have happened.
#[derive(Clone, Default)]
struct Level {
    /// One behind the other.
    words: Vec<u64>,
    /// Where each came from.
    steps: Vec<Step>,
}

/// What is needed to go on from an earlier place.
struct Place {
    number: usize,
    levels: BTreeMap<usize, Level>,
    history: usize,
    met: usize,
}

/// The search for one trace.
pub(crate) struct Forward<'a> {
    program: Program<'a>,
    demands: Demands,
    /// The levels that are not done.
    levels: BTreeMap<usize, Level>,
    history: Vec<Step>,
    places: Vec<Place>,
    /// Of their states.
    kept_words: usize,
    /// Demands that are met in all states.
    met: usize,
    random: u64,
    /// Reads at which states ended, thread and place there: how many of late, and the most events that
    /// had happened.
    ends: FxHashMap<(usize, usize), (usize, usize)>,
}

impl<'a> Forward<'a> {
    /// A search in a trace with the orders that hold in every schedule that is wanted, pairs of
    /// events; `None` where the trace has something that the search does not know.
    pub(crate) fn new(trace: &'a EventTrace, certain: &[(u32, u32)]) -> Option<Self> {
        let mut program = Program::new(trace, certain)?;
        let demands = Demands::new(&mut program);
        let mut first = program.first.clone();
        program.settle(&mut first, |_| {});
        let mut levels = BTreeMap::new();
        let level = program.done(&first);
        levels.insert(level, Level { words: first, steps: vec![(NO_STEP, 0)] });
        let (history, places) = (Vec::new(), Vec::new());
        Some(Self {
            program,
            demands,
            levels,
            history,
            places,
            kept_words: 0,
            met: 0,
            random: 0x9e37_79b9_7f4a_7c15,
            ends: FxHashMap::default(),
        })
    }

    /// Looks for a schedule that follows the recorded paths and fails, as far as the search knows.
    /// `goes_on` is asked for every number of events that have happened, with about how many bytes are in
    /// use; `None` when it says no, or when nothing is found.
    pub(crate) fn find(&mut self, mut goes_on: impl FnMut(usize) -> bool) -> Option<Vec<EventId>> {
        let (mut last, mut stuck, mut tries, mut saved) = (0usize, 0usize, 0usize, None);
        let mut width = WIDTH;
        loop {
            if !goes_on(self.bytes()) {
                return None;
            }
            let Some((number, level)) = self.levels.pop_first() else {
                if tries == TRIES {
                    return None;
                }
                stuck = last.max(stuck);
                let (times, back) = AGAIN[tries % AGAIN.len()];
                tracing::debug!(stuck, tries, times, back, "goes back");
                self.blame(last);
                tries += 1;
                width = WIDTH * times;
                saved = Some(self.go_back(stuck.saturating_sub(back))?);
                continue;
            };
            if number == self.program.events {
                return Some(self.order(level.steps.first().copied()?));
            }
            if number > stuck + BEYOND {
                (tries, width) = (0, WIDTH);
            }
            last = number;
            if saved.is_none_or(|saved| number >= saved + APART) {
                saved = Some(number);
                self.save(number, &level);
            }
            self.expand(number, &level, width);
        }
    }

    fn bytes(&self) -> usize {
        let words = words(&self.levels) + self.kept_words;
        words * size_of::<u64>() + self.history.len() * size_of::<Step>()
    }

    /// Notes that states with so many events ended at a read.
    fn ended(&mut self, read: (usize, usize), number: usize, states: usize) {
        let (count, last) = self.ends.entry(read).or_default();
        if *last + NEAR < number {
            *count = 0;
        }
        *count += states;
        *last = number.max(*last);
    }

    /// Notes that nothing led past a number of events: the reads at which most of the last states ended
    /// count for more from now on.
    fn blame(&mut self, last: usize) {
        let ends = std::mem::take(&mut self.ends);
        let near = || ends.iter().filter(|(_, (_, number))| number + NEAR >= last);
        let all: usize = near().map(|(_, (count, _))| count).sum();
        let mut blamed: Vec<(usize, usize)> =
            near().filter(|(_, (count, _))| count * SHARE >= all).map(|(read, _)| *read).collect();
        blamed.sort_unstable();
        for read in blamed {
            self.demands.blame(&mut self.program, read);
        }
    }

    fn save(&mut self, number: usize, level: &Level) {
        let mut levels = self.levels.clone();
        levels.insert(number, level.clone());
        self.places.push(Place { number, levels, history: self.history.len(), met: self.met });
        self.kept_words += self.places.last().map_or(0, |place| words(&place.levels));
        // The first one stays, in case that nothing else helps, and so does the last.
        while self.places.len() > 2 && (self.places.len() > KEPT || self.kept_words > KEPT_WORDS) {
            self.kept_words -= words(&self.places.remove(1).levels);
        }
    }

    /// Goes back to the last kept place that is not behind `number`, or else to the first; says which.
    fn go_back(&mut self, number: usize) -> Option<usize> {
        while self.places.len() > 1 && self.places.last()?.number > number {
            self.kept_words -= self.places.pop().map_or(0, |place| words(&place.levels));
        }
        let place = self.places.last()?;
        self.levels.clone_from(&place.levels);
        self.history.truncate(place.history);
        self.met = place.met;
        Some(place.number)
    }

    /// Takes the best states of a level a step further, each in every way that there is.
    fn expand(&mut self, number: usize, level: &Level, width: usize) {
        let size = self.program.first.len();
        let chosen = self.choose(number, level, width.min(WIDEST / size));
        let threads = self.program.threads.len();
        let mut state = Vec::with_capacity(size);
        for at in chosen {
            let before = &level.words[at * size..(at + 1) * size];
            let mut step = None;
            for thread in 0..threads {
                state.clear();
                state.extend_from_slice(before);
                if !self.program.step(&mut state, thread) {
                    if self.program.may_step(before, thread) {
                        self.ended((thread, before[thread] as usize), number, 1);
                    }
                    continue;
                }
                self.program.settle(&mut state, |_| {});
                let step = *step.get_or_insert_with(|| {
                    self.history.push(level.steps[at]);
                    self.history.len() as u32 - 1
                });
                let further = self.levels.entry(self.program.done(&state)).or_default();
                further.words.extend_from_slice(&state);
                further.steps.push((step, thread as u32));
            }
        }
    }

    /// The places of the states of a level that are kept: different ones that may lead somewhere.
    fn choose(&mut self, number: usize, level: &Level, width: usize) -> Vec<usize> {
        let size = self.program.first.len();
        let state = |at: usize| &level.words[at * size..(at + 1) * size];
        let mut seen = FxHashSet::default();
        let mut different: Vec<usize> = (0..level.steps.len()).collect();
        // Of two states with one hash the second is lost, which loses no more than bad luck does.
        different.retain(|&at| seen.insert(hash(state(at))));
        let program = &self.program;
        let until = different.iter().filter_map(|&at| program.latest(state(at))).max();
        let done = |thread: usize, index: usize| {
            different.iter().all(|&at| state(at)[thread] as usize > index)
        };
        self.met = self.demands.met(self.met, done);
        let until = until.unwrap_or(u64::MAX);
        let least =
            |thread: usize| different.iter().map(|&at| state(at)[thread]).min().unwrap_or(0);
        let done: Vec<u64> = (0..self.program.threads.len()).map(least).collect();
        self.demands.look_at(self.met, until, &done);
        let threads = self.program.threads.len();
        let events_of = |at: usize| &state(at)[..threads];
        different.sort_unstable_by_key(|&at| events_of(at));
        let mut worths = Vec::with_capacity(different.len());
        for group in different.chunk_by(|&a, &b| events_of(a) == events_of(b)) {
            let left = match self.demands.left(events_of(group[0]), self.met, until) {
                Ok(left) => left,
                Err(read) => {
                    self.ended(read, number, group.len());
                    continue;
                }
            };
            for &at in group {
                match self.demands.worth(&mut self.program, state(at), &left) {
                    Ok(worth) => {
                        let luck = -(-self.random().ln()).ln();
                        worths.push((worth + LUCK * luck, at));
                    }
                    Err(read) => self.ended(read, number, 1),
                }
            }
        }
        if worths.len() > width {
            worths.select_nth_unstable_by(width, |a, b| b.0.total_cmp(&a.0));
            worths.truncate(width);
        }
        worths.into_iter().map(|(_, at)| at).collect()
    }

    /// More than 0 and less than 1.
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// The events on the way to a state.
    fn order(&mut self, (mut step, thread): Step) -> Vec<EventId> {
        let mut threads = vec![thread];
        while let Some(&(before, thread)) = self.history.get(step as usize) {
            threads.push(thread);
            step = before;
        }
        // The first state came about by no thread's step.
        threads.pop();
        let mut state = self.program.first.clone();
        let mut happened = Vec::with_capacity(self.program.events);
        self.program.settle(&mut state, |thread| happened.push(thread));
        for &thread in threads.iter().rev() {
            self.program.step(&mut state, thread as usize);
            happened.push(thread as usize);
            self.program.settle(&mut state, |thread| happened.push(thread));
        }
        let mut next = vec![0; self.program.threads.len()];
        let event = |thread: usize| {
            next[thread] += 1;
            self.program.threads[thread].get(next[thread] - 1).map(|op| op.event)
        };
        happened.into_iter().filter_map(event).collect()
    }
}

fn words(levels: &BTreeMap<usize, Level>) -> usize {
    levels.values().map(|level| level.words.len()).sum()
}

fn hash(state: &[u64]) -> u64 {
    let mut hasher = FxHasher::default();
    state.iter().for_each(|&word| hasher.write_u64(word));
    hasher.finish()
}
