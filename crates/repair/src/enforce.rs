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

impl Rule {
    /// The rule in the events of another trace, of which its own are images.
    pub(crate) fn speaking_of(&self, origin: impl Fn(EventId) -> Option<EventId>) -> Self {
        let all = |ids: &[EventId]| ids.iter().filter_map(|id| origin(*id)).collect();
        let stretch = |stretch: &Stretch| {
            let first = origin(stretch.first)?;
            Some(Stretch { first, last: origin(stretch.last).unwrap_or(first) })
        };
        match self {
            Self::Alone(stretches) => Self::Alone(stretches.iter().filter_map(stretch).collect()),
            Self::After { first, then } => Self::After { first: all(first), then: all(then) },
            Self::None => Self::None,
        }
    }
}
