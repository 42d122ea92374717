//! Where a scheduler can stop a thread: the points that the program itself passes before its events.

use crate::ids::EventId;

/// The scheduling points of a trace's events, in the order of `EventTrace::events`.
///
/// A thread passes gates (before instructions that other threads may observe) and sync points (in
/// the runtime's own functions); both have a name, the *site*, which does not change when other
/// code of the program does. `bank.c:deposit:write:balance/2` is a gate's, `~mutex_lock` a sync
/// point's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// The sites' names, each once.
    pub sites: Vec<String>,
    /// Per event, its point.
    pub of: Vec<Point>,
}

/// An event's scheduling point: the last one that its thread passed before it.
///
/// Where a call's gate and the sync point of the very same call follow each other without an event
/// between them, the gate names the point, since its name is the more telling and the more durable
/// one; `through` is the sync point then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// An index into [`Points::sites`].
    pub site: u32,
    /// The thread passed the site for the so-manieth time, from 1.
    pub occurrence: u64,
    /// The event is the first one behind this point: a thread that is stopped there has not
    /// performed it, but everything before it. Releases that no code performs
    /// ([`EventKind::Unlock`](crate::EventKind::Unlock), `synthetic`) do not count.
    pub first: bool,
    /// How many gates the thread had passed by then, this one included.
    pub gates: u64,
    /// How many sync points the thread had passed by then, this one and `through` included.
    pub syncs: u64,
    /// The sync point that the thread passed between the gate `site` and the event. To let the
    /// thread perform the event it has to be let past this one, too.
    pub through: Option<Passage>,
}

/// A thread's passing of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// An index into [`Points::sites`].
    pub site: u32,
    /// The thread passed the site for the so-manieth time, from 1.
    pub occurrence: u64,
}

impl Points {
    /// The point of an event; `None` when the event is not one of the trace's.
    #[must_use]
    pub fn point(&self, event: EventId) -> Option<&Point> {
        self.of.get(event.index())
    }

    /// The name of a point's site.
    #[must_use]
    pub fn site(&self, point: &Point) -> &str {
        self.name(point.site)
    }

    /// The name behind an index into `sites`.
    #[must_use]
    pub fn name(&self, site: u32) -> &str {
        self.sites.get(site as usize).map_or("?", String::as_str)
    }
}
