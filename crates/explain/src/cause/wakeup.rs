//! A thread waits for a signal that came before it waited, or that woke another thread.

use super::order;
use super::story::{Pair, Story};
use super::words::{at, did, place, quoted, whole};
use super::{CauseEvent, Found, Pattern};
use model::{
    Awaited, Event, EventId, EventKind, FailureKind, ObjectId, PathCondition, PathConditionKind,
    ReadPart, ReadRef, Site, WriteSource,
};

pub(super) fn find(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    if failure.kind != FailureKind::Hang {
        return None;
    }
    // The thread that the failure is put down to comes first.
    let failing = story.event(failure.event).thread;
    let mut waits: Vec<&Event> =
        story.trace().events.iter().filter(|e| awaited(e).is_some()).collect();
    waits.sort_by_key(|wait| wait.thread != failing);
    // Others that have nothing to do would wait whatever woke them, unless it was undone.
    let (idle, waits): (Vec<&Event>, Vec<&Event>) =
        waits.into_iter().partition(|wait| wait.thread != failing && is_idle(story, wait));
    let telling = waits.iter().find_map(|wait| missed(story, wait, awaited(wait)?));
    let telling = telling.or_else(|| idle.iter().find_map(|wait| in_vain_otherwise(story, wait)));
    // What a thread still waits for at the end, no signal told it before: that was about another round, or
    // an object that lay at the same place.
    let mut lost = waits.into_iter().filter(|wait| !is_idle(story, wait));
    telling.or_else(|| lost.find_map(|wait| too_early(story, wait, awaited(wait)?)))
}

/// The release by which a wait begins: the event right before it. A thread that waits without having the
/// mutex releases nothing.
pub(super) fn beginning(story: &Story<'_>, wait: &Event) -> EventId {
    let events = &story.trace().threads[wait.thread.index()].events;
    let before = (wait.index as usize).checked_sub(1).and_then(|index| events.get(index));
    let release = |id: &&EventId| matches!(story.event(**id).kind, EventKind::Unlock { .. });
    before.filter(release).copied().unwrap_or(wait.id)
}

/// Would the thread go on waiting if it looked again now? No where that is not known.
fn is_idle(story: &Story<'_>, wait: &Event) -> bool {
    let mut looks = looks(story, wait).into_iter().flatten();
    let mut looked = false;
    let waits = looks.by_ref().filter(|look| look.kind == PathConditionKind::Branch).all(|look| {
        looked = true;
        story.holds_at_the_end(look) == Some(true)
    });
    looked && waits
}

/// What decided under the mutex of a wait that the thread waits. `None` for a thread that does not have the mutex.
pub(super) fn looks<'s>(story: &Story<'s>, wait: &Event) -> Option<Vec<&'s PathCondition>> {
    let began = story.event(beginning(story, wait));
    let EventKind::Unlock { object: mutex, .. } = began.kind else { return None };
    let own = &story.trace().threads[wait.thread.index()].events[..began.index as usize];
    let took = own
        .iter()
        .rev()
        .map(|id| story.event(*id))
        .find(|event| matches!(event.kind, EventKind::Lock { object, .. } if object == mutex));
    let took = guarded_since(story, own, took?.index);
    let looks = story.trace().conditions.iter().filter(|condition| {
        condition.thread == wait.thread && (took + 1..=began.index).contains(&condition.position)
    });
    Some(looks.collect())
}

/// Where a thread has looked at what it waits for, if it took the mutex of the wait at `took`: a condition variable
/// for any kind of lock has a mutex of its own, which is taken behind that look, and then the lock under which
/// the thread looked is given back. That one counts.
fn guarded_since(story: &Story<'_>, own: &[EventId], took: u32) -> u32 {
    let given_back = own.iter().skip(took as usize + 1).filter_map(|id| {
        let EventKind::Unlock { object, .. } = story.event(*id).kind else { return None };
        Some(object)
    });
    let taken = given_back.filter_map(|mutex| {
        let before = own[..took as usize].iter().rev().map(|id| story.event(*id));
        before
            .take_while(
                |event| !matches!(event.kind, EventKind::Unlock { object, .. } if object == mutex),
            )
            .find(|event| matches!(event.kind, EventKind::Lock { object, .. } if object == mutex))
            .map(|lock| lock.index)
    });
    taken.min().map_or(took, |outer| outer.min(took))
}

/// Does another thread than the one that waits wake those at the condition variable?
fn wakes(event: &Event, wait: &Event, condition: ObjectId) -> bool {
    event.thread != wait.thread && signals(event, condition)
}

/// Does the event wake those at the condition variable?
pub(super) fn signals(event: &Event, condition: ObjectId) -> bool {
    matches!(event.kind, EventKind::Signal { condition: c }
        | EventKind::Broadcast { condition: c } if c == condition)
}

/// Another thread looked whether anybody waits, or whether there is anything to tell, at the wrong moment, and so
/// sent nothing: where it looks at the right one, in the passing run, it does. Signals that came before the wait
/// were about something else then.
pub(super) fn not_sent(story: &Story<'_>) -> Option<Found> {
    let failure = story.trace().failure.as_ref()?;
    let hang = failure.kind == FailureKind::Hang;
    // Others may wait because they have nothing to do.
    let hanging = story.event(failure.event).thread;
    let waits = story.trace().events.iter().filter(|event| hang && event.thread == hanging);
    waits
        .filter_map(|wait| Some((wait, awaited(wait)?)))
        .find_map(|(wait, condition)| not_sent_to(story, wait, condition))
}

fn not_sent_to(story: &Story<'_>, wait: &Event, condition: ObjectId) -> Option<Found> {
    story.pairs().into_iter().find_map(|pair| {
        let Pair::Reversed(order) = pair else { return None };
        let mut looks = [order.before, order.after].into_iter().filter(|id| {
            let event = story.event(*id);
            event.thread != wait.thread
                && !event.is_in_synchronisation()
                && story.cells(*id).into_iter().any(|cell| story.decides_something(*id, cell))
        });
        let name = &story.trace().objects.get(condition.index())?.name;
        // Who writes there may do so by a look of its own, which is not why nobody was told.
        let (look, signal) = looks.find_map(|look| {
            let signal = story.only_when_passing(look, |trace, event| match event.kind {
                EventKind::Signal { condition } | EventKind::Broadcast { condition } => {
                    trace.objects.get(condition.index()).is_some_and(|object| object.name == *name)
                }
                _ => false,
            })?;
            Some((look, signal))
        })?;
        let found = order::find(story, pair).filter(|found| found.pattern == Pattern::Order)?;
        let verb =
            if matches!(signal.kind, EventKind::Signal { .. }) { "signal" } else { "broadcast" };
        let who = story.thread(look);
        let who = match found.sentence.strip_prefix(who) {
            Some(rest) if rest.starts_with(' ') => String::new(),
            _ => format!("{who} "),
        };
        let sentence = format!(
            "{}, and so {who}did not {verb} {} ({}), for which {} waits ({})",
            found.sentence,
            quoted(&story.subject(wait.id)),
            place(signal.site()),
            story.thread(wait.id),
            at(story, wait.id)
        );
        let case = Some("signal-not-sent");
        Some(Found { pattern: Pattern::MissedWakeup, case, sentence, ..found })
    })
}

/// All that can be said of it is that the last signal came before the wait.
fn too_early(story: &Story<'_>, wait: &Event, condition: ObjectId) -> Option<Found> {
    let began = beginning(story, wait);
    let signal = story.last_before(began, |event| wakes(event, wait, condition))?;
    Some(before_wait(story, signal, wait.id, "nobody does so again"))
}

/// The signal came before a wait with a limit, whose time was up then.
pub(super) fn find_timed(story: &Story<'_>) -> Option<Found> {
    story.pairs().into_iter().find_map(|pair| {
        let Pair::Reversed(order) = pair else { return None };
        let signal = story.event(order.before);
        let is_end = |id: &&EventId| {
            matches!(story.event(**id).kind, EventKind::WaitTimedOut { condition, began }
                if began == order.after && signals(signal, condition))
        };
        let wait = *story.trace().thread_of(order.after).events.iter().find(is_end)?;
        Some(before_wait(story, signal.id, wait, "the time of that wait was up"))
    })
}

/// A signal came before a wait, with what came of that.
fn before_wait(story: &Story<'_>, signal: EventId, wait: EventId, outcome: &str) -> Found {
    let sentence = format!(
        "{} before {} waited for it ({}), and {outcome}",
        whole(story, signal),
        story.thread(wait),
        at(story, wait)
    );
    let found = Found::new(Pattern::MissedWakeup, sentence, &[signal, wait]);
    Found { case: Some("signal-before-wait"), ..found }
}

/// The condition variable that a thread waits at until the end.
pub(super) fn awaited(event: &Event) -> Option<ObjectId> {
    match event.kind {
        EventKind::Block { on: Awaited::Signal { condition } } => Some(condition),
        _ => None,
    }
}

fn missed(story: &Story<'_>, wait: &Event, condition: ObjectId) -> Option<Found> {
    let began = beginning(story, wait);
    let signals = |event: &Event| wakes(event, wait, condition);
    let name = quoted(&story.subject(wait.id));
    let waiter = story.thread(wait.id);
    // A signal during the wait went to somebody else.
    let stolen =
        story.trace().events.iter().filter(|event| signals(event) && story.before(began, event.id));
    if let Some((signal, wake)) =
        stolen.filter_map(|event| Some((event.id, woken_by(story, event.id)?))).next()
    {
        let sentence = format!(
            "{} and woke {} ({}), not {waiter}, which had waited for {name} since before ({})",
            whole(story, signal),
            story.thread(wake),
            at(story, wake),
            at(story, wait.id)
        );
        let found = Found::new(Pattern::MissedWakeup, sentence, &[signal, wake, wait.id]);
        return Some(Found { case: Some("woke-another"), ..found });
    }
    let signal = story.last_before(began, signals)?;
    if let Some([check, change, signal]) = check_and_change(story, began, signal, &signals) {
        let sentence = format!(
            "{} and {} {name} ({}) between {waiter}'s check ({}) and its wait ({})",
            whole(story, change),
            did(story.event(signal)),
            at(story, signal),
            at(story, check),
            at(story, wait.id)
        );
        let found = Found::new(Pattern::MissedWakeup, sentence, &[change, signal, check, wait.id]);
        return Some(Found { case: Some("signal-between-check-and-wait"), ..found });
    }
    in_vain(story, wait, began)
}

/// What the waiting thread looked at before it waited and the signal's thread changed after that and before the
/// signal: the read, the write, and the first signal behind that, since later ones told of something else, too. Of
/// several it is what that thread did in the call in which it signalled, and not in one that was over by then;
/// otherwise what was looked at last.
fn check_and_change(
    story: &Story<'_>,
    began: EventId,
    signal: EventId,
    signals: &dyn Fn(&Event) -> bool,
) -> Option<[EventId; 3]> {
    let (waiter, sender) = (story.event(began), story.event(signal));
    // What it looked at before it was woken the last time is told by that it was woken.
    let own = &story.trace().threads[waiter.thread.index()].events[..waiter.index as usize];
    let since = own
        .iter()
        .rev()
        .map(|id| story.event(*id))
        .find_map(|event| matches!(event.kind, EventKind::Wake { .. }).then_some(event.index));
    let mut branches: Vec<&PathCondition> = story
        .trace()
        .conditions
        .iter()
        .filter(|c| c.thread == waiter.thread && c.kind == PathConditionKind::Branch)
        .filter(|c| !c.is_beside_wait)
        .filter(|c| c.position <= waiter.index && since.is_none_or(|wake| wake < c.position))
        .collect();
    branches.sort_by_key(|condition| std::cmp::Reverse((condition.position, condition.id)));
    let mut found: Option<(usize, [EventId; 3])> = None;
    for branch in branches {
        let mut reads: Vec<EventId> =
            story.trace().reads_of(branch.expr).iter().map(|read| read.event).collect();
        reads.sort_by_key(|read| std::cmp::Reverse(story.event(*read).index));
        reads.retain(|check| {
            of_one_call(story.event(*check), waiter) && !looked_again(story, *check, waiter)
        });
        let missed = reads.into_iter().find_map(|check| {
            let writes = |id: &EventId| {
                story.event(*id).index < sender.index
                    && story.before(check, *id)
                    && story.common_cells(check, *id).iter().any(|c| story.access(*id, *c).writes)
            };
            let own = &story.trace().threads[sender.thread.index()].events;
            let change = own.iter().rev().copied().find(writes)?;
            // With what makes it wait all the same, or what it found already, it missed nothing.
            let missed = story.common_cells(check, change).into_iter().any(|cell| {
                let part = story.event(check).kind.reads().iter().find(|part| part.cell == cell);
                let then = part.map(|part| story.holds_with(branch, part.var, cell, change));
                then.is_some_and(|then| then != Some(true))
            });
            missed.then_some((check, change))
        });
        let Some((check, change)) = missed else { continue };
        let own = &story.trace().threads[sender.thread.index()].events;
        let mut behind = own.iter().skip(story.event(change).index as usize + 1);
        let told = behind.find(|id| signals(story.event(**id))).copied().unwrap_or(signal);
        let shared = calls_in_common(story.event(change), story.event(told));
        if found.is_none_or(|(most, _)| shared > most) {
            found = Some((shared, [check, change, told]));
        }
    }
    found.map(|(_, events)| events)
}

/// How many calls two events of a thread are parts of, `main` being the first.
fn calls_in_common(one: &Event, other: &Event) -> usize {
    let both = || one.stack.iter().rev().zip(other.stack.iter().rev());
    let same = both().take_while(|(a, b)| a == b).count();
    let of_one_function = |(a, b): (&Site, &Site)| (&a.file, &a.function) == (&b.file, &b.function);
    same + usize::from(both().nth(same).is_some_and(of_one_function))
}

/// Was the look at hand made in an earlier section of the wait's mutex, and did the thread look at the same in the one in which
/// it began to wait, or is that the same section of the source in a later round? Nothing comes between what a thread looks at
/// and its wait while it has the mutex. What it looked at before it gave the mutex back, and not again, may have changed.
fn looked_again(story: &Story<'_>, check: EventId, began: &Event) -> bool {
    let EventKind::Unlock { object: mutex, .. } = began.kind else { return false };
    let own = &story.trace().threads[began.thread.index()].events;
    let taken_or_given = |event: &Event| matches!(event.kind, EventKind::Lock { object, .. } | EventKind::Unlock { object, .. } if object == mutex);
    let last = |end: u32| {
        let earlier = own[..end as usize].iter().rev().map(|id| story.event(*id));
        earlier.into_iter().find(|event| taken_or_given(event))
    };
    let held = |event: &&Event| matches!(event.kind, EventKind::Lock { .. });
    let look = story.event(check);
    let (Some(first), Some(second)) =
        (last(look.index).filter(held), last(began.index).filter(held))
    else {
        return false;
    };
    let section = second.index + 1..=began.index;
    let looks_there = |other: &PathCondition| {
        let again = |read: &ReadRef| !story.common_cells(check, read.event).is_empty();
        other.thread == began.thread
            && other.kind == PathConditionKind::Branch
            && section.contains(&other.position)
            && story.trace().reads_of(other.expr).iter().any(again)
    };
    let later_round = first.stack == second.stack;
    first.id != second.id && (later_round || story.trace().conditions.iter().any(looks_there))
}

/// Are a look and a wait of one thread parts of one call, and not of two calls of the same function?
fn of_one_call(look: &Event, wait: &Event) -> bool {
    let mut both = look.stack.iter().rev().zip(wait.stack.iter().rev());
    let parted = both.by_ref().find(|(a, b)| a != b);
    let inner = parted.and_then(|_| both.next());
    inner.is_none_or(|(a, b)| (&a.file, &a.function) != (&b.file, &b.function))
}

/// The thread had been woken from the same wait, and could have gone on, but what it waited for was
/// undone before it looked.
fn in_vain(story: &Story<'_>, wait: &Event, began: EventId) -> Option<Found> {
    let began = story.event(began);
    let own = &story.trace().threads[wait.thread.index()].events;
    // Woken, it took the mutex and gave it back only to wait again.
    let mut before = own[..began.index as usize].iter().rev().copied();
    let wake = before.find(|id| {
        let kind = &story.event(*id).kind;
        matches!(kind, EventKind::Wake { .. } | EventKind::Unlock { .. })
    })?;
    let signal = *story.failing.evaluation.woken_by.get(&wake)?;
    let mut branches = story.trace().conditions.iter().filter(|c| {
        c.thread == wait.thread
            && c.kind == PathConditionKind::Branch
            && (story.event(wake).index..=began.index).contains(&c.position)
    });
    let (look, undone) = branches.find_map(|branch| {
        let reads = story.trace().reads_of(branch.expr);
        reads.iter().find_map(|read| {
            let Some(WriteSource::Write(write)) = story.failing.evaluation.reads_from.get(read)
            else {
                return None;
            };
            let since = story.before(signal, *write) && story.before(wake, read.event);
            let by_another = story.event(*write).thread != wait.thread;
            (since && by_another && would_go_on(story, branch, *read, signal))
                .then_some((read.event, *write))
        })
    })?;
    let sentence = format!(
        "{} after {} {} {} ({}) and before {}, which that woke, looked at it ({}) and waited \
         again ({})",
        whole(story, undone),
        if story.thread(signal) == story.thread(undone) { "it" } else { story.thread(signal) },
        did(story.event(signal)),
        quoted(&story.subject(signal)),
        at(story, signal),
        story.thread(wait.id),
        at(story, look),
        at(story, wait.id)
    );
    let events = [undone, signal, look, wait.id];
    let found = Found::new(Pattern::MissedWakeup, sentence, &events);
    Some(Found { case: Some("undone-before-look"), ..found })
}

/// The same of a thread that has nothing to do. What it saw when it looked again in the run that passes, too, did no harm.
fn in_vain_otherwise(story: &Story<'_>, wait: &Event) -> Option<Found> {
    let found = in_vain(story, wait, beginning(story, wait))?;
    let [_, _, CauseEvent::Failing(look), _] = found.events[..] else { return None };
    story.reads_otherwise(look).then_some(found)
}

/// Would the branch have gone another way with what the read's cell held at the signal?
fn would_go_on(story: &Story<'_>, branch: &PathCondition, read: ReadRef, signal: EventId) -> bool {
    let part = story.event(read.event).kind.reads().get(read.part as usize);
    let Some(&ReadPart { cell, var }) = part else { return false };
    let last = story.last_write_before(signal, cell);
    last.is_some_and(|last| story.holds_with(branch, var, cell, last) == Some(false))
}

/// The wake-up that a signal brought about.
fn woken_by(story: &Story<'_>, signal: EventId) -> Option<EventId> {
    let mut wakes = story.failing.evaluation.woken_by.iter();
    wakes.find(|(_, waker)| **waker == signal).map(|(wake, _)| *wake)
}
