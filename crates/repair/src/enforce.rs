//! What a running program is held to so that it does as if it were repaired.
//!
//! A rule speaks of events of the recorded run; the caller, who knows at which places of the program
//! a thread can be stopped, turns them into such places.

use model::EventId;

/// A part of one thread's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its first event.
    pub first: EventId,
    /// Its last event.
    pub last: EventId,
}

/// The order to enforce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Only one thread at a time may be in one of these. All passages of the recorded run are there.
    Alone(Vec<Stretch>),
    /// The second kind of event waits until the first has happened once.
    After {
        /// What has to have happened: events of the same place.
        first: Vec<EventId>,
        /// What waits: events of the same place.
        then: Vec<EventId>,
    },
    /// No order of events does the same.
    None,
}
