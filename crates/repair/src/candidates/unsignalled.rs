//! What a thread waits for is changed, and nobody tells it.

use super::wakeup::given_back_inside;
use super::{Candidate, Kind, Repair, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::sections::{begins_wait, lock_name, sections, taken};
use crate::source::{Span, frames, passages, same_function};
use model::{
    Awaited, Event, EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId, Site,
};

/// Whoever comes through the lines of the write that the cause names signals the condition variable behind it; or
/// broadcasts, where others wait for that one, too, or are told so elsewhere.
pub(super) fn candidate(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    let events = || bug.events.iter().map(|id| trace.event(*id));
    let (wait, condition) = events().find_map(|event| match event.kind {
        EventKind::Block { on: Awaited::Signal { condition } } => Some((event, condition)),
        _ => None,
    })?;
    let write = events().find(|event| {
        event.thread != wait.thread && !event.kind.writes().is_empty() && event.site().line != 0
    })?;
    let began = *trace.thread_of(wait.id).events.get((wait.index as usize).checked_sub(1)?)?;
    if !begins_wait(trace, began) {
        return None;
    }
    let others = trace.events.iter().filter(|event| event.thread != wait.thread);
    let several = others.into_iter().any(|event| match event.kind {
        EventKind::Block { on: Awaited::Signal { condition: c } }
        | EventKind::Wake { condition: c, .. }
        | EventKind::Broadcast { condition: c } => c == condition,
        _ => false,
    });
    let (kind, verb) = match several {
        true => (EventKind::Broadcast { condition }, "broadcast"),
        false => (EventKind::Signal { condition }, "signal"),
    };
    let name = lock_name(trace, condition);
    let (place, called) = told_at(trace, write, &name);
    let mut edit = Edit::new(trace);
    let own_mutex = mutex_of_its_own(trace, began);
    let mode = LockMode::Exclusive;
    for (_, last) in passages(trace, &place) {
        // What is added right behind an event comes before what was added there before.
        if let Some(object) = own_mutex {
            edit.after(last, EventKind::Unlock { object, mode, synthetic: false });
        }
        edit.after(last, kind.clone());
        if let Some(object) = own_mutex {
            edit.after(last, EventKind::Lock { object, mode });
        }
    }
    // That no signal is left for the wait may hold on the recorded run whatever the order.
    edit.fails_when(FailureCondition::Unwoken { condition, began });
    let edited = edit.finish()?;
    let what = match called {
        Some(called) => format!("calling {called}"),
        None => format!("writing {}", quoted(trace.subject(write).unwrap_or("it"))),
    };
    let step = format!(
        "in {}, {verb} {} behind {what} ({}): it is looked at before the wait at {}",
        place.function,
        quoted(&name),
        place.begin(),
        Span::of(wait.site()).begin()
    );
    let repair = Repair {
        kind: Kind::Signal,
        steps: vec![step],
        lock: None,
        variables: super::variables(bug),
        places: vec![place],
        rule: Rule::None,
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// The mutex that a condition variable for any kind of lock has for itself, and takes whenever it is told.
fn mutex_of_its_own(trace: &EventTrace, began: EventId) -> Option<ObjectId> {
    let all = sections(trace);
    let inner = all.iter().find(|section| section.unlock == began)?;
    given_back_inside(trace, &all, *inner).map(|_| inner.object)
}

/// Where the condition variable can be told: the line of the write, or the one that called the write's function, and that
/// function's name, where only the caller has what the condition variable is a member of. A list does not know whose it is.
fn told_at<'t>(trace: &EventTrace, write: &'t Event, name: &str) -> (Span, Option<&'t str>) {
    let frames = frames(write);
    let own = (Span::of(write.site()), None);
    let Some(owner) = owner(name).filter(|owner| *owner != "this") else { return own };
    match frames.iter().rposition(|site| has(trace, site, owner)) {
        Some(place) => match frames.get(place + 1) {
            Some(inner) => (Span::of(frames[place]), Some(&inner.function)),
            None => own,
        },
        None => own,
    }
}

/// Does the function itself take a lock that is a member of the object of that name?
fn has(trace: &EventTrace, function: &Site, name: &str) -> bool {
    trace.events.iter().filter(|event| taken(event).is_some()).any(|event| {
        frames(event).last().is_some_and(|site| same_function(site, function))
            && trace.subject(event).and_then(owner) == Some(name)
    })
}

/// `pool` for `pool->lock`; none for what is no member.
fn owner(name: &str) -> Option<&str> {
    let end = name.find("->").into_iter().chain(name.find('.')).min()?;
    Some(name[..end].trim_start_matches(['*', '&']))
}

#[cfg(test)]
mod tests {
    use super::owner;

    #[test]
    fn members_have_an_owner() {
        assert_eq!(owner("pool->returned"), Some("pool"));
        assert_eq!(owner("table.entries->next"), Some("table"));
        assert_eq!(owner("returned"), None);
    }
}
