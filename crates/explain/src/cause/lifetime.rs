//! An object was freed before it was used, or freed again.

use super::story::Story;
use super::words::{at, both_at, quoted, whole};
use super::{CauseEvent, Found, Pattern, decision, lost, sections};
use model::{CellId, Event, EventId, EventKind, FailureCondition, FailureKind, ObjectId, ReadPart};

/// So many of a thread's events are looked at for the pointer that it used.
const NEAR: usize = 256;

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
    if !own && !twice {
        let stale = stale(story, free, access);
        // Why it was freed says more than that it was, unless it was said before the pointer was read.
        let said = |change: Option<&CauseEvent>| match (change, &stale) {
            (Some(CauseEvent::Failing(change)), Some((read, _))) => {
                story.event(*read).index < story.event(*change).index
            }
            _ => true,
        };
        let decided = decision::find_free(story, free, access);
        let decided = decided.filter(|decided| said(decided.events.get(1)));
        if let Some(told) = decided.or(stale.map(|(_, stale)| stale)) {
            return Some(told);
        }
    }
    // A count that was out of step led there.
    if !own && let Some(lost) = lost::of_free(story, free) {
        return Some(lost);
    }
    let (pattern, what) = if twice {
        (Pattern::DoubleFree, format!("{} freed it again", story.thread(access)))
    } else {
        // What has no name of its own is told by the object, which the free has named.
        let named = story.trace().subject(used).is_some() && story.is_named(access);
        let writes = !used.kind.writes().is_empty();
        let used = match (named, writes) {
            _ if matches!(used.kind, EventKind::Block { .. }) => {
                format!("asked for {}", quoted(&story.subject(access)))
            }
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

/// The thread had read the pointer before, in the same call, and it was another one by the time of the use, or what it lies in
/// was changed under the lock that it was read under. Gives that read, too.
fn stale(story: &Story<'_>, free: EventId, access: EventId) -> Option<(EventId, Found)> {
    let object = story.event(free).kind.object()?;
    // A local variable ends by its scope, whatever leads to it.
    if story.trace().ends_local(story.event(free)) {
        return None;
    }
    let (read, cell) = pointer_to(story, object, access)?;
    let found = story.found(read, cell);
    let other = |event: &Event| {
        event.thread != story.event(read).thread
            && story.access(event.id, cell).writes
            && story.before(read, event.id)
            && story.left(event.id, cell) != found
    };
    let overwritten = story.last_before(access, other).is_some();
    let fits = (overwritten || lock_was_taken(story, read, free, access))
        && story.before(read, free)
        && story.is_named(read);
    if !fits {
        return None;
    }
    let [one, two] = both_at(story, read, access);
    let sentence = format!(
        "{} freed what {} had pointed to ({}) between {}'s read of that pointer ({one}) and its use ({two})",
        story.thread(free),
        quoted(&story.subject(read)),
        at(story, free),
        story.thread(access),
    );
    let found = Found::new(Pattern::UseAfterFree, sentence, &[free, read, access]);
    Some((read, Found { case: Some("stale-pointer"), ..found }))
}

/// Did the thread read the pointer under a lock that it gave back before the use, and that the other thread took in between,
/// before its free?
fn lock_was_taken(story: &Story<'_>, read: EventId, free: EventId, access: EventId) -> bool {
    let of_other = story.trace().threads[story.event(free).thread.index()].events.iter();
    let of_other = of_other.take_while(|id| **id != free).filter(|id| story.before(read, **id));
    let taken: Vec<ObjectId> = of_other
        .filter_map(|id| match story.event(*id).kind {
            EventKind::Lock { object, .. } => Some(object),
            _ => None,
        })
        .collect();
    sections::held(story, read)
        .into_iter()
        .any(|(lock, at)| taken.contains(&lock) && sections::taken(story, access, lock) != Some(at))
}

/// What the free was. A local variable ends with its scope.
fn freed(story: &Story<'_>, free: EventId) -> String {
    let event = story.event(free);
    if !story.trace().ends_local(event) {
        return whole(story, free);
    }
    let (thread, variable) = (story.thread(free), story.subject(free));
    // What has no name in the source has words for one.
    let variable = if variable.contains(' ') { variable } else { quoted(&variable) };
    let function = quoted(&event.site().function);
    format!("{thread} left the scope of {variable} in {function} ({})", at(story, free))
}

/// The free and the later use that the failure's condition is about, where it is about that.
pub(super) fn freed_before(
    story: &Story<'_>,
    condition: &FailureCondition,
) -> Option<(EventId, EventId)> {
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

/// The last read of a pointer to that object by the event's thread before the event, in the same call, and its cell.
pub(super) fn pointer_to(
    story: &Story<'_>,
    object: ObjectId,
    event: EventId,
) -> Option<(EventId, CellId)> {
    let addresses = story.trace().objects.get(object.index())?.addresses.as_ref()?;
    let user = story.event(event);
    let own = story.trace().threads[user.thread.index()].events.get(..user.index as usize)?;
    let mut near = own.iter().rev().take(NEAR).filter(|id| story.in_one_call(**id, event));
    near.find_map(|id| {
        let points = |part: &&ReadPart| {
            let value = story.value(part.var).and_then(|value| u64::try_from(value).ok());
            value.is_some_and(|value| addresses.contains(&value))
        };
        Some((*id, story.event(*id).kind.reads().iter().find(points)?.cell))
    })
}
