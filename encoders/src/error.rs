//! Why a trace cannot be encoded. Nothing is ever dropped silently.

use model::{CellId, ConditionId, EventId, ExprId, ObjectId, ThreadId};
use thiserror::Error;

/// An event trace that does not make sense, or is too large. A trace that passed the verifier always makes sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The caller's budget was spent before the system was complete.
    #[error("the constraints were not complete when the time or the memory was up")]
    BudgetSpent,
    /// An event's identifier, thread or index does not match its place in the trace.
    #[error("event {0} is not where its identifier, thread and index say")]
    MisplacedEvent(EventId),
    /// An event names another event that does not exist.
    #[error("event {event} refers to {target}, which the trace does not have")]
    UnknownEvent {
        /// The event that refers.
        event: EventId,
        /// What it refers to.
        target: EventId,
    },
    /// An event names a thread that does not exist.
    #[error("event {event} names thread {thread}, which the trace does not have")]
    UnknownThread {
        /// The event.
        event: EventId,
        /// The thread.
        thread: ThreadId,
    },
    /// A thread is created twice.
    #[error("event {event} creates thread {thread} a second time")]
    ForkedTwice {
        /// The second fork.
        event: EventId,
        /// The thread.
        thread: ThreadId,
    },
    /// An event names a cell that does not exist.
    #[error("event {event} touches cell {cell}, which the trace does not have")]
    UnknownCell {
        /// The event.
        event: EventId,
        /// The cell.
        cell: CellId,
    },
    /// An event names an object that does not exist or is of another kind.
    #[error("event {event} ({kind}) cannot act on object {object}")]
    WrongObject {
        /// The event.
        event: EventId,
        /// The event's kind.
        kind: &'static str,
        /// The object.
        object: ObjectId,
    },
    /// A value does not have the width of its cell, or a variable is not the trace's.
    #[error("event {event} reads or writes cell {cell} with a value of another width")]
    Width {
        /// The event.
        event: EventId,
        /// The cell.
        cell: CellId,
    },
    /// A cell's initial value does not have the cell's width.
    #[error("the initial value of cell {0} does not have the cell's width")]
    InitialWidth(CellId),
    /// A path condition is not a truth value.
    #[error("path condition {0} is not a 1-bit expression of the trace")]
    PathCondition(ConditionId),
    /// The failure condition is not a truth value or names an unknown event.
    #[error("the failure condition is not made of 1-bit expressions and events of the trace")]
    FailureCondition,
    /// An expression is not of the trace's pool.
    #[error("expression {0:?} is not in the trace's pool")]
    UnknownExpression(ExprId),
    /// A release without an acquisition.
    #[error("event {event} releases {object}, which its thread does not hold")]
    NotHeld {
        /// The release.
        event: EventId,
        /// The lock.
        object: ObjectId,
    },
    /// A second acquisition by the same thread; inner acquisitions of recursive locks must not
    /// appear in a trace.
    #[error("event {event} acquires {object}, which its thread holds already")]
    HeldAlready {
        /// The acquisition.
        event: EventId,
        /// The lock.
        object: ObjectId,
    },
    /// The end of a wait whose beginning is not an earlier release by the same thread.
    #[error(
        "event {event} ends a wait that began at {began}, which is no earlier release of its thread"
    )]
    WaitWithoutRelease {
        /// The wake-up or time-out.
        event: EventId,
        /// The supposed beginning.
        began: EventId,
    },
    /// A thread leaves a barrier at which it has not arrived.
    #[error("event {event} leaves barrier {object} without having arrived")]
    LeaveWithoutArrival {
        /// The event.
        event: EventId,
        /// The barrier.
        object: ObjectId,
    },
}
