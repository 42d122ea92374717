//! A lock, or a unit of a semaphore, that its thread still had when it ended, while others wait for it: give it back
//! on every way out.

use super::deadlock::{asked, giving};
use super::{Candidate, Guard, Kind, Repair, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::sections::{Section, lock_name, open_units, sections};
use crate::source::Span;
use model::{Event, EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId};

/// What a thread took, and had when it ended.
#[derive(Clone, Copy)]
struct Kept<'t> {
    object: ObjectId,
    mode: LockMode,
    taken: EventId,
    /// The release that stands for the one that never came; semaphores have none.
    release: Option<EventId>,
    exit: &'t Event,
}

pub(super) fn candidate(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    let all: Vec<Kept<'_>> = locks(trace).chain(units(trace)).collect();
    let Kept { object, taken, exit, .. } =
        *all.iter().find(|kept| bug.events.contains(&kept.taken))?;
    let mut edit = Edit::new(trace);
    // Whoever came out this way still having it did it wrong, not only this thread.
    for other in all.iter().filter(|other| other.object == object) {
        let giving = giving(trace, (object, other.mode), false);
        match other.release {
            Some(release) => {
                edit.move_before(release, other.exit.id);
                edit.replace(release, giving);
            }
            None => edit.before(other.exit.id, giving),
        }
    }
    let waits = |event: &&Event| asked(event).is_some_and(|(lock, _)| lock == object);
    let waiting: Vec<&Event> = trace.events.iter().filter(waits).collect();
    if waiting.is_empty() {
        return None;
    }
    // They wait no longer than until it is given back.
    for block in &waiting {
        edit.remove(block.id);
    }
    edit.fails_when(FailureCondition::Any(Vec::new()));
    let edited = edit.finish()?;
    let lock = lock_name(trace, object);
    let place = Span::of(trace.event(taken).site());
    let entry = &trace.thread_of(exit.id).entry;
    let step = format!(
        "in {}, give {} (taken at {}) back on every way out: {} ends with it",
        place.function,
        quoted(&lock),
        place.begin(),
        if entry.is_empty() { "the thread" } else { entry.as_str() }
    );
    let repair = Repair {
        kind: Kind::GiveBack,
        steps: vec![step],
        lock: Some(Guard { name: lock.clone(), new: false }),
        variables: vec![lock],
        places: vec![place],
        rule: Rule::None,
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// The locks that threads ended with.
fn locks(trace: &EventTrace) -> impl Iterator<Item = Kept<'_>> {
    sections(trace).into_iter().filter_map(|Section { object, mode, lock, unlock }| {
        let kept = matches!(trace.event(unlock).kind, EventKind::Unlock { synthetic: true, .. });
        let exit = exit(trace, lock).filter(|_| kept)?;
        Some(Kept { object, mode, taken: lock, release: Some(unlock), exit })
    })
}

/// The units of semaphores that threads ended with.
fn units(trace: &EventTrace) -> impl Iterator<Item = Kept<'_>> {
    let open = trace.threads.iter().flat_map(|thread| open_units(trace, thread));
    open.filter_map(|(object, taken)| {
        let exit = exit(trace, taken)?;
        Some(Kept { object, mode: LockMode::Exclusive, taken, release: None, exit })
    })
}

/// The end of the event's thread.
fn exit(trace: &EventTrace, id: EventId) -> Option<&Event> {
    let events = trace.thread_of(id).events.iter();
    events.map(|id| trace.event(*id)).find(|event| event.kind == EventKind::Exit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;

    #[test]
    fn a_unit_that_was_not_posted_is_kept() {
        let text = "
            a: [one] sem-wait s
            a: post s
            a: [other] sem-wait s
            b: sem-wait s
            b: post s
        ";
        let parsed = parse(text).expect("the text is a trace");
        let kept: Vec<EventId> = units(&parsed.trace).map(|kept| kept.taken).collect();
        assert_eq!(kept, [parsed.event("other")]);
    }
}
