//! Locks of Rust's packages, such as `parking_lot`'s and those in a `dashmap`: who waits for one when a run hangs, and who has it.
//!
//! Such a lock is no object of the trace but a word that its package updates, and a thread that waits for it sleeps on a futex of
//! its own. What is done with the word is told by the functions of the package ([`model::Event::package_lock`]).

use super::story::Story;
use model::{CellId, Event, EventId, EventKind, LockMode, PackageLock, Site, ThreadId};

/// A thread that has such a lock, or asks for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    /// Its last step with the lock's word.
    pub event: EventId,
    pub mode: LockMode,
}

/// What a thread waits for that sleeps in such a lock's function: its last look at the word, and the threads that have the lock.
pub(super) fn waited_for(story: &Story<'_>, block: &Event) -> Option<(Hold, Vec<Hold>)> {
    let (word, asks) = asked(story, block)?;
    let threads = story.trace().threads.iter().map(|thread| thread.id);
    let held: Vec<Hold> = threads.filter_map(|thread| holds(story, word, thread)).collect();
    let excludes = |hold: &Hold| [hold.mode, asks.mode].contains(&LockMode::Exclusive);
    Some((asks, held.into_iter().filter(excludes).collect()))
}

/// The word of the lock in whose function a thread sleeps, with its last step there.
fn asked(story: &Story<'_>, block: &Event) -> Option<(CellId, Hold)> {
    let own = &story.trace().threads[block.thread.index()].events;
    let before = own.get(..block.index as usize)?.iter().rev().map(|id| story.event(*id));
    let (event, step, call) = before
        .filter_map(|event| event.package_lock().map(|(step, call)| (event, step, call)))
        .next()?;
    let PackageLock::Asks(mode) = step else { return None };
    is_within(block, call).then_some(())?;
    Some((word_of(event)?, Hold { event: event.id, mode }))
}

/// Does the thread have the lock of this word at the end, and since when?
fn holds(story: &Story<'_>, word: CellId, thread: ThreadId) -> Option<Hold> {
    let own = &story.trace().threads[thread.index()].events;
    let sleeps = own.iter().rev().map(|id| story.event(*id)).find(|event| is_block(event));
    let mut held = None;
    for id in own {
        let event = story.event(*id);
        let Some((step, call)) = event.package_lock().filter(|_| word_of(event) == Some(word))
        else {
            continue;
        };
        match step {
            PackageLock::GivesBack => held = None,
            PackageLock::Asks(_) if sleeps.is_some_and(|block| is_within(block, call)) => {}
            PackageLock::Asks(mode) => held = Some(Hold { event: *id, mode }),
        }
    }
    held
}

fn is_block(event: &Event) -> bool {
    matches!(event.kind, EventKind::Block { .. })
}

/// Does the thread sleep in this call?
fn is_within(block: &Event, call: &[Site]) -> bool {
    block.stack.ends_with(call) || same_call(&block.stack, call)
}

/// The same call, which has come to another line of the package's function.
fn same_call(stack: &[Site], call: &[Site]) -> bool {
    let Some((inner, outer)) = call.split_first() else { return false };
    let Some(at) = stack.len().checked_sub(call.len()) else { return false };
    stack.get(at).is_some_and(|site| site.function == inner.function)
        && stack.get(at + 1..).is_some_and(|rest| rest == outer)
}

/// The word that the event is about.
fn word_of(event: &Event) -> Option<CellId> {
    let read = event.kind.reads().first().map(|read| read.cell);
    read.or_else(|| event.kind.writes().first().map(|write| write.cell))
}
