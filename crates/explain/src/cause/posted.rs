//! A thread posted a semaphore before what the unit stands for was there.

use super::rounds::is_one_call;
use super::story::Story;
use super::words::{at, did_to, place, quoted};
use super::{CauseEvent, Found, Pattern};
use model::{Event, EventId, EventKind, EventTrace, ObjectId, ObjectKind};

/// For a read that came before another thread's write: did the reader go on with a unit that the writer had posted in
/// the call in which it wrote only then?
pub(super) fn find(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    let writer = story.event(write);
    let own = &story.trace().threads[writer.thread.index()].events[..writer.index as usize];
    let posts = own.iter().rev().copied().filter(|post| story.in_one_call(*post, write));
    sentence(story, read, CauseEvent::Failing(write), posts)
}

/// The same of a write that only the passing run got to.
pub(super) fn find_late(story: &Story<'_>, read: EventId, write: EventId) -> Option<Found> {
    sentence(story, read, CauseEvent::Passing(write), done_before(story, write).into_iter())
}

/// What a thread had done in the failing run of the call in which it writes something that only the passing run got to,
/// the last first.
pub(super) fn done_before(story: &Story<'_>, write: EventId) -> Vec<EventId> {
    let Some((run, across)) = story.other_run() else { return Vec::new() };
    let own = &run.trace.threads[run.trace.event(write).thread.index()].events;
    let earlier = own.iter().take(run.trace.event(write).index as usize).rev().copied();
    let done = earlier.filter(|done| is_one_call(run.trace, *done, write));
    let done = done.filter_map(|done| {
        let known = across.matching.in_failing(done);
        known.or_else(|| same_place(story, run.trace, (done, write)))
    });
    done.collect()
}

/// Of an event that the passing run has in a round which the failing run did not get to: the failing run's last one of
/// that place, where the thread has not come to the write behind it.
fn same_place(
    story: &Story<'_>,
    passing: &EventTrace,
    (done, write): (EventId, EventId),
) -> Option<EventId> {
    let [done, write] = [done, write].map(|id| passing.event(id));
    let name = &passing.threads[done.thread.index()].name;
    let thread = story.trace().threads.iter().find(|thread| thread.name == *name)?;
    let own = thread.events.iter().rev().map(|id| story.event(*id));
    let like = |one: &Event, other: &Event| {
        one.stack == other.stack && one.kind.name() == other.kind.name()
    };
    let mut own = own.take_while(|event| !like(event, write));
    own.find(|event| like(event, done)).map(|event| event.id)
}

fn sentence(
    story: &Story<'_>,
    read: EventId,
    write: CauseEvent,
    mut posts: impl Iterator<Item = EventId>,
) -> Option<Found> {
    let (post, wait) = posts.find_map(|post| Some((post, taken(story, post, read)?)))?;
    let (posted, reader) = (story.subject(post), story.event(read));
    let failed = matches!(reader.kind, EventKind::Failure);
    let written = story.look_up(write).1?;
    let name = story.name(write).unwrap_or_default();
    let post_event = CauseEvent::Failing(post);
    let sentence = format!(
        "{} {} {} ({}) before it {} {} ({}), and {}, which had waited for that ({}), {}",
        story.thread(post),
        did_to(story.event(post), &posted),
        quoted(&posted),
        at(story, post),
        did_to(written, &name),
        quoted(&name),
        place(written.site()),
        story.thread(read),
        at(story, wait),
        match failed {
            true => format!("failed in between ({})", at(story, read)),
            false => format!("read the other ({}) in between", at(story, read)),
        }
    );
    let events = [post_event, write, CauseEvent::Failing(wait), CauseEvent::Failing(read)];
    let case = Some("announced-too-early");
    Some(Found { case, ..Found::of_both(Pattern::Order, sentence, &events) })
}

/// The wait of the reader's thread that this post let go on, the last one before the read.
fn taken(story: &Story<'_>, post: EventId, read: EventId) -> Option<EventId> {
    let EventKind::SemaphorePost { object } = story.event(post).kind else { return None };
    let reader = story.event(read);
    let waits =
        |event: &Event| matches!(event.kind, EventKind::SemaphoreWait { object: o } if o == object);
    let own = &story.trace().threads[reader.thread.index()].events[..reader.index as usize];
    let wait = own.iter().rev().copied().find(|id| waits(story.event(*id)))?;
    let fits = story.event(post).thread != reader.thread
        && story.before(post, wait)
        && story.is_named(post)
        && !story.subject(post).starts_with("0x")
        && units(story, object, wait)? <= 1;
    fits.then_some(wait)
}

/// How many units there are right before a wait takes one.
fn units(story: &Story<'_>, object: ObjectId, wait: EventId) -> Option<i64> {
    let of_object = story.trace().objects.get(object.index())?;
    let ObjectKind::Semaphore { initial } = of_object.kind else { return None };
    let earlier = story.trace().events.iter().filter(|event| story.before(event.id, wait));
    let change = |event: &Event| match event.kind {
        EventKind::SemaphorePost { object: o } if o == object => 1,
        EventKind::SemaphoreWait { object: o } if o == object => -1,
        _ => 0,
    };
    Some(i64::from(initial) + earlier.map(change).sum::<i64>())
}
