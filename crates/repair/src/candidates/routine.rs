//! What is set up behind a call that runs a routine once belongs into the routine: whoever comes back
//! from such a call relies on all of it.

use super::order::{Wanted, like, ordering};
use super::{Candidate, Kind, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::sections::{Section, is_once, lock_name, sections};
use crate::source::Span;
use model::{EventId, EventKind, EventTrace, ObjectId, ObjectKind};

/// The write that came too late is done by the routine, whichever thread runs it.
pub(super) fn candidate(bug: &Bug<'_>, wanted: Wanted) -> Option<Candidate> {
    let trace = bug.trace;
    let (write, then) = (trace.event(wanted.first), trace.event(wanted.then));
    let EventKind::Write { parts } = &write.kind else { return None };
    if parts.iter().any(|part| !trace.exprs.variables(part.value).is_empty()) {
        return None;
    }
    let all = sections(trace);
    let once = trace.objects.iter().filter(|object| object.kind == ObjectKind::Lock);
    // A condition variable for any kind of lock guards its own signals; these are no routine.
    let guards_a_signal = |object: ObjectId| {
        let signals = |id: &EventId| {
            let kind = &trace.event(*id).kind;
            matches!(kind, EventKind::Signal { .. } | EventKind::Broadcast { .. })
        };
        let mut own = all.iter().filter(|section| section.object == object);
        own.any(|section| steps(trace, section).iter().any(signals))
    };
    let mut once = once
        .map(|object| object.id)
        .filter(|object| is_once(trace, &all, *object) && !guards_a_signal(*object));
    let passed = |section: &Section, id: EventId| {
        let (unlock, event) = (trace.event(section.unlock), trace.event(id));
        unlock.thread == event.thread && unlock.index < event.index
    };
    let object = once.find(|object| {
        let own = || all.iter().filter(|section| section.object == *object);
        own().any(|section| passed(section, write.id)) && own().any(|s| passed(s, then.id))
    })?;
    let own = || all.iter().filter(|section| section.object == object);
    let mut edit = Edit::new(trace);
    like(trace, write.id).into_iter().for_each(|id| edit.remove(id));
    // Whoever comes first runs the routine; that others write the same again changes nothing.
    for section in own() {
        edit.before(section.unlock, EventKind::Write { parts: parts.clone() });
    }
    let first = own().find(|section| passed(section, write.id))?;
    let last = own().find_map(|section| last_step(trace, section)).unwrap_or(first.lock);
    let edited = edit.finish()?;
    let places = [write.id, last].map(|id| Span::of(trace.event(id).site()));
    let step = format!(
        "in {}, write {} ({}) in the routine that {} runs once ({}), not behind the call",
        places[0].function,
        quoted(trace.subject(write).unwrap_or("it")),
        places[0].begin(),
        quoted(&lock_name(trace, object)),
        places[1].begin(),
    );
    Some(ordering(bug, wanted, (Kind::Move, step, &places), edited))
}

/// What happened in a section.
fn steps<'t>(trace: &'t EventTrace, section: &Section) -> &'t [EventId] {
    let [first, end] = [section.lock, section.unlock].map(|id| trace.event(id).index as usize);
    trace.thread_of(section.lock).events.get(first + 1..end).unwrap_or_default()
}

/// The last thing that the routine did, where this is the section in which it ran.
fn last_step(trace: &EventTrace, section: &Section) -> Option<EventId> {
    let mut inside = steps(trace, section).iter().rev();
    inside.find(|id| !trace.event(**id).site().is_in_library()).copied()
}
