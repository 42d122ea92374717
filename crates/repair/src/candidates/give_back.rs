//! A lock that its thread still had when it ended, while others wait for it: give it back on every
//! way out.

use super::deadlock::{asked, giving};
use super::{Candidate, Guard, Kind, Repair, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::sections::{Section, lock_name, sections};
use crate::source::Span;
use model::{Event, EventKind, EventTrace, FailureCondition};

pub(super) fn candidate(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    let kept = |section: &&Section| bug.events.contains(&section.lock) && is_kept(trace, section);
    let all = sections(trace);
    let section = all.iter().find(kept)?;
    let object = section.object;
    let exit = exit(trace, section)?;
    let mut edit = Edit::new(trace);
    // Whoever came out this way still having it did it wrong, not only this thread.
    for other in all.iter().filter(|other| other.object == object && is_kept(trace, other)) {
        let Some(exit) = self::exit(trace, other) else { continue };
        edit.move_before(other.unlock, exit.id);
        edit.replace(other.unlock, giving(trace, (object, other.mode), false));
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
    let place = Span::of(trace.event(section.lock).site());
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

/// Did the thread end without giving the lock back?
fn is_kept(trace: &EventTrace, section: &Section) -> bool {
    matches!(trace.event(section.unlock).kind, EventKind::Unlock { synthetic: true, .. })
        && exit(trace, section).is_some()
}

/// The end of the section's thread.
fn exit<'t>(trace: &'t EventTrace, section: &Section) -> Option<&'t Event> {
    let events = trace.thread_of(section.lock).events.iter();
    events.map(|id| trace.event(*id)).find(|event| event.kind == EventKind::Exit)
}
