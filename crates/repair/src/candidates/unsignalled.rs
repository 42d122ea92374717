//! What a thread waits for is changed, and nobody tells it.

use super::{Candidate, Kind, Repair, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::enforce::Rule;
use crate::sections::{begins_wait, lock_name};
use crate::source::{Span, passages};
use model::{Awaited, EventKind, FailureCondition};

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
    let place = Span::of(write.site());
    let mut edit = Edit::new(trace);
    for (_, last) in passages(trace, &place) {
        edit.after(last, kind.clone());
    }
    // That no signal is left for the wait may hold on the recorded run whatever the order.
    edit.fails_when(FailureCondition::Unwoken { condition, began });
    let edited = edit.finish()?;
    let name = lock_name(trace, condition);
    let what = quoted(trace.subject(write).unwrap_or("it"));
    let step = format!(
        "in {}, {verb} {} behind writing {what} ({}): it is looked at before the wait at {}",
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
