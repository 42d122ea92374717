//! The order of a bug that still comes up along the paths of a run: what keeps those paths out of the question, and
//! schedules of it for the program to follow.

use super::Combination;
use crate::check::Limits;
use crate::edit::Edit;
use encoders::ConstraintSystem;
use model::evaluate::Evaluator;
use model::{
    ConditionId, EventId, EventKind, EventTrace, FailureCondition, PathCondition, ThreadId, VarId,
    VariableOrigin,
};
use solver::{Goal, Order, OrderingSession, Outcome, Session, SolverError};
use std::collections::BTreeMap;

/// A schedule of a run that has the order of the bug, up to where that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Where its events are, in words.
    pub place: String,
    /// The run's events up to the last one that matters.
    pub order: Vec<EventId>,
    /// Behind these events a thread takes another path than in the run.
    pub departs: bool,
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
    kept(run, |_| false)
}

/// The trace with the path conditions only that threads have to meet to come to these events. What they see behind
/// them, above all whether they fail, says nothing about whether they come there.
pub(super) fn up_to(run: &EventTrace, events: &[EventId]) -> EventTrace {
    let ends = ends(run, events);
    kept(run, |condition| {
        ends.get(&condition.thread).is_some_and(|end| condition.position <= *end)
    })
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

/// Schedules with the combination's orders along the paths of the run up to there: first one behind which a thread
/// takes another path where the failure was looked for, or anywhere; none where there is no schedule.
/// The error says why it is not known.
///
/// # Errors
/// When the solver breaks.
pub(super) fn ways(
    run: &EventTrace,
    combination: &Combination,
    system: &ConstraintSystem,
    (functions, place): (&[String], &str),
    limits: Limits<'_>,
) -> Result<Result<Vec<Way>, String>, SolverError> {
    let events = [combination.own.0, combination.own.1, combination.other];
    let ends = ends(run, &events);
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
    let free = kept(run, |condition| !behind(condition));
    let dropped: Vec<&PathCondition> = run.conditions.iter().filter(|c| behind(c)).collect();
    let near = |condition: &&&PathCondition| functions.contains(&condition.site.function);
    let focus: Vec<&PathCondition> = dropped.iter().filter(near).copied().collect();
    let mut found: Vec<Way> = Vec::new();
    for conditions in [&focus, &dropped] {
        if conditions.is_empty() || !limits.is_left() {
            continue;
        }
        let departing = departing(&free, conditions);
        let Some(departing) = departing else { continue };
        let schedule = schedule(&departing, Goal::Fail, &combination.orders, limits)?;
        let Ok(Some(order)) = schedule else { continue };
        let way = Way { place: place.to_owned(), order: cut(run, &order, &events), departs: true };
        if !found.contains(&way) {
            found.push(way);
        }
    }
    if found.is_empty() {
        match schedule(&free, Goal::Any, &combination.orders, limits)? {
            Ok(Some(order)) => found.push(Way {
                place: place.to_owned(),
                order: cut(run, &order, &events),
                departs: false,
            }),
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
/// does.
fn cut(run: &EventTrace, order: &[EventId], events: &[EventId]) -> Vec<EventId> {
    let place = |id: EventId| order.iter().position(|event| *event == id).unwrap_or(0);
    let complete = events.iter().map(|id| place(*id)).max().unwrap_or(0);
    let input = |var: VarId| {
        let variable = run.variables.get(var.index())?;
        match variable.origin {
            VariableOrigin::Read { .. } => None,
            _ => Some(variable.recorded.unwrap_or(0)),
        }
    };
    let violated = Evaluator::new(run).run(order, &input).map(|evaluation| evaluation.violated);
    let seen = violated.unwrap_or_default().into_iter().filter_map(|id| {
        let condition = run.conditions.get(id.index())?;
        let thread = run.threads.get(condition.thread.index())?;
        let last = (condition.position as usize).checked_sub(1)?;
        Some(place(*thread.events.get(last)?))
    });
    let end = seen.filter(|place| *place > complete).min().unwrap_or(complete);
    order.get(..=end).unwrap_or(order).to_vec()
}
