//! A thread vouched for more than it had done.
//!
//! It took what there was in one critical section, and in a later one wrote down how far it had come by a number that
//! another thread had changed since, together with what there was. Whoever goes by what was written down takes for done
//! what was not, and what it does wrong then may be far away.

use super::several::{Reads, Torn, found};
use super::story::Story;
use super::words::same_variable;
use super::{Found, sections};
use model::trace::ValueDisplay;
use model::{CellId, EventId, ObjectId, PathConditionKind, ReadRef};
use std::collections::BTreeSet;

/// So many steps back from the failure, from one thread's write to what that thread went by, ...
const STEPS: usize = 3;
/// ... so many variables at so many places in all, ...
const READS: usize = 64;
/// ... and the branches of so many lines before each, ...
const LINES: usize = 8;
/// ... so many of them at most, are looked at.
const BRANCHES: usize = 2048;
/// So many events of a thread before or behind another are taken for those of its section.
const NEAR: usize = 256;

pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?.event;
    let mut ends = vec![failure];
    let mut known = BTreeSet::new();
    for _ in 0..STEPS {
        let mut next = Vec::new();
        for read in ends.into_iter().flat_map(|end| went_by(story, end, end == failure)) {
            // Of what a loop reads again and again the last counts.
            let (event, site) = (story.event(read.event), story.site(read.event));
            let place = (event.thread, &site.function, site.line, story.subject(read.event));
            if known.len() >= READS || !known.insert(place) {
                continue;
            }
            let part = event.kind.reads().get(read.part as usize);
            let Some(write) = part.and_then(|part| story.source(read.event, part.cell)) else {
                continue;
            };
            let other = story.event(write).thread != event.thread;
            if other && let Some(found) = vouched(story, write) {
                return Some(found);
            }
            next.push(write);
        }
        ends = next;
    }
    None
}

/// What decided whether the run failed, or what a thread's write was made of, and the reads that the thread went by before
/// that, the last first.
fn went_by(story: &Story<'_>, end: EventId, failed: bool) -> Vec<ReadRef> {
    let mut reads: Vec<ReadRef> = Vec::new();
    if failed {
        reads.extend(story.failure_reads());
    }
    reads.extend(
        story.event(end).kind.writes().iter().flat_map(|p| story.trace().reads_of(p.value)),
    );
    let mut known: BTreeSet<ReadRef> = reads.iter().copied().collect();
    let mut lines = BTreeSet::new();
    let branches = story.decided_before(end, &[PathConditionKind::Branch]);
    for branch in branches.into_iter().take(BRANCHES) {
        for read in story.trace().reads_of(branch.expr) {
            let site = story.site(read.event);
            lines.insert((&site.function, site.line));
            if lines.len() > LINES {
                return reads;
            }
            let counts = !story.event(read.event).is_affair_of_library();
            if counts && known.insert(read) {
                reads.push(read);
            }
        }
    }
    reads
}

/// Was what the write says made of another thread's number, which that thread had changed together with what the writer
/// had looked at in an earlier section?
fn vouched(story: &Story<'_>, write: EventId) -> Option<Found> {
    let writer = story.event(write);
    let made_of = writer.kind.writes().iter().flat_map(|p| story.trace().reads_of(p.value));
    made_of.into_iter().find_map(|read| {
        let number = story.event(read.event).kind.reads().get(read.part as usize)?.cell;
        // Who hangs an element in or out of a list or a tree passes on where its neighbour is, and says nothing by that.
        if story.trace().cells[number.index()].display == ValueDisplay::Pointer {
            return None;
        }
        let changed = story.source(read.event, number)?;
        // Who raises a count vouches for nothing by that.
        let apart = story.event(read.event).thread == writer.thread
            && story.event(changed).thread != writer.thread
            && !story.access(write, number).writes;
        let held = sections::held(story, changed);
        let own = sections::held(story, read.event);
        let both = own.into_iter().find(|(lock, _)| held.iter().any(|(other, _)| other == lock));
        let (lock, taken) = both.filter(|_| apart)?;
        let (look, cell, beside) = looked(story, (read.event, number), (lock, taken), changed)?;
        let kept = story.before_when_passing(look, beside) == Some(true)
            && story.before_when_passing(changed, read.event) == Some(true);
        let reads = Reads { first: (look, cell), second: (read.event, number), check: false };
        let torn = Torn { seen: (changed, read.event), missed: (look, Some(beside)) };
        (!kept).then(|| found(story, reads, torn))
    })
}

/// The last look of the thread, in an earlier section, at what the other one changed in the same section as the number, with
/// that change.
fn looked(
    story: &Story<'_>,
    (read, number): (EventId, CellId),
    (lock, taken): (ObjectId, EventId),
    changed: EventId,
) -> Option<(EventId, CellId, EventId)> {
    let section = |id: EventId| sections::taken(story, id, lock);
    let other = story.event(changed);
    let its = section(changed)?;
    let events = &story.trace().threads[other.thread.index()].events;
    let from = (other.index as usize).saturating_sub(NEAR);
    let beside = events.iter().copied().skip(from).take(2 * NEAR).filter(|id| {
        !story.event(*id).kind.writes().is_empty()
            && *id != changed
            && story.before(*id, read)
            && !same_variable(&story.subject(*id), &story.subject(changed))
            && section(*id) == Some(its)
    });
    let changes: Vec<(EventId, CellId)> = beside
        .flat_map(|id| story.event(id).kind.writes().iter().map(move |part| (id, part.cell)))
        .filter(|(_, cell)| *cell != number)
        .collect();
    let own = &story.trace().threads[story.event(read).thread.index()].events;
    let earlier = own[..story.event(taken).index as usize].iter().rev().copied().take(NEAR);
    let mut earlier = earlier.filter(|id| !story.event(*id).kind.reads().is_empty());
    earlier.find_map(|look| {
        let seen = |(change, cell): &&(EventId, CellId)| {
            story.access(look, *cell).reads && story.before(look, *change)
        };
        let (change, cell) = *changes.iter().find(seen)?;
        let fits = story.is_named(look)
            && section(look).is_some_and(|its| its != taken)
            && story.in_one_call(look, read);
        fits.then_some((look, cell, change))
    })
}
