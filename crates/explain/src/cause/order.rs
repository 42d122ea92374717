//! One step came before another that it relies on, or after one that it must precede.

use super::story::{Pair, Story};
use super::words::{at, did_in, place, quoted, same_variable, told};
use super::{
    CauseEvent, Found, Pattern, announced, decision, glance, locks, parted, posted, sections,
};
use model::names::{is_descriptor, is_file};
use model::{CellId, ChannelStep, EventId, EventKind, ReadRef, Site, WriteSource};
use std::cmp::Ordering;

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    match pair {
        Pair::Reversed(order) => reversed(story, order.before, order.after),
        Pair::Late { before, after } => late(story, before, after),
    }
}

fn reversed(story: &Story<'_>, before: EventId, after: EventId) -> Option<Found> {
    let cell = *story.common_cells(before, after).first()?;
    let [a, b] = [before, after].map(|id| story.access(id, cell));
    let case = case_of(story, before, [a.writes, b.writes]);
    let reason = match case {
        "read-after-write" => decision::find(story, before, after)
            .or_else(|| unfinished(story, after, cell))
            .or_else(|| announced::find_unfinished(story, after, before))
            .or_else(|| parted::find(story, after, before))
            .or_else(|| announced::find_published(story, after, before)),
        "write-before-write" => None,
        _ => announced::find(story, before, after)
            .or_else(|| posted::find(story, before, after))
            .or_else(|| glance::find(story, before, after)),
    };
    reason.or_else(|| in_order(story, before, after))
}

/// The order of the two itself, whatever their threads meant by it.
fn in_order(story: &Story<'_>, before: EventId, after: EventId) -> Option<Found> {
    let cell = *story.common_cells(before, after).first()?;
    let [a, b] = [before, after].map(|id| story.access(id, cell));
    let case = case_of(story, before, [a.writes, b.writes]);
    // What was read too late is told from the reader's side.
    let lock = sections::open_at(story, before, after).filter(|lock| locks::is_own(story, *lock));
    let mut held = None;
    let sentence = if let Some(told) = of_channel(story, before, after) {
        told
    } else if case == "read-after-write" {
        held = lock;
        format!(
            "{} {} {} ({}) after {} had {} it ({}){}",
            story.thread(after),
            did_in(story.trace(), story.event(after), &story.subject(after)),
            quoted(&story.subject(after)),
            at(story, after),
            story.thread(before),
            match story.event(before).kind {
                _ if is_descriptor(&story.subject(before)) || is_file(&story.subject(before)) => {
                    did_in(story.trace(), story.event(before), &story.subject(before))
                }
                EventKind::Write { .. } if is_first(story, before, cell) => "written",
                EventKind::Write { .. } => "overwritten",
                _ => "updated",
            },
            at(story, before),
            lock.map_or_else(String::new, |lock| {
                let name = quoted(&story.subject(lock));
                format!(", and still held {name} ({})", at(story, lock))
            })
        )
    } else {
        let [before, after] = [before, after].map(CauseEvent::Failing);
        format!("{} before {}", told(story, before), followed(story, after, before))
    };
    let events = if a.writes && !b.writes { [after, before] } else { [before, after] };
    Some(Found { case: Some(case), lock: held, ..Found::new(Pattern::Order, sentence, &events) })
}

fn case_of(story: &Story<'_>, before: EventId, writes: [bool; 2]) -> &'static str {
    match writes {
        [false, true] if reads_initial(story, before) => "use-before-initialisation",
        [false, true] => "read-before-write",
        [true, false] => "read-after-write",
        _ => "write-before-write",
    }
}

/// The order of two steps of a channel of Rust's library, which is about what the program sent and received, and not about
/// what the library keeps.
fn of_channel(story: &Story<'_>, before: EventId, after: EventId) -> Option<String> {
    let done = match story.event(after).channel_step()? {
        ChannelStep::Send => "sent",
        ChannelStep::Receive => "received",
        ChannelStep::Drop => "dropped its end of the channel",
    };
    let had_done = match story.event(before).channel_step()? {
        ChannelStep::Send => "sent",
        ChannelStep::Receive => "received",
        ChannelStep::Drop => "dropped the other end",
    };
    Some(format!(
        "{} {done} ({}) after {} had {had_done} ({})",
        story.thread(after),
        at(story, after),
        story.thread(before),
        at(story, before)
    ))
}

/// The failing thread came to a channel of which another one had dropped its end, and failed with that, whatever decided
/// which of the two came first.
pub(super) fn find_end_of_channel(story: &Story<'_>) -> Option<Found> {
    /// So many events before the failure are looked at.
    const NEAR: usize = 32;
    let failure = story.event(story.trace().failure.as_ref()?.event);
    let own = &story.trace().threads[failure.thread.index()].events[..failure.index as usize];
    let used = own.iter().rev().take(NEAR).copied();
    let used = used.filter(|id| {
        let step = story.event(*id).channel_step();
        matches!(step, Some(ChannelStep::Send | ChannelStep::Receive))
    });
    let dropped = |id: EventId| {
        let cells = story.cells(id).into_iter();
        let mut sources = cells.filter_map(|cell| story.source(id, cell));
        sources.find(|source| {
            let source = story.event(*source);
            source.thread != failure.thread && source.channel_step() == Some(ChannelStep::Drop)
        })
    };
    let (after, before) = used.into_iter().find_map(|id| Some((id, dropped(id)?)))?;
    // Who does not go by what came of it fails with something else.
    let [step, end] = [after, failure.id].map(|id| story.site(id));
    let decides = story.failure_reads().iter().any(|read| read.event == after);
    let place = |site: &Site| (site.file.clone(), site.line);
    let merged = end.line == 0 && step.file == end.file && step.function == end.function;
    if !decides && !merged && place(step) != place(end) {
        return None;
    }
    let sentence = of_channel(story, before, after)?;
    let case = Some("read-after-write");
    Some(Found { case, ..Found::new(Pattern::Order, sentence, &[after, before]) })
}

/// The order of two steps of a channel, where all that was found is what the channel keeps for these, and one of them ends it.
pub(super) fn find_of_channel(story: &Story<'_>, pair: Pair, found: &Found) -> Option<Found> {
    let Pair::Reversed(order) = pair else { return None };
    let ends = [order.before, order.after].map(|id| story.event(id).channel_step());
    let fits = found.pattern == Pattern::Atomicity
        && is_of_channel(story, found)
        && ends.contains(&Some(ChannelStep::Drop));
    fits.then(|| in_order(story, order.before, order.after)).flatten()
}

/// Is all that was found what a channel keeps for itself?
pub(super) fn is_of_channel(story: &Story<'_>, found: &Found) -> bool {
    let step = |id: &CauseEvent| story.look_up(*id).1.and_then(model::Event::channel_step);
    found.events.iter().all(|id| step(id).is_some())
}

/// Is this the first write that the cell sees?
fn is_first(story: &Story<'_>, write: EventId, cell: CellId) -> bool {
    story.last_write_before(write, cell).is_none()
}

/// A read that came between what another thread had announced and what that thread wrote then.
fn unfinished(story: &Story<'_>, read: EventId, cell: CellId) -> Option<Found> {
    let events = story.trace().events.iter();
    let mut later: Vec<EventId> = events
        .filter(|event| event.thread != story.event(read).thread)
        .map(|event| event.id)
        .filter(|id| story.access(*id, cell).writes && story.before(read, *id))
        .collect();
    later.sort_by(|a, b| if story.before(*a, *b) { Ordering::Less } else { Ordering::Greater });
    later.into_iter().find_map(|write| announced::find(story, read, write))
}

/// Does the event read what was there from the start?
fn reads_initial(story: &Story<'_>, event: EventId) -> bool {
    let sources = &story.failing.evaluation.reads_from;
    let parts = 0..story.event(event).kind.reads().len();
    parts.into_iter().any(|part| {
        let read = ReadRef { event, part: u32::try_from(part).unwrap_or(u32::MAX) };
        sources.get(&read) == Some(&WriteSource::Init)
    })
}

fn late(story: &Story<'_>, before: EventId, after: EventId) -> Option<Found> {
    let early = announced::find_late(story, before, after)
        .or_else(|| posted::find_late(story, before, after));
    if let Some(found) = early.or_else(|| glance::find_late(story, before, after)) {
        return Some(found);
    }
    let event = story.event(before);
    let failed = matches!(event.kind, EventKind::Failure);
    if let Some(found) = failed.then(|| parted::find_failure(story, before)).flatten() {
        return Some(found);
    }
    let ends = [CauseEvent::Failing(before), CauseEvent::Passing(after)];
    let sentence = if failed {
        let (thread, place) = (story.thread(before), at(story, before));
        format!("{thread} failed ({place}) before {}", told(story, ends[1]))
    } else {
        format!("{} before {}", told(story, ends[0]), followed(story, ends[1], ends[0]))
    };
    Some(Found { case: Some("too-early"), ..Found::of_both(Pattern::Order, sentence, &ends) })
}

/// [`told`] behind an event that may have named what it is about already:
/// `t0.1 wrote it (queue.c:20)`.
pub(super) fn followed(story: &Story<'_>, id: CauseEvent, earlier: CauseEvent) -> String {
    let (trace, event) = story.look_up(id);
    let named = story.name(id).zip(story.name(earlier));
    match (event, named) {
        (Some(event), Some((name, other))) if same_variable(&name, &other) => {
            let thread = &trace.threads[event.thread.index()].name;
            format!("{thread} {} it ({})", did_in(trace, event, &name), place(event.site()))
        }
        _ => told(story, id),
    }
}
