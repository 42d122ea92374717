//! What lines leave in memory for later lines of the same thread where no other thread sees it. Shared bytes become
//! events, and the values that events compute tell what hangs on what; of memory that is the thread's own, or that nobody
//! writes any more, only this says which line needs which.
//!
//! What is kept per eight bytes is who wrote there last and who read there last: where in each of the innermost functions.
//! Two accesses by one activation of a function, at two of its lines, are a use of the one line by the other. Where they
//! stand in functions that these lines call, the lines of the calls count.
//!
//! Invariants: nothing is noted of a shared cell, and of a stack object nothing that was noted of an earlier one at its
//! place. What is left out, beyond [`MOST`] places or [`LONGEST`] bytes, is a use that is not known, never a wrong one.

use crate::access::Place;
use crate::engine::{Engine, is_private};
use crate::naming::{PlaceInCode, place_of};
use crate::thread::Frame;
use ir::types::LocId;
use model::Site;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Bytes per place.
const GRAIN: u64 = 8;
/// The most places that are kept.
const MOST: usize = 1 << 20;
/// The most bytes of one access that count.
const LONGEST: u64 = 1 << 16;
/// So many functions of a call stack count, innermost first.
const FRAMES: usize = 8;

/// A line uses what another one of its function left in memory of the thread's own, or overwrites what that one read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnUse {
    /// The file of both.
    pub file: String,
    /// The line that writes.
    pub from: u32,
    /// The line that reads.
    pub to: u32,
}

/// Where a thread was in one of its functions.
#[derive(Clone, Copy)]
struct Step<'r> {
    /// The activation.
    frame: u64,
    module: usize,
    place: PlaceInCode<'r>,
    loc: LocId,
}

/// The innermost functions of an access, inner to outer.
struct Moment<'r> {
    thread: usize,
    steps: SmallVec<[Step<'r>; 4]>,
}

#[derive(Clone, Default)]
struct Last<'r> {
    write: Option<Rc<Moment<'r>>>,
    read: Option<Rc<Moment<'r>>>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Own<'r> {
    last: FxHashMap<u64, Last<'r>>,
    /// Pairs of places in the code that were looked at, the writing one first.
    seen: FxHashSet<(usize, LocId, LocId)>,
    found: BTreeSet<OwnUse>,
}

impl Own<'_> {
    /// What was found.
    pub fn finish(self) -> Vec<OwnUse> {
        self.found.into_iter().collect()
    }

    /// A new object lies there.
    pub fn begin(&mut self, address: u64, length: u64) {
        if !self.last.is_empty() {
            for place in places(address, length) {
                self.last.remove(&place);
            }
        }
    }
}

fn places(address: u64, length: u64) -> impl Iterator<Item = u64> {
    let end = address.saturating_add(length.clamp(1, LONGEST) - 1);
    address / GRAIN..=end / GRAIN
}

impl<'r> Engine<'r> {
    /// Notes an access to memory that is not shared.
    pub(crate) fn note_own(&mut self, t: usize, place: Place, write: bool) {
        if !self.options.own_uses || !self.symbolic() || is_private(place.address) {
            return;
        }
        let Some(now) = self.moment(t).map(Rc::new) else { return };
        let mut known: SmallVec<[(Rc<Moment<'r>>, bool); 2]> = SmallVec::new();
        for at in places(place.address, place.length) {
            if self.own.last.len() >= MOST && !self.own.last.contains_key(&at) {
                continue;
            }
            let last = self.own.last.entry(at).or_default();
            // What a write overwrites was read by lines that are not to come behind it.
            let other = if write { last.read.take() } else { last.write.clone() };
            if let Some(other) =
                other.filter(|other| !known.iter().any(|(o, _)| Rc::ptr_eq(o, other)))
            {
                known.push((other, write));
            }
            let slot = if write { &mut last.write } else { &mut last.read };
            *slot = Some(Rc::clone(&now));
        }
        for (other, write) in known {
            let (writes, reads) = if write { (&now, &other) } else { (&other, &now) };
            self.note_use(writes, reads);
        }
    }

    /// A stack object begins there.
    pub(crate) fn begin_own(&mut self, address: u64, length: u64) {
        if self.options.own_uses && self.symbolic() {
            self.own.begin(address, length);
        }
    }

    fn moment(&self, t: usize) -> Option<Moment<'r>> {
        let code = self.threads[t].frames.iter().rev().filter_map(|frame| match frame {
            Frame::Code(frame) => Some(frame),
            Frame::External(_) => None,
        });
        // What has no place in the source is no line's: a parameter is put where it lies before the first one.
        let current = code.clone().next()?;
        let instruction = current.info.function.instructions.get(current.next.index())?;
        instruction.loc?;
        let steps = code.take(FRAMES).filter_map(|frame| {
            let place = place_of(frame);
            let (module, loc) = (frame.info.module, place.loc()?);
            Some(Step { frame: frame.serial, module, place, loc })
        });
        let steps: SmallVec<[Step<'r>; 4]> = steps.collect();
        (!steps.is_empty()).then_some(Moment { thread: t, steps })
    }

    /// Of the outermost activation in which the two were at different places, the lines.
    fn note_use(&mut self, writes: &Moment<'r>, reads: &Moment<'r>) {
        if writes.thread != reads.thread {
            return;
        }
        let same = |one: &Step<'r>| reads.steps.iter().find(|other| other.frame == one.frame);
        let mut common = writes.steps.iter().rev().filter_map(|one| Some((*one, *same(one)?)));
        let Some((from, to)) = common.find(|(from, to)| from.loc != to.loc) else { return };
        if !self.own.seen.insert((from.module, from.loc, to.loc)) {
            return;
        }
        let (from, to) = (self.chain(from.place), self.chain(to.place));
        self.own.found.extend(lines(&from, &to));
    }
}

/// The lines of two places in a function, in the outermost of the functions inlined there in which they differ. Both are
/// given inner to outer.
fn lines(from: &[Site], to: &[Site]) -> Option<OwnUse> {
    for (from, to) in from.iter().rev().zip(to.iter().rev()) {
        if (&from.file, &from.function) != (&to.file, &to.function)
            || [from.line, to.line].contains(&0)
        {
            return None;
        }
        if from.line != to.line {
            return Some(OwnUse { file: from.file.clone(), from: from.line, to: to.line });
        }
        if from.column != to.column {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(function: &str, line: u32, column: u32) -> Site {
        Site { file: "a.c".into(), line, column, function: function.into() }
    }

    #[test]
    fn the_outermost_function_in_which_the_lines_differ_counts() {
        let found =
            |from: &[Site], to: &[Site]| lines(from, to).map(|found| (found.from, found.to));
        let (call, other) = (site("run", 10, 3), site("run", 12, 3));
        assert_eq!(
            found(&[site("set", 4, 1), call.clone()], std::slice::from_ref(&other)),
            Some((10, 12))
        );
        assert_eq!(found(std::slice::from_ref(&call), &[other]), Some((10, 12)));
        let inside = [site("set", 4, 1), call.clone()];
        assert_eq!(found(&inside, &[site("set", 6, 1), call.clone()]), Some((4, 6)));
        assert_eq!(found(&inside, &[site("set", 6, 1), site("run", 10, 9)]), None, "two calls");
        assert_eq!(found(&inside, &[site("get", 6, 1), call]), None);
    }

    #[test]
    fn what_was_noted_of_an_object_ends_where_another_one_begins() {
        let mut own = Own::default();
        own.last.insert(0x200 / GRAIN, Last::default());
        own.last.insert(0x210 / GRAIN, Last::default());
        own.begin(0x204, 8);
        assert_eq!(own.last.keys().copied().collect::<Vec<_>>(), [0x210 / GRAIN]);
    }
}
