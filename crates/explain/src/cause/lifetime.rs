//! An object was freed before it was used, or freed again.

use super::story::Story;
use super::words::{at, quoted, whole};
use super::{Found, Pattern};
use model::{EventId, EventKind, FailureCondition, FailureKind};

pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    let (free, access) = freed_before(story, &failure.condition)?;
    let used = story.event(access);
    let twice =
        failure.kind == FailureKind::DoubleFree || matches!(used.kind, EventKind::Free { .. });
    let (pattern, what) = if twice {
        (Pattern::DoubleFree, format!("{} freed it again", story.thread(access)))
    } else {
        let name = story.trace().subject(used).map(|_| quoted(&story.subject(access)));
        let name = name.unwrap_or_else(|| "it".to_owned());
        let did = if used.kind.writes().is_empty() { "read" } else { "wrote" };
        (Pattern::UseAfterFree, format!("{} {did} {name}", story.thread(access)))
    };
    let sentence = format!("{} before {what} ({})", whole(story, free), at(story, access));
    Some(Found::new(pattern, sentence, &[free, access]))
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
