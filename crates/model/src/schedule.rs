//! A schedule: a total order of a trace's events.

use crate::ids::EventId;
use thiserror::Error;

/// A total order over events of one [`EventTrace`](crate::EventTrace): each event at most once.
/// A full schedule holds every event of the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The events, first to last.
    pub order: Vec<EventId>,
}

/// Why a list of events is not a schedule of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// The event does not exist in the trace.
    #[error("schedule names {0}, which the trace does not have")]
    UnknownEvent(EventId),
    /// The event appears twice.
    #[error("schedule has {0} twice")]
    Duplicate(EventId),
    /// An event of the trace is missing.
    #[error("schedule lacks {0}")]
    Missing(EventId),
}
