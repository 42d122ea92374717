//! From an order of events to a script.
//!
//! The order is cut into the maximal runs of one thread. A thread's turn has to perform all events
//! of its run and none of its next one, so it ends where that thread stands before the next one's
//! first event. A thread's last run has no such place in the order; its turn ends right behind its
//! last event.

use crate::text::{End, Mark, Script, Target, Turn};
use crate::units::{Unit, Units, event, is_blocked, is_performed, same_passage, units};
use model::{
    Awaited, Event, EventId, EventKind, EventTrace, FailureCondition, LockMode, ObjectId,
    ObjectKind, Passage, Point, Points, ThreadId,
};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// A script, and what it leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// The script.
    pub script: Script,
    /// Pairs of events of one thread, in program order, between which the order has events of
    /// other threads, or its end, although no scheduler can stop the thread there. Under the script
    /// the second one happens together with the first.
    pub coarse: Vec<(EventId, EventId)>,
}

/// The script of a failing schedule: from the start to the failure, with everything that follows
/// held back (`end hold`).
///
/// A run that does not come to an end fails when all threads that can get on have, so there the
/// script has the whole order, and the failure comes last. Where threads wait is no place of it.
///
/// What the order has between the failing thread's last event and its failure is left out where
/// the failure is a matter of values: those are settled by then, and the others may have to wait
/// for locks that the failing thread really holds. An order without the failure becomes a script
/// without a last `!`.
#[must_use]
pub fn failing(trace: &EventTrace, points: &Points, order: &[EventId]) -> Built {
    let order = until_failure(trace, order);
    let is_failure = |id: EventId| event(trace, id).is_some_and(|e| e.kind == EventKind::Failure);
    let mut result = if is_hang(trace) {
        let acts = |id: &&EventId| {
            !is_failure(**id) && event(trace, **id).is_some_and(|event| !is_blocked(event))
        };
        let acts: Vec<EventId> = order.iter().filter(acts).copied().collect();
        let mut result = units(trace, points, &acts);
        if let Some(failure) = trace.failure.as_ref().and_then(|f| event(trace, f.event)) {
            let events = vec![failure.id];
            result.units.push(Unit { thread: failure.thread, events });
        }
        result
    } else {
        units(trace, points, &order)
    };
    let fails = |unit: &Unit| is_failure(unit.last());
    if let Some(at) = result.units.iter().position(fails) {
        result.units.truncate(at + 1);
    }
    held_too_late(trace, points, &mut result, None);
    let turns = turns(trace, points, &result.units, &|_| None);
    let (polls, waits) = (polls(trace), wait_to_the_end(trace, points));
    let script = Script { end: End::Hold, polls, waits, turns, ..Script::default() };
    Built { script, coarse: result.coarse }
}

/// The script of a schedule that passes: the whole order, after which all threads go on
/// (`end run`).
///
/// The failure is no place of it: where the run passes, what led to the failure is not executed.
#[must_use]
pub fn passing(trace: &EventTrace, points: &Points, order: &[EventId]) -> Built {
    let order = without_failure(trace, order);
    let granted = granted(trace, &order);
    let acts =
        |id: &EventId| event(trace, *id).is_none_or(|e| !is_blocked(e) || granted.contains(id));
    let order: Vec<EventId> = order.into_iter().filter(acts).collect();
    let points = &*at_returns(trace, points);
    let result = units(trace, points, &order);
    let mut turns = turns(trace, points, &result.units, &|_| None);
    finish(trace, &granted, &mut turns);
    let script = Script { polls: polls(trace), turns, ..Script::default() };
    Built { script, coarse: result.coarse }
}

/// Local variables end where they are overwritten, behind their function's return. Where they are to be used
/// before, their thread has to stay in the function: there the end belongs to the event before it.
fn at_returns<'p>(trace: &EventTrace, points: &'p Points) -> Cow<'p, Points> {
    let mut moved = Cow::Borrowed(points);
    for thread in &trace.threads {
        for pair in thread.events.windows(2) {
            let ends = event(trace, pair[1]).is_some_and(|event| trace.ends_local(event));
            let before = moved.point(pair[0]).copied().filter(|_| ends);
            if let Some(before) = before
                && let Some(point) = moved.to_mut().of.get_mut(pair[1].index())
            {
                *point = Point { first: false, ..before };
            }
        }
    }
    moved
}

/// The threads that poll for ever in the recorded run.
fn polls(trace: &EventTrace) -> Vec<String> {
    let polls = |event: &&Event| event.kind == EventKind::Block { on: Awaited::Change };
    let polling = trace.events.iter().filter(polls);
    polling.map(|event| thread_name(trace, event.thread)).collect()
}

/// The threads that wait to the recorded run's end although they had set a time limit: that was too long to tell.
fn wait_to_the_end(trace: &EventTrace, points: &Points) -> Vec<String> {
    let has_limit = |site: u32| {
        let name = points
            .sites
            .get(site as usize)
            .map_or("", |name| name.rsplit(':').next().unwrap_or(name));
        let calls = [
            "timedwait",
            "clockwait",
            "timedlock",
            "clocklock",
            "timedrdlock",
            "timedwrlock",
            "timedjoin_np",
            "clockjoin_np",
        ];
        calls.iter().any(|call| name.split('/').next().is_some_and(|name| name.ends_with(call)))
    };
    let waits = |event: &&Event| {
        matches!(event.kind, EventKind::Block { .. })
            && points.point(event.id).is_some_and(|point| {
                has_limit(point.site)
                    || point.through.is_some_and(|through| has_limit(through.site))
            })
    };
    trace.events.iter().filter(waits).map(|event| thread_name(trace, event.thread)).collect()
}

/// Is the failure that the run did not come to an end?
fn is_hang(trace: &EventTrace) -> bool {
    trace.events.iter().any(is_blocked)
}

/// The requests of the recorded run that get what they ask for in this order. A thread that does
/// goes on to its end before others have their next turn, because it gives back what it holds at
/// places that the trace does not have. All other requests are left to the run behind the script.
fn granted(trace: &EventTrace, order: &[EventId]) -> Vec<EventId> {
    let mut held: FxHashMap<ObjectId, Vec<(ThreadId, LockMode)>> = FxHashMap::default();
    let mut units: FxHashMap<ObjectId, i64> = FxHashMap::default();
    for object in &trace.objects {
        if let ObjectKind::Semaphore { initial } = object.kind {
            units.insert(object.id, i64::from(initial));
        }
    }
    let mut taken: FxHashMap<ThreadId, Vec<ObjectId>> = FxHashMap::default();
    let mut result = Vec::new();
    for event in order.iter().filter_map(|&id| event(trace, id)) {
        let thread = event.thread;
        match event.kind {
            EventKind::Lock { object, mode } => {
                held.entry(object).or_default().push((thread, mode));
            }
            // One that is added gives nothing back: its thread did not come to it, unless it was
            // granted its request, and then it has given everything back.
            EventKind::Unlock { object, synthetic: false, .. } => {
                held.entry(object).or_default().retain(|(holder, _)| *holder != thread);
            }
            EventKind::SemaphoreWait { object } => {
                *units.entry(object).or_default() -= 1;
                taken.entry(thread).or_default().push(object);
            }
            EventKind::SemaphorePost { object } => {
                *units.entry(object).or_default() += 1;
                if let Some(own) = taken.get_mut(&thread)
                    && let Some(at) = own.iter().rposition(|other| *other == object)
                {
                    own.remove(at);
                }
            }
            EventKind::Block { on } => {
                let free = match on {
                    Awaited::Lock { object, mode } => {
                        held.get(&object).into_iter().flatten().all(|(_, other)| {
                            mode == LockMode::Shared && *other == LockMode::Shared
                        })
                    }
                    Awaited::Unit { object } => units.get(&object).is_some_and(|n| *n > 0),
                    Awaited::Signal { .. } => true,
                    Awaited::Arrivals { .. }
                    | Awaited::End { .. }
                    | Awaited::Change
                    | Awaited::Call
                    | Awaited::Other => false,
                };
                if free {
                    result.push(event.id);
                }
                if free && goes_to_its_end(on) {
                    for holders in held.values_mut() {
                        holders.retain(|(holder, _)| *holder != thread);
                    }
                    for object in taken.remove(&thread).unwrap_or_default() {
                        *units.entry(object).or_default() += 1;
                    }
                }
            }
            _ => {}
        }
    }
    result
}

/// A thread that asked for this and has it needs nobody else, as far as the trace tells.
fn goes_to_its_end(on: Awaited) -> bool {
    matches!(on, Awaited::Lock { .. } | Awaited::Unit { .. })
}

/// The last turns of the threads whose request is granted lead to their ends. The last turn of all
/// needs no end, and with the initial thread the process would end.
fn finish(trace: &EventTrace, granted: &[EventId], turns: &mut [Turn]) {
    let count = turns.len();
    for request in granted.iter().filter_map(|&id| event(trace, id)) {
        let ends = matches!(request.kind, EventKind::Block { on } if goes_to_its_end(on));
        let name = thread_name(trace, request.thread);
        let last = turns.iter().rposition(|turn| turn.thread == name);
        let Some(at) = last.filter(|at| ends && request.thread.index() != 0 && at + 1 < count)
        else {
            continue;
        };
        if let Some(turn) = turns.get_mut(at) {
            turn.target = Target::End;
            turn.comment = None;
        }
    }
}

/// The script that tries another path: the order up to the event `until`, which is not performed;
/// then the thread of `then`, if there is one, runs until it has performed that one; and on (`end run`).
///
/// Where `until` cannot be separated from events before it, these are not performed either, and
/// the pair is among the coarse ones. An `until` that the order does not have cuts nothing.
#[must_use]
pub fn prefix(
    trace: &EventTrace,
    points: &Points,
    order: &[EventId],
    until: EventId,
    then: Option<EventId>,
) -> Built {
    // Who waited in the recorded run need not wait in this one, and a thread that waits for ever fails
    // before others have come to where they wait: it can go on here, too.
    let acts = |id: &&EventId| {
        **id == until
            || Some(**id) == then
            || event(trace, **id)
                .is_none_or(|event| !is_blocked(event) && event.kind != EventKind::Failure)
    };
    let order: Vec<EventId> = order.iter().filter(acts).copied().collect();
    let order = order.as_slice();
    let whole = units(trace, points, order);
    let cut = order.iter().position(|&id| id == until).unwrap_or(order.len());
    let mut result = units(trace, points, order.get(..cut).unwrap_or(order));
    let stopped = event(trace, until).map(|event| event.thread).filter(|_| cut < order.len());
    let own = result.units.iter().rposition(|unit| Some(unit.thread) == stopped);
    if let (Some(at), Some(point)) = (own, points.point(until)) {
        let last = result.units.get(at).map_or(until, Unit::last);
        if !point.first && points.point(last).is_some_and(|last| same_passage(last, point)) {
            result.coarse.push((last, until));
            result.units.remove(at);
        }
    }
    let behind = |thread: ThreadId| {
        if Some(thread) == stopped {
            return Some(until);
        }
        // The thread's first unit of the whole order that the cut one does not have.
        let done = result.units.iter().filter(|unit| unit.thread == thread).count();
        let unit = whole.units.iter().filter(|unit| unit.thread == thread).nth(done)?;
        event(trace, unit.lead()).filter(|e| e.kind != EventKind::Failure).map(|e| e.id)
    };
    let mut turns = turns(trace, points, &result.units, &behind);
    held_too_late(trace, points, &mut result, stopped);
    if let Some(then) = then.and_then(|then| event(trace, then)) {
        let thread = thread_name(trace, then.thread);
        let last = turns.last().is_some_and(|last| last.thread == thread);
        let done = result.units.iter().any(|unit| unit.events.contains(&then.id));
        // The turn before is the same thread's: it leads further, or not as far.
        if last && !done {
            turns.pop();
        }
        if !(last && done) {
            turns.push(Turn { thread, target: target_past(points, then), comment: place(then) });
        }
    }
    let script = Script { polls: polls(trace), turns, ..Script::default() };
    Built { script, coarse: result.coarse }
}

/// Adds a mark for each of the events that has a point, in the order given, numbered on from the
/// script's highest mark, or from 1.
pub fn marks_for(script: &mut Script, trace: &EventTrace, points: &Points, events: &[EventId]) {
    let mut number = script.marks.iter().map(|mark| mark.number).max().unwrap_or(0);
    for &id in events {
        let (Some(event), Some(point)) = (event(trace, id), points.point(id)) else { continue };
        number = number.saturating_add(1);
        script.marks.push(Mark {
            number,
            thread: thread_name(trace, event.thread),
            site: points.site(point).to_owned(),
            occurrence: point.occurrence,
        });
    }
}

/// The part of a failing order that a script has to follow. See [`failing`].
fn until_failure(trace: &EventTrace, order: &[EventId]) -> Vec<EventId> {
    let is_failure = |&id: &EventId| event(trace, id).is_some_and(|e| e.kind == EventKind::Failure);
    let Some(failure) = order.iter().position(is_failure) else { return order.to_vec() };
    let id = order.get(failure).copied();
    if is_hang(trace) {
        return order.to_vec();
    }
    let thread = id.and_then(|id| event(trace, id)).map(|event| event.thread);
    let by_values = trace.failure.as_ref().is_some_and(|failure| match failure.condition {
        FailureCondition::Value(condition) => !trace.exprs.variables(condition).is_empty(),
        _ => false,
    });
    let own = |id: &EventId| event(trace, *id).filter(|event| Some(event.thread) == thread);
    let mut kept = order.get(..failure).unwrap_or_default().to_vec();
    let end = match by_values {
        true => kept.iter().rposition(|id| own(id).is_some_and(is_performed)).map(|at| at + 1),
        // A release that no code performs: others cannot really take the lock.
        false => {
            kept.iter().position(|id| own(id).is_some_and(|e| !is_performed(e) && e.index > 0))
        }
    };
    kept.truncate(end.unwrap_or(kept.len()));
    kept.extend(id);
    kept
}

fn without_failure(trace: &EventTrace, order: &[EventId]) -> Vec<EventId> {
    let fails = |id: EventId| event(trace, id).is_some_and(|e| e.kind == EventKind::Failure);
    order.iter().copied().filter(|&id| !fails(id)).collect()
}

/// Notes the events behind a cut that happen nevertheless, since nothing separates them from the
/// last ones before it. The thread `stopped` was seen to otherwise.
fn held_too_late(
    trace: &EventTrace,
    points: &Points,
    result: &mut Units,
    stopped: Option<ThreadId>,
) {
    for thread in trace.threads.iter().filter(|thread| Some(thread.id) != stopped) {
        let unit = result.units.iter().rfind(|unit| unit.thread == thread.id);
        let Some(last) = unit.and_then(|unit| event(trace, unit.last())) else { continue };
        let later = thread.events.get(last.index as usize + 1..).unwrap_or_default();
        let mut last = last;
        let later = later.iter().filter_map(|&id| event(trace, id));
        for next in later.filter(|event| is_performed(event) && !is_blocked(event)) {
            let (here, there) = (points.point(last.id), points.point(next.id));
            if !here.zip(there).is_some_and(|(a, b)| !b.first && same_passage(a, b)) {
                break;
            }
            result.coarse.push((last.id, next.id));
            last = next;
        }
    }
}

/// The turns for the units in this order. `behind` gives the event that a thread stands before
/// when it has done all of its units; without one it stands behind its last event.
fn turns(
    trace: &EventTrace,
    points: &Points,
    units: &[Unit],
    behind: &dyn Fn(ThreadId) -> Option<EventId>,
) -> Vec<Turn> {
    let runs: Vec<&[Unit]> = units.chunk_by(|a, b| a.thread == b.thread).collect();
    let mut turns = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let thread = first.thread;
        let later = runs.get(at + 1..).unwrap_or_default();
        // Where a run hangs, the failure is behind everything else, not before some place.
        let comes = |unit: &&Unit| {
            let fails = event(trace, unit.lead()).is_some_and(|e| e.kind == EventKind::Failure);
            unit.thread == thread && !(fails && is_hang(trace))
        };
        let next = later.iter().position(|run| run.first().is_some_and(|unit| comes(&unit)));
        let next = next.and_then(|at| Some((later.get(at)?.first()?, later.get(..at)?)));
        let before = match next {
            Some((unit, between)) => Some(unit.lead()).filter(|id| !waits(trace, *id, between)),
            None => behind(thread),
        };
        let target = match before.and_then(|id| event(trace, id)) {
            Some(before) => Some((target_before(points, before), before)),
            None => target_of_last_run(trace, points, run, last, later.is_empty()),
        };
        if let Some((target, event)) = target {
            let thread = thread_name(trace, thread);
            turns.push(Turn { thread, target, comment: place(event) });
        }
    }
    turns
}

/// Does an event take what another thread only gives in one of these runs? Who waits for it in another
/// call before (`epoll_wait` before a read) does not get to the event's own place until then.
fn waits(trace: &EventTrace, id: EventId, between: &[&[Unit]]) -> bool {
    let Some(EventKind::SemaphoreWait { object }) =
        event(trace, id).map(|event| event.kind.clone())
    else {
        return false;
    };
    let gives = |id: &EventId| {
        event(trace, *id).is_some_and(|event| {
            matches!(event.kind, EventKind::SemaphorePost { object: given } if given == object)
        })
    };
    between.iter().flat_map(|run| run.iter()).any(|unit| unit.events.iter().any(gives))
}

/// Where a thread's last run ends; `None` when the turn before it led there already.
fn target_of_last_run<'t>(
    trace: &'t EventTrace,
    points: &Points,
    run: &[Unit],
    last: &Unit,
    is_last: bool,
) -> Option<(Target, &'t Event)> {
    let end = event(trace, last.last())?;
    match end.kind {
        EventKind::Failure => Some((Target::Failure, end)),
        // The process ends with its initial thread, and the others would not get on.
        EventKind::Exit if end.thread.index() == 0 && !is_last => {
            let mut events = run.iter().rev().flat_map(|unit| unit.events.iter().rev());
            let before = event(trace, *events.nth(1)?)?;
            Some((target_past(points, before), before))
        }
        EventKind::Exit => Some((Target::End, end)),
        _ => Some((target_past(points, end), end)),
    }
}

/// The thread has performed everything before the event, and not the event.
fn target_before(points: &Points, event: &Event) -> Target {
    let point = points.point(event.id).copied().unwrap_or_default();
    site(points, Passage { site: point.site, occurrence: point.occurrence }, false)
}

/// The thread has performed the event, and stands at the scheduling point that comes next.
fn target_past(points: &Points, event: &Event) -> Target {
    if event.kind == EventKind::Exit {
        return Target::End;
    }
    let point = points.point(event.id).copied().unwrap_or_default();
    let own = Passage { site: point.site, occurrence: point.occurrence };
    // Behind a call's gate comes the call's own sync point, which is before the event, too.
    site(points, point.through.unwrap_or(own), true)
}

fn site(points: &Points, passage: Passage, past: bool) -> Target {
    let site = points.name(passage.site).to_owned();
    Target::Site { site, occurrence: passage.occurrence.max(1), past }
}

fn thread_name(trace: &EventTrace, thread: ThreadId) -> String {
    trace.threads.get(thread.index()).map_or_else(|| "t0".to_owned(), |thread| thread.name.clone())
}

/// `file:line`, when it is known.
fn place(event: &Event) -> Option<String> {
    let site = event.stack.first().filter(|site| site.line != 0)?;
    let file = site.file.rsplit('/').next().unwrap_or_default();
    (!file.is_empty()).then(|| format!("{file}:{}", site.line))
}
