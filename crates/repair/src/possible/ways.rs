//! The order of a bug that still comes up along the paths of a run: what keeps those paths out of the question, and
//! schedules of it for the program to follow.

use super::Combination;
use crate::check::Limits;
use crate::edit::Edit;
use encoders::ConstraintSystem;
use model::evaluate::Evaluator;
use model::{
    ConditionId, EventId, EventKind, EventTrace, FailureCondition, ObjectId, PathCondition,
    PathConditionKind, ThreadId,
};
use solver::{Goal, Order, OrderingSession, Outcome, Session, SolverError};
use std::collections::{BTreeMap, BTreeSet};

/// A schedule of a run that has the order of the bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Where its events are, in words.
    pub place: String,
    /// The run's events up to the last one that matters, and more cautious selections of them: without what threads would
    /// do on paths that they leave, and only up to where the order of the bug is complete. To be tried in this order.
    pub orders: Vec<Vec<EventId>>,
}

/// What schedules of a combination are wanted for.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    /// Where the failure was.
    pub(super) function: Option<&'a str>,
    /// The combination's lines.
    pub(super) place: &'a str,
    /// There are enough of the same lines.
    pub(super) enough: bool,
    /// The other thread's access is one of any kind.
    pub(super) between: bool,
    /// The run is a part of a longer one, and may have no end.
    pub(super) is_part: bool,
}

/// The trace with those of its path conditions only that pass the test.
fn kept(run: &EventTrace, keep: impl Fn(&PathCondition) -> bool) -> EventTrace {
    let mut trace = run.clone();
    trace.conditions.retain(keep);
    for (index, condition) in trace.conditions.iter_mut().enumerate() {
        condition.id = ConditionId::from_index(index);
    }
    trace
}

/// The trace without path conditions: what it has no schedule for is ruled out by the threads' synchronisation alone,
/// whatever they see.
pub(super) fn without_paths(run: &EventTrace) -> EventTrace {
    going_on(kept(run, |_| false), &BTreeMap::new())
}

/// Behind these places of threads, and where they have none, nobody waits for what another one gives: that it came in this
/// run says nothing. With the order of the bug a thread may wait there for ever, which is how programs hang. Nor does it say
/// anything that something was not to be had there by who only tried. And where some no longer take units of a semaphore, an
/// attempt finds units that it did not find in the run, wherever it stands.
fn going_on(mut run: EventTrace, ends: &BTreeMap<ThreadId, u32>) -> EventTrace {
    let mut left: BTreeSet<ObjectId> = BTreeSet::new();
    for event in &mut run.events {
        if ends.get(&event.thread).is_some_and(|end| event.index <= *end) {
            continue;
        }
        match event.kind {
            EventKind::Wake { condition, began } => {
                event.kind = EventKind::WaitTimedOut { condition, began };
            }
            EventKind::SemaphoreWait { object } => {
                left.insert(object);
                event.kind = EventKind::Fence;
            }
            EventKind::SemaphoreWaitFailed { .. } | EventKind::TryLockFailed { .. } => {
                event.kind = EventKind::Fence;
            }
            _ => {}
        }
    }
    for event in &mut run.events {
        if matches!(event.kind, EventKind::SemaphoreWaitFailed { object } if left.contains(&object))
        {
            event.kind = EventKind::Fence;
        }
    }
    run
}

/// The trace with the path conditions only that threads have to meet to come to these events. What they see behind
/// them, above all whether they fail, says nothing about whether they come there.
pub(super) fn up_to(run: &EventTrace, events: &[EventId]) -> EventTrace {
    let ends = ends(run, events);
    let leads_there = |condition: &PathCondition| {
        leads_on(condition)
            && ends.get(&condition.thread).is_some_and(|end| condition.position <= *end)
    };
    going_on(kept(run, leads_there), &ends)
}

/// Does a thread come to other places where this does not hold? Which element of an array it accesses, or which object a
/// pointer is to, says nothing about where it goes.
fn leads_on(condition: &PathCondition) -> bool {
    condition.kind != PathConditionKind::Address
}

/// By thread, how many events come before the last of these, or before it creates a thread that has some.
fn ends(run: &EventTrace, events: &[EventId]) -> BTreeMap<ThreadId, u32> {
    let mut ends: BTreeMap<ThreadId, u32> = BTreeMap::new();
    let mut reach = |id: EventId| {
        let event = run.event(id);
        let end = ends.entry(event.thread).or_insert(event.index);
        *end = event.index.max(*end);
    };
    for &id in events {
        reach(id);
        let mut thread = run.thread_of(id);
        while let Some(parent) = thread.parent.and_then(|parent| run.threads.get(parent.index())) {
            let child = thread.id;
            let creates = |id: &&EventId| run.event(**id).kind == EventKind::Fork { child };
            parent.events.iter().find(creates).into_iter().for_each(|id| reach(*id));
            thread = parent;
        }
    }
    ends
}

/// Schedules with the combination's orders along the paths of the run up to there: one behind which a thread takes
/// another path in the function where the failure was, and, unless there are `enough` of these, one behind which a thread
/// does so anywhere, or none does. Where no condition is in that function there are never enough. None where there is no
/// schedule. The error says why it is not known.
///
/// # Errors
/// When the solver breaks.
pub(super) fn ways(
    run: &EventTrace,
    combination: &Combination,
    system: &ConstraintSystem,
    told: Told<'_>,
    limits: Limits<'_>,
) -> Result<Result<Vec<Way>, String>, SolverError> {
    let Told { function, place, enough, between, is_part } = told;
    let events = &combination.sequence;
    // What the own thread does behind another one's access of any kind is its own affair.
    let through = events.get(..2).filter(|_| between).unwrap_or(events);
    let ends = ends(run, events);
    let (recorded, run) = (run, &going_on(run.clone(), &ends));
    let behind = |condition: &PathCondition| {
        if ends.get(&condition.thread).is_some_and(|end| condition.position <= *end) {
            return false;
        }
        let own = events.iter().any(|id| run.event(*id).thread == condition.thread);
        let thread = &run.threads[condition.thread.index()];
        let before = (condition.position as usize).checked_sub(1);
        let before = before.and_then(|index| thread.events.get(index));
        own || before.is_some_and(|before| {
            events.iter().any(|id| id == before || system.surely_before(*id, *before))
        })
    };
    let free = kept(run, |condition| leads_on(condition) && !behind(condition));
    let dropped: Vec<&PathCondition> = run.conditions.iter().filter(|c| behind(c)).collect();
    let near = |condition: &&PathCondition| Some(&*condition.site.function) == function;
    let enough = enough && run.conditions.iter().any(|condition| near(&condition));
    let focus: Vec<&PathCondition> = dropped.iter().copied().filter(near).collect();
    // Who went on there without what it had waited for does not come further when the program is made to have the order.
    let mut waits: BTreeMap<ThreadId, u32> = BTreeMap::new();
    for (event, before) in run.events.iter().zip(&recorded.events) {
        let waited =
            matches!(before.kind, EventKind::Wake { .. } | EventKind::SemaphoreWait { .. });
        if waited && event.kind != before.kind {
            let at = waits.entry(event.thread).or_insert(event.index);
            *at = event.index.min(*at);
        }
    }
    let way = |order: &[EventId]| Way {
        place: place.to_owned(),
        orders: cut(run, (order, &waits), through),
    };
    let mut found: Vec<Way> = Vec::new();
    let departures = [Some(&focus), Some(&dropped).filter(|_| !enough)];
    for conditions in departures.into_iter().flatten().filter(|some| !some.is_empty()) {
        let Some(departing) = departing(&free, conditions) else {
            if is_part {
                continue;
            }
            return Ok(Err("the run has no end".to_owned()));
        };
        match schedule_at_rest(run, &departing, Goal::Fail, combination, limits)? {
            Ok(Some(order)) => {
                let way = way(&order);
                if !found.contains(&way) {
                    found.push(way);
                }
            }
            Ok(None) => {}
            Err(why) => return Ok(Err(why)),
        }
    }
    if found.is_empty() && !enough {
        match schedule_at_rest(run, &free, Goal::Any, combination, limits)? {
            Ok(Some(order)) => found.push(way(&order)),
            Ok(None) => {}
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(found))
}

/// The trace, failing when one of these conditions does not hold. `None` where the run has no end to fail at.
fn departing(free: &EventTrace, conditions: &[&PathCondition]) -> Option<EventTrace> {
    let mut trace = free.clone();
    let not = conditions.iter().map(|condition| trace.exprs.not(condition.expr));
    let not: Vec<FailureCondition> = not.map(FailureCondition::Value).collect();
    let initial = trace.threads.first()?.events.iter();
    let end = *initial.rev().find(|id| trace.event(**id).kind == EventKind::Exit)?;
    let mut edit = Edit::new(&trace);
    edit.fails_at(end, FailureCondition::Any(not));
    // The end of a thread is replaced, and no event is added: they keep their numbers.
    edit.finish().map(|edited| edited.trace)
}

/// A schedule of the trace with the combination's orders; one in which no thread of it goes on before they are
/// complete to where the run saw something that it may not see now, where there is one.
fn schedule_at_rest(
    run: &EventTrace,
    trace: &EventTrace,
    goal: Goal,
    combination: &Combination,
    limits: Limits<'_>,
) -> Result<Result<Option<Vec<EventId>>, String>, SolverError> {
    let Combination { orders, sequence } = combination;
    // The one that comes last in the orders ends them.
    let [.., before, end] = sequence[..] else { return schedule(trace, goal, orders, limits) };
    let event = run.event(before);
    let own = run.conditions.iter().filter(|condition| condition.thread == event.thread);
    let seen = own.map(|condition| condition.position).filter(|at| *at > event.index).min();
    let next = seen.and_then(|at| run.thread_of(before).events.get(at as usize));
    if let Some(&next) = next {
        let mut orders = orders.clone();
        orders.push(Order { before: end, after: next });
        if let Ok(Some(order)) = schedule(trace, goal, &orders, limits)? {
            return Ok(Ok(Some(order)));
        }
    }
    schedule(trace, goal, orders, limits)
}

/// A schedule of the trace with these orders. The error says why there is no answer.
fn schedule(
    trace: &EventTrace,
    goal: Goal,
    orders: &[Order],
    limits: Limits<'_>,
) -> Result<Result<Option<Vec<EventId>>, String>, SolverError> {
    let system = match limits.encode(trace) {
        Ok(system) => system,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut session = OrderingSession::new(trace, &system, limits.of_question());
    Ok(match session.check(goal, orders)? {
        Outcome::Sat(model) => Ok(Some(model.schedule.order)),
        Outcome::Unsat(_) => Ok(None),
        Outcome::Unknown(reason) => Err(reason.to_string()),
    })
}

/// The schedule up to the last of these events, and on until a thread sees what leads it away from its path, if one
/// does; and the selections of it that are more cautious, see [`Way`]. Threads come no further than to these places.
fn cut(
    run: &EventTrace,
    (order, ends): (&[EventId], &BTreeMap<ThreadId, u32>),
    events: &[EventId],
) -> Vec<Vec<EventId>> {
    let recorded = |var| Some(run.recorded_value(var));
    let violated = Evaluator::new(run).run(order, &recorded).map(|evaluation| evaluation.violated);
    let violated = violated.unwrap_or_default().into_iter();
    let mut left: BTreeMap<ThreadId, u32> = BTreeMap::new();
    let violated = violated.filter_map(|id| run.conditions.get(id.index()));
    for condition in violated.filter(|condition| leads_on(condition)) {
        let at = left.entry(condition.thread).or_insert(condition.position);
        *at = condition.position.min(*at);
    }
    let comes = |id: &EventId| {
        let event = run.event(*id);
        ends.get(&event.thread).is_none_or(|at| event.index < *at)
    };
    let order: &[EventId] = &order.iter().copied().filter(comes).collect::<Vec<_>>();
    let on_path = |id: &EventId| {
        let event = run.event(*id);
        events.contains(id) || left.get(&event.thread).is_none_or(|at| event.index < *at)
    };
    let kept: Vec<EventId> = order.iter().copied().filter(on_path).collect();
    let mut orders: Vec<Vec<EventId>> = Vec::new();
    for goes_on in [true, false] {
        for order in [order, &kept] {
            let place = |id: EventId| order.iter().position(|event| *event == id).unwrap_or(0);
            let complete = events.iter().map(|id| place(*id)).max().unwrap_or(0);
            let seen = left.iter().filter_map(|(thread, position)| {
                let thread = run.threads.get(thread.index())?;
                let last = (*position as usize).checked_sub(1)?;
                Some(place(*thread.events.get(last)?))
            });
            let seen = seen.filter(|place| goes_on && *place > complete).min();
            let order = order.get(..=seen.unwrap_or(complete)).unwrap_or(order).to_vec();
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
    }
    orders
}
