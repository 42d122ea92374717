//! What is written under a reader/writer lock that is only taken to read: it is taken to write.

use super::atomicity::{cells, touches};
use super::{Candidate, Guard, Kind, Repair, quoted};
use crate::Bug;
use crate::edit::Edit;
use crate::rust::is_rust;
use crate::sections::{Section, is_internal, lock_name, sections};
use crate::source::Span;
use crate::words::lock_word;
use model::{CellId, Event, EventId, EventKind, LockMode, ObjectId};
use std::collections::BTreeSet;

/// Where all that the cause names is done under one lock, and some of the writes while it is held to read.
pub(super) fn candidate(bug: &Bug<'_>) -> Option<Candidate> {
    let trace = bug.trace;
    let all = sections(trace);
    let cells = cells(trace, bug.events);
    let held = |id: EventId| all.around(trace, id);
    let object = common(bug)?;
    let writes =
        |event: &&Event| !event.kind.writes().is_empty() && touches(trace, event.id, &cells);
    let shared: BTreeSet<Span> = trace
        .events
        .iter()
        .filter(writes)
        .flat_map(|event| held(event.id))
        .filter(|section| section.object == object && section.mode == LockMode::Shared)
        .map(|section| Span::of(trace.event(section.lock).site()))
        .collect();
    if shared.is_empty() {
        return None;
    }
    let mode = LockMode::Exclusive;
    let mut edit = Edit::new(trace);
    for section in all.iter().filter(|section| section.mode == LockMode::Shared) {
        let EventKind::Unlock { synthetic, .. } = trace.event(section.unlock).kind else {
            continue;
        };
        if shared.contains(&Span::of(trace.event(section.lock).site())) {
            let object = section.object;
            edit.replace(section.lock, EventKind::Lock { object, mode });
            edit.replace(section.unlock, EventKind::Unlock { object, mode, synthetic });
        }
    }
    let edited = edit.finish()?;
    let name = shared.first().map(|place| lock_word(trace, object, place, None))?;
    let steps = shared.iter().map(|place| {
        let name = quoted(&lock_word(trace, object, place, None));
        let how = match is_rust(&place.file) {
            true => "with `write()`, not with `read()`",
            false => "to write, not to read",
        };
        format!("in {}, take {name} {how} ({})", place.function, place.begin())
    });
    let rule = super::atomicity::alone(trace, &edited, &[object]);
    let repair = Repair {
        kind: Kind::TakeToWrite,
        steps: steps.collect(),
        lock: Some(Guard { name, new: false }),
        variables: super::variables(bug),
        places: shared.into_iter().collect(),
        rule,
        checked: None,
    };
    Some(Candidate { repair, edited })
}

/// Do threads that have the lock to read write more under it that others see than what the cause is about? Who does only
/// counts there, as for statistics, has taken it to read on purpose, and the others have taken it wrongly.
pub(super) fn is_taken_wrongly(bug: &Bug<'_>) -> bool {
    let trace = bug.trace;
    let Some(object) = common(bug) else { return false };
    let all = sections(trace);
    let cells = cells(trace, bug.events);
    let written = |event: &Event| -> Vec<CellId> {
        let plain = matches!(event.kind, EventKind::Write { .. });
        let parts = event.kind.writes().iter().filter(|_| plain);
        parts.map(|part| part.cell).filter(|cell| !cells.contains(cell)).collect()
    };
    let is_shared =
        |section: &Section| section.object == object && section.mode == LockMode::Shared;
    trace.events.iter().any(|event| {
        let more = written(event);
        let others = |cell: &CellId| {
            let others = trace.events.iter().filter(|other| other.thread != event.thread);
            others.into_iter().any(|other| touches(trace, other.id, &BTreeSet::from([*cell])))
        };
        let held =
            |more: &[_]| !more.is_empty() && all.around(trace, event.id).iter().any(is_shared);
        held(&more) && more.iter().any(others)
    })
}

/// The lock of the program that is held at every access of the cause.
fn common(bug: &Bug<'_>) -> Option<ObjectId> {
    let trace = bug.trace;
    let all = sections(trace);
    let accesses = |id: &EventId| {
        let kind = &trace.event(*id).kind;
        !(kind.reads().is_empty() && kind.writes().is_empty())
    };
    let mut held = bug.events.iter().copied().filter(accesses).map(|id| -> BTreeSet<ObjectId> {
        all.around(trace, id).iter().map(|section| section.object).collect()
    });
    let first = held.next()?;
    let everywhere = held.fold(first, |known, other| &known & &other);
    everywhere.into_iter().find(|object| !is_internal(&lock_name(trace, *object)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoders::dsl::parse;
    use explain::Pattern;

    #[test]
    fn who_writes_under_a_lock_that_is_held_to_read_takes_it_to_write() {
        let text = "
            a: rdlock m
            a: [look] R head -> h
            a: [put] W head h + 1
            a: rdunlock m
            b: rdlock m
            b: R head -> g
            b: [other] W head g + 1
            b: rdunlock m
        ";
        let parsed = parse(text).expect("the text is a trace");
        let events = ["other", "look", "put"].map(|label| parsed.event(label));
        let bug = Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events);
        let found = candidate(&bug).expect("the lock is held at all of them");
        assert_eq!(found.repair.kind, Kind::TakeToWrite);
        let modes = sections(&found.edited.trace).into_iter().map(|section| section.mode);
        assert!(modes.into_iter().all(|mode| mode == LockMode::Exclusive));
        // Another thread that does without the lock is not helped by that.
        let text = text.replace("b: rdlock m", "").replace("b: rdunlock m", "");
        let parsed = parse(&text).expect("the text is a trace");
        let events = ["other", "look", "put"].map(|label| parsed.event(label));
        assert!(
            candidate(&Bug { trace: &parsed.trace, events: &events, schedule: &events, ..bug })
                .is_none()
        );
    }

    /// Counters under a lock that is held to read: alone, and with a list that changes, too.
    #[test]
    fn who_only_counts_under_a_lock_that_is_held_to_read_gets_an_atomic_counter_first() {
        let first = |more: &str| {
            let text = format!(
                "
                a: rdlock m
                a: [look] R count -> h
                a: [put] W count h + 1
                {more}
                a: rdunlock m
                b: rdlock m
                b: R list -> l
                b: R count -> g
                b: [other] W count g + 1
                b: rdunlock m
            "
            );
            let parsed = parse(&text).expect("the text is a trace");
            let events = ["other", "look", "put"].map(|label| parsed.event(label));
            let bug = Bug::by_hand(&parsed.trace, Pattern::Atomicity, &events);
            let found: Vec<Kind> =
                super::super::all(&bug).into_iter().map(|found| found.repair.kind).collect();
            assert!(found.contains(&Kind::OneStep), "{found:?}");
            assert!(found.contains(&Kind::TakeToWrite), "{found:?}");
            found[0]
        };
        assert_eq!(first(""), Kind::OneStep);
        assert_eq!(first("a: W list 7"), Kind::TakeToWrite);
        // A list of its own is nobody else's affair.
        assert_eq!(first("a: W own 7"), Kind::OneStep);
    }

    #[test]
    fn to_take_a_lock_to_write_comes_before_keeping_it_for_longer() {
        let text = "
            a: rdlock m
            a: [first] W head 1
            a: rdunlock m
            a: rdlock m
            a: [put] W head 2
            a: rdunlock m
            b: rdlock m
            b: [other] W head 3
            b: rdunlock m
        ";
        let parsed = parse(text).expect("the text is a trace");
        let kinds = |pattern: Pattern, labels: &[&str]| -> Vec<Kind> {
            let events: Vec<EventId> = labels.iter().map(|label| parsed.event(label)).collect();
            let bug = Bug::by_hand(&parsed.trace, pattern, &events);
            super::super::all(&bug).into_iter().map(|found| found.repair.kind).collect()
        };
        for kinds in [
            kinds(Pattern::Order, &["other", "put"]),
            kinds(Pattern::Atomicity, &["first", "other", "put"]),
        ] {
            assert_eq!(kinds.first(), Some(&Kind::TakeToWrite), "{kinds:?}");
            assert!(kinds.contains(&Kind::HoldAcross), "{kinds:?}");
        }
    }
}
