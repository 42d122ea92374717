//! One step came before another that it relies on, or after one that it must precede.

use super::story::{Pair, Story};
use super::words::{at, clause, did, place, quoted, same_variable};
use super::{CauseEvent, Found, Pattern};
use model::{Event, EventId, EventKind, EventTrace, ReadRef, WriteSource};

pub(super) fn find(story: &Story<'_>, pair: Pair) -> Option<Found> {
    match pair {
        Pair::Reversed(order) => reversed(story, order.before, order.after),
        Pair::Late { before, after } => late(story, before, after),
    }
}

fn reversed(story: &Story<'_>, before: EventId, after: EventId) -> Option<Found> {
    let cell = *story.common_cells(before, after).first()?;
    let [a, b] = [before, after].map(|id| story.access(id, cell));
    let case = match (a.writes, b.writes) {
        (false, true) if reads_initial(story, before) => "use-before-initialisation",
        (false, true) => "read-before-write",
        (true, false) => "read-after-write",
        _ => "write-before-write",
    };
    // What was read too late is told from the reader's side.
    let sentence = if case == "read-after-write" {
        format!(
            "{} {} {} ({}) after {} had {} it ({})",
            story.thread(after),
            did(story.event(after)),
            quoted(story.subject(after)),
            at(story, after),
            story.thread(before),
            if matches!(story.event(before).kind, EventKind::Write { .. }) {
                "overwritten"
            } else {
                "updated"
            },
            at(story, before)
        )
    } else {
        let trace = story.trace();
        format!("{} before {}", told(trace, before), followed(trace, after, story.subject(before)))
    };
    let events = if a.writes && !b.writes { [after, before] } else { [before, after] };
    Some(Found { case: Some(case), ..Found::new(Pattern::Order, sentence, &events) })
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
    let run = story.other_run()?;
    let event = story.event(before);
    let end = matches!(event.kind, EventKind::Failure);
    let first = if end {
        format!("{} came here ({})", story.thread(before), at(story, before))
    } else {
        told(story.trace(), before)
    };
    let subject = if end { "" } else { story.subject(before) };
    let sentence = format!("{first} before {}", followed(run, after, subject));
    Some(Found {
        pattern: Pattern::Order,
        case: Some("too-early"),
        sentence,
        events: vec![CauseEvent::Failing(before), CauseEvent::Passing(after)],
    })
}

/// An event with its thread, its subject and its place.
pub(super) fn told(trace: &EventTrace, id: EventId) -> String {
    let event = trace.event(id);
    clause(&trace.thread_of(id).name, trace.subject(event), event)
}

/// The same behind one that was about `subject` already: `t0.1 wrote it (queue.c:20)`.
pub(super) fn followed(trace: &EventTrace, id: EventId, subject: &str) -> String {
    let event: &Event = trace.event(id);
    match trace.subject(event) {
        Some(name) if !subject.is_empty() && same_variable(name, subject) => {
            let thread = &trace.thread_of(id).name;
            format!("{thread} {} it ({})", did(event), place(event.site()))
        }
        _ => told(trace, id),
    }
}
