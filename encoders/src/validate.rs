//! What the encoders rely on. The verifier of event traces checks all of this and more; here it
//! keeps a trace from elsewhere from being half encoded.

use crate::EncodeError;
use model::{
    Awaited, Event, EventId, EventKind, EventTrace, ExprId, FailureCondition, ObjectId, ObjectKind,
    ReadPart, ThreadId, WritePart,
};
use std::collections::BTreeSet;

/// Checks a trace.
pub(crate) fn validate(trace: &EventTrace) -> Result<(), EncodeError> {
    places(trace)?;
    for cell in &trace.cells {
        expression(trace, cell.init)?;
        if trace.exprs.width(cell.init) != cell.width {
            return Err(EncodeError::InitialWidth(cell.id));
        }
    }
    let mut forked = BTreeSet::new();
    for event in &trace.events {
        event.kind.reads().iter().try_for_each(|part| read(trace, event.id, part))?;
        event.kind.writes().iter().try_for_each(|part| write(trace, event.id, part))?;
        synchronisation(trace, event, &mut forked)?;
    }
    for condition in &trace.conditions {
        expression(trace, condition.expr)?;
        if trace.exprs.width(condition.expr) != 1 {
            return Err(EncodeError::PathCondition(condition.id));
        }
    }
    match &trace.failure {
        Some(failure) => failure_condition(trace, &failure.condition),
        None => Ok(()),
    }
}

/// Identifiers, threads and indices agree, so that they can be used as indices from here on.
fn places(trace: &EventTrace) -> Result<(), EncodeError> {
    let mut listed = 0;
    for (thread_index, thread) in trace.threads.iter().enumerate() {
        for (index, &id) in thread.events.iter().enumerate() {
            listed += 1;
            let fits = trace.events.get(id.index()).is_some_and(|event| {
                event.id == id
                    && event.thread.index() == thread_index
                    && event.index as usize == index
            });
            if !fits {
                return Err(EncodeError::MisplacedEvent(id));
            }
        }
    }
    match trace.events.get(listed) {
        Some(event) => Err(EncodeError::MisplacedEvent(event.id)),
        None => Ok(()),
    }
}

fn expression(trace: &EventTrace, id: ExprId) -> Result<(), EncodeError> {
    if (id.0 as usize) < trace.exprs.len() {
        Ok(())
    } else {
        Err(EncodeError::UnknownExpression(id))
    }
}

fn read(trace: &EventTrace, event: EventId, part: &ReadPart) -> Result<(), EncodeError> {
    let cell = part.cell;
    let width =
        trace.cells.get(cell.index()).ok_or(EncodeError::UnknownCell { event, cell })?.width;
    match trace.variables.get(part.var.index()) {
        Some(variable) if variable.width == width => Ok(()),
        _ => Err(EncodeError::Width { event, cell }),
    }
}

fn write(trace: &EventTrace, event: EventId, part: &WritePart) -> Result<(), EncodeError> {
    let cell = part.cell;
    let width =
        trace.cells.get(cell.index()).ok_or(EncodeError::UnknownCell { event, cell })?.width;
    expression(trace, part.value)?;
    if trace.exprs.width(part.value) == width {
        Ok(())
    } else {
        Err(EncodeError::Width { event, cell })
    }
}

fn synchronisation(
    trace: &EventTrace,
    event: &Event,
    forked: &mut BTreeSet<ThreadId>,
) -> Result<(), EncodeError> {
    let is =
        |object: ObjectId, fits: fn(ObjectKind) -> bool| match trace.objects.get(object.index()) {
            Some(found) if fits(found.kind) => Ok(()),
            _ => Err(EncodeError::WrongObject { event: event.id, kind: event.kind.name(), object }),
        };
    let lock = |kind| matches!(kind, ObjectKind::Lock);
    let condition_variable = |kind| matches!(kind, ObjectKind::Condition);
    let semaphore = |kind| matches!(kind, ObjectKind::Semaphore { .. });
    let barrier = |kind| matches!(kind, ObjectKind::Barrier { .. });
    match event.kind {
        EventKind::Read { .. }
        | EventKind::Write { .. }
        | EventKind::ReadModifyWrite { .. }
        | EventKind::Fence
        | EventKind::Start
        | EventKind::Exit
        | EventKind::Failure => Ok(()),
        EventKind::Block { on } => match on {
            Awaited::Lock { object, .. } => is(object, lock),
            Awaited::Signal { condition } => is(condition, condition_variable),
            Awaited::Unit { object } => is(object, semaphore),
            Awaited::Arrivals { object } => is(object, barrier),
            Awaited::End { child } => known_thread(trace, event.id, child),
            Awaited::Change | Awaited::Call | Awaited::Other => Ok(()),
        },
        EventKind::Lock { object, .. }
        | EventKind::Unlock { object, .. }
        | EventKind::TryLockFailed { object, .. } => is(object, lock),
        EventKind::Signal { condition } | EventKind::Broadcast { condition } => {
            is(condition, condition_variable)
        }
        EventKind::Wake { condition, began } | EventKind::WaitTimedOut { condition, began } => {
            is(condition, condition_variable)?;
            wait(trace, event, began)
        }
        EventKind::SemaphoreWait { object }
        | EventKind::SemaphoreWaitFailed { object }
        | EventKind::SemaphorePost { object } => is(object, semaphore),
        EventKind::BarrierArrive { object } => is(object, barrier),
        EventKind::BarrierLeave { object } => {
            is(object, barrier)?;
            leave(trace, event, object)
        }
        EventKind::Fork { child } => {
            known_thread(trace, event.id, child)?;
            if forked.insert(child) {
                Ok(())
            } else {
                Err(EncodeError::ForkedTwice { event: event.id, thread: child })
            }
        }
        EventKind::Join { child } => known_thread(trace, event.id, child),
        EventKind::Allocate { object } => is(object, |kind| matches!(kind, ObjectKind::Heap)),
        EventKind::Free { object } => {
            is(object, |kind| matches!(kind, ObjectKind::Heap | ObjectKind::Local))
        }
    }
}

fn known_thread(trace: &EventTrace, event: EventId, thread: ThreadId) -> Result<(), EncodeError> {
    if thread.index() < trace.threads.len() {
        Ok(())
    } else {
        Err(EncodeError::UnknownThread { event, thread })
    }
}

fn wait(trace: &EventTrace, event: &Event, began: EventId) -> Result<(), EncodeError> {
    let Some(start) = trace.events.get(began.index()) else {
        return Err(EncodeError::UnknownEvent { event: event.id, target: began });
    };
    let released = matches!(start.kind, EventKind::Unlock { .. });
    if released && start.thread == event.thread && start.index < event.index {
        Ok(())
    } else {
        Err(EncodeError::WaitWithoutRelease { event: event.id, began })
    }
}

/// The thread's last use of the barrier before this one is an arrival.
fn leave(trace: &EventTrace, event: &Event, object: ObjectId) -> Result<(), EncodeError> {
    let earlier = &trace.thread_of(event.id).events[..event.index as usize];
    let arrived = earlier.iter().rev().find_map(|&id| match trace.event(id).kind {
        EventKind::BarrierArrive { object: other } if other == object => Some(true),
        EventKind::BarrierLeave { object: other } if other == object => Some(false),
        _ => None,
    });
    match arrived {
        Some(true) => Ok(()),
        _ => Err(EncodeError::LeaveWithoutArrival { event: event.id, object }),
    }
}

fn failure_condition(trace: &EventTrace, condition: &FailureCondition) -> Result<(), EncodeError> {
    match condition {
        FailureCondition::Value(expr) => {
            expression(trace, *expr)?;
            if trace.exprs.width(*expr) == 1 { Ok(()) } else { Err(EncodeError::FailureCondition) }
        }
        FailureCondition::Before(a, b) => {
            let known = |id: &EventId| id.index() < trace.events.len();
            if known(a) && known(b) { Ok(()) } else { Err(EncodeError::FailureCondition) }
        }
        FailureCondition::Unwoken { condition, began } => {
            let object = trace.objects.get(condition.index()).map(|object| object.kind);
            let known = began.index() < trace.events.len() && object == Some(ObjectKind::Condition);
            if known { Ok(()) } else { Err(EncodeError::FailureCondition) }
        }
        FailureCondition::All(parts) | FailureCondition::Any(parts) => {
            parts.iter().try_for_each(|part| failure_condition(trace, part))
        }
    }
}
