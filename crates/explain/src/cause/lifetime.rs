//! An object was freed before it was used, or freed again.

use super::story::Story;
use super::words::{at, quoted, whole};
use super::{Found, Pattern, decision};
use model::{EventId, EventKind, FailureCondition, FailureKind};

/// Where another thread freed it than used it.
pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    told(story, false)
}

/// Where the thread itself did, in whatever order threads run: what is to be told is rather how it came to do so, as
/// where a count of references was out of step.
pub(super) fn find_own(story: &Story<'_>) -> Option<Found> {
    told(story, true)
}

fn told(story: &Story<'_>, own: bool) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    let (free, access) = freed_before(story, &failure.condition)?;
    if own != (story.event(free).thread == story.event(access).thread) {
        return None;
    }
    let used = story.event(access);
    let twice =
        failure.kind == FailureKind::DoubleFree || matches!(used.kind, EventKind::Free { .. });
    // Why it was freed says more than that it was.
    if !own
        && !twice
        && let Some(decided) = decision::find_free(story, free, access)
    {
        return Some(decided);
    }
    let (pattern, what) = if twice {
        (Pattern::DoubleFree, format!("{} freed it again", story.thread(access)))
    } else {
        // What has no name of its own is told by the object, which the free has named.
        let named = story.trace().subject(used).is_some() && story.is_named(access);
        let writes = !used.kind.writes().is_empty();
        let used = match (named, writes) {
            (true, true) => format!("wrote {}", quoted(&story.subject(access))),
            (true, false) => format!("read {}", quoted(&story.subject(access))),
            (false, true) => "wrote to it".to_owned(),
            (false, false) => "read from it".to_owned(),
        };
        (Pattern::UseAfterFree, format!("{} {used}", story.thread(access)))
    };
    let sentence = format!("{} before {what} ({})", freed(story, free), at(story, access));
    Some(Found::new(pattern, sentence, &[free, access]))
}

/// What the free was. A local variable ends with its function.
fn freed(story: &Story<'_>, free: EventId) -> String {
    let event = story.event(free);
    if !story.trace().ends_local(event) {
        return whole(story, free);
    }
    let (thread, variable) = (story.thread(free), story.subject(free));
    // What has no name in the source has words for one.
    let variable = if variable.contains(' ') { variable } else { quoted(&variable) };
    let function = quoted(&event.site().function);
    format!("{thread} left {function} ({}), which ended {variable},", at(story, free))
}

/// The free and the later use that the failure's condition is about, where it is about that.
fn freed_before(story: &Story<'_>, condition: &FailureCondition) -> Option<(EventId, EventId)> {
    match condition {
        FailureCondition::Before(free, access) => {
            let is_free = matches!(story.event(*free).kind, EventKind::Free { .. });
            is_free.then_some((*free, *access))
        }
        FailureCondition::All(parts) | FailureCondition::Any(parts) => {
            parts.iter().find_map(|part| freed_before(story, part))
        }
        FailureCondition::Value(_) | FailureCondition::Unwoken { .. } => None,
    }
}
