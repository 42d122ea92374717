//! Two threads took one step together: both found the same value, and each went on as if it were alone with it.
//!
//! What a thread takes in one operation and marks as taken in the next need not be linked by a value: an item is
//! read at an index, and the index is raised behind that; the first of a queue is looked at, and then the first
//! is removed. That another thread did the same between the two, with the same value, tells that they belong together.

use super::atomicity::{Case, Triple, found};
use super::story::{Pair, Story};
use super::{Found, Pattern};
use model::{CellId, EventId, PathConditionKind};
use std::collections::BTreeSet;

/// So many reads are looked at on the way back from the failure.
const READS: usize = 32;

/// The step that a read of the pair belongs to, where what is known of it so far is only which of the two came first.
pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let ends = [order.before, order.after];
    // A run that is compared may have all of one thread before the other: then the round does not matter.
    let rounds = |read: EventId, cell: CellId| {
        let own = story.accesses(story.event(read).thread, cell).iter().copied().rev();
        own.filter(move |id| story.event(*id).stack == story.event(read).stack)
    };
    story.common_cells(order.before, order.after).into_iter().find_map(|cell| {
        let mut reads = ends.into_iter().flat_map(|read| rounds(read, cell));
        reads.find_map(|read| same_step(story, read, cell)).map(|triple| told(story, triple))
    })
}

/// The step by which the failing thread came to look where it did, in a run that is compared with one along other
/// paths: it went by an index, or a pointer, that another thread went by as well.
pub(super) fn find_on_the_way(story: &Story<'_>) -> Option<Found> {
    if !story.passes_elsewhere() {
        return None;
    }
    let trace = story.trace();
    let failing = story.event(trace.failure.as_ref()?.event).thread;
    let own = |id: EventId| story.event(id).thread == failing;
    let mut reads: Vec<EventId> =
        story.failure_reads().into_iter().map(|read| read.event).filter(|id| own(*id)).collect();
    let mut seen: BTreeSet<EventId> = reads.iter().copied().collect();
    let addresses: Vec<_> = trace
        .conditions
        .iter()
        .filter(|c| c.thread == failing && c.kind == PathConditionKind::Address)
        .collect();
    while let Some(read) = reads.pop().filter(|_| seen.len() <= READS) {
        // What comes to the same place again may have no condition of its own.
        let same: BTreeSet<u32> = story
            .cells(read)
            .into_iter()
            .flat_map(|cell| story.accesses(failing, cell))
            .map(|id| story.event(*id).index)
            .filter(|index| *index <= story.event(read).index)
            .collect();
        let here = addresses.iter().filter(|c| same.contains(&c.position));
        for part in here.flat_map(|condition| trace.reads_of(condition.expr)) {
            let kind = &story.event(part.event).kind;
            let Some(cell) = kind.reads().get(part.part as usize).map(|part| part.cell) else {
                continue;
            };
            if let Some(triple) = same_step(story, part.event, cell) {
                return Some(told(story, triple));
            }
            if own(part.event) && seen.insert(part.event) {
                reads.push(part.event);
            }
        }
    }
    None
}

fn told(story: &Story<'_>, triple: Triple) -> Found {
    found(story, triple, Case::ReadWriteWrite)
}

/// Is what was found no more than which of the two came first?
pub(super) fn may_say_more(found: &Found) -> bool {
    found.pattern == Pattern::Order
        && matches!(
            found.case,
            Some("read-before-write" | "read-after-write" | "use-before-initialisation")
        )
}

/// The read and the next write of its thread, where another thread did both at the same places, got the same value, and
/// each read before the other one wrote.
fn same_step(story: &Story<'_>, read: EventId, cell: CellId) -> Option<Triple> {
    let event = story.event(read);
    let access = story.access(read, cell);
    if !access.reads || access.writes || event.is_in_synchronisation() || event.gives_up_reference()
    {
        return None;
    }
    let write = step(story, read, cell)?;
    let source = story.source(read, cell);
    let threads = &story.trace().threads;
    let others = threads.iter().filter(|thread| thread.id != event.thread);
    let others = others.flat_map(|thread| story.accesses(thread.id, cell).iter().copied());
    let mut rivals = others.filter_map(|rival| {
        let same = story.access(rival, cell) == access
            && story.site(rival) == story.site(read)
            && story.source(rival, cell) == source;
        same.then(|| Some((rival, step(story, rival, cell)?))).flatten()
    });
    rivals.find_map(|(rival, its)| {
        let together = story.site(its) == story.site(write)
            && story.before(read, its)
            && story.before(rival, write);
        let (first, between, second) = match story.before(its, write) {
            true => (read, its, write),
            false => (rival, write, its),
        };
        let kept = story.before_when_passing(first, between) == Some(true)
            && story.before_when_passing(between, second) == Some(true);
        (together && !kept).then_some(Triple { first, between, second, cell })
    })
}

/// The write by which the thread goes on behind a read, before it comes to read the same again.
fn step(story: &Story<'_>, read: EventId, cell: CellId) -> Option<EventId> {
    let own = story.accesses_behind(read, cell).iter().copied();
    let mut later = own.take_while(|id| story.event(*id).stack != story.event(read).stack);
    let write = later.find(|id| story.access(*id, cell).writes)?;
    let apart = story.site(write) != story.site(read) && !story.site(write).is_in_library();
    (apart && story.in_one_call(read, write)).then_some(write)
}
