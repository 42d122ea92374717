//! A thread took a number, and another one that took a later number came before it to where the numbers are used: they do not
//! stand there in the order in which they were taken.

use super::story::{Pair, Story};
use super::words::{at, did, quoted};
use super::{Found, Pattern};
use model::{CellId, EventId};

/// So many accesses of a thread behind its taking of a number, or before its use, are looked at.
const NEAR: usize = 24;
/// A counter goes on by no more than that: a number, or the bytes that a thread wants.
const STEP: u128 = 4096;

/// A thread's two steps: it takes a number, and uses it.
#[derive(Clone, Copy)]
struct Steps {
    take: EventId,
    usage: EventId,
}

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let (one, other) = (order.before, order.after);
    if is_taking(story, one, other) {
        return uses(story, one, other);
    }
    // The pair may be of the uses, of which the one that was taken earlier comes last.
    let takes = |id: EventId| near(story, id, false).filter(|take| is_update(story, *take));
    takes(other).find_map(|late| {
        let mut early = takes(one).filter(|early| is_taking(story, late, *early));
        early.find_map(|early| {
            let own = Steps { take: late, usage: other };
            told(story, own, Steps { take: early, usage: one })
        })
    })
}

/// The two threads' first uses that come the other way round.
fn uses(story: &Story<'_>, own: EventId, other: EventId) -> Option<Found> {
    near(story, other, true).find_map(|overtaking| {
        near(story, own, true).find_map(|usage| {
            let own = Steps { take: own, usage };
            told(story, own, Steps { take: other, usage: overtaking })
        })
    })
}

/// The accesses of a thread behind or before an event, the nearest first.
fn near<'s>(story: &'s Story<'_>, id: EventId, behind: bool) -> impl Iterator<Item = EventId> + 's {
    let events = &story.trace().threads[story.event(id).thread.index()].events;
    let index = story.event(id).index as usize;
    let (earlier, later) = events.split_at(index.min(events.len()));
    let (earlier, later) = match behind {
        true => (None, later.get(1..)),
        false => (Some(earlier.iter().rev()), None),
    };
    let all = earlier.into_iter().flatten().chain(later.into_iter().flatten());
    all.copied().filter(|other| !story.cells(*other).is_empty()).take(NEAR)
}

fn is_update(story: &Story<'_>, id: EventId) -> bool {
    let kind = &story.event(id).kind;
    !kind.reads().is_empty() && !kind.writes().is_empty()
}

/// Do both threads take a number from the same place by the same statement, the first one before the other?
fn is_taking(story: &Story<'_>, one: EventId, other: EventId) -> bool {
    let step = |id: EventId, cell| {
        let step = story.left(id, cell)?.checked_sub(story.found(id, cell)?)?;
        (is_update(story, id) && (1..=STEP).contains(&step)).then_some(step)
    };
    let counts = |cell: &CellId| step(one, *cell).is_some_and(|by| step(other, *cell) == Some(by));
    story.site(one) == story.site(other)
        && story.event(one).thread != story.event(other).thread
        && story.before(one, other)
        && !story.event(one).is_affair_of_library()
        && story.common_cells(one, other).iter().any(counts)
}

/// The cause, where the other thread came with its number before this one, which had taken its own before.
fn told(story: &Story<'_>, own: Steps, other: Steps) -> Option<Found> {
    let cell = *story.common_cells(own.take, other.take).first()?;
    let both_write = story.common_cells(own.usage, other.usage).into_iter().any(|used| {
        used != cell
            && story.access(own.usage, used).writes
            && story.access(other.usage, used).writes
    });
    let passes_on = |steps: Steps| {
        story.computes(steps.take, steps.usage, cell)
            || story.passes_on(steps.take, steps.usage, cell)
    };
    let in_order = {
        let takes = story.before_when_passing(own.take, other.take);
        let uses = story.before_when_passing(own.usage, other.usage);
        takes.is_none() || uses.is_none() || takes == uses
    };
    let fits = both_write
        && in_order
        && story.site(own.usage) == story.site(other.usage)
        && story.before(other.usage, own.usage)
        && [own, other].iter().all(|steps| story.in_one_call(steps.take, steps.usage))
        && (passes_on(own) || passes_on(other));
    fits.then(|| found(story, own, other))
}

fn found(story: &Story<'_>, own: Steps, other: Steps) -> Found {
    let named = |id: EventId| format!("{} ({})", quoted(&story.subject(id)), at(story, id));
    let sentence = format!(
        "{} {} {} and {} {} between {}'s update of {} and its write of {}",
        story.thread(other.take),
        did(story.event(other.take)),
        named(other.take),
        did(story.event(other.usage)),
        named(other.usage),
        story.thread(own.take),
        named(own.take),
        named(own.usage)
    );
    let events = [other.take, other.usage, own.take, own.usage];
    Found { case: Some("overtaken"), ..Found::new(Pattern::SeveralVariables, sentence, &events) }
}
