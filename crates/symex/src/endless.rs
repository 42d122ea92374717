//! Loops that a thread was in to the end of its log, in a run that was ended because it took too long.
//!
//! Such a thread does in every round what it did in the round before, by the million: to walk all of it
//! takes longer than anybody waits, and the solver is asked about events that tell nothing new. What made
//! the thread go round was there before, so the run is taken as if it had been ended sooner: some rounds
//! after the last moment at which any other thread did something. The first part of a run is a run.
//!
//! That a thread stayed in the loop is read off its path: when it has gone round for a while, nothing
//! comes any more that did not come in the later half of those rounds ([`Likeness`]). A thread that stops for good after
//! hundreds of thousands of rounds, at a lock, has a path like that, so nothing of the kind is looked for in a run whose threads
//! all waited when it was ended. Where that is not so the loop is
//! looked at again after twice as many rounds, and where it never is the whole log is walked.

use crate::budget::Limits;
use crate::choices::choices;
use crate::engine::{Engine, Learned, Pass};
use crate::idle::LeaveOut;
use crate::image::{FunctionInfo, Image};
use crate::recording::{RecordedFailureKind, Recording};
use crate::report::{EndlessLoop, SymexError};
use crate::shadow::Shadow;
use crate::streams::Window;
use crate::thread::{Stop, Thread};
use ir::types::{BlockId, FuncId};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::layout::tag;
use trace_format::{Pieces, TraceError};

/// So many rounds are walked before a loop is looked at.
const FIRST_LOOK: u64 = 64;
/// After so many, rounds count that only look alike.
const SHAPE_LOOK: u64 = 256;
/// What is left out has to be so many times as long as what the rounds were judged by, or it is not worth it.
const WORTH: usize = 8;
/// So many entries at the end may be others: a thread that is stopped leaves a token that is not full.
const LAST: usize = 4;
/// So many loops around each other are followed.
const DEEPEST: usize = 32;

/// Where the walk of a thread ends before its log does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Entries of the path that are passed, and choices that are left of the last one.
    at: (usize, u32),
    /// The loop's header: module, function, block.
    header: (usize, FuncId, BlockId),
    rounds: u64,
    /// How many entries the path has.
    length: usize,
}

/// A loop that a thread is in.
struct Turning {
    serial: u64,
    header: BlockId,
    rounds: u64,
    /// How many entries were passed when half of the rounds were over after which it is looked at.
    half: usize,
}

/// Finds the loops.
#[derive(Default)]
pub(crate) struct Scout {
    /// Rounds count from this moment on.
    from: u64,
    /// The loops that the thread being walked is in, outer ones first.
    loops: Vec<Turning>,
    thread: usize,
    /// After how many rounds a loop is looked at; [`FIRST_LOOK`] where nothing is said.
    looks: FxHashMap<(usize, FuncId, BlockId), u64>,
}

/// Where to end the walks, by thread in the engine's order; nothing where every log is walked to its end.
pub(crate) fn find<'r>(
    recording: &'r Recording,
    limits: &'r Limits<'r>,
    image: &'r Image<'r>,
    order: &[usize],
) -> Result<Vec<Option<Cut>>, SymexError> {
    let timed_out = limits.failure.as_ref().map(|failure| failure.kind);
    if timed_out != Some(RecordedFailureKind::TimedOut)
        || limits.stuck
        || !limits.options.cut_endless
    {
        return Ok(Vec::new());
    }
    // The first walk tells when the other threads did something last, the second one ends behind that.
    let (_, latest) = scouted(recording, limits, image, order, 0)?;
    let from = if recording.common_clock { latest } else { 0 };
    let (cuts, _) = scouted(recording, limits, image, order, from)?;
    tracing::debug!(?cuts, "looked for endless loops");
    Ok(cuts)
}

fn scouted<'r>(
    recording: &'r Recording,
    limits: &'r Limits<'r>,
    image: &'r Image<'r>,
    order: &[usize],
    from: u64,
) -> Result<(Vec<Option<Cut>>, u64), SymexError> {
    let (pass, nothing) = (Pass::Survey(Box::<Shadow>::default()), LeaveOut::Nothing);
    let learned = Learned::default();
    let mut engine = Engine::new(image, recording, limits, pass, learned, order, nothing);
    engine.scout = Some(Scout { from, ..Scout::default() });
    engine.run()?;
    let latest = engine.threads.iter().map(Thread::acted_last).max();
    let cuts = engine.threads.iter().map(|thread| thread.cut).collect();
    Ok((cuts, latest.unwrap_or(0)))
}

impl<'r> Engine<'r> {
    /// The thread has entered a block from another one: ends its walk where that is known, or looked for.
    pub fn end_in_loop(
        &mut self,
        t: usize,
        info: &'r FunctionInfo<'r>,
        from: BlockId,
        target: BlockId,
    ) -> Result<(), Stop> {
        let header = (info.module, info.id, target);
        if self.scout.is_none() {
            let thread = &self.threads[t];
            let over = |cut: &Cut| cut.header == header && thread.is_behind(cut.at);
            let Some(cut) = thread.cut.filter(over) else { return Ok(()) };
            let site = self.site_of_branch(t, from, target);
            let thread = &mut self.threads[t];
            let (rounds, walked, logged) = (cut.rounds, cut.at.0, cut.length);
            thread.report.endless = Some(EndlessLoop { site, rounds, walked, logged });
            thread.forget_rest();
            return Err(Stop::EndOfLog);
        }
        let Some(body) = info.loops().at(target) else { return Ok(()) };
        let Some((half, rounds)) = self.count_round(t, info, target, body.latches.contains(&from))
        else {
            return Ok(());
        };
        let thread = &mut self.threads[t];
        let at = thread.place();
        let stays = |likeness| stays(thread.log.streams.path(), (half, at.0), likeness);
        let alike = || (rounds >= SHAPE_LOOK).then(|| stays(Likeness::Shape)).flatten();
        let Some(length) = stays(Likeness::Exact).or_else(alike) else {
            if let Some(scout) = &mut self.scout {
                scout.looks.insert(header, rounds.saturating_mul(2));
                scout.loops.last_mut().into_iter().for_each(|turning| turning.half = at.0);
            }
            return Ok(());
        };
        thread.cut = Some(Cut { at, header, rounds, length });
        thread.forget_rest();
        Err(Stop::EndOfLog)
    }

    /// Counts a round; where the loop is to be looked at, how far the thread was at half of the rounds,
    /// and how many there are.
    fn count_round(
        &mut self,
        t: usize,
        info: &FunctionInfo<'_>,
        header: BlockId,
        again: bool,
    ) -> Option<(usize, u64)> {
        let thread = &self.threads[t];
        let (position, serial) = (thread.place().0, thread.code()?.serial);
        let scout = self.scout.as_mut()?;
        if scout.thread != t {
            scout.loops.clear();
            scout.thread = t;
        }
        let known = |turning: &Turning| (turning.serial, turning.header) == (serial, header);
        let inner = scout.loops.iter().rposition(known).map_or(scout.loops.len(), |at| at + 1);
        scout.loops.truncate(inner);
        if !again || !scout.loops.last().is_some_and(known) {
            if scout.loops.last().is_some_and(known) {
                scout.loops.pop();
            }
            if scout.loops.len() == DEEPEST {
                scout.loops.remove(0);
            }
            scout.loops.push(Turning { serial, header, rounds: 0, half: position });
            return None;
        }
        let turning = scout.loops.last_mut()?;
        if thread.last_stamp < scout.from {
            return None;
        }
        turning.rounds += 1;
        let key = (info.module, info.id, header);
        let look = scout.looks.get(&key).copied().unwrap_or(FIRST_LOOK);
        if turning.rounds == look / 2 {
            turning.half = position;
        }
        (turning.rounds == look).then_some((turning.half, look))
    }
}

impl Thread<'_> {
    /// Entries of the path that are passed, and choices that are left of the last one.
    fn place(&self) -> (usize, u32) {
        (self.path_position(), self.choices.left)
    }

    /// When it did something last, but for waiting in rounds that are counted: who polls until the run is ended
    /// does nothing that another thread sees.
    pub(crate) fn acted_last(&self) -> u64 {
        let (since, until) = self.waited;
        if until == self.last_stamp { since } else { self.last_stamp }
    }

    fn is_behind(&self, (entries, left): (usize, u32)) -> bool {
        let here = self.place();
        here.0 > entries || (here.0 == entries && here.1 <= left)
    }
}

/// What of a path entry tells where the thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Likeness {
    /// All of it.
    Exact,
    /// Of choices only how many there are: which way the branches of a round go, and which values were
    /// guessed right, may differ. A loop that is left leaves a token that is not full.
    Shape,
}

/// An entry as far as it counts. What the runtime noted does not: it says how long a lock took, and when the
/// clock was read.
fn telling(word: u32, likeness: Likeness) -> Option<u32> {
    match choices(word) {
        _ if word >> tag::SHIFT == tag::RUNTIME => None,
        Some(token) if likeness == Likeness::Shape => Some(token.ilog2()),
        _ => Some(word),
    }
}

/// How long a path is that holds no three entries in a row from entry `to` on that do not come between
/// `from` and `to`, and many of these; none for other paths.
fn stays(
    path: Result<Pieces<u32>, TraceError>,
    (from, to): (usize, usize),
    likeness: Likeness,
) -> Option<usize> {
    let mut path = Window::open(path);
    let mut seen: FxHashSet<[u32; 3]> = FxHashSet::default();
    let mut last = [0; 3];
    let mut at = 0;
    let mut strange: Option<usize> = None;
    while let Some(word) = path.first() {
        path.pass(1);
        if let Some(telling) = telling(word, likeness) {
            last = [last[1], last[2], telling];
            if (from..to).contains(&at) {
                seen.insert(last);
            } else if at >= to && strange.is_none() && !seen.contains(&last) {
                strange = Some(at);
            }
        }
        at += 1;
        if strange.is_some_and(|strange| at > strange + LAST) {
            return None;
        }
    }
    let worth = at - to.min(at) >= WORTH * (to - from).max(1);
    (worth && path.take_error().is_none()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_format::{InMemory, Streams};

    fn judged(path: &[u32], from: usize, to: usize) -> bool {
        let path = InMemory { path: path.to_vec(), piece: 7, ..InMemory::default() }.path();
        stays(path, (from, to), Likeness::Exact).is_some()
    }

    fn rounds(round: &[u32], count: usize) -> Vec<u32> {
        round.iter().copied().cycle().take(round.len() * count).collect()
    }

    #[test]
    fn a_thread_stays_in_a_loop_when_nothing_new_comes() {
        let path = rounds(&[1, 2, 3], 100);
        assert!(judged(&path, 6, 12));
        let mut left = path.clone();
        left.extend([4, 1, 2, 3, 1, 2, 3]);
        assert!(!judged(&left, 6, 12), "it came out of the loop");
        let mut stopped = path.clone();
        stopped.push(4);
        assert!(judged(&stopped, 6, 12), "it was stopped in the middle of a round");
    }

    #[test]
    fn what_the_runtime_notes_says_nothing() {
        let mut path = rounds(&[1, 2, 3], 50);
        path.push(tag::RUNTIME << tag::SHIFT | 7);
        path.extend(rounds(&[1, 2, 3], 50));
        assert!(judged(&path, 6, 12));
    }

    #[test]
    fn little_is_not_left_out() {
        assert!(!judged(&rounds(&[1, 2, 3], 10), 6, 12));
    }
}
