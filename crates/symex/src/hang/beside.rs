//! Which branches of a thread that waits have nothing to do with its waiting: whichever way they go, the thread comes to
//! the wait. So it is where a function wakes whom it finds asleep before it waits for something itself.

use crate::engine::Engine;
use crate::thread::Frame;
use ir::types::BlockId;
use std::collections::{BTreeMap, BTreeSet};

impl Engine<'_> {
    /// Marks the conditions of branches, in functions that the thread is in, that do not decide that it waits. Of
    /// functions that have returned nothing is known: what they return may decide it.
    pub(super) fn mark_beside_wait(&mut self, t: usize) {
        let frames = self.threads[t].frames.iter().filter_map(|frame| match frame {
            Frame::Code(frame) => Some(frame),
            Frame::External(_) => None,
        });
        let deciding: BTreeMap<u64, BTreeSet<BlockId>> = frames
            .map(|frame| (frame.serial, ir::deciding(frame.info.function, frame.block)))
            .collect();
        for condition in &mut self.out.threads[t].conditions {
            let known = condition.branch.and_then(|(frame, at)| Some((deciding.get(&frame)?, at)));
            condition.is_beside_wait = known.is_some_and(|(blocks, at)| !blocks.contains(&at));
        }
    }
}
