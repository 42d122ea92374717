//! Which of a thread's calls go on from one of its events to the next ([`model::Event::continued`]).
//!
//! A function that is called again and again by one line has the same call stack each time. Calls have serial numbers
//! ([`CodeFrame::serial`](crate::thread::CodeFrame)). Of a call that was inlined it is known that it is another one where a branch has been
//! taken since that stands outside of it: the one of the loop that it is called in.

use crate::engine::Engine;
use crate::naming::place_of;
use crate::thread::Frame;
use ir::types::{Function, InstKind, LocId, Module};
use model::{Event, Stack};

/// No branch, or none whose place is known.
pub(crate) const NO_BRANCH: u16 = u16::MAX;

/// Per block, in how many inlined calls the branch stands that ends it; [`NO_BRANCH`] where it has no choice.
pub(crate) fn branch_levels(module: &Module, function: &Function) -> Vec<u16> {
    let level = |block: &ir::types::Block| {
        let last = block.end.index().checked_sub(1).and_then(|at| function.instructions.get(at))?;
        let chooses = matches!(last.kind, InstKind::CondBr(..) | InstKind::Switch(..));
        last.loc.filter(|_| chooses).map(|loc| inlined(module, loc))
    };
    function.blocks.iter().map(|block| level(block).unwrap_or(NO_BRANCH)).collect()
}

/// In how many inlined calls a place is.
fn inlined(module: &Module, loc: LocId) -> u16 {
    let above = |loc: &LocId| module.debug.locations.get(loc.index())?.inlined_at;
    std::iter::successors(Some(loc), above).take(usize::from(NO_BRANCH)).count() as u16 - 1
}

impl Engine<'_> {
    /// How many places of the stack, from the outermost on, are calls that the thread was in at its last event; the stack
    /// is that of its last event from now on.
    pub(crate) fn continued(&mut self, t: usize, stack: &Stack) -> u16 {
        let thread = &mut self.threads[t];
        let (mut calls, mut sites, mut kept) = (0, 0, 0);
        for frame in &mut thread.frames {
            let Frame::Code(frame) = frame else { continue };
            let levels = place_of(frame).loc().map_or(0, |loc| inlined(frame.module, loc));
            match thread.calls.get_mut(calls) {
                Some(serial) if *serial == frame.serial => {
                    kept = sites + 1 + usize::from(levels.min(frame.branched));
                }
                Some(serial) => *serial = frame.serial,
                None => thread.calls.push(frame.serial),
            }
            calls += 1;
            sites += 1 + usize::from(levels);
            frame.branched = NO_BRANCH;
        }
        thread.calls.truncate(calls);
        // Of a region of OpenMP frames are left out.
        let is_whole = || {
            stack.len() <= sites
                && stack.interruption().is_none()
                && !stack.iter().any(|site| ir::name::is_construct(&site.function))
        };
        u16::try_from(kept)
            .ok()
            .filter(|_| kept < sites && is_whole())
            .unwrap_or(Event::ALL_CONTINUED)
    }
}
